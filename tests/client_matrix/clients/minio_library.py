"""minio-py."""

import datetime
import ssl
from pathlib import Path

import minio
import urllib3
from minio.commonconfig import GOVERNANCE, ComposeSource, CopySource, Tags
from minio.deleteobjects import DeleteObject
from minio.retention import Retention
from minio.versioningconfig import ENABLED, VersioningConfig

from client_matrix.storage import COPIED_BYTES, Storage
from client_matrix.workspace import REGION, Workspace

PART_BYTES = 5 << 20


class MinioPy(Storage):
    """MinIO's library for Python."""

    title = "minio-py"

    @classmethod
    def version(cls, run) -> str:
        return minio.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        pool = urllib3.PoolManager(retries=False, ca_certs=str(server.authority), cert_reqs=ssl.CERT_REQUIRED) if server.tls else urllib3.PoolManager(retries=False)
        self.client = minio.Minio(
            endpoint=server.authority_name, access_key=server.access_key, secret_key=server.secret_key, secure=server.tls, region=REGION,
            http_client=pool,
        )

    def make(self, bucket: str) -> None:
        self.client.make_bucket(bucket_name=bucket)

    def buckets_seen(self) -> list[str]:
        return [bucket.name for bucket in self.client.list_buckets()]

    def drop(self, bucket: str) -> None:
        self.client.remove_bucket(bucket_name=bucket)

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.client.fput_object(bucket_name=bucket, object_name=key, file_path=str(file), part_size=PART_BYTES)

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.client.fget_object(bucket_name=bucket, object_name=key, file_path=str(file))

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        with file.open("rb") as stream:
            self.client.put_object(bucket_name=bucket, object_name=key, data=stream, length=-1, part_size=PART_BYTES)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        return self.client.get_object(bucket_name=bucket, object_name=key, offset=first, length=last - first + 1).read()

    def listed(self, bucket: str) -> list[str]:
        return [item.object_name for item in self.client.list_objects(bucket_name=bucket, recursive=True)]

    def folders(self, bucket: str) -> list[str]:
        return [item.object_name for item in self.client.list_objects(bucket_name=bucket) if item.is_dir]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.client.presigned_get_object(bucket_name=bucket, object_name=key)

    def link_to_put(self, bucket: str, key: str) -> str:
        return self.client.presigned_put_object(bucket_name=bucket, object_name=key)

    def remove(self, bucket: str, key: str) -> None:
        self.client.remove_object(bucket_name=bucket, object_name=key)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        errors = list(self.client.remove_objects(bucket_name=bucket, delete_object_list=[DeleteObject(key) for key in keys]))
        assert not errors, errors

    def copied(self, bucket: str, key: str, other: str) -> None:
        if self.client.stat_object(bucket_name=bucket, object_name=key).size < COPIED_BYTES:
            self.client.copy_object(bucket_name=bucket, object_name=other, source=CopySource(bucket_name=bucket, object_name=key))
        else:
            pieces = [
                ComposeSource(bucket_name=bucket, object_name=key, offset=offset, length=min(COPIED_BYTES // 2, COPIED_BYTES - offset))
                for offset in range(0, COPIED_BYTES, COPIED_BYTES // 2)
            ]
            self.client.compose_object(bucket_name=bucket, object_name=other, sources=pieces)

    def version_on(self, bucket: str) -> None:
        self.client.set_bucket_versioning(bucket_name=bucket, config=VersioningConfig(ENABLED))

    def version_ids(self, bucket: str, key: str) -> list[str]:
        return [item.version_id for item in self.client.list_objects(bucket_name=bucket, include_version=True)]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        return self.client.get_object(bucket_name=bucket, object_name=key, version_id=version).read()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.client.remove_object(bucket_name=bucket, object_name=key, version_id=version)

    def retain(self, bucket: str, key: str, seconds: int) -> None:
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        self.client.set_object_retention(bucket_name=bucket, object_name=key, config=Retention(GOVERNANCE, until))

    def retention(self, bucket: str, key: str) -> str:
        return self.client.get_object_retention(bucket_name=bucket, object_name=key).mode

    def hold(self, bucket: str, key: str, state: str) -> None:
        change = self.client.enable_object_legal_hold if state == "ON" else self.client.disable_object_legal_hold
        change(bucket_name=bucket, object_name=key)

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        tags = Tags.new_object_tags()
        tags[name] = value
        self.client.set_object_tags(bucket_name=bucket, object_name=key, tags=tags)

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        return dict(self.client.get_object_tags(bucket_name=bucket, object_name=key) or {})

    def tag_bucket(self, bucket: str, name: str, value: str) -> None:
        tags = Tags.new_bucket_tags()
        tags[name] = value
        self.client.set_bucket_tags(bucket_name=bucket, tags=tags)

    def tags_of_bucket(self, bucket: str) -> dict[str, str]:
        return dict(self.client.get_bucket_tags(bucket_name=bucket) or {})
