"""smart_open, which streams objects through boto3."""

import contextlib
from pathlib import Path

import boto3
from botocore.config import Config

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import smart_open

PIECE_BYTES = 1 << 20


class SmartOpen(Storage):
    """Objects as files; libraries for machine learning read their data so."""

    title = "smart_open"
    recommended = advice(strict="`request_checksum_calculation=when_required`")

    @classmethod
    def version(cls, run) -> str:
        return smart_open.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        told = {"request_checksum_calculation": "when_required"} if workspace.recommended else {}
        self.client = boto3.client(
            "s3", endpoint_url=server.endpoint, region_name=REGION, aws_access_key_id=server.access_key, aws_secret_access_key=server.secret_key,
            verify=str(server.authority) if server.tls else None,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, **told),
        )

    def open(self, bucket: str, key: str, mode: str):
        """Opens an object as a file."""
        return smart_open.open(f"s3://{bucket}/{key}", mode, transport_params={"client": self.client, "min_part_size": 5 << 20}, compression="disable")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        with self.open(bucket, key, "wb") as stream:
            stream.write(file.read_bytes())

    def download(self, bucket: str, key: str, file: Path) -> None:
        with self.open(bucket, key, "rb") as stream:
            file.write_bytes(stream.read())

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        content = file.read_bytes()
        with self.open(bucket, key, "wb") as stream:
            for first in range(0, len(content), PIECE_BYTES):
                stream.write(content[first : first + PIECE_BYTES])

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        with self.open(bucket, key, "rb") as stream:
            stream.seek(first)
            return stream.read(last - first + 1)
