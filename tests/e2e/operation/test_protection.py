"""Protection of the process and its files: core files, file modes, the watchdog of the service manager."""

import ctypes
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from harness.accounts import create_account, statement
from harness.server import Cairn
from harness.wait import PATIENCE_SECONDS, until

MakeStore = Callable[..., Cairn]
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
WATCHDOG_SECONDS = 1.5
# Requests of ptrace(2).
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Sets the umask that a started server inherits."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("allowed", "owner"), [("false", 0), ("true", NOBODY)])
def test_process_leaves_no_core_file_unless_allowed(make_store: MakeStore, allowed: str, owner: int):
    """Root owns the files in /proc of a process that leaves no core file (proc(5)). Nobody else may read its memory then."""
    store = make_store(SERVICE_SERVER_CORE_DUMPS=allowed, SERVICE_METRICS_SCRAPE_TOKEN="scrape-token-of-a-test-0123456789")
    os.chown(store.folder, NOBODY, NOBODY)
    store.start(prefix=AS_NOBODY)
    assert Path(f"/proc/{store.process.pid}/environ").stat().st_uid == owner
    store.s3.create_bucket("works")
    store.s3.put("works", "large", bytes(1 << 20))
    assert store.stop() == 0
    # Lines of the log are written a moment later, all of them before the end.
    assert ("a core file would contain all secrets" in store.output()) == (allowed == "true")


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_files_are_closed_to_other_users_whatever_the_umask(make_store: MakeStore, mask: int):
    """Folders are 0700 and files 0600, of the store, the audit trail, the accounts, and the secrets of `serve --dev`."""
    dev = make_store(**{name: None for name in make_store().secrets.environment()})
    store = make_store()
    with umask(mask):
        dev.start(arguments=["serve", "--dev"])
        store.start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "large", bytes(1 << 20))
    create_account(store, statement("allow", "GetObject", "bucket:kept/*"))
    assert (dev.stop(), store.stop()) == (0, 0)
    for data in (dev.data, store.data):
        for path in (data, *data.rglob("*")):
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_folder_that_others_may_enter_causes_a_warning_at_startup(make_store: MakeStore):
    """An operator or a package may have created it. Its mode is kept."""
    store = make_store()
    store.data.mkdir(0o755)
    store.data.chmod(0o755)
    store.start()
    store.wait_output(f"chmod o-rwx {store.data}")
    assert store.stop() == 0
    assert stat.S_IMODE(store.data.stat().st_mode) == 0o755
    store.data.chmod(0o700)
    store.log.unlink()
    store.start()
    assert "chmod" not in store.output()


def notified(manager: socket.socket, patience: float = PATIENCE_SECONDS) -> float | None:
    """Waits for a notification of the watchdog, and returns when it came; `None` if none comes."""
    end = time.monotonic() + patience
    while (left := end - time.monotonic()) > 0:
        manager.settimeout(left)
        try:
            if "WATCHDOG=1" in manager.recv(4096).decode():
                return time.monotonic()
        except TimeoutError:
            break
    return None


def pause_between(manager: socket.socket) -> float:
    """Returns the seconds between the next two notifications of the watchdog."""
    first, second = notified(manager), notified(manager)
    assert first and second, "no notification comes"
    return second - first


def drain(manager: socket.socket) -> None:
    """Takes what has been sent so far."""
    manager.setblocking(False)
    with suppress(BlockingIOError):
        while manager.recv(4096):
            pass


def ptrace(request: int, thread: int) -> None:
    """Stops one thread of a process, or lets it continue."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")


def test_watchdog_is_notified_only_while_every_executor_runs(make_store: MakeStore, tmp_path: Path):
    """One executor is stopped. The process looks alive to everything else: its other threads still run."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        microseconds = int(WATCHDOG_SECONDS * 1_000_000)
        store = make_store(
            NOTIFY_SOCKET=str(tmp_path / "notify"),
            WATCHDOG_USEC=str(microseconds),
            SERVICE_SERVER_EXECUTORS="2",
            SERVICE_SERVER_CORE_DUMPS="true",
        ).start()
        # Three times within the limit; a busy machine delays some.
        until(lambda: pause_between(manager) < WATCHDOG_SECONDS / 2, "the notifications are too rare")
        tasks = Path(f"/proc/{store.process.pid}/task")
        executor = next(int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == "executor-1")
        ptrace(PTRACE_SEIZE, executor)
        ptrace(PTRACE_INTERRUPT, executor)
        os.waitpid(executor, 0x40000000)  # __WALL: it has stopped
        assert "executors=[1]" in store.wait_output("executors do not run")
        drain(manager)
        assert notified(manager, WATCHDOG_SECONDS) is None, "an executor hangs, and the manager does not notice"
        ptrace(PTRACE_DETACH, executor)
        assert notified(manager), "the executor runs again, and the manager does not notice"
        assert store.stop() == 0


def test_no_watchdog_is_notified_without_a_limit(make_store: MakeStore, tmp_path: Path):
    """The same holds for a limit that another process was given."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        store = make_store(NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="300000", WATCHDOG_PID="1").start()
        assert notified(manager, 1.0) is None
        assert store.stop() == 0
