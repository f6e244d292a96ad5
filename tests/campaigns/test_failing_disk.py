"""Device errors: reads, writes and flushes of a running store fail with EIO.

No write that depends on a failed flush is acknowledged, even if a later flush succeeds. Unreadable data is an error,
never wrong bytes. Writes resume when the device works again, and earlier acknowledged writes are there.
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from harness.compare import Report, check_offline
from harness.disks import ForgetfulDisk, command
from harness.expect import assert_error
from harness.load import ends_within
from harness.management import expect
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.wait import until
from harness.s3 import object_target
from harness.server import Cairn
from harness.wire import Response, WireError, encode_head

BUCKET = "kept"
MIB = 1 << 20
LARGE, MEDIUM, SMALL = 300_000, 100_000, 1000
# The pieces in which a large payload arrives at the device, and more than a journal writes at once on an idle store.
STALLED_BYTES_MIN = 120_000
STALLED_SECONDS = 4.0
END_SECONDS = 60
RECOVERY_SECONDS_MAX = 30.0
UNRECOVERED_SECONDS = 4.0
# Far more metadata than a start maps.
INLINE_KEYS, INLINE = 1500, 12_000
# Written for each slice when its metadata has been read into memory.
WARMED_UP = "metadata was read into memory"
SLICES = 2
# Enough keys that both slices get some.
KEYS = [f"k{number}" for number in range(8)]


def body(key: str, size: int) -> bytes:
    """Returns the content of an object."""
    return (key.encode() * size)[:size]


@pytest.fixture
def failing(make_disk: Callable[[str], ForgetfulDisk], run_folder: Path) -> Iterator[tuple[ForgetfulDisk, Cairn]]:
    """Starts a store with objects on a disk with fault injection. It reads from the device, not from its cache."""
    disk = make_disk("ext4")
    disk.mount()
    settings = {"SERVICE_STORAGE_CACHE_BYTES": "0", "SERVICE_STORAGE_SLICES": str(SLICES), "SERVICE_LOG": "service=info,service::engine=debug"}
    settings["SERVICE_METRICS_SCRAPE_TOKEN"] = SCRAPE_TOKEN
    store = Cairn(run_folder / "power-cut" / "server", settings)
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
    """Sends a put and returns any response."""
    return store.s3.request("PUT", object_target(BUCKET, key), body=body(key, size))


def assert_not_ready(store: Cairn) -> None:
    """Asserts that the log reports the failure."""
    until(lambda: store.ready_status() == 503, lambda: f"/ready says {store.ready_status()} on a device that failed")


def check_and_start(store: Cairn) -> None:
    """Inspects the files of a stopped store, and starts it."""
    check_offline(store, Report())
    store.take_ports()
    store.start()


def assert_whole_after_power_is_back(disk: ForgetfulDisk, store: Cairn) -> None:
    """Asserts that acknowledged objects exist, and that refused ones are complete or absent."""
    store.kill()
    disk.cut(1, "lose")
    disk.restore()
    check_and_start(store)
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
        assert store.s3.get(BUCKET, f"small-{key}").body == body(key, SMALL)
        for size in (LARGE, SMALL):
            found = store.s3.get(BUCKET, f"refused-{size}-{key}")
            assert found.status == 404 or found.body == body(f"refused-{size}-{key}", size), found.status
    assert put(store, "again", LARGE).status == 200


def engine_log(store: Cairn) -> str:
    """Returns the last lines that the engine has logged."""
    return "\n".join(line for line in store.output().splitlines() if "service::engine" in line)[-3000:]


def assert_recovers(store: Cairn) -> None:
    """Asserts that writes of both kinds succeed again in all slices without a restart, and that the store is ready then."""
    left = [(size, key) for size in (LARGE, SMALL) for key in KEYS]

    def has_resumed() -> bool:
        while left:
            size, key = left[0]
            response = put(store, f"recovered-{size}-{key}", size)
            if response.status != 200:
                assert response.status == 500, response.status
                return False
            left.pop(0)
        return True

    def is_ready() -> bool:
        answer = requests.get(f"{store.management}/ready", timeout=5)
        if answer.status_code == 200:
            return True
        # The audit trail and the directory of accounts wait for a restart if a commit of their own failed.
        failed = {name for name, state in answer.json()["subsystems"].items() if state != "ready"}
        if not failed or not failed <= {"audit", "identity"}:
            return False
        assert "restart the service" in store.output()
        return True

    until(has_resumed, lambda: f"writes do not resume:\n{engine_log(store)}", RECOVERY_SECONDS_MAX)
    until(is_ready, lambda: f"writes have resumed, but the store is not ready:\n{engine_log(store)}", RECOVERY_SECONDS_MAX)


@pytest.mark.parametrize("fault", ["flushes", "writes"])
def test_no_write_is_acknowledged_while_the_device_fails(failing: tuple[ForgetfulDisk, Cairn], fault: str):
    """When it works again, the store recovers, unless the file system has shut down. Then only a restart helps.

    A write error of the journal makes ext4 read-only until it is mounted again.
    """
    disk, store = failing
    disk.tell(f"fail {fault}")
    for size in (LARGE, SMALL):
        for key in KEYS:
            assert_error(put(store, f"refused-{size}-{key}", size), 500, "InternalError")
    assert_not_ready(store)
    assert expect(store.admin.get("/storage/status"), 200)["writes"] == "refused"
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE), "reads must continue"
    # Longer than a recovery takes if the device works.
    time.sleep(UNRECOVERED_SECONDS)
    for key in KEYS:
        assert put(store, f"refused-{LARGE}-{key}", LARGE).status == 500, "the device still fails"
    assert store.ready_status() == 503
    disk.tell("heal")
    recovered = not is_read_only(disk)
    if recovered:
        assert_recovers(store)
    else:
        assert put(store, "refused-again", SMALL).status == 500
        assert store.ready_status() == 503
    assert store.running()
    assert_whole_after_power_is_back(disk, store)
    if recovered:
        for size in (LARGE, SMALL):
            for key in KEYS:
                expected = body(f"recovered-{size}-{key}", size)
                assert store.s3.get(BUCKET, f"recovered-{size}-{key}").body == expected, "acknowledged after the recovery"


def is_read_only(disk: ForgetfulDisk) -> bool:
    """Returns whether the file system refuses writes after an error."""
    probe = disk.folder / "probe"
    try:
        with probe.open("wb") as file:
            file.write(b"probe")
            os.fsync(file.fileno())
        probe.unlink()
    except OSError:
        return True
    return False


def lose_cache(disk: ForgetfulDisk, store: Cairn, key: str, size: int) -> None:
    """Lets the flush of one put fail. The disk drops its cache then, and works again; the file system notices nothing."""
    disk.tell("fail flushes")
    assert_error(put(store, key, size), 500, "InternalError")
    lost = int(re.search(r"lost=(\d+)", disk.cut(1, "lose"))[1])
    disk.tell("restore")
    assert lost > 0, "the disk had nothing in its cache"


@pytest.fixture
def unnoticed(failing: tuple[ForgetfulDisk, Cairn]) -> tuple[ForgetfulDisk, Cairn]:
    """The store on a file system whose journal has nothing to write: a failed write of the journal would end it."""
    disk, store = failing
    command("mount", "-o", "remount,commit=300", disk.folder)
    # A flush of space that was written before needs no journal.
    for number in range(24):
        assert put(store, f"space-{number}", 12 * MIB).status == 200
    for number in range(24):
        assert store.s3.delete(BUCKET, f"space-{number}").status == 204
    command("sync", "--file-system", disk.folder)
    return disk, store


@pytest.mark.parametrize("size", [MEDIUM, SMALL], ids=["volume", "log"])
def test_a_failed_flush_of_one_file_loses_nothing_of_the_others(unnoticed: tuple[ForgetfulDisk, Cairn], size: int):
    """A device that fails a flush may drop its cache. It has pages of metadata that no checkpoint contains: of all slices.

    The later flushes of these files succeed, also those of a clean stop.
    """
    disk, store = unnoticed
    acknowledged = [f"acknowledged-{number}" for number in range(100)]
    for key in acknowledged:
        assert put(store, key, SMALL).status == 200
    lose_cache(disk, store, f"refused-{size}-{KEYS[0]}", size)
    if is_read_only(disk):
        # The file system had to write its journal after all, and has ended.
        store.kill()
    else:
        assert_recovers(store)
        assert store.stop() == 0
    disk.unmount()
    disk.mount()
    check_and_start(store)
    for key in acknowledged:
        assert store.s3.get(BUCKET, key).body == body(key, SMALL)


def test_an_upload_during_a_failed_flush_of_another_file_is_refused(unnoticed: tuple[ForgetfulDisk, Cairn]):
    """Its first blocks were in the cache that the device dropped. Its own flush, after the recovery, succeeds."""
    disk, store = unnoticed
    size = 16 * MIB
    name = "service_device_written_bytes_total"
    for number in range(2):
        # Of both slices: the one whose flush fails, and the other.
        key, written = f"slow-{number}", scrape(store).sum(name)
        with store.s3.connect() as connection:
            head = store.s3.signed_head("PUT", object_target(BUCKET, key), payload="UNSIGNED-PAYLOAD", content_length=size)
            connection.send_must(encode_head("PUT", object_target(BUCKET, key), head) + body(key, size * 3 // 4))
            until(lambda written=written: scrape(store).sum(name) >= written + size // 2, "the blocks are written")
            lose_cache(disk, store, f"refused-{SMALL}-{KEYS[0]}", SMALL)
            assert_recovers(store)
            connection.send_must(body(key, size)[size * 3 // 4:])
            assert_error(connection.read_response("PUT"), 500, "InternalError")
        assert_error(store.s3.get(BUCKET, key), 404, "NoSuchKey")


def test_unreadable_data_is_an_error(failing: tuple[ForgetfulDisk, Cairn]):
    """Nothing else is affected, and reads succeed when the device works again."""
    disk, store = failing
    disk.tell("fail reads")
    for key in KEYS:
        assert_error(store.s3.get(BUCKET, key), 500, "InternalError")
        assert_error(store.s3.get(BUCKET, key, [("Range", "bytes=70000-70009")]), 500, "InternalError")
        assert store.s3.get(BUCKET, f"small-{key}").body == body(key, SMALL), "inline payloads are in memory and must be readable"
    assert store.running()
    disk.tell("heal")
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
    assert_whole_after_power_is_back(disk, store)


def evict(path: Path) -> int:
    """Removes a file from the page cache. Returns how many bytes stay there, because a process has mapped them."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return int(command("fincore", "--bytes", "--noheadings", "--output", "RES", path))


def test_unreadable_metadata_ends_the_process_with_an_explanation(failing: tuple[ForgetfulDisk, Cairn]):
    """LMDB reads through a memory map: the kernel answers a failed read with SIGBUS, and nothing can continue there.

    After a start the store reads its metadata into the page cache. When it had read everything before the disk began to
    fail, no request reached the disk. So the test waits for the end of that, and empties the page cache.
    """
    disk, store = failing
    for number in range(INLINE_KEYS):
        store.s3.put(BUCKET, f"inline-{number}", body(str(number % 10), INLINE))
    assert store.stop() == 0
    # Makes all pages clean, so that they can be evicted.
    disk.unmount()
    disk.mount()
    warmed_up = store.output().count(WARMED_UP) + SLICES
    store.start()
    until(lambda: store.output().count(WARMED_UP) == warmed_up, "the metadata is not read into memory after a start")
    files = list(store.data.glob("**/meta/data.mdb"))
    until(lambda: sum(map(evict, files)) < INLINE_KEYS * INLINE // 2, "the metadata stays in memory")
    disk.tell("fail reads")
    with contextlib.suppress(OSError, WireError):
        for number in range(INLINE_KEYS):
            store.s3.get(BUCKET, f"inline-{number}")
    assert store.process.wait(END_SECONDS) == -signal.SIGBUS
    explanation = next(line for line in store.output().splitlines() if "SIGBUS" in line)
    assert "/meta/data.mdb" in explanation and "the device failed" in explanation, explanation
    disk.tell("heal")
    assert_whole_after_power_is_back(disk, store)


def test_start_waits_for_pending_writes_of_a_killed_process(failing: tuple[ForgetfulDisk, Cairn]):
    """A killed process leaves pending writes in a slow device.

    The next process may allocate the interrupted upload's space immediately. A device may reorder its queue, so the old
    write could arrive after the new one and corrupt an acknowledged object.
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
    # The wait is visible only by the fact that the store is not ready after many times its normal start time.
    assert not ends_within(store, STALLED_SECONDS)
    assert store.ready_status() != 200, "the store is ready while a write of the killed process is pending"
    disk.tell("heal")
    store.wait_ready()
    for key in KEYS:
        assert store.s3.get(BUCKET, key).body == body(key, LARGE)
    assert store.s3.get(BUCKET, "dead").status == 404
