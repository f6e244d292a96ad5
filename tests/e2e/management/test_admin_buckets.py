"""Management routes of buckets: names, bodies, versioning, deletion, audit events."""

import json
import os
import uuid

import pytest

from harness.management import Management, expect, expect_refusal, segment
from harness.server import Cairn

UNLIMITED = {"bytes": {"mode": "unlimited"}, "objects": {"mode": "unlimited"}}
BODY_BYTES_MAX = 1 << 20


@pytest.fixture
def name() -> str:
    """A unique bucket name."""
    return f"managed-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def test_bucket_is_created_shown_and_deleted(store: Cairn, admin: Management, name: str):
    """Every route returns the same record, and both planes see the same bucket."""
    made = expect(admin.post("/buckets", {"name": name}), 201)
    assert set(made) == {"name", "created_at", "versioning", "object_lock", "quota", "usage"}
    assert (made["name"], made["versioning"], made["object_lock"]) == (name, "Unversioned", False)
    assert made["quota"] == UNLIMITED and made["usage"] == {"bytes": 0, "objects": 0}
    assert made["created_at"].endswith("Z") and len(made["created_at"]) == len("2026-11-21T05:00:00.000Z")
    assert expect(admin.get(f"/buckets/{name}"), 200) == made
    assert made in expect(admin.get("/buckets"), 200)["buckets"]
    assert store.s3.put(name, "k", b"four").status == 200
    assert expect(admin.get(f"/buckets/{name}"), 200)["usage"] == {"bytes": 4, "objects": 1}
    expect_refusal(admin.delete(f"/buckets/{name}"), 409, "BUCKET_NOT_EMPTY")
    assert store.s3.delete(name, "k").status == 204
    assert admin.delete(f"/buckets/{name}").status_code == 204
    assert expect_refusal(admin.get(f"/buckets/{name}"), 404, "BUCKET_NOT_FOUND") == "bucket was not found"
    expect_refusal(admin.delete(f"/buckets/{name}"), 404, "BUCKET_NOT_FOUND")


def test_duplicate_bucket_name_is_refused(admin: Management, name: str):
    """Also with other settings. The existing bucket does not change."""
    expect(admin.post("/buckets", {"name": name}), 201)
    expect_refusal(admin.post("/buckets", {"name": name, "object_lock": True}), 409, "BUCKET_ALREADY_EXISTS")
    assert expect(admin.get(f"/buckets/{name}"), 200)["object_lock"] is False


@pytest.mark.parametrize("bad", ["", "a", "UPPER", "a..b", "192.168.0.1", "xn--a", "a" * 64, "a/b", "..", "a\nb", "bücher", "a\u202eb"])
def test_invalid_names_are_refused(admin: Management, bad: str):
    """In a body and in a path."""
    expect_refusal(admin.post("/buckets", {"name": bad}), 400, "INVALID_BUCKET_NAME")
    if bad:
        expect_refusal(admin.get(f"/buckets/{segment(bad)}".replace("..", "%2e%2e")), 400, "INVALID_BUCKET_NAME")


@pytest.mark.parametrize(
    "body",
    [
        {}, [], None, "a", 7, {"name": 7}, {"name": None}, {"name": ["a"]}, {"name": "bucket-a", "region": "x"},
        {"name": "bucket-a", "object_lock": "yes"}, {"name": "bucket-a", "object_lock": 1}, {"Name": "bucket-a"},
    ],
)
def test_bodies_of_another_shape_are_refused(admin: Management, body: object):
    """A misspelt field is refused, not ignored."""
    raw = json.dumps(body).encode()
    expect_refusal(admin.request("POST", "/buckets", data=raw), 400, "INVALID_REQUEST")
    expect_refusal(admin.get("/buckets/bucket-a"), 404, "BUCKET_NOT_FOUND")


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b'{"name":"a-b"}{"name":"c-d"}', b'{"name":"a-b","name":"a-c"}', b"[" * 200_000])
def test_invalid_json_is_refused(admin: Management, raw: bytes):
    """Covers duplicate fields, trailing data and deep nesting too."""
    expect_refusal(admin.request("POST", "/buckets", data=raw), 400, "INVALID_REQUEST")


def test_body_over_1_mib_is_refused(admin: Management, name: str):
    """Exactly 1 MiB is accepted. One byte more is 413."""
    body = json.dumps({"name": name}).encode()
    expect_refusal(admin.request("POST", "/buckets", data=body.ljust(BODY_BYTES_MAX + 1)), 413, "PAYLOAD_TOO_LARGE")
    expect(admin.request("POST", "/buckets", data=body.ljust(BODY_BYTES_MAX)), 201)


def test_unknown_query_parameters_are_refused(admin: Management, name: str):
    """No bucket is created."""
    expect_refusal(admin.post("/buckets?dry_run=true", {"name": name}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(f"/buckets/{name}"), 404, "BUCKET_NOT_FOUND")
    expect_refusal(admin.get("/buckets?limit=1"), 400, "INVALID_REQUEST")


def test_versioning_can_be_suspended_but_not_removed(admin: Management, name: str):
    """A bucket never becomes unversioned again."""
    path = f"/buckets/{name}/versioning"
    expect_refusal(admin.get(path), 404, "BUCKET_NOT_FOUND")
    expect(admin.post("/buckets", {"name": name}), 201)
    assert expect(admin.get(path), 200) == {"versioning": "Unversioned"}
    for state in ("Enabled", "Suspended", "Enabled"):
        assert expect(admin.put(path, {"versioning": state}), 200) == {"versioning": state}
        assert expect(admin.get(path), 200) == {"versioning": state}
    for wrong in ({"versioning": "Unversioned"}, {"versioning": "enabled"}, {"versioning": True}, {"status": "Enabled"}, {}):
        expect_refusal(admin.put(path, wrong), 400, "INVALID_REQUEST")
    assert expect(admin.get(path), 200) == {"versioning": "Enabled"}


def test_object_lock_enables_versioning_permanently(admin: Management, name: str):
    """Versioning of such a bucket cannot be suspended."""
    made = expect(admin.post("/buckets", {"name": name, "object_lock": True}), 201)
    assert (made["object_lock"], made["versioning"]) == (True, "Enabled")
    expect_refusal(admin.put(f"/buckets/{name}/versioning", {"versioning": "Suspended"}), 409, "INVALID_BUCKET_STATE")
    assert expect(admin.get(f"/buckets/{name}"), 200)["versioning"] == "Enabled"


def test_delete_markers_prevent_bucket_deletion_and_uploads_end_with_it(store: Cairn, admin: Management, name: str, boto):
    """A bucket with only a delete marker is not empty. One with only unfinished uploads is, as in S3."""
    expect(admin.post("/buckets", {"name": name}), 201)
    expect(admin.put(f"/buckets/{name}/versioning", {"versioning": "Enabled"}), 200)
    marker = store.s3.delete(name, "never-there")
    assert marker.status == 204
    upload = boto.create_multipart_upload(Bucket=name, Key="k")["UploadId"]
    expect_refusal(admin.delete(f"/buckets/{name}"), 409, "BUCKET_NOT_EMPTY")
    assert [found["UploadId"] for found in boto.list_multipart_uploads(Bucket=name)["Uploads"]] == [upload]
    boto.delete_object(Bucket=name, Key="never-there", VersionId=marker.get("x-amz-version-id"))
    assert admin.delete(f"/buckets/{name}").status_code == 204


def test_every_change_is_recorded_in_the_audit_trail(admin: Management, name: str):
    """Each event has the request ID, the resource and the new setting."""
    calls = [
        (admin.post("/buckets", {"name": name, "object_lock": False}), "create_bucket", "allowed", ""),
        (admin.put(f"/buckets/{name}/versioning", {"versioning": "Enabled"}), "set_versioning", "allowed", "Enabled"),
        (admin.put(f"/buckets/{name}/quota", {"quota": UNLIMITED}), "set_quota", "allowed", "bytes: unlimited, objects: unlimited"),
        (admin.post("/buckets", {"name": name}), "create_bucket", "failed", "BUCKET_ALREADY_EXISTS: "),
        (admin.delete(f"/buckets/{name}"), "delete_bucket", "allowed", ""),
    ]
    for response, operation, result, detail in calls:
        (event,) = expect(admin.get("/audit/events", params={"request_id": response.headers["x-request-id"]}), 200)["events"]
        assert (event["operation"], event["result"], event["principal"]) == (operation, result, "system")
        assert (event["detail"] or "").startswith(detail)
        if result == "allowed":
            assert event["resource"] == name
