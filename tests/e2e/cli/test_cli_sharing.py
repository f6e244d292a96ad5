"""`cairn share` and `cairn embed` against a real server, and passwords that do not appear in the list of processes."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.cli import FAILED, WRONG_USAGE, Cli
from harness.management import expect
from harness.server import BINARY, Cairn, clean_environment

ID = "01890000-0000-7000-8000-000000000000"
URL = re.compile(r"http://127\.0\.0\.1:\d+/(s|e)/[A-Za-z0-9_-]{43}")
ORIGIN = "https://www.example.com"
KEY = "2026/party [1].png"
PLACE = r"photos/2026/party \[1].png"
TERMINAL_SECONDS = 30


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with an image."""
    store = make_module_store().start()
    store.s3.create_bucket("photos")
    store.s3.put("photos", KEY, b"an image", headers=[("content-type", "image/png")])
    return store


def until(time_text: str) -> timedelta:
    """Returns how far a time of a response is in the future."""
    return datetime.fromisoformat(time_text) - datetime.now(UTC)


def test_share_prints_its_url_first(cli: Cli):
    """A script takes the first line. Every option arrives."""
    text = cli.text("share", "create", PLACE, "--label", "für Ada", "--expires", "30d", "--maximum-downloads", "3", "--disposition", "attachment")
    url, empty, *lines = text.splitlines()
    assert URL.fullmatch(url) and empty == ""
    shown = dict(line.split(":", 1) for line in lines)
    assert shown["object"].strip() == f"photos/{KEY}" and shown["label"].strip() == "für Ada" and shown["maximum downloads"].strip() == "3"
    share = cli.json("share", "show", shown["id"].strip())
    assert timedelta(days=29, hours=23) < until(share["expires_at"]) <= timedelta(days=30)
    assert (share["disposition"], share["version_id"], share["password_protected"]) == ("attachment", None, False)
    assert cli.text("share", "url", share["id"]) == url + "\n"
    assert cli.json("share", "url", share["id"]) == {"url": url}
    pinned = cli.json("share", "create", PLACE, "--version-id", "null", "--expires", "2999-01-01")["share"]
    assert (pinned["version_id"], pinned["expires_at"]) == ("null", "2999-01-01T00:00:00.000Z")


def test_embed_prints_its_url_and_the_snippet(cli: Cli):
    """The snippet can be pasted into a page."""
    text = cli.text("embed", "create", PLACE, "--origin", ORIGIN, "--origin", "http://localhost:8080", "--label", "logo")
    url, _, snippet, _, *lines = text.splitlines()
    assert URL.fullmatch(url) and snippet == f'<img src="{url}" alt="logo" loading="lazy" referrerpolicy="strict-origin">'
    shown = dict(line.split(":", 1) for line in lines)
    assert shown["origins"].split() == [ORIGIN, "http://localhost:8080"] and shown["version"].strip() == "current"
    embed = shown["id"].strip()
    changed = cli.json("embed", "update", embed, "--origin", ORIGIN, "--disposition", "attachment", "--no-label")
    assert (changed["allowed_origins"], changed["disposition"], changed["label"]) == ([ORIGIN], "attachment", None)
    assert cli.text("embed", "url", embed) == url + "\n"
    assert cli.text("embed", "revoke", embed) == f"embed {embed} is revoked\n"
    assert "revoked" in cli.text("embed", "show", embed)
    assert cli.text("embed", "delete", embed) == f"embed {embed} was deleted\n"
    assert "the embed does not exist" in cli.fails("embed", "show", embed)
    pinned = cli.json("embed", "create", PLACE, "--origin", ORIGIN, "--version-id", "null")["embed"]
    assert pinned["version"] == {"mode": "pinned", "version_id": "null"}


def test_share_is_changed_revoked_and_deleted(cli: Cli):
    """What is not given stays; `--no-` options remove."""
    share = cli.json("share", "create", PLACE, "--label", "one", "--expires", "1h", "--password", "a")["share"]
    changed = cli.json("share", "update", share["id"], "--expires", "2h", "--maximum-downloads", "9")
    assert (changed["label"], changed["maximum_downloads"], changed["password_protected"]) == ("one", 9, True)
    assert until(changed["expires_at"]) > timedelta(minutes=119)
    bare = cli.json("share", "update", share["id"], "--no-expiry", "--no-label", "--no-password", "--no-maximum-downloads")
    assert [bare[name] for name in ("label", "expires_at", "password_protected", "maximum_downloads")] == [None, None, False, None]
    assert cli.text("share", "revoke", share["id"]) == f"share {share['id']} is revoked\n"
    assert cli.json("share", "show", share["id"])["status"] == "revoked"
    assert cli.text("share", "delete", share["id"]) == f"share {share['id']} was deleted\n"


def test_lists_are_of_an_object_a_bucket_or_all(cli: Cli, store: Cairn):
    """Filters apply to each; a limit is said."""
    store.s3.create_bucket("lists")
    for key in ("a", "b"):
        store.s3.put("lists", key, b"x", headers=[("content-type", "image/png")])
    made = [cli.json("share", "create", f"lists/{key}", "--label", f"l{number}")["share"]["id"] for number, key in enumerate("aab")]
    cli.text("share", "revoke", made[0])

    def ids(*arguments: str) -> list[str]:
        return [share["id"] for share in cli.json("share", "list", *arguments)["shares"]]

    assert ids("lists") == made[::-1] and ids("lists/a") == made[1::-1]
    assert ids("lists", "--status", "revoked") == ids("lists/a", "--status", "revoked") == [made[0]]
    assert ids("lists/a", "--created-by", "system") == made[1::-1] and ids("lists", "--created-by", "nobody") == ids("lists/a", "--created-by", "x") == []
    assert set(made) <= set(ids())
    limited = cli.run("share", "list", "lists", "--limit", "2")
    assert limited.returncode == 0 and "--limit shows more" in limited.stderr
    header, *rows = limited.stdout.splitlines()
    assert header.split()[:4] == ["LABEL", "OBJECT", "VERSION", "STATUS"] and len(rows) == 2 and rows[0].startswith("l2")
    assert cli.json("share", "list", "lists", "--limit", "3")["truncated"] is False
    assert "bucket was not found" in cli.fails("share", "list", "missing")
    assert "active, revoked or expired" in cli.fails("embed", "list", "--status", "exhausted", code=WRONG_USAGE)


@pytest.mark.parametrize("arguments", [
    ("share", "create", "photos"), ("share", "create", "photos/*.png"), ("share", "create", PLACE, "--expires", "soon"),
    ("share", "create", PLACE, "--expires", "30"), ("share", "create", PLACE, "--maximum-downloads", "-1"),
    ("share", "create", PLACE, "--maximum-downloads", "0"), ("share", "create", PLACE, "--disposition", "show"),
    ("share", "create", PLACE, "--password", "a", "--password-stdin"), ("share", "create", PLACE, "--password", ""),
    ("share", "update", ID), ("share", "update", ID, "--label", "a", "--no-label"), ("share", "update", ID, "--password", "a", "--no-password"),
    ("share", "update", ID, "--expires", "1d", "--no-expiry"), ("share", "list", "--limit", "0"), ("embed", "create", PLACE), ("embed", "update", ID),
])
def test_wrong_usage_changes_nothing(cli: Cli, arguments: tuple[str, ...]):
    """It is found before a request is sent."""
    before = cli.json("share", "list")["shares"]
    assert cli.fails(*arguments, code=WRONG_USAGE)
    assert cli.json("share", "list")["shares"] == before


def test_refusals_of_the_server_are_shown(cli: Cli):
    """With the code, and what to do."""
    assert "the object does not exist" in cli.fails("share", "create", "photos/missing")
    past = cli.fails("share", "create", PLACE, "--expires", "2020-01-01")
    assert "expires_at must be in the future" in past and "--expires sets expires_at" in past
    assert "allowed_origins contains \"example.com\"" in cli.fails("embed", "create", PLACE, "--origin", "example.com")
    assert "1024 bytes" in cli.fails("share", "create", PLACE, "--password-stdin", stdin="x" * 5000)


@pytest.mark.parametrize("option", [("--password-stdin",), ("--password", "-")])
def test_password_comes_from_standard_input(cli: Cli, store: Cairn, option: tuple[str, ...]):
    """Its first line, without the end of the line."""
    created = cli.json("share", "create", PLACE, *option, stdin="correct horse\nbattery\n")
    assert created["share"]["password_protected"] is True
    assert unlocks(store, created["url"], "correct horse") and not unlocks(store, created["url"], "correct horse\n")
    cli.json("share", "update", created["share"]["id"], *option, stdin="another")
    assert unlocks(store, created["url"], "another") and not unlocks(store, created["url"], "correct horse")
    assert "empty" in cli.fails("share", "create", PLACE, *option, code=WRONG_USAGE)


def unlocks(store: Cairn, url: str, password: str) -> bool:
    """Returns whether a password unlocks a share."""
    token = url.rsplit("/", 1)[1]
    response = store.admin.post(f"//s/{token}/unlock", {"password": password}, headers={"Authorization": ""})
    assert response.status_code in (200, 401), response.text
    return response.status_code == 200


def on_terminal(store: Cairn, arguments: list[str], typed: list[tuple[str, str]]) -> tuple[int, str, str]:
    """Runs a command on a terminal of its own. Types each text after its question. Returns exit code, output and screen."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    main, side = pty.openpty()
    process = subprocess.Popen(
        [BINARY, *arguments, "--endpoint", store.management], env=environment, stdin=side, stderr=side, stdout=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    screen, give_up = "", time.monotonic() + TERMINAL_SECONDS
    try:
        for question, text in typed:
            while not screen.endswith(question):
                assert time.monotonic() < give_up, screen
                if select.select([main], [], [], 0.1)[0]:
                    screen += os.read(main, 4096).decode()
            assert "secret" not in Path(f"/proc/{process.pid}/cmdline").read_text()
            os.write(main, text.encode() + b"\n")
        output = process.stdout.read()
        code = process.wait(TERMINAL_SECONDS)
        while select.select([main], [], [], 0.1)[0]:
            try:
                screen += os.read(main, 4096).decode()
            except OSError:
                # The last process on the terminal has ended.
                break
        return code, output, screen
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(main)


def test_password_is_asked_for_without_echo(cli: Cli, store: Cairn):
    """`--password` without a value. It appears neither on the screen nor in the list of processes."""
    arguments = ["share", "create", PLACE, "--password"]
    code, output, screen = on_terminal(store, arguments, [("Password: ", "a secret"), ("Password again: ", "a secret")])
    assert code == 0 and "secret" not in screen + output
    assert unlocks(store, output.splitlines()[0], "a secret")
    before = cli.json("share", "list")["shares"]
    code, output, screen = on_terminal(store, arguments, [("Password: ", "a secret"), ("Password again: ", "another")])
    assert (code, output) == (FAILED, "") and "differ" in screen and "secret" not in screen
    assert cli.json("share", "list")["shares"] == before


def test_password_without_a_terminal_is_refused(cli: Cli, store: Cairn):
    """A script that forgets the value does not hang."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    command = [BINARY, "share", "create", PLACE, "--endpoint", store.management, "--password"]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, start_new_session=True)
    assert done.returncode == FAILED and "--password-stdin" in done.stderr and done.stdout == ""


def test_output_of_a_closed_pipe_is_no_failure(cli: Cli, store: Cairn):
    """`cairn share create … | head -1` gives the URL alone."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    line = f"{BINARY} share create 'photos/2026/party \\[1].png' --endpoint {store.management} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and URL.fullmatch(done.stdout.strip()), done


def test_labels_cannot_control_the_terminal(cli: Cli, store: Cairn):
    """The server refuses control characters; direction marks are removed when a list is printed."""
    share = expect(store.admin.post("/buckets/photos/object-shares/" + KEY.replace(" ", "%20"), {"label": "a\u202eb"}), 201)["share"]
    assert "\u202e" not in cli.text("share", "list", "photos") + cli.text("share", "show", share["id"])
