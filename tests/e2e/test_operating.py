"""Follows docs/operating.md to the letter: backups that are restored, keys that are changed, a move in and out, each compared.

Only addresses and folders are replaced; `sudo` and `systemctl` are small scripts that do their part for one server.
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

from harness.follower import Shell, blocks_of
from harness.s3 import S3
from harness.server import LOOPBACK, REPOSITORY, Cairn, Secrets, clean_environment, free_ports
from harness.sigv4 import Credential

PAGE = REPOSITORY / "docs" / "operating.md"
EXPORTS = ["SERVICE_MANAGEMENT_TOKEN", "RCLONE_CONFIG", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
OBJECTS = {"a b/ü+%.txt": b"text", "large": random.Random(1).randbytes(9_000_000), "small": b""}
SUDO = """#!/bin/sh
[ "$1" = -u ] && shift 2
exec "$@"
"""
# Runs the program with what the unit gives it: secrets from the files of the package.
AS_UNIT = """#!/bin/sh
credentials={etc}/credentials
unset SERVICE_MANAGEMENT_TOKEN
export SERVICE_CREDENTIAL_MASTER_KEY_FILE=$credentials/master-key SERVICE_ROOT_ACCESS_KEY_FILE=$credentials/root-access-key
export SERVICE_ROOT_SECRET_KEY_FILE=$credentials/root-secret-key SERVICE_MANAGEMENT_SYSTEM_TOKEN_FILE=$credentials/management-system-token
export SERVICE_DATA_DIR={data} SERVICE_S3_BIND={s3} SERVICE_API_BIND={api} SERVICE_CONSOLE_BIND={console}
exec cairn "$@"
"""
# Starts and stops the one server as its unit would; it is ready when the command ends.
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
    """The page's shell on a machine with the package."""

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
        """The text with the addresses and folders of this run; the command line is told where its server is."""
        for theirs, ours in self.replaced.items():
            text = text.replace(theirs, ours)
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
        """The data plane under the root credential as it is now."""
        keys = [(self.etc / "credentials" / name).read_text().strip() for name in ("root-access-key", "root-secret-key")]
        return S3(LOOPBACK, self.s3_port, Credential(*keys))

    def stop(self) -> None:
        """End the server if there is one."""
        if (self.folder / "pid").exists():
            subprocess.run([self.tools / "systemctl", "stop", "cairn"], env=self.environment, check=False, timeout=60)


@pytest.fixture
def operator(run_folder: Path) -> Iterator[Callable[..., Operator]]:
    """Makes machines; their servers end with the test."""
    made: list[Operator] = []

    def make(folder: Path, other: Cairn | None = None) -> Operator:
        made.append(Operator(folder, other))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def fill_other(other: Cairn) -> None:
    """What is to be moved in: odd names, a type, metadata, and a version that is not the current one."""
    s3 = other.s3
    s3.create_bucket("pictures")
    s3.request("PUT", "/pictures?versioning=", body=b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
    s3.put("pictures", "small", b"an old version")
    for key, body in OBJECTS.items():
        s3.put("pictures", key, body, [("Content-Type", "image/x-test"), ("x-amz-meta-colour", "green"), ("x-amz-meta-mtime", "1600000000.5")])


def assert_moved(s3: S3, bucket: str) -> None:
    """Content, type, metadata and time of modification of every object."""
    assert set(s3.list_all(bucket)) >= set(OBJECTS)
    for key, body in OBJECTS.items():
        got = s3.get(bucket, key)
        assert (got.body, got.get("content-type"), got.get("x-amz-meta-colour"), got.get("x-amz-meta-mtime")) == (body, "image/x-test", "green", "1600000000.5")


def test_every_block_does_what_the_page_says(operator, make_store, run_folder: Path):
    """In its order; an object that was put after the backup is gone after restoring, and everything else is whole."""
    other = make_store().start()
    fill_other(other)
    machine = operator(run_folder / "operating", other)
    machine.run("systemctl start cairn")
    blocks = blocks_of(PAGE)
    assert len(blocks) >= 14
    for language, name, text in blocks:
        if name in ("btrfs", "mount-point"):
            continue
        text = machine.own(text)
        if "backups/cairn-stopped-$(date" in text:
            # A first backup, of less. A second one into the same folder once lay inside the first, which was restored.
            machine.run(text)
            wait_for_another_second()
            for key, body in OBJECTS.items():
                machine.s3.put("photos", key, body)
        if "cairn-before" in text:
            machine.s3.put("photos", "later", b"not in the backup")
        if name:
            (machine.folder / name).write_text(text)
        else:
            assert language == "sh", language
            machine.run(text)
        if "cairn-before" in text:
            assert set(machine.s3.list_all("photos")) == set(OBJECTS)
            assert all(machine.s3.get("photos", key).body == body for key, body in OBJECTS.items())
    assert_moved(machine.s3, "pictures")
    assert_moved(other.s3, "pictures-back")
    (old,) = [key for key in machine.s3.list_all("pictures-history") if key.startswith("small-v")]
    assert machine.s3.get("pictures-history", old).body == b"an old version"
    credentials = json.loads(machine.run(machine.own("cairn service-account show web --json")))["credentials"]
    assert len(credentials) == 1
    assert set(machine.s3.list_all("photos")) == set(OBJECTS), "after keys were changed and the store was compacted"


def wait_for_another_second() -> None:
    """The name of a backup has the time down to seconds."""
    begun = int(time.time())
    while int(time.time()) == begun:
        time.sleep(0.02)


def test_a_mount_point_is_restored(operator, run_folder: Path):
    """By the page's lines for it in place of `mv`, which cannot rename one."""
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
        (moving,) = [text for _, name, text in blocks_of(PAGE) if name == "mount-point"]
        machine.run(machine.own(backup))
        machine.s3.put("photos", "later", b"not in the backup")
        machine.environment["SERVICE_MANAGEMENT_TOKEN"] = machine.secrets.system_token
        (renaming,) = [line for line in restore.splitlines() if line.startswith("sudo mv ")]
        machine.run(machine.own(restore.replace(renaming + "\n", moving)))
        assert {key: machine.s3.get("photos", key).body for key in machine.s3.list_all("photos")} == OBJECTS
        machine.run(f"rm -r {machine.data}/before")
    finally:
        machine.stop()
        subprocess.run(["umount", machine.data], check=True)


def test_objects_move_in_from_another_kind_of_server(operator, run_folder: Path, tmp_path: Path):
    """`rclone serve s3` stands for it."""
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
def btrfs(tmp_path: Path) -> Iterator[Path]:
    """A btrfs on a loop device."""
    image, folder = tmp_path / "disk", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(3 << 30)
    made = subprocess.run(["mkfs.btrfs", "-q", str(image)], capture_output=True, check=False) if os.geteuid() == 0 else None
    if made is None or made.returncode or subprocess.run(["mount", "-o", "loop", image, folder], check=False).returncode:
        pytest.skip("root, loop devices and btrfs-progs are needed to take a snapshot of a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    image.unlink()


def test_a_snapshot_under_load_has_everything_that_was_answered(btrfs: Path, operator):
    """The page's block, while four clients write; then the copy is served."""
    machine = operator(btrfs / "machine")
    subprocess.run(["btrfs", "-q", "subvolume", "create", str(machine.data)], check=True)
    machine.run("systemctl start cairn")
    machine.s3.create_bucket("photos")
    answered: dict[str, bytes] = {}
    stop, enough = threading.Event(), threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            key = f"{writer}/{number}"
            body = random.Random(key).randbytes(random.Random(number).choice([10, 30_000, 400_000]))
            machine.s3.put("photos", key, body)
            answered[key] = body
            number += 1
            if len(answered) > 40:
                enough.set()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for writer in writers:
        writer.start()
    assert enough.wait(60)
    before = dict(answered)
    (block,) = [text for _, name, text in blocks_of(PAGE) if name == "btrfs"]
    machine.run(machine.own(block))
    stop.set()
    for writer in writers:
        writer.join()
    machine.run(f"systemctl stop cairn; mv {machine.data} {machine.data}-before; cp -aT {machine.folder}/backups/cairn-running-* {machine.data}; systemctl start cairn")
    assert len(before) > 40 and {key: machine.s3.get("photos", key).body for key in before} == before
    machine.environment["SERVICE_MANAGEMENT_TOKEN"] = machine.secrets.system_token
    machine.run(machine.own("cairn storage inspect\ncairn verify bucket photos"))
