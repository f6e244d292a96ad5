"""Attacks CopyObject: sources of every kind, what is copied with the bytes, conditions, and what must be refused."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient

from harness.boto import PART_BYTES, headers, random_bytes, refused, upload_in_parts
from harness.expect import assert_error
from harness.s3 import S3, md5_etag, object_target
from harness.sigv4 import uri_encode

BODY = random_bytes("copied", 300_000)
TOLD = {
    "Metadata": {"color": "green"}, "ContentType": "text/css", "CacheControl": "no-store", "ContentDisposition": "inline",
    "ContentEncoding": "br", "ContentLanguage": "de",
}
OTHER_TAG = md5_etag(b"other")


@pytest.fixture
def source(boto: BaseClient, bucket: str) -> dict:
    """An object with all that can be told of it, as a copy source."""
    boto.put_object(Bucket=bucket, Key="source", Body=BODY, **TOLD)
    return {"Bucket": bucket, "Key": "source"}


def content(boto: BaseClient, bucket: str, key: str) -> bytes:
    """The whole object."""
    return boto.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.parametrize("size", [0, 1, 65_536, 300_001, 9_000_000])
def test_bytes_of_every_size(boto: BaseClient, bucket: str, size: int):
    """Byte for byte, with the entity tag of these bytes."""
    body = random_bytes(size, size)
    boto.put_object(Bucket=bucket, Key="source", Body=body)
    result = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")["CopyObjectResult"]
    assert result["ETag"] == md5_etag(body) and result["LastModified"]
    assert content(boto, bucket, "copy") == body


def test_everything_is_copied_with_it(boto: BaseClient, source: dict):
    """Within a bucket and to another; the copy has its own date."""
    bucket = source["Bucket"]
    boto.create_bucket(Bucket=f"{bucket}-other")
    for target in (bucket, f"{bucket}-other"):
        result = boto.copy_object(Bucket=target, Key="dir/copy", CopySource=source)["CopyObjectResult"]
        found = boto.get_object(Bucket=target, Key="dir/copy")
        assert found["Body"].read() == BODY and found["ETag"] == result["ETag"] == md5_etag(BODY)
        assert {name: found[name] for name in TOLD} == TOLD
        assert found["LastModified"] == result["LastModified"].replace(microsecond=0)


def test_replace_takes_what_the_request_says(boto: BaseClient, source: dict):
    """And nothing of the source but its bytes; under COPY the request's own headers are ignored."""
    bucket = source["Bucket"]
    new = {"Metadata": {"shape": "round"}, "ContentType": "text/html"}
    boto.copy_object(Bucket=bucket, Key="new", CopySource=source, MetadataDirective="REPLACE", **new)
    found = boto.get_object(Bucket=bucket, Key="new")
    assert found["Body"].read() == BODY and (found["Metadata"], found["ContentType"]) == (new["Metadata"], "text/html")
    assert not {"CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"} & set(found)
    boto.copy_object(Bucket=bucket, Key="same", CopySource=source, MetadataDirective="COPY", **new)
    found = boto.head_object(Bucket=bucket, Key="same")
    assert (found["Metadata"], found["ContentType"]) == (TOLD["Metadata"], TOLD["ContentType"])


def test_onto_itself(boto: BaseClient, source: dict):
    """Only with something to change; then it is the way to change metadata."""
    with refused(400, "InvalidRequest"):
        boto.copy_object(**source, CopySource=source)
    boto.copy_object(**source, CopySource=source, MetadataDirective="REPLACE", Metadata={"a": "b"})
    found = boto.get_object(**source)
    assert found["Body"].read() == BODY and found["Metadata"] == {"a": "b"}


def test_a_copy_lives_by_itself(boto: BaseClient, source: dict):
    """Writing over the source, or deleting it, leaves the copy as it was, and the other way round."""
    bucket = source["Bucket"]
    for key in ("one", "two"):
        boto.copy_object(Bucket=bucket, Key=key, CopySource=source)
    boto.delete_object(Bucket=bucket, Key="two")
    assert content(boto, bucket, "source") == BODY
    boto.put_object(**source, Body=b"over it")
    assert content(boto, bucket, "one") == BODY
    boto.delete_object(**source)
    assert content(boto, bucket, "one") == BODY


def test_an_object_of_several_parts(boto: BaseClient, bucket: str):
    """The copy is one whole: its tag is the MD5 of its bytes."""
    bodies = [random_bytes("a", PART_BYTES), random_bytes("b", 5000)]
    upload_in_parts(boto, bucket, "source", bodies, Metadata={"a": "b"})
    result = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")["CopyObjectResult"]
    found = boto.get_object(Bucket=bucket, Key="copy")
    assert found["Body"].read() == b"".join(bodies) and found["Metadata"] == {"a": "b"}
    assert found["ETag"] == result["ETag"] == md5_etag(b"".join(bodies))


def test_a_version_as_source(boto: BaseClient, bucket: str):
    """An old version becomes the current one; the answer names both."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = boto.put_object(Bucket=bucket, Key="k", Body=b"old")["VersionId"]
    new = boto.put_object(Bucket=bucket, Key="k", Body=b"new")["VersionId"]
    restored = boto.copy_object(Bucket=bucket, Key="k", CopySource={"Bucket": bucket, "Key": "k", "VersionId": old})
    assert restored["CopySourceVersionId"] == old and restored["VersionId"] not in (old, new)
    assert content(boto, bucket, "k") == b"old"
    current = boto.copy_object(Bucket=bucket, Key="other", CopySource=f"{bucket}/k")
    assert current["CopySourceVersionId"] == restored["VersionId"]
    boto.delete_object(Bucket=bucket, Key="k", VersionId=new)
    with refused(404, "NoSuchVersion"):
        boto.copy_object(Bucket=bucket, Key="x", CopySource={"Bucket": bucket, "Key": "k", "VersionId": new})


def test_a_delete_marker_is_no_source(boto: BaseClient, bucket: str):
    """As the current version 404, by its id 400; nothing is written."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    boto.put_object(Bucket=bucket, Key="k", Body=b"hidden")
    marker = boto.delete_object(Bucket=bucket, Key="k")["VersionId"]
    with refused(404, "NoSuchKey"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")
    with refused(400, "InvalidRequest"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k", "VersionId": marker})
    assert "Contents" not in boto.list_objects_v2(Bucket=bucket)


def test_sources_that_are_not_there(boto: BaseClient, source: dict):
    """404 by name, and no object comes of it."""
    bucket = source["Bucket"]
    with refused(404, "NoSuchKey"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/none")
    with refused(404, "NoSuchBucket"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}-none/source")
    with refused(404, "NoSuchBucket"):
        boto.copy_object(Bucket=f"{bucket}-none", Key="copy", CopySource=source)
    with refused(404, "NoSuchKey"):
        content(boto, bucket, "copy")


def test_conditions_on_the_source(boto: BaseClient, source: dict):
    """The four of them; a tag that matches makes up for a date, as RFC 7232 has it."""
    bucket, tag = source["Bucket"], md5_etag(BODY)
    past, future = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=1)
    boto.put_object(Bucket=bucket, Key="copy", Body=b"before")
    wrong = [
        {"CopySourceIfMatch": OTHER_TAG}, {"CopySourceIfNoneMatch": tag}, {"CopySourceIfUnmodifiedSince": past},
        {"CopySourceIfNoneMatch": tag, "CopySourceIfModifiedSince": past},
    ]
    for conditions in wrong:
        with refused(412, "PreconditionFailed"):
            boto.copy_object(Bucket=bucket, Key="copy", CopySource=source, **conditions)
    assert content(boto, bucket, "copy") == b"before"
    right = [
        {"CopySourceIfMatch": tag}, {"CopySourceIfNoneMatch": OTHER_TAG}, {"CopySourceIfUnmodifiedSince": future},
        {"CopySourceIfModifiedSince": past}, {"CopySourceIfMatch": tag, "CopySourceIfUnmodifiedSince": past},
    ]
    for conditions in right:
        boto.put_object(Bucket=bucket, Key="copy", Body=b"before")
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=source, **conditions)
        assert content(boto, bucket, "copy") == BODY


@pytest.mark.parametrize("key", ["a b", "plus+and&more=", "percent%20", "ünï/日本", "a//b", "q?versionId=x", "~(paren)!'*"])
def test_names_that_are_easy_to_get_wrong(s3: S3, bucket: str, key: str):
    """The source is decoded once; the slash in front may be missing."""
    s3.put(bucket, key, key.encode())
    for slash in ("/", ""):
        header = [("x-amz-copy-source", slash + uri_encode(f"{bucket}/{key}", keep_slash=True))]
        assert s3.request("PUT", object_target(bucket, "copy"), header).status == 200
        assert s3.get(bucket, "copy").body == key.encode()
        s3.delete(bucket, "copy")


@pytest.mark.parametrize("value", ["", "/", "bucket", "/bucket/", "%zz/x", "bucket/%ff"])
def test_sources_that_are_none(s3: S3, bucket: str, value: str):
    """400 or 404, and no empty object is written instead."""
    response = s3.request("PUT", object_target(bucket, "copy"), [("x-amz-copy-source", value)])
    assert response.status in (400, 404), (response.status, response.body)
    assert s3.get(bucket, "copy").status == 404


def test_what_a_copy_does_not_take(s3: S3, source: dict):
    """A body, a directive that does not exist, tags, another class, and other methods than PUT."""
    bucket = source["Bucket"]
    header = ("x-amz-copy-source", f"/{bucket}/source")
    target = object_target(bucket, "copy")
    assert_error(s3.request("PUT", target, [header], b"a body"), 400, "InvalidRequest", "InvalidArgument", "MalformedXML")
    assert_error(s3.request("PUT", target, [header, ("x-amz-metadata-directive", "MERGE")]), 400, "InvalidArgument")
    assert_error(s3.request("PUT", target, [header, ("x-amz-storage-class", "GLACIER")]), 501, "NotImplemented")
    assert_error(s3.request("PUT", target, [header, ("x-amz-tagging", "a=b")]), 501, "NotImplemented")
    for method in ("GET", "HEAD", "DELETE"):
        assert s3.request(method, object_target(bucket, "source"), [header]).status in (400, 501)
    assert s3.get(bucket, "copy").status == 404 and s3.get(bucket, "source").status == 200


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_checksums_of_copies(boto: BaseClient, bucket: str, algorithm: str):
    """The source's goes along; one that is asked for is computed on the way."""
    name = f"Checksum{algorithm}"
    value = boto.put_object(Bucket=bucket, Key="source", Body=BODY, ChecksumAlgorithm=algorithm)[name]
    boto.put_object(Bucket=bucket, Key="plain", Body=BODY, ChecksumAlgorithm="SHA1" if algorithm != "SHA1" else "CRC32")
    for key, options in (("source", {}), ("plain", {"ChecksumAlgorithm": algorithm})):
        answer = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/{key}", **options)
        assert answer["CopyObjectResult"][name] == value
        assert boto.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")[name] == value


def test_a_copy_that_writes_over_an_object(boto: BaseClient, source: dict):
    """Without versions the old one is gone; with them it is a version more."""
    bucket = source["Bucket"]
    boto.put_object(Bucket=bucket, Key="copy", Body=b"old")
    answer = boto.copy_object(Bucket=bucket, Key="copy", CopySource=source)
    assert "x-amz-version-id" not in headers(answer) and content(boto, bucket, "copy") == BODY
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = boto.copy_object(Bucket=bucket, Key="copy", CopySource=source)["VersionId"]
    found = boto.list_object_versions(Bucket=bucket, Prefix="copy")["Versions"]
    assert [item["VersionId"] for item in found] == [version, "null"]
