"""Restore: the content becomes a new version, and no existing version changes or disappears."""

import json
import os
import random
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.management import Management, expect, expect_refusal, segment


@pytest.fixture
def bucket(admin: Management) -> str:
    """Creates a bucket with versioning."""
    name = f"restore-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    expect(admin.post("/buckets", {"name": name}), 201)
    set_versioning(admin, name, "Enabled")
    return name


def set_versioning(admin: Management, bucket: str, state: str) -> None:
    """Sets the bucket's versioning status."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": state}), 200)


def upload(admin: Management, bucket: str, key: str, body: bytes, **headers: str) -> dict:
    """Uploads an object and returns its record."""
    path = f"/buckets/{bucket}/object/{segment(key)}"
    return expect(admin.request("PUT", path, data=body, headers={"content-type": "text/plain"} | headers), 201)


def versions(admin: Management, bucket: str) -> list[dict]:
    """Returns all versions of a bucket, newest first within a key."""
    return expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)["versions"]


def content(admin: Management, bucket: str, key: str, **parameters: str) -> bytes:
    """Returns the bytes of a version."""
    response = admin.get(f"/buckets/{bucket}/object-content/{segment(key)}", params=parameters)
    assert response.status_code == 200, response.text
    return response.content


@pytest.mark.parametrize("size", [0, 100, 300_000])
def test_older_version_is_restored_as_a_new_version(admin: Management, bucket: str, size: int):
    """Content, type and metadata are restored, and the history has one more version."""
    key, body = "folder/a key", random.Random(size).randbytes(size)
    old = upload(admin, bucket, key, body, **{"x-amz-meta-a": "1", "content-type": "text/css"})
    upload(admin, bucket, key, b"newer")
    before = versions(admin, bucket)
    response = admin.post(f"/restore/{bucket}/folder/a%20key", {"version_id": old["version_id"]})
    restored = expect(response, 201)
    assert restored["version_id"] not in {version["version_id"] for version in before}
    for field in ("key", "size", "etag", "content_type", "metadata"):
        assert restored[field] == old[field]
    after = versions(admin, bucket)
    assert [one | {"is_latest": False} for one in before] == after[1:]
    assert (after[0]["version_id"], after[0]["is_latest"]) == (restored["version_id"], True)
    assert content(admin, bucket, key) == body and content(admin, bucket, key, version_id=before[0]["version_id"]) == b"newer"
    (event,) = expect(admin.get("/audit/events", params={"request_id": response.headers["x-request-id"]}), 200)["events"]
    assert (event["operation"], event["resource"], event["result"]) == ("restore_object", f"{bucket}/{key}", "allowed")
    assert old["version_id"] in event["detail"] and restored["version_id"] in event["detail"]


def test_restore_of_a_deleted_object_keeps_its_marker(admin: Management, bucket: str):
    """A delete marker itself cannot be restored."""
    old = upload(admin, bucket, "k", b"precious")
    assert admin.delete(f"/buckets/{bucket}/object/k").status_code == 204
    marker = versions(admin, bucket)[0]
    assert marker["is_delete_marker"]
    expect_refusal(admin.post(f"/restore/{bucket}/k", {"version_id": marker["version_id"]}), 404, "VERSION_NOT_FOUND")
    expect(admin.post(f"/restore/{bucket}/k", {"version_id": old["version_id"]}), 201)
    assert content(admin, bucket, "k") == b"precious"
    assert [one["is_delete_marker"] for one in versions(admin, bucket)] == [False, True, False]


def test_current_version_can_be_restored(admin: Management, bucket: str):
    """It creates another version with the same content."""
    only = upload(admin, bucket, "k", b"x")
    again = expect(admin.post(f"/restore/{bucket}/k", {"version_id": only["version_id"]}), 201)
    assert again["version_id"] != only["version_id"] and len(versions(admin, bucket)) == 2


def test_restore_in_suspended_and_unversioned_buckets(admin: Management, bucket: str):
    """In a suspended bucket the null version gets the content. In an unversioned one there is nothing to restore."""
    old = upload(admin, bucket, "k", b"old")
    set_versioning(admin, bucket, "Suspended")
    upload(admin, bucket, "k", b"null")
    assert expect(admin.post(f"/restore/{bucket}/k", {"version_id": old["version_id"]}), 201)["version_id"] == "null"
    assert content(admin, bucket, "k") == b"old"
    assert [one["version_id"] for one in versions(admin, bucket)] == ["null", old["version_id"]]

    plain = f"{bucket}-plain"
    expect(admin.post("/buckets", {"name": plain}), 201)
    upload(admin, plain, "k", b"x")
    before = expect(admin.get(f"/buckets/{plain}/object/k"), 200)
    expect_refusal(admin.post(f"/restore/{plain}/k", {"version_id": "null"}), 409, "INVALID_BUCKET_STATE")
    expect_refusal(admin.post(f"/restore/{plain}/k", {"version_id": old["version_id"]}), 404, "VERSION_NOT_FOUND")
    assert expect(admin.get(f"/buckets/{plain}/object/k"), 200) == before


def test_invalid_restore_requests_change_nothing(admin: Management, bucket: str):
    """Unknown buckets, keys and versions and malformed bodies are refused."""
    old = upload(admin, bucket, "k", b"x")
    before = versions(admin, bucket)
    expect_refusal(admin.post("/restore/no-such-bucket/k", {"version_id": old["version_id"]}), 404, "BUCKET_NOT_FOUND")
    expect_refusal(admin.post("/restore/No/k", {"version_id": old["version_id"]}), 400, "INVALID_BUCKET_NAME")
    for key, version in [("k", "0000000000000001"), ("k", "x"), ("k", "null"), ("other", old["version_id"]), ("../k", old["version_id"])]:
        expect_refusal(admin.post(f"/restore/{bucket}/{segment(key)}", {"version_id": version}), 404, "VERSION_NOT_FOUND")
    for body in (b"", b"{}", b"[]", b'{"version_id":7}', b'{"version_id":null}', b'{"version_id":""}', b'{"version_id":"x","force":true}', b"\xff"):
        expect_refusal(admin.request("POST", f"/restore/{bucket}/k", data=body), 400, "INVALID_REQUEST")
    padded = json.dumps({"version_id": old["version_id"]}).encode().ljust((1 << 20) + 1)
    expect_refusal(admin.request("POST", f"/restore/{bucket}/k", data=padded), 413, "PAYLOAD_TOO_LARGE")
    expect_refusal(admin.post(f"/restore/{bucket}/k?dry_run=1", {"version_id": old["version_id"]}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(f"/restore/{bucket}/k"), 405, "METHOD_NOT_ALLOWED")
    assert versions(admin, bucket) == before


def test_restore_over_the_quota_is_refused(admin: Management, bucket: str):
    """Nothing is created. A restore that replaces an object of the same size is accepted."""
    large = upload(admin, bucket, "k", b"x" * 100)
    upload(admin, bucket, "k", b"x")
    quota = {"bytes": {"mode": "limit", "bytes": 99}, "objects": {"mode": "limit", "objects": 1}}
    expect(admin.put(f"/buckets/{bucket}/quota", {"quota": quota}), 200)
    before = versions(admin, bucket)
    expect_refusal(admin.post(f"/restore/{bucket}/k", {"version_id": large["version_id"]}), 409, "QUOTA_EXCEEDED")
    assert versions(admin, bucket) == before
    quota["bytes"]["bytes"] = 100
    expect(admin.put(f"/buckets/{bucket}/quota", {"quota": quota}), 200)
    expect(admin.post(f"/restore/{bucket}/k", {"version_id": large["version_id"]}), 201)


def test_restored_multipart_object_keeps_its_parts(admin: Management, boto, bucket: str):
    """The ETag is the same, so clients that compare ETags see the same object."""
    upload_id = boto.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    part = {"Bucket": bucket, "Key": "k", "UploadId": upload_id}
    bodies = [b"a" * (5 << 20), b"b"]
    parts = [
        {"PartNumber": number, "ETag": boto.upload_part(**part, PartNumber=number, Body=body)["ETag"]} for number, body in enumerate(bodies, 1)
    ]
    boto.complete_multipart_upload(**part, MultipartUpload={"Parts": parts})
    old = expect(admin.get(f"/buckets/{bucket}/object/k"), 200)
    upload(admin, bucket, "k", b"newer")
    restored = expect(admin.post(f"/restore/{bucket}/k", {"version_id": old["version_id"]}), 201)
    assert restored | {name: old[name] for name in ("version_id", "last_modified")} == old
    assert content(admin, bucket, "k") == b"".join(bodies)


def test_concurrent_restores_create_one_version_each(admin: Management, bucket: str):
    """No restore is lost or duplicated."""
    old = upload(admin, bucket, "k", b"x")
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(admin.post, f"/restore/{bucket}/k", {"version_id": old["version_id"]}) for _ in range(24)]
        made = [expect(call.result(), 201)["version_id"] for call in calls]
    assert len(set(made)) == 24
    assert {one["version_id"] for one in versions(admin, bucket)} == {*made, old["version_id"]}


def test_restored_version_gets_the_default_retention(admin: Management, boto, bucket: str):
    """The lock of the source version does not change and is not copied."""
    locked = f"{bucket}-locked"
    expect(admin.post("/buckets", {"name": locked, "object_lock": True}), 201)
    boto.put_object(Bucket=locked, Key="k", Body=b"x", ObjectLockLegalHoldStatus="ON", ContentMD5="ndTkYSaMgDT1yFZOFVxnpg==")
    held_version = versions(admin, locked)[0]["version_id"]
    rule = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}}
    boto.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=rule)
    restored = expect(admin.post(f"/restore/{locked}/k", {"version_id": held_version}), 201)
    assert restored["legal_hold"] is False and restored["retention"]["mode"] == "COMPLIANCE"
    held = expect(admin.get(f"/buckets/{locked}/object/k", params={"version_id": held_version}), 200)
    assert held["legal_hold"] is True and "retention" not in held
