"""Damage campaign: thousands of single flipped bits, which must be found and never returned.

Bits are flipped in a stopped store in four kinds of places:

- *payloads*: units of the volumes, at least a block apart, so that each flip is in a different block. Verification must
  count exactly as many damaged places as bits were flipped, and report exactly the objects that cannot be read.
- *check tables* of large objects, one bit in each table page at a time.
- *object records* in LMDB: key, check, body and inline payload, one bit in each of many records.
- *bookkeeping* records (free map, usage, totals, sequences, identities), one bit at a time: the server may refuse to start.

Nothing here depends on the encoding of payloads, so it also works with encryption. The seed determines all flips.
"""

import hashlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import requests
from awscrt.checksums import crc64nvme

from .damage import PAGE_BYTES, Metadata, flip_bit, metadata, read, volumes
from .server import Cairn, ServerError

BLOCK_UNITS = 16
BLOCK_BYTES = BLOCK_UNITS * PAGE_BYTES
INLINE_BYTES_MAX = 16 * 1024
BUCKET_OBJECTS = 500
"""A verification lists at most a thousand damaged versions, so a smaller bucket is listed completely."""
LARGE_BYTES = 17 << 20
"""More than 256 blocks, so that the block checks are stored in a table."""
LARGE_OBJECTS_MAX = 8
SAMPLE = 12
WORKERS = 4
RECORD_HEAD_BYTES = 16
MD5_IN_RECORD = RECORD_HEAD_BYTES + 24
"""Offset of the ETag in a record's value (engine/src/format/object_record.rs)."""
VERIFY_SECONDS = 1800


class Broken(AssertionError):
    """Damage was not found, intact data was reported as damaged, or wrong bytes were served."""


@dataclass
class Report:
    """Counts of flipped bits and of their effects."""

    seed: int
    encryption: bool
    payload_flips: int = 0
    payload_found: int = 0
    payload_objects: int = 0
    payload_objects_damaged: int = 0
    table_flips: int = 0
    table_found: int = 0
    record_flips: int = 0
    record_found: int = 0
    record_outcomes: Counter = field(default_factory=Counter)
    bookkeeping_flips: int = 0
    bookkeeping_outcomes: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"seed {self.seed}, encryption {'on' if self.encryption else 'off'}: payloads {self.payload_found} of "
            f"{self.payload_flips} found in {self.payload_objects_damaged} of {self.payload_objects} objects; check tables "
            f"{self.table_found} of {self.table_flips} found; records {self.record_found} of {self.record_flips} found, "
            f"reads {dict(self.record_outcomes)}; "
            f"bookkeeping {self.bookkeeping_flips} {dict(self.bookkeeping_outcomes)}; "
            f"no wrong byte was served; {self.seconds:.0f} s"
        )

    def as_json(self) -> dict:
        """Returns a JSON object."""
        # `asdict` of Python 3.11 makes counters of pairs out of counters.
        return vars(self) | {name: dict(value) for name, value in vars(self).items() if isinstance(value, Counter)}


@lru_cache(maxsize=2 * LARGE_OBJECTS_MAX)
def body_of(seed: int, key: str, size: int) -> bytes:
    """Returns the bytes of an object, which differ from those of every other object."""
    return random.Random(f"{seed} {key}").randbytes(size)


def judge(answer: tuple[int, bytes, bool], body: bytes, what: str) -> str:
    """Returns the outcome of a GET: `right` or the kind of failure. Raises Broken for wrong bytes."""
    status, got, complete = answer
    if status == 200 and complete:
        if got != body:
            raise Broken(f"{what}: wrong bytes were served")
        return "right"
    if status == 200:
        if not body.startswith(got):
            raise Broken(f"{what}: wrong bytes were served before the answer was cut")
        return "cut"
    if status not in (404, 500):
        raise Broken(f"{what}: status {status}")
    return str(status)


class Campaign:
    """One run in its own directory."""

    def __init__(self, folder: Path, seed: int, encryption: bool):
        self.folder, self.seed = folder, seed
        self.report = Report(seed, encryption)
        self.extra = {"SERVICE_STORAGE_SCRUB_INTERVAL_DAYS": "0", "SERVICE_LOG": "service=error"}
        if encryption:
            self.extra["SERVICE_STORAGE_ENCRYPTION_ENABLED"] = "true"

    def store(self, name: str) -> Cairn:
        """Starts a new store."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        return Cairn(folder, self.extra).start()

    def drop(self, store: Cairn) -> None:
        """Stops a store and removes its data."""
        store.kill()
        shutil.rmtree(store.folder)

    def stop(self, store: Cairn) -> None:
        """Stops a store cleanly, so that no write is pending."""
        if (code := store.stop()) != 0:
            raise Broken(f"the server ended with {code}:\n{store.output()[-4000:]}")

    def put_all(self, store: Cairn, sizes: dict[tuple[str, str], int]) -> None:
        """Puts every object (bucket, key) with its size."""
        for bucket in sorted({bucket for bucket, _ in sizes}):
            store.s3.create_bucket(bucket)
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda one: store.s3.put(*one[0], body_of(self.seed, one[0][1], one[1])), sizes.items()))

    def read_all(self, store: Cairn, sizes: dict[tuple[str, str], int]) -> dict[tuple[str, str], str]:
        """Reads every object and returns the outcomes."""

        def one(item: tuple[tuple[str, str], int]) -> str:
            (bucket, key), size = item
            return judge(read(store.s3, bucket, key), body_of(self.seed, key, size), f"{bucket}/{key}")

        with ThreadPoolExecutor(WORKERS) as pool:
            return dict(zip(sizes, pool.map(one, sizes.items())))

    def verify(self, store: Cairn, bucket: str) -> dict[str, str]:
        """Verifies a bucket and returns the damaged keys with their findings."""
        headers = {"Authorization": f"Bearer {store.secrets.system_token}"}
        address = f"{store.management}/api/v1/verify/buckets/{bucket}"
        response = requests.post(address, headers=headers, timeout=VERIFY_SECONDS)
        if response.status_code != 200:
            raise Broken(f"the verification of {bucket}: {response.status_code} {response.text}")
        found = response.json()
        if not found["complete"] or found["corrupt_count"] != len(found["corrupt"]):
            raise Broken(f"the verification of {bucket} is not whole")
        return {one["key"]: one["detail"] for one in found["corrupt"]}

    def payloads(self, flips: int) -> None:
        """Flips bits in payloads that are stored in volumes."""
        rng = random.Random(f"{self.seed} payloads")
        sizes: dict[tuple[str, str], int] = {}
        # Sizes are whole units, because the padding after the end of a payload is not verified.
        units = flips * 2 * BLOCK_UNITS
        while units > 0:
            count = rng.choice([rng.randrange(5, 17), rng.randrange(17, 65), rng.randrange(65, 120)])
            sizes[f"payloads-{len(sizes) // BUCKET_OBJECTS}", f"k{len(sizes)}"] = count * PAGE_BYTES
            units -= count
        store = self.store("payloads")
        self.put_all(store, sizes)
        self.stop(store)
        planted = plant_in_volumes(store, rng, flips)
        store.start()
        found: dict[tuple[str, str], str] = {}
        for bucket in sorted({bucket for bucket, _ in sizes}):
            found |= {(bucket, key): detail for key, detail in self.verify(store, bucket).items()}
        outcomes = self.read_all(store, sizes)
        damaged = {name for name, outcome in outcomes.items() if outcome != "right"}
        if damaged != set(found):
            raise Broken(f"verification and reads disagree: {sorted(damaged ^ set(found))[:10]}")
        self.report.payload_flips += planted
        self.report.payload_found += sum(places_in(detail) for detail in found.values())
        self.report.payload_objects += len(sizes)
        self.report.payload_objects_damaged += len(found)
        if self.report.payload_found != self.report.payload_flips:
            raise Broken(f"{self.report.payload_found} of {planted} flips were found; the store: {store.folder}")
        self.drop(store)

    def tables(self, flips: int) -> None:
        """Flips bits in check tables, one in each page at a time."""
        rng = random.Random(f"{self.seed} tables")
        count = min(flips, LARGE_OBJECTS_MAX)
        sizes = {("tables", f"large{number}"): LARGE_BYTES for number in range(count)}
        store = self.store("tables")
        self.put_all(store, sizes)
        self.stop(store)
        pages = [place for place, unit in units_of(store) if is_table_page(unit)]
        if len(pages) < count:
            raise Broken(f"only {len(pages)} pages of check tables for {count} large objects")
        while self.report.table_flips < flips:
            chosen = rng.sample(pages, min(count, flips - self.report.table_flips))
            bits = [(path, at + rng.randrange(PAGE_BYTES), rng.randrange(8)) for path, at in chosen]
            plant(bits)
            store.start()
            found = self.verify(store, "tables")
            outcomes = self.read_all(store, sizes)
            damaged = {key for (_, key), outcome in outcomes.items() if outcome != "right"}
            if damaged != set(found) or any("check table" not in detail for detail in found.values()):
                raise Broken(f"check tables: found {found}, not readable {damaged}")
            self.report.table_flips += len(bits)
            self.report.table_found += sum(places_in(detail) for detail in found.values())
            self.stop(store)
            plant(bits)
        if self.report.table_found != self.report.table_flips:
            raise Broken(f"{self.report.table_found} of {self.report.table_flips} flips in check tables were found")
        self.drop(store)

    def records(self, flips: int) -> None:
        """Flips one bit in the record of each of many objects, of both storage forms."""
        rng = random.Random(f"{self.seed} records")
        sizes = {
            (f"records-{number // BUCKET_OBJECTS}", f"record{number}"): rng.choice(
                [rng.randrange(1, INLINE_BYTES_MAX + 1), rng.randrange(INLINE_BYTES_MAX + 1, 8 * BLOCK_BYTES)]
            )
            for number in range(flips)
        }
        store = self.store("records")
        self.put_all(store, sizes)
        self.stop(store)
        metadata = Metadata(store.data)
        # Bucket ids are assigned in order, beginning with 1.
        ids = {bucket: number for number, bucket in enumerate(sorted({bucket for bucket, _ in sizes}), 1)}
        for (bucket, key), size in sizes.items():
            plant(choose_in_record(rng, metadata, ids[bucket], key, body_of(self.seed, key, size)))
        store.start()
        outcomes = self.read_all(store, sizes)
        self.report.record_flips += flips
        self.report.record_outcomes.update(outcomes.values())
        served = [name for name, outcome in outcomes.items() if outcome == "right"]
        if served:
            raise Broken(f"objects with a flipped bit in their records were served: {served[:10]}; {store.folder}")
        self.report.record_found += sum(len(self.verify(store, bucket)) for bucket in ids)
        self.drop(store)

    def bookkeeping(self, flips: int) -> None:
        """Flips bits in bookkeeping records, one at a time."""
        rng = random.Random(f"{self.seed} bookkeeping")
        sizes = {("kept", f"kept{number}"): rng.randrange(1, 4 * BLOCK_BYTES) for number in range(SAMPLE)}
        store = self.store("bookkeeping")
        self.put_all(store, sizes)
        self.stop(store)
        places = bookkeeping_records(store)
        for _ in range(flips):
            path, start, length = rng.choice(places)
            bit = (path, start + rng.randrange(length), rng.randrange(8))
            plant([bit])
            try:
                store.start()
            except ServerError:
                outcome = "start refused"
                if store.process.returncode is None or store.process.returncode < 0:
                    raise Broken(f"a flip at {bit} ended the server with {store.process.returncode}") from None
            else:
                outcomes = set(self.read_all(store, sizes).values())
                outcome = "served right" if outcomes == {"right"} else "answered with errors"
                self.stop(store)
            self.report.bookkeeping_outcomes[outcome] += 1
            self.report.bookkeeping_flips += 1
            plant([bit])
        self.drop(store)


def plant(bits: list[tuple[Path, int, int]]) -> None:
    """Flips bits. Flipping them again repairs them."""
    for path, at, bit in bits:
        flip_bit(path, at, bit)


def units_of(store: Cairn) -> Iterator[tuple[tuple[Path, int], bytes]]:
    """Yields every unit of every volume except the headers, with its position."""
    for path in volumes(store.data):
        with path.open("rb") as file:
            at = file.seek(PAGE_BYTES)
            while unit := file.read(PAGE_BYTES):
                yield (path, at), unit
                at += len(unit)


def is_table_page(unit: bytes) -> bool:
    """Returns whether a unit is a partly filled table page, whose run of zeros no payload here contains."""
    return bytes(256) in unit and any(unit)


def plant_in_volumes(store: Cairn, rng: random.Random, flips: int) -> int:
    """Flips one bit in each of many used units that are at least a block apart."""
    zeros, bits, skip = bytes(PAGE_BYTES), [], 0
    for (path, at), unit in units_of(store):
        skip -= 1
        if skip > 0 or unit == zeros or len(bits) >= flips:
            continue
        bits.append((path, at + rng.randrange(PAGE_BYTES), rng.randrange(8)))
        skip = rng.randrange(BLOCK_UNITS, 2 * BLOCK_UNITS + BLOCK_UNITS // 2)
    if len(bits) < flips:
        raise Broken(f"only {len(bits)} places for {flips} flips")
    plant(bits)
    return len(bits)


def choose_in_record(
    rng: random.Random, metadata: Metadata, bucket: int, key: str, body: bytes
) -> list[tuple[Path, int, int]]:
    """Chooses one bit of an object's record (key, value or inline payload), in each complete copy that LMDB has."""
    copies = []
    for path, at in metadata.find(hashlib.md5(body).digest()):
        value = at - MD5_IN_RECORD
        length = int.from_bytes(metadata.bytes_at(path, value + 12, 4), "little")
        sequence = int.from_bytes(metadata.bytes_at(path, at + 16, 8), "little")
        encoded = bucket.to_bytes(8) + key.encode() + bytes(2) + (sequence ^ (2**64 - 1)).to_bytes(8)
        # Pages contain remains of old records, perhaps partly overwritten by records in use. Those are skipped.
        stored = int.from_bytes(metadata.bytes_at(path, value, 8), "little")
        if stored == crc64nvme(encoded + metadata.bytes_at(path, value + 8, RECORD_HEAD_BYTES - 8 + length)):
            # The key is directly before the value, unless the value has overflow pages.
            adjacent = metadata.bytes_at(path, value - len(encoded), len(encoded)) == encoded
            copies.append((path, value, length, len(encoded) - 8 if adjacent else 0))
    if not copies:
        raise Broken(f"the record of {key} is not where it should be")
    tail = len(body) if len(body) <= INLINE_BYTES_MAX else 0
    # The record's check does not cover the payload after it, so an old copy may be overwritten there, for example by a
    # usage record in use. Bytes that differ between the copies are skipped.
    behind = {metadata.bytes_at(path, value + RECORD_HEAD_BYTES + length, tail) for path, value, length, _ in copies}
    tail = tail if len(behind) == 1 else 0
    # The bucket id in the key is skipped: with another one the record would belong to another bucket.
    offset = rng.randrange(-min(before for *_, before in copies), RECORD_HEAD_BYTES + copies[0][2] + tail)
    bit = rng.randrange(8)
    return [(path, value + offset, bit) for path, value, _, _ in copies]


def bookkeeping_records(store: Cairn) -> list[tuple[Path, int, int]]:
    """Returns position and length of the fixed-size records.

    These are free map (1024 bytes), usage and totals (16), sequence (8), identities (16 and 18) and buckets (17).
    """
    found = []
    for path in [*metadata(store.data), store.data / "control" / "data.mdb"]:
        content = path.read_bytes()
        for length in (8, 16, 17, 18, 1024):
            head, at = b"\x01\0\0\0" + length.to_bytes(4, "little"), -1
            while (at := content.find(head, at + 1)) >= 0:
                found.append((path, at - 8, RECORD_HEAD_BYTES + length))
    return found


def places_in(detail: str) -> int:
    """Returns the number of damaged places in a finding such as `block 1, block 7 and 3 more`."""
    named, _, more = detail.partition(" and ")
    return len(named.split(", ")) + (int(more.removesuffix(" more")) if more else 0)


def run(
    folder: Path,
    seed: int,
    payload_flips: int,
    metadata_flips: int,
    encryption: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Runs the campaign. Metadata flips are 40% in check tables, 50% in records and 10% in bookkeeping."""
    begun = time.monotonic()
    campaign = Campaign(folder, seed, encryption)
    tables = metadata_flips * 4 // 10
    records = metadata_flips // 2
    for part, flips in [
        (campaign.payloads, payload_flips),
        (campaign.tables, tables),
        (campaign.records, records),
        (campaign.bookkeeping, metadata_flips - tables - records),
    ]:
        if flips:
            part(flips)
            campaign.report.seconds = time.monotonic() - begun
            say(campaign.report.line())
    return campaign.report
