"""Writers of accounts that may create and never overwrite race for keys, with and without SIGKILL in the middle.

For each key all writers send their requests before one of the answers is read: puts, copies and completions of uploads. One
must be taken and all others refused with 412, in a bucket without versions and in one with them. A server that is killed
then has the key with what was acknowledged, or with what one of the unanswered writers sent, or not at all. The same race is
then run again. What decides when a kill strikes is the seed; what it strikes is up to the machine.
"""

import hashlib
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .accounts import client, create_account, statement
from .compare import Report, check_offline
from .crash_model import composite_etag
from .expect import Broken
from .load import vary_start
from .management import expect
from .s3 import S3, md5_etag, object_target, xml
from .server import Cairn
from .wire import Connection, WireError, encode_head

PLAIN, VERSIONED = "created-plain", "created-versions"
SOURCES = "created-sources"
# Every one of so many writers copies or completes an upload; the others put.
COPIES_EVERY, COMPLETIONS_EVERY = 8, 31
AFTER_SECONDS_MAX = 0.01
CREATE = {"only_if_absent": True}


@dataclass
class Outcome:
    """The observations of a run."""

    keys: int = 0
    requests: int = 0
    kills: int = 0
    unanswered: int = 0
    found_written: int = 0

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"{self.keys} keys, each written once; {self.requests} requests; {self.kills} kills with {self.unanswered} requests"
            f" unanswered, after which {self.found_written} keys had been written by one of them"
        )


@dataclass
class Attempt:
    """A request that would create a key, and the ETag that the object then has."""

    request: bytes
    method: str
    etag: str


class Writer:
    """One client with a connection of its own."""

    def __init__(self, number: int, s3: S3):
        self.number, self.s3 = number, s3
        self.connection: Connection | None = None

    @property
    def source(self) -> bytes:
        """The source that this writer copies."""
        return b"the source of writer %d" % self.number

    def connect(self, s3: S3) -> None:
        """Connects to a server that was started again."""
        self.close()
        self.s3, self.connection = s3, s3.connect()

    def close(self) -> None:
        """Ends the connection."""
        if self.connection is not None:
            self.connection.close()

    def prepare(self, bucket: str, key: str, race: int) -> Attempt:
        """Returns the request of this writer; an upload is there up to its completion."""
        body, headers, method, query = f"{key} by {self.number} in race {race}".encode(), [], "PUT", ""
        etag = md5_etag(body)
        if self.number % COPIES_EVERY == 1:
            etag, body = md5_etag(self.source), b""
            headers = [("x-amz-copy-source", f"/{SOURCES}/{self.number}")]
        elif self.number % COMPLETIONS_EVERY == 2:
            etag = composite_etag(body, (len(body),))
            method, query, body = "POST", *self.upload(bucket, key, body)
        target = object_target(bucket, key, query)
        head = self.s3.signed_head(method, target, headers, body)
        return Attempt(encode_head(method, target, head) + body, method, etag)

    def upload(self, bucket: str, key: str, body: bytes) -> tuple[str, bytes]:
        """Uploads the only part. Returns query and body of the completion."""
        begun = self.s3.request("POST", object_target(bucket, key, "uploads="), connection=self.connection)
        query = f"uploadId={xml(begun).findtext('UploadId')}"
        part = self.s3.request("PUT", object_target(bucket, key, f"partNumber=1&{query}"), body=body, connection=self.connection)
        tag = f"<Part><PartNumber>1</PartNumber><ETag>{part.get('etag')}</ETag></Part>"
        return query, f"<CompleteMultipartUpload>{tag}</CompleteMultipartUpload>".encode()


class Race:
    """All writers of a run."""

    def __init__(self, folder: Path, seed: int, writers: int):
        self.store, self.rng, self.outcome = Cairn(folder), random.Random(f"{seed}-create-only"), Outcome()
        self.after_seconds_max = AFTER_SECONDS_MAX
        self.store.start()
        for bucket in (PLAIN, VERSIONED, SOURCES):
            self.store.s3.create_bucket(bucket)
        expect(self.store.admin.put(f"/buckets/{VERSIONED}/versioning", {"versioning": "Enabled"}), 200)
        objects = (f"bucket:{PLAIN}/*", f"bucket:{VERSIONED}/*")
        rights = statement("allow", "PutObject", *objects) | CREATE
        self.account = create_account(self.store, rights, statement("allow", "GetObject", f"bucket:{SOURCES}/*"))
        self.writers = [Writer(number, self.account.s3) for number in range(writers)]
        for writer in self.writers:
            self.store.s3.put(SOURCES, str(writer.number), writer.source)
        self.connect()

    def connect(self) -> None:
        """Connects all writers."""
        for writer in self.writers:
            writer.connect(client(self.store, self.account.keys))

    def kill_and_start(self) -> None:
        """Ends the server at once, and starts it as the crash test does."""
        self.store.kill()
        vary_start(self.store, self.rng)
        self.store.start()
        self.outcome.kills += 1

    def run(self, bucket: str, key: str, race: int, is_killed: bool) -> tuple[dict[int, int | None], list[str]]:
        """Runs one race. Returns the status that each writer got, or None, and the ETag that each would have made."""
        attempts = [writer.prepare(bucket, key, race) for writer in self.writers]
        order = list(zip(self.writers, attempts, strict=True))
        self.rng.shuffle(order)
        if is_killed:
            # Otherwise a busy machine may answer the first requests, or all, before the last one is sent.
            self.store.process.send_signal(signal.SIGSTOP)
        for writer, attempt in order:
            writer.connection.send(attempt.request)
        self.outcome.requests += len(order)
        if is_killed:
            self.store.process.send_signal(signal.SIGCONT)
            time.sleep(self.rng.uniform(0, self.after_seconds_max))
            self.store.kill()
        statuses: dict[int, int | None] = {}
        for writer, attempt in order:
            try:
                statuses[writer.number] = writer.connection.read_response(attempt.method).status
            except (WireError, OSError):
                if not is_killed:
                    raise
                statuses[writer.number] = None
        if unknown := set(statuses.values()) - {200, 412, None}:
            raise Broken(f"{bucket}/{key}: answers with {unknown}")
        return statuses, [attempt.etag for attempt in attempts]

    def create(self, bucket: str, key: str, is_killed: bool) -> str:
        """Lets all writers race for a key until one has written it. Returns the ETag of what it wrote."""
        statuses, etags = self.run(bucket, key, 0, is_killed)
        taken = [etags[number] for number, status in statuses.items() if status == 200]
        if len(taken) > 1:
            raise Broken(f"{bucket}/{key}: {len(taken)} writers were told that they had created it")
        if not is_killed:
            if len(taken) != 1:
                raise Broken(f"{bucket}/{key}: nobody has created it: {statuses}")
            return taken[0]
        open_etags = [etags[number] for number, status in statuses.items() if status is None]
        self.outcome.unanswered += len(open_etags)
        if not open_etags:
            # The kill came after the last answer.
            self.after_seconds_max /= 2
        self.kill_and_start()
        self.connect()
        found = self.store.s3.head(bucket, key).get("etag")
        if taken and found != taken[0]:
            raise Broken(f"{bucket}/{key}: acknowledged as {taken[0]}, after the kill it is {found}")
        if not taken and found is not None:
            self.outcome.found_written += 1
            if found not in open_etags:
                raise Broken(f"{bucket}/{key}: it is {found}, which no unanswered writer sent")
        if found is None and 412 in statuses.values():
            raise Broken(f"{bucket}/{key}: a writer was refused because of an object that the kill has removed")
        statuses, etags = self.run(bucket, key, 1, is_killed=False)
        again = [etags[number] for number, status in statuses.items() if status == 200]
        if len(again) != (found is None):
            raise Broken(f"{bucket}/{key}: it was {found} after the kill, and then {len(again)} writers created it")
        return found or again[0]

    def check(self, expected: dict[str, dict[str, str]]) -> None:
        """Compares all keys with what was acknowledged, and the versions too: a second write would have left one."""
        for bucket, keys in expected.items():
            found = {key: etag for key, (_, etag) in self.store.s3.list_all(bucket).items()}
            if found != keys:
                wrong = [key for key in found.keys() | keys.keys() if found.get(key) != keys.get(key)]
                raise Broken(f"{bucket}: {len(wrong)} keys are not as they were created, such as {sorted(wrong)[:5]}")
            contents = expect(self.store.admin.get(f"/buckets/{bucket}/contents"), 200)
            if (contents["versions"], contents["delete_markers"]) != (len(keys), 0):
                raise Broken(f"{bucket}: {contents} for {len(keys)} keys")


def run(
    folder: Path, seed: int, keys: int, kills: int, writers: int = 64, say: Callable[[str], None] = lambda _line: None
) -> Outcome:
    """Runs all races on one store. Raises Broken with the seed and the key at the first difference."""
    race = Race(folder, seed, writers)
    outcome, struck = race.outcome, set(race.rng.sample(range(keys), kills))
    expected: dict[str, dict[str, str]] = {PLAIN: {}, VERSIONED: {}}
    try:
        for number in range(keys):
            bucket = (PLAIN, VERSIONED)[number % 2]
            # No order, so that neighbours are in different pages of the table and in both slices.
            key = hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:20]
            expected[bucket][key] = race.create(bucket, key, number in struck)
            outcome.keys += 1
            if outcome.keys % 1000 == 0:
                say(outcome.line())
        race.check(expected)
        if race.store.stop() != 0:
            raise Broken("the server did not stop cleanly at the end")
        check_offline(race.store, Report())
    except AssertionError as error:
        raise Broken(f"seed {seed}, key {outcome.keys}, store in {folder}: {error}") from error
    finally:
        for writer in race.writers:
            writer.close()
        race.store.kill()
    return outcome
