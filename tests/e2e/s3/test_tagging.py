"""Tags of objects and buckets, with raw requests and boto3's defaults. Extended mode only."""

import pytest

from harness.boto import headers, make_client, refused, random_bytes
from harness.expect import assert_error
from harness.s3 import S3
from harness.server import Cairn

TAGS = [{"Key": "team", "Value": "a b/ä"}, {"Key": "kept", "Value": ""}]
HEADER = "team=a+b%2F%C3%A4&kept"


def document(*tags: tuple[str, str]) -> bytes:
    """Returns the document that sets tags."""
    inner = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in tags)
    return f"<Tagging><TagSet>{inner}</TagSet></Tagging>".encode()


def test_tags_of_objects(extended: S3, extended_bucket: str):
    """With the object, alone, counted, removed."""
    boto, names = make_client(extended), {"Bucket": extended_bucket, "Key": "k"}
    boto.put_object(**names, Body=b"x", Tagging=HEADER)
    assert boto.get_object_tagging(**names)["TagSet"] == TAGS
    head = boto.head_object(**names)
    assert headers(head)["x-amz-tagging-count"] == "2" and "x-amz-tagging" not in headers(head)
    boto.put_object_tagging(**names, Tagging={"TagSet": TAGS[:1]})
    assert boto.get_object_tagging(**names)["TagSet"] == TAGS[:1]
    assert boto.get_object(**names)["Body"].read() == b"x"
    boto.delete_object_tagging(**names)
    assert boto.get_object_tagging(**names)["TagSet"] == []
    assert "x-amz-tagging-count" not in headers(boto.head_object(**names))
    with refused(404, "NoSuchKey"):
        boto.get_object_tagging(Bucket=extended_bucket, Key="none")


def test_each_version_has_its_tags(extended: S3, extended_bucket: str, extended_store: Cairn):
    """Also after a restart. A delete marker has none."""
    boto, names = make_client(extended), {"Bucket": extended_bucket, "Key": "k"}
    boto.put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    # One payload is stored in the metadata, the other in a volume.
    old = boto.put_object(**names, Body=b"x", Tagging="a=1")["VersionId"]
    new = boto.put_object(**names, Body=random_bytes(1, 300_000), Tagging="a=2")["VersionId"]
    set_old = boto.put_object_tagging(**names, VersionId=old, Tagging={"TagSet": TAGS})
    assert set_old["VersionId"] == old
    extended_store.kill()
    extended_store.start()
    assert boto.get_object_tagging(**names, VersionId=old)["TagSet"] == TAGS
    current = boto.get_object_tagging(**names)
    assert (current["VersionId"], current["TagSet"]) == (new, [{"Key": "a", "Value": "2"}])
    assert boto.get_object(**names)["Body"].read() == random_bytes(1, 300_000)
    marker = boto.delete_object(**names)["VersionId"]
    with refused(405, "MethodNotAllowed"):
        boto.put_object_tagging(**names, Tagging={"TagSet": TAGS})
    with refused(405, "MethodNotAllowed"):
        boto.get_object_tagging(**names, VersionId=marker)


def test_copies_and_uploads_have_tags(extended: S3, extended_bucket: str):
    """A copy keeps those of its source, unless the request replaces them."""
    boto = make_client(extended)
    boto.put_object(Bucket=extended_bucket, Key="source", Body=b"x", Tagging=HEADER)
    source = {"Bucket": extended_bucket, "Key": "source"}

    def copied(**options: str) -> list[dict]:
        boto.copy_object(Bucket=extended_bucket, Key="copy", CopySource=source, **options)
        return boto.get_object_tagging(Bucket=extended_bucket, Key="copy")["TagSet"]

    assert copied() == TAGS
    assert copied(MetadataDirective="REPLACE") == TAGS
    assert copied(TaggingDirective="REPLACE", Tagging="b=1") == [{"Key": "b", "Value": "1"}]
    assert copied(TaggingDirective="REPLACE") == []
    with refused(400, "InvalidArgument"):
        copied(TaggingDirective="MOVE")
    upload = boto.create_multipart_upload(Bucket=extended_bucket, Key="parts", Tagging=HEADER)["UploadId"]
    part = {"Bucket": extended_bucket, "Key": "parts", "UploadId": upload}
    etag = boto.upload_part(**part, PartNumber=1, Body=b"x")["ETag"]
    boto.complete_multipart_upload(**part, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})
    assert boto.get_object_tagging(Bucket=extended_bucket, Key="parts")["TagSet"] == TAGS


def test_tags_of_buckets(extended: S3, extended_bucket: str):
    """Terraform reads and sets them."""
    boto = make_client(extended)
    with refused(404, "NoSuchTagSet"):
        boto.get_bucket_tagging(Bucket=extended_bucket)
    many = [{"Key": f"key-{number}", "Value": "v"} for number in range(50)]
    boto.put_bucket_tagging(Bucket=extended_bucket, Tagging={"TagSet": many})
    assert boto.get_bucket_tagging(Bucket=extended_bucket)["TagSet"] == many
    with refused(400, "BadRequest"):
        boto.put_bucket_tagging(Bucket=extended_bucket, Tagging={"TagSet": [*many, {"Key": "more", "Value": "v"}]})
    boto.delete_bucket_tagging(Bucket=extended_bucket)
    with refused(404, "NoSuchTagSet"):
        boto.get_bucket_tagging(Bucket=extended_bucket)


def test_buckets_are_made_with_tags(extended: S3):
    """Newer versions of Terraform and of the CLI name them when they create the bucket."""
    boto = make_client(extended)
    tags = [{"Key": "owner", "Value": "me"}]
    with refused(400, "InvalidTag"):
        boto.create_bucket(Bucket="with-tags", CreateBucketConfiguration={"Tags": [*tags, *tags]})
    boto.create_bucket(Bucket="with-tags", CreateBucketConfiguration={"Tags": tags})
    assert boto.get_bucket_tagging(Bucket="with-tags")["TagSet"] == tags


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (document(("a", "1"), ("a", "2")), "InvalidTag"), (document(("", "1")), "InvalidTag"), (document(("aws:x", "1")), "InvalidTag"),
        (document(("k" * 129, "")), "InvalidTag"), (document(("k", "v" * 257)), "InvalidTag"), (document(("k", "a;b")), "InvalidTag"),
        (document(*((f"k{number}", "") for number in range(11))), "BadRequest"), (b"", "MalformedXML"),
        (b"<Tags><TagSet/></Tags>", "MalformedXML"),
    ],
)
def test_wrong_tags_change_nothing(extended: S3, extended_bucket: str, body: bytes, code: str):
    """The tags before stay."""
    extended.put(extended_bucket, "k", b"x", [("x-amz-tagging", "a=1")])
    assert_error(extended.request("PUT", f"/{extended_bucket}/k?tagging", body=body), 400, code)
    assert extended.head(extended_bucket, "k").get("x-amz-tagging-count") == "1"


@pytest.mark.parametrize("header", ["a=1&a=2", "a=%zz", "=1", "&".join(f"k{number}" for number in range(11)), "a=" + "v" * 257])
def test_wrong_headers_store_nothing(extended: S3, extended_bucket: str, header: str):
    """The object must not be there without its tags."""
    answer = extended.request("PUT", f"/{extended_bucket}/k", [("x-amz-tagging", header)], body=b"x")
    assert answer.status == 400, answer
    assert extended.head(extended_bucket, "k").status == 404


def test_locked_versions_get_tags(extended: S3):
    """Tags are not protected by a lock, as on AWS."""
    boto = make_client(extended)
    boto.create_bucket(Bucket="locked-tags", ObjectLockEnabledForBucket=True)
    names = {"Bucket": "locked-tags", "Key": "k"}
    boto.put_object(**names, Body=b"x", ObjectLockLegalHoldStatus="ON")
    boto.put_object_tagging(**names, Tagging={"TagSet": TAGS})
    assert boto.get_object_tagging(**names)["TagSet"] == TAGS
    assert boto.get_object_legal_hold(**names)["LegalHold"]["Status"] == "ON"


def test_strict_mode_shows_tags_that_exist(extended_store: Cairn, extended: S3, extended_bucket: str):
    """The switch changes what requests may ask for, not what is stored."""
    extended.put(extended_bucket, "k", b"x", [("x-amz-tagging", "a=1")])
    extended_store.stop()
    extended_store.extra["SERVICE_S3_COMPATIBILITY"] = "strict"
    try:
        extended_store.start()
        assert extended.head(extended_bucket, "k").get("x-amz-tagging-count") == "1"
        assert_error(extended.request("GET", f"/{extended_bucket}/k?tagging"), 501, "NotImplemented")
    finally:
        extended_store.stop()
        extended_store.extra["SERVICE_S3_COMPATIBILITY"] = "extended"
        extended_store.start()
