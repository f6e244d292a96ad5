"""Storage events backwards, by a text anywhere and by principal."""

from functools import partial

import pytest

from harness.accounts import create_account, statement
from harness.events import page, walk
from harness.management import Management, expect, expect_refusal
from harness.s3 import S3
from harness.server import Cairn

backwards = partial(walk, order="desc")


def test_pages_backwards_have_the_same_events(admin: Management, s3: S3, bucket: str):
    """Whatever the size of a page, and with the filters; what happens meanwhile changes no later page."""
    for number in range(7):
        s3.put(bucket, f"k{number}", b"")
    everything = list(walk(admin, bucket=bucket))
    assert len(everything) == 8
    for limit in (1, 2, 3, 8, 9):
        assert list(backwards(admin, bucket=bucket, limit=limit)) == everything[::-1], limit
    first = page(admin, order="desc", bucket=bucket, limit=3)
    s3.put(bucket, "meanwhile", b"")
    rest = page(admin, order="desc", bucket=bucket, before_time=first["next_time"], before_id=first["next_id"])
    assert first["events"] + rest["events"] == everything[::-1]
    since, until = everything[2]["time"], everything[5]["time"]
    assert list(backwards(admin, bucket=bucket, since=since, until=until)) == list(walk(admin, bucket=bucket, since=since, until=until))[::-1]
    assert [one["type"] for one in backwards(admin, bucket=bucket, type="bucket.created")] == ["bucket.created"]


def test_text_is_found_anywhere(admin: Management, store: Cairn, s3: S3, bucket: str):
    """In the key, across bucket and key, in the type, the principal and the request id; in any case of ASCII letters."""
    account = create_account(store, statement("allow", "PutObject", f"bucket:{bucket}/*"), name=f"camera-{bucket}")
    s3.put(bucket, "Projects/Apollo/plan ü.docx", b"1")
    written = account.s3.put(bucket, "other", b"2")

    def keys(text: str, **parameters: object) -> list[str | None]:
        found = [one.get("object") for one in backwards(admin, bucket=bucket, contains=text, **parameters)]
        assert found == [one.get("object") for one in walk(admin, bucket=bucket, contains=text, **parameters)][::-1]
        return found

    assert keys("apollo") == keys("APOLLO/") == keys("plan ü") == keys(f"{bucket}/projects") == ["Projects/Apollo/plan ü.docx"]
    assert keys(f"camera-{bucket}") == keys(written.get("x-amz-request-id")) == ["other"]
    assert keys("bucket.created") == [None] and keys("created") == ["other", "Projects/Apollo/plan ü.docx", None]
    assert keys("apollo", principal="root") == ["Projects/Apollo/plan ü.docx"] and keys("apollo", principal="roo") == []
    assert keys("no such text") == []
    own = [one["object"] for one in backwards(admin, principal=f"account:camera-{bucket}")]
    assert own == ["other"]


def test_audit_events_contain_a_text(store: Cairn, s3: S3, bucket: str):
    """In resource, operation, principal, detail and address. Not only the whole value."""
    expect(store.admin.put(f"/buckets/{bucket}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 4711}, "objects": {"mode": "unlimited"}}}), 200)

    def found(text: str) -> list[str]:
        return [one["operation"] for one in expect(store.admin.get("/audit/events", params={"bucket": bucket, "contains": text}), 200)["events"]]

    assert found(bucket[2:]) == ["set_quota", "CreateBucket"]
    assert found("QUOTA") == found("4711") == found("syst") == ["set_quota"]
    assert found("127.0.0") == ["set_quota", "CreateBucket"] and found("no such text") == []
    expect_refusal(store.admin.get("/audit/events", params={"contains": ""}), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("query", [
    "order=down", "order=", "contains=", f"contains={257 * 'x'}", "order=desc&wait_seconds=1", "order=desc&order=asc",
    "before_time=2026-11-21T05:00:00.000Z&before_id=019b76da-a87b-7abc-8707-070707070707",
])
def test_bad_queries_are_refused(admin: Management, query: str):
    """A combination without a meaning is not ignored."""
    code = "INVALID_EVENT_CURSOR" if "before_" in query else "INVALID_REQUEST"
    expect_refusal(admin.get(f"/events?{query}"), 400, code)


def test_cursor_needs_time_and_id_of_the_same_event(admin: Management, bucket: str):
    """As the one of pages forwards does."""
    (one,) = page(admin, bucket=bucket)["events"]
    for parameters in ({"before_id": one["id"]}, {"before_time": one["time"]}, {"before_id": "x", "before_time": one["time"]},
                       {"before_id": one["id"], "before_time": "2001-01-01T00:00:00.000Z"}):
        expect_refusal(admin.get("/events", params=parameters | {"order": "desc"}), 400, "INVALID_EVENT_CURSOR")
    both = {"order": "desc", "after_id": one["id"], "after_time": one["time"]}
    expect_refusal(admin.get("/events", params=both), 400, "INVALID_REQUEST")
