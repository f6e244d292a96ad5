"""Audit trail and request log of the data plane: who changed a bucket, who deleted an object, who read one."""

import itertools
import json
import os

import pytest

from harness.accounts import create_account, statement
from harness.boto import make_client
from harness.expect import assert_error
from harness.management import expect
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wire import encode_head

_numbers = itertools.count()
CORS = b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"
VERSIONING = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
BYPASS = [("x-amz-bypass-governance-retention", "true")]


@pytest.fixture
def name() -> str:
    """Returns a bucket name of the test's own."""
    return f"audited-{os.getpid()}-{next(_numbers)}"


def events(store: Cairn, **filters: str | int) -> list[dict]:
    """Returns the latest matching events, oldest first."""
    page = expect(store.admin.get("/audit/events", params={"limit": 1000} | filters), 200)
    return page["events"][::-1]


def outline(found: list[dict]) -> list[tuple]:
    """Returns operation, result and detail of events."""
    return [(event["operation"], event["result"], event["detail"]) for event in found]


def test_bucket_changes_are_recorded_with_principal_and_request(store: Cairn, name: str):
    """Every operation that changes a bucket. Reads and objects leave no record."""
    account = create_account(store, statement("allow", "ManageBucket", f"bucket:{name}"))
    s3, key = account.s3, account.keys["access_key"]
    target = f"/{name}"
    answers = [
        s3.request("PUT", target), s3.request("PUT", f"{target}?versioning", body=VERSIONING),
        s3.request("PUT", f"{target}?cors", body=CORS), s3.request("DELETE", f"{target}?cors"), s3.request("DELETE", target),
    ]
    assert [answer.status for answer in answers] == [200, 200, 200, 204, 204]
    assert s3.request("DELETE", target).status == 404
    found = events(store, bucket=name)
    credential = f"access key {key}"
    assert outline(found) == [
        ("CreateBucket", "allowed", credential), ("PutBucketVersioning", "allowed", f"Enabled; {credential}"),
        ("PutBucketCors", "allowed", f"1 rules; {credential}"), ("DeleteBucketCors", "allowed", credential),
        ("DeleteBucket", "allowed", credential),
    ]
    for event, answer in zip(found, answers, strict=True):
        assert event["principal"] == f"account:{account.name}" and event["source_ip"] == "127.0.0.1"
        assert (event["resource"], event["request_id"]) == (name, answer.get("x-amz-request-id"))


def test_refused_bucket_changes_are_recorded_as_failed(store: Cairn, name: str):
    """A bucket that is not empty cannot be deleted, and the attempt is visible."""
    store.s3.create_bucket(name)
    store.s3.put(name, "k", b"1")
    assert_error(store.s3.request("DELETE", f"/{name}"), 409, "BucketNotEmpty")
    created, failed = events(store, bucket=name)
    assert (created["operation"], created["result"]) == ("CreateBucket", "allowed")
    assert (failed["operation"], failed["result"]) == ("DeleteBucket", "failed") and "BucketNotEmpty" in failed["detail"]


def test_lock_configuration_and_bypass_are_recorded(store: Cairn, name: str):
    """A deletion that bypasses governance retention is recorded even if object changes are not."""
    boto = make_client(store.s3)
    boto.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 3}}
    boto.put_object_lock_configuration(Bucket=name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule})
    version = boto.put_object(Bucket=name, Key="dir/k", Body=b"1")["VersionId"]
    target = object_target(name, "dir/k", f"versionId={version}")
    assert store.s3.request("DELETE", target).status == 403
    assert store.s3.request("DELETE", target, BYPASS).status == 204
    assert outline(events(store, bucket=name)) == [
        ("CreateBucket", "allowed", "with object lock"),
        ("PutObjectLockConfiguration", "allowed", "default retention GOVERNANCE for 3 days"),
        ("DeleteObject", "allowed", f"asked to bypass governance retention; version {version}"),
    ]
    assert [event["resource"] for event in events(store, key="dir/k")] == [f"{name}/dir/k"]


def test_denied_copy_is_found_by_source_and_by_destination(store: Cairn, name: str):
    """Regression: a denied copy was recorded under its destination only, so a search for the source did not find it."""
    store.s3.create_bucket(name)
    store.s3.create_bucket(f"{name}-secret")
    store.s3.put(f"{name}-secret", "plans/a b.txt", b"1")
    thief = create_account(store, statement("allow", "PutObject", f"bucket:{name}/*"))
    headers = [("x-amz-copy-source", f"/{name}-secret/plans/a%20b.txt?versionId=null")]
    denied = thief.s3.request("PUT", object_target(name, "loot"), headers)
    assert_error(denied, 403, "AccessDenied")
    source = f"{name}-secret/plans/a b.txt"
    (event,) = events(store, request_id=denied.get("x-amz-request-id"))
    assert (event["operation"], event["resource"], event["result"]) == ("CopyObject", f"{name}/loot", "denied")
    assert event["detail"].endswith(f"; copy source {source}"), event
    for filters in ({"resource": source}, {"resource": f"{name}/loot"}, {"key": "plans/a b.txt"}, {"bucket": f"{name}-secret"}):
        assert event in events(store, result="denied", **filters), filters
    unsigned = S3("127.0.0.1", store.s3_port, store.credential).send_raw("PUT", object_target(name, "loot"), [("Host", "h"), *headers])
    assert unsigned.status == 403
    assert [found["principal"] for found in events(store, resource=source)] == [f"account:{thief.name}", "anonymous"]


@pytest.mark.parametrize("data_events", ["off", "writes", "all"])
def test_data_events_record_object_changes_and_reads(make_store, data_events: str):
    """`writes` adds changes with their version, `all` adds reads and lists on both planes; failed lookups are not recorded."""
    store = make_store(SERVICE_AUDIT_DATA_EVENTS=data_events).start()
    boto, s3, bucket = make_client(store.s3), store.s3, "data-events"
    boto.create_bucket(Bucket=bucket)
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = boto.put_object(Bucket=bucket, Key="k", Body=b"1")["VersionId"]
    copy = boto.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")["VersionId"]
    marker = boto.delete_object(Bucket=bucket, Key="k")["VersionId"]
    boto.delete_object(Bucket=bucket, Key="k", VersionId=version)
    upload = boto.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    boto.abort_multipart_upload(Bucket=bucket, Key="large", UploadId=upload)
    assert s3.request("PUT", object_target(bucket, "k"), [("If-Match", '"0"')], b"x").status == 404
    assert s3.get(bucket, "copy").body == b"1" and s3.head(bucket, "copy").status == 200
    assert s3.get(bucket, "missing").status == 404
    assert len(s3.list(bucket).keys) == 1
    expect(store.admin.get(f"/buckets/{bucket}/objects"), 200)
    assert store.admin.get(f"/buckets/{bucket}/object-content/copy").content == b"1"

    administrative = [("CreateBucket", bucket, None), ("PutBucketVersioning", bucket, "Enabled")]
    writes = [
        ("PutObject", f"{bucket}/k", f"version {version}"),
        ("CopyObject", f"{bucket}/copy", f"version {copy}; copy source {bucket}/k"),
        ("DeleteObject", f"{bucket}/k", f"delete marker {marker}"), ("DeleteObject", f"{bucket}/k", f"version {version}"),
        ("CreateMultipartUpload", f"{bucket}/large", None), ("AbortMultipartUpload", f"{bucket}/large", None),
    ]
    reads = [
        ("GetObject", f"{bucket}/copy", None), ("HeadObject", f"{bucket}/copy", None), ("ListObjectsV2", bucket, None),
        ("list_objects", bucket, None), ("download_object", f"{bucket}/copy", None),
    ]
    wanted = administrative + (writes if data_events != "off" else []) + (reads if data_events == "all" else [])
    found = events(store, bucket=bucket)
    assert [(event["operation"], event["resource"], event["detail"]) for event in found] == wanted
    assert all(event["result"] == "allowed" for event in found)
    store.kill()
    store.start()
    durable = events(store, bucket=bucket)
    assert durable[: len(wanted)] == found


def test_interrupted_change_is_recorded_after_a_kill(make_store):
    """An upload whose server is killed leaves an event that says that its outcome is unknown."""
    store = make_store(SERVICE_AUDIT_DATA_EVENTS="writes").start()
    store.s3.create_bucket("killed")
    connection = store.s3.connect()
    head = store.s3.signed_head(
        "PUT", object_target("killed", "half"), [("Expect", "100-continue")], payload="UNSIGNED-PAYLOAD", content_length=1_000_000
    )
    connection.send(encode_head("PUT", object_target("killed", "half"), head))
    # The body is asked for when the intent is durable.
    assert connection.read_head().status == 100
    store.kill()
    store.start()
    (event,) = events(store, key="half")
    assert (event["operation"], event["result"]) == ("PutObject", "failed") and "the service ended" in event["detail"]


def lines(store: Cairn, answer) -> list[dict]:
    """Returns the JSON log lines with the request id of an answer."""
    request_id = answer.get("x-amz-request-id")
    parsed = [json.loads(line) for line in store.output().splitlines() if line.startswith("{")]
    return [line for line in parsed if line.get("request_id") == request_id]


@pytest.mark.parametrize("log_paths", ["false", "true"])
def test_request_log_names_the_principal_and_paths_on_request(make_store, log_paths: str):
    """`principal` is always there. Bucket and key are there with `observability.log_paths` only."""
    store = make_store(SERVICE_LOG_JSON="true", SERVICE_OBSERVABILITY_LOG_PATHS=log_paths).start()
    store.s3.create_bucket("logged")
    account = create_account(store, statement("allow", "PutObject", "bucket:logged/*"), name="uploader")
    put, denied = account.s3.put("logged", "private/a b", b"1"), account.s3.get("logged", "private/a b")
    listed = store.s3.request("GET", "/")
    unsigned = store.s3.send_raw("GET", object_target("logged", "private/a b"), [("Host", "h")])
    content = store.admin.get("/buckets/logged/object-content/private/a%20b", headers={"x-request-id": "downloaded"})
    assert content.content == b"1" and store.stop() == 0
    for answer, principal, status in ((put, "account:uploader", 200), (denied, "account:uploader", 403), (unsigned, None, 403)):
        (line,) = lines(store, answer)
        assert (line.get("principal"), line["status"], line["route"]) == (principal, status, "/{bucket}/{key}")
        path = ("logged", "private/a b") if log_paths == "true" else (None, None)
        assert (line.get("bucket"), line.get("key")) == path
    (line,) = lines(store, listed)
    assert line["principal"] == "root" and "bucket" not in line and "key" not in line
    (line,) = [json.loads(line) for line in store.output().splitlines() if '"downloaded"' in line]
    assert line["principal"] == "system" and line.get("key") == ("private/a b" if log_paths == "true" else None)
    assert ("private" in store.output()) == (log_paths == "true")


@pytest.mark.parametrize(("request_log", "logged"), [("all", [200, 404]), ("errors", [404]), ("off", [])])
def test_request_log_can_be_limited_to_errors_or_turned_off(make_store, request_log: str, logged: list[int]):
    """Other lines of the log are not affected."""
    store = make_store(SERVICE_LOG_JSON="true", SERVICE_OBSERVABILITY_REQUEST_LOG=request_log).start()
    good, bad = store.s3.request("GET", "/"), store.s3.request("GET", "/no-such-bucket?list-type=2")
    assert (good.status, bad.status) == (200, 404) and store.stop() == 0
    assert [line["status"] for answer in (good, bad) for line in lines(store, answer)] == logged
    assert '"stopped"' in store.output()
