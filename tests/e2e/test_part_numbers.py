"""Attacks reads of single parts: `partNumber` on GET and HEAD, of objects in several parts and in one."""

import pytest
from botocore.client import BaseClient

from harness.boto import PART_BYTES, headers, random_bytes, refused, upload_in_parts
from harness.s3 import S3, error_code

BODIES = [random_bytes("one", PART_BYTES), random_bytes("two", PART_BYTES + 77), random_bytes("three", 1234)]
WHOLE = b"".join(BODIES)


@pytest.fixture
def parted(boto: BaseClient, bucket: str) -> str:
    """A bucket with an object of three parts."""
    upload_in_parts(boto, bucket, "k", BODIES)
    return bucket


def test_each_part_by_its_number(boto: BaseClient, parted: str):
    """206 with the part's place in the object, its bytes, and how many parts there are."""
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
def test_a_part_that_is_not_there(s3: S3, parted: str, number: int):
    """416, and no bytes of another."""
    response = s3.get(parted, "k", query=f"partNumber={number}")
    assert (response.status, error_code(response)) == (416, "InvalidPartNumber")
    assert s3.head(parted, "k", query=f"partNumber={number}").status == 416


@pytest.mark.parametrize("number", ["0", "10001", "x", "-1"])
def test_numbers_that_are_none(s3: S3, parted: str, number: str):
    """400."""
    response = s3.get(parted, "k", query=f"partNumber={number}")
    assert (response.status, error_code(response)) == (400, "InvalidArgument")


def test_an_object_of_one_put_has_one_part(boto: BaseClient, bucket: str):
    """Number 1 is all of it, 2 is none."""
    boto.put_object(Bucket=bucket, Key="k", Body=b"in one")
    assert boto.get_object(Bucket=bucket, Key="k", PartNumber=1)["Body"].read() == b"in one"
    with refused(416, "InvalidPartNumber"):
        boto.get_object(Bucket=bucket, Key="k", PartNumber=2)


def test_not_together_with_a_range(boto: BaseClient, parted: str):
    """Both say which bytes."""
    with refused(400, "InvalidRequest"):
        boto.get_object(Bucket=parted, Key="k", PartNumber=1, Range="bytes=0-1")
