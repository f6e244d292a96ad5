"""Reads of single parts: `partNumber` on GET and HEAD of multipart and ordinary objects."""

import pytest
from botocore.client import BaseClient

from harness.boto import PART_BYTES, headers, random_bytes, refused, upload_in_parts
from harness.s3 import S3, error_code

BODIES = [random_bytes("one", PART_BYTES), random_bytes("two", PART_BYTES + 77), random_bytes("three", 1234)]
WHOLE = b"".join(BODIES)


@pytest.fixture
def parted(boto: BaseClient, bucket: str) -> str:
    """Creates a bucket with an object of three parts."""
    upload_in_parts(boto, bucket, "k", BODIES)
    return bucket


def test_each_part_can_be_read_by_number(boto: BaseClient, parted: str):
    """The response is 206 with the part's range, its bytes and the number of parts."""
    begin = 0
    for number, body in enumerate(BODIES, 1):
        found = boto.get_object(Bucket=parted, Key="k", PartNumber=number)
        assert found["Body"].read() == body
        place = f"bytes {begin}-{begin + len(body) - 1}/{len(WHOLE)}"
        assert (found["ResponseMetadata"]["HTTPStatusCode"], found["ContentRange"], found["PartsCount"]) == (206, place, 3)
        head = boto.head_object(Bucket=parted, Key="k", PartNumber=number)
        assert (headers(head)["content-range"], head["ContentLength"], head["PartsCount"]) == (place, len(body), 3)
        begin += len(body)


@pytest.mark.parametrize("number", [4, 10_000])
def test_missing_part_number_is_refused(s3: S3, parted: str, number: int):
    """The answer is 416."""
    response = s3.get(parted, "k", query=f"partNumber={number}")
    assert (response.status, error_code(response)) == (416, "InvalidPartNumber")
    assert s3.head(parted, "k", query=f"partNumber={number}").status == 416


@pytest.mark.parametrize("number", ["0", "10001", "x", "-1"])
def test_invalid_part_numbers_are_refused(s3: S3, parted: str, number: str):
    """The answer is 400."""
    response = s3.get(parted, "k", query=f"partNumber={number}")
    assert (response.status, error_code(response)) == (400, "InvalidArgument")


def test_object_without_parts_has_part_1_only(boto: BaseClient, bucket: str):
    """Part 1 is the whole object. Part 2 does not exist."""
    boto.put_object(Bucket=bucket, Key="k", Body=b"in one")
    assert boto.get_object(Bucket=bucket, Key="k", PartNumber=1)["Body"].read() == b"in one"
    with refused(416, "InvalidPartNumber"):
        boto.get_object(Bucket=bucket, Key="k", PartNumber=2)


def test_part_number_with_a_range_is_refused(boto: BaseClient, parted: str):
    """Both select bytes, so together they are ambiguous."""
    with refused(400, "InvalidRequest"):
        boto.get_object(Bucket=parted, Key="k", PartNumber=1, Range="bytes=0-1")
