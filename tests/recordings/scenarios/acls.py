"""ACLs and ownership that AWS refuses."""

from ..case import Case, scenario

GROUPS = "http://acs.amazonaws.com/groups/s3"


def check_wrong_acls(case: Case, operation: str, step: str, target: dict[str, str], owner: dict) -> None:
    """Sets wrong ACLs of a bucket or an object. `step` is the beginning of the names of the steps."""

    def put(name: str, **options: object) -> None:
        case.step(f"{step}{name}", operation, **target, **options)

    def put_policy(number: int, grantee: dict, permission: str, **options: object) -> None:
        put(f"-acp-acl-{number}", AccessControlPolicy={"Grants": [{"Grantee": grantee, "Permission": permission}], **options})

    put("-grant-acl-fake-uri", GrantWrite=f'uri="{GROUPS}/FakeGroup"')
    put("-grant-acl-fake-key", GrantWrite='fakekey="1234"')
    put("-grant-acl-wrong-id", GrantWrite='id="wrong-id"')
    delivery = {"Type": "Group", "URI": f"{GROUPS}/LogDelivery"}
    put_policy(1, delivery, "WRITE")
    put_policy(2, delivery, "WRONG-PERMISSION", Owner=owner)
    put_policy(3, delivery, "FULL_CONTROL", Owner={"ID": "wrong-id"})
    put_policy(4, {"Type": "Group", "URI": f"{GROUPS}/FakeGroup"}, "FULL_CONTROL", Owner=owner)
    put_policy(5, {"Type": "CanonicalUser", "ID": "wrong-id"}, "FULL_CONTROL", Owner=owner)
    put_policy(6, {"Type": "BadType", "ID": "wrong-id"}, "FULL_CONTROL", Owner=owner)
    put("-empty-acp", AccessControlPolicy={})
    put("-two-type-acl", ACL="private", GrantRead=f'uri="{GROUPS}/LogDelivery"')
    grant = {"Grantee": owner | {"Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}
    put("-two-type-acl-acp", ACL="private", AccessControlPolicy={"Owner": owner, "Grants": [grant]})


@scenario("TestS3::test_s3_bucket_acl_exceptions")
def wrong_acls_of_a_bucket(case: Case) -> None:
    target = {"Bucket": case.bucket()}
    case.step("put-bucket-canned-acl", "put_bucket_acl", **target, ACL="fake-acl")
    check_wrong_acls(case, "put_bucket_acl", "put-bucket", target, case.do("list_buckets")["Owner"])
    case.step("put-bucket-empty", "put_bucket_acl", **target)


@scenario("TestS3::test_s3_object_acl_exceptions")
def wrong_acls_of_an_object(case: Case) -> None:
    target = {"Bucket": case.bucket(), "Key": "object-key-acl"}
    case.do("put_object", **target)
    case.step("put-object-canned-acl", "put_object", **target, ACL="fake-acl")
    case.step("put-object-acl-canned-acl", "put_object_acl", **target, ACL="fake-acl")
    check_wrong_acls(case, "put_object_acl", "put-object", target, case.do("list_buckets")["Owner"])
    case.step("put-object-acl-empty", "put_object_acl", **target)


@scenario("TestS3BucketOwnershipControls::test_bucket_ownership_controls_exc")
def wrong_ownership(case: Case) -> None:
    bucket = case.bucket()
    case.step("default-ownership", "get_bucket_ownership_controls", Bucket=bucket)
    enforced, random = {"ObjectOwnership": "BucketOwnerEnforced"}, {"ObjectOwnership": "RandomValue"}
    for step, rules in (("multiple-rules", [enforced, enforced]), ("wrong-value", [random]), ("empty-rule", [])):
        case.step(f"put-ownership-{step}", "put_bucket_ownership_controls", Bucket=bucket, OwnershipControls={"Rules": rules})
    for step, value in (("wrong", "RandomValue"), ("non", "")):
        case.step(f"ownership-{step}-value-at-creation", "create_bucket", Bucket=case.bucket_name(), ObjectOwnership=value)
