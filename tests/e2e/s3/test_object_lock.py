"""Object lock: no request removes a locked version, and every accepted lock is enforced."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient

from harness.boto import Upload, make_client, refused
from harness.expect import assert_error
from harness.moments import with_an_end
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

DAY = timedelta(days=1)


def in_future(**distance: float) -> datetime:
    """Returns a date in the future, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**distance)


def put(boto: BaseClient, bucket: str, mode: str | None = None, until: datetime | None = None, **options: object) -> dict:
    """Writes `k`, with a retention if a mode is given, and returns the arguments that identify its version."""
    if mode:
        options |= {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": until or in_future(days=1)}
    answer = boto.put_object(Bucket=bucket, Key="k", Body=b"locked", **options)
    return {"Bucket": bucket, "Key": "k", "VersionId": answer["VersionId"]}


def retention(boto: BaseClient, version: dict) -> tuple[str, datetime]:
    """Returns the mode and date of a version's retention."""
    found = boto.get_object_retention(**version)["Retention"]
    return found["Mode"], found["RetainUntilDate"]


def set_retention(boto: BaseClient, version: dict, mode: str, until: datetime, **options: object) -> None:
    """Sets the retention of a version."""
    boto.put_object_retention(**version, Retention={"Mode": mode, "RetainUntilDate": until}, **options)


def set_hold(boto: BaseClient, version: dict, status: str) -> None:
    """Sets the legal hold of a version to `ON` or `OFF`."""
    boto.put_object_legal_hold(**version, LegalHold={"Status": status})


def default(boto: BaseClient, bucket: str, **rule: object) -> None:
    """Sets the bucket's default retention."""
    configuration = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": rule}}
    boto.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)


def assert_kept(boto: BaseClient, version: dict, *, bypass_too: bool) -> None:
    """Asserts that deletes of the version are refused and that it can still be read."""
    for options in ({}, {"BypassGovernanceRetention": True}) if bypass_too else ({},):
        with refused(403, "AccessDenied"):
            boto.delete_object(**version, **options)
    assert boto.get_object(**version)["Body"].read() == b"locked"


def test_versioning_of_a_lock_bucket_cannot_be_suspended(boto: BaseClient, locked: str):
    """A bucket with object lock has versioning enabled from its creation."""
    configuration = boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert configuration == {"ObjectLockEnabled": "Enabled"}
    assert boto.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"
    with refused(409, "InvalidBucketState"):
        boto.put_bucket_versioning(Bucket=locked, VersioningConfiguration={"Status": "Suspended"})
    boto.put_bucket_versioning(Bucket=locked, VersioningConfiguration={"Status": "Enabled"})
    assert boto.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"


def test_lock_requests_without_object_lock_are_refused(boto: BaseClient, bucket: str):
    """In a bucket without object lock no lock request writes or deletes anything."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = put(boto, bucket)
    with refused(404, "ObjectLockConfigurationNotFoundError"):
        boto.get_object_lock_configuration(Bucket=bucket)
    with refused(409, "InvalidBucketState"):
        default(boto, bucket, Mode="GOVERNANCE", Days=1)
    calls: list[Callable[[], object]] = [
        lambda: put(boto, bucket, "GOVERNANCE"),
        lambda: put(boto, bucket, ObjectLockLegalHoldStatus="ON"),
        lambda: set_retention(boto, version, "GOVERNANCE", in_future(days=1)),
        lambda: set_hold(boto, version, "ON"),
        lambda: boto.get_object_retention(**version),
        lambda: boto.get_object_legal_hold(**version),
    ]
    for call in calls:
        with refused(400, "InvalidRequest"):
            call()
    with refused(400, "InvalidArgument"):
        boto.delete_object(**version, BypassGovernanceRetention=True)
    assert len(boto.list_object_versions(Bucket=bucket)["Versions"]) == 1
    assert boto.get_object(**version)["Body"].read() == b"locked"


def test_governance_retention_needs_bypass_to_delete(boto: BaseClient, locked: str):
    """A plain DELETE adds a delete marker. The version is deleted only with the bypass header."""
    until = in_future(days=1)
    version = put(boto, locked, "GOVERNANCE", until)
    head = boto.head_object(**version)
    assert (head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]) == ("GOVERNANCE", until)
    assert retention(boto, version) == ("GOVERNANCE", until)
    assert_kept(boto, version, bypass_too=False)
    assert boto.delete_object(Bucket=locked, Key="k")["DeleteMarker"] is True
    assert_kept(boto, version, bypass_too=False)
    boto.delete_object(**version, BypassGovernanceRetention=True)
    with refused(404, "NoSuchVersion"):
        boto.get_object(**version)


def test_compliance_retention_cannot_be_weakened(boto: BaseClient, locked: str):
    """Bypass, a weaker mode and an earlier date are refused. A later date is accepted."""
    until = in_future(days=1)
    version = put(boto, locked, "COMPLIANCE", until)
    assert_kept(boto, version, bypass_too=True)
    for mode, date in (("GOVERNANCE", until), ("COMPLIANCE", until - timedelta(hours=1)), ("GOVERNANCE", until + DAY)):
        for options in ({}, {"BypassGovernanceRetention": True}):
            with refused(403, "AccessDenied"):
                set_retention(boto, version, mode, date, **options)
    assert retention(boto, version) == ("COMPLIANCE", until)
    set_retention(boto, version, "COMPLIANCE", until + DAY)
    assert retention(boto, version) == ("COMPLIANCE", until + DAY)
    assert_kept(boto, version, bypass_too=True)


def test_governance_retention_needs_bypass_to_shorten(boto: BaseClient, locked: str):
    """Extending it needs no bypass. Removing it and changing the mode do."""
    until = in_future(days=2)
    version = put(boto, locked, "GOVERNANCE", until)
    with refused(403, "AccessDenied"):
        set_retention(boto, version, "GOVERNANCE", until - DAY)
    with refused(403, "AccessDenied"):
        boto.put_object_retention(**version, Retention={})
    set_retention(boto, version, "GOVERNANCE", until + DAY)
    set_retention(boto, version, "GOVERNANCE", until - DAY, BypassGovernanceRetention=True)
    assert retention(boto, version) == ("GOVERNANCE", until - DAY)
    with refused(403, "AccessDenied"):
        set_retention(boto, version, "COMPLIANCE", until)
    set_retention(boto, version, "COMPLIANCE", until, BypassGovernanceRetention=True)
    assert_kept(boto, version, bypass_too=True)


def test_governance_retention_can_be_removed_with_bypass(boto: BaseClient, locked: str):
    """An empty retention removes it; then the version can be deleted."""
    version = put(boto, locked, "GOVERNANCE")
    boto.put_object_retention(**version, Retention={}, BypassGovernanceRetention=True)
    with refused(404, "NoSuchObjectLockConfiguration"):
        boto.get_object_retention(**version)
    boto.delete_object(**version)


def test_legal_hold_protects_independently_of_retention(boto: BaseClient, locked: str):
    """A hold protects with and without a retention, ignores bypass, and ends with OFF."""
    version = put(boto, locked, ObjectLockLegalHoldStatus="ON")
    assert boto.head_object(**version)["ObjectLockLegalHoldStatus"] == "ON"
    assert boto.get_object_legal_hold(**version)["LegalHold"] == {"Status": "ON"}
    assert_kept(boto, version, bypass_too=True)
    set_retention(boto, version, "GOVERNANCE", in_future(days=1))
    assert_kept(boto, version, bypass_too=True)
    set_hold(boto, version, "OFF")
    assert_kept(boto, version, bypass_too=False)
    boto.delete_object(**version, BypassGovernanceRetention=True)


def test_legal_hold_applies_to_the_current_version_by_default(boto: BaseClient, locked: str):
    """The request names no version."""
    version = put(boto, locked)
    boto.put_object_legal_hold(Bucket=locked, Key="k", LegalHold={"Status": "ON"})
    assert_kept(boto, version, bypass_too=True)
    boto.put_object_legal_hold(Bucket=locked, Key="k", LegalHold={"Status": "OFF"})
    boto.delete_object(**version)


def test_unlocked_object_reports_no_lock_and_can_be_deleted(boto: BaseClient, locked: str):
    """Retention and hold answer 404 and no header is sent. A hold that was removed is reported as OFF."""
    version = put(boto, locked)
    for call in (boto.get_object_retention, boto.get_object_legal_hold):
        with refused(404, "NoSuchObjectLockConfiguration"):
            call(**version)
    assert not {"ObjectLockMode", "ObjectLockLegalHoldStatus"} & set(boto.head_object(**version))
    set_hold(boto, version, "ON")
    set_hold(boto, version, "OFF")
    assert boto.get_object_legal_hold(**version)["LegalHold"] == {"Status": "OFF"}
    assert boto.head_object(**version)["ObjectLockLegalHoldStatus"] == "OFF"
    boto.delete_object(**version)


def test_object_can_be_deleted_after_its_retention_expires(boto: BaseClient, locked: str):
    """In both modes. The bucket's default retention does not apply after the expiry."""
    default(boto, locked, Mode="COMPLIANCE", Days=1)
    for mode in ("GOVERNANCE", "COMPLIANCE"):
        def put_and_try(end: datetime, mode: str = mode) -> dict:
            version = put(boto, locked, mode, end)
            assert_kept(boto, version, bypass_too=mode == "COMPLIANCE")
            return version

        version = with_an_end(put_and_try)

        def is_deleted(version: dict = version) -> bool:
            try:
                boto.delete_object(**version)
            except boto.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == "AccessDenied"
                return False
            return True

        until(is_deleted, "the retention does not end")


@pytest.mark.parametrize(("rule", "length"), [
    ({"Mode": "GOVERNANCE", "Days": 10}, timedelta(days=10)), ({"Mode": "COMPLIANCE", "Years": 2}, timedelta(days=730)),
], ids=["days", "years"])
def test_default_retention_locks_new_objects(boto: BaseClient, locked: str, rule: dict, length: timedelta):
    """It applies to puts, copies and completed uploads without an explicit lock. An explicit lock overrides it."""
    default(boto, locked, **rule)
    configuration = boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert configuration["Rule"]["DefaultRetention"] == rule
    made = [put(boto, locked)]
    upload = Upload(boto, locked, "k")
    upload.send(1, b"locked")
    made.append({"Bucket": locked, "Key": "k", "VersionId": upload.complete()["VersionId"]})
    copied = boto.copy_object(Bucket=locked, Key="copy", CopySource=f"{locked}/k")
    made.append({"Bucket": locked, "Key": "copy", "VersionId": copied["VersionId"]})
    for version in made:
        mode, until = retention(boto, version)
        # A year may have a leap day.
        assert mode == rule["Mode"] and abs(until - datetime.now(UTC) - length) < timedelta(days=1, minutes=1)
        assert_kept(boto, version, bypass_too=mode == "COMPLIANCE")
    other = put(boto, locked, "GOVERNANCE", in_future(hours=1))
    assert retention(boto, other)[1] < datetime.now(UTC) + timedelta(hours=2)


def test_default_retention_does_not_lock_existing_objects(boto: BaseClient, locked: str):
    """The default applies to later writes only, and can be removed."""
    before = put(boto, locked)
    default(boto, locked, Mode="GOVERNANCE", Days=1)
    boto.delete_object(**before)
    boto.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"})
    after = put(boto, locked)
    with refused(404, "NoSuchObjectLockConfiguration"):
        boto.get_object_retention(**after)


@pytest.mark.parametrize("rule", [
    {"Mode": "GOVERNANCE", "Days": 0}, {"Mode": "GOVERNANCE", "Days": -1}, {"Mode": "GOVERNANCE", "Years": 101},
    {"Mode": "GOVERNANCE", "Days": 36_501}, {"Mode": "GOVERNANCE", "Days": 1, "Years": 1}, {"Mode": "GOVERNANCE"},
    {"Mode": "STRICT", "Days": 1}, {"Days": 1},
], ids=str)
def test_invalid_default_retention_is_refused(boto: BaseClient, locked: str, rule: dict):
    """The configuration does not change."""
    with refused(400, "MalformedXML", "InvalidArgument", "InvalidRequest", "InvalidRetentionPeriod"):
        default(boto, locked, **rule)
    assert "Rule" not in boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]


@pytest.mark.parametrize("options", [
    {"ObjectLockMode": "GOVERNANCE"}, {"ObjectLockRetainUntilDate": datetime(2099, 1, 1, tzinfo=UTC)},
    {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": datetime(2020, 1, 1, tzinfo=UTC)},
    {"ObjectLockMode": "STRICT", "ObjectLockRetainUntilDate": datetime(2099, 1, 1, tzinfo=UTC)},
    {"ObjectLockLegalHoldStatus": "MAYBE"},
], ids=["no date", "no mode", "past", "no such mode", "no such status"])
def test_invalid_lock_headers_are_refused(boto: BaseClient, locked: str, options: dict):
    """PUT writes no object and CreateMultipartUpload creates no upload."""
    with refused(400, "InvalidArgument"):
        put(boto, locked, **options)
    with refused(400, "InvalidArgument"):
        boto.create_multipart_upload(Bucket=locked, Key="k", **options)
    page = boto.list_object_versions(Bucket=locked)
    assert "Versions" not in page and "Uploads" not in boto.list_multipart_uploads(Bucket=locked)


def test_lock_headers_need_no_digest(s3: S3, boto: BaseClient, locked: str):
    """AWS requires Content-MD5 or a checksum. SDKs that compute checksums only when required send none."""
    headers = [
        ("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", f"{in_future(days=1):%Y-%m-%dT%H:%M:%SZ}"),
    ]
    version = s3.put(locked, "k", b"locked", headers).get("x-amz-version-id")
    assert boto.get_object_retention(Bucket=locked, Key="k", VersionId=version)["Retention"]["Mode"] == "GOVERNANCE"
    with refused(403, "AccessDenied"):
        boto.delete_object(Bucket=locked, Key="k", VersionId=version)
    assert_error(s3.request("PUT", object_target(locked, "k"), [*headers, ("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], b"x"), 400, "BadDigest")


@pytest.mark.parametrize(("query", "document"), [
    ("retention", b""), ("retention", b"<Retention><Mode>STRICT</Mode><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate></Retention>"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode></Retention>"), ("retention", b"<Retention><Mode>GOVERNANCE"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>tomorrow</RetainUntilDate></Retention>"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate></Retention>"),
    ("legal-hold", b""), ("legal-hold", b"<LegalHold><Status>on</Status></LegalHold>"), ("legal-hold", b"<LegalHold/>"),
])
def test_invalid_lock_documents_are_refused(s3: S3, boto: BaseClient, locked: str, query: str, document: bytes):
    """The version stays unlocked and can be deleted."""
    version = put(boto, locked)
    response = s3.request("PUT", object_target(locked, "k", query), body=document)
    is_past_date = b">2020-" in document
    assert_error(response, 400, "InvalidArgument" if is_past_date else "MalformedXML", "InvalidArgument", "InvalidRequest")
    boto.delete_object(**version)


def test_locks_apply_to_uploads_and_copies(boto: BaseClient, locked: str):
    """Lock headers of CreateMultipartUpload and CopyObject apply to the new version. A copy inherits no lock."""
    until = in_future(days=3)
    told = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until, "ObjectLockLegalHoldStatus": "ON"}
    upload = Upload(boto, locked, "k", **told)
    upload.send(1, b"locked")
    version = {"Bucket": locked, "Key": "k", "VersionId": upload.complete()["VersionId"]}
    copied = boto.copy_object(Bucket=locked, Key="copy", CopySource=f"{locked}/k", **told)
    copy = {"Bucket": locked, "Key": "copy", "VersionId": copied["VersionId"]}
    for made in (version, copy):
        assert retention(boto, made) == ("COMPLIANCE", until)
        assert boto.get_object_legal_hold(**made)["LegalHold"]["Status"] == "ON"
        assert_kept(boto, made, bypass_too=True)
    free = boto.copy_object(Bucket=locked, Key="free", CopySource=f"{locked}/k")["VersionId"]
    boto.delete_object(Bucket=locked, Key="free", VersionId=free)


def test_delete_markers_are_never_locked(boto: BaseClient, locked: str):
    """A marker can be deleted without bypass, even if the bucket has a default retention."""
    default(boto, locked, Mode="COMPLIANCE", Days=1)
    version = put(boto, locked)
    marker = boto.delete_object(Bucket=locked, Key="k")["VersionId"]
    with refused(405, "MethodNotAllowed"):
        boto.get_object_retention(Bucket=locked, Key="k", VersionId=marker)
    boto.delete_object(Bucket=locked, Key="k", VersionId=marker)
    assert_kept(boto, version, bypass_too=True)


def test_bucket_with_a_locked_version_cannot_be_deleted(boto: BaseClient, locked: str):
    """Overwriting the key does not change the locked version."""
    version = put(boto, locked, "COMPLIANCE")
    boto.put_object(Bucket=locked, Key="k", Body=b"over it")
    boto.copy_object(Bucket=locked, Key="k", CopySource=f"{locked}/k", MetadataDirective="REPLACE")
    with refused(409, "BucketNotEmpty"):
        boto.delete_bucket(Bucket=locked)
    assert_kept(boto, version, bypass_too=True)


def test_kill_9_keeps_locks(own_store: Cairn):
    """Modes, dates, holds and the bucket's default retention are what was acknowledged."""
    boto = make_client(own_store.s3)
    boto.create_bucket(Bucket="killed", ObjectLockEnabledForBucket=True)
    until = in_future(days=1)
    version, held = put(boto, "killed", "COMPLIANCE", until), put(boto, "killed")
    set_hold(boto, held, "ON")
    default(boto, "killed", Mode="GOVERNANCE", Days=5)
    own_store.kill()
    own_store.start()
    assert retention(boto, version) == ("COMPLIANCE", until)
    for kept in (version, held):
        assert_kept(boto, kept, bypass_too=True)
    rule = boto.get_object_lock_configuration(Bucket="killed")["ObjectLockConfiguration"]["Rule"]
    assert rule["DefaultRetention"] == {"Mode": "GOVERNANCE", "Days": 5}
