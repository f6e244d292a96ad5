"""CopyObject: sources, copied metadata, conditions and refused inputs."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient

from harness.boto import PART_BYTES, headers, random_bytes, refused, upload_in_parts
from harness.expect import assert_error, choice
from harness.s3 import S3, md5_etag, object_target
from harness.sigv4 import uri_encode

BODY = random_bytes("copied", 300_000)
METADATA = {
    "Metadata": {"color": "green"}, "ContentType": "text/css", "CacheControl": "no-store", "ContentDisposition": "inline",
    "ContentEncoding": "br", "ContentLanguage": "de",
}
OTHER_TAG = md5_etag(b"other")


@pytest.fixture
def source(boto: BaseClient, bucket: str) -> dict:
    """A copy source: an object with user metadata and every standard header."""
    boto.put_object(Bucket=bucket, Key="source", Body=BODY, **METADATA)
    return {"Bucket": bucket, "Key": "source"}


def content(boto: BaseClient, bucket: str, key: str) -> bytes:
    """Returns the whole body of an object."""
    return boto.get_object(Bucket=bucket, Key=key)["Body"].read()


@pytest.mark.parametrize("size", [0, 1, 65_536, 300_001, 9_000_000])
def test_copy_has_the_same_bytes_and_etag(boto: BaseClient, bucket: str, size: int):
    """Covers empty, inline and volume objects."""
    body = random_bytes(size, size)
    boto.put_object(Bucket=bucket, Key="source", Body=body)
    result = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")["CopyObjectResult"]
    assert result["ETag"] == md5_etag(body) and result["LastModified"]
    assert content(boto, bucket, "copy") == body


def test_copy_keeps_metadata_and_headers(boto: BaseClient, source: dict):
    """Within a bucket and to another one. Last-Modified is that of the copy."""
    bucket = source["Bucket"]
    boto.create_bucket(Bucket=f"{bucket}-other")
    for target in (bucket, f"{bucket}-other"):
        result = boto.copy_object(Bucket=target, Key="dir/copy", CopySource=source)["CopyObjectResult"]
        found = boto.get_object(Bucket=target, Key="dir/copy")
        assert found["Body"].read() == BODY and found["ETag"] == result["ETag"] == md5_etag(BODY)
        assert {name: found[name] for name in METADATA} == METADATA
        assert found["LastModified"] == result["LastModified"].replace(microsecond=0)


def test_metadata_directive_selects_the_metadata(boto: BaseClient, source: dict):
    """REPLACE takes all metadata and headers from the request. COPY ignores those of the request."""
    bucket = source["Bucket"]
    new = {"Metadata": {"shape": "round"}, "ContentType": "text/html"}
    boto.copy_object(Bucket=bucket, Key="new", CopySource=source, MetadataDirective="REPLACE", **new)
    found = boto.get_object(Bucket=bucket, Key="new")
    assert found["Body"].read() == BODY and (found["Metadata"], found["ContentType"]) == (new["Metadata"], "text/html")
    assert not {"CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"} & set(found)
    boto.copy_object(Bucket=bucket, Key="same", CopySource=source, MetadataDirective="COPY", **new)
    found = boto.head_object(Bucket=bucket, Key="same")
    assert (found["Metadata"], found["ContentType"]) == (METADATA["Metadata"], METADATA["ContentType"])


def test_copy_onto_itself_must_change_metadata(boto: BaseClient, source: dict):
    """Without REPLACE it is refused. With REPLACE it changes the metadata and keeps the bytes."""
    for copied in (source, source | {"VersionId": "null"}):
        with refused(400, "InvalidRequest"):
            boto.copy_object(**source, CopySource=copied)
    boto.copy_object(**source, CopySource=source, MetadataDirective="REPLACE", Metadata={"a": "b"})
    found = boto.get_object(**source)
    assert found["Body"].read() == BODY and found["Metadata"] == {"a": "b"}


def test_copy_and_source_are_independent(boto: BaseClient, source: dict):
    """Overwriting or deleting the source does not change the copy. Deleting a copy does not change the source."""
    bucket = source["Bucket"]
    for key in ("one", "two"):
        boto.copy_object(Bucket=bucket, Key=key, CopySource=source)
    boto.delete_object(Bucket=bucket, Key="two")
    assert content(boto, bucket, "source") == BODY
    boto.put_object(**source, Body=b"over it")
    assert content(boto, bucket, "one") == BODY
    boto.delete_object(**source)
    assert content(boto, bucket, "one") == BODY


def test_copy_of_a_multipart_object_has_one_part(boto: BaseClient, bucket: str):
    """The ETag of the copy is the MD5 of its bytes. The composite checksum of the source is not copied."""
    bodies = [random_bytes("a", PART_BYTES), random_bytes("b", 5000)]
    upload_in_parts(boto, bucket, "source", bodies, Metadata={"a": "b"}, ChecksumAlgorithm="CRC32")
    result = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/source")["CopyObjectResult"]
    found = boto.get_object(Bucket=bucket, Key="copy")
    assert found["Body"].read() == b"".join(bodies) and found["Metadata"] == {"a": "b"}
    assert found["ETag"] == result["ETag"] == md5_etag(b"".join(bodies))
    head = boto.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")
    assert not {"ChecksumCRC32", "ChecksumType"} & set(head)
    assert "PartsCount" not in boto.head_object(Bucket=bucket, Key="copy", PartNumber=1)
    with refused(416):
        boto.head_object(Bucket=bucket, Key="copy", PartNumber=2)


def test_copy_restores_an_old_version(boto: BaseClient, bucket: str):
    """The response has the version IDs of source and copy. The current version cannot be copied onto itself."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = boto.put_object(Bucket=bucket, Key="k", Body=b"old")["VersionId"]
    new = boto.put_object(Bucket=bucket, Key="k", Body=b"new")["VersionId"]
    restored = boto.copy_object(Bucket=bucket, Key="k", CopySource={"Bucket": bucket, "Key": "k", "VersionId": old})
    assert restored["CopySourceVersionId"] == old and restored["VersionId"] not in (old, new)
    assert content(boto, bucket, "k") == b"old"
    with refused(400, "InvalidRequest"):
        boto.copy_object(Bucket=bucket, Key="k", CopySource={"Bucket": bucket, "Key": "k", "VersionId": restored["VersionId"]})
    current = boto.copy_object(Bucket=bucket, Key="other", CopySource=f"{bucket}/k")
    assert current["CopySourceVersionId"] == restored["VersionId"]
    boto.delete_object(Bucket=bucket, Key="k", VersionId=new)
    with refused(404, "NoSuchVersion"):
        boto.copy_object(Bucket=bucket, Key="x", CopySource={"Bucket": bucket, "Key": "k", "VersionId": new})


def test_delete_marker_as_source_is_refused(boto: BaseClient, bucket: str):
    """404 if the marker is the current version, 400 by its version ID. Nothing is written."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    boto.put_object(Bucket=bucket, Key="k", Body=b"hidden")
    marker = boto.delete_object(Bucket=bucket, Key="k")["VersionId"]
    with refused(404, "NoSuchKey"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")
    with refused(400, "InvalidRequest"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k", "VersionId": marker})
    assert "Contents" not in boto.list_objects_v2(Bucket=bucket)


def test_missing_sources_and_buckets_are_refused(boto: BaseClient, source: dict):
    """404 with the code of what is missing. No object is created."""
    bucket = source["Bucket"]
    with refused(404, "NoSuchKey"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/none")
    with refused(404, "NoSuchBucket"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}-none/source")
    with refused(404, "NoSuchBucket"):
        boto.copy_object(Bucket=f"{bucket}-none", Key="copy", CopySource=source)
    with refused(404, "NoSuchKey"):
        content(boto, bucket, "copy")


def test_copy_source_conditions_are_evaluated(boto: BaseClient, source: dict):
    """All four conditions. A matching If-Match overrides If-Unmodified-Since, as RFC 7232 section 6 specifies."""
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
def test_source_keys_are_percent_decoded_once(s3: S3, bucket: str, key: str):
    """Special characters in x-amz-copy-source. The leading slash is optional."""
    s3.put(bucket, key, key.encode())
    for slash in ("/", ""):
        header = [("x-amz-copy-source", slash + uri_encode(f"{bucket}/{key}", keep_slash=True))]
        assert s3.request("PUT", object_target(bucket, "copy"), header).status == 200
        assert s3.get(bucket, "copy").body == key.encode()
        s3.delete(bucket, "copy")


@pytest.mark.parametrize("value", ["", "/", "bucket", "/bucket/", "%zz/x", "bucket/%ff"])
def test_invalid_copy_sources_are_refused(s3: S3, bucket: str, value: str):
    """400. No empty object is written instead."""
    response = s3.request("PUT", object_target(bucket, "copy"), [("x-amz-copy-source", value)])
    assert response.status in choice(400, 404), (response.status, response.body)
    assert s3.get(bucket, "copy").status == 404


def test_unsupported_inputs_of_a_copy_are_refused(s3: S3, source: dict):
    """Covers a body, an unknown directive, another storage class, tags, and methods other than PUT."""
    bucket = source["Bucket"]
    header = ("x-amz-copy-source", f"/{bucket}/source")
    target = object_target(bucket, "copy")
    assert_error(s3.request("PUT", target, [header], b"a body"), 400, "InvalidRequest", "InvalidArgument", "MalformedXML")
    assert_error(s3.request("PUT", target, [header, ("x-amz-metadata-directive", "MERGE")]), 400, "InvalidArgument")
    assert_error(s3.request("PUT", target, [header, ("x-amz-storage-class", "GLACIER")]), 501, "NotImplemented")
    assert_error(s3.request("PUT", target, [header, ("x-amz-tagging", "a=b")]), 501, "NotImplemented")
    for method in ("GET", "HEAD", "DELETE"):
        assert s3.request(method, object_target(bucket, "source"), [header]).status in choice(400, 501)
    assert s3.get(bucket, "copy").status == 404 and s3.get(bucket, "source").status == 200


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])
def test_copy_keeps_or_computes_the_checksum(boto: BaseClient, bucket: str, algorithm: str):
    """The source's checksum is copied. A requested algorithm that the source lacks is computed during the copy."""
    name = f"Checksum{algorithm}"
    value = boto.put_object(Bucket=bucket, Key="source", Body=BODY, ChecksumAlgorithm=algorithm)[name]
    boto.put_object(Bucket=bucket, Key="plain", Body=BODY, ChecksumAlgorithm="SHA1" if algorithm != "SHA1" else "CRC32")
    for key, options in (("source", {}), ("plain", {"ChecksumAlgorithm": algorithm})):
        answer = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/{key}", **options)
        assert (answer["CopyObjectResult"][name], answer["CopyObjectResult"]["ChecksumType"]) == (value, "FULL_OBJECT")
        assert boto.head_object(Bucket=bucket, Key="copy", ChecksumMode="ENABLED")[name] == value


def test_copy_with_unknown_checksum_algorithm_is_refused(s3: S3, source: dict):
    """501. Nothing is copied."""
    headers = [("x-amz-copy-source", f"/{source['Bucket']}/source"), ("x-amz-checksum-algorithm", "MD5")]
    assert_error(s3.request("PUT", object_target(source["Bucket"], "copy"), headers), 501, "NotImplemented")
    assert s3.get(source["Bucket"], "copy").status == 404


def test_conditional_copy_checks_the_destination(boto: BaseClient, source: dict):
    """If-Match and If-None-Match apply to the object that the copy overwrites."""
    bucket = source["Bucket"]
    with refused(404, "NoSuchKey"):
        boto.copy_object(Bucket=bucket, Key="copy", CopySource=source, IfMatch=OTHER_TAG)
    boto.copy_object(Bucket=bucket, Key="new", CopySource=source, IfNoneMatch="*")
    etag = boto.put_object(Bucket=bucket, Key="copy", Body=b"before")["ETag"]
    for conditions in ({"IfMatch": OTHER_TAG}, {"IfNoneMatch": "*"}):
        with refused(412, "PreconditionFailed"):
            boto.copy_object(Bucket=bucket, Key="copy", CopySource=source, **conditions)
    assert content(boto, bucket, "copy") == b"before"
    boto.copy_object(Bucket=bucket, Key="copy", CopySource=source, IfMatch=etag)
    assert content(boto, bucket, "copy") == BODY


def test_copy_overwrites_or_adds_a_version(boto: BaseClient, source: dict):
    """Without versioning the old object is replaced. With versioning the copy is a new version."""
    bucket = source["Bucket"]
    boto.put_object(Bucket=bucket, Key="copy", Body=b"old")
    answer = boto.copy_object(Bucket=bucket, Key="copy", CopySource=source)
    assert "x-amz-version-id" not in headers(answer) and content(boto, bucket, "copy") == BODY
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = boto.copy_object(Bucket=bucket, Key="copy", CopySource=source)["VersionId"]
    found = boto.list_object_versions(Bucket=bucket, Prefix="copy")["Versions"]
    assert [item["VersionId"] for item in found] == [version, "null"]
