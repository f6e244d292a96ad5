"""Full-disk test: fills a small disk until puts are refused, verifies, frees space, verifies again.

A disk becomes full in three ways: by the puts themselves, by files of others that take every last block in the middle
of the load, and by a limit on the size of files. At the full disk refused puts must have changed nothing, reads, lists
and deletes go on, a restart works; when space is back, by deletes or by others, puts work again by themselves.
"""

import os
import random
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import version_load
from .compare import Report, check_offline, compare
from .crash_model import KeyState, Model
from .load import BUCKET, Broken, Client, run_clients, vary_start
from .s3 import S3, error_code, object_target
from .server import Cairn
from .wire import Connection

DISK_BYTES = 320 << 20
RESERVE = "16MiB"
WRITERS = 6
# More than fits on the disk.
KEYS_PER_WRITER = 300
ACTIONS = {"put": 80, "delete": 6, "get": 14}
# A disk counts as full when each writer was refused this often.
REFUSALS = 6
FILL_SECONDS_MAX = 60.0
RECOVERY_SECONDS_MAX = 10.0
RECOVERY_SIZES = [100, 10_000, 100_000, 2_000_000]
POLL_SECONDS = 0.02
# How a round's disk becomes full, with the share of each.
KINDS = {"puts": 40, "foreign": 40, "file-size": 20}
FOREIGN_AFTER_SECONDS = (0.0, 1.5)
# What must come back from others for volumes to grow again: a step of growth for each slice beside the reserve.
BALLAST_BYTES_MIN = 64 << 20
# How far files may still grow under a limit on their size.
FILE_SIZE_ROOM = 8 << 20
DELETED_SHARE = 0.7
# How often the server is started again while the disk is full, killed or in good order.
RESTART_SHARE = 0.4


@dataclass
class Counts:
    """Counts of what a run has done."""

    rounds: dict[str, int] = field(default_factory=dict)
    puts: int = 0
    refusals: int = 0
    deletes_at_full: int = 0
    restarts_at_full: int = 0
    zero_bytes_free: int = 0
    checks: Report = field(default_factory=Report)
    seconds: float = 0.0

    def total(self) -> int:
        """Returns the number of all rounds."""
        return sum(self.rounds.values())

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"{self.total()} rounds {self.rounds} in {self.seconds:.0f} s: {self.puts} changes acknowledged, "
            f"{self.refusals} puts refused with 507, {self.deletes_at_full} deletes and {self.restarts_at_full} restarts "
            f"at the full disk ({self.zero_bytes_free} times not one block free), {self.checks.compared_bytes >> 20} MiB "
            f"compared, {self.checks.offline_checks} offline checks, 0 inconsistencies"
        )

    def figures(self) -> dict:
        """Returns a JSON object."""
        return asdict(self)


class Filler(Client):
    """A writer that puts its keys until the store refuses, and verifies that a refusal changed nothing."""

    def __init__(self, model: Model, number: int):
        super().__init__(model, f"filler-{number}")
        self.number, self.keys, self.refusals = number, model.keys[number], 0

    def step(self, s3: S3, connection: Connection) -> None:
        """Runs one random action."""
        key = self.rng.choice(list(self.keys))
        action = self.rng.choices(list(ACTIONS), ACTIONS.values())[0]
        getattr(self, f"do_{action}")(s3, connection, key, self.keys[key])

    def do_put(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Puts an object, which must be accepted or refused for lack of space."""
        wish = self.model.new_version(self.number, self.rng)
        self.model.begin(state, wish)
        response = s3.request("PUT", object_target(BUCKET, key), body=self.model.body(key, wish), connection=connection)
        if response.status == 200:
            self.model.acknowledge(state, wish)
            self.done += 1
        elif response.status == 507 and error_code(response) == "InsufficientStorage":
            self.model.refused(state)
            self.refusals += 1
            if not connection.closing:
                self.do_get(s3, connection, key, state)
        else:
            raise Broken(f"PUT {key} ({wish}): {response.status} {response.body[:500]!r}")

    def do_delete(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Deletes a key, which must work on a full disk too."""
        delete(self.model, s3, connection, key, state)
        self.done += 1

    def do_get(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Reads the last acknowledged content completely."""
        response = s3.request("GET", object_target(BUCKET, key), connection=connection)
        expected = (404, None) if state.seen is None else (200, self.model.body(key, state.seen))
        if response.status != expected[0] or (expected[1] is not None and response.body != expected[1]):
            raise Broken(f"GET {key}: {response.status}, {len(response.body)} bytes; it is {state.seen}")


def delete(model: Model, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
    """Deletes a key. The delete must succeed."""
    model.begin(state, None)
    response = s3.request("DELETE", object_target(BUCKET, key), connection=connection)
    if response.status != 204:
        raise Broken(f"DELETE {key}: {response.status} {response.body[:500]!r}")
    model.acknowledge(state, None)


class Ballast:
    """A file of another program on the same disk."""

    def __init__(self, folder: Path):
        self.path = folder / "ballast"

    def take_everything(self) -> None:
        """Allocates all free blocks."""
        with self.path.open("ab") as file:
            step = 64 << 20
            while step >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), step)
                except OSError:
                    step //= 2

    def bytes(self) -> int:
        """Returns the bytes that the file occupies."""
        return self.path.stat().st_blocks * 512 if self.path.exists() else 0

    def give_back(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


@dataclass
class Round:
    """The rounds of a run on one store on a small disk."""

    store: Cairn
    disk: Path
    model: Model
    rng: random.Random
    fillers: list[Filler]
    counts: Counts = field(default_factory=Counts)

    @property
    def ballast(self) -> Ballast:
        """Returns the file of the other program."""
        return Ballast(self.disk)

    def fill(self, kind: str) -> None:
        """Puts objects until every writer was refused often enough."""
        before, puts = [filler.refusals for filler in self.fillers], sum(filler.done for filler in self.fillers)
        began, after = time.monotonic(), self.rng.uniform(*FOREIGN_AFTER_SECONDS)
        taken = False

        def enough() -> bool:
            nonlocal taken
            elapsed = time.monotonic() - began
            if elapsed > FILL_SECONDS_MAX:
                raise Broken(f"the disk is not full after {elapsed:.0f} s of puts")
            if kind == "foreign" and elapsed > after and not taken:
                self.ballast.take_everything()
                taken = True
            now = [filler.refusals for filler in self.fillers]
            return all(n - b >= REFUSALS for n, b in zip(now, before, strict=True))

        run_clients(self.store, self.fillers, enough)
        self.counts.puts += sum(filler.done for filler in self.fillers) - puts
        self.counts.refusals += sum(filler.refusals for filler in self.fillers) - sum(before)
        if kind == "foreign":
            self.ballast.take_everything()
            stat = os.statvfs(self.disk)
            self.counts.zero_bytes_free += stat.f_bavail == 0

    def limit_files(self, size: int) -> None:
        """Sets the file size limit of the running server."""
        resource.prlimit(self.store.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def largest_file(self) -> int:
        """Returns the size of the store's largest file."""
        return max(path.stat().st_size for path in self.store.data.rglob("*") if path.is_file())

    def restart(self) -> None:
        """Kills or stops the server, checks the files and starts it again. All of this must work on a full disk."""
        if self.rng.random() < 0.5:
            self.store.kill()
        elif self.store.stop() != 0:
            raise Broken("the server did not stop cleanly")
        check_offline(self.store, self.counts.checks)
        vary_start(self.store, self.rng)
        self.store.start()

    def make_room(self) -> None:
        """Deletes most objects while the disk is full. Every delete must succeed."""
        with self.store.s3.connect() as connection:
            for key, state in self.model.all().items():
                if state.acknowledged is not None and self.rng.random() < DELETED_SHARE:
                    delete(self.model, self.store.s3, connection, key, state)
                    self.counts.deletes_at_full += 1

    def recover(self) -> None:
        """Asserts that puts of every size soon succeed again without intervention."""
        give_up = time.monotonic() + RECOVERY_SECONDS_MAX
        for number, size in enumerate(RECOVERY_SIZES * 2):
            target = object_target(BUCKET, f"recovery/{number}")
            while (response := self.store.s3.request("PUT", target, body=b"r" * size)).status != 200:
                if response.status != 507 or time.monotonic() > give_up:
                    raise Broken(f"space is back, but a put of {size} bytes: {response.status} {response.body[:300]!r}")
                time.sleep(POLL_SECONDS)
            if self.store.s3.request("DELETE", target).status != 204:
                raise Broken(f"{target} cannot be deleted")

    def run(self, kind: str) -> None:
        """Fills the disk, verifies the store, frees space and verifies it again."""
        if kind == "file-size":
            self.limit_files(self.largest_file() + FILE_SIZE_ROOM)
        self.fill(kind)
        compare(self.store, self.model, self.counts.checks)
        if kind != "file-size" and self.rng.random() < RESTART_SHARE:
            self.restart()
            self.counts.restarts_at_full += 1
            compare(self.store, self.model, self.counts.checks)
        if kind == "foreign" and self.ballast.bytes() >= BALLAST_BYTES_MIN and self.rng.random() < 0.7:
            # Space becomes free although nothing in the store was deleted.
            self.ballast.give_back()
            self.recover()
        self.make_room()
        self.ballast.give_back()
        if kind == "file-size":
            self.limit_files(resource.RLIM_INFINITY)
        self.recover()
        compare(self.store, self.model, self.counts.checks)
        self.restart()
        self.counts.rounds[kind] = self.counts.rounds.get(kind, 0) + 1


def run(
    disk: Path, folder: Path, seed: int, enough: Callable[[Counts], bool], say: Callable[[str], None] = print
) -> Counts:
    """Runs all rounds on one store. Raises Broken with the seed and round at the first difference."""
    store = Cairn(folder / "server", {"SERVICE_STORAGE_RESERVE_BYTES": RESERVE, "SERVICE_STORAGE_SLICES": "2"})
    store.data = disk / "data"
    model, began = Model(seed, WRITERS, KEYS_PER_WRITER), time.monotonic()
    going = Round(store, disk, model, random.Random(f"{seed}-rounds"), [Filler(model, n) for n in range(WRITERS)])
    counts, kind = going.counts, "none"
    try:
        store.start()
        store.s3.create_bucket(BUCKET)
        version_load.create(store.s3)
        while not enough(counts):
            kind = going.rng.choices(list(KINDS), KINDS.values())[0]
            going.run(kind)
            counts.seconds = time.monotonic() - began
            say(f"round {counts.total()} ({kind}), {counts.seconds:.0f} s: {counts.refusals} refused so far")
        if store.stop() != 0:
            raise Broken("the server did not stop cleanly at the end")
    except AssertionError as error:
        raise Broken(f"seed {seed}, after round {counts.total()}, in one of kind {kind}, in {folder}: {error}") from error
    finally:
        store.kill()
    return counts
