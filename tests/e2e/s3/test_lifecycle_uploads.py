"""Lifecycle rules about unfinished multipart uploads, in the management API and through S3, in both modes."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from botocore.client import BaseClient

from harness.boto import headers, make_client, refused
from harness.events import walk
from harness.management import Management, expect
from harness.server import Cairn
from harness.wait import until

DAY_SECONDS = 2
MIB = 1 << 20
SETTINGS = {"SERVICE_LIFECYCLE_DAY_SECONDS": str(DAY_SECONDS), "SERVICE_LIFECYCLE_INTERVAL_SECONDS": "1"}


@pytest.fixture(scope="module", params=["strict", "extended"])
def store(make_module_store: Callable[..., Cairn], request: pytest.FixtureRequest) -> Cairn:
    """Starts a server whose days are short."""
    return make_module_store(**SETTINGS, SERVICE_S3_COMPATIBILITY=request.param).start()


def begin(boto: BaseClient, bucket: str, key: str, *parts: bytes) -> str:
    """Begins an upload with these parts."""
    upload = boto.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    for number, part in enumerate(parts, 1):
        boto.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=part)
    return upload


def uploads(boto: BaseClient, bucket: str) -> list[str]:
    """Returns the keys of the unfinished uploads."""
    return [found["Key"] for found in boto.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def add(admin: Management, bucket: str, prefix: str = "", **members: object) -> dict:
    """Creates a rule."""
    return expect(admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": prefix} | members), 201)


def status(admin: Management, bucket: str) -> dict:
    """Returns the status of the only rule."""
    (rule,) = expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]
    return rule["status"]


def clean(admin: Management) -> None:
    """Checks that the due index agrees with the uploads."""
    found = expect(admin.get("/storage/inspect", params={"maximum_entries": 1000000}), 200)
    assert found["complete"] and found["findings"] == [], found["findings"]


def aborted(admin: Management) -> float:
    """Returns how many uploads all rules have aborted since the start."""
    found = expect(admin.get("/system/metrics"), 200)["metrics"]
    kind = "multipart_upload_aborted"
    return sum(one["value"] for one in found if one["name"] == "service_lifecycle_removed_total" and one["labels"]["kind"] == kind)


def test_rule_aborts_uploads_of_its_prefix(admin: Management, boto: BaseClient, bucket: str):
    """Also those from before the rule. Others, completed ones and objects stay; status, event and metric say what happened."""
    part = b"x" * (5 * MIB)
    begin(boto, bucket, "logs/before", part, b"1")
    begin(boto, bucket, "data/before", b"1")
    done = begin(boto, bucket, "logs/done", b"1")
    before = aborted(admin)
    rule = add(admin, bucket, "logs/", abort_incomplete_multipart_upload=1)
    assert (rule["abort_incomplete_multipart_upload"], rule["expiration"]) == (1, None)
    listed = boto.list_parts(Bucket=bucket, Key="logs/done", UploadId=done)["Parts"]
    parts = [{"PartNumber": found["PartNumber"], "ETag": found["ETag"]} for found in listed]
    boto.complete_multipart_upload(Bucket=bucket, Key="logs/done", UploadId=done, MultipartUpload={"Parts": parts})
    begin(boto, bucket, "logs/after")
    until(lambda: uploads(boto, bucket) == ["data/before"], "uploads that are due are not aborted")
    until(lambda: status(admin, bucket)["multipart_uploads_aborted"] == 2, "not counted")
    found = status(admin, bucket)
    assert (found["bytes_freed"], found["expired_objects"], found["failed"]) == (5 * MIB + 1, 0, 0)
    assert aborted(admin) - before == 2
    assert boto.head_object(Bucket=bucket, Key="logs/done")["ContentLength"] == 1
    events = [event for event in walk(admin, bucket=bucket) if event["type"] == "multipart.aborted"]
    assert sorted(event["object"] for event in events) == ["logs/after", "logs/before"]
    for event in events:
        metadata = event["metadata"]
        assert (metadata["reason"], metadata["rule_id"], metadata["principal"]) == ("lifecycle", rule["id"], "lifecycle")
        assert event["version_id"] is None
    clean(admin)


def test_aborted_upload_accepts_nothing_more(admin: Management, boto: BaseClient, bucket: str):
    """A part or a completion that comes after the abort finds no upload, as after an abort by a client."""
    upload = begin(boto, bucket, "k", b"1")
    add(admin, bucket, abort_incomplete_multipart_upload=1)
    until(lambda: uploads(boto, bucket) == [], "not aborted")
    named = {"Bucket": bucket, "Key": "k", "UploadId": upload}
    with refused(404, "NoSuchUpload"):
        boto.upload_part(**named, PartNumber=2, Body=b"1")
    with refused(404, "NoSuchUpload"):
        boto.complete_multipart_upload(**named, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": "x" * 32}]})
    clean(admin)


def test_rule_acts_after_a_restart_and_ends_with_its_removal(make_store: Callable[..., Cairn]):
    """Uploads of before the restart are found again. Without a rule uploads stay."""
    store = make_store(**SETTINGS).start()
    boto, admin = make_client(store.s3), store.admin
    boto.create_bucket(Bucket="restart")
    begin(boto, "restart", "k", b"1")
    rule = add(admin, "restart", abort_incomplete_multipart_upload=10000)
    until(lambda: status(admin, "restart")["next_due_at"], "the upload is not in the index")
    store.kill()
    store.start()
    boto = make_client(store.s3)
    path = f"/buckets/restart/lifecycle/{rule['id']}"
    expect(admin.put(path, {"prefix": "", "abort_incomplete_multipart_upload": 1}), 200)
    until(lambda: uploads(boto, "restart") == [], "not aborted after the kill")
    assert expect(admin.get("/storage/usage"), 200)["multipart_uploads"] == 0
    expect(admin.delete(f"/lifecycle-rules/{rule['id']}"), 204)
    begin(boto, "restart", "k", b"1")
    until(lambda: expect(admin.get("/lifecycle/status"), 200)["indexes_in_progress"] == 0, "the index is not removed")
    assert uploads(boto, "restart") == ["k"]
    clean(admin)


def test_responses_say_when_an_upload_is_aborted(admin: Management, boto: BaseClient, bucket: str):
    """CreateMultipartUpload and ListParts have the headers; the earliest rule is named; disabled and other rules are not."""
    add(admin, bucket, "a/", abort_incomplete_multipart_upload=20000)
    rule = add(admin, bucket, "a/b", abort_incomplete_multipart_upload=10000)
    add(admin, bucket, "a/b", abort_incomplete_multipart_upload=1, enabled=False)
    add(admin, bucket, "a/b", expiration=1)
    created = boto.create_multipart_upload(Bucket=bucket, Key="a/b")
    named = {"Bucket": bucket, "Key": "a/b", "UploadId": created["UploadId"]}
    listed = boto.list_parts(**named)
    (upload,) = boto.list_multipart_uploads(Bucket=bucket)["Uploads"]
    for answer in (created, listed):
        assert answer["AbortRuleId"] == rule["id"]
        assert abs(answer["AbortDate"] - upload["Initiated"] - timedelta(seconds=10000 * DAY_SECONDS)) < timedelta(seconds=1)
    part = boto.upload_part(**named, PartNumber=1, Body=b"1")
    other = boto.create_multipart_upload(Bucket=bucket, Key="other")
    for answer in (part, other):
        assert not {"x-amz-abort-date", "x-amz-abort-rule-id"} & set(headers(answer))


def test_date_of_an_abort_is_a_midnight(shared_store: Cairn):
    """With days of their real length, as on AWS."""
    expect(shared_store.admin.post("/buckets", {"name": "midnight"}), 201)
    add(shared_store.admin, "midnight", abort_incomplete_multipart_upload=3)
    boto = make_client(shared_store.s3)
    found = boto.create_multipart_upload(Bucket="midnight", Key="k")["AbortDate"]
    assert (found.hour, found.minute, found.second) == (0, 0, 0)
    assert timedelta(days=3) <= found - datetime.now(timezone.utc) + timedelta(seconds=60) <= timedelta(days=4, seconds=60)


def test_preview_counts_uploads_and_changes_nothing(admin: Management, boto: BaseClient, bucket: str):
    """Number and bytes of what is due, and when something is due next."""
    begin(boto, bucket, "logs/1", b"x" * (5 * MIB), b"12345")
    begin(boto, bucket, "logs/2")
    begin(boto, bucket, "other", b"1")
    boto.put_object(Bucket=bucket, Key="logs/object", Body=b"1")

    def ask(**members: object) -> dict:
        return expect(admin.post(f"/buckets/{bucket}/lifecycle/preview", {"prefix": "logs/"} | members), 200)

    due = {"abort_incomplete_multipart_upload": 1}
    until(lambda: ask(**due)["multipart_uploads"] == 2, lambda: ask(**due))
    found = ask(**due)
    assert (found["multipart_bytes"], found["current_objects"], found["complete"]) == (5 * MIB + 5, 0, True)
    assert (found["sample"], found["next_due_at"]) == ([], None)
    later = ask(abort_incomplete_multipart_upload=10000)
    assert (later["multipart_uploads"], later["multipart_bytes"]) == (0, 0) and later["next_due_at"]
    assert ask(expiration=1)["multipart_uploads"] == 0
    assert uploads(boto, bucket) == ["logs/1", "logs/2", "other"]


def test_s3_clients_set_the_same_rule(admin: Management, boto: BaseClient, bucket: str):
    """The configuration of most examples: a rule that only aborts uploads, for the whole bucket."""
    rule = {"ID": "abort", "Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
    put = {"Bucket": bucket, "LifecycleConfiguration": {"Rules": [rule]}}
    if expect(admin.get("/system/info"), 200)["s3_compatibility"] == "strict":
        with refused(501, "NotImplemented"):
            boto.put_bucket_lifecycle_configuration(**put)
        return
    boto.put_bucket_lifecycle_configuration(**put)
    assert boto.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [rule]
    assert boto.create_multipart_upload(Bucket=bucket, Key="k")["AbortRuleId"] == "abort"
    until(lambda: uploads(boto, bucket) == [], "not aborted")
    (found,) = expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]
    assert (found["s3_id"], found["abort_incomplete_multipart_upload"]) == ("abort", 1)
