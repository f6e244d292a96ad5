"""`cairn storage compact`, of a stopped and of a running store: returned space, concurrent requests, kills."""

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import cairn_load
from harness.management import compaction_ends, expect, expect_refusal
from harness.server import Cairn, clean_environment
from harness.wait import until
from harness.wire import WireError

BUCKET = "compact"
OBJECTS = ("--keys", "8000", "--size", "16000B")
KEPT = ("--prefix", "kept/", "--keys", "100", "--size", "16000B")
# Half of the objects. A compaction then has enough to copy that it can be interrupted.
HALF = ("--keys", "4000", "--size", "16000B")
KILLS = 8
KILLS_WHILE_RUNNING = 4
END_SECONDS = 60
WRITERS = 4
KEYS_OF_WRITER = 20
SEED = 11


def command(store: Cairn) -> list[str]:
    """Returns the command line. It contains no secret."""
    return [str(store.binary), "storage", "compact", "--data-dir", str(store.data)]


def compact(store: Cairn) -> subprocess.CompletedProcess:
    """Runs the command to its end. Its environment contains no secret."""
    return subprocess.run(command(store), env=clean_environment(), capture_output=True, text=True, check=False)


def metadata_bytes(data: Path) -> int:
    """Returns the allocated bytes of all metadata files."""
    return sum(path.stat().st_blocks * 512 for path in data.rglob("data.mdb"))


@pytest.fixture
def emptied(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Cairn]:
    """A stopped store from which most of its many small objects were deleted."""
    store = Cairn(run_folder / request.node.name, {"SERVICE_STORAGE_SLICES": "2"}).start()
    try:
        cairn_load.run(store, "prepare", BUCKET, *KEPT)
        cairn_load.run(store, "prepare", BUCKET, *OBJECTS, "--connections", "32")
        cairn_load.run(store, "delete", BUCKET, *OBJECTS, "--connections", "32")
        assert store.stop() == 0
        yield store
    finally:
        store.kill()
        subprocess.run(["rm", "-rf", str(store.data)], check=True)


def assert_serves_remaining_objects(store: Cairn) -> None:
    """Starts the store, reads all remaining objects, writes some, and stops it."""
    store.start()
    try:
        cairn_load.run(store, "get", BUCKET, *KEPT, "--verify", "--requests", "400")
        cairn_load.run(store, "list", BUCKET, *KEPT, "--verify", "--requests", "20")
        cairn_load.run(store, "put", BUCKET, *KEPT, "--requests", "200")
        assert store.stop() == 0
    finally:
        store.kill()


def test_compaction_of_a_stopped_store_returns_space(emptied: Cairn):
    """It is refused while the server runs. Then it returns the space above the headroom and loses no object."""
    emptied.start()
    refused = compact(emptied)
    assert refused.returncode == 1 and "another process" in refused.stderr, refused
    assert emptied.stop() == 0
    before = metadata_bytes(emptied.data)
    done = compact(emptied)
    assert done.returncode == 0 and "records verified" in done.stdout, done
    after = metadata_bytes(emptied.data)
    # 125 MB of objects were deleted. Each slice keeps 48 MiB of headroom.
    assert before - after > 80_000_000, (before, after, done.stdout)
    again = subprocess.run([*command(emptied), "--json"], env=clean_environment(), capture_output=True, text=True, check=True)
    sums = json.loads(again.stdout)
    assert sums.keys() == {"metadata_bytes_before", "metadata_bytes_after", "records_verified"}
    assert sums["metadata_bytes_before"] >= sums["metadata_bytes_after"] > 0 and sums["records_verified"] >= 100, sums
    assert_serves_remaining_objects(emptied)


def test_killed_compaction_leaves_the_store_intact(emptied: Cairn):
    """Each attempt starts with the same store and is killed at a random time within the duration of a compaction."""
    original = emptied.folder / "original"
    emptied.data.rename(original)

    def restore_original() -> None:
        subprocess.run(["rm", "-rf", str(emptied.data)], check=True)
        subprocess.run(["cp", "-a", "--sparse=always", str(original), str(emptied.data)], check=True)

    restore_original()
    began = time.monotonic()
    assert compact(emptied).returncode == 0
    whole = time.monotonic() - began
    moments = random.Random(SEED)
    unfinished = 0
    for _ in range(KILLS):
        restore_original()
        process = subprocess.Popen(command(emptied), env=clean_environment(), stdout=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.0, whole))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            unfinished += 1
        assert_serves_remaining_objects(emptied)
        assert list(emptied.data.rglob("compact")) == []
    assert unfinished > 0


def prepare(store: Cairn, deleted: tuple[str, ...]) -> Cairn:
    """Starts a store and deletes some of its many small objects."""
    store.start()
    cairn_load.run(store, "prepare", BUCKET, *KEPT)
    cairn_load.run(store, "prepare", BUCKET, *OBJECTS, "--connections", "32")
    cairn_load.run(store, "delete", BUCKET, *deleted, "--connections", "32")
    return store


@pytest.fixture
def half_emptied(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Cairn]:
    """A running store from which half of its many small objects were deleted."""
    store = Cairn(run_folder / request.node.name, {"SERVICE_STORAGE_SLICES": "2"})
    try:
        yield prepare(store, HALF)
    finally:
        store.kill()
        subprocess.run(["rm", "-rf", str(store.data)], check=True)


class Writer(threading.Thread):
    """Puts, deletes, reads and lists keys of its own until it is stopped or the server is killed."""

    def __init__(self, store: Cairn, name: str):
        super().__init__()
        self.store, self.prefix, self.rng = store, f"writer-{name}/", random.Random(f"{SEED}-{name}")
        self.stopped = threading.Event()
        # The acknowledged body of each key, None for a deleted one; and what an unanswered request may have changed.
        self.acknowledged: dict[str, bytes | None] = {}
        self.unanswered: tuple[str, bytes | None] | None = None
        self.wrong: str | None = None
        self.changes = 0

    def run(self) -> None:
        """Works until it is stopped. A failed connection ends it, because the server may have been killed."""
        try:
            while not self.stopped.is_set() and self.wrong is None:
                self.step()
        except (WireError, OSError):
            self.stopped.set()

    def step(self) -> None:
        """Changes a key, reads it, and sometimes lists all keys."""
        key = f"{self.prefix}{self.rng.randrange(KEYS_OF_WRITER)}"
        body = None if self.rng.random() < 0.25 else self.rng.randbytes(self.rng.choice([10, 3000, 16_000, 60_000]))
        self.unanswered = (key, body)
        status = (self.store.s3.delete(BUCKET, key) if body is None else self.store.s3.put(BUCKET, key, body)).status
        if status != (204 if body is None else 200):
            self.wrong = f"a change of {key}: {status}"
            return
        self.acknowledged[key], self.unanswered = body, None
        self.changes += 1
        read = self.store.s3.get(BUCKET, key)
        if (read.status, read.body if body is not None else None) != ((200, body) if body is not None else (404, None)):
            self.wrong = f"{key} is not what was acknowledged: {read.status}"
        if self.changes % 10 == 0:
            self.compare_list()

    def compare_list(self) -> None:
        """Compares a list with the acknowledged keys."""
        present = {key for key, body in self.acknowledged.items() if body is not None}
        listed = set(self.store.s3.list(BUCKET, prefix=self.prefix).keys)
        if listed != present:
            self.wrong = f"a list differs in {listed ^ present}"

    def check(self) -> None:
        """Asserts that every acknowledged change is there, and that the unanswered one is there or not."""
        assert self.wrong is None, self.wrong
        for key, body in self.acknowledged.items():
            allowed = [body]
            if self.unanswered is not None and self.unanswered[0] == key:
                allowed.append(self.unanswered[1])
            found = self.store.s3.get(BUCKET, key)
            assert (found.body if found.status == 200 else None) in allowed, (key, found.status)


def start_writers(store: Cairn) -> list[Writer]:
    """Starts the concurrent writers."""
    writers = [Writer(store, str(number)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    return writers


def stop_writers(writers: list[Writer]) -> None:
    """Stops the writers and waits for them."""
    for writer in writers:
        writer.stopped.set()
    for writer in writers:
        writer.join(END_SECONDS)


def compaction_reaches(store: Cairn, target: float) -> bool:
    """Waits until a part of the environments is done, or the compaction has ended. Returns whether it still runs."""
    give_up = time.monotonic() + END_SECONDS
    while True:
        status = expect(store.admin.get("/storage/compact"), 200)
        is_running = status["state"] == "running"
        if not is_running or status["environments_done"] >= target * status["environments"]:
            return is_running
        assert time.monotonic() < give_up, status


def test_running_server_is_compacted_under_load(half_emptied: Cairn):
    """Every request succeeds meanwhile, every change is there afterwards, and writes pause for a small part of the time."""
    store = half_emptied
    assert expect(store.admin.get("/storage/compact"), 200)["state"] == "none"
    before = metadata_bytes(store.data)
    writers = start_writers(store)
    try:
        until(lambda: all(writer.changes >= 5 for writer in writers), "the writers make no progress")
        begin = time.monotonic()
        # At once: one alone may end before another is asked for.
        with ThreadPoolExecutor(2) as both:
            answers = sorted(both.map(lambda _: store.admin.post("/storage/compact"), range(2)), key=lambda answer: answer.status_code)
        began = expect(answers[0], 202)
        assert began["state"] == "running" and began["environments"] == 7, began
        expect_refusal(answers[1], 429, "TOO_MANY_REQUESTS")
        status = compaction_ends(store.admin)
        took = time.monotonic() - begin
    finally:
        stop_writers(writers)
    assert status["state"] == "done" and status["reason"] is None, status
    assert status["environments_done"] == status["environments"] and status["records_verified"] > 4000, status
    assert 0 < status["write_pause_milliseconds"] < took * 1000 / 3, status
    assert before - metadata_bytes(store.data) > 25_000_000, (before, metadata_bytes(store.data), status)
    for writer in writers:
        writer.check()
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
    recorded = expect(store.admin.get("/audit/events?operation=compact_storage"), 200)["events"]
    assert [event["result"] for event in recorded] == ["allowed"], recorded
    store.restart()
    for writer in writers:
        writer.check()
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
    cairn_load.run(store, "get", BUCKET, *KEPT, "--verify", "--requests", "400")


def test_command_compacts_a_running_server(half_emptied: Cairn):
    """The command waits for the end and prints the result."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": half_emptied.secrets.system_token}
    arguments = [str(half_emptied.binary), "storage", "compact", "--endpoint", half_emptied.management]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "longest pause of writes" in done.stdout, done
    assert half_emptied.stop() == 0
    assert_serves_remaining_objects(half_emptied)


def test_kill_while_a_running_store_is_compacted(half_emptied: Cairn):
    """After each kill every acknowledged change is there, and nothing of the copy is left."""
    store = half_emptied
    assert store.stop() == 0
    original = store.folder / "original"
    store.data.rename(original)

    def start_original() -> None:
        subprocess.run(["rm", "-rf", str(store.data)], check=True)
        subprocess.run(["cp", "-a", "--sparse=always", str(original), str(store.data)], check=True)
        store.start()

    store.kill()
    rng, unfinished = random.Random(SEED), 0
    # The first compaction is killed at its beginning, so at least that one is unfinished on every machine.
    for target in [0.0, *(rng.random() for _ in range(KILLS_WHILE_RUNNING - 1))]:
        start_original()
        writers = start_writers(store)
        expect(store.admin.post("/storage/compact"), 202)
        unfinished += compaction_reaches(store, target)
        store.kill()
        stop_writers(writers)
        store.start()
        assert list(store.data.rglob("compact*")) == []
        for writer in writers:
            writer.check()
        assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
        cairn_load.run(store, "get", BUCKET, *KEPT, "--verify", "--requests", "200")
        store.kill()
    assert unfinished > 0
