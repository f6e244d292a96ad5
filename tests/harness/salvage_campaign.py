"""Salvage campaign: random damage to a stopped store, then `cairn salvage`, then a comparison with what was stored.

Each round damages the files in one of these ways: flipped bytes, a range of zeros or of random bytes, a truncated file, a deleted
file. The damage hits metadata, the catalog of buckets, volumes, the superblock and the lock file. Afterwards it is undone, and the
next round begins with the whole store. A version is *intact* if no byte of its records and of its content was touched. Then:

- every intact version is salvaged, bit for bit, whatever else is damaged;
- every other version is salvaged bit for bit, or it is named in `damaged.jsonl`, at least by a range of keys or its slice;
- nothing that was deleted comes back, unless it is marked as not certain;
- the store is exactly as before: names, sizes, times, and bytes.
"""

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .lmdb_file import DataFile
from .management import expect
from .s3 import object_target, xml
from .server import Cairn, clean_environment

PAGE = 4096
BUCKETS = ("first", "second", "versioned")
EXTRA = {"SERVICE_STORAGE_SCRUB_INTERVAL_DAYS": "0", "SERVICE_LOG": "service=error"}
PART = 5 << 20
RECORD_HEAD = 16
END = 1 << 62
KINDS = ("flip", "flip", "flip", "zeros", "zeros", "noise", "truncate", "delete")


class Broken(AssertionError):
    """An intact object was not salvaged, or a lost one was not named, or the store was written to."""


Interval = tuple[Path, int, int]


@dataclass
class Version:
    """A version that was stored, and where all of it is."""

    bucket: str
    key: str
    version: str
    content: bytes | None
    is_latest: bool
    slice: int = 0
    encoded: bytes = b""
    places: list[Interval] = field(default_factory=list)


@dataclass
class Report:
    """Counts of rounds and outcomes."""

    seed: int
    encryption: bool
    rounds: int = 0
    versions: int = 0
    intact: int = 0
    salvaged: int = 0
    by_kind: Counter = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"seed {self.seed}, encryption {'on' if self.encryption else 'off'}: {self.rounds} damages {dict(self.by_kind)}; "
            f"{self.intact} of {self.versions} versions were not touched, {self.salvaged} were salvaged, none was wrong, and all "
            f"others were named; {self.seconds:.0f} s"
        )


def fill(store: Cairn, rng: random.Random, objects: int) -> None:
    """Stores objects of all forms, replaces and deletes some."""
    s3 = store.s3
    for bucket in BUCKETS:
        s3.create_bucket(bucket)
    expect(store.admin.put("/buckets/versioned/versioning", {"versioning": "Enabled"}), 200)
    for number in range(objects):
        size = rng.choice([rng.randrange(0, 200), rng.randrange(200, 3000), rng.randrange(3000, 16_384), rng.randrange(16_385, 300_000)])
        bucket, key = rng.choice(BUCKETS), f"folder {number % 7}/key {number}" + "x" * (number % 5 * 200)
        s3.put(bucket, key, rng.randbytes(size), [("x-amz-meta-number", str(number))])
        if number % 9 == 0:
            s3.put(bucket, key, rng.randbytes(size // 2))
        if number % 13 == 0:
            s3.delete(bucket, key)
    s3.put("first", "a table of checks", rng.randbytes(17 << 20))
    upload = xml(s3.request("POST", object_target("second", "of parts", "uploads"))).findtext("UploadId")
    parts = ""
    for number, size in ((1, PART), (2, PART), (3, 1000)):
        query = f"partNumber={number}&uploadId={upload}"
        tag = s3.request("PUT", object_target("second", "of parts", query), body=rng.randbytes(size)).get("etag")
        parts += f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    assert s3.request("POST", object_target("second", "of parts", f"uploadId={upload}"), body=body).status == 200


def stored_versions(store: Cairn) -> list[Version]:
    """Reads all versions from the running server."""
    versions = []
    for bucket in BUCKETS:
        marker: str | None = ""
        while marker is not None:
            root = xml(store.s3.request("GET", f"/{bucket}?versions{marker}"))
            for entry in root:
                if entry.tag not in ("Version", "DeleteMarker"):
                    continue
                key, name = entry.findtext("Key"), entry.findtext("VersionId")
                content = None
                if entry.tag == "Version":
                    got = store.s3.request("GET", object_target(bucket, key, f"versionId={name}"))
                    assert got.status == 200, (bucket, key)
                    content = got.body
                versions.append(Version(bucket, key, name, content, entry.findtext("IsLatest") == "true"))
            assert root.findtext("IsTruncated") == "false", "the buckets are small"
            marker = None
    return versions


def payload_places(volumes: Path, body: bytes, at: int, is_sealed: bool) -> list[Interval]:
    """Returns where a payload in volumes is (engine/src/format/codec.rs)."""
    at += 60 if is_sealed else 0
    has_table, extents = body[at + 16], int.from_bytes(body[at + 18 : at + 20], "little")
    count = int.from_bytes(body[at + 20 : at + 24], "little")
    places = []
    for number in range(extents + (count if has_table else 0)):
        volume, start, units = (
            int.from_bytes(body[at + 24 + number * 12 + field : at + 28 + number * 12 + field], "little") for field in (0, 4, 8)
        )
        places.append((volumes / f"{volume:06}.vol", start * PAGE, (start + units) * PAGE))
    return places


def locate(store: Cairn, versions: list[Version]) -> None:
    """Finds the place of everything that belongs to each version. The data files have no commit log."""
    ids = {bucket: number for number, bucket in enumerate(BUCKETS, 1)}
    by_name = {(version.bucket, version.key, version.version): version for version in versions}
    for folder in sorted((store.data / "slices").iterdir()):
        path = folder / "meta/data.mdb"
        file = DataFile(path)
        parts = [(key, value, places) for key, value, places in file.places("parts")]
        for key, value, places in file.places("objects"):
            bucket = next(name for name, number in ids.items() if number == int.from_bytes(key[:8]))
            name = key[8:-10].decode()
            body = value[RECORD_HEAD : RECORD_HEAD + int.from_bytes(value[12:16], "little")]
            version = "null" if body[1] & 2 else f"{2**64 - 1 - int.from_bytes(key[-8:]):016x}"
            one = by_name[bucket, name, version]
            one.slice, one.encoded = int(folder.name), key
            one.places = [(path, start, end) for start, end in places]
            at = 52 + int.from_bytes(body[48:52], "little")
            if body[0] == 1:
                one.places += payload_places(folder / "volumes", body, at, bool(body[1] & 1))
            if body[0] == 3:
                upload = key[:-8] + int.from_bytes(body[at + 16 : at + 24], "little").to_bytes(8)
                for part_key, part, part_places in parts:
                    if part_key.startswith(upload):
                        one.places += [(path, start, end) for start, end in part_places]
                        part_body = part[RECORD_HEAD:]
                        if part_body[0] == 1:
                            one.places += payload_places(folder / "volumes", part_body, 36 + part_body[3], bool(part_body[1] & 1))
    assert all(version.places for version in versions)


class Damage:
    """Damage to the files of a stopped store, which can be undone."""

    def __init__(self, data: Path, rng: random.Random):
        self.data, self.rng = data, rng
        self.touched: list[Interval] = []
        self.undo: list[Callable[[], None]] = []

    def choose(self, pages: dict[Path, list[int]]) -> tuple[Path, int]:
        """Returns a file and a page of it that is in use."""
        path = self.rng.choice([path for path in pages if pages[path] and path.name != "lock"])
        return path, self.rng.choice(pages[path])

    def overwrite(self, path: Path, at: int, content: bytes) -> None:
        """Replaces bytes."""
        content = content[: path.stat().st_size - at]
        with path.open("r+b") as file:
            file.seek(at)
            before = file.read(len(content))
            file.seek(at)
            file.write(content)
        self.touched.append((path, at, at + len(content)))
        self.undo.append(lambda: write_at(path, at, before))

    def replace(self, path: Path, length: int | None) -> None:
        """Truncates a file, or deletes it."""
        kept = path.with_suffix(".kept")
        # Outside of the store, which has no other files.
        kept = self.data.parent / f"{len(self.undo)}-{path.parent.parent.name}-{kept.name}"
        if length is None:
            path.rename(kept)
        else:
            subprocess.run(["cp", "--sparse=always", str(path), str(kept)], check=True)
            os.truncate(path, length)
        self.touched.append((path, length or 0, END))
        self.undo.append(lambda: kept.replace(path))

    def make(self, kind: str, pages: dict[Path, list[int]]) -> None:
        """Makes one damage."""
        path, page = self.choose(pages)
        at = page * PAGE + self.rng.randrange(PAGE)
        match kind:
            case "flip":
                for _ in range(self.rng.randrange(1, 6)):
                    self.overwrite(path, min(at, path.stat().st_size - 1), self.rng.randbytes(1))
                    path, page = self.choose(pages)
                    at = page * PAGE + self.rng.randrange(PAGE)
            case "zeros":
                self.overwrite(path, min(at, path.stat().st_size - 1), bytes(self.rng.randrange(1, 40_000)))
            case "noise":
                self.overwrite(path, min(at, path.stat().st_size - 1), self.rng.randbytes(self.rng.randrange(1, 20_000)))
            case "truncate":
                self.replace(path, min(at, path.stat().st_size - 1))
            case "delete":
                self.replace(path, None)

    def repair(self) -> None:
        """Undoes everything, in reverse order."""
        while self.undo:
            self.undo.pop()()

    def hits(self, version: Version) -> bool:
        """Returns whether any byte of a version was touched."""
        return any(
            path == other and start < until and begin < end for path, start, end in version.places for other, begin, until in self.touched
        )


def write_at(path: Path, at: int, content: bytes) -> None:
    """Writes bytes in place."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def used_pages(data: Path) -> dict[Path, list[int]]:
    """Returns the pages of each file that are not empty."""
    zeros, pages = bytes(PAGE), {}
    for path in sorted(path for path in data.rglob("*") if path.is_file() and path.name != "lock.mdb"):
        if path.relative_to(data).parts[0] not in ("slices", "control", "superblock.json"):
            continue
        with path.open("rb") as file:
            pages[path] = [number for number, page in enumerate(iter(lambda: file.read(PAGE), b"")) if page != zeros[: len(page)]]
    return pages


def state(data: Path) -> list[tuple]:
    """Returns names, sizes and times of all files."""
    found = []
    for path in sorted(data.rglob("*")):
        status = path.lstat()
        found.append((str(path), status.st_size, status.st_blocks, status.st_mtime_ns, status.st_ctime_ns, status.st_mode))
    return found


def is_named(version: Version, losses: list[dict]) -> bool:
    """Returns whether a list of losses has a version."""
    for loss in losses:
        names = {version.bucket, f"bucket-{BUCKETS.index(version.bucket) + 1}"}
        if "from" in loss:
            to = bytes.fromhex(loss["to"]) if loss["to"] is not None else None
            if loss["slice"] == version.slice and bytes.fromhex(loss["from"]) <= version.encoded and (to is None or version.encoded < to):
                return True
        elif "key" in loss:
            if loss["key"] == version.key and loss["bucket"] in names:
                return True
        elif loss.get("slice") == version.slice or "slices are missing" in loss["reason"]:
            return True
    return False


def is_content(out: Path, line: dict, version: Version) -> bool:
    """Returns whether a line is about a version with the right content."""
    if line["delete_marker"] or version.content is None:
        return line["delete_marker"] == (version.content is None)
    return (out / line["file"]).read_bytes() == version.content


def judge(out: Path, versions: list[Version], damage: Damage, code: int, report: Report) -> None:
    """Compares what was salvaged with what was stored."""
    lines = [json.loads(line) for line in (out / "manifest.jsonl").read_text().splitlines()]
    losses = [json.loads(line) for line in (out / "damaged.jsonl").read_text().splitlines()]
    if code != (1 if losses else 0):
        raise Broken(f"exit code {code} with {len(losses)} losses")
    found: dict[tuple[str, str, str], list[dict]] = {}
    ids = {f"bucket-{number}": bucket for number, bucket in enumerate(BUCKETS, 1)}
    for line in lines:
        name = (ids.get(line["bucket"], line["bucket"]), line["key"], line["version_id"])
        found.setdefault(name, []).append(line)
    for version in versions:
        # A search may also find what had the same name before: every version of such a bucket is called `null`.
        listed = found.pop((version.bucket, version.key, version.version), [])
        line = next((line for line in listed if line["certain"] or is_content(out, line, version)), None)
        if sum(line["certain"] for line in listed) > 1:
            raise Broken(f"{version.bucket}/{version.key} is listed twice")
        is_intact = not damage.hits(version)
        report.versions += 1
        report.intact += is_intact
        if line is None:
            if is_intact:
                raise Broken(f"{version.bucket}/{version.key} {version.version} is intact, but was not salvaged: {losses[:5]}")
            if not is_named(version, losses):
                raise Broken(f"{version.bucket}/{version.key} {version.version} is lost, but not named: {losses[:5]}")
            continue
        report.salvaged += 1
        if not is_content(out, line, version):
            raise Broken(f"{version.bucket}/{version.key} {version.version} has wrong bytes")
        if line["certain"] and line["is_latest"] != version.is_latest:
            raise Broken(f"{version.bucket}/{version.key} {version.version} is not the newest version")
    more = [name for name, listed in found.items() if any(line["certain"] for line in listed)]
    if more:
        raise Broken(f"these do not exist: {more[:5]}")


def run(
    folder: Path, seed: int, rounds: int, objects: int = 150, encryption: bool = False, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Runs the campaign in a folder, which is removed afterwards."""
    begun, rng, report = time.monotonic(), random.Random(seed), Report(seed, encryption)
    shutil.rmtree(folder, ignore_errors=True)
    store = Cairn(folder, EXTRA | ({"SERVICE_STORAGE_ENCRYPTION_ENABLED": "true"} if encryption else {}))
    store.start()
    fill(store, rng, objects)
    assert store.stop() == 0
    # Without a commit log, the data files are complete, and the harness can read them.
    store.extra["SERVICE_STORAGE_COMMIT"] = "lmdb"
    store.start()
    versions = stored_versions(store)
    assert store.stop() == 0
    locate(store, versions)
    pages = used_pages(store.data)
    environment = clean_environment() | {"SERVICE_CREDENTIAL_MASTER_KEY": store.secrets.master_key}
    for number in range(rounds + 1):
        damage, out = Damage(store.data, rng), folder / "out"
        # The first round damages nothing.
        kind = rng.choice(KINDS) if number else "none"
        if number:
            for _ in range(rng.choice([1, 1, 1, 2, 3])):
                damage.make(kind, {path: found for path, found in pages.items() if path.exists()})
        before = state(store.data)
        command = [str(store.binary), "salvage", "--data-dir", str(store.data), "--to", str(out)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        try:
            if done.returncode not in (0, 1) or not (out / "manifest.jsonl").exists():
                raise Broken(f"salvage ended with {done.returncode}: {done.stderr[-2000:]}")
            judge(out, versions, damage, done.returncode, report)
            if not number and report.salvaged != len(versions):
                raise Broken("a whole store was not salvaged completely")
            if state(store.data) != before:
                raise Broken("the store was written to")
        except Broken as broken:
            raise Broken(f"round {number}, {kind}, {damage.touched}: {broken}") from None
        damage.repair()
        shutil.rmtree(out)
        report.rounds = number
        report.by_kind[kind] += 1
        if number % 50 == 0:
            report.seconds = time.monotonic() - begun
            say(report.line())
    store.start()
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == [], "all damage was undone"
    assert store.stop() == 0
    report.seconds = time.monotonic() - begun
    shutil.rmtree(folder)
    return report
