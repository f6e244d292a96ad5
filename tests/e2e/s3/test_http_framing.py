"""HTTP/1.1 framing: request smuggling, lengths, pipelining, 100-continue, HEAD, limits, error bodies."""

import base64
import hashlib
import re
import time
from email.utils import parsedate_to_datetime

import pytest

from harness import sigv4
from harness.expect import assert_error, assert_status, choice
from harness.s3 import S3, error_code, md5_etag, object_target, xml
from harness.wire import encode_head

BODY = b"0123456789"
# Linux delays an acknowledgement by 40 ms.
DELAYED_ACK_SECONDS = 0.035


def smuggle(s3: S3, raw: bytes) -> tuple[int, bytes]:
    """Sends raw bytes. Returns the first status, and everything after that head until the server closed."""
    with s3.connect() as connection:
        connection.send(raw)
        response = connection.read_head()
        rest = connection.wait_closed()
        return response.status, rest


def answered(data: bytes) -> bool:
    """Returns whether the data after the first head contains another response."""
    return re.search(rb"HTTP/1\.\d \d{3} ", data) is not None


def signed_put(s3: S3, bucket: str, key: str, extra: list[tuple[str, str]], drop_length: bool = False) -> bytes:
    """Returns the encoded head of a correctly signed PUT with extra header lines."""
    head = s3.signed_head("PUT", object_target(bucket, key), body=BODY)
    if drop_length:
        head = [pair for pair in head if pair[0] != "Content-Length"]
    return encode_head("PUT", object_target(bucket, key), head + extra)


# Ambiguous framing: 400 and close. Nothing is stored, and the bytes that follow are never parsed as a request.


@pytest.mark.parametrize(
    ("name", "extra", "drop_length"),
    [
        ("two different lengths", [("Content-Length", "4")], False),
        ("two equal lengths", [("Content-Length", "10")], False),
        ("a list of lengths", [("Content-Length", "10, 10")], True),
        ("a length with a sign", [("Content-Length", "+10")], True),
        ("a negative length", [("Content-Length", "-10")], True),
        ("a hexadecimal length", [("Content-Length", "0xA")], True),
        ("a length with blanks inside", [("Content-Length", "1 0")], True),
        ("an endless length", [("Content-Length", "9" * 40)], True),
        ("an empty length", [("Content-Length", "")], True),
        ("two hosts", [("Host", "elsewhere.example")], False),
        ("a control byte in a value", [("x-other", "a\x01b")], False),
        ("a NUL in a value", [("x-other", "a\x00b")], False),
        ("a bare CR in a value", [("x-other", "a\rb")], False),
        ("a blank before the colon", [("x-other ", "a")], False),
        ("an empty name", [("", "a")], False),
        ("a name with a blank", [("x other", "a")], False),
        ("an obsolete fold", [("x-other", "a\r\n b")], False),
        ("a line without a colon", [("x-other", "a\r\nnonsense")], False),
    ],
)
def test_ambiguous_heads_are_refused_and_the_connection_closed(
    s3: S3, bucket: str, name: str, extra: list[tuple[str, str]], drop_length: bool
):
    """If a proxy and the server frame such a request differently, requests can be smuggled past the proxy."""
    s3.put(bucket, "victim", b"victim")
    smuggled = encode_head("DELETE", object_target(bucket, "victim"), s3.signed_head("DELETE", object_target(bucket, "victim")))
    status, rest = smuggle(s3, signed_put(s3, bucket, "k", extra, drop_length) + BODY + smuggled)
    assert status == 400, name
    assert not answered(rest), f"{name}: the bytes after the head were answered as a request"
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")
    assert s3.get(bucket, "victim").body == b"victim"


@pytest.mark.parametrize(
    "coding", ["chunked", "Chunked", "identity", "gzip, chunked", "chunked, chunked", "xchunked", "\tchunked"]
)
def test_content_length_with_transfer_encoding_is_refused(s3: S3, bucket: str, coding: str):
    """The classic smuggling attack: one side counts bytes, the other side counts chunks."""
    status, rest = smuggle(s3, signed_put(s3, bucket, "k", [("Transfer-Encoding", coding)]) + b"0\r\n\r\n" + BODY)
    assert status == 400, coding
    assert not answered(rest)
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


@pytest.mark.parametrize(
    "line_ends",
    [
        pytest.param(lambda raw: raw.replace(b"\r\n", b"\n"), id="all bare LF"),
        pytest.param(lambda raw: raw.replace(b"\r\nHost", b"\nHost", 1), id="LF after the request line"),
        pytest.param(lambda raw: raw.replace(b"\r\n\r\n", b"\r\n\n", 1), id="LF at the end"),
        pytest.param(lambda raw: raw.replace(b"\r\n\r\n", b"\n\r\n", 1), id="LF before the end"),
        pytest.param(lambda raw: raw.replace(b" HTTP/1.1\r\n", b" HTTP/1.1\r\n x: y\r\n", 1), id="fold first"),
    ],
)
def test_bare_line_feeds_are_refused(s3: S3, bucket: str, line_ends):
    """Only CRLF ends a line."""
    head = s3.signed_head("GET", f"/{bucket}?list-type=2")
    status, rest = smuggle(s3, line_ends(encode_head("GET", f"/{bucket}?list-type=2", head)))
    assert status == 400
    assert not answered(rest)


@pytest.mark.parametrize(
    ("line", "statuses"),
    [
        (b"GET / HTTP/1.1 extra", choice(400)), (b"GET  / HTTP/1.1", choice(400)), (b"GET / HTTP/2.0", choice(505, 400)),
        (b"GET / HTTP/1.9", choice(505, 400)), (b"GET /", choice(400)), (b"GET / http/1.1", choice(400, 505)), (b"G\x01T / HTTP/1.1", choice(400)),
        (b"GET /a b HTTP/1.1", choice(400)), (b"GET http://x/ HTTP/1.1", choice(400)), (b"GET * HTTP/1.1", choice(400)),
        (b"CONNECT a:80 HTTP/1.1", choice(400, 405, 501)), (b"GET /a\x7f HTTP/1.1", choice(400)), (b"GET nopath HTTP/1.1", choice(400)),
        ("GET /é HTTP/1.1".encode(), choice(400)), (b"GET /#f HTTP/1.1", choice(400)), (b"\x16\x03\x01\x02\x00\x01", choice(400)),
    ],
)
def test_malformed_request_lines_are_refused(s3: S3, line: bytes, statuses: tuple[int, ...]):
    """They get an error response and a close, even a TLS ClientHello."""
    status, rest = smuggle(s3, line + b"\r\nHost: " + s3.authority.encode() + b"\r\n\r\n")
    assert status in statuses
    assert not answered(rest)


def test_missing_host_is_refused(s3: S3):
    """HTTP/1.1 requires Host, and the signature covers it."""
    status, _ = smuggle(s3, b"GET / HTTP/1.1\r\n\r\n")
    assert status == 400


def test_head_over_the_limit_is_refused(s3: S3):
    """The limit is 32 KiB. A larger head is 431 and the connection is closed."""
    filler = [(f"x-filler-{number}", "f" * 1000) for number in range(40)]
    status, _ = smuggle(s3, encode_head("GET", "/", [("Host", s3.authority), *filler]))
    assert status == 431


def test_head_under_the_limit_is_served(s3: S3, bucket: str):
    """Nearly 30 KiB of signed headers are allowed."""
    filler = [(f"x-filler-{number}", "f" * 1000) for number in range(28)]
    assert_status(s3.request("GET", f"/{bucket}?list-type=2", filler), 200)


@pytest.mark.parametrize("name", ["Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])
def test_duplicate_singleton_headers_are_refused(s3: S3, bucket: str, name: str):
    """It is undefined which of the two values applies."""
    s3.put(bucket, "k", BODY)
    response = s3.request("GET", object_target(bucket, "k"), [(name, "bytes=0-1"), (name, "bytes=2-3")])
    assert response.status == 400, (response.status, response.body)


# Lengths


def test_put_without_content_length_is_refused(s3: S3, bucket: str):
    """411 with the AWS error code."""
    with s3.connect() as connection:
        connection.send(signed_put(s3, bucket, "k", [], drop_length=True))
        assert_error(connection.read_response(), 411, "MissingContentLength")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_chunked_uploads_are_not_implemented(s3: S3, bucket: str):
    """501, not 411 for the missing length. The chunks are never stored."""
    with s3.connect() as connection:
        raw = signed_put(s3, bucket, "k", [("Transfer-Encoding", "chunked")], drop_length=True)
        connection.send(raw + b"a\r\n" + BODY + b"\r\n0\r\n\r\n")
        assert_error(connection.read_response(), 501, "NotImplemented")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


STREAMING = [
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
]


@pytest.mark.parametrize("payload", STREAMING)
@pytest.mark.parametrize("with_length", [True, False])
def test_streaming_payloads_are_not_implemented(s3: S3, bucket: str, payload: str, with_length: bool):
    """Detected before the length check, because a 411 would mislead users about the cause."""
    target = object_target(bucket, "k")
    head = s3.signed_head("PUT", target, [("x-amz-decoded-content-length", "10")], payload=payload)
    head = [pair for pair in head if pair[0] != "Content-Length"]
    framing = [("Content-Length", "15")] if with_length else [("Transfer-Encoding", "chunked")]
    with s3.connect() as connection:
        connection.send(encode_head("PUT", target, head + framing) + b"a\r\n" + BODY + b"\r\n")
        root = assert_error(connection.read_response(), 501, "NotImplemented")
    assert re.search("when.required|UNSIGNED|checksum", root.findtext("Message"), re.I), root.findtext("Message")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


@pytest.mark.parametrize(
    "headers",
    [
        [("Content-Encoding", "aws-chunked")], [("Content-Encoding", "gzip, aws-chunked")],
        [("x-amz-trailer", "x-amz-checksum-crc32")],
        [("x-amz-trailer", "x-amz-checksum-crc32"), ("x-amz-sdk-checksum-algorithm", "CRC32")],
    ],
)
@pytest.mark.parametrize("with_length", [True, False])
def test_trailers_and_aws_chunked_are_not_implemented(
    s3: S3, bucket: str, headers: list[tuple[str, str]], with_length: bool
):
    """Storing such a body as it is would store the chunk headers in the object."""
    target = object_target(bucket, "k")
    head = s3.signed_head("PUT", target, headers, BODY)
    if not with_length:
        head = [pair for pair in head if pair[0] != "Content-Length"]
    with s3.connect() as connection:
        connection.send(encode_head("PUT", target, head) + (BODY if with_length else b""))
        assert_error(connection.read_response(), 501, "NotImplemented")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


@pytest.mark.parametrize("size", [10_000, 200_000, 5_000_000])
def test_truncated_body_stores_nothing(s3: S3, bucket: str, size: int):
    """The client half-closes the connection within the body: IncompleteBody. The previous object does not change."""
    s3.put(bucket, "k", b"before")
    target = object_target(bucket, "k")
    head = s3.signed_head("PUT", target, payload=sigv4.UNSIGNED_PAYLOAD, content_length=size)
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, head) + b"x" * (size // 2))
        connection.sock.shutdown(1)
        assert_error(connection.read_response(), 400, "IncompleteBody")
    assert s3.get(bucket, "k").body == b"before"


def test_connection_reset_within_the_body_stores_nothing(s3: S3, bucket: str):
    """The client resets the connection instead of closing it."""
    target = object_target(bucket, "k")
    head = s3.signed_head("PUT", target, [("Expect", "100-continue")], payload=sigv4.UNSIGNED_PAYLOAD, content_length=100_000)
    connection = s3.connect()
    connection.send_must(encode_head("PUT", target, head))
    assert connection.read_head().status == 100
    connection.send_must(b"x" * 50_000)
    connection.sock.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER 0: close sends a reset
    connection.close()
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_body_over_5_gib_is_refused_by_its_length(s3: S3, bucket: str):
    """EntityTooLarge from the declared length, before the body is sent."""
    target = object_target(bucket, "k")
    headers = [("Expect", "100-continue")]
    head = s3.signed_head(
        "PUT", target, headers, payload=sigv4.UNSIGNED_PAYLOAD, content_length=5 * 2**30 + 1
    )
    with s3.connect() as connection:
        connection.send(encode_head("PUT", target, head))
        response = connection.read_head()
        assert response.status == 400
        response.body = connection.read_body(response)
        assert_error(response, 400, "EntityTooLarge")


# 100-continue


def test_accepted_upload_gets_100_continue(s3: S3, bucket: str):
    """The interim response comes first, then the final one."""
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, s3.signed_head("PUT", target, [("Expect", "100-continue")], BODY)))
        assert connection.read_head().status == 100
        connection.send_must(BODY)
        response = connection.read_head()
        assert response.status == 200
        connection.read_body(response)


def test_empty_upload_with_expect_gets_continue_or_close(s3: S3, bucket: str):
    """The response is 100 Continue, or it closes the connection.

    botocore sends `Expect` with empty bodies too. After a final response without 100 on a kept connection, older versions
    (the AWS CLI 1.46 includes one) keep a stale status line, misread the next response and hang for 60 s.
    """
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, s3.signed_head("PUT", target, [("Expect", "100-continue")])))
        response = connection.read_head()
        assert response.status == 100 or response.get("connection") == "close", response
        if response.status == 100:
            response = connection.read_head()
        assert response.status == 200
    assert s3.get(bucket, "k").body == b""


@pytest.mark.parametrize("why", ["signature", "bucket", "not implemented", "digest"])
def test_refused_uploads_get_no_continue(s3: S3, bucket: str, why: str):
    """A client that waits for 100 Continue must not send the body."""
    target = object_target("no-such-bucket-here" if why == "bucket" else bucket, "k")
    headers = [("Expect", "100-continue")]
    headers += {"not implemented": [("x-amz-acl", "private")], "digest": [("Content-MD5", "nonsense")]}.get(why, [])
    head = s3.signed_head("PUT", target, headers, payload=sigv4.UNSIGNED_PAYLOAD, content_length=50_000_000)
    if why == "signature":
        head = [(n, v[:-4] + "beef" if n == "Authorization" else v) for n, v in head]
    with s3.connect() as connection:
        connection.send(encode_head("PUT", target, head))
        response = connection.read_head()
        response.body = connection.read_body(response)
        expected = {
            "signature": (403, "SignatureDoesNotMatch"), "bucket": (404, "NoSuchBucket"),
            "not implemented": (501, "NotImplemented"), "digest": (400, "InvalidDigest"),
        }[why]
        assert_error(response, *expected)
        assert response.get("connection") == "close", "the server cannot know whether the body will follow"


def test_unknown_expectations_are_refused(s3: S3, bucket: str):
    """417. Other servers may ignore them, as RFC 9110 allows."""
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        connection.send(encode_head("PUT", target, s3.signed_head("PUT", target, [("Expect", "miracles")], BODY)) + BODY)
        assert connection.read_head().status in choice(417, 200)


# Keep-alive and pipelining


def test_pipelined_requests_are_answered_in_order(s3: S3, bucket: str):
    """Slow requests (large objects) and fast ones alternate. All are sent before any response is read."""
    bodies = {f"k{number}": bytes([number]) * (1 if number % 2 else 2_000_000) for number in range(8)}
    for key, body in bodies.items():
        s3.put(bucket, key, body)
    with s3.connect() as connection:
        for key in bodies:
            target = object_target(bucket, key)
            connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
        for key, body in bodies.items():
            assert connection.read_response().body == body, key
        connection.assert_quiet()


def test_pipelined_reads_see_earlier_pipelined_writes(s3: S3, bucket: str):
    """Each GET returns the body of the PUT sent before it on the same connection."""
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        for number in range(20):
            body = str(number).encode() * 100
            connection.send_must(encode_head("PUT", target, s3.signed_head("PUT", target, body=body)) + body)
            connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
        for number in range(20):
            assert connection.read_response().status == 200
            assert connection.read_response().body == str(number).encode() * 100


def test_request_split_at_any_byte_is_parsed_alike(s3: S3, bucket: str):
    """Head and body arrive byte by byte, or in two pieces."""
    target = object_target(bucket, "k")
    raw = encode_head("PUT", target, s3.signed_head("PUT", target, body=BODY)) + BODY
    with s3.connect() as connection:
        for place in range(len(raw)):
            connection.send_must(raw[place : place + 1])
        assert connection.read_response().status == 200
        for cut in range(1, len(raw), 37):
            connection.send_must(raw[:cut])
            connection.send_must(raw[cut:])
            assert connection.read_response().status == 200, cut
    assert s3.get(bucket, "k").body == BODY


def test_connection_stays_usable_after_errors(s3: S3, bucket: str):
    """An error whose request body was read does not close the connection."""
    with s3.connect() as connection:
        for number in range(5):
            missing = s3.request("GET", object_target(bucket, f"none{number}"), connection=connection)
            assert_error(missing, 404, "NoSuchKey")
            bad = s3.request("PUT", object_target(bucket, "k"), [("Content-MD5", md5_of(b"else"))], BODY, connection=connection)
            assert_error(bad, 400, "BadDigest")
            good = s3.request("PUT", object_target(bucket, "k"), body=BODY, connection=connection)
            assert_status(good, 200)


def md5_of(body: bytes) -> str:
    """Returns the Content-MD5 value of a body."""
    return base64.b64encode(hashlib.md5(body).digest()).decode()


def test_connection_close_ends_the_connection(s3: S3, bucket: str):
    """The whole response is sent first."""
    s3.put(bucket, "k", b"x" * 1_000_000)
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        connection.send_must(encode_head("GET", target, s3.signed_head("GET", target, [("Connection", "close")])))
        assert len(connection.read_response().body) == 1_000_000
        assert connection.wait_closed(5) == b""


def test_http_1_0_gets_a_response_and_a_close(s3: S3, bucket: str):
    """For old clients and health checks. The unsigned request is 403; other servers may refuse the version."""
    head = encode_head("GET", "/", [("Host", s3.authority)]).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    status, _ = smuggle(s3, head)
    assert status in choice(403, 400, 505)


# HEAD, 204, 304


def test_head_responses_have_no_body(s3: S3, bucket: str):
    """For success and errors, whatever Content-Length says. The next response on the connection is parsed correctly."""
    s3.put(bucket, "k", BODY)
    with s3.connect() as connection:
        for key, status in (("k", 200), ("none", 404), ("k", 200)):
            response = s3.request("HEAD", object_target(bucket, key), connection=connection)
            assert response.status == status
            connection.assert_quiet(0.05)
        assert response.get("content-length") == "10"
        assert s3.request("HEAD", "/no-such-bucket-here", connection=connection).status == 404
        wrong = s3.request("HEAD", object_target(bucket, "k"), connection=connection, credential=sigv4.Credential("AKNO", "x"))
        assert wrong.status == 403
        assert s3.request("GET", object_target(bucket, "k"), connection=connection).body == BODY


def test_204_and_304_have_no_body(s3: S3, bucket: str):
    """The connection stays usable."""
    s3.put(bucket, "k", BODY)
    with s3.connect() as connection:
        fresh = s3.request("GET", object_target(bucket, "k"), [("If-None-Match", md5_etag(BODY))], connection=connection)
        assert fresh.status == 304
        connection.assert_quiet(0.05)
        gone = s3.request("DELETE", object_target(bucket, "k"), connection=connection)
        assert gone.status == 204
        assert gone.get("content-length") in (None, "0")
        connection.assert_quiet(0.05)
        assert_error(s3.request("GET", object_target(bucket, "k"), connection=connection), 404, "NoSuchKey")


# Headers of every response, and error bodies


def test_every_response_has_request_ids_server_and_date(s3: S3, bucket: str):
    """For success, for errors, and for heads that cannot be parsed. Request IDs are unique."""
    s3.put(bucket, "k", BODY)
    answers = [
        s3.get(bucket, "k"), s3.head(bucket, "k"), s3.get(bucket, "none"), s3.head(bucket, "none"),
        s3.delete(bucket, "none"), s3.request("GET", "/"), s3.send_raw("GET", "/", [("Host", s3.authority)]),
        s3.send_raw("GET", "/a", [("Host", s3.authority), ("Host", "b")]),
    ]
    ids = set()
    for response in answers:
        ids.add(response.get("x-amz-request-id"))
        assert response.get("x-amz-id-2"), response.headers
        assert response.get("server"), response.headers
        assert parsedate_to_datetime(response.get("date")).tzinfo is not None
    assert None not in ids and len(ids) == len(answers), ids


def test_errors_name_the_missing_key_or_bucket(s3: S3, bucket: str):
    """NoSuchKey has Key, NoSuchBucket has BucketName, as on AWS."""
    root = assert_error(s3.get(bucket, "no/such key"), 404, "NoSuchKey")
    assert root.findtext("Key") == "no/such key"
    assert root.findtext("Resource").startswith(f"/{bucket}/no/such")
    root = assert_error(s3.get("no-such-bucket-here", "k"), 404, "NoSuchBucket")
    assert root.findtext("BucketName") == "no-such-bucket-here"


def test_error_bodies_escape_client_input(s3: S3, bucket: str):
    """Markup in a key must not break the XML or add elements to it."""
    root = assert_error(s3.get(bucket, "<Code>&x</Code>"), 404, "NoSuchKey")
    assert root.findtext("Key") == "<Code>&x</Code>"


# Names


@pytest.mark.parametrize("path", ["/%", "/%2", "/%zz", "/a%", "/%ff", "/%c3", "/%c3%28", "/%ed%a0%80", "/%c0%af"])
def test_invalid_percent_encoding_is_refused(s3: S3, bucket: str, path: str):
    """Covers broken escapes and invalid UTF-8."""
    head = [("Host", s3.authority)]
    response = s3.send_raw("GET", f"/{bucket}{path}", head)
    assert_error(response, 400, "InvalidURI")


def test_keys_over_1024_bytes_are_refused(s3: S3, bucket: str):
    """The limit counts UTF-8 bytes, not characters."""
    for key in ("k" * 1024, "é" * 512):
        s3.put(bucket, key, BODY)
        assert s3.get(bucket, key).body == BODY
    for key in ("k" * 1025, "é" * 513):
        for method in ("PUT", "GET", "DELETE"):
            assert_error(s3.request(method, object_target(bucket, key)), 400, "KeyTooLongError")
        assert s3.head(bucket, key).status == 400


def test_unknown_parameters_do_not_change_the_operation(s3: S3, bucket: str):
    """`x-id` and unknown parameters are covered by the signature and otherwise ignored."""
    s3.put(bucket, "k", BODY)
    assert s3.get(bucket, "k", query="x-id=GetObject&metadata=true&foo").body == BODY


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "k"), ("POST", "k"), ("PATCH", ""), ("PUT", None), ("DELETE", None)]
)
def test_unsupported_methods_are_refused(s3: S3, bucket: str, method: str, path: str | None):
    """405 for objects, buckets and the service, with the methods that are served there."""
    target = "/" if path is None else f"/{bucket}/{path}".rstrip("/")
    response = s3.request(method, target, [("Content-Length", "0")])
    assert_error(response, 405, "MethodNotAllowed")
    served = {"GET", "OPTIONS"} if path is None else {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}
    assert set(response.get("allow").split(", ")) == served


@pytest.mark.parametrize("method", ["TRACE", "FOO", "get", "CONNECT"])
def test_unknown_methods_are_refused(s3: S3, bucket: str, method: str):
    """405. They are never handled as another method."""
    response = s3.request(method, f"/{bucket}?list-type=2")
    assert response.status in choice(405, 400, 501), (response.status, response.body)


def test_small_gets_do_not_wait_for_delayed_acks(s3: S3, bucket: str):
    """Without TCP_NODELAY, head and body in two segments take 40 ms, also the fastest of 50 requests."""
    s3.put(bucket, "k", b"x" * 4096)
    target = object_target(bucket, "k")
    with s3.connect() as connection:
        heads = [encode_head("GET", target, s3.signed_head("GET", target)) for _ in range(50)]
        waits = []
        for head in heads:
            begin = time.monotonic()
            connection.send_must(head)
            assert connection.read_response().status == 200
            waits.append(time.monotonic() - begin)
        assert min(waits) < DELAYED_ACK_SECONDS, sorted(waits)


def test_slow_connections_do_not_block_other_requests(s3: S3, bucket: str):
    """300 connections with incomplete heads stay open while other requests are served."""
    s3.put(bucket, "k", BODY)
    slow = [s3.connect() for _ in range(300)]
    try:
        for connection in slow:
            connection.send_must(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(50):
            assert s3.get(bucket, "k").body == BODY
    finally:
        for connection in slow:
            connection.close()


def test_stalled_readers_do_not_block_other_requests(s3: S3, bucket: str):
    """Backpressure: a client that does not read its large response delays only itself."""
    body = b"y" * 8_000_000
    s3.put(bucket, "k", body)
    target = object_target(bucket, "k")
    stalled = [s3.connect(receive_buffer_bytes=4096) for _ in range(16)]
    try:
        for connection in stalled:
            connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
        for _ in range(5):
            assert s3.get(bucket, "k").body == body
        assert stalled[0].read_response().body == body, "the stalled client did not get every byte"
    finally:
        for connection in stalled:
            connection.close()


def test_framing_errors_have_an_xml_body(s3: S3):
    """Clients parse the body of a 400 response."""
    with s3.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        response = connection.read_response()
    assert response.status == 400
    assert xml(response).tag == "Error" and error_code(response)
