"""Writers during a backup, and what a copy of the store must have."""

import hashlib
import subprocess
import threading
from pathlib import Path

from .cli import Cli
from .management import expect
from .s3 import object_target
from .server import Cairn
from .wire import WireError

KEYS = 40
SIZES = (10, 5_000, 40_000, 300_000)


def content(key: str, number: int) -> bytes:
    """The content of write `number` of a key: it begins with its own description."""
    seed = f"{key} {number} ".encode()
    size = SIZES[number % len(SIZES)]
    return (seed + hashlib.sha256(seed).digest() * (size // 32 + 1))[: size + len(seed)]


def is_deletion(number: int) -> bool:
    """Returns whether write `number` deletes its key."""
    return number % 7 == 6


class Writers:
    """Threads that overwrite and delete objects until they are stopped. Each key belongs to one thread."""

    def __init__(self, store: Cairn, bucket: str, threads: int = 3, may_end: bool = False):
        self.store, self.bucket = store, bucket
        # Whether the server may end meanwhile: then a thread ends at its first unanswered request.
        self.may_end = may_end
        self.stopping = threading.Event()
        self.failures: list[str] = []
        # The number of the last acknowledged write of each key.
        self.written: dict[str, int] = {}
        self.threads = [threading.Thread(target=self._write, args=(number,)) for number in range(threads)]

    def _write(self, thread: int) -> None:
        s3 = self.store.s3
        number = 0
        while not self.stopping.is_set():
            key = f"{thread}/{number % KEYS}"
            try:
                if is_deletion(number):
                    response = s3.request("DELETE", object_target(self.bucket, key))
                else:
                    response = s3.request("PUT", object_target(self.bucket, key), body=content(key, number))
            except (OSError, WireError):
                if self.may_end:
                    return
                raise
            if response.status != (204 if is_deletion(number) else 200):
                self.failures.append(f"{key}: {response.status}")
                return
            self.written[key] = number
            number += 1

    def writes(self) -> int:
        """Returns how many writes of the busiest thread were acknowledged."""
        return max(list(self.written.values()), default=0)

    def __enter__(self) -> "Writers":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert self.failures == []


def cli_of(store: Cairn) -> Cli:
    """The command line with the system token. Commands of the user follow a backup, so the address is in the environment."""
    return Cli(store.management, store.secrets.system_token, SERVICE_MANAGEMENT_ENDPOINT=store.management)


def back_up(
    store: Cairn, *arguments: str, environment: dict[str, str] | None = None, timeout: int = 120
) -> subprocess.CompletedProcess:
    """Runs `cairn backup` to its end."""
    return subprocess.run(
        [str(store.binary), "backup", *arguments], env={**(environment or {}), **cli_of(store).environment()},
        capture_output=True, text=True, timeout=timeout, check=False,
    )


def copied_store(store: Cairn, folder: Path) -> Cairn:
    """A second server with the secrets of a store, for the copy of its data in `folder`/data."""
    copy = Cairn(folder, store.extra, store.binary)
    copy.secrets = store.secrets
    return copy


def put_metadata_over(data: Path, backup: Path) -> None:
    """Puts the metadata of a backup over a copied data folder."""
    subprocess.run(["cp", "-a", f"{backup}/.", f"{data}/"], check=True)


def may_be_deleted(acknowledged: int, last: int) -> bool:
    """Returns whether one of the writes of a key from `acknowledged` to the one after `last` is a deletion."""
    return any(is_deletion(number) for number in range(acknowledged, last + KEYS + 1, KEYS))


def check_store(store: Cairn, bucket: str, acknowledged: dict[str, int], last: dict[str, int]) -> None:
    """Checks that a started store is consistent, and that each key is as one of its writes has left it.

    That is a write from the last one that was acknowledged before the backup began, to the one that followed the last one
    acknowledged when it had ended.
    """
    found = expect(store.admin.get("/storage/inspect?maximum_entries=1000000"), 200)
    assert found["complete"] and found["findings"] == [], found
    verified = expect(store.admin.post(f"/verify/buckets/{bucket}"), 200)
    assert verified["corrupt_count"] == 0, verified
    s3 = store.s3
    for key, number in acknowledged.items():
        response = s3.request("GET", object_target(bucket, key))
        if response.status == 200:
            written_key, written, _ = response.body.split(b" ", 2)
            assert written_key.decode() == key and number + is_deletion(number) <= int(written) <= last[key] + KEYS, (key, number, written)
            assert response.body == content(key, int(written))
        else:
            assert response.status == 404 and may_be_deleted(number, last[key]), (key, number, last[key])
