"""Versions: deletes and markers, suspended buckets, the versioning configuration."""

from ..case import Case, scenario

# Of the form of AWS's version ids, but none that was ever given.
FOREIGN = "HPniJFCxqTsMuIH9KX8K8wEjNUgmABCD"


@scenario("TestS3BucketCRUD::test_delete_bucket_with_objects")
def delete_bucket_with_objects(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "test-delete", b"test-delete")
    case.step("delete-with-obj", "delete_bucket", Bucket=bucket)
    case.step("delete-obj", "delete_object", Bucket=bucket, Key="test-delete")
    case.step("delete-bucket", "delete_bucket", Bucket=bucket)


@scenario("TestS3BucketCRUD::test_delete_versioned_bucket_with_objects")
def delete_versioned_bucket(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    object_ = {"Bucket": bucket, "Key": "test-delete-versioned"}
    made = case.do("put_object", **object_, Body=b"test-delete")
    marker = case.do("delete_object", **object_)
    case.step("delete-with-obj-and-delete-marker", "delete_bucket", Bucket=bucket)
    case.step("delete-obj-by-version", "delete_object", **object_, VersionId=made["VersionId"])
    case.step("delete-with-only-delete-marker", "delete_bucket", Bucket=bucket)
    case.step("delete-marker-by-version", "delete_object", **object_, VersionId=marker["VersionId"])
    case.step("success-delete-bucket", "delete_bucket", Bucket=bucket)


@scenario("TestS3ObjectCRUD::test_delete_object")
def delete_object(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-delete"}
    case.step("put-object", "put_object", **object_, Body=b"test-delete")
    case.step("delete-object", "delete_object", **object_)
    case.step("delete-nonexistent-object", "delete_object", **object_)
    case.step("delete-nonexistent-object-versionid", "delete_object", **object_, VersionId=FOREIGN)


def by_key(answer: dict) -> dict:
    """Returns an answer of DeleteObjects with its entries in the order of their keys; AWS has no order."""
    return {name: sorted(value, key=lambda one: one["Key"]) if name in ("Deleted", "Errors") else value for name, value in answer.items()}


def delete_several(case: Case, step: str, bucket: str, *objects: dict) -> dict:
    """Deletes several objects in one request and compares the sorted answer."""
    answer = case.call("delete_objects", Bucket=bucket, Delete={"Objects": list(objects)})
    case.match(step, by_key(answer), reads=False)
    return answer


@scenario("TestS3ObjectCRUD::test_delete_objects")
def delete_objects(case: Case) -> None:
    bucket, key = case.bucket(), "test-delete"
    case.step("put-object", "put_object", Bucket=bucket, Key=key, Body=b"test-delete")
    delete_several(case, "delete-object-wrong-version-id", bucket, {"Key": key, "VersionId": FOREIGN})
    delete_several(case, "delete-objects", bucket, {"Key": key}, {"Key": "c-wrong-key"}, {"Key": "a-wrong-key"})


@scenario("TestS3ObjectCRUD::test_delete_objects_versioned")
def delete_objects_versioned(case: Case) -> None:
    bucket, key = case.versioned(case.bucket()), "test-delete"
    version = case.step("put-object", "put_object", Bucket=bucket, Key=key, Body=b"test-delete")["VersionId"]
    answer = delete_several(case, "delete-objects-no-version-id", bucket, {"Key": key}, {"Key": "wrongkey"}, {"Key": "wrongkey-x"})
    marker = by_key(answer)["Deleted"][0]["DeleteMarkerVersionId"]
    delete_several(case, "delete-objects-marker", bucket, {"Key": key, "VersionId": marker})
    delete_several(case, "delete-objects-wrong-version-id", bucket, {"Key": key, "VersionId": FOREIGN}, {"Key": "wrong-key-2", "VersionId": FOREIGN})
    delete_several(case, "delete-objects-version-id", bucket, {"Key": key, "VersionId": version})


@scenario("TestS3ObjectCRUD::test_delete_object_versioned")
def delete_object_versioned(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    object_ = {"Bucket": bucket, "Key": "test-delete"}
    version = case.step("put-object", "put_object", **object_, Body=b"test-delete")["VersionId"]
    marker = case.step("delete-object", "delete_object", **object_)["VersionId"]
    case.step("get-deleted-object", "get_object", **object_)
    case.step("get-object-with-version", "get_object", **object_, VersionId=version)
    case.step("get-delete-marker", "get_object", **object_, VersionId=marker)
    case.step("delete-object-2", "delete_object", **object_)
    case.step("list-object-versions", "list_object_versions", Bucket=bucket, Prefix="test-delete")
    case.step("delete-delete-marker", "delete_object", **object_, VersionId=marker)
    case.step("delete-object-version", "delete_object", **object_, VersionId=version)
    case.step("get-deleted-object-with-version", "get_object", **object_, VersionId=version)
    case.step("delete-with-bad-version", "delete_object", **object_, VersionId=version[:-4] + "ABCD")
    case.step("delete-wrong-key", "delete_object", Bucket=bucket, Key="wrong-key")


@scenario("TestS3ObjectCRUD::test_get_object_with_version_unversioned_bucket")
def version_of_unversioned(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-version"}
    case.step("put-object", "put_object", **object_, Body=b"test-version")
    case.step("get-obj-with-version", "get_object", **object_, VersionId=FOREIGN)
    case.step("get-obj-with-null-version", "get_object", **object_, VersionId="null")


@scenario("TestS3ObjectCRUD::test_put_object_on_suspended_bucket")
def put_on_suspended(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    object_ = {"Bucket": bucket, "Key": "test-version"}
    for number in range(3):
        case.step(f"put-object-{number}", "put_object", **object_, Body=f"test-version-{number}")
    case.step("list-enabled", "list_object_versions", Bucket=bucket)
    case.versioned(bucket, "Suspended")
    case.step("list-suspended", "list_object_versions", Bucket=bucket)
    case.step("put-object-suspended", "put_object", **object_, Body="test-version-suspended")
    case.step("list-suspended-after-put", "list_object_versions", Bucket=bucket)
    case.step("put-object-suspended-overwrite", "put_object", **object_, Body="test-version-suspended")
    case.step("list-suspended-after-overwrite", "list_object_versions", Bucket=bucket)
    case.step("get-object-current", "get_object", **object_)


@scenario("TestS3ObjectCRUD::test_delete_object_on_suspended_bucket")
def delete_on_suspended(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    object_ = {"Bucket": bucket, "Key": "test-delete-suspended"}
    for number in range(2):
        case.step(f"put-object-{number}", "put_object", **object_, Body=f"test-version-{number}")
    case.versioned(bucket, "Suspended")
    case.step("list-suspended", "list_object_versions", Bucket=bucket)
    case.step("delete-object-no-version", "delete_object", **object_)
    case.step("list-suspended-delete", "list_object_versions", Bucket=bucket)
    case.step("put-object-suspended", "put_object", **object_, Body="test-version-suspended-after-delete")
    case.step("list-suspended-put", "list_object_versions", Bucket=bucket)
    case.step("delete-object-no-version-after-put", "delete_object", **object_)
    case.step("list-suspended-after-put", "list_object_versions", Bucket=bucket)


@scenario("TestS3ObjectCRUD::test_list_object_versions_order_unversioned")
def versions_of_unversioned(case: Case) -> None:
    bucket = case.bucket()
    case.step("list-empty", "list_object_versions", Bucket=bucket)
    for step, key in (("put-object", "a-test-object-1"), ("put-object-3", "c-test-object-3"), ("put-object-2", "b-test-object-2")):
        case.step(step, "put_object", Bucket=bucket, Key=key, Body=key[2:])
    case.step("list-object-versions", "list_object_versions", Bucket=bucket)


@scenario("TestS3BucketVersioning::test_bucket_versioning_crud")
def versioning_configuration(case: Case) -> None:
    bucket, missing = case.bucket(), case.bucket_name()

    def put(step: str, name: str = bucket, **configuration: str) -> None:
        case.step(step, "put_bucket_versioning", Bucket=name, VersioningConfiguration=configuration)

    case.step("get-versioning-before", "get_bucket_versioning", Bucket=bucket)
    put("put-versioning-suspended-before", Status="Suspended")
    case.step("get-versioning-after-suspended", "get_bucket_versioning", Bucket=bucket)
    put("put-versioning-enabled-lowercase", Status="enabled")
    put("put-versioning-enabled-capitalized", Status="Enabled")
    case.step("get-versioning-after-enabled", "get_bucket_versioning", Bucket=bucket)
    put("put-versioning-suspended-after", Status="Suspended")
    put("put-versioning-disabled", Status="Disabled")
    put("put-versioning-empty")
    put("put-versioning-no-bucket", missing, Status="Suspended")
    case.step("get-versioning-no-bucket", "get_bucket_versioning", Bucket=missing)


@scenario("TestS3BucketVersioning::test_object_version_id_format")
def version_id_format(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    case.step("put-object", "put_object", Bucket=bucket, Key="test-version-id")
