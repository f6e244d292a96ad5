"""HTTP/1.1 over a plain socket, with full control over the bytes.

HTTP libraries correct requests and tolerate invalid responses, which would hide the errors that these tests look for.
The parser here is strict: CRLF line ends, exact framing, and no data after the response body.
"""

import select
import socket
import time
from dataclasses import dataclass

# A busy machine's disk may need many seconds for one flush. A server that is stuck never answers.
DEADLINE_SECONDS = 90.0
CHUNK_BYTES = 256 * 1024
HEAD_BYTES_MAX = 256 * 1024


class WireError(AssertionError):
    """The peer violated HTTP, closed the connection early, or did not answer in time."""


@dataclass
class Response:
    """One response, unchanged."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        """Returns every value of a header, in order."""
        return [value for sent, value in self.headers if sent.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        """Returns the value of a header that may occur at most once."""
        values = self.all(name)
        if len(values) > 1:
            raise WireError(f"{name} occurs {len(values)} times: {values}")
        return values[0] if values else None


def encode_head(method: str, target: str, headers: list[tuple[str, str]]) -> bytes:
    """Returns the bytes of a request head. Values are sent as UTF-8, exactly as given."""
    lines = [f"{method} {target} HTTP/1.1"] + [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Connection:
    """A TCP connection and context manager."""

    def __init__(self, host: str, port: int, *, receive_buffer_bytes: int | None = None, source: str | None = None):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if source is not None:
            self.sock.bind((source, 0))
        if receive_buffer_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.sock.settimeout(DEADLINE_SECONDS)
        self.sock.connect((host, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        # The last response head announced that the peer closes the connection.
        self.closing = False

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection immediately."""
        self.sock.close()

    def send(self, data: bytes) -> None:
        """Sends all data. A reset by the peer is reported by the next read."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send_must(self, data: bytes) -> None:
        """Sends all data, or fails."""
        self.sock.sendall(data)

    def _fill(self) -> bool:
        try:
            data = self.sock.recv(CHUNK_BYTES)
        except TimeoutError:
            raise WireError(f"no data within {self.sock.gettimeout()} s; received before: {self.buffer[:200]!r}") from None
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)

    def take(self, count: int) -> bytes:
        """Reads exactly `count` bytes of a body."""
        pieces, have = [self.buffer], len(self.buffer)
        self.buffer = b""
        while have < count:
            try:
                data = self.sock.recv(min(CHUNK_BYTES, count - have + 65536))
            except TimeoutError:
                raise WireError(f"the body stopped after {have} of {count} bytes") from None
            except ConnectionResetError:
                data = b""
            if not data:
                raise WireError(f"the connection ended after {have} of {count} body bytes")
            pieces.append(data)
            have += len(data)
        whole = b"".join(pieces)
        self.buffer = whole[count:]
        return whole[:count]

    def read_head(self) -> Response:
        """Reads the status line and headers of the next response, including interim responses."""
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > HEAD_BYTES_MAX:
                raise WireError("the response head is too long")
            if not self._fill():
                raise WireError(f"the connection ended before a response head: {self.buffer[:200]!r}")
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        response = parse_head(head)
        self.closing = (response.get("connection") or "").lower() == "close"
        return response

    def read_body(self, response: Response) -> bytes:
        """Reads the body with the framing that the head declares."""
        if response.get("transfer-encoding") == "chunked":
            return self._read_chunked()
        length = response.get("content-length")
        if length is None:
            raise WireError(f"{response.status} is not framed: {response.headers}")
        return self.take(int(length))

    def _read_chunked(self) -> bytes:
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                if not self._fill():
                    raise WireError("the connection ended inside a chunked body")
            size, _, self.buffer = self.buffer.partition(b"\r\n")
            chunk = self.take(int(size, 16) + 2)
            if int(size, 16) == 0:
                return body
            body += chunk[:-2]

    def read_response(self, method: str = "GET") -> Response:
        """Reads the next final response, with a body if the method and the status allow one."""
        response = self.read_head()
        while response.status == 100:
            response = self.read_head()
        if method != "HEAD" and response.status not in (204, 304):
            response.body = self.read_body(response)
        return response

    def assert_quiet(self, seconds: float = 0.2) -> None:
        """Fails if the peer sends more data, such as a body after HEAD or an extra response."""
        if self.buffer:
            raise WireError(f"bytes nobody asked for: {self.buffer[:200]!r}")
        readable, _, _ = select.select([self.sock], [], [], seconds)
        if readable and (data := self.sock.recv(CHUNK_BYTES)):
            raise WireError(f"bytes nobody asked for: {data[:200]!r}")

    def wait_closed(self, seconds: float = DEADLINE_SECONDS) -> bytes:
        """Waits until the peer closes and returns the remaining data. Fails if the peer does not close in time."""
        give_up = time.monotonic() + seconds
        rest, self.buffer = self.buffer, b""
        while (left := give_up - time.monotonic()) > 0:
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(CHUNK_BYTES)
            except TimeoutError:
                break
            except ConnectionResetError:
                return rest
            if not data:
                return rest
            rest += data
        raise WireError(f"the connection is still open after {seconds} s; it sent {rest[:200]!r}")


def parse_head(head: bytes) -> Response:
    """Parses a response head. Fails if it is not valid HTTP."""
    lines = head.split(b"\r\n")
    if any(b"\n" in line or b"\r" in line for line in lines):
        raise WireError(f"a bare CR or LF in a response head: {head!r}")
    version, _, rest = lines[0].partition(b" ")
    status, _, reason = rest.partition(b" ")
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit() or len(status) != 3:
        raise WireError(f"not a status line: {lines[0]!r}")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.strip() != name:
            raise WireError(f"not a header line: {line!r}")
        headers.append((name.decode("ascii"), value.strip().decode("utf-8", "surrogateescape")))
    return Response(int(status), reason.decode("ascii"), headers)
