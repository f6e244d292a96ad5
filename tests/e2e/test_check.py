"""Attacks `cairn check`: what is wrong is named with its remedy, the exit code says so, and nothing is changed."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.server import LOOPBACK, Cairn

MakeStore = Callable[..., Cairn]
WITHOUT_IO_URING = Path(__file__).resolve().parents[1] / "harness" / "without_io_uring.py"
NOBODY = 65534


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
    assert "running server" in found["store"][1] and "taken" in found["data plane"][1]
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
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="64MiB", SERVICE_SERVER_EXECUTORS="8")
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
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    verdict, seen, mend = check(store, prefix=prefix, code=1)["data folder"]
    assert verdict == "failed" and str(store.data) in seen and "chown" in mend
    verdict, _, mend = check(store)["data folder"]
    assert verdict == "warning" and "chmod o-rwx" in mend
