"""Conditions on the source of CopyObject and UploadPartCopy."""

import datetime as dt

from ..case import Case, scenario

DAY = dt.timedelta(days=1)


def now() -> dt.datetime:
    """Returns the current time."""
    return dt.datetime.now(dt.UTC)


@scenario("TestS3CopySourcePreconditions::test_s3_copy_object_preconditions")
def copy_conditions(case: Case) -> None:
    bucket = case.bucket()
    tag = case.put(bucket, "source-object", b"data")["ETag"]
    case.step("head-object", "head_object", Bucket=bucket, Key="source-object")
    copy = {"Bucket": bucket, "Key": "dest-object", "CopySource": f"{bucket}/source-object"}
    # All conditions fail. The one that is left out in each step is the one that was reported before.
    failing = {
        "CopySourceIfMatch": "etag123", "CopySourceIfUnmodifiedSince": now() - DAY, "CopySourceIfNoneMatch": tag, "CopySourceIfModifiedSince": now(),
    }
    for name in ("match", "unmodified-since", "none-match", "modified-since"):
        case.step(f"copy-precondition-if-{name}", "copy_object", **copy, **failing)
        failing.pop(next(iter(failing)))
    case.step("copy-ignore-future-modified-since", "copy_object", **copy, CopySourceIfModifiedSince=now() + DAY)
    case.step("copy-etag-missing-quotes", "copy_object", **copy, CopySourceIfNoneMatch=tag.strip('"'))
    case.step(
        "copy-success", "copy_object", **copy, CopySourceIfMatch=tag.strip('"'), CopySourceIfNoneMatch="etag123",
        CopySourceIfModifiedSince=now() - DAY, CopySourceIfUnmodifiedSince=now(),
    )


@scenario("TestS3CopySourcePreconditions::test_s3_copy_object_if_source_modified_since_versioned")
def copy_modified_since(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    case.put(bucket, "source-object", b"data")
    modified = case.step("head-object", "head_object", Bucket=bucket, Key="source-object")["LastModified"]
    copy = {"Bucket": bucket, "Key": "dest-object", "CopySource": f"{bucket}/source-object"}
    case.step("copy-if-modified-since", "copy_object", **copy, CopySourceIfModifiedSince=modified - dt.timedelta(minutes=1))
    case.step("copy-if-modified-since-last-modified", "copy_object", **copy, CopySourceIfModifiedSince=modified)


@scenario("TestS3CopySourcePreconditions::test_s3_copy_object_if_source_unmodified_since_versioned")
def copy_unmodified_since(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    case.put(bucket, "source-object", b"data")
    modified = case.step("head-object", "head_object", Bucket=bucket, Key="source-object")["LastModified"]
    copy = {"Bucket": bucket, "Key": "dest-object", "CopySource": f"{bucket}/source-object"}
    case.step("copy-if-unmodified-since", "copy_object", **copy, CopySourceIfUnmodifiedSince=modified)
    case.step("copy-past-if-unmodified-since", "copy_object", **copy, CopySourceIfUnmodifiedSince=now() - DAY)


def copy_part(case: Case, step: str, **conditions: object) -> None:
    """Copies an object as a part on conditions, and lists the parts if the recording does."""
    bucket = case.bucket()
    tag = case.put(bucket, "source_file.txt", b"0123456789")["ETag"]
    target = {"Bucket": bucket, "Key": "destination_file.txt"}
    target["UploadId"] = case.do("create_multipart_upload", **target)["UploadId"]
    sent = {name: tag if value == "tag" else value for name, value in conditions.items()}
    case.step(step, "upload_part_copy", **target, PartNumber=1, CopySource=f"{bucket}/source_file.txt", **sent)
    if "list-parts" in case.recorded:
        case.step("list-parts", "list_parts", **target)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_match_success")
def part_if_match(case: Case) -> None:
    copy_part(case, "upload-part-copy-if-match", CopySourceIfMatch="tag")


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_match_none_success")
def part_if_none_match(case: Case) -> None:
    copy_part(case, "upload-part-copy-if-none-match", CopySourceIfNoneMatch="none-match")


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_unmodified_since_success")
def part_unmodified_since(case: Case) -> None:
    copy_part(case, "upload-part-copy-if-unmodified-since", CopySourceIfUnmodifiedSince=now() + DAY)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_modified_since_success")
def part_modified_since(case: Case) -> None:
    copy_part(case, "upload-part-copy-if-modified-since", CopySourceIfModifiedSince=now() - DAY)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_modified_since_in_future_success")
def part_modified_since_tomorrow(case: Case) -> None:
    copy_part(case, "upload-part-copy-if-modified-since-in-future", CopySourceIfModifiedSince=now() + DAY)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_match_failed")
def part_if_match_fails(case: Case) -> None:
    copy_part(case, "upload-part-copy-source-if-match", CopySourceIfMatch="not-matching")


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_none_match_failed")
def part_if_none_match_fails(case: Case) -> None:
    copy_part(case, "upload-part-copy-source-if-none-match", CopySourceIfNoneMatch="tag")


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_unmodified_since_match_failed")
def part_unmodified_since_fails(case: Case) -> None:
    copy_part(case, "upload-part-copy-source-unmodified-since-match", CopySourceIfUnmodifiedSince=now() - DAY)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_match_and_if_unmodified_since_match")
def part_match_outranks_date(case: Case) -> None:
    copy_part(case, "upload-part-copy", CopySourceIfMatch="tag", CopySourceIfUnmodifiedSince=now() - DAY)


@scenario("TestS3Multipart::test_upload_part_copy_with_copy_source_if_none_match_and_if_unmodified_since_match_failed")
def part_none_match_and_date(case: Case) -> None:
    copy_part(
        case, "upload-part-copy-source-unmodified-since-and-if-none-match", CopySourceIfNoneMatch="not-matching",
        CopySourceIfUnmodifiedSince=now() - DAY,
    )


@scenario("TestS3Multipart::test_upload_part_copy_with_if_modified_since_failed")
def part_modified_since_fails(case: Case) -> None:
    copy_part(case, "upload-part-copy-source-modified-since-match", CopySourceIfModifiedSince=now())
