"""Uploads in parts through the console: order, sizes, repetition, completion, abort, restart, quota, roles."""

import base64
import itertools
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.console import MIB, PART_BYTES, Console, create_token, signed_in, upload_id
from harness.management import API, expect, expect_refusal
from harness.s3 import S3, error_code, md5_etag
from harness.server import Cairn

BODY = os.urandom(MIB) * 20
PARTS = [BODY[begin:begin + PART_BYTES] for begin in range(0, len(BODY), PART_BYTES)]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def upload_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """The server of this file."""
    return make_module_store().start()


@pytest.fixture(scope="module")
def console(upload_store: Cairn) -> Console:
    """A browser with a session that may write."""
    return signed_in(upload_store, create_token(upload_store, "storage_admin")["token"])


@pytest.fixture
def bucket_client(upload_store: Cairn) -> S3:
    """Buckets are made on the server of this file."""
    return upload_store.s3


def begin(console: Console, bucket: str, key: str = "file", size: int = len(BODY), **options: object) -> str:
    """Begins an upload and returns its path."""
    made = expect(console.post("/uploads", {"bucket": bucket, "key": key, "size": size} | options), 201)
    assert made["part_bytes"] == PART_BYTES
    return f"/uploads/{made['id']}"


def send(console: Console, upload: str, number: int) -> dict:
    """Sends a part of BODY."""
    return expect(console.put(f"{upload}/{number}", PARTS[number - 1]), 200)


def pending(store: Cairn, bucket: str) -> int:
    """Returns the number of unfinished uploads."""
    return expect(store.admin.get(f"/buckets/{bucket}/contents"), 200)["multipart_uploads"]


def test_parts_in_any_order_make_the_object(console: Console, upload_store: Cairn, bucket: str):
    """Sent at the same time and backwards; the upload can be read at any time; the change is audited and an event."""
    key = "ordner/größe & co #1?.bin"
    upload = begin(console, bucket, key, content_type="application/x-test")
    with ThreadPoolExecutor(3) as lines:
        sent = list(lines.map(lambda number: send(console, upload, number), (3, 2, 1)))
    assert [part["etag"] for part in sent] == [md5_etag(part).strip('"') for part in reversed(PARTS)]
    state = expect(console.get(upload), 200)
    assert (state["bucket"], state["key"], state["size"], state["part_bytes"]) == (bucket, key, len(BODY), PART_BYTES)
    assert [(part["number"], part["size"]) for part in state["parts"]] == [(n, len(part)) for n, part in enumerate(PARTS, 1)]
    response = console.post(f"{upload}/complete")
    assert expect(response, 201)["size"] == len(BODY)
    stored = upload_store.s3.get(bucket, key)
    assert stored.body == BODY and stored.get("content-type") == "application/x-test"
    assert pending(upload_store, bucket) == 0
    (event,) = expect(upload_store.admin.get(f"/audit/events?request_id={response.headers['x-request-id']}"), 200)["events"]
    assert (event["result"], event["role"], event["resource"]) == ("allowed", "storage_admin", f"{bucket}/{key}")
    types = [event["type"] for event in expect(upload_store.admin.get(f"/events?bucket={bucket}"), 200)["events"]]
    assert types == ["bucket.created", "object.created", "multipart.completed"]


def test_repeated_part_replaces_the_earlier_one(console: Console, upload_store: Cairn, bucket: str):
    """The last one counts."""
    upload = begin(console, bucket)
    expect(console.put(f"{upload}/1", b"x" * PART_BYTES), 200)
    for number in (1, 2, 3):
        send(console, upload, number)
    expect(console.post(f"{upload}/complete"), 201)
    assert upload_store.s3.get(bucket, "file").body == BODY


def test_repeated_completion_is_answered_the_same(console: Console, upload_store: Cairn, bucket: str):
    """The first answer may have been lost. It does not hide a later object."""
    upload = begin(console, bucket, size=3)
    expect(console.put(f"{upload}/1", b"abc"), 200)
    first = expect(console.post(f"{upload}/complete"), 201)
    assert expect(console.post(f"{upload}/complete"), 201) == first
    upload_store.s3.put(bucket, "file", b"later")
    console.post(f"{upload}/complete")
    assert upload_store.s3.get(bucket, "file").body == b"later"
    expect_refusal(console.put(f"{upload}/1", b"abc"), 404, "UPLOAD_NOT_FOUND")
    expect_refusal(console.get(upload), 404, "UPLOAD_NOT_FOUND")


@pytest.mark.parametrize("number, size", [(1, PART_BYTES - 1), (1, PART_BYTES + 1), (3, PART_BYTES), (3, 0)])
def test_part_of_another_size_is_refused(console: Console, bucket: str, number: int, size: int):
    """The size of the file decides where each part begins."""
    upload = begin(console, bucket)
    message = expect_refusal(console.put(f"{upload}/{number}", b"x" * size), 400, "INVALID_REQUEST")
    assert str(len(PARTS[number - 1])) in message
    assert expect(console.get(upload), 200)["parts"] == []
    expect(console.delete(upload), 204)


@pytest.mark.parametrize("number", ["0", "4", "-1", "1.5", "99999", "x", "%31%30"])
def test_part_that_does_not_exist_is_refused(console: Console, bucket: str, number: str):
    """Parts are numbered from 1."""
    upload = begin(console, bucket)
    assert "1 to 3" in expect_refusal(console.put(f"{upload}/{number}", b"x"), 400, "INVALID_REQUEST")
    expect(console.delete(upload), 204)


def test_completion_needs_all_parts(console: Console, upload_store: Cairn, bucket: str):
    """It names the first that is missing, and the upload can go on."""
    upload = begin(console, bucket)
    for number in (1, 3):
        send(console, upload, number)
    assert "part 2" in expect_refusal(console.post(f"{upload}/complete"), 400, "INVALID_REQUEST")
    assert error_code(upload_store.s3.get(bucket, "file")) == "NoSuchKey"
    send(console, upload, 2)
    expect(console.post(f"{upload}/complete"), 201)
    assert upload_store.s3.get(bucket, "file").body == BODY


def test_empty_file(console: Console, upload_store: Cairn, bucket: str):
    """It has one empty part."""
    upload = begin(console, bucket, size=0)
    expect(console.put(f"{upload}/1", b""), 200)
    expect(console.post(f"{upload}/complete"), 201)
    assert upload_store.s3.get(bucket, "file").body == b""


def test_existing_object_is_kept_if_wanted(console: Console, upload_store: Cairn, bucket: str):
    """Refused at the beginning, and also at the completion if the object appeared in between."""
    upload_store.s3.put(bucket, "old", b"old")
    refused = console.post("/uploads", {"bucket": bucket, "key": "old", "size": 3, "if_absent": True})
    expect_refusal(refused, 412, "PRECONDITION_FAILED")
    upload = begin(console, bucket, "new", 3, if_absent=True)
    expect(console.put(f"{upload}/1", b"abc"), 200)
    upload_store.s3.put(bucket, "new", b"from elsewhere")
    expect_refusal(console.post(f"{upload}/complete"), 412, "PRECONDITION_FAILED")
    assert upload_store.s3.get(bucket, "new").body == b"from elsewhere"
    expect(console.delete(upload), 204)
    assert pending(upload_store, bucket) == 0


def test_abort_removes_the_parts(console: Console, upload_store: Cairn, bucket: str):
    """A second abort is 404, and nothing can be sent afterwards."""
    upload = begin(console, bucket)
    send(console, upload, 1)
    assert pending(upload_store, bucket) == 1
    expect(console.delete(upload), 204)
    assert pending(upload_store, bucket) == 0
    for response in (console.delete(upload), console.get(upload), console.put(f"{upload}/1", PARTS[0]), console.post(f"{upload}/complete")):
        expect_refusal(response, 404, "UPLOAD_NOT_FOUND")


def test_upload_goes_on_after_a_kill(make_store: Callable[..., Cairn]):
    """The id and the acknowledged parts outlive the process; the session does not."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    console = signed_in(store)
    upload = begin(console, "kept")
    send(console, upload, 2)
    store.kill()
    store.start()
    expect_refusal(console.get(upload), 401, "UNAUTHENTICATED")
    expect_refusal(console.put(f"{upload}/1", PARTS[0]), 401, "UNAUTHENTICATED")
    console.log_in()
    assert [part["number"] for part in expect(console.get(upload), 200)["parts"]] == [2]
    for number in (1, 3):
        send(console, upload, number)
    expect(console.post(f"{upload}/complete"), 201)
    assert store.s3.get("kept", "file").body == BODY


def test_quota_refuses_early_and_at_the_completion(console: Console, upload_store: Cairn, bucket: str):
    """An upload that cannot fit is not begun."""
    def limit(size: int) -> None:
        expect(upload_store.admin.put(f"/buckets/{bucket}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": size}, "objects": {"mode": "unlimited"}}}), 200)

    limit(10)
    refused = console.post("/uploads", {"bucket": bucket, "key": "k", "size": 11})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "QUOTA_EXCEEDED"), refused.text
    upload = begin(console, bucket, "k", 10)
    expect(console.put(f"{upload}/1", b"0123456789"), 200)
    limit(5)
    refused = console.post(f"{upload}/complete")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "QUOTA_EXCEEDED"), refused.text
    limit(10)
    expect(console.post(f"{upload}/complete"), 201)


def test_auditor_cannot_upload(console: Console, upload_store: Cairn, bucket: str):
    """Not even with the id of somebody else's upload."""
    auditor = signed_in(upload_store, create_token(upload_store, "auditor")["token"])
    upload = begin(console, bucket)
    for response in (
        auditor.post("/uploads", {"bucket": bucket, "key": "k", "size": 1}), auditor.put(f"{upload}/1", PARTS[0]), auditor.get(upload),
        auditor.post(f"{upload}/complete"), auditor.delete(upload), auditor.put(f"{API}/buckets/{bucket}/object/k", b"x"),
    ):
        expect_refusal(response, 403, "FORBIDDEN")
    assert expect(console.get(upload), 200)["parts"] == []
    expect(console.delete(upload), 204)


@pytest.mark.parametrize("body, status, code", [
    ({"bucket": "no-such-bucket", "key": "k", "size": 1}, 404, "BUCKET_NOT_FOUND"),
    ({"bucket": "Bad_Name", "key": "k", "size": 1}, 400, "INVALID_BUCKET_NAME"),
    ({"bucket": "{bucket}", "key": "", "size": 1}, 400, "INVALID_REQUEST"),
    ({"bucket": "{bucket}", "key": "k" * 1025, "size": 1}, 400, "INVALID_REQUEST"),
    ({"bucket": "{bucket}", "key": "k", "size": -1}, 400, "INVALID_REQUEST"),
    ({"bucket": "{bucket}", "key": "k", "size": 10_000 * (5 << 30) + 1}, 413, "PAYLOAD_TOO_LARGE"),
    ({"bucket": "{bucket}", "key": "k", "size": 1, "content_type": "a\r\nb: c"}, 400, "INVALID_REQUEST"),
    ({"bucket": "{bucket}", "key": "k", "size": 1, "other": 1}, 400, "INVALID_REQUEST"),
    ({"bucket": "{bucket}", "key": "k"}, 400, "INVALID_REQUEST"),
], ids=lambda value: str(value)[:40])
def test_malformed_upload_is_not_begun(console: Console, upload_store: Cairn, bucket: str, body: dict, status: int, code: str):
    """Nothing is stored."""
    sent = body | {"bucket": body["bucket"].format(bucket=bucket)}
    expect_refusal(console.post("/uploads", sent), status, code)
    assert pending(upload_store, bucket) == 0


def test_made_up_ids_are_not_found(console: Console, bucket: str):
    """Ids are not secret and give no right: whatever they contain is checked."""
    good = {"b": bucket, "k": "k", "u": "0" * 32, "s": 5, "a": False}
    begun = begin(console, bucket)
    unknown = ["x", "e30", begun.split("/")[-1] + "A", begun.split("/")[-1][:-4], *(upload_id(**good | change) for change in (
        {}, {"u": "x"}, {"u": ""}, {"b": "no-such-bucket"}, {"s": -1}, {"s": 1 << 70}, {"x": 1},
    ))]
    invalid = {
        upload_id(**good | {"b": "Bad_Name"}): "INVALID_BUCKET_NAME", upload_id(**good | {"k": ""}): "INVALID_REQUEST",
        upload_id(**good | {"k": "k" * 2000}): "INVALID_REQUEST",
    }
    for made_up in (*unknown, *invalid):
        for response in (console.get(f"/uploads/{made_up}"), console.put(f"/uploads/{made_up}/1", b"12345"),
                         console.post(f"/uploads/{made_up}/complete"), console.delete(f"/uploads/{made_up}")):
            status, code = (400, invalid[made_up]) if made_up in invalid else (404, "UPLOAD_NOT_FOUND")
            expect_refusal(response, status, code)
    expect(console.delete(begun), 204)


def test_id_with_another_size_cannot_cut_the_file(console: Console, upload_store: Cairn, bucket: str):
    """Somebody who changes the id's size gets at most an object of the parts that were sent."""
    begun = begin(console, bucket).split("/")[-1]
    members = json.loads(base64.urlsafe_b64decode(begun + "=" * (-len(begun) % 4)))
    changed = f"/uploads/{upload_id(**members | {'s': 7})}"
    expect(console.put(f"{changed}/1", b"1234567"), 200)
    assert console.post(f"/uploads/{begun}/complete").status_code == 400
    expect(console.post(f"{changed}/complete"), 201)
    assert upload_store.s3.get(bucket, "file").body == b"1234567"


def test_small_file_is_one_request(console: Console, upload_store: Cairn, bucket: str):
    """The management API's PUT through the console, with If-None-Match."""
    path = f"{API}/buckets/{bucket}/object/a%20b/c%23"
    headers = console.headers | {"Content-Type": "text/plain", "If-None-Match": "*"}
    assert console.put(path, b"hello", headers=headers).status_code == 201
    expect_refusal(console.put(path, b"again", headers=headers), 412, "PRECONDITION_FAILED")
    stored = upload_store.s3.get(bucket, "a b/c#")
    assert stored.body == b"hello" and stored.get("content-type") == "text/plain"
