"""Denial-of-service load: many slow, idle or resetting connections, and their effect on others.

A crowd is one thread with plain sockets. Each connection sends its first bytes, then some bytes every second or nothing,
and is reopened when the server closes it. cairn-load runs at the same time and measures the other clients.
"""

import json
import os
import resource
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import cairn_load
from .aws_chunked import SIGNED, ChunkedUpload
from .s3 import object_target
from .server import LOOPBACK, Cairn
from .sigv4 import UNSIGNED_PAYLOAD
from .wait import until
from .wire import encode_head

BUCKET = "hostile"
LARGE_KEY, LARGE_BYTES = "large", 8 << 20
DRIP_SECONDS = 1.0
# Connections opened in one step before the existing ones are served.
OPENED_AT_ONCE = 200
FILES_MIN = 24_000
# Connections of the other clients.
LOAD_CONNECTIONS = 8
# An attack whose connections are closed by the server counts as established after this many times its connections.
TURNED_AWAY_TIMES = 5
# The other clients' load fills the cache. A small cache is full before the measurement begins.
CACHE_BYTES = "8MiB"
MIB = 1 << 20
CHUNK_BYTES = 65_536
# Linux: closing a socket with this SO_LINGER value resets the connection.
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Attack:
    """The behaviour of the connections of one attack."""

    name: str
    connections: int
    # Returns the first bytes of a connection, given the store and the connection's number.
    begin: Callable[[Cairn, int], bytes]
    # The bytes that are sent every second afterwards.
    drip: bytes = b""
    # Whether the attacker reads the responses.
    reads: bool = True
    receive_buffer_bytes: int | None = None
    # Whether connections are reset as soon as they are open, and opened again.
    resets: bool = False
    # The additional memory that the server may use, in MiB.
    memory_mib_max: int = 64
    settings: tuple[tuple[str, str], ...] = ()
    files_max: int | None = None
    # Whether new clients are served during the attack: not if it occupies all connection slots.
    lets_in: bool = True
    # The allowed increase of the others' p99: if upload memory is exhausted, they queue behind the attacker's uploads.
    ratio_max: float = 2.0
    # The minimum duration of a measurement, in seconds: shorter ones would miss queued clients.
    seconds_min: float = 0.0


def slow_upload(store: Cairn, number: int) -> bytes:
    """Returns a signed upload of 10 MiB that stops in the middle of its first buffer."""
    head = store.s3.signed_head(
        "PUT", object_target(BUCKET, f"slow-{number}"), payload=UNSIGNED_PAYLOAD, content_length=10 * MIB
    )
    return encode_head("PUT", object_target(BUCKET, f"slow-{number}"), head) + b"x" * 20_000


def eager_upload(store: Cairn, number: int) -> bytes:
    """Returns the same upload that stops after its first buffer, so that the server has granted a large one."""
    return slow_upload(store, number) + b"x" * 60_000


def slow_chunked_upload(store: Cairn, number: int) -> bytes:
    """Returns an upload of 10 MiB in signed chunks that stops in the middle of its second chunk."""
    content = bytes(2 * CHUNK_BYTES)
    upload = ChunkedUpload(
        store.s3, BUCKET, f"slow-{number}", content, SIGNED, CHUNK_BYTES, decoded_length=str(10 * MIB), content_length=11 * MIB
    )
    request = upload.request()
    return request[: len(request) - CHUNK_BYTES // 2]


def large_get(store: Cairn, _number: int) -> bytes:
    """Returns a signed GET of a large object."""
    target = object_target(BUCKET, LARGE_KEY)
    return encode_head("GET", target, store.s3.signed_head("GET", target))


def unsigned_upload(_store: Cairn, number: int) -> bytes:
    """Returns an anonymous upload."""
    return f"PUT /{BUCKET}/nobody-{number} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx".encode()


def half_head(_store: Cairn, number: int) -> bytes:
    """Returns the beginning of a request head that never ends."""
    return f"GET /{BUCKET}/{number} HTTP/1.1\r\nHost: x\r\nx-slow: ".encode()


def nothing(_store: Cairn, _number: int) -> bytes:
    """Returns no bytes."""
    return b""


ONE_EXECUTOR = (("SERVICE_SERVER_EXECUTORS", "1"),)
EXTENDED = (("SERVICE_S3_COMPATIBILITY", "extended"),)
ATTACKS = [
    Attack("slow heads", 1000, half_head, b"y"),
    Attack("slow bodies of nobody", 1000, unsigned_upload, b"y"),
    Attack("slow uploads", 500, slow_upload, b"y", memory_mib_max=128),
    Attack("slow uploads in chunks", 500, slow_chunked_upload, b"y", memory_mib_max=128, settings=EXTENDED),
    Attack("slow uploads on one executor", 500, eager_upload, b"y", memory_mib_max=160, settings=ONE_EXECUTOR),
    Attack("more slow uploads than there is memory for", 2600, slow_upload, b"y", memory_mib_max=260, settings=ONE_EXECUTOR, ratio_max=float("inf"), seconds_min=12.0),
    Attack("readers that stop", 500, large_get, reads=False, receive_buffer_bytes=4096, memory_mib_max=320),
    Attack("idle connections", 10_000, nothing, memory_mib_max=160),
    Attack("a flood of connections", 200, nothing, resets=True),
    Attack(
        "too few descriptors", 2000, nothing, files_max=600, lets_in=False,
        settings=(("SERVICE_SERVER_IDLE_TIMEOUT_SECONDS", "3"),),
    ),
]


class Crowd(threading.Thread):
    """The connections of one attack, kept open until `stop`."""

    def __init__(self, attack: Attack, store: Cairn):
        super().__init__(daemon=True)
        self.attack, self.store = attack, store
        self.opened = self.closed_by_server = 0
        self.stopping = threading.Event()
        self.standing = threading.Event()
        self.memory_kib_max = resident_kib(store)
        self._open: dict[int, socket.socket] = {}
        self._poll = select.epoll()

    def run(self) -> None:
        next_drip = time.monotonic() + DRIP_SECONDS
        while not self.stopping.is_set():
            self._fill()
            self._look(0.05)
            if time.monotonic() >= next_drip:
                next_drip = time.monotonic() + DRIP_SECONDS
                self._drip()
                self.memory_kib_max = max(self.memory_kib_max, resident_kib(self.store))
        for number in list(self._open):
            self._close(number)
        self._poll.close()

    def stop(self) -> None:
        """Closes all connections and waits."""
        self.stopping.set()
        self.join()

    def _fill(self) -> None:
        for _ in range(min(OPENED_AT_ONCE, self.attack.connections - len(self._open))):
            sock = socket.socket()
            if self.attack.receive_buffer_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.attack.receive_buffer_bytes)
            sock.settimeout(5)
            try:
                sock.connect((LOOPBACK, self.store.s3_port))
                sock.sendall(self.attack.begin(self.store, self.opened))
            except OSError:
                # The connection was refused or the backlog is full; the next round tries again.
                sock.close()
                self.closed_by_server += 1
                break
            self.opened += 1
            if self.attack.resets:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                sock.close()
                continue
            sock.setblocking(False)
            self._open[sock.fileno()] = sock
            self._poll.register(sock, select.EPOLLIN | select.EPOLLRDHUP if self.attack.reads else select.EPOLLRDHUP)
        # A crowd that is turned away as fast as it comes has come all the same.
        turned_away = self.opened >= TURNED_AWAY_TIMES * self.attack.connections
        if len(self._open) >= self.attack.connections or turned_away or self.attack.resets or not self.attack.lets_in:
            self.standing.set()

    def _look(self, seconds: float) -> None:
        for number, _ in self._poll.poll(seconds, 1000):
            try:
                if not self._open[number].recv(65536):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                self._close(number)
                self.closed_by_server += 1

    def _drip(self) -> None:
        if not self.attack.drip:
            return
        for sock in self._open.values():
            try:
                sock.send(self.attack.drip)
            except OSError:
                pass  # `_look` finds out.

    def _close(self, number: int) -> None:
        sock = self._open.pop(number)
        self._poll.unregister(sock)
        sock.close()


def resident_kib(store: Cairn) -> int:
    """Memory of the server's own. The pages of LMDB's map are the kernel's: it takes them back when it needs them."""
    text = Path(f"/proc/{store.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon:"))


def raise_file_limit() -> None:
    """Raises the descriptor limit of this process to the number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES_MIN:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, FILES_MIN), hard))


@dataclass
class Served:
    """The results of the other clients."""

    requests: int
    errors: dict[str, int]
    wrong: int
    p99_ms: float


def start_load(store: Cairn, *extent: str) -> subprocess.Popen:
    """Starts the other clients' reads, uploads, deletes and lists, which are verified byte by byte."""
    return cairn_load.spawn(
        store, "mixed", "--bucket", BUCKET, "--keys", "400", "--size", "4KiB:60,64KiB:40",
        "--connections", str(LOAD_CONNECTIONS),
        *extent, "--timeout", "30s", "--verify", "--json",
    )


def window(seconds: float, warm_up: float) -> tuple[str, ...]:
    """Returns the options for a length of time."""
    return "--duration", f"{seconds * 1000:.0f}ms", "--warm-up", f"{warm_up * 1000:.0f}ms"


def served(load: subprocess.Popen) -> Served:
    """Waits for the end of the load and returns its report."""
    out, _ = load.communicate()
    report = json.loads(out)
    latency = report["total"]["latency_us"] or {"p99": float("inf")}
    return Served(
        report["total"]["requests"], report["errors"], report["verification"]["failures"], latency["p99"] / 1000
    )


@dataclass
class Result:
    """The measurements of one attack."""

    attack: Attack
    quiet: Served
    attacked: Served
    opened: int
    closed_by_server: int
    memory_mib: float

    @property
    def ratio(self) -> float:
        """Returns the ratio of the other clients' p99 latency during the attack to that before it."""
        return self.attacked.p99_ms / self.quiet.p99_ms

    def problems(self) -> list[str]:
        """Returns the failures that no load of the machine can excuse."""
        found = []
        if self.attacked.errors or self.attacked.wrong or not self.attacked.requests:
            found.append(f"others: {self.attacked}")
        if self.memory_mib > self.attack.memory_mib_max:
            found.append(f"{self.memory_mib:.0f} MiB of memory, more than {self.attack.memory_mib_max}")
        return found

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"{self.attack.name:44} {self.opened:7} opened {self.closed_by_server:7} closed  +{self.memory_mib:4.0f} MiB  "
            f"p99 {self.quiet.p99_ms:7.2f} -> {self.attacked.p99_ms:7.2f} ms  x{self.ratio:.2f}  "
            + ("ok" if not self.problems() else "; ".join(self.problems()))
        )


@contextmanager
def attacked_store(folder: Path, attack: Attack) -> Iterator[Cairn]:
    """Starts a store with the attack's settings and an object to read."""
    raise_file_limit()
    store = Cairn(folder, {"SERVICE_STORAGE_CACHE_BYTES": CACHE_BYTES, **dict(attack.settings)})
    limit = ["bash", "-c", f'ulimit -n {attack.files_max} && exec "$@"', "bash"] if attack.files_max else None
    store.start(limit)
    try:
        store.s3.create_bucket(BUCKET)
        store.s3.put(BUCKET, LARGE_KEY, os.urandom(LARGE_BYTES))
        yield store
        assert store.running(), store.output()[-3000:]
        assert "panicked" not in store.output() and not store.leaked_secrets()
    finally:
        store.kill()


def measure(store: Cairn, attack: Attack, seconds: float, quiet_requests: int | None = None) -> Result:
    """Measures the others without and with the attack. A new client must be served afterwards, or even during it.

    A number of requests without the attack is enough where its speed is not judged. The attack is then measured for at
    least twice the time that they took. The device of a busy machine may stand still for all of that. Then the same number
    of requests is measured during the attack.
    """
    seconds = max(seconds, attack.seconds_min)
    begun = time.monotonic()
    quiet = served(start_load(store, *(("--requests", str(quiet_requests)) if quiet_requests else window(seconds, 1))))
    if quiet_requests:
        seconds = max(seconds, 2 * (time.monotonic() - begun))
    before = resident_kib(store)
    crowd = Crowd(attack, store)
    if attack.lets_in:
        crowd.start()
        assert crowd.standing.wait(60), f"only {crowd.opened} of {attack.connections} connections"
        assert store.s3.head(BUCKET, LARGE_KEY).status == 200
        until(lambda: store.ready_status() == 200, "the server is ready")
        load = start_load(store, *window(seconds, 1))
    else:
        # The attack occupies all connection slots, but connections that were open before it stay open.
        load = start_load(store, *window(seconds, 3))
        wait_connected(load)
        crowd.start()
    attacked = served(load)
    if quiet_requests and attack.lets_in and not attacked.requests and not attacked.errors:
        attacked = served(start_load(store, "--requests", str(quiet_requests)))
    crowd.stop()
    wait_served(store)
    memory = (max(crowd.memory_kib_max, before) - before) / 1024
    return Result(attack, quiet, attacked, crowd.opened, crowd.closed_by_server, memory)


def wait_connected(load: subprocess.Popen) -> None:
    """Waits until the load has opened all of its connections."""

    def is_socket(file: Path) -> bool:
        try:
            return str(file.readlink()).startswith("socket:")
        except FileNotFoundError:
            return False  # It was closed meanwhile.

    files = Path(f"/proc/{load.pid}/fd")
    until(lambda: sum(map(is_socket, files.iterdir())) >= LOAD_CONNECTIONS, "the load did not open its connections")


def wait_served(store: Cairn, seconds: float = 30.0) -> None:
    """Waits until a new client is served: slots of closed connections must become free by themselves."""

    def is_served() -> bool:
        try:
            return store.s3.head(BUCKET, LARGE_KEY).status == 200
        except (AssertionError, OSError):
            return False

    until(is_served, "new clients are no longer served", seconds)
