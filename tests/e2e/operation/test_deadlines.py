"""Timeouts: incomplete heads, stalled bodies, idle connections and stalled readers."""

import http.client
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.management import expect
from harness.s3 import error_code, object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wait import PATIENCE_SECONDS, until
from harness.wire import Connection, encode_head

DEADLINE_SECONDS = 2
# A state of /proc/net/tcp.
ESTABLISHED = "01"


@pytest.fixture(scope="module")
def impatient_store(run_folder) -> Iterator[Cairn]:
    """A store whose timeouts are two seconds."""
    names = ("HEAD", "IDLE", "BODY")
    settings = {f"SERVICE_SERVER_{name}_TIMEOUT_SECONDS": str(DEADLINE_SECONDS) for name in names}
    store = Cairn(run_folder / "impatient", settings).start()
    store.s3.create_bucket("kept")
    yield store
    assert store.stop() == 0


def closed_after_deadline(begin: float, wait: Callable[[float], bytes]) -> bytes:
    """Waits for the close, and returns the data before it. Fails if it comes well before the deadline; how late it is depends on the machine."""
    rest = wait(PATIENCE_SECONDS)
    assert time.monotonic() - begin > DEADLINE_SECONDS * 0.5, "closed long before the deadline"
    return rest


def is_timeout(rest: bytes) -> bool:
    """Returns whether there was no response, S3's RequestTimeout (a 400) or HTTP's 408."""
    return rest == b"" or b"<Code>RequestTimeout</Code>" in rest or rest.startswith(b"HTTP/1.1 408")


def server_holds(connection: Connection) -> bool:
    """Returns whether the server's end is established. A client that does not read does not notice the close."""
    client, server = (f":{end[1]:04X}" for end in (connection.sock.getsockname(), connection.sock.getpeername()))
    ends = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        local.endswith(server) and remote.endswith(client) and state == ESTABLISHED for local, remote, state in ends
    )


def test_incomplete_head_times_out(impatient_store: Cairn):
    """The client sends a part of the head and then nothing."""
    begin = time.monotonic()
    with impatient_store.s3.connect() as connection:
        connection.send_must(b"GET / HTTP/1.1\r\nHost: x\r\n")
        rest = closed_after_deadline(begin, connection.wait_closed)
    assert is_timeout(rest), rest


def test_connection_without_a_first_request_times_out(make_store: Callable[..., Cairn]):
    """A connection that has served a request may be idle for longer."""
    store = make_store(SERVICE_SERVER_FIRST_REQUEST_TIMEOUT_SECONDS=str(DEADLINE_SECONDS)).start()
    begin = time.monotonic()
    with store.s3.connect() as used, store.s3.connect() as silent:
        assert store.s3.request("GET", "/", connection=used).status == 200
        assert closed_after_deadline(begin, silent.wait_closed) == b""
        assert store.s3.request("GET", "/", connection=used).status == 200


@pytest.mark.parametrize(("is_set", "maximum"), [(True, 4), (False, 300)])
def test_connections_of_one_address_are_limited_on_each_plane(make_store: Callable[..., Cairn], is_set: bool, maximum: int):
    """Another address and the other plane have their own count. Without the setting it is three quarters of all."""
    settings = {"SERVICE_SERVER_CONNECTIONS_PER_CLIENT_MAX": str(maximum)} if is_set else {"SERVICE_SERVER_CONNECTIONS_MAX": "400"}
    store = make_store(**settings).start()
    opened = [store.s3.connect() for _ in range(maximum)]
    for connection in opened:
        assert store.s3.request("GET", "/", connection=connection).status == 200
    refused = store.s3.request("GET", "/")
    assert (refused.status, error_code(refused)) == (503, "SlowDown")
    expect(store.admin.get("/buckets"), 200)
    with socket.create_connection((LOOPBACK, store.s3_port), source_address=("127.0.0.2", 0)) as elsewhere:
        elsewhere.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert elsewhere.recv(100).startswith(b"HTTP/1.1 403"), "unsigned, but served"
    for connection in opened:
        connection.close()


def test_head_sent_byte_by_byte_times_out(impatient_store: Cairn):
    """The deadline counts from the first byte. Further bytes do not extend it."""
    with impatient_store.s3.connect() as connection:
        begin = time.monotonic()
        connection.sock.settimeout(0.2)
        connection.send_must(b"GET / HTTP/1.1\r\nx: ")
        while time.monotonic() - begin < PATIENCE_SECONDS:
            connection.send(b"y")
            try:
                data = connection.sock.recv(1000)
            except TimeoutError:
                continue
            except ConnectionResetError:
                return
            assert is_timeout(data), data
            return
    raise AssertionError("a slowly sent head does not time out")


@pytest.mark.parametrize("with_a_request_before", [False, True])
def test_idle_connection_is_closed(impatient_store: Cairn, with_a_request_before: bool):
    """No response is sent before the close."""
    s3, begin = impatient_store.s3, time.monotonic()
    with s3.connect() as connection:
        if with_a_request_before:
            assert s3.request("GET", "/", connection=connection).status == 200
        assert closed_after_deadline(begin, connection.wait_closed) == b""


def test_stalled_upload_times_out(impatient_store: Cairn):
    """The client stops in the middle of the body. Nothing is stored."""
    s3, target = impatient_store.s3, object_target("kept", "stalled")
    head = s3.signed_head("PUT", target, payload=UNSIGNED_PAYLOAD, content_length=1_000_000)
    begin = time.monotonic()
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, head) + b"x" * 300_000)
        rest = closed_after_deadline(begin, connection.wait_closed)
    assert is_timeout(rest), rest
    assert s3.head("kept", "stalled").status == 404


def test_stalled_upload_to_the_management_plane_times_out(impatient_store: Cairn):
    """408 or a close. Nothing is stored, and no space stays reserved."""
    host, port = impatient_store.management.removeprefix("http://").split(":")
    head = [("Host", "h"), ("Content-Length", "1000000"), *impatient_store.admin.headers.items()]
    begin = time.monotonic()
    with Connection(host, int(port)) as connection:
        connection.send_must(encode_head("PUT", "/api/v1/buckets/kept/object/stalled-too", head) + b"x" * 300_000)
        rest = closed_after_deadline(begin, connection.wait_closed)
    assert is_timeout(rest), rest
    assert impatient_store.s3.head("kept", "stalled-too").status == 404
    reserved = lambda: expect(impatient_store.admin.get("/storage/status"), 200)["temporary_upload_bytes"]
    until(lambda: reserved() == 0, "space stays reserved")


def test_stalled_reader_is_disconnected(impatient_store: Cairn):
    """The server closes the connection of a client that stops reading its response."""
    s3, target = impatient_store.s3, object_target("kept", "large")
    s3.put("kept", "large", b"y" * 30_000_000)
    with s3.connect(receive_buffer_bytes=4096) as connection:
        connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
        assert connection.read_head().status == 200
        begin = time.monotonic()
        until(lambda: not server_holds(connection), "the server still waits for a client that does not read")
        assert time.monotonic() - begin > DEADLINE_SECONDS * 0.5, "closed long before the deadline"
        assert len(connection.wait_closed()) < 30_000_000


def test_a_paused_process_answers_what_was_sent_meanwhile(impatient_store: Cairn):
    """Its virtual machine was suspended, say. New connections and idle ones would have timed out before they were read."""
    connections = [http.client.HTTPConnection(LOOPBACK, impatient_store.s3_port, timeout=PATIENCE_SECONDS) for _ in range(8)]
    for connection in connections[:4]:
        connection.request("GET", "/")
        assert connection.getresponse().read()
    with impatient_store.stopped():
        for connection in connections:
            connection.request("GET", "/")
        time.sleep(3 * DEADLINE_SECONDS)
    for connection in connections:
        # The request has no signature.
        assert connection.getresponse().status == 403
        connection.close()
