"""Lifecycle rules: every state of a bucket, locks, races, restarts, status, previews, the header, and refused bodies.

The server of this module has days of two seconds and applies rules every second.
"""

import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from botocore.client import BaseClient

from harness.boto import headers, make_client, refused
from harness.events import walk
from harness.management import Management, expect, expect_refusal, lifecycle_runs_later
from harness.moments import with_an_end
from harness.server import Cairn
from harness.wait import until

DAY_SECONDS = 2
NO_RULE = "0198c5f0-0000-7000-8000-000000000000"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server whose days are short."""
    settings = {"SERVICE_LIFECYCLE_DAY_SECONDS": str(DAY_SECONDS), "SERVICE_LIFECYCLE_INTERVAL_SECONDS": "1"}
    return make_module_store(**settings).start()


def add(admin: Management, bucket: str, prefix: str = "", **members) -> dict:
    """Creates a rule."""
    return expect(admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": prefix} | members), 201)


def rule_of(admin: Management, bucket: str, rule: str) -> dict:
    """Reads a rule."""
    rules = expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]
    return next(found for found in rules if found["id"] == rule)


def versions(admin: Management, bucket: str) -> list[tuple[str, bool]]:
    """Returns key and kind of all versions of a bucket, the newest of a key first."""
    found = expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)["versions"]
    return [(version["key"], version["is_delete_marker"]) for version in found]


def versioned(boto: BaseClient, bucket: str, *states: str) -> None:
    """Sets the versioning states one after the other."""
    for state in states:
        boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": state})


def clean(admin: Management) -> None:
    """Checks that the due index agrees with the versions."""
    found = expect(admin.get("/storage/inspect", params={"maximum_entries": 1000000}), 200)
    assert found["complete"] and found["findings"] == [], found["findings"]


# What rules do


def test_unversioned_bucket_loses_old_objects_of_the_prefix_only(admin: Management, boto: BaseClient, bucket: str):
    """The object goes, its event names the rule, and the status counts it."""
    boto.put_object(Bucket=bucket, Key="logs/a", Body=b"12345")
    boto.put_object(Bucket=bucket, Key="data/a", Body=b"1")
    rule = add(admin, bucket, "logs/", expiration=1)
    assert rule["status"]["expired_objects"] == 0 and rule["enabled"] and rule["noncurrent_version_expiration"] is None
    until(lambda: versions(admin, bucket) == [("data/a", False)], "the object is still there")
    deleted = [event for event in walk(admin, bucket=bucket) if event["type"] == "object.deleted"]
    assert [event["object"] for event in deleted] == ["logs/a"] and deleted[0]["size"] == 5
    metadata = deleted[0]["metadata"]
    assert (metadata["reason"], metadata["rule_id"], metadata["principal"]) == ("lifecycle", rule["id"], "lifecycle")
    period = {"since": "2000-01-01T00:00:00Z", "until": "2999-01-01T00:00:00Z", "steps": "1"}
    (step,) = expect(admin.get(f"/buckets/{bucket}/changes", params=period), 200)["steps"]
    assert (step["written"], step["deleted"], step["deleted_by_rules"]) == (2, 1, 1)
    status = until(lambda: (found := rule_of(admin, bucket, rule["id"])["status"])["expired_objects"] and found, "nothing is counted")
    counts = ("examined", "expired_objects", "delete_markers_written", "bytes_freed", "failed", "skipped_locked")
    assert [status[name] for name in counts] == [1, 1, 0, 5, 0, 0]
    assert status["last_error"] is None and status["next_run_at"]
    clean(admin)


def test_versioned_bucket_gets_a_marker_then_loses_the_version_then_the_marker(admin: Management, boto: BaseClient, bucket: str):
    """With both actions nothing is left in the end; the marker goes with the expiration of the rule."""
    versioned(boto, bucket, "Enabled")
    boto.put_object(Bucket=bucket, Key="k", Body=b"12345")
    rule = add(admin, bucket, expiration=1, noncurrent_version_expiration=2)
    until(lambda: versions(admin, bucket) == [], "something is left")
    status = until(lambda: (found := rule_of(admin, bucket, rule["id"])["status"])["delete_markers_removed"] and found, "not counted")
    counts = ("expired_objects", "delete_markers_written", "noncurrent_versions_removed", "delete_markers_removed", "bytes_freed")
    assert [status[name] for name in counts] == [1, 1, 1, 1, 5]
    events = [event for event in walk(admin, bucket=bucket) if event["type"] == "object.deleted"]
    assert len(events) == 3 and events[0]["metadata"].get("delete_marker") is True
    clean(admin)


def test_suspended_bucket_replaces_the_null_version(admin: Management, boto: BaseClient, bucket: str):
    """The null marker takes the place of the null version, and hides a version with an id."""
    versioned(boto, bucket, "Enabled")
    boto.put_object(Bucket=bucket, Key="with-id", Body=b"1")
    versioned(boto, bucket, "Suspended")
    boto.put_object(Bucket=bucket, Key="null", Body=b"1")
    add(admin, bucket, expiration=1)
    expected = [("null", True), ("with-id", True), ("with-id", False)]
    # The marker of the key without older versions is alone, and so it goes too.
    until(lambda: versions(admin, bucket) in (expected, expected[1:]), "not replaced")
    until(lambda: versions(admin, bucket) == expected[1:], "the lone marker stays")
    clean(admin)


def test_newest_noncurrent_versions_are_kept(admin: Management, boto: BaseClient, bucket: str):
    """Two are kept beside the current object, however old."""
    versioned(boto, bucket, "Enabled")
    for body in (b"1", b"2", b"3", b"4", b"5"):
        boto.put_object(Bucket=bucket, Key="k", Body=body)
    rule = add(admin, bucket, noncurrent_version_expiration=1, newer_noncurrent_versions=2)
    until(lambda: len(versions(admin, bucket)) == 3, "not removed")
    until(lambda: rule_of(admin, bucket, rule["id"])["status"]["noncurrent_versions_removed"] == 2, "no further run")
    lifecycle_runs_later(admin, 2 * DAY_SECONDS)
    assert len(versions(admin, bucket)) == 3
    assert boto.get_object(Bucket=bucket, Key="k")["Body"].read() == b"5"


def test_lone_markers_go_only_if_a_rule_says_so(admin: Management, boto: BaseClient, bucket: str):
    """A rule for non-current versions alone leaves the marker; expired_delete_markers removes it."""
    versioned(boto, bucket, "Enabled")
    boto.put_object(Bucket=bucket, Key="k", Body=b"1")
    boto.delete_object(Bucket=bucket, Key="k")
    rule = add(admin, bucket, noncurrent_version_expiration=1)
    until(lambda: versions(admin, bucket) == [("k", True)], "the version stays")
    lifecycle_runs_later(admin, 2 * DAY_SECONDS)
    assert versions(admin, bucket) == [("k", True)]
    body = {"prefix": "", "expired_delete_markers": True}
    changed = expect(admin.put(f"/buckets/{bucket}/lifecycle/{rule['id']}", body), 200)
    assert changed["noncurrent_version_expiration"] is None and changed["created_at"] == rule["created_at"]
    assert changed["status"]["noncurrent_versions_removed"] == 1, "totals stay"
    until(lambda: versions(admin, bucket) == [], "the marker stays")


def test_locked_versions_stay_until_their_lock_ends(admin: Management, boto: BaseClient):
    """A marker hides the locked object, its version is skipped and counted, and goes when the retention has ended."""
    bucket = f"lifecycle-{next(_numbers)}"
    expect(admin.post("/buckets", {"name": bucket, "object_lock": True}), 201)
    end = datetime.now(timezone.utc) + timedelta(hours=1)
    put = boto.put_object(Bucket=bucket, Key="k", Body=b"1", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=end)
    rule = add(admin, bucket, expiration=1, noncurrent_version_expiration=1)
    until(lambda: versions(admin, bucket) == [("k", True), ("k", False)], "no marker")
    until(lambda: rule_of(admin, bucket, rule["id"])["status"]["skipped_locked"] > 0, "not counted")
    assert ("k", False) in versions(admin, bucket)
    with_an_end(lambda end: boto.put_object_retention(
        Bucket=bucket, Key="k", VersionId=put["VersionId"], Retention={"Mode": "GOVERNANCE", "RetainUntilDate": end}, BypassGovernanceRetention=True,
    ))
    until(lambda: versions(admin, bucket) == [], "the version stays")
    assert rule_of(admin, bucket, rule["id"])["status"]["failed"] == 0


def test_write_that_comes_before_the_removal_wins(admin: Management, boto: BaseClient, bucket: str):
    """Keys that are written again and again never vanish, although a rule runs all the time."""
    add(admin, bucket, expiration=1)
    stop, failures = threading.Event(), []

    def write(key: str) -> None:
        own = boto
        while not stop.is_set():
            own.put_object(Bucket=bucket, Key=key, Body=b"1")
            try:
                own.head_object(Bucket=bucket, Key=key)
            except Exception as error:  # noqa: BLE001 - reported below
                failures.append((key, error))
                return

    writers = [threading.Thread(target=write, args=(f"k{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    lifecycle_runs_later(admin, 4 * DAY_SECONDS)
    stop.set()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(versions(admin, bucket)) == 4
    until(lambda: versions(admin, bucket) == [], "the objects stay")
    clean(admin)


def test_longer_and_deleted_rules_save_what_was_written_under_them(admin: Management, boto: BaseClient, bucket: str):
    """Rules are evaluated when they act; a disabled rule does nothing."""
    longer, disabled, deleted = (add(admin, bucket, prefix, expiration=4) for prefix in ("longer", "disabled", "deleted"))
    for key in ("longer", "disabled", "deleted"):
        boto.put_object(Bucket=bucket, Key=key, Body=b"1")
    path = f"/buckets/{bucket}/lifecycle"
    expect(admin.put(f"{path}/{longer['id']}", {"prefix": "longer", "expiration": 30000}), 200)
    expect(admin.put(f"{path}/{disabled['id']}", {"prefix": "disabled", "expiration": 4, "enabled": False}), 200)
    expect(admin.delete(f"/lifecycle-rules/{deleted['id']}"), 204)
    expect_refusal(admin.delete(f"/lifecycle-rules/{deleted['id']}"), 404, "LIFECYCLE_RULE_NOT_FOUND")
    lifecycle_runs_later(admin, 6 * DAY_SECONDS)
    assert sorted(key for key, _ in versions(admin, bucket)) == ["deleted", "disabled", "longer"]
    expect(admin.put(f"{path}/{longer['id']}", {"prefix": "", "expiration": 1}), 200)
    until(lambda: versions(admin, bucket) == [], "a shorter rule does not apply to existing objects")


def test_rules_and_counts_survive_a_kill(make_store: Callable[..., Cairn]):
    """After a kill the rules still act on what was written before it."""
    store = make_store(SERVICE_LIFECYCLE_DAY_SECONDS="1", SERVICE_LIFECYCLE_INTERVAL_SECONDS="1").start()
    boto = make_client(store.s3)
    boto.create_bucket(Bucket="restart")
    rule = add(store.admin, "restart", "first", expiration=1)
    boto.put_object(Bucket="restart", Key="first", Body=b"1")
    until(lambda: rule_of(store.admin, "restart", rule["id"])["status"]["expired_objects"] == 1, "not counted")
    status = until(lambda: (found := expect(store.admin.get("/lifecycle/status"), 200))["last_run_finished_at"] and found, "the run does not end")
    assert status["enabled"] and not status["paused"] and status["reason"] is None
    later = add(store.admin, "restart", "later", expiration=3)
    boto.put_object(Bucket="restart", Key="later", Body=b"1")
    store.kill()
    store.start()
    boto = make_client(store.s3)
    until(lambda: rule_of(store.admin, "restart", later["id"])["status"]["expired_objects"] == 1, "not applied after the kill")
    assert rule_of(store.admin, "restart", rule["id"])["status"]["expired_objects"] == 1
    assert versions(store.admin, "restart") == []
    clean(store.admin)


def test_rules_go_with_their_bucket(admin: Management, bucket: str):
    """A new bucket of the same name has none."""
    rule = add(admin, bucket, expiration=1)
    expect(admin.delete(f"/buckets/{bucket}"), 204)
    expect_refusal(admin.get(f"/buckets/{bucket}/lifecycle"), 404, "BUCKET_NOT_FOUND")
    expect_refusal(admin.delete(f"/lifecycle-rules/{rule['id']}"), 404, "LIFECYCLE_RULE_NOT_FOUND")
    expect(admin.post("/buckets", {"name": bucket}), 201)
    assert expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200) == {"rules": []}


# What clients see


def test_responses_say_when_an_object_expires(admin: Management, boto: BaseClient, bucket: str):
    """GET, HEAD, PUT, copies and completions have the header, lists and versions not; the earliest rule is named."""
    assert "x-amz-expiration" not in headers(boto.put_object(Bucket=bucket, Key="before", Body=b"1"))
    add(admin, bucket, "a/", expiration=20000)
    rule = add(admin, bucket, "a/b", expiration=10000)
    add(admin, bucket, "a/b", expiration=1, enabled=False)
    put = boto.put_object(Bucket=bucket, Key="a/b", Body=b"12345")
    found = headers(put)["x-amz-expiration"]
    date, named = found.removeprefix('expiry-date="').removesuffix('"').split('", rule-id="')
    assert named == rule["id"]
    head = boto.head_object(Bucket=bucket, Key="a/b")
    expires = datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=timezone.utc)
    assert expires - head["LastModified"] == timedelta(seconds=10000 * DAY_SECONDS)
    assert headers(head)["x-amz-expiration"] == found
    assert headers(boto.get_object(Bucket=bucket, Key="a/b", Range="bytes=0-1"))["x-amz-expiration"] == found
    copy = boto.copy_object(Bucket=bucket, Key="a/copy", CopySource={"Bucket": bucket, "Key": "a/b"})
    assert "expiry-date=" in headers(copy)["x-amz-expiration"]
    upload = boto.create_multipart_upload(Bucket=bucket, Key="a/m")["UploadId"]
    part = boto.upload_part(Bucket=bucket, Key="a/m", UploadId=upload, PartNumber=1, Body=b"1")["ETag"]
    done = boto.complete_multipart_upload(
        Bucket=bucket, Key="a/m", UploadId=upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]},
    )
    assert "expiry-date=" in headers(done)["x-amz-expiration"]
    assert "x-amz-expiration" not in headers(boto.put_object(Bucket=bucket, Key="b", Body=b"1"))
    with refused(404, "NoSuchKey"):
        boto.get_object(Bucket=bucket, Key="a/none")


def test_preview_says_what_a_rule_would_do_and_changes_nothing(admin: Management, boto: BaseClient, bucket: str):
    """Numbers, sample and next due time; the bucket has no rule afterwards."""
    versioned(boto, bucket, "Enabled")
    for number in range(120):
        boto.put_object(Bucket=bucket, Key=f"logs/{number}", Body=b"12345")
    boto.put_object(Bucket=bucket, Key="logs/1", Body=b"1")
    boto.put_object(Bucket=bucket, Key="other", Body=b"1")
    body = {"prefix": "logs/", "expiration": 1, "noncurrent_version_expiration": 1}
    before = versions(admin, bucket)
    ask = lambda: expect(admin.post(f"/buckets/{bucket}/lifecycle/preview", body), 200)
    # A day must have passed since the last write.
    until(lambda: (ask()["current_objects"], ask()["noncurrent_versions"]) == (120, 1), ask)
    preview = ask()
    assert preview["complete"] and preview["locked"] == 0 and preview["delete_markers"] == 0
    assert (preview["current_objects"], preview["current_bytes"]) == (120, 119 * 5 + 1)
    assert (preview["noncurrent_versions"], preview["noncurrent_bytes"]) == (1, 5)
    assert len(preview["sample"]) == 100
    actions = {planned["action"] for planned in preview["sample"]}
    assert actions <= {"write_delete_marker", "remove_version"} and "write_delete_marker" in actions
    assert all(planned["key"].startswith("logs/") and planned["due_at"] and planned["version_id"] for planned in preview["sample"])
    later = expect(admin.post(f"/buckets/{bucket}/lifecycle/preview", {"prefix": "", "expiration": 30000}), 200)
    assert later["current_objects"] == 0 and later["sample"] == [] and later["next_due_at"]
    assert versions(admin, bucket) == before
    assert expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200) == {"rules": []}


def test_metrics_count_what_rules_did(admin: Management, boto: BaseClient, bucket: str):
    """The sums of all rules since the start."""
    def expired() -> float:
        found = expect(admin.get("/system/metrics"), 200)["metrics"]
        return sum(one["value"] for one in found if one["name"] == "service_lifecycle_removed_total" and one["labels"]["kind"] == "expired_object")

    before = expired()
    boto.put_object(Bucket=bucket, Key="k", Body=b"1")
    add(admin, bucket, expiration=1)
    until(lambda: expired() > before, "not counted")


# Refusals and limits


@pytest.mark.parametrize("body", [
    {}, {"prefix": ""}, {"expiration": 1}, {"prefix": None, "expiration": 1}, {"prefix": "", "expiration": 0},
    {"prefix": "", "expiration": -1}, {"prefix": "", "expiration": 1.5}, {"prefix": "", "expiration": "1"},
    {"prefix": "", "expiration": 36501}, {"prefix": "", "noncurrent_version_expiration": 0},
    {"prefix": "", "newer_noncurrent_versions": 1}, {"prefix": "", "expiration": 1, "days": 3},
    {"prefix": "", "noncurrent_version_expiration": 1, "newer_noncurrent_versions": 1001},
    {"prefix": "", "expiration": 1, "enabled": "yes"}, {"prefix": "x" * 1025, "expiration": 1}, [], "rule",
    {"prefix": "", "expired_delete_markers": False}, {"prefix": "", "abort_incomplete_multipart_upload": 0},
    {"prefix": "", "abort_incomplete_multipart_upload": 36501}, {"prefix": "", "abort_incomplete_multipart_upload": "1"},
    {"prefix": "", "abort_incomplete_multipart_upload": 1, "tags": [{"key": "a", "value": "1"}]},
])
def test_invalid_rules_are_refused_and_change_nothing(admin: Management, bucket: str, body: object):
    """The same for creations, replacements and previews."""
    rule = add(admin, bucket, "keep", expiration=3)
    path = f"/buckets/{bucket}/lifecycle"
    for response in (admin.post(path, body), admin.put(f"{path}/{rule['id']}", body), admin.post(f"{path}/preview", body)):
        expect_refusal(response, 400, "INVALID_REQUEST")
    rules = expect(admin.get(path), 200)["rules"]
    assert [(found["prefix"], found["expiration"]) for found in rules] == [("keep", 3)]


def test_unknown_rules_and_buckets_are_not_found(admin: Management, bucket: str):
    """Also for ids that are no UUIDs, and for a rule of another bucket."""
    body = {"prefix": "", "expiration": 1}
    other = f"{bucket}-other"
    expect(admin.post("/buckets", {"name": other}), 201)
    rule = add(admin, other, expiration=3)
    for unknown in (NO_RULE, "x", rule["id"]):
        expect_refusal(admin.put(f"/buckets/{bucket}/lifecycle/{unknown}", body), 404, "LIFECYCLE_RULE_NOT_FOUND")
    for unknown in (NO_RULE, "x"):
        expect_refusal(admin.delete(f"/lifecycle-rules/{unknown}"), 404, "LIFECYCLE_RULE_NOT_FOUND")
    for response in (admin.get("/buckets/no-such-bucket/lifecycle"), admin.post("/buckets/no-such-bucket/lifecycle", body)):
        expect_refusal(response, 404, "BUCKET_NOT_FOUND")


def test_bucket_has_at_most_a_thousand_rules(admin: Management, boto: BaseClient, bucket: str):
    """The next one is refused, and all of them act."""
    for number in range(1000):
        add(admin, bucket, f"p{number}/", expiration=1)
    expect_refusal(admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": "", "expiration": 1}), 409, "LIMIT_REACHED")
    assert len(expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]) == 1000
    for key in ("p0/a", "p999/a", "q/a"):
        boto.put_object(Bucket=bucket, Key=key, Body=b"1")
    until(lambda: versions(admin, bucket) == [("q/a", False)], "not all rules act")


def test_resume_answers_with_the_status_and_changes_are_audited(admin: Management, bucket: str):
    """The audit trail has each change of a rule with its resource."""
    assert not expect(admin.post("/lifecycle/resume"), 200)["paused"]
    rule = add(admin, bucket, "a", expiration=30)
    expect(admin.put(f"/buckets/{bucket}/lifecycle/{rule['id']}", {"prefix": "b", "expiration": 31}), 200)
    expect(admin.delete(f"/lifecycle-rules/{rule['id']}"), 204)
    operations = ("create_lifecycle_rule", "replace_lifecycle_rule", "delete_lifecycle_rule")
    for operation in operations:
        found = expect(admin.get("/audit/events", params={"operation": operation, "limit": 1}), 200)["events"]
        assert rule["id"] in found[0]["detail"] and found[0]["result"] == "allowed", found
