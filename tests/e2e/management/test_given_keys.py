"""Accounts with given keys: the keys that an application already has, with every character that they may contain.

A given secret is stored sealed and never shown. An access key that is given again has only its new secret, on every core.
"""

from dataclasses import replace

import boto3
import pytest
import requests
from botocore.config import Config

from harness.accounts import Account, client, statement
from harness.boto import make_client, refused
from harness.forms import Form
from harness.management import expect, expect_refusal, with_role
from harness.s3 import S3, error_code
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential
from harness.wire import encode_head

KEY = "my.app+key=1/2@x"
SECRET = "a+b/c=d:e\"f'g\\h<i>&j%k#l?m"
ID = "01890000-0000-7000-8000-000000000000"
# More than the executors of any test machine, so that every executor serves some of them.
CONNECTIONS = 24
ALL = ["ListBucket", "GetObject", "PutObject", "DeleteObject"]


def given(access_key: str = KEY, secret_key: str = SECRET) -> dict:
    """Returns the member of a request that gives keys."""
    return {"credential": {"access_key": access_key, "secret_key": secret_key}}


def create(store: Cairn, bucket: str, access_key: str = KEY, secret_key: str = SECRET, name: str = "moved") -> Account:
    """Creates an account with these keys and access to one bucket."""
    made = expect(store.admin.post("/service-accounts", {"name": name, **given(access_key, secret_key)}), 201)
    assert set(made["credential"]) == {"id", "access_key"}, "a given secret is not returned"
    account = Account(store, made["service_account"]["id"], name, made["credential"] | {"secret_key": secret_key})
    account.grant(statement("allow", ALL, f"bucket:{bucket}", f"bucket:{bucket}/*"))
    return account


@pytest.fixture
def account(own_store: Cairn) -> Account:
    """An account with given keys on a server of the test's own."""
    own_store.s3.create_bucket("kept")
    own_store.s3.put("kept", "key", b"text")
    return create(own_store, "kept")


def test_a_root_that_takes_the_key_of_an_account_is_reported(own_store: Cairn):
    """The account was refused without a reason, and its requests counted as guesses of root. The start names it."""
    own_store.s3.create_bucket("kept")
    account = create(own_store, "kept", "moved-key")
    assert account.s3.put("kept", "key", b"text").status == 200
    assert own_store.stop() == 0
    own_store.secrets = replace(own_store.secrets, root_access_key="moved-key")
    own_store.start()
    assert "the access key of root is that of a service account" in own_store.output()
    assert account.s3.get("kept", "key").status == 403
    assert own_store.s3.get("kept", "key").body == b"text"


def test_null_counts_as_absent(own_store: Cairn):
    """An expiry of null was refused here, and accepted in the bodies of links. One rule holds for all requests but changes."""
    admin = own_store.admin
    body = {"name": "moved", "description": None, "credential": given()["credential"] | {"expires_at": None}}
    made = expect(admin.post("/service-accounts", body), 201)["credential"]
    path = f"/service-accounts/{expect(admin.get('/service-accounts'), 200)['service_accounts'][0]['id']}"
    assert [shown["expires_at"] for shown in expect(admin.get(path), 200)["credentials"]] == [None]
    assert client(own_store, made | {"secret_key": SECRET}).get("kept", "key").status == 403
    assert "secret_key" in expect(admin.post(f"{path}/credentials", {"credential": None}), 201)["credential"]
    expect(admin.post("/buckets", {"name": "photos", "object_lock": None}), 201)
    unlimited = {"bytes": {"mode": "unlimited", "bytes": None}, "objects": {"mode": "unlimited", "objects": None}}
    expect(admin.put("/buckets/photos/quota", {"quota": unlimited}), 200)
    expect_refusal(admin.put("/buckets/photos/quota", {"quota": unlimited | {"bytes": {"mode": "limit", "bytes": None}}}), 400, "INVALID_REQUEST")
    rule = {"allowed_origins": ["*"], "allowed_methods": ["GET"], "allowed_headers": None, "expose_headers": None, "id": None, "max_age_seconds": None}
    expect(admin.put("/buckets/photos/cors", {"rules": [rule]}), 200)
    statement_of_all = statement("allow", ["GetObject"], "bucket:photos/*") | {"source_ip": None, "only_if_absent": None}
    expect(admin.post("/policies", {"name": "readers", "description": None, "statements": [statement_of_all]}), 201)


def test_keys_are_taken_as_they_are_given(own_store: Cairn, account: Account):
    """An account and an additional credential. Both sign, in headers and in URLs, and both are found by their access key."""
    made = expect(own_store.admin.post(f"{account.path}/credentials", given("abc", "8letters")), 201)["credential"]
    assert "secret_key" not in made and (made["access_key"], made["enabled"], made["temporary"]) == ("abc", True, False)
    assert {shown["access_key"] for shown in account.show()["credentials"]} == {KEY, "abc"}
    for access_key, secret_key in ((KEY, SECRET), ("abc", "8letters")):
        s3 = client(own_store, {"access_key": access_key, "secret_key": secret_key})
        for _ in range(2):
            assert s3.get("kept", "key").body == b"text"
            assert s3.use_presigned("GET", s3.presigned("GET", "/kept/key")).body == b"text"
        question = {"access_key": access_key, "action": "s3:GetObject", "bucket": "kept", "key": "key"}
        verdict = expect(own_store.admin.post("/access/check", question), 200)
        assert verdict["allowed"] and verdict["account"]["id"] == account.id
    own_store.restart()
    assert account.s3.get("kept", "key").body == b"text"


def test_longest_and_shortest_keys_are_accepted(own_store: Cairn):
    """All characters at both limits, and one beyond. What is refused makes nothing."""
    own_store.s3.create_bucket("kept")
    own_store.s3.put("kept", "key", b"text")
    letters = "ABCXYZabcxyz0189._-+=/@"
    printable = "".join(map(chr, range(0x21, 0x7F)))
    for number, (access_key, secret_key) in enumerate((("/=+", "!~!~!~!~"), ((letters * 6)[:128], (printable * 2)[:128]))):
        account = create(own_store, "kept", access_key, secret_key, name=f"moved {number}")
        assert account.s3.get("kept", "key").body == b"text"
    for access_key in ("", "ab", "a b", "a,b", "a:b", "a;b", "a~b", "a%2Fb", "abc\n", "abc\u00e9", "x" * 129, None, 123, ["abc"]):
        refusal = expect_refusal(own_store.admin.post("/service-accounts", {"name": "new", **given(access_key)}), 400, "INVALID_REQUEST")
        assert SECRET not in str(refusal)
    for secret_key in ("", "7letter", "8 letters", "8letters\n", "8letter\u00e9", "x" * 129, "hush\thush", None, 123456789, ["hush-hush"], {"hush-hush": 1}):
        for path in ("/service-accounts", f"{account.path}/credentials"):
            body = given("new", secret_key) | ({"name": "new"} if path == "/service-accounts" else {})
            refusal = str(expect_refusal(own_store.admin.post(path, body), 400, "INVALID_REQUEST"))
            assert "hush" not in refusal and "123456789" not in refusal
    for credential in ("hush-hush", ["abc", "hush-hush"], {}, {"access_key": "abc"}, {"secret_key": "hush-hush"}, given()["credential"] | {"hush-hush": 1}):
        refusal = expect_refusal(own_store.admin.post("/service-accounts", {"name": "new", "credential": credential}), 400, "INVALID_REQUEST")
        assert "hush" not in str(refusal), "a secret in the wrong place is not repeated"
    assert {shown["name"] for shown in expect(own_store.admin.get("/service-accounts"), 200)["service_accounts"]} == {"moved 0", "moved 1"}
    assert len(account.show()["credentials"]) == 1


def test_access_keys_are_unique(own_store: Cairn, account: Account):
    """Also beside root's and beside generated ones. What is refused makes nothing."""
    other = expect(own_store.admin.post("/service-accounts", {"name": "other"}), 201)
    for taken in (KEY, own_store.s3.credential.access_key, other["credential"]["access_key"]):
        expect_refusal(own_store.admin.post("/service-accounts", {"name": "new", **given(taken, "another-secret")}), 409, "ACCESS_KEY_EXISTS")
        expect_refusal(own_store.admin.post(f"{account.path}/credentials", given(taken, "another-secret")), 409, "ACCESS_KEY_EXISTS")
    expect_refusal(own_store.admin.post("/service-accounts", {"name": account.name, **given("new")}), 409, "SERVICE_ACCOUNT_ALREADY_EXISTS")
    expect_refusal(own_store.admin.post(f"/service-accounts/{ID}/credentials", given("new")), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    expect_refusal(own_store.admin.post(f"{account.path}/temporary-credentials", {"expires_in_seconds": 60, **given("new")}), 400, "INVALID_REQUEST")
    for role in ("storage_admin", "auditor"):
        admin = with_role(own_store.admin, role)
        expect_refusal(admin.post("/service-accounts", {"name": "new", **given("new")}), 403, "FORBIDDEN")
        expect_refusal(admin.post(f"{account.path}/credentials", given("new")), 403, "FORBIDDEN")
    assert len(expect(own_store.admin.get("/service-accounts"), 200)["service_accounts"]) == 2
    assert len(account.show()["credentials"]) == 1 and account.s3.get("kept", "key").status == 200


def test_access_key_that_is_given_again_has_only_its_new_secret(own_store: Cairn, account: Account):
    """Every executor has signing keys and verified URLs of the old secret in its caches, and refuses them at once."""
    connections = [own_store.s3.connect() for _ in range(CONNECTIONS)]
    old = account.s3
    url = old.presigned("GET", "/kept/key")

    def answers(s3: S3, presigned: str, count: int = CONNECTIONS) -> set[tuple[int, str]]:
        """Sends a signed and a presigned GET on each connection. Returns the distinct (status, error code) pairs."""
        found = []
        for connection in connections[:count]:
            found.append(s3.request("GET", "/kept/key", connection=connection))
            connection.send(encode_head("GET", presigned, [("Host", s3.authority)]))
            found.append(connection.read_response("GET"))
        return {(answer.status, error_code(answer) if answer.status >= 400 else "") for answer in found}

    def refusals(s3: S3, presigned: str) -> set[tuple[int, str]]:
        """The same on fewer connections: more than a few refusals are answered late."""
        return answers(s3, presigned, CONNECTIONS // 4)

    for _ in range(2):
        assert answers(old, url) == {(200, "")}
    expect(own_store.admin.delete(account.path), 204)
    assert refusals(old, url) == {(403, "InvalidAccessKeyId")}
    again = create(own_store, "kept", secret_key="another-secret", name="moved again")
    assert refusals(old, url) == {(403, "SignatureDoesNotMatch")}
    assert answers(again.s3, again.s3.presigned("GET", "/kept/key")) == {(200, "")}
    # The same for a single credential.
    expect(own_store.admin.delete(f"{again.path}/credentials/{again.keys['id']}"), 204)
    expect(own_store.admin.post(f"{again.path}/credentials", given()), 201)
    assert answers(old, url) == {(200, "")}
    assert refusals(again.s3, again.s3.presigned("GET", "/kept/key")) == {(403, "SignatureDoesNotMatch")}
    for connection in connections:
        connection.close()


def test_given_secrets_appear_nowhere(own_store: Cairn, account: Account):
    """Not in responses, logs, audit events or files. The audit trail names the access keys of changes and of refused requests."""
    expect(own_store.admin.post(f"{account.path}/credentials", given("second/key", "second-secret")), 201)
    expect_refusal(own_store.admin.post(f"{account.path}/credentials", given("second/key", "third-secret")), 409, "ACCESS_KEY_EXISTS")
    assert account.s3.get("other", "key").status == 403
    wrong = client(own_store, {"access_key": KEY, "secret_key": "wrong-secret"})
    assert error_code(wrong.request("GET", "/kept/key")) == "SignatureDoesNotMatch"
    shown = expect(own_store.admin.get("/refused-requests"), 200)["refused_requests"]
    assert {entry["access_key"] for entry in shown} <= {KEY, None} and any(entry["access_key"] for entry in shown)
    responses = [str(shown)]
    assert own_store.stop() == 0
    own_store.start()
    events = expect(own_store.admin.get("/audit/events", params={"limit": 1000}), 200)["events"]
    details = [(event["operation"], event["result"], event["detail"]) for event in events]
    assert any(operation == "create_service_account" and detail.endswith(f"given access key {KEY}") for operation, _, detail in details), details
    assert any(operation == "create_credential" and detail.endswith("given access key second/key") for operation, _, detail in details)
    refusals = [detail for operation, result, detail in details if result == "denied" and operation == "GetObject"]
    assert len(refusals) == 2 and all(detail.endswith(f"access key {KEY}") for detail in refusals), refusals
    responses += [own_store.admin.get(path).text for path in ("/service-accounts", account.path, "/audit/events?limit=1000")]
    assert own_store.stop() == 0
    files = b"".join(path.read_bytes() for path in own_store.data.rglob("*") if path.is_file())
    assert KEY.encode() in files
    for secret in (SECRET, "second-secret", "third-secret"):
        assert secret not in "".join(responses) and secret not in own_store.output()
        assert secret.encode() not in files and secret.encode().hex().encode() not in files


def test_boto3_signs_with_given_keys(extended_store: Cairn, extended_bucket: str):
    """Headers, presigned URLs and forms of both signature versions."""
    account = create(extended_store, extended_bucket, "boto3+key=1/2@x", name="boto3")
    s3 = make_client(account.s3)
    names = {"Bucket": extended_bucket, "Key": "a/b c"}
    s3.put_object(**names, Body=b"text")
    assert s3.get_object(**names)["Body"].read() == b"text"
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=extended_bucket)["Contents"]] == ["a/b c"]
    for version in ("s3v4", "s3"):
        signer = boto3.client(
            "s3", endpoint_url=f"http://{account.s3.authority}", region_name="us-east-1", aws_access_key_id="boto3+key=1/2@x",
            aws_secret_access_key=SECRET, config=Config(signature_version=version, s3={"addressing_style": "path"}),
        )
        for _ in range(2):
            url = signer.generate_presigned_url("get_object", names)
            assert ("AWSAccessKeyId=boto3%2Bkey%3D1%2F2%40x" in url) == (version == "s3")
            assert requests.get(url, timeout=30).content == b"text"
        post = signer.generate_presigned_post(extended_bucket, f"form-{version}")
        answer = requests.post(post["url"], data=post["fields"], files={"file": b"a"}, timeout=30)
        assert answer.status_code == 204, answer.text
    own = S3(LOOPBACK, extended_store.s3_port, Credential("boto3+key=1/2@x", SECRET))
    assert Form(own, extended_bucket).send().status == 204
    with refused(403, "SignatureDoesNotMatch"):
        make_client(S3(LOOPBACK, extended_store.s3_port, Credential("boto3+key=1/2@x", "wrong-secret"))).get_object(**names)


def test_given_keys_can_expire(own_store: Cairn):
    """As those that moved from a store where they did. The time must be in the future."""
    admin = own_store.admin
    expiring = {"credential": given()["credential"] | {"expires_at": "2099-01-01T00:00:00Z"}}
    made = expect(admin.post("/service-accounts", {"name": "moved", **expiring}), 201)
    (shown,) = made["service_account"]["credentials"]
    assert (shown["temporary"], shown["expires_at"]) == (True, "2099-01-01T00:00:00.000Z")
    path = f"/service-accounts/{made['service_account']['id']}/credentials"
    other = {"credential": given("other")["credential"] | {"expires_at": "2098-01-01T00:00:00Z"}}
    assert expect(admin.post(path, other), 201)["credential"]["expires_at"] == "2098-01-01T00:00:00.000Z"
    for wrong in ("2020-01-01T00:00:00Z", "soon", "", 7):
        refused_body = {"credential": given("third")["credential"] | {"expires_at": wrong}}
        expect_refusal(admin.post(path, refused_body), 400, "INVALID_REQUEST")
        expect_refusal(admin.post("/service-accounts", {"name": "third", **refused_body}), 400, "INVALID_REQUEST")
