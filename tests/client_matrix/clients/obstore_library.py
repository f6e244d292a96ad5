"""obstore, the object_store of Rust for Python."""

import datetime
from pathlib import Path

import obstore
from obstore.store import S3Store

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice


class Obstore(Storage):
    """obstore; Polars, delta-rs and Lance use the same Rust library."""

    title = "obstore"
    recommended = advice(strict="`disable_bulk_delete=True`")

    @classmethod
    def version(cls, run) -> str:
        return obstore.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)

    def store(self, bucket: str) -> S3Store:
        """Returns the store of a bucket."""
        server = self.workspace.server
        more = {"disable_bulk_delete": True} if (server.mode, server.transport) in self.recommended and self.workspace.recommended else {}
        # It trusts the system's certificates only.
        options = {"allow_invalid_certificates": True} if server.tls else {"allow_http": True}
        return S3Store(
            bucket, endpoint=server.endpoint, region=REGION, access_key_id=server.access_key, secret_access_key=server.secret_key,
            client_options=options, retry_config={"max_retries": 0}, **more,
        )

    def upload(self, bucket: str, key: str, file: Path) -> None:
        obstore.put(self.store(bucket), key, file, chunk_size=5 << 20)

    def download(self, bucket: str, key: str, file: Path) -> None:
        file.write_bytes(obstore.get(self.store(bucket), key).bytes())

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        with obstore.open_writer(self.store(bucket), key) as writer:
            writer.write(file.read_bytes())

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        return bytes(obstore.get_range(self.store(bucket), key, start=first, end=last + 1))

    def listed(self, bucket: str) -> list[str]:
        return [item["path"] for page in obstore.list(self.store(bucket)) for item in page]

    def folders(self, bucket: str) -> list[str]:
        return list(obstore.list_with_delimiter(self.store(bucket))["common_prefixes"])

    def link_to_get(self, bucket: str, key: str) -> str:
        return obstore.sign(self.store(bucket), "GET", key, datetime.timedelta(minutes=5))

    def link_to_put(self, bucket: str, key: str) -> str:
        return obstore.sign(self.store(bucket), "PUT", key, datetime.timedelta(minutes=5))

    def remove(self, bucket: str, key: str) -> None:
        obstore.delete(self.store(bucket), key)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        obstore.delete(self.store(bucket), keys)

    def copied(self, bucket: str, key: str, other: str) -> None:
        obstore.copy(self.store(bucket), key, other)
