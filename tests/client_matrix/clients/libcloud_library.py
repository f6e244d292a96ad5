"""Apache Libcloud, whose S3 client is its own, in Python."""

import contextlib
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import libcloud
    import libcloud.security
    from libcloud.storage.drivers.s3 import S3StorageDriver
    from libcloud.storage.types import ObjectDoesNotExistError

PIECE_BYTES = 1 << 20


class Libcloud(Storage):
    """One interface to the stores of many clouds."""

    title = "Apache Libcloud"

    @classmethod
    def version(cls, run) -> str:
        return libcloud.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        libcloud.security.CA_CERTS_PATH = str(server.authority)
        self.driver = S3StorageDriver(server.access_key, server.secret_key, secure=server.tls, host=server.host, port=server.port, region=REGION)

    def make(self, bucket: str) -> None:
        self.driver.create_container(bucket)

    def buckets_seen(self) -> list[str]:
        return [container.name for container in self.driver.list_containers()]

    def drop(self, bucket: str) -> None:
        self.driver.delete_container(self.driver.get_container(bucket))

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.driver.upload_object(str(file), self.driver.get_container(bucket), key)

    def download(self, bucket: str, key: str, file: Path) -> None:
        if not self.driver.download_object(self.driver.get_object(bucket, key), str(file), overwrite_existing=True):
            raise ObjectDoesNotExistError("not downloaded", self.driver, key)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        content = file.read_bytes()
        pieces = (content[first : first + PIECE_BYTES] for first in range(0, len(content), PIECE_BYTES))
        self.driver.upload_object_via_stream(pieces, self.driver.get_container(bucket), key)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        return b"".join(self.driver.download_object_range_as_stream(self.driver.get_object(bucket, key), first, last + 1))

    def listed(self, bucket: str) -> list[str]:
        return [item.name for item in self.driver.iterate_container_objects(self.driver.get_container(bucket))]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.driver.get_object_cdn_url(self.driver.get_object(bucket, key), ex_expiry=1)

    def remove(self, bucket: str, key: str) -> None:
        self.driver.delete_object(self.driver.get_object(bucket, key))
