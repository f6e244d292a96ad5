"""Attacks the start: every wrong setting ends it with an error that names the setting and never its value."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from harness.s3 import error_code
from harness.server import BINARY, Cairn, clean_environment

END_SECONDS = 20
NOBODY = 65534
MEMLOCK_USUAL_KIB = 8192
CANARY = "canary-91bd"
MakeStore = Callable[..., Cairn]


def refused(store: Cairn, *, prefix: list[str] | None = None, arguments: list[str] | None = None) -> str:
    """Start, expect it to end by itself with an error, and return what it said."""
    process = store.spawn(prefix, arguments)
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it runs on:\n{store.output()[-2000:]}") from None
    assert code not in (0, -signal.SIGABRT, -signal.SIGSEGV, 101), f"ended with {code}:\n{store.output()}"
    assert "panicked" not in store.output()
    assert not store.leaked_secrets() and CANARY not in store.output()
    return store.output()


@pytest.mark.parametrize(
    "name",
    ["SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_ACCESS_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_MANAGEMENT_SYSTEM_TOKEN"],
)
def test_missing_secrets(make_store: MakeStore, name: str):
    """Production needs them all; the message names what is missing."""
    assert name in refused(make_store(**{name: None}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVICE_CREDENTIAL_MASTER_KEY", CANARY), ("SERVICE_CREDENTIAL_MASTER_KEY", ""),
        ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", CANARY), ("SERVICE_MANAGEMENT_SYSTEM_TOKEN", ""),
        ("SERVICE_ROOT_SECRET_KEY", ""), ("SERVICE_ROOT_ACCESS_KEY", ""),
        ("SERVICE_S3_BIND", CANARY), ("SERVICE_API_BIND", CANARY), ("SERVICE_CONSOLE_BIND", f"127.0.0.1:{CANARY}"),
        ("SERVICE_LOG_JSON", CANARY), ("SERVICE_ROOT_S3_ENABLED", CANARY),
        ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", CANARY), ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "0"),
        ("SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS", "301"),
    ],
)
def test_wrong_values(make_store: MakeStore, name: str, value: str):
    """Too short, not a number, not an address: named, and the value is not repeated."""
    assert name in refused(make_store(**{name: value}))


def test_secrets_in_files(make_store: MakeStore):
    """As containers and systemd hand them over: each in a file, with the newline that editors put at its end."""
    store = make_store()
    for name, value in store.secrets.environment().items():
        path = store.folder / name
        path.write_text(value + "\n")
        path.chmod(0o400)
        store.extra |= {name: None, f"{name}_FILE": str(path)}
    store.start()
    store.s3.create_bucket("by-file")
    assert store.admin.get("/system/info").status_code == 200
    assert store.stop() == 0 and not store.leaked_secrets()


def test_a_secret_file_that_is_not_there(make_store: MakeStore):
    """Both the variable and the file are named."""
    store = make_store(SERVICE_ROOT_SECRET_KEY=None, SERVICE_ROOT_SECRET_KEY_FILE=f"/nonexistent/{CANARY[:6]}")
    assert "SERVICE_ROOT_SECRET_KEY_FILE: the file /nonexistent/canary cannot be read" in refused(store)


def test_unknown_variables(make_store: MakeStore):
    """A misspelt setting must not be ignored in silence."""
    assert "SERVICE_SERVER_SHUTDOWN_GRACE" in refused(make_store(SERVICE_SERVER_SHUTDOWN_GRACE=CANARY))


def config_store(make_store: MakeStore, text: str) -> Cairn:
    """A store that is told about a configuration file."""
    store = make_store()
    path = store.folder / "cairn.toml"
    path.write_text(text)
    store.extra["SERVICE_CONFIG"] = str(path)
    return store


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f'[server]\nshutdown_grace_periods = "{CANARY}"', "shutdown_grace_periods"),
        (f'[sever]\nx = "{CANARY}"', "sever"),
        (f'[server]\nshutdown_grace_period_seconds = "{CANARY}"', "shutdown_grace_period_seconds"),
        ("[server\n", "cairn.toml"),
        ("[server]\nshutdown_grace_period_seconds = 0", "shutdown_grace_period_seconds"),
    ],
)
def test_wrong_configuration_files(make_store: MakeStore, text: str, named: str):
    """Unknown sections and keys, wrong types, broken TOML."""
    assert named in refused(config_store(make_store, text))


def test_a_missing_configuration_file(make_store: MakeStore):
    """Asked for and not there."""
    store = make_store(SERVICE_CONFIG="/nonexistent/cairn.toml")
    assert "/nonexistent/cairn.toml" in refused(store)


def test_environment_wins_over_the_file(make_store: MakeStore):
    """The file names an address that cannot be bound; the environment's is taken."""
    store = config_store(make_store, '[server]\ns3_bind = "192.0.2.1:1"\n')
    store.start()
    assert store.stop() == 0


@pytest.mark.parametrize("value", ["service=nonsense", "=,=", "service=info,[", "a=b=c"])
def test_invalid_log_filter(make_store: MakeStore, value: str):
    """Rejected before logging starts: nothing is logged, the setting is named."""
    output = refused(make_store(SERVICE_LOG=value))
    assert "SERVICE_LOG" in output or "log_filter" in output
    assert "INFO" not in output


def test_a_wrong_master_key_is_refused_on_an_existing_store(make_store: MakeStore):
    """Nothing is rewritten, and with the right key everything is there."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "k", b"x" * 100_000)
    assert store.stop() == 0
    superblock = (store.data / "superblock.json").read_bytes()
    store.extra["SERVICE_CREDENTIAL_MASTER_KEY"] = "another-master-key-" + "0" * 40
    output = refused(store)
    assert "SERVICE_CREDENTIAL_MASTER_KEY" in output or "master key" in output.lower()
    assert (store.data / "superblock.json").read_bytes() == superblock
    del store.extra["SERVICE_CREDENTIAL_MASTER_KEY"]
    store.log.unlink()
    store.start()
    assert store.s3.get("kept", "k").body == b"x" * 100_000


def test_a_second_process_on_the_folder_is_refused(make_store: MakeStore):
    """With a clear error; the first goes on undisturbed, and after kill -9 the lock is free."""
    first = make_store().start()
    second = make_store()
    second.data, second.secrets = first.data, first.secrets
    output = refused(second)
    assert str(first.data) in output
    first.s3.create_bucket("kept")
    first.s3.put("kept", "k", b"1")
    first.kill()
    second.log.unlink()
    second.start()
    assert second.s3.get("kept", "k").body == b"1"
    second.kill()


def test_a_restart_right_after_kill_9(make_store: MakeStore):
    """A supervisor starts it again at once, on the same ports.

    The kernel takes an io_uring apart after the process has been reaped, and its listening sockets live until then: a
    start that refuses a taken port without waiting a little fails in about every second case.
    """
    store = make_store().start()
    store.s3.create_bucket("kept")
    for number in range(8):
        store.s3.put("kept", f"k{number}", b"1")
        store.kill()
        store.start()


def test_a_port_in_use(make_store: MakeStore):
    """Another program's listener; the address is named."""
    store = make_store()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", store.s3_port))
        taken.listen()
        assert str(store.s3_port) in refused(store)


def test_a_data_folder_that_cannot_be_written(make_store: MakeStore):
    """A file where the folder should be."""
    store = make_store()
    store.data.write_text("not a folder")
    assert str(store.data) in refused(store)
    store.data.unlink()


def change_superblock(store: Cairn, change: Callable[[dict], None]) -> bytes:
    """Edit the superblock of a stopped store; returns the new bytes."""
    path = store.data / "superblock.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path.read_bytes()


def folder_digests(folder: Path) -> dict[str, str]:
    """A digest of every file in a folder, by its name in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


FUTURE_VERSION = 1000


def raise_version(content: dict) -> None:
    """A format of the future."""
    names = [name for name in content if "version" in name]
    assert names and content[names[0]] < FUTURE_VERSION, content
    content[names[0]] = FUTURE_VERSION


def test_a_store_of_a_newer_format(make_store: MakeStore):
    """Not ready, with the reason; every request is refused, and the folder is byte for byte what it was.

    It used to end at once: a supervisor started it again and again, and nothing told the probes why.
    """
    store = make_store().start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "k", b"x" * 100_000)
    assert store.stop() == 0
    change_superblock(store, raise_version)
    (store.data / "lock").unlink()
    before = folder_digests(store.data)
    store.log.unlink()
    store.spawn()
    store.wait_output("not opened")
    ready = requests.get(f"{store.management}/ready", timeout=END_SECONDS)
    assert ready.status_code == 503 and f"version {FUTURE_VERSION}," in ready.json()["reason"], ready.text
    assert requests.get(f"{store.management}/health", timeout=END_SECONDS).status_code == 200
    for answer in (store.s3.get("kept", "k"), store.s3.request("PUT", "/kept/new", body=b"1"), store.s3.list_page("kept")):
        assert (answer.status, error_code(answer)) == (503, "ServiceUnavailable")
    shown = run("status", "--endpoint", store.management)
    assert shown.returncode == 1 and f"version {FUTURE_VERSION}," in shown.stdout, shown
    assert store.stop() == 0
    assert folder_digests(store.data) == before
    assert not store.leaked_secrets()


@pytest.mark.parametrize("damage", ["missing", "empty", "nonsense"])
def test_a_store_without_a_good_superblock(make_store: MakeStore, damage: str):
    """A folder that holds slices but no superblock must not be taken for a new one."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    assert store.stop() == 0
    path = store.data / "superblock.json"
    path.unlink()
    if damage != "missing":
        path.write_text("" if damage == "empty" else '{"a": ')
    assert "superblock" in refused(store)
    assert (not path.exists()) if damage == "missing" else path.stat().st_size in (0, 6)


# Privileges and the kernel


def unprivileged(memlock_kib: int) -> list[str]:
    """A command prefix that becomes nobody under a memlock limit, from root; a plain user only gets the limit."""
    limit = f"ulimit -l {memlock_kib} && exec \"$@\""
    if os.geteuid() != 0:
        return ["bash", "-c", limit, "bash"]
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    return ["bash", "-c", limit, "bash", *drop]


@pytest.fixture
def public_store(make_store: MakeStore) -> Iterator[Cairn]:
    """A store whose folder and binary another user can reach (a checkout may lie in a closed home)."""
    store = make_store()
    folder = Path(tempfile.mkdtemp(prefix="cairn-public-", dir="/var/tmp"))
    folder.chmod(0o755)
    store.binary = Path(shutil.copy2(BINARY, folder / "cairn"))
    store.data = folder / "data"
    store.data.mkdir()
    if os.geteuid() == 0:
        os.chown(store.data, NOBODY, NOBODY)
    yield store
    store.kill()
    shutil.rmtree(folder)


def test_an_ordinary_user_under_the_usual_memlock_limit(public_store: Cairn):
    """8 MiB of locked memory is what distributions give; that must do, also under load."""
    prefix = unprivileged(MEMLOCK_USUAL_KIB)
    public_store.start(prefix)
    s3 = public_store.s3
    s3.create_bucket("kept")
    for number in range(20):
        s3.put("kept", f"k{number}", bytes([number]) * 1_000_000)
    for number in range(20):
        assert s3.get("kept", f"k{number}").body == bytes([number]) * 1_000_000
    assert public_store.stop() == 0


def test_too_little_locked_memory_says_what_to_do(public_store: Cairn):
    """64 KiB was the limit of older systems: the error names the limit and the remedy."""
    prefix = unprivileged(64)
    output = refused(public_store, prefix=prefix).lower()
    assert "memlock" in output or "ulimit -l" in output or "locked memory" in output, output


WITHOUT_IO_URING = Path(__file__).resolve().parents[1] / "harness" / "without_io_uring.py"


def test_without_io_uring_it_says_what_to_do(make_store: MakeStore):
    """As in a container whose seccomp profile forbids it."""
    output = refused(make_store(), prefix=[sys.executable, str(WITHOUT_IO_URING)])
    assert "io_uring" in output, output


# The command line


def run(*arguments: str) -> subprocess.CompletedProcess:
    """The binary with arguments and no settings."""
    return subprocess.run(
        [BINARY, *arguments], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )


def test_help_and_mistakes():
    """--help helps, nonsense ends with an error and a hint."""
    shown = run("--help")
    assert shown.returncode == 0 and "serve" in shown.stdout and "status" in shown.stdout
    for arguments in (("nonsense",), ("serve", "--nonsense"), ()):
        wrong = run(*arguments)
        assert wrong.returncode != 0 and wrong.stderr, arguments
        assert "panicked" not in wrong.stderr
