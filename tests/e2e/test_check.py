"""Attacks `cairn check`: what is wrong is named with its remedy, the exit code says so, and nothing is changed."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.server import LOOPBACK, Cairn

MakeStore = Callable[..., Cairn]
WITHOUT_IO_URING = Path(__file__).resolve().parents[1] / "harness" / "without_io_uring.py"
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def check(store: Cairn, *arguments: str, prefix: tuple[str, ...] = (), code: int = 0) -> dict[str, tuple[str, str, str]]:
    """Run it with the store's environment: verdict, what was seen and what to mend, for each check by name."""
    command = [*prefix, str(store.binary), "check", "--json", *arguments]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=30)
    assert done.returncode == code, done
    assert not any(secret in done.stdout + done.stderr for secret in store.secrets.hidden())
    answer = json.loads(done.stdout)
    assert (answer["failed"] == 0) == (code == 0), answer
    return {found["name"]: (found["verdict"], found["seen"], found["mend"] or "") for found in answer["checks"]}


def tree(folder: Path) -> list[tuple[str, int, int]]:
    """Every file with its size and date of change."""
    return sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_before_the_first_start_and_beside_a_server(make_store: MakeStore):
    """Nothing is made; a running server keeps its lock and its ports; a stopped store is as it was."""
    store = make_store()
    found = check(store)
    assert not store.data.exists() and "none yet" in found["store"][1]
    assert {found[name][0] for name in ("kernel", "io_uring", "direct I/O", "data plane")} == {"ok"}
    store.start()
    found = check(store)
    assert "running server" in found["store"][1]
    assert found["data plane"][0] == "warning" and "taken" in found["data plane"][1], "another program may have it"
    assert store.stop() == 0
    before = tree(store.data)
    assert found["master key"][0] == "ok" and "no server" in check(store)["store"][1]
    assert tree(store.data) == before


def test_dev_makes_no_secrets(make_store: MakeStore):
    """`serve --dev` makes them on first use, a check does not."""
    store = make_store(**{name: None for name in make_store().secrets.environment()})
    check(store, "--dev")
    assert not store.data.exists()


def test_every_problem_of_the_configuration_at_once(make_store: MakeStore):
    """And the host is looked at all the same."""
    store = make_store(SERVICE_ROOT_S3_ENABLED="perhaps", SERVICE_S3_BNID="x")
    command = [str(store.binary), "check"]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=30)
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed")]
    assert done.returncode == 1 and len(failed) == 2 and "2 of" in done.stderr, done
    assert "SERVICE_ROOT_S3_ENABLED" in failed[0] and "SERVICE_S3_BIND is" in failed[1]
    assert "io_uring" in done.stdout


def test_another_master_key(make_store: MakeStore):
    """Told before a start is refused."""
    store = make_store().start()
    assert store.stop() == 0
    store.extra["SERVICE_CREDENTIAL_MASTER_KEY"] = "another-master-key-0123456789-0123456789"
    verdict, _, mend = check(store, code=1)["master key"]
    assert verdict == "failed" and "SERVICE_CREDENTIAL_MASTER_KEY" in mend


def test_a_port_that_somebody_else_has(make_store: MakeStore):
    """The variable to change is named."""
    store = make_store()
    with socket.create_server((LOOPBACK, store.s3_port)):
        verdict, seen, mend = check(store, code=1)["data plane"]
    assert verdict == "failed" and str(store.s3_port) in seen and "SERVICE_S3_BIND" in mend


def test_io_uring_forbidden(make_store: MakeStore):
    """As under the seccomp profile of a container engine."""
    verdict, seen, _ = check(make_store(), prefix=(sys.executable, str(WITHOUT_IO_URING)), code=1)["io_uring"]
    assert verdict == "failed" and "seccomp" in seen


def test_too_little_memory_and_few_files(make_store: MakeStore):
    """Limits that a start would refuse, or live with."""
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="72MiB", SERVICE_SERVER_EXECUTORS="8")
    verdict, seen, _ = check(store, prefix=("prlimit", "--nofile=4096", "--memlock=65536"), code=1)["memory"]
    assert verdict == "failed" and "need at least" in seen
    found = check(store, prefix=("prlimit", "--nofile=4096", "--memlock=65536"), code=1)
    assert found["open files"][0] == "warning" and "LimitNOFILE" in found["open files"][2]
    assert found["locked memory"][0] == "failed" and "LimitMEMLOCK" in found["locked memory"][1]


def test_a_folder_of_another_user(make_store: MakeStore):
    """A store that was made as root and is to be served as somebody else."""
    store = make_store().start()
    assert store.stop() == 0
    store.data.chmod(0o755)
    verdict, seen, mend = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and str(store.data) in seen and "chown" in mend
    verdict, _, mend = check(store)["data folder"]
    assert verdict == "warning" and "chmod o-rwx" in mend


def stopped_store_of_nobody(store: Cairn) -> Cairn:
    """A store that was served once, and belongs to another user than root from then on."""
    store.start()
    assert store.stop() == 0
    for path in (store.data, *store.data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    store.data.chmod(0o700)
    return store


@pytest.mark.parametrize("part", ["slices/00/meta/data.mdb", "slices/01/volumes/000000.vol", "slices/01/volumes", "control/data.mdb"])
def test_a_part_of_another_user(make_store: MakeStore, part: str):
    """The start failed at each of them where a check had found nothing. Root sees who owns it, though it may do anything."""
    store = stopped_store_of_nobody(make_store())
    assert check(store, prefix=AS_NOBODY)["data folder"][0] == "ok"
    os.chown(store.data / part, 0, 0)
    (store.data / part).chmod(0o700)
    verdict, seen, mend = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and str(store.data / part) in seen and "chown" in mend
    verdict, seen, _ = check(store)["data folder"]
    assert verdict == "warning" and str(store.data / part) in seen


@pytest.mark.parametrize("part", ["control/data.mdb", "slices/01", "slices/00/meta/data.mdb", "slices/00/volumes/000000.vol"])
def test_a_part_that_is_missing(make_store: MakeStore, part: str):
    """A superblock says what else there must be."""
    store = make_store().start()
    assert store.stop() == 0
    (store.data / part).rename(store.folder / "elsewhere")
    verdict, seen, _ = check(store, code=1)["data folder"]
    assert verdict == "failed" and f"{store.data / part} is missing" in seen


def test_what_root_may_says_nothing_of_the_service(make_store: MakeStore):
    """Root writes to any folder, also to one that its owner may not write to."""
    store = stopped_store_of_nobody(make_store())
    store.data.chmod(0o500)
    verdict, seen, mend = check(store)["data folder"]
    assert verdict == "warning" and "as root" in seen and "runuser" in mend
    assert check(store, prefix=AS_NOBODY, code=1)["data folder"][0] == "failed"


def test_a_folder_behind_another_that_bars_the_way(make_store: MakeStore):
    """It was said not to be there, and the remedy to make it."""
    store = stopped_store_of_nobody(make_store())
    store.folder.chmod(0o700)
    verdict, seen, mend = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and f"{store.folder} does not let this user pass" in seen and str(store.folder) in mend


def test_a_folder_that_is_a_link_to_nothing(make_store: MakeStore):
    """A start cannot make what a link points to."""
    store = make_store()
    store.data.symlink_to(store.folder / "nothing")
    verdict, seen, _ = check(store, code=1)["data folder"]
    assert verdict == "failed" and "symbolic link" in seen


def test_a_damaged_superblock_is_told_once(make_store: MakeStore):
    """And not as a want of memory."""
    store = make_store().start()
    assert store.stop() == 0
    (store.data / "superblock.json").write_text("{}")
    found = check(store, code=1)
    assert found["store"][0] == "failed" and found["memory"][0] == "warning"


def test_a_memory_limit_names_who_set_it(make_store: MakeStore):
    """The variable was named also where the file had said it."""
    store = make_store()
    configuration = store.folder / "cairn.toml"
    configuration.write_text('[server]\nmemory_limit = "72MiB"\nexecutors = 4\n')
    verdict, seen, _ = check(store, "--config", str(configuration), code=1)["memory"]
    assert verdict == "failed" and seen.startswith("server.memory_limit: ") and "fewer executors" in seen
