"""Disk space: what an empty store takes, and how a filling disk is reported."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from harness.disks import SmallDisk, Unavailable
from harness.management import expect, expect_refusal
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.s3 import error_code
from harness.server import Cairn
from harness.wait import until

MakeStore = Callable[..., Cairn]
EMPTY_BYTES_MAX = 64_000_000
MIB = 1 << 20


def allocated_bytes(folder: Path) -> int:
    """Returns the bytes that the files in a folder occupy on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("slices", [1, 2, 16])
def test_empty_store_is_small_and_grows_when_it_is_used(make_store: MakeStore, slices: int):
    """It took 237 MB with two slices, and half as much more with each further one.

    The background threads prepare space for a while after the start, and again after the first write.
    """
    store = make_store(SERVICE_STORAGE_SLICES=str(slices)).start()
    size, since = -1, time.monotonic()
    while time.monotonic() - since < 1.5:
        if (now := allocated_bytes(store.data)) != size:
            size, since = now, time.monotonic()
    assert size <= EMPTY_BYTES_MAX
    store.s3.create_bucket("first")
    body = os.urandom(3 * MIB)
    for number in range(4 * slices):
        assert store.s3.put("first", f"k{number}", body if number % 2 else b"small").status == 200
    until(lambda: allocated_bytes(store.data) >= size + 64 * MIB, "space must be prepared in the background once a store is used")
    store.restart()
    for number in range(4 * slices):
        assert store.s3.get("first", f"k{number}").body == (body if number % 2 else b"small")
    assert store.stop() == 0


@pytest.fixture
def on_small_disk(make_store: MakeStore) -> Iterator[Cairn]:
    """A store that has a disk of 1 GiB for itself."""
    store = make_store(SERVICE_STORAGE_RESERVE_BYTES="16MiB", SERVICE_STORAGE_LOW_SPACE_PERCENT="15", SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN)
    try:
        disk = SmallDisk(store.folder / "disk", 1024 * MIB)
    except Unavailable as missing:
        pytest.skip(f"no disk is filled on this machine: {missing}")
    store.data = disk.folder / "data"
    try:
        yield store
    finally:
        store.kill()
        disk.close()


def wait_for_state(store: Cairn, state: str) -> None:
    """Polls until the metric shows a state, and only this one."""
    def is_it() -> bool:
        seen = scrape(store)
        present = {name for name in ("ok", "low", "refusing") if seen.sum("service_storage_disk_state", state=name) == 1}
        assert len(present) == 1
        return present == {state}

    until(is_it, lambda: f"not {state}:\n{store.output()[-2000:]}")


def cli(store: Cairn, *arguments: str) -> str:
    """Runs a command of the client and returns its output."""
    environment = store.environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    command = [str(store.binary), *arguments, "--endpoint", store.management]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done
    return done.stdout


def leave_free(store: Cairn, free: int) -> Path:
    """Fills the disk with a file of another program until at most about `free` bytes are left."""
    ballast = store.data.parent / "ballast"
    with ballast.open("ab") as file:
        stat = os.statvfs(store.data)
        excess = stat.f_bavail * stat.f_frsize - free
        # After its first write, the store itself takes space down to its reserve.
        if excess > 0:
            os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), excess)
    return ballast


def test_filling_disk_is_reported_before_and_while_writes_are_refused(on_small_disk: Cairn):
    """The metric, the log, /ready and both commands show the state. Each change is one line of the log."""
    store = on_small_disk.start()
    wait_for_state(store, "ok")
    assert requests.get(f"{store.management}/ready", timeout=20).json() == {"status": "ready"}
    assert re.search(r"^writes:? +accepted$", cli(store, "storage", "status"), re.MULTILINE)
    store.s3.create_bucket("filled")

    leave_free(store, 50 * MIB)
    wait_for_state(store, "low")
    assert "low" in requests.get(f"{store.management}/ready", timeout=20).json()["notices"]["disk"]
    assert "notice: disk: disk space is low" in cli(store, "status")
    assert re.search(r"^disk space:? +low$", cli(store, "storage", "status"), re.MULTILINE)
    assert store.s3.put("filled", "before", b"1").status == 200

    ballast = leave_free(store, 15 * MIB)
    answers = [store.s3.request("PUT", f"/filled/k{number}", None, bytes(8 * MIB)) for number in range(20)]
    refused = [answer for answer in answers if answer.status != 200]
    assert refused and {(answer.status, error_code(answer)) for answer in refused} == {(507, "InsufficientStorage")}
    wait_for_state(store, "refusing")
    ready = requests.get(f"{store.management}/ready", timeout=20)
    assert ready.status_code == 200 and "writes are refused" in ready.json()["notices"]["disk"]
    assert "notice: disk: writes are refused" in cli(store, "status")
    assert re.search(r"^writes:? +refused$", cli(store, "storage", "status"), re.MULTILINE)
    status = store.admin.get("/storage/status").json()
    assert (status["disk_state"], status["writes"]) == ("refusing", "refused")

    ballast.unlink()
    wait_for_state(store, "ok")
    assert store.s3.put("filled", "after", bytes(8 * MIB)).status == 200
    assert "notices" not in requests.get(f"{store.management}/ready", timeout=20).json()
    lines = store.wait_output("writes are accepted again")
    for line in ("disk space is low", "writes are refused: no disk space", "writes are accepted again"):
        assert lines.count(line) == 1, f"{line}:\n{lines}"
    assert store.stop() == 0


def fill_completely(store: Cairn) -> Path:
    """Takes every block that is free, and what becomes free within the next second."""
    ballast = store.data.parent / "ballast"
    with ballast.open("ab") as file:
        end, until = 0, time.monotonic() + 1
        while time.monotonic() < until:
            for size in (16 * MIB, MIB, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), end, size)
                        end += size
    return ballast


def test_full_disk_refuses_new_links_and_serves_visitors(on_small_disk: Cairn):
    """Without a free block, the first link is refused. Later, what exists is served, counted, revoked and deleted."""
    store = on_small_disk.start()
    store.s3.create_bucket("shared")
    body = os.urandom(300_000)
    store.s3.put("shared", "k", body)

    def create(kind: str = "share", **asked: object) -> requests.Response:
        return store.admin.post(f"/buckets/shared/object-{kind}s/k", asked)

    ballast = fill_completely(store)
    expect_refusal(create(), 507, "STORAGE_FULL")
    expect_refusal(create("embed", allowed_origins=["https://a.example"], disposition="attachment"), 507, "STORAGE_FULL")
    assert expect(store.admin.get("/shares"), 200)["shares"] == []
    ballast.unlink()
    open_share, limited, doomed, deleted = (expect(create(**asked), 201) for asked in ({}, {"maximum_downloads": 2}, {}, {}))

    ballast = fill_completely(store)
    for made_before in (open_share, limited):
        got = requests.get(f"{made_before['url']}/content", timeout=20)
        assert (got.status_code, got.content) == (200, body)
    expect(store.admin.post(f"/shares/{doomed['share']['id']}/revoke"), 200)
    assert requests.get(doomed["url"], headers={"Accept": "application/json"}, timeout=20).status_code == 410
    expect(store.admin.delete(f"/shares/{deleted['share']['id']}"), 204)
    ballast.unlink()
    store.restart()
    assert expect(store.admin.get(f"/shares/{limited['share']['id']}"), 200)["access_count"] == 1
    assert expect(store.admin.get(f"/shares/{doomed['share']['id']}"), 200)["status"] == "revoked"
    expect_refusal(store.admin.get(f"/shares/{deleted['share']['id']}"), 404, "SHARE_NOT_FOUND")
    expect(create(), 201)
    found = expect(store.admin.get("/storage/inspect"), 200)
    assert found["complete"] and not found["findings"], found
