"""Hostile clients in numbers: crowds of connections that are slow, silent or rude, and what others get meanwhile.

A crowd is one thread over plain sockets. Each of its connections sends a beginning, then a byte now and then or nothing at
all, and comes back when the server has closed it. What others get is measured with cairn-load, which runs beside.
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
from .s3 import object_target
from .server import LOOPBACK, Cairn
from .sigv4 import UNSIGNED_PAYLOAD
from .wire import encode_head

BUCKET = "hostile"
LARGE_KEY, LARGE_BYTES = "large", 8 << 20
DRIP_SECONDS = 1.0
# Connections opened in one go before the others are looked after.
OPENED_AT_ONCE = 200
FILES_MIN = 24_000
# So many times its number, and a crowd of connections that the server closes is at work.
TURNED_AWAY_TIMES = 5
# What others read and write fills the cache, whoever attacks: with a small one that is over before the measurement.
CACHE_BYTES = "8MiB"
MIB = 1 << 20
# Linux: closing with this lingering resets the connection.
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Attack:
    """What one crowd does."""

    name: str
    connections: int
    # The first bytes of a connection, given its number and the store.
    begin: Callable[[Cairn, int], bytes]
    # What is sent every second after that.
    drip: bytes = b""
    # Whether the crowd reads what the server sends.
    reads: bool = True
    receive_buffer_bytes: int | None = None
    # Connections are reset as soon as they are open, and opened again.
    resets: bool = False
    # What the server may need beside what it needed before, in MiB.
    memory_mib_max: int = 64
    settings: tuple[tuple[str, str], ...] = ()
    files_max: int | None = None
    # Whether those who want to connect meanwhile are served: not when the crowd has all places.
    lets_in: bool = True
    # How many times longer the others' p99 may be: beyond the memory for uploads they wait their turn with the crowd.
    ratio_max: float = 2.0
    # A measurement is at least so long: shorter ones would see nothing of those who wait their turn.
    seconds_min: float = 0.0


def slow_upload(store: Cairn, number: int) -> bytes:
    """A signed upload of 10 MiB that stops in the middle of its first buffer."""
    head = store.s3.signed_head(
        "PUT", object_target(BUCKET, f"slow-{number}"), payload=UNSIGNED_PAYLOAD, content_length=10 * MIB
    )
    return encode_head("PUT", object_target(BUCKET, f"slow-{number}"), head) + b"x" * 20_000


def eager_upload(store: Cairn, number: int) -> bytes:
    """The same beyond the first buffer, so that the server has granted a large one."""
    return slow_upload(store, number) + b"x" * 60_000


def large_get(store: Cairn, _number: int) -> bytes:
    """A signed GET of a large object."""
    target = object_target(BUCKET, LARGE_KEY)
    return encode_head("GET", target, store.s3.signed_head("GET", target))


def unsigned_upload(_store: Cairn, number: int) -> bytes:
    """An upload of nobody."""
    return f"PUT /{BUCKET}/nobody-{number} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx".encode()


def half_head(_store: Cairn, number: int) -> bytes:
    """A head that goes on and on."""
    return f"GET /{BUCKET}/{number} HTTP/1.1\r\nHost: x\r\nx-slow: ".encode()


def nothing(_store: Cairn, _number: int) -> bytes:
    """Not a byte."""
    return b""


ONE_EXECUTOR = (("SERVICE_SERVER_EXECUTORS", "1"),)
ATTACKS = [
    Attack("slow heads", 1000, half_head, b"y"),
    Attack("slow bodies of nobody", 1000, unsigned_upload, b"y"),
    Attack("slow uploads", 500, slow_upload, b"y", memory_mib_max=128),
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
    """The connections of one attack, kept up until `stop`."""

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
        """Close all connections and wait."""
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
                # Turned away, or the server is behind: the next round tries again.
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
    """Ten thousand connections need as many descriptors here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES_MIN:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, FILES_MIN), hard))


@dataclass
class Served:
    """What the others got."""

    requests: int
    errors: dict[str, int]
    wrong: int
    p99_ms: float


def start_load(store: Cairn, seconds: float, warm_up: float) -> subprocess.Popen:
    """Others' reads, uploads, deletes and lists, checked byte by byte."""
    return cairn_load.spawn(
        store, "mixed", "--bucket", BUCKET, "--keys", "400", "--size", "4KiB:60,64KiB:40", "--connections", "8",
        "--duration", f"{seconds * 1000:.0f}ms", "--warm-up", f"{warm_up * 1000:.0f}ms", "--timeout", "30s", "--verify", "--json",
    )


def served(load: subprocess.Popen) -> Served:
    """The load's report, when it has ended."""
    out, _ = load.communicate()
    report = json.loads(out)
    latency = report["total"]["latency_us"] or {"p99": float("inf")}
    return Served(
        report["total"]["requests"], report["errors"], report["verification"]["failures"], latency["p99"] / 1000
    )


@dataclass
class Result:
    """One attack, measured."""

    attack: Attack
    quiet: Served
    attacked: Served
    opened: int
    closed_by_server: int
    memory_mib: float

    @property
    def ratio(self) -> float:
        """How much slower the slowest hundredth of the others' requests became."""
        return self.attacked.p99_ms / self.quiet.p99_ms

    def problems(self) -> list[str]:
        """What must never be, however busy the machine is."""
        found = []
        if self.attacked.errors or self.attacked.wrong or not self.attacked.requests:
            found.append(f"others: {self.attacked}")
        if self.memory_mib > self.attack.memory_mib_max:
            found.append(f"{self.memory_mib:.0f} MiB of memory, more than {self.attack.memory_mib_max}")
        return found

    def line(self) -> str:
        """For people."""
        return (
            f"{self.attack.name:44} {self.opened:7} opened {self.closed_by_server:7} closed  +{self.memory_mib:4.0f} MiB  "
            f"p99 {self.quiet.p99_ms:7.2f} -> {self.attacked.p99_ms:7.2f} ms  x{self.ratio:.2f}  "
            + ("ok" if not self.problems() else "; ".join(self.problems()))
        )


@contextmanager
def attacked_store(folder: Path, attack: Attack) -> Iterator[Cairn]:
    """A store as the attack wants it, with something to read."""
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


def measure(store: Cairn, attack: Attack, seconds: float) -> Result:
    """Others alone, then others beside the crowd. A new client is served in the end, and meanwhile where it can be."""
    seconds = max(seconds, attack.seconds_min)
    quiet = served(start_load(store, seconds, 1))
    before = resident_kib(store)
    crowd = Crowd(attack, store)
    if attack.lets_in:
        crowd.start()
        assert crowd.standing.wait(60), f"only {crowd.opened} of {attack.connections} connections"
        assert store.s3.head(BUCKET, LARGE_KEY).status == 200
        assert store.ready_status() == 200
        load = start_load(store, seconds, 1)
    else:
        # The crowd takes all places: those who were there before it keep theirs.
        load = start_load(store, seconds, 3)
        wait_for_load(store)
        crowd.start()
    attacked = served(load)
    crowd.stop()
    wait_served(store)
    memory = (max(crowd.memory_kib_max, before) - before) / 1024
    return Result(attack, quiet, attacked, crowd.opened, crowd.closed_by_server, memory)


def wait_for_load(store: Cairn) -> None:
    """Until the load has written its first object."""
    give_up = time.monotonic() + 10
    while not store.s3.list(BUCKET, prefix="load/", max_keys=1).keys:
        assert time.monotonic() < give_up, "the load does not begin"


def wait_served(store: Cairn, seconds: float = 30.0) -> None:
    """Until a new client is served: the places of those who left come back by themselves."""
    give_up = time.monotonic() + seconds
    while True:
        try:
            if store.s3.head(BUCKET, LARGE_KEY).status == 200:
                return
        except (AssertionError, OSError):
            pass
        assert time.monotonic() < give_up, "nobody is served any more"
        time.sleep(0.2)
