"""The history of an object: who wrote, overwrote, deleted, restored, shared and expired it."""

from collections.abc import Callable

import pytest

from harness.accounts import create_account, statement
from harness.cli import Cli
from harness.management import Management, expect, expect_refusal, segment, with_role
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

MEMBERS = {"time", "kind", "version_id", "size", "principal", "request_id", "rule_id", "source_ip"}
HOSTILE = ["../../etc/passwd", "a//b", "%2F", "+ &=#", "\x01\x1b[31m", "ä/ö/ü", "😀", "0" * 1024]


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server whose days are short, with an audit trail of all changes of objects."""
    settings = {"SERVICE_LIFECYCLE_DAY_SECONDS": "1", "SERVICE_LIFECYCLE_INTERVAL_SECONDS": "1", "SERVICE_AUDIT_DATA_EVENTS": "writes"}
    return make_module_store(**settings).start()


def history(admin: Management, bucket: str, key: str) -> list[dict]:
    """Returns a complete history."""
    body = expect(admin.get(f"/buckets/{bucket}/object-history/{segment(key)}"), 200)
    assert set(body) == {"entries", "complete"} and body["complete"] is True
    assert all(set(entry) == MEMBERS for entry in body["entries"])
    times = [entry["time"] for entry in body["entries"]]
    assert times == sorted(times, reverse=True)
    return body["entries"]


def kinds(admin: Management, bucket: str, key: str) -> list[str]:
    """Returns what has happened, the latest first."""
    return [entry["kind"] for entry in history(admin, bucket, key)]


def test_written_overwritten_and_expired(store: Cairn, admin: Management, s3: S3, bucket: str):
    """Each with who did it, from where, in which request, and by which rule. Only the events know it: nothing is left of the object."""
    deploy = create_account(store, statement("allow", "PutObject", f"bucket:{bucket}/*"), name="ci-deploy")
    first = deploy.s3.put(bucket, "app/tmp", b"x" * 10)
    second = s3.put(bucket, "app/tmp", b"x" * 20)
    rule = expect(admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": "app/", "expiration": 1}), 201)
    until(lambda: s3.get(bucket, "app/tmp").status == 404, "the rule to act")
    expired, overwritten, written = history(admin, bucket, "app/tmp")
    assert (expired["kind"], expired["rule_id"], expired["size"], expired["source_ip"]) == ("expired", rule["id"], 20, None)
    assert (overwritten["kind"], overwritten["principal"], overwritten["source_ip"], overwritten["size"]) == ("overwritten", "root", "127.0.0.1", 20)
    assert (written["kind"], written["principal"], written["source_ip"], written["size"]) == ("written", "account:ci-deploy", "127.0.0.1", 10)
    for entry, response in ((overwritten, second), (written, first)):
        assert entry["request_id"] == response.get("x-amz-request-id")
        assert (entry["version_id"], entry["rule_id"]) == ("null", None)


def test_a_bucket_with_versions(store: Cairn, admin: Management, s3: S3, versioned: str):
    """Markers, undeletions, restorations, uploads and removed versions; keys that begin with this one do not count."""
    ids = [s3.put(versioned, "k", b"x" * size).get("x-amz-version-id") for size in (1, 2)]
    s3.put(versioned, "k/", b"another")
    s3.put(versioned, "kk", b"another")
    s3.request("DELETE", object_target(versioned, "k"))
    expect(admin.post(f"/buckets/{versioned}/undelete", {"keys": ["k"]}), 200)
    expect(admin.post(f"/restore/{versioned}/k", {"version_id": ids[0]}), 201)
    expect(admin.delete(f"/buckets/{versioned}/object-versions/k", params={"version_id": ids[0]}), 204)
    entries = history(admin, versioned, "k")
    assert [entry["kind"] for entry in entries] == ["deleted", "restored", "restored", "deleted", "overwritten", "written"]
    removed, copied, undeleted, marker, second, first = entries
    assert (first["version_id"], second["version_id"], undeleted["version_id"], removed["version_id"]) == (*ids, ids[1], ids[0])
    assert (copied["size"], marker["size"], removed["size"]) == (1, 0, 1)
    assert (removed["principal"], marker["principal"]) == ("system", "root")
    s3.request("DELETE", object_target(versioned, "k"))
    s3.put(versioned, "k", b"again")
    assert kinds(admin, versioned, "k")[:2] == ["written", "deleted"], "what a marker hides is not overwritten"


def test_links_are_in_the_history(admin: Management, s3: S3, bucket: str):
    """Also deleted ones, for those who may read the audit trail. Others see the rest, without addresses."""
    s3.put(bucket, "a.png", b"x", headers=[("content-type", "image/png")])
    share = expect(admin.post(f"/buckets/{bucket}/object-shares/a.png", {}), 201)["share"]
    expect(admin.post(f"/buckets/{bucket}/object-embeds/a.png", {"allowed_origins": ["https://example.com"], "disposition": "inline"}), 201)
    pinned = expect(admin.post(f"/buckets/{bucket}/object-shares/a.png", {"version_id": "null"}), 201)["share"]
    entries = history(admin, bucket, "a.png")
    assert [entry["kind"] for entry in entries] == ["shared", "embedded", "shared", "written"]
    assert [entry["version_id"] for entry in entries] == ["null", None, None, "null"]
    assert {(entry["principal"], entry["source_ip"]) for entry in entries[:3]} == {("system", "127.0.0.1")}
    assert all(entry["request_id"] for entry in entries) and [entry["size"] for entry in entries] == [None, None, None, 1]
    for role, address in (("auditor", "127.0.0.1"), ("storage_admin", None)):
        seen = history(with_role(admin, role), bucket, "a.png")
        assert [(entry["kind"], entry["principal"], entry["source_ip"]) for entry in seen] == [
            ("shared", "system", address), ("embedded", "system", address), ("shared", "system", address), ("written", "root", address),
        ]
    for link in (share, pinned):
        expect(admin.delete(f"/shares/{link['id']}"), 204)
    assert kinds(admin, bucket, "a.png") == ["shared", "embedded", "shared", "written"]
    assert kinds(with_role(admin, "storage_admin"), bucket, "a.png") == ["embedded", "written"]


def test_an_object_of_this_bucket_and_key_only(admin: Management, s3: S3, bucket: str):
    """A missing object is refused, hostile keys are found, and an earlier bucket of the same name does not count."""
    for key in HOSTILE:
        s3.put(bucket, key, b"x")
        assert kinds(admin, bucket, key) == ["written"], key
        s3.request("DELETE", object_target(bucket, key))
        assert kinds(admin, bucket, key) == ["deleted", "written"], key
    expect_refusal(admin.get(f"/buckets/{bucket}/object-history/missing"), 404, "OBJECT_NOT_FOUND")
    expect_refusal(admin.get(f"/buckets/{bucket}/object-history/k", params={"limit": 1}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get("/buckets/no-such-bucket/object-history/k"), 404, "BUCKET_NOT_FOUND")
    expect(admin.delete(f"/buckets/{bucket}"), 204)
    expect(admin.post("/buckets", {"name": bucket}), 201)
    expect_refusal(admin.get(f"/buckets/{bucket}/object-history/{segment(HOSTILE[0])}"), 404, "OBJECT_NOT_FOUND")


def test_versions_have_entries_without_events(make_store: Callable[..., Cairn]):
    """Who wrote them is not known. A version that is newer than the events' end is told by its event."""
    store = make_store(SERVICE_EVENTS_ENABLED="false").start()
    admin, s3 = store.admin, store.s3
    s3.create_bucket("silent")
    s3.put("silent", "null", b"1")
    expect(admin.put("/buckets/silent/versioning", {"versioning": "Enabled"}), 200)
    for size in (1, 2):
        s3.put("silent", "k", b"x" * size)
    s3.request("DELETE", object_target("silent", "k"))
    s3.put("silent", "k", b"x" * 3)
    assert [(one["kind"], one["size"], one["principal"]) for one in history(admin, "silent", "k")] == [
        ("written", 3, None), ("deleted", 0, None), ("overwritten", 2, None), ("written", 1, None),
    ]
    store.stop()
    store.extra["SERVICE_EVENTS_ENABLED"] = "true"
    store.start()
    store.s3.put("silent", "k", b"x" * 4)
    assert [(one["kind"], one["principal"]) for one in history(store.admin, "silent", "k")] == [
        ("overwritten", "root"), ("written", None), ("deleted", None), ("overwritten", None), ("written", None),
    ]
    store.s3.put("silent", "null", b"2")
    assert [(one["kind"], one["version_id"] == "null") for one in history(store.admin, "silent", "null")] == [("overwritten", False), ("written", True)]


def test_the_command(store: Cairn, admin: Management, s3: S3, bucket: str):
    """As a table and as JSON."""
    s3.put(bucket, "k", b"x" * 2048)
    cli = Cli(store.management, store.secrets.system_token)
    labels, row = cli.text("object", "history", f"{bucket}/k").splitlines()
    assert labels.split()[:6] == ["TIME", "WHAT", "BY", "FROM", "RULE", "SIZE"]
    assert row.split()[1:5] == ["written", "root", "127.0.0.1", "-"]
    assert cli.json("object", "history", f"{bucket}/k")["entries"] == history(admin, bucket, "k")
    assert "no such object" in cli.fails("object", "history", f"{bucket}/missing").lower() or "does not exist" in cli.fails("object", "history", f"{bucket}/missing")
