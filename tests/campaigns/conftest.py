"""Disks for the tests of this directory; tests are skipped without root, loop devices, FUSE or mkfs."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.disks import ForgetfulDisk, SnapshotDisk, Unavailable
from harness.power_cut import Disk

MakeDisk = Callable[[str], Disk]


@pytest.fixture
def make_disk(run_folder: Path) -> Iterator[MakeDisk]:
    """Returns a function that creates disks. The test is skipped with a reason if the machine does not support one."""
    made: list[Disk] = []
    folder = run_folder / "power-cut"

    def make(kind: str) -> Disk:
        try:
            made.append(SnapshotDisk(folder) if kind == "snapshot" else ForgetfulDisk(folder, kind))
        except Unavailable as missing:
            pytest.skip(f"no power is cut on this machine ({kind}): {missing}")
        return made[-1]

    yield make
    for disk in made:
        disk.close()
    shutil.rmtree(folder, ignore_errors=True)
