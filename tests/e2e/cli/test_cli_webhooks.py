"""`cairn event` and `cairn webhook` against a real server."""

import itertools
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.cli import FAILED, WRONG_USAGE, Cli
from harness.management import expect
from harness.receiver import Receiver, service_signature, standard_signature
from harness.server import BINARY, Cairn, clean_environment
from harness.wait import until

RELAXED = {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true"}
ID = "01890000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that may deliver to this machine, with a bucket."""
    store = make_module_store(**RELAXED).start()
    store.s3.create_bucket("photos")
    return store


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that accepts everything."""
    own = Receiver()
    yield own
    own.close()


@contextmanager
def running(store: Cairn, folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen, Path]]:
    """Runs a command that ends only when it is stopped. Yields it, and the file of its standard error."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    errors = folder / "errors.txt"
    with errors.open("w") as file:
        command = [BINARY, *arguments, "--endpoint", store.management]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        yield process, errors
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def written(file: Path, text: str) -> str:
    """Waits until a file contains a text, and returns all of it."""
    return until(lambda: text in (found := file.read_text()) and found, file.read_text)


def test_events_are_listed(cli: Cli, store: Cairn):
    """As a table and as JSON, with filters, pages and all pages."""
    for number in range(5):
        store.s3.put("photos", f"list/{number}", b"12")
    chosen = ("--bucket", "photos", "--prefix", "list/")
    lines = cli.text("event", "list", *chosen).splitlines()
    assert lines[0].split() == ["TIME", "TYPE", "BUCKET", "OBJECT", "VERSION", "ID", "SIZE", "PRINCIPAL"] and len(lines) == 6
    assert "object.created" in lines[1] and "list/0" in lines[1] and "2 B" in lines[1]
    page = cli.run("event", "list", *chosen, "--limit", "2")
    assert page.returncode == 0 and "--after-time" in page.stderr and len(page.stdout.splitlines()) == 3
    everything = cli.json("event", "list", *chosen, "--all", "--limit", "2")
    assert [event["object"] for event in everything["events"]] == [f"list/{number}" for number in range(5)]
    third = everything["events"][2]
    rest = cli.json("event", "list", *chosen, "--after-time", third["time"], "--after-id", third["id"])
    assert rest["events"] == everything["events"][3:]
    types = cli.json("event", "list", "--type", "bucket.created", "--type", "bucket.deleted", "--since", "1h")
    assert [event["type"] for event in types["events"]] == ["bucket.created"]
    assert "object.created" in cli.fails("event", "list", "--type", "object", code=WRONG_USAGE)
    cli.fails("event", "list", "--after-id", ID, code=WRONG_USAGE)
    cli.fails("event", "list", "--follow", "--all", code=WRONG_USAGE)


def test_new_events_are_followed(store: Cairn, tmp_path: Path):
    """Only those since the start of the command, each as soon as it occurs, one per line."""
    store.s3.put("photos", "follow/old", b"1")
    # An event is listed when no earlier one can follow any more, which may be after its change was acknowledged.
    until(lambda: expect(store.admin.get("/events", params={"prefix": "follow/"}), 200)["events"], "the event is not listed")
    with running(store, tmp_path, "event", "list", "--follow", "--json", "--prefix", "follow/") as (process, _):
        lines: list[str] = []

        def read() -> None:
            for _ in range(3):
                lines.append(process.stdout.readline())

        threading.Thread(target=read, daemon=True).start()
        # The command has no other sign that it waits. What it misses is repeated.
        numbers = itertools.count()
        until(lambda: store.s3.put("photos", f"follow/{next(numbers):04}", b"1") and len(lines) == 3, lambda: lines)
    names = [json.loads(line)["object"] for line in lines]
    assert "follow/old" not in names and names == sorted(names) and len(set(names)) == 3


def test_webhook_commands(cli: Cli, store: Cairn, receiver: Receiver, tmp_path: Path):
    """Creates, shows, changes, disables, enables and deletes a webhook."""
    file = tmp_path / "webhook.json"
    document = {"target_url": receiver.url, "event_types": ["object.created"], "bucket_filter": "photos"}
    file.write_text(json.dumps(document))
    made = cli.json("webhook", "create", str(file))
    webhook = made["subscription"]["id"]
    assert made["signing_secret"].startswith("whsec_")
    text = cli.text("webhook", "create", "--target-url", receiver.url, "--event-type", "bucket.created", "--disabled")
    assert "signing secret:    whsec_" in text and "enabled:           no" in text
    assert cli.json("webhook", "create", "-", stdin=json.dumps(document))["subscription"]["bucket_filter"] == "photos"
    lines = cli.text("webhook", "list").splitlines()
    assert lines[0].split() == ["ID", "TARGET", "EVENTS", "BUCKET", "PREFIX", "ENABLED", "HEALTH", "PENDING", "LOST"] and len(lines) == 4
    assert "target:            " + receiver.url in cli.text("webhook", "show", webhook)
    changed = cli.json("webhook", "update", webhook, "--event-type", "object.deleted", "--prefix", "x/", "--any-bucket")
    assert (changed["event_types"], changed["object_prefix_filter"], changed["bucket_filter"]) == (["object.deleted"], "x/", None)
    assert cli.text("webhook", "disable", webhook) == f"webhook {webhook} is disabled; its pending deliveries were dropped\n"
    assert cli.json("webhook", "show", webhook)["enabled"] is False
    assert cli.text("webhook", "enable", webhook) == f"webhook {webhook} is enabled\n"
    for one in cli.json("webhook", "list")["webhooks"]:
        assert cli.text("webhook", "delete", one["id"]) == f"webhook {one['id']} was deleted\n"
    message = cli.fails("webhook", "show", webhook)
    assert "WEBHOOK_NOT_FOUND" in message and "cairn webhook list" in message
    assert "INVALID_WEBHOOK_TARGET" in cli.fails("webhook", "create", "--target-url", "ftp://x", "--event-type", "object.created")
    for wrong in (
        ["create"], ["create", str(file), "--disabled"], ["create", "--target-url", receiver.url], ["update", webhook],
        ["update", webhook, "--bucket", "a", "--any-bucket"], ["redeliver"], ["redeliver", webhook],
        ["redeliver", webhook, "--since", "1h", "--delivery", ID], ["deliveries", "--after-id", ID],
        ["listen", "--forward", "localhost:80"],
    ):
        cli.fails("webhook", *wrong, code=WRONG_USAGE)


def on_terminal(store: Cairn, answer: str, wanted: str, *arguments: str) -> tuple[int, str]:
    """Runs a command on a terminal, where the answer is typed. Returns its exit code, and what the terminal shows, with `wanted` in it."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(
            [BINARY, *arguments, "--endpoint", store.management], env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, timeout=60,
        )
        os.set_blocking(ours, False)
        shown = bytearray()

        def is_shown() -> bool:
            with suppress(BlockingIOError):
                shown.extend(os.read(ours, 1 << 16))
            return wanted.encode() in shown

        until(is_shown, lambda: shown.decode())
        return done.returncode, shown.decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_deleting_undelivered_events_needs_a_confirmation(cli: Cli, store: Cairn, receiver: Receiver):
    """The delivery log, which alone names them, was deleted without a word."""
    made = cli.json("webhook", "create", "--target-url", receiver.url, "--event-type", "object.created", "--prefix", "undelivered/")
    webhook = made["subscription"]["id"]
    receiver.close()
    for number in range(2):
        store.s3.put("photos", f"undelivered/{number}", b"1")
    until(lambda: cli.json("webhook", "show", webhook)["health"]["pending"] == 2, "the events wait")
    message = cli.fails("webhook", "delete", webhook)
    assert "2 events were not delivered" in message and "2 pending, 0 lost" in message and "--yes" in message
    code, shown = on_terminal(store, "no", "not confirmed", "webhook", "delete", webhook)
    assert code == FAILED and "2 events were not delivered" in shown and "Type delete to confirm" in shown and "not confirmed" in shown
    assert cli.json("webhook", "show", webhook)["enabled"]
    assert on_terminal(store, "delete", "to confirm", "webhook", "delete", webhook)[0] == 0
    assert "WEBHOOK_NOT_FOUND" in cli.fails("webhook", "delete", webhook)
    other = cli.json("webhook", "create", "--target-url", receiver.url, "--event-type", "object.created", "--prefix", "undelivered/")
    store.s3.put("photos", "undelivered/2", b"1")
    assert cli.text("webhook", "delete", other["subscription"]["id"], "--yes").endswith("was deleted\n")


def test_deliveries_are_listed_tested_and_repeated(cli: Cli, store: Cairn, receiver: Receiver):
    """The exit code of a test says whether it was delivered."""
    made = cli.json("webhook", "create", "--target-url", receiver.url, "--event-type", "object.created", "--prefix", "again/")
    webhook = made["subscription"]["id"]
    store.s3.put("photos", "again/1", b"1")
    (first,) = receiver.wait(1)
    listed = ("webhook", "deliveries", "--webhook", webhook, "--status", "succeeded")
    entries = until(lambda: cli.json(*listed)["deliveries"], "the delivery is not listed")
    assert [entry["event_id"] for entry in entries] == [first.event_id]
    lines = cli.text("webhook", "deliveries", "--limit", "1", "--event", first.event_id).splitlines()
    assert len(lines) == 2 and "succeeded" in lines[1] and "204" in lines[1]

    text = cli.text("webhook", "redeliver", "--delivery", entries[0]["id"])
    assert "pending" in text and first.event_id in text
    assert receiver.wait(2)[1].event_id == first.event_id
    assert cli.json("webhook", "redeliver", webhook, "--since", "1h") == {"queued": 0}
    assert cli.text("webhook", "redeliver", webhook, "--since", "1h", "--all") == "queued: 1\n"
    receiver.wait(3)

    assert "response" in cli.text("webhook", "test", webhook)
    secret = cli.json("webhook", "rotate-secret", webhook, "--overlap", "0")["signing_secret"]
    cli.text("webhook", "test", webhook)
    last = receiver.wait(5)[-1]
    assert last.headers["webhook-signature"] == standard_signature(secret, last)
    receiver.close()
    failed = cli.run("webhook", "test", webhook)
    assert failed.returncode == FAILED and "was not delivered" in failed.stderr and "connect" in failed.stdout
    cli.text("webhook", "delete", webhook)


@pytest.mark.parametrize("given", [False, True])
def test_listen_posts_signed_events(store: Cairn, receiver: Receiver, tmp_path: Path, given: bool):
    """To a program that the server does not know, with a new secret or a given one."""
    secret, options = "whsec_" + "A" * 43 + "=", []
    if given:
        (tmp_path / "secret").write_text(secret + "\n")
        options = ["--secret-file", str(tmp_path / "secret")]
    prefix = f"listen-{given}/"
    arguments = ["webhook", "listen", "--forward", receiver.url, "--prefix", prefix, *options]
    with running(store, tmp_path, *arguments) as (process, errors):
        if not given:
            secret = written(errors, "signing secret: whsec_").split("signing secret: ")[1].split()[0]
        written(errors, "forwarding new events")
        store.s3.put("photos", f"{prefix}1", b"123")
        (got,) = receiver.wait(1)
        line = process.stdout.readline()
    event = json.loads(got.body)
    assert (event["object"], event["size"]) == (f"{prefix}1", 3)
    assert got.headers["x-service-signature"] == service_signature(secret, got.body)
    assert got.headers["webhook-signature"] == standard_signature(secret, got)
    assert got.headers["x-service-event-id"] == got.headers["webhook-id"] == event["id"]
    assert f"photos/{prefix}1" in line and "-> 204" in line
