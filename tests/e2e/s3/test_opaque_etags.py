"""Opaque entity tags: `s3.etag = "opaque"`. They have the form of an upload of one part, and nothing takes them for an MD5."""

import base64
import hashlib
import re
from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from harness.boto import PART_BYTES, Upload, make_client, random_bytes, refused
from harness.s3 import S3, md5_etag
from harness.server import Cairn

OPAQUE = re.compile(r'"[0-9a-f]{32}-1"')
SMALL, LARGE = random_bytes(1, 1000), random_bytes(2, 300_000)


@pytest.fixture(scope="module")
def opaque_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that makes opaque entity tags."""
    return make_module_store(SERVICE_S3_ETAG="opaque", SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture
def opaque(opaque_store: Cairn) -> BaseClient:
    """A client of it."""
    return make_client(opaque_store.s3)


@pytest.fixture
def bucket_client(opaque_store: Cairn) -> S3:
    """Buckets are made on the server of this file."""
    return opaque_store.s3


@pytest.mark.parametrize("body", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_objects_have_tags_of_their_own(opaque: BaseClient, bucket: str, body: bytes):
    """Each PUT has another tag, even of the same bytes. Every operation that shows the tag shows the same."""
    first, second = (opaque.put_object(Bucket=bucket, Key="a", Body=body)["ETag"] for _ in range(2))
    assert OPAQUE.fullmatch(first) and OPAQUE.fullmatch(second) and first != second
    found = opaque.get_object(Bucket=bucket, Key="a")
    assert (found["Body"].read(), found["ETag"]) == (body, second)
    assert opaque.head_object(Bucket=bucket, Key="a")["ETag"] == second
    assert opaque.list_objects_v2(Bucket=bucket)["Contents"][0]["ETag"] == second
    attributes = opaque.get_object_attributes(
        Bucket=bucket, Key="a", ObjectAttributes=["ETag", "ObjectParts", "ObjectSize"]
    )
    assert (attributes["ETag"], attributes["ObjectSize"]) == (second.strip('"'), len(body))
    part = opaque.get_object(Bucket=bucket, Key="a", PartNumber=1)
    assert part["Body"].read() == body


def test_conditions_compare_opaque_tags(opaque: BaseClient, bucket: str):
    """A tag is that of one write: a condition on it fails after the same bytes were written again."""
    old, new = (opaque.put_object(Bucket=bucket, Key="a", Body=SMALL)["ETag"] for _ in range(2))
    assert opaque.get_object(Bucket=bucket, Key="a", IfMatch=new)["Body"].read() == SMALL
    with refused(412, "PreconditionFailed"):
        opaque.get_object(Bucket=bucket, Key="a", IfMatch=old)
    with refused(412, "PreconditionFailed"):
        opaque.put_object(Bucket=bucket, Key="a", Body=LARGE, IfMatch=old)
    opaque.put_object(Bucket=bucket, Key="a", Body=LARGE, IfMatch=new)


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_a_declared_md5_is_checked(opaque: BaseClient, bucket: str, body: bytes):
    """`Content-MD5` protects an upload as with the setting `md5`."""
    right, wrong = (base64.b64encode(hashlib.md5(text).digest()).decode() for text in (body, b"other"))
    answer = opaque.put_object(Bucket=bucket, Key="a", Body=body, ContentMD5=right)
    assert OPAQUE.fullmatch(answer["ETag"])
    with refused(400, "BadDigest"):
        opaque.put_object(Bucket=bucket, Key="a", Body=body, ContentMD5=wrong)
    upload = Upload(opaque, bucket, "b")
    with refused(400, "BadDigest"):
        upload.send(1, body, ContentMD5=wrong)


def test_parts_have_opaque_tags(opaque: BaseClient, bucket: str):
    """Lists of parts have them, completions name them, and another tag is refused."""
    upload = Upload(opaque, bucket, "a")
    bodies = [random_bytes(3, PART_BYTES), LARGE]
    tags = [upload.send(number, body)["ETag"] for number, body in enumerate(bodies, start=1)]
    assert all(OPAQUE.fullmatch(tag) for tag in tags)
    assert [part["ETag"] for part in upload.listed()["Parts"]] == tags
    with refused(400, "InvalidPart"):
        upload.complete([{"PartNumber": 1, "ETag": tags[1]}])
    assert re.fullmatch(r'"[0-9a-f]{32}-2"', upload.complete()["ETag"])
    assert opaque.get_object(Bucket=bucket, Key="a")["Body"].read() == b"".join(bodies)


def test_copies_have_opaque_tags(opaque: BaseClient, bucket: str):
    """A copy has a tag of its own; so has a copied part."""
    source = opaque.put_object(Bucket=bucket, Key="a", Body=LARGE)["ETag"]
    named = {"Bucket": bucket, "Key": "a"}
    copied = opaque.copy_object(Bucket=bucket, Key="b", CopySource=named)["CopyObjectResult"]["ETag"]
    assert OPAQUE.fullmatch(copied) and copied != source
    upload = Upload(opaque, bucket, "c")
    part = opaque.upload_part_copy(**upload.names, PartNumber=1, CopySource=named)
    assert OPAQUE.fullmatch(part["CopyPartResult"]["ETag"])


def test_tags_stay_when_the_setting_changes(opaque_store: Cairn, opaque: BaseClient, bucket: str):
    """The setting is about new objects. An upload may have parts of both kinds."""
    tag = opaque.put_object(Bucket=bucket, Key="a", Body=LARGE)["ETag"]
    upload = Upload(opaque, bucket, "b")
    first = random_bytes(4, PART_BYTES)
    upload.send(1, first)
    opaque_store.stop()
    opaque_store.extra["SERVICE_S3_ETAG"] = "md5"
    try:
        opaque_store.start()
        assert opaque.head_object(Bucket=bucket, Key="a")["ETag"] == tag
        assert opaque.put_object(Bucket=bucket, Key="c", Body=LARGE)["ETag"] == md5_etag(LARGE)
        assert upload.send(2, SMALL)["ETag"] == md5_etag(SMALL)
        upload.complete()
        assert opaque.get_object(Bucket=bucket, Key="b")["Body"].read() == first + SMALL
    finally:
        opaque_store.stop()
        opaque_store.extra["SERVICE_S3_ETAG"] = "opaque"
        opaque_store.start()
