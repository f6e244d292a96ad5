"""The short version of the power-cut test for `./test`; `tests/campaign power-cut` is the long one.

It needs root, loop devices, FUSE and mkfs of both file systems. Without them it is skipped with a reason.
"""

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import link_load, power_cut, version_load
from harness.compare import Report, compare
from harness.crash_model import Model
from harness.deliveries import Deliveries
from harness.load import BUCKET, WRITERS, Broken, Load
from harness.server import Cairn

SEED = int(os.environ.get("POWER_CUT_SEED", "1"))
SECONDS = float(os.environ.get("POWER_CUT_SECONDS", "40"))
CYCLES_MIN = 2
# The share of the time for each kind of disk.
KINDS = {"ext4": 0.5, "xfs": 0.25, "snapshot": 0.25}
MakeDisk = Callable[[str], power_cut.Disk]


@pytest.mark.parametrize("kind", KINDS)
def test_every_acknowledged_change_survives_a_power_cut(make_disk: MakeDisk, run_folder: Path, kind: str):
    """Objects are intact, deletes are done, lists are exact and files are consistent, whatever the disk kept."""
    disk, give_up = make_disk(kind), time.monotonic() + SECONDS * KINDS[kind]
    done = power_cut.run(
        disk, run_folder / "power-cut", SEED, lambda so_far: time.monotonic() > give_up and so_far.cycles >= CYCLES_MIN
    )
    assert done.report.acknowledged > 0, f"no load: {done.report.line()}"
    print(f"{kind}, cuts {done.cuts}: {done.report.line()}")


def test_power_cut_test_detects_a_disk_that_ignores_flushes(make_disk: MakeDisk, run_folder: Path):
    """Checks the test itself: if the disk ignores flushes, acknowledged changes are lost and the comparison fails."""
    disk = make_disk("ext4")
    disk.mount()
    store = Cairn(run_folder / "power-cut" / "server")
    store.data = disk.folder / "data"
    model = Model(SEED, WRITERS, power_cut.KEYS_PER_WRITER)
    webhook = Deliveries(SEED)
    run = power_cut.Run(disk, store, random.Random(SEED), webhook)
    try:
        store.start()
        store.s3.create_bucket(BUCKET)
        version_load.create(store.s3)
        links = link_load.Links.create(store, model)
        load = Load(model, links)
        assert store.stop() == 0
        disk.tell("ignore flushes")
        store.start()
        # On a busy machine, the load may end before it makes its first link.
        links.owners[0].do_create()
        load.run(store, random.Random(SEED), lambda: run.strike(model, "lose"))
        assert load.acknowledged() > 0, "no change was acknowledged"
        disk.restore()
        store.take_ports()
        store.start()
        with pytest.raises(Broken, match="the list shows"):
            compare(store, model, Report())
        with pytest.raises(Broken, match="the record is 404"):
            links.compare(store)
    finally:
        store.kill()
        webhook.close()
