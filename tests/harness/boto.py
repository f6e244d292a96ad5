"""boto3 clients without retries, assertions on errors, and multipart helpers."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from .s3 import S3, multipart_etag

# The minimum size of every part except the last, as on AWS.
PART_BYTES = 5 << 20
WHEN_REQUIRED = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}


def make_client(s3: S3, **settings: object) -> BaseClient:
    """Returns a boto3 client with the S3 client's credential. It never retries, because a retry would hide errors."""
    return boto3.client(
        "s3", endpoint_url=f"http://{s3.authority}", region_name="us-east-1",
        aws_access_key_id=s3.credential.access_key, aws_secret_access_key=s3.credential.secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings),
    )


@contextmanager
def refused(status: int, *codes: str) -> Iterator[dict]:
    """Asserts that the calls inside fail with this status and one of these codes, and yields the error.

    A response to HEAD has no code: botocore uses the status instead, and `codes` stays empty.
    """
    answer: dict = {}
    with pytest.raises(ClientError) as caught:
        yield answer
    answer.update(caught.value.response)
    found = answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]
    assert found[0] == status and (not codes or found[1] in codes), f"{found} {answer['Error'].get('Message')}"


def headers(answer: dict) -> dict[str, str]:
    """Returns the headers of a response or error, by lower-case name."""
    return answer["ResponseMetadata"]["HTTPHeaders"]


def random_bytes(seed: int | str, size: int) -> bytes:
    """Returns bytes that differ for each seed."""
    return random.Random(seed).randbytes(size)


def parts_etag(body: bytes) -> str:
    """Returns the ETag of a body that went up in parts of the smallest size."""
    return multipart_etag(*(body[at : at + PART_BYTES] for at in range(0, len(body), PART_BYTES)))


class Upload:
    """A multipart upload and the parts that were sent."""

    def __init__(self, client: BaseClient, bucket: str, key: str, **options: object):
        self.client = client
        self.created = client.create_multipart_upload(Bucket=bucket, Key=key, **options)
        self.names = {"Bucket": bucket, "Key": key, "UploadId": self.created["UploadId"]}
        self.parts: dict[int, dict] = {}

    def send(self, number: int, body: bytes, **options: object) -> dict:
        """Uploads a part, which `complete` uses for this number from now on."""
        answer = self.client.upload_part(**self.names, PartNumber=number, Body=body, **options)
        sums = {name: value for name, value in answer.items() if name.startswith("Checksum") and name != "ChecksumType"}
        self.parts[number] = {"PartNumber": number, "ETag": answer["ETag"], **sums}
        return answer

    def complete(self, parts: list[dict] | None = None, **options: object) -> dict:
        """Completes the upload with these parts, by default with the last upload of each number in order."""
        parts = [self.parts[number] for number in sorted(self.parts)] if parts is None else parts
        return self.client.complete_multipart_upload(**self.names, MultipartUpload={"Parts": parts}, **options)

    def abort(self) -> dict:
        """Aborts the upload."""
        return self.client.abort_multipart_upload(**self.names)

    def listed(self, **options: object) -> dict:
        """Returns one page of the upload's parts."""
        return self.client.list_parts(**self.names, **options)


def upload_in_parts(client: BaseClient, bucket: str, key: str, bodies: list[bytes], **options: object) -> dict:
    """Runs a complete multipart upload with parts 1, 2, … and returns the response of complete."""
    upload = Upload(client, bucket, key, **options)
    for number, body in enumerate(bodies, 1):
        upload.send(number, body)
    return upload.complete()
