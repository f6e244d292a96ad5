"""Lists of objects, versions, uploads and parts: markers, pages, prefixes, encodings."""

from urllib.parse import quote

from ..case import Case, scenario

CONTENT = b"content 123"
FOLDERS = ["folder/aSubfolder/subFile1", "folder/aSubfolder/subFile2", "folder/file1", "folder/file2"]
NESTED = ["test/foo/bar/123", "test/foo/bar/456", "test/bar/foo/123"]
UNUSUAL = ["file%2Fname", "test@key/", "test%123", "test%percent", "test key/", "test key//", "test%123/", "a/%F0%9F%98%80/"]


def bucket_with(case: Case, keys: list[str], *, versions: bool = False) -> str:
    """Returns a new bucket with an object under each key."""
    bucket = case.bucket()
    if versions:
        case.versioned(bucket)
    for key in keys:
        case.put(bucket, key, CONTENT)
    return bucket


@scenario("TestS3ListObjects::test_list_objects_with_prefix", "", "/", "%2F")
def objects_with_prefix(case: Case) -> None:
    bucket = bucket_with(case, NESTED[:1])
    case.step("list-objects", "list_objects", Bucket=bucket, Prefix="test/", Delimiter=case.parameter, MaxKeys=1, EncodingType="url")
    if case.parameter == "%2F":
        case.match("list-objects-no-encoding", case.raw_document(f"/{bucket}?prefix=test&delimiter=%2F"))


@scenario("TestS3ListObjects::test_list_objects_next_marker")
def objects_next_marker(case: Case) -> None:
    bucket = bucket_with(case, ["test_0", "test_1", "test_2"])
    case.step("list-objects-all", "list_objects", Bucket=bucket)
    first = case.step("list-objects-max-1", "list_objects", Bucket=bucket, MaxKeys=1, Delimiter="/")
    case.step("list-objects-rest", "list_objects", Bucket=bucket, MaxKeys=1, Marker=first.get("NextMarker", "test_0"))
    case.step("list-objects-marker-empty", "list_objects", Bucket=bucket, MaxKeys=1, Marker="")


@scenario("TestS3ListObjects::test_s3_list_objects_empty_marker")
def objects_empty_marker(case: Case) -> None:
    case.step("list-objects", "list_objects", Bucket=case.bucket(), Marker="")


@scenario("TestS3ListObjects::test_list_objects_marker_common_prefixes")
def objects_marker_prefixes(case: Case) -> None:
    bucket = bucket_with(case, FOLDERS)
    page = {"Bucket": bucket, "Prefix": "folder/", "Delimiter": "/", "MaxKeys": 1}
    case.step("list-objects-all-keys", "list_objects", Bucket=bucket)
    first = case.step("list-objects-start", "list_objects", **page)
    second = case.step("list-objects-next-1", "list_objects", **page, Marker=first.get("NextMarker", ""))
    case.step("list-objects-end", "list_objects", **page, Marker=second.get("NextMarker", ""))
    case.step("list-objects-manual-first-file", "list_objects", **page, Marker=FOLDERS[0])


@scenario("TestS3ListObjectsV2::test_list_objects_v2_with_prefix")
def objects_v2_with_prefix(case: Case) -> None:
    bucket = bucket_with(case, NESTED)
    for number, prefix in enumerate(("test/", "test/foo", "test/foo/bar"), 1):
        case.step(f"list-objects-v2-{number}", "list_objects_v2", Bucket=bucket, Prefix=prefix, EncodingType="url")
    case.match("list-objects-v2-no-encoding", case.raw_document(f"/{bucket}?list-type=2&prefix=test%2Ffoo"))


@scenario("TestS3ListObjectsV2::test_list_objects_v2_with_prefix_and_delimiter")
def objects_v2_with_delimiter(case: Case) -> None:
    bucket = bucket_with(case, NESTED)
    page = {"Bucket": bucket, "EncodingType": "url", "Delimiter": "/"}
    case.step("list-objects-v2-1", "list_objects_v2", **page, Prefix="test/")
    case.step("list-objects-v2-1-with-max-keys", "list_objects_v2", **page, Prefix="test/", MaxKeys=1)
    case.step("list-objects-v2-2", "list_objects_v2", **page, Prefix="test/foo")
    case.step("list-objects-v2-3", "list_objects_v2", **page, Prefix="test/foo/bar")


@scenario("TestS3ListObjectsV2::test_list_objects_v2_continuation_start_after")
def objects_v2_start_after(case: Case) -> None:
    bucket = bucket_with(case, [f"test_{number}" for number in range(12)])
    first = case.step("list-objects-v2-max-5", "list_objects_v2", Bucket=bucket, MaxKeys=5)
    token = first["NextContinuationToken"]
    case.step("list-objects-v2-rest", "list_objects_v2", Bucket=bucket, ContinuationToken=token)
    case.step("list-objects-start-after", "list_objects_v2", Bucket=bucket, StartAfter="test_7", MaxKeys=2)
    case.step("list-objects-start-after-token", "list_objects_v2", Bucket=bucket, StartAfter="test_7", ContinuationToken=token)
    case.step("exc-continuation-token", "list_objects_v2", Bucket=bucket, ContinuationToken="")


@scenario("TestS3ListObjectsV2::test_list_objects_v2_continuation_common_prefixes")
def objects_v2_continuation_prefixes(case: Case) -> None:
    bucket = bucket_with(case, FOLDERS)
    page = {"Bucket": bucket, "Prefix": "folder/", "Delimiter": "/", "MaxKeys": 1}
    case.step("list-objects-v2-all-keys", "list_objects_v2", Bucket=bucket)
    first = case.step("list-objects-v2-start", "list_objects_v2", **page)
    second = case.step("list-objects-v2-next-1", "list_objects_v2", **page, ContinuationToken=first["NextContinuationToken"])
    case.step("list-objects-v2-end", "list_objects_v2", **page, ContinuationToken=second["NextContinuationToken"])


@scenario("TestS3ListObjectsV2::test_list_objects_v2_continuation_token_safe_chars")
def objects_v2_unusual_keys(case: Case) -> None:
    months = [f"date=2026-0{month}-01/" for month in (1, 2, 3, 5)]
    bucket = bucket_with(case, [])
    for key in [*UNUSUAL, *months]:
        case.put(bucket, key)
    after = months[1]
    first = case.step("list-objects-v2-max-5", "list_objects_v2", Bucket=bucket, MaxKeys=5)
    case.step("list-objects-v2-rest", "list_objects_v2", Bucket=bucket, ContinuationToken=first["NextContinuationToken"])
    # Without a value boto3 sends no encoding type.
    case.step("list-objects-start-after", "list_objects_v2", Bucket=bucket, StartAfter=after, MaxKeys=2, EncodingType=None)
    case.step("list-objects-start-after-url-type", "list_objects_v2", Bucket=bucket, StartAfter=after, MaxKeys=2, EncodingType="url")
    encoded = case.step("list-objects-start-after-encoded", "list_objects_v2", Bucket=bucket, StartAfter=quote(after), MaxKeys=2)
    token = encoded["NextContinuationToken"]
    case.step("list-objects-start-after-token", "list_objects_v2", Bucket=bucket, StartAfter=after, ContinuationToken=token, MaxKeys=2)
    case.step("list-objects-continuation-token-2", "list_objects_v2", Bucket=bucket, ContinuationToken=token, MaxKeys=2)


@scenario("TestS3ListObjectsV2::test_list_ops_encoding_type_validation", "list_objects_v2", "list_objects", "list_object_versions", "list_multipart_uploads")
def encoding_types(case: Case) -> None:
    bucket = case.bucket()
    if case.parameter == "list_object_versions":
        case.versioned(bucket)
    case.step(f"{case.parameter}-error-wrong-value", case.parameter, Bucket=bucket, EncodingType="value")
    case.step(f"{case.parameter}-error-empty-value", case.parameter, Bucket=bucket, EncodingType="")


@scenario("TestS3ListObjectVersions::test_list_objects_versions_markers")
def versions_markers(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    keys = ["test_0", "test_1", "test_2"]
    made = [case.put(bucket, key, b"version 1") for key in keys]
    made.append(case.put(bucket, keys[2], b"version 2"))
    made += [case.do("delete_object", Bucket=bucket, Key=key) for key in keys]
    made += [case.put(bucket, key, b"version 2") for key in keys[:2]]
    ids = [answer["VersionId"] for answer in made]
    case.match("version-order", {"Versions": [{"VersionId": one} for one in ids]})
    case.step("list-objects-versions-all", "list_object_versions", Bucket=bucket)
    first = case.step("list-objects-versions-5", "list_object_versions", Bucket=bucket, MaxKeys=5)
    key, version = first["NextKeyMarker"], first["NextVersionIdMarker"]
    page = {"Bucket": bucket, "MaxKeys": 1}
    case.step("list-objects-next-key-only", "list_object_versions", **page, KeyMarker=key)
    case.step("list-objects-next-key-last", "list_object_versions", **page, KeyMarker=keys[-1])
    case.step("list-objects-next-version-only", "list_object_versions", **page, VersionIdMarker=version)
    case.step("list-objects-both-markers", "list_object_versions", **page, KeyMarker=key, VersionIdMarker=version)
    case.step("list-objects-last-key-last-version", "list_object_versions", **page, KeyMarker=keys[-1], VersionIdMarker=ids[3])
    case.step("list-objects-next-key-empty", "list_object_versions", **page, KeyMarker="")


@scenario("TestS3ListObjectVersions::test_list_object_versions_pagination_common_prefixes")
def versions_prefix_pages(case: Case) -> None:
    bucket = bucket_with(case, FOLDERS, versions=True)
    page = {"Bucket": bucket, "Prefix": "folder/", "Delimiter": "/", "MaxKeys": 1}
    case.step("list-object-versions-all-keys", "list_object_versions", Bucket=bucket)
    first = case.step("list-object-versions-start", "list_object_versions", **page)
    second = case.step("list-object-versions-next-1", "list_object_versions", **page, KeyMarker=first["NextKeyMarker"])
    case.step("list-object-versions-end", "list_object_versions", **page, KeyMarker=second["NextKeyMarker"])
    case.step("list-object-versions-manual-first-file", "list_object_versions", **page, KeyMarker=FOLDERS[0])


@scenario("TestS3ListObjectVersions::test_list_objects_versions_with_prefix")
def versions_with_prefix(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    for key, body in (("dir/test", "content key1-v1"), ("dir/test", "content key-1v2"), ("dir/subdir/test2", "content key2-v1"), ("dir/subdir/test2", "content key2-v2")):
        case.put(bucket, key, body)
    prefixes = ("dir/", "dir/s", "dir/test", "dir/subdir", "dir/subdir/", "dir/subdir/test2")
    for number, prefix in enumerate(prefixes, 1):
        case.step(f"list-object-version-{number}", "list_object_versions", Bucket=bucket, Delimiter="/", Prefix=prefix)
    case.match("list-objects-versions-no-encoding", case.raw_document(f"/{bucket}?versions&prefix=dir%2Fsubdir&delimiter=%2F"))


@scenario("TestS3ListObjectVersions::test_list_objects_versions_with_prefix_only_and_pagination")
def versions_of_one_prefix(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    for key in ["prefixed_key"] * 5 + ["non_prefixed_key"]:
        case.put(bucket, key)
    page = {"Bucket": bucket, "Prefix": "prefix"}
    case.step("list-object-version-prefix-full", "list_object_versions", **page)
    first = case.step("list-object-version-prefix-page-1", "list_object_versions", **page, MaxKeys=3)
    markers = {"KeyMarker": first["NextKeyMarker"], "VersionIdMarker": first["NextVersionIdMarker"]}
    case.step("list-object-version-prefix-key-marker-only", "list_object_versions", **page, MaxKeys=4, KeyMarker=first["NextKeyMarker"])
    case.step("list-object-version-prefix-page-2", "list_object_versions", **page, MaxKeys=5, **markers)
    for version in first["Versions"]:
        case.do("delete_object", Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
    case.step("list-object-version-prefix-page-2-after-delete", "list_object_versions", **page, MaxKeys=5, **markers)


@scenario("TestS3ListMultipartUploads::test_list_multiparts_next_marker")
def uploads_next_marker(case: Case) -> None:
    bucket = case.bucket()
    page = {"Bucket": bucket, "MaxUploads": 1}
    case.step("list-multiparts-empty", "list_multipart_uploads", Bucket=bucket)
    keys = ["test_c", "test_b", "test_a"]
    ids = [case.do("create_multipart_upload", Bucket=bucket, Key=key)["UploadId"] for key in [*keys, keys[-1], keys[-1]]]
    case.match("upload-ids-order", {"UploadIds": [{"UploadId": one} for one in ids]})
    case.step("list-multiparts-all", "list_multipart_uploads", Bucket=bucket)
    first = case.step("list-multiparts-max-1", "list_multipart_uploads", **page)
    key, upload = first["NextKeyMarker"], first["NextUploadIdMarker"]
    case.step("list-multiparts-next-key-only", "list_multipart_uploads", **page, KeyMarker=key)
    case.step("list-multiparts-next-key-last", "list_multipart_uploads", **page, KeyMarker=keys[0])
    case.step("list-multiparts-next-upload-only", "list_multipart_uploads", **page, UploadIdMarker=upload)
    case.step("list-multiparts-both-markers", "list_multipart_uploads", **page, KeyMarker=key, UploadIdMarker=upload)
    case.step("list-multiparts-both-markers-2", "list_multipart_uploads", **page, KeyMarker=key, UploadIdMarker=ids[-1])
    case.step("list-multiparts-get-last-upload-no-truncate", "list_multipart_uploads", **page, KeyMarker=keys[1], UploadIdMarker=ids[1])
    case.step("list-multiparts-wrong-id-for-key", "list_multipart_uploads", **page, KeyMarker=keys[0], UploadIdMarker=ids[1])
    case.step("list-multiparts-next-key-empty", "list_multipart_uploads", **page, KeyMarker="")


@scenario("TestS3ListMultipartUploads::test_list_multiparts_with_prefix_and_delimiter")
def uploads_with_prefix(case: Case) -> None:
    bucket = case.bucket()
    for key in NESTED:
        case.do("create_multipart_upload", Bucket=bucket, Key=key)
    for number, prefix in enumerate(("test/", "test/foo/", "test/foo/bar"), 1):
        case.step(f"list-multiparts-{number}", "list_multipart_uploads", Bucket=bucket, Prefix=prefix, EncodingType="url", Delimiter="/")
    case.match("list-multiparts-no-encoding", case.raw_document(f"/{bucket}?uploads&prefix=test%2Ffoo"))


@scenario("TestS3ListMultipartUploads::test_list_multipart_uploads_marker_common_prefixes")
def uploads_marker_prefixes(case: Case) -> None:
    bucket = case.bucket()
    for key in FOLDERS:
        case.do("create_multipart_upload", Bucket=bucket, Key=key)
    page = {"Bucket": bucket, "Prefix": "folder/", "Delimiter": "/", "MaxUploads": 1}
    case.step("list-multiparts-start", "list_multipart_uploads", **page)
    case.step("list-multiparts-manual-prefix", "list_multipart_uploads", **page, KeyMarker="folder/aSubfolder/")
    case.step("list-multiparts-manual-first-file", "list_multipart_uploads", **page, KeyMarker=FOLDERS[0])


@scenario("TestS3ListParts::test_list_parts_pagination")
def parts_pages(case: Case) -> None:
    key = "test-list-part-pagination"
    bucket = case.bucket()
    upload = {"Bucket": bucket, "Key": key, "UploadId": case.do("create_multipart_upload", Bucket=bucket, Key=key)["UploadId"]}
    case.step("list-parts-empty", "list_parts", **upload)
    for number in (1, 2):
        case.do("upload_part", **upload, PartNumber=number, Body=b"data")
    case.step("list-parts-all", "list_parts", **upload)
    first = case.step("list-parts-1", "list_parts", **upload, MaxParts=1)
    case.step("list-parts-next", "list_parts", **upload, MaxParts=1, PartNumberMarker=first["NextPartNumberMarker"])
    case.step("list-parts-wrong-part", "list_parts", **upload, MaxParts=1, PartNumberMarker=10)


@scenario("TestS3ListParts::test_list_parts_empty_part_number_marker")
def parts_empty_marker(case: Case) -> None:
    key = "test-list-part-empty-marker"
    bucket = case.bucket()
    upload = {"Bucket": bucket, "Key": key, "UploadId": case.do("create_multipart_upload", Bucket=bucket, Key=key)["UploadId"]}
    case.do("upload_part", **upload, PartNumber=1, Body=b"data")
    case.step("list-parts-empty-marker", "list_parts", **upload, PartNumberMarker="")
    case.step("list-parts-empty-max-parts", "list_parts", **upload, MaxParts="")


@scenario("TestS3ListParts::test_list_parts_via_object_attrs_pagination")
def parts_by_attributes(case: Case) -> None:
    key = "test-object-attrs-pagination"
    bucket = case.bucket()
    started = case.do("create_multipart_upload", Bucket=bucket, Key=key, ChecksumAlgorithm="SHA256")
    upload = {"Bucket": bucket, "Key": key, "UploadId": started["UploadId"]}
    parts = []
    for number in (1, 2):
        sent = case.do("upload_part", **upload, PartNumber=number, Body=b"a" * (5_242_880 + 1), ChecksumAlgorithm="SHA256")
        parts.append({"PartNumber": number, "ETag": sent["ETag"], "ChecksumSHA256": sent["ChecksumSHA256"]})
    case.step("list-parts", "list_parts", **upload)
    case.step("complete-mpu", "complete_multipart_upload", **upload, MultipartUpload={"Parts": parts})
    wanted = {"Bucket": bucket, "Key": key, "ObjectAttributes": ["ObjectParts"]}
    # The recording has the whole list a second time where its name says one part.
    case.step("get-object-attrs-all", "get_object_attributes", **wanted)
    case.step("get-object-attrs-1", "get_object_attributes", **wanted)
    marker = case.call("get_object_attributes", **wanted, MaxParts=1).get("ObjectParts", {}).get("NextPartNumberMarker", 1)
    case.step("get-object-attrs-next", "get_object_attributes", **wanted, MaxParts=1, PartNumberMarker=marker)
    case.step("get-object-attrs-wrong-part", "get_object_attributes", **wanted, MaxParts=1, PartNumberMarker=10)
