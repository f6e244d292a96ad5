"""Power-cut test: load, cut at a random moment, mount what the disk kept, restart, compare.

What was acknowledged before the cut must be there, on whatever the disk kept of the writes that were not flushed. The
cut images are checked as files before the server sees them. A failure names the seed and the cycle.
"""

import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import deliveries, link_load, version_load
from .compare import Report, check_offline, check_space, compare, empty_and_check
from .crash_model import Model
from .disks import ForgetfulDisk, SnapshotDisk
from .load import BUCKET, WRITERS, Broken, Load, ends_within, vary_start
from .management import expect
from .server import Cairn
from .wait import until

KEYS_PER_WRITER = 8
# The effects of a cut on unflushed writes of the forgetful disk, with their shares.
MODES = {"mix": 60, "lose": 30, "keep": 10}
# The probability that the power fails again while the store starts.
START_CUT_SHARE = 0.15
START_SECONDS = (0.0, 0.3)
# The probability that a hold for a backup is begun before the load, and that the load waits until the store is held.
HOLD_SHARE = 0.25
HELD_SHARE = 0.7
# The probability that another store is created and the power fails during its creation.
CREATION_CUT_SHARE = 0.05
CREATION_SECONDS = (0.0, 1.0)

Disk = ForgetfulDisk | SnapshotDisk


@dataclass
class Run:
    """One run: its disk, store and random generator."""

    disk: Disk
    store: Cairn
    rng: random.Random
    webhook: deliveries.Deliveries
    report: Report = field(default_factory=Report)
    cuts: dict[str, int] = field(default_factory=dict)
    last_cut: str = ""

    def cut(self, mode: str | None = None) -> None:
        """Cuts the power, in a random mode if none is given."""
        mode = mode or self.rng.choices(list(MODES), MODES.values())[0]
        self.last_cut = self.disk.cut(self.rng.getrandbits(63), mode)
        name = self.last_cut.split()[0]
        self.cuts[name] = self.cuts.get(name, 0) + 1

    def strike(self, model: Model, mode: str | None = None) -> None:
        """Freezes the model, cuts the power, and kills the process, which still works for a moment."""
        model.freeze()
        self.webhook.is_cut = True
        self.cut(mode)
        self.store.kill()

    def start(self) -> None:
        """Starts the store, and sometimes cuts the power during the start."""
        while self.rng.random() < START_CUT_SHARE:
            self.interrupted(self.store, self.rng.uniform(*START_SECONDS))
        vary_start(self.store, self.rng)
        self.webhook.is_cut = False
        self.store.start()

    def interrupted(self, store: Cairn, seconds: float) -> None:
        """Starts a store and cuts the power after this many seconds."""
        vary_start(store, self.rng)
        store.spawn()
        ends_within(store, seconds)
        self.cut()
        store.kill()
        self.disk.restore()

    def create_another(self) -> None:
        """Asserts that a store whose creation was interrupted can be started."""
        # A cut may have undone the removal of an earlier store, which has other secrets.
        for left in self.disk.folder.glob("other-*"):
            shutil.rmtree(left)
        other = Cairn(self.store.folder.parent / "other", self.store.extra)
        other.data = self.disk.folder / f"other-{self.report.cycles}"
        try:
            self.interrupted(other, self.rng.uniform(*CREATION_SECONDS))
            other.take_ports()
            other.start()
            other.s3.create_bucket(BUCKET)
            other.s3.put(BUCKET, "k", b"x" * 100_000)
        finally:
            other.kill()
        shutil.rmtree(other.data)


def hold_sometimes(store: Cairn, rng: random.Random) -> None:
    """Sometimes begins a hold for a backup, which nobody ends. The cut comes while metadata are copied, or while it is held."""
    if rng.random() >= HOLD_SHARE:
        return
    expect(store.admin.post("/storage/backup", {}), 202)
    if rng.random() < HELD_SHARE:
        until(lambda: expect(store.admin.get("/storage/backup"), 200)["state"] == "held", "the hold")


def one_cycle(run: Run, load: Load, links: link_load.Links) -> None:
    """Runs one cycle: load, cut, mount, check the files, start, compare."""
    before, model = load.acknowledged(), load.model
    hold_sometimes(run.store, run.rng)
    load.run(run.store, run.rng, lambda: run.strike(model))
    run.report.acknowledged += load.acknowledged() - before
    run.disk.restore()
    check_offline(run.store, run.report)
    if run.rng.random() < CREATION_CUT_SHARE:
        run.create_another()
    run.start()
    assert not (run.store.data / "backup").exists(), "what an interrupted hold has left is removed by the start"
    compare(run.store, model, run.report)
    run.report.link_changes, run.report.downloads = links.compare(run.store)
    check_space(run.store, model)
    run.report.cycles += 1


def run(
    disk: Disk, folder: Path, seed: int, enough: Callable[[Report], bool], say: Callable[[str], None] = print
) -> Run:
    """Runs all cycles on one store. Raises Broken with the seed and cycle at the first difference."""
    disk.mount()
    model = Model(seed, WRITERS, KEYS_PER_WRITER)
    webhook = deliveries.Deliveries(seed)
    going = Run(disk, Cairn(folder / "server", deliveries.ENVIRONMENT), random.Random(f"{seed}-cuts"), webhook)
    going.store.data = disk.folder / "data"
    report, began = going.report, time.monotonic()
    try:
        going.store.start()
        webhook.subscribe(going.store)
        going.store.s3.create_bucket(BUCKET)
        version_load.create(going.store.s3)
        links = link_load.Links.create(going.store, model)
        load = Load(model, links)
        while not enough(report):
            one_cycle(going, load, links)
            report.seconds = time.monotonic() - began
            say(f"cut {report.cycles}, {report.seconds:.0f} s: {report.acknowledged} acknowledged, {going.last_cut}")
        empty_and_check(going.store, model)
        links.inspect(going.store)
        report.replay.follow(going.store)
        webhook.check(going.store, report.replay)
        report.deliveries = webhook.requests
        if going.store.stop() != 0:
            raise Broken("the server did not stop cleanly at the end")
        check_offline(going.store, report)
    except AssertionError as error:
        raise Broken(
            f"{disk.kind}, seed {seed}, after cut {report.cycles} ({going.last_cut}), in {folder}: {error}"
        ) from error
    finally:
        going.store.kill()
        webhook.close()
    return going
