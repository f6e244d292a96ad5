"""`server.memory_limit`: a small server stays within it under every kind of load at once."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.memory import MIB, watched
from harness.s3 import object_target
from harness.server import Cairn
from harness.wire import Connection, encode_head

MakeStore = Callable[..., Cairn]
LIMIT_BYTES = 256 * MIB
BUCKET = "memory"
OBJECT_BYTES = 8 * MIB
OBJECTS = 48
THREADS = 24
# Longer than a start that is refused takes on a busy machine.
END_SECONDS = 60
# Clients that send half of an upload, and clients that request an object and do not read it.
IDLE_EACH = 100
STALLED_AT_BYTES = MIB // 32


def body_of(number: int) -> bytes:
    """Returns the body of an object; no two are equal."""
    return f"{number:08}".encode() * (OBJECT_BYTES // 8)


def stalled(store: Cairn) -> list[Connection]:
    """Opens connections that occupy as much server memory as possible and then stall."""
    held = []
    for number in range(IDLE_EACH):
        target = object_target(BUCKET, f"stalled{number}")
        head = store.s3.signed_head("PUT", target, payload="UNSIGNED-PAYLOAD", content_length=OBJECT_BYTES)
        upload = store.s3.connect()
        upload.send(encode_head("PUT", target, head) + bytes(STALLED_AT_BYTES))
        target = object_target(BUCKET, f"k{number % OBJECTS}")
        download = store.s3.connect(receive_buffer_bytes=4096)
        download.send(encode_head("GET", target, store.s3.signed_head("GET", target)))
        held += [upload, download]
    return held


def test_small_server_stays_within_its_memory_limit(make_store: MakeStore):
    """The limit is 256 MiB, as in a small container. Many large uploads and downloads run, some of them stalled."""
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="256MiB", SERVICE_SERVER_EXECUTORS="2", SERVICE_STORAGE_SLICES="2").start()
    divided = re.search(r"memory divided.*", store.wait_output("memory divided"))[0]
    assert f"limit={LIMIT_BYTES}" in divided and "cache_bytes=" in divided, divided
    store.s3.create_bucket(BUCKET)
    with watched(store) as samples, ThreadPoolExecutor(THREADS) as pool:
        def put(number: int) -> int:
            return store.s3.put(BUCKET, f"k{number}", body_of(number)).status

        def get(number: int) -> bool:
            return store.s3.get(BUCKET, f"k{number}").body == body_of(number)

        assert set(pool.map(put, range(OBJECTS))) == {200}
        held = stalled(store)
        assert set(pool.map(put, range(OBJECTS))) == {200}, "stalled clients must not block others"
        assert all(pool.map(get, [number % OBJECTS for number in range(2 * OBJECTS)]))
        for connection in held:
            connection.close()
    assert store.running() and len(samples) > 50
    most = max(samples)
    print(f"most: {most / MIB:.1f} MiB of {len(samples)} samples")
    assert 40 * MIB < most < LIMIT_BYTES, f"{most / MIB:.1f} MiB"
    assert store.stop() == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"SERVICE_SERVER_MEMORY_LIMIT": "72MiB", "SERVICE_SERVER_EXECUTORS": "4"}, "SERVICE_SERVER_MEMORY_LIMIT"),
        ({"SERVICE_SERVER_MEMORY_LIMIT": "8TiB"}, "SERVICE_SERVER_MEMORY_LIMIT"),
        ({"SERVICE_SERVER_MEMORY_LIMIT": "256MiB", "SERVICE_STORAGE_CACHE_BYTES": "250MiB"}, "SERVICE_STORAGE_CACHE_BYTES"),
    ],
    ids=["too little", "more than there is", "a cache that does not fit"],
)
def test_too_low_memory_limit_is_refused_at_startup(make_store: MakeStore, settings: dict[str, str], named: str):
    """The error names a sufficient value, and nothing is created."""
    store = make_store(**settings)
    assert store.spawn().wait(END_SECONDS) == 1
    error = next(line for line in store.output().splitlines() if line.startswith("cairn:"))
    assert error.startswith(f"cairn: {named}: ") and "MiB" in error, error
    assert not store.data.exists()


def test_connection_limit_that_does_not_fit_logs_a_warning(make_store: MakeStore):
    """The default number of connections is reduced silently, a configured one with a warning."""
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="256MiB", SERVICE_SERVER_CONNECTIONS_MAX="5000").start()
    store.wait_output("server.connections_max is lowered from 5000")
    assert store.stop() == 0


def test_minimum_memory_limit_from_the_error_is_sufficient(make_store: MakeStore):
    """With the value that the error names the server starts and serves."""
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="72MiB", SERVICE_SERVER_EXECUTORS="2", SERVICE_STORAGE_SLICES="2")
    assert store.spawn().wait(END_SECONDS) == 1
    store.extra["SERVICE_SERVER_MEMORY_LIMIT"] = re.search(r"at least (\w+)", store.output())[1]
    store.start()
    store.s3.create_bucket(BUCKET)
    body = body_of(1)
    assert store.s3.put(BUCKET, "k", body).status == 200 and store.s3.get(BUCKET, "k").body == body
    assert store.stop() == 0
