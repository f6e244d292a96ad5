"""ACLs and settings of buckets, which tools read and set by habit. Extended mode only, beside what stays refused."""

import pytest

from harness.accounts import create_account, statement
from harness.boto import make_client, refused
from harness.expect import assert_error
from harness.s3 import S3, object_target, xml
from harness.server import Cairn

FIXED = {
    "accelerate": "<AccelerateConfiguration/>", "logging": "<BucketLoggingStatus/>", "notification": "<NotificationConfiguration/>",
    "ownershipControls": "<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>",
    "requestPayment": "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
}
OWNERSHIP = FIXED["ownershipControls"].encode()
EVERYONE = "http://acs.amazonaws.com/groups/global/AllUsers"
NONE = {
    "policy": "NoSuchBucketPolicy", "policyStatus": "NoSuchBucketPolicy",
    "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
    "encryption": "ServerSideEncryptionConfigurationNotFoundError", "website": "NoSuchWebsiteConfiguration",
    "replication": "ReplicationConfigurationNotFoundError",
}
CHANGES = [
    ("PUT", name) for name in (
        "accelerate", "logging", "notification", "requestPayment", "website", "replication",
    )
] + [("DELETE", name) for name in ("website", "replication")]


@pytest.mark.parametrize("name", FIXED)
def test_settings_that_every_bucket_has(extended: S3, extended_bucket: str, name: str):
    """The document is that of AWS, in its namespace."""
    answer = extended.request("GET", f"/{extended_bucket}?{name}")
    body = answer.body.decode().split("\n", 1)[1].replace(' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"', "")
    root = FIXED[name].strip("</>").split(">")[0]
    assert (answer.status, body) == (200, FIXED[name].replace(f"<{root}/>", f"<{root}></{root}>"))
    assert_error(extended.request("GET", f"/no-such-bucket?{name}"), 404, "NoSuchBucket")


@pytest.mark.parametrize("name", NONE)
def test_settings_that_no_bucket_has(extended: S3, extended_bucket: str, name: str):
    """A tool that knows the code goes on."""
    assert_error(extended.request("GET", f"/{extended_bucket}?{name}"), 404, NONE[name])
    assert_error(extended.request("GET", f"/no-such-bucket?{name}"), 404, "NoSuchBucket")


@pytest.mark.parametrize(("method", "name"), CHANGES)
def test_changes_of_settings_stay_refused(extended: S3, extended_bucket: str, method: str, name: str):
    """The answers above are true only as long as nothing can be set."""
    assert_error(extended.request(method, f"/{extended_bucket}?{name}", body=b"<Any/>" if method == "PUT" else b""), 501, "NotImplemented")
    assert extended.list_all(extended_bucket) == {}


def test_ownership_without_acls_can_be_set_and_deleted(extended: S3, extended_bucket: str):
    """As Terraform does. It stays what it is, and one with ACLs is refused."""
    boto = make_client(extended)

    def put(ownership: str):
        return boto.put_bucket_ownership_controls(Bucket=extended_bucket, OwnershipControls={"Rules": [{"ObjectOwnership": ownership}]})

    def ownership() -> str:
        return boto.get_bucket_ownership_controls(Bucket=extended_bucket)["OwnershipControls"]["Rules"][0]["ObjectOwnership"]

    put("BucketOwnerEnforced")
    assert ownership() == "BucketOwnerEnforced"
    with refused(501, "NotImplemented"):
        put("ObjectWriter")
    assert_error(extended.request("PUT", f"/{extended_bucket}?ownershipControls", body=b"<Any/>"), 400, "MalformedXML")
    boto.delete_bucket_ownership_controls(Bucket=extended_bucket)
    boto.delete_bucket_ownership_controls(Bucket=extended_bucket)
    assert ownership() == "BucketOwnerEnforced"
    for method in ("PUT", "DELETE"):
        assert_error(extended.request(method, "/no-such-bucket?ownershipControls", body=OWNERSHIP if method == "PUT" else b""), 404, "NoSuchBucket")


def test_wrong_acls_are_answered_as_on_aws(extended: S3, extended_bucket: str):
    """The answers are those of the recordings of AWS."""
    boto = make_client(extended)
    boto.put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    boto.put_object(Bucket=extended_bucket, Key="k", Body=b"x")
    for target in (f"/{extended_bucket}?acl", f"/{extended_bucket}/k?acl"):
        for body, headers, code in (
            (b"<AccessControlPolicy/>", [], "MalformedACLError"), (b"<Access", [], "MalformedACLError"),
            (b"<AccessControlPolicy/>", [("x-amz-acl", "private")], "UnexpectedContent"),
        ):
            assert_error(extended.request("PUT", target, headers, body), 400, code)
    marker = boto.delete_object(Bucket=extended_bucket, Key="k")["VersionId"]
    with refused(404, "NoSuchKey"):
        boto.get_object_acl(Bucket=extended_bucket, Key="k")
    with refused(405, "MethodNotAllowed"):
        boto.get_object_acl(Bucket=extended_bucket, Key="k", VersionId=marker)
    with refused(405, "MethodNotAllowed"):
        boto.put_object_acl(Bucket=extended_bucket, Key="k", ACL="private")


def test_the_owner_has_full_control(extended: S3, extended_bucket: str):
    """Buckets, objects and versions have the same ACL, and it can be set again."""
    boto = make_client(extended)
    boto.put_object(Bucket=extended_bucket, Key="k", Body=b"x")
    for found in (boto.get_bucket_acl(Bucket=extended_bucket), boto.get_object_acl(Bucket=extended_bucket, Key="k")):
        owner, (grant,) = found["Owner"], found["Grants"]
        assert grant == {"Grantee": owner | {"Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}
    policy = {"Owner": owner, "Grants": found["Grants"]}
    boto.put_bucket_acl(Bucket=extended_bucket, AccessControlPolicy=policy)
    boto.put_object_acl(Bucket=extended_bucket, Key="k", AccessControlPolicy=policy)
    public = {"Type": "Group", "URI": EVERYONE}
    with refused(400, "AccessControlListNotSupported"):
        boto.put_bucket_acl(
            Bucket=extended_bucket, AccessControlPolicy=policy | {"Grants": [{"Grantee": public, "Permission": "READ"}]}
        )
    with refused(404, "NoSuchKey"):
        boto.get_object_acl(Bucket=extended_bucket, Key="missing")
    with refused(404, "NoSuchKey"):
        boto.put_object_acl(Bucket=extended_bucket, Key="missing", ACL="private")
    assert boto.get_object(Bucket=extended_bucket, Key="k")["Body"].read() == b"x"


@pytest.mark.parametrize("acl", ["private", "bucket-owner-full-control"])
def test_canned_acls_that_mean_nothing_are_accepted(extended: S3, extended_bucket: str, acl: str):
    """Many clients send one with every write."""
    boto = make_client(extended)
    named = {"Bucket": extended_bucket, "Key": "k", "ACL": acl}
    boto.put_object(**named, Body=b"x")
    boto.copy_object(**named | {"Key": "copy"}, CopySource={"Bucket": extended_bucket, "Key": "k"})
    boto.abort_multipart_upload(
        Bucket=extended_bucket, Key="k", UploadId=boto.create_multipart_upload(**named)["UploadId"]
    )
    boto.put_object_acl(**named)
    boto.put_bucket_acl(Bucket=extended_bucket, ACL="private")
    boto.create_bucket(Bucket=f"{extended_bucket}-{acl[:6]}", ACL="private", ObjectOwnership="BucketOwnerEnforced")
    assert sorted(extended.list_all(extended_bucket)) == ["copy", "k"]


@pytest.mark.parametrize(("name", "value", "refusal"), [
    ("x-amz-acl", "public-read", (400, "AccessControlListNotSupported")),
    ("x-amz-grant-read", f"uri={EVERYONE}", (400, "AccessControlListNotSupported")), ("x-amz-object-ownership", "ObjectWriter", (501, "NotImplemented")),
])
def test_other_acls_are_refused(extended: S3, extended_bucket: str, name: str, value: str, refusal: tuple[int, str]):
    """An object that its writer believes to be public would be reported as lost; the reverse would be worse."""
    for method, target in (
        ("PUT", object_target(extended_bucket, "k")), ("PUT", f"/{extended_bucket}?acl"), ("PUT", f"/{extended_bucket}-new"),
    ):
        of_new_bucket = (400, "InvalidBucketAclWithObjectOwnership") if refusal[0] == 400 else refusal
        expected = of_new_bucket if target.endswith("-new") else refusal
        root = assert_error(extended.request(method, target, [(name, value)]), *expected)
        assert "polic" in root.findtext("Message")
    assert extended.list_all(extended_bucket) == {}
    assert_error(extended.request("PUT", f"/{extended_bucket}?acl"), 400, "MissingSecurityHeader")
    both = extended.request("PUT", f"/{extended_bucket}?acl", [("x-amz-acl", "private")], b"<AccessControlPolicy/>")
    assert_error(both, 400, "UnexpectedContent")


def test_settings_need_the_right_to_manage_the_bucket(extended_store: Cairn, extended: S3, extended_bucket: str):
    """As all settings of a bucket. The ACL of an object is read with the right to read the object."""
    extended.put(extended_bucket, "k")
    manager = create_account(extended_store, statement("allow", "ManageBucket", f"bucket:{extended_bucket}")).s3
    reader = create_account(extended_store, statement("allow", ["GetObject", "ListBucket"], f"bucket:{extended_bucket}/*")).s3
    for name in (*FIXED, *NONE, "acl"):
        assert manager.request("GET", f"/{extended_bucket}?{name}").status == (404 if name in NONE else 200), name
        assert_error(reader.request("GET", f"/{extended_bucket}?{name}"), 403, "AccessDenied")
    acl = object_target(extended_bucket, "k", "acl")
    assert xml(reader.request("GET", acl)).findtext("AccessControlList/Grant/Permission") == "FULL_CONTROL"
    assert_error(manager.request("GET", acl), 403, "AccessDenied")
    assert_error(reader.request("PUT", acl, [("x-amz-acl", "private")]), 403, "AccessDenied")
