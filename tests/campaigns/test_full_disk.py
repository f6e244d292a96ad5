"""The short version of the full-disk test for `./test`; `tests/campaign full-disk` is the long one.

The rounds on a small disk need root and loop devices. Without them the test is skipped with a reason.
"""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import cairn_load, full_disk
from harness.compare import Report, check_offline
from harness.disks import SmallDisk, Unavailable, command
from harness.management import compaction_ends, expect, expect_refusal
from harness.server import Cairn
from harness.wait import until

SEED = int(os.environ.get("FULL_DISK_SEED", "1"))
SECONDS = float(os.environ.get("FULL_DISK_SECONDS", "30"))
ROUNDS_MIN = 2
OBJECTS = ("--size", "16000B", "--connections", "16")
# Room for the store and a copy of its metadata.
COMPACTED_DISK_BYTES = 800 << 20
BTRFS_BYTES = 420 << 20


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
        until(lambda: store.admin.post("/storage/compact").status_code == 202, "the free space is not seen")
        assert compaction_ends(store.admin)["state"] == "done"
        assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
        assert len(store.s3.list_all("compact")) == 2400
        assert store.stop() == 0
    finally:
        store.kill()
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_reads_go_on_while_btrfs_has_no_block_left(run_folder: Path):
    """Btrfs writes each page to a new place. LMDB's table of readers was such a page, so that a read ended the process.

    Nothing can be changed then, not even deleted. When others give space back, changes are accepted again by themselves.
    """
    folder = run_folder / "full-btrfs"
    try:
        disk = SmallDisk(folder, BTRFS_BYTES, "btrfs")
    except Unavailable as missing:
        pytest.skip(f"no disk is filled on this machine: {missing}")
    store = Cairn(folder / "server", {"SERVICE_STORAGE_SLICES": "1", "SERVICE_STORAGE_RESERVE_BYTES": full_disk.RESERVE})
    store.data = disk.folder / "data"
    ballast = full_disk.Ballast(disk.folder)
    try:
        store.start()
        store.s3.create_bucket("kept")
        for number in range(20):
            store.s3.put("kept", f"k{number}", bytes([number]) * 20_000)
        # The pages of the table of readers are on the disk, and unchanged.
        command("sync", "-f", disk.folder)
        ballast.take_everything()
        with ThreadPoolExecutor(20) as pool:
            bodies = list(pool.map(lambda number: store.s3.get("kept", f"k{number}").body, range(20)))
        assert bodies == [bytes([number]) * 20_000 for number in range(20)]
        # 507 if the free space has been measured since, which is done twice a second. Before that the write itself fails.
        assert store.s3.request("PUT", "/kept/more", body=b"x" * 20_000).status in (500, 507)
        assert store.running(), store.output()[-2000:]
        ballast.give_back()
        until(lambda: store.s3.request("PUT", "/kept/more", body=b"x" * 20_000).status == 200, store.output)
        assert store.stop() == 0
        check_offline(store, Report())
    finally:
        store.kill()
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)
