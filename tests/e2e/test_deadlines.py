"""Attacks the server's patience: half-sent heads, stalled bodies, idle connections and stalled readers end by deadline."""

import time
from collections.abc import Callable, Iterator

import pytest

from harness.management import expect
from harness.s3 import object_target
from harness.server import Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wire import Connection, encode_head

DEADLINE_SECONDS = 1
# What a deadline of one second may take on a machine that does other things too.
PATIENCE_SECONDS = 8.0


@pytest.fixture(scope="module")
def impatient_store(run_folder) -> Iterator[Cairn]:
    """A store whose deadlines are a second long."""
    names = ("HEAD", "IDLE", "BODY")
    settings = {f"SERVICE_SERVER_{name}_TIMEOUT_SECONDS": str(DEADLINE_SECONDS) for name in names}
    store = Cairn(run_folder / "impatient", settings).start()
    store.s3.create_bucket("kept")
    yield store
    assert store.stop() == 0


def closed_within(wait: Callable[[float], bytes]) -> bytes:
    """What came before the close; fails when there is none in time, or when it came before the deadline."""
    begin = time.monotonic()
    rest = wait(PATIENCE_SECONDS)
    assert time.monotonic() - begin > DEADLINE_SECONDS * 0.5, "closed long before the deadline"
    return rest


def gave_up(rest: bytes) -> bool:
    """Closed without a word, or with S3's RequestTimeout (a 400 there) or HTTP's 408."""
    return rest == b"" or b"<Code>RequestTimeout</Code>" in rest or rest.startswith(b"HTTP/1.1 408")


def test_a_half_sent_head(impatient_store: Cairn):
    """The deadline runs from the first byte, and more bytes do not lengthen it."""
    with impatient_store.s3.connect() as connection:
        connection.send_must(b"GET / HTTP/1.1\r\nHost: x\r\n")
        rest = closed_within(connection.wait_closed)
    assert gave_up(rest), rest


def test_a_head_a_byte_at_a_time(impatient_store: Cairn):
    """Bytes that trickle in do not push the deadline away."""
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
            assert gave_up(data), data
            return
    raise AssertionError("a head may be sent for ever")


@pytest.mark.parametrize("with_a_request_before", [False, True])
def test_an_idle_connection(impatient_store: Cairn, with_a_request_before: bool):
    """Closed without an answer that nobody asked for."""
    s3 = impatient_store.s3
    with s3.connect() as connection:
        if with_a_request_before:
            assert s3.request("GET", "/", connection=connection).status == 200
        assert closed_within(connection.wait_closed) == b""


def test_a_stalled_upload(impatient_store: Cairn):
    """A body that stands still ends the request; nothing of it is stored."""
    s3, target = impatient_store.s3, object_target("kept", "stalled")
    head = s3.signed_head("PUT", target, payload=UNSIGNED_PAYLOAD, content_length=1_000_000)
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, head) + b"x" * 300_000)
        rest = closed_within(connection.wait_closed)
    assert gave_up(rest), rest
    assert s3.head("kept", "stalled").status == 404


def test_a_stalled_upload_to_the_management_plane(impatient_store: Cairn):
    """The same there: 408 or a close, nothing stored, no space held."""
    host, port = impatient_store.management.removeprefix("http://").split(":")
    head = [("Host", "h"), ("Content-Length", "1000000"), *impatient_store.admin.headers.items()]
    with Connection(host, int(port)) as connection:
        connection.send_must(encode_head("PUT", "/api/v1/buckets/kept/object/stalled-too", head) + b"x" * 300_000)
        rest = closed_within(connection.wait_closed)
    assert gave_up(rest), rest
    assert impatient_store.s3.head("kept", "stalled-too").status == 404
    assert expect(impatient_store.admin.get("/storage/status"), 200)["temporary_upload_bytes"] == 0


def test_a_stalled_reader(impatient_store: Cairn):
    """A client that stops reading is cut off, and the server's memory of it with it."""
    s3, target = impatient_store.s3, object_target("kept", "large")
    s3.put("kept", "large", b"y" * 30_000_000)
    with s3.connect(receive_buffer_bytes=4096) as connection:
        connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
        assert connection.read_head().status == 200
        time.sleep(PATIENCE_SECONDS)  # not reading is the event here
        assert len(connection.wait_closed()) < 30_000_000
