"""The AWS SDKs for other languages: programs of tests/clients that make one call for each line of JSON.

A line of the input is `{"call": NAME, …}`, a line of the output `{"result": …}` or `{"error": TEXT}`. The names of calls and
arguments are those of the methods below. Files stand for contents in both directions.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import Workspace, Refused, advice
from harness.programs import MATRIX_PROGRAMS
from harness.server import REPOSITORY

CALL_SECONDS = 120
WHEN_REQUIRED = "request checksum calculation and response checksum validation: `when required`; copies up to 5 GiB in one request"


class Sdk(Storage):
    """A program around an SDK."""

    language = ""

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        if workspace.recommended:
            workspace.environment |= {
                "CAIRN_RECOMMENDED": "1", "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required", "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
            }
        self.process = subprocess.Popen(
            MATRIX_PROGRAMS[self.language], env=workspace.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=(workspace.folder / "program.log").open("wb"), text=True, start_new_session=True,
        )

    def call(self, name: str, /, **arguments: object) -> object:
        """Makes one call; its result."""
        line = json.dumps({"call": name} | {key: str(value) if isinstance(value, Path) else value for key, value in arguments.items()})
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise Refused(f"the program ended: {(self.workspace.folder / 'program.log').read_text()[-600:]}")
        answer = json.loads(answer)
        if answer.get("error") is not None:
            raise Refused(answer["error"])
        return answer.get("result")

    def end(self) -> None:
        """Ends the program."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def make(self, bucket: str) -> None:
        self.call("make", bucket=bucket)

    def buckets_seen(self) -> list[str]:
        return self.call("buckets")

    def drop(self, bucket: str) -> None:
        self.call("drop", bucket=bucket)

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.call("upload", bucket=bucket, key=key, file=file)

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.call("download", bucket=bucket, key=key, file=file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.call("pipe", bucket=bucket, key=key, file=file)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        into = self.workspace.folder / "part"
        self.call("part", bucket=bucket, key=key, first=first, last=last, file=into)
        return into.read_bytes()

    def listed(self, bucket: str) -> list[str]:
        return self.call("list", bucket=bucket)

    def folders(self, bucket: str) -> list[str]:
        return self.call("folders", bucket=bucket)

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.call("link_to_get", bucket=bucket, key=key)

    def link_to_put(self, bucket: str, key: str) -> str:
        return self.call("link_to_put", bucket=bucket, key=key)

    def remove(self, bucket: str, key: str) -> None:
        self.call("remove", bucket=bucket, key=key)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.call("remove_many", bucket=bucket, keys=keys)

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.call("copy", bucket=bucket, key=key, other=other)

    def version_on(self, bucket: str) -> None:
        self.call("version_on", bucket=bucket)

    def version_ids(self, bucket: str, key: str) -> list[str]:
        return self.call("versions", bucket=bucket)

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        into = self.workspace.folder / "version"
        self.call("download", bucket=bucket, key=key, version=version, file=into)
        return into.read_bytes()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.call("remove", bucket=bucket, key=key, version=version)

    def retain(self, bucket: str, key: str, seconds: int) -> None:
        self.call("retain", bucket=bucket, key=key, seconds=seconds)

    def retention(self, bucket: str, key: str) -> str:
        return self.call("retention", bucket=bucket, key=key)

    def hold(self, bucket: str, key: str, state: str) -> None:
        self.call("hold", bucket=bucket, key=key, state=state)

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        self.call("tag", bucket=bucket, key=key, name=name, value=value)

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        return self.call("tags", bucket=bucket, key=key)

    def tag_bucket(self, bucket: str, name: str, value: str) -> None:
        self.call("tag_bucket", bucket=bucket, name=name, value=value)

    def tags_of_bucket(self, bucket: str) -> dict[str, str]:
        return self.call("tags_of_bucket", bucket=bucket)


class JavaScript(Sdk):
    """The AWS SDK for JavaScript, version 3, under Node.js."""

    title = "AWS SDK for JavaScript"
    language = "javascript"
    recommended = advice(strict=WHEN_REQUIRED)

    @classmethod
    def version(cls, run) -> str:
        package = REPOSITORY / "tests/clients/javascript/node_modules/@aws-sdk/client-s3/package.json"
        return json.loads(package.read_text())["version"]


class Go(Sdk):
    """The AWS SDK for Go, version 2, with its upload manager."""

    title = "AWS SDK for Go v2"
    language = "go"
    recommended = advice(strict=WHEN_REQUIRED + ", also those of `manager.Uploader`")

    @classmethod
    def version(cls, run) -> str:
        lines = (REPOSITORY / "tests/clients/go/go.mod").read_text().splitlines()
        return next(line.split()[1].lstrip("v") for line in lines if "service/s3 v" in line)


class Java(Sdk):
    """The AWS SDK for Java, version 2."""

    title = "AWS SDK for Java"
    language = "java"
    recommended = advice(strict=WHEN_REQUIRED + ", and `chunkedEncodingEnabled(false)`")

    @classmethod
    def version(cls, run) -> str:
        pom = (REPOSITORY / "tests/clients/java/pom.xml").read_text()
        return pom.split("<aws.version>")[1].split("<")[0]


class Rust(Sdk):
    """The AWS SDK for Rust."""

    title = "AWS SDK for Rust"
    language = "rust"
    recommended = advice(strict=WHEN_REQUIRED)

    @classmethod
    def version(cls, run) -> str:
        lock = (REPOSITORY / "tests/clients/rust/Cargo.lock").read_text()
        return lock.split('name = "aws-sdk-s3"\nversion = "')[1].split('"')[0]


class Ruby(Sdk):
    """The AWS SDK for Ruby, version 3, as Debian has it."""

    title = "AWS SDK for Ruby"
    language = "ruby"
    recommended = advice(strict="copies up to 5 GiB in one request")

    @classmethod
    def version(cls, run) -> str:
        return run("ruby", "-e", "require 'aws-sdk-s3'; print Aws::S3::GEM_VERSION")


class MinioJs(Sdk):
    """MinIO's client for JavaScript, which signs by itself."""

    title = "minio-js"
    language = "minio-js"

    @classmethod
    def version(cls, run) -> str:
        return json.loads((REPOSITORY / "tests/clients/javascript/node_modules/minio/package.json").read_text())["version"]
