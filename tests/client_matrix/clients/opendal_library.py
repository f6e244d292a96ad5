"""OpenDAL for Python."""

import asyncio
import contextlib
import os
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import opendal

PIECE_BYTES = 5 << 20


class OpenDal(Storage):
    """OpenDAL; databases and build caches such as sccache use the same Rust library."""

    title = "OpenDAL"

    @classmethod
    def version(cls, run) -> str:
        return opendal.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        os.environ["SSL_CERT_FILE"] = str(workspace.server.authority)

    def settings(self, bucket: str) -> dict[str, str]:
        """Returns the settings of a bucket."""
        server = self.workspace.server
        return {
            "bucket": bucket, "endpoint": server.endpoint, "region": REGION, "access_key_id": server.access_key,
            "secret_access_key": server.secret_key, "disable_config_load": "true", "disable_ec2_metadata": "true",
        }

    def store(self, bucket: str) -> "opendal.Operator":
        """Returns the operator of a bucket."""
        return opendal.Operator("s3", **self.settings(bucket))

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.store(bucket).write(key, file.read_bytes(), chunk=PIECE_BYTES)

    def download(self, bucket: str, key: str, file: Path) -> None:
        file.write_bytes(self.store(bucket).read(key))

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        with self.store(bucket).open(key, "wb", chunk=PIECE_BYTES) as opened:
            opened.write(file.read_bytes())

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        return bytes(self.store(bucket).read(key, offset=first, size=last - first + 1))

    def listed(self, bucket: str) -> list[str]:
        return [entry.path for entry in self.store(bucket).scan("")]

    def folders(self, bucket: str) -> list[str]:
        return [entry.path for entry in self.store(bucket).list("") if entry.path.endswith("/") and entry.path != "/"]

    def link_to_get(self, bucket: str, key: str) -> str:
        async def made() -> str:
            return (await opendal.AsyncOperator("s3", **self.settings(bucket)).presign_read(key, 300)).url

        return asyncio.run(made())

    def link_to_put(self, bucket: str, key: str) -> str:
        async def made() -> str:
            return (await opendal.AsyncOperator("s3", **self.settings(bucket)).presign_write(key, 300)).url

        return asyncio.run(made())

    def remove(self, bucket: str, key: str) -> None:
        self.store(bucket).delete(key)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.store(bucket).remove_all(prefix)

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.store(bucket).copy(key, other)
