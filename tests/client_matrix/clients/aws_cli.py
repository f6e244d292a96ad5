"""The AWS CLI: version 1 from the Python package, version 2 from Debian's package."""

import datetime
import json
import sys
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import Workspace, advice

DEBIAN_PROGRAM = "/usr/bin/aws"


class AwsCli(Storage):
    """The AWS CLI, version 1."""

    title = "AWS CLI, version 1"
    program = str(Path(sys.executable).with_name("aws"))
    recommended = advice(
        strict="`request_checksum_calculation` and `response_checksum_validation`: `when_required`; `s3.signature_version = s3v4` for presigned URLs; "
        "`s3.multipart_threshold = 5GB` for copies",
        extended="`s3.signature_version = s3v4` for presigned URLs",
    )

    @classmethod
    def version(cls, run) -> str:
        return run(cls.program, "--version").split()[0].split("/")[1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        lines = ["[default]", "cli_pager =", "s3 =", "    addressing_style = path"]
        if workspace.recommended:
            lines.append("    signature_version = s3v4")
        if workspace.recommended and workspace.server.strict:
            lines.insert(1, "request_checksum_calculation = when_required\nresponse_checksum_validation = when_required")
            self.whole_copies = "    multipart_threshold = 5GB"
        else:
            self.whole_copies = ""
        # Version 2 of Debian 12 does not know AWS_ENDPOINT_URL.
        self.words = ["--endpoint-url", workspace.server.endpoint]
        self.lines, self.config = lines, workspace.home / "aws-config"
        workspace.environment["AWS_CONFIG_FILE"] = str(self.config)
        self.config.write_text("\n".join(lines) + "\n")

    def aws(self, *words: object) -> str:
        """Runs the CLI."""
        return self.workspace.run(self.program, *self.words, "--output", "json", "--cli-read-timeout", "60", *words)

    def api(self, operation: str, bucket: str, *words: object) -> dict:
        """Runs one operation of `aws s3api`."""
        return json.loads(self.aws("s3api", operation, "--bucket", bucket, *words) or "{}")

    def make(self, bucket: str) -> None:
        self.aws("s3", "mb", f"s3://{bucket}")

    def buckets_seen(self) -> list[str]:
        return [line.split()[-1] for line in self.aws("s3", "ls").splitlines()]

    def drop(self, bucket: str) -> None:
        self.aws("s3", "rb", f"s3://{bucket}")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.aws("s3", "cp", file, f"s3://{bucket}/{key}")

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.aws("s3", "cp", f"s3://{bucket}/{key}", file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.workspace.run(self.program, *self.words, "s3", "cp", "-", f"s3://{bucket}/{key}", given=file.read_bytes())

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        into = self.workspace.folder / "part"
        self.api("get-object", bucket, "--key", key, "--range", f"bytes={first}-{last}", into)
        return into.read_bytes()

    def listed(self, bucket: str) -> list[str]:
        return [line.split()[-1] for line in self.aws("s3", "ls", "--recursive", f"s3://{bucket}/").splitlines()]

    def folders(self, bucket: str) -> list[str]:
        return [line.split("PRE ")[1] for line in self.aws("s3", "ls", f"s3://{bucket}/").splitlines() if "PRE " in line]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.aws("s3", "presign", f"s3://{bucket}/{key}")

    def remove(self, bucket: str, key: str) -> None:
        self.aws("s3", "rm", f"s3://{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        answer = self.api("delete-objects", bucket, "--delete", json.dumps({"Objects": [{"Key": key} for key in keys]}))
        assert "Errors" not in answer, answer["Errors"]

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.config.write_text("\n".join([*self.lines, self.whole_copies]) + "\n")
        try:
            self.aws("s3", "cp", f"s3://{bucket}/{key}", f"s3://{bucket}/{other}")
        finally:
            self.config.write_text("\n".join(self.lines) + "\n")

    def version_on(self, bucket: str) -> None:
        self.api("put-bucket-versioning", bucket, "--versioning-configuration", "Status=Enabled")

    def version_ids(self, bucket: str, key: str) -> list[str]:
        return [version["VersionId"] for version in self.api("list-object-versions", bucket)["Versions"]]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        into = self.workspace.folder / "version"
        self.api("get-object", bucket, "--key", key, "--version-id", version, into)
        return into.read_bytes()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.api("delete-object", bucket, "--key", key, "--version-id", version)

    def retain(self, bucket: str, key: str, seconds: int) -> None:
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        wanted = f"Mode=GOVERNANCE,RetainUntilDate={until.strftime('%Y-%m-%dT%H:%M:%SZ')}"
        self.api("put-object-retention", bucket, "--key", key, "--retention", wanted)

    def retention(self, bucket: str, key: str) -> str:
        return self.api("get-object-retention", bucket, "--key", key)["Retention"]["Mode"]

    def hold(self, bucket: str, key: str, state: str) -> None:
        self.api("put-object-legal-hold", bucket, "--key", key, "--legal-hold", f"Status={state}")

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        self.api("put-object-tagging", bucket, "--key", key, "--tagging", json.dumps({"TagSet": [{"Key": name, "Value": value}]}))

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.api("get-object-tagging", bucket, "--key", key)["TagSet"]}

    def tag_bucket(self, bucket: str, name: str, value: str) -> None:
        self.api("put-bucket-tagging", bucket, "--tagging", json.dumps({"TagSet": [{"Key": name, "Value": value}]}))

    def tags_of_bucket(self, bucket: str) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.api("get-bucket-tagging", bucket)["TagSet"]}


class AwsCli2(AwsCli):
    """The AWS CLI, version 2, as Debian 12 has it: from before the checksums by default."""

    title = "AWS CLI, version 2"
    program = DEBIAN_PROGRAM
    recommended = advice(strict="`s3.multipart_threshold = 5GB` for copies")
