"""Crash test with SIGKILL: load, kill at a random moment, restart, compare with the model.

The loop is deterministic in what it does (keys, sizes, order within a writer, the delay before each kill); when the
kill strikes is up to the machine. A failure names the seed and the cycle and keeps the store.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

from . import deliveries, link_load, version_load
from .compare import Report, check_offline, check_space, compare, empty_and_check
from .crash_model import Model
from .load import BUCKET, WRITERS, Broken, Load, ends_within, vary_start
from .server import Cairn

KEYS_PER_WRITER = 12
# The share of cycles in which the offline checker runs before the restart. The others test recovery alone.
CHECKED_SHARE = 0.4
# The probability that a start is killed too.
START_KILLED_SHARE = 0.25
START_SECONDS = (0.0, 0.2)


def one_cycle(store: Cairn, load: Load, links: link_load.Links, rng: random.Random, report: Report) -> None:
    """Runs one cycle: load, kill, check the files, start (sometimes killed during that), compare."""
    before = load.acknowledged()
    load.run(store, rng, store.kill)
    report.acknowledged += load.acknowledged() - before
    if rng.random() < CHECKED_SHARE:
        check_offline(store, report)
    while rng.random() < START_KILLED_SHARE:
        vary_start(store, rng)
        store.spawn()
        ends_within(store, rng.uniform(*START_SECONDS))
        store.kill()
    vary_start(store, rng)
    store.start()
    compare(store, load.model, report)
    report.link_changes, report.downloads = links.compare(store)
    check_space(store, load.model)
    report.cycles += 1


def run(folder: Path, seed: int, enough: Callable[[Report], bool], say: Callable[[str], None] = print) -> Report:
    """Runs all cycles on one store. Raises Broken with the seed and cycle at the first difference."""
    store, report = Cairn(folder, deliveries.ENVIRONMENT), Report()
    webhook = deliveries.Deliveries(seed)
    model = Model(seed, WRITERS, KEYS_PER_WRITER)
    rng = random.Random(f"{seed}-cycles")
    store.start()
    webhook.subscribe(store)
    store.s3.create_bucket(BUCKET)
    version_load.create(store.s3)
    links = link_load.Links.create(store, model)
    load, began = Load(model, links), time.monotonic()
    try:
        while not enough(report):
            one_cycle(store, load, links, rng, report)
            report.seconds = time.monotonic() - began
            say(f"cycle {report.cycles}, {report.seconds:.0f} s: {report.acknowledged} acknowledged")
        empty_and_check(store, model)
        links.inspect(store)
        report.replay.follow(store)
        webhook.check(store, report.replay)
        report.deliveries = webhook.requests
        if store.stop() != 0:
            raise Broken("the server did not stop cleanly at the end")
        check_offline(store, report)
    except AssertionError as error:
        raise Broken(f"seed {seed}, after cycle {report.cycles}, store in {folder}: {error}") from error
    finally:
        store.kill()
        webhook.close()
    return report
