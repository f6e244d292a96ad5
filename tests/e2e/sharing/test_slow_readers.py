"""Visitors of links who read slowly: they fill half of a listener, and then replace each other."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from harness.boto import random_bytes
from harness.console import signed_in
from harness.management import expect
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.server import LOOPBACK, Cairn

BUCKET, KEY = "linked", "large.png"
# Far more than the buffers of both ends.
BODY = random_bytes("the content of links that are read slowly", 24 << 20)
CONNECTIONS = 16
FLOOD = 4 * CONNECTIONS
ELSEWHERE = "127.0.0.2"
TIMEOUT = 60


@pytest.fixture(scope="module")
def flooded(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with few connections and a large object. Slow clients have much time."""
    store = make_module_store(
        SERVICE_SERVER_CONNECTIONS_MAX=str(CONNECTIONS), SERVICE_SERVER_CONNECTIONS_PER_CLIENT_MAX="0",
        SERVICE_SERVER_BODY_TIMEOUT_SECONDS="600", SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN,
    ).start()
    store.s3.create_bucket(BUCKET)
    store.s3.put(BUCKET, KEY, BODY, [("Content-Type", "image/png")])
    return store


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes connections at the end."""
    with ExitStack() as stack:
        yield stack


def path_of(store: Cairn, kind: str) -> str:
    """Returns the path of a new share's content, or of a new embed."""
    body = {"allowed_origins": ["https://site.example"]} if kind == "embed" else {}
    made = expect(store.admin.post(f"/buckets/{BUCKET}/object-{kind}s/{KEY}", body), 201)
    return urlsplit(made["url"]).path + ("/content" if kind == "share" else "")


def begin(opened: ExitStack, port: int, path: str, source: str) -> socket.socket:
    """Sends a request, and reads the first bytes of the response only."""
    connection = opened.enter_context(socket.socket())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    connection.settimeout(TIMEOUT)
    connection.bind((source, 0))
    connection.connect((LOOPBACK, port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nOrigin: https://site.example\r\n\r\n".encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Reads the rest of a response."""
    answer = bytearray()
    while len(answer) < len(BODY) or len(answer) - answer.index(b"\r\n\r\n") - 4 < len(BODY):
        piece = connection.recv(1 << 20)
        assert piece, "the response was cut"
        answer += piece
    return bytes(answer[answer.index(b"\r\n\r\n") + 4 :])


@pytest.mark.parametrize(("kind", "plane"), [("embed", "data"), ("share", "console"), ("share", "management")])
def test_slow_readers_of_a_link_leave_room_for_others(flooded: Cairn, opened: ExitStack, kind: str, plane: str):
    """One client with the URL of a link filled a listener with responses that it did not read. Everybody else got 503 for minutes.
    Now its requests end each other. Signed requests, and visitors who came before and after it, are served."""
    port = {"data": flooded.s3_port, "console": flooded.console_port, "management": flooded.api_port}[plane]
    path = path_of(flooded, kind)
    console = signed_in(flooded)
    before = begin(opened, port, path, ELSEWHERE)
    for number in range(FLOOD):
        begin(opened, port, path, LOOPBACK)
        if number % 8 == 7:
            flooded.s3.put(BUCKET, "other", b"1")
            assert flooded.s3.get(BUCKET, "other").body == b"1"
            expect(flooded.admin.get("/buckets"), 200)
            assert console.api("/buckets").status_code == 200
    assert read_all(begin(opened, port, path, "127.0.0.3")) == BODY
    assert read_all(before) == BODY
    ended = scrape(flooded).sum("service_unsigned_requests_ended_total", plane=plane)
    assert ended >= FLOOD - CONNECTIONS // 2
