"""Retention and legal holds of objects."""

import datetime as dt

from ..case import Case, scenario
from .locks import default, locked_bucket

FUTURE = dt.datetime(2040, 1, 1, tzinfo=dt.UTC)
GOVERNANCE = {"Mode": "GOVERNANCE", "RetainUntilDate": FUTURE}


def soon(**delta: float) -> dt.datetime:
    """Returns a time from now on."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(**delta)


def locked(minutes: float = 10) -> dict:
    """Returns the parameters that lock a new object."""
    return {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": soon(minutes=minutes)}


def retain(case: Case, step: str, object_: dict, retention: dict = GOVERNANCE, **options: object) -> None:
    """Sets a retention as a step."""
    case.step(step, "put_object_retention", **object_, Retention=retention, **options)


@scenario("TestS3ObjectLockRetention::test_s3_object_retention_exc")
def retention_refused(case: Case) -> None:
    bucket = locked_bucket(case)
    object_ = {"Bucket": bucket, "Key": "test-key"}
    retain(case, "put-object-retention-no-bucket", object_ | {"Bucket": case.bucket_name()})
    retain(case, "put-object-retention-no-key", object_ | {"Key": "non-existing-key"})
    version = {"VersionId": case.do("put_object", **object_, Body="test")["VersionId"]}
    case.step("get-object-retention-never-set", "get_object_retention", **object_, **version)
    retain(case, "put-object-missing-retention-fields", object_, {"Mode": "GOVERNANCE"}, BypassGovernanceRetention=True)
    case.do("put_object_retention", **object_, Retention=GOVERNANCE)
    retain(case, "update-retention-no-bypass", object_ | version, GOVERNANCE | {"RetainUntilDate": FUTURE - dt.timedelta(days=365)})
    retain(case, "update-retention-past-date", object_ | version, GOVERNANCE | {"RetainUntilDate": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)})
    retain(case, "update-retention-bad-value", object_ | version, GOVERNANCE | {"Mode": "BAD-VALUE"})
    plain = object_ | {"Bucket": case.bucket()}
    case.do("put_object", **plain, Body="test")
    retain(case, "put-object-retention-regular-bucket", plain)
    case.step("get-object-retention-regular-bucket", "get_object_retention", **plain)


@scenario("TestS3ObjectLockRetention::test_s3_object_retention")
def retention(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "test-retention-locked-object"}
    version = {"VersionId": case.step("put-obj-locked-1", "put_object", **object_, Body="test")["VersionId"]}
    retain(case, "put-object-retention-on-key-1", object_)
    case.step("get-object-retention-on-key-1", "get_object_retention", **object_)
    case.step("head-object-locked", "head_object", **object_)
    case.step("delete-obj-locked", "delete_object", **object_, **version)
    case.step("delete-obj-locked-bypass", "delete_object", **object_, **version, BypassGovernanceRetention=True)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FUTURE}
    case.step("put-obj-locked-2", "put_object", **object_, Body="test", **lock)
    retain(case, "update-retention-locked-object", object_, GOVERNANCE | {"RetainUntilDate": soon(seconds=5)})
    retain(case, "put-object-empty-retention", object_, {}, BypassGovernanceRetention=True)
    retain(case, "update-retention-object", object_, GOVERNANCE | {"RetainUntilDate": soon(seconds=5)})


@scenario("TestS3ObjectLockRetention::test_s3_copy_object_retention_lock")
def retention_of_copy(case: Case) -> None:
    bucket = locked_bucket(case)
    source, copy = {"Bucket": bucket, "Key": "source-object"}, {"Bucket": bucket, "Key": "dest-key"}
    case.step("put-source-object", "put_object", **source, Body='{"key": "value"}', **locked())
    case.step("head-source-object", "head_object", **source)
    case.step("copy-lock", "copy_object", **copy, CopySource=f"{bucket}/source-object")
    case.step("head-dest-key", "head_object", **copy)


@scenario("TestS3ObjectLockRetention::test_bucket_config_default_retention")
def default_retention(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "default-object"}
    rule = default(Mode="GOVERNANCE", Days=1)
    case.step("put-lock-config", "put_object_lock_configuration", Bucket=object_["Bucket"], ObjectLockConfiguration=rule)
    case.step("put-object-default", "put_object", **object_, Body="test-default-lock")
    case.step("head-object-default", "head_object", **object_)
    case.step("put-object-with-lock", "put_object", **object_, Body="test-put-object-lock", **locked())
    case.step("head-object-with-lock", "head_object", **object_)
    other = object_ | {"Key": "default-object2"}
    case.step("put-object-with-lock-no-date", "put_object", **other, Body="test-put-object-lock", ObjectLockMode="GOVERNANCE")


@scenario("TestS3ObjectLockRetention::test_object_lock_delete_markers")
def retention_of_marker(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "default-object"}
    case.step("put-object-with-lock", "put_object", **object_, Body="test-put-object-lock", **locked())
    case.step("head-object-with-lock", "head_object", **object_)
    marker = object_ | {"VersionId": case.step("put-delete-marker", "delete_object", **object_)["VersionId"]}
    retain(case, "put-object-retention-delete-marker", marker)
    case.step("get-object-retention-delete-marker", "get_object_retention", **marker)
    case.step("head-object-locked-delete-marker", "head_object", **marker)


@scenario("TestS3ObjectLockRetention::test_object_lock_extend_duration")
def retention_extended(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "default-object"}
    version = case.step("put-object-with-lock", "put_object", **object_, Body="test-put-object-lock", **locked())["VersionId"]
    case.step("head-object-with-lock", "head_object", **object_)
    retain(case, "put-object-retention-extend", object_ | {"VersionId": version}, GOVERNANCE | {"RetainUntilDate": soon(minutes=20)})
    case.step("head-object-with-lock-extended", "head_object", **object_)
    retain(case, "put-object-retention-reduce", object_ | {"VersionId": version}, GOVERNANCE | {"RetainUntilDate": soon(minutes=10)})


@scenario("TestS3ObjectLockRetention::test_s3_object_retention_compliance_mode")
def compliance(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "test-retention-locked-object"}
    version = object_ | {"VersionId": case.step("put-obj-locked-1", "put_object", **object_, Body="test")["VersionId"]}
    until = soon(minutes=10)
    retain(case, "add-compliance-retention", object_, {"Mode": "COMPLIANCE", "RetainUntilDate": until})
    case.step("delete-locked-1", "delete_object", **version)
    case.step("put-delete-marker", "delete_object", **object_)
    case.step("delete-locked-2", "delete_object", **version, BypassGovernanceRetention=True)
    second = dt.timedelta(seconds=1)
    retain(case, "update-retention-shortened", version, {"Mode": "COMPLIANCE", "RetainUntilDate": until - second})
    retain(case, "update-retention-less-restrictive", version, {"Mode": "GOVERNANCE", "RetainUntilDate": until + second})
    # Waiting for the end of a retention says nothing that a test of the clock does not.
    case.leave_out("delete-obj-after-lock-expiration")


@scenario("TestS3ObjectLockRetention::test_s3_object_lock_mode_validation")
def bad_modes(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "test-retention-validation"}
    until = {"ObjectLockRetainUntilDate": soon(minutes=10)}
    case.step("put-obj-locked-error-no-retain-date", "put_object", **object_, Body="test", ObjectLockMode="BAD-VALUE")
    case.step("put-obj-locked-error-no-mode", "put_object", **object_, Body="test", **until)
    case.step("put-obj-locked-bad-value", "put_object", **object_, Body="test", ObjectLockMode="BAD-VALUE", **until)
    case.step("create-mpu-locked-bad-value", "create_multipart_upload", **object_, ObjectLockMode="BAD-VALUE", **until)


def hold(case: Case, step: str, object_: dict, status: str = "ON") -> None:
    """Sets a legal hold as a step."""
    case.step(step, "put_object_legal_hold", **object_, LegalHold={"Status": status})


@scenario("TestS3ObjectLockLegalHold::test_put_get_object_legal_hold")
def legal_hold(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "locked-object"}
    version = object_ | {"VersionId": case.step("put-obj", "put_object", **object_, Body="test")["VersionId"]}
    case.step("get-legal-hold-unset", "get_object_legal_hold", **version)
    hold(case, "put-object-legal-hold", version)
    case.step("head-object-with-legal-hold", "head_object", **object_)
    case.step("get-legal-hold-set", "get_object_legal_hold", **version)
    hold(case, "put-object-legal-hold-off", version, "OFF")


@scenario("TestS3ObjectLockLegalHold::test_put_object_with_legal_hold")
def legal_hold_at_once(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "locked-object"}
    version = case.step("put-obj", "put_object", **object_, Body="test", ObjectLockLegalHoldStatus="ON")["VersionId"]
    case.step("head-object-with-legal-hold", "head_object", **object_)
    hold(case, "put-object-legal-hold-off", object_ | {"VersionId": version}, "OFF")


@scenario("TestS3ObjectLockLegalHold::test_put_object_legal_hold_exc")
def legal_hold_refused(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "test-legal-hold"}
    hold(case, "put-object-legal-hold-no-bucket", object_ | {"Bucket": case.bucket_name()})
    hold(case, "put-object-legal-hold-no-key", object_ | {"Key": "non-existing-key"})
    plain = object_ | {"Bucket": case.bucket()}
    case.do("put_object", **plain, Body="test")
    hold(case, "put-object-retention-regular-bucket", plain)
    case.step("put-object-retention-empty", "put_object_legal_hold", **plain)
    case.step("get-object-retention-regular-bucket", "get_object_legal_hold", **plain)


@scenario("TestS3ObjectLockLegalHold::test_delete_locked_object")
def delete_held(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "test-delete-locked"}
    version = object_ | {"VersionId": case.step("put-obj", "put_object", **object_, Body="test")["VersionId"]}
    hold(case, "put-object-legal-hold", version)
    case.step("delete-object-locked", "delete_object", **version)
    several = {"Objects": [{"Key": version["Key"], "VersionId": version["VersionId"]}]}
    case.match("delete-objects-locked", case.call("delete_objects", Bucket=version["Bucket"], Delete=several))
    hold(case, "put-object-legal-hold-off", version, "OFF")


@scenario("TestS3ObjectLockLegalHold::test_s3_legal_hold_lock_versioned")
def legal_hold_of_versions(case: Case) -> None:
    object_ = {"Bucket": locked_bucket(case), "Key": "locked-object"}
    first = object_ | {"VersionId": case.step("put-object", "put_object", **object_, Body="test")["VersionId"]}
    hold(case, "put-object-legal-hold-ver1", first)
    case.step("head-object-ver1", "head_object", **first)
    second = object_ | {"VersionId": case.step("put-object-2", "put_object", **object_, Body="test")["VersionId"]}
    hold(case, "put-object-legal-hold-ver2", second)
    case.step("head-object-ver2", "head_object", **second)
    hold(case, "remove-object-legal-hold-ver1", first, "OFF")
    case.step("head-object-ver1-no-lock", "head_object", **first)
    case.step("delete-object-ver1", "delete_object", **first)


@scenario("TestS3ObjectLockLegalHold::test_s3_copy_object_legal_hold")
def legal_hold_of_copy(case: Case) -> None:
    bucket = locked_bucket(case)
    source, copy = {"Bucket": bucket, "Key": "source-object"}, {"Bucket": bucket, "Key": "dest-key"}
    case.step("put-object", "put_object", **source, Body='{"key": "value"}', ObjectLockLegalHoldStatus="ON")
    case.step("head-object", "head_object", **source)
    case.step("copy-legal-hold", "copy_object", **copy, CopySource=f"{bucket}/source-object")
    case.step("head-dest-key", "head_object", **copy)
