"""Imports from stores that differ from S3, as versitygw, SeaweedFS and Garage were seen to answer.

`tests/campaign import-sources` runs versitygw itself.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.importer import Importer, order
from harness.odd_store import GARAGE, SEAWEEDFS, VERSITYGW, Oddities, OddStore, Version, many
from harness.server import Cairn

MIB = 1 << 20
UNTIL = "2099-01-01T00:00:00Z"


@pytest.fixture
def source_of(target: Cairn, tmp_path: Path) -> Iterator[Callable[[Oddities], Importer]]:
    """Returns a function that starts a store with some oddities, and returns the importer from it."""
    stores: list[OddStore] = []

    def start(oddities: Oddities) -> Importer:
        stores.append(OddStore(oddities))
        return Importer(stores[-1], target, tmp_path / "journal")

    yield start
    for store in stores:
        store.close()


def content(client: BaseClient, bucket: str, key: str) -> bytes:
    """Returns the current content of a key."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def test_versions_and_markers_that_are_listed_apart(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """A deleted key that was written again stayed deleted here: the marker has a fraction of a second, and the version after it none."""
    importer = source_of(VERSITYGW)
    ids = [f"01M8D0BZ2{digit}HTYB7VBAGNKWEW" + "J0" for digit in "012345"]
    assert len(ids[0]) == 26
    importer.source.add(
        "apart",
        # Newest first: written again after the deletion, within the same second.
        Version("again", ids[2], 5, b"new"), Version("again", ids[1], 5, None, is_latest=False), Version("again", ids[0], 5, b"old", is_latest=False),
        Version("gone", ids[5], 9, None), Version("gone", ids[4], 8, b"2", is_latest=False), Version("gone", ids[3], 7, b"1", is_latest=False),
        versioning="Enabled",
    )
    assert importer.objects("--bucket", "apart") == {"listed": 6, "created": 6}
    assert content(here, "apart", "again") == b"new"
    assert (order(here, "apart", "again"), order(here, "apart", "gone")) == ([ids[2], ids[0]], [ids[4], ids[3]])
    markers = {one["Key"]: one["IsLatest"] for one in here.list_object_versions(Bucket="apart")["DeleteMarkers"]}
    assert markers == {"again": False, "gone": True}
    assert importer.json("verify", "--bucket", "apart", "--read", "all")["differences"] == 0
    assert importer.objects("--bucket", "apart") == {"listed": 6, "unchanged": 6}


def test_null_versions_that_are_unknown_by_their_id(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """They counted as vanished, with exit code 0; HEAD answers 404 even for other versions of such a key."""
    importer = source_of(VERSITYGW)
    importer.source.add("null-never", *many(7), Version("tagged", "null", 1, b"x", tags={"a": "b"}), Version("large", "null", 1, os.urandom(2 * MIB)))
    importer.source.add(
        "null-suspended",
        Version("k", "null", 9, b"null", tags={"a": "b"}), Version("k", "01M8D0BZ10XR5FQAVA1FC09HE7", 5, b"old", is_latest=False, tags={"c": "d"}),
        versioning="Suspended",
    )
    buckets = ("--bucket", "null-never", "--bucket", "null-suspended")
    assert importer.objects(*buckets) == {"listed": 11, "created": 11}
    assert here.get_object_tagging(Bucket="null-never", Key="tagged")["TagSet"] == [{"Key": "a", "Value": "b"}]
    assert content(here, "null-suspended", "k") == b"null"
    # Tags and locks are looked at again.
    assert importer.objects(*buckets) == {"listed": 11, "unchanged": 11}
    assert importer.json("verify", *buckets, "--read", "all")["differences"] == 0


def test_entries_that_are_listed_twice(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """The second one was taken for a version that is gone at the source, and `--delete` deleted the object here."""
    importer = source_of(VERSITYGW)
    versions = [Version(f"k{number}", f"01M8D0BZ10XR5FQAVA1FC09H{number:02}", number, b"x") for number in range(10)]
    importer.source.add("twice", *versions, versioning="Enabled")
    assert importer.json("plan", "--bucket", "twice")["buckets"][0]["versions"] == 10
    for counts in ({"listed": 10, "created": 10}, {"listed": 10, "unchanged": 10}, {"listed": 10, "unchanged": 10}):
        assert importer.objects("--bucket", "twice", "--delete") == counts
    assert len(here.list_object_versions(Bucket="twice")["Versions"]) == 10


def test_locks_that_only_head_tells(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """The first run brought versions without their locks."""
    importer = source_of(VERSITYGW)
    locks = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": UNTIL, "x-amz-object-lock-legal-hold": "ON"}
    importer.source.add("only-head", Version("k", "01M8D0BZ10XR5FQAVA1FC09HE7", 1, b"x", locks=locks), versioning="Enabled", lock=True)
    assert importer.objects("--bucket", "only-head") == {"listed": 1, "created": 1}
    head = here.head_object(Bucket="only-head", Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", "ON")
    here.put_object_legal_hold(Bucket="only-head", Key="k", LegalHold={"Status": "OFF"})


def test_object_lock_without_versions(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """versitygw without a folder for versions has such buckets. Object lock turns versions on here, and the plan says so."""
    importer = source_of(VERSITYGW)
    importer.source.add("lock-alone", Version("k", "null", 1, b"x", locks={"x-amz-object-lock-legal-hold": "ON"}), lock=True)
    assert [one["kind"] for one in importer.json("plan", "--bucket", "lock-alone")["losses"]] == ["versioning"]
    assert importer.objects("--bucket", "lock-alone") == {"listed": 1, "created": 1}
    assert importer.json("verify", "--bucket", "lock-alone")["differences"] == 0
    here.put_object_legal_hold(Bucket="lock-alone", Key="k", VersionId="null", LegalHold={"Status": "OFF"})


def test_keys_that_a_list_cannot_hold(source_of: Callable[[Oddities], Importer]):
    """The plan names them, and the import fails for them: they were counted as vanished."""
    importer = source_of(VERSITYGW)
    importer.source.add("odd-keys", Version("a b+c", "null", 1, b"x"), Version("ctl\x01", "null", 1, b"x"))
    (loss,) = importer.json("plan", "--bucket", "odd-keys")["losses"]
    assert (loss["kind"], loss["name"]) == ("key", "odd-keys/ctl\ufffd")
    assert importer.objects("--bucket", "odd-keys", code=1) == {"listed": 2, "created": 1, "failed": 1}


def test_entity_tags_that_a_list_does_not_tell(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """Regression: SeaweedFS lists other entity tags than it answers with, and none for empty objects. Such objects were never imported."""
    importer = source_of(SEAWEEDFS)
    large = os.urandom(2 * MIB)
    wrong = "62f1081ac0ec2823fa48acdb6792b418-3"
    for bucket, versioning in (("tags-never", None), ("tags-enabled", "Enabled")):
        importer.source.add(
            bucket, Version("empty", "null", 1, b"", listed_etag=""), Version("large", "null", 1, large, listed_etag=wrong), versioning=versioning,
        )
    buckets = ("--bucket", "tags-never", "--bucket", "tags-enabled")
    assert importer.objects(*buckets) == {"listed": 4, "created": 4}
    for bucket in ("tags-never", "tags-enabled"):
        assert content(here, bucket, "large") == large and "-" not in here.head_object(Bucket=bucket, Key="large")["ETag"]
    assert importer.objects(*buckets) == {"listed": 4, "unchanged": 4}
    assert importer.json("verify", *buckets, "--read", "all")["differences"] == 0


def test_the_current_null_version_that_is_listed_last(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """SeaweedFS does that. Of the same second, it would have become the oldest."""
    importer = source_of(SEAWEEDFS)
    ids = ["6714457f41ed5eab5c97e5fbff48bc5c", "6714457f424ede921d6194e0503877f8"]
    importer.source.add(
        "null-last", Version("k", "null", 7, b"current"), Version("k", ids[0], 7, b"2", is_latest=False), Version("k", ids[1], 7, b"1", is_latest=False),
        versioning="Suspended",
    )
    assert importer.objects("--bucket", "null-last") == {"listed": 3, "created": 3}
    assert (order(here, "null-last", "k"), content(here, "null-last", "k")) == (["null", *ids], b"current")
    assert importer.json("verify", "--bucket", "null-last", "--read", "all")["differences"] == 0


def test_a_store_without_versions_in_its_own_region(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """Garage. The region is taken from its refusal, and the plan says that there are no versions."""
    importer = source_of(GARAGE)
    importer.source.add("garage", *many(7), Version("a b+c", "null", 1, b"x", headers={"content-type": "text/plain", "x-amz-meta-a": "b"}))
    plan = importer.json("plan", "--bucket", "garage")
    assert [one["kind"] for one in plan["losses"]] == ["versions"] and plan["buckets"][0]["unfinished_uploads"] == 0
    assert importer.objects("--bucket", "garage") == {"listed": 8, "created": 8}
    assert importer.objects("--bucket", "garage", "--delete") == {"listed": 8, "unchanged": 8}
    assert here.head_object(Bucket="garage", Key="a b+c")["Metadata"] == {"a": "b"}
    assert importer.json("verify", "--bucket", "garage", "--read", "all")["differences"] == 0
    # Deletions are found, too.
    importer.source.buckets["garage"][2].pop()
    assert importer.objects("--bucket", "garage", "--delete") == {"listed": 7, "unchanged": 7, "deleted": 1}


def test_files_without_entity_tags(source_of: Callable[[Oddities], Importer]):
    """versitygw serves files that were put into its folder without any. Each gets one here, and the plan says so."""
    importer = source_of(VERSITYGW)
    importer.source.add("no-tags", Version("none", "null", 1, b"x", etag=""), Version("other", "null", 1, b"y", etag="crc64nvme-AAAA"))
    (loss,) = importer.json("plan", "--bucket", "no-tags")["losses"]
    assert loss["kind"] == "etags" and "2 objects" in loss["reason"]
    assert importer.objects("--bucket", "no-tags") == {"listed": 2, "created": 2}
    assert importer.objects("--bucket", "no-tags") == {"listed": 2, "unchanged": 2}
    assert importer.json("verify", "--bucket", "no-tags", "--read", "all")["differences"] == 0


def test_lengths_that_a_list_does_not_tell(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """versitygw lists symbolic links with the length of their own. The plan names one, and the import fails for it alone."""
    importer = source_of(VERSITYGW)
    importer.source.add("link", Version("file", "null", 1, b"hello"), Version("link", "null", 1, b"hello", listed_size=4))
    (loss,) = importer.json("plan", "--bucket", "link")["losses"]
    assert (loss["kind"], loss["name"]) == ("object", "link/link") and "listed with 4 bytes and sent with 5" in loss["reason"]
    assert importer.objects("--bucket", "link", code=1) == {"listed": 2, "created": 1, "failed": 1}
    assert content(here, "link", "file") == b"hello"


def test_what_is_listed_and_cannot_be_read_fails(source_of: Callable[[Oddities], Importer]):
    """It is not believed to be gone: exit code 1, also of later runs, and the plan names it."""
    importer = source_of(Oddities(lost_keys=frozenset({"many/03"})))
    importer.source.add("lost", *many(5))
    (loss,) = importer.json("plan", "--bucket", "lost")["losses"]
    assert (loss["kind"], loss["name"]) == ("object", "lost/many/03")
    assert importer.objects("--bucket", "lost", code=1) == {"listed": 5, "created": 4, "failed": 1}
    assert importer.objects("--bucket", "lost", "--delete", code=1) == {"listed": 5, "unchanged": 4, "failed": 1}
    assert "the source lists it" in (importer.journal / "failures.jsonl").read_text()


def test_versions_of_a_bucket_that_says_it_has_none(source_of: Callable[[Oddities], Importer]):
    """They are not passed over in favour of the current objects alone: what does not fit is a failure."""
    importer = source_of(Oddities())
    importer.source.add("denied", Version("k", "2", 2, b"2"), Version("k", "1", 1, b"1", is_latest=False))
    assert importer.json("plan", "--bucket", "denied")["buckets"][0]["versions"] == 2
    assert importer.objects("--bucket", "denied", code=1) == {"listed": 2, "failed": 2}


def test_deletions_are_confirmed_by_the_source(source_of: Callable[[Oddities], Importer], here: BaseClient):
    """A list that lacks a version once is no reason to delete it."""
    importer = source_of(Oddities())
    versions = [Version(f"k{number}", str(number), number, b"x") for number in range(4)]
    importer.source.add("confirmed", *versions, versioning="Enabled")
    assert importer.objects("--bucket", "confirmed") == {"listed": 4, "created": 4}
    whole = importer.source.versions

    def lacking(found: list[Version], query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return whole(found if "prefix" in query else [one for one in found if one.key != "k2"], query)

    importer.source.versions = lacking  # type: ignore[method-assign]
    assert importer.objects("--bucket", "confirmed", "--delete") == {"listed": 3, "unchanged": 3}
    importer.source.versions = whole  # type: ignore[method-assign]
    assert importer.objects("--bucket", "confirmed", "--delete") == {"listed": 4, "unchanged": 4}
    assert len(here.list_object_versions(Bucket="confirmed")["Versions"]) == 4


def test_a_list_without_an_end_is_an_error(source_of: Callable[[Oddities], Importer]):
    """The command does not run for ever."""
    importer = source_of(Oddities(never_ends=True))
    importer.source.add("endless", *many(9), versioning="Enabled")
    done = importer.run("objects", "--bucket", "endless")
    assert done.returncode == 1 and "the same page twice" in done.stderr
