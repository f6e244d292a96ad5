"""Tags of buckets and objects."""

from ..case import Case, scenario

TWO = [("tag1", "tag1"), ("tag2", "")]


def tags(*pairs: tuple[str | None, str | None]) -> dict:
    """Returns a document of tags."""
    return {"TagSet": [{"Key": key, "Value": value} for key, value in pairs]}


@scenario("TestS3BucketObjectTagging::test_bucket_tagging_crud")
def bucket_tags(case: Case) -> None:
    bucket = case.bucket()
    case.step("get-bucket-tags-empty", "get_bucket_tagging", Bucket=bucket)
    case.step("put-bucket-tags", "put_bucket_tagging", Bucket=bucket, Tagging=tags(*TWO))
    case.step("get-bucket-tags", "get_bucket_tagging", Bucket=bucket)
    case.step("put-bucket-tags-overwrite", "put_bucket_tagging", Bucket=bucket, Tagging=tags(("tag3", "tag3")))
    case.step("get-bucket-tags-overwritten", "get_bucket_tagging", Bucket=bucket)
    case.step("delete-bucket-tags", "delete_bucket_tagging", Bucket=bucket)
    case.step("put-bucket-tags-empty", "put_bucket_tagging", Bucket=bucket, Tagging=tags())


def created(case: Case, step: str, bucket: str, *given: dict | None) -> None:
    """Creates a bucket with tags as a step."""
    value = None if given == (None,) else list(given)
    case.step(step, "create_bucket", Bucket=bucket, CreateBucketConfiguration={"Tags": value})


@scenario("TestS3BucketObjectTagging::test_create_bucket_with_tags")
def bucket_created_with_tags(case: Case) -> None:
    bucket = case.bucket_name()
    created(case, "create-bucket-with-tags", bucket, {"Key": "tag1", "Value": "value1"})
    case.step("get-bucket-tags", "get_bucket_tagging", Bucket=bucket)


@scenario("TestS3BucketObjectTagging::test_create_bucket_with_empty_tags")
def bucket_created_with_empty_tags(case: Case) -> None:
    bucket = case.bucket_name()
    created(case, "create-bucket-with-empty-tags", bucket)
    case.step("get-bucket-tags", "get_bucket_tagging", Bucket=bucket)
    created(case, "create-bucket-with-none-tags", bucket, None)


@scenario("TestS3BucketObjectTagging::test_create_bucket_with_tags_us_east_1_idempotency")
def bucket_created_again(case: Case) -> None:
    bucket = case.bucket_name()
    created(case, "create-bucket-with-tags", bucket, {"Key": "tag1", "Value": "value1"})
    case.step("get-bucket-tags", "get_bucket_tagging", Bucket=bucket)
    created(case, "create-bucket-different-tags", bucket, {"Key": "tag2", "Value": "value2"})
    case.step("create-bucket-with-no-tags", "create_bucket", Bucket=bucket)
    case.step("get-bucket-tags-after-re-create", "get_bucket_tagging", Bucket=bucket)
    created(case, "create-bucket-with-same-tags", bucket, {"Key": "tag1", "Value": "value1"})
    created(case, "create-bucket-with-empty-tags", bucket)
    case.step("get-bucket-tags-after-create-empty", "get_bucket_tagging", Bucket=bucket)


@scenario("TestS3BucketObjectTagging::test_create_bucket_with_tags_exc")
def bucket_created_with_bad_tags(case: Case) -> None:
    bucket = case.bucket_name()
    one = {"Key": "key1", "Value": "value1"}
    created(case, "tags-key-none", bucket, {"Key": None, "Value": "value1"})
    created(case, "tags-value-none", bucket, {"Key": "key1", "Value": None})
    created(case, "tags-key-aws-prefix", bucket, {"Key": "aws:test", "Value": "value1"})
    created(case, "tags-key-aws-duplicated-key", bucket, one, one)
    created(case, "tags-key-aws-bad-value", bucket, {"Key": "test", "Value": "value1,value2"})
    created(case, "tags-key-aws-bad-key", bucket, {"Key": "test,test2", "Value": "value1"})


@scenario("TestS3BucketObjectTagging::test_bucket_tagging_exc")
def bucket_tags_without_bucket(case: Case) -> None:
    bucket = case.bucket_name()
    case.step("get-no-bucket-tags", "get_bucket_tagging", Bucket=bucket)
    case.step("delete-no-bucket-tags", "delete_bucket_tagging", Bucket=bucket)
    case.step("put-no-bucket-tags", "put_bucket_tagging", Bucket=bucket, Tagging=tags())


@scenario("TestS3BucketObjectTagging::test_put_bucket_tagging_none_value")
def bucket_tags_without_set(case: Case) -> None:
    bucket = case.bucket()
    case.step("put-bucket-tags-origin", "put_bucket_tagging", Bucket=bucket, Tagging=tags(("tag3", "tag3")))
    case.step("put-none-tag-set", "put_bucket_tagging", Bucket=bucket, Tagging={"TagSet": None})
    case.step("no-such-tag-set", "get_bucket_tagging", Bucket=bucket)


@scenario("TestS3BucketObjectTagging::test_object_tagging_crud")
def object_tags(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-object-tagging"}
    case.step("put-object", "put_object", **object_, Body="test-tagging")
    case.step("get-object-tags-empty", "get_object_tagging", **object_)
    case.step("put-object-tags", "put_object_tagging", **object_, Tagging=tags(*TWO))
    case.step("get-object-tags", "get_object_tagging", **object_)
    case.step("put-object-tags-overwrite", "put_object_tagging", **object_, Tagging=tags(("tag3", "tag3")))
    case.step("get-object-tags-overwritten", "get_object_tagging", **object_)
    case.step("get-obj-after-tags", "get_object", **object_)
    case.step("delete-object-tags", "delete_object_tagging", **object_)
    case.step("get-object-tags-deleted", "get_object_tagging", **object_)
    case.step("get-obj-after-tags-deleted", "get_object", **object_)


@scenario("TestS3BucketObjectTagging::test_object_tagging_exc")
def object_tags_errors(case: Case) -> None:
    bucket, missing = case.bucket(), case.bucket_name()
    for name, where in (("bucket", missing), ("key", bucket)):
        object_ = {"Bucket": where, "Key": "fake-key"}
        case.step(f"get-no-{name}-tags", "get_object_tagging", **object_)
        # Strict mode refuses the writes; the reads that follow are compared nevertheless.
        for verb, more in (("delete", {}), ("put", {"Tagging": tags()})):
            case.match(f"{verb}-no-{name}-tags", case.call(f"{verb}_object_tagging", **object_, **more))
    case.step("put-obj-duplicate-tagging", "put_object", **object_, Body=b"", Tagging="key1=val1&key1=val2")
    case.step("put-obj-wrong-format", "put_object", **object_, Body=b"", Tagging="key1=val1,key2=val2")


@scenario("TestS3BucketObjectTagging::test_put_object_tagging_none_value")
def object_tags_without_set(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-empty-tag-set"}
    case.do("put_object", **object_, Body="test-tagging")
    case.step("put-none-tag-set", "put_object_tagging", **object_, Tagging={"TagSet": None})
    case.step("get-object-tags-none", "get_object_tagging", **object_)


@scenario("TestS3BucketObjectTagging::test_object_tagging_versioned")
def object_tags_of_versions(case: Case) -> None:
    object_ = {"Bucket": case.versioned(case.bucket()), "Key": "test-version-tagging"}
    first = case.step("put-obj-0", "put_object", **object_, Body="test-0", Tagging="test_tag=tagv1")["VersionId"]
    case.step("put-obj-1", "put_object", **object_, Body="test-1")
    case.step("put-object-tags-current-version", "put_object_tagging", **object_, Tagging=tags(("tag3", "tag3")))
    case.step("get-object-tags-current-version", "get_object_tagging", **object_)
    case.step("get-object-tags-previous-version", "get_object_tagging", **object_, VersionId=first)
    case.step("put-object-tags-previous-version", "put_object_tagging", **object_, VersionId=first, Tagging=tags(("tag1", "tag1")))
    case.step("get-object-tags-previous-version-again", "get_object_tagging", **object_, VersionId=first)
    case.do("delete_object_tagging", **object_)
    case.step("get-object-tags-deleted-current", "get_object_tagging", **object_)
    case.do("delete_object_tagging", **object_, VersionId=first)
    case.step("get-object-tags-previous-version-deleted", "get_object_tagging", **object_)
    marker = case.step("put-delete-marker", "delete_object", **object_)["VersionId"]
    for name, version in (("id", {"VersionId": marker}), ("latest", {})):
        case.step(f"put-object-tags-delete-marker-{name}", "put_object_tagging", **object_, **version, Tagging=tags(("tag1", "tag1")))
        case.step(f"get-object-tags-delete-marker-{name}", "get_object_tagging", **object_, **version)
        case.step(f"delete-object-tags-delete-marker-{name}", "delete_object_tagging", **object_, **version)


def sorted_tags(case: Case, step: str, object_: dict) -> None:
    """Compares the tags in the order of their keys. Those of a query string have no order on AWS."""
    answer = case.call("get_object_tagging", **object_)
    case.match(step, answer | {"TagSet": sorted(answer.get("TagSet", []), key=lambda tag: tag["Key"])} if "TagSet" in answer else answer)


@scenario("TestS3BucketObjectTagging::test_put_object_with_tags")
def object_put_with_tags(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-put-object-tagging"}
    case.step("put-object", "put_object", **object_, Body="test-tagging", Tagging="tag1=tag1&tag2=tag2&tag=")
    sorted_tags(case, "get-object-tags", object_)
    case.step("put-object-tags", "put_object_tagging", **object_, Tagging=tags(("tag3", "tag3")))
    case.step("get-object-tags-override", "get_object_tagging", **object_)
    case.step("head-obj", "head_object", **object_)
    case.step("get-obj", "get_object", **object_)
    case.do("put_object", **object_, Body="", Tagging="wrongquery&wrongagain")
    sorted_tags(case, "get-object-tags-wrong-format-qs", object_)
    case.do("put_object", **object_, Body="", Tagging="key1&&&key2")
    sorted_tags(case, "get-object-tags-wrong-format-qs-2", object_)


@scenario("TestS3BucketObjectTagging::test_head_object_with_tags")
def head_of_tagged(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-put-object-tagging"}
    case.step("put-object", "put_object", **object_, Body="test-tagging", Tagging="tag1=tag1&tag2=tag2&tag=")
    case.step("head-obj-after-create", "head_object", **object_)
    case.step("put-object-tags", "put_object_tagging", **object_, Tagging=tags(("tag3", "tag3")))
    case.step("head-obj-after-tagging", "head_object", **object_)
    case.do("put_object_tagging", **object_, Tagging=tags(*((name, name) for name in ("tag3", "tag4", "tag5"))))
    case.step("head-obj-after-overwrite", "head_object", **object_)
    case.do("put_object_tagging", **object_, Tagging=tags())
    case.step("head-obj-after-removal", "head_object", **object_)


@scenario("TestS3BucketObjectTagging::test_object_tags_delete_or_overwrite_object")
def tags_end_with_object(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-put-object-tagging-kept"}
    case.do("put_object", **object_, Body="create", Tagging="tag1=val1")
    case.step("get-object-after-creation", "get_object_tagging", **object_)
    case.do("put_object", **object_, Body="overwrite")
    case.step("get-object-after-overwrite", "get_object_tagging", **object_)
    case.do("put_object_tagging", **object_, Tagging=tags(("tag3", "tag3")))
    case.do("delete_object", **object_)
    case.do("put_object", **object_, Body="recreate")
    case.step("get-object-after-recreation", "get_object_tagging", **object_)


@scenario("TestS3BucketObjectTagging::test_tagging_validation")
def bad_tags(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "tagging-validation"}
    case.do("put_object", **object_, Body=b"")
    bad = {
        "duplicate-keys": [("Key1", "Val1"), ("Key1", "Val1")], "invalid-key": [("Key1,Key2", "Val1")], "none-key": [(None, "Val1")],
        "invalid-value": [("Key1", "Val1,Val2")], "none-value": [("key1", None)], "aws-prefixed": [("aws:prefixed", "Val1")],
        "invalid-field": [("Key1,Key2", "Val1")],
    }
    for name, pairs in bad.items():
        if name != "invalid-field":
            case.step(f"put-bucket-tags-{name}", "put_bucket_tagging", Bucket=object_["Bucket"], Tagging=tags(*pairs))
        if name not in ("invalid-key", "invalid-value"):
            case.step(f"put-object-tags-{name}", "put_object_tagging", **object_, Tagging=tags(*pairs))
