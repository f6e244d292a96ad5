"""boto3."""

import datetime
from pathlib import Path

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice
from harness.boto import WHEN_REQUIRED

WHOLE_COPIES = TransferConfig(multipart_threshold=5 * 2**30)


class Boto3(Storage):
    """The AWS SDK for Python."""

    title = "boto3"
    recommended = advice(
        strict='`request_checksum_calculation` and `response_checksum_validation`: `when_required`; `signature_version="s3v4"` for presigned URLs; '
        "`TransferConfig(multipart_threshold=5 * 2**30)` for copies",
        extended='`signature_version="s3v4"` for presigned URLs',
    )

    @classmethod
    def version(cls, run) -> str:
        return boto3.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        settings: dict = {"signature_version": "s3v4"} if workspace.recommended else {}
        self.plain = workspace.recommended and server.strict
        if self.plain:
            settings |= WHEN_REQUIRED
        self.client = boto3.client(
            "s3", endpoint_url=server.endpoint, region_name=REGION, aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key, verify=str(server.authority) if server.tls else None,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings),
        )

    def make(self, bucket: str) -> None:
        self.client.create_bucket(Bucket=bucket)

    def buckets_seen(self) -> list[str]:
        return [bucket["Name"] for bucket in self.client.list_buckets()["Buckets"]]

    def drop(self, bucket: str) -> None:
        self.client.delete_bucket(Bucket=bucket)

    def upload(self, bucket: str, key: str, file: Path) -> None:
        if file.stat().st_size < 10_000:
            self.client.put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
        else:
            self.client.upload_file(str(file), bucket, key)

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.client.download_file(bucket, key, str(file))

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        with file.open("rb") as stream:
            self.client.upload_fileobj(stream, bucket, key)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        return self.client.get_object(Bucket=bucket, Key=key, Range=f"bytes={first}-{last}")["Body"].read()

    def listed(self, bucket: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [item["Key"] for page in pages for item in page["Contents"]]

    def folders(self, bucket: str) -> list[str]:
        found = self.client.list_objects_v2(Bucket=bucket, Delimiter="/")["CommonPrefixes"]
        return [folder["Prefix"] for folder in found]

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})

    def link_to_put(self, bucket: str, key: str) -> str:
        return self.client.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": key})

    def remove(self, bucket: str, key: str) -> None:
        self.client.delete_object(Bucket=bucket, Key=key)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        answer = self.client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
        assert "Errors" not in answer, answer["Errors"]

    def copied(self, bucket: str, key: str, other: str) -> None:
        config = WHOLE_COPIES if self.plain else None
        self.client.copy({"Bucket": bucket, "Key": key}, bucket, other, Config=config)

    def version_on(self, bucket: str) -> None:
        self.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def version_ids(self, bucket: str, key: str) -> list[str]:
        return [version["VersionId"] for version in self.client.list_object_versions(Bucket=bucket, Prefix=key)["Versions"]]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        return self.client.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.client.delete_object(Bucket=bucket, Key=key, VersionId=version)

    def retain(self, bucket: str, key: str, seconds: int) -> None:
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
        self.client.put_object_retention(Bucket=bucket, Key=key, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": until})

    def retention(self, bucket: str, key: str) -> str:
        return self.client.get_object_retention(Bucket=bucket, Key=key)["Retention"]["Mode"]

    def hold(self, bucket: str, key: str, state: str) -> None:
        self.client.put_object_legal_hold(Bucket=bucket, Key=key, LegalHold={"Status": state})

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        self.client.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": [{"Key": name, "Value": value}]})

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.client.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]}

    def tag_bucket(self, bucket: str, name: str, value: str) -> None:
        self.client.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": name, "Value": value}]})

    def tags_of_bucket(self, bucket: str) -> dict[str, str]:
        return {tag["Key"]: tag["Value"] for tag in self.client.get_bucket_tagging(Bucket=bucket)["TagSet"]}
