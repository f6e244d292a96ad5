"""One large file in a single PUT and in parts, out again, and the server's memory while it streams.

300 MB by default; CAIRN_LARGE_BYTES=4500000000 makes it the file of over 4 GiB that a user would bring.
"""

import hashlib
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.server import Cairn

SIZE_BYTES = int(os.environ.get("CAIRN_LARGE_BYTES", "300000001"))
CHUNK_BYTES = 1 << 22
CACHE_BYTES = 16 << 20
# Upload and read-ahead buffers, and what the allocator holds on to.
GROWTH_BYTES_MAX = 160 << 20
COMMANDS = {
    "s5cmd": (
        ["s5cmd", "--retry-count", "0", "cp", "--part-size", "5120", "--concurrency", "1", "{file}", "s3://big/k"],
        ["s5cmd", "--retry-count", "0", "cp", "--concurrency", "1", "s3://big/k", "{out}"],
    ),
    # Five parts of 50 MiB at a time, and as many ranges on the way back.
    "s5cmd in parts": (
        ["s5cmd", "--retry-count", "0", "cp", "{file}", "s3://big/k"], ["s5cmd", "--retry-count", "0", "cp", "s3://big/k", "{out}"],
    ),
    "rclone": (
        ["rclone", "--retries", "1", "copyto", "--s3-upload-cutoff", "5G", "--multi-thread-cutoff", "5G", "{file}", ":s3:big/k"],
        ["rclone", "--retries", "1", "copyto", ":s3:big/k", "{out}"],
    ),
}


@pytest.fixture(scope="module")
def large_file(run_folder: Path) -> Iterator[tuple[Path, str]]:
    """A file of random bytes and its SHA-256."""
    path, digest, rng = run_folder / "large", hashlib.sha256(), random.Random(9)
    with path.open("wb") as file:
        for begin in range(0, SIZE_BYTES, CHUNK_BYTES):
            chunk = rng.randbytes(min(CHUNK_BYTES, SIZE_BYTES - begin))
            digest.update(chunk)
            file.write(chunk)
    yield path, digest.hexdigest()
    path.unlink()


def peak_memory(store: Cairn) -> int:
    """The most memory that the process has held so far, in bytes."""
    status = Path(f"/proc/{store.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


@pytest.mark.parametrize("client", COMMANDS)
def test_a_large_file_streams_through(
    make_store: Callable[..., Cairn], command_for, large_file: tuple[Path, str], run_folder: Path, client: str
):
    """Byte for byte, also after kill -9, and the server does not gather it in memory."""
    store = make_store(SERVICE_STORAGE_CACHE_BYTES=str(CACHE_BYTES)).start()
    store.s3.create_bucket("big")
    command, (file, digest), out = command_for(store), large_file, run_folder / f"large-{client}"
    copy_in, copy_out = ([part.format(file=file, out=out) for part in parts] for parts in COMMANDS[client])
    before = peak_memory(store)
    command.must(*copy_in)
    assert peak_memory(store) - before < GROWTH_BYTES_MAX + CACHE_BYTES
    store.kill()
    store.start()
    before = peak_memory(store)
    command.must(*copy_out)
    assert peak_memory(store) - before < GROWTH_BYTES_MAX + CACHE_BYTES
    with out.open("rb") as copied:
        assert hashlib.file_digest(copied, "sha256").hexdigest() == digest
    out.unlink()
