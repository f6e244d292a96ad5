"""Hosts unlike the usual one: the server works there, or the start ends with an error that says what to do."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli import Cli
from harness.disks import SmallDisk, Unavailable, command
from harness.server import BINARY, WITHOUT_IO_URING, Cairn, outside_the_checkout

END_SECONDS = 60
# No other test has this user: the kernel counts locked memory by user.
USER = 54321
AS_USER = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
)
# What distributions allow.
MEMLOCK_BYTES = 8 << 20
# More than that much locked memory is enough for.
MANY_EXECUTORS = 64
DISK_BYTES = 320 << 20
MakeStore = Callable[..., Cairn]


def need_root() -> None:
    """Skips the test for other users."""
    if os.geteuid() != 0:
        pytest.skip("needs root")


def refused(store: Cairn, *prefix: str) -> str:
    """Starts the server, asserts that it exits with an error by itself and makes nothing, and returns its output."""
    before = sorted(store.data.rglob("*"))
    assert store.spawn(list(prefix)).wait(END_SECONDS) == 1, store.output()
    assert "panicked" not in store.output()
    assert sorted(store.data.rglob("*")) == before, "the start was refused, but has changed the folder"
    return store.output()


@pytest.fixture
def store_of_user(make_store: MakeStore) -> Iterator[Cairn]:
    """Returns a store whose files an unprivileged user can reach."""
    need_root()
    with outside_the_checkout(make_store(), USER) as store:
        yield store


def put_and_get(store: Cairn) -> None:
    """Creates a bucket, and objects with and without a place in the volumes."""
    store.s3.create_bucket("kept")
    for size in (0, 100, 1_000_000):
        store.s3.put("kept", f"k{size}", b"x" * size)
        assert store.s3.get("kept", f"k{size}").body == b"x" * size


# Limits of the process


def test_locked_memory_bounds_the_number_of_executors(store_of_user: Cairn):
    """On a host with many cores, the usual limit was not enough for all, and the start failed after it had made a store."""
    store = store_of_user
    store.extra["SERVICE_SERVER_EXECUTORS"] = str(MANY_EXECUTORS)
    limit = ("prlimit", f"--memlock={MEMLOCK_BYTES}", *AS_USER)
    output = refused(store, *limit)
    possible = int(output.partition("set server.executors to ")[2].partition(" ")[0])
    assert 1 < possible < MANY_EXECUTORS and "LimitMEMLOCK" in output, output
    store.extra["SERVICE_SERVER_EXECUTORS"] = str(possible)
    store.start(list(limit))
    store.wait_output(f"executors={possible}")
    put_and_get(store)


def test_too_few_open_files_are_refused_before_a_store_is_made(make_store: MakeStore):
    """Each executor opens each volume. The server started, and then accepted no connection."""
    store = make_store(SERVICE_SERVER_EXECUTORS="4", SERVICE_STORAGE_SLICES="16")
    output = refused(store, "prlimit", "--nofile=256")
    assert "limit of 256 on open files" in output and "LimitNOFILE" in output, output
    least = int(output.partition("need at least ")[2].partition(":")[0])
    store.log.unlink()
    store.start(["prlimit", f"--nofile={least}"])
    put_and_get(store)
    store.wait_output("server.connections_max is lowered")


def test_the_limit_on_open_files_is_raised_before_the_store_is_opened(make_store: MakeStore):
    """The usual soft limit is low for programs that use select(2)."""
    store = make_store(SERVICE_SERVER_EXECUTORS="4", SERVICE_STORAGE_SLICES="16").start(["prlimit", "--nofile=128:4096"])
    put_and_get(store)


def test_too_little_address_space_is_refused_before_a_store_is_made(make_store: MakeStore):
    """Metadata is mapped. The maps were made smaller until they fitted, and then nothing was left for the next start."""
    output = refused(make_store(), "prlimit", f"--as={64 << 30}")
    assert "limit on address space" in output and "ulimit -v unlimited" in output, output


def test_a_limit_on_the_size_of_files_is_named(make_store: MakeStore):
    """The smallest volume does not fit."""
    store = make_store()
    assert store.spawn(["prlimit", f"--fsize={1 << 20}"]).wait(END_SECONDS) == 1
    assert "ulimit -f unlimited" in store.output()


# What the process sees of the host


@pytest.mark.parametrize("hidden", ["/sys", "/proc", "/dev"])
def test_the_server_runs_without_a_view_of_the_host(make_store: MakeStore, hidden: str):
    """Sandboxes hide these folders. Without /sys, the executors panicked."""
    need_root()
    store = make_store()
    store.start(["unshare", "--mount", "--propagation", "slave", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh"])
    put_and_get(store)
    assert store.stop() == 0 and "panic" not in store.output()


def test_the_server_runs_in_a_sandbox_without_preallocation(make_store: MakeStore):
    """A seccomp filter answers EPERM to fallocate(2)."""
    if platform.machine() != "x86_64":
        pytest.skip("the system call has another number")
    store = make_store(REFUSED_CALL="285").start([sys.executable, str(WITHOUT_IO_URING)])
    put_and_get(store)
    assert store.admin.get("/storage/inspect").json()["findings"] == []
    assert store.stop() == 0


# The disk


def test_a_missing_disk_is_no_new_store_if_none_may_be_created(make_store: MakeStore):
    """The mount point of a disk that is not mounted is an empty folder."""
    store = make_store().start()
    store.wait_output("held no store: a new, empty one was created")
    put_and_get(store)
    assert store.stop() == 0
    mounted, unmounted = store.data, store.data.with_name("unmounted")
    unmounted.mkdir()
    store.extra["SERVICE_STORAGE_CREATE_STORE"] = "false"
    store.data = unmounted
    output = refused(store)
    assert f"{unmounted} holds no store, and storage.create_store is false" in output and "mount it" in output, output
    checked = subprocess.run([BINARY, "check"], env=store.environment(), capture_output=True, text=True, timeout=END_SECONDS)
    assert checked.returncode == 1 and "storage.create_store is false" in checked.stdout, checked
    store.data = mounted
    store.log.unlink()
    store.start()
    assert store.s3.get("kept", "k100").body == b"x" * 100
    assert store.stop() == 0
    assert "held no store" not in store.output()


def test_a_missing_part_of_the_store_is_named(make_store: MakeStore):
    """Here the folder of the buckets."""
    store = make_store().start()
    assert store.stop() == 0
    shutil.rmtree(store.data / "control")
    store.spawn()
    assert store.process.wait(END_SECONDS) == 1
    assert "restore the data folder from a backup" in store.output()


def test_a_read_only_disk_is_named(make_store: MakeStore, tmp_path: Path):
    """At the start, and by `cairn check`, which named direct I/O and the owner. What only reads works: it opened locks and logs to write."""
    try:
        disk = SmallDisk(tmp_path / "disk", DISK_BYTES)
    except Unavailable as missing:
        pytest.skip(f"no disk is mounted on this machine: {missing}")
    store = make_store(SERVICE_STORAGE_RESERVE_BYTES="16MiB")
    store.data = disk.folder / "data"
    try:
        store.start()
        backups = str(disk.folder / "backups")
        Cli(store.management, store.secrets.system_token).text("backup", "to", backups)
        # A commit log with records: a store that was stopped has none to look at.
        store.s3.create_bucket("kept")
        store.s3.put("kept", "k", b"x" * 100)
        store.kill()
        command("mount", "-o", "remount,ro", disk.folder)
        assert "mount the file system writable" in refused(store)
        run = lambda *words: subprocess.run([BINARY, *words], env=store.environment(), capture_output=True, text=True, timeout=END_SECONDS)
        checked = run("check", "--json")
        findings = {found["name"]: found for found in json.loads(checked.stdout)["checks"]}
        failed = {name: found["mend"] for name, found in findings.items() if found["verdict"] == "failed"}
        assert checked.returncode == 1 and failed.keys() == {"data folder", "direct I/O"}, checked.stdout
        assert all("mount the file system writable" in fix and "chown" not in fix for fix in failed.values()), failed
        examined = (
            ("storage", "discard-log", "--data-dir", str(store.data)), ("storage", "upgrade", "--dry-run", "--data-dir", str(store.data)),
            ("backup", "list", backups), ("backup", "verify", backups),
        )
        locks = [store.data / "lock", Path(backups) / "lock"]
        for number, are_locked in enumerate((True, False)):
            assert [lock.exists() for lock in locks] == 2 * [are_locked]
            for words in (*examined, ("backup", "restore", backups, "--data-dir", str(tmp_path / f"restored-{number}"))):
                done = run(*words)
                assert done.returncode == 0, (words, done.stderr)
            if are_locked:
                command("mount", "-o", "remount,rw", disk.folder)
                for lock in locks:
                    lock.unlink()
                command("mount", "-o", "remount,ro", disk.folder)
    finally:
        store.kill()
        disk.close()
