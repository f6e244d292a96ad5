"""Starts, watches, stops and kills server processes with their own data directory and ports."""

import fcntl
import functools
import http.client
import itertools
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .management import Management, bearer
from .s3 import S3
from .sigv4 import Credential
from .wait import until

REPOSITORY = Path(__file__).resolve().parents[2]
# Runs a command on a kernel that appears to lack io_uring.
WITHOUT_IO_URING = REPOSITORY / "tests/harness/without_io_uring.py"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
# The profile that the binaries were built in; `./test` builds `ci`.
PROFILE = os.environ.get("CAIRN_TEST_PROFILE", "ci")
BUILD = TARGET / {"dev": "debug"}.get(PROFILE, PROFILE)
HOW_TO_BUILD = f"`cargo build --profile {PROFILE} --workspace --bins --examples` makes it"
BINARY = Path(os.environ.get("CAIRN_BIN", BUILD / "cairn"))
RUNS = Path(os.environ.get("CAIRN_TEST_DIR", TARGET / "e2e"))
LOOPBACK = "127.0.0.1"
PORT_MIN = 12_000
PORTS_OF_PROCESS = 600
# A new store needs dozens of flushes.
START_SECONDS = 180.0
STOP_SECONDS = 60.0


_started: "weakref.WeakSet[Cairn]" = weakref.WeakSet()


def started_servers() -> list["Cairn"]:
    """Returns the servers that this process has started and still refers to."""
    return list(_started)


class ServerError(AssertionError):
    """The server did not start, or exited unexpectedly."""


@functools.cache
def own_ports() -> Iterator[int]:
    """Returns ports that no other process of the tests takes, over and over.

    A store that is stopped needs its ports again, and must not find another test's server there. So each process locks a part of the
    range for as long as it lives. The ports are below those that the kernel chooses for clients: one of these may be taken by some
    client between a kill and the next start.
    """
    ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    parts = range(PORT_MIN, max(ephemeral, PORT_MIN + 2 * PORTS_OF_PROCESS) - PORTS_OF_PROCESS, PORTS_OF_PROCESS)
    folder = Path(tempfile.gettempdir()) / "cairn-test-ports"
    folder.mkdir(mode=0o777, exist_ok=True)
    for first in parts:
        # Locked until the process ends.
        lock = os.open(folder / str(first), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return itertools.cycle(range(first, first + PORTS_OF_PROCESS))
    raise ServerError(f"{len(parts)} processes of the tests have taken all ports")


def listens(port: int) -> bool:
    """Returns whether something on this machine takes connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def free_ports(count: int) -> list[int]:
    """Returns ports that nothing listens on and that no other process of the tests takes."""
    ports: list[int] = []
    while len(ports) < count:
        port = next(own_ports())
        if not listens(port):
            ports.append(port)
    return ports


@dataclass(frozen=True)
class Secrets:
    """The secrets of a store, generated anew for each store so that a leak into a log can be recognised."""

    master_key: str = field(default_factory=lambda: "master" + secrets.token_hex(24), repr=False)
    root_access_key: str = field(default_factory=lambda: "AKROOT" + secrets.token_hex(7).upper())
    root_secret_key: str = field(default_factory=lambda: "rootsecret" + secrets.token_hex(15), repr=False)
    system_token: str = field(default_factory=lambda: "systemtoken" + secrets.token_hex(24), repr=False)

    def hidden(self) -> list[str]:
        """Returns the secrets that must never appear in any output."""
        return [self.master_key, self.root_secret_key, self.system_token]

    def environment(self) -> dict[str, str]:
        """Returns the environment variables that pass the secrets."""
        return {
            "SERVICE_CREDENTIAL_MASTER_KEY": self.master_key,
            "SERVICE_ROOT_ACCESS_KEY": self.root_access_key,
            "SERVICE_ROOT_SECRET_KEY": self.root_secret_key,
            "SERVICE_MANAGEMENT_SYSTEM_TOKEN": self.system_token,
        }


def clean_environment() -> dict[str, str]:
    """Returns the environment without variables that would configure the server or a client."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SERVICE_", "AWS_", "RCLONE_", "S3_"))}


class Cairn:
    """One store: its data directory, secrets and ports, and its server process if one runs."""

    def __init__(self, folder: Path, extra: dict[str, str] | None = None, binary: Path = BINARY):
        self.folder, self.binary = folder, binary
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.secrets = Secrets()
        self.take_ports()
        self.extra = dict(extra or {})
        self.process: subprocess.Popen | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def take_ports(self) -> None:
        """Chooses new ports for the next start."""
        self.s3_port, self.api_port, self.console_port = free_ports(3)

    @property
    def credential(self) -> Credential:
        """Returns the root credential."""
        return Credential(self.secrets.root_access_key, self.secrets.root_secret_key)

    @property
    def s3(self) -> S3:
        """Returns a data plane client with the root credential."""
        return S3(LOOPBACK, self.s3_port, self.credential)

    @property
    def endpoint(self) -> str:
        """Returns the URL of the data plane."""
        return f"{'https' if self.has_tls('S3') else 'http'}://{LOOPBACK}:{self.s3_port}"

    @property
    def management(self) -> str:
        """Returns the URL of the management plane."""
        return f"{'https' if self.has_tls('API') else 'http'}://{LOOPBACK}:{self.api_port}"

    @property
    def console(self) -> str:
        """Returns the URL of the console's listener."""
        return f"{'https' if self.has_tls('CONSOLE') else 'http'}://{LOOPBACK}:{self.console_port}"

    def has_tls(self, listener: str) -> bool:
        """Returns whether TLS is configured for a listener, `S3`, `API` or `CONSOLE`."""
        configured = {"SERVICE_TLS_CERTIFICATE", f"SERVICE_TLS_{listener}_CERTIFICATE"} & self.extra.keys()
        return bool(configured) and self.extra.get(f"SERVICE_TLS_{listener}_ENABLED") != "false"

    @property
    def admin(self) -> Management:
        """Returns a management client with the system token."""
        return Management(self.management, bearer(self.secrets.system_token))

    def environment(self) -> dict[str, str]:
        """Returns the server's environment. A value of None in `extra` removes a variable."""
        told = clean_environment() | self.secrets.environment()
        told |= {
            "SERVICE_DATA_DIR": str(self.data),
            "SERVICE_S3_BIND": f"{LOOPBACK}:{self.s3_port}",
            "SERVICE_API_BIND": f"{LOOPBACK}:{self.api_port}",
            "SERVICE_CONSOLE_BIND": f"{LOOPBACK}:{self.console_port}",
            # The default depends on the machine. With two, every test covers what spans slices.
            "SERVICE_STORAGE_SLICES": "2",
            # How full the disk of this machine is must not change what a server says. Tests of disk space have their own disk.
            "SERVICE_STORAGE_LOW_SPACE_PERCENT": "0",
        }
        told |= self.extra
        return {name: value for name, value in told.items() if value is not None}

    def spawn(self, prefix: list[str] | None = None, arguments: list[str] | None = None) -> subprocess.Popen:
        """Starts the process without waiting for readiness."""
        if not self.binary.is_file():
            raise ServerError(f"{self.binary} is missing; {HOW_TO_BUILD}")
        command = [*(prefix or []), str(self.binary), *(arguments or ["serve"])]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self.process

    def start(self, prefix: list[str] | None = None, arguments: list[str] | None = None) -> "Cairn":
        """Starts the process and waits until the store is ready."""
        self.spawn(prefix, arguments)
        _started.add(self)
        self.wait_ready()
        return self

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the process for the block, as a suspended machine does. The kernel takes connections and requests meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def ready_status(self) -> int | None:
        """Returns the status of GET /ready, or None if nothing answers."""
        if self.has_tls("API"):
            # Other tests check the certificate.
            context = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection(LOOPBACK, self.api_port, timeout=5, context=context)
        else:
            connection = http.client.HTTPConnection(LOOPBACK, self.api_port, timeout=5)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()

    def wait_ready(self) -> None:
        """Polls until the store is ready. Fails with the log if the process exits or the time is up."""
        def is_ready() -> bool:
            if self.process.poll() is not None:
                raise ServerError(f"the server ended with {self.process.returncode}:\n{self.output()[-4000:]}")
            return self.ready_status() == 200

        until(is_ready, lambda: f"not ready after {START_SECONDS} s:\n{self.output()[-4000:]}", START_SECONDS)

    def output(self) -> str:
        """Returns everything that the process has written so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_output(self, text: str) -> str:
        """Polls until the process has written a text, and returns all output."""
        until(lambda: text in self.output(), lambda: f"{text!r} was never written:\n{self.output()[-4000:]}", START_SECONDS)
        return self.output()

    def running(self) -> bool:
        """Returns whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def terminate(self) -> None:
        """Sends SIGTERM, which starts the drain."""
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """Sends SIGTERM, waits for the exit, and returns the exit status."""
        self.terminate()
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """Sends SIGKILL and waits for the exit."""
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait(STOP_SECONDS)

    def restart(self) -> None:
        """Stops the server gracefully and starts it again."""
        code = self.stop()
        if code != 0:
            raise ServerError(f"the server ended with {code} on SIGTERM:\n{self.output()[-4000:]}")
        self.start()

    def leaked_secrets(self) -> list[str]:
        """Returns the secrets that the output contains, completely or as their first half."""
        text = self.output()
        return [value for value in self.secrets.hidden() if value[: len(value) // 2] in text]


@contextmanager
def outside_the_checkout(store: Cairn, owner: int | None) -> Iterator[Cairn]:
    """Gives a store a program and a data folder that any user can reach. The checkout may be in a home directory.

    The data folder belongs to the user `owner`, or to the one who runs the tests.
    """
    folder = Path(tempfile.mkdtemp(prefix="cairn-outside-", dir="/var/tmp"))
    folder.chmod(0o755)
    store.binary = Path(shutil.copy2(BINARY, folder / "cairn"))
    store.data = folder / "data"
    store.data.mkdir()
    if owner is not None:
        os.chown(store.data, owner, owner)
    try:
        yield store
    finally:
        store.kill()
        shutil.rmtree(folder)
