"""Objects: keys, headers, metadata, ranges, conditions of reads, deletes of several, digests."""

import base64
import datetime as dt
import gzip
import hashlib
import string

from ..case import Case, scenario
from .versions import by_key, delete_several

DAY = dt.timedelta(days=1)


def now() -> dt.datetime:
    """Returns the current time."""
    return dt.datetime.now(dt.UTC)


@scenario("TestS3::test_put_and_get_object_with_utf8_key")
def utf8_key(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "Ā0Ä"}
    case.step("put-object", "put_object", **object_, Body=b"abc123")
    case.step("get-object", "get_object", **object_)


@scenario("TestS3::test_put_and_get_object_with_hash_prefix")
def hash_in_key(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "#key-with-hash-prefix"}
    case.step("put-object", "put_object", **object_, Body=b"test 123")
    case.step("get-object", "get_object", **object_)


@scenario("TestS3::test_put_and_get_object_with_content_language_disposition")
def stored_headers(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test"}
    sent = {"ContentLanguage": "de", "ContentDisposition": 'attachment; filename="foo.jpg"', "CacheControl": "no-cache"}
    answer = case.step("put-object", "put_object", **object_, Body=b"abc123", **sent)
    match_headers(case, "put-object-headers", answer)
    answer = case.step("get-object", "get_object", **object_)
    match_headers(case, "get-object-headers", answer)


def match_headers(case: Case, step: str, answer: dict) -> None:
    """Compares the headers of an answer. The rest of what was recorded with them is boto3's."""
    case.match(step, answer["ResponseMetadata"]["HTTPHeaders"], recorded=case.recorded[step]["HTTPHeaders"])


@scenario("TestS3::test_system_metadata_with_unicode")
def utf8_headers(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test"}
    disposition = 'attachment; filename="test_—_file%E2%80%94_é_2.pdf"'
    sent = {"ContentLanguage": "de", "ContentDisposition": disposition, "CacheControl": "ÄMÄZÕÑ S3"}
    case.step("put-object", "put_object", **object_, **sent)
    case.step("get-object", "get_object", **object_)


def encoded_word(text: str) -> str:
    """Returns a text as RFC 2047 encodes it."""
    return f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


@scenario("TestS3::test_user_metadata_rfc2047_encoded")
def encoded_metadata(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test"}
    metadata = {
        "non-ascii": encoded_word("test_—_file%E2%80%94_é_2?.pdf"), "non-ascii-2": encoded_word("ÄMÄZÕÑ S3"),
        "non-ascii-binary": encoded_word("\x00\x01\x02\x03"), "replacement-chars": encoded_word("\ufffd" * 7),
        "fake-encoded": "=?UTF-8?Q?actually-ascii?=", "asciib64-encoded": "=?UTF-8?B?YWJj?=", "safe-chars": string.punctuation + " \t",
    }
    case.step("put-object", "put_object", **object_, Metadata=metadata)
    case.step("get-object", "get_object", **object_)


@scenario("TestS3::test_user_metadata_rfc2047_bad_b64_encoded")
def malformed_metadata(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test"}
    case.step("put-object", "put_object", **object_, Metadata={"bad-b64-encoded": "=?UTF-8?B?=GGG?="})
    case.step("get-object", "get_object", **object_)


@scenario("TestS3::test_metadata_header_character_decoding")
def underscores_in_metadata(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "key-with-metadata"}
    case.do("put_object", **object_, Metadata={"TEST_META_1": "foo", "__meta_2": "bar"}, Body="foo")
    case.step("head-object", "head_object", **object_)


SLASHES = {"/foo": b"foobar", "bar": b"barfoo", "/bar/foo/": b"test"}


@scenario("TestS3::test_object_with_slashes_in_key", "False")
def slashes(case: Case) -> None:
    bucket = case.bucket()
    for key, body in SLASHES.items():
        case.put(bucket, key, body)
    case.step("list-objects-slashes", "list_objects_v2", Bucket=bucket)


@scenario("TestS3::test_url_encoded_key", "False")
def encoded_keys(case: Case) -> None:
    bucket = case.bucket()
    for key, body in (("test@key/", "test-non-encoded"), ("test%40key/", "test-encoded"), ("test%40key", "test-encoded-no-trailing")):
        case.put(bucket, key, body)
    case.step("list-object-encoded-char", "list_objects_v2", Bucket=bucket)


UNUSUAL = ("file%2Fname", "test@key/", "test%123", "test%percent", "test key/", "test key//", "test%123/", "a/%F0%9F%98%80/")


@scenario("TestS3::test_put_get_object_special_character", *UNUSUAL)
def unusual_key(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": case.parameter}
    case.step("put-object-special-char", "put_object", **object_, Body=b"test")
    case.step("list-object-special-char", "list_objects_v2", Bucket=object_["Bucket"])
    case.step("get-object-special-char", "get_object", **object_)
    case.step("del-object-special-char", "delete_object", **object_)


@scenario("TestS3::test_put_get_object_single_character_trailing_slash")
def single_characters(case: Case) -> None:
    bucket = case.bucket()
    for key in ("a/", "t/", "u/"):
        case.step(f"put-object-single-char-{key}", "put_object", Bucket=bucket, Key=key, Body=b"test")
        case.step(f"get-object-single-char-{key}", "get_object", Bucket=bucket, Key=key)
    case.step("list-objects-single-char", "list_objects_v2", Bucket=bucket)


def put_and_get(case: Case, step: str, key: str, body: bytes | str, **options: object) -> None:
    """Puts an object and compares what a GET answers."""
    object_ = {"Bucket": case.bucket(), "Key": key}
    case.do("put_object", **object_, Body=body)
    case.step(step, "get_object", **object_, **options)


@scenario("TestS3::test_putobject_with_multiple_keys")
def nested_key(case: Case) -> None:
    put_and_get(case, "get_object", "aws/key1/key2/key3", b"test")


@scenario("TestS3::test_upload_file_with_xml_preamble")
def xml_body(case: Case) -> None:
    put_and_get(case, "get_object", "key", '<?xml version="1.0" encoding="UTF-8"?><test/>')


@scenario("TestS3::test_invalid_range_error")
def range_past_end(case: Case) -> None:
    put_and_get(case, "exc", "my-key", b"abcdefgh", Range="bytes=1024-4096")


@scenario("TestS3::test_precondition_failed_error")
def failed_condition(case: Case) -> None:
    put_and_get(case, "get-object-if-match", "foo", b'{"foo": "bar"}', IfMatch='"not good etag"')


@scenario("TestS3::test_s3_get_object_header_overrides")
def overrides(case: Case) -> None:
    put_and_get(
        case, "get-object", "key-header-overrides", "something", ResponseCacheControl="max-age=74",
        ResponseContentDisposition='attachment; filename="foo.jpg"', ResponseContentEncoding="identity", ResponseContentLanguage="de-DE",
        ResponseContentType="image/jpeg", ResponseExpires="Wed, 21 Oct 2015 07:28:00 GMT",
    )


@scenario("TestS3::test_range_key_not_exists")
def range_of_nothing(case: Case) -> None:
    case.step("exc", "get_object", Bucket=case.bucket(), Key="my-key", Range="bytes=1024-4096")


@scenario("TestS3::test_range_header_body_length")
def halves(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "sample.bin"}
    case.do("put_object", **object_, Body=b"\x00" * 2048)
    for step, text in (("get-object", "bytes=0-1023"), ("get-object-2", "bytes=1024-2048")):
        case.step(step, "get_object", **object_, Range=text)


@scenario("TestS3::test_etag_on_get_object_call")
def tag_of_range(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "my-key"}
    case.do("put_object", **object_, Body="Lorem ipsum dolor sit amet, ... " * 30)
    case.step("get_object", "get_object", **object_)
    case.step("get_object_range", "get_object", **object_, Range="bytes=0-16")


@scenario("TestS3::test_head_object_fields")
def head(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "my-key", b"abcdefgh")
    case.step("head-object", "head_object", Bucket=bucket, Key="my-key")
    case.step("head-object-404", "head_object", Bucket=bucket, Key="doesnotexist")


@scenario("TestS3::test_s3_uppercase_key_names")
def case_of_keys(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "camelCaseKey", "something")
    case.step("response", "get_object", Bucket=bucket, Key="camelCaseKey")
    case.step("wrong-case-key", "get_object", Bucket=bucket, Key="camelcasekey")


@scenario("TestS3::test_upload_big_file")
def large_bodies(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test_key1"}
    case.step("put_object_key1", "put_object", **object_, Body=b"\x01" * 10_000_000)
    case.step("put_object_key2", "put_object", **object_, Body=b"a" * 10_000_000)
    for number in (1, 2):
        case.step(f"head_object_key{number}", "head_object", **object_)


@scenario("TestS3::test_s3_upload_download_gzip")
def gzipped(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test.gz"}
    body = gzip.compress(b"1234567890 " * 100, mtime=1676569620)
    case.step("put-object", "put_object", **object_, ContentEncoding="gzip", Body=body)
    case.step("get-object", "get_object", **object_)


@scenario("TestS3::test_s3_object_expires")
def expires(case: Case) -> None:
    bucket = case.bucket()
    for name, when in (("future", now() + DAY), ("past", now() - DAY)):
        object_ = {"Bucket": bucket, "Key": f"key-object-{name}"}
        case.step(f"put-object-expires-{name}", "put_object", **object_, Body="foo", Expires=when)
        case.step(f"head-object-expires-{name}", "head_object", **object_)
        case.step(f"get-object-expires-{name}", "get_object", **object_)


@scenario("TestS3::test_s3_get_object_preconditions", "get_object", "head_object")
def read_conditions(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-object"}
    tag = case.do("put_object", **object_, Body=b"data")["ETag"]
    modified = case.do("head_object", **object_)["LastModified"]
    bare = tag.strip('"')

    def read(step: str, **conditions: object) -> None:
        case.step(step, case.parameter, **object_, **conditions)

    failing = {"IfMatch": "etag123", "IfUnmodifiedSince": now() - DAY, "IfNoneMatch": tag, "IfModifiedSince": now()}
    steps = ("precondition-if-match", "precondition-if-unmodified-since", "precondition-if-none-match", "copy-precondition-if-modified-since")
    for step in steps:
        read(step, **failing)
        failing.pop(next(iter(failing)))
    read("obj-ignore-future-modified-since", IfModifiedSince=now() + DAY)
    read("etag-missing-quotes", IfModifiedSince=now(), IfNoneMatch=bare)
    read("precondition-if-unmodified-since-is-object", IfUnmodifiedSince=modified)
    read("precondition-if-modified-since-is-object", IfModifiedSince=modified)
    read("obj-success", IfMatch=bare, IfNoneMatch="etag123", IfModifiedSince=now() - DAY, IfUnmodifiedSince=now())


@scenario("TestS3::test_s3_get_object_headers")
def tag_conditions(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "en-gb.wav"}
    tag = case.do("put_object", **object_, Body=b"sound")["ETag"]
    bare = tag.strip('"')
    for step, condition, value in (
        ("if_none_match_err_1", "IfNoneMatch", tag), ("if_none_match_err_2", "IfNoneMatch", bare), ("if_none_match_1", "IfNoneMatch", "etag"),
        ("if_match_1", "IfMatch", tag), ("if_match_2", "IfMatch", bare), ("if_match_err_1", "IfMatch", "etag"),
    ):
        answer = case.call("get_object", **object_, **{condition: value})
        # Either the error or the status was recorded.
        found = {"Error": answer["Error"]} if "Error" in answer else {"Status": answer["ResponseMetadata"]["HTTPStatusCode"]}
        recorded = case.recorded[step]
        case.match(step, found, recorded={"Error": recorded} if isinstance(recorded, dict) else {"Status": recorded})


@scenario("TestS3::test_get_object_content_length_with_virtual_host", "False")
def headers_of_presigned(case: Case) -> None:
    bucket = case.bucket()
    case.without_checksums()
    case.put(bucket, "temp.txt", "123")
    answer = case.http.use_presigned("GET", case.http.presigned("GET", f"/{bucket}/temp.txt"))
    case.match("get-obj-content-len-headers", {name.lower(): value for name, value in answer.headers})


@scenario("TestS3::test_s3_put_more_than_1000_items")
def a_thousand_and_ten(case: Case) -> None:
    bucket = case.bucket()
    for number in range(1010):
        case.put(bucket, f"test-key-{number}", f"test-{number}")
    case.step("get_object-1009", "get_object", Bucket=bucket, Key="test-key-1009")
    case.step("get_object-0", "get_object", Bucket=bucket, Key="test-key-0")
    page = case.call("list_objects", Bucket=bucket, Delimiter="/")
    if "Error" not in page:
        assert len(page["Contents"]) == 1000
        page["Contents"] = "<content>"
    case.match("list-objects", page)
    case.step("list-objects-next_marker", "list_objects", Bucket=bucket, Marker=page.get("NextMarker", ""))


@scenario("TestS3::test_delete_bucket_with_content")
def ten_objects(case: Case) -> None:
    bucket = case.bucket()
    for number in range(10):
        case.put(bucket, f"test-key-{number}", f"test-{number}")
    case.step("list-objects", "list_objects", Bucket=bucket, MaxKeys=100)
    # AWS's list has the buckets of the recording account; there may be any here.
    case.leave_out("list-buckets")


@scenario("TestS3::test_empty_bucket_fixture")
def emptied(case: Case) -> None:
    bucket = case.bucket()
    for number in range(3):
        case.put(bucket, f"key{number}", "123")
    case.step("list-obj", "list_objects_v2", Bucket=bucket)
    for number in range(3):
        case.do("delete_object", Bucket=bucket, Key=f"key{number}")
    case.step("list-obj-after-empty", "list_objects_v2", Bucket=bucket)


@scenario("TestS3::test_delete_non_existing_keys_quiet")
def deleted_quietly(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "test-key-nonexistent", "something")
    objects = [{"Key": key} for key in ("test-key-nonexistent", "dummy1", "dummy2")]
    case.step("deleted-resp", "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True})


@scenario("TestS3::test_delete_non_existing_keys")
def deleted_keys(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "test-key-nonexistent", "something")
    delete_several(case, "deleted-resp", bucket, *({"Key": key} for key in ("test-key-nonexistent", "dummy1", "dummy2")))


@scenario("TestS3::test_delete_non_existing_keys_in_non_existing_bucket")
def deleted_without_bucket(case: Case) -> None:
    delete_several(case, "error-non-existent-bucket", case.bucket_name(), {"Key": "dummy1"}, {"Key": "dummy2"})


@scenario("TestS3::test_delete_objects_encoding")
def deleted_encoded_keys(case: Case) -> None:
    bucket, keys = case.bucket(), ("a%2Fb", "a/%F0%9F%98%80")
    for key, body in zip(keys, ("percent encoding", "percent encoded emoji"), strict=True):
        case.put(bucket, key, body)
    case.step("list-objects-before-delete", "list_objects_v2", Bucket=bucket)
    delete_several(case, "deleted-resp", bucket, *({"Key": key} for key in keys))
    case.step("list-objects", "list_objects_v2", Bucket=bucket)


@scenario("TestS3::test_s3_batch_delete_objects")
def deleted_batch(case: Case) -> None:
    bucket = case.bucket()
    keys = [f"key-batch-delete-{number}" for number in range(5)]
    for key in keys:
        case.put(bucket, key, "This body document")
    answer = case.call("delete_objects", Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    case.match("batch-delete", by_key(answer), reads=False)
    case.step("list-remaining-objects", "list_objects", Bucket=bucket)


@scenario("TestS3::test_delete_keys_in_versioned_bucket")
def deleted_versions(case: Case) -> None:
    bucket, key = case.versioned(case.bucket()), "test-key-versioned"
    for body in ("something", "something-v2"):
        case.put(bucket, key, body)
    case.step("list-objects-v2", "list_objects_v2", Bucket=bucket)
    delete_several(case, "delete-object", bucket, {"Key": key})
    listed = case.step("list-object-version", "list_object_versions", Bucket=bucket)
    versions = [{"Key": key, "VersionId": one["VersionId"]} for one in listed["Versions"]]
    answer = case.call("delete_objects", Bucket=bucket, Delete={"Objects": versions})
    # AWS has no order; the recording's placeholders are those of the list, in its order.
    places = {one["VersionId"]: place for place, one in enumerate(versions)}
    answer["Deleted"] = sorted(answer.get("Deleted", []), key=lambda one: places[one["VersionId"]])
    recorded = case.recorded["delete-object-version"]
    recorded = recorded | {"Deleted": sorted(recorded["Deleted"], key=lambda one: one["VersionId"])}
    case.match("delete-object-version", answer, reads=False, recorded=recorded)
    case.step("list-objects-v2-after-delete", "list_objects_v2", Bucket=bucket)
    listed = case.step("list-object-version-after-delete", "list_object_versions", Bucket=bucket)
    delete_several(case, "delete-object-delete-marker", bucket, {"Key": key, "VersionId": listed["DeleteMarkers"][0]["VersionId"]})


@scenario("TestS3::test_get_object_after_deleted_in_versioned_bucket")
def deleted_current(case: Case) -> None:
    object_ = {"Bucket": case.versioned(case.bucket()), "Key": "my-key"}
    case.do("put_object", **object_, Body=b"abcdefgh")
    case.step("get-object", "get_object", **object_)
    case.do("delete_object", **object_)
    case.step("get-object-after-delete", "get_object", **object_)


@scenario("TestS3::test_get_bucket_versioning_order")
def versions_of_keys(case: Case) -> None:
    bucket = case.bucket()
    case.step("list_object_versions_before", "list_object_versions", Bucket=bucket, EncodingType="url")
    case.step("put_bucket_versioning", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    case.step("get_bucket_versioning", "get_bucket_versioning", Bucket=bucket)
    for key in ("test", "test", "test2"):
        case.put(bucket, key, "body")
    case.step("list_object_versions", "list_object_versions", Bucket=bucket)


@scenario("TestS3::test_s3_delete_object_with_version_id")
def deleted_version(case: Case) -> None:
    bucket, body = case.versioned(case.bucket()), "Lorem ipsum dolor sit amet, ... " * 30
    case.step("get_bucket_versioning", "get_bucket_versioning", Bucket=bucket)
    first, second = "aws/s3/testkey1.txt", "aws/s3/testkey2.txt"
    version = case.put(bucket, first, body)["VersionId"]
    case.put(bucket, second, body)
    delete_several(case, "delete_objects", bucket, {"Key": first, "VersionId": version})
    case.step("list_object_versions_after_delete", "list_object_versions", Bucket=bucket)
    case.versioned(bucket, "Suspended")
    case.step("get_bucket_versioning_suspended", "get_bucket_versioning", Bucket=bucket)


@scenario("TestS3::test_s3_put_object_versioned")
def before_and_after_versioning(case: Case) -> None:
    bucket = case.bucket()
    old, new, last = ({"Bucket": bucket, "Key": key} for key in ("non-version-bucket-key", "versioned-bucket-key", "non-version-bucket-key-after-disable"))
    case.step("put-pre-versioned", "put_object", **old, Body="non-versioned-key")
    case.step("get-pre-versioned", "get_object", **old)
    case.step("list-object-pre-versioned", "list_object_versions", Bucket=bucket)
    case.versioned(bucket)
    case.step("get-post-versioned", "get_object", **old)
    case.step("put-obj-versioned-1", "put_object", **new, Body="versioned-key")
    case.step("put-obj-versioned-2", "put_object", **new, Body="versioned-key-updated")
    case.step("get-obj-versioned", "get_object", **new)
    case.step("list-object-versioned", "list_object_versions", Bucket=bucket)
    case.versioned(bucket, "Suspended")
    case.step("list-bucket-suspended", "list_object_versions", Bucket=bucket)
    case.step("get-obj-versioned-disabled", "get_object", **new)
    case.step("get-obj-non-versioned-disabled", "get_object", **old)
    case.step("put-non-versioned-post-disable", "put_object", **last, Body="non-versioned-key-post")
    case.step("get-non-versioned-post-disable", "get_object", **last)


@scenario("TestS3::test_s3_invalid_content_md5")
def digests(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-key"}
    body = "something"

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.md5(text.encode()).digest()).decode()

    malformed = ["__invalid__", "000", "not base64 encoded checksum", "MTIz", base64.b64encode(b"test-string").decode()]

    def send(prefix: str, operation: str, parameters: dict, success: str) -> None:
        for number, value in enumerate(malformed):
            case.step(f"{prefix}md5-error-{number}", operation, **parameters, Body=body, ContentMD5=value)
        bad = "md5-bad-digest" if prefix else "md5-error-bad-digest"
        case.step(f"{prefix}{bad}", operation, **parameters, Body=body, ContentMD5=digest(f"{body}1"))
        case.step(success, operation, **parameters, Body=body, ContentMD5=digest(body))

    send("", "put_object", object_, "success-put-object-md5")
    upload = object_ | {"Key": "multi-key"}
    upload["UploadId"] = case.do("create_multipart_upload", **upload)["UploadId"]
    send("upload-part-", "upload_part", upload | {"PartNumber": 1}, "success-upload-part-md5")


@scenario("TestS3::test_delete_object_tagging")
def untagged(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-key-tagging"}
    case.do("put_object", **object_, Body="something")
    case.step("get-obj", "get_object", **object_)
    case.do("delete_object_tagging", **object_)
    case.step("get-obj-after-tag-deletion", "get_object", **object_)
