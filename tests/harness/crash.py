"""The crash test itself: load, kill -9 at a random moment, start, compare everything with the model.

The loop is deterministic in what it does (keys, sizes, order within a writer, the delay before each kill); when the
kill strikes is up to the machine. A failure prints the seed and the cycle and keeps the store.
"""

import contextlib
import hashlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .crash_model import KeyState, Model, Version
from .s3 import S3, object_target
from .server import TARGET, Cairn
from .wire import Connection, Response, WireError

BUCKET = "crash"
WRITERS = 8
READERS = 2
KEYS_PER_WRITER = 24
LOAD_SECONDS = (0.15, 2.0)
# Volumes grow in steps and free space lies in pieces; what is beyond this has been lost by crashes.
SPACE_FACTOR = 4
# The engine's own checker of a stopped store; CAIRN_CHECK names another build of it.
CHECKER = Path(os.environ.get("CAIRN_CHECK", TARGET / "release" / "examples" / "check_store"))
# How often the files are checked as the kill left them. The other cycles leave recovery to the server alone.
CHECKED_SHARE = 0.4
SPACE_FLOOR_BYTES = 1 << 30


class Broken(AssertionError):
    """A promise that was not kept."""


@dataclass
class Report:
    """What a run has done."""

    cycles: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    landed: int = 0
    checked_bytes: int = 0
    offline_checks: int = 0

    def line(self) -> str:
        """For people."""
        return (
            f"{self.cycles} kills, {self.acknowledged} acknowledged changes, {self.unanswered} unanswered "
            f"({self.landed} of them found done), {self.checked_bytes >> 20} MiB compared, "
            f"{self.offline_checks} offline checks, no difference"
        )


class Writer:
    """One client with keys of its own, changing them until the server is gone."""

    def __init__(self, model: Model, s3: S3, number: int):
        self.model, self.s3, self.number = model, s3, number
        self.keys = model.keys[number]
        self.rng = random.Random(f"{model.seed}-writer-{number}")
        self.done = 0

    def run(self, stop: threading.Event) -> None:
        """Change after change on one connection."""
        with contextlib.suppress(WireError, OSError):
            with self.s3.connect() as connection:
                while not stop.is_set():
                    self.change(connection)

    def change(self, connection: Connection) -> None:
        """One put, overwrite or delete. Until it is answered, both its outcomes are allowed."""
        key = self.rng.choice(list(self.keys))
        state = self.keys[key]
        wish = None if self.rng.random() < 0.2 else self.model.new_version(self.number, self.rng)
        state.pending = [wish]
        target = object_target(BUCKET, key)
        if wish is None:
            expected, response = 204, self.s3.request("DELETE", target, connection=connection)
        else:
            body = self.model.body(key, wish)
            expected, response = 200, self.s3.request("PUT", target, body=body, connection=connection)
        if response.status != expected:
            raise Broken(f"{key}: {response.status} {response.body[:500]!r}")
        state.acknowledged, state.pending = wish, []
        self.done += 1


def read_under_load(model: Model, s3: S3, number: int, stop: threading.Event) -> None:
    """Reads while others write: any answer of 200 must be a whole version of its key."""
    rng, keys = random.Random(f"{model.seed}-reader-{number}"), list(model.all())
    with contextlib.suppress(WireError, OSError):
        with s3.connect() as connection:
            while not stop.is_set():
                key = rng.choice(keys)
                response = s3.request("GET", object_target(BUCKET, key), connection=connection)
                if response.status not in (200, 404):
                    raise Broken(f"reading {key} under load: {response.status} {response.body[:300]!r}")
                if response.status == 200:
                    check_self_consistent(key, response.body, response.get("etag"))


def check_self_consistent(key: str, body: bytes, etag: str) -> None:
    """A body must be the one that its ETag names."""
    if etag != f'"{hashlib.md5(body).hexdigest()}"':
        raise Broken(f"{key}: {len(body)} bytes that are not those of {etag}")


def load_until_killed(store: Cairn, model: Model, writers: list[Writer], seconds: float) -> None:
    """Run all clients, kill the server after so many seconds, and pass on what any client found broken."""
    stop = threading.Event()
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        jobs = [pool.submit(writer.run, stop) for writer in writers]
        jobs += [pool.submit(read_under_load, model, store.s3, number, stop) for number in range(READERS)]
        # The wait is the point: the kill comes at a random moment of the load.
        if wait_for_end(store, seconds):
            stop.set()
            raise Broken(f"the server ended by itself with {store.process.returncode}:\n{store.output()[-2000:]}")
        store.kill()
        stop.set()
        for job in jobs:
            job.result()


def wait_for_end(store: Cairn, seconds: float) -> bool:
    """Whether the process ends by itself within this time."""
    try:
        store.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def settle(key: str, state: KeyState, found: Version | None) -> bool:
    """Take what was found for the truth of the next cycle; whether an unanswered change had been done."""
    landed = bool(state.pending) and found == state.pending[-1] and found != state.acknowledged
    state.acknowledged, state.pending = found, []
    return landed


def match_listed(model: Model, key: str, state: KeyState, listed: tuple[int, str] | None) -> Version | None:
    """Which allowed version the list shows; fails when it shows none of them."""
    for version in state.allowed():
        if version is None and listed is None:
            return None
        if version is not None and listed == (version.size, model.etag(key, version)):
            return version
    raise Broken(f"{key}: the list shows {listed}, allowed are {state.allowed()}")


def compare(store: Cairn, model: Model, report: Report) -> None:
    """List and read everything back and hold it against the model."""
    s3, states = store.s3, model.all()
    listed = s3.list_all(BUCKET)
    if strangers := set(listed) - set(states):
        raise Broken(f"keys that nobody wrote: {sorted(strangers)[:5]}")
    found = {key: match_listed(model, key, state, listed.get(key)) for key, state in states.items()}
    with s3.connect() as connection:
        for key, version in found.items():
            response = s3.request("GET", object_target(BUCKET, key), connection=connection)
            compare_object(model, key, version, response)
            report.checked_bytes += len(response.body)
    for key, state in states.items():
        report.unanswered += len(state.pending)
        report.landed += settle(key, state, found[key])


def compare_object(model: Model, key: str, version: Version | None, response: Response) -> None:
    """One object is what the list said, byte for byte, or is not there."""
    if version is None:
        if response.status != 404:
            raise Broken(f"{key}: deleted or never written, but GET says {response.status}")
    elif response.status != 200 or response.body != model.body(key, version):
        raise Broken(f"{key}: GET says {response.status}, {len(response.body)} bytes, expected {version}")


def volume_bytes(data: Path) -> int:
    """What the volumes occupy on the disk."""
    return sum(path.stat().st_blocks * 512 for path in data.glob("slices/*/volumes/*.vol"))


def check_space(store: Cairn, model: Model) -> None:
    """The working set is bounded, so the volumes must be too: space that crashes lose would make them grow on."""
    bound = max(SPACE_FLOOR_BYTES, SPACE_FACTOR * model.live_bytes())
    used = volume_bytes(store.data)
    if used > bound:
        raise Broken(f"the volumes hold {used} bytes for {model.live_bytes()} live ones: space is being lost")


def check_offline(store: Cairn, report: Report) -> None:
    """Hold free map, records, counters and payloads of the stopped store against each other."""
    if not CHECKER.is_file():
        raise Broken(f"{CHECKER} is missing; `cargo build --release -p cairn-engine --example check_store` makes it")
    done = subprocess.run(
        [CHECKER, str(store.data)], env=store.environment(), capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0 or json.loads(done.stdout)["orphaned_units"] != 0:
        raise Broken(f"the offline check found:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    report.offline_checks += 1


def one_cycle(store: Cairn, model: Model, writers: list[Writer], rng: random.Random, report: Report) -> None:
    """Load, kill, check the files, start (now and then killed in the middle of that), compare."""
    before = sum(writer.done for writer in writers)
    load_until_killed(store, model, writers, rng.uniform(*LOAD_SECONDS))
    report.acknowledged += sum(writer.done for writer in writers) - before
    if rng.random() < CHECKED_SHARE:
        check_offline(store, report)
    while rng.random() < 0.25:
        store.spawn()
        wait_for_end(store, rng.uniform(0.0, 0.3))
        store.kill()
    store.start()
    compare(store, model, report)
    check_space(store, model)
    report.cycles += 1


def run(
    folder: Path, seed: int, enough: Callable[[Report], bool], say: Callable[[str], None] = print
) -> Report:
    """Cycles on one store until it is enough; raises Broken with the seed and cycle at the first difference."""
    store, report = Cairn(folder), Report()
    model = Model(seed, WRITERS, KEYS_PER_WRITER)
    rng = random.Random(f"{seed}-cycles")
    store.start()
    store.s3.create_bucket(BUCKET)
    writers = [Writer(model, store.s3, number) for number in range(WRITERS)]
    began = time.monotonic()
    try:
        while not enough(report):
            one_cycle(store, model, writers, rng, report)
            say(f"cycle {report.cycles}, {time.monotonic() - began:.0f} s: {report.acknowledged} acknowledged")
        empty_and_check(store, model)
        if store.stop() != 0:
            raise Broken("the last stop was not clean")
        check_offline(store, report)
    except AssertionError as error:
        raise Broken(f"seed {seed}, after cycle {report.cycles}, store in {folder}: {error}") from error
    finally:
        store.kill()
    return report


def empty_and_check(store: Cairn, model: Model) -> None:
    """Delete everything: nothing is left, and the bucket agrees that it is empty."""
    s3 = store.s3
    with s3.connect() as connection:
        for key in model.all():
            s3.request("DELETE", object_target(BUCKET, key), connection=connection)
    if s3.list(BUCKET).keys or s3.request("DELETE", f"/{BUCKET}").status != 204:
        raise Broken("the bucket is not empty after everything was deleted")
