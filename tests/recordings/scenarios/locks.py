"""Object Lock: configuration, retention, legal holds."""

from ..case import Case, scenario

ENABLED = {"ObjectLockEnabled": "Enabled"}


def locked_bucket(case: Case) -> str:
    """Returns a new bucket with Object Lock."""
    return case.bucket(ObjectLockEnabledForBucket=True)


def configure(case: Case, step: str, bucket: str, configuration: dict) -> None:
    """Sets the configuration of Object Lock as a step. A refusal does not end the scenario."""
    case.match(step, case.call("put_object_lock_configuration", Bucket=bucket, ObjectLockConfiguration=configuration))


def default(**retention: object) -> dict:
    """Returns a configuration with a default retention."""
    return ENABLED | {"Rule": {"DefaultRetention": retention}}


@scenario("TestS3ObjectLock::test_put_object_lock_configuration_on_existing_bucket")
def lock_existing_bucket(case: Case) -> None:
    bucket = case.bucket()
    read = {"operation": "get_object_lock_configuration", "Bucket": bucket}
    case.step("get-object-lock-existing-bucket-no-config", **read)
    configure(case, "put-object-lock-existing-bucket-no-versioning", bucket, ENABLED)
    case.step("suspended-versioning", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    configure(case, "put-object-lock-existing-bucket-versioning-disabled", bucket, ENABLED)
    case.step("enabled-versioning", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    configure(case, "put-object-lock-existing-bucket-enabled", bucket, ENABLED)
    case.step("get-object-lock-existing-bucket-enabled", **read)


@scenario("TestS3ObjectLock::test_get_put_object_lock_configuration")
def lock_configuration(case: Case) -> None:
    bucket = locked_bucket(case)
    read = {"operation": "get_object_lock_configuration", "Bucket": bucket}
    case.step("get-lock-config-start", **read)
    configure(case, "put-lock-config", bucket, default(Mode="GOVERNANCE", Days=1))
    case.step("get-lock-config", **read)
    configure(case, "put-lock-config-enabled", bucket, ENABLED)
    case.step("get-lock-config-only-enabled", **read)


@scenario("TestS3ObjectLock::test_put_object_lock_configuration_exc")
def bad_lock_configurations(case: Case) -> None:
    bucket = locked_bucket(case)
    whole = default(Mode="GOVERNANCE", Days=1)
    bad = {
        "no-enabled": {"Rule": whole["Rule"]}, "empty": {}, "empty-rule": ENABLED | {"Rule": {}}, "empty-retention": default(),
        "no-days": default(Mode="GOVERNANCE"), "bad-mode": default(Mode="BAD-VALUE", Days=1),
        "both-days-years": default(Mode="GOVERNANCE", Days=1, Years=1),
    }
    for name, configuration in bad.items():
        configure(case, f"put-lock-config-{name}", bucket, configuration)


@scenario("TestS3ObjectLock::test_get_object_lock_configuration_exc")
def no_lock_configuration(case: Case) -> None:
    case.step("get-lock-config-no-enabled", "get_object_lock_configuration", Bucket=case.bucket())
    case.step("get-lock-config-bucket-not-exists", "get_object_lock_configuration", Bucket=case.bucket_name())


@scenario("TestS3ObjectLock::test_disable_versioning_on_locked_bucket")
def suspend_locked_bucket(case: Case) -> None:
    bucket = locked_bucket(case)
    case.step("disable-versioning-on-locked-bucket", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    case.step("enable-versioning-again-on-locked-bucket", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@scenario("TestS3ObjectLock::test_delete_object_with_no_locking")
def bypass_without_lock(case: Case) -> None:
    object_ = {"Bucket": case.bucket(), "Key": "test-delete-no-lock"}
    case.do("put_object", **object_, Body=b"test")
    case.step("delete-object-bypass-no-lock", "delete_object", **object_, BypassGovernanceRetention=True)
    case.step("delete-object-bypass-no-lock-false", "delete_object", **object_, BypassGovernanceRetention=False)
    several = {"Bucket": object_["Bucket"], "Delete": {"Objects": [{"Key": object_["Key"]}]}}
    case.step("delete-objects-bypass-no-lock", "delete_objects", **several, BypassGovernanceRetention=True)
