"""Audit trail: recorded events, queries, and damage to the trail itself."""

import random
import shutil
from datetime import datetime, timedelta, timezone

import pytest
import requests

from harness.damage import find_bytes, flip_bit, volumes
from harness.s3 import S3, object_target
from harness.server import Cairn, ServerError
from harness.sigv4 import Credential

EVENTS = "/api/v1/audit/events"
FIELDS = {"id", "time", "principal", "role", "operation", "resource", "result", "source_ip", "request_id", "detail"}
BLOCK_BYTES = 65536


def ask(store: Cairn, token: str | None = None, **parameters) -> requests.Response:
    """Requests one page of audit events, with the system token unless another one is given."""
    headers = {"Authorization": f"Bearer {store.secrets.system_token if token is None else token}"}
    return requests.get(store.management + EVENTS, params=parameters, headers=headers, timeout=30)


def events(store: Cairn, **parameters) -> list[dict]:
    """Returns all matching events, following the cursor through the pages."""
    found: list[dict] = []
    cursor: dict[str, str] = {}
    while True:
        answer = ask(store, **parameters, **cursor)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert set(page) == {"events", "next_time", "next_id"}
        found += page["events"]
        assert (page["next_time"] is None) == (page["next_id"] is None)
        if page["next_id"] is None:
            return found
        cursor = {"after_time": page["next_time"], "after_id": page["next_id"]}


def test_damaged_block_is_recorded_with_the_request(own_store: Cairn):
    """The client gets 500. The event has the request ID and names bucket, key, version and block."""
    s3, body = own_store.s3, random.Random(4).randbytes(3 * BLOCK_BYTES)
    s3.create_bucket("audited")
    s3.put("audited", "some/key", body)
    assert own_store.stop() == 0
    (place,) = find_bytes(volumes(own_store.data), body[BLOCK_BYTES : BLOCK_BYTES + 64])
    flip_bit(*place, 0)
    own_store.start()
    damaged = s3.get("audited", "some/key", [("Range", f"bytes={BLOCK_BYTES}-{BLOCK_BYTES + 9}")])
    assert damaged.status == 500

    (request,) = events(own_store, request_id=damaged.get("x-amz-request-id"))
    assert set(request) == FIELDS
    assert (request["operation"], request["resource"], request["result"]) == ("GetObject", "audited/some/key", "failed")
    assert request["principal"] == "root" and request["source_ip"] == "127.0.0.1"
    assert "block 1 of audited/some/key version null" in request["detail"]
    (finding,) = events(own_store, operation="storage.damage")
    assert (finding["resource"], finding["principal"], finding["request_id"]) == ("audited/some/key", "service", None)
    assert "version null: block 1" in finding["detail"] and "serving" in finding["detail"]

    headers = {"Authorization": f"Bearer {own_store.secrets.system_token}"}
    verify = requests.post(f"{own_store.management}/api/v1/verify/buckets/audited", headers=headers, timeout=60)
    assert verify.json()["corrupt_count"] == 1
    assert any("verifying" in found["detail"] for found in events(own_store, resource="audited/some/key"))
    own_store.kill()
    own_store.start()
    assert events(own_store, request_id=damaged.get("x-amz-request-id")) == [request], "the event did not survive the kill"


def test_refusals_on_both_planes_are_recorded(store: Cairn):
    """The event has principal, operation, resource and source address. The refused credential is recorded nowhere."""
    stranger = S3("127.0.0.1", store.s3_port, Credential("AKNOBODY", "x" * 40))
    forger = S3("127.0.0.1", store.s3_port, Credential(store.secrets.root_access_key, "wrong" * 8))
    for client, code in ((stranger, "InvalidAccessKeyId"), (forger, "SignatureDoesNotMatch")):
        refused = client.request("PUT", object_target("no-such-bucket", "k"), body=b"1")
        assert refused.status == 403
        (event,) = events(store, request_id=refused.get("x-amz-request-id"))
        assert (event["operation"], event["resource"]) == ("PutObject", "no-such-bucket/k")
        assert (event["principal"], event["result"], event["source_ip"]) == ("anonymous", "denied", "127.0.0.1")
        assert code in event["detail"]
    token = "guessed-token-5591"
    refused = ask(store, token=token)
    assert refused.status_code == 401
    (event,) = events(store, request_id=refused.headers["x-request-id"])
    assert (event["operation"], event["resource"], event["result"]) == ("list_audit_events", None, "denied")
    assert (event["principal"], event["role"], event["source_ip"]) == ("anonymous", None, "127.0.0.1")
    everything = ask(store, limit=1000).text
    assert token not in everything and not any(secret in everything for secret in store.secrets.hidden())


def test_starts_and_stops_are_recorded_newest_first(own_store: Cairn):
    """Every process records a start. Only a process that shuts down in order records a stop."""
    assert own_store.stop() == 0
    own_store.start()
    own_store.kill()
    own_store.start()
    found = events(own_store, limit=1)
    assert [event["operation"] for event in found] == ["service.start"] * 2 + ["service.stop", "service.start"]
    assert all(event["principal"] == "service" and event["result"] == "allowed" for event in found)
    times = [event["time"] for event in found]
    assert times == sorted(times, reverse=True) and len({event["id"] for event in found}) == 4
    middle = datetime.fromisoformat(times[1]) + timedelta(milliseconds=1)
    since, until = events(own_store, since=middle.isoformat()), events(own_store, until=middle.isoformat())
    assert since + until == found and len(since) == 1
    assert events(own_store, since=(datetime.now(timezone.utc) + timedelta(hours=1)).isoformat()) == []


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"limit": "0"}, "INVALID_REQUEST"), ({"limit": "1001"}, "INVALID_REQUEST"), ({"limit": "x"}, "INVALID_REQUEST"),
        ({"result": "ok"}, "INVALID_REQUEST"), ({"since": "yesterday"}, "INVALID_REQUEST"),
        ({"source_ip": "localhost"}, "INVALID_REQUEST"), ({"recource": "x"}, "INVALID_REQUEST"),
        ({"after_id": "018f3c5e-7b1a-7cc3-98c4-dc0c0c07398f"}, "INVALID_AUDIT_CURSOR"),
        ({"after_time": "2026-11-21T05:00:00.000Z"}, "INVALID_AUDIT_CURSOR"),
        ({"after_time": "x", "after_id": "y"}, "INVALID_AUDIT_CURSOR"),
    ],
)
def test_invalid_queries_are_refused(store: Cairn, parameters: dict[str, str], code: str):
    """400 with the error code. An invalid parameter is never ignored."""
    answer = ask(store, **parameters)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == code, answer.text


@pytest.mark.parametrize("harm", ["deleted", "emptied", "truncated", "foreign"])
def test_damaged_audit_trail_refuses_the_start(own_store: Cairn, make_store, harm: str):
    """A deleted trail cannot be hidden by a restart. The error names the reason, and the file does not change."""
    assert own_store.stop() == 0
    data = own_store.data / "audit" / "data.mdb"
    if harm == "deleted":
        data.unlink()
    elif harm == "foreign":
        other = make_store().start()
        assert other.stop() == 0
        shutil.copy(other.data / "audit" / "data.mdb", data)
    else:
        with data.open("r+b") as file:
            file.truncate(0 if harm == "emptied" else 8192 + 4096)
    before = data.read_bytes() if data.exists() else None
    with pytest.raises(ServerError):
        own_store.start()
    text = own_store.output()
    reason = {"truncated": "truncated", "foreign": "another store"}.get(harm, "missing or empty")
    assert f"{data.parent}" in text and reason in text and "panicked" not in text
    if harm != "foreign":
        assert (data.read_bytes() if data.exists() else None) == before
