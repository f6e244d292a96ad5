"""Attacks the command-line client against a real server: the life of everything it manages, refusals, exit codes, JSON."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.boto import make_client, refused
from harness.server import BINARY, Cairn, clean_environment

TIMEOUT = 60
DONE, FAILED, WRONG_USAGE, NO_ANSWER = range(4)
_names = itertools.count(1)


class Cli:
    """`cairn` with a token, against one server."""

    def __init__(self, endpoint: str, token: str | None):
        self.endpoint, self.token = endpoint, token

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        """One command to its end. It never panics and never shows its own token."""
        variables = {} if self.token is None else {"SERVICE_MANAGEMENT_TOKEN": self.token}
        done = subprocess.run(
            [BINARY, *arguments, "--endpoint", self.endpoint], env=clean_environment() | variables, input=stdin,
            capture_output=True, text=True, timeout=TIMEOUT,
        )
        assert "panicked" not in done.stderr
        assert not self.token or self.token not in done.stdout + done.stderr
        return done

    def text(self, *arguments: str, **options: str) -> str:
        """What a command that succeeds prints for people."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stderr) == (DONE, ""), done
        return done.stdout

    def json(self, *arguments: str, **options: str) -> dict:
        """What a command that succeeds prints for machines."""
        return json.loads(self.text(*arguments, "--json", **options))

    def fails(self, *arguments: str, code: int = FAILED, **options: str) -> str:
        """What a command that fails in this way says; nothing of it stands where the result belongs."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stdout) == (code, ""), done
        return done.stderr


@pytest.fixture
def cli(store: Cairn) -> Cli:
    """The client under the system token."""
    return Cli(store.management, store.secrets.system_token)


@pytest.fixture
def name() -> str:
    """A name that nothing has yet."""
    return f"cli-{os.getpid()}-{next(_names)}"


def test_the_life_of_a_bucket(cli: Cli, name: str):
    """Created, listed, shown, versioned, deleted; once each."""
    assert cli.json("bucket", "create", name)["versioning"] == "Unversioned"
    said = cli.fails("bucket", "create", name)
    assert "BUCKET_ALREADY_EXISTS" in said and "cairn bucket show" in said
    assert name in [bucket["name"] for bucket in cli.json("bucket", "list")["buckets"]]
    lines = cli.text("bucket", "list").splitlines()
    assert lines[0].split() == ["NAME", "CREATED", "VERSIONING", "LOCK", "OBJECTS", "SIZE"]
    assert [line for line in lines if line.startswith(f"{name} ") and "Unversioned" in line]
    assert f"name:          {name}\n" in cli.text("bucket", "show", name)

    assert cli.text("bucket", "versioning", name) == "versioning: Unversioned\n"
    assert cli.json("bucket", "versioning", name, "enabled") == {"versioning": "Enabled"}
    assert cli.text("bucket", "versioning", name, "suspended") == "versioning: Suspended\n"
    assert "expected enabled or suspended" in cli.fails("bucket", "versioning", name, "unversioned", code=WRONG_USAGE)

    assert cli.text("bucket", "delete", name) == f"bucket {name} was deleted\n"
    for command in (("show",), ("delete",), ("versioning",)):
        said = cli.fails("bucket", *command, name)
        assert "BUCKET_NOT_FOUND" in said and "cairn bucket list" in said
    cli.text("bucket", "create", name)
    assert cli.text("bucket", "delete", name, "--json") == "", "the server answers nothing"


def test_a_bucket_with_object_lock(cli: Cli, name: str):
    """Versioning comes with it, and stays."""
    bucket = cli.json("bucket", "create", name, "--object-lock")
    assert bucket["object_lock"] is True and bucket["versioning"] == "Enabled"
    assert "object lock" in cli.fails("bucket", "versioning", name, "suspended")
    cli.text("bucket", "delete", name)


def test_a_bucket_that_holds_something_stays(cli: Cli, store: Cairn, name: str):
    """And the message says what to do."""
    cli.text("bucket", "create", name)
    store.s3.put(name, "key", b"12345")
    said = cli.fails("bucket", "delete", name)
    assert "BUCKET_NOT_EMPTY" in said and "old versions" in said
    assert cli.json("bucket", "show", name)["usage"] == {"bytes": 5, "objects": 1}


@pytest.mark.parametrize("wrong", ["", "UPPER", "a", "..", "a/b", "ä" * 5, "x" * 64, "a?b", "%2e%2e"])
def test_names_that_are_none(cli: Cli, wrong: str):
    """Refused by the server; no name leads to another route."""
    for command in ("create", "show", "delete"):
        assert cli.fails("bucket", command, wrong).startswith("cairn: ")


def test_quotas(cli: Cli, store: Cairn, name: str):
    """A dimension that is not given stays; sizes may have units; a limit under what is there is refused."""
    cli.text("bucket", "create", name)
    quota = cli.json("quota", "set", name, "--bytes", "10GiB")["quota"]
    assert quota == {"bytes": {"mode": "limit", "bytes": 10 << 30}, "objects": {"mode": "unlimited"}}
    quota = cli.json("quota", "set", name, "--objects", "3")["quota"]
    assert quota == {"bytes": {"mode": "limit", "bytes": 10 << 30}, "objects": {"mode": "limit", "objects": 3}}
    quota = cli.json("quota", "set", name, "--bytes", "unlimited", "--objects", "9007199254740991")["quota"]
    assert quota == {"bytes": {"mode": "unlimited"}, "objects": {"mode": "limit", "objects": 2**53 - 1}}
    assert cli.json("quota", "show", name)["quota"] == quota

    store.s3.put(name, "key", b"12345")
    cli.text("quota", "set", name, "--bytes", "5", "--objects", "1")
    shown = cli.text("quota", "show", name)
    assert shown == "objects:       1\nobjects limit: 1\nsize:          5 B\nsize limit:    5 B\n"
    with refused(403, "QuotaExceeded"):
        make_client(store.s3).put_object(Bucket=name, Key="other", Body=b"1")
    said = cli.fails("quota", "set", name, "--bytes", "4")
    assert "QUOTA_BELOW_USAGE" in said and "cairn quota show" in said
    assert cli.text("quota", "show", name) == shown
    for wrong in ([], ["--bytes", "10G"], ["--bytes", "-1"], ["--objects", "1KiB"], ["--bytes", "16384PiB"]):
        cli.fails("quota", "set", name, *wrong, code=WRONG_USAGE)
    assert "BUCKET_NOT_FOUND" in cli.fails("quota", "set", f"{name}-no", "--bytes", "1")


def test_the_audit_trail(cli: Cli, store: Cairn, name: str):
    """What was done through the client is found by each filter and page by page."""
    for _ in range(2):
        cli.text("bucket", "create", name)
        cli.text("bucket", "delete", name)
    events = cli.json("audit", "list", "--resource", name)["events"]
    assert [event["operation"] for event in events] == ["delete_bucket", "create_bucket"] * 2
    event = events[1]
    filters = {
        "--principal": event["principal"], "--operation": event["operation"], "--result": event["result"],
        "--source-ip": event["source_ip"], "--request-id": event["request_id"], "--since": event["time"],
    }
    for option, value in filters.items():
        found = cli.json("audit", "list", "--resource", name, option, value)["events"]
        assert event in found, option
    assert event not in cli.json("audit", "list", "--until", event["time"], "--resource", name)["events"]

    done = cli.run("audit", "list", "--resource", name, "--limit", "3")
    assert done.returncode == DONE and len(done.stdout.splitlines()) == 4
    told = done.stderr.split("there may be more: ")[1].split(", or")[0].split()
    rest = cli.json("audit", "list", "--resource", name, *told)
    assert [event["id"] for event in rest["events"]] == [events[3]["id"]]
    every = cli.json("audit", "list", "--resource", name, "--limit", "1", "--all")
    assert every == {"events": events, "next_time": None, "next_id": None}
    for wrong in (["--limit", "0"], ["--result", "maybe"], ["--since", "yesterday"]):
        assert "INVALID_REQUEST" in cli.fails("audit", "list", *wrong)


def test_storage_and_verification(cli: Cli, store: Cairn, name: str, tmp_path: Path):
    """Figures for people and machines; a verification's JSON holds the proof that is written too."""
    cli.text("bucket", "create", name)
    store.s3.put(name, "key", b"x" * 3000)
    status = cli.json("storage", "status")
    assert status["capacity_bytes"] > status["available_bytes"] > 0
    assert cli.text("storage", "status").startswith("capacity:          ")
    usage = [one for one in cli.json("storage", "usage")["by_bucket"] if one["bucket"] == name]
    assert usage[0]["logical_bytes"] == 3000
    assert f"\n{name} " in cli.text("storage", "usage")
    for arguments in (["bucket", name], ["object", name, "key"]):
        path = tmp_path / arguments[0]
        verified = cli.json("verify", *arguments, "--proof", str(path))
        assert verified["proof"] == json.loads(path.read_text())
    said = cli.fails("verify", "object", name, "key", "--proof", str(tmp_path / "none" / "file"))
    assert "the proof could not be written" in said


def test_status_for_machines(cli: Cli):
    """Both answers, or readiness alone without a token."""
    status = cli.json("status")
    assert status["readiness"]["status"] == "ready" and status["system"]["name"] == "cairn"
    status = Cli(cli.endpoint, None).json("status")
    assert status["readiness"]["status"] == "ready" and status["system"] is None


def test_without_a_token_nothing_is_asked(store: Cairn):
    """An empty token is none."""
    for token in (None, ""):
        said = Cli(store.management, token).fails("bucket", "list")
        assert "SERVICE_MANAGEMENT_TOKEN is not set" in said


def test_a_wrong_token(make_store):
    """On a server of its own: guesses are slowed down for everybody at the address."""
    store = make_store().start()
    said = Cli(store.management, "wrong-token").fails("bucket", "list")
    assert "UNAUTHENTICATED" in said and "SERVICE_MANAGEMENT_TOKEN" in said
    done = Cli(store.management, "wrong-token").run("status")
    assert done.returncode == FAILED and done.stdout == "status: ready\n" and "UNAUTHENTICATED" in done.stderr


def test_a_server_that_is_gone(make_store):
    """Its own exit code, and where to look."""
    store = make_store()
    for arguments in (["status"], ["bucket", "list"], ["verify", "bucket", "b"]):
        said = Cli(store.management, store.secrets.system_token).fails(*arguments, code=NO_ANSWER)
        assert store.management in said and "--endpoint" in said


def test_the_other_ports_of_the_server(store: Cairn):
    """The data plane is not the management plane."""
    said = Cli(store.endpoint, store.secrets.system_token).fails("bucket", "list")
    assert "is not the management plane" in said
