"""Ranges of GetObject and of UploadPartCopy."""

from ..case import Case, scenario

CONTENT = "0123456789"


@scenario("TestS3ObjectCRUD::test_get_object_range")
def object_ranges(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-key-range"}
    case.do("put_object", **object_, Body=CONTENT)
    case.step("get-0-8", "get_object", **object_, Range="bytes=0-8")
    case.step("get-0-8-checksum", "get_object", **object_, Range="bytes=0-8", ChecksumMode="ENABLED")
    for text in ("1-1", "1-0", "1-", "-1-", "-2", "-9", "-15", "0-100", "0-0", "0--1", "-", "-0", "100-200"):
        case.step(f"get-{text}", "get_object", **object_, Range=f"bytes={text}")
    case.step("get-multiple-ranges", "get_object", **object_, Range="bytes=0-1,3-4,7-9")
    case.step("get-wrong-format", "get_object", **object_, Range="0-1")
    case.step("put-after-failed", "put_object", **object_, Body=CONTENT * 2)


def copied_parts(case: Case) -> dict:
    """Puts a source, creates an upload, and returns the parameters of a part that is copied."""
    bucket = case.bucket()
    case.step("put-src-object", "put_object", Bucket=bucket, Key="src-key", Body=CONTENT)
    target = {"Bucket": bucket, "Key": "test-upload-part-copy"}
    target["UploadId"] = case.step("create-multipart", "create_multipart_upload", **target)["UploadId"]
    return target


@scenario("TestS3Multipart::test_upload_part_copy_range")
def part_ranges(case: Case) -> None:
    target = copied_parts(case)
    copy = target | {"CopySource": f"{target['Bucket']}/src-key"}
    for number, text in enumerate(("0-8", "1-1", "0-0"), 1):
        case.step(f"upload-part-copy-{number}", "upload_part_copy", **copy, PartNumber=number, CopySourceRange=f"bytes={text}")
    case.step("list-parts", "list_parts", **target)
    case.step("upload-part-copy-wrong-format", "upload_part_copy", **copy, PartNumber=1, CopySourceRange="0-8")
    for text in ("1-0", "-1-", "0--1", "0-1,3-4,7-9", "-", "-0", "0-100", "100-200", "1-", "-2", "-15"):
        case.step(f"upload-part-copy-range-exc-{text}", "upload_part_copy", **copy, PartNumber=1, CopySourceRange=f"bytes={text}")


@scenario("TestS3Multipart::test_upload_part_copy_no_copy_source_range")
def part_without_range(case: Case) -> None:
    target = copied_parts(case)
    case.step("upload-part-copy", "upload_part_copy", **target, PartNumber=1, CopySource=f"{target['Bucket']}/src-key")
    case.step("list-parts", "list_parts", **target)
