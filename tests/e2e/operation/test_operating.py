"""Runs docs/operating.md: backup and restore, key changes, migrations, with comparisons of all data.

Only addresses and directories are replaced. `sudo` and `systemctl` are small scripts that work for one server.
"""

import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.disks import LogicalVolume, SmallDisk, Unavailable
from harness.follower import Shell, blocks_of
from harness.s3 import S3, object_target
from harness.server import LOOPBACK, REPOSITORY, Cairn, Secrets, clean_environment, free_ports
from harness.sigv4 import Credential
from harness.wait import until
from harness.wire import WireError

PAGE = REPOSITORY / "docs" / "operating.md"
RETRY_SECONDS = 0.02
EXPORTS = ["SERVICE_MANAGEMENT_TOKEN", "RCLONE_CONFIG", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
OBJECTS = {"a b/ü+%.txt": b"text", "large": random.Random(1).randbytes(9_000_000), "small": b""}
SUDO = """#!/bin/sh
[ "$1" = -u ] && shift 2
[ "$1" = --preserve-env=SERVICE_MANAGEMENT_TOKEN ] && shift
exec "$@"
"""
# Runs the program as the systemd unit does, with the secrets from the package's files.
AS_UNIT = """#!/bin/sh
credentials={etc}/credentials
unset SERVICE_MANAGEMENT_TOKEN
export SERVICE_CREDENTIAL_MASTER_KEY_FILE=$credentials/master-key SERVICE_ROOT_ACCESS_KEY_FILE=$credentials/root-access-key
export SERVICE_ROOT_SECRET_KEY_FILE=$credentials/root-secret-key SERVICE_MANAGEMENT_SYSTEM_TOKEN_FILE=$credentials/management-system-token
export SERVICE_DATA_DIR={data} SERVICE_S3_BIND={s3} SERVICE_API_BIND={api} SERVICE_CONSOLE_BIND={console}
exec cairn "$@"
"""
# Starts and stops the server as systemctl does. The command returns when the server is ready.
SYSTEMCTL = """#!/usr/bin/env bash
set -euo pipefail
case "$1 $2" in
    "start cairn")
        as-unit serve >> {folder}/server.log 2>&1 &
        echo $! > {folder}/pid
        for _ in $(seq 300); do
            if env -u SERVICE_MANAGEMENT_TOKEN cairn status --endpoint http://{api} > /dev/null 2>&1; then exit 0; fi
            kill -0 "$(cat {folder}/pid)"
            sleep 0.1
        done
        exit 1 ;;
    "stop cairn")
        pid=$(cat {folder}/pid)
        kill "$pid"
        tail --pid="$pid" -f /dev/null ;;
    "restart cairn")
        "$0" stop cairn
        exec "$0" start cairn ;;
    *)  exit 64 ;;
esac
"""


class Operator(Shell):
    """The shell of the documentation page on a machine with the package."""

    def __init__(self, folder: Path, other: Cairn | None = None):
        super().__init__(folder, EXPORTS)
        self.secrets = Secrets()
        self.s3_port, self.api_port, console_port = free_ports(3)
        self.etc, self.data = folder / "etc" / "cairn", folder / "lib" / "cairn"
        places = {
            "etc": self.etc, "data": self.data, "folder": folder, "s3": f"{LOOPBACK}:{self.s3_port}",
            "api": f"{LOOPBACK}:{self.api_port}", "console": f"{LOOPBACK}:{console_port}",
        }
        for name, script in (("sudo", SUDO), ("systemctl", SYSTEMCTL), ("as-unit", AS_UNIT)):
            for place, path in places.items():
                script = script.replace("{" + place + "}", str(path))
            (self.tools / name).write_text(script)
            (self.tools / name).chmod(0o755)
        (self.etc / "credentials").mkdir(parents=True)
        self.data.parent.mkdir()
        (folder / "backups").mkdir()
        for name, secret in (
            ("master-key", self.secrets.master_key), ("root-access-key", self.secrets.root_access_key),
            ("root-secret-key", self.secrets.root_secret_key), ("management-system-token", self.secrets.system_token),
        ):
            (self.etc / "credentials" / name).write_text(secret + "\n")
        self.replaced = {
            "/etc/cairn": str(self.etc), "/var/lib/cairn": str(self.data), "/var/backups": str(folder / "backups"),
            "/usr/lib/cairn/check": "as-unit check", "http://127.0.0.1:7600": f"http://{LOOPBACK}:{self.s3_port}",
        }
        if other is not None:
            self.replaced |= {
                "http://other.example.com:9000": other.endpoint, "OTHERKEY": other.secrets.root_access_key,
                "othersecret": other.secrets.root_secret_key,
            }

    def own(self, text: str) -> str:
        """Replaces the addresses and directories of the page with those of this run."""
        for theirs, ours in self.replaced.items():
            text = text.replace(theirs, ours)
        text = text.replace("cairn backup to ", f"cairn backup to --endpoint http://{LOOPBACK}:{self.api_port} ")
        lines = []
        for line in text.splitlines():
            asks = ("cairn status", "cairn bucket", "cairn quota", "cairn service-account", "cairn token", "cairn audit", "cairn verify", "cairn storage")
            if line.startswith(asks) and "compact" not in line:
                command, redirection, target = line.partition(" > ")
                line = f"{command} --endpoint http://{LOOPBACK}:{self.api_port}{redirection}{target}"
            lines.append(line.replace("$(cairn service-account show web ", f"$(cairn service-account show web --endpoint http://{LOOPBACK}:{self.api_port} "))
        return "\n".join(lines) + "\n"

    @property
    def s3(self) -> S3:
        """Returns a data plane client with the current root credential."""
        keys = [(self.etc / "credentials" / name).read_text().strip() for name in ("root-access-key", "root-secret-key")]
        return S3(LOOPBACK, self.s3_port, Credential(*keys))

    def stop(self) -> None:
        """Stops the server if it runs."""
        if (self.folder / "pid").exists():
            subprocess.run([self.tools / "systemctl", "stop", "cairn"], env=self.environment, check=False, timeout=60)


@pytest.fixture
def operator(run_folder: Path) -> Iterator[Callable[..., Operator]]:
    """Creates machines and stops their servers after the test."""
    made: list[Operator] = []

    def make(folder: Path, other: Cairn | None = None) -> Operator:
        made.append(Operator(folder, other))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def fill_other(other: Cairn) -> None:
    """Writes the objects to migrate: unusual names, a type, metadata, and a noncurrent version."""
    s3 = other.s3
    s3.create_bucket("pictures")
    s3.request("PUT", "/pictures?versioning=", body=b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
    s3.put("pictures", "small", b"an old version")
    # The names that rclone gives to versions contain the time in seconds.
    wait_for_another_second()
    for key, body in OBJECTS.items():
        s3.put("pictures", key, body, [("Content-Type", "image/x-test"), ("x-amz-meta-colour", "green"), ("x-amz-meta-mtime", "1600000000.5")])


def assert_moved(s3: S3, bucket: str) -> None:
    """Asserts content, type, metadata and modification time of every object."""
    assert set(s3.list_all(bucket)) >= set(OBJECTS)
    for key, body in OBJECTS.items():
        got = s3.get(bucket, key)
        assert (got.body, got.get("content-type"), got.get("x-amz-meta-colour"), got.get("x-amz-meta-mtime")) == (body, "image/x-test", "green", "1600000000.5")


def test_every_block_of_the_operating_page_works(operator, make_store, run_folder: Path):
    """The blocks run in order. An object that was put after the backup is gone after the restore; the rest is intact."""
    other = make_store().start()
    fill_other(other)
    machine = operator(run_folder / "operating", other)
    machine.run("systemctl start cairn")
    blocks = blocks_of(PAGE)
    assert len(blocks) >= 14
    for language, name, text in blocks:
        if name in ("btrfs", "lvm", "mount-point", "mount-point-owner"):
            continue
        text = machine.own(text)
        if "cairn backup to" in text:
            for key, body in OBJECTS.items():
                machine.s3.put("photos", key, body)
        if "backups/cairn-stopped-$(date" in text:
            # An earlier, smaller backup: a second one into the same directory must not end up inside the first.
            machine.run(text)
            wait_for_another_second()
            for key, body in OBJECTS.items():
                machine.s3.put("photos", key, body)
        is_restore = "cairn-before" in text or "cairn backup restore" in text
        if is_restore:
            machine.s3.put("photos", "later", b"not in the backup")
        if name:
            (machine.folder / name).write_text(text)
        else:
            assert language == "sh", language
            machine.run(text)
        if is_restore:
            assert set(machine.s3.list_all("photos")) == set(OBJECTS)
            assert all(machine.s3.get("photos", key).body == body for key, body in OBJECTS.items())
    assert_moved(machine.s3, "pictures")
    assert_moved(other.s3, "pictures-back")
    assert_history_is_kept(machine, other)
    credentials = json.loads(machine.run(machine.own("cairn service-account show web --json")))["credentials"]
    assert len(credentials) == 1
    assert set(machine.s3.list_all("photos")) == set(OBJECTS), "objects differ after the key change and the compaction"


def assert_history_is_kept(machine: Operator, other: Cairn) -> None:
    """Asserts that a second run of the copy of old versions adds to what the first one has copied.

    With `--s3-versions` rclone took the copied names for versions of the destination, and damaged them.
    """
    def history() -> dict[str, bytes]:
        return {key: machine.s3.get("pictures-history", key).body for key in machine.s3.list_all("pictures-history")}

    (copying,) = [text for _, _, text in blocks_of(PAGE) if "pictures-history" in text]
    first = history()
    (old,) = [key for key in first if key.startswith("small-v")]
    assert first[old] == b"an old version"
    machine.run(machine.own(copying))
    assert history() == first, "there was nothing to copy"
    other.s3.put("pictures", "small", b"a newer version")
    machine.run(machine.own(copying))
    second = history()
    assert second["small"] == b"a newer version"
    kept = {key: body for key, body in first.items() if key != "small"}
    assert kept.items() <= second.items() and len(second) == len(first) + 1


def wait_for_another_second() -> None:
    """Waits until the clock shows another second, because names of backups and of versions contain the time in seconds."""
    begun = int(time.time())
    while int(time.time()) == begun:
        time.sleep(0.02)


def test_restore_onto_a_mount_point_works(operator, run_folder: Path):
    """A mount point cannot be renamed, so the page gives other commands in place of `mv`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    machine = operator(run_folder / "operating-mounted")
    machine.data.mkdir(mode=0o700)
    subprocess.run(["mount", "--bind", machine.data, machine.data], check=True)
    try:
        machine.run("systemctl start cairn")
        machine.s3.create_bucket("photos")
        for key, body in OBJECTS.items():
            machine.s3.put("photos", key, body)
        texts = [text for _, name, text in blocks_of(PAGE) if name != "btrfs"]
        (backup,) = [text for text in texts if "backups/cairn-stopped-$(date" in text]
        (restore,) = [text for text in texts if "cairn-before" in text]
        (to_folder,) = [text for text in texts if "cairn backup to" in text]
        (from_folder,) = [text for text in texts if "cairn backup restore" in text]
        (moving,) = [text for _, name, text in blocks_of(PAGE) if name == "mount-point"]
        (owning,) = [text for _, name, text in blocks_of(PAGE) if name == "mount-point-owner"]
        machine.run(machine.own(backup))
        machine.s3.put("photos", "later", b"not in the backup")
        machine.environment["SERVICE_MANAGEMENT_TOKEN"] = machine.secrets.system_token
        (renaming,) = [line for line in restore.splitlines() if line.startswith("sudo mv ")]
        machine.run(machine.own(restore.replace(renaming + "\n", moving)))
        assert {key: machine.s3.get("photos", key).body for key in machine.s3.list_all("photos")} == OBJECTS
        machine.run(f"rm -r {machine.data}/before")
        # The same from a folder of backups: "has files: choose an empty folder" was all that it said.
        machine.run(machine.own(to_folder))
        machine.s3.put("photos", "later", b"not in the backup")
        (machine.data / "lost+found").mkdir()
        (renaming,) = [line for line in from_folder.splitlines() if line.startswith("sudo mv ")]
        (owner,) = [line for line in from_folder.splitlines() if "chown" in line]
        machine.run(machine.own(from_folder.replace(renaming + "\n", moving).replace(owner + "\n", owning)))
        assert {key: machine.s3.get("photos", key).body for key in machine.s3.list_all("photos")} == OBJECTS
        machine.run(f"rm -r {machine.data}/before")
    finally:
        machine.stop()
        subprocess.run(["umount", machine.data], check=True)


def test_migration_from_another_server_keeps_objects_and_metadata(operator, run_folder: Path, tmp_path: Path):
    """`rclone serve s3` is the other server."""
    for key, body in OBJECTS.items():
        path = tmp_path / "served" / "pictures" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    (port,) = free_ports(1)
    machine = operator(run_folder / "operating-rclone")
    machine.replaced |= {"http://other.example.com:9000": f"http://{LOOPBACK}:{port}"}
    machine.run("systemctl start cairn")
    serve = ["rclone", "serve", "s3", "--addr", f"{LOOPBACK}:{port}", "--auth-key", "OTHERKEY,othersecret", str(tmp_path / "served")]
    with (tmp_path / "rclone.log").open("wb") as log:
        serving = subprocess.Popen(serve, env=clean_environment() | {"HOME": str(tmp_path)}, stdout=log, stderr=log)
    try:
        moving = [block for block in blocks_of(PAGE) if block[1] == "rclone.conf" or "other:pictures cairn:pictures" in block[2]]
        (machine.folder / "rclone.conf").write_text(machine.own(moving[0][2]))
        machine.run(f"until (exec 3<>/dev/tcp/{LOOPBACK}/{port}) 2> /dev/null; do kill -0 {serving.pid}; sleep 0.05; done")
        machine.run(machine.own(moving[1][2]))
    finally:
        serving.terminate()
        serving.wait(30)
    assert {key: machine.s3.get("pictures", key).body for key in OBJECTS} == OBJECTS


@pytest.fixture
def btrfs(run_folder: Path) -> Iterator[Path]:
    """Mounts a btrfs file system on a loop device."""
    try:
        disk = SmallDisk(run_folder / "operating-btrfs", 3 << 30, "btrfs")
    except (Unavailable, RuntimeError) as error:
        pytest.skip(f"this machine cannot mount btrfs: {error}")
    yield disk.folder
    disk.close()


def snapshot_under_load(machine: Operator, block: str, stops: bool = False) -> dict[str, bytes]:
    """Four clients write while a block of the page makes a copy. Returns what was acknowledged before.

    If the block stops the server, they repeat what was not answered. They go on until more is written after the block.
    """
    machine.run("systemctl start cairn")
    machine.s3.create_bucket("photos")
    answered: dict[str, bytes] = {}
    refused: list[tuple] = []
    stop, enough = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"{writer}/{number}"
            body = random.Random(key).randbytes(random.Random(number).choice([10, 30_000, 400_000]))
            try:
                response = machine.s3.request("PUT", object_target("photos", key), body=body)
            except (OSError, WireError):
                if stops:
                    time.sleep(RETRY_SECONDS)
                    continue
                raise
            if stops and response.status == 503:
                continue
            if response.status != 200:
                refused.append((key, response.status, response.body))
                return
            answered[key] = body
            number += 1
            if len(answered) > 40:
                enough.set()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    try:
        assert enough.wait(60)
        before = dict(answered)
        machine.run(machine.own(block))
        after = len(answered)
        until(lambda: refused or len(answered) > after + 40, "writes after the copy")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    machine.run("systemctl stop cairn")
    assert len(before) > 40 and refused == []
    return before


def serve_copy(machine: Operator, expected: dict[str, bytes]) -> None:
    """Serves the copy in place of the store, and checks that all of this is there."""
    machine.run(f"cp -aT {machine.folder}/backups/cairn-running-* {machine.data}; systemctl start cairn")
    assert {key: machine.s3.get("photos", key).body for key in expected} == expected
    machine.environment["SERVICE_MANAGEMENT_TOKEN"] = machine.secrets.system_token
    machine.run(machine.own("cairn storage inspect\ncairn verify bucket photos"))


@pytest.mark.may_skip(reason="btrfs is part of the kernel, so ./test cannot install it")
def test_snapshot_under_load_contains_every_acknowledged_write(btrfs: Path, operator):
    """Four clients write while the page's block runs. Then the copy is served."""
    machine = operator(btrfs / "machine")
    subprocess.run(["btrfs", "-q", "subvolume", "create", str(machine.data)], check=True)
    (block,) = [text for _, name, text in blocks_of(PAGE) if name == "btrfs"]
    before = snapshot_under_load(machine, block)
    machine.run(f"mv {machine.data} {machine.data}-before")
    serve_copy(machine, before)


@pytest.fixture(params=["ext4", "xfs"])
def volume(request: pytest.FixtureRequest, run_folder: Path) -> Iterator[LogicalVolume]:
    """A logical volume with a file system."""
    try:
        made = LogicalVolume(run_folder / f"operating-{request.param}-volume", 2 << 30, 4 << 30, request.param)
    except Unavailable as missing:
        pytest.skip(f"this machine has no logical volumes: {missing}")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.may_skip(reason="the device mapper is part of the kernel, so ./test cannot install it")
def test_snapshot_of_a_logical_volume_contains_every_acknowledged_write(volume: LogicalVolume, operator, run_folder: Path):
    """The same with LVM, on the file systems that the page names. The server stops for a moment, and refuses nothing then.

    A server that ran on got EOPNOTSUPP for many reads and writes, from the snapshot to its next start (Linux 6.1).
    """
    machine = operator(volume.folder.parent / "machine")
    machine.environment |= volume.environment
    machine.replaced |= {"/dev/vg0": f"/dev/{volume.group}", "/mnt/cairn-snapshot": f"{machine.folder}/snapshot"}
    volume.folder.chmod(0o700)
    machine.data.mkdir()
    subprocess.run(["mount", "--bind", volume.folder, machine.data], check=True)
    (block,) = [text for _, name, text in blocks_of(PAGE) if name == "lvm"]
    if volume.file_system == "xfs":
        block = block.replace("mount -o ro ", "mount -o ro,nouuid ")
        assert "nouuid" in block
    try:
        before = snapshot_under_load(machine, block, stops=True)
    finally:
        machine.stop()
        subprocess.run(["umount", machine.data], check=True)
    try:
        serve_copy(machine, before)
    finally:
        machine.stop()
