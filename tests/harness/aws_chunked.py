"""`aws-chunked` bodies: chunks, their signatures and trailers, implemented independently of the server.

Written from "Transferring Payload in Multiple Chunks" and "Including Trailing Headers" in the Amazon S3 API reference.
"""

import base64
import hashlib
import hmac
import zlib
from dataclasses import dataclass, field

from . import sigv4
from .s3 import S3, Headers, object_target
from .sigv4 import EMPTY_SHA256, Scope
from .wire import Connection, Response, encode_head

SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def crc32(content: bytes) -> str:
    """Returns the value of `x-amz-checksum-crc32`."""
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def http_chunks(body: bytes, size: int) -> bytes:
    """Returns a body with the chunked transfer coding of HTTP."""
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


@dataclass
class ChunkedUpload:
    """A PUT with an `aws-chunked` body. Tests change its parts before it is sent."""

    s3: S3
    bucket: str
    key: str
    content: bytes
    payload: str = SIGNED
    chunk_bytes: int = 65_536
    query: str = ""
    headers: Headers = field(default_factory=list)
    # The name and value of the trailer; by default the CRC-32, where the payload has one.
    trailer: tuple[str, str] | None = None
    trailer_end: bytes = b"\r\n"
    decoded_length: str | None = None
    # Bytes of each chunk of the transfer coding; 0 for a Content-Length.
    http_chunk_bytes: int = 0
    content_length: int | None = None

    def __post_init__(self) -> None:
        if self.payload.endswith("-TRAILER") and self.trailer is None:
            self.trailer = ("x-amz-checksum-crc32", crc32(self.content))
        self.scope = Scope(sigv4.amz_date())

    def head(self) -> tuple[Headers, str]:
        """Returns the signed head without its framing, and its signature."""
        headers = [("Content-Encoding", "aws-chunked"), *self.headers]
        decoded = str(len(self.content)) if self.decoded_length is None else self.decoded_length
        if decoded:
            headers.append(("x-amz-decoded-content-length", decoded))
        if self.trailer and not any(name == "x-amz-trailer" for name, _ in headers):
            headers.append(("x-amz-trailer", self.trailer[0]))
        signed = self.s3.signed_head("PUT", self.target(), headers, payload=self.payload, scope=self.scope)
        signature = dict(signed)["Authorization"].rpartition("Signature=")[2]
        return [pair for pair in signed if pair[0] != "Content-Length"], signature

    def target(self) -> str:
        """Returns the request target."""
        return object_target(self.bucket, self.key, self.query)

    def sign(self, algorithm: str, previous: str, *digests: str) -> str:
        """Signs a chunk or a trailer after `previous`."""
        text = "\n".join((algorithm, self.scope.amz_date, self.scope.text(), previous, *digests))
        key = sigv4.signing_key(self.s3.credential.secret_key, self.scope)
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def chunks(self) -> list[bytes]:
        """Returns the content of each chunk, the last one of which is empty."""
        size = self.chunk_bytes
        return [self.content[at : at + size] for at in range(0, len(self.content), size)] + [b""]

    def body(self, seed: str) -> bytes:
        """Returns the body after a request with this signature."""
        parts, previous = [], seed
        for chunk in self.chunks():
            line = b"%x" % len(chunk)
            if self.payload != UNSIGNED_TRAILER:
                digest = hashlib.sha256(chunk).hexdigest()
                previous = self.sign("AWS4-HMAC-SHA256-PAYLOAD", previous, EMPTY_SHA256, digest)
                line += b";chunk-signature=" + previous.encode()
            parts.append(line + b"\r\n" + (chunk + b"\r\n" if chunk else b""))
        if self.trailer:
            text = f"{self.trailer[0]}:{self.trailer[1]}"
            parts.append(text.encode() + self.trailer_end)
            if self.payload == SIGNED_TRAILER:
                digest = hashlib.sha256(f"{text}\n".encode()).hexdigest()
                signature = self.sign("AWS4-HMAC-SHA256-TRAILER", previous, digest)
                parts.append(b"x-amz-trailer-signature:" + signature.encode() + b"\r\n")
        return b"".join(parts) + b"\r\n"

    def framed(self, head: Headers, body: bytes) -> bytes:
        """Returns the whole request."""
        if self.http_chunk_bytes:
            body = http_chunks(body, self.http_chunk_bytes)
            return encode_head("PUT", self.target(), [*head, ("Transfer-Encoding", "chunked")]) + body
        length = len(body) if self.content_length is None else self.content_length
        return encode_head("PUT", self.target(), [*head, ("Content-Length", str(length))]) + body

    def request(self) -> bytes:
        """Returns the whole request, signed now."""
        head, seed = self.head()
        return self.framed(head, self.body(seed))

    def altered(self, old: bytes, new: bytes) -> bytes:
        """Returns the request with bytes of its body replaced after they were signed."""
        head, seed = self.head()
        body = self.body(seed)
        assert body.count(old) >= 1, old
        return self.framed(head, body.replace(old, new, 1))

    def send(self, connection: Connection | None = None) -> Response:
        """Sends the request and reads the response."""
        return send(self.s3, self.request(), connection)


def send(s3: S3, request: bytes, connection: Connection | None = None, *, half_close: bool = False) -> Response:
    """Sends these bytes, on a new connection unless one is given, and reads the response."""
    if connection is not None:
        connection.send(request)
        return connection.read_response("PUT")
    with s3.connect() as connection:
        connection.send(request)
        if half_close:
            connection.sock.shutdown(1)
        return connection.read_response("PUT")
