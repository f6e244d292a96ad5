"""Attacks buckets: names, creation, deletion, location, listing, and the XML that creation takes."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.expect import assert_error, assert_status
from harness.s3 import NAMESPACE, S3, error_code, object_target, xml
from harness.sigv4 import Credential, uri_encode

VALID = ["abc", "a1b", "a-b", "a.b.c", "0-0", "x" * 63, "my.bucket-1.name"]
INVALID = [
    "ab", "x" * 64, "Abc", "a_b", "-abc", "abc-", ".abc", "abc.", "a..b", "a b", "192.168.5.4", "xn--abc", "abc-s3alias",
    "sthree-abc", "abc--ol-s3", "é-bucket", "amzn-s3-demo-x", "abc.mrap", "abc--x-s3",
]


def create(s3: S3, name: str, body: bytes = b"", headers: list[tuple[str, str]] | None = None):
    """A creation, whatever it answers."""
    return s3.request("PUT", f"/{name}", headers, body)


@pytest.mark.parametrize("name", VALID)
def test_valid_names(s3: S3, name: str):
    """By AWS's rules; created, seen, deleted."""
    response = assert_status(create(s3, name), 200)
    assert response.get("location") == f"/{name}"
    assert s3.request("HEAD", f"/{name}").status == 200
    assert s3.request("DELETE", f"/{name}").status == 204
    assert s3.request("HEAD", f"/{name}").status == 404


@pytest.mark.parametrize("name", INVALID)
def test_invalid_names(s3: S3, name: str):
    """Refused by name, and nothing is made."""
    assert_error(create(s3, uri_encode(name)), 400, "InvalidBucketName")


def test_own_existing_bucket(s3: S3, bucket: str):
    """409 by the name that tells the owner, and the objects stay."""
    s3.put(bucket, "k", b"1")
    assert_error(create(s3, bucket), 409, "BucketAlreadyOwnedByYou")
    assert s3.get(bucket, "k").body == b"1"


def test_of_many_creations_one_wins(s3: S3, bucket: str):
    """Concurrently, exactly one 200."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: create(s3, f"{bucket}-race"), range(16)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 15
    assert {error_code(a) for a in answers if a.status == 409} == {"BucketAlreadyOwnedByYou"}


def location_body(inner: str, root: str = f'<CreateBucketConfiguration xmlns="{NAMESPACE}">') -> bytes:
    """A CreateBucketConfiguration."""
    return f"{root}{inner}</CreateBucketConfiguration>".encode()


@pytest.mark.parametrize(
    "body",
    [
        location_body("<LocationConstraint>eu-central-1</LocationConstraint>"),
        location_body("<LocationConstraint>us-east-1</LocationConstraint>", "<CreateBucketConfiguration>"),
        b'<?xml version="1.0" encoding="UTF-8"?>\n' + location_body("<LocationConstraint>x</LocationConstraint>"),
        location_body(""), location_body("<LocationConstraint></LocationConstraint>"),
        location_body("<Unknown>x</Unknown><LocationConstraint>x</LocationConstraint>"),
    ],
)
def test_location_constraints_are_accepted(s3: S3, bucket: str, body: bytes):
    """With and without namespace and declaration; unknown elements are tolerated."""
    assert_status(create(s3, f"{bucket}-loc", body), 200)


BOMB = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense", b"<a", b"<CreateBucketConfiguration>", b"<Other/>", b"\xff\xfe<\x00", b"{}",
        BOMB + location_body("<LocationConstraint>&b;</LocationConstraint>"),
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + location_body(""),
        location_body("<LocationConstraint>&xxe;</LocationConstraint>"),
        location_body("<a>" * 2000 + "</a>" * 2000),
        location_body("") + b"<more/>",
    ],
)
def test_bad_xml_is_refused(s3: S3, bucket: str, body: bytes):
    """Malformed, DTDs, entities, endless depth: MalformedXML and no bucket."""
    assert_error(create(s3, f"{bucket}-bad", body), 400, "MalformedXML")
    assert s3.request("HEAD", f"/{bucket}-bad").status == 404


def test_xml_over_the_limit(s3: S3, bucket: str):
    """More than 1 MiB of XML is refused without reading it all into memory."""
    body = location_body("<!--" + "x" * 1_100_000 + "--><LocationConstraint>x</LocationConstraint>")
    response = create(s3, f"{bucket}-big", body)
    assert response.status in (400, 413), response.status
    assert s3.request("HEAD", f"/{bucket}-big").status == 404


@pytest.mark.parametrize("header", ["x-amz-acl", "x-amz-grant-read", "x-amz-grant-full-control"])
def test_access_lists_on_creation_are_not_implemented(s3: S3, bucket: str, header: str):
    """And no bucket comes of it."""
    assert_error(create(s3, f"{bucket}-acl", headers=[(header, "public-read")]), 501, "NotImplemented")
    assert s3.request("HEAD", f"/{bucket}-acl").status == 404


def test_delete_refuses_what_is_not_empty(s3: S3, bucket: str):
    """409 while one object is there; then 204; then 404."""
    s3.put(bucket, "k", b"x" * 100_000)
    assert_error(s3.request("DELETE", f"/{bucket}"), 409, "BucketNotEmpty")
    assert len(s3.get(bucket, "k").body) == 100_000
    s3.delete(bucket, "k")
    assert s3.request("DELETE", f"/{bucket}").status == 204
    assert_error(s3.request("DELETE", f"/{bucket}"), 404, "NoSuchBucket")


def test_a_bucket_made_again_is_empty(s3: S3, bucket: str):
    """No object of the old bucket shines through, and no creation date either."""
    s3.put(bucket, "k", b"old")
    s3.delete(bucket, "k")
    s3.request("DELETE", f"/{bucket}")
    s3.create_bucket(bucket)
    assert s3.list(bucket).keys == []
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_delete_against_concurrent_puts(s3: S3, bucket: str):
    """Either the bucket goes and the PUT finds none, or the PUT is kept: never an acknowledged object lost."""
    for number in range(25):
        name = f"{bucket}-{number}"
        s3.create_bucket(name)
        with ThreadPoolExecutor(5) as pool:
            puts = [
                pool.submit(s3.request, "PUT", object_target(name, f"k{writer}"), None, b"x" * (100 + 40_000 * (writer % 2)))
                for writer in range(4)
            ]
            gone = pool.submit(s3.request, "DELETE", f"/{name}").result()
        kept = sum(put.result().status == 200 for put in puts)
        assert gone.status in (204, 409), gone.body
        if gone.status == 204:
            assert kept == 0, "a PUT was acknowledged into a bucket that is gone"
            assert_error(s3.list_page(name), 404, "NoSuchBucket")
        else:
            assert len(s3.list(name).keys) == kept


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "?list-type=2"), ("GET", "?location"), ("DELETE", ""), ("GET", "/k"), ("PUT", "/k"), ("DELETE", "/k")],
)
def test_missing_buckets(s3: S3, method: str, path: str):
    """NoSuchBucket for every operation under it."""
    assert_error(s3.request(method, f"/no-such-bucket-here{path}"), 404, "NoSuchBucket")


@pytest.mark.parametrize("path", ["", "/k"])
def test_missing_buckets_by_head(s3: S3, path: str):
    """404 without a body."""
    assert s3.request("HEAD", f"/no-such-bucket-here{path}").status == 404


def test_region(s3: S3, bucket: str):
    """HEAD tells it, on 403 too; the location of us-east-1 is empty."""
    assert s3.request("HEAD", f"/{bucket}").get("x-amz-bucket-region") == "us-east-1"
    refused = s3.request("HEAD", f"/{bucket}", credential=Credential("AKNOBODY", "x"))
    assert refused.status == 403 and refused.get("x-amz-bucket-region") == "us-east-1"
    root = xml(assert_status(s3.request("GET", f"/{bucket}?location"), 200))
    assert root.tag == "LocationConstraint" and (root.text or "") == ""


def test_list_buckets(s3: S3, bucket: str):
    """All of them in order of name, with creation dates, and the owner."""
    for name in ("z", "a"):
        s3.create_bucket(f"{bucket}-{name}")
    root = xml(assert_status(s3.request("GET", "/"), 200))
    assert root.tag == "ListAllMyBucketsResult" and root.findtext("Owner/ID")
    names = [item.findtext("Name") for item in root.findall("Buckets/Bucket")]
    assert names == sorted(names) and {bucket, f"{bucket}-a", f"{bucket}-z"} <= set(names)
    for item in root.findall("Buckets/Bucket"):
        created = dt.datetime.fromisoformat(item.findtext("CreationDate"))
        assert item.findtext("CreationDate").endswith("Z")
        assert abs((dt.datetime.now(dt.timezone.utc) - created).total_seconds()) < 3600
