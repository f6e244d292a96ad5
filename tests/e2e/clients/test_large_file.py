"""One large file in a single PUT and in parts, out again, and the server's memory while it streams.

300 MB in parts and 120 MB in one piece by default; CAIRN_LARGE_BYTES=4500000000 makes it the file of over 4 GiB that a user would
bring.
"""

import hashlib
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.server import Cairn

CHUNK_BYTES = 1 << 22
CACHE_BYTES = 16 << 20


@dataclass(frozen=True)
class Copy:
    """The commands by which a client copies the file in and out."""

    size_bytes: int
    # Upload and read-ahead buffers, and what the allocator holds on to; far less than the file.
    growth_bytes_max: int
    copy_in: list[str]
    copy_out: list[str]


ONE_PIECE = (120_000_001, 64 << 20)
COPIES = {
    "s5cmd": Copy(
        *ONE_PIECE,
        ["s5cmd", "--retry-count", "0", "cp", "--part-size", "5120", "--concurrency", "1", "{file}", "s3://big/k"],
        ["s5cmd", "--retry-count", "0", "cp", "--concurrency", "1", "s3://big/k", "{out}"],
    ),
    # Five parts of 50 MiB at a time, and as many ranges on the way back.
    "s5cmd in parts": Copy(
        300_000_001, 160 << 20,
        ["s5cmd", "--retry-count", "0", "cp", "{file}", "s3://big/k"], ["s5cmd", "--retry-count", "0", "cp", "s3://big/k", "{out}"],
    ),
    "rclone": Copy(
        *ONE_PIECE,
        ["rclone", "--retries", "1", "copyto", "--s3-upload-cutoff", "5G", "--multi-thread-cutoff", "5G", "{file}", ":s3:big/k"],
        ["rclone", "--retries", "1", "copyto", ":s3:big/k", "{out}"],
    ),
}


def write_random(path: Path, size_bytes: int) -> str:
    """Writes a file of random bytes; its SHA-256."""
    digest, rng = hashlib.sha256(), random.Random(9)
    with path.open("wb") as file:
        for begin in range(0, size_bytes, CHUNK_BYTES):
            chunk = rng.randbytes(min(CHUNK_BYTES, size_bytes - begin))
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def peak_memory(store: Cairn) -> int:
    """The most memory that the process has held so far, in bytes."""
    status = Path(f"/proc/{store.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


@pytest.mark.parametrize("client", COPIES)
def test_a_large_file_streams_through(make_store: Callable[..., Cairn], command_for, run_folder: Path, client: str):
    """Byte for byte, also after kill -9, and the server does not gather it in memory."""
    store = make_store(SERVICE_STORAGE_CACHE_BYTES=str(CACHE_BYTES)).start()
    store.s3.create_bucket("big")
    command, copy, file, out = command_for(store), COPIES[client], run_folder / "large", run_folder / "large-out"
    digest = write_random(file, int(os.environ.get("CAIRN_LARGE_BYTES", copy.size_bytes)))
    copy_in, copy_out = ([part.format(file=file, out=out) for part in parts] for parts in (copy.copy_in, copy.copy_out))
    before = peak_memory(store)
    command.must(*copy_in)
    file.unlink()
    assert peak_memory(store) - before < copy.growth_bytes_max + CACHE_BYTES
    store.kill()
    store.start()
    before = peak_memory(store)
    command.must(*copy_out)
    assert peak_memory(store) - before < copy.growth_bytes_max + CACHE_BYTES
    with out.open("rb") as copied:
        assert hashlib.file_digest(copied, "sha256").hexdigest() == digest
    out.unlink()
