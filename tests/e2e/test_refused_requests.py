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
    assert found | {"time": "", "client": ""} == {
        "time": "", "request_id": response.get("x-amz-request-id"), "client": "", "user_agent": "Boto3/1.40", "principal": "account:reader",
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


def test_each_reason_has_its_advice(refusing: Cairn):
    """What the commonest wrong configurations of clients lead to."""
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


def test_unknown_access_key_is_not_kept(refusing: Cairn):
    """It may be a secret in the wrong place. Neither the list nor the log has it."""
    secret = "aVerySecretSecret/with+slashes/andmore12"
    swapped = S3(LOOPBACK, refusing.s3_port, Credential(secret, "AKIA"))
    assert explained(refusing, swapped.get(BUCKET, "k"))["code"] in ("InvalidAccessKeyId", "AuthorizationHeaderMalformed")
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
    store.restart()
    assert ids(store) == [], "they end with the process"
