"""Policies in the console, in a real Chromium: statements as a form with sentences, as JSON, and what a change changes."""

import json

from harness.accounts import create_account, statement
from harness.console import create_token
from harness.management import expect
from harness.page import Page
from harness.server import Cairn


def stored(store: Cairn, policy: str) -> dict:
    """Returns a policy of the server."""
    return next(one for one in expect(store.admin.get("/policies"), 200)["policies"] if one["id"] == policy)


def test_policy_is_edited_and_in_force(page: Page, console_store: Cairn, bucket: str):
    """The form says what will change before it is saved; afterwards the account may do it."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/team/*"), name="editor")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    assert account.s3.request("PUT", f"/{bucket}/team/a", body=b"x").status == 403
    page.go("policies")
    page.see(f"This allows to read: team/ in {bucket}.")
    page.go("policy", policy)
    page.see("1 account has this policy.")
    page.check("Write")
    page.see("Changed, not saved")
    page.see(f"editor may write: team/ in {bucket}")
    page.check("Write new objects only: nothing is overwritten")
    page.see("Only new objects are written: nothing is replaced.")
    page.fill("Network of statement 1", "127.0.0.0/8, ::1")
    page.press("Enter")
    page.see("Only for clients in 127.0.0.0/8, ::1.")
    assert stored(console_store, policy)["statements"][0]["actions"] == ["s3:GetObject"], "nothing is saved yet"
    page.click("Save 1 change")
    page.see("is saved.")
    saved = stored(console_store, policy)["statements"]
    assert [(one["actions"], one["resources"], one.get("only_if_absent"), one["source_ip"]) for one in saved] == [
        (["s3:GetObject", "s3:PutObject"], [f"bucket:{bucket}/team/*"], True, ["127.0.0.0/8", "::1/128"]),
    ] or saved[0]["source_ip"] == ["127.0.0.0/8", "::1"], saved
    assert account.s3.request("PUT", f"/{bucket}/team/a", body=b"x").status == 200
    assert account.s3.request("PUT", f"/{bucket}/team/a", body=b"y").status == 412


def test_statements_are_added_and_denied(page: Page, console_store: Cairn, bucket: str):
    """From a pattern, then a denial; a refusal of the server stays on the page with what was typed."""
    account = create_account(console_store, statement("allow", "ListBucket", f"bucket:{bucket}"), name="adder")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    page.go("policy", policy)
    page.click("Start from a pattern")
    page.choose("Bucket", bucket)
    page.choose("What may it do?", "read-only")
    page.click("Add statements")
    page.see("Statement 3")
    page.click("Add a statement")
    page.see("Statement 4")
    page.run("""async () => {
        const card = [...document.querySelectorAll(".statement")].at(-1);
        card.querySelector("input[value=deny]").click();
        card.querySelectorAll("input[type=checkbox]")[3].click();
    }""")
    page.fill("Bucket or folder of statement 4", f"{bucket}/kept/*x")
    page.press("Enter")
    page.see("This forbids to delete")
    page.click("Save 3 changes")
    page.wait("async () => document.querySelector('main [role=alert]')?.textContent", what="the refusal")
    assert len(stored(console_store, policy)["statements"]) == 1
    page.click(f"Remove {bucket}/kept/*x")
    page.fill("Bucket or folder of statement 4", f"{bucket}/kept/*")
    page.press("Enter")
    page.see(f"adder is forbidden to delete: kept/ in {bucket}")
    page.click("Save 3 changes")
    page.see("is saved.")
    assert [one["effect"] for one in stored(console_store, policy)["statements"]] == ["allow", "allow", "allow", "deny"]
    page.refusals_are_expected()


def test_json_and_form_are_the_same(page: Page, console_store: Cairn, bucket: str):
    """The switch keeps what was changed; JSON that is wrong is explained, and nothing is lost."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/*"), name="writer-of-json")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    page.go("policy", policy)
    page.run("async () => document.querySelectorAll('input[name=mode]')[1].click()")
    text = page.run("async () => document.querySelector('main textarea').value")
    assert json.loads(text) == stored(console_store, policy)["statements"]
    page.fill("Statements as JSON", "[{")
    page.run("async () => document.querySelectorAll('input[name=mode]')[0].click()")
    page.wait("async () => document.querySelector('main [role=alert]')?.textContent", what="why the JSON is wrong")
    changed = [{"effect": "deny", "actions": ["s3:PutObject"], "resources": ["bucket:app-*"]}]
    page.fill("Statements as JSON", json.dumps(changed))
    page.run("async () => document.querySelectorAll('input[name=mode]')[0].click()")
    page.see("This forbids to write: all buckets whose names begin with app-")
    page.see(f"writer-of-json may no longer read: all objects in {bucket}")
    page.click("Discard")
    page.see(f"This allows to read: all objects in {bucket}.")
    assert not page.has("Save 1 change")


def test_auditor_reads_a_policy(page: Page, console_store: Cairn, bucket: str):
    """Without any control that changes it."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/*"), name="read-by-auditor")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    try:
        page.sign_in(create_token(console_store, "auditor")["token"])
        page.go("policy", policy)
        page.see(f"This allows to read: all objects in {bucket}.")
        assert not page.has("Add a statement") and not page.has("Discard")
        assert page.run("async () => [...document.querySelectorAll('.statement input')].every((input) => input.disabled)")
    finally:
        page.sign_in(console_store.secrets.system_token)


def test_half_a_statement_is_not_saved(page: Page, console_store: Cairn, bucket: str):
    """A denial whose places were removed would vanish, and with it what it forbids. What has no effect is said."""
    account = create_account(console_store, statement("deny", "DeleteObject", f"bucket:{bucket}/kept/*"), name="halved")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]["id"]
    page.go("policy", policy)
    page.click(f"Remove {bucket}/kept/*")
    page.click("Save 1 change")
    page.see("Statement 1 has no action or no place.")
    page.fill("Bucket or folder of statement 1", bucket)
    page.press("Enter")
    page.see("This has no effect: List and Manage need a bucket")
    page.run("async () => document.querySelectorAll('input[name=mode]')[1].click()")
    page.fill("Statements as JSON", json.dumps([{"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:a/*"], "note": 1}]))
    page.run("async () => document.querySelectorAll('input[name=mode]')[0].click()")
    page.see("note is no part of a statement.")
    assert stored(console_store, policy)["statements"][0]["resources"] == [f"bucket:{bucket}/kept/*"]
    page.click("Discard")


def test_rights_in_a_bucket(page: Page, console_store: Cairn, bucket: str):
    """Each account that has a policy about it: everywhere, in folders, denied, only new objects. Others are not there."""
    create_account(
        console_store, statement("allow", "ListBucket", f"bucket:{bucket}"), statement("allow", "GetObject", f"bucket:{bucket}/*"),
        statement("allow", "PutObject", f"bucket:{bucket}/in/*") | {"only_if_absent": True}, statement("deny", "DeleteObject", f"bucket:{bucket[:4]}*"), name="mixed-rights",
    )
    create_account(console_store, statement("allow", "ManageBucket", "bucket:another"), statement("allow", "ListBucket", f"bucket:{bucket}/x/*"), name="elsewhere")
    page.go("bucket-access", bucket)
    page.see("mixed-rights")
    row = page.run("async () => [...document.querySelectorAll('.rights tbody tr')].map((row) => [...row.cells].slice(1, 6).map((cell) => cell.textContent.replace(/^(List|Read|Write|Delete|Manage) /, '')))")
    assert row == [["allowed", "allowed", "in/create only", "denied", "–"]], row
    assert "elsewhere" not in page.text()
