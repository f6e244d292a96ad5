"""`cairn backup`: copies while clients write, and folders of backups."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness.backups import Writers, back_up, check_store, cli_of, copied_store, put_metadata_over
from harness.management import expect, expect_refusal
from harness.newer_server import newer_server
from harness.s3 import object_target
from harness.server import Cairn
from harness.wait import until

BUCKET = "backed-up"
COPY = 'cp -a --sparse=always "$CAIRN_DATA_DIR" "$1/data" && cp -a "$CAIRN_BACKUP_DIR" "$1/metadata"'
ROUNDS = 3


def copy_to(folder: Path) -> list[str]:
    """A command that copies the store, as somebody would write it."""
    return ["sh", "-euc", COPY, "sh", str(folder)]


def status(store: Cairn) -> dict:
    """The status of the last backup."""
    return expect(store.admin.get("/storage/backup"), 200)


@pytest.mark.parametrize("sealed", ["false", "true"])
@pytest.mark.parametrize("commit", ["log", "lmdb"])
def test_copy_that_was_made_while_clients_write(make_store, run_folder: Path, sealed: str, commit: str, tmp_path: Path):
    """The copy opens, is consistent, and has every write that was acknowledged before. The store holds nothing afterwards."""
    store = make_store(SERVICE_STORAGE_ENCRYPTION_ENABLED=sealed, SERVICE_STORAGE_COMMIT=commit).start()
    store.s3.create_bucket(BUCKET)
    with Writers(store, BUCKET) as writers:
        for number in range(ROUNDS):
            until(lambda: len(writers.written) > 100, "writes")
            acknowledged = dict(writers.written)
            folder = tmp_path / str(number)
            folder.mkdir()
            done = back_up(store, "--", *copy_to(folder))
            assert (done.returncode, done.stderr) == (0, ""), done
            last = dict(writers.written)
            copy = copied_store(store, folder)
            put_metadata_over(copy.data, folder / "metadata")
            copy.start()
            try:
                check_store(copy, BUCKET, acknowledged, last)
                assert not (copy.data / "backup").exists() and not (copy.data / "hold.json").exists()
                assert copy.stop() == 0
                # The restored store is an ordinary one.
                copy.start()
                check_store(copy, BUCKET, acknowledged, last)
            finally:
                copy.kill()
                shutil.rmtree(folder)
    until(lambda: not (store.data / "backup").exists(), "the copy of the metadata is removed")
    ended = status(store)
    assert (ended["state"], ended["reason"]) == ("released", None), ended


def test_torn_copy_is_refused(make_store, run_folder: Path, tmp_path: Path):
    """A data folder that was copied file by file during a backup does not start without the metadata of the backup."""
    store = make_store().start()
    store.s3.create_bucket(BUCKET)
    done = back_up(store, "--", *copy_to(tmp_path))
    assert done.returncode == 0, done
    copy = copied_store(store, tmp_path)
    process = copy.spawn()
    assert process.wait(60) != 0
    assert "was copied during the backup" in copy.output() and f"cp -a {copy.data}/backup/. {copy.data}/" in copy.output()
    # Metadata that were put over it only in part are refused, too.
    put_metadata_over(copy.data, tmp_path / "metadata")
    damaged = copy.data / "control/data.mdb"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    process = copy.spawn()
    assert process.wait(60) != 0 and "copy it again" in copy.output()
    put_metadata_over(copy.data, tmp_path / "metadata")
    copy.start()
    copy.kill()


def test_hold_ends_in_every_case(make_store, tmp_path: Path):
    """It ends when the command fails or cannot start, on a signal, at its timeout, and when the service is stopped or killed."""
    store = make_store().start()
    cli = cli_of(store)
    failed = back_up(store, "--", "sh", "-c", "exit 3")
    assert failed.returncode == 1 and "exit status: 3" in failed.stderr, failed
    assert status(store)["state"] == "released"
    missing = back_up(store, "--", "/no/such/program")
    assert missing.returncode == 1 and "could not be started" in missing.stderr, missing
    assert back_up(store, "--").returncode == 2
    until(lambda: not (store.data / "backup").exists(), "the folder is removed")
    process = subprocess.Popen(
        [str(store.binary), "backup", "--", "sleep", "600"], env=cli.environment(), stderr=subprocess.PIPE, text=True
    )
    until(lambda: status(store)["state"] == "held", "the store is held")
    # Another one is refused, and cannot end this one.
    assert "already running" in back_up(store, "begin").stderr
    expect_refusal(store.admin.delete("/storage/backup?id=other"), 404, "BACKUP_NOT_FOUND")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130 and "interrupted" in process.stderr.read()
    assert status(store)["state"] == "released"
    until(lambda: not (store.data / "backup").exists(), "the folder is removed")
    late = back_up(store, "--timeout", "1s", "--", "sleep", "600")
    assert late.returncode == 1 and "its time was over" in late.stderr, late
    until(lambda: not (store.data / "backup").exists(), "the folder is removed")
    for ends in (store.stop, store.kill):
        begun = cli.json("backup", "begin")
        assert begun["state"] == "held" and Path(begun["backup_dir"], "hold.json").is_file()
        ends()
        store.start()
        assert not (store.data / "backup").exists()
        expect_refusal(store.admin.delete("/storage/backup"), 404, "BACKUP_NOT_FOUND")


def test_the_folder_of_another_hold_is_not_copied(make_store, tmp_path: Path):
    """`backup to` copied what it found there, for example what an earlier hold or another store had left at the same path."""
    store = make_store().start()
    held = cli_of(store).json("backup", "begin")
    expect(store.admin.delete("/storage/backup"), 200)
    until(lambda: not (store.data / "backup").exists(), "the folder is removed")
    changed = {"answered": lambda body: body.replace(own_id(store), held["id"]), "changed": lambda path: path.replace(held["id"], own_id(store))}
    with newer_server(store, **changed) as url:
        for arguments in (["to", "--endpoint", url, str(tmp_path / "backups")], ["--endpoint", url, "--", "touch", str(tmp_path / "ran")]):
            refused = back_up(store, *arguments)
            assert refused.returncode == 1 and "of another hold" in refused.stderr and "on the host of the server" in refused.stderr, refused
            until(lambda: status(store)["state"] == "released", "the store is released")
    assert list(tmp_path.iterdir()) == []


def own_id(store: Cairn) -> str:
    """The id of the last hold."""
    return status(store)["id"]


def test_a_backup_fails_if_somebody_else_releases_the_store(make_store, tmp_path: Path):
    """The command is ended, and what it has copied is no backup."""
    store = make_store().start()
    running = tmp_path / "running"
    command = ["backup", "--", "sh", "-c", f"touch {running}; exec sleep 600"]
    process = subprocess.Popen([str(store.binary), *command], env=cli_of(store).environment(), stderr=subprocess.PIPE, text=True)
    until(running.exists, "the command runs")
    cli_of(store).text("backup", "end")
    assert process.wait(30) == 1 and "released by another command" in process.stderr.read()
    # Also if the command has ended before anybody looked.
    quick = back_up(store, "--", str(store.binary), "backup", "end")
    assert quick.returncode == 1 and "released by another command" in quick.stderr, quick
    assert back_up(store, "--", "true").returncode == 0


def test_a_hold_ends_soon_after_its_command_was_killed(make_store):
    """Whoever renews the lease keeps it, and `begin` needs no client. Then the next backup is not refused for hours."""
    store = make_store().start()
    cli = cli_of(store)
    process = subprocess.Popen([str(store.binary), "backup", "--", "sleep", "100"], env=cli.environment())
    until(lambda: status(store)["held"], "the store is held")
    shown = cli.json("backup", "status")
    assert shown["by"] == "system" and shown["since"] < shown["ends_at"] and shown["since"] == shown["begun_at"]
    process.kill()
    process.wait()
    # It asks with the id of another hold, which renews nothing.
    until(lambda: expect(store.admin.get(f"/storage/backup?id={shown['id'][::-1]}"), 200)["state"] == "lost", "the hold ends", 180)
    ended = status(store)
    assert ended["reason"] == "its client did not ask for it for 60 s"
    assert [ended[name] for name in ("held", "since", "ends_at", "by")] == [False, None, None, None]
    begun = expect(store.admin.post("/storage/backup", {"lease_seconds": 8}), 202)
    asked = []

    def is_past_its_lease() -> bool:
        asked.append(expect(store.admin.get(f"/storage/backup?id={begun['id']}"), 200)["state"])
        return time.monotonic() > begun_at + 9

    begun_at = time.monotonic()
    until(is_past_its_lease, "the end of a lease")
    assert set(asked) <= {"copying", "held"} and asked[-1] == "held"
    until(lambda: status(store)["state"] == "lost", "it ends when nobody asks for it")
    assert cli.json("backup", "begin")["held"]
    expect(store.admin.delete("/storage/backup"), 200)


def test_bad_requests_are_refused(make_store):
    """They change nothing."""
    store = make_store().start()
    for body in ({"lease_seconds": 0}, {"lease_seconds": 604_801}, {"timeout_seconds": 0}, {"timeout_seconds": 604_801}, {"timeout_seconds": "1h"}, {"other": 1}):
        expect_refusal(store.admin.post("/storage/backup", body), 400, "INVALID_REQUEST")
    expect_refusal(store.admin.get("/storage/backup?x=1"), 400, "INVALID_REQUEST")
    assert status(store)["state"] == "none"


def begun_for_a_moment(store: Cairn) -> subprocess.CompletedProcess:
    """Begins a backup that soon ends by itself. On a busy machine, it may end before the command has seen it."""
    for seconds in (1, 4, 16):
        begun = back_up(store, "begin", "--timeout", f"{seconds}s")
        if begun.returncode == 0:
            break
    return begun


def test_end_fails_if_the_backup_has_ended_before(make_store):
    """It ended the hold of somebody else, or nothing at all, with exit code 0: the copy was taken for a backup."""
    store = make_store().start()
    cli = cli_of(store)
    assert "no backup was begun" in cli_fails(store, "end")
    begun = begun_for_a_moment(store)
    first = own_id(store)
    assert begun.returncode == 0 and f"then: cairn backup end {first}\n" in begun.stdout, begun
    until(lambda: status(store)["state"] == "lost", "its time is over")
    for arguments in ([], [first]):
        assert "ended early: its time was over" in cli_fails(store, "end", *arguments)
    second = cli.json("backup", "begin")["id"]
    assert f"the backup {first} has ended before" in cli_fails(store, "end", first)
    assert status(store)["held"], "the other hold goes on"
    assert cli.json("backup", "end", second)["state"] == "released"
    for arguments in ([], [second]):
        assert "was released before" in cli_fails(store, "end", *arguments)
    cli.json("backup", "begin")
    assert cli.json("backup", "end")["state"] == "released"


def folder_bytes(folder: Path) -> int:
    """The bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def folder_json(store: Cairn, *arguments: str) -> dict:
    """The output of a command of `cairn backup` that needs no server."""
    done = back_up(store, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


@pytest.mark.parametrize("sealed", ["false", "true"])
def test_backups_in_a_folder(make_store, run_folder: Path, tmp_path: Path, sealed: str):
    """The second backup copies what is new. All are verified, and each restored store is whole, with accounts and settings."""
    store = make_store(SERVICE_STORAGE_ENCRYPTION_ENABLED=sealed).start()
    s3, cli = store.s3, cli_of(store)
    s3.create_bucket(BUCKET)
    account = expect(store.admin.post("/service-accounts", {"name": "backed-up"}), 201)
    for number in range(60):
        assert s3.request("PUT", object_target(BUCKET, f"old/{number}"), body=f"{number}".encode() * 50_000).status == 200
    folder = tmp_path / "backups"
    assert "is in the data folder" in cli.fails("backup", "to", str(store.data / "slices" / "backups"))
    assert not (store.data / "slices" / "backups").exists() and status(store)["state"] == "released"
    first = cli.json("backup", "to", str(folder))
    assert first["damaged"] == 0 and first["payloads"] == 60 and first["new_bytes"] > 60 * 50_000, first
    with Writers(store, BUCKET) as writers:
        until(lambda: len(writers.written) > 50, "writes")
        acknowledged = dict(writers.written)
        cli.json("backup", "to", str(folder))
    cli.json("backup", "to", str(folder))
    size = folder_bytes(folder)
    last = cli.json("backup", "to", str(folder))
    assert folder_bytes(folder) - size < 60 * 50_000, "unchanged payloads are not copied again"
    verified = folder_json(store, "verify", str(folder))
    assert [backup["whole"] for backup in verified["backups"]] == [True] * 4 and verified["damaged"] == 0
    listed = folder_json(store, "list", str(folder))["backups"]
    assert [backup["backup"] for backup in listed] == sorted(backup["backup"] for backup in listed) and listed[0] == first
    assert listed[3] == last
    for number, backup in enumerate(listed):
        copy = copied_store(store, tmp_path / f"restored-{number}")
        restored = folder_json(store, "restore", str(folder), "--data-dir", str(copy.data), "--backup", backup["backup"])
        assert restored["damaged"] == 0 and restored["payloads"] == backup["payloads"], restored
        copy.start()
        try:
            check_store(copy, BUCKET, acknowledged if number > 0 else {}, writers.written)
            for old in range(60):
                assert copy.s3.request("GET", object_target(BUCKET, f"old/{old}")).body == f"{old}".encode() * 50_000
            assert expect(copy.admin.get(f"/service-accounts/{account['service_account']['id']}"), 200)["name"] == "backed-up"
            assert number > 0 or copy.s3.request("GET", object_target(BUCKET, "0/1")).status == 404
        finally:
            copy.kill()
            shutil.rmtree(copy.folder)
    assert "has files" in cli_fails(store, "restore", str(folder), "--data-dir", str(folder))
    cli.json("backup", "to", str(folder), "--keep", "1")
    left = folder_json(store, "verify", str(folder))
    assert [backup["whole"] for backup in left["backups"]] == [True]


def cli_fails(store: Cairn, *arguments: str) -> str:
    """Runs a command of `cairn backup` that must fail. Returns its standard error."""
    done = back_up(store, *arguments)
    assert done.returncode == 1, done
    return done.stderr


def test_damage_in_a_folder_of_backups_is_found(make_store, run_folder: Path, tmp_path: Path):
    """A changed byte anywhere is found, and a folder of another store is refused."""
    store = make_store().start()
    store.s3.create_bucket(BUCKET)
    for number in range(5):
        store.s3.request("PUT", object_target(BUCKET, f"{number}"), body=f"{number}".encode() * 40_000)
    folder = tmp_path / "backups"
    cli_of(store).json("backup", "to", str(folder))
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name in ("lock", "repository.json"):
            continue
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 3):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
            assert cli_fails(store, "verify", str(folder)), (path, place)
        path.write_bytes(whole)
    assert back_up(store, "verify", str(folder)).returncode == 0
    # One that is damaged does not concern the others, and each has a line.
    whole = cli_of(store).json("backup", "to", str(folder))["backup"]
    for _ in range(2):
        cli_of(store).json("backup", "to", str(folder))
    damaged = [backup["backup"] for backup in folder_json(store, "list", str(folder))["backups"] if backup["backup"] != whole][:2]
    for name in damaged:
        (folder / "backups" / f"{name}.json").write_text("")
    (folder / "backups" / "notes.json").write_text("{}")
    listed = folder_json(store, "list", str(folder))["backups"]
    assert [backup["backup"] for backup in listed if "unreadable" in backup] == damaged and len(listed) == 4
    assert [line.split()[:2] for line in back_up(store, "list", str(folder)).stdout.splitlines()[1:]][0] == [damaged[0], "damaged"]
    assert [line.split(":")[0].strip() for line in cli_fails(store, "verify", str(folder)).splitlines()[1:]] == damaged
    assert "choose another backup" in cli_fails(store, "restore", str(folder), "--backup", damaged[0], "--data-dir", str(tmp_path / "new"))
    assert folder_json(store, "restore", str(folder), "--data-dir", str(tmp_path / "new"))["damaged"] == 0
    assert "no old backup was removed" in cli_fails(store, "to", str(folder), "--keep", "1")
    assert {backup["backup"] for backup in folder_json(store, "list", str(folder))["backups"]} > set(damaged)
    other = make_store().start()
    assert "another store" in cli_fails(other, "to", str(folder))
    assert "other files" in cli_fails(other, "to", str(tmp_path))
    assert status(other)["state"] == "released"


def test_killed_backups_leave_whole_ones(make_store, run_folder: Path, tmp_path: Path):
    """`cairn backup to` is killed at random moments. What was finished is whole, and the next one goes on."""
    store = make_store().start()
    store.s3.create_bucket(BUCKET)
    folder = tmp_path / "backups"
    for attempt in range(6):
        for number in range(10):
            store.s3.request("PUT", object_target(BUCKET, f"{attempt}/{number}"), body=f"{attempt}{number}".encode() * 90_000)
        process = subprocess.Popen(
            [str(store.binary), "backup", "to", str(folder)], env=cli_of(store).environment(), stdout=subprocess.DEVNULL
        )
        try:
            process.wait(0.05 * attempt)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if status(store)["state"] in ("copying", "held"):
            expect(store.admin.delete("/storage/backup"), 200)
        until(lambda: not (store.data / "backup").exists(), "the folder is removed")
    cli_of(store).json("backup", "to", str(folder))
    verified = folder_json(store, "verify", str(folder))
    assert all(backup["whole"] for backup in verified["backups"]) and verified["backups"], verified
