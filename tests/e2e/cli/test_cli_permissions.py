"""The command line's permission checks, CORS rules and locks, against a real server."""

import json
from pathlib import Path

from harness.accounts import create_account, statement
from harness.cli import FAILED, WRONG_USAGE, Cli
from harness.server import Cairn

RULE = {"allowed_origins": ["https://app.example.com"], "allowed_methods": ["GET"], "allowed_headers": ["*"], "expose_headers": []}


def test_check_names_the_statement_and_what_would_allow_it(cli: Cli, store: Cairn, bucket: str):
    """The exit code is that of the verdict, so that scripts can use it."""
    readers = statement("allow", "GetObject", f"bucket:{bucket}/team*")
    account = create_account(store, readers, statement("deny", "GetObject", f"bucket:{bucket}/team/secret"))
    question = ("policy", "check", "--account", account.name, "--action", "s3:GetObject", "--resource")
    shown = cli.text(*question, f"{bucket}/team/a b")
    assert shown == cli.text(*question, f"bucket:{bucket}/team/a b"), "as policies write it"
    assert shown == f"allowed: a statement allows it\n  policy of a test, statement 1: allow s3:GetObject on bucket:{bucket}/team*\n"
    denied = cli.run(*question, f"{bucket}/team/secret")
    assert denied.returncode == FAILED and f"{account.name} may not do s3:GetObject on {bucket}/team/secret" in denied.stderr
    assert denied.stdout.startswith("denied: a statement denies it") and "statement 2: deny" in denied.stdout and "also applying:" in denied.stdout
    missing = cli.run(*question, f"{bucket}/other/*.jpg")
    assert missing.returncode == FAILED and f"would allow it:\n  allow s3:GetObject on bucket:{bucket}/other/*\n" in missing.stdout
    answer = cli.json("policy", "check", "--access-key", account.keys["access_key"], "--action", "s3:GetObject", "--resource", f"{bucket}/team")
    assert answer["allowed"] and answer["account"]["name"] == account.name
    assert "name its key" in cli.fails("policy", "check", "--account", account.name, "--action", "s3:GetObject", "--resource", bucket)
    assert "either --account or --access-key" in cli.fails("policy", "check", "--action", "s3:ListBucket", "--resource", bucket, code=WRONG_USAGE)
    listed = cli.text("service-account", "policies", account.name)
    assert listed == f"of a test\n  allow s3:GetObject on bucket:{bucket}/team*\n  deny s3:GetObject on bucket:{bucket}/team/secret\n"
    assert "every request is refused" in cli.text("service-account", "policies", create_account(store).id)


def test_policies_are_made_from_templates_and_replaced(cli: Cli, store: Cairn, bucket: str, tmp_path: Path):
    """Each template allows what it says. An update is in force at once, and what does not fit together is refused."""
    store.s3.put(bucket, "team/old", b"x")
    for template, overwrites, deletes in (("read-only", 403, 403), ("create-only", 412, 403), ("read-write", 200, 204)):
        made = cli.json("policy", "create", "--template", template, "--bucket", bucket, "--prefix", "team/")
        assert made["name"] == f"{bucket}/team/ {template}"
        account = create_account(store)
        cli.text("policy", "attach", made["id"], account.name)
        s3 = account.s3
        assert s3.get(bucket, "team/old").status == 200 and s3.list_page(bucket).status == 200
        assert s3.request("PUT", f"/{bucket}/team/{template}", body=b"new").status == (403 if template == "read-only" else 200)
        assert s3.request("PUT", f"/{bucket}/team/old", body=b"y").status == overwrites
        assert s3.request("PUT", f"/{bucket}/other", body=b"y").status == 403
        assert s3.delete(bucket, "team/old").status == deletes
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"name": "writers", "statements": [statement("allow", "PutObject", f"bucket:{bucket}/*")]}))
    assert cli.text("policy", "update", made["id"], str(file)) == f"policy {made['id']} is replaced\n"
    assert account.s3.request("PUT", f"/{bucket}/other", body=b"y").status == 200
    assert account.s3.get(bucket, "other").status == 403
    assert cli.json("policy", "update", "writers", "-", stdin=file.read_text())["attached_to"] == [account.id]
    many = cli.json("policy", "create", "--template", "read-only", "--bucket", f"{bucket}-*", "--name", "many")
    assert many["name"] == "many" and [one["resources"] for one in many["statements"]] == [[f"bucket:{bucket}-*"]] * 2
    for wrong in (
        (), ("--template", "read-only"), (str(file), "--bucket", bucket), ("--template", "all", "--bucket", bucket),
        ("--template", "read-only", "--bucket", "a*", "--prefix", "b"),
    ):
        cli.fails("policy", "create", *wrong, code=WRONG_USAGE)


def test_cors_rules_are_set_shown_and_removed(cli: Cli, bucket: str, tmp_path: Path):
    """From a file and from standard input. What the server refuses is said."""
    file = tmp_path / "cors.json"
    file.write_text(json.dumps({"rules": [RULE]}))
    assert "no CORS rules" in cli.text("bucket", "cors", bucket)
    assert "https://app.example.com" in cli.text("bucket", "cors", bucket, "--set", str(file))
    assert cli.json("bucket", "cors", bucket) == {"rules": [RULE]}
    other = {"rules": [RULE | {"allowed_methods": ["PUT", "GET"]}]}
    assert cli.json("bucket", "cors", bucket, "--set", "-", stdin=json.dumps(other)) == other
    assert "at least one is required" in cli.fails("bucket", "cors", bucket, "--set", "-", stdin='{"rules": []}')
    cli.fails("bucket", "cors", bucket, "--set", str(file), "--remove", code=WRONG_USAGE)
    assert "has no CORS rules" in cli.text("bucket", "cors", bucket, "--remove")
    assert cli.json("bucket", "cors", bucket) == {"rules": []}


def test_locks_are_set_and_shown(cli: Cli, store: Cairn, locked: str):
    """Default retention, retention of an old version, and a hold on a key with the characters of patterns."""
    assert "GOVERNANCE for 30 days" in cli.text("bucket", "object-lock", locked, "--mode", "governance", "--days", "30")
    assert cli.json("bucket", "object-lock", locked)["default_retention"] == {"mode": "GOVERNANCE", "days": 30}
    assert cli.json("bucket", "object-lock", locked, "--none")["default_retention"] is None
    for wrong in (["--mode", "governance"], ["--days", "1"], ["--none", "--years", "1"], ["--mode", "governance", "--days", "1", "--years", "1"], ["--mode", "x", "--days", "1"]):
        cli.fails("bucket", "object-lock", locked, *wrong, code=WRONG_USAGE)
    key = "a b*[1].txt"
    old = store.s3.put(locked, key, b"old").get("x-amz-version-id")
    store.s3.put(locked, key, b"new")
    place = f"{locked}/a b\\*\\[1].txt"
    assert "has a legal hold" in cli.text("object", "legal-hold", place, "on")
    cli.text("object", "retention", place, "--version-id", old, "--mode", "governance", "--until", "30d")
    retention = cli.json("object", "stat", place, "--version-id", old)["retention"]
    assert retention["mode"] == "GOVERNANCE" and cli.json("object", "stat", place)["legal_hold"] is True
    assert "--bypass-governance allows it" in cli.fails("object", "retention", place, "--version-id", old, "--none")
    cli.text("object", "retention", place, "--version-id", old, "--none", "--bypass-governance")
    assert "has no legal hold" in cli.text("object", "legal-hold", place, "off")
    assert "legal hold: no" in " ".join(cli.text("object", "stat", place).split())
    for wrong in (["retention", place], ["retention", place, "--none", "--mode", "governance"], ["retention", place, "--mode", "governance"], ["legal-hold", place, "ON"]):
        cli.fails("object", *wrong, code=WRONG_USAGE)
