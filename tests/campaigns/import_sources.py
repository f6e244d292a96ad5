"""Imports from other stores, the real ones: `--store versitygw ... --kills 20 --objects 1500 --seed S`.

Fills each store through S3, imports everything, and compares both sides without `cairn import verify` and with it. With
kills, the importer, the source or the target is killed while it works, and the import is continued.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from harness.boto import Upload, make_client, upload_in_parts
from harness.importer import Importer
from harness.other_stores import KINDS, OtherStore
from harness.server import RUNS, Cairn

MIB = 1 << 20
KEYS = (
    "a b", "a+b", "ü/ö", "%41", "a%2Bb", "a&b=c?d#e", "quote'\"", "<x>&amp;", "emoji😀", "\u202ertl", ";,:@!$*()", " lead", "trail ", "tilde~", "back\\slash",
    "folder/", "folder/in", "a//b", "new\nline", "k" * 255, "/".join(["z" * 127] * 8), "deep/" + "/".join(["y" * 200] * 4),
)
HEADERS = {
    "ContentType": "text/plain; charset=utf-8", "CacheControl": "no-cache", "ContentDisposition": 'attachment; filename="x y.txt"', "ContentLanguage": "de",
    "ContentEncoding": "gzip", "Expires": datetime(2030, 1, 1, tzinfo=UTC), "Metadata": {"foo-bar": "baz <&> x", "spaces": "a  b"},
}
STORED = ("cache-control", "content-disposition", "content-encoding", "content-language", "content-type", "content-length", "etag", "expires", "last-modified")
# With this rate, a run is long enough to be ended in its middle.
SLOWLY = ("--bytes-per-second", "4MB", "--concurrency", "8")


class Filling:
    """The content to write into a store, and what it refused."""

    def __init__(self, store: OtherStore):
        self.store, self.client = store, store.boto
        self.refused: list[str] = []

    def attempt(self, what: str, call: Callable[[], object]) -> None:
        """Makes a call that some stores refuse."""
        try:
            call()
        except ClientError as error:
            self.refused.append(f"{what}: {error.response['Error']['Code']}")

    def put(self, bucket: str, key: str, body: bytes, **options: object) -> None:
        """Writes an object."""
        self.attempt(f"the key {key[:20]!r}", lambda: self.client.put_object(Bucket=bucket, Key=key, Body=body, **options))

    def everything(self, objects: int) -> None:
        """Fills all buckets."""
        for bucket in ("plain", "many"):
            self.client.create_bucket(Bucket=bucket)
        for key in KEYS:
            self.put("plain", key, b"" if key.endswith("/") else key.encode(), **HEADERS)
        self.put("plain", "empty", b"")
        self.put("plain", "tagged", b"x", Tagging="a=b&na%20me=c%2Bd")
        self.put("plain", "large", os.urandom(9 * MIB))
        sizes = {"unequal": [5 * MIB, 6 * MIB, 7 * MIB, 1], "equal": [5 * MIB, 5 * MIB, 5 * MIB, 100], "one part": [1000]}
        for key, parts in sizes.items():
            upload_in_parts(self.client, "plain", key, [os.urandom(size) for size in parts], Metadata={"m": "1"})
        Upload(self.client, "plain", "unfinished").send(1, os.urandom(5 * MIB))
        names = {(f"a/{n:05}", f"a-{n}", f"b{n}/x/y", f"c {n}+", f"dir{n // 10}/{n % 10}", f"e%2F{n}")[n % 6] for n in range(objects)}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.client.put_object(Bucket="many", Key=name, Body=name.encode() * 100), sorted(names)))
        if self.store.has_versions:
            self.versions()
            self.locks()

    def versions(self) -> None:
        """Fills a bucket with versions, delete markers, null versions, and a key with more than a page of versions."""
        client, bucket = self.client, "versions"
        client.create_bucket(Bucket=bucket)
        self.put(bucket, "null", b"0")
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        for number in range(3):
            self.put(bucket, "k", b"%d" % number, Metadata={"i": str(number)}, Tagging=f"n={number}")
            self.put(bucket, "folder/k", b"%d" % number)
        self.put(bucket, "null", b"1")
        client.delete_object(Bucket=bucket, Key="k")
        self.put(bucket, "k", b"after the deletion")
        self.put(bucket, "deleted", b"x")
        client.delete_object(Bucket=bucket, Key="deleted")
        upload_in_parts(client, bucket, "parts", [os.urandom(5 * MIB), b"x"])
        self.put(bucket, "parts", b"overwritten")
        for number in range(1100):
            self.put(bucket, "of-many", b"%d" % number)
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
        for key in ("null", "suspended"):
            self.put(bucket, key, b"3")

    def locks(self) -> None:
        """Fills a bucket with object lock."""
        self.client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
        until = datetime.now(UTC).replace(microsecond=0, year=2099)
        self.put("locked", "both", b"x", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until, ObjectLockLegalHoldStatus="ON")
        self.put("locked", "free", b"x")


def listed(client: BaseClient, bucket: str) -> list[tuple[str, str, str, int]]:
    """Returns key, date, tag and size of all current objects."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return sorted((one["Key"], str(one["LastModified"].replace(microsecond=0)), one["ETag"], one["Size"]) for page in pages for one in page.get("Contents", []))


def ids(client: BaseClient, bucket: str) -> set[tuple[str, str]]:
    """Returns key and id of all versions and delete markers."""
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket)
    return {(one["Key"], one["VersionId"]) for page in pages for kind in ("Versions", "DeleteMarkers") for one in page.get(kind, [])}


def compare(source: OtherStore, target: Cairn) -> int:
    """Compares all buckets as clients see them. Returns the number of current objects."""
    there, here, count = source.boto, make_client(target.s3), 0
    for bucket in (one["Name"] for one in there.list_buckets()["Buckets"]):
        found = listed(there, bucket)
        assert found == listed(here, bucket), bucket
        count += len(found)
        if source.has_versions:
            assert ids(there, bucket) == ids(here, bucket), bucket
        if bucket == "many":
            continue
        for key, *_ in found:
            stored = []
            for client in (there, here):
                answer = client.get_object(Bucket=bucket, Key=key)
                headers = answer["ResponseMetadata"]["HTTPHeaders"]
                kept = {name: value for name, value in headers.items() if name in STORED or name.startswith("x-amz-meta-")}
                # Every object has a type here.
                stored.append(({"content-type": "binary/octet-stream"} | kept, answer["Body"].read()))
            assert stored[0] == stored[1], (bucket, key, stored[0][0], stored[1][0])
    if source.has_versions:
        head = here.head_object(Bucket="locked", Key="both")
        assert (head["ObjectLockMode"], head["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", "ON")
        assert here.get_object_tagging(Bucket="plain", Key="tagged")["TagSet"], "tags"
    return count


def kill_once(importer: Importer, rng: random.Random) -> str:
    """Kills one of the three in the middle of a run into an empty store, and starts it again. Returns what became of the run."""
    process = importer.begin("objects", *SLOWLY)
    # The moment is what is random here.
    time.sleep(rng.uniform(0.2, 4))
    victim = rng.choice(("importer", "source", "target"))
    if victim == "importer":
        process.kill()
    else:
        server = importer.source if victim == "source" else importer.target
        server.kill()
        server.start()
    try:
        output, errors = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"the run does not end after the kill of the {victim}") from None
    assert "panicked" not in errors, errors
    assert victim == "importer" or process.returncode == 0, (victim, process.returncode, output, errors)
    return victim


def one_store(kind: str, folder: Path, objects: int, kills: int, rng: random.Random) -> str:
    """Imports from a store. Returns what was seen."""
    source = OtherStore(kind, folder / kind)
    target = Cairn(folder / f"{kind}-target", {"SERVICE_S3_COMPATIBILITY": "extended"})
    try:
        source.start()
        filling = Filling(source)
        filling.everything(objects)
        strikes: dict[str, int] = {}
        for number in range(kills):
            target = Cairn(folder / f"{kind}-target-{number}", {"SERVICE_S3_COMPATIBILITY": "extended"})
            target.start()
            importer = Importer(source, target, folder / f"{kind}-journal-{number}")
            victim = kill_once(importer, rng)
            strikes[victim] = strikes.get(victim, 0) + 1
            finish(importer)
            compare(source, target)
            target.kill()
            shutil.rmtree(target.folder)
        target = Cairn(folder / f"{kind}-target", {"SERVICE_S3_COMPATIBILITY": "extended"}).start()
        importer = Importer(source, target, folder / f"{kind}-journal")
        plan = importer.json("plan")
        versions = finish(importer)
        count = compare(source, target)
        losses = sorted({one["kind"] for one in plan["losses"]})
        return (
            f"{kind}: {versions} versions, {count} current objects compared, {kills} kills {strikes or ''}; will not come: {', '.join(losses)}; "
            f"the store refused: {', '.join(sorted(set(filling.refused))) or 'nothing'}"
        )
    finally:
        source.kill()
        target.kill()


def finish(importer: Importer) -> int:
    """Imports to the end, a second time, and verifies. Returns the number of versions and markers."""
    importer.objects()
    again = importer.objects("--delete")
    assert again.keys() == {"listed", "unchanged"} and again["listed"] == again["unchanged"], again
    verified = importer.json("verify", "--read", "all")
    assert verified["differences"] == 0, verified
    assert make_client(importer.target.s3).list_multipart_uploads(Bucket="plain").get("Uploads", []) == []
    return again["listed"]


def main(arguments: list[str]) -> int:
    """Imports from each store, and prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", action="append", choices=KINDS, help="which; may come more than once (default: both kinds of versitygw)")
    parser.add_argument("--objects", type=int, default=1500, help="small objects of one bucket (default 1500)")
    parser.add_argument("--kills", type=int, default=10, help="runs of each store in which something is killed (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="what is killed, and when")
    given = parser.parse_args(arguments)
    rng, folder = random.Random(given.seed), RUNS / "import-sources"
    shutil.rmtree(folder, ignore_errors=True)
    for kind in given.store or KINDS[:2]:
        if kind.startswith("versitygw"):
            subprocess.run([sys.executable, str(Path(__file__).resolve().parents[1] / "runner/tools.py"), "sources"], check=True, stdout=subprocess.DEVNULL)
        try:
            print(one_store(kind, folder, given.objects, given.kills, rng), flush=True)
        except AssertionError as broken:
            print(f"BROKEN: {kind}: {broken}", file=sys.stderr)
            return 1
    shutil.rmtree(folder)
    return 0
