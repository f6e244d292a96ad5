"""Disks for the tests of this folder. They need root, loop devices, FUSE and mkfs; a machine without is told so."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.disks import ForgetfulDisk, SnapshotDisk, Unavailable
from harness.power_cut import Disk

MakeDisk = Callable[[str], Disk]


@pytest.fixture
def make_disk(run_folder: Path) -> Iterator[MakeDisk]:
    """Makes disks of the test's own; a machine that cannot have one skips the test and says why."""
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
