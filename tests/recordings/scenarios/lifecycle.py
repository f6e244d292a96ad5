"""Lifecycle rules of buckets, and what objects say about them."""

import datetime as dt

from ..case import Case, scenario

KEY = "test-object-expiry"


def rule(name: str, filter_: dict | None = None, **actions: object) -> dict:
    """Returns a rule that expires objects after seven days, unless it has other actions."""
    return {"ID": name, "Filter": filter_ or {}, "Status": "Enabled"} | (actions or {"Expiration": {"Days": 7}})


WHOLE = rule("wholebucket", {"Prefix": ""})


def configured(case: Case, *rules: dict) -> str:
    """Returns a new bucket with rules, after a comparison of what is read."""
    bucket = case.bucket()
    set_rules(case, bucket, *rules)
    return bucket


def set_rules(case: Case, bucket: str, *rules: dict) -> None:
    """Sets rules and compares what is read."""
    case.do("put_bucket_lifecycle_configuration", Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)})
    case.step("get-bucket-lifecycle-conf", "get_bucket_lifecycle_configuration", Bucket=bucket)


@scenario("TestS3BucketLifecycle::test_delete_bucket_lifecycle_configuration")
def rules_deleted(case: Case) -> None:
    bucket = case.bucket()
    case.step("get-bucket-lifecycle-exc-1", "get_bucket_lifecycle_configuration", Bucket=bucket)
    case.step("delete-bucket-lifecycle-no-bucket", "delete_bucket_lifecycle", Bucket=bucket)
    set_rules(case, bucket, WHOLE)
    case.do("delete_bucket_lifecycle", Bucket=bucket)
    case.step("get-bucket-lifecycle-exc-2", "get_bucket_lifecycle_configuration", Bucket=bucket)


@scenario("TestS3BucketLifecycle::test_delete_lifecycle_configuration_on_bucket_deletion")
def rules_end_with_bucket(case: Case) -> None:
    bucket = configured(case, WHOLE)
    case.do("delete_bucket", Bucket=bucket)
    case.do("create_bucket", Bucket=bucket)
    case.step("get-bucket-lifecycle-exc", "get_bucket_lifecycle_configuration", Bucket=bucket)


@scenario("TestS3BucketLifecycle::test_put_bucket_lifecycle_conf_exc")
def bad_rules(case: Case) -> None:
    bucket = case.bucket()
    seven = {"Expiration": {"Days": 7}}
    tag = {"Key": "testlifecycle", "Value": "positive"}
    two_tags = {"And": {"Tags": [tag, tag | {"Value": "positive-two"}]}}
    bad = {
        "missing-id": seven | {"Status": "Enabled"}, "missing-filter": seven | {"ID": "wholebucket", "Status": "Enabled"},
        "missing-noncurrent-version-expiration-data": rule("wholebucket", **seven, NoncurrentVersionExpiration={}),
        "wrong-filter-and-plus-prefix": rule("wholebucket", {"And": {"Prefix": "test"}, "Prefix": ""}),
        "wrong-filter-and-and-object-size": rule("wholebucket", {"ObjectSizeGreaterThan": 500, "Prefix": ""}),
        "wrong-data-no-midnight": rule("wrong-data", Expiration={"Date": dt.datetime(2023, 1, 1, 2, 2, tzinfo=dt.UTC)}),
        "duplicate-tag-keys": rule("duplicate-tag-keys", two_tags, Expiration={"Days": 1}),
        "expired-delete-marker-and-days": rule("expired-delete-marker-and-days", Expiration={"Days": 1, "ExpiredObjectDeleteMarker": True}),
    }
    for step, one in bad.items():
        case.step(step, "put_bucket_lifecycle_configuration", Bucket=bucket, LifecycleConfiguration={"Rules": [one]})


@scenario("TestS3BucketLifecycle::test_bucket_lifecycle_configuration_object_expiry")
def expiry(case: Case) -> None:
    object_ = {"Bucket": configured(case, rule("rule_number_one", {"Prefix": ""})), "Key": KEY}
    case.do("put_object", **object_, Body=b"test")
    case.step("head-object-expiry", "head_object", **object_)
    case.step("get-object-expiry", "get_object", **object_)


@scenario("TestS3BucketLifecycle::test_bucket_lifecycle_configuration_object_expiry_versioned")
def expiry_of_versions(case: Case) -> None:
    bucket = case.versioned(case.bucket())
    set_rules(case, bucket, rule("rule2", Expiration={"Days": 3}, NoncurrentVersionExpiration={"NoncurrentDays": 1}))
    object_ = {"Bucket": bucket, "Key": KEY}
    first = case.do("put_object", **object_, Body=b"test")["VersionId"]
    case.step("head-object-expiry", "head_object", **object_)
    second = case.do("put_object", **object_, Body=b"test")["VersionId"]
    case.step("head-object-expiry-noncurrent", "head_object", **object_, VersionId=first)
    case.step("head-object-expiry-current-with-version-id", "head_object", **object_, VersionId=second)
    case.step("head-object-expiry-current-without-version-id", "head_object", **object_)


@scenario("TestS3BucketLifecycle::test_object_expiry_after_bucket_lifecycle_configuration")
def expiry_of_older(case: Case) -> None:
    bucket = case.bucket()
    object_ = {"Bucket": bucket, "Key": KEY}
    case.step("put-object-before", "put_object", **object_, Body=b"test")
    set_rules(case, bucket, rule("rule3"))
    case.step("head-object-expiry-before", "head_object", **object_)
    case.step("put-object-after", "put_object", **object_, Body=b"test")
    case.step("head-object-expiry-after", "head_object", **object_)


@scenario("TestS3BucketLifecycle::test_bucket_lifecycle_multiple_rules")
def several_rules(case: Case) -> None:
    rules = [rule(name, {"Prefix": prefix}) for name, prefix in (("rule_one", "testobject"), ("rule_two", "test"), ("rule_three", "t"))]
    bucket = configured(case, *rules)
    for step, key in (("match-both-rules", "testobject-expiry"), ("match-rule-2", "test-one-rule"), ("no-match", "no-rules")):
        case.step(f"put-object-{step}", "put_object", Bucket=bucket, Key=key, Body=b"test")


@scenario("TestS3BucketLifecycle::test_bucket_lifecycle_tag_rules")
def rules_by_tag(case: Case) -> None:
    one, two = {"Key": "testlifecycle", "Value": "positive"}, {"Key": "testlifecycletwo", "Value": "positive-two"}
    bucket = configured(case, rule("rule_one", {"Tag": one}), rule("rule_two", {"And": {"Tags": [one, two]}}))
    for step, key, tags in (
        ("match-both-rules", "testobject-expiry", "testlifecycle=positive&testlifecycletwo=positivetwo"),
        ("match-rule-1", "test-one-rule", "testlifecycle=positive"), ("no-match", "no-rules", "testlifecycle2=positivetwo"), ("no-tags", "no-tags", ""),
    ):
        sent = {"Tagging": tags} if tags else {}
        case.step(f"put-object-{step}", "put_object", Bucket=bucket, Key=key, Body=b"test", **sent)
        case.step(f"get-object-{step}", "get_object", Bucket=bucket, Key=key)


@scenario("TestS3BucketLifecycle::test_lifecycle_expired_object_delete_marker")
def rule_for_markers(case: Case) -> None:
    bucket = configured(case, rule("rule-marker", Expiration={"ExpiredObjectDeleteMarker": True}))
    object_ = {"Bucket": bucket, "Key": "test-expired-object-delete-marker"}
    case.step("put-object", "put_object", **object_, Body=b"test")
    case.step("head-object", "head_object", **object_)


@scenario("TestS3BucketLifecycle::test_s3_transition_default_minimum_object_size")
def minimum_size(case: Case) -> None:
    put = {"Bucket": case.bucket(), "LifecycleConfiguration": {"Rules": [WHOLE]}}
    for step, value in (("varies-by-storage", "varies_by_storage_class"), ("default", None), ("all-storage", "all_storage_classes_128K"), ("bad-value", "value")):
        sent = {"TransitionDefaultMinimumObjectSize": value} if value else {}
        case.step(step, "put_bucket_lifecycle_configuration", **put, **sent)
        if step != "bad-value":
            case.step(f"get-{step}", "get_bucket_lifecycle_configuration", Bucket=put["Bucket"])
