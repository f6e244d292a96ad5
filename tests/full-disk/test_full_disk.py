"""A short slice of the full-disk test for every run of `./test`; `tests/full-disk/run` is the long one.

The rounds on a small disk need root and loop devices. What a machine does not have is said, not failed.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

from harness import full_disk
from harness.disks import SmallDisk, Unavailable

SEED = int(os.environ.get("FULL_DISK_SEED", "1"))
SECONDS = float(os.environ.get("FULL_DISK_SECONDS", "30"))
ROUNDS_MIN = 2


def test_a_full_disk_loses_nothing_and_recovers(run_folder: Path):
    """Refused puts change nothing, reads and deletes go on, puts work again when there is space again."""
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
