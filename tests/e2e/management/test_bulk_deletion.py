"""Deletion of many objects and versions with one request, and the commands that use it."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from harness.cli import Cli
from harness.management import Management, expect, expect_refusal


def put(admin: Management, bucket: str, *keys: str) -> None:
    """Writes an empty object under each key."""
    with ThreadPoolExecutor(8) as threads:
        for answer in threads.map(lambda key: admin.put(f"/buckets/{bucket}/object/{key}", data=b""), keys):
            expect(answer, 201)


def keys_of(admin: Management, bucket: str) -> list[str]:
    """Returns the keys of the current objects."""
    return [entry["key"] for entry in expect(admin.get(f"/buckets/{bucket}/objects"), 200)["objects"]]


def versions_of(admin: Management, bucket: str) -> list[dict]:
    """Returns all versions and delete markers."""
    return expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)["versions"]


def delete(admin: Management, bucket: str, *objects: dict) -> dict:
    """Deletes objects and versions."""
    return expect(admin.post(f"/buckets/{bucket}/delete", {"objects": list(objects)}), 200)


def test_objects_are_deleted_and_missing_ones_skipped(admin: Management, bucket: str):
    """A key that is named twice is deleted once. Repeating the request changes nothing."""
    put(admin, bucket, "a", "b/c", "kept")
    named = [{"key": "a"}, {"key": "none"}, {"key": "b/c"}, {"key": "a"}]
    assert delete(admin, bucket, *named) == {"deleted": 2, "skipped": 2, "failed": []}
    assert keys_of(admin, bucket) == ["kept"]
    assert delete(admin, bucket, *named) == {"deleted": 0, "skipped": 4, "failed": []}
    [record] = [r for r in expect(admin.get("/audit/events", params={"operation": "delete_objects", "limit": 1}), 200)["events"]]
    assert "0 deleted, 4 skipped, 0 failed" in str(record)


def test_markers_and_versions(admin: Management, bucket: str):
    """Without a version id an object gets a marker, and a missing one gets none. A version or marker is deleted for good."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    put(admin, bucket, "a", "b")
    assert delete(admin, bucket, {"key": "a"}, {"key": "none"}) == {"deleted": 1, "skipped": 1, "failed": []}
    assert delete(admin, bucket, {"key": "a"}) == {"deleted": 0, "skipped": 1, "failed": []}
    assert keys_of(admin, bucket) == ["b"]
    found = versions_of(admin, bucket)
    assert [(version["key"], version["is_delete_marker"]) for version in found] == [("a", True), ("a", False), ("b", False)]
    named = [{"key": version["key"], "version_id": version["version_id"]} for version in found]
    unknown = [{"key": "b", "version_id": "0000000000000001"}, {"key": "b", "version_id": "not an id, whatever it is"}]
    assert delete(admin, bucket, *unknown, *named) == {"deleted": 3, "skipped": 2, "failed": []}
    assert versions_of(admin, bucket) == []


def test_a_refused_deletion_stops_no_other(admin: Management):
    """A locked version stays, and the answer says which one it was."""
    bucket = f"locked-{uuid4().hex[:12]}"
    expect(admin.post("/buckets", {"name": bucket, "object_lock": True}), 201)
    put(admin, bucket, "a", "locked", "z")
    expect(admin.put(f"/buckets/{bucket}/object-legal-hold/locked", {"legal_hold": True}), 200)
    named = [{"key": version["key"], "version_id": version["version_id"]} for version in versions_of(admin, bucket)]
    done = delete(admin, bucket, *named)
    assert (done["deleted"], done["skipped"]) == (2, 0)
    [failed] = done["failed"]
    assert (failed["index"], failed["code"]) == (1, "OBJECT_LOCKED")
    assert keys_of(admin, bucket) == ["locked"]


def test_bad_requests_change_nothing(admin: Management, bucket: str):
    """One wrong name refuses the whole request, before anything is deleted."""
    put(admin, bucket, "a")
    for body in (
        {}, {"objects": []}, {"objects": [{"key": "a"}] * 1001}, {"objects": [{"key": "a"}, {"key": ""}]},
        {"objects": [{"key": "a"}, {"key": "x" * 1025}]}, {"objects": [{"key": "a"}, {"key": "a", "version_id": ""}]},
        {"objects": [{"key": "a"}, {"key": "a", "version_id": "0" * 65}]}, {"objects": [{"key": "a", "version": "1"}]}, {"objects": ["a"]}, {"keys": ["a"]},
    ):
        expect_refusal(admin.post(f"/buckets/{bucket}/delete", body), 400, "INVALID_REQUEST")
    expect_refusal(admin.post("/buckets/no-such-bucket/delete", {"objects": [{"key": "a"}]}), 404, "BUCKET_NOT_FOUND")
    assert keys_of(admin, bucket) == ["a"]


@pytest.mark.parametrize("length", [1, 900])
def test_commands_delete_more_than_one_request_holds(admin: Management, bucket: str, cli: Cli, length: int):
    """With short keys a request has 1000 of them, with long ones fewer."""
    count = 1100 if length == 1 else 300
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    put(admin, bucket, *(f"f/{number:04}{'k' * (length - 1)}" for number in range(count)), "other")
    assert cli.json("object", "rm", f"{bucket}/f/**", "--yes") == {"deleted": count, "refused": 0}
    assert keys_of(admin, bucket) == ["other"]
    emptied = cli.json("bucket", "empty", bucket, "--yes")
    assert (emptied["deleted_versions"], emptied["deleted_delete_markers"], emptied["refused"]) == (count + 1, count, 0)
    assert versions_of(admin, bucket) == []
