"""The commands under the views of the console, in a real Chromium: each exists and has the options that are shown."""

import shlex
import subprocess

import pytest

from harness.accounts import create_account, statement
from harness.management import expect
from harness.page import TABS, VIEWS, Page
from harness.server import BINARY, Cairn

MOMENT = "2026-01-01T00:00:00Z"


def shown(page: Page) -> list[str]:
    """Returns the commands of the client that the view shows."""
    lines = page.run("async () => [...document.querySelectorAll('.commands code')].map((one) => one.textContent)")
    return [line for line in lines if line.startswith("cairn ")]


def missing(line: str) -> list[str]:
    """Returns what the help of a command does not know: the command itself, or options."""
    # What follows `--` is a command of another program.
    words = shlex.split(line.partition(" -- ")[0])[1:]
    # The command is the words before the first argument: the help of a shorter one names its verbs.
    for length in range(min(3, len(words)), 0, -1):
        done = subprocess.run([BINARY, *words[:length], "--help"], capture_output=True, text=True, timeout=30)
        if done.returncode == 0 and done.stdout.startswith(f"Usage: cairn {' '.join(words[:length])} "):
            return [word for word in words if word.startswith("--") and f"{word} " not in done.stdout]
    return [line]


@pytest.fixture
def places(console_store: Cairn, versioned: str) -> list[tuple]:
    """All views, with what they show of a bucket, an object, an account and a policy."""
    console_store.s3.put(versioned, "folder/it's.txt", b"x")
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{versioned}/*"), name=f"reads-{versioned}")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    bucket = ("bucket", versioned)
    return [
        *((view,) for view in VIEWS), *((tab, versioned) for tab in TABS), ("settings", versioned), ("object", versioned, "folder/it's.txt"), ("account", account.id), ("policy", policy), ("policy", "new"),
        ("connect",), (*bucket, {"prefix": "folder/"}), (*bucket, {"prefix": "folder/", "at": MOMENT}), (*bucket, {"q": "it's", "type": "text/*", "min": "5", "since": "2026-01-01", "tag": "a=b"}), (*bucket, {"q": "*.txt", "at": MOMENT}),
        ("access", {"who": account.id, "action": "s3:GetObject", "bucket": versioned, "key": "k"}),
    ]


def test_commands_exist(page: Page, places: list[tuple]):
    """None has a word that the client does not know."""
    wrong, count = {}, 0
    for place in places:
        page.go(*place[:-1], **place[-1]) if isinstance(place[-1], dict) else page.go(*place)
        for line in shown(page):
            count += 1
            if unknown := missing(line):
                wrong[line] = unknown
    assert wrong == {} and count > 30
