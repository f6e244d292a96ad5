"""Command-line client against a real server: resources, errors, exit codes, JSON."""

import itertools
import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client, refused
from harness.certificates import Authority, Pair
from harness.cli import DONE, NO_ANSWER, WRONG_USAGE, Cli
from harness.management import expect
from harness.s3 import S3
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential

ROLES = ("auditor", "storage_admin", "system_admin")
_names = itertools.count(1)
POLICY = {
    "name": "read", "description": "reads one bucket",
    "statements": [
        {"effect": "allow", "actions": ["s3:ListBucket"], "resources": ["bucket:{bucket}"]},
        {"effect": "allow", "actions": ["s3:GetObject", "s3:PutObject"], "resources": ["bucket:{bucket}/*"]},
    ],
}


@pytest.fixture
def name() -> str:
    """A name that no resource has yet."""
    return f"cli-{os.getpid()}-{next(_names)}"


def test_bucket_commands(cli: Cli, name: str):
    """Creates, lists, shows, versions and deletes a bucket. A second creation or deletion fails."""
    assert cli.json("bucket", "create", name)["versioning"] == "Unversioned"
    message = cli.fails("bucket", "create", name)
    assert "BUCKET_ALREADY_EXISTS" in message and "cairn bucket show" in message
    assert name in [bucket["name"] for bucket in cli.json("bucket", "list")["buckets"]]
    lines = cli.text("bucket", "list").splitlines()
    assert lines[0].split() == ["NAME", "CREATED", "VERSIONING", "LOCK", "OBJECTS", "SIZE"]
    assert [line for line in lines if line.startswith(f"{name} ") and "Unversioned" in line]
    assert f"name:               {name}\n" in cli.text("bucket", "show", name)

    assert cli.text("bucket", "versioning", name) == "versioning: Unversioned\n"
    assert cli.json("bucket", "versioning", name, "enabled") == {"versioning": "Enabled"}
    assert cli.text("bucket", "versioning", name, "suspended") == "versioning: Suspended\n"
    assert "expected enabled or suspended" in cli.fails("bucket", "versioning", name, "unversioned", code=WRONG_USAGE)

    assert cli.text("bucket", "delete", name) == f"bucket {name} was deleted\n"
    for command in (("show",), ("delete",), ("versioning",)):
        message = cli.fails("bucket", *command, name)
        assert "BUCKET_NOT_FOUND" in message and "cairn bucket list" in message
    cli.text("bucket", "create", name)
    assert cli.text("bucket", "delete", name, "--json") == "", "the response has no body"


def test_object_lock_enables_versioning_permanently(cli: Cli, name: str):
    """Versioning of such a bucket cannot be suspended."""
    bucket = cli.json("bucket", "create", name, "--object-lock")
    assert bucket["object_lock"] is True and bucket["versioning"] == "Enabled"
    assert "object lock" in cli.fails("bucket", "versioning", name, "suspended")
    cli.text("bucket", "delete", name)


def test_deleting_a_bucket_with_objects_is_refused(cli: Cli, store: Cairn, name: str):
    """The message says what to do."""
    cli.text("bucket", "create", name)
    store.s3.put(name, "key", b"12345")
    message = cli.fails("bucket", "delete", name)
    assert "BUCKET_NOT_EMPTY" in message and "old versions" in message
    assert cli.json("bucket", "show", name)["usage"] == {"bytes": 5, "objects": 1}


@pytest.mark.parametrize("wrong", ["", "UPPER", "a", "..", "a/b", "ä" * 5, "x" * 64, "a?b", "%2e%2e"])
def test_invalid_bucket_names_are_refused(cli: Cli, wrong: str):
    """The server refuses them. No name reaches another route."""
    for command in ("create", "show", "delete"):
        assert cli.fails("bucket", command, wrong).startswith("cairn: ")


def test_quota_commands(cli: Cli, store: Cairn, name: str):
    """An omitted dimension does not change. Sizes may have units. A limit below the present usage is refused."""
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
    message = cli.fails("quota", "set", name, "--bytes", "4")
    assert "QUOTA_BELOW_USAGE" in message and "cairn quota show" in message
    assert cli.text("quota", "show", name) == shown
    for wrong in ([], ["--bytes", "10G"], ["--bytes", "-1"], ["--objects", "1KiB"], ["--bytes", "16384PiB"]):
        cli.fails("quota", "set", name, *wrong, code=WRONG_USAGE)
    assert "BUCKET_NOT_FOUND" in cli.fails("quota", "set", f"{name}-no", "--bytes", "1")

def policy_of(name: str, bucket: str) -> str:
    """Returns a policy document with this name for one bucket."""
    return json.dumps(POLICY | {"name": name}).replace("{bucket}", bucket)


def client_of(store: Cairn, credential: dict) -> BaseClient:
    """Returns a boto3 client with the keys that a command printed."""
    keys = Credential(credential["access_key"], credential["secret_key"])
    return make_client(S3(LOOPBACK, store.s3_port, keys))


def test_service_account_and_policy_commands(cli: Cli, store: Cairn, name: str, tmp_path: Path):
    """The printed keys allow what the policy allows, while account, credential and attachment exist and are enabled."""
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
    message = cli.fails("policy", "delete", name)
    assert "POLICY_IN_USE" in message and "cairn policy detach" in message

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


def test_secrets_are_printed_once(cli: Cli, name: str):
    """The output says so. No list, no record and no audit event shows them again."""
    texts = [
        cli.text("service-account", "create", name),
        cli.text("service-account", "rotate", name),
        cli.text("service-account", "temporary-credential", name, "--expires-in", "900"),
        cli.text("token", "create", name, "--role", "auditor"),
    ]
    assert all("is shown only once: store it now." in text for text in texts)
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


def test_invalid_policies_are_refused(cli: Cli, name: str, tmp_path: Path):
    """A valid policy is read from standard input. An invalid one is refused with the reason and creates nothing."""
    assert cli.json("policy", "create", "-", stdin=policy_of(name, name))["name"] == name
    twice = policy_of(name, name).replace('"effect": "allow"', '"effect": "deny", "effect": "allow"', 1)
    for broken, message in [
        ("{", "it is not JSON"), ("", "it is not JSON"), ("[]", "INVALID_REQUEST"), ("{}", "INVALID_REQUEST"),
        (twice, "duplicate field"), (policy_of(name, name).replace("s3:GetObject", "s3:Everything"), "INVALID_REQUEST"),
        (policy_of(name, "*x"), "INVALID_REQUEST"),
    ]:
        file = tmp_path / "broken.json"
        file.write_text(broken)
        assert message in cli.fails("policy", "create", str(file)), broken
    assert "could not be read" in cli.fails("policy", "create", str(tmp_path / "none"))
    listed = [policy for policy in cli.json("policy", "list")["policies"] if policy["name"] == name]
    assert len(listed) == 1 and name in cli.text("policy", "list")
    cli.text("policy", "delete", listed[0]["id"])


def test_tokens_allow_what_their_role_allows(cli: Cli, store: Cairn, name: str):
    """A refusal names the required roles."""
    made = {role: cli.json("token", "create", f"{name}-{role}", "--role", role, "--expires-in", "1h") for role in ROLES}
    clients = {role: Cli(store.management, token["token"]) for role, token in made.items()}
    auditor, storage, system = (clients[role] for role in ROLES)
    assert "requires the role system_admin or storage_admin\n" in auditor.fails("bucket", "create", name)
    assert "requires the role system_admin\n" in auditor.fails("service-account", "create", name)
    assert "requires the role system_admin\n" in auditor.fails("token", "list")
    assert "requires the role system_admin or auditor\n" in storage.fails("audit", "list")
    assert "requires the role system_admin or auditor\n" in storage.fails("policy", "list")
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


def test_ambiguous_policy_names_are_refused(cli: Cli, name: str):
    """A name shared by two policies does not delete either of them."""
    ids = [cli.json("policy", "create", "-", stdin=policy_of(name, name))["id"] for _ in range(2)]
    assert "2 policies have the name" in cli.fails("policy", "delete", name)
    cli.text("policy", "delete", ids[0])
    assert cli.json("policy", "show", name)["id"] == ids[1]
    cli.text("policy", "delete", name)


def test_audit_trail_can_be_filtered_and_paged(cli: Cli, store: Cairn, name: str):
    """Events of the client's own requests are found by each filter and page by page."""
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
    cursor = done.stderr.split("continue with ")[1].split(", or")[0].split()
    rest = cli.json("audit", "list", "--resource", name, *cursor)
    assert [event["id"] for event in rest["events"]] == [events[3]["id"]]
    every = cli.json("audit", "list", "--resource", name, "--limit", "1", "--all")
    assert every == {"events": events, "next_time": None, "next_id": None}
    for wrong in (["--limit", "0"], ["--result", "maybe"]):
        assert "expected" in cli.fails("audit", "list", *wrong, code=WRONG_USAGE)


def test_audit_events_are_found_by_age_date_bucket_and_key(cli: Cli, store: Cairn, name: str):
    """`--since 1h`, plain dates, and the key of an object without its bucket. A wrong time is refused before anything is sent."""
    cli.text("bucket", "create", name)
    key = f"year/{name}.jpg"
    expect(store.admin.put(f"/buckets/{name}/object/{key}", data=b"1"), 201)

    def found(*options: str) -> list[str]:
        return [event["operation"] for event in cli.json("audit", "list", *options)["events"]]

    today = datetime.now(timezone.utc).date()
    tomorrow = today + timedelta(days=1)
    both = ["upload_object", "create_bucket"]
    for since in ("1h", "2d", "900s", (today - timedelta(days=1)).isoformat()):
        assert found("--bucket", name, "--since", since) == both, since
    assert found("--bucket", name, "--until", tomorrow.isoformat()) == both
    assert found("--bucket", name, "--until", "1h") == [] and found("--bucket", name, "--since", tomorrow.isoformat()) == []
    assert found("--key", key) == found("--key", key, "--bucket", name) == ["upload_object"]
    assert found("--key", key, "--bucket", name + "-other") == found("--key", name) == []
    for wrong in ("the day before", "3600", "2026-02-30"):
        done = cli.run("audit", "list", "--since", wrong)
        assert done.returncode == 2 and "such as 1h" in done.stderr, done.stderr


def test_storage_and_verify_commands(cli: Cli, store: Cairn, name: str, tmp_path: Path):
    """Status and usage as text and JSON. The JSON of `verify` includes the proof that is written to a file."""
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
    message = cli.fails("verify", "object", name, "key", "--proof", str(tmp_path / "none" / "file"))
    assert "the proof could not be written" in message


def test_status_as_json(cli: Cli):
    """Readiness and system information, or only readiness without a token."""
    status = cli.json("status")
    assert status["readiness"]["status"] == "ready" and status["system"]["name"] == "cairn"
    status = Cli(cli.endpoint, None).json("status")
    assert status["readiness"]["status"] == "ready" and status["system"] is None


def test_commands_without_a_token_fail_early(store: Cairn):
    """An empty token counts as missing."""
    for token in (None, ""):
        message = Cli(store.management, token).fails("bucket", "list")
        assert "SERVICE_MANAGEMENT_TOKEN is not set" in message


def test_wrong_token_is_refused(make_store):
    """Needs its own server, because wrong tokens throttle every client at the same address."""
    store = make_store().start()
    message = Cli(store.management, "wrong-token").fails("bucket", "list")
    assert "UNAUTHENTICATED" in message and "SERVICE_MANAGEMENT_TOKEN" in message
    done = Cli(store.management, "wrong-token").run("status")
    assert done.returncode == 0 and done.stdout == "status: ready\n" and "UNAUTHENTICATED" in done.stderr


def test_unreachable_server_has_its_own_exit_code(make_store):
    """The message names the address and `--endpoint`."""
    store = make_store()
    for arguments in (["status"], ["bucket", "list"], ["verify", "bucket", "b"]):
        message = Cli(store.management, store.secrets.system_token).fails(*arguments, code=NO_ANSWER)
        assert store.management in message and "--endpoint" in message


def test_port_of_the_data_plane_is_refused(store: Cairn):
    """The message says that it is not the management plane."""
    message = Cli(store.endpoint, store.secrets.system_token).fails("bucket", "list")
    assert "is not the management plane" in message


def test_port_of_the_console_is_named(store: Cairn):
    """It said "log in again" to a user with the right token."""
    message = Cli(store.console, store.secrets.system_token).fails("bucket", "list")
    assert "is the console" in message and "port 7601" in message


def test_a_server_with_tls_says_so(make_store, tmp_path: Path):
    """`status` said that it is not the management plane. The certificate of an authority is refused with the way out."""
    authority = Authority(tmp_path)
    own = Pair(authority.certificate, tmp_path / "authority.key")
    store = make_store(**own.environment(), SERVICE_TLS_S3_ENABLED="false").start()
    plain = store.management.replace("https", "http")
    for command in (["status"], ["bucket", "list"]):
        assert "https" in Cli(plain, store.secrets.system_token).fails(*command)
    assert f"uses TLS: use {store.management}" in Cli(plain, store.secrets.system_token).fails("status")
    message = Cli(store.management, store.secrets.system_token).fails("bucket", "list", code=NO_ANSWER)
    assert "CA:FALSE" in message
