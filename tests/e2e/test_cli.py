"""Attacks the command-line client against a real server: the life of everything it manages, refusals, exit codes, JSON."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client, refused
from harness.s3 import S3
from harness.server import BINARY, LOOPBACK, Cairn, clean_environment
from harness.sigv4 import Credential

TIMEOUT = 60
DONE, FAILED, WRONG_USAGE, NO_ANSWER = range(4)
ROLES = ("auditor", "storage_admin", "system_admin")
_names = itertools.count(1)
POLICY = {
    "name": "read", "description": "reads one bucket",
    "statements": [
        {"effect": "allow", "actions": ["s3:ListBucket"], "resources": ["bucket:{bucket}"]},
        {"effect": "allow", "actions": ["s3:GetObject", "s3:PutObject"], "resources": ["bucket:{bucket}/*"]},
    ],
}


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

def policy_of(name: str, bucket: str) -> str:
    """A policy under a name of the test's own, for one bucket."""
    return json.dumps(POLICY | {"name": name}).replace("{bucket}", bucket)


def client_of(store: Cairn, credential: dict) -> BaseClient:
    """boto3 with a pair of keys as the command printed it."""
    keys = Credential(credential["access_key"], credential["secret_key"])
    return make_client(S3(LOOPBACK, store.s3_port, keys))


def test_the_life_of_an_account(cli: Cli, store: Cairn, name: str, tmp_path: Path):
    """The printed keys do what the policy says, for as long as account, credential and binding are there."""
    cli.text("bucket", "create", name)
    made = cli.json("service-account", "create", name, "--description", "for the test")
    account = made["service_account"]["id"]
    client = client_of(store, made["credential"])
    put = {"Bucket": name, "Key": "k", "Body": b"x"}
    with refused(403, "AccessDenied"):
        client.put_object(**put)

    file = tmp_path / "policy.json"
    file.write_text(policy_of(name, name))
    policy = cli.json("policy", "create", str(file))["id"]
    assert cli.text("policy", "attach", policy, account) == f"policy {policy} is attached to {account}\n"
    client.put_object(**put)
    shown = cli.text("policy", "show", name)
    assert f"  allow s3:ListBucket on bucket:{name}\n" in shown and f"attached to:\n  {account}\n" in shown
    assert cli.json("policy", "show", policy)["attached_to"] == [account]
    shown = cli.text("service-account", "show", name)
    assert "description: for the test\n" in shown and made["credential"]["access_key"] in shown and policy in shown
    assert made["credential"]["secret_key"] not in shown
    said = cli.fails("policy", "delete", name)
    assert "POLICY_IN_USE" in said and "cairn policy detach" in said

    cli.text("policy", "detach", name, name)
    with refused(403, "AccessDenied"):
        client.put_object(**put)
    cli.text("policy", "attach", name, name)
    assert cli.text("service-account", "disable", name) == f"service account {name} is disabled\n"
    with refused(403):
        client.put_object(**put)
    cli.text("service-account", "enable", account)
    client.put_object(**put)

    rotated = cli.json("service-account", "rotate", name)["credential"]
    second = client_of(store, rotated)
    second.put_object(**put)
    cli.text("service-account", "credential", "disable", name, made["credential"]["access_key"])
    second.put_object(**put)
    with refused(403):
        client.put_object(**put)
    cli.text("service-account", "credential", "enable", account, made["credential"]["id"])
    client.put_object(**put)
    cli.text("service-account", "credential", "delete", name, made["credential"]["id"])
    with refused(403):
        client.put_object(**put)
    temporary = cli.json("service-account", "temporary-credential", name, "--expires-in", "1m")["credential"]
    assert temporary["expires_at"] > temporary["created_at"]
    client_of(store, temporary).put_object(**put)

    cli.text("policy", "detach", policy, account)
    assert cli.text("policy", "delete", name) == f"policy {name} was deleted\n"
    assert cli.text("service-account", "delete", name) == f"service account {name} was deleted\n"
    with refused(403):
        second.put_object(**put)
    for command in (["show"], ["delete"], ["rotate"]):
        assert "cairn service-account list" in cli.fails("service-account", *command, name)
        assert "SERVICE_ACCOUNT_NOT_FOUND" in cli.fails("service-account", *command, account)
    assert "POLICY_NOT_FOUND" in cli.fails("policy", "show", policy)


def test_secrets_are_shown_once_to_people_too(cli: Cli, name: str):
    """With a word on it; never again by any list or record."""
    texts = [
        cli.text("service-account", "create", name),
        cli.text("service-account", "rotate", name),
        cli.text("service-account", "temporary-credential", name, "--expires-in", "900"),
        cli.text("token", "create", name, "--role", "auditor"),
    ]
    assert all("is shown this once: keep it now." in text for text in texts)
    last = [[line.split()[-1] for line in text.splitlines() if line.startswith(("secret key:", "token:"))] for text in texts]
    secrets = [secret for (secret,) in last]
    assert len(set(secrets)) == 4 and all(len(secret) >= 40 for secret in secrets)
    for command in (["service-account", "list"], ["service-account", "show", name], ["token", "list"], ["audit", "list"]):
        for form in ([], ["--json"]):
            done = cli.run(*command, *form)
            assert done.returncode == DONE and not any(secret in done.stdout for secret in secrets)
    assert name in cli.text("service-account", "list") and name in cli.text("token", "list")
    assert "SERVICE_ACCOUNT_ALREADY_EXISTS" in cli.fails("service-account", "create", name)
    for wrong in ("59", "8d", "0"):
        assert "INVALID_REQUEST" in cli.fails("service-account", "temporary-credential", name, "--expires-in", wrong)
    cli.text("token", "delete", name)
    cli.text("service-account", "delete", name)


def test_policies_from_standard_input_and_broken_ones(cli: Cli, name: str, tmp_path: Path):
    """What is no policy is refused with the reason, and leaves nothing."""
    assert cli.json("policy", "create", "-", stdin=policy_of(name, name))["name"] == name
    twice = policy_of(name, name).replace('"effect": "allow"', '"effect": "deny", "effect": "allow"', 1)
    for broken, said in [
        ("{", "it is not JSON"), ("", "it is not JSON"), ("[]", "INVALID_REQUEST"), ("{}", "INVALID_REQUEST"),
        (twice, "stands twice"), (policy_of(name, name).replace("s3:GetObject", "s3:Everything"), "INVALID_REQUEST"),
        (policy_of(name, "*x"), "INVALID_REQUEST"),
    ]:
        file = tmp_path / "broken.json"
        file.write_text(broken)
        assert said in cli.fails("policy", "create", str(file)), broken
    assert "could not be read" in cli.fails("policy", "create", str(tmp_path / "none"))
    listed = [policy for policy in cli.json("policy", "list")["policies"] if policy["name"] == name]
    assert len(listed) == 1 and name in cli.text("policy", "list")
    cli.text("policy", "delete", listed[0]["id"])


def test_tokens_do_what_their_role_allows(cli: Cli, store: Cairn, name: str):
    """And the refusal names the role that is needed."""
    made = {role: cli.json("token", "create", f"{name}-{role}", "--role", role, "--expires-in", "1h") for role in ROLES}
    clients = {role: Cli(store.management, token["token"]) for role, token in made.items()}
    auditor, storage, system = (clients[role] for role in ROLES)
    assert "role system_admin or storage_admin\n" in auditor.fails("bucket", "create", name)
    assert "role system_admin\n" in auditor.fails("service-account", "create", name)
    assert "role system_admin\n" in auditor.fails("token", "list")
    assert "role system_admin or auditor\n" in storage.fails("audit", "list")
    assert "role system_admin or auditor\n" in storage.fails("policy", "list")
    for command in (["bucket", "list"], ["service-account", "list"], ["policy", "list"], ["audit", "list"], ["storage", "usage"]):
        assert auditor.run(*command).returncode == DONE, command
    storage.text("bucket", "create", name)
    storage.text("bucket", "delete", name)
    system.text("service-account", "create", name)
    system.text("service-account", "delete", name)
    for role in ROLES:
        cli.text("token", "delete", f"{name}-{role}")
        assert "UNAUTHENTICATED" in clients[role].fails("storage", "status")
    assert "TOKEN_NOT_FOUND" in cli.fails("token", "delete", made["auditor"]["management_token"]["id"])
    assert "expected system_admin" in cli.fails("token", "create", name, "--role", "root", code=WRONG_USAGE)


def test_a_name_that_several_have(cli: Cli, name: str):
    """Is no way to name one of them; nothing is done."""
    ids = [cli.json("policy", "create", "-", stdin=policy_of(name, name))["id"] for _ in range(2)]
    assert "stands for 2" in cli.fails("policy", "delete", name)
    cli.text("policy", "delete", ids[0])
    assert cli.json("policy", "show", name)["id"] == ids[1]
    cli.text("policy", "delete", name)


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
    assert done.returncode == 0 and done.stdout == "status: ready\n" and "UNAUTHENTICATED" in done.stderr


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
