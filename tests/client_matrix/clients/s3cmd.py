"""s3cmd."""

import sys
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace


class S3cmd(Storage):
    """A command-line client in Python with an S3 layer of its own."""

    title = "s3cmd"
    program = str(Path(sys.executable).with_name("s3cmd"))

    @classmethod
    def version(cls, run) -> str:
        return run(cls.program, "--version").split()[-1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        config = workspace.home / "s3cfg"
        config.write_text(
            f"[default]\naccess_key = {server.access_key}\nsecret_key = {server.secret_key}\nhost_base = {server.authority_name}\n"
            f"host_bucket = {server.authority_name}\nbucket_location = {REGION}\nuse_https = {server.tls}\nca_certs_file = {server.authority}\n"
            "max_retries = 0\nmultipart_max_attempts = 1\n"
        )
        self.words = [self.program, "-c", config, "--no-progress"]

    def s3(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run(*self.words, *words)

    def make(self, bucket: str) -> None:
        self.s3("mb", f"s3://{bucket}")

    def buckets_seen(self) -> list[str]:
        return [line.split("s3://")[1] for line in self.s3("ls").splitlines()]

    def drop(self, bucket: str) -> None:
        self.s3("rb", f"s3://{bucket}")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.s3("put", file, f"s3://{bucket}/{key}")

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.s3("get", "--force", f"s3://{bucket}/{key}", file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.workspace.run(*self.words, "put", "-", f"s3://{bucket}/{key}", given=file.read_bytes())

    def listed(self, bucket: str) -> list[str]:
        return [line.split("s3://")[1] for line in self.s3("ls", "-r", f"s3://{bucket}/").splitlines()]

    def folders(self, bucket: str) -> list[str]:
        lines = self.s3("ls", f"s3://{bucket}/").splitlines()
        return [line.split(f"s3://{bucket}/")[1] for line in lines if "DIR" in line]

    def link_to_get(self, bucket: str, key: str) -> str:
        # It signs URLs with version 2 of the signature, for a time in seconds since 1970.
        return self.s3("signurl", f"s3://{bucket}/{key}", "+600")

    def remove(self, bucket: str, key: str) -> None:
        self.s3("del", f"s3://{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.s3("del", "-r", "--force", f"s3://{bucket}/{prefix}")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.s3("cp", f"s3://{bucket}/{key}", f"s3://{bucket}/{other}")

    def version_on(self, bucket: str) -> None:
        self.s3("setversioning", f"s3://{bucket}", "enable")

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        self.s3("settagging", f"s3://{bucket}/{key}", f"{name}={value}")

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        lines = self.s3("gettagging", f"s3://{bucket}/{key}").splitlines()
        return dict(line.strip().split(":\t", 1) for line in lines if ":\t" in line)
