"""Attacks object lock: no request of any kind removes a locked version, and no lock is promised that is not kept."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient

from harness.boto import Upload, make_client, refused
from harness.expect import assert_error
from harness.s3 import S3, object_target
from harness.server import Cairn

EXPIRY_SECONDS_MAX = 15
DAY = timedelta(days=1)


def in_future(**distance: float) -> datetime:
    """A date ahead of now, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(**distance)


@pytest.fixture
def locked(boto: BaseClient, bucket: str) -> str:
    """An empty bucket with object lock."""
    name = f"{bucket}-lock"
    boto.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


def put(boto: BaseClient, bucket: str, mode: str | None = None, until: datetime | None = None, **options: object) -> dict:
    """Write `k`, locked when a mode is given; the names of the version that came of it."""
    if mode:
        options |= {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": until or in_future(days=1)}
    answer = boto.put_object(Bucket=bucket, Key="k", Body=b"locked", **options)
    return {"Bucket": bucket, "Key": "k", "VersionId": answer["VersionId"]}


def retention(boto: BaseClient, version: dict) -> tuple[str, datetime]:
    """Mode and date."""
    found = boto.get_object_retention(**version)["Retention"]
    return found["Mode"], found["RetainUntilDate"]


def set_retention(boto: BaseClient, version: dict, mode: str, until: datetime, **options: object) -> None:
    """Put a retention."""
    boto.put_object_retention(**version, Retention={"Mode": mode, "RetainUntilDate": until}, **options)


def set_hold(boto: BaseClient, version: dict, status: str) -> None:
    """ON or OFF."""
    boto.put_object_legal_hold(**version, LegalHold={"Status": status})


def default(boto: BaseClient, bucket: str, **rule: object) -> None:
    """Set the bucket's default retention."""
    configuration = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": rule}}
    boto.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)


def assert_kept(boto: BaseClient, version: dict, *, bypass_too: bool) -> None:
    """No delete of the version gets through, and its bytes are there."""
    for options in ({}, {"BypassGovernanceRetention": True}) if bypass_too else ({},):
        with refused(403, "AccessDenied"):
            boto.delete_object(**version, **options)
    assert boto.get_object(**version)["Body"].read() == b"locked"


def test_a_bucket_with_lock(boto: BaseClient, locked: str):
    """Versions are on and stay on."""
    configuration = boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert configuration == {"ObjectLockEnabled": "Enabled"}
    assert boto.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"
    with refused(409, "InvalidBucketState"):
        boto.put_bucket_versioning(Bucket=locked, VersioningConfiguration={"Status": "Suspended"})
    assert boto.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"


def test_a_bucket_without_lock(boto: BaseClient, bucket: str):
    """Every request for one is refused, and nothing is written or deleted by it."""
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


def test_governance_yields_to_the_bypass_alone(boto: BaseClient, locked: str):
    """A plain DELETE adds a marker; the version goes only with the header."""
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


def test_compliance_yields_to_nobody(boto: BaseClient, locked: str):
    """Not to the bypass, not to a weaker mode, not to a shorter date; a longer one is taken."""
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


def test_governance_is_lengthened_by_anyone_and_shortened_by_bypass(boto: BaseClient, locked: str):
    """Removing it is shortening too, and another mode takes the bypass as well."""
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


def test_a_governance_retention_can_be_taken_off(boto: BaseClient, locked: str):
    """An empty retention with the bypass; then the version can go."""
    version = put(boto, locked, "GOVERNANCE")
    boto.put_object_retention(**version, Retention={}, BypassGovernanceRetention=True)
    with refused(404, "NoSuchObjectLockConfiguration"):
        boto.get_object_retention(**version)
    boto.delete_object(**version)


def test_a_legal_hold_stands_by_itself(boto: BaseClient, locked: str):
    """Without retention and beside it; no bypass; OFF lets go."""
    version = put(boto, locked, ObjectLockLegalHoldStatus="ON")
    assert boto.head_object(**version)["ObjectLockLegalHoldStatus"] == "ON"
    assert boto.get_object_legal_hold(**version)["LegalHold"] == {"Status": "ON"}
    assert_kept(boto, version, bypass_too=True)
    set_retention(boto, version, "GOVERNANCE", in_future(days=1))
    assert_kept(boto, version, bypass_too=True)
    set_hold(boto, version, "OFF")
    assert_kept(boto, version, bypass_too=False)
    boto.delete_object(**version, BypassGovernanceRetention=True)


def test_a_hold_put_on_later(boto: BaseClient, locked: str):
    """On the current version when none is named."""
    version = put(boto, locked)
    boto.put_object_legal_hold(Bucket=locked, Key="k", LegalHold={"Status": "ON"})
    assert_kept(boto, version, bypass_too=True)
    boto.put_object_legal_hold(Bucket=locked, Key="k", LegalHold={"Status": "OFF"})
    boto.delete_object(**version)


def test_an_object_without_locks(boto: BaseClient, locked: str):
    """404 for each of them, no header, and it can be deleted; a hold that was lifted is told as lifted."""
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


def test_retention_ends(boto: BaseClient, locked: str):
    """Both modes: kept before the date, deletable soon after it."""
    for mode in ("GOVERNANCE", "COMPLIANCE"):
        version = put(boto, locked, mode, in_future(seconds=3))
        assert_kept(boto, version, bypass_too=mode == "COMPLIANCE")
        give_up = time.monotonic() + EXPIRY_SECONDS_MAX
        while True:
            try:
                boto.delete_object(**version)
                break
            except boto.exceptions.ClientError as error:
                assert error.response["Error"]["Code"] == "AccessDenied" and time.monotonic() < give_up
                time.sleep(0.1)


@pytest.mark.parametrize(("rule", "length"), [
    ({"Mode": "GOVERNANCE", "Days": 10}, timedelta(days=10)), ({"Mode": "COMPLIANCE", "Years": 2}, timedelta(days=730)),
], ids=["days", "years"])
def test_the_default_of_a_bucket(boto: BaseClient, locked: str, rule: dict, length: timedelta):
    """It locks what is put, copied and completed without locks of its own, and an explicit one wins."""
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


def test_a_default_is_no_retention_of_older_objects(boto: BaseClient, locked: str):
    """It counts for what is written afterwards, and can be taken off again."""
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
def test_defaults_that_are_none(boto: BaseClient, locked: str, rule: dict):
    """The configuration stays as it was."""
    with refused(400, "MalformedXML", "InvalidArgument", "InvalidRequest", "InvalidRetentionPeriod"):
        default(boto, locked, **rule)
    assert "Rule" not in boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]


@pytest.mark.parametrize("options", [
    {"ObjectLockMode": "GOVERNANCE"}, {"ObjectLockRetainUntilDate": datetime(2099, 1, 1, tzinfo=UTC)},
    {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": datetime(2020, 1, 1, tzinfo=UTC)},
    {"ObjectLockMode": "STRICT", "ObjectLockRetainUntilDate": datetime(2099, 1, 1, tzinfo=UTC)},
    {"ObjectLockLegalHoldStatus": "MAYBE"},
], ids=["no date", "no mode", "past", "no such mode", "no such status"])
def test_lock_headers_that_are_none(boto: BaseClient, locked: str, options: dict):
    """Nothing is written, on a PUT and by an upload."""
    with refused(400):
        put(boto, locked, **options)
    with refused(400):
        boto.create_multipart_upload(Bucket=locked, Key="k", **options)
    page = boto.list_object_versions(Bucket=locked)
    assert "Versions" not in page and "Uploads" not in boto.list_multipart_uploads(Bucket=locked)


def test_lock_headers_need_a_digest(s3: S3, boto: BaseClient, locked: str):
    """Content-MD5 or a checksum: a lock on damaged bytes would lock the damage."""
    headers = [
        ("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", f"{in_future(days=1):%Y-%m-%dT%H:%M:%SZ}"),
    ]
    assert_error(s3.request("PUT", object_target(locked, "k"), headers, b"locked"), 400, "InvalidRequest")
    assert "Versions" not in boto.list_object_versions(Bucket=locked)
    # MD5 of an empty body.
    assert s3.request("PUT", object_target(locked, "k"), [*headers, ("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")]).status == 200


@pytest.mark.parametrize(("query", "document"), [
    ("retention", b""), ("retention", b"<Retention><Mode>STRICT</Mode><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate></Retention>"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode></Retention>"), ("retention", b"<Retention><Mode>GOVERNANCE"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>tomorrow</RetainUntilDate></Retention>"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate></Retention>"),
    ("legal-hold", b""), ("legal-hold", b"<LegalHold><Status>on</Status></LegalHold>"), ("legal-hold", b"<LegalHold/>"),
])
def test_lock_documents_that_are_none(s3: S3, boto: BaseClient, locked: str, query: str, document: bytes):
    """No lock comes of them."""
    version = put(boto, locked)
    response = s3.request("PUT", object_target(locked, "k", query), body=document)
    assert_error(response, 400, "MalformedXML", "InvalidArgument", "InvalidRequest")
    boto.delete_object(**version)


def test_locks_of_uploads_and_copies(boto: BaseClient, locked: str):
    """What create and the copy are told holds for the version that comes of them; a copy does not inherit the source's."""
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


def test_a_delete_marker_has_no_lock(boto: BaseClient, locked: str):
    """It goes without bypass, also under a default."""
    default(boto, locked, Mode="COMPLIANCE", Days=1)
    version = put(boto, locked)
    marker = boto.delete_object(Bucket=locked, Key="k")["VersionId"]
    with refused(405, "MethodNotAllowed"):
        boto.get_object_retention(Bucket=locked, Key="k", VersionId=marker)
    boto.delete_object(Bucket=locked, Key="k", VersionId=marker)
    assert_kept(boto, version, bypass_too=True)


def test_a_bucket_with_a_locked_version_stays(boto: BaseClient, locked: str):
    """Nor does writing over it change it."""
    version = put(boto, locked, "COMPLIANCE")
    boto.put_object(Bucket=locked, Key="k", Body=b"over it")
    boto.copy_object(Bucket=locked, Key="k", CopySource=f"{locked}/k", MetadataDirective="REPLACE")
    with refused(409, "BucketNotEmpty"):
        boto.delete_bucket(Bucket=locked)
    assert_kept(boto, version, bypass_too=True)


def test_kill_9_keeps_locks(own_store: Cairn):
    """Modes, dates, holds and the bucket's default are as acknowledged."""
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
