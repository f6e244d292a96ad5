"""Storage events: every type with its fields, cursors, filters, waiting, and the switch."""

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone

import pytest
import requests
from botocore.client import BaseClient

from harness.boto import PART_BYTES, Upload, random_bytes
from harness.events import after, page, walk, without_identity
from harness.management import TIMEOUT, Management, expect, expect_refusal, with_role
from harness.s3 import S3
from harness.server import Cairn
from harness.wait import until

# The longest that the API allows.
WAIT_SECONDS = 30
# What writers write at least while a follower reads.
WRITES_MIN = 100
_numbers = itertools.count(1)


def of_bucket(admin: Management, bucket: str) -> list[dict]:
    """Returns the events of a bucket without their ids and times."""
    return [without_identity(event) for event in walk(admin, bucket=bucket)]


def md5(body: bytes) -> str:
    """Returns the entity tag of an object that was written by one PUT, without quotes."""
    return hashlib.md5(body).hexdigest()


def event(kind: str, bucket: str, key: str | None = None, version: str | None = "null", size: int = 0, **metadata) -> dict:
    """Returns an event of root as a client reads it."""
    found = {"type": kind, "bucket": bucket, "metadata": {"principal": "root"} | metadata}
    return found if key is None else found | {"object": key, "version_id": version, "size": size}


# Types and fields


def test_objects_of_an_unversioned_bucket_have_their_events(admin: Management, boto: BaseClient, bucket: str):
    """Created, updated, copied, deleted. Deleting what does not exist has no event."""
    boto.put_object(Bucket=bucket, Key="a/é b", Body=b"12345", ContentType="text/plain")
    boto.put_object(Bucket=bucket, Key="a/é b", Body=b"1234567")
    boto.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "a/é b"})
    boto.delete_object(Bucket=bucket, Key="a/é b")
    boto.delete_object(Bucket=bucket, Key="a/é b")
    boto.delete_object(Bucket=bucket, Key="never")
    boto.delete_object(Bucket=bucket, Key="copy")
    boto.delete_bucket(Bucket=bucket)
    five, seven = md5(b"12345"), md5(b"1234567")
    assert of_bucket(admin, bucket) == [
        event("bucket.created", bucket),
        event("object.created", bucket, "a/é b", size=5, etag=five, content_type="text/plain"),
        event("object.updated", bucket, "a/é b", size=7, etag=seven),
        event("object.created", bucket, "copy", size=7, etag=seven),
        event("object.deleted", bucket, "a/é b", size=7, etag=seven),
        event("object.deleted", bucket, "copy", size=7, etag=seven),
        event("bucket.deleted", bucket),
    ]


def test_versions_and_delete_markers_have_their_events(admin: Management, boto: BaseClient, bucket: str):
    """Writing a marker is an object.deleted that says so, removing it one that does not. Restoring has only object.restored."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = boto.put_object(Bucket=bucket, Key="k", Body=b"one")["VersionId"]
    second = boto.put_object(Bucket=bucket, Key="k", Body=b"three")["VersionId"]
    marker = boto.delete_object(Bucket=bucket, Key="k")["VersionId"]
    boto.delete_object(Bucket=bucket, Key="k", VersionId=marker)
    boto.delete_object(Bucket=bucket, Key="k", VersionId=second)
    boto.delete_object(Bucket=bucket, Key="k", VersionId=second)
    restored = expect(admin.post(f"/restore/{bucket}/k", {"version_id": first}), 201)["version_id"]
    one, three = {"etag": md5(b"one")}, {"etag": md5(b"three")}
    of_restore = event("object.restored", bucket, "k", restored, 3, **one)
    of_restore["metadata"]["principal"] = "system"
    assert of_bucket(admin, bucket)[1:] == [
        event("object.created", bucket, "k", first, 3, **one),
        event("object.updated", bucket, "k", second, 5, **three),
        event("object.deleted", bucket, "k", marker, 0, delete_marker=True),
        event("object.deleted", bucket, "k", marker, 0),
        event("object.deleted", bucket, "k", second, 5, **three),
        of_restore,
    ]


def test_multipart_uploads_have_their_events(admin: Management, boto: BaseClient, bucket: str):
    """A completed upload has two events, an aborted one has no version."""
    body = random_bytes(1, PART_BYTES)
    upload = Upload(boto, bucket, "big", ContentType="video/mp4")
    upload.send(1, body)
    upload.send(2, b"end")
    etag = upload.complete()["ETag"].strip('"')
    Upload(boto, bucket, "not").abort()
    found = of_bucket(admin, bucket)[1:]
    size = len(body) + 3
    assert sorted(found[:2], key=lambda one: one["type"]) == [
        event("multipart.completed", bucket, "big", size=size, etag=etag, content_type="video/mp4"),
        event("object.created", bucket, "big", size=size, etag=etag, content_type="video/mp4"),
    ]
    aborted = found[2]
    assert (aborted["type"], aborted["object"], aborted["version_id"], aborted["size"]) == ("multipart.aborted", "not", None, 0)
    assert len(found) == 3


def test_changes_of_the_management_plane_have_events(admin: Management, store: Cairn):
    """They name the token, and the request under which the audit trail has the change."""
    bucket = f"managed-{next(_numbers)}-{store.s3_port}"
    token = expect(admin.post("/management-tokens", {"name": "of events", "role": "storage_admin"}), 201)["token"]
    manager = Management(admin.address, {"Authorization": f"Bearer {token}"})
    expect(manager.post("/buckets", {"name": bucket}), 201)
    put = manager.put(f"/buckets/{bucket}/object/k", data=b"12", headers={"x-request-id": "of-the-put"})
    assert put.status_code == 201, put.text
    copy = {"destination_bucket": bucket, "destination_key": "c"}
    expect(manager.post(f"/buckets/{bucket}/object-copy/k", copy), 201)
    expect(manager.delete(f"/buckets/{bucket}/object/k"), 204)
    found = list(walk(admin, bucket=bucket))
    assert [one["type"] for one in found] == ["bucket.created", "object.created", "object.created", "object.deleted"]
    assert {one["metadata"]["principal"] for one in found} == {"token:of events"}
    assert found[1]["metadata"]["request_id"] == "of-the-put"
    (audited,) = expect(admin.get("/audit/events?request_id=of-the-put"), 200)["events"]
    assert audited["operation"] == "upload_object"


def test_refused_and_failed_changes_have_no_events(admin: Management, s3: S3, bucket: str):
    """A condition that fails, a quota that is exceeded, and a bucket that is not empty."""
    assert s3.put(bucket, "k", b"1").status == 200
    assert s3.request("PUT", f"/{bucket}/k", [("If-None-Match", "*")], b"2").status == 412
    quota = {"quota": {"bytes": {"mode": "limit", "bytes": 1}, "objects": {"mode": "unlimited"}}}
    expect(admin.put(f"/buckets/{bucket}/quota", quota), 200)
    assert s3.request("PUT", f"/{bucket}/k", None, b"22").status == 403
    assert s3.request("DELETE", f"/{bucket}").status == 409
    assert [one["type"] for one in walk(admin, bucket=bucket)] == ["bucket.created", "object.created"]


# Reading


def test_filters_select_by_time_type_bucket_and_prefix(admin: Management, s3: S3, bucket: str):
    """`since` is inclusive, `until` exclusive, `type` may be repeated, and all filters apply."""
    for key in ("a/1", "a/2", "b/1"):
        s3.put(bucket, key, b"x")
        time.sleep(0.002)
    s3.delete(bucket, "a/1")
    found = list(walk(admin, bucket=bucket))
    assert len(found) == 5

    def keys(**parameters: object) -> list[tuple[str, str | None]]:
        return [(one["type"], one.get("object")) for one in walk(admin, bucket=bucket, **parameters)]

    second, third = found[2]["time"], found[3]["time"]
    assert keys(since=second, until=third) == [("object.created", "a/2")]
    assert keys(until=found[1]["time"]) == [("bucket.created", None)]
    assert keys(prefix="a/") == [("object.created", "a/1"), ("object.created", "a/2"), ("object.deleted", "a/1")]
    assert keys(type="object.deleted") == [("object.deleted", "a/1")]
    assert keys(type=["bucket.created", "object.deleted"]) == [("bucket.created", None), ("object.deleted", "a/1")]
    assert keys(type="object.created", prefix="a/", since=second) == [("object.created", "a/2")]
    assert keys(prefix="c") == [] and keys(type="object.restored") == []
    for event_before, event_after in itertools.pairwise(found):
        assert event_before["id"] < event_after["id"] and event_before["time"] <= event_after["time"]
        assert event_before["metadata"]["sequencer"] < event_after["metadata"]["sequencer"]


def test_pages_are_full_and_continue_after_their_last_event(admin: Management, s3: S3, bucket: str):
    """`next_id` is null only on the last page, and any event can be continued from."""
    for number in range(5):
        s3.put(bucket, f"k{number}", b"")
    everything = [one["id"] for one in walk(admin, bucket=bucket)]
    assert len(everything) == 6
    for limit in (1, 2, 3, 6, 7):
        first = page(admin, bucket=bucket, limit=limit)
        assert [one["id"] for one in first["events"]] == everything[:limit]
        assert first["next_id"] == (everything[limit - 1] if limit < 6 else None)
        assert [one["id"] for one in walk(admin, bucket=bucket, limit=limit)] == everything
    whole = page(admin, bucket=bucket)["events"]
    for number, one in enumerate(whole):
        assert page(admin, bucket=bucket, **after(one))["events"] == whole[number + 1 :]


@pytest.mark.parametrize("query", [
    "limit=0", "limit=1001", "limit=x", "wait_seconds=31", "wait_seconds=-1", "type=object", "type=", "since=yesterday",
    "until=2026-13-01T00:00:00Z", "buckets=a", "bucket=a&bucket=b",
])
def test_bad_queries_are_refused(admin: Management, query: str):
    """A misspelt filter must not return everything."""
    expect_refusal(admin.get(f"/events?{query}"), 400, "INVALID_REQUEST")


def test_cursor_needs_time_and_id_of_the_same_event(admin: Management, bucket: str):
    """One without the other, an id of another kind, and a time that does not belong to the id."""
    (one,) = page(admin, bucket=bucket)["events"]
    wrong_time = "2001-01-01T00:00:00.000Z"
    for parameters in (
        {"after_id": one["id"]}, {"after_time": one["time"]}, {"after_id": one["id"], "after_time": wrong_time},
        {"after_id": "x", "after_time": one["time"]}, {"after_id": one["id"], "after_time": "x"},
        {"after_id": "01890000-0000-4000-8000-000000000000", "after_time": one["time"]},
    ):
        expect_refusal(admin.get("/events", params=parameters), 400, "INVALID_EVENT_CURSOR")


class Writers:
    """Threads that write to a bucket, and what they wrote."""

    def __init__(self, store: Cairn, bucket: str, count: int):
        self.store, self.bucket, self.count = store, bucket, count
        self.until = 0.0
        self.written: list[list[str]] = [[] for _ in range(count)]

    def write(self, writer: int) -> None:
        """Writes until the end, and until there is something to see."""
        s3, keys = self.store.s3, self.written[writer]
        with s3.connect() as connection:
            for number in itertools.count():
                if time.monotonic() >= self.until and sum(map(len, self.written)) > WRITES_MIN:
                    return
                key = f"w{writer}/{number:06}"
                assert s3.request("PUT", f"/{self.bucket}/{key}", None, b"x", connection=connection).status == 200
                keys.append(key)

    def run(self, seconds: float) -> None:
        """Runs all writers."""
        self.until = time.monotonic() + seconds
        with ThreadPoolExecutor(self.count) as pool:
            list(pool.map(self.write, range(self.count)))


def test_follower_misses_nothing_while_others_write(make_store: Callable[..., Cairn]):
    """Four writers change keys of all slices. A follower reads each event once, and those of a key in order."""
    store = make_store(SERVICE_STORAGE_SLICES="3").start()
    store.s3.create_bucket("busy")
    writers, seen, done = Writers(store, "busy", 4), [], threading.Event()

    def follow() -> None:
        position: dict[str, str] = {}
        while True:
            was_done = done.is_set()
            found = page(store.admin, bucket="busy", type="object.created", limit=37, **position)
            seen.extend(found["events"])
            if found["next_id"]:
                position = {"after_time": found["next_time"], "after_id": found["next_id"]}
            elif found["events"]:
                position = after(found["events"][-1])
            elif was_done:
                return

    follower = threading.Thread(target=follow)
    follower.start()
    writers.run(3)
    done.set()
    follower.join(TIMEOUT)
    expected = sorted(key for keys in writers.written for key in keys)
    assert len(expected) > WRITES_MIN
    assert sorted(one["object"] for one in seen) == expected
    ids = [one["id"] for one in seen]
    assert ids == sorted(ids), "the order of the pages is that of the events"
    for number, keys in enumerate(writers.written):
        own = [one["object"] for one in seen if one["object"].startswith(f"w{number}/")]
        assert own == keys, "one writer's changes are in the order of its requests"


# Waiting


def test_waiting_request_returns_with_the_first_event(store: Cairn, admin: Management, s3: S3, bucket: str):
    """The answer comes when the event does, not at the end of the time. Events that do not match do not end it."""
    (last,) = page(admin, bucket=bucket)["events"]
    with waiting_request(store, bucket, last) as longest, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(page, admin, bucket=bucket, prefix="yes", wait_seconds=WAIT_SECONDS, **after(last))
        until(lambda: open_requests(store) > 2, "the request does not wait")
        s3.put(bucket, "no", b"")
        others = page(admin, bucket=bucket, wait_seconds=WAIT_SECONDS, **after(last))["events"]
        assert [one["object"] for one in others] == ["no"] and not waiting.done()
        s3.put(bucket, "yes", b"")
        found = waiting.result()
        assert not longest.done(), "the request that began first has not waited for its whole time"
    assert [one["object"] for one in found["events"]] == ["yes"]
    assert found["next_id"] is None


def test_waiting_request_ends_when_its_time_is_over(store: Cairn, admin: Management, bucket: str):
    """The page is empty. Without a wait it comes at once, and so does one whose period has ended."""
    (last,) = page(admin, bucket=bucket)["events"]
    begun = time.monotonic()
    empty = {"events": [], "next_time": None, "next_id": None}
    assert page(admin, bucket=bucket, wait_seconds=1, **after(last)) == empty
    assert time.monotonic() - begun > 0.9
    with waiting_request(store, bucket, last) as longest:
        assert page(admin, bucket=bucket, **after(last)) == empty
        assert page(admin, bucket=bucket, wait_seconds=WAIT_SECONDS, until=last["time"], **after(last)) == empty
        assert not longest.done(), "the request that began first has not waited for its whole time"


@contextmanager
def waiting_request(store: Cairn, bucket: str, last: dict) -> Iterator[Future]:
    """Begins a request that waits for its whole time, unless the block ends before. Other requests are compared with it."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(page, store.admin, bucket=bucket, prefix="end", wait_seconds=WAIT_SECONDS, **after(last))
        try:
            until(lambda: open_requests(store) > 1, "the request does not wait")
            yield waiting
        finally:
            store.s3.put(bucket, "end", b"")


def open_requests(store: Cairn) -> float:
    """Returns how many requests the management plane has open, this one among them."""
    found = expect(store.admin.get("/system/metrics"), 200)["metrics"]
    return sum(one["value"] for one in found if one["name"] == "service_requests_open" and one["labels"]["plane"] == "management")


def test_waiting_requests_do_not_delay_the_end_of_the_service(own_store: Cairn):
    """A client that waits is told that the service stops, and not that nothing has happened."""
    # An earlier request may not have ended on the server's side.
    until(lambda: open_requests(own_store) == 1, "an earlier request goes on")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(own_store.admin.get, f"/events?wait_seconds={WAIT_SECONDS}")
        until(lambda: open_requests(own_store) == 2, "the request does not wait")
        assert own_store.stop() == 0
        assert waiting.result().status_code == 503


def test_number_of_waiting_requests_is_limited(own_store: Cairn):
    """Beyond the limit of its executor a request is refused, and other requests are served."""
    def wait(_: int) -> int:
        return own_store.admin.get("/events?wait_seconds=8").status_code

    with ThreadPoolExecutor(220) as pool:
        statuses = pool.map(wait, range(220))
        # While the others wait: they end later than this.
        expect(own_store.admin.get("/buckets"), 200)
        assert {*statuses} == {200, 429}


def test_one_caller_leaves_places_for_waiting_requests_of_others(make_store: Callable[..., Cairn]):
    """An auditor took all places of all executors, so that the consumers of others were refused for half a minute."""
    attackers = 220
    store = make_store(SERVICE_SERVER_EXECUTORS="2").start()
    auditor = with_role(store.admin, "auditor")
    with ThreadPoolExecutor(attackers) as pool:
        waiting = [pool.submit(auditor.get, f"/events?wait_seconds={WAIT_SECONDS}&type=bucket.deleted") for _ in range(attackers)]
        # Each is refused, or waits.
        settled = lambda: sum(one.done() for one in waiting) + open_requests(store) > attackers
        until(settled, "some requests have not arrived")
        refused = [one.result() for one in waiting if one.done()]
        assert attackers - 2 * 16 <= len(refused) < attackers
        for answer in refused:
            expect_refusal(answer, 429, "TOO_MANY_REQUESTS")
        for _ in range(8):
            expect(store.admin.get("/events?wait_seconds=1&type=bucket.deleted"), 200)
        assert store.stop() == 0


# Keeping


def test_events_survive_a_kill(own_store: Cairn):
    """The events of all acknowledged changes are there, and later ones follow them."""
    own_store.s3.create_bucket("kept")
    for number in range(20):
        own_store.s3.put("kept", f"k{number:02}", b"1")
    before = list(walk(own_store.admin))
    own_store.kill()
    own_store.start()
    assert list(walk(own_store.admin)) == before and len(before) == 21
    own_store.s3.put("kept", "later", b"1")
    assert [one["object"] for one in page(own_store.admin, **after(before[-1]))["events"]] == ["later"]


def test_switched_off_events_are_not_recorded(make_store: Callable[..., Cairn]):
    """What was recorded before stays readable. The capabilities say it, and no webhook can be created."""
    store = make_store().start()
    store.s3.create_bucket("before")

    def capabilities() -> tuple[bool, bool]:
        found = expect(store.admin.get("/system/info"), 200)["capabilities"]
        return found["events"], found["webhooks"]

    assert capabilities() == (True, True)
    assert store.stop() == 0
    store.extra["SERVICE_EVENTS_ENABLED"] = "false"
    store.start()
    store.s3.create_bucket("meanwhile")
    assert capabilities() == (False, False)
    assert [one["bucket"] for one in walk(store.admin)] == ["before"]
    webhook = {"target_url": "https://example.com/", "event_types": ["bucket.created"]}
    expect_refusal(store.admin.post("/webhooks", webhook), 409, "EVENTS_DISABLED")
    assert store.stop() == 0
    store.extra["SERVICE_EVENTS_ENABLED"] = "true"
    store.start()
    store.s3.create_bucket("after")
    assert [one["bucket"] for one in walk(store.admin)] == ["before", "after"]


def test_times_are_those_of_the_changes(admin: Management, s3: S3, bucket: str):
    """Clocks of this machine and of the server are the same."""
    before = datetime.now(timezone.utc)
    s3.put(bucket, "k", b"1")
    passed = datetime.now(timezone.utc)
    (one,) = page(admin, bucket=bucket, type="object.created")["events"]
    slack = timedelta(milliseconds=100)
    assert before - slack <= datetime.fromisoformat(one["time"]) <= passed + slack
    answer = requests.get(f"{admin.address}/api/v1/events", timeout=TIMEOUT)
    assert answer.status_code == 401
