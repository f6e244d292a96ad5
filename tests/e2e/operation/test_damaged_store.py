"""The server refuses to start a store with damaged files.

An automatic repair of unknown damage could turn damage into data loss. Every start must therefore be refused with the
reason and must not change any byte. After the damage is undone, the store must be complete again.
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

END_SECONDS = 60
BUCKET = "kept"
# Inline objects, so that the metadata is longer than the size it is truncated to, and objects in volumes.
SIZES = [12_000] * 60 + [200_000] * 20 + [3_000_000]
SLICE_META, SLICE_VOLUME = "slices/00/meta/data.mdb", "slices/00/volumes/000000.vol"
CONTROL, SHARING = "control/data.mdb", "sharing/data.mdb"
# Files that an open for reading may change: the lock of the data folder, and LMDB's reader table.
NOT_STORED = {"lock", "lock.mdb"}


def body(number: int, size: int) -> bytes:
    """Returns the content of an object."""
    return random.Random(number).randbytes(size)


def make_store(folder: Path) -> Cairn:
    """Returns a cleanly stopped store with inline and volume objects in both slices."""
    store = Cairn(folder, {"SERVICE_STORAGE_SLICES": "2"}).start()
    store.s3.create_bucket(BUCKET)
    for number, size in enumerate(SIZES):
        store.s3.put(BUCKET, f"k{number}", body(number, size))
    assert store.stop() == 0
    return store


@pytest.fixture(scope="module")
def stores(run_folder: Path) -> Iterator[tuple[Cairn, Cairn]]:
    """The store to damage, and another store as the source of foreign files."""
    made = make_store(run_folder / "damaged"), make_store(run_folder / "foreign")
    yield made
    # All damage was undone, so every object must be readable.
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
    """Returns the digest of every stored file by its relative path."""
    found = {}
    for path in sorted(data.rglob("*")):
        if path.is_file() and path.name not in NOT_STORED:
            with path.open("rb") as file:
                found[str(path.relative_to(data))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


@contextlib.contextmanager
def put_aside(path: Path) -> Iterator[None]:
    """Copies a file or folder and restores it at the end, whatever happened to it."""
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
    """Starts the store and expects an error, not a crash. Returns the output."""
    store.log.unlink(missing_ok=True)
    store.take_ports()
    process = store.spawn()
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the server is still running, and /ready returns {store.ready_status()}:\n{store.output()[-2000:]}") from None
    finally:
        store.kill()
    assert 0 < code < 100, f"ended with {code}:\n{store.output()[-3000:]}"
    assert "panicked" not in store.output()
    return store.output()


def remove(path: Path, _foreign: Path) -> None:
    """Deletes the file or folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path: Path, _foreign: Path) -> None:
    """Truncates the file to 0 bytes."""
    path.write_bytes(b"")


def cut_short(path: Path, _foreign: Path) -> None:
    """Truncates the file at a page boundary."""
    with path.open("r+b") as file:
        file.truncate(64 * 1024 if path.name == "data.mdb" else 256 * 1024)


def cut_within_the_first_page(path: Path, _foreign: Path) -> None:
    """Truncates the file to 100 bytes."""
    with path.open("r+b") as file:
        file.truncate(100)


def overwrite_the_start(path: Path, _foreign: Path) -> None:
    """Overwrites the first two pages with random bytes."""
    with path.open("r+b") as file:
        file.write(random.Random(1).randbytes(8192))


def zero_the_start(path: Path, _foreign: Path) -> None:
    """Overwrites the first two pages with zeros, as a file system repair may do."""
    with path.open("r+b") as file:
        file.write(bytes(8192))


def take_the_foreign_one(path: Path, foreign: Path) -> None:
    """Replaces the file with that of another store."""
    shutil.copy2(foreign, path)


def take_that_of_the_other_slice(path: Path, _foreign: Path) -> None:
    """Replaces the file with that of the other slice of this store."""
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
    """The error names the file or its folder, and no file is changed."""
    store, foreign = stores
    path = store.data / part
    with put_aside(path):
        damage(path, foreign.data / part)
        before = fingerprint(store.data)
        output = refused(store)
        assert fingerprint(store.data) == before, "the start rewrote a damaged store"
        named = part.removesuffix("/data.mdb").removesuffix("/000000.vol")
        assert str(store.data / named) in output, output


LINK_DAMAGES = [
    (SHARING, remove), (SHARING, empty), (SHARING, cut_within_the_first_page), (SHARING, overwrite_the_start),
    (SHARING, zero_the_start), (SHARING, take_the_foreign_one), ("sharing", remove),
]


@pytest.mark.parametrize(("part", "damage"), LINK_DAMAGES, ids=lambda value: getattr(value, "__name__", value))
def test_damaged_links_refuse_the_start(
    stores: tuple[Cairn, Cairn], part: str, damage: Callable[[Path, Path], None]
):
    """The error names the folder and says what to do. Only the audit trail, which records the start, is changed."""
    store, foreign = stores

    def stored() -> dict[str, str]:
        return {name: digest for name, digest in fingerprint(store.data).items() if not name.startswith("audit/")}

    with put_aside(store.data / part):
        damage(store.data / part, foreign.data / part)
        before = stored()
        output = refused(store)
        assert stored() == before, "the start rewrote a damaged store"
        error = next(line for line in output.splitlines() if line.startswith("cairn:"))
        assert str(store.data / "sharing") in error and "Restore the folder" in error, error


def lose_a_slice(content: dict) -> None:
    """Declares one slice fewer than exist."""
    content["slices"] -= 1


def invent_a_slice(content: dict) -> None:
    """Declares one slice more than exist."""
    content["slices"] += 1


def change_identity(content: dict) -> None:
    """Replaces the store ID."""
    content["store_id"] = "00" * 16


def add_a_field(content: dict) -> None:
    """Adds an unknown field."""
    content["compressed"] = True


@pytest.mark.parametrize("change", [lose_a_slice, invent_a_slice, change_identity, add_a_field])
def test_a_changed_superblock_refuses_the_start(stores: tuple[Cairn, Cairn], change: Callable[[dict], None]):
    """If the superblock does not match the store, the server does not guess."""
    store, _ = stores
    path = store.data / "superblock.json"
    with put_aside(path):
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        before = fingerprint(store.data)
        refused(store)
        assert fingerprint(store.data) == before, "the start rewrote a store with an invalid superblock"


def test_the_superblock_of_another_store_refuses_the_start(stores: tuple[Cairn, Cairn]):
    """The master key is that of the other store too, so that only the slices do not match."""
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
        assert fingerprint(store.data) == before, "the start rewrote a store with a foreign superblock"
