"""A write in progress does not outlive its credential, and is not disturbed by changes that do not concern it."""

from collections.abc import Callable
from contextlib import closing

import pytest

from harness.accounts import Account, create_account, create_policy, statement
from harness.expect import assert_error, assert_status
from harness.management import bearer, expect
from harness.s3 import S3, error_code, object_target, xml
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wire import Connection, Response, encode_head

MIB = 1 << 20
BODY = b"a body that arrives in two pieces " * 4000


def disable_credential(account: Account) -> None:
    """Disables the credential that signs the request."""
    path = f"{account.path}/credentials/{account.keys['id']}/status"
    expect(account.store.admin.put(path, {"enabled": False}), 200)


def disable_account(account: Account) -> None:
    """Disables the account."""
    expect(account.store.admin.put(f"{account.path}/status", {"enabled": False}), 200)


def delete_account(account: Account) -> None:
    """Deletes the account."""
    expect(account.store.admin.delete(account.path), 204)


def deny(account: Account) -> None:
    """Attaches a policy that denies writing."""
    account.grant(statement("deny", "PutObject", f"bucket:{account.bucket}/*"))


def change_others(account: Account) -> None:
    """Changes the directory without a change for this account."""
    create_account(account.store)
    create_policy(account.store, statement("deny", "PutObject", f"bucket:{account.bucket}/*"))


@pytest.fixture
def account(store: Cairn, bucket: str) -> Account:
    """Creates an account that may read and write a bucket."""
    made = create_account(store, statement("allow", ["GetObject", "PutObject"], f"bucket:{bucket}/*"))
    made.bucket = bucket
    return made


def interrupted(s3: S3, method: str, target: str, body: bytes, between: Callable[[], None], headers: list | None = None) -> Response:
    """Sends a request with half of its body, does something, and sends the rest."""
    head = s3.signed_head(method, target, headers, payload=UNSIGNED_PAYLOAD, content_length=len(body))
    with closing(s3.connect()) as connection:
        connection.send(encode_head(method, target, head + [("Expect", "100-continue")]))
        assert connection.read_head().status == 100
        connection.send(body[: len(body) // 2])
        between()
        connection.send(body[len(body) // 2 :])
        return connection.read_response(method)


REVOCATIONS = [
    (disable_credential, "InvalidAccessKeyId"), (disable_account, "InvalidAccessKeyId"), (delete_account, "InvalidAccessKeyId"),
    (deny, "AccessDenied"),
]


@pytest.mark.parametrize(("revoke", "code"), REVOCATIONS, ids=lambda value: getattr(value, "__name__", None))
def test_put_in_progress_ends_with_its_credential(store: Cairn, s3: S3, account: Account, revoke: Callable, code: str):
    """Refused at its end, nothing is stored, and the refusal is in the audit trail.

    Regression: an upload of hours was stored although its credential had been disabled at its beginning.
    """
    refused = interrupted(account.s3, "PUT", object_target(account.bucket, "k"), BODY, lambda: revoke(account))
    assert_error(refused, 403, code)
    assert s3.get(account.bucket, "k").status == 404
    (event,) = expect(store.admin.get(f"/audit/events?request_id={refused.get('x-amz-request-id')}"), 200)["events"]
    assert (event["result"], event["operation"]) == ("denied", "PutObject") and code in event["detail"]


def test_put_in_progress_is_not_disturbed_by_other_changes(s3: S3, account: Account):
    """The directory changes, but not for this account."""
    done = interrupted(account.s3, "PUT", object_target(account.bucket, "k"), BODY, lambda: change_others(account))
    assert_status(done, 200)
    assert s3.get(account.bucket, "k").body == BODY


@pytest.mark.parametrize(("revoke", "code"), [REVOCATIONS[0], REVOCATIONS[3]], ids=["disabled", "denied"])
def test_upload_steps_in_progress_end_with_their_credential(s3: S3, account: Account, revoke: Callable, code: str):
    """A part and a completion are refused, and the upload is as it was."""
    target = object_target(account.bucket, "k")
    upload = xml(s3.request("POST", f"{target}?uploads")).findtext("UploadId")
    etag = s3.request("PUT", f"{target}?partNumber=1&uploadId={upload}", body=BODY).get("etag")
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    completion = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    other = create_account(account.store, statement("allow", "PutObject", f"bucket:{account.bucket}/*"))
    other.bucket = account.bucket
    refused = interrupted(account.s3, "PUT", f"{target}?partNumber=1&uploadId={upload}", BODY[::-1], lambda: revoke(account))
    assert_error(refused, 403, code)
    refused = interrupted(other.s3, "POST", f"{target}?uploadId={upload}", completion, lambda: revoke(other))
    assert_error(refused, 403, code)
    assert s3.get(account.bucket, "k").status == 404
    assert_status(s3.request("POST", f"{target}?uploadId={upload}", body=completion), 200)
    assert s3.get(account.bucket, "k").body == BODY


def test_bucket_change_in_progress_ends_with_its_rights(store: Cairn, s3: S3, bucket: str):
    """A small document may arrive as slowly as an object."""
    account = create_account(store)
    manage = account.grant(statement("allow", "ManageBucket", f"bucket:{bucket}"))
    document = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    refused = interrupted(account.s3, "PUT", f"/{bucket}?versioning", document, lambda: account.detach(manage))
    assert_error(refused, 403, "AccessDenied")
    assert b"Enabled" not in s3.request("GET", f"/{bucket}?versioning").body


@pytest.mark.parametrize(("revoke", "code"), [REVOCATIONS[0], REVOCATIONS[3]], ids=["disabled", "denied"])
def test_copies_in_progress_end_with_their_credential(make_store: Callable[..., Cairn], revoke: Callable, code: str):
    """Copies that wait for their turn are refused before their commit."""
    store = make_store(SERVICE_SERVER_EXECUTORS="1").start()
    store.s3.create_bucket("copies")
    store.s3.put("copies", "large", bytes(4 * MIB))
    account = create_account(store, statement("allow", ["GetObject", "PutObject"], "bucket:copies/*"))
    account.bucket = "copies"
    connections = []
    for number in range(40):
        target = object_target("copies", f"copy-{number}")
        connections.append(account.s3.connect())
        head = account.s3.signed_head("PUT", target, [("x-amz-copy-source", "/copies/large")])
        connections[-1].send(encode_head("PUT", target, head))
    # The server has read all heads once it answers a later request on the same executor.
    assert store.s3.head("copies", "large").status == 200
    revoke(account)
    last = connections[-1].read_response("PUT")
    # A copy that takes more than five seconds has its error in the body of a 200.
    assert last.status in (403, 200) and error_code(last) == code, last
    assert store.s3.head("copies", "copy-39").status == 404
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("route", ["object", "bucket"])
def test_management_change_in_progress_ends_with_its_token(store: Cairn, bucket: str, route: str):
    """An upload and a change with a JSON body are refused with 401, and another token's deletion does not matter."""
    def begin(token: str, name: str) -> tuple[Connection, bytes]:
        body = BODY if route == "object" else f'{{"name": "{name}"}}'.encode()
        method, path = ("PUT", f"/buckets/{bucket}/object/{name}") if route == "object" else ("POST", "/buckets")
        head = [("Host", "h"), *bearer(token).items(), ("Content-Length", str(len(body))), ("Expect", "100-continue")]
        connection = Connection(LOOPBACK, store.api_port)
        connection.send(encode_head(method, f"/api/v1{path}", head))
        assert connection.read_head().status == 100
        connection.send(body[:10])
        return connection, body[10:]

    def token(name: str) -> tuple[str, str]:
        made = expect(store.admin.post("/management-tokens", {"name": name, "role": "storage_admin"}), 201)
        return made["management_token"]["id"], made["token"]

    (revoked, secret), (_, kept) = token("revoked"), token("kept")
    name = f"{bucket}-revoked"
    ending, rest = begin(secret, name)
    staying, rest_of_staying = begin(kept, f"{bucket}-kept")
    expect(store.admin.delete(f"/management-tokens/{revoked}"), 204)
    ending.send(rest)
    refused = ending.read_response()
    assert refused.status == 401 and b"UNAUTHENTICATED" in refused.body
    staying.send(rest_of_staying)
    assert staying.read_response().status == 201
    found = f"/buckets/{bucket}/object/{name}" if route == "object" else f"/buckets/{name}"
    assert store.admin.get(found).status_code == 404
    (event,) = expect(store.admin.get(f"/audit/events?request_id={refused.get('x-request-id')}"), 200)["events"]
    assert event["result"] == "denied" and revoked in event["detail"]
    ending.close()
    staying.close()
