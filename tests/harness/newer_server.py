"""Stands in front of a server as a later version of it: every object of its JSON responses has members that were added later."""

import http.server
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import requests

from .server import LOOPBACK, Cairn

TIMEOUT = 60
ADDED = "added_later"
# Members whose values have names that are no members of a type: a later server adds nothing to these.
MAPS = {"metadata", "headers", "checksums", "subsystems", "notices", "info", "paths", "components", "labels", "planes"}


def with_more(value: object, is_map: bool = False) -> object:
    """Returns a value with one more member in every object, at every depth."""
    if isinstance(value, list):
        return [with_more(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: with_more(member, name in MAPS) for name, member in value.items()}
    return members if is_map else members | {ADDED: {"deep": [{"deeper": None}]}}


@contextmanager
def newer_server(store: Cairn, changed: Callable[[str], str] = str, answered: Callable[[str], str] = str) -> Iterator[str]:
    """Forwards to the management plane, the path and query as `changed` returns them, and what it answers as `answered` returns it.

    Returns the URL of the later server.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {name: value for name, value in self.headers.items() if name.lower() in ("authorization", "content-type", "accept")}
            answer = requests.request(self.command, store.management + changed(self.path), headers=kept, data=body, timeout=TIMEOUT)
            content = answer.content
            if content and answer.headers["Content-Type"] == "application/json":
                content = answered(json.dumps(with_more(answer.json()))).encode()
            self.send_response(answer.status_code)
            if "Content-Type" in answer.headers:
                self.send_header("Content-Type", answer.headers["Content-Type"])
            if answer.status_code != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        def log_message(self, *_: object) -> None:
            """Suppresses the log."""

    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}"
        finally:
            server.shutdown()
