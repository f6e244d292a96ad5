"""A relay before an S3 server that refuses some changes, and makes others without an answer."""

import http.client
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from .server import LOOPBACK

BUSY = b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"


class Unsteady:
    """Answers every third change with 503, and closes the connection after every other third one was made."""

    def __init__(self, port: int):
        self.changes, self.lock = 0, Lock()
        relay = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                """Relays it, or fails it."""
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                turn = relay.turn() if self.command != "GET" and self.command != "HEAD" else 0
                if turn == 1:
                    self.answer(503, {}, BUSY)
                    return
                connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("expect", "connection"):
                        connection.putheader(name, value)
                connection.endheaders(body)
                response = connection.getresponse()
                content = response.read()
                if turn == 2:
                    self.close_connection = True
                    return
                self.answer(response.status, dict(response.getheaders()), content)

            def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
                """Sends an answer."""
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                if "content-length" not in {name.lower() for name in headers} and status != 204:
                    self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, daemon=True).start()

    def turn(self) -> int:
        """Returns the number of a change, modulo 3."""
        with self.lock:
            self.changes += 1
            return self.changes % 3

    @property
    def endpoint(self) -> str:
        """Returns the address."""
        return f"http://{LOOPBACK}:{self.server.server_port}"

    def close(self) -> None:
        """Ends it."""
        self.server.shutdown()
        self.server.server_close()
