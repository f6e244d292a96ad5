"""Answers of AWS that clients rely on, and that other servers, or this one, gave differently.

Each test has the smallest input of public reports. Those with the fixture `s3` hold in both modes.
"""

import base64
import datetime as dt
import zlib
from urllib.parse import urlencode

import boto3
import pytest
import requests
from botocore.client import BaseClient, Config

from harness.boto import Upload, headers, make_client, refused, upload_in_parts
from harness.expect import assert_error
from harness.s3 import S3, object_target, xml

PART_BYTES = 5 << 20
TOMORROW = (dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
ENABLED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


@pytest.fixture(params=["strict", "extended"])
def either(request: pytest.FixtureRequest) -> tuple[S3, str]:
    """Returns a client and a bucket, in each mode."""
    names = {"strict": ("s3", "bucket"), "extended": ("extended", "extended_bucket")}[request.param]
    return tuple(request.getfixturevalue(name) for name in names)


def crc32(body: bytes) -> str:
    """Returns a checksum as text."""
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


# Copies


def test_plus_in_a_copy_source_is_a_space(either: tuple[S3, str]):
    """Go's QueryEscape and the s5cmd client write a space so. A plus is %2B."""
    s3, bucket = either
    s3.put(bucket, "dir/my file.txt", b"space")
    s3.put(bucket, "dir/my+file.txt", b"plus")
    for source, content in (("dir/my+file.txt", b"space"), ("dir/my%2Bfile.txt", b"plus"), ("dir%2Fmy%20file.txt", b"space")):
        copied = s3.request("PUT", object_target(bucket, "copy"), [("x-amz-copy-source", f"/{bucket}/{source}")])
        assert copied.status == 200 and s3.get(bucket, "copy").body == content, source


def test_plus_in_the_source_of_a_part_is_a_space(extended: S3, extended_bucket: str):
    """UploadPartCopy reads the same header."""
    extended.put(extended_bucket, "my file", b"abc")
    upload = Upload(make_client(extended), extended_bucket, "made")
    target = object_target(extended_bucket, "made", urlencode({"uploadId": upload.names["UploadId"], "partNumber": 1}))
    assert extended.request("PUT", target, [("x-amz-copy-source", f"{extended_bucket}/my+file")]).status == 200


def test_copy_onto_itself_with_a_storage_class_changes_the_checksum(either: tuple[S3, str]):
    """AWS's own tools add checksums to old objects so."""
    s3, bucket = either
    s3.put(bucket, "k", b"abc")
    same = [("x-amz-copy-source", f"{bucket}/k")]
    assert_error(s3.request("PUT", object_target(bucket, "k"), same), 400, "InvalidRequest")
    with_class = [*same, ("x-amz-storage-class", "STANDARD"), ("x-amz-checksum-algorithm", "CRC32")]
    copied = s3.request("PUT", object_target(bucket, "k"), with_class)
    assert copied.status == 200 and xml(copied).findtext("ChecksumCRC32") == crc32(b"abc")
    assert s3.request("PUT", object_target(bucket, "k"), with_class[:2]).status == 200


# Times and conditions


def test_times_have_whole_seconds_and_equal_last_modified(either: tuple[S3, str]):
    """`aws s3 sync --exact-timestamps` copied everything each time, because lists had milliseconds and HEAD had not."""
    s3, bucket = either
    s3.request("PUT", f"/{bucket}?versioning", body=ENABLED)
    s3.put(bucket, "k", b"x")
    copied = xml(s3.request("PUT", object_target(bucket, "copy"), [("x-amz-copy-source", f"{bucket}/k")])).findtext("LastModified")
    boto = make_client(s3)
    upload = Upload(boto, bucket, "up")
    upload.send(1, b"x")
    seen = [
        copied, *(found.text for target in (f"/{bucket}?list-type=2", f"/{bucket}?versions") for found in xml(s3.request("GET", target)).iter("LastModified")),
        *(found.text for found in xml(s3.request("GET", f"/{bucket}?uploads")).iter("Initiated")),
        *(found.text for found in xml(s3.request("GET", object_target(bucket, "up", f"uploadId={upload.names['UploadId']}"))).iter("LastModified")),
        *(found.text for found in xml(s3.request("GET", "/")).iter("CreationDate")),
    ]
    assert len(seen) >= 8 and all(time.endswith(".000Z") for time in seen), seen
    listed = boto.list_objects_v2(Bucket=bucket)["Contents"]
    assert {found["Key"]: found["LastModified"] for found in listed} == {
        key: boto.head_object(Bucket=bucket, Key=key)["LastModified"] for key in ("k", "copy")
    }


def test_modified_since_tomorrow_is_ignored(either: tuple[S3, str]):
    """Clients with a clock that is ahead were told that nothing had changed."""
    s3, bucket = either
    s3.put(bucket, "k", b"x")
    for method in ("GET", "HEAD"):
        assert s3.request(method, object_target(bucket, "k"), [("If-Modified-Since", TOMORROW)]).status == 200
    source = [("x-amz-copy-source", f"{bucket}/k"), ("x-amz-copy-source-if-modified-since", TOMORROW)]
    assert s3.request("PUT", object_target(bucket, "copy"), source).status == 200


def test_failed_condition_is_named(either: tuple[S3, str]):
    """In the element `Condition` of every 412."""
    s3, bucket = either
    s3.put(bucket, "k", b"x")
    past = "Sun, 06 Nov 1994 08:49:37 GMT"
    target, source = object_target(bucket, "k"), ("x-amz-copy-source", f"{bucket}/k")
    for method, sent, name in (
        ("GET", [("If-Match", '"x"')], "If-Match"), ("GET", [("If-Unmodified-Since", past)], "If-Unmodified-Since"),
        ("PUT", [("If-None-Match", "*")], "If-None-Match"), ("PUT", [("If-Match", '"x"')], "If-Match"),
        ("DELETE", [("If-Match", '"x"')], "If-Match"), ("DELETE", [("x-amz-if-match-size", "9")], "x-amz-if-match-size"),
        ("PUT", [source, ("x-amz-copy-source-if-match", '"x"')], "x-amz-copy-source-If-Match"),
        ("PUT", [source, ("x-amz-copy-source-if-none-match", "*")], "x-amz-copy-source-If-None-Match"),
        ("PUT", [source, ("x-amz-copy-source-if-unmodified-since", past)], "x-amz-copy-source-If-Unmodified-Since"),
    ):
        root = assert_error(s3.request(method, target, sent), 412, "PreconditionFailed")
        assert root.findtext("Condition") == name, sent


# Error documents


def test_errors_about_parts_name_upload_part_and_tag(either: tuple[S3, str]):
    """As those of AWS."""
    s3, bucket = either
    upload = Upload(make_client(s3), bucket, "k")
    upload.send(1, b"x")
    target = object_target(bucket, "k", f"uploadId={upload.names['UploadId']}")

    def complete(*parts: tuple[int, str]) -> bytes:
        listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in parts)
        return f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()

    tag = "0" * 32
    root = assert_error(s3.request("POST", target, body=complete((1, tag))), 400, "InvalidPart")
    assert (root.findtext("UploadId"), root.findtext("PartNumber"), root.findtext("ETag")) == (upload.names["UploadId"], "1", tag)
    root = assert_error(s3.request("POST", target, body=complete((2, tag), (1, tag))), 400, "InvalidPartOrder")
    assert root.findtext("UploadId") == upload.names["UploadId"]
    root = assert_error(s3.request("PUT", object_target(bucket, "k", "partNumber=1"), body=b"x"), 400, "InvalidArgument")
    assert (root.findtext("ArgumentName"), root.findtext("ArgumentValue")) == ("partNumber", "partNumber")
    root = assert_error(s3.request("PUT", target, body=b"x"), 405, "MethodNotAllowed")
    assert (root.findtext("Method"), root.findtext("ResourceType")) == ("PUT", "UPLOAD")
    root = assert_error(s3.request("POST", object_target(bucket, "k")), 405, "MethodNotAllowed")
    assert (root.findtext("Method"), root.findtext("ResourceType")) == ("POST", "OBJECT")


def test_numbers_out_of_range_are_refused(extended: S3, extended_bucket: str):
    """2^31 and more; an empty number counts as absent."""
    upload = Upload(make_client(extended), extended_bucket, "k")
    upload.send(1, b"x")
    parts = f"/{extended_bucket}/k?uploadId={upload.names['UploadId']}"
    for target, name in (
        (parts, "part-number-marker"), (parts, "max-parts"), (f"/{extended_bucket}?list-type=2", "max-keys"),
        (f"/{extended_bucket}?uploads", "max-uploads"), (f"/{extended_bucket}?versions", "max-keys"),
    ):
        root = assert_error(extended.request("GET", f"{target}&{name}=2147483648"), 400, "InvalidArgument")
        assert (root.findtext("ArgumentName"), root.findtext("ArgumentValue")) == (name, "2147483648")
        assert extended.request("GET", f"{target}&{name}=").status == 200


def test_unknown_response_override_is_refused(extended: S3, extended_bucket: str):
    """A client that misspells one would believe that it works."""
    extended.put(extended_bucket, "k", b"x")
    root = assert_error(extended.get(extended_bucket, "k", query="response-unknown=x"), 400, "InvalidArgument")
    assert root.findtext("ArgumentName") == "response-unknown"
    assert extended.get(extended_bucket, "k", query="response-content-type=text/plain").get("content-type") == "text/plain"


# Buckets


def test_bucket_with_only_uploads_can_be_deleted(either: tuple[S3, str]):
    """`terraform destroy` failed after an interrupted upload, which no list of objects shows."""
    s3, bucket = either
    for key in ("a", "b"):
        Upload(make_client(s3), bucket, key).send(1, b"x" * 100_000)
    assert s3.request("DELETE", f"/{bucket}").status == 204
    assert_error(s3.request("GET", f"/{bucket}?uploads"), 404, "NoSuchBucket")
    s3.create_bucket(bucket)
    assert len(list(xml(s3.request("GET", f"/{bucket}?uploads")).iter("Upload"))) == 0


def test_location_is_returned(extended: S3):
    """Terraform compares it with its state."""
    boto = make_client(extended)
    boto.create_bucket(Bucket="located", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert boto.get_bucket_location(Bucket="located")["LocationConstraint"] == "eu-west-1"
    assert boto.head_bucket(Bucket="located")["BucketRegion"] == "eu-west-1"
    assert [found["Name"] for found in boto.list_buckets(BucketRegion="eu-west-1")["Buckets"]] == ["located"]
    with refused(400, "InvalidArgument"):
        boto.list_buckets(BucketRegion="eu-east-1")
    boto.create_bucket(Bucket="not-located")
    assert boto.get_bucket_location(Bucket="not-located")["LocationConstraint"] is None
    with refused(400, "InvalidBucketAclWithObjectOwnership"):
        boto.create_bucket(Bucket="public", ACL="public-read")
    with refused(400, "IllegalVersioningConfigurationException"):
        boto.put_bucket_versioning(Bucket="located", VersioningConfiguration={})


def test_cors_origins_may_be_patterns(extended: S3, extended_bucket: str):
    """One `*` in an origin; `*` alone is answered as such, without credentials."""
    boto = make_client(extended)

    def allowed(origin: str) -> tuple[int, str | None, str | None]:
        sent = [("Host", extended.authority), ("Origin", origin), ("Access-Control-Request-Method", "GET")]
        answer = extended.send_raw("OPTIONS", f"/{extended_bucket}/k", sent)
        return answer.status, answer.get("access-control-allow-origin"), answer.get("access-control-allow-credentials")

    def put(origin: str) -> None:
        rule = {"AllowedOrigins": [origin], "AllowedMethods": ["GET"]}
        boto.put_bucket_cors(Bucket=extended_bucket, CORSConfiguration={"CORSRules": [rule]})

    put("https://*.example.com")
    assert allowed("https://app.example.com") == (200, "https://app.example.com", "true")
    assert allowed("https://app.example.com.evil.test")[0] == allowed("http://app.example.com")[0] == 403
    put("*")
    assert allowed("https://any.test") == (200, "*", None)
    with refused(400, "InvalidRequest"):
        put("https://*.*.com")


def test_preflight_for_a_method_that_no_rule_can_name_is_bad(extended: S3, extended_bucket: str):
    """Such as PATCH, and in other letters than capitals. `strict` has one answer for all that is not allowed."""
    boto = make_client(extended)
    boto.put_bucket_cors(Bucket=extended_bucket, CORSConfiguration={"CORSRules": [{"AllowedOrigins": ["*"], "AllowedMethods": ["PUT"]}]})
    for method in ("PATCH", "put"):
        sent = [("Host", extended.authority), ("Origin", "https://any.test"), ("Access-Control-Request-Method", method)]
        answer = extended.send_raw("OPTIONS", f"/{extended_bucket}/k", sent)
        assert assert_error(answer, 400, "BadRequest").findtext("Message") == f"Invalid Access-Control-Request-Method: {method}"


# Checksums of parts


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
def test_checksums_of_an_upload(extended: S3, extended_bucket: str, kind: str):
    """A part of a composite has its own. Attributes have the object's without the number of parts, and list the parts of a composite."""
    boto = make_client(extended)
    bodies = [b"a" * PART_BYTES, b"b"]
    upload = Upload(boto, extended_bucket, "k", ChecksumAlgorithm="CRC32", ChecksumType=kind)
    sent = [upload.send(number, body, ChecksumAlgorithm="CRC32") for number, body in enumerate(bodies, 1)]
    named = [{"PartNumber": number, "ETag": part["ETag"]} for number, part in enumerate(sent, 1)]
    if kind == "COMPOSITE":
        with refused(400, "InvalidRequest"):
            upload.complete(named)
        named = [part | {"ChecksumCRC32": crc32(body)} for part, body in zip(named, bodies, strict=True)]
    made = upload.complete(named)
    names = {"Bucket": extended_bucket, "Key": "k"}
    for read in (boto.get_object, boto.head_object):
        part = read(**names, PartNumber=1, ChecksumMode="ENABLED")
        expected = (crc32(bodies[0]), kind) if kind == "COMPOSITE" else (None, None)
        assert (part.get("ChecksumCRC32"), part.get("ChecksumType")) == expected
    found = boto.get_object_attributes(**names, ObjectAttributes=["Checksum", "ObjectParts"])
    assert found["Checksum"] == {"ChecksumCRC32": made["ChecksumCRC32"].removesuffix("-2"), "ChecksumType": kind}
    assert ("Parts" in found["ObjectParts"], found["ObjectParts"]["TotalPartsCount"]) == (kind == "COMPOSITE", 2)


def test_part_and_range_of_an_object_in_one_piece_have_its_checksum(extended: S3, extended_bucket: str):
    """If they are all of it."""
    boto, names = make_client(extended), {"Bucket": extended_bucket, "Key": "k"}
    boto.put_object(**names, Body=b"abc", ChecksumAlgorithm="CRC32")
    for extent in ({"PartNumber": 1}, {"Range": "bytes=0-100"}, {"Range": "bytes=-9"}):
        assert boto.get_object(**names, **extent, ChecksumMode="ENABLED")["ChecksumCRC32"] == crc32(b"abc"), extent
    assert "ChecksumCRC32" not in boto.get_object(**names, Range="bytes=0-1", ChecksumMode="ENABLED")


def test_other_recorded_answers(extended: S3, extended_bucket: str):
    """Of AWS in 2026."""
    boto, names = make_client(extended), {"Bucket": extended_bucket, "Key": "k"}
    boto.put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    version = boto.put_object(**names, Body=b"abc")["VersionId"]
    assert boto.put_object_tagging(**names, Tagging={"TagSet": []})["VersionId"] == version
    with refused(400, "InvalidArgument"):
        boto.put_object(**names, Body=b"x", Tagging="a=1,b=2")
    wrong = base64.b64encode(b"0" * 16).decode()
    root = assert_error(extended.request("PUT", object_target(extended_bucket, "k"), [("Content-MD5", wrong)], b"abc"), 400, "BadDigest")
    assert root.findtext("CalculatedDigest") == "kAFQmDzST7DWlj99KOF/cg=="
    upload = Upload(boto, extended_bucket, "up")
    upload.send(1, b"x")
    target = object_target(extended_bucket, "up", f"uploadId={upload.names['UploadId']}")
    assert_error(extended.request("POST", target), 400, "InvalidRequest")
    beyond = [("x-amz-copy-source", f"{extended_bucket}/k"), ("x-amz-copy-source-range", "bytes=100-200")]
    assert_error(extended.request("PUT", f"{target}&partNumber=2", beyond), 400, "InvalidRequest")
    listed = xml(extended.request("GET", target))
    assert (listed.findtext("NextPartNumberMarker"), listed.findtext("IsTruncated")) == ("1", "false")
    token = boto.list_objects_v2(Bucket=extended_bucket, MaxKeys=1, StartAfter="a")
    assert token["StartAfter"] == "a"


def test_completion_with_a_condition_fails_if_the_key_was_written_meanwhile(extended: S3, extended_bucket: str):
    """409, although the condition holds: the upload knew another object."""
    boto = make_client(extended)
    tag = boto.put_object(Bucket=extended_bucket, Key="k", Body=b"a")["ETag"]
    upload = Upload(boto, extended_bucket, "k")
    upload.send(1, b"x")
    boto.put_object(Bucket=extended_bucket, Key="k", Body=b"a")
    with refused(409, "ConditionalRequestConflict"):
        upload.complete(IfMatch=tag)
    again = Upload(boto, extended_bucket, "k")
    again.send(1, b"x")
    again.complete(IfMatch=tag)


# Signatures


@pytest.fixture
def unconfigured(extended: S3) -> BaseClient:
    """Returns boto3's client without a signature version: it signs URLs with Version 2."""
    return boto3.client(
        "s3", endpoint_url=f"http://{extended.authority}", region_name="us-east-1",
        aws_access_key_id=extended.credential.access_key, aws_secret_access_key=extended.credential.secret_key,
        config=Config(s3={"addressing_style": "path"}),
    )


def test_presigned_urls_of_version_2(unconfigured: BaseClient, extended: S3, extended_bucket: str):
    """Reads, uploads, overrides and subresources; what the URL does not say is refused."""
    extended.put(extended_bucket, "a b+\u00e4", b"content")
    names = {"Bucket": extended_bucket, "Key": "a b+\u00e4"}
    url = unconfigured.generate_presigned_url("get_object", names | {"ResponseContentType": "text/plain"})
    assert "AWSAccessKeyId=" in url and "X-Amz-Signature" not in url
    answer = requests.get(url, timeout=30)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"content", "text/plain")
    assert requests.head(url, timeout=30).status_code == 403
    for changed in (url.replace("plain", "html"), f"{url}&versionId=null", f"{url}&acl", f"{url}&prefix=a", f"{url}&x-amz-acl=private"):
        refusal = requests.get(changed, timeout=30)
        assert refusal.status_code == 403, changed
    put = unconfigured.generate_presigned_url("put_object", {"Bucket": extended_bucket, "Key": "new", "ContentType": "text/x", "Metadata": {"a": "b"}})
    sent = {"Content-Type": "text/x", "x-amz-meta-a": "b"}
    assert requests.put(put, data=b"x", headers={"Content-Type": "text/other"}, timeout=30).status_code == 403
    assert requests.put(put, data=b"x", headers={"Content-Type": "text/x", "x-amz-copy-source": f"{extended_bucket}/a"}, timeout=30).status_code == 403
    answer = requests.put(put, data=b"new", headers={"Content-Type": "text/x"}, timeout=30)
    assert answer.status_code == 200, answer.text
    head = extended.head(extended_bucket, "new")
    assert (head.get("content-type"), head.get("x-amz-meta-a")) == ("text/x", sent["x-amz-meta-a"])
    gone = unconfigured.generate_presigned_url("get_object", names, ExpiresIn=-1)
    answer = requests.get(gone, timeout=30)
    assert answer.status_code == 403 and "Request has expired" in answer.text and "<Expires>" in answer.text
    virtual = url.replace(f"{extended.authority}/{extended_bucket}", extended.authority)
    assert requests.get(virtual, timeout=30).status_code == 403


def test_version_2_urls_are_refused_in_strict_mode(s3: S3, bucket: str):
    """With the setting of the client that helps."""
    client = boto3.client(
        "s3", endpoint_url=f"http://{s3.authority}", region_name="us-east-1", aws_access_key_id=s3.credential.access_key,
        aws_secret_access_key=s3.credential.secret_key, config=Config(signature_version="s3"),
    )
    answer = requests.get(client.generate_presigned_url("get_object", {"Bucket": bucket, "Key": "k"}), timeout=30)
    assert (answer.status_code, "s3v4" in answer.text) == (400, True)


def test_presigned_url_with_a_lifetime_of_zero_has_expired(extended: S3, extended_bucket: str):
    """Not malformed."""
    target = extended.presigned("GET", object_target(extended_bucket, "k"), expires=0)
    answer = extended.send_raw("GET", target, [("Host", extended.authority)])
    root = assert_error(answer, 403, "AccessDenied")
    assert root.findtext("Message") == "Request has expired" and root.findtext("X-Amz-Expires") == "0"


def test_encoding_aws_chunked_of_a_plain_body(extended: S3, extended_bucket: str):
    """Some clients send the header although the body is not framed. It is stored without it if its digest is signed."""
    sent = [("Content-Encoding", "gzip, aws-chunked")]
    assert extended.request("PUT", object_target(extended_bucket, "k"), sent, b"abc").status == 200
    got = extended.get(extended_bucket, "k")
    assert (got.body, got.get("content-encoding")) == (b"abc", "gzip")
    unsigned = extended.request("PUT", object_target(extended_bucket, "k"), sent, b"x", payload="UNSIGNED-PAYLOAD")
    assert_error(unsigned, 400, "InvalidRequest")
    assert headers(make_client(extended).head_object(Bucket=extended_bucket, Key="k"))["content-encoding"] == "gzip"


def test_upload_in_parts_of_an_old_client_still_completes(extended: S3, extended_bucket: str):
    """Without checksums, parts need none."""
    upload_in_parts(make_client(extended), extended_bucket, "k", [b"a" * PART_BYTES, b"b"])
    assert extended.head(extended_bucket, "k").get("content-length") == str(PART_BYTES + 1)
