"""Buckets: names, creation, deletion, location, listing, and CreateBucket XML."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.expect import assert_error, assert_status, choice
from harness.s3 import NAMESPACE, S3, error_code, object_target, xml
from harness.sigv4 import Credential, uri_encode

VALID = ["abc", "a1b", "a-b", "a.b.c", "0-0", "x" * 63, "my.bucket-1.name"]
INVALID = [
    "ab", "x" * 64, "Abc", "a_b", "-abc", "abc-", ".abc", "abc.", "a..b", "a b", "192.168.5.4", "xn--abc", "abc-s3alias",
    "sthree-abc", "abc--ol-s3", "é-bucket", "amzn-s3-demo-x", "abc.mrap", "abc--x-s3",
]


def create(s3: S3, name: str, body: bytes = b"", headers: list[tuple[str, str]] | None = None):
    """Sends CreateBucket and returns the response, whatever its status."""
    return s3.request("PUT", f"/{name}", headers, body)


@pytest.mark.parametrize("name", VALID)
def test_valid_names_are_accepted(s3: S3, name: str):
    """Names that follow the AWS rules can be created, read with HEAD and deleted."""
    response = assert_status(create(s3, name), 200)
    assert response.get("location") == f"/{name}"
    assert s3.request("HEAD", f"/{name}").status == 200
    assert s3.request("DELETE", f"/{name}").status == 204
    assert s3.request("HEAD", f"/{name}").status == 404


@pytest.mark.parametrize("name", INVALID)
def test_invalid_names_are_refused(s3: S3, name: str):
    """400 InvalidBucketName."""
    assert_error(create(s3, uri_encode(name)), 400, "InvalidBucketName")


def test_creating_an_own_bucket_again_is_refused(s3: S3, bucket: str):
    """409 BucketAlreadyOwnedByYou, and the objects do not change."""
    s3.put(bucket, "k", b"1")
    for path in (bucket, f"{bucket}/"):
        assert_error(create(s3, path), 409, "BucketAlreadyOwnedByYou")
    assert s3.get(bucket, "k").body == b"1"


def test_one_of_many_concurrent_creations_succeeds(s3: S3, bucket: str):
    """Exactly one request gets 200, all others 409."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: create(s3, f"{bucket}-race"), range(16)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 15
    assert {error_code(a) for a in answers if a.status == 409} == {"BucketAlreadyOwnedByYou"}


def location_body(inner: str, root: str = f'<CreateBucketConfiguration xmlns="{NAMESPACE}">') -> bytes:
    """Returns a CreateBucketConfiguration document."""
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
    """Namespace and XML declaration are optional. Unknown elements are ignored."""
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
def test_invalid_xml_is_refused(s3: S3, bucket: str, body: bytes):
    """Malformed documents, DTDs, entities and deep nesting: MalformedXML, and no bucket is created."""
    assert_error(create(s3, f"{bucket}-bad", body), 400, "MalformedXML")
    assert s3.request("HEAD", f"/{bucket}-bad").status == 404


def test_xml_over_the_size_limit_is_refused(s3: S3, bucket: str):
    """More than 1 MiB of XML is 400, and no bucket is created."""
    body = location_body("<!--" + "x" * 1_100_000 + "--><LocationConstraint>x</LocationConstraint>")
    response = create(s3, f"{bucket}-big", body)
    assert response.status in choice(400, 413), response.status
    assert s3.request("HEAD", f"/{bucket}-big").status == 404


@pytest.mark.parametrize("header", ["x-amz-acl", "x-amz-grant-read", "x-amz-grant-full-control"])
def test_acl_headers_on_creation_are_not_implemented(s3: S3, bucket: str, header: str):
    """501, and no bucket is created."""
    assert_error(create(s3, f"{bucket}-acl", headers=[(header, "public-read")]), 501, "NotImplemented")
    assert s3.request("HEAD", f"/{bucket}-acl").status == 404


def test_invalid_object_lock_header_is_refused(s3: S3, bucket: str):
    """Only true and false are valid. With another value no bucket is created."""
    headers = [("x-amz-bucket-object-lock-enabled", "yes")]
    assert_error(create(s3, f"{bucket}-lock", headers=headers), 400, "InvalidArgument")
    assert s3.request("HEAD", f"/{bucket}-lock").status == 404


def test_deleting_a_bucket_with_objects_is_refused(s3: S3, bucket: str):
    """409 while the bucket has an object. Then the first DELETE is 204, the second 404."""
    s3.put(bucket, "k", b"x" * 100_000)
    assert_error(s3.request("DELETE", f"/{bucket}"), 409, "BucketNotEmpty")
    assert len(s3.get(bucket, "k").body) == 100_000
    s3.delete(bucket, "k")
    assert s3.request("DELETE", f"/{bucket}").status == 204
    assert_error(s3.request("DELETE", f"/{bucket}"), 404, "NoSuchBucket")


def test_recreated_bucket_is_empty(s3: S3, bucket: str):
    """No object of the deleted bucket is visible in the new one."""
    s3.put(bucket, "k", b"old")
    s3.delete(bucket, "k")
    s3.request("DELETE", f"/{bucket}")
    s3.create_bucket(bucket)
    assert s3.list(bucket).keys == []
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_concurrent_delete_bucket_never_loses_an_object(s3: S3, bucket: str):
    """Either the bucket is deleted and every PUT fails, or acknowledged PUTs stay and the deletion fails."""
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
        # Whichever of the concurrent requests was first.
        assert gone.status in (204, 409), gone.body
        if gone.status == 204:
            assert kept == 0, "a PUT to a deleted bucket was acknowledged"
            assert_error(s3.list_page(name), 404, "NoSuchBucket")
        else:
            assert len(s3.list(name).keys) == kept


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "?list-type=2"), ("GET", "?location"), ("DELETE", ""), ("GET", "/k"), ("PUT", "/k"), ("DELETE", "/k")],
)
def test_requests_to_a_missing_bucket_are_refused(s3: S3, method: str, path: str):
    """NoSuchBucket for every operation on the bucket and its objects."""
    assert_error(s3.request(method, f"/no-such-bucket-here{path}"), 404, "NoSuchBucket")


@pytest.mark.parametrize("path", ["", "/k"])
def test_head_on_a_missing_bucket_is_404(s3: S3, path: str):
    """For the bucket and for an object in it."""
    assert s3.request("HEAD", f"/no-such-bucket-here{path}").status == 404


def test_region_is_reported(s3: S3, bucket: str):
    """HEAD returns the region, also with 403. The location of us-east-1 is an empty element."""
    assert s3.request("HEAD", f"/{bucket}").get("x-amz-bucket-region") == "us-east-1"
    refused = s3.request("HEAD", f"/{bucket}", credential=Credential("AKNOBODY", "x"))
    assert refused.status == 403 and refused.get("x-amz-bucket-region") == "us-east-1"
    root = xml(assert_status(s3.request("GET", f"/{bucket}?location"), 200))
    assert root.tag == "LocationConstraint" and (root.text or "") == ""


def test_list_buckets_is_sorted_and_complete(s3: S3, bucket: str):
    """Buckets are sorted by name and have creation dates. The owner is included."""
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


def test_list_buckets_continues_by_token(s3: S3, bucket: str):
    """With a prefix or max-buckets, each bucket has its region."""
    names = [bucket, f"{bucket}-a", f"{bucket}-b"]
    for name in names[1:]:
        s3.create_bucket(name)
    found, token = [], ""
    for _ in names:
        root = xml(assert_status(s3.request("GET", f"/?prefix={bucket}&max-buckets=1{token}"), 200))
        (item,) = root.findall("Buckets/Bucket")
        assert item.findtext("BucketRegion") == "us-east-1" and root.findtext("Prefix") == bucket
        found.append(item.findtext("Name"))
        token = f"&continuation-token={root.findtext('ContinuationToken')}"
    assert found == names and root.find("ContinuationToken") is None
    root = xml(assert_status(s3.request("GET", f"/?prefix={bucket}-"), 200))
    assert [item.findtext("Name") for item in root.findall("Buckets/Bucket")] == names[1:]
