"""Management tokens: roles, expiry, deletion, audit events, and secrets that are shown only once."""

import time
from datetime import datetime

from harness.management import Management, bearer, expect, expect_refusal
from harness.server import Cairn
from harness.wait import until

ID = "01890000-0000-7000-8000-000000000000"


def create(store: Cairn, name: str, role: str, **more) -> dict:
    """Creates a token and returns the response that contains its secret."""
    return expect(store.admin.post("/management-tokens", {"name": name, "role": role, **more}), 201)


def holder(store: Cairn, token: str) -> Management:
    """Returns a client with a token."""
    return Management(store.management, bearer(token))


def test_token_has_its_role_until_it_is_deleted(store: Cairn):
    """Checks the session, the record and the list, and that a deleted token is refused."""
    for role in ("system_admin", "storage_admin", "auditor"):
        made = create(store, f"a {role}", role)
        shown = made["management_token"]
        assert set(made) == {"management_token", "token"} and set(shown) == {"id", "name", "role", "created_at", "expires_at"}
        client = holder(store, made["token"])
        session = expect(client.get("/auth/session"), 200)
        assert session == {"role": role, "principal": f"token:a {role}", "authentication": "token"}
        listed = store.admin.get("/management-tokens")
        assert shown in expect(listed, 200)["management_tokens"] and made["token"] not in listed.text
        expect(store.admin.delete(f"/management-tokens/{shown['id']}"), 204)
        expect_refusal(client.get("/auth/session"), 401, "UNAUTHENTICATED")
        expect_refusal(store.admin.delete(f"/management-tokens/{shown['id']}"), 404, "TOKEN_NOT_FOUND")
    expect_refusal(store.admin.delete(f"/management-tokens/{ID}"), 404, "TOKEN_NOT_FOUND")


def test_actions_of_a_token_are_audited_under_its_name(own_store: Cairn):
    """Covers an allowed and a refused change.

    The test has its own server, because the audit log keeps only some of many refusals from one address.
    """
    made = create(own_store, "operations", "storage_admin")
    client = holder(own_store, made["token"])
    headers = {"x-request-id": "by-a-token"}
    expect(client.request("POST", "/buckets", json={"name": "made-by-a-token"}, headers=headers), 201)
    expect_refusal(client.request("POST", "/policies", json={}, headers=headers), 403, "FORBIDDEN")
    events = expect(own_store.admin.get("/audit/events?request_id=by-a-token"), 200)["events"]
    assert [(event["operation"], event["result"]) for event in events] == [("create_policy", "denied"), ("create_bucket", "allowed")]
    assert {(event["principal"], event["role"]) for event in events} == {("token:operations", "storage_admin")}
    token = f"token {made['management_token']['id']}"
    assert all(event["detail"].endswith(token) for event in events), "events must contain the token's id, because names are not unique"


def test_expired_token_is_refused(store: Cairn):
    """Expiry needs no cleanup task."""
    made = create(store, "short", "auditor", expires_in_seconds=2)
    dies = datetime.fromisoformat(made["management_token"]["expires_at"]).timestamp()
    client = holder(store, made["token"])
    assert client.get("/auth/session").status_code == 200 or time.time() > dies
    until(lambda: time.time() > dies)
    expect_refusal(client.get("/auth/session"), 401, "UNAUTHENTICATED")


def test_invalid_tokens_and_token_requests_are_refused(store: Cairn):
    """Covers invalid bodies, invalid tokens, and secrets of the data plane."""
    for body in (
        {}, {"name": "x"}, {"role": "auditor"}, {"name": "x", "role": "root"}, {"name": "x", "role": "Auditor"}, {"name": "", "role": "auditor"},
        {"name": "x", "role": "auditor", "expires_in_seconds": 0}, {"name": "x", "role": "auditor", "expires_in_seconds": -1},
        {"name": "x", "role": "auditor", "expires_in_seconds": 10**12}, {"name": "x", "role": "auditor", "expires": 5},
    ):
        expect_refusal(store.admin.post("/management-tokens", body), 400, "INVALID_REQUEST")
    token = create(store, "right", "auditor")["token"]
    for wrong in (token[:-1], token + "A", token.lower(), token.removeprefix("cairn_mt_"), "cairn_mt_"):
        expect_refusal(holder(store, wrong).get("/auth/session"), 401, "UNAUTHENTICATED")
    expect(holder(store, token).get("/auth/session"), 200)


def test_tokens_survive_kill_9_and_are_stored_only_hashed(own_store: Cairn):
    """The data directory contains no token, only hashes."""
    made = create(own_store, "kept", "system_admin")
    gone = create(own_store, "gone", "system_admin")
    expect(own_store.admin.delete(f"/management-tokens/{gone['management_token']['id']}"), 204)
    own_store.kill()
    own_store.start()
    expect(holder(own_store, made["token"]).get("/auth/session"), 200)
    expect_refusal(holder(own_store, gone["token"]).get("/auth/session"), 401, "UNAUTHENTICATED")
    assert own_store.stop() == 0
    for path in own_store.data.rglob("*.mdb"):
        content = path.read_bytes()
        assert not any(found["token"].removeprefix("cairn_mt_").encode() in content for found in (made, gone)), path
    assert made["token"] not in own_store.output()
