"""Quotas: every kind of write at the exact limit, concurrently, and while the limits change.

`tests/campaign quota` runs the long version.
"""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.client import BaseClient

from harness.boto import refused
from harness.management import Management, bearer, expect, expect_refusal, segment
from harness.s3 import object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wire import Connection, encode_head

MIB = 1 << 20
# The largest integer that every JSON parser represents exactly.
LIMIT_MAX = (1 << 53) - 1


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server for this module alone, so that inspections and metrics show nothing else."""
    return make_module_store().start()


def dimension(name: str, limit: int | None) -> dict:
    """Returns one dimension of a quota in its JSON form."""
    return {"mode": "unlimited"} if limit is None else {"mode": "limit", name: limit}


def ask(admin: Management, bucket: str, size: int | None, count: int | None):
    """Sends a request that sets a quota."""
    return admin.put(f"/buckets/{bucket}/quota", {"quota": {"bytes": dimension("bytes", size), "objects": dimension("objects", count)}})


def limit(admin: Management, bucket: str, size: int | None = None, count: int | None = None) -> dict:
    """Sets a quota and returns the bucket's record."""
    return expect(ask(admin, bucket, size, count), 200)


def usage(admin: Management, bucket: str) -> tuple[int, int]:
    """Returns the used bytes and the number of objects."""
    found = expect(admin.get(f"/buckets/{bucket}"), 200)["usage"]
    return found["bytes"], found["objects"]


def footprint(admin: Management, bucket: str) -> dict:
    """Returns every count of what is stored. A refused request must not change any of them."""
    found = expect(admin.get("/storage/inspect"), 200)
    assert found["complete"] and found["findings"] == [] and found["orphaned_bytes"] == 0
    figures = {name: found[name] for name in ("objects", "versions", "delete_markers", "multipart_uploads", "parts", "logical_bytes", "physical_bytes")}
    figures["temporary"] = expect(admin.get("/storage/status"), 200)["temporary_upload_bytes"]
    figures["usage"] = usage(admin, bucket)
    figures["versions of the bucket"] = expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)
    return figures


def upload(admin: Management, bucket: str, key: str, size: int):
    """Uploads an object through the management plane."""
    return admin.request("PUT", f"/buckets/{bucket}/object/{segment(key)}", data=b"x" * size)


class Writes:
    """Every kind of request that writes `size` bytes to a key; fails if refused for another reason than the quota."""

    WAYS = ("s3_put", "s3_complete", "s3_copy", "admin_put", "admin_copy")

    def __init__(self, admin: Management, boto: BaseClient, bucket: str, size: int):
        self.admin, self.boto, self.bucket, self.size = admin, boto, bucket, size
        self.source = f"{bucket}-source"
        expect(admin.post("/buckets", {"name": self.source}), 201)
        boto.put_object(Bucket=self.source, Key="k", Body=b"x" * size)
        self.upload_id = boto.create_multipart_upload(Bucket=bucket, Key="new")["UploadId"]
        part = {"Bucket": bucket, "Key": "new", "UploadId": self.upload_id, "PartNumber": 1}
        self.parts = {"Parts": [{"PartNumber": 1, "ETag": boto.upload_part(**part, Body=b"x" * size)["ETag"]}]}

    def s3_put(self) -> None:
        """PutObject."""
        self.boto.put_object(Bucket=self.bucket, Key="new", Body=b"x" * self.size)

    def s3_complete(self) -> None:
        """CompleteMultipartUpload."""
        self.boto.complete_multipart_upload(Bucket=self.bucket, Key="new", UploadId=self.upload_id, MultipartUpload=self.parts)

    def s3_copy(self) -> None:
        """CopyObject."""
        self.boto.copy_object(Bucket=self.bucket, Key="new", CopySource={"Bucket": self.source, "Key": "k"})

    def admin_copy(self):
        """Copy of an object on the management plane."""
        return self.admin.post(f"/buckets/{self.source}/object-copy/k", {"destination_bucket": self.bucket, "destination_key": "new"})

    def is_refused(self, way: str) -> bool:
        """Sends the write and returns whether it was refused because of the quota."""
        if way.startswith("s3"):
            try:
                getattr(self, way)()
            except self.boto.exceptions.ClientError as error:
                assert (error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]) == ("QuotaExceeded", 403)
                return True
            return False
        response = upload(self.admin, self.bucket, "new", self.size) if way == "admin_put" else self.admin_copy()
        if response.status_code == 201:
            return False
        expect_refusal(response, 409, "QUOTA_EXCEEDED")
        return True


@pytest.mark.parametrize("way", Writes.WAYS)
@pytest.mark.parametrize("size", [1, 5000, 3 * MIB])
def test_write_over_the_quota_changes_nothing(admin: Management, boto: BaseClient, bucket: str, way: str, size: int):
    """One byte or one object too many is refused and nothing changes. A write that fits exactly is accepted."""
    expect(upload(admin, bucket, "there", 10), 201)
    writes = Writes(admin, boto, bucket, size)
    before = footprint(admin, bucket)
    for size_max, count_max in ((size + 9, None), (None, 1), (size + 9, 1)):
        limit(admin, bucket, size_max, count_max)
        assert writes.is_refused(way)
        assert footprint(admin, bucket) == before
    limit(admin, bucket, size + 10, 2)
    assert not writes.is_refused(way)
    assert usage(admin, bucket) == (size + 10, 2)


@pytest.mark.parametrize("plane", ["data", "management"])
@pytest.mark.parametrize("versioned", [False, True])
def test_upload_that_cannot_fit_is_refused_before_its_body(store: Cairn, bucket: str, plane: str, versioned: bool):
    """A client that waits for `100 Continue` gets the refusal instead, and one that does not wait need not send its body.

    Regression: the whole body was written to the disk before the commit refused it.
    """
    admin = store.admin
    if versioned:
        expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    expect(upload(admin, bucket, "there", 100), 201)
    limit(admin, bucket, 4 * MIB, 2)
    refused_with = 403 if plane == "data" else 409

    def announce(key: str, size: int, expects: bool) -> tuple[Connection, int]:
        """Sends only the head of an upload and returns the first status."""
        target = object_target(bucket, key) if plane == "data" else f"/api/v1/buckets/{bucket}/object/{key}"
        expectation = [("Expect", "100-continue")] if expects else []
        if plane == "data":
            head = store.s3.signed_head("PUT", target, expectation, payload=UNSIGNED_PAYLOAD, content_length=size)
            connection = store.s3.connect()
        else:
            head = [("Host", "h"), *bearer(store.secrets.system_token).items(), ("Content-Length", str(size)), *expectation]
            connection = Connection(LOOPBACK, store.api_port)
        connection.send(encode_head("PUT", target, head))
        return connection, connection.read_head().status

    for key, size, expected in (
        ("new", 4 * MIB - 99, refused_with), ("new", 4 * MIB - 100, 100), ("there", 4 * MIB + 1, refused_with), ("there", 4 * MIB, 100),
    ):
        connection, status = announce(key, size, expects=True)
        assert status == expected, (key, size)
        connection.close()
    connection, status = announce("new", 1 << 30, expects=False)
    assert status == refused_with
    connection.close()
    expect(upload(admin, bucket, "second", 0), 201)
    connection, status = announce("third", 0, expects=False)
    assert status == refused_with, "one object too many"
    connection.close()


@pytest.mark.parametrize("way", Writes.WAYS)
def test_overwrite_counts_only_the_difference_in_size(admin: Management, boto: BaseClient, bucket: str, way: str):
    """With both limits reached, an object can be replaced by one of the same size but not by a larger one."""
    expect(upload(admin, bucket, "new", 90), 201)
    writes = Writes(admin, boto, bucket, 100)
    limit(admin, bucket, 99, 1)
    assert writes.is_refused(way) and usage(admin, bucket) == (90, 1)
    limit(admin, bucket, 100, 1)
    assert not writes.is_refused(way) and usage(admin, bucket) == (100, 1)
    limit(admin, bucket, 100, 1)
    expect(upload(admin, bucket, "new", 100), 201)
    expect(upload(admin, bucket, "new", 1), 201)
    assert usage(admin, bucket) == (1, 1)


def test_noncurrent_versions_and_markers_do_not_count(admin: Management, boto: BaseClient, bucket: str):
    """Only current objects count. Removing a delete marker restores its object, so the quota may refuse it."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    limit(admin, bucket, 100, 1)
    for _ in range(5):
        expect(upload(admin, bucket, "k", 100), 201)
    assert usage(admin, bucket) == (100, 1)
    marker = boto.delete_object(Bucket=bucket, Key="k")["VersionId"]
    assert usage(admin, bucket) == (0, 0)
    expect(upload(admin, bucket, "other", 100), 201)
    before = footprint(admin, bucket)
    with refused(403, "QuotaExceeded"):
        boto.delete_object(Bucket=bucket, Key="k", VersionId=marker)
    expect_refusal(admin.delete(f"/buckets/{bucket}/object-versions/k", params={"version_id": marker}), 409, "QUOTA_EXCEEDED")
    assert footprint(admin, bucket) == before
    limit(admin, bucket, 200, 2)
    assert admin.delete(f"/buckets/{bucket}/object-versions/k", params={"version_id": marker}).status_code == 204
    assert usage(admin, bucket) == (200, 2)


def test_parts_do_not_count_before_completion(admin: Management, boto: BaseClient, bucket: str):
    """Parts may exceed the limit. Completion is refused until there is room."""
    limit(admin, bucket, 99, None)
    writes = Writes(admin, boto, bucket, 100)
    assert writes.is_refused("s3_complete") and writes.is_refused("s3_complete")
    limit(admin, bucket, 100, None)
    assert not writes.is_refused("s3_complete")


def test_quota_below_current_usage_is_refused(admin: Management, bucket: str):
    """The old quota remains, even if only one dimension is too low."""
    for key in "ab":
        expect(upload(admin, bucket, key, 50), 201)
    kept = limit(admin, bucket, 100, 2)
    assert kept["quota"] == {"bytes": {"mode": "limit", "bytes": 100}, "objects": {"mode": "limit", "objects": 2}}
    assert kept["usage"] == {"bytes": 100, "objects": 2}
    for size, count in ((99, None), (None, 1), (99, 5), (500, 1), (0, 0)):
        expect_refusal(ask(admin, bucket, size, count), 409, "QUOTA_BELOW_USAGE")
        assert expect(admin.get(f"/buckets/{bucket}"), 200) == kept
    expect_refusal(upload(admin, bucket, "c", 0), 409, "QUOTA_EXCEEDED")


def test_quota_and_usage_survive_kill_9(own_store: Cairn):
    """The usage that is compared with the quota survives too."""
    admin = own_store.admin
    expect(admin.post("/buckets", {"name": "lasting"}), 201)
    expect(upload(admin, "lasting", "k", 60), 201)
    limit(admin, "lasting", 100, None)
    own_store.kill()
    own_store.start()
    assert expect(admin.get("/buckets/lasting"), 200)["quota"]["bytes"] == {"mode": "limit", "bytes": 100}
    expect_refusal(upload(admin, "lasting", "l", 41), 409, "QUOTA_EXCEEDED")
    expect(upload(admin, "lasting", "l", 40), 201)


GOOD = {"mode": "unlimited"}


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"quota": None}, {"quota": {}}, {"quota": {"bytes": GOOD}}, {"quota": {"objects": GOOD}}, {"bytes": GOOD, "objects": GOOD},
        {"quota": {"bytes": GOOD, "objects": GOOD, "files": GOOD}}, {"quota": {"bytes": GOOD, "objects": GOOD}, "more": 1},
        {"quota": {"bytes": {"mode": "limit"}, "objects": GOOD}}, {"quota": {"bytes": {"mode": "unlimited", "bytes": 1}, "objects": GOOD}},
        {"quota": {"bytes": {"mode": "limit", "bytes": -1}, "objects": GOOD}}, {"quota": {"bytes": {"mode": "limit", "bytes": "1"}, "objects": GOOD}},
        {"quota": {"bytes": {"mode": "limit", "bytes": 1.5}, "objects": GOOD}}, {"quota": {"bytes": {"mode": "limit", "bytes": LIMIT_MAX + 1}, "objects": GOOD}},
        {"quota": {"bytes": {"mode": "limit", "bytes": 1e300}, "objects": GOOD}}, {"quota": {"bytes": {"mode": "limit", "objects": 1}, "objects": GOOD}},
        {"quota": {"bytes": {"mode": "LIMIT", "bytes": 1}, "objects": GOOD}}, {"quota": {"bytes": 5, "objects": GOOD}},
        {"quota": {"bytes": GOOD, "objects": {"mode": "limit", "bytes": 1}}}, {"quota": {"bytes": GOOD, "objects": {"mode": "limit", "count": 1}}},
    ],
)
def test_malformed_quotas_are_refused(admin: Management, bucket: str, body: object):
    """The answer is 400 and the quota does not change."""
    expect_refusal(admin.put(f"/buckets/{bucket}/quota", body), 400, "INVALID_REQUEST")
    assert expect(admin.get(f"/buckets/{bucket}"), 200)["quota"] == {"bytes": GOOD, "objects": GOOD}


def test_largest_and_smallest_quotas_are_enforced(admin: Management, bucket: str):
    """The largest limit does not overflow, and a limit of zero refuses every byte or every object."""
    limit(admin, bucket, LIMIT_MAX, LIMIT_MAX)
    expect(upload(admin, bucket, "k", 5), 201)
    expect(admin.request("DELETE", f"/buckets/{bucket}/object/k"), 204)
    limit(admin, bucket, 0, None)
    expect(upload(admin, bucket, "empty", 0), 201)
    expect_refusal(upload(admin, bucket, "k", 1), 409, "QUOTA_EXCEEDED")
    expect(admin.request("DELETE", f"/buckets/{bucket}/object/empty"), 204)
    limit(admin, bucket, None, 0)
    expect_refusal(upload(admin, bucket, "empty", 0), 409, "QUOTA_EXCEEDED")
    expect_refusal(admin.put("/buckets/no-such-bucket/quota", {"quota": {"bytes": GOOD, "objects": GOOD}}), 404, "BUCKET_NOT_FOUND")


def test_usage_never_exceeds_a_quota_that_changes_under_load(admin: Management, store: Cairn, bucket: str):
    """Clients of both planes write at the limit while it moves up and down. No record shows usage above its quota."""
    s3, over, done = store.s3, [], threading.Event()
    limit(admin, bucket, 4000, 8)

    def write(worker: int) -> tuple[int, int]:
        chance, taken, turned_away = random.Random(worker), 0, 0
        for _ in range(60):
            key, size = f"k{chance.randrange(16)}", chance.randrange(1500)
            if chance.random() < 0.3:
                assert s3.delete(bucket, key).status == 204
            elif chance.random() < 0.5:
                status = s3.request("PUT", object_target(bucket, key), body=b"x" * size).status
                # The bucket is full or not, by what the others have done.
                assert status in (200, 403)
                taken, turned_away = taken + (status == 200), turned_away + (status == 403)
            else:
                status = upload(admin, bucket, key, size).status_code
                assert status in (201, 409)
                taken, turned_away = taken + (status == 201), turned_away + (status == 409)
        return taken, turned_away

    def move() -> None:
        chance = random.Random(99)
        while not done.is_set():
            response = ask(admin, bucket, chance.randrange(1000, 6000), chance.randrange(3, 12))
            record = response.json() if response.status_code == 200 else expect(admin.get(f"/buckets/{bucket}"), 200)
            if record["usage"]["bytes"] > record["quota"]["bytes"]["bytes"] or record["usage"]["objects"] > record["quota"]["objects"]["objects"]:
                over.append(record)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(write, range(8)))
    finally:
        done.set()
        mover.join()
    assert over == []
    assert sum(taken for taken, _ in results) > 20 and sum(turned_away for _, turned_away in results) > 20
    listed = s3.list_all(bucket)
    assert usage(admin, bucket) == (sum(size for size, _ in listed.values()), len(listed))
    assert footprint(admin, bucket)["usage"] == usage(admin, bucket)


def test_concurrent_writers_fill_a_quota_exactly(admin: Management, store: Cairn, bucket: str):
    """Ten of forty concurrent 100-byte objects fit into a quota of 1000 bytes."""
    limit(admin, bucket, 1000, None)
    with ThreadPoolExecutor(16) as pool:
        puts = [pool.submit(store.s3.request, "PUT", object_target(bucket, f"k{number}"), body=b"x" * 100) for number in range(40)]
        statuses = [put.result().status for put in puts]
    assert sorted(statuses) == [200] * 10 + [403] * 30
    assert usage(admin, bucket) == (1000, 10)
