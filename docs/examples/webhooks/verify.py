"""Checks the signature of a delivery with Python's standard library."""

import base64
import hashlib
import hmac
import os
import sys
import time


def verify(secret: str, headers: dict[str, str], body: bytes, tolerance: int = 300) -> bool:
    """Returns whether a delivery is genuine and at most `tolerance` seconds old. Header names are in lower case.

    `body` must be the bytes as received. JSON that was parsed and written again has other bytes.
    """
    event_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(time.time() - int(timestamp)) > tolerance:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # While the secret is rotated, there are two signatures.
    found = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), signature.encode()) for signature in found)


if __name__ == "__main__":
    delivery = {name: os.environ.get(name.upper().replace("-", "_"), "") for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
    allowed = int(os.environ.get("WEBHOOK_TOLERANCE", "300"))
    sys.exit(0 if verify(os.environ["WEBHOOK_SECRET"], delivery, sys.stdin.buffer.read(), allowed) else 1)
