"""cairn storage compact: what a stopped store gives back, what it refuses, and kills at any moment of it."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import cairn_load
from harness.server import Cairn, clean_environment

BUCKET = "compact"
OBJECTS = ("--keys", "8000", "--size", "16000B")
KEPT = ("--prefix", "kept/", "--keys", "100", "--size", "16000B")
KILLS = 12
SEED = 11


def command(store: Cairn) -> list[str]:
    """The command line; it names no secret."""
    return [str(store.binary), "storage", "compact", "--data-dir", str(store.data)]


def compact(store: Cairn) -> subprocess.CompletedProcess:
    """Run the command to its end, without any secret in its environment."""
    return subprocess.run(command(store), env=clean_environment(), capture_output=True, text=True, check=False)


def metadata_bytes(data: Path) -> int:
    """Bytes of all metadata files on the disk."""
    return sum(path.stat().st_blocks * 512 for path in data.rglob("data.mdb"))


@pytest.fixture
def emptied(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Cairn]:
    """A stopped store whose metadata held many small objects, of which few are left."""
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


def serves_what_was_left(store: Cairn) -> None:
    """Start, read all that was not deleted, take a change, stop."""
    store.start()
    try:
        cairn_load.run(store, "get", BUCKET, *KEPT, "--verify", "--requests", "400")
        cairn_load.run(store, "list", BUCKET, *KEPT, "--verify", "--requests", "20")
        cairn_load.run(store, "put", BUCKET, *KEPT, "--requests", "200")
        assert store.stop() == 0
    finally:
        store.kill()


def test_a_mass_deletion_makes_the_metadata_smaller_only_when_the_server_is_stopped(emptied: Cairn):
    """It is refused beside a server; then it gives back what is above the headroom, and the store is the same."""
    emptied.start()
    refused = compact(emptied)
    assert refused.returncode == 1 and "another process" in refused.stderr, refused
    assert emptied.stop() == 0
    before = metadata_bytes(emptied.data)
    done = compact(emptied)
    assert done.returncode == 0 and "records checked" in done.stdout, done
    after = metadata_bytes(emptied.data)
    # 125 MB of objects were deleted; what each slice keeps is 48 MiB of headroom.
    assert before - after > 80_000_000, (before, after, done.stdout)
    serves_what_was_left(emptied)


def test_a_kill_at_any_moment_of_a_compaction_leaves_a_whole_store(emptied: Cairn):
    """Every attempt begins with the same store, and is killed within the time that one needs to its end."""
    original = emptied.folder / "original"
    emptied.data.rename(original)

    def begin_anew() -> None:
        subprocess.run(["rm", "-rf", str(emptied.data)], check=True)
        subprocess.run(["cp", "-a", "--sparse=always", str(original), str(emptied.data)], check=True)

    begin_anew()
    began = time.monotonic()
    assert compact(emptied).returncode == 0
    whole = time.monotonic() - began
    moments = random.Random(SEED)
    unfinished = 0
    for _ in range(KILLS):
        begin_anew()
        process = subprocess.Popen(command(emptied), env=clean_environment(), stdout=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.0, whole))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            unfinished += 1
        serves_what_was_left(emptied)
        assert list(emptied.data.rglob("compact")) == []
    assert unfinished > 0
