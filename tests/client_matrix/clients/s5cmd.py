"""s5cmd."""

import sys
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import Workspace


class S5cmd(Storage):
    """A fast command-line client in Go, built on the first AWS SDK for Go."""

    title = "s5cmd"
    program = str(Path(sys.executable).with_name("s5cmd"))

    @classmethod
    def version(cls, run) -> str:
        return run(cls.program, "version").strip().lstrip("v").split("-")[0]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        workspace.environment["S3_ENDPOINT_URL"] = workspace.server.endpoint
        # It trusts the system's certificates only, and those of SSL_CERT_FILE.
        self.words = [self.program, "--retry-count", "0"]

    def s5(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run(*self.words, *words)

    def make(self, bucket: str) -> None:
        self.s5("mb", f"s3://{bucket}")

    def buckets_seen(self) -> list[str]:
        return [line.split("s3://")[1] for line in self.s5("ls").splitlines()]

    def drop(self, bucket: str) -> None:
        self.s5("rb", f"s3://{bucket}")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.s5("cp", "--part-size", "5", file, f"s3://{bucket}/{key}")

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.s5("cp", "--raw", f"s3://{bucket}/{key}", file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.workspace.run(*self.words, "pipe", f"s3://{bucket}/{key}", given=file.read_bytes())

    def listed(self, bucket: str) -> list[str]:
        return [line.split()[-1] for line in self.s5("ls", f"s3://{bucket}/*").splitlines()]

    def folders(self, bucket: str) -> list[str]:
        return [line.split("DIR")[1].strip() for line in self.s5("ls", f"s3://{bucket}/").splitlines() if "DIR" in line]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.s5("presign", f"s3://{bucket}/{key}")

    def remove(self, bucket: str, key: str) -> None:
        self.s5("rm", f"s3://{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.s5("rm", f"s3://{bucket}/{prefix}*")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.s5("cp", "--raw", f"s3://{bucket}/{key}", f"s3://{bucket}/{other}")

    def version_on(self, bucket: str) -> None:
        self.s5("bucket-version", "--set", "Enabled", f"s3://{bucket}")

    def version_ids(self, bucket: str, key: str) -> list[str]:
        lines = self.s5("ls", "--all-versions", f"s3://{bucket}/{key}").splitlines()
        return [word for line in lines for word in line.split()[-1:]]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        return self.s5("cat", "--version-id", version, f"s3://{bucket}/{key}").encode()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.s5("rm", "--version-id", version, f"s3://{bucket}/{key}")
