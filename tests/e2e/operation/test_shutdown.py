"""Shutdown: SIGTERM drains running requests and refuses new ones; a second SIGTERM exits immediately."""

import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.expect import assert_error
from harness.s3 import S3, object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wait import until
from harness.wire import Connection, encode_head

HALF = b"h" * 500_000
# Much less than the grace period, and much more than the end of a process takes on a busy machine.
AT_ONCE_SECONDS = 60.0
GRACE_SECONDS = 300
MakeStore = Callable[..., Cairn]


def begin_upload(s3: S3, bucket: str, key: str) -> Connection:
    """Begins an upload of twice HALF and sends the first half after the server's 100, so that it is in flight."""
    target = object_target(bucket, key)
    head = s3.signed_head(
        "PUT", target, [("Expect", "100-continue")], payload=UNSIGNED_PAYLOAD, content_length=2 * len(HALF)
    )
    connection = s3.connect()
    connection.send_must(encode_head("PUT", target, head))
    assert connection.read_head().status == 100
    connection.send_must(HALF)
    return connection


@pytest.fixture
def own_store(make_store: Callable[..., Cairn]) -> Cairn:
    """A running store whose drain ends with its last request, long before the grace period."""
    return make_store(SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS=str(GRACE_SECONDS)).start()


def wait_refused(port: int) -> None:
    """Waits until new connections are refused."""

    def is_refused() -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1) as probe:
                probe.settimeout(1)
                probe.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                return not probe.recv(1)
        except OSError:
            return True

    until(is_refused, "new connections are still served after SIGTERM", AT_ONCE_SECONDS)


def test_running_upload_is_completed_during_drain(own_store: Cairn):
    """It is acknowledged and durable, nothing new is served meanwhile, and the exit status is 0."""
    s3 = own_store.s3
    s3.create_bucket("kept")
    connection = begin_upload(s3, "kept", "k")
    own_store.terminate()
    wait_refused(own_store.s3_port)
    assert own_store.running()
    connection.send_must(HALF)
    response = connection.read_response("PUT")
    assert response.status == 200
    assert own_store.process.wait(AT_ONCE_SECONDS) == 0
    own_store.start()
    assert s3.get("kept", "k").body == HALF + HALF


def test_running_download_is_completed_during_drain(own_store: Cairn):
    """A slow reader gets every declared byte."""
    s3, body = own_store.s3, bytes(range(256)) * 80_000
    s3.create_bucket("kept")
    s3.put("kept", "k", body)
    connection = s3.connect(receive_buffer_bytes=4096)
    target = object_target("kept", "k")
    connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
    head = connection.read_head()
    assert head.status == 200
    own_store.terminate()
    wait_refused(own_store.s3_port)
    assert connection.take(len(body)) == body
    assert own_store.process.wait(AT_ONCE_SECONDS) == 0


def test_idle_connections_do_not_delay_shutdown(own_store: Cairn):
    """Idle keep-alive connections are closed immediately."""
    s3 = own_store.s3
    idle = [s3.connect() for _ in range(20)]
    for connection in idle[:10]:
        assert s3.request("GET", "/", connection=connection).status == 200
    own_store.terminate()
    assert own_store.process.wait(AT_ONCE_SECONDS) == 0
    for connection in idle:
        connection.wait_closed(1)
        connection.close()


def test_server_is_not_ready_while_draining(own_store: Cairn):
    """The management port answers 503 or is closed, so that load balancers stop using the server."""
    own_store.s3.create_bucket("kept")
    connection = begin_upload(own_store.s3, "kept", "k")
    own_store.terminate()
    wait_refused(own_store.s3_port)
    assert own_store.ready_status() in (503, None)
    connection.close()
    assert own_store.process.wait(AT_ONCE_SECONDS) == 0


def test_grace_period_ends_stalled_requests(make_store: MakeStore):
    """A stalled upload cannot keep the process running, and nothing of it is stored. Its client is told to send it again."""
    store = make_store(SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS="2").start()
    store.s3.create_bucket("kept")
    connection = begin_upload(store.s3, "kept", "k")
    begin = time.monotonic()
    store.terminate()
    store.process.wait(2 + AT_ONCE_SECONDS)
    assert time.monotonic() - begin >= 1.5, "the server exited before the end of the grace period"
    assert_error(connection.read_response("PUT"), 503, "ServiceUnavailable")
    connection.close()
    store.start()
    assert store.s3.head("kept", "k").status == 404


def insist(store: Cairn) -> None:
    """Sends SIGTERM repeatedly, because signals in quick succession may be merged."""

    def is_ended() -> bool:
        store.terminate()
        return not store.running()

    until(is_ended, "a second SIGTERM did not end the process", AT_ONCE_SECONDS)


def test_second_sigterm_exits_immediately(own_store: Cairn):
    """Acknowledged objects exist after the next start, the interrupted upload does not."""
    s3 = own_store.s3
    s3.create_bucket("kept")
    s3.put("kept", "whole", HALF)
    connection = begin_upload(s3, "kept", "torn")
    own_store.terminate()
    wait_refused(own_store.s3_port)
    insist(own_store)
    connection.close()
    own_store.start()
    assert s3.get("kept", "whole").body == HALF and s3.head("kept", "torn").status == 404


def test_sigint_drains_like_sigterm(own_store: Cairn):
    """Ctrl-C in a terminal sends SIGINT."""
    own_store.process.send_signal(signal.SIGINT)
    assert own_store.process.wait(AT_ONCE_SECONDS) == 0


def test_sigterm_under_load_keeps_every_acknowledged_write(own_store: Cairn):
    """Clients write until the server closes their connections. Every acknowledged object exists afterwards."""
    s3 = own_store.s3
    s3.create_bucket("kept")

    def write(writer: int) -> list[str]:
        done: list[str] = []
        try:
            with s3.connect() as connection:
                for number in range(100_000):
                    key = f"w{writer}-{number}"
                    body = key.encode() * (200 if number % 2 else 5000)
                    if s3.request("PUT", object_target("kept", key), body=body, connection=connection).status != 200:
                        return done
                    done.append(key)
        except (AssertionError, OSError):
            pass
        return done

    with ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, writer) for writer in range(8)]
        until(lambda: len(s3.list("kept").keys) >= 200, "the writers make no progress")
        assert own_store.stop() == 0
        done = [key for writer in writers for key in writer.result()]
    assert len(done) >= 200
    own_store.start()
    listed = s3.list_all("kept")
    assert set(done) <= set(listed)
    for key in done:
        assert listed[key][0] == len(key) * (200 if int(key.split("-")[1]) % 2 else 5000)
