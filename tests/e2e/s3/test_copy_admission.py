"""Copies are admitted: they are refused early, end with their client, and are bounded for each account."""

import os
from collections.abc import Callable

import pytest

from harness.accounts import create_account, statement
from harness.events import walk
from harness.management import expect, expect_refusal
from harness.s3 import S3, error_code, object_target
from harness.server import LOOPBACK, Cairn
from harness.wire import Connection, encode_head

MIB = 1 << 20
SOURCE_BYTES = 16 * MIB
# More than may run and wait for one account on one executor, which is 130.
TOO_MANY = 200


@pytest.fixture(scope="module")
def copy_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server with one executor and a large object to copy."""
    store = make_module_store(SERVICE_SERVER_EXECUTORS="1").start()
    store.s3.create_bucket("source")
    store.s3.put("source", "large", os.urandom(SOURCE_BYTES))
    store.s3.create_bucket("target")
    return store


def begin_copy(s3: S3, key: str, more: bytes = b"") -> Connection:
    """Sends a copy of the large object and does not wait for the response."""
    target = object_target("target", key)
    connection = s3.connect()
    head = s3.signed_head("PUT", target, [("x-amz-copy-source", "/source/large")])
    connection.send(encode_head("PUT", target, head) + more)
    return connection


def written_bytes(store: Cairn) -> int:
    """Returns the bytes that were written to the volumes since the start."""
    metrics = expect(store.admin.get("/system/metrics"), 200)["metrics"]
    return sum(one["value"] for one in metrics if one["name"] == "service_device_written_bytes_total")


def test_copy_over_the_quota_writes_nothing(copy_store: Cairn):
    """Regression: each copy wrote all its bytes before the commit refused it."""
    store, admin = copy_store, copy_store.admin
    store.s3.create_bucket("full")
    limits = {"bytes": {"mode": "limit", "bytes": SOURCE_BYTES - 1}, "objects": {"mode": "unlimited"}}
    expect(admin.put("/buckets/full/quota", {"quota": limits}), 200)
    before = written_bytes(store)
    refused = store.s3.request("PUT", object_target("full", "k"), [("x-amz-copy-source", "/source/large")])
    assert (refused.status, error_code(refused)) == (403, "QuotaExceeded")
    order = {"destination_bucket": "full", "destination_key": "k"}
    expect_refusal(admin.post("/buckets/source/object-copy/large", order), 409, "QUOTA_EXCEEDED")
    assert written_bytes(store) == before


@pytest.mark.parametrize("more", [b"", b"G"], ids=["closed", "closed-with-a-byte-to-spare"])
@pytest.mark.parametrize("plane", ["data", "management"])
def test_copy_ends_when_its_client_disconnects(copy_store: Cairn, plane: str, more: bytes):
    """Regression: 24 copies whose sockets were closed at once wrote 24 objects."""
    store = copy_store
    before = written_bytes(store)
    for number in range(24):
        if plane == "data":
            begin_copy(store.s3, f"lost-{number}", more).close()
        else:
            body = f'{{"destination_bucket": "target", "destination_key": "lost-{number}"}}'.encode()
            head = [("Host", "h"), ("Content-Length", str(len(body))), *store.admin.headers.items()]
            connection = Connection(LOOPBACK, store.api_port)
            connection.send(encode_head("POST", "/api/v1/buckets/source/object-copy/large", head) + body + more)
            connection.close()
    # A copy that waits behind the lost ones.
    copied = begin_copy(store.s3, "kept").read_response("PUT")
    assert copied.status == 200
    # The sockets of the first copies may be closed after they began.
    assert written_bytes(store) - before < 6 * SOURCE_BYTES
    assert store.s3.list("target", prefix="lost-").key_count < 5


def test_copies_of_an_account_are_bounded_and_others_still_copy(copy_store: Cairn):
    """Beyond its queue an account gets 503 SlowDown. Another account's copy does not wait for the queue."""
    store = copy_store
    rights = [statement("allow", ["GetObject", "PutObject"], "bucket:source/*", "bucket:target/*")]
    many, other = create_account(store, *rights), create_account(store, *rights)
    # All are there at once, however slow this process is.
    with store.stopped():
        connections = [begin_copy(many.s3, f"many-{number}") for number in range(TOO_MANY)]
        of_other = begin_copy(other.s3, "other")
    refused = connections[-1].read_response("PUT")
    assert (refused.status, error_code(refused)) == (503, "SlowDown")
    assert of_other.read_response("PUT").status == 200
    done = [event["object"] for event in walk(store.admin, bucket="target", type=["object.created", "object.updated"])]
    earlier = sum(key.startswith("many-") for key in done[: done.index("other")])
    assert earlier < TOO_MANY // 2, f"{earlier} copies of the first account came first"
    for connection in connections:
        connection.close()
