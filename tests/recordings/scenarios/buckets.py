"""Buckets: lists, locations, errors of missing and existing ones, settings that every bucket has."""

import boto3
from botocore.client import BaseClient
from botocore.config import Config

from ..case import Case, scenario


@scenario("TestS3ListBuckets::test_list_buckets_by_prefix_with_case_sensitivity")
def list_by_prefix(case: Case) -> None:
    bucket = case.bucket()
    case.bucket()
    # Names are compared as a whole here, so no other name may begin with this one.
    case.step("list-objects-by-prefix-empty", "list_buckets", Prefix=bucket.upper())
    case.step("list-objects-by-prefix-not-empty", "list_buckets", Prefix=bucket)


@scenario("TestS3ListBuckets::test_list_buckets_with_max_buckets")
def list_one(case: Case) -> None:
    case.bucket()
    case.bucket()
    case.step("list-objects-with-max-buckets", "list_buckets", MaxBuckets=1)


@scenario("TestS3ListBuckets::test_list_buckets_when_continuation_token_is_empty")
def list_with_empty_token(case: Case) -> None:
    case.bucket()
    case.bucket()
    case.step("list-objects-with-empty-continuation-token", "list_buckets", ContinuationToken="", MaxBuckets=1)


@scenario("TestS3ListBuckets::test_list_buckets_with_continuation_token")
def list_next(case: Case) -> None:
    for _ in range(3):
        case.bucket()
    token = case.do("list_buckets", MaxBuckets=1)["ContinuationToken"]
    case.step("list-objects-with-continuation", "list_buckets", MaxBuckets=1, ContinuationToken=token)


@scenario("TestS3ListBuckets::test_list_buckets_by_bucket_region")
def list_by_region(case: Case) -> None:
    bucket = case.bucket(CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    case.step("list-objects-by-bucket-region-empty", "list_buckets", BucketRegion="eu-central-1", Prefix=bucket)
    case.step("list-objects-by-bucket-region-not-empty", "list_buckets", BucketRegion="us-west-2", Prefix=bucket)


@scenario("TestS3ListBuckets::test_list_buckets_region_validation")
def list_by_unknown_region(case: Case) -> None:
    case.step("bad-region", "list_buckets", BucketRegion="eu-east-1")


@scenario("TestS3::test_create_bucket_with_eu_location_constraint")
def european(case: Case) -> None:
    bucket = case.bucket(CreateBucketConfiguration={"LocationConstraint": "EU"})
    case.step("get-bucket-location", "get_bucket_location", Bucket=bucket)
    case.step("list-bucket-response", "list_buckets", Prefix=bucket)


@scenario("TestS3::test_create_bucket_head_bucket")
def create_and_head(case: Case) -> None:
    first, second = case.bucket_name(), case.bucket_name()
    case.step("create_bucket", "create_bucket", Bucket=first)
    case.step("create_bucket_location_constraint", "create_bucket", Bucket=second, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    for step, bucket in (("head_bucket", first), ("head_bucket_2", second)):
        answer = case.step(step, "head_bucket", Bucket=bucket)
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        case.match(f"{step}_filtered_header", {name: value for name, value in headers.items() if name.startswith("x-amz") or name == "content-type"})
    case.step("head_bucket_not_exist", "head_bucket", Bucket=case.bucket_name())


@scenario("TestS3::test_region_header_exists_outside_us_east_1")
def region_of_answers(case: Case) -> None:
    bucket = case.bucket(CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    answers = case.step("head_bucket", "head_bucket", Bucket=bucket), case.step("list_objects_v2", "list_objects_v2", Bucket=bucket)
    found = [answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region") for answer in answers]
    if found != ["us-west-2"] * 2:
        case.differ("list_objects_v2", "x-amz-bucket-region", ["us-west-2"] * 2, found)


@scenario("TestS3::test_create_bucket_with_existing_name")
def created_again(case: Case) -> None:
    bucket = case.bucket(CreateBucketConfiguration={"LocationConstraint": "us-west-1"})
    for region in ("us-west-1", "us-east-2"):
        case.step(f"create-bucket-{region}", "create_bucket", Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})


def unchecked(case: Case) -> BaseClient:
    """Returns a client that sends any bucket's name."""
    keys = case.http.credential
    client = boto3.client(
        "s3", endpoint_url=f"http://{case.http.authority}", region_name="us-east-1", aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key, config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    return client


@scenario("TestS3::test_s3_uppercase_bucket_name")
def capital_letters(case: Case) -> None:
    case.s3 = unchecked(case)
    case.step("uppercase-bucket", "create_bucket", Bucket="TESTUPPERCASE-1")


@scenario("TestS3::test_get_object_no_such_bucket")
def get_without_bucket(case: Case) -> None:
    case.step("expected_error", "get_object", Bucket=case.bucket_name(), Key="foobar")


@scenario("TestS3::test_delete_bucket_no_such_bucket")
def delete_without_bucket(case: Case) -> None:
    case.step("expected_error", "delete_bucket", Bucket="does-not-exist-localstack-test")


@scenario("TestS3::test_get_bucket_notification_configuration_no_such_bucket")
def notifications_without_bucket(case: Case) -> None:
    case.step("expected_error", "get_bucket_notification_configuration", Bucket=case.bucket_name())


@scenario("TestS3::test_bucket_availability")
def settings_without_bucket(case: Case) -> None:
    bucket = case.bucket_name()
    case.step("bucket-lifecycle", "get_bucket_lifecycle_configuration", Bucket=bucket)
    case.step("bucket-replication", "get_bucket_replication", Bucket=bucket)


@scenario("TestS3::test_bucket_exists")
def acl_and_cors(case: Case) -> None:
    bucket = case.bucket()
    rule = {"AllowedMethods": ["GET", "POST", "PUT", "DELETE"], "AllowedOrigins": ["localhost"]}
    case.do("put_bucket_cors", Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    case.step("get-bucket-cors", "get_bucket_cors", Bucket=bucket)
    case.step("get-bucket-acl", "get_bucket_acl", Bucket=bucket)
    case.step("get-bucket-not-exists", "get_bucket_acl", Bucket="bucket-not-exists")


@scenario("TestS3::test_put_object_tagging_empty_list")
def tags_of_object(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "my-key"}
    case.do("put_object", **object_, Body=b"abcdefgh")
    case.step("created-object-tags", "get_object_tagging", **object_)
    tags = [{"Key": "tag1", "Value": "tag1"}, {"Key": "tag2", "Value": ""}]
    for step, given in (("updated", tags), ("deleted", [])):
        case.do("put_object_tagging", **object_, Tagging={"TagSet": given})
        case.step(f"{step}-object-tags", "get_object_tagging", **object_)


@scenario("TestS3::test_put_object_storage_class", "STANDARD-True")
def standard_class(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-put-object-storage-class"}
    case.do("put_object", **object_, Body=b"body-test", StorageClass="STANDARD")
    case.step("get-object-storage-class", "get_object_attributes", **object_, ObjectAttributes=["StorageClass"])
    case.step("get-object", "get_object", **object_)


def aes256(bucket_key: bool) -> dict:
    """Returns a configuration of encryption with a key of the server."""
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": bucket_key}
    return {"Rules": [rule]}


@scenario("TestS3BucketEncryption::test_s3_default_bucket_encryption")
def encryption_by_default(case: Case) -> None:
    bucket = case.bucket()
    case.step("default-bucket-encryption", "get_bucket_encryption", Bucket=bucket)
    case.step("delete-bucket-encryption", "delete_bucket_encryption", Bucket=bucket)
    case.step("delete-bucket-encryption-idempotent", "delete_bucket_encryption", Bucket=bucket)
    case.step("get-bucket-no-encryption", "get_bucket_encryption", Bucket=bucket)


@scenario("TestS3BucketEncryption::test_s3_bucket_encryption_sse_s3")
def encrypted_by_bucket(case: Case) -> None:
    bucket = case.bucket()
    case.step("put-bucket-enc", "put_bucket_encryption", Bucket=bucket, ServerSideEncryptionConfiguration=aes256(bucket_key=True))
    object_ = {"Bucket": bucket, "Key": "key-encrypted"}
    case.step("put-object-encrypted", "put_object", **object_, Body="test-encrypted")
    case.step("head-object-encrypted", "head_object", **object_)
    case.step("get-object-encrypted", "get_object", **object_)


@scenario("TestS3::test_copy_in_place_with_bucket_encryption")
def copied_in_place_with_encryption(case: Case) -> None:
    bucket = case.bucket()
    case.step("put-bucket-encryption", "put_bucket_encryption", Bucket=bucket, ServerSideEncryptionConfiguration=aes256(bucket_key=False))
    case.step("put-obj", "put_object", Bucket=bucket, Key="k", Body=b"")
    case.step("copy-obj", "copy_object", Bucket=bucket, Key="k", CopySource=f"{bucket}/k")


@scenario("TestS3BucketEncryption::test_s3_default_bucket_encryption_exc")
def encryption_refused(case: Case) -> None:
    missing, bucket = case.bucket_name(), case.bucket()
    case.step("get-bucket-enc-no-bucket", "get_bucket_encryption", Bucket=missing)
    case.match("delete-bucket-enc-no-bucket", case.call("delete_bucket_encryption", Bucket=missing))
    aes, kms = ({"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": name}} for name in ("AES256", "aws:kms"))
    with_key = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256", "KMSMasterKeyID": "randomkeyid"}}
    for step, where, rules in (
        ("enc-no-bucket", missing, []), ("encryption-no-rules", bucket, []), ("encryption-two-rules", bucket, [kms | {"BucketKeyEnabled": True}, aes]),
        ("encryption-kms-with-aes", bucket, [with_key]),
    ):
        case.match(f"put-bucket-{step}", case.call("put_bucket_encryption", Bucket=where, ServerSideEncryptionConfiguration={"Rules": rules}))
