"""Mixed load of the crash tests: writers with known state, and readers that verify.

Each writer owns its keys, so every answer to it is known in advance: puts, overwrites, conditional puts that must be
taken or refused, uploads in parts (`multipart_load.py`), copies, versions (`version_load.py`), deletes, ranged reads and lists of its own folder. A wrong
answer ends the run at once.
"""

import hashlib
import random
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from . import multipart_load, version_load
from .crash_model import KeyState, Model, Version, composite_etag
from .expect import Broken
from .link_load import Links, Owner
from .s3 import S3, object_target, parse_listing, xml
from .server import Cairn
from .wire import Connection, WireError

BUCKET = "crash"
WRITERS = 8
READERS = 2
# The actions of a writer, with their shares.
ACTIONS = {
    "put": 33, "conditional": 13, "multipart": 4, "copy": 8, "versions": 10, "delete": 18, "range": 9, "list": 5,
}
# A cycle ends after at most this many acknowledged changes or seconds, plus a random delay.
CHANGES_MAX = 200
LOAD_SECONDS_MAX = 3.0
BETWEEN_SECONDS_MAX = 0.05
POLL_SECONDS = 0.005
ABSENT_ETAG = '"00000000000000000000000000000000"'


class Client:
    """Sends requests on one connection until the fault. Before the fault every connection failure is a defect."""

    def __init__(self, model: Model, name: str):
        self.model, self.name = model, name
        self.rng = random.Random(f"{model.seed}-{name}")
        self.done = 0

    def run(self, s3: S3, struck: threading.Event) -> None:
        """Sends requests one after the other, and reconnects if the server announced that it closes the connection."""
        try:
            while not struck.is_set():
                with s3.connect() as connection:
                    while not struck.is_set() and not connection.closing:
                        self.step(s3, connection)
        except (WireError, OSError) as error:
            if not struck.is_set():
                raise Broken(f"{self.name}: the connection failed before anything struck: {error!r}") from error

    def step(self, s3: S3, connection: Connection) -> None:
        """Sends one request."""
        raise NotImplementedError


class Writer(Client):
    """A client that is the only writer of its keys."""

    def __init__(self, model: Model, number: int):
        super().__init__(model, f"writer-{number}")
        self.number, self.keys = number, model.keys[number]

    def step(self, s3: S3, connection: Connection) -> None:
        """Runs one random action."""
        key = self.rng.choice(list(self.keys))
        action = self.rng.choices(list(ACTIONS), ACTIONS.values())[0]
        getattr(self, f"do_{action}")(s3, connection, key, self.keys[key])

    def do_put(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Creates or overwrites an object."""
        self.put(s3, connection, key, state, [], taken=True)

    def do_conditional(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Sends a conditional put whose outcome is known."""
        if self.rng.random() < 0.5:
            self.put(s3, connection, key, state, [("If-None-Match", "*")], taken=state.seen is None)
        elif state.seen is None or self.rng.random() < 0.3:
            self.put(s3, connection, key, state, [("If-Match", ABSENT_ETAG)], taken=False)
        else:
            self.put(s3, connection, key, state, [("If-Match", self.model.etag(key, state.seen))], taken=True)

    def put(
        self, s3: S3, connection: Connection, key: str, state: KeyState, headers: list[tuple[str, str]], *, taken: bool
    ) -> None:
        """Sends a put that must be accepted or refused."""
        wish = self.model.new_version(self.number, self.rng)
        self.model.begin(state, wish)
        target = object_target(BUCKET, key)
        response = s3.request("PUT", target, headers, self.model.body(key, wish), connection=connection)
        refusal = 404 if state.seen is None and headers and headers[0][0] == "If-Match" else 412
        if response.status != (200 if taken else refusal):
            raise Broken(f"PUT {key} {headers}: {response.status} {response.body[:500]!r}, it was {state.seen}")
        if not taken:
            self.model.refused(state)
        elif response.get("etag") != self.model.etag(key, wish):
            raise Broken(f"PUT {key}: {response.get('etag')} is not the entity tag of what was sent")
        else:
            self.model.acknowledge(state, wish)
            self.done += 1

    def do_multipart(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Uploads an object in parts, or aborts the upload."""
        self.done += multipart_load.upload(self.model, self.number, self.rng, s3, connection, BUCKET, key, state)

    def do_versions(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Changes this writer's key in the versioned bucket."""
        version_load.change(self.model, self.number, self.rng, s3, connection)
        self.done += 1

    def do_copy(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Copies another object of this writer, or puts one if it has none."""
        sources = [(name, other.seen) for name, other in self.keys.items() if other.seen and name != key]
        if not sources:
            return self.do_put(s3, connection, key, state)
        name, source = self.rng.choice(sources)
        wish = Version(source.generation, source.size, source.origin or name)
        self.model.begin(state, wish)
        headers = [("x-amz-copy-source", object_target(BUCKET, name))]
        response = s3.request("PUT", object_target(BUCKET, key), headers, connection=connection)
        if response.status != 200 or xml(response).findtext("ETag") != self.model.etag(key, wish):
            raise Broken(f"copy of {name} {source} to {key}: {response.status} {response.body[:500]!r}")
        self.model.acknowledge(state, wish)
        self.done += 1
        return None

    def do_delete(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Deletes a key that may or may not exist."""
        self.model.begin(state, None)
        response = s3.request("DELETE", object_target(BUCKET, key), connection=connection)
        if response.status != 204:
            raise Broken(f"DELETE {key}: {response.status} {response.body[:500]!r}")
        self.model.acknowledge(state, None)
        self.done += 1

    def do_range(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Reads a range of an object that this writer wrote."""
        first = self.rng.randrange(state.seen.size) if state.seen and state.seen.size else 0
        last = first + self.rng.randrange(200_000)
        response = s3.request("GET", object_target(BUCKET, key), [("Range", f"bytes={first}-{last}")], connection=connection)
        check_range(self.model, key, state.seen, first, last, response.status, response.body)

    def do_list(self, s3: S3, connection: Connection, key: str, state: KeyState) -> None:
        """Lists the writer's prefix and compares the list with its state."""
        response = s3.list_page(BUCKET, connection, prefix=f"w{self.number:02}/")
        if response.status != 200:
            raise Broken(f"list of w{self.number:02}/: {response.status} {response.body[:500]!r}")
        shown, held = parse_listing(response).keys, sorted(key for key, state in self.keys.items() if state.seen)
        if shown != held:
            raise Broken(f"list of w{self.number:02}/ shows {shown}, it holds {held}")


def check_range(
    model: Model, key: str, seen: Version | None, first: int, last: int, status: int, body: bytes
) -> None:
    """Compares a range response with the known content."""
    if seen is None:
        expected = (404, None)
    elif seen.size == 0:
        expected = (416, None)
    else:
        expected = (206, model.body(key, seen)[first : last + 1])
    if status != expected[0] or (expected[1] is not None and body != expected[1]):
        raise Broken(f"GET {key} bytes {first}-{last}: {status}, {len(body)} bytes; it is {seen}")


def etag_of(body: bytes, told: str) -> str:
    """Returns the ETag that a body must have, in the form (single or multipart) of the given one."""
    _, dash, count = told.strip('"').partition("-")
    if not dash:
        return f'"{hashlib.md5(body).hexdigest()}"'
    front = multipart_load.PART_BYTES * (int(count) - 1)
    return composite_etag(body, (*[multipart_load.PART_BYTES] * (int(count) - 1), len(body) - front))


class Reader(Client):
    """Reads while others write: every response 200 must contain a complete version of its key."""

    def step(self, s3: S3, connection: Connection) -> None:
        """Reads one complete object of a random writer."""
        key = self.rng.choice(list(self.model.all()))
        response = s3.request("GET", object_target(BUCKET, key), connection=connection)
        if response.status not in (200, 404):
            raise Broken(f"reading {key} under load: {response.status} {response.body[:300]!r}")
        if response.status == 200 and response.get("etag") != etag_of(response.body, response.get("etag")):
            raise Broken(f"{key}: {len(response.body)} bytes that are not those of {response.get('etag')}")


class Load:
    """All clients of a run. They continue through all its cycles."""

    def __init__(self, model: Model, links: Links | None = None):
        self.model = model
        self.owners = links.owners if links else []
        self.writers = [Writer(model, number) for number in range(WRITERS)]
        self.readers = [Reader(model, f"reader-{number}") for number in range(READERS)]

    def acknowledged(self) -> int:
        """Returns the number of acknowledged changes in all cycles."""
        return sum(writer.done for writer in self.writers)

    def run(self, store: Cairn, rng: random.Random, strike: Callable[[], None]) -> None:
        """Runs all clients, injects the fault at a random moment, and raises the error of any client.

        The moment is a number of acknowledged changes plus a random delay, so that a cycle does the same work on a busy
        machine as on an idle one. The fault must end the process, which closes every client's connection.
        """
        target, give_up = self.acknowledged() + rng.randrange(CHANGES_MAX), time.monotonic() + LOAD_SECONDS_MAX
        between = rng.uniform(0, BETWEEN_SECONDS_MAX)

        def enough() -> bool:
            reached = self.acknowledged() >= target or time.monotonic() > give_up
            return reached and not ends_within(store, between)

        run_clients(store, [*self.writers, *self.readers, *self.owners], enough, strike)


def run_clients(
    store: Cairn, clients: list[Client | Owner], enough: Callable[[], bool], strike: Callable[[], None] = lambda: None
) -> None:
    """Runs clients until `enough` or until one fails, injects the fault, and raises the error of any client.

    Clients stop after their current request, or when the fault ends the process.
    """
    struck = threading.Event()
    with ThreadPoolExecutor(len(clients)) as pool:
        jobs = [pool.submit(client.run, store.s3, struck) for client in clients]
        try:
            while not enough():
                if ends_within(store, POLL_SECONDS):
                    raise Broken(f"the server ended by itself with {store.process.returncode}:\n{store.output()[-2000:]}")
                if any(job.done() for job in jobs):
                    break
        finally:
            struck.set()
        strike()
        for job in jobs:
            job.result()


def vary_start(store: Cairn, rng: random.Random) -> None:
    """Changes the ports, and randomly the encryption of new payloads and the commit mode for the next start.

    A killed process keeps its ports until the kernel has destroyed its io_uring instances.
    """
    store.take_ports()
    store.extra["SERVICE_STORAGE_ENCRYPTION_ENABLED"] = rng.choice(["true", "false"])
    store.extra["SERVICE_STORAGE_COMMIT"] = rng.choice(["log", "log", "log", "lmdb"])


def ends_within(store: Cairn, seconds: float) -> bool:
    """Returns whether the process exits by itself within this time."""
    try:
        store.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
