"""Policies of buckets, the expected owner of a bucket, and ACLs of delete markers."""

import json

from ..case import Case, scenario

OTHER_ACCOUNT = "000000000002"
NO_ACCOUNT_IDS = ("0000", "0000000000020", "abcd", "aa000000000$")
POLICIES = "TestS3BucketPolicy::"


def public(bucket: str) -> str:
    """Returns a policy that lets everybody read the objects of a bucket."""
    statement = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def bucket_with_policy(case: Case) -> str:
    """Creates a bucket that everybody may read."""
    bucket = case.bucket()
    case.do("put_bucket_policy", Bucket=bucket, Policy=public(bucket))
    return bucket


def read_policy(case: Case, step: str, bucket: str, **options: str) -> None:
    """Reads a policy. The recordings have it as an object."""
    answer = case.call("get_bucket_policy", Bucket=bucket, **options)
    case.match(step, answer | ({"Policy": json.loads(answer["Policy"])} if "Policy" in answer else {}))


@scenario("TestS3::test_get_bucket_policy")
def get_policy(case: Case) -> None:
    bucket = case.bucket()
    read_policy(case, "get-bucket-policy-no-such-bucket-policy", bucket)
    case.do("put_bucket_policy", Bucket=bucket, Policy=public(bucket))
    read_policy(case, "get-bucket-policy", bucket)
    read_policy(case, "get-bucket-policy-with-expected-bucket-owner", bucket, ExpectedBucketOwner="000000000000")
    read_policy(case, "get-bucket-policy-with-expected-bucket-owner-error", bucket, ExpectedBucketOwner=OTHER_ACCOUNT)


@scenario("TestS3::test_put_bucket_policy")
def put_policy(case: Case) -> None:
    bucket = case.bucket()
    case.step("put-bucket-policy", "put_bucket_policy", Bucket=bucket, Policy=public(bucket))
    read_policy(case, "get-bucket-policy", bucket)


@scenario("TestS3::test_delete_bucket_policy")
def delete_policy(case: Case) -> None:
    bucket = bucket_with_policy(case)
    case.step("delete-bucket-policy", "delete_bucket_policy", Bucket=bucket)
    read_policy(case, "get-bucket-policy-no-such-bucket-policy", bucket)


@scenario("TestS3::test_put_bucket_policy_expected_bucket_owner")
def put_policy_of_owner(case: Case) -> None:
    bucket = case.bucket()
    put = {"Bucket": bucket, "Policy": public(bucket)}
    case.step("put-bucket-policy-with-expected-bucket-owner-error", "put_bucket_policy", **put, ExpectedBucketOwner=OTHER_ACCOUNT)
    case.step("put-bucket-policy-with-expected-bucket-owner", "put_bucket_policy", **put, ExpectedBucketOwner="000000000000")


@scenario("TestS3::test_delete_bucket_policy_expected_bucket_owner")
def delete_policy_of_owner(case: Case) -> None:
    bucket = bucket_with_policy(case)
    for step, owner in (("with-expected-bucket-owner-error", OTHER_ACCOUNT), ("invalid-bucket-owner", "invalid"), ("with-expected-bucket-owner", "000000000000")):
        case.step(f"delete-bucket-policy-{step}", "delete_bucket_policy", Bucket=bucket, ExpectedBucketOwner=owner)


@scenario("TestS3::test_get_bucket_policy_invalid_account_id", *NO_ACCOUNT_IDS)
def get_policy_of_nobody(case: Case) -> None:
    case.step("get-bucket-policy-invalid-bucket-owner", "get_bucket_policy", Bucket=case.bucket(), ExpectedBucketOwner=case.parameter)


@scenario("TestS3::test_put_bucket_policy_invalid_account_id", *NO_ACCOUNT_IDS)
def put_policy_of_nobody(case: Case) -> None:
    bucket = case.bucket()
    case.step("put-bucket-policy-invalid-bucket-owner", "put_bucket_policy", Bucket=bucket, Policy=public(bucket), ExpectedBucketOwner=case.parameter)


@scenario(f"{POLICIES}test_bucket_policy_crud")
def policy_life(case: Case) -> None:
    bucket = case.bucket()
    read_policy(case, "get-bucket-default-policy", bucket)
    case.step("put-bucket-policy", "put_bucket_policy", Bucket=bucket, Policy=public(bucket))
    read_policy(case, "get-bucket-policy", bucket)
    case.step("delete-bucket-policy", "delete_bucket_policy", Bucket=bucket)
    read_policy(case, "get-bucket-policy-after-delete", bucket)
    case.step("delete-bucket-policy-after-delete", "delete_bucket_policy", Bucket=bucket)


@scenario(f"{POLICIES}test_bucket_policy_exc")
def malformed_policies(case: Case) -> None:
    bucket = case.bucket()
    for step, text in (("put-empty-bucket-policy", ""), ("put-bucket-policy-randomstring", "invalid json"), ("put-bucket-policy-empty-json", "{}")):
        case.step(step, "put_bucket_policy", Bucket=bucket, Policy=text)


@scenario("TestS3::test_put_object_acl_on_delete_marker")
def acl_of_delete_marker(case: Case) -> None:
    object_ = {"Bucket": case.versioned(case.bucket()), "Key": "test-key-versioned"}
    case.step("put-obj-1", "put_object", **object_, Body=b"something")
    case.step("put-obj-2", "put_object", **object_, Body=b"something-v2")
    version = {"VersionId": case.step("delete-object", "delete_object", **object_)["VersionId"]}
    case.step("put-acl-delete-marker", "put_object_acl", **object_, ACL="private")
    case.step("get-acl-delete-marker", "get_object_acl", **object_)
    case.step("put-acl-delete-marker-version-id", "put_object_acl", **object_, **version, ACL="private")
    case.step("get-acl-delete-marker-version-id", "get_object_acl", **object_, **version)
