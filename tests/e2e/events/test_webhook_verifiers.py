"""The examples for receivers in docs/examples/webhooks, and a library of Standard Webhooks, against good and forged deliveries."""

import base64
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import standardwebhooks

from harness.server import REPOSITORY

EXAMPLES = REPOSITORY / "docs/examples/webhooks"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER_SECRET = "whsec_" + base64.b64encode(b"\xff" * 32).decode()
EVENT_ID = "0192f0c1-2345-7abc-8def-0123456789ab"
BODY = b'{"id":"0192f0c1-2345-7abc-8def-0123456789ab","type":"object.created"}'
PROGRAMS = {
    "python": ["python3", "verify.py"],
    "node": ["node", "verify.mjs"],
    "go": None,
    "php": ["php", "verify.php"],
    "shell": ["sh", "verify.sh"],
}


def sign(secret: str, timestamp: int, body: bytes = BODY) -> str:
    """A signature, computed here and not by the server."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{EVENT_ID}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of one example."""
    if request.param == "go":
        built = tmp_path_factory.mktemp("go") / "verify"
        subprocess.run(["go", "build", "-o", built, EXAMPLES / "verify.go"], check=True, timeout=300)
        return [str(built)]
    command, name = PROGRAMS[request.param]
    assert shutil.which(command), f"{command} is missing; ./test installs it"
    return [command, str(EXAMPLES / name)]


def is_accepted(
    program: list[str], timestamp: int, signature: str, *, secret: str = SECRET, event_id: str = EVENT_ID, body: bytes = BODY,
    tolerance: int | None = None,
) -> bool:
    """Returns whether an example accepts a delivery. Anything but an answer is an error."""
    environment = os.environ | {
        "WEBHOOK_SECRET": secret, "WEBHOOK_ID": event_id, "WEBHOOK_TIMESTAMP": str(timestamp), "WEBHOOK_SIGNATURE": signature,
    }
    if tolerance is not None:
        environment["WEBHOOK_TOLERANCE"] = str(tolerance)
    done = subprocess.run(program, input=body, env=environment, capture_output=True, timeout=60)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr.decode()
    return done.returncode == 0


def test_the_documented_vector_is_the_one_that_is_tested():
    """The page has the values that the examples and the server are tested with."""
    rows = dict(re.findall(r"^\| (.+?) \| `(.+?)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert (rows["secret"], rows["body"].encode(), rows["`webhook-id`"]) == (SECRET, BODY, EVENT_ID)
    assert rows["`webhook-signature`"] == sign(SECRET, int(rows["`webhook-timestamp`"]))
    assert rows["`x-service-signature`"] == "sha256=" + hmac.new(SECRET.encode(), BODY, hashlib.sha256).hexdigest()


def test_an_example_accepts_the_vector_and_nothing_that_was_tampered_with(program: list[str]):
    """A tolerance of a century lets the vector's date pass."""
    timestamp, century = 1767225600, 100 * 366 * 86400
    good = sign(SECRET, timestamp)
    assert is_accepted(program, timestamp, good, tolerance=century)
    assert not is_accepted(program, timestamp, good, tolerance=century, body=BODY.replace(b"created", b"deleted"))
    assert not is_accepted(program, timestamp, good, tolerance=century, body=BODY + b"\n")
    assert not is_accepted(program, timestamp, good, tolerance=century, body=b"")
    assert not is_accepted(program, timestamp, good, tolerance=century, event_id=EVENT_ID[:-1] + "c")
    assert not is_accepted(program, timestamp + 1, good, tolerance=century)
    assert not is_accepted(program, timestamp, good, tolerance=century, secret=OTHER_SECRET)
    assert not is_accepted(program, timestamp, good, tolerance=1), "the attempt is old"


def test_an_example_knows_time_and_rotation(program: list[str]):
    """Five minutes are tolerated, and one good signature among several is enough."""
    now = int(time.time())
    for timestamp, expected in ((now, True), (now - 240, True), (now + 240, True), (now - 3600, False), (now + 3600, False)):
        assert is_accepted(program, timestamp, sign(SECRET, timestamp)) == expected, timestamp - now
    good, other = sign(SECRET, now), sign(OTHER_SECRET, now)
    assert is_accepted(program, now, f"{other} {good}") and is_accepted(program, now, f"{good} {other}")
    for signature in ("", other, good[:-1], good[3:], "v1,", "v2" + good[2:], "v1a" + good[2:], good.replace(",", " "), good.lower()):
        assert not is_accepted(program, now, signature), signature


def test_bodies_are_bytes(program: list[str]):
    """Names of objects are UTF-8, and a line end belongs to the body."""
    now = int(time.time())
    for body in ('{"object":"Fotos/Zürich 🏔.jpg"}'.encode(), b"{}\n\n", b"%s %d \\n", b"-n"):
        assert is_accepted(program, now, sign(SECRET, now, body), body=body), body
        assert not is_accepted(program, now, sign(SECRET, now, body), body=body + b"\r"), body


def test_a_library_of_standard_webhooks_agrees():
    """Receivers may use it unchanged."""
    now = int(time.time())
    headers = {"webhook-id": EVENT_ID, "webhook-timestamp": str(now), "webhook-signature": f"{sign(OTHER_SECRET, now)} {sign(SECRET, now)}"}
    library = standardwebhooks.Webhook(SECRET)
    assert library.verify(BODY, headers)["type"] == "object.created"
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        library.verify(BODY.replace(b"created", b"deleted"), headers)
