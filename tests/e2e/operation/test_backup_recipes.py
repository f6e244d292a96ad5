"""The recipes for `cairn backup -- COMMAND`, with writers, and a full disk."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.backups import Writers, back_up, check_store, copied_store, put_metadata_over
from harness.disks import SmallDisk, Unavailable
from harness.management import expect
from harness.server import Cairn
from harness.wait import until

BUCKET = "recipes"
MIB = 1 << 20


def copy_with_writers(store: Cairn, copying: str, restoring: str, folder: Path) -> None:
    """Backs up with a shell command while clients write, restores with another one, and checks the result."""
    store.start()
    store.s3.create_bucket(BUCKET)
    copy = copied_store(store, folder)
    environment = {**os.environ, "COPY": str(copy.data), "KEPT": str(folder / "kept")}
    with Writers(store, BUCKET) as writers:
        until(lambda: len(writers.written) > 100, "writes")
        for _ in range(2):
            acknowledged = dict(writers.written)
            shutil.rmtree(copy.data, ignore_errors=True)
            done = back_up(store, "--", "sh", "-euc", copying, environment=environment)
            assert done.returncode == 0, done
            last = dict(writers.written)
    subprocess.run(["sh", "-euc", restoring], env={**environment, "CAIRN_DATA_DIR": str(store.data)}, check=True)
    put_metadata_over(copy.data, copy.data / "backup")
    copy.start()
    try:
        check_store(copy, BUCKET, acknowledged, last)
    finally:
        copy.kill()


def test_rsync(make_store, run_folder: Path, tmp_path: Path):
    """The second run brings the first copy up to date."""
    copy_with_writers(make_store(), 'rsync -aS "$CAIRN_DATA_DIR/" "$KEPT"', 'cp -a --sparse=always "$KEPT" "$COPY"', tmp_path)


def test_restic(make_store, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The repository has both snapshots; the last one is restored."""
    monkeypatch.setenv("RESTIC_PASSWORD", "r")
    monkeypatch.setenv("RESTIC_REPOSITORY", str(tmp_path / "repository"))
    monkeypatch.setenv("RESTIC_CACHE_DIR", str(tmp_path / "cache"))
    subprocess.run(["restic", "init"], check=True, stdout=subprocess.DEVNULL)
    restoring = 'restic restore latest --target "$KEPT" && mv "$KEPT$CAIRN_DATA_DIR" "$COPY"'
    copy_with_writers(make_store(), 'restic backup "$CAIRN_DATA_DIR"', restoring, tmp_path)


@pytest.mark.may_skip(reason="no registry that ./test installs from has Kopia")
def test_kopia(make_store, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The repository has both snapshots; the last one is restored."""
    if shutil.which("kopia") is None:
        pytest.skip("kopia is not installed")
    monkeypatch.setenv("KOPIA_PASSWORD", "k")
    monkeypatch.setenv("KOPIA_CONFIG_PATH", str(tmp_path / "kopia.config"))
    monkeypatch.setenv("KOPIA_CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setenv("KOPIA_LOG_DIR", str(tmp_path / "log"))
    repository = tmp_path / "repository"
    repository.mkdir()
    subprocess.run(["kopia", "repository", "create", "filesystem", "--path", str(repository)], check=True, stdout=subprocess.DEVNULL)
    restoring = 'kopia snapshot restore --snapshot-time latest --write-sparse-files "$CAIRN_DATA_DIR" "$COPY"'
    copy_with_writers(make_store(), 'kopia snapshot create "$CAIRN_DATA_DIR"', restoring, tmp_path)


@pytest.fixture(params=["xfs", "btrfs"])
def reflink_disk(request: pytest.FixtureRequest, run_folder: Path) -> Iterator[Path]:
    """A disk on which files can share blocks."""
    try:
        disk = SmallDisk(run_folder / f"reflink-{request.param}", 3 << 30, request.param)
    except (Unavailable, RuntimeError) as missing:
        pytest.skip(f"no disk is made on this machine: {missing}")
    try:
        yield disk.folder
    finally:
        disk.close()


@pytest.mark.may_skip(reason="XFS and btrfs are parts of the kernel, so ./test cannot install them")
def test_reflink(reflink_disk: Path, make_store):
    """The copy takes an instant, and no space of its own."""
    store = make_store()
    store.data = reflink_disk / "data"
    try:
        copy_with_writers(store, 'cp -a --reflink=always "$CAIRN_DATA_DIR" "$COPY"', "true", reflink_disk / "copied")
    finally:
        store.kill()


def test_hold_ends_before_the_disk_is_full(make_store):
    """Clients overwrite until the kept space is needed. No write is refused, and the backup fails with the reason."""
    store = make_store(SERVICE_STORAGE_RESERVE_BYTES="16MiB")
    try:
        disk = SmallDisk(store.folder / "disk", 1024 * MIB)
    except Unavailable as missing:
        pytest.skip(f"no disk is filled on this machine: {missing}")
    store.data = disk.folder / "data"
    try:
        store.start()
        store.s3.create_bucket(BUCKET)
        body = os.urandom(4 * MIB)
        backup = subprocess.Popen(
            [str(store.binary), "backup", "--", "sleep", "600"], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token, "SERVICE_MANAGEMENT_ENDPOINT": store.management},
        )
        until(lambda: expect(store.admin.get("/storage/backup"), 200)["state"] == "held", "the store is held")
        # At most five times the disk, and not much more after the hold has ended. The store itself needs 400 MB at most.
        further = 200
        for number in range(1280):
            assert store.s3.put(BUCKET, f"{number % 50}", body).status == 200, number
            further -= backup.poll() is not None
            if further == 0:
                break
        assert backup.wait(60) == 1
        assert "ended early: the disk became full" in backup.stderr.read()
        ended = expect(store.admin.get("/storage/backup"), 200)
        assert ended["state"] == "lost" and ended["held_bytes"] > 100 * MIB, ended
        until(lambda: not (store.data / "backup").exists(), "the copy of the metadata is removed")
        for number in range(50):
            assert store.s3.get(BUCKET, f"{number}").body == body
    finally:
        store.kill()
        disk.close()
