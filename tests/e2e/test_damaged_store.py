"""Attacks the files of a stopped store: whatever is missing, cut short or foreign is named, and nothing is rewritten.

A start that repairs on its own what it does not understand turns damage into loss. So every start here must be refused
with the reason, must leave every byte as it was, and the store must be whole again when the damage is undone.
"""

import contextlib
import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.server import Cairn

END_SECONDS = 20
BUCKET = "kept"
# Inline ones, so that the metadata has more pages than the shortest that it is cut to, and ones in the volumes.
SIZES = [12_000] * 60 + [200_000] * 20 + [3_000_000]
SLICE_META, SLICE_VOLUME = "slices/00/meta/data.mdb", "slices/00/volumes/000000.vol"
CONTROL = "control/data.mdb"
# What an open for reading may touch: the lock of the folder, and LMDB's table of readers.
NOT_STORED = {"lock", "lock.mdb"}


def body(number: int, size: int) -> bytes:
    """The content of an object."""
    return random.Random(number).randbytes(size)


def make_store(folder: Path) -> Cairn:
    """A store with objects of both kinds in both slices, stopped in good order."""
    store = Cairn(folder, {"SERVICE_STORAGE_SLICES": "2"}).start()
    store.s3.create_bucket(BUCKET)
    for number, size in enumerate(SIZES):
        store.s3.put(BUCKET, f"k{number}", body(number, size))
    assert store.stop() == 0
    return store


@pytest.fixture(scope="module")
def stores(run_folder: Path) -> Iterator[tuple[Cairn, Cairn]]:
    """The store to damage, and another one to take foreign files from."""
    made = make_store(run_folder / "damaged"), make_store(run_folder / "foreign")
    yield made
    # All damage was undone, so everything is there.
    made[0].take_ports()
    made[0].start()
    for number, size in enumerate(SIZES):
        assert made[0].s3.get(BUCKET, f"k{number}").body == body(number, size), number
    assert made[0].stop() == 0
    for store in made:
        store.kill()
        assert store.leaked_secrets() == []
        shutil.rmtree(store.data)


def fingerprint(data: Path) -> dict[str, str]:
    """A digest of everything that is stored."""
    found = {}
    for path in sorted(data.rglob("*")):
        if path.is_file() and path.name not in NOT_STORED:
            with path.open("rb") as file:
                found[str(path.relative_to(data))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


@contextlib.contextmanager
def put_aside(path: Path) -> Iterator[None]:
    """Keep a copy of a file or folder and put it back at the end, whatever has become of it."""
    aside = path.parent.parent / f"{path.name}.aside"
    copy = shutil.copytree if path.is_dir() else shutil.copy2
    copy(path, aside)
    try:
        yield
    finally:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        aside.rename(path)


def refused(store: Cairn) -> str:
    """Start, expect an error and not a crash; what it said."""
    store.log.unlink(missing_ok=True)
    store.take_ports()
    process = store.spawn()
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it runs on, and /ready says {store.ready_status()}:\n{store.output()[-2000:]}") from None
    finally:
        store.kill()
    assert 0 < code < 100, f"ended with {code}:\n{store.output()[-3000:]}"
    assert "panicked" not in store.output()
    return store.output()


def remove(path: Path, _foreign: Path) -> None:
    """It is gone."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path: Path, _foreign: Path) -> None:
    """It has no bytes."""
    path.write_bytes(b"")


def cut_short(path: Path, _foreign: Path) -> None:
    """Its end is gone, at a page."""
    with path.open("r+b") as file:
        file.truncate(64 * 1024 if path.name == "data.mdb" else 256 * 1024)


def cut_within_the_first_page(path: Path, _foreign: Path) -> None:
    """Hardly anything is left."""
    with path.open("r+b") as file:
        file.truncate(100)


def overwrite_the_start(path: Path, _foreign: Path) -> None:
    """The first two pages are noise."""
    with path.open("r+b") as file:
        file.write(random.Random(1).randbytes(8192))


def zero_the_start(path: Path, _foreign: Path) -> None:
    """The first two pages are zeros, as after a file system's repair."""
    with path.open("r+b") as file:
        file.write(bytes(8192))


def take_the_foreign_one(path: Path, foreign: Path) -> None:
    """The same file of another store."""
    shutil.copy2(foreign, path)


def take_that_of_the_other_slice(path: Path, _foreign: Path) -> None:
    """A file of this store in the wrong place."""
    shutil.copy2(Path(str(path).replace("slices/00", "slices/01")), path)


DAMAGES = [
    (part, damage)
    for part in (SLICE_META, SLICE_VOLUME, CONTROL)
    for damage in (
        remove, empty, cut_short, cut_within_the_first_page, overwrite_the_start, zero_the_start, take_the_foreign_one,
        take_that_of_the_other_slice,
    )
    if not (part == CONTROL and damage in (take_that_of_the_other_slice, cut_short))
] + [("slices/01", remove), ("slices/00/meta", remove), ("slices/00/volumes", remove), ("control", remove)]


@pytest.mark.parametrize(("part", "damage"), DAMAGES, ids=lambda value: getattr(value, "__name__", value))
def test_damaged_files_refuse_the_start(
    stores: tuple[Cairn, Cairn], part: str, damage: Callable[[Path, Path], None]
):
    """The error names the file or its folder; nothing is rewritten; undone, everything is there."""
    store, foreign = stores
    path = store.data / part
    with put_aside(path):
        damage(path, foreign.data / part)
        before = fingerprint(store.data)
        output = refused(store)
        assert fingerprint(store.data) == before, "the start rewrote a damaged store"
        named = part.removesuffix("/data.mdb").removesuffix("/000000.vol")
        assert str(store.data / named) in output, output


def lose_a_slice(content: dict) -> None:
    """One slice fewer than there are."""
    content["slices"] -= 1


def invent_a_slice(content: dict) -> None:
    """One slice more than there are."""
    content["slices"] += 1


def change_identity(content: dict) -> None:
    """Another store's id."""
    content["store_id"] = "00" * 16


def add_a_field(content: dict) -> None:
    """Something that this program does not know."""
    content["compressed"] = True


@pytest.mark.parametrize("change", [lose_a_slice, invent_a_slice, change_identity, add_a_field])
def test_a_changed_superblock_refuses_the_start(stores: tuple[Cairn, Cairn], change: Callable[[dict], None]):
    """It says what the store is; when it does not fit, nobody guesses."""
    store, _ = stores
    path = store.data / "superblock.json"
    with put_aside(path):
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        before = fingerprint(store.data)
        refused(store)
        assert fingerprint(store.data) == before, "the start rewrote a store that it does not understand"


def test_the_superblock_of_another_store_refuses_the_start(stores: tuple[Cairn, Cairn]):
    """With the other store's master key even: the slices are not its slices."""
    store, foreign = stores
    path = store.data / "superblock.json"
    with put_aside(path):
        shutil.copy2(foreign.data / "superblock.json", path)
        before = fingerprint(store.data)
        own, store.secrets = store.secrets, foreign.secrets
        try:
            refused(store)
        finally:
            store.secrets = own
        assert fingerprint(store.data) == before, "the start rewrote a store of another one"
