"""django-storages: the files of Django applications in a bucket."""

import contextlib
from pathlib import Path

import botocore.config

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice

# The page is built where they are not installed.
with contextlib.suppress(ImportError):
    import storages
    from django.conf import settings as django_settings
    from django.core.files.base import File
    from storages.backends.s3 import S3Storage


class DjangoStorages(Storage):
    """Uploads of users, and static files."""

    title = "django-storages"
    recommended = advice(
        strict="`signature_version=\"s3v4\"`; `client_config` with `request_checksum_calculation=\"when_required\"`",
    )

    @classmethod
    def version(cls, run) -> str:
        return storages.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        if not django_settings.configured:
            django_settings.configure(USE_TZ=True)

    def storage(self, bucket: str) -> "S3Storage":
        """Returns the storage of a bucket."""
        server = self.workspace.server
        told = {}
        if self.workspace.recommended:
            told["client_config"] = botocore.config.Config(
                s3={"addressing_style": "path"}, signature_version="s3v4", request_checksum_calculation="when_required",
                retries={"total_max_attempts": 1},
            )
        return S3Storage(
            bucket_name=bucket, endpoint_url=server.endpoint, region_name=REGION, access_key=server.access_key, secret_key=server.secret_key,
            addressing_style="path", file_overwrite=True, verify=str(server.authority) if server.tls else None, **told,
        )

    def upload(self, bucket: str, key: str, file: Path) -> None:
        with file.open("rb") as opened:
            self.storage(bucket).save(key, File(opened))

    def download(self, bucket: str, key: str, file: Path) -> None:
        with self.storage(bucket).open(key) as opened:
            file.write_bytes(opened.read())

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        with self.storage(bucket).open(key, "wb") as opened:
            opened.write(file.read_bytes())

    def folders(self, bucket: str) -> list[str]:
        return self.storage(bucket).listdir("")[0]

    def listed(self, bucket: str) -> list[str]:
        return self.storage(bucket).listdir("")[1]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.storage(bucket).url(key)

    def remove(self, bucket: str, key: str) -> None:
        self.storage(bucket).delete(key)
