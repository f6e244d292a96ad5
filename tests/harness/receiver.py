"""A receiver of webhook deliveries, and an independent check of their signatures."""

import base64
import hashlib
import hmac
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .certificates import Pair
from .server import LOOPBACK
from .wait import PATIENCE_SECONDS


@dataclass
class Delivery:
    """One received request."""

    path: str
    headers: dict[str, str]
    body: bytes
    time: float

    @property
    def event_id(self) -> str:
        """Returns the id of the event."""
        return self.headers["x-service-event-id"]


# Status, headers and delay in seconds of the answer to a request.
Answer = tuple[int, dict[str, str], float]
OK: Answer = (204, {}, 0.0)


class Receiver:
    """An HTTP server on a port of its own that remembers what it receives."""

    def __init__(self, answer: Callable[[Delivery], Answer] | None = None, port: int = 0, pair: Pair | None = None):
        self.answer = answer or (lambda _: OK)
        self.received: list[Delivery] = []
        self.changed = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            """Answers one connection."""

            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Remembers a delivery and answers it."""
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                delivery = Delivery(self.path, headers, body, time.monotonic())
                status, more, delay = receiver.take(delivery)
                time.sleep(delay)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def handle(self) -> None:
                """A client may give up at any time."""
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Prints nothing."""

        class Server(ThreadingHTTPServer):
            """Has one thread for each connection."""

            daemon_threads = True
            request_queue_size = 128

        self.server = Server((LOOPBACK, port), Handler)
        self.port = self.server.server_address[1]
        self.scheme = "https" if pair else "http"
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            # The handshake is left to the connection's thread.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        """Returns the address of the receiver."""
        return self.url_at(LOOPBACK)

    def url_at(self, host: str) -> str:
        """Returns the address of the receiver under another name of this host."""
        return f"{self.scheme}://{host}:{self.port}/hook"

    def take(self, delivery: Delivery) -> Answer:
        """Remembers a request and chooses its answer."""
        with self.changed:
            answer = self.answer(delivery)
            self.received.append(delivery)
            self.changed.notify_all()
        return answer

    def wait(self, count: int, matches: Callable[[Delivery], bool] = lambda _: True, seconds: float = PATIENCE_SECONDS) -> list[Delivery]:
        """Waits until so many requests that match have been received, and returns all of those."""
        def found() -> list[Delivery]:
            return [one for one in self.received if matches(one)]

        with self.changed:
            done = self.changed.wait_for(lambda: len(found()) >= count, seconds)
            assert done, f"{len(found())} of {count} deliveries after {seconds} s"
            return found()

    def close(self) -> None:
        """Refuses further connections."""
        self.server.shutdown()
        self.server.server_close()


def service_signature(secret: str, body: bytes) -> str:
    """Returns the value of `x-service-signature`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(secret: str, delivery: Delivery) -> str:
    """Returns one signature of `webhook-signature`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery.headers['webhook-id']}.{delivery.headers['webhook-timestamp']}.".encode() + delivery.body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
