"""Refused S3 requests: what an operator sees of them, and what would help.

The server keeps the last ones in memory. No secret may be among what it keeps.
"""

from collections.abc import Callable

import pytest

from harness.accounts import Account, create_account, statement
from harness.cli import Cli
from harness.management import expect, expect_refusal
from harness.s3 import S3, object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential, Scope
from harness.wire import Response

BUCKET = "photos"


@pytest.fixture(scope="module")
def refusing(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that logs keys, with a bucket."""
    store = make_module_store(SERVICE_OBSERVABILITY_LOG_PATHS="true").start()
    store.s3.create_bucket(BUCKET)
    return store


@pytest.fixture(scope="module")
def reader(refusing: Cairn) -> Account:
    """An account that may read one folder, and is denied a part of it."""
    return create_account(
        refusing, statement("allow", "GetObject", f"bucket:{BUCKET}/public/*"), statement("deny", "GetObject", f"bucket:{BUCKET}/public/no/*"), name="reader",
    )


def explained(store: Cairn, response: Response) -> dict:
    """Returns what the server knows of a response's request."""
    return expect(store.admin.get(f"/refused-requests/{response.get('x-amz-request-id')}"), 200)


def ids(store: Cairn, **filters: object) -> list[str]:
    """Returns the ids in a list."""
    found = expect(store.admin.get("/refused-requests", params={"limit": 1000} | filters), 200)
    return [request["request_id"] for request in found["refused_requests"]]


def test_denied_request_names_right_and_account(refusing: Cairn, reader: Account):
    """The advice is what makes the next request succeed."""
    response = reader.s3.get(BUCKET, "private/a.txt", headers=[("User-Agent", "Boto3/1.40")])
    assert response.status == 403
    found = explained(refusing, response)
    decided_by = {"kind": "policy", "policies_unchanged": True, "decision_now": "no_statement", "policies_attached": 1, "statement": None}
    assert found | {"time": "", "client": ""} == {
        "time": "", "decided_by": decided_by, "setting": None, "request_id": response.get("x-amz-request-id"), "client": "", "user_agent": "Boto3/1.40", "principal": "account:reader",
        "access_key": reader.keys["access_key"], "method": "GET", "operation": "GetObject", "bucket": BUCKET, "key": "private/a.txt", "status": 403,
        "code": "AccessDenied", "message": "Access Denied: no policy allows s3:GetObject on the object.", "refused_by": "policy",
        "right": {"action": "s3:GetObject", "resource": f"bucket:{BUCKET}/private/a.txt", "denied_explicitly": False},
        "advice": f"Attach a policy to account:reader that allows s3:GetObject on bucket:{BUCKET}/private/a.txt.",
    }
    assert found["client"] == LOOPBACK
    refusing.s3.put(BUCKET, "private/a.txt", b"x")
    policy = reader.grant(statement("allow", "GetObject", found["right"]["resource"]))
    assert reader.s3.get(BUCKET, "private/a.txt").status == 200, "the advice helps"
    reader.detach(policy)


def test_explicit_deny_and_hidden_404_are_told_apart(refusing: Cairn, reader: Account):
    """Three reasons for the same 403: a deny, no allow, and an object that does not exist."""
    denied = explained(refusing, reader.s3.get(BUCKET, "public/no/a"))
    assert denied["right"]["denied_explicitly"] and "a deny wins" in denied["advice"]
    missing = explained(refusing, reader.s3.get(BUCKET, "public/missing"))
    assert missing["right"]["action"] == "s3:ListBucket" and missing["advice"].startswith("The object does not exist.")


def test_a_right_for_new_objects_only_is_said_to_be_that(refusing: Cairn):
    """Tags of an existing object need a plain allow, which also allows overwriting. So that is not the advice without a word."""
    key = "create-only/a"
    refusing.s3.put(BUCKET, key, b"x")
    account = create_account(refusing, statement("allow", "PutObject", f"bucket:{BUCKET}/*") | {"only_if_absent": True}, name="creator")
    retention = b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2999-01-01T00:00:00Z</RetainUntilDate></Retention>"
    response, absent = (account.s3.request("PUT", f"{object_target(BUCKET, name)}?retention", body=retention) for name in (key, "create-only/none"))
    assert response.status == 403 and explained(refusing, absent)["message"] == explained(refusing, response)["message"]
    found = explained(refusing, response)
    assert found["message"] == "Access Denied: only_if_absent restricts s3:PutObject on the object to new objects."
    assert "with only_if_absent, which is not enough" in found["advice"] and "to overwrite objects, too" in found["advice"]
    assert found["decided_by"]["decision_now"] == "allowed_if_absent"
    text = Cli(refusing.admin.address, refusing.secrets.system_token).text("explain", response.get("x-amz-request-id"))
    assert "allows s3:PutObject on" in text and "for new objects only (only_if_absent)." in text


def test_deciding_statement_is_named_as_long_as_it_is_known(refusing: Cairn):
    """Policy and number of a statement that denies. After a change of the policies it is not blamed any more."""
    account = create_account(refusing, statement("allow", "GetObject", f"bucket:{BUCKET}/*"), name="changing")
    denial = account.grant(statement("allow", "ListBucket", f"bucket:{BUCKET}"), statement("deny", "GetObject", f"bucket:{BUCKET}/secret/*", f"bucket:{BUCKET}/one"))
    response = account.s3.get(BUCKET, "secret/plan")
    decided = explained(refusing, response)["decided_by"]
    assert (decided["kind"], decided["policies_unchanged"], decided["decision_now"], decided["policies_attached"]) == ("policy", True, "denied", 2)
    assert decided["statement"] | {"policy_name": ""} == {"policy_id": denial, "policy_name": "", "statement": 1, "effect": "deny", "matching_resource": f"bucket:{BUCKET}/secret/*"}
    question = {"account_id": account.id, "action": "s3:GetObject", "bucket": BUCKET, "key": "secret/plan"}
    checked = expect(refusing.admin.post("/access/check", question), 200)["decided_by"]
    assert {name: checked[name] for name in decided["statement"]} == decided["statement"], "as the check of permissions names it"
    cli = Cli(refusing.admin.address, refusing.secrets.system_token)
    text = cli.text("explain", response.get("x-amz-request-id"))
    assert f"Decided: statement 2 of the policy {checked['policy_name']} ({denial}) (on bucket:{BUCKET}/secret/*) denies s3:GetObject on" in text

    account.detach(denial)
    decided = explained(refusing, response)["decided_by"]
    assert (decided["policies_unchanged"], decided["decision_now"], decided["statement"]["effect"]) == (False, "allowed", "allow")
    text = cli.text("explain", response.get("x-amz-request-id"))
    assert "Decided: a policy of the account denies" in text and "The policies have changed since: now statement 1 of" in text and "allows it." in text
    expect(refusing.admin.delete(f"/service-accounts/{account.id}"), 204)
    decided = explained(refusing, response)["decided_by"]
    assert (decided["policies_unchanged"], decided["decision_now"], decided["statement"]) == (False, "account_deleted", None)
    assert "The account was deleted since." in cli.text("explain", response.get("x-amz-request-id"))


def test_list_leaves_statements_out(refusing: Cairn, reader: Account):
    """It would have to read the policies of a thousand accounts."""
    response = reader.s3.get(BUCKET, "public/no/a")
    listed = expect(refusing.admin.get("/refused-requests", params={"limit": 1}), 200)["refused_requests"]
    assert (listed[0]["request_id"], listed[0]["decided_by"]) == (response.get("x-amz-request-id"), {"kind": "policy"})
    assert explained(refusing, response)["decided_by"]["statement"]["statement"] == 1


def test_rule_that_decided_has_its_values(refusing: Cairn):
    """A quota with what is used, a lock with its end, CORS rules with what none of them allows."""
    s3 = refusing.s3
    s3.create_bucket("ruled")
    s3.put("ruled", "a", b"x" * 60)
    expect(refusing.admin.put("/buckets/ruled/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 100}, "objects": {"mode": "unlimited"}}}), 200)
    found = explained(refusing, s3.request("PUT", object_target("ruled", "b"), body=b"x" * 41))
    assert found["decided_by"] == {"kind": "quota", "bytes": {"limit": 100, "used": 60}, "objects": {"limit": None, "used": 1}}
    cli = Cli(refusing.admin.address, refusing.secrets.system_token)
    assert "Decided: the quota of the bucket: 60 of 100 bytes were used." in cli.text("explain", found["request_id"])

    assert s3.request("PUT", "/kept", [("x-amz-bucket-object-lock-enabled", "true")]).status == 200
    until = "2090-01-01T00:00:00.000Z"
    lock = [("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", until), ("x-amz-object-lock-legal-hold", "ON")]
    version = s3.put("kept", "a", b"x", lock).get("x-amz-version-id")
    found = explained(refusing, s3.request("DELETE", f"{object_target('kept', 'a')}?versionId={version}"))
    assert found["decided_by"] == {"kind": "object_lock", "version_id": version, "mode": "GOVERNANCE", "retain_until": until, "legal_hold": True}
    assert f"Decided: GOVERNANCE retention until {until} and a legal hold of the version {version}." in cli.text("explain", found["request_id"])

    def preflight(bucket: str, origin: str, method: str, headers: str = "") -> dict:
        wanted = [("Host", s3.authority), ("Origin", origin), ("Access-Control-Request-Method", method), ("Access-Control-Request-Headers", headers)]
        found = explained(refusing, s3.send_raw("OPTIONS", f"/{bucket}/k", wanted))
        assert cli.text("explain", found["request_id"])
        return found["decided_by"]

    assert preflight("ruled", "https://a.example", "GET") == {"kind": "cors_rules", "rules": 0, "not_allowed": None}
    assert preflight("no-such-bucket", "https://a.example", "GET")["not_allowed"] == "bucket"
    rule = {"allowed_origins": ["https://a.example"], "allowed_methods": ["GET"], "allowed_headers": ["x-a"]}
    expect(refusing.admin.put("/buckets/ruled/cors", {"rules": [rule]}), 200)
    for origin, method, headers, part in [("https://b.example", "GET", "", "origin"), ("https://a.example", "PUT", "", "method"), ("https://a.example", "GET", "x-b", "headers")]:
        assert preflight("ruled", origin, method, headers) == {"kind": "cors_rules", "rules": 1, "not_allowed": part}

    found = explained(refusing, s3.request("GET", "/ruled?list-type=2&max-keys=many"))
    assert found["decided_by"] == {"kind": "request", "argument": "max-keys"}


def test_setting_is_named_with_its_value(refusing: Cairn, make_module_store: Callable[..., Cairn]):
    """The key of the configuration, its present value, and the one that would help."""
    s3 = refusing.s3
    strict = {"name": "s3.compatibility", "value": "strict", "would_help": "extended"}
    chunked = s3.request("PUT", object_target(BUCKET, "k"), [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")], b"x")
    for response in (s3.request("GET", f"/{BUCKET}?lifecycle"), s3.request("GET", "/k", host=f"{BUCKET}.localhost:{refusing.s3_port}"), chunked):
        assert (response.status, explained(refusing, response)["setting"]) == (501, strict)
    text = Cli(refusing.admin.address, refusing.secrets.system_token).text("explain", chunked.get("x-amz-request-id"))
    assert 'Setting: s3.compatibility is "strict"; what would help: extended.' in text
    assert explained(refusing, s3.request("GET", f"/{BUCKET}?torrent"))["setting"] is None, "no mode implements it"
    closed = make_module_store(SERVICE_ROOT_S3_ENABLED="false").start()
    found = explained(closed, closed.s3.get(BUCKET, "k"))
    assert found["setting"] == {"name": "auth.root_s3_enabled", "value": "false", "would_help": "true"}


def test_each_reason_has_its_advice(refusing: Cairn):
    """The refusals that the commonest wrong configurations of clients lead to."""
    s3 = refusing.s3
    wrong_secret = S3(LOOPBACK, refusing.s3_port, Credential(refusing.secrets.root_access_key, "wrong" * 8))
    expect(refusing.admin.put(f"/buckets/{BUCKET}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 100}, "objects": {"mode": "unlimited"}}}), 200)
    cases = {
        "SignatureDoesNotMatch": (wrong_secret.get(BUCKET, "k"), "authentication", "secret key"),
        "RequestTimeTooSkewed": (s3.request("GET", "/", scope=Scope("20200101T000000Z")), "authentication", "clock"),
        "AccessDenied": (s3.send_raw("GET", f"/{BUCKET}/k", [("Host", s3.authority)]), "authentication", "not signed"),
        "QuotaExceeded": (s3.request("PUT", object_target(BUCKET, "large"), body=b"x" * 101), "quota", "cairn quota set photos"),
        "BadDigest": (s3.request("PUT", object_target(BUCKET, "k"), [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")], b"x"), "request", "proxy"),
        "NotImplemented": (s3.request("GET", f"/{BUCKET}?torrent"), "not_implemented", None),
        "MethodNotAllowed": (s3.request("PATCH", f"/{BUCKET}/k"), "request", "methods"),
        "AccessForbidden": (
            s3.send_raw("OPTIONS", f"/{BUCKET}/k", [("Host", s3.authority), ("Origin", "https://app.example"), ("Access-Control-Request-Method", "PUT")]),
            "cors_rules", "https://app.example the method PUT",
        ),
    }
    for code, (response, by, advice) in cases.items():
        found = explained(refusing, response)
        assert (found["code"], found["refused_by"]) == (code, by)
        assert advice is None or advice in found["advice"], found
    first_version = explained(refusing, s3.request("GET", f"/{BUCKET}"))
    assert "s3.compatibility" in first_version["advice"], "only the other mode has the first version of the list"
    virtual = explained(refusing, s3.request("GET", "/folder/secret-name.txt", host=f"{BUCKET}.localhost:{refusing.s3_port}"))
    assert virtual["code"] == "NotImplemented" and "path-style" in virtual["message"]
    assert (virtual["bucket"], virtual["key"]) == (None, None), "the first segment of the path is no bucket"


def test_ordinary_answers_are_not_recorded(refusing: Cairn):
    """Objects that do not exist, conditions that do not hold, and ranges beyond the end."""
    refusing.s3.put(BUCKET, "small", b"x")
    for response, status in [
        (refusing.s3.get(BUCKET, "missing"), 404), (refusing.s3.get(BUCKET, "small", [("If-Match", '"x"')]), 412), (refusing.s3.get(BUCKET, "small", [("Range", "bytes=5-")]), 416),
        (refusing.s3.get(BUCKET, "small"), 200),
    ]:
        assert response.status == status
        expect_refusal(refusing.admin.get(f"/refused-requests/{response.get('x-amz-request-id')}"), 404, "REFUSED_REQUEST_NOT_FOUND")


def test_credential_that_may_not_be_used_is_named(refusing: Cairn):
    """The client is told that it does not exist. The operator sees why, and the access key, which is no secret."""
    account = create_account(refusing, name="switched-off")
    cli = Cli(refusing.admin.address, refusing.secrets.system_token)

    def refused_for(state: str, said: str) -> None:
        response = account.s3.get(BUCKET, "k")
        found = explained(refusing, response)
        assert (found["code"], found["access_key"], found["principal"]) == ("InvalidAccessKeyId", account.keys["access_key"], None)
        assert found["decided_by"] == {"kind": "authentication", "credential": state} and found["advice"]
        assert f"Decided: {said}." in cli.text("explain", found["request_id"])
        assert account.keys["secret_key"] not in str(found)

    expect(refusing.admin.put(f"{account.path}/credentials/{account.keys['id']}/status", {"enabled": False}), 200)
    refused_for("credential_disabled", "the credential is disabled")
    expect(refusing.admin.put(f"{account.path}/status", {"enabled": False}), 200)
    refused_for("account_disabled", "the account of the credential is disabled")
    expect(refusing.admin.delete(account.path), 204)
    gone = explained(refusing, account.s3.get(BUCKET, "k"))
    assert (gone["access_key"], gone["decided_by"]) == (None, {"kind": "authentication"})
    root = S3(LOOPBACK, refusing.s3_port, Credential(refusing.secrets.root_access_key, "wrong" * 8))
    assert explained(refusing, root.get(BUCKET, "k"))["access_key"] is None


def test_unknown_access_key_is_not_kept(refusing: Cairn):
    """It may be a secret in the wrong place. Neither the list nor the log has it."""
    secret = "aVerySecretSecret/with+slashes/andmore12"
    swapped = S3(LOOPBACK, refusing.s3_port, Credential(secret, "AKIA"))
    assert explained(refusing, swapped.get(BUCKET, "k"))["code"] == "InvalidAccessKeyId"
    everything = refusing.admin.get("/refused-requests?limit=1000").text + refusing.output()
    assert "aVerySecret" not in everything and "slashes" not in everything


def test_filters(refusing: Cairn, reader: Account):
    """Filters are exact, the latest is the first, and wrong ones are refused."""
    first, second = (reader.s3.get(BUCKET, "filtered").get("x-amz-request-id") for _ in range(2))
    found = ids(refusing, principal="account:reader", code="AccessDenied", bucket=BUCKET, client=LOOPBACK)
    assert found[:2] == [second, first]
    assert ids(refusing, limit=1)[:1] == [second]
    for filters in ({"code": "NoSuchKey"}, {"client": "192.0.2.1"}, {"bucket": "other"}, {"principal": "account:other"}):
        assert ids(refusing, **filters) == []
    for query in ("client=host", "limit=0", "limit=1001", "key=x"):
        expect_refusal(refusing.admin.get(f"/refused-requests?{query}"), 400, "INVALID_REQUEST")


def test_command_line_explains(refusing: Cairn, reader: Account):
    """In words, for one request; and as a list."""
    cli = Cli(refusing.admin.address, refusing.secrets.system_token)
    response = reader.s3.get(BUCKET, "private/b.txt")
    text = cli.text("explain", response.get("x-amz-request-id"))
    assert f"account:reader with the access key {reader.keys['access_key']} requested GetObject (GET) on {BUCKET}/private/b.txt" in text
    assert f"Decided: no policy of the account allows s3:GetObject on bucket:{BUCKET}/private/b.txt." in text
    assert response.get("x-amz-request-id") in cli.text("refused", "list", "--code", "AccessDenied")
    assert "only the last ones since the start are kept" in cli.fails("explain", "0000000000000000")


def test_flood_is_limited(refusing: Cairn, reader: Account):
    """Thousands of refusals of one client do not fill the memory."""
    with reader.s3.connect() as connection:
        for _ in range(400):
            assert reader.s3.request("GET", object_target(BUCKET, "flood"), connection=connection).status == 403
    assert len(ids(refusing)) <= 200, "a fifth of the 1000 for one client"


def test_keys_are_kept_only_if_they_are_logged(make_module_store: Callable[..., Cairn]):
    """By default they are not: the advice names all objects of the bucket."""
    store = make_module_store().start()
    store.s3.create_bucket(BUCKET)
    account = create_account(store, name="writer")
    found = explained(store, account.s3.get(BUCKET, "a-private-name"))
    assert found["key"] is None and found["right"]["resource"] == f"bucket:{BUCKET}/*"
    assert "a-private-name" not in str(found)
    denial = account.grant(statement("deny", "GetObject", f"bucket:{BUCKET}/a-private-name"), statement("deny", "GetObject", f"bucket:{BUCKET}/a*"))
    found = explained(store, account.s3.get(BUCKET, "a-private-name"))
    assert "a-private-name" not in str(found), "nor a statement that names the key"
    assert (found["decided_by"]["statement"]["policy_id"], found["decided_by"]["statement"]["statement"]) == (denial, 0)
    prefix = explained(store, account.s3.get(BUCKET, "another"))["decided_by"]["statement"]
    assert (prefix["statement"], prefix["matching_resource"]) == (1, f"bucket:{BUCKET}/a*")
    store.restart()
    assert ids(store) == [], "they end with the process"


def test_denied_requests_are_explained_after_a_restart(make_module_store: Callable[..., Cairn]):
    """`cairn explain` knew nothing of a request that was denied before a restart, although the audit trail did."""
    store = make_module_store().start()
    store.s3.create_bucket(BUCKET)
    account = create_account(store, name="writer")
    denied = account.s3.get(BUCKET, "folder/k")
    forged = S3(LOOPBACK, store.s3_port, Credential(account.keys["access_key"], "a wrong secret key of this account")).get(BUCKET, "folder/k")
    strict = store.s3.request("GET", f"/{BUCKET}?tagging")
    assert [denied.status, forged.status, strict.status] == [403, 403, 501]
    store.restart()

    found = explained(store, denied)
    advice = found.pop("advice")
    assert "restarted" in advice and "cairn policy check" in advice
    assert found | {"time": ""} == {
        "time": "", "decided_by": {"kind": "policy"}, "setting": None, "request_id": denied.get("x-amz-request-id"), "client": LOOPBACK, "user_agent": None,
        "principal": "account:writer", "access_key": account.keys["access_key"], "method": None, "operation": "GetObject", "bucket": BUCKET, "key": "folder/k",
        "status": None, "code": "AccessDenied", "message": "no policy allows s3:GetObject on the object", "refused_by": "policy",
        "right": {"action": "s3:GetObject", "resource": f"bucket:{BUCKET}/folder/k", "denied_explicitly": False},
    }
    found = explained(store, forged)
    assert (found["code"], found["refused_by"], found["principal"]) == ("SignatureDoesNotMatch", "authentication", None)
    assert found["access_key"] == account.keys["access_key"] and "wrong secret" not in str(found)
    # The trail has denials only.
    expect_refusal(store.admin.get(f"/refused-requests/{strict.get('x-amz-request-id')}"), 404, "REFUSED_REQUEST_NOT_FOUND")
    text = Cli(store.admin.address, store.secrets.system_token).text("explain", denied.get("x-amz-request-id"))
    assert f"account:writer with the access key {account.keys['access_key']} requested GetObject on {BUCKET}/folder/k" in text
    assert "Decided: no policy of the account allows s3:GetObject" in text
