"""Multipart uploads: parts, lists, completion, errors."""

from ..case import Case, scenario

PART_BYTES = 5_242_880


def upload_in_parts(case: Case, bucket: str, key: str, data: str, parts: int = 1, **options: object) -> dict:
    """Uploads a text in equal parts, the last one short, and returns the answer of the completion."""
    upload = start(case, bucket, key, **options)
    sent = []
    for number in range(1, parts + 1):
        body = data if number == parts else data * (PART_BYTES // len(data) + 1)
        part = case.do("upload_part", **upload, PartNumber=number, Body=body)
        sent.append({"PartNumber": number, "ETag": part["ETag"]})
    return case.do("complete_multipart_upload", **upload, MultipartUpload={"Parts": sent})


def start(case: Case, bucket: str, key: str, **options: object) -> dict:
    """Creates an upload and returns its names."""
    return {"Bucket": bucket, "Key": key, "UploadId": case.do("create_multipart_upload", Bucket=bucket, Key=key, **options)["UploadId"]}


@scenario("TestS3::test_multipart_and_list_parts")
def from_create_to_complete(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-list-parts"}
    bucket = {"Bucket": object_["Bucket"]}
    upload = object_ | {"UploadId": case.step("create-multipart", "create_multipart_upload", **object_)["UploadId"]}
    case.step("list-part-after-created", "list_parts", **upload)
    case.step("list-all-uploads", "list_multipart_uploads", **bucket)
    part = case.step("upload-part", "upload_part", **upload, PartNumber=1, Body=b"upload-part-1" * 5)
    case.step("list-part-after-upload", "list_parts", **upload)
    case.step("list-all-uploads-after", "list_multipart_uploads", **bucket)
    parts = {"MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}
    case.step("complete-multipart", "complete_multipart_upload", **upload, **parts)
    case.step("list-part-after-complete-exc", "list_parts", **upload)
    case.step("list-all-uploads-completed", "list_multipart_uploads", **bucket)
    case.step("head-multipart-checksum", "head_object", **object_, ChecksumMode="ENABLED")
    case.step("get-multipart-checksum", "get_object", **object_, ChecksumMode="ENABLED")


@scenario("TestS3::test_multipart_no_such_upload")
def no_such_upload(case: Case) -> None:
    upload = {"Bucket": case.bucket(), "Key": "fake-key", "UploadId": "fakeid"}
    case.step("upload-exc", "upload_part", **upload, PartNumber=1, Body=b"data")
    case.step("complete-exc", "complete_multipart_upload", **upload)
    case.step("abort-exc", "abort_multipart_upload", **upload)


@scenario("TestS3::test_multipart_key_validation")
def another_key(case: Case) -> None:
    bucket = case.bucket()
    upload = start(case, bucket, "test-multipart-key")
    wrong = upload | {"Key": "test-wrong-key"}
    part = case.do("upload_part", **upload, PartNumber=1, Body=b"test")
    case.step("upload-part-wrong-key-name", "upload_part", **wrong, PartNumber=1, Body=b"test")
    parts = {"MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}}
    case.step("complete-multipart-wrong-key-name", "complete_multipart_upload", **wrong, **parts)
    case.step("list-parts-wrong-key-name", "list_parts", **wrong)
    case.step("abort-multipart-wrong-key-name", "abort_multipart_upload", **wrong)


@scenario("TestS3::test_multipart_complete_multipart_too_small")
def parts_too_small(case: Case) -> None:
    upload = start(case, case.bucket(), "test-upload-part-exc")
    parts = []
    for number in (1, 2):
        part = case.step(f"upload-part{number}", "upload_part", **upload, PartNumber=number, Body=b"data")
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    case.step("complete-exc-no-parts", "complete_multipart_upload", **upload)
    case.step("complete-exc-too-small", "complete_multipart_upload", **upload, MultipartUpload={"Parts": parts})


@scenario("TestS3::test_multipart_complete_multipart_wrong_part")
def wrong_part(case: Case) -> None:
    upload = start(case, case.bucket(), "test-upload-part-exc")
    tag = case.do("upload_part", **upload, PartNumber=1, Body=b"data")["ETag"]
    other = "d41d8cd98f00b204e9800998ecf8427e"
    for step, number, sent in (("wrong-part-number", 2, tag), ("wrong-etag", 1, other)):
        parts = {"Parts": [{"PartNumber": number, "ETag": sent}]}
        case.step(f"complete-exc-{step}", "complete_multipart_upload", **upload, MultipartUpload=parts)


@scenario("TestS3::test_complete_multipart_parts_order")
def order_of_parts(case: Case) -> None:
    bucket, body = case.bucket(), b"a" * (PART_BYTES + 1)

    def send(key: str, first: int) -> tuple[dict, list[dict]]:
        upload = start(case, bucket, key)
        numbers = range(first, first + 3)
        sent = [{"PartNumber": one, "ETag": case.do("upload_part", **upload, PartNumber=one, Body=body)["ETag"]} for one in numbers]
        return upload, sent

    upload, parts = send("test-order-parts", 1)
    case.step("upload-part-negative-part-number", "upload_part", **upload, PartNumber=-1, Body=b"")
    case.step("complete-multipart-unordered", "complete_multipart_upload", **upload, MultipartUpload={"Parts": parts[::-1]})
    case.step("complete-multipart-ordered", "complete_multipart_upload", **upload, MultipartUpload={"Parts": parts})
    upload, parts = send("key-sequence-with-step-2", 2)
    case.step("complete-multipart-with-step-2", "complete_multipart_upload", **upload, MultipartUpload={"Parts": parts})


@scenario("TestS3::test_multipart_with_unicode_character_location")
def location(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-unicode_—_file"}
    upload = object_ | {"UploadId": case.step("create-multipart", "create_multipart_upload", **object_)["UploadId"]}
    part = case.do("upload_part", **upload, PartNumber=1, Body="upload-part-1")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    case.step("complete-multipart", "complete_multipart_upload", **upload, MultipartUpload=parts)


@scenario("TestS3::test_multipart_overwrite_key")
def overwrite(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test.file"}
    case.step("put-object", "put_object", **object_, Body=b"test content 123")
    case.match("multipart-upload", upload_in_parts(case, object_["Bucket"], "test.file", "test content 123"))


@scenario("TestS3::test_get_object_part")
def read_parts(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test.file"}
    case.match("multipart-upload", upload_in_parts(case, object_["Bucket"], "test.file", "test content 123", 2))
    case.step("head-object-part", "head_object", **object_, PartNumber=2)
    case.step("get-object-part", "get_object", **object_, PartNumber=2)
    case.step("get-object-part-with-checksum", "get_object", **object_, PartNumber=2, ChecksumMode="ENABLED")
    case.step("part-doesnt-exist", "get_object", **object_, PartNumber=10)
    case.step("part-with-range", "get_object", **object_, PartNumber=2, Range="bytes=0-8")
    whole = object_ | {"Key": "key-no-part"}
    case.do("put_object", **whole, Body="test-123")
    case.step("part-no-multipart", "get_object", **whole, PartNumber=2)
    case.step("get-obj-no-multipart", "get_object", **whole, PartNumber=1, ChecksumMode="ENABLED")


@scenario("TestS3::test_get_object_part_checksum", "COMPOSITE", "FULL_OBJECT")
def read_part_with_checksum(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-multipart-checksum"}
    options = {"ChecksumAlgorithm": "CRC32C", "ChecksumType": case.parameter}
    upload = object_ | {"UploadId": case.step("create-mpu-checksum", "create_multipart_upload", **object_, **options)["UploadId"]}
    part = case.step("upload-part", "upload_part", **upload, PartNumber=1, Body="test content 123", ChecksumAlgorithm="CRC32C")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32C": part["ChecksumCRC32C"]}]}
    case.step("complete-multipart-checksum", "complete_multipart_upload", **upload, MultipartUpload=parts)
    for name in ("head", "get"):
        case.step(f"{name}-object-part", f"{name}_object", **object_, PartNumber=1, ChecksumMode="ENABLED")


@scenario("TestS3::test_get_object_attributes")
def attributes(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "data.txt", b"69\n420\n")
    some = ["StorageClass", "ETag", "ObjectSize", "ObjectParts"]
    text = "upload-part-1" * 5
    read = {"operation": "get_object_attributes", "Bucket": bucket}
    case.step("object-attrs", **read, Key="data.txt", ObjectAttributes=[*some, "Checksum"])
    upload_in_parts(case, bucket, "one", text)
    case.step("object-attrs-multiparts-1-part", **read, Key="one", ObjectAttributes=some)
    upload_in_parts(case, bucket, "two", text, 2)
    case.step("object-attrs-multiparts-2-parts", **read, Key="two", ObjectAttributes=some, MaxParts=3)
    case.step("object-attrs-multiparts-2-parts-checksum", **read, Key="two", ObjectAttributes=[*some[:3], "Checksum"], MaxParts=3)


@scenario("TestS3::test_get_object_attributes_versioned")
def attributes_of_versions(case: Case) -> None:
    object_ = {"Bucket": case.versioned(case.bucket()), "Key": "key-attrs-versioned"}
    version = case.step("put-obj-v1", "put_object", **object_, Body=b"69\n420\n")["VersionId"]
    case.step("put-obj-v2", "put_object", **object_, Body=b"version 2")
    some = ["StorageClass", "ETag", "ObjectSize"]
    case.step("object-attrs", "get_object_attributes", **object_, ObjectAttributes=[*some, "ObjectParts", "Checksum"])
    case.step("delete-key", "delete_object", **object_)
    case.step("deleted-object-attrs", "get_object_attributes", **object_, ObjectAttributes=some)
    case.step("get-object-attrs-v1", "get_object_attributes", **object_, VersionId=version, ObjectAttributes=some)


@scenario("TestS3::test_get_object_attributes_with_space")
def attributes_with_blanks(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-attrs"}
    case.do("put_object", **object_, Body="test-body", ChecksumAlgorithm="SHA256")
    names = "ETag,Checksum,ObjectParts,StorageClass,ObjectSize"
    for step, value in (("with", names.replace(",", ", ")), ("without", names)):
        target = f"/{object_['Bucket']}/test-attrs?attributes"
        case.match(f"get-attrs-{step}-whitespace", case.raw_document(target, [("x-amz-object-attributes", value)]))
