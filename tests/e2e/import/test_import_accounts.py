"""`cairn import accounts`: old keys sign requests here, with the rights that they had."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from harness.accounts import client as client_of
from harness.boto import WHEN_REQUIRED, make_client
from harness.cli import DONE, FAILED, Cli
from harness.importer import losses
from harness.management import expect
from harness.minio_export import IamExport, allow, document, write_archive
from harness.server import Cairn

SECRETS = {name: f"secret/of+{name}=" for name in ("alice", "bob", "carol", "dave", "CI0000000000000000AB", "RO0000000000000000AB")}


@pytest.fixture
def store(own_store: Cairn) -> Cairn:
    """Each test has a store of its own, with buckets of the names at the source."""
    for bucket in ("photos", "home-alice", "home-bob"):
        own_store.s3.create_bucket(bucket)
    return own_store


def imported(cli: Cli, archive: Path, *options: str, code: int = DONE) -> dict:
    """Runs the import. Returns its report, which contains no secret."""
    done = cli.run("import", "accounts", str(archive), "--json", *options)
    assert done.returncode == code, done
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS.values())
    report = json.loads(done.stdout)
    assert report["complete"] == (code == DONE) == (report["losses"] == [])
    return report


def boto(store: Cairn, key: str) -> BaseClient:
    """A client with the keys that the source knew."""
    return make_client(client_of(store, {"access_key": key, "secret_key": SECRETS[key]}), **WHEN_REQUIRED)


def is_allowed(call: Callable, **arguments: object) -> bool:
    """Returns whether a request is allowed."""
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDenied", error
        return False
    return True


def rights(store: Cairn, key: str, bucket: str = "photos", name: str = "public/x") -> str:
    """Returns letters for what is allowed: list, read, write, delete, manage the bucket."""
    assert store.s3.put(bucket, name).status == 200
    s3 = boto(store, key)
    calls = {
        "l": lambda: is_allowed(s3.list_objects_v2, Bucket=bucket),
        "r": lambda: is_allowed(s3.get_object, Bucket=bucket, Key=name),
        "w": lambda: is_allowed(s3.put_object, Bucket=bucket, Key=name, Body=b""),
        "d": lambda: is_allowed(s3.delete_object, Bucket=bucket, Key=name),
        "m": lambda: is_allowed(s3.get_bucket_versioning, Bucket=bucket),
    }
    return "".join(letter for letter, call in calls.items() if call())


def state(store: Cairn) -> list:
    """Everything that the import could change."""
    return [store.admin.get(path).json() for path in ("/service-accounts", "/policies", "/public-access")]


def test_old_keys_have_their_rights_here(cli: Cli, store: Cairn, tmp_path: Path):
    """Users, groups, service accounts with and without session policies, disabled ones. A dry run says the same and does nothing."""
    export = IamExport()
    export.policies["photos-rw"] = document(
        allow(["s3:ListBucket"], "photos"), allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "photos/*"),
    )
    export.policies["home"] = document(allow(["s3:*"], "home-${aws:username}", "home-${aws:username}/*"))
    export.policies["no-deletes"] = document(allow("s3:DeleteObject", "photos/public/*", effect="Deny"))
    export.user("alice", SECRETS["alice"], "photos-rw", "home")
    export.user("bob", SECRETS["bob"], "readonly", "home")
    export.user("carol", SECRETS["carol"], "readwrite", status="disabled")
    export.user("dave", SECRETS["dave"])
    export.group("team", ["alice", "dave"], "no-deletes")
    export.group("writers", ["dave"], "writeonly")
    export.group("off", ["dave"], "readwrite", status="disabled")
    export.service("CI0000000000000000AB", SECRETS["CI0000000000000000AB"], "alice", name="ci", description="CI runner", groups=["team"])
    session = document(allow(["s3:GetObject", "s3:PutObject"], "photos/public/*"), allow("s3:GetObject", "home-bob/*"))
    export.service("RO0000000000000000AB", SECRETS["RO0000000000000000AB"], "alice", session, name="ro")
    archive = export.write(tmp_path / "iam.zip")

    before = state(store)
    planned = imported(cli, archive, "--dry-run")
    assert planned["dry_run"] and state(store) == before
    done = imported(cli, archive)
    assert done | {"dry_run": True} == planned

    expected = {
        "alice": ("lrw", "lrwdm", ""), "bob": ("r", "r", "lrwdm"), "dave": ("w", "w", "w"),
        "CI0000000000000000AB": ("lrw", "lrwdm", ""), "RO0000000000000000AB": ("rw", "", ""),
    }
    for key, (photos, home_of_alice, home_of_bob) in expected.items():
        found = rights(store, key), rights(store, key, "home-alice", "x"), rights(store, key, "home-bob", "x")
        assert found == (photos, home_of_alice, home_of_bob), key
    assert rights(store, "alice", name="private") == "lrwd"
    assert rights(store, "RO0000000000000000AB", name="private") == ""
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        boto(store, "carol").list_objects_v2(Bucket="photos")

    accounts = {account["name"]: account for account in store.admin.get("/service-accounts").json()["service_accounts"]}
    assert set(accounts) == {"alice", "bob", "carol", "dave", "ci", "ro"}
    assert accounts["ci"]["description"] == "CI runner" and not accounts["carol"]["enabled"] and accounts["alice"]["enabled"]
    wider = {
        (policy["name"], difference["includes"]): difference["actions"]
        for policy in done["policies"] for difference in policy["wider"]
    }
    assert "s3:PutObjectRetention" in wider["photos-rw", "s3:PutObject"]
    assert "s3:AbortMultipartUpload" in wider["photos-rw", "s3:DeleteObject"] and ("home (alice)", "s3:PutObject") not in wider

    after = state(store)
    again = imported(cli, archive)
    assert {line["result"] for line in again["accounts"] + again["policies"]} == {"unchanged"} and state(store) == after


def test_what_cannot_be_expressed_is_refused_by_name(cli: Cli, store: Cairn, tmp_path: Path):
    """And nothing is wider for it: without a policy that denies something, an account gets none at all."""
    export = IamExport()
    export.policies["prefix"] = document(allow("s3:ListBucket", "photos", Condition={"StringLike": {"s3:prefix": ["a/*"]}}))
    export.policies["jpg"] = document(allow("s3:GetObject", "photos/*.jpg"))
    export.policies["others"] = document({"Effect": "Allow", "NotAction": ["s3:DeleteObject"], "Resource": ["arn:aws:s3:::*"]})
    export.policies["deny-odd"] = document(allow("s3:GetObject", "photos/*.key", effect="Deny"))
    export.policies["abort"] = document(allow(["s3:PutObject", "s3:AbortMultipartUpload"], "photos/*"))
    export.user("alice", SECRETS["alice"], "prefix", "jpg", "readonly")
    export.user("bob", SECRETS["bob"], "readwrite", "deny-odd")
    export.user("carol", SECRETS["carol"], "others", "abort", "gone")
    export.user("dave", SECRETS["dave"], "consoleAdmin")
    session = document(allow("s3:GetObject", "photos/*", Condition={"Bool": {"aws:SecureTransport": "true"}}))
    export.service("RO0000000000000000AB", SECRETS["RO0000000000000000AB"], "dave", session)
    export.service("CI0000000000000000AB", SECRETS["CI0000000000000000AB"], "minioadmin")
    export.sts_mappings["cn=erin,dc=example"] = {"version": 1, "policy": "readonly"}
    archive = export.write(tmp_path / "iam.zip")
    report = imported(cli, archive, code=FAILED)
    reasons = losses(report)
    for kind, name, part in (
        ("policy", "prefix", "StringLike on s3:prefix"), ("policy", "jpg", "photos/*.jpg"), ("policy", "others", "NotAction"),
        ("policy", "deny-odd", "photos/*.key"), ("policy", "abort", "s3:AbortMultipartUpload on photos/*"),
        ("policy", "gone", "does not contain it"), ("policy", "consoleAdmin", "admin:*"), ("account", "alice", "jpg was refused"),
        ("account", "bob", "gets no policies"), ("account", "carol", "others was refused"),
        ("account", "RO0000000000000000AB", "SecureTransport"), ("account", "CI0000000000000000AB", "minioadmin is not in the export"),
        ("mapping", "cn=erin,dc=example", "LDAP"),
    ):
        assert part in reasons[kind, name], (kind, name)
    assert not any(name in ("readonly", "readwrite", "writeonly", "diagnostics") for _, name in reasons)
    for key, expected in {
        "alice": "r", "bob": "", "carol": "w", "dave": "lrwdm", "RO0000000000000000AB": "", "CI0000000000000000AB": "",
    }.items():
        assert rights(store, key) == expected, key
    # The root user is named by the person who moves.
    again = imported(cli, archive, "--root", "minioadmin", code=FAILED)
    assert ("account", "CI0000000000000000AB") not in losses(again)
    assert rights(store, "CI0000000000000000AB") == "lrwdm"


def test_what_is_here_already_is_not_overwritten(cli: Cli, store: Cairn, tmp_path: Path):
    """A policy and accounts with the same names, and a key that is taken, are left as they are and named."""
    admin = store.admin
    statement = {"effect": "deny", "actions": ["s3:PutObject"], "resources": ["bucket:photos/*"]}
    own_policy = admin.post("/policies", {"name": "team", "description": "mine", "statements": [statement]}).json()
    admin.post("/service-accounts", {"name": "bob"})
    admin.post("/service-accounts", {"name": "other", "credential": {"access_key": "carol", "secret_key": "another-secret"}})
    export = IamExport()
    export.policies["team"] = document(allow("s3:GetObject", "photos/*"))
    export.user("alice", SECRETS["alice"], "team")
    export.user("bob", SECRETS["bob"], "team")
    export.user("carol", SECRETS["carol"], "readonly")
    export.user("a b", "a secret with spaces")
    export.user("dave", "short", "readonly")
    export.user(store.secrets.root_access_key, "a-secret-of-root")
    reasons = losses(imported(cli, export.write(tmp_path / "iam.zip"), code=FAILED))
    for kind, name, part in (
        ("policy", "team", "of this name"), ("account", "alice", "not attached"), ("account", "bob", "ALREADY_EXISTS"),
        ("account", "carol", "belongs to the account other"), ("account", "a b", "not possible"), ("account", "dave", "not possible"),
        ("account", store.secrets.root_access_key, "ACCESS_KEY_EXISTS"),
    ):
        assert part in reasons[kind, name], (kind, name)
    assert admin.get(f"/policies/{own_policy['id']}").json()["statements"] == [statement]
    names = {account["name"]: account["policies"] for account in admin.get("/service-accounts").json()["service_accounts"]}
    assert names == {"alice": [], "bob": [], "other": []}


def test_a_later_export_is_taken_over(cli: Cli, store: Cairn, tmp_path: Path):
    """Changed policies replace those of an earlier import; an account that was disabled there is disabled here, and no other is enabled."""
    export = IamExport()
    export.policies["team"] = document(allow("s3:GetObject", "photos/*"))
    export.user("alice", SECRETS["alice"], "team")
    export.user("bob", SECRETS["bob"], "team")
    imported(cli, export.write(tmp_path / "iam.zip"))
    cli.text("service-account", "disable", "bob")
    assert rights(store, "alice") == "r"
    export.policies["team"] = document(allow("s3:PutObject", "photos/*"))
    report = imported(cli, export.write(tmp_path / "iam.zip"))
    assert [line["result"] for line in report["policies"]] == ["updated"] and rights(store, "alice") == "w"
    export.user("alice", SECRETS["alice"], "team", status="disabled")
    imported(cli, export.write(tmp_path / "iam.zip"))
    enabled = [account["enabled"] for account in store.admin.get("/service-accounts").json()["service_accounts"]]
    assert enabled == [False, False]


def test_rights_that_were_tightened_here_stay(cli: Cli, store: Cairn, tmp_path: Path):
    """A repeated import neither replaces a policy that was edited here nor attaches one that was detached, and names both."""
    export = IamExport()
    export.policies["team"] = document(allow(["s3:GetObject", "s3:PutObject"], "photos/*"))
    export.policies["more"] = document(allow("s3:DeleteObject", "photos/*"))
    export.user("alice", SECRETS["alice"], "team,more")
    imported(cli, export.write(tmp_path / "iam.zip"))
    admin = store.admin
    policies = {policy["name"]: policy for policy in expect(admin.get("/policies"), 200)["policies"]}
    team, more = policies["team"], policies["more"]
    (alice,) = expect(admin.get("/service-accounts"), 200)["service_accounts"]
    tight = {"name": "team", "description": team["description"], "statements": [team["statements"][0] | {"actions": ["s3:GetObject"]}]}
    expect(admin.put(f"/policies/{team['id']}", tight), 200)
    expect(admin.delete(f"/policies/{more['id']}/bindings/{alice['id']}"), 204)
    for archive in (export, export):
        reasons = losses(imported(cli, archive.write(tmp_path / "iam.zip"), code=FAILED))
        assert "changed here" in reasons["policy", "team"] and "the policy more is not attached to it here" in reasons["account", "alice"]
        assert rights(store, "alice") == "r"
    export.policies["team"] = document(allow(["s3:GetObject", "s3:DeleteObject"], "photos/*"))
    reasons = losses(imported(cli, export.write(tmp_path / "iam.zip"), code=FAILED))
    assert "of this name is here already" in reasons["policy", "team"] and rights(store, "alice") == "r"
    # What the source has given her since comes.
    export.policies["team"] = document(allow(["s3:GetObject", "s3:PutObject"], "photos/*"))
    export.policies["lists"] = document(allow("s3:ListBucket", "photos"))
    export.user("alice", SECRETS["alice"], "team,more,lists")
    report = imported(cli, export.write(tmp_path / "iam.zip"), code=FAILED)
    (line,) = report["accounts"]
    assert (line["result"], sorted(line["policies"])) == ("updated", ["lists", "team"]) and rights(store, "alice") == "lr"


def test_keys_expire_when_they_do_at_the_source(cli: Cli, store: Cairn, tmp_path: Path):
    """A later change of the time is named, and an account whose key has expired is left out."""
    export = IamExport()
    export.user("alice", SECRETS["alice"], "readonly")
    export.service("CI0000000000000000AB", SECRETS["CI0000000000000000AB"], "alice", name="ci", expiration="2099-06-01T02:00:00.5Z")
    export.service("RO0000000000000000AB", SECRETS["RO0000000000000000AB"], "alice", name="ro", expiration="2020-06-01T00:00:00Z")
    reasons = losses(imported(cli, export.write(tmp_path / "iam.zip"), code=FAILED))
    assert list(reasons) == [("account", "RO0000000000000000AB")] and "expired" in reasons["account", "RO0000000000000000AB"]
    shown = {account["name"]: account["credentials"][0] for account in store.admin.get("/service-accounts").json()["service_accounts"]}
    assert {name: one.get("expires_at") for name, one in shown.items()} == {"alice": None, "ci": "2099-06-01T02:00:00.500Z"}
    assert is_allowed(boto(store, "CI0000000000000000AB").list_buckets)
    export.service("CI0000000000000000AB", SECRETS["CI0000000000000000AB"], "alice", name="ci", expiration="2098-06-01T00:00:00Z")
    reasons = losses(imported(cli, export.write(tmp_path / "iam.zip"), code=FAILED))
    assert "there: 2098-06-01T00:00:00.000Z" in reasons["expiration", "CI0000000000000000AB"]


def test_networks_are_taken_over(cli: Cli, store: Cairn, tmp_path: Path):
    """A condition on the client's address."""
    export = IamExport()
    for name, network in (("here", "127.0.0.1/8"), ("elsewhere", "10.0.0.0/8")):
        export.policies[name] = document(allow("s3:GetObject", "photos/*", Condition={"IpAddress": {"aws:SourceIp": [network]}}))
    export.user("alice", SECRETS["alice"], "here")
    export.user("bob", SECRETS["bob"], "elsewhere")
    imported(cli, export.write(tmp_path / "iam.zip"))
    assert (rights(store, "alice"), rights(store, "bob")) == ("r", "")


def test_hostile_archives_are_refused(cli: Cli, store: Cairn, tmp_path: Path):
    """Each ends with a message that quotes no secret, and changes nothing."""
    users = {"alice": {"secretKey": SECRETS["alice"], "status": "enabled"}}
    whole = write_archive(tmp_path / "whole.zip", {"iam-assets/users.json": json.dumps(users)})
    archives = {
        "is no IAM export": write_archive(tmp_path / "other.zip", {"photos/versioning.xml": "<a/>"}),
        "is not as MinIO writes it": write_archive(tmp_path / "list.zip", {"iam-assets/users.json": json.dumps([users])}),
        "longer than 64 MiB": write_archive(tmp_path / "bomb.zip", {"iam-assets/users.json": b" " * (65 << 20)}),
        "more than 100000 entries": tmp_path / "many.zip",
        "could not be read": tmp_path / "cut.zip",
        "No such file": tmp_path / "missing.zip",
    }
    (tmp_path / "cut.zip").write_bytes(whole.read_bytes()[:-30])
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(100_001):
            archive.writestr(f"{number}", b"")
    before = state(store)
    for part, archive in archives.items():
        message = cli.fails("import", "accounts", str(archive))
        assert part in message and SECRETS["alice"] not in message, message
    deep = write_archive(tmp_path / "deep.zip", {"iam-assets/policies.json": '{"a":' * 100_000})
    assert "is not as MinIO writes it" in cli.fails("import", "accounts", str(deep))
    assert state(store) == before


def test_a_token_of_another_role_changes_nothing(cli: Cli, store: Cairn, tmp_path: Path):
    """Only a system administrator may give keys. One refusal ends the command, not one for each account."""
    export = IamExport()
    export.user("alice", SECRETS["alice"], "readonly")
    archive = export.write(tmp_path / "iam.zip")
    token = cli.json("token", "create", "watch", "--role", "auditor")["token"]
    message = Cli(store.management, token).fails("import", "accounts", str(archive))
    assert "FORBIDDEN" in message and message.count("FORBIDDEN") == 1
    assert store.admin.get("/service-accounts").json()["service_accounts"] == []
