"""The command-line client with a later server, whose responses have members that this client does not know."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli import Cli
from harness.management import expect
from harness.newer_server import ADDED, newer_server
from harness.server import Cairn

BUCKET = "newer"
PLACE = f"{BUCKET}/a/key"
UNTIL = "2099-01-01T00:00:00Z"
STATEMENT = {"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{BUCKET}/*"], "source_ip": ["10.0.0.0/8"]}
RULES = {"rules": [{"allowed_origins": ["*"], "allowed_methods": ["GET"]}]}
# Text that people see: each command reads a response of another type.
COMMANDS = {
    ("bucket", "list"): BUCKET, ("bucket", "show", BUCKET): BUCKET, ("bucket", "versioning", BUCKET): "Enabled",
    ("bucket", "cors", BUCKET): "GET", ("bucket", "object-lock", BUCKET): "GOVERNANCE for 30 days", ("quota", "show", BUCKET): "1",
    ("public", "list"): "open/", ("public", "list", BUCKET): "open/",
    ("object", "ls", f"{BUCKET}/"): "a/", ("object", "stat", PLACE): UNTIL[:10], ("object", "ls", f"{BUCKET}/", "--versions"): "a/",
    ("object", "retention", PLACE, "--mode", "governance", "--until", UNTIL): UNTIL[:10], ("object", "legal-hold", PLACE, "off"): "",
    ("policy", "show", "newer-reads"): "10.0.0.0/8",
    ("lifecycle", "list", BUCKET): "logs/", ("lifecycle", "status"): "", ("policy", "list"): "newer-reads", ("service-account", "list"): "newer-account",
    ("service-account", "show", "newer-account"): "newer-reads", ("audit", "list"): "create_bucket", ("event", "list"): "object.created",
    ("webhook", "list"): "", ("share", "list"): PLACE, ("token", "list"): "", ("storage", "status"): "ok", ("storage", "usage"): "",
    ("refused", "list"): "", ("status",): "ready", ("history",): "",
    ("policy", "check", "--account", "newer-account", "--action", "s3:GetObject", "--resource", PLACE, "--source-ip", "10.1.2.3"): "10.0.0.0/8",
}


@pytest.fixture(scope="module")
def later(make_module_store) -> Iterator[tuple[Cairn, Cli]]:
    """A server with something of every kind, and the client of what stands in front of it."""
    store = make_module_store().start()
    put = lambda path, body: expect(store.admin.put(path, body), 200)
    expect(store.admin.post("/buckets", {"name": BUCKET, "object_lock": True}), 201)
    assert store.s3.put(BUCKET, "a/key", b"1").status == 200
    put(f"/buckets/{BUCKET}/object-retention/a/key", {"retention": {"mode": "GOVERNANCE", "retain_until": UNTIL}})
    put(f"/buckets/{BUCKET}/object-lock", {"default_retention": {"mode": "GOVERNANCE", "days": 30}})
    put(f"/buckets/{BUCKET}/cors", RULES)
    put(f"/buckets/{BUCKET}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 1_000_000}, "objects": {"mode": "unlimited"}}})
    put(f"/buckets/{BUCKET}/public-access", {"rules": [{"prefix": "open/", "read": True, "list": True}], "blocked": False})
    rule = {"prefix": "logs/", "expiration": 30, "tags": [{"key": "k", "value": "v"}]}
    expect(store.admin.post(f"/buckets/{BUCKET}/lifecycle", rule), 201)
    with newer_server(store) as endpoint:
        cli = Cli(endpoint, store.secrets.system_token)
        cli.text("service-account", "create", "newer-account")
        policy = {"name": "newer-reads", "description": "", "statements": [STATEMENT]}
        made = cli.json("policy", "create", "-", stdin=json.dumps(policy))
        cli.text("policy", "attach", made["id"], "newer-account")
        cli.text("share", "create", PLACE)
        assert made[ADDED] and made["statements"][0][ADDED], "it must look like a later server"
        yield store, cli


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_members_that_were_added_later_are_ignored(later: tuple[Cairn, Cli], command: tuple[str, ...]):
    """Regression: rules, quotas, retentions and statements with a member that the client did not know were errors."""
    _, cli = later
    text = cli.text(*command)
    assert COMMANDS[command] in text and ADDED not in text


def test_what_the_client_does_not_know_stays_in_json(later: tuple[Cairn, Cli]):
    """It is for other programs, which may know it."""
    _, cli = later
    (policy,) = cli.json("policy", "list")["policies"]
    assert policy[ADDED] and policy["statements"][0][ADDED]


def test_files_are_compared_without_what_the_client_does_not_know(later: tuple[Cairn, Cli], tmp_path: Path):
    """A later server would otherwise be changed by every run, and rules replaced by poorer ones."""
    store, cli = later
    file = tmp_path / "store.toml"
    file.write_text(f"""
        [[buckets]]
        name = "{BUCKET}"
        quota = {{bytes = 1_000_000, objects = "unlimited"}}
        default_retention = {{mode = "GOVERNANCE", days = 30}}
        cors = [{{allowed_origins = ["*"], allowed_methods = ["GET"]}}]
        lifecycle = [{{prefix = "logs/", expiration = 30, tags = [{{key = "k", value = "v"}}]}}]
        public = [{{prefix = "open/", list = true}}]
        [[policies]]
        name = "newer-reads"
        statements = [{{effect = "allow", actions = ["s3:GetObject"], resources = ["bucket:{BUCKET}/*"], source_ip = ["10.0.0.0/8"]}}]
        [[accounts]]
        name = "newer-account"
        policies = ["newer-reads"]
    """)
    assert "nothing to change" in cli.text("apply", str(file))
    file.write_text(f'[[buckets]]\nname = "{BUCKET}"\nversioning = "Suspended"\n')
    assert "object lock requires versioning" in cli.fails("apply", str(file))
    assert expect(store.admin.get(f"/buckets/{BUCKET}"), 200)["versioning"] == "Enabled"


def test_server_refuses_what_the_client_ignores(later: tuple[Cairn, Cli]):
    """A member that the server does not know could be a restriction."""
    store, _ = later
    policy = {"name": "newer-more", "description": "", "statements": [STATEMENT | {ADDED: 1}]}
    error = store.admin.post("/policies", policy).json()["error"]
    assert error["code"] == "INVALID_REQUEST" and f"unknown field `{ADDED}`, expected one of `effect`" in error["message"]
