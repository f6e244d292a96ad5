"""boto3 against a store of the harness: a client that makes one attempt, and refusals checked by status and code."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from .s3 import S3

# The smallest part that may stand before another one, as on AWS.
PART_BYTES = 5 << 20
WHEN_REQUIRED = {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}


def make_client(s3: S3, **settings: object) -> BaseClient:
    """A boto3 client under the credential of the harness' own; one attempt, for a retry would hide what broke."""
    return boto3.client(
        "s3", endpoint_url=f"http://{s3.authority}", region_name="us-east-1",
        aws_access_key_id=s3.credential.access_key, aws_secret_access_key=s3.credential.secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings),
    )


@contextmanager
def refused(status: int, *codes: str) -> Iterator[dict]:
    """The calls inside end with this status and one of these codes; gives the whole answer afterwards.

    An answer to HEAD has no code: botocore puts the status in its place, and `codes` stays empty.
    """
    answer: dict = {}
    with pytest.raises(ClientError) as caught:
        yield answer
    answer.update(caught.value.response)
    found = answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]
    assert found[0] == status and (not codes or found[1] in codes), f"{found} {answer['Error'].get('Message')}"


def headers(answer: dict) -> dict[str, str]:
    """The headers of an answer or of a refusal, by names in lower case."""
    return answer["ResponseMetadata"]["HTTPHeaders"]


def random_bytes(seed: int | str, size: int) -> bytes:
    """Bytes that no other seed gives."""
    return random.Random(seed).randbytes(size)


class Upload:
    """One multipart upload and the parts that the client has sent for it."""

    def __init__(self, client: BaseClient, bucket: str, key: str, **options: object):
        self.client = client
        self.created = client.create_multipart_upload(Bucket=bucket, Key=key, **options)
        self.names = {"Bucket": bucket, "Key": key, "UploadId": self.created["UploadId"]}
        self.parts: dict[int, dict] = {}

    def send(self, number: int, body: bytes, **options: object) -> dict:
        """Upload one part; it is what `complete` names under this number from now on."""
        answer = self.client.upload_part(**self.names, PartNumber=number, Body=body, **options)
        sums = {name: value for name, value in answer.items() if name.startswith("Checksum") and name != "ChecksumType"}
        self.parts[number] = {"PartNumber": number, "ETag": answer["ETag"], **sums}
        return answer

    def complete(self, parts: list[dict] | None = None, **options: object) -> dict:
        """Complete with these parts; by default with the last upload of each, in order."""
        parts = [self.parts[number] for number in sorted(self.parts)] if parts is None else parts
        return self.client.complete_multipart_upload(**self.names, MultipartUpload={"Parts": parts}, **options)

    def abort(self) -> dict:
        """Give it up."""
        return self.client.abort_multipart_upload(**self.names)

    def listed(self, **options: object) -> dict:
        """One page of its parts."""
        return self.client.list_parts(**self.names, **options)


def upload_in_parts(client: BaseClient, bucket: str, key: str, bodies: list[bytes], **options: object) -> dict:
    """A whole multipart upload with parts 1, 2, …; what complete answered."""
    upload = Upload(client, bucket, key, **options)
    for number, body in enumerate(bodies, 1):
        upload.send(number, body)
    return upload.complete()
