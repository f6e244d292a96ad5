"""May an account do this, and which statement decides? The answers are compared with real requests."""

import itertools
from collections.abc import Callable

import pytest

from harness.accounts import Account, create_account, create_policy, statement
from harness.management import expect, expect_refusal, with_role
from harness.server import Cairn

ID = "01890000-0000-7000-8000-000000000000"
GET, LIST = "s3:GetObject", "s3:ListBucket"


def check(store: Cairn, **question: object) -> dict:
    """Returns the answer to a question."""
    return expect(store.admin.post("/access/check", question), 200)


def ask(account: Account, action: str, bucket: str, key: str | None = None) -> dict:
    """Asks about an account."""
    return check(account.store, account_id=account.id, action=action, bucket=bucket, **({} if key is None else {"key": key}))


def test_verdicts_are_those_of_requests(store: Cairn, bucket: str):
    """Allowed and denied keys that resemble each other, each with a real GET, and the statement that decides."""
    readers = create_policy(store, statement("allow", ["ListBucket", "ManageBucket"], f"bucket:{bucket}"), statement("allow", "GetObject", "bucket:other/*", f"bucket:{bucket}/team*"), name="readers")
    secrets = create_policy(store, statement("deny", ["GetObject", "PutObject"], f"bucket:{bucket}/team/secret/*"), name="secrets")
    account = create_account(store)
    for policy in (readers, secrets):
        account.attach(policy)
    decided = {}
    for key in ("team/a", "teammates", "team", "Team/a", "team/secret/plan", "team/secret", "team%2Fsecret", "a/../team/a", "שלום 😀", "team/*"):
        store.s3.put(bucket, key, b"x")
        answer = ask(account, GET, bucket, key)
        assert answer["allowed"] == (account.s3.get(bucket, key).status == 200), (key, answer)
        by = answer["decided_by"]
        decided[key] = (answer["reason"], by and (by["policy_name"], by["statement"], by["matching_resource"]))
    allowed = ("allowed", ("readers", 1, f"bucket:{bucket}/team*"))
    nothing = ("no_statement", None)
    assert decided == {
        "team/a": allowed, "teammates": allowed, "team": allowed, "Team/a": nothing, "team/secret": allowed, "team%2Fsecret": allowed, "a/../team/a": nothing,
        "שלום 😀": nothing, "team/*": allowed, "team/secret/plan": ("denied", ("secrets", 0, f"bucket:{bucket}/team/secret/*")),
    }
    denied = ask(account, GET, bucket, "team/secret/plan")
    assert denied["would_allow"] is None and [one["policy_name"] for one in denied["also_applying"]] == ["readers"]
    assert denied["decided_by"]["effect"] == "deny" and denied["decided_by"]["policy_id"] == secrets
    assert denied["account"] == {"id": account.id, "name": account.name, "enabled": True}
    assert ask(account, LIST, bucket)["allowed"] and account.s3.request("GET", f"/{bucket}?list-type=2").status == 200
    assert not ask(account, LIST, "other")["allowed"]


def test_what_would_allow_it_does(store: Cairn, bucket: str):
    """The suggested statement, as a policy, turns the answer and the request round."""
    for key in ("a/b", "שלום 😀", "a*b", "*"):
        account = create_account(store)
        store.s3.put(bucket, key, b"x")
        answer = ask(account, GET, bucket, key)
        assert not answer["allowed"] and account.s3.get(bucket, key).status == 403
        account.grant(answer["would_allow"])
        assert ask(account, GET, bucket, key)["allowed"] and account.s3.get(bucket, key).status == 200


def test_state_of_account_and_credential_counts(store: Cairn, bucket: str):
    """Disabled and expired ones may do nothing; the statement is named all the same."""
    account = create_account(store, statement("allow", "GetObject", f"bucket:{bucket}/*"))
    question = {"access_key": account.keys["access_key"], "action": GET, "bucket": bucket, "key": "k"}
    assert check(store, **question)["reason"] == "allowed"
    credential = account.show()["credentials"][0]["id"]
    for route, reason in ((f"{account.path}/credentials/{credential}/status", "credential_disabled"), (f"{account.path}/status", "account_disabled")):
        expect(store.admin.put(route, {"enabled": False}), 200)
        answer = check(store, **question)
        assert (answer["allowed"], answer["reason"], answer["decided_by"]["statement"]) == (False, reason, 0)
        by_id = check(store, account_id=account.id, action=GET, bucket=bucket, key="k")
        assert by_id["allowed"] == (reason == "credential_disabled"), "the account may have other credentials"
        expect(store.admin.put(route, {"enabled": True}), 200)
    assert check(store, **question)["allowed"]


def test_root_may_do_everything(store: Cairn, make_store: Callable[..., Cairn]):
    """Unless the configuration refuses it on the data plane."""
    question = {"action": "s3:ManageBucket", "bucket": "any-bucket"}
    answer = check(store, access_key=store.secrets.root_access_key, **question)
    assert (answer["allowed"], answer["reason"], answer["account"], answer["decided_by"]) == (True, "root", None, None)
    without = make_store(SERVICE_ROOT_S3_ENABLED="false").start()
    answer = check(without, access_key=without.secrets.root_access_key, **question)
    assert (answer["allowed"], answer["reason"]) == (False, "root_disabled")


def test_invalid_questions_say_what_is_missing(store: Cairn):
    """Also a question that no request asks, such as reading a bucket."""
    account = create_account(store)
    good = {"account_id": account.id, "action": GET, "bucket": "photos", "key": "k"}
    for change, named in (
        ({"action": "GetObject"}, "s3:GetObject"), ({"action": "s3:*"}, "the actions are"), ({"key": None}, "name its key"), ({"key": ""}, "1 to 1024"),
        ({"key": "k" * 1025}, "1 to 1024"), ({"action": LIST}, "leave out the key"), ({"access_key": "x"}, "either account_id or access_key"),
        ({"resource": "bucket:photos"}, "unknown field"),
    ):
        message = expect_refusal(store.admin.post("/access/check", good | change), 400, "INVALID_REQUEST")
        assert named in message, message
    for missing, named in (("key", "name its key"), ("account_id", "either account_id or access_key"), ("action", "missing field"), ("bucket", "missing field")):
        body = {name: value for name, value in good.items() if name != missing}
        assert named in expect_refusal(store.admin.post("/access/check", body), 400, "INVALID_REQUEST")
    expect_refusal(store.admin.post("/access/check", good | {"bucket": "Bad_Name"}), 400, "INVALID_BUCKET_NAME")
    for unknown in (ID, "x", ""):
        expect_refusal(store.admin.post("/access/check", good | {"account_id": unknown}), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    by_key = {name: value for name, value in good.items() if name != "account_id"} | {"access_key": "unknown"}
    expect_refusal(store.admin.post("/access/check", by_key), 404, "CREDENTIAL_NOT_FOUND")


@pytest.mark.parametrize(("role", "may"), [("system_admin", True), ("auditor", True), ("storage_admin", False)])
def test_only_overseers_ask(store: Cairn, role: str, may: bool):
    """A question leaves no audit record; a refusal does."""
    account = create_account(store)
    answer = with_role(store.admin, role).post("/access/check", {"account_id": account.id, "action": LIST, "bucket": "photos"})
    assert answer.status_code == (200 if may else 403)
    found = expect(store.admin.get("/audit/events", params={"request_id": answer.headers["x-request-id"]}), 200)["events"]
    assert [event["result"] for event in found] == ([] if may else ["denied"])


def test_statements_in_force_are_listed_by_policy(store: Cairn, bucket: str):
    """More than a page of them, oldest policy first, and only those of the account."""
    account = create_account(store)
    path = f"{account.path}/policies"
    assert expect(store.admin.get(path), 200) == {"policies": []}
    create_policy(store, statement("allow", "GetObject", f"bucket:{bucket}/not-attached"))
    made = []
    for number in itertools.islice(itertools.count(), 12):
        statements = [statement("allow", "GetObject", *(f"bucket:{bucket}/{number}/{part}" for part in range(100))) for _ in range(2)]
        policy = create_policy(store, *statements, name=f"policy {number}")
        account.attach(policy)
        made.append((policy, f"policy {number}", statements))
    listed = expect(store.admin.get(path), 200)["policies"]
    assert [(policy["id"], policy["name"], policy["statements"]) for policy in listed] == made
    expect_refusal(store.admin.get(f"/service-accounts/{ID}/policies"), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    expect_refusal(store.admin.get(path + "?x=1"), 400, "INVALID_REQUEST")
