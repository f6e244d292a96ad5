"""`aws-chunked` bodies in the extended mode, over raw sockets: every kind of body, and what must be refused.

Strict mode refuses them all; `test_http_framing.py` has that.
"""

import base64
import hashlib
import random
import socket
import time
import zlib

import pytest

from harness.aws_chunked import SIGNED, SIGNED_TRAILER, UNSIGNED_TRAILER, ChunkedUpload, crc32, http_chunks, send
from harness.expect import assert_error
from harness.management import expect
from harness.s3 import S3, md5_etag, object_target, xml
from harness.server import Cairn
from harness.wire import Response

KINDS = [SIGNED, SIGNED_TRAILER, UNSIGNED_TRAILER]
CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture
def put(extended: S3, extended_bucket: str):
    """Makes an upload of the key `k` to the test's bucket."""
    def made(content: bytes = CONTENT, payload: str = SIGNED_TRAILER, **options: object) -> ChunkedUpload:
        return ChunkedUpload(extended, extended_bucket, "k", content, payload, **options)

    return made


def refused(response: Response, status: int, code: str, upload: ChunkedUpload) -> str:
    """Asserts an error, that nothing was stored, and returns the message."""
    message = assert_error(response, status, code).findtext("Message")
    assert_error(upload.s3.get(upload.bucket, "k"), 404, "NoSuchKey")
    return message


@pytest.mark.parametrize("http_chunk_bytes", [0, 16_384, 7_919])
@pytest.mark.parametrize("payload", KINDS)
def test_content_is_stored_without_its_framing(extended: S3, put, payload: str, http_chunk_bytes: int):
    """Sizes around the limits of chunks, blocks and reads, over one connection."""
    bucket = put().bucket
    with extended.connect() as connection:
        for size in (0, 1, 4095, 65_535, 65_536, 65_537, 300_000, 3_000_001):
            content = random.Random(size).randbytes(size)
            for chunk_bytes in {8192, 65_536, 1 << 20}:
                upload = put(content, payload, chunk_bytes=chunk_bytes, http_chunk_bytes=http_chunk_bytes)
                response = upload.send(connection)
                assert response.status == 200, (size, response.body)
                assert response.get("etag") == md5_etag(content)
            got = extended.request("GET", object_target(bucket, "k"), [("x-amz-checksum-mode", "ENABLED")], connection=connection)
            assert got.body == content and got.get("content-encoding") is None
            assert got.get("x-amz-checksum-crc32") == (crc32(content) if payload != SIGNED else None)


def test_every_checksum_is_taken_from_the_trailer(extended: S3, put):
    """It is checked, stored and returned like one in a header."""
    sums = {
        "crc32": zlib.crc32(CONTENT).to_bytes(4, "big"), "sha1": hashlib.sha1(CONTENT).digest(),
        "sha256": hashlib.sha256(CONTENT).digest(),
    }
    for name, digest in sums.items():
        trailer = (f"x-amz-checksum-{name}", base64.b64encode(digest).decode())
        for payload in (SIGNED_TRAILER, UNSIGNED_TRAILER):
            upload = put(payload=payload, trailer=trailer, headers=[("x-amz-sdk-checksum-algorithm", name.upper())])
            assert upload.send().get(trailer[0]) == trailer[1]
            got = extended.request("HEAD", object_target(upload.bucket, "k"), [("x-amz-checksum-mode", "ENABLED")])
            assert (got.get(trailer[0]), got.get("x-amz-checksum-type")) == (trailer[1], "FULL_OBJECT")
            extended.delete(upload.bucket, "k")
            wrong = base64.b64encode(bytes(len(digest))).decode()
            response = put(payload=payload, trailer=(trailer[0], wrong)).send()
            refused(response, 400, "BadDigest", upload)


def test_parts_of_an_upload_have_trailers(extended: S3, put):
    """The checksum of a part is stored, and the part is its content."""
    bucket = put().bucket
    created = extended.request("POST", object_target(bucket, "k", "uploads"), [("x-amz-checksum-algorithm", "CRC32")])
    upload_id = xml(created).findtext("UploadId")
    content = CONTENT * 20
    upload = put(content, UNSIGNED_TRAILER, query=f"partNumber=1&uploadId={upload_id}", http_chunk_bytes=16_384)
    response = upload.send()
    assert (response.status, response.get("x-amz-checksum-crc32")) == (200, crc32(content)), response.body
    other = put(content, UNSIGNED_TRAILER, query=f"partNumber=2&uploadId={upload_id}", trailer=("x-amz-checksum-sha1", "A" * 27 + "="))
    assert_error(other.send(), 400, "InvalidRequest")
    part = f"<Part><PartNumber>1</PartNumber><ETag>{response.get('etag')}</ETag><ChecksumCRC32>{crc32(content)}</ChecksumCRC32></Part>"
    body = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    assert extended.request("POST", object_target(bucket, "k", f"uploadId={upload_id}"), body=body).status == 200
    assert extended.get(bucket, "k").body == content


def test_other_content_encodings_are_kept(extended: S3, put):
    """Only the framing is left out, as on AWS."""
    upload = put()
    for sent, kept in (("gzip,aws-chunked", "gzip"), ("aws-chunked, br", "br")):
        head, seed = upload.head()
        head = [(name, sent if name == "Content-Encoding" else value) for name, value in head]
        assert send(extended, upload.framed(head, upload.body(seed))).status == 200
        assert extended.get(upload.bucket, "k").get("content-encoding") == kept
    # Some SDKs send none at all.
    head, seed = upload.head()
    head = [pair for pair in head if pair[0] != "Content-Encoding"]
    assert send(extended, upload.framed(head, upload.body(seed))).status == 200
    assert extended.get(upload.bucket, "k").get("content-encoding") is None


def test_digests_in_headers_are_those_of_the_content(put):
    """Content-MD5, and a checksum in a header when there is no trailer."""
    md5 = base64.b64encode(hashlib.md5(CONTENT).digest()).decode()
    headers = [("Content-MD5", md5), ("x-amz-checksum-crc32", crc32(CONTENT))]
    assert put(payload=SIGNED, headers=headers).send().status == 200
    for wrong in ([("Content-MD5", base64.b64encode(bytes(16)).decode())], [("x-amz-checksum-crc32", "AAAAAA==")]):
        assert_error(put(payload=SIGNED, headers=wrong).send(), 400, "BadDigest")
    assert_error(put(headers=headers[1:]).send(), 400, "InvalidRequest")


def test_line_ends_of_real_clients(put):
    """minio-go ends the checksum with LF and an empty line; the SDK for .NET sends no last empty line, and upper case."""
    assert put(trailer_end=b"\n\r\n").send().status == 200
    upload = put()
    head, seed = upload.head()
    assert send(upload.s3, upload.framed(head, upload.body(seed).removesuffix(b"\r\n"))).status == 200
    upload = put(b"x" * 0xABC, UNSIGNED_TRAILER)
    assert send(upload.s3, upload.altered(b"abc\r\n", b"ABC\r\n")).status == 200


@pytest.mark.parametrize("http_chunk_bytes", [0, 16_384])
def test_wrong_signatures_are_refused(put, http_chunk_bytes: int):
    """Of a chunk's data, of its signature, of the trailer. Nothing is stored."""
    upload = put(http_chunk_bytes=http_chunk_bytes)
    request = upload.altered(CONTENT[100_000:100_010], b"0123456789")
    assert "chunk" in refused(send(upload.s3, request), 403, "SignatureDoesNotMatch", upload)
    head, seed = upload.head()
    other = ChunkedUpload(upload.s3, upload.bucket, "k", CONTENT, SIGNED_TRAILER, http_chunk_bytes=http_chunk_bytes)
    # Chunks of another request: the first signature covers the request's.
    body = other.body(hashlib.sha256(b"other").hexdigest())
    refused(send(upload.s3, upload.framed(head, body)), 403, "SignatureDoesNotMatch", upload)
    # Another valid checksum in the trailer, with the signature of the first.
    request = upload.altered(crc32(CONTENT).encode(), crc32(b"other").encode())
    refused(send(upload.s3, request), 403, "SignatureDoesNotMatch", upload)


def test_malformed_trailers_are_refused(put):
    """Missing, of another name, not base64, with more after it."""
    for payload in (SIGNED_TRAILER, UNSIGNED_TRAILER):
        upload = put(payload=payload)
        line = f"x-amz-checksum-crc32:{crc32(CONTENT)}\r\n".encode()
        for new, status, code in (
            (b"", 400, "MalformedTrailerError"),
            (line.replace(b"crc32", b"crc64"), 400, "MalformedTrailerError"),
            (line.replace(b":", b""), 400, "MalformedTrailerError"),
            (line + line, 400, "MalformedTrailerError"),
            (line + b"x-amz-meta-a: b\r\n", 400, "MalformedTrailerError"),
            (line + b"x" * 2000 + b"\r\n", 400, "MalformedTrailerError"),
            (b"x-amz-checksum-crc32:AAAA\r\n", 400, "InvalidRequest"),
        ):
            refused(send(upload.s3, upload.altered(line, new)), status, code, upload)
    upload = put()
    signature = upload.body(upload.head()[1]).split(b"x-amz-trailer-signature:")[1]
    request = upload.altered(b"x-amz-trailer-signature:" + signature, b"\r\n")
    refused(send(upload.s3, request), 400, "MalformedTrailerError", upload)
    # Declared and not sent, sent and not declared, declared where none can be, and not a checksum.
    undeclared = put(payload=UNSIGNED_TRAILER)
    undeclared.trailer = None
    undeclared.headers = [("x-amz-trailer", "x-amz-checksum-crc32")]
    refused(undeclared.send(), 400, "MalformedTrailerError", undeclared)
    head, seed = upload.head()
    undeclared.headers = []
    head, _ = undeclared.head()
    refused(send(upload.s3, undeclared.framed(head, put(payload=UNSIGNED_TRAILER).body(""))), 400, "MalformedTrailerError", upload)
    for payload, name in ((SIGNED, "x-amz-checksum-crc32"), (UNSIGNED_TRAILER, "x-amz-meta-a"), (UNSIGNED_TRAILER, "x-amz-checksum-md4")):
        refused(put(payload=payload, headers=[("x-amz-trailer", name)]).send(), 400, "InvalidRequest", upload)


@pytest.mark.parametrize("http_chunk_bytes", [0, 16_384])
def test_malformed_chunks_are_refused(put, http_chunk_bytes: int):
    """Sizes, line ends, extensions, and bytes after the end."""
    upload = put(CONTENT, UNSIGNED_TRAILER, http_chunk_bytes=http_chunk_bytes)
    for old, new in (
        (b"10000\r\n", b"g\r\n"), (b"10000\r\n", b"-10000\r\n"), (b"10000\r\n", b"10000\n"), (b"10000\r\n", b"10000;a=b\r\n"),
        (b"10000\r\n", b"1" * 17 + b"\r\n"), (b"10000\r\n", b"0" * 200 + b"\r\n"), (b"10000\r\n", b"ffff\r\n"), (b"\r\n0\r\n", b"0\r\n"),
    ):
        refused(send(upload.s3, upload.altered(old, new)), 400, "IncompleteBody", upload)
    for rest in (b"5\r\nhello\r\n0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"):
        head, seed = upload.head()
        request = upload.framed(head, upload.body(seed) + rest)
        refused(send(upload.s3, request), 400, "MalformedTrailerError", upload)
    signed = put(http_chunk_bytes=http_chunk_bytes)
    refused(send(signed.s3, signed.altered(b"chunk-signature", b"chunk-signatur")), 400, "IncompleteBody", signed)


def test_the_decoded_length_is_required_and_exact(put):
    """Without it the size of the object would be unknown before its end."""
    for decoded, status, code in (
        ("", 411, "MissingContentLength"), ("abc", 411, "MissingContentLength"), ("-1", 411, "MissingContentLength"),
        (str(len(CONTENT) + 1), 400, "IncompleteBody"), (str(len(CONTENT) - 1), 400, "IncompleteBody"), ("0", 400, "IncompleteBody"),
        (str((5 << 30) + 1), 400, "EntityTooLarge"),
    ):
        for payload, http_chunk_bytes in ((SIGNED_TRAILER, 0), (UNSIGNED_TRAILER, 8192)):
            upload = put(payload=payload, decoded_length=decoded, http_chunk_bytes=http_chunk_bytes)
            answer = upload.send()
            if code == "EntityTooLarge" and not http_chunk_bytes:
                # The body is too short for it, and that is seen first.
                refused(answer, 400, "IncompleteBody", upload)
            else:
                refused(answer, status, code, upload)
    upload = put()
    head, _ = upload.head()
    with upload.s3.connect() as connection:
        connection.send(b"\r\n".join([f"PUT {upload.target()} HTTP/1.1".encode(), *(f"{n}: {v}".encode() for n, v in head), b"", b""]))
        refused(connection.read_response("PUT"), 411, "MissingContentLength", upload)


@pytest.mark.parametrize("http_chunk_bytes", [0, 16_384])
@pytest.mark.parametrize("payload", KINDS)
def test_truncated_bodies_store_nothing(put, payload: str, http_chunk_bytes: int):
    """Cut in a line, in content, before the last chunk and in the trailer."""
    upload = put(payload=payload, http_chunk_bytes=http_chunk_bytes)
    request = upload.request()
    for cut in (10, len(request) // 2, len(CONTENT), len(request) - 1) if http_chunk_bytes else (10, len(request) // 2, len(request) - 1):
        head = request.index(b"\r\n\r\n") + 4
        part = request[: max(cut, head + 10)]
        refused(send(upload.s3, part, half_close=True), 400, "IncompleteBody", upload)


def test_a_million_tiny_chunks_are_refused_early(put):
    """They cost more than they bring. The server stops after the first thousand and keeps its memory."""
    for payload in (UNSIGNED_TRAILER, SIGNED):
        upload = put(b"x" * 20_000, payload, chunk_bytes=1, decoded_length="1000000", content_length=90_000_000)
        # The declared length never comes: the answer does not wait for it.
        message = refused(upload.send(), 400, "InvalidChunkSizeError", upload)
        assert "8 KiB" in message
    # A few small ones are accepted, as from clients that pass on what they get.
    assert put(b"x" * 900, SIGNED_TRAILER, chunk_bytes=1).send().status == 200


def test_a_slow_sender_is_served(put):
    """Pieces that end anywhere, with pauses."""
    for upload in (put(CONTENT[:5000], chunk_bytes=700), put(CONTENT[:5000], UNSIGNED_TRAILER, chunk_bytes=700, http_chunk_bytes=99)):
        request = upload.request()
        with upload.s3.connect() as connection:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(request), 61):
                connection.send(request[at : at + 61])
                if at % 10 == 0:
                    time.sleep(0.001)
            assert connection.read_response("PUT").status == 200
        assert upload.s3.get(upload.bucket, "k").body == CONTENT[:5000]


def test_the_connection_survives_what_it_can(put):
    """After a refusal the rest of a short body is skipped; a body with the transfer coding closes the connection."""
    upload = put(CONTENT[:20_000], chunk_bytes=8192)
    with upload.s3.connect() as connection:
        answer = send(upload.s3, upload.altered(CONTENT[:10], b"0123456789"), connection)
        refused(answer, 403, "SignatureDoesNotMatch", upload)
        assert upload.send(connection).status == 200
        upload.http_chunk_bytes = 4096
        assert upload.send(connection).status == 200
        answer = send(upload.s3, upload.altered(CONTENT[:10], b"0123456789"), connection)
        assert (answer.status, answer.get("connection")) == (403, "close")


def test_http_framing_around_chunks_is_strict(put):
    """Malformed transfer coding is refused, and nothing after it is taken for a request."""
    upload = put(CONTENT[:9000], UNSIGNED_TRAILER)
    head, seed = upload.head()
    upload.http_chunk_bytes = 4096
    whole = upload.framed(head, upload.body(seed))
    for old, new in ((b"1000\r\n", b"1000\n"), (b"1000\r\n", b"fff\r\n"), (b"1000\r\n", b"x1000\r\n"), (b"1000\r\n", b"1001\r\n")):
        answer = send(upload.s3, whole.replace(old, new, 1))
        refused(answer, 400, "BadRequest", upload)
        assert answer.get("connection") == "close"
    # Coding of HTTP without aws-chunked inside, which has no declared size.
    plain = upload.s3.signed_head("PUT", upload.target(), [("Transfer-Encoding", "chunked")], payload="UNSIGNED-PAYLOAD")
    request = b"\r\n".join([f"PUT {upload.target()} HTTP/1.1".encode(), *(f"{n}: {v}".encode() for n, v in plain), b"", b""])
    refused(send(upload.s3, request + http_chunks(b"x", 1)), 501, "NotImplemented", upload)


def test_quota_counts_the_content(extended_store: Cairn, put):
    """Not the body, which is longer."""
    upload = put(CONTENT[:100_000], chunk_bytes=8192)
    limits = {"bytes": {"mode": "limit", "bytes": 100_000}, "objects": {"mode": "unlimited"}}
    expect(extended_store.admin.put(f"/buckets/{upload.bucket}/quota", {"quota": limits}), 200)
    assert upload.send().status == 200
    assert_error(put(CONTENT[:100_001], chunk_bytes=8192).send(), 403, "QuotaExceeded")


def test_other_operations_do_not_take_chunked_bodies(extended: S3, put):
    """501 with what does; never stored or parsed with its framing."""
    upload = put(b"<x/>", UNSIGNED_TRAILER)
    bucket = upload.bucket
    for method, target in (("PUT", f"/{bucket}?cors"), ("GET", f"/{bucket}"), ("PUT", f"/{bucket}/k?retention")):
        head = extended.signed_head(
            method, target, [("x-amz-decoded-content-length", "4"), ("x-amz-trailer", "x-amz-checksum-crc32")], payload=UNSIGNED_TRAILER,
            content_length=40,
        )
        answer = extended.send_raw(method, target, head, upload.body("")[:40].ljust(40) if method == "PUT" else b"")
        message = assert_error(answer, 501, "NotImplemented").findtext("Message")
        assert "PutObject and UploadPart" in message
    for payload in ("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER"):
        refused(put(payload=payload).send(), 501, "NotImplemented", upload)
