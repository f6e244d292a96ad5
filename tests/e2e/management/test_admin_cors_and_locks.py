"""Management routes of CORS rules, default retention, retention and legal holds: the same rules as on the data plane."""

import os
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient

from harness.boto import refused
from harness.management import Management, expect, expect_refusal, segment, with_role
from harness.server import Cairn

ORIGIN = "https://app.example.com"
RULE = {
    "id": "app", "allowed_origins": [ORIGIN], "allowed_methods": ["GET", "PUT"], "allowed_headers": ["content-type", "x-amz-*"],
    "expose_headers": ["ETag"], "max_age_seconds": 600,
}
LEAST = {"allowed_origins": ["*"], "allowed_methods": ["GET"]}
DIFFICULT = ["k", "a b/100%2F+#?.txt", "../up//./x", "שלום 😀", "quotes'\"<b>"]


@pytest.fixture
def name() -> str:
    """A unique bucket name."""
    return f"rules-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def open_bucket(admin: Management, name: str) -> str:
    """A bucket without object lock."""
    expect(admin.post("/buckets", {"name": name}), 201)
    return name


def later(**distance: float) -> str:
    """Returns a time in the future as the API writes it."""
    return (datetime.now(UTC) + timedelta(**distance)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def audited(admin: Management, bucket: str) -> list[tuple]:
    """Returns operation, result and detail of the bucket's latest events, oldest first."""
    events = expect(admin.get("/audit/events", params={"bucket": bucket}), 200)["events"][::-1]
    return [(event["operation"], event["result"], event["detail"]) for event in events]


def preflight(store: Cairn, bucket: str, method: str = "PUT") -> int:
    """Returns the status of a browser's preflight."""
    headers = [("Host", store.s3.authority), ("Origin", ORIGIN), ("Access-Control-Request-Method", method)]
    return store.s3.send_raw("OPTIONS", f"/{bucket}/k", headers).status


def test_cors_rules_are_the_same_on_both_planes(store: Cairn, admin: Management, boto: BaseClient, open_bucket: str):
    """What one plane stores, the other one returns, and browsers are answered accordingly."""
    path = f"/buckets/{open_bucket}/cors"
    assert expect(admin.get(path), 200) == {"rules": []}
    assert preflight(store, open_bucket) == 403
    full = {"rules": [RULE, LEAST | {"allowed_headers": [], "expose_headers": []}]}
    assert expect(admin.put(path, {"rules": [RULE, LEAST]}), 200) == full == expect(admin.get(path), 200)
    assert preflight(store, open_bucket) == 200
    stored = boto.get_bucket_cors(Bucket=open_bucket)["CORSRules"]
    assert stored == [
        {"ID": "app", "AllowedOrigins": [ORIGIN], "AllowedMethods": ["GET", "PUT"], "AllowedHeaders": ["content-type", "x-amz-*"],
         "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 600},
        {"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]},
    ]
    boto.put_bucket_cors(Bucket=open_bucket, CORSConfiguration={"CORSRules": [{"AllowedOrigins": ["*"], "AllowedMethods": ["HEAD"], "MaxAgeSeconds": 5}]})
    assert expect(admin.get(path), 200)["rules"] == [
        {"allowed_origins": ["*"], "allowed_methods": ["HEAD"], "allowed_headers": [], "expose_headers": [], "max_age_seconds": 5},
    ]
    for _ in range(2):
        expect(admin.delete(path), 204)
    assert expect(admin.get(path), 200) == {"rules": []} and preflight(store, open_bucket) == 403
    changes = [event for event in audited(admin, open_bucket) if event[0] in ("set_cors", "delete_cors")]
    assert changes == [("set_cors", "allowed", "2 rules"), ("delete_cors", "allowed", None), ("delete_cors", "allowed", None)]


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ([], "rules: at least one"),
        ([LEAST] * 101, "at most 100"),
        ([LEAST, LEAST | {"allowed_origins": []}], "rules[1].allowed_origins"),
        ([LEAST | {"allowed_methods": []}], "rules[0].allowed_methods"),
        ([LEAST | {"allowed_methods": ["OPTIONS"]}], '"OPTIONS"'),
        ([LEAST | {"allowed_origins": ["https://*.example.com"]}], "matched exactly"),
        ([LEAST | {"allowed_origins": ["https://a.example/"]}], "without a path"),
        ([LEAST | {"allowed_headers": ["x-*-*"]}], "more than one *"),
        ([LEAST | {"expose_headers": ["x-*"]}], "name each header"),
        ([LEAST | {"expose_headers": ["a b"]}], "not the name of a header"),
        ([LEAST | {"id": "i" * 256}], "255 characters"),
        ([LEAST | {"id": "a\u0000b"}], "control characters"),
        ([LEAST | {"max_age_seconds": -1}], "max_age_seconds"),
        ([LEAST | {"max_age_seconds": 1 << 32}], "max_age_seconds"),
        ([LEAST | {"AllowedOrigins": ["*"]}], "unknown field"),
        ([{"allowed_origins": ["*"]}], "allowed_methods"),
        ("all", "invalid type"),
    ],
)
def test_invalid_cors_rules_change_nothing(admin: Management, open_bucket: str, rules: object, named: str):
    """The message names the rule and what is wrong with it."""
    path = f"/buckets/{open_bucket}/cors"
    expect(admin.put(path, {"rules": [RULE]}), 200)
    message = expect_refusal(admin.put(path, {"rules": rules}), 400, "INVALID_REQUEST")
    assert named in message or named == "max_age_seconds" and "integer" in message, message
    assert expect(admin.get(path), 200) == {"rules": [RULE]}


def test_cors_document_is_limited_and_bucket_must_exist(admin: Management, open_bucket: str):
    """64 KiB, as on the data plane."""
    path = f"/buckets/{open_bucket}/cors"
    origins = [f"https://{number:05}.example.com" for number in range(3000)]
    expect_refusal(admin.put(path, {"rules": [LEAST | {"allowed_origins": origins}]}), 413, "PAYLOAD_TOO_LARGE")
    expect_refusal(admin.put(path, {}), 400, "INVALID_REQUEST")
    expect_refusal(admin.delete(path, data=b"x"), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(path + "?x=1"), 400, "INVALID_REQUEST")
    for method, body in (("GET", None), ("PUT", {"rules": [LEAST]}), ("DELETE", None)):
        expect_refusal(admin.request(method, "/buckets/no-such-bucket/cors", json=body), 404, "BUCKET_NOT_FOUND")


def test_default_retention_is_the_same_on_both_planes(store: Cairn, admin: Management, boto: BaseClient, locked: str):
    """Later versions get it, earlier ones do not. A null removes it."""
    path = f"/buckets/{locked}/object-lock"
    assert expect(admin.get(path), 200) == {"object_lock": True, "default_retention": None}
    store.s3.put(locked, "before", b"x")
    for retention, rule in (({"mode": "COMPLIANCE", "years": 1}, {"Mode": "COMPLIANCE", "Years": 1}), ({"mode": "GOVERNANCE", "days": 2}, {"Mode": "GOVERNANCE", "Days": 2})):
        shown = {"object_lock": True, "default_retention": retention}
        assert expect(admin.put(path, {"default_retention": retention}), 200) == shown == expect(admin.get(path), 200)
        assert boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]["Rule"]["DefaultRetention"] == rule
    store.s3.put(locked, "after", b"x")
    listed = {entry["key"]: entry for entry in expect(admin.get(f"/buckets/{locked}/objects"), 200)["objects"]}
    assert "retention" not in listed["before"] and listed["after"]["retention"]["mode"] == "GOVERNANCE"
    assert (listed["before"]["legal_hold"], listed["after"]["legal_hold"]) == (False, False)
    assert expect(admin.put(path, {"default_retention": None}), 200) == {"object_lock": True, "default_retention": None}
    assert "Rule" not in boto.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert [detail for operation, _, detail in audited(admin, locked) if operation == "set_object_lock"] == [
        "default retention COMPLIANCE for 1 years", "default retention GOVERNANCE for 2 days", "without default retention",
    ]


@pytest.mark.parametrize(
    ("retention", "named"),
    [
        ({"mode": "GOVERNANCE"}, "days or years"), ({"mode": "GOVERNANCE", "days": 1, "years": 1}, "days or years"),
        ({"mode": "GOVERNANCE", "days": 0}, "1 to 36500"), ({"mode": "GOVERNANCE", "days": 36501}, "1 to 36500"),
        ({"mode": "GOVERNANCE", "years": 101}, "1 to 100"), ({"mode": "governance", "days": 1}, "governance"),
        ({"days": 1}, "mode"), ({"mode": "GOVERNANCE", "days": 1, "hours": 1}, "hours"), ("GOVERNANCE", "invalid type"),
    ],
)
def test_invalid_default_retention_changes_nothing(admin: Management, locked: str, retention: object, named: str):
    """The message says which values are allowed."""
    message = expect_refusal(admin.put(f"/buckets/{locked}/object-lock", {"default_retention": retention}), 400, "INVALID_REQUEST")
    assert named in message, message
    assert expect(admin.get(f"/buckets/{locked}/object-lock"), 200)["default_retention"] is None
    expect_refusal(admin.put(f"/buckets/{locked}/object-lock", {}), 400, "INVALID_REQUEST")


def test_bucket_without_object_lock_locks_nothing(store: Cairn, admin: Management, open_bucket: str):
    """Every route says that it is too late."""
    store.s3.put(open_bucket, "k", b"x")
    path = f"/buckets/{open_bucket}"
    assert expect(admin.get(f"{path}/object-lock"), 200) == {"object_lock": False, "default_retention": None}
    for target, body in (
        ("object-lock", {"default_retention": {"mode": "GOVERNANCE", "days": 1}}), ("object-legal-hold/k", {"legal_hold": True}),
        ("object-retention/k", {"retention": {"mode": "GOVERNANCE", "retain_until": later(days=1)}}),
    ):
        message = expect_refusal(admin.put(f"{path}/{target}", body), 409, "OBJECT_LOCK_NOT_ENABLED")
        assert "when a bucket is created" in message
    assert [(operation, result) for operation, result, _ in audited(admin, open_bucket)][-3:] == [
        ("set_object_lock", "failed"), ("set_object_legal_hold", "failed"), ("set_object_retention", "failed"),
    ]


@pytest.mark.parametrize("key", DIFFICULT)
def test_retention_and_hold_of_versions_with_any_key(store: Cairn, admin: Management, locked: str, key: str):
    """Each version has its own. Records and lists show them, and deletions are refused."""
    old = store.s3.put(locked, key, b"old").get("x-amz-version-id")
    new = store.s3.put(locked, key, b"new").get("x-amz-version-id")
    path = f"/buckets/{locked}"
    name = segment(key)
    retention = {"mode": "GOVERNANCE", "retain_until": later(days=3)}
    assert expect(admin.put(f"{path}/object-retention/{name}?version_id={old}", {"retention": retention}), 200) == {"retention": retention}
    assert expect(admin.put(f"{path}/object-legal-hold/{name}", {"legal_hold": True}), 200) == {"legal_hold": True}
    versions = {entry["version_id"]: entry for entry in expect(admin.get(f"{path}/object-versions"), 200)["versions"]}
    assert (versions[old].get("retention"), versions[old]["legal_hold"]) == (retention, False)
    assert (versions[new].get("retention"), versions[new]["legal_hold"]) == (None, True)
    shown = expect(admin.get(f"{path}/object/{name}?version_id={old}"), 200)
    assert (shown["retention"], shown["legal_hold"]) == (retention, False)
    assert expect(admin.get(f"{path}/object/{name}"), 200)["legal_hold"] is True
    for version in (old, new):
        expect_refusal(admin.delete(f"{path}/object-versions/{name}?version_id={version}"), 403, "OBJECT_LOCKED")
    expect(admin.put(f"{path}/object-legal-hold/{name}?version_id={new}", {"legal_hold": False}), 200)
    expect(admin.put(f"{path}/object-retention/{name}?version_id={old}", {"retention": None, "bypass_governance": True}), 200)
    for version in (old, new):
        expect(admin.delete(f"{path}/object-versions/{name}?version_id={version}"), 204)
    assert [event for event in audited(admin, locked) if event[0].startswith("set_object")] == [
        ("set_object_retention", "allowed", f"retention GOVERNANCE until {retention['retain_until']} of version {old}"),
        ("set_object_legal_hold", "allowed", "legal hold set of the current version"),
        ("set_object_legal_hold", "allowed", f"legal hold lifted of version {new}"),
        ("set_object_retention", "allowed", f"without retention of version {old}; governance bypassed"),
    ]


def test_only_governance_is_shortened_and_only_by_a_bypass(store: Cairn, admin: Management, boto: BaseClient, locked: str):
    """The same table as for PutObjectRetention; a refusal changes nothing and is audited."""
    path = f"/buckets/{locked}/object-retention/k"

    def change(mode: str | None, days: float = 0, **more: object):
        retention = {"mode": mode, "retain_until": later(days=days)} if mode else None
        return admin.put(path, {"retention": retention} | more)

    store.s3.put(locked, "k", b"x")
    for mode, days in (("GOVERNANCE", 5), ("GOVERNANCE", 6)):
        expect(change(mode, days), 200)
    for mode, days in (("GOVERNANCE", 5), ("COMPLIANCE", 9), (None, 0)):
        message = expect_refusal(change(mode, days), 403, "OBJECT_LOCKED")
        assert "bypass_governance" in message
    expect(change("GOVERNANCE", 2, bypass_governance=True), 200)
    until = later(days=4)
    expect(admin.put(path, {"retention": {"mode": "COMPLIANCE", "retain_until": until}, "bypass_governance": True}), 200)
    for mode, days in (("COMPLIANCE", 3), ("GOVERNANCE", 9), (None, 0)):
        expect_refusal(change(mode, days, bypass_governance=True), 403, "OBJECT_LOCKED")
    found = boto.get_object_retention(Bucket=locked, Key="k")["Retention"]
    assert (found["Mode"], found["RetainUntilDate"].strftime("%Y-%m-%dT%H:%M:%S.000Z")) == ("COMPLIANCE", until)
    expect(change("COMPLIANCE", 5), 200)
    results = [result for operation, result, _ in audited(admin, locked) if operation == "set_object_retention"]
    assert results == ["allowed"] * 2 + ["failed"] * 3 + ["allowed"] * 2 + ["failed"] * 3 + ["allowed"]


def test_invalid_retention_and_holds_are_refused(store: Cairn, admin: Management, locked: str):
    """Times, members, versions and objects that do not exist."""
    store.s3.put(locked, "k", b"x")
    store.s3.put(locked, "gone", b"x")
    store.s3.delete(locked, "gone")
    path = f"/buckets/{locked}"
    good = {"retention": {"mode": "GOVERNANCE", "retain_until": later(days=1)}}
    for retention, named in (
        ({"mode": "GOVERNANCE", "retain_until": "2020-01-01T00:00:00Z"}, "in the future"), ({"mode": "GOVERNANCE", "retain_until": "tomorrow"}, "RFC 3339"),
        ({"mode": "GOVERNANCE"}, "retain_until"), ({"retain_until": later(days=1)}, "mode"), ({"mode": "NONE", "retain_until": later(days=1)}, "NONE"),
    ):
        message = expect_refusal(admin.put(f"{path}/object-retention/k", {"retention": retention}), 400, "INVALID_REQUEST")
        assert named in message, message
    for body in ({}, good | {"bypass": True}, good | {"bypass_governance": "yes"}, []):
        expect_refusal(admin.put(f"{path}/object-retention/k", body), 400, "INVALID_REQUEST")
    for body in ({}, {"legal_hold": "ON"}, {"legal_hold": None}, {"legal_hold": True, "x": 1}):
        expect_refusal(admin.put(f"{path}/object-legal-hold/k", body), 400, "INVALID_REQUEST")
    for route, body in (("object-retention", good), ("object-legal-hold", {"legal_hold": True})):
        for target, code in (("missing", "OBJECT_NOT_FOUND"), ("gone", "OBJECT_NOT_FOUND"), ("k?version_id=0000000000000001", "VERSION_NOT_FOUND"), ("k?version_id=x", "VERSION_NOT_FOUND")):
            expect_refusal(admin.put(f"{path}/{route}/{target}", body), 404, code)
    assert "retention" not in expect(admin.get(f"{path}/object/k"), 200)


def test_storage_administrator_may_lock_and_auditor_may_read(store: Cairn, admin: Management, locked: str):
    """A storage administrator may bypass governance, too."""
    store.s3.put(locked, "k", b"x")
    storage, auditor = with_role(admin, "storage_admin"), with_role(admin, "auditor")
    path = f"/buckets/{locked}/object-retention/k"
    expect(storage.put(path, {"retention": {"mode": "GOVERNANCE", "retain_until": later(days=1)}}), 200)
    expect(storage.put(path, {"retention": None, "bypass_governance": True}), 200)
    for route in ("cors", "object-lock", "object/k"):
        expect(auditor.get(f"/buckets/{locked}/{route}"), 200)
    expect_refusal(auditor.put(path, {"retention": None}), 403, "FORBIDDEN")


def test_holds_of_both_planes_are_one(store: Cairn, admin: Management, boto: BaseClient, locked: str):
    """A hold that one plane has put on protects on the other."""
    version = {"Bucket": locked, "Key": "k", "VersionId": store.s3.put(locked, "k", b"x").get("x-amz-version-id")}
    expect(admin.put(f"/buckets/{locked}/object-legal-hold/k", {"legal_hold": True}), 200)
    assert boto.get_object_legal_hold(**version)["LegalHold"] == {"Status": "ON"}
    with refused(403, "AccessDenied"):
        boto.delete_object(**version)
    boto.put_object_legal_hold(**version, LegalHold={"Status": "OFF"})
    assert expect(admin.get(f"/buckets/{locked}/object/k"), 200)["legal_hold"] is False
