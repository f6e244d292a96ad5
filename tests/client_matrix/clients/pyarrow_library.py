"""PyArrow, whose file system for S3 is made with the AWS SDK for C++."""

import contextlib
import os
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import pyarrow
    from pyarrow import fs

PIECE_BYTES = 1 << 20


class PyArrow(Storage):
    """PyArrow's S3FileSystem."""

    title = "PyArrow (AWS SDK for C++)"
    recommended = advice(strict="`AWS_REQUEST_CHECKSUM_CALCULATION=when_required`")

    @classmethod
    def version(cls, run) -> str:
        return pyarrow.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        if workspace.recommended:
            os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
        self.store = fs.S3FileSystem(
            access_key=server.access_key, secret_key=server.secret_key, region=REGION, scheme="https" if server.tls else "http",
            endpoint_override=server.authority_name, allow_bucket_creation=True, allow_bucket_deletion=True,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1), tls_ca_file_path=str(server.authority),
        )

    def make(self, bucket: str) -> None:
        self.store.create_dir(bucket)

    def buckets_seen(self) -> list[str]:
        return [item.path for item in self.store.get_file_info(fs.FileSelector(""))]

    def drop(self, bucket: str) -> None:
        self.store.delete_dir(bucket)

    def upload(self, bucket: str, key: str, file: Path) -> None:
        with self.store.open_output_stream(f"{bucket}/{key}") as stream:
            stream.write(file.read_bytes())

    def download(self, bucket: str, key: str, file: Path) -> None:
        with self.store.open_input_stream(f"{bucket}/{key}") as stream:
            file.write_bytes(stream.read())

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        content = file.read_bytes()
        with self.store.open_output_stream(f"{bucket}/{key}") as stream:
            for first in range(0, len(content), PIECE_BYTES):
                stream.write(content[first : first + PIECE_BYTES])

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        with self.store.open_input_file(f"{bucket}/{key}") as file:
            return file.read_at(last - first + 1, first)

    def listed(self, bucket: str) -> list[str]:
        return [item.path for item in self.store.get_file_info(fs.FileSelector(bucket, recursive=True))]

    def folders(self, bucket: str) -> list[str]:
        found = self.store.get_file_info(fs.FileSelector(bucket))
        return [item.base_name for item in found if item.type == fs.FileType.Directory]

    def remove(self, bucket: str, key: str) -> None:
        self.store.delete_file(f"{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.store.delete_dir_contents(f"{bucket}/{prefix.rstrip('/')}")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.store.copy_file(f"{bucket}/{key}", f"{bucket}/{other}")
