"""The workspace of one client's run: a server, a folder, files, and an independent client that prepares and checks."""

import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.config import Config

from harness.boto import WHEN_REQUIRED, random_bytes

COMMAND_SECONDS = 240
LISTED_OBJECTS = 1205
REGION = "us-east-1"
# No request of a client may be repeated: that would hide what broke.
ATTEMPTS = "1"
MESSAGE_CHARACTERS_MAX = 4000
# Variables that would configure a client.
FOREIGN = ("SERVICE_", "AWS_", "RCLONE_", "S3_", "MC_", "TF_")


class Refused(Exception):
    """The client failed; the text is what it said."""


@dataclass(frozen=True)
class Server:
    """A running server, as its clients see it."""

    mode: str
    transport: str
    host: str
    port: int
    access_key: str
    secret_key: str
    authority: Path

    @property
    def endpoint(self) -> str:
        """Returns the URL of the data plane."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def authority_name(self) -> str:
        """Returns host and port."""
        return f"{self.host}:{self.port}"

    @property
    def tls(self) -> bool:
        """Returns whether the server speaks TLS."""
        return self.transport == "TLS"

    @property
    def strict(self) -> bool:
        """Returns whether the server is in the strict mode."""
        return self.mode == "strict"


class Workspace:
    """One client against one server with one kind of settings."""

    def __init__(self, server: Server, settings: str, folder: Path):
        self.server, self.settings, self.folder = server, settings, folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.buckets_made = 0
        # Settings of botocore that work everywhere: this client prepares and checks, it is not under test.
        self.checker = boto3.client(
            "s3", endpoint_url=server.endpoint, region_name=REGION, aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key, verify=str(server.authority) if server.tls else None,
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, **WHEN_REQUIRED),
        )
        self.environment = clean_environment() | {
            "HOME": str(self.home), "TMPDIR": str(folder),
            "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key,
            "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": server.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": ATTEMPTS,
            "AWS_CA_BUNDLE": str(server.authority), "NODE_EXTRA_CA_CERTS": str(server.authority), "SSL_CERT_FILE": str(server.authority),
        }

    @property
    def recommended(self) -> bool:
        """Returns whether the client runs with the settings that docs/clients.md names."""
        return self.settings == "recommended"

    def bucket(self, **options: object) -> str:
        """Creates an empty bucket."""
        self.buckets_made += 1
        name = f"b{self.buckets_made}-{self.folder.name}".lower().replace("_", "-").replace(".", "-")
        self.checker.create_bucket(Bucket=name, **options)
        return name

    def name(self) -> str:
        """Returns a name for a bucket that does not exist."""
        self.buckets_made += 1
        return f"n{self.buckets_made}-{self.folder.name}".lower().replace("_", "-").replace(".", "-")

    def put(self, bucket: str, key: str, content: bytes = b"content") -> None:
        """Stores an object."""
        self.checker.put_object(Bucket=bucket, Key=key, Body=content)

    def get(self, bucket: str, key: str) -> bytes:
        """Reads an object."""
        return self.checker.get_object(Bucket=bucket, Key=key)["Body"].read()

    def keys(self, bucket: str) -> list[str]:
        """Lists all keys."""
        pages = self.checker.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def names(self) -> set[str]:
        """Lists all buckets."""
        return {bucket["Name"] for bucket in self.checker.list_buckets()["Buckets"]}

    def fill(self, bucket: str, count: int, prefix: str = "") -> list[str]:
        """Stores many small objects; their keys."""
        keys = [f"{prefix}{number:05}" for number in range(count)]
        for key in keys:
            self.put(bucket, key, b"x")
        return keys

    def file(self, name: str, size: int) -> Path:
        """Makes a file of random bytes."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random_bytes(name, size))
        return path

    def run(self, *words: object, given: bytes | None = None, more: dict[str, str] | None = None, seconds: float = COMMAND_SECONDS) -> str:
        """Runs a command to its end; what it wrote. Raises Refused with its messages if it fails."""
        process = subprocess.Popen(
            [str(word) for word in words], env=self.environment | (more or {}), cwd=self.folder,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )
        try:
            written, said = process.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Refused(f"no end after {seconds:.0f} s") from None
        text = written.decode(errors="replace")
        if process.returncode != 0:
            raise Refused((said.decode(errors="replace") + text)[-MESSAGE_CHARACTERS_MAX:])
        return text


def clean_environment() -> dict[str, str]:
    """Returns the environment without variables that would configure a client."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def same(found: object, expected: object, what: str) -> None:
    """Raises Refused unless two values are equal."""
    if found != expected:
        raise Refused(f"{what}: {shortened(found)} instead of {shortened(expected)}")


def shortened(value: object) -> str:
    """Returns the beginning of a value's text."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


class Client:
    """A client of the matrix. Each operation that it offers is a method with the operation's name."""

    # What a row shows.
    title = ""
    # What to set beyond endpoint, region, keys and path style, for each mode and transport where something is needed.
    recommended: dict[tuple[str, str], str] = {}
    # Where it cannot run at all, with the reason.
    not_over: dict[str, str] = {}

    def __init__(self, workspace: Workspace):
        self.workspace = workspace

    @classmethod
    def offers(cls, operation: str) -> bool:
        """Returns whether the client has an operation."""
        return hasattr(cls, operation)

    def end(self) -> None:
        """Ends what the client left running."""

    @classmethod
    def version(cls, run: Callable[..., str]) -> str:
        """Returns the version of the client that is installed."""
        raise NotImplementedError


def advice(strict: str = "", extended: str = "", **over: str) -> dict[tuple[str, str], str]:
    """Builds `recommended`: a text per mode, or per mode and transport as `strict_HTTP="…"`."""
    made = {}
    for mode, text in (("strict", strict), ("extended", extended)):
        for transport in ("HTTP", "TLS"):
            chosen = over.get(f"{mode}_{transport}", text)
            if chosen:
                made[mode, transport] = chosen
    return made
