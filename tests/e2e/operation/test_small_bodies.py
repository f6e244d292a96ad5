"""Documents that are read into memory share one budget, whoever sends them and however slowly."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from harness.accounts import create_account, statement
from harness.console import Console
from harness.expect import assert_error
from harness.management import expect, expect_refusal
from harness.memory import MIB, watched
from harness.s3 import S3
from harness.server import Cairn
from harness.wire import Connection, encode_head

MakeStore = Callable[..., Cairn]
LIMIT_BYTES = 256 * MIB
CONNECTIONS = 150
DOCUMENT_BYTES = 2 * MIB - 1
BUCKET = "documents"
DELETE = f"/{BUCKET}?delete"
DOCUMENT = b"<Delete><Object><Key>k</Key></Object></Delete>"


@pytest.fixture
def small_server(make_store: MakeStore) -> Cairn:
    """A server with little memory and DeleteObjects."""
    store = make_store(
        SERVICE_SERVER_MEMORY_LIMIT="256MiB", SERVICE_SERVER_EXECUTORS="2", SERVICE_STORAGE_SLICES="2", SERVICE_S3_COMPATIBILITY="extended",
        SERVICE_SERVER_CONNECTIONS_PER_CLIENT_MAX=str(4 * CONNECTIONS),
    ).start()
    store.s3.create_bucket(BUCKET)
    return store


def begin_document(s3: S3) -> Connection:
    """Announces a document and sends half of it."""
    head = s3.signed_head("POST", DELETE, payload="UNSIGNED-PAYLOAD", content_length=DOCUMENT_BYTES)
    connection = s3.connect()
    connection.send_must(encode_head("POST", DELETE, head))
    connection.sock.setblocking(False)
    return connection


def send_more(connection: Connection, sent: int) -> int:
    """Sends as much as the server takes, but never the last byte. Returns what was sent altogether."""
    with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
        while sent < DOCUMENT_BYTES - 1:
            sent += connection.sock.send(bytes(min(65536, DOCUMENT_BYTES - 1 - sent)))
    return sent


def test_unfinished_documents_stay_within_the_memory_limit(small_server: Cairn):
    """Regression: each connection held up to 2 MiB outside of the memory limit. Slow ones are refused when others need memory."""
    store = small_server
    account = create_account(store, statement("allow", "DeleteObject", f"bucket:{BUCKET}/*"))
    with watched(store) as samples:
        connections = [begin_document(account.s3) for _ in range(CONNECTIONS)]
        sent, refused = [0] * CONNECTIONS, set()
        # The server refuses documents one after another, because all others wait for their memory.
        while len(refused) < 4:
            sent = [send_more(connection, done) for connection, done in zip(connections, sent, strict=True)]
            for number, connection in enumerate(connections):
                with suppress(BlockingIOError, ConnectionResetError):
                    connection.buffer += connection.sock.recv(65536)
                if b"RequestTimeout" in connection.buffer:
                    refused.add(number)
        # Others are served meanwhile: small documents need no memory from the budget.
        assert store.s3.put(BUCKET, "k", b"1").status == 200
        assert store.s3.request("POST", DELETE, [], DOCUMENT).status == 200
        expect(store.admin.post("/buckets", {"name": "meanwhile"}), 201)
        for connection in connections:
            connection.close()
    assert store.running()
    assert max(samples) < LIMIT_BYTES, f"{max(samples) / MIB:.1f} MiB"
    # The memory has returned.
    large = b"<Delete>" + b" " * MIB + DOCUMENT.removeprefix(b"<Delete>")
    assert store.s3.request("POST", DELETE, [], large).status == 200


def test_document_is_not_read_without_any_right_in_the_bucket(small_server: Cairn):
    """Regression: an account without rights could send documents that the server kept in memory."""
    account = create_account(small_server)
    for bucket in (BUCKET, "no-such-bucket"):
        target = f"/{bucket}?delete"
        head = account.s3.signed_head("POST", target, payload="UNSIGNED-PAYLOAD", content_length=DOCUMENT_BYTES)
        with account.s3.connect() as connection:
            connection.send_must(encode_head("POST", target, head))
            answer = connection.read_head()
            answer.body = connection.read_body(answer)
        assert_error(answer, 403, "AccessDenied")


def test_login_has_a_short_body(small_server: Cairn):
    """Anybody may send one. 4 KiB are enough for every credential."""
    console = Console(small_server)
    assert expect_refusal(console.post("/session", {"token": "t" * 4096}), 413, "PAYLOAD_TOO_LARGE") == "the request body is larger than 4096 bytes"
    expect_refusal(console.post("/session", {"token": "t" * 4000}), 401, "UNAUTHENTICATED")
