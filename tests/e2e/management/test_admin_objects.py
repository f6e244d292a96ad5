"""Management routes of objects: lists, uploads, downloads, previews, copies, versions, hostile input."""

import hashlib
import json
import random
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
import requests

from harness.damage import find_bytes, flip_bit, volumes
from harness.management import Management, expect, expect_refusal, segment
from harness.server import Cairn
from harness.wait import until
from harness.wire import Connection, encode_head

MIB = 1 << 20
HOSTILE_KEYS = [
    "a/../../etc/passwd", "%2e%2e/%2f", "a//b///", "/", "a b+c", "q?x=1&y#z", 'quote".txt', "line\r\nset-cookie: x=1",
    "\u202etxt.exe", "nul\x00byte", "grüße/日本語.txt", "e\u0301", "\u00e9", "k" * 1024, "'; drop", "\\..\\x",
]


def versioned(admin: Management, bucket: str) -> str:
    """Enables versioning of the bucket and returns its name."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    return bucket


def place(bucket: str, kind: str, key: str) -> str:
    """Returns the path of one of an object's routes."""
    return f"/buckets/{bucket}/{kind}/{segment(key)}"


def upload(admin: Management, bucket: str, key: str, body: bytes | Iterator[bytes] = b"", **headers: str) -> requests.Response:
    """Uploads an object, with the chunked transfer coding if the body is an iterator. Header names have underscores instead of hyphens."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return admin.request("PUT", place(bucket, "object", key), data=body, headers={"content-type": "text/plain"} | sent)


def events_of(admin: Management, response: requests.Response) -> list[dict]:
    """Returns the audit events of a request."""
    return expect(admin.get("/audit/events", params={"request_id": response.headers["x-request-id"]}), 200)["events"]


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 3 * MIB + 17])
def test_uploaded_object_is_the_same_on_both_planes(store: Cairn, admin: Management, bucket: str, size: int):
    """Body, ETag, content type and metadata. The record returned by the upload equals that of a later GET."""
    body = random.Random(size).randbytes(size)
    response = upload(admin, bucket, "folder/an object", body, content_type="image/png", x_amz_meta_owner="me", cache_control="no-cache")
    record = expect(response, 201)
    tag = hashlib.md5(body).hexdigest()
    assert response.headers["etag"] == f'"{tag}"'
    assert (record["key"], record["size"], record["etag"]) == ("folder/an object", size, tag)
    assert (record["content_type"], record["metadata"]) == ("image/png", {"owner": "me"})
    assert record["headers"] == {"cache-control": "no-cache"}
    assert (record["checksums"], record["legal_hold"], record["encrypted"]) == ({}, False, False)
    assert "version_id" not in record and "retention" not in record and "parts" not in record
    assert expect(admin.get(place(bucket, "object", "folder/an object")), 200) == record
    content = admin.get(place(bucket, "object-content", "folder/an object"))
    assert content.status_code == 200 and content.content == body
    other = store.s3.get(bucket, "folder/an object")
    assert other.body == body and other.get("x-amz-meta-owner") == "me" and other.get("etag") == f'"{tag}"'
    (event,) = events_of(admin, response)
    assert (event["operation"], event["resource"], event["result"]) == ("upload_object", f"{bucket}/folder/an object", "allowed")


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_hostile_keys_are_only_keys(store: Cairn, admin: Management, bucket: str, key: str):
    """A key is decoded once. It never becomes a path of the host or a header line."""
    record = expect(upload(admin, bucket, key, key.encode()), 201)
    assert record["key"] == key
    assert [found["key"] for found in expect(admin.get(f"/buckets/{bucket}/objects"), 200)["objects"]] == [key]
    content = admin.get(place(bucket, "object-content", key))
    assert content.content == key.encode() and "set-cookie" not in content.headers
    disposition = content.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="') and disposition.isascii() and disposition.isprintable()
    # For every key, the plain form has exactly two quotes, and bidirectional controls are removed, encoded or not.
    assert disposition.split("; filename*=")[0].count('"') == 2 and "%E2%80%AE" not in disposition
    assert store.s3.get(bucket, key).body == key.encode()
    assert admin.delete(place(bucket, "object", key)).status_code == 204
    assert expect(admin.get(f"/buckets/{bucket}"), 200)["usage"] == {"bytes": 0, "objects": 0}


@pytest.mark.parametrize(("target", "key"), [("..", ".."), (".", "."), ("../../../../etc/passwd", "../../../../etc/passwd"), ("%2e%2E/%2fx", "..//x")])
def test_dot_segments_are_part_of_the_key(store: Cairn, admin: Management, bucket: str, target: str, key: str):
    """They are not resolved. The test uses a plain socket, because HTTP clients resolve them."""
    host, port = store.management.removeprefix("http://").split(":")
    head = [("Host", "h"), ("Authorization", admin.headers["Authorization"]), ("Content-Length", "1")]
    with Connection(host, int(port)) as connection:
        connection.send(encode_head("PUT", f"/api/v1/buckets/{bucket}/object/{target}", head) + b"x")
        answer = connection.read_response("PUT")
    assert (answer.status, json.loads(answer.body)["key"]) == (201, key)
    assert [found["key"] for found in expect(admin.get(f"/buckets/{bucket}/objects"), 200)["objects"]] == [key]


@pytest.mark.parametrize("target", ["%zz", "%f", "%", "%ff", "%c3%28", "%ed%a0%80", "k" * 1025])
def test_invalid_keys_are_refused(store: Cairn, admin: Management, bucket: str, target: str):
    """Broken escapes, invalid UTF-8 and too long keys: 400 on every route. A plain socket sends the target unchanged."""
    host, port = store.management.removeprefix("http://").split(":")
    head = [("Host", "h"), ("Authorization", admin.headers["Authorization"]), ("Content-Length", "0")]
    for method, kind in [
        ("GET", "object"), ("PUT", "object"), ("DELETE", "object"), ("GET", "object-content"), ("GET", "object-preview"),
        ("DELETE", "object-versions"), ("POST", "object-copy"),
    ]:
        with Connection(host, int(port)) as connection:
            connection.send(encode_head(method, f"/api/v1/buckets/{bucket}/{kind}/{target}", head))
            answer = connection.read_response(method)
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "INVALID_REQUEST"), (method, kind)
    assert expect(admin.get(f"/buckets/{bucket}/objects"), 200)["objects"] == []


def test_missing_bucket_object_and_version_are_distinguished(admin: Management, bucket: str):
    """Each has its own 404 code."""
    expect(upload(admin, bucket, "k", b"v"), 201)
    ghost = "0000000000000001"
    for kind in ("object", "object-content", "object-preview"):
        expect_refusal(admin.get(place("no-such-bucket", kind, "k")), 404, "BUCKET_NOT_FOUND")
        expect_refusal(admin.get(place(bucket, kind, "other")), 404, "OBJECT_NOT_FOUND")
        for version in (ghost, "x", "../..", "9" * 400):
            expect_refusal(admin.get(place(bucket, kind, "k"), params={"version_id": version}), 404, "VERSION_NOT_FOUND")
        expect_refusal(admin.get(place(bucket, kind, "k"), params={"version_id": ""}), 400, "INVALID_REQUEST")
        expect_refusal(admin.get(place(bucket, kind, "k"), params={"versionId": "null"}), 400, "INVALID_REQUEST")
        assert admin.get(place(bucket, kind, "k"), params={"version_id": "null"}).status_code == 200
    expect_refusal(admin.delete(place(bucket, "object", "other")), 404, "OBJECT_NOT_FOUND")
    expect_refusal(upload(admin, "no-such-bucket", "k"), 404, "BUCKET_NOT_FOUND")
    for path in (f"/buckets/{bucket}/object/", f"/buckets/{bucket}/object", f"/buckets//object/k"):
        expect_refusal(admin.get(path), 404, "NOT_FOUND")


def test_object_pages_are_complete_and_sorted(admin: Management, bucket: str):
    """Every key is listed once and in order with any page size. A delimiter groups keys into common prefixes."""
    keys = sorted([f"a/{number}" for number in range(7)] + ["a", "b", "c/d/e", "ü", "z\n"], key=lambda key: key.encode())
    for key in keys:
        expect(upload(admin, bucket, key, key.encode()), 201)
    for limit in (1, 2, 5, 1000):
        found, token = [], None
        while True:
            parameters = {"limit": limit} | ({"continuation_token": token} if token else {})
            page = expect(admin.get(f"/buckets/{bucket}/objects", params=parameters), 200)
            assert set(page) == {"objects", "common_prefixes", "next_continuation_token"} and len(page["objects"]) <= limit
            found += page["objects"]
            token = page["next_continuation_token"]
            if token is None:
                break
        assert [one["key"] for one in found] == keys
    assert set(found[0]) == {"key", "size", "etag", "last_modified", "content_type", "legal_hold"}
    assert (found[0]["size"], found[0]["content_type"]) == (1, "text/plain")
    page = expect(admin.get(f"/buckets/{bucket}/objects", params={"delimiter": "/"}), 200)
    assert page["common_prefixes"] == ["a/", "c/"] and [one["key"] for one in page["objects"]] == ["a", "b", "z\n", "ü"]
    page = expect(admin.get(f"/buckets/{bucket}/objects", params={"delimiter": "/", "limit": 2}), 200)
    rest = {"delimiter": "/", "continuation_token": page["next_continuation_token"]}
    assert page["common_prefixes"] == ["a/"] and expect(admin.get(f"/buckets/{bucket}/objects", params=rest), 200)["common_prefixes"] == ["c/"]
    page = expect(admin.get(f"/buckets/{bucket}/objects", params={"prefix": "a/"}), 200)
    assert len(page["objects"]) == 7


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=1001", "limit=-1", "limit=1e2", "limit=", "limit=99999999999999999999", "continuation_token=", "continuation_token=x",
        "continuation_token=AAAAAAAA", "continuation_token=../..", "prefix=%ff", "max_keys=1", "limit=1&limit=1",
    ],
)
@pytest.mark.parametrize("route", ["objects", "object-versions"])
def test_invalid_list_parameters_are_refused(admin: Management, bucket: str, route: str, query: str):
    """400 for the lists of objects and of versions. The list of versions has no continuation tokens."""
    expect_refusal(admin.get(f"/buckets/{bucket}/{route}?{query}"), 400, "INVALID_REQUEST")


def raw_upload(store: Cairn, bucket: str, framing: list[tuple[str, str]], body: bytes = b"") -> tuple[int, str]:
    """Sends an upload as these bytes. Returns status and error code."""
    host, port = store.management.removeprefix("http://").split(":")
    with Connection(host, int(port)) as connection:
        head = [("Host", "h"), ("Authorization", store.admin.headers["Authorization"]), *framing]
        connection.send(encode_head("PUT", "/api/v1" + place(bucket, "object", "k"), head) + body)
        answer = connection.read_response("PUT")
    return answer.status, json.loads(answer.body)["error"]["code"]


def test_upload_without_content_length_is_refused(store: Cairn, admin: Management, bucket: str):
    """The size limit of JSON bodies does not apply to uploads."""
    assert raw_upload(store, bucket, []) == (411, "INVALID_REQUEST")
    expect(upload(admin, bucket, "k", b"x" * (MIB + 1)), 201)


@pytest.mark.parametrize("size", [0, 1, 16 * 1024, 16 * 1024 + 1, 3 * MIB + 17])
def test_upload_of_unknown_size_is_stored(store: Cairn, admin: Management, bucket: str, size: int):
    """With the chunked transfer coding, as clients send what they read from a pipe."""
    body = random.Random(size).randbytes(size)
    pieces = [body[at:at + 70_000] for at in range(0, size, 70_000)]
    digest = b64encode(hashlib.md5(body).digest()).decode()
    record = expect(upload(admin, bucket, "k", iter(pieces), content_md5=digest), 201)
    assert (record["size"], record["etag"].strip('"')) == (size, hashlib.md5(body).hexdigest())
    assert store.s3.get(bucket, "k").body == body


def test_upload_of_unknown_size_that_fails_stores_nothing(store: Cairn, admin: Management, bucket: str):
    """A malformed body, one that ends early, a wrong digest, and more than the quota."""
    chunked = [("Transfer-Encoding", "chunked"), ("Connection", "close")]
    for body in (b"3\r\nabc\r\nxyz\r\n", b"3\r\nabcd\r\n0\r\n\r\n"):
        assert raw_upload(store, bucket, chunked, body) == (400, "INVALID_REQUEST"), body
    wrong = b64encode(b"0" * 16).decode()
    expect_refusal(upload(admin, bucket, "k", iter([b"abc"]), content_md5=wrong), 400, "INVALID_REQUEST")
    expect(admin.put(f"/buckets/{bucket}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 100_000}, "objects": {"mode": "unlimited"}}}), 200)
    expect_refusal(upload(admin, bucket, "k", iter([b"x" * 60_000, b"x" * 60_000])), 409, "QUOTA_EXCEEDED")
    expect_refusal(admin.get(place(bucket, "object", "k")), 404, "OBJECT_NOT_FOUND")
    expect(upload(admin, bucket, "k", iter([b"x" * 60_000, b"x" * 40_000])), 201)


def test_json_bodies_of_unknown_size_are_accepted(admin: Management, bucket: str):
    """With the chunked transfer coding. Their limit is the same."""
    path = f"/buckets/{bucket}/versioning"
    expect(admin.request("PUT", path, data=iter([b'{"versioning":', b'"Enabled"}'])), 200)
    expect_refusal(admin.request("PUT", path, data=iter([b" " * MIB, b"{}"])), 413, "PAYLOAD_TOO_LARGE")


def test_an_empty_object_is_no_body(admin: Management, bucket: str):
    """Some clients send one with every request. Anything else is refused where a route takes no body."""
    expect(upload(admin, bucket, "k", b"x"), 201)
    path = place(bucket, "object", "k")
    for body in ({"a": 1}, [], "x"):
        expect_refusal(admin.request("DELETE", path, json=body), 400, "INVALID_REQUEST")
    assert admin.request("DELETE", path, json={}).status_code == 204


def test_conditions_that_would_be_ignored_are_refused(admin: Management, bucket: str):
    """Deleting or overwriting regardless of a condition could cost data."""
    expect(upload(admin, versioned(admin, bucket), "k", b"v"), 201)
    version = expect(admin.get(place(bucket, "object", "k")), 200)["version_id"]
    copy = {"destination_bucket": bucket, "destination_key": "k"}
    for condition in ({"if-match": '"0"'}, {"if-none-match": "*"}, {"if-unmodified-since": "Mon, 02 Jan 2006 15:04:05 GMT"}):
        for response in (
            admin.request("DELETE", place(bucket, "object", "k"), headers=condition),
            admin.post(place(bucket, "object-copy", "k"), copy, headers=condition),
            admin.post(f"/restore/{bucket}/k", {"version_id": version}, headers=condition),
        ):
            assert next(iter(condition)) in expect_refusal(response, 400, "INVALID_REQUEST")
    assert expect(admin.get(place(bucket, "object", "k")), 200)["version_id"] == version


def test_uploads_are_refused_before_the_body(store: Cairn, admin: Management, bucket: str):
    """A client that waits for 100 Continue gets the error instead."""
    host, port = store.management.removeprefix("http://").split(":")
    for path, status, code in [
        (place("no-such-bucket", "object", "k"), 404, "BUCKET_NOT_FOUND"),
        (place(bucket, "object", "k") + "?version_id=null", 400, "INVALID_REQUEST"),
    ]:
        with Connection(host, int(port)) as connection:
            head = [("Host", "h"), ("Authorization", admin.headers["Authorization"]), ("Content-Length", "9"), ("Expect", "100-continue")]
            connection.send(encode_head("PUT", "/api/v1" + path, head))
            answer = connection.read_response("PUT")
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (status, code)
    too_large = [("Host", "h"), ("Authorization", admin.headers["Authorization"]), ("Content-Length", str((5 << 30) + 1))]
    with Connection(host, int(port)) as connection:
        connection.send(encode_head("PUT", "/api/v1" + place(bucket, "object", "k"), too_large))
        answer = connection.read_response("PUT")
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_aborted_upload_leaves_nothing(own_store: Cairn):
    """No object and no reserved space remain, and the server keeps serving."""
    admin = own_store.admin
    expect(admin.post("/buckets", {"name": "broken-off"}), 201)
    host, port = own_store.management.removeprefix("http://").split(":")
    for sent in (0, 100, 9 * MIB):
        with Connection(host, int(port)) as connection:
            head = [("Host", "h"), ("Authorization", admin.headers["Authorization"]), ("Content-Length", str(10 * MIB))]
            connection.send(encode_head("PUT", "/api/v1/buckets/broken-off/object/k", head) + b"x" * sent)
    # The server notices the closed connections while it answers other requests.
    until(lambda: expect(admin.get("/storage/status"), 200)["temporary_upload_bytes"] == 0, "space stays reserved")
    found = expect(admin.get("/storage/inspect"), 200)
    assert (found["complete"], found["objects"], found["orphaned_bytes"], found["findings"]) == (True, 0, 0, [])
    assert expect(admin.get("/storage/status"), 200)["temporary_upload_bytes"] == 0
    assert admin.delete("/buckets/broken-off").status_code == 204


def test_headers_that_would_be_ignored_are_refused(admin: Management, bucket: str):
    """For example, ignoring a requested object lock could lose data."""
    for headers in (
        {"x-amz-object-lock-legal-hold": "ON"}, {"x-amz-tagging": "a=b"}, {"x-amz-acl": "public-read"}, {"content-range": "bytes 0-0/1"},
        {"if-match": '"x"'}, {"if-none-match": '"x"'}, {"content-md5": "x"}, {"content-md5": b64encode(b"0" * 16).decode()},
        {"x-amz-meta-a": "v" * 2048},
    ):
        expect_refusal(upload(admin, bucket, "k", b"v", **headers), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(place(bucket, "object", "k")), 404, "OBJECT_NOT_FOUND")
    digest = b64encode(hashlib.md5(b"v").digest()).decode()
    expect(upload(admin, bucket, "k", b"v", content_md5=digest, if_none_match="*"), 201)
    expect_refusal(upload(admin, bucket, "k", b"w", if_none_match="*"), 412, "PRECONDITION_FAILED")


def test_downloads_support_ranges_and_conditions(admin: Management, bucket: str):
    """As RFC 9110 defines them, for GET and HEAD."""
    body = random.Random(5).randbytes(200_000)
    expect(upload(admin, bucket, "k", body), 201)
    path = place(bucket, "object-content", "k")
    whole = admin.get(path)
    for text, expected in [("bytes=0-0", body[:1]), ("bytes=65530-65540", body[65530:65541]), ("bytes=-7", body[-7:]), ("bytes=199999-", body[-1:])]:
        part = admin.get(path, headers={"range": text})
        assert part.status_code == 206 and part.content == expected
        assert part.headers["content-range"].endswith("/200000") and part.headers["content-security-policy"] == "sandbox"
        head = admin.request("HEAD", path, headers={"range": text})
        assert head.status_code == 206 and head.headers["content-length"] == str(len(expected)) and head.content == b""
    refused = admin.get(path, headers={"range": "bytes=200000-"})
    expect_refusal(refused, 416, "RANGE_NOT_SATISFIABLE")
    assert refused.headers["content-range"] == "bytes */200000"
    tag = whole.headers["etag"]
    unchanged = admin.get(path, headers={"if-none-match": tag})
    assert unchanged.status_code == 304 and unchanged.content == b"" and unchanged.headers["etag"] == tag
    expect_refusal(admin.get(path, headers={"if-match": '"other"'}), 412, "PRECONDITION_FAILED")
    assert admin.get(path, headers={"range": "bytes=0-0", "if-range": '"other"'}).status_code == 200
    head = admin.request("HEAD", path)
    assert head.headers["content-length"] == "200000" and head.headers["accept-ranges"] == "bytes"
    assert whole.headers["cache-control"] == "no-store" and whole.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("content_type", ["text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript", "text/html; charset=utf-7"])
def test_active_content_cannot_run_in_the_console_origin(admin: Management, bucket: str, content_type: str):
    """Downloads are attachments with a sandbox policy. Previews are plain text."""
    body = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"
    expect(upload(admin, bucket, "x.html", body, content_type=content_type), 201)
    for kind in ("object-content", "object-preview"):
        answer = admin.get(place(bucket, kind, "x.html"))
        assert answer.status_code == 200 and answer.content == body
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["content-security-policy"] == "sandbox"
        assert answer.headers["cache-control"] == "no-store"
        if kind == "object-preview":
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        else:
            assert answer.headers["content-disposition"] == "attachment; filename=\"x.html\"; filename*=UTF-8''x.html"
            assert answer.headers["content-type"] == content_type


def test_previews_are_limited_by_size_and_type(admin: Management, bucket: str):
    """The first 1 MiB of text, and whole images up to 16 MiB. Everything else is 415."""
    text = random.Random(1).randbytes(MIB + 5)
    expect(upload(admin, bucket, "text", text), 201)
    preview = place(bucket, "object-preview", "text")
    assert admin.get(preview).content == text[:MIB]
    assert admin.request("HEAD", preview).headers["content-length"] == str(MIB)
    expect(upload(admin, bucket, "image", b"p" * (16 * MIB), content_type="Image/PNG; x=y"), 201)
    image = admin.get(place(bucket, "object-preview", "image"))
    assert len(image.content) == 16 * MIB and image.headers["content-type"] == "image/png"
    expect(upload(admin, bucket, "image", b"p" * (16 * MIB + 1), content_type="image/png"), 201)
    expect_refusal(admin.get(place(bucket, "object-preview", "image")), 415, "UNSUPPORTED_MEDIA_TYPE")
    for headers in ({"content_type": "application/zip"}, {"content_type": "video/mp4"}, {"content_type": "text/plain", "content_encoding": "gzip"}):
        expect(upload(admin, bucket, "other", b"x", **headers), 201)
        expect_refusal(admin.get(place(bucket, "object-preview", "other")), 415, "UNSUPPORTED_MEDIA_TYPE")


def test_deletes_follow_versioning(admin: Management, bucket: str):
    """With versioning, a DELETE adds a marker, but not for a missing object. Versions are deleted one by one."""
    path = place(bucket, "object", "k")
    expect(upload(admin, bucket, "k", b"plain"), 201)
    assert admin.delete(path).status_code == 204
    expect_refusal(admin.delete(path), 404, "OBJECT_NOT_FOUND")
    versioned(admin, bucket)
    first = expect(upload(admin, bucket, "k", b"one"), 201)["version_id"]
    second = expect(upload(admin, bucket, "k", b"second"), 201)["version_id"]
    assert admin.delete(path).status_code == 204
    expect_refusal(admin.delete(path), 404, "OBJECT_NOT_FOUND")
    expect_refusal(admin.get(path), 404, "OBJECT_NOT_FOUND")
    versions = expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)["versions"]
    assert set(versions[0]) == {"key", "version_id", "is_latest", "is_delete_marker", "size", "etag", "last_modified", "legal_hold"}
    assert [(one["is_latest"], one["is_delete_marker"], one["size"]) for one in versions] == [(True, True, 0), (False, False, 6), (False, False, 3)]
    assert [one["version_id"] for one in versions[1:]] == [second, first] and versions[0]["etag"] is None
    marker = versions[0]["version_id"]
    expect_refusal(admin.get(path, params={"version_id": marker}), 404, "VERSION_NOT_FOUND")
    assert expect(admin.get(path, params={"version_id": first}), 200)["size"] == 3
    removal = place(bucket, "object-versions", "k")
    expect_refusal(admin.delete(removal), 400, "INVALID_REQUEST")
    assert admin.delete(removal, params={"version_id": marker}).status_code == 204
    expect_refusal(admin.delete(removal, params={"version_id": marker}), 404, "VERSION_NOT_FOUND")
    assert expect(admin.get(path), 200)["version_id"] == second
    removed = admin.delete(removal, params={"version_id": second})
    assert removed.status_code == 204 and events_of(admin, removed)[0]["detail"] == f"version {second}"
    assert expect(admin.get(path), 200)["version_id"] == first


def test_version_pages_are_complete_and_sorted(admin: Management, bucket: str):
    """Every version is listed once with any page size. Invalid markers are refused."""
    versioned(admin, bucket)
    for turn in range(3):
        for key in ("a", "b/c", "ü"):
            expect(upload(admin, bucket, key, b"x" * turn), 201)
    path = f"/buckets/{bucket}/object-versions"
    every = expect(admin.get(path), 200)["versions"]
    assert [one["key"] for one in every] == ["a"] * 3 + ["b/c"] * 3 + ["ü"] * 3
    for limit in (1, 2, 4):
        found, markers = [], {}
        while True:
            page = expect(admin.get(path, params={"limit": limit} | markers), 200)
            found += page["versions"]
            if page["next_key_marker"] is None:
                assert page["next_version_id_marker"] is None
                break
            markers = {"key_marker": page["next_key_marker"], "version_id_marker": page["next_version_id_marker"]}
        assert found == every
    assert expect(admin.get(path, params={"key_marker": "a"}), 200)["versions"] == every[3:]
    assert expect(admin.get(path, params={"prefix": "b"}), 200)["versions"] == every[3:6]
    for wrong in ({"version_id_marker": "null"}, {"key_marker": "a", "version_id_marker": "a/b"}, {"key_marker": "a", "version_id_marker": ""}):
        expect_refusal(admin.get(path, params=wrong), 400, "INVALID_REQUEST")


def test_object_locks_apply_to_management_routes(admin: Management, boto, bucket: str):
    """Default retention, retention and legal holds. Governance mode cannot be bypassed on these routes."""
    locked = f"{bucket}-locked"
    expect(admin.post("/buckets", {"name": locked, "object_lock": True}), 201)
    rule = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}}}
    boto.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=rule)
    record = expect(upload(admin, locked, "k", b"kept"), 201)
    assert record["retention"]["mode"] == "GOVERNANCE" and record["legal_hold"] is False
    until = datetime.fromisoformat(record["retention"]["retain_until"])
    assert timedelta(hours=23) < until - datetime.now(timezone.utc) < timedelta(hours=25)
    version = {"version_id": record["version_id"]}
    removal = place(locked, "object-versions", "k")
    refused = admin.delete(removal, params=version)
    expect_refusal(refused, 403, "OBJECT_LOCKED")
    (event,) = events_of(admin, refused)
    assert (event["operation"], event["result"]) == ("delete_object_version", "failed")
    assert admin.delete(removal, params=version, headers={"x-amz-bypass-governance-retention": "true"}).status_code == 403
    assert admin.delete(place(locked, "object", "k")).status_code == 204, "a delete marker removes no data, so it is allowed"
    assert admin.get(place(locked, "object-content", "k"), params=version).content == b"kept"
    boto.put_object_retention(Bucket=locked, Key="k", VersionId=record["version_id"], Retention={}, BypassGovernanceRetention=True)
    boto.put_object_legal_hold(Bucket=locked, Key="k", VersionId=record["version_id"], LegalHold={"Status": "ON"})
    assert expect(admin.get(place(locked, "object", "k"), params=version), 200)["legal_hold"] is True
    expect_refusal(admin.delete(removal, params=version), 403, "OBJECT_LOCKED")
    boto.put_object_legal_hold(Bucket=locked, Key="k", VersionId=record["version_id"], LegalHold={"Status": "OFF"})
    assert admin.delete(removal, params=version).status_code == 204


def test_copy_route(admin: Management, boto, bucket: str):
    """Copies the current or another version, to the same or another bucket, with metadata and checksum."""
    versioned(admin, bucket)
    other = f"{bucket}-to"
    expect(admin.post("/buckets", {"name": other}), 201)
    first = expect(upload(admin, bucket, "k", b"first", x_amz_meta_a="1", content_type="text/css"), 201)
    expect(upload(admin, bucket, "k", b"second"), 201)
    path = place(bucket, "object-copy", "k")
    to = {"destination_bucket": other, "destination_key": "folder/c"}
    copied = expect(admin.post(path, to), 201)
    assert (copied["key"], copied["size"]) == ("folder/c", 6) and "version_id" not in copied
    response = admin.post(path, to | {"version_id": first["version_id"]})
    copied = expect(response, 201)
    assert (copied["size"], copied["metadata"], copied["content_type"], copied["etag"]) == (5, {"a": "1"}, "text/css", first["etag"])
    assert admin.get(place(other, "object-content", "folder/c")).content == b"first"
    (event,) = events_of(admin, response)
    assert event["resource"] == f"{bucket}/k" and f"to {other}/folder/c" in event["detail"]
    boto.put_object(Bucket=bucket, Key="sum", Body=b"sum", ChecksumAlgorithm="SHA256")
    expect(admin.post(place(bucket, "object-copy", "sum"), to), 201)
    digest = b64encode(hashlib.sha256(b"sum").digest()).decode()
    assert expect(admin.get(place(other, "object", "folder/c")), 200)["checksums"] == {"sha256": digest}

    again = expect(admin.post(path, {"destination_bucket": bucket, "destination_key": "k"}), 201)
    assert admin.get(place(bucket, "object-content", "k"), params={"version_id": again["version_id"]}).content == b"second"
    expect_refusal(admin.post(path, to | {"destination_bucket": "no-such-bucket"}), 404, "BUCKET_NOT_FOUND")
    expect_refusal(admin.post(path, to | {"destination_bucket": "No"}), 400, "INVALID_BUCKET_NAME")
    expect_refusal(admin.post(path, to | {"version_id": "x"}), 404, "VERSION_NOT_FOUND")
    expect_refusal(admin.post(place(bucket, "object-copy", "gone"), to), 404, "OBJECT_NOT_FOUND")
    for wrong in (
        {}, [], {"destination_bucket": other}, to | {"destination_key": ""}, to | {"destination_key": "k" * 1025}, to | {"destination_key": 7},
        to | {"metadata": {}}, to | {"version_id": 7}, to | {"version_id": ""}, to | {"if_absent": "yes"},
    ):
        expect_refusal(admin.post(path, wrong), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("source", ["one part", "several parts"])
def test_copy_keeps_a_taken_destination(admin: Management, boto, bucket: str, source: str):
    """A copy replaced whatever its destination had, and the caller could not prevent it.

    With `if_absent`, one of several copies to a name succeeds, and the others are told that it is taken.
    """
    if source == "one part":
        boto.put_object(Bucket=bucket, Key="k", Body=b"new")
    else:
        in_parts(boto, bucket, "k", {1: b"a" * (5 * MIB), 2: b"b"})
    boto.put_object(Bucket=bucket, Key="taken", Body=b"old")
    path = place(bucket, "object-copy", "k")
    to = {"destination_bucket": bucket, "destination_key": "taken", "if_absent": True}
    expect_refusal(admin.post(path, to), 409, "OBJECT_ALREADY_EXISTS")
    assert boto.get_object(Bucket=bucket, Key="taken")["Body"].read() == b"old"
    expect_refusal(admin.post(place(bucket, "object-copy", "gone"), to), 404, "OBJECT_NOT_FOUND")
    # Not even an object may be copied onto itself.
    expect_refusal(admin.post(path, to | {"destination_key": "k"}), 409, "OBJECT_ALREADY_EXISTS")

    with ThreadPoolExecutor(8) as copies:
        answers = list(copies.map(lambda _: admin.post(path, to | {"destination_key": "free"}), range(8)))
    assert sorted(answer.status_code for answer in answers) == [201] + 7 * [409]
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} == {"OBJECT_ALREADY_EXISTS"}
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket), "a refused copy leaves nothing behind"
    expect(admin.post(path, to | {"if_absent": False}), 201)
    assert boto.get_object(Bucket=bucket, Key="taken")["Body"].read() != b"old"


def in_parts(boto, bucket: str, key: str, bodies: dict[int, bytes], **options: str) -> str:
    """Uploads a multipart object. Returns its SHA-256 checksum, if one was requested."""
    began = boto.create_multipart_upload(Bucket=bucket, Key=key, Metadata={"a": "1"}, **options)
    place_of = {"Bucket": bucket, "Key": key, "UploadId": began["UploadId"]}
    parts = []
    for number, body in bodies.items():
        sent = boto.upload_part(**place_of, PartNumber=number, Body=body, **{name: value for name, value in options.items() if name == "ChecksumAlgorithm"})
        parts.append({"PartNumber": number} | {name: value for name, value in sent.items() if name in ("ETag", "ChecksumSHA256")})
    return boto.complete_multipart_upload(**place_of, MultipartUpload={"Parts": parts}).get("ChecksumSHA256")


def test_multipart_object_is_shown_and_copied_with_its_parts(admin: Management, boto, bucket: str):
    """The copy has the same parts, ETag, metadata and composite checksum."""
    bodies = {2: b"a" * (5 * MIB), 9: b"b" * 7}
    checksum = in_parts(boto, bucket, "parts", bodies, ChecksumAlgorithm="SHA256")
    record = expect(admin.get(place(bucket, "object", "parts")), 200)
    assert record["parts"] == [{"part_number": 2, "size": 5 * MIB}, {"part_number": 9, "size": 7}] and record["etag"].endswith("-2")
    assert record["checksums"] == {"sha256": checksum} and checksum.endswith("-2")
    copied = expect(admin.post(place(bucket, "object-copy", "parts"), {"destination_bucket": bucket, "destination_key": "copied"}), 201)
    assert copied | {"key": "parts", "last_modified": record["last_modified"]} == record
    assert admin.get(place(bucket, "object-content", "copied")).content == b"".join(bodies.values())
    assert boto.get_object(Bucket=bucket, Key="copied", PartNumber=9)["Body"].read() == bodies[9]
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket)


def test_refused_multipart_copy_leaves_no_upload(admin: Management, boto, bucket: str):
    """The destination bucket stays empty."""
    in_parts(boto, bucket, "parts", {1: b"a" * (5 * MIB), 2: b"b"})
    other = f"{bucket}-to"
    expect(admin.post("/buckets", {"name": other}), 201)
    quota = {"bytes": {"mode": "limit", "bytes": 5 * MIB}, "objects": {"mode": "unlimited"}}
    expect(admin.put(f"/buckets/{other}/quota", {"quota": quota}), 200)
    copy = {"destination_bucket": other, "destination_key": "k"}
    expect_refusal(admin.post(place(bucket, "object-copy", "parts"), copy), 409, "QUOTA_EXCEEDED")
    assert admin.delete(f"/buckets/{other}").status_code == 204, "the bucket is not empty"


@pytest.mark.parametrize("block", [0, 40])
def test_damage_is_never_served(own_store: Cairn, block: int):
    """In the first block: 500. Later: the connection is cut. The log and the audit trail name the block."""
    admin, body = own_store.admin, random.Random(block).randbytes(48 * 65536)
    expect(admin.post("/buckets", {"name": "damaged"}), 201)
    expect(upload(admin, "damaged", "k", body), 201)
    assert own_store.stop() == 0
    (found,) = find_bytes(volumes(own_store.data), body[block * 65536 : block * 65536 + 64])
    flip_bit(*found, 3)
    own_store.start()
    path, headers = place("damaged", "object-content", "k"), {"x-request-id": f"damaged-{block}"}
    if block == 0:
        expect_refusal(admin.get(path, headers=headers), 500, "INTERNAL_ERROR")
    else:
        with pytest.raises(requests.exceptions.RequestException):
            admin.get(path, headers=headers)
    # The event is created before the connection is cut, but it is written asynchronously.
    for _ in range(200):
        events = expect(admin.get("/audit/events", params={"request_id": f"damaged-{block}"}), 200)["events"]
        if events:
            break
    assert [(event["operation"], event["result"], event["resource"]) for event in events] == [("download_object", "failed", "damaged/k")]
    assert f"block {block} of damaged/k" in events[0]["detail"]
    own_store.wait_output(f"damaged-{block}")
    intact = body[65536 : 2 * 65536]
    assert admin.get(path, headers={"range": "bytes=65536-131071"}).content == intact
