"""Startup: every invalid setting ends the process with an error that names the setting and never its value."""

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
from harness.server import BINARY, WITHOUT_IO_URING, Cairn, clean_environment, outside_the_checkout

END_SECONDS = 60
NOBODY = 65534
MEMLOCK_USUAL_KIB = 8192
CANARY = "canary-91bd"
MakeStore = Callable[..., Cairn]


def refused(store: Cairn, *, prefix: list[str] | None = None, arguments: list[str] | None = None) -> str:
    """Starts the server, asserts that it exits with an error by itself, and returns its output."""
    process = store.spawn(prefix, arguments)
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"the server did not exit:\n{store.output()[-2000:]}") from None
    assert code not in (0, -signal.SIGABRT, -signal.SIGSEGV, 101), f"ended with {code}:\n{store.output()}"
    assert "panicked" not in store.output()
    assert not store.leaked_secrets() and CANARY not in store.output()
    return store.output()


@pytest.mark.parametrize(
    "name",
    ["SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_ACCESS_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_MANAGEMENT_SYSTEM_TOKEN"],
)
def test_missing_secret_is_refused(make_store: MakeStore, name: str):
    """Production mode needs all of them. The message names the missing one."""
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
def test_invalid_setting_is_refused_without_showing_its_value(make_store: MakeStore, name: str, value: str):
    """For example a secret that is too short, or text instead of a number or an address."""
    assert name in refused(make_store(**{name: value}))


def test_secrets_can_be_read_from_files(make_store: MakeStore):
    """Containers and systemd provide each secret in a file. A trailing newline is ignored."""
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


def test_missing_secret_file_is_refused(make_store: MakeStore):
    """The message names the variable and the file."""
    store = make_store(SERVICE_ROOT_SECRET_KEY=None, SERVICE_ROOT_SECRET_KEY_FILE=f"/nonexistent/{CANARY[:6]}")
    assert "SERVICE_ROOT_SECRET_KEY_FILE: the file /nonexistent/canary cannot be read" in refused(store)


def test_a_start_that_is_refused_makes_no_store(make_store: MakeStore):
    """A certificate that cannot be read: the next start may have another master key."""
    store = make_store(SERVICE_TLS_CERTIFICATE="/nonexistent/chain.pem", SERVICE_TLS_KEY="/nonexistent/key.pem")
    assert "server.tls: /nonexistent/chain.pem cannot be read" in refused(store)
    assert not list(store.data.glob("*")), "nothing was made"


def test_unknown_variable_is_refused(make_store: MakeStore):
    """A misspelt setting must not be ignored silently."""
    assert "SERVICE_SERVER_SHUTDOWN_GRACE" in refused(make_store(SERVICE_SERVER_SHUTDOWN_GRACE=CANARY))


def test_stray_variables_of_orchestrators_cause_a_warning(make_store: MakeStore):
    """Consul and Swarm set `SERVICE_NAME` and `SERVICE_PORT`, which prevented the start."""
    store = make_store(SERVICE_NAME="files", SERVICE_PORT="7600").start()
    for name in ("SERVICE_NAME", "SERVICE_PORT"):
        store.wait_output(f"{name} is not a configuration key and has no effect")
    assert store.stop() == 0


def config_store(make_store: MakeStore, text: str) -> Cairn:
    """Returns a store with a configuration file."""
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
def test_invalid_configuration_file_is_refused(make_store: MakeStore, text: str, named: str):
    """Covers unknown sections and keys, wrong types and values, and invalid TOML."""
    assert named in refused(config_store(make_store, text))


def test_missing_configuration_file_is_refused(make_store: MakeStore):
    """`SERVICE_CONFIG` names a file that does not exist."""
    store = make_store(SERVICE_CONFIG="/nonexistent/cairn.toml")
    assert "/nonexistent/cairn.toml" in refused(store)


def test_configuration_may_come_from_a_pipe(make_store: MakeStore):
    """A pipe can be read once. A second reading found an empty configuration, so the defaults were used."""
    store = make_store()
    store.start(prefix=["bash", "-c", """exec "$@" --config <(printf '[auth]\\nroot_s3_enabled = false\\n')""", "bash"])
    refused = store.s3.request("PUT", "/made")
    assert (refused.status, error_code(refused)) == (403, "AccessDenied"), "the key from the pipe must be in force"
    assert store.stop() == 0


def test_environment_overrides_the_configuration_file(make_store: MakeStore):
    """The file contains an address that cannot be bound; the address from the environment is used."""
    store = config_store(make_store, '[server]\ns3_bind = "192.0.2.1:1"\n')
    store.start()
    assert store.stop() == 0


@pytest.mark.parametrize("value", ["service=nonsense", "=,=", "service=info,[", "a=b=c"])
def test_invalid_log_filter_is_refused(make_store: MakeStore, value: str):
    """It is refused before logging starts: nothing is logged, and the message names the setting."""
    output = refused(make_store(SERVICE_LOG=value))
    assert "SERVICE_LOG" in output or "log_filter" in output
    assert "INFO" not in output


def test_wrong_master_key_is_refused_for_an_existing_store(make_store: MakeStore):
    """The store is not changed, and opens again with the right key."""
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


def test_second_process_on_a_data_directory_is_refused(make_store: MakeStore):
    """The error names the directory and the first process continues. After SIGKILL the lock is free."""
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


def test_restart_immediately_after_kill_9_succeeds(make_store: MakeStore):
    """A supervisor restarts the server immediately, on the same ports.

    The kernel destroys an io_uring only after the process has been reaped, and the listening sockets stay open until
    then. A start that does not wait briefly for a port in use fails in about half of the cases.
    """
    store = make_store().start()
    store.s3.create_bucket("kept")
    for number in range(8):
        store.s3.put("kept", f"k{number}", b"1")
        store.kill()
        store.start()
    assert store.s3.list("kept").keys == [f"k{number}" for number in range(8)]
    for number in range(8):
        assert store.s3.get("kept", f"k{number}").body == b"1"


@pytest.mark.parametrize("has_store", [False, True])
def test_port_in_use_is_refused_immediately_with_a_fix(make_store: MakeStore, has_store: bool):
    """The message names the address, the program that uses it, and the setting.

    The start waited ten seconds, and had created a store by then.
    """
    store = make_store()
    if has_store:
        store.start()
        assert store.stop() == 0
        store.log.unlink()
        # The kernel may still be closing the old ones.
        store.take_ports()
    with socket.socket() as data, socket.socket() as management:
        for taken, port in ((data, store.s3_port), (management, store.api_port)):
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
        output = refused(store)
    assert "waiting up to" not in output, "it waits for a port that a running program uses"
    for port, setting in ((store.s3_port, "SERVICE_S3_BIND"), (store.api_port, "SERVICE_API_BIND")):
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in output
        assert f"set {setting} to another port" in output
    assert f"(process {os.getpid()}) uses it" in output
    assert store.data.exists() == has_store


def test_port_that_no_program_has_is_waited_for(make_store: MakeStore):
    """The log says so. A socket that is bound and does not listen stands for one that the kernel has not destroyed yet."""
    store = make_store().start()
    assert store.stop() == 0
    store.take_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", store.s3_port))
        store.spawn()
        store.wait_output("waiting up to")


def test_dev_creates_nothing_when_a_port_is_in_use(make_store: MakeStore):
    """Neither secrets nor a store."""
    store = make_store(**dict.fromkeys(make_store().secrets.environment()))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", store.api_port))
        taken.listen()
        assert "SERVICE_API_BIND" in refused(store, arguments=["serve", "--dev"])
    assert not store.data.exists()


def test_data_directory_that_is_a_file_is_refused(make_store: MakeStore):
    """The message names the path."""
    store = make_store()
    store.data.write_text("not a folder")
    assert str(store.data) in refused(store)
    store.data.unlink()


def change_superblock(store: Cairn, change: Callable[[dict], None]) -> bytes:
    """Edits the superblock of a stopped store and returns the new bytes."""
    path = store.data / "superblock.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path.read_bytes()


def folder_digests(folder: Path) -> dict[str, str]:
    """Returns the digest of every file in a directory, by relative path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


FUTURE_VERSION, PAST_VERSION = 1000, 2


@pytest.mark.parametrize(("version", "remedy"), [(FUTURE_VERSION, "use a newer program"), (PAST_VERSION, "cairn storage upgrade --data-dir")])
def test_store_of_another_format_is_not_opened(make_store: MakeStore, version: int, remedy: str):
    """The server is not ready and gives the reason, every request is refused, and the directory is unchanged.

    The process must not exit: a supervisor would restart it in a loop, and no probe could report the reason. The planes said of a
    store whose format is too old that a newer program has made it.
    """
    store = make_store().start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "k", b"x" * 100_000)
    assert store.stop() == 0
    change_superblock(store, lambda content: content.update(format_version=version))
    (store.data / "lock").unlink()
    before = folder_digests(store.data)
    store.log.unlink()
    store.spawn()
    store.wait_output("not opened")
    ready = requests.get(f"{store.management}/ready", timeout=END_SECONDS)
    assert ready.status_code == 503 and f"version {version}," in ready.json()["reason"] and remedy in ready.json()["reason"], ready.text
    assert requests.get(f"{store.management}/health", timeout=END_SECONDS).status_code == 200
    for answer in (store.s3.get("kept", "k"), store.s3.request("PUT", "/kept/new", body=b"1"), store.s3.list_page("kept")):
        assert (answer.status, error_code(answer)) == (503, "ServiceUnavailable")
        assert b"does not run the format of the store" in answer.body and b"newer" not in answer.body
    link = requests.get(f"{store.console}/s/x", timeout=END_SECONDS)
    assert (link.status_code, link.json()["error"]["code"]) == (503, "NOT_READY") and link.json()["error"]["request_id"] == link.headers["x-request-id"]
    assert "does not run the format of the store" in link.json()["error"]["message"] and "newer" not in link.text
    shown = run("status", "--endpoint", store.management)
    assert shown.returncode == 1 and f"version {version}," in shown.stdout, shown
    assert store.stop() == 0
    # That a store is too old is seen under the lock.
    if version == PAST_VERSION:
        (store.data / "lock").unlink()
    assert folder_digests(store.data) == before
    assert not store.leaked_secrets()


@pytest.mark.parametrize("damage", ["missing", "empty", "nonsense"])
def test_store_without_a_valid_superblock_is_refused(make_store: MakeStore, damage: str):
    """A directory that contains slices but no valid superblock must not be treated as a new store."""
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
    """Returns a command prefix that sets a memlock limit and, if run by root, changes to an unprivileged user."""
    limit = f"ulimit -l {memlock_kib} && exec \"$@\""
    if os.geteuid() != 0:
        return ["bash", "-c", limit, "bash"]
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    return ["bash", "-c", limit, "bash", *drop]


@pytest.fixture
def public_store(make_store: MakeStore) -> Iterator[Cairn]:
    """Returns a store whose files other users can reach."""
    with outside_the_checkout(make_store(), NOBODY if os.geteuid() == 0 else None) as store:
        yield store


def test_usual_memlock_limit_is_sufficient_for_unprivileged_users(public_store: Cairn):
    """Distributions allow 8 MiB of locked memory. This must be sufficient under load too."""
    prefix = unprivileged(MEMLOCK_USUAL_KIB)
    public_store.start(prefix)
    s3 = public_store.s3
    s3.create_bucket("kept")
    for number in range(20):
        s3.put("kept", f"k{number}", bytes([number]) * 1_000_000)
    for number in range(20):
        assert s3.get("kept", f"k{number}").body == bytes([number]) * 1_000_000
    assert public_store.stop() == 0


def test_too_low_memlock_limit_is_refused_with_a_remedy(public_store: Cairn):
    """Older systems allow 64 KiB. The error names the limit and the remedy."""
    prefix = unprivileged(64)
    output = refused(public_store, prefix=prefix).lower()
    assert "memlock" in output or "ulimit -l" in output or "locked memory" in output, output


@pytest.mark.parametrize("arguments", [["serve"], ["serve", "--dev"]])
def test_unwritable_data_folder_is_refused_with_a_hint(public_store: Cairn, arguments: list[str]):
    """The error names the user and what to do."""
    if os.geteuid() != 0:
        pytest.skip("needs a folder of another user")
    os.chown(public_store.data, 0, 0)
    if "--dev" in arguments:
        public_store.extra |= dict.fromkeys(public_store.secrets.environment())
    output = refused(public_store, prefix=unprivileged(MEMLOCK_USUAL_KIB), arguments=arguments)
    assert f"user id {NOBODY}" in output and "chown -R" in output and "--data-dir" in output, output


def test_data_folder_in_memory_causes_a_warning(make_store: MakeStore):
    """tmpfs loses everything when the host restarts. The server says so at each start; on a disk it does not."""
    on_disk, in_memory = make_store(), make_store()
    in_memory.data = Path(tempfile.mkdtemp(prefix="cairn-memory-", dir="/dev/shm"))
    try:
        for store in (on_disk, in_memory):
            store.spawn()
            store.wait_output("store open")
            store.kill()
        assert "tmpfs" not in on_disk.output()
        line = next(line for line in in_memory.output().splitlines() if "tmpfs" in line)
        assert " WARN " in line and "is lost when the host restarts" in line and str(in_memory.data) in line
    finally:
        shutil.rmtree(in_memory.data)


def test_missing_io_uring_is_named_in_the_error(make_store: MakeStore):
    """A container's seccomp profile may forbid io_uring."""
    output = refused(make_store(), prefix=[sys.executable, str(WITHOUT_IO_URING)])
    assert "io_uring" in output, output


# The command line


def run(*arguments: str) -> subprocess.CompletedProcess:
    """Runs the binary with arguments and without settings."""
    return subprocess.run(
        [BINARY, *arguments], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )


def test_help_is_shown_and_wrong_arguments_are_refused():
    """Wrong arguments exit with an error message and without a panic."""
    shown = run("--help")
    assert shown.returncode == 0 and "serve" in shown.stdout and "status" in shown.stdout
    for arguments in (("nonsense",), ("serve", "--nonsense"), ()):
        wrong = run(*arguments)
        assert wrong.returncode != 0 and wrong.stderr, arguments
        assert "panicked" not in wrong.stderr
