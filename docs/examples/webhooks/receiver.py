"""A receiver to try webhooks with: checks each delivery with a library of Standard Webhooks and prints each event once.

    pip install standardwebhooks
    python3 receiver.py whsec_… [port]
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

verifier = Webhook(sys.argv[1])
# A real receiver keeps the ids of handled events in its database.
handled: set[str] = set()


class Receiver(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Checks a delivery, handles its event once, and answers."""
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            event = verifier.verify(body, {name.lower(): value for name, value in self.headers.items()})
        except WebhookVerificationError as error:
            print(f"refused: {error}", flush=True)
            return self.answer(401)
        if event["id"] not in handled:
            handled.add(event["id"])
            # One string, because deliveries arrive on several threads.
            print(f"{event['type']} {event['bucket']} {event.get('object', '')}\n", end="", flush=True)
        return self.answer(204)

    def answer(self, status: int) -> None:
        """Sends a response without a body."""
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing about requests."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 8000), Receiver).serve_forever()
