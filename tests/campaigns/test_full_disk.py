"""The short version of the full-disk test for `./test`; `tests/campaign full-disk` is the long one.

The rounds on a small disk need root and loop devices. Without them the test is skipped with a reason.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from harness import cairn_load, full_disk
from harness.disks import SmallDisk, Unavailable
from harness.management import compaction_ends, expect, expect_refusal
from harness.server import Cairn

SEED = int(os.environ.get("FULL_DISK_SEED", "1"))
SECONDS = float(os.environ.get("FULL_DISK_SECONDS", "30"))
ROUNDS_MIN = 2
OBJECTS = ("--size", "16000B", "--connections", "16")
# Room for the store and a copy of its metadata.
COMPACTED_DISK_BYTES = 800 << 20


def test_full_disk_loses_nothing_and_recovers(run_folder: Path):
    """Refused puts change nothing, reads and deletes continue, and puts succeed again when there is space."""
    folder, give_up = run_folder / "full-disk", time.monotonic() + SECONDS
    try:
        disk = SmallDisk(folder, full_disk.DISK_BYTES)
    except Unavailable as missing:
        pytest.skip(f"no disk is filled on this machine: {missing}")
    try:
        counts = full_disk.run(
            disk.folder, folder, SEED, lambda so_far: time.monotonic() > give_up and so_far.total() >= ROUNDS_MIN
        )
    finally:
        disk.close()
    shutil.rmtree(folder)
    assert counts.refusals > 0 and counts.deletes_at_full > 0, f"the disk was never full: {counts.line()}"
    print(counts.line())


def test_compaction_of_a_running_store_leaves_the_reserve_free(run_folder: Path):
    """It is refused without space for the copy. It ends when other files take the space, and changes nothing then."""
    folder = run_folder / "full-disk"
    try:
        disk = SmallDisk(folder, COMPACTED_DISK_BYTES)
    except Unavailable as missing:
        pytest.skip(f"no disk is filled on this machine: {missing}")
    settings = {"SERVICE_STORAGE_SLICES": "1", "SERVICE_STORAGE_RESERVE_BYTES": str(32 << 20)}
    store = Cairn(folder / "server", settings)
    store.data = disk.folder / "data"
    ballast = full_disk.Ballast(disk.folder)
    try:
        store.start()
        store.s3.create_bucket("compact")
        cairn_load.run(store, "prepare", "compact", *OBJECTS, "--keys", "5000")
        cairn_load.run(store, "delete", "compact", *OBJECTS, "--keys", "2500")
        expect(store.admin.post("/storage/compact"), 202)
        ballast.take_everything()
        status = compaction_ends(store.admin)
        assert status["state"] == "failed" and "space" in status["reason"], status
        expect_refusal(store.admin.post("/storage/compact"), 507, "STORAGE_FULL")
        assert list(store.data.rglob("compact-*")) == []
        cairn_load.run(store, "delete", "compact", *OBJECTS, "--keys", "2600")
        ballast.give_back()
        # The free space is measured twice a second.
        time.sleep(1)
        expect(store.admin.post("/storage/compact"), 202)
        assert compaction_ends(store.admin)["state"] == "done"
        assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
        assert len(store.s3.list_all("compact")) == 2400
        assert store.stop() == 0
    finally:
        store.kill()
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)
