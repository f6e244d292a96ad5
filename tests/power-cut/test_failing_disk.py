"""Attacks the device: reads, writes and flushes that fail with EIO, below a running store.

Nothing that rests on a failed flush is acknowledged, not even when a later flush succeeds; what cannot be read is an
error and not wrong bytes; what was acknowledged before is there when the device is back.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.compare import Report, check_offline
from harness.disks import ForgetfulDisk
from harness.expect import assert_error
from harness.load import ends_within
from harness.s3 import object_target
from harness.server import Cairn
from harness.wire import Response, encode_head

BUCKET = "kept"
LARGE, SMALL = 300_000, 1000
# The pieces in which a large payload arrives at the device, and more than a journal writes at once on an idle store.
STALLED_BYTES_MIN = 120_000
STALLED_SECONDS = 4.0
NOT_READY_SECONDS_MAX = 5.0
# One key may be in the slice of another: so many are put that both slices are met.
KEYS = [f"k{number}" for number in range(8)]


def body(key: str, size: int) -> bytes:
    """The content of an object."""
    return (key.encode() * size)[:size]


@pytest.fixture
def failing(make_disk: Callable[[str], ForgetfulDisk], run_folder: Path) -> Iterator[tuple[ForgetfulDisk, Cairn]]:
    """A store with objects on a disk that can be told to fail; it reads from the device and not from its cache."""
    disk = make_disk("ext4")
    disk.mount()
    store = Cairn(run_folder / "power-cut" / "server", {"SERVICE_STORAGE_CACHE_BYTES": "0"})
    store.data = disk.folder / "data"
    try:
        store.start()
        store.s3.create_bucket(BUCKET)
        for key in KEYS:
            store.s3.put(BUCKET, key, body(key, LARGE))
            store.s3.put(BUCKET, f"small-{key}", body(key, SMALL))
        yield disk, store
    finally:
        store.kill()


def put(store: Cairn, key: str, size: int) -> Response:
    """One put, whatever it answers."""
    return store.s3.request("PUT", object_target(BUCKET, key), body=body(key, size))


def assert_not_ready(store: Cairn) -> None:
    """The operator is told."""
    give_up = time.monotonic() + NOT_READY_SECONDS_MAX
    while (status := store.ready_status()) != 503:
        assert time.monotonic() < give_up, f"/ready says {status} on a device that failed"
        time.sleep(0.05)


def assert_whole_after_power_is_back(disk: ForgetfulDisk, store: Cairn) -> None:
    """What was acknowledged is there; what was refused is there whole or not at all."""
    store.kill()
    disk.cut(1, "lose")
    disk.restore()
    check_offline(store, Report())
    store.take_ports()
    store.start()
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
        assert store.s3.get(BUCKET, f"small-{key}").body == body(key, SMALL)
        for size in (LARGE, SMALL):
            found = store.s3.get(BUCKET, f"refused-{size}-{key}")
            assert found.status == 404 or found.body == body(f"refused-{size}-{key}", size), found.status
    assert put(store, "again", LARGE).status == 200


@pytest.mark.parametrize("fault", ["flushes", "writes"])
def test_nothing_is_acknowledged_on_a_device_that_failed(failing: tuple[ForgetfulDisk, Cairn], fault: str):
    """Also when it seems to work again: what the device holds is unknown until the store is opened again."""
    disk, store = failing
    disk.tell(f"fail {fault}")
    for size in (LARGE, SMALL):
        for key in KEYS:
            assert_error(put(store, f"refused-{size}-{key}", size), 500, "InternalError")
    assert_not_ready(store)
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE), "reads go on"
    disk.tell("heal")
    for size in (LARGE, SMALL):
        for key in KEYS:
            assert put(store, f"refused-{size}-{key}", size).status in (500, 503), "a retry that pretends"
    assert store.ready_status() == 503
    assert store.running()
    assert_whole_after_power_is_back(disk, store)


def test_what_cannot_be_read_is_an_error(failing: tuple[ForgetfulDisk, Cairn]):
    """And nothing else suffers: when the device reads again, so does the store."""
    disk, store = failing
    disk.tell("fail reads")
    for key in KEYS:
        assert_error(store.s3.get(BUCKET, key), 500, "InternalError")
        assert_error(store.s3.get(BUCKET, key, [("Range", "bytes=70000-70009")]), 500, "InternalError")
        assert store.s3.get(BUCKET, f"small-{key}").body == body(key, SMALL), "inline payloads are in memory"
    assert store.running()
    disk.tell("heal")
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
    assert_whole_after_power_is_back(disk, store)


def test_a_start_waits_for_the_writes_of_a_process_that_was_killed(failing: tuple[ForgetfulDisk, Cairn]):
    """A killed process leaves writes with the device, and the device is slow.

    The dead upload's space is free for the next process, which may hand it out at once. A device does its queue in any
    order, so the dead process's write could land after that of the living one, in the middle of an acknowledged object.
    """
    disk, store = failing
    disk.tell(f"stall {STALLED_BYTES_MIN}")
    with store.s3.connect() as connection:
        size = 2_000_000
        head = store.s3.signed_head("PUT", object_target(BUCKET, "dead"), payload="UNSIGNED-PAYLOAD", content_length=size)
        connection.send_must(encode_head("PUT", object_target(BUCKET, "dead"), head) + bytes(size // 2))
        while disk.tell("stalled") == "0":
            time.sleep(0.01)
        store.kill()
    store.take_ports()
    store.spawn()
    # Nothing tells that it goes on waiting, but that it does not become ready in many times the time of a start.
    assert not ends_within(store, STALLED_SECONDS)
    assert store.ready_status() != 200, "it serves while a write of the dead process is under way"
    disk.tell("heal")
    store.wait_ready()
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
    assert store.s3.get(BUCKET, "dead").status == 404
