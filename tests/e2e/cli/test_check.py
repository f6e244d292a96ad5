"""`cairn check`: reported problems, their fixes and the exit code.

A check never changes the store.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from harness.folders import tree
from harness.server import LOOPBACK, WITHOUT_IO_URING, Cairn, listens
from harness.wait import until

MakeStore = Callable[..., Cairn]
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def stop(store: Cairn) -> None:
    """Stops the server, and waits for its ports. The kernel closes the sockets of a ring after the process has ended."""
    assert store.stop() == 0
    until(lambda: not any(map(listens, (store.s3_port, store.api_port, store.console_port))), "the ports of the server are free")


def check(store: Cairn, *arguments: str, prefix: tuple[str, ...] = (), code: int = 0) -> dict[str, tuple[str, str, str]]:
    """Runs `cairn check` with the store's environment. Returns (verdict, finding, fix) by the name of the check."""
    command = [*prefix, str(store.binary), "check", "--json", *arguments]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=30)
    if done.returncode != code and done.stdout:
        failed = [found for found in json.loads(done.stdout)["checks"] if found["verdict"] == "failed"]
        raise AssertionError(f"exit status {done.returncode}, not {code}: {failed}")
    assert done.returncode == code, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in store.secrets.hidden())
    answer = json.loads(done.stdout)
    assert (answer["failed"] == 0) == (code == 0), answer
    return {found["name"]: (found["verdict"], found["seen"], found["mend"] or "") for found in answer["checks"]}


def test_check_changes_nothing_before_during_and_after_a_server(make_store: MakeStore):
    """No file is created before the first start, a running server is not disturbed, a stopped store does not change."""
    store = make_store()
    found = check(store)
    assert not store.data.exists() and "none yet" in found["store"][1]
    assert {found[name][0] for name in ("kernel", "io_uring", "direct I/O", "data plane")} == {"ok"}
    store.start()
    found = check(store)
    assert "running server" in found["store"][1]
    assert found["data plane"][0] == "warning" and "in use" in found["data plane"][1], "the check cannot know which program uses the port"
    stop(store)
    before = tree(store.data)
    assert found["master key"][0] == "ok" and "no server" in check(store)["store"][1]
    assert tree(store.data) == before


def test_check_dev_creates_no_secrets(make_store: MakeStore):
    """Only `serve --dev` creates them, at its first start."""
    store = make_store(**{name: None for name in make_store().secrets.environment()})
    check(store, "--dev")
    assert not store.data.exists()


def test_missing_certificate_authorities_are_reported(make_store: MakeStore):
    """Regression: webhooks with https failed in the container image, which had none, and no check said so."""
    store = make_store()
    assert check(store)["authorities"][0] == "ok"
    store.extra |= {"SSL_CERT_FILE": str(store.folder / "none.pem"), "SSL_CERT_DIR": None}
    verdict, seen, fix = check(store)["authorities"]
    assert verdict == "warning" and "webhooks" in seen and "SSL_CERT_FILE" in fix and "ca-certificates" in fix


def test_all_configuration_problems_are_reported_together(make_store: MakeStore):
    """The checks of the host run too."""
    store = make_store(SERVICE_ROOT_S3_ENABLED="perhaps", SERVICE_S3_BNID="x")
    command = [str(store.binary), "check"]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=30)
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed")]
    assert done.returncode == 1 and len(failed) == 2 and "2 of" in done.stderr, done
    assert "SERVICE_ROOT_S3_ENABLED" in failed[0] and "did you mean SERVICE_S3_BIND?" in failed[1]
    assert "io_uring" in done.stdout


def test_short_secrets_are_reported_by_the_check_and_at_the_start(make_store: MakeStore):
    """The server starts with them, because people test with short secrets. The warning does not repeat the secret."""
    store = make_store(SERVICE_ROOT_SECRET_KEY="short-root-secret")
    command = [str(store.binary), "check"]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=30)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("warning") and "SERVICE_ROOT_SECRET_KEY" in line]
    assert done.returncode == 0 and "32 bytes" in line
    store.start()
    output = store.wait_output("SERVICE_ROOT_SECRET_KEY is shorter than the recommended 32 bytes")
    assert "short-root-secret" not in done.stdout + output


def test_another_master_key_is_reported(make_store: MakeStore):
    """A start with this key would be refused."""
    store = make_store().start()
    stop(store)
    store.extra["SERVICE_CREDENTIAL_MASTER_KEY"] = "another-master-key-0123456789-0123456789"
    verdict, _, fix = check(store, code=1)["master key"]
    assert verdict == "failed" and "SERVICE_CREDENTIAL_MASTER_KEY" in fix


def test_port_in_use_is_reported(make_store: MakeStore):
    """The fix names the variable to change."""
    store = make_store()
    with socket.create_server((LOOPBACK, store.s3_port)):
        verdict, seen, fix = check(store, code=1)["data plane"]
    assert verdict == "failed" and str(store.s3_port) in seen and "SERVICE_S3_BIND" in fix


def test_forbidden_io_uring_is_reported(make_store: MakeStore):
    """The system calls are blocked as by the seccomp profile of a container engine."""
    verdict, seen, _ = check(make_store(), prefix=(sys.executable, str(WITHOUT_IO_URING)), code=1)["io_uring"]
    assert verdict == "failed" and "seccomp" in seen


def test_low_resource_limits_are_reported(make_store: MakeStore):
    """A limit that would prevent the start fails. A limit that the server can work with is a warning."""
    store = make_store(SERVICE_SERVER_MEMORY_LIMIT="72MiB", SERVICE_SERVER_EXECUTORS="8")
    verdict, seen, _ = check(store, prefix=("prlimit", "--nofile=4096", "--memlock=65536"), code=1)["memory"]
    assert verdict == "failed" and "need at least" in seen
    found = check(store, prefix=("prlimit", "--nofile=4096", "--memlock=65536"), code=1)
    assert found["open files"][0] == "warning" and "LimitNOFILE" in found["open files"][2]
    assert found["locked memory"][0] == "failed" and "LimitMEMLOCK" in found["locked memory"][1]


def test_data_folder_of_another_user_is_reported(make_store: MakeStore):
    """The store was created as root and is to be served by another user."""
    store = make_store().start()
    stop(store)
    store.data.chmod(0o755)
    verdict, seen, fix = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and str(store.data) in seen and "chown" in fix
    verdict, _, fix = check(store)["data folder"]
    assert verdict == "warning" and "chmod o-rwx" in fix


def stopped_store_of_nobody(store: Cairn) -> Cairn:
    """Starts and stops the store once, then makes an unprivileged user its owner."""
    store.start()
    stop(store)
    for path in (store.data, *store.data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    store.data.chmod(0o700)
    return store


@pytest.mark.parametrize("part", ["slices/00/meta/data.mdb", "slices/01/volumes/000000.vol", "slices/01/volumes", "control/data.mdb"])
def test_store_file_of_another_user_is_reported(make_store: MakeStore, part: str):
    """Regression: the start failed although the check found nothing. Root gets a warning, since it may access any file."""
    store = stopped_store_of_nobody(make_store())
    assert check(store, prefix=AS_NOBODY)["data folder"][0] == "ok"
    os.chown(store.data / part, 0, 0)
    (store.data / part).chmod(0o700)
    verdict, seen, fix = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and str(store.data / part) in seen and "chown" in fix
    verdict, seen, _ = check(store)["data folder"]
    assert verdict == "warning" and str(store.data / part) in seen


@pytest.mark.parametrize("part", ["control/data.mdb", "slices/01", "slices/00/meta/data.mdb", "slices/00/volumes/000000.vol"])
def test_missing_store_file_is_reported(make_store: MakeStore, part: str):
    """The superblock tells which files must exist."""
    store = make_store().start()
    stop(store)
    (store.data / part).rename(store.folder / "elsewhere")
    verdict, seen, _ = check(store, code=1)["data folder"]
    assert verdict == "failed" and f"{store.data / part} is missing" in seen


def test_check_as_root_warns_about_unwritable_folders(make_store: MakeStore):
    """Root can write to a folder that its owner, the service user, cannot write to."""
    store = stopped_store_of_nobody(make_store())
    store.data.chmod(0o500)
    verdict, seen, fix = check(store)["data folder"]
    assert verdict == "warning" and "as root" in seen and "runuser" in fix
    assert check(store, prefix=AS_NOBODY, code=1)["data folder"][0] == "failed"


def test_inaccessible_parent_folder_is_reported(make_store: MakeStore):
    """Regression: the data folder was reported as missing, with the advice to create it."""
    store = stopped_store_of_nobody(make_store())
    store.folder.chmod(0o700)
    verdict, seen, fix = check(store, prefix=AS_NOBODY, code=1)["data folder"]
    assert verdict == "failed" and f"{store.folder} cannot be entered by this user" in seen and str(store.folder) in fix


def test_dangling_symbolic_link_is_reported(make_store: MakeStore):
    """A start cannot create the data folder through a dangling link."""
    store = make_store()
    store.data.symlink_to(store.folder / "nothing")
    verdict, seen, _ = check(store, code=1)["data folder"]
    assert verdict == "failed" and "symbolic link" in seen


def test_damaged_superblock_is_reported_once(make_store: MakeStore):
    """It is not also reported as a lack of memory."""
    store = make_store().start()
    stop(store)
    (store.data / "superblock.json").write_text("{}")
    found = check(store, code=1)
    assert found["store"][0] == "failed" and found["memory"][0] == "warning"


def test_memory_limit_is_reported_with_its_source(make_store: MakeStore):
    """Regression: the variable was named although the limit came from the configuration file."""
    store = make_store()
    configuration = store.folder / "cairn.toml"
    configuration.write_text('[server]\nmemory_limit = "72MiB"\nexecutors = 4\n')
    verdict, seen, _ = check(store, "--config", str(configuration), code=1)["memory"]
    assert verdict == "failed" and seen.startswith("server.memory_limit: ") and "fewer executors" in seen
