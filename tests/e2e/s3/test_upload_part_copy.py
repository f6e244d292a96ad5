"""UploadPartCopy and GetObjectAttributes: ranges, conditions, versions, checksums, permissions. Extended mode only."""

import zlib
from base64 import b64encode

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.client import BaseClient

from harness.accounts import create_account, statement
from harness.boto import PART_BYTES, Upload, headers, make_client, random_bytes, refused
from harness.expect import assert_error
from harness.s3 import S3, md5_etag, object_target, xml
from harness.server import Cairn

SOURCE = random_bytes("source of parts", PART_BYTES + 1_234_567)


@pytest.fixture
def boto(extended: S3) -> BaseClient:
    """boto3 at the extended store, with its defaults."""
    return make_client(extended)


@pytest.fixture
def source(boto: BaseClient, extended_bucket: str) -> dict:
    """An object of a little more than the smallest part."""
    boto.put_object(Bucket=extended_bucket, Key="sources/a +é", Body=SOURCE)
    return {"Bucket": extended_bucket, "Key": "sources/a +é"}


def test_parts_are_copied_whole_and_in_ranges(boto: BaseClient, extended_bucket: str, source: dict):
    """The object has the bytes of its parts, and the tag of a multipart upload."""
    upload = Upload(boto, extended_bucket, "made")
    first = boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=7-{PART_BYTES + 6}")
    second = boto.upload_part_copy(**upload.names, PartNumber=2, CopySource=source)
    own = b"and bytes of its own"
    third = boto.upload_part(**upload.names, PartNumber=3, Body=own)
    assert first["CopyPartResult"]["ETag"] == md5_etag(SOURCE[7 : PART_BYTES + 7])
    assert second["CopyPartResult"]["ETag"] == md5_etag(SOURCE)
    assert first["CopyPartResult"]["LastModified"] and "CopySourceVersionId" not in first
    parts = [
        {"PartNumber": number, "ETag": etag}
        for number, etag in enumerate([first["CopyPartResult"]["ETag"], second["CopyPartResult"]["ETag"], third["ETag"]], 1)
    ]
    made = boto.complete_multipart_upload(**upload.names, MultipartUpload={"Parts": parts})
    assert made["ETag"].endswith('-3"')
    assert boto.get_object(Bucket=extended_bucket, Key="made")["Body"].read() == SOURCE[7 : PART_BYTES + 7] + SOURCE + own


@pytest.mark.parametrize("text", ["", "bytes=0-", "bytes=-5", "0-5", "bytes=5-4", f"bytes=0-{len(SOURCE)}", "bytes=0-1,2-3"])
def test_invalid_ranges_are_refused(extended: S3, boto: BaseClient, extended_bucket: str, source: dict, text: str):
    """A part with other bytes than those that the client asked for would be worse than none."""
    upload = Upload(boto, extended_bucket, "made")
    target = object_target(extended_bucket, "made", f"partNumber=1&uploadId={upload.names['UploadId']}")
    copied = [("x-amz-copy-source", f"{extended_bucket}/sources/a%20%2B%C3%A9"), ("x-amz-copy-source-range", text)]
    assert_error(extended.request("PUT", target, copied), 400, "InvalidArgument")
    assert "Parts" not in boto.list_parts(**upload.names)


def test_wrong_requests_copy_nothing(extended: S3, boto: BaseClient, extended_bucket: str, source: dict):
    """Missing uploads and sources, conditions that do not hold, bodies, and a range for CopyObject."""
    upload = Upload(boto, extended_bucket, "made")
    with refused(404, "NoSuchUpload"):
        boto.upload_part_copy(**upload.names | {"UploadId": "0" * 16}, PartNumber=1, CopySource=source)
    with refused(404, "NoSuchKey"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=source | {"Key": "missing"})
    with refused(404, "NoSuchBucket"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=source | {"Bucket": "no-such-bucket"})
    with refused(412, "PreconditionFailed"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=source, CopySourceIfMatch='"x"')
    with refused(400, "InvalidArgument"):
        boto.upload_part_copy(**upload.names, PartNumber=10_001, CopySource=source)
    copied = [("x-amz-copy-source", f"{extended_bucket}/sources/a%20%2B%C3%A9")]
    target = object_target(extended_bucket, "made", f"partNumber=1&uploadId={upload.names['UploadId']}")
    assert_error(extended.request("PUT", target, copied, b"body"), 400, "InvalidRequest")
    assert_error(extended.request("PUT", target, [*copied, ("If-Match", "*")]), 501, "NotImplemented")
    ranged = [*copied, ("x-amz-copy-source-range", "bytes=0-1")]
    assert_error(extended.request("PUT", object_target(extended_bucket, "other"), ranged), 400, "InvalidRequest")
    assert "Parts" not in boto.list_parts(**upload.names)


def test_a_named_version_is_copied(extended: S3, boto: BaseClient, extended_bucket: str):
    """The response names the version that was copied."""
    boto.put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    old = boto.put_object(Bucket=extended_bucket, Key="k", Body=b"old")["VersionId"]
    boto.put_object(Bucket=extended_bucket, Key="k", Body=b"new")
    upload = Upload(boto, extended_bucket, "made")
    named = {"Bucket": extended_bucket, "Key": "k", "VersionId": old}
    answer = boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=named)
    assert answer["CopySourceVersionId"] == old and answer["CopyPartResult"]["ETag"] == md5_etag(b"old")
    marker = boto.delete_object(Bucket=extended_bucket, Key="k")["VersionId"]
    with refused(400, "InvalidRequest"):
        boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=named | {"VersionId": marker})


def test_a_part_gets_the_checksum_of_its_upload(boto: BaseClient, extended_bucket: str, source: dict):
    """The server computes it from the copied bytes, and the object's attributes show it for each part."""
    upload = Upload(boto, extended_bucket, "made", ChecksumAlgorithm="CRC32")
    copied = boto.upload_part_copy(**upload.names, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=1-{PART_BYTES}")
    crc = b64encode(zlib.crc32(SOURCE[1 : PART_BYTES + 1]).to_bytes(4, "big")).decode()
    assert copied["CopyPartResult"]["ChecksumCRC32"] == crc
    last = boto.upload_part(**upload.names, PartNumber=2, Body=b"end", ChecksumAlgorithm="CRC32")
    parts = [
        {"PartNumber": 1, "ETag": copied["CopyPartResult"]["ETag"], "ChecksumCRC32": crc},
        {"PartNumber": 2, "ETag": last["ETag"], "ChecksumCRC32": last["ChecksumCRC32"]},
    ]
    made = boto.complete_multipart_upload(**upload.names, MultipartUpload={"Parts": parts})
    names = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    found = boto.get_object_attributes(Bucket=extended_bucket, Key="made", ObjectAttributes=names)
    assert (found["ETag"], found["StorageClass"], found["ObjectSize"]) == (made["ETag"].strip('"'), "STANDARD", PART_BYTES + 3)
    assert found["Checksum"] == {"ChecksumCRC32": made["ChecksumCRC32"].removesuffix("-2"), "ChecksumType": "COMPOSITE"}
    assert found["ObjectParts"]["TotalPartsCount"] == 2 and not found["ObjectParts"]["IsTruncated"]
    assert [(part["PartNumber"], part["Size"], part["ChecksumCRC32"]) for part in found["ObjectParts"]["Parts"]] == [
        (1, PART_BYTES, crc), (2, 3, last["ChecksumCRC32"]),
    ]
    page = boto.get_object_attributes(Bucket=extended_bucket, Key="made", ObjectAttributes=["ObjectParts"], MaxParts=1)
    assert page["ObjectParts"]["IsTruncated"] and page["ObjectParts"]["NextPartNumberMarker"] == 1
    none = boto.get_object_attributes(Bucket=extended_bucket, Key="made", ObjectAttributes=["ObjectParts"], MaxParts=0)
    assert (none["ObjectParts"]["IsTruncated"], none["ObjectParts"].get("Parts")) == (False, None)
    rest = boto.get_object_attributes(
        Bucket=extended_bucket, Key="made", ObjectAttributes=["ObjectParts"], PartNumberMarker=1
    )
    assert [part["PartNumber"] for part in rest["ObjectParts"]["Parts"]] == [2] and "ETag" not in rest


def test_attributes_of_an_object_in_one_piece(extended: S3, boto: BaseClient, extended_bucket: str):
    """It has no parts. A version, a delete marker, and a request without attributes."""
    boto.put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    version = boto.put_object(Bucket=extended_bucket, Key="k", Body=b"12345")["VersionId"]
    names = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]
    found = boto.get_object_attributes(Bucket=extended_bucket, Key="k", ObjectAttributes=names)
    assert (found["ETag"], found["ObjectSize"], found["VersionId"]) == (md5_etag(b"12345").strip('"'), 5, version)
    assert found["Checksum"]["ChecksumType"] == "FULL_OBJECT" and "ObjectParts" not in found
    assert found["LastModified"] == boto.head_object(Bucket=extended_bucket, Key="k")["LastModified"]
    marker = boto.delete_object(Bucket=extended_bucket, Key="k")["VersionId"]
    with refused(404, "NoSuchKey") as answer:
        boto.get_object_attributes(Bucket=extended_bucket, Key="k", ObjectAttributes=["ETag"])
    assert headers(answer)["x-amz-delete-marker"] == "true" and headers(answer)["x-amz-version-id"] == marker
    old = boto.get_object_attributes(Bucket=extended_bucket, Key="k", VersionId=version, ObjectAttributes=["ObjectSize"])
    assert old["ObjectSize"] == 5 and "ETag" not in old
    target = object_target(extended_bucket, "k", f"attributes&versionId={version}")
    for wanted in ([], [("x-amz-object-attributes", "")], [("x-amz-object-attributes", "ETag,Owner")]):
        assert_error(extended.request("GET", target, wanted), 400, "InvalidArgument")
    answer = extended.request("GET", target, [("x-amz-object-attributes", "ETag")])
    assert xml(answer).tag == "GetObjectAttributesResponse"


def test_copying_a_part_needs_both_permissions(extended_store: Cairn, extended: S3, boto: BaseClient, extended_bucket: str, source: dict):
    """The right to write the object, and the right to read the source."""
    upload = Upload(boto, extended_bucket, "made")
    target = object_target(extended_bucket, "made", f"partNumber=1&uploadId={upload.names['UploadId']}")
    copied = [("x-amz-copy-source", f"{extended_bucket}/sources/a%20%2B%C3%A9"), ("x-amz-copy-source-range", "bytes=0-9")]
    put = statement("allow", "PutObject", f"bucket:{extended_bucket}/made")
    get = statement("allow", "GetObject", f"bucket:{extended_bucket}/sources/*")
    for statements, status in (((put,), 403), ((get,), 403), ((put, get), 200)):
        account = create_account(extended_store, *statements)
        assert account.s3.request("PUT", target, copied).status == status


def test_boto3_copies_in_parts_by_itself(boto: BaseClient, extended_bucket: str, source: dict):
    """`client.copy` above its threshold, with its default settings otherwise."""
    config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)
    boto.copy(source, extended_bucket, "copied", Config=config)
    found = boto.get_object(Bucket=extended_bucket, Key="copied")
    assert found["Body"].read() == SOURCE and found["ETag"].endswith('-2"')
