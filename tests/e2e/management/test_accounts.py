"""Service accounts and credentials: revocation, expiry, secrets, durability.

A disabled, expired or deleted credential is refused by the next request on every core. Secrets are returned once, and
a crash loses nothing that was acknowledged.
"""

import shutil
import threading
import time
from collections.abc import Callable
from datetime import datetime

import pytest

from harness.accounts import Account, client, create_account, statement
from harness.boto import make_client, refused
from harness.management import expect, expect_refusal
from harness.old_store import upgrade
from harness.s3 import error_code
from harness.server import Cairn
from harness.wait import until

CREDENTIAL_FIELDS = {"id", "access_key", "enabled", "temporary", "created_at", "expires_at", "last_used_at"}
ID = "01890000-0000-7000-8000-000000000000"
# More than the executors of any test machine, so that every executor serves some of them.
CONNECTIONS = 24
ALL = ["ListBucket", "GetObject", "PutObject", "DeleteObject"]


@pytest.fixture
def account(store: Cairn, bucket: str) -> Account:
    """An account with access to one bucket, which contains `key`."""
    store.s3.put(bucket, "key", b"text")
    return create_account(store, statement("allow", ALL, f"bucket:{bucket}", f"bucket:{bucket}/*"))


class Connections:
    """Many open connections, spread over the executors."""

    def __init__(self, store: Cairn, bucket: str, keys: dict):
        self.s3, self.target = client(store, keys), f"/{bucket}/key"
        self.connections = [self.s3.connect() for _ in range(CONNECTIONS)]

    def statuses(self) -> set[tuple[int, str]]:
        """Sends one GET on each connection. Returns the distinct (status, error code) pairs."""
        answers = [self.s3.request("GET", self.target, connection=connection) for connection in self.connections]
        return {(answer.status, error_code(answer) if answer.status >= 400 else "") for answer in answers}


def test_account_is_created_shown_and_deleted(store: Cairn):
    """Covers every field and the refused requests."""
    made = expect(store.admin.post("/service-accounts", {"name": "web shop", "description": "its images"}), 201)
    shown = made["service_account"]
    assert set(made) == {"service_account", "credential"} and set(made["credential"]) == {"id", "access_key", "secret_key"}
    assert set(shown) == {"id", "name", "description", "enabled", "created_at", "credentials", "policies"}
    assert (shown["name"], shown["description"], shown["enabled"], shown["policies"]) == ("web shop", "its images", True, [])
    (credential,) = shown["credentials"]
    assert set(credential) == CREDENTIAL_FIELDS and credential["id"] == made["credential"]["id"]
    assert (credential["temporary"], credential["expires_at"], credential["last_used_at"]) == (False, None, None)
    assert datetime.fromisoformat(shown["created_at"]).utcoffset().total_seconds() == 0
    path = f"/service-accounts/{shown['id']}"
    assert expect(store.admin.get(path), 200) == shown
    assert shown in expect(store.admin.get("/service-accounts"), 200)["service_accounts"]
    expect_refusal(store.admin.post("/service-accounts", {"name": "web shop"}), 409, "SERVICE_ACCOUNT_ALREADY_EXISTS")
    for body in ({}, {"name": ""}, {"name": 1}, {"name": "x", "descripton": ""}, {"name": "w\u0435b"}, {"name": "x" * 129}, []):
        expect_refusal(store.admin.post("/service-accounts", body), 400, "INVALID_REQUEST")
    expect(store.admin.delete(path), 204)
    for method in ("GET", "DELETE"):
        expect_refusal(store.admin.request(method, path), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    for unknown in (ID, "no-id"):
        expect_refusal(store.admin.get(f"/service-accounts/{unknown}"), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    expect_refusal(store.admin.put(f"/service-accounts/{ID}/status", {"enabled": True}), 404, "SERVICE_ACCOUNT_NOT_FOUND")
    assert client(store, made["credential"]).request("GET", "/").status == 403


def test_changes_apply_to_the_next_request_on_every_connection(store: Cairn, bucket: str, account: Account):
    """As soon as a change is acknowledged, every connection gets the new result."""
    connections = Connections(store, bucket, account.keys)
    allowed, unknown, denied = {(200, "")}, {(403, "InvalidAccessKeyId")}, {(403, "AccessDenied")}
    assert connections.statuses() == allowed
    credential = f"{account.path}/credentials/{account.keys['id']}/status"
    for path in (credential, f"{account.path}/status"):
        for enabled, statuses in ((False, unknown), (True, allowed)):
            changed = expect(store.admin.put(path, {"enabled": enabled}), 200)
            assert changed["enabled"] is enabled
            assert connections.statuses() == statuses, (path, enabled)
    deny = account.grant(statement("deny", "GetObject", f"bucket:{bucket}/*"))
    assert connections.statuses() == denied
    account.detach(deny)
    assert connections.statuses() == allowed
    account.detach(account.show()["policies"][0]["id"])
    assert connections.statuses() == denied
    expect(store.admin.delete(account.path), 204)
    assert connections.statuses() == unknown


def test_disabled_credential_is_refused_under_load(store: Cairn, bucket: str, account: Account):
    """No request that starts after the change was acknowledged is allowed, also with concurrent requests."""
    began: list[tuple[float, int]] = []
    stop = threading.Event()

    def load() -> None:
        s3 = account.s3
        with s3.connect() as connection:
            while not stop.is_set():
                start = time.monotonic()
                began.append((start, s3.request("GET", f"/{bucket}/key", connection=connection).status))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: len(began) >= 100)
    assert {status for _, status in list(began)} == {200}
    expect(store.admin.put(f"{account.path}/credentials/{account.keys['id']}/status", {"enabled": False}), 200)
    answered = time.monotonic()
    # Wrong credentials are answered late, so a few from each connection are enough.
    until(lambda: sum(start > answered for start, _ in list(began)) >= 32)
    stop.set()
    for thread in threads:
        thread.join()
    assert {status for start, status in began if start > answered} == {403}


def test_rotation_keeps_the_old_credential(store: Cairn, bucket: str, account: Account):
    """Both credentials work until the old one is disabled. A deleted credential cannot be enabled again."""
    new = expect(store.admin.post(f"{account.path}/credentials"), 201)["credential"]
    assert set(new) == CREDENTIAL_FIELDS | {"secret_key"} and new["access_key"] != account.keys["access_key"]
    old, fresh = account.s3, client(store, new)
    assert (old.get(bucket, "key").status, fresh.get(bucket, "key").status) == (200, 200)
    path = f"{account.path}/credentials/{account.keys['id']}"
    shown = expect(store.admin.put(f"{path}/status", {"enabled": False}), 200)
    assert (shown["id"], shown["enabled"]) == (account.keys["id"], False)
    assert (error_code(old.get(bucket, "key")), fresh.get(bucket, "key").status) == ("InvalidAccessKeyId", 200)
    expect(store.admin.delete(path), 204)
    assert [credential["id"] for credential in account.show()["credentials"]] == [new["id"]]
    expect_refusal(store.admin.put(f"{path}/status", {"enabled": True}), 404, "CREDENTIAL_NOT_FOUND")
    expect_refusal(store.admin.put(f"{path}/status", {"enabled": "yes"}), 400, "INVALID_REQUEST")
    expect_refusal(store.admin.post(f"/service-accounts/{ID}/credentials"), 404, "SERVICE_ACCOUNT_NOT_FOUND")


def test_temporary_credential_and_its_presigned_urls_expire_on_time(store: Cairn, bucket: str, account: Account):
    """It works until its expiry. A URL that it signed for an hour expires with it."""
    route = f"{account.path}/temporary-credentials"
    for seconds in (59, 604_801, -1, 0, "60", None, 60.5):
        expect_refusal(store.admin.post(route, {"expires_in_seconds": seconds}), 400, "INVALID_REQUEST")
    made = expect(store.admin.post(route, {"expires_in_seconds": 60}), 201)["credential"]
    assert set(made) == CREDENTIAL_FIELDS | {"secret_key"} and made["temporary"] is True
    expiry = datetime.fromisoformat(made["expires_at"])
    assert (expiry - datetime.fromisoformat(made["created_at"])).total_seconds() == 60
    connections = Connections(store, bucket, made)
    boto = make_client(client(store, made))
    url = boto.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "key"}, ExpiresIn=3600)
    target = url.removeprefix(store.endpoint)
    presigned = lambda: connections.s3.send_raw("GET", target, [("Host", connections.s3.authority)])
    assert connections.statuses() == {(200, "")} and presigned().status == 200
    while (left := expiry.timestamp() - time.time()) > 0:
        found = connections.statuses()
        assert found == {(200, "")} or time.time() > expiry.timestamp(), found
        time.sleep(min(5.0, left + 0.01))
    assert connections.statuses() == {(403, "InvalidAccessKeyId")}
    assert (presigned().status, error_code(presigned())) == (403, "InvalidAccessKeyId")
    assert account.s3.get(bucket, "key").status == 200


def test_secrets_are_returned_once_and_accounts_survive_kill_9(make_store: Callable[..., Cairn]):
    """No later response, log line, audit event or file has a secret. All acknowledged changes survive the kill."""
    store = make_store(SERVICE_LOG="service=trace").start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "key", b"text")
    account = create_account(store, statement("allow", "GetObject", "bucket:kept/*"))
    temporary = expect(store.admin.post(f"{account.path}/temporary-credentials", {"expires_in_seconds": 3600}), 201)["credential"]
    further = expect(store.admin.post(f"{account.path}/credentials"), 201)["credential"]
    token = expect(store.admin.post("/management-tokens", {"name": "ops", "role": "auditor"}), 201)["token"]
    hidden = [keys["secret_key"] for keys in (account.keys, temporary, further)] + [token, token.removeprefix("cairn_mt_")]
    for keys in (account.keys, temporary, further):
        assert client(store, keys).get("kept", "key").status == 200
    before = account.show()
    assert all(credential["last_used_at"] for credential in before["credentials"])
    wrong = client(store, {**account.keys, "secret_key": further["secret_key"]})
    assert error_code(wrong.get("kept", "key")) == "SignatureDoesNotMatch"
    store.kill()
    store.start()
    after = account.show()
    for shown in (before, after):
        for credential in shown["credentials"]:
            credential.pop("last_used_at")
    assert after == before
    for keys in (account.keys, temporary, further):
        assert client(store, keys).get("kept", "key").status == 200
        assert client(store, keys).request("PUT", "/kept/key", body=b"x").status == 403
    responses = [store.admin.get(path).text for path in ("/service-accounts", account.path, "/policies", "/management-tokens", "/audit/events?limit=1000")]
    assert account.keys["access_key"] in responses[0] and "create_service_account" in responses[4] and "access key" in responses[4]
    assert store.stop() == 0
    files = b"".join(path.read_bytes() for path in store.data.rglob("*") if path.is_file() and path.suffix != ".vol")
    assert account.keys["access_key"].encode() in files
    for secret in hidden:
        assert secret not in "".join(responses) and secret not in store.output()
        assert secret.encode() not in files and secret.encode()[:20] not in files


def test_last_use_is_recorded_and_survives_a_restart(own_store: Cairn):
    """Only for the credential that was used. A request with a wrong signature does not count."""
    own_store.s3.create_bucket("used")
    account = create_account(own_store, statement("allow", "ListBucket", "bucket:used"))
    other = expect(own_store.admin.post(f"{account.path}/credentials"), 201)["credential"]
    wrong = client(own_store, {**account.keys, "secret_key": "wrong"})
    assert error_code(wrong.request("GET", "/used?list-type=2")) == "SignatureDoesNotMatch"
    last = lambda: {found["id"]: found["last_used_at"] for found in account.show()["credentials"]}
    assert last() == {account.keys["id"]: None, other["id"]: None}
    assert account.s3.request("GET", "/used?list-type=2").status == 200
    used = last()
    assert used[other["id"]] is None
    assert abs(datetime.fromisoformat(used[account.keys["id"]]).timestamp() - time.time()) < 30
    own_store.restart()
    assert last() == used


def test_boto3_works_within_the_policies_of_an_account(store: Cairn, bucket: str, account: Account):
    """The usual calls, including multipart uploads. Calls beyond the policies are refused."""
    boto = make_client(account.s3)
    boto.put_object(Bucket=bucket, Key="a/b", Body=b"text")
    assert boto.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"text"
    upload = boto.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    part = boto.upload_part(Bucket=bucket, Key="big", UploadId=upload, PartNumber=1, Body=b"x" * 100)
    assert len(boto.list_parts(Bucket=bucket, Key="big", UploadId=upload)["Parts"]) == 1
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    boto.complete_multipart_upload(Bucket=bucket, Key="big", UploadId=upload, MultipartUpload=parts)
    keys = [found["Key"] for found in boto.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == ["a/b", "big", "key"]
    assert [found["Name"] for found in boto.list_buckets()["Buckets"]] == [bucket]
    for key in keys:
        boto.delete_object(Bucket=bucket, Key=key)
    with refused(403, "AccessDenied"):
        boto.delete_bucket(Bucket=bucket)
    with refused(403, "AccessDenied"):
        boto.create_bucket(Bucket="another-bucket")
    with refused(404, "NoSuchKey"):
        boto.get_object(Bucket=bucket, Key="key")


def test_missing_or_damaged_directory_refuses_the_start(own_store: Cairn):
    """It is not created again, because that would silently grant or revoke access."""
    create_account(own_store)
    assert own_store.stop() == 0
    data = own_store.data / "identity" / "data.mdb"
    whole = data.read_bytes()
    for content, reason in ((None, "missing or empty"), (whole[: 8 * 4096], "truncated")):
        data.unlink()
        if content is not None:
            data.write_bytes(content)
        process = own_store.spawn()
        assert process.wait(30) != 0
        assert "directory of accounts" in own_store.output() and reason in own_store.output()
        assert (data.read_bytes() if data.exists() else None) == content
        data.write_bytes(whole)
    own_store.start()
    assert len(expect(own_store.admin.get("/service-accounts"), 200)["service_accounts"]) == 1


def test_store_of_format_2_is_upgraded_once(own_store: Cairn):
    """The upgrade marks the folders of accounts, webhooks and links as new, and the first start fills them."""
    assert own_store.stop() == 0
    superblock = own_store.data / "superblock.json"
    superblock.write_text(superblock.read_text().replace('"format_version": 11', '"format_version": 2'))
    for added in ("identity", "webhooks", "sharing"):
        shutil.rmtree(own_store.data / added)
    assert upgrade(own_store).returncode == 0
    own_store.start()
    account = create_account(own_store)
    own_store.restart()
    assert account.show()["name"] == account.name
    assert '"format_version": 11' in superblock.read_text()
