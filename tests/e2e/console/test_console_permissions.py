"""CORS rules, locks and checks of permissions in the console, in a real Chromium."""

import json

from harness.accounts import create_account, statement
from harness.console import create_token
from harness.management import expect, segment
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

KEY = "a b/100%2F+#?*.txt"


def set_value(page: Page, label: str, value: str) -> None:
    """Sets a field whose typing depends on the language of the browser."""
    field = page.element("input", label)
    page.run("async (field, value) => { field.value = value; }", page.reference(field), value)


def commands(page: Page) -> str:
    """Returns the commands of the view."""
    return page.run("async () => document.querySelector('.commands').textContent")


def test_cors_rules_are_added_changed_and_deleted(page: Page, console_store: Cairn, bucket: str):
    """What the form sends is what S3 clients get. A refusal is shown in the form, and keeps what was typed."""
    path = f"/buckets/{bucket}/cors"

    def rules() -> list[dict]:
        return expect(console_store.admin.get(path), 200)["rules"]

    page.go("settings", bucket)
    page.see("No CORS rules")
    page.click("Add CORS rule")
    page.fill("Origins", "https://app.example.com/")
    page.fill("Request headers", "x-amz-*\ncontent-type")
    page.fill("Response headers", "ETag")
    page.fill("Browsers remember the answer for (seconds)", "600")
    page.fill("Name of the rule", "app")
    page.click("Add CORS rule")
    page.wait("async () => document.querySelector('dialog .bad')?.textContent.includes('without a path')", what="a reason in the dialog")
    page.fill("Origins", "https://app.example.com\nhttp://localhost:3000")
    page.check("PUT")
    page.click("Add CORS rule")
    page.see("http://localhost:3000")
    first = {
        "id": "app", "allowed_origins": ["https://app.example.com", "http://localhost:3000"], "allowed_methods": ["GET", "HEAD", "PUT"],
        "allowed_headers": ["x-amz-*", "content-type"], "expose_headers": ["ETag"], "max_age_seconds": 600,
    }
    assert rules() == [first]
    assert "aws s3api put-bucket-cors" in commands(page) and '"AllowedOrigins":["https://app.example.com"' in commands(page)
    page.click("Add CORS rule")
    page.fill("Origins", "*")
    page.click("Add CORS rule")
    page.element("button", "Delete all CORS rules")
    page.click("Change")
    page.fill("Browsers remember the answer for (seconds)", "5")
    page.click("Save")
    page.wait("async () => !document.querySelector('dialog')")
    page.settled()
    assert rules()[0] == first | {"max_age_seconds": 5} and rules()[1]["allowed_origins"] == ["*"]
    page.click("Delete")
    page.click("Delete CORS rule")
    page.gone("http://localhost:3000")
    assert [rule["allowed_origins"] for rule in rules()] == [["*"]]
    page.click("Delete")
    page.click("Delete CORS rule")
    page.see("No CORS rules")
    assert rules() == []
    page.refusals_are_expected()


def test_default_retention_warns_of_compliance(page: Page, console_store: Cairn, locked: str):
    """Nothing is changed before the second question is answered."""
    path = f"/buckets/{locked}/object-lock"
    page.go("settings", locked)
    page.see("on, no default retention")
    page.click("Change default retention")
    page.choose("Mode", "COMPLIANCE")
    page.fill("How long", "2")
    page.choose("Unit", "years")
    page.click("Continue")
    page.see("COMPLIANCE cannot be undone for them.")
    page.see("before 2 years have passed")
    page.press("Escape")
    # The button does nothing until its dialog has ended.
    page.wait("async () => !document.querySelector('dialog')", what="no dialog")
    assert expect(console_store.admin.get(path), 200)["default_retention"] is None
    page.click("Change default retention")
    page.choose("Mode", "GOVERNANCE")
    page.fill("How long", "7")
    page.click("Continue")
    page.click("Set default retention")
    page.see("on, GOVERNANCE for 7 days")
    assert expect(console_store.admin.get(path), 200)["default_retention"] == {"mode": "GOVERNANCE", "days": 7}
    page.click("Change default retention")
    page.choose("Mode", "")
    page.click("Continue")
    page.click("Set default retention")
    page.see("on, no default retention")


def test_retention_of_a_version_with_a_difficult_key(page: Page, console_store: Cairn, locked: str):
    """Set, extended, and shortened only with the bypass. The state is a tag, and the version cannot be deleted."""
    console_store.s3.put(locked, KEY, b"x")
    path = f"/buckets/{locked}/object/{segment(KEY)}"

    def retention() -> dict | None:
        return expect(console_store.admin.get(path), 200).get("retention")

    page.go("object", locked, KEY)
    page.element("button", "More actions")
    for end in ("2099-01-31T12:00", "2099-03-31T12:00"):
        page.act("Retention")
        set_value(page, "Retain until", end)
        page.click("Continue")
        page.see("unless governance is bypassed")
        page.wait("async () => [...document.querySelectorAll('dialog button')].some((button) => button.textContent.startsWith('Lock until') && button.click() === undefined)")
        page.wait("async () => !document.querySelector('dialog')")
        page.settled()
        assert retention()["mode"] == "GOVERNANCE" and retention()["retain_until"].startswith(end[:7])
    page.see("locked until")
    assert page.run("async () => document.querySelectorAll('main .tag.warn').length") == 2, "beside the title and in the life of the object"
    page.click("Actions for Version 1")
    page.element("button", "Put on hold")
    assert not page.has("Delete version"), "a locked version cannot be deleted"
    page.press("Escape")
    page.act("Retention")
    page.choose("Mode", "")
    page.click("Continue")
    page.click("Remove retention")
    page.wait("async () => document.querySelector('dialog .bad')?.textContent.includes('bypass_governance')", what="the refusal")
    page.press("Escape")
    page.act("Retention")
    page.choose("Mode", "")
    page.check("Bypass governance: allow it to be shortened, changed or removed")
    page.click("Continue")
    page.click("Remove retention")
    page.gone("locked until")
    assert retention() is None
    page.refusals_are_expected()


def test_compliance_can_only_be_extended(page: Page, console_store: Cairn, locked: str):
    """The confirmation says that nobody can undo it, and afterwards the form offers nothing else."""
    console_store.s3.put(locked, "k", b"x")
    page.go("object", locked, "k")
    page.act("Retention")
    page.choose("Mode", "COMPLIANCE")
    set_value(page, "Retain until", "2099-01-31T12:00")
    page.click("Continue")
    page.see("COMPLIANCE cannot be undone.")
    page.press("Escape")
    assert "retention" not in expect(console_store.admin.get(f"/buckets/{locked}/object/k"), 200)
    expect(console_store.admin.put(f"/buckets/{locked}/object-retention/k", {"retention": {"mode": "COMPLIANCE", "retain_until": "2099-01-31T12:00:00Z"}}), 200)
    page.go("object", locked, "k")
    page.see(", compliance")
    page.act("Retention")
    page.see("It can only be extended.")
    assert page.run("async () => [...document.querySelector('dialog select').options].map((option) => option.value)") == ["COMPLIANCE"]
    assert not page.run("async () => Boolean(document.querySelector('dialog input[type=checkbox]'))")
    page.press("Escape")


def test_legal_hold_is_put_on_and_taken_off(page: Page, console_store: Cairn, locked: str):
    """Of the current version, and of an old one."""
    old = console_store.s3.put(locked, KEY, b"old").get("x-amz-version-id")
    console_store.s3.put(locked, KEY, b"new")
    name = segment(KEY)

    def holds() -> list[bool]:
        return [version["legal_hold"] for version in expect(console_store.admin.get(f"/buckets/{locked}/object-versions"), 200)["versions"]]

    page.go("object", locked, KEY)
    page.act("Put on hold")
    page.click("Put on legal hold")
    until(lambda: holds() == [True, False], holds)
    page.see("legal hold")
    page.act("Take off hold")
    page.click("Take off legal hold")
    page.gone("legal hold")
    assert holds() == [False, False]
    page.click("Actions for Version 1")
    page.click("Put on hold")
    page.click("Put on legal hold")
    until(lambda: holds() == [False, True], holds)
    page.see("legal hold")
    assert "cairn object legal-hold" in commands(page) and "aws s3api put-object-legal-hold" in commands(page)
    expect(console_store.admin.put(f"/buckets/{locked}/object-legal-hold/{name}?version_id={old}", {"legal_hold": False}), 200)


def test_question_has_an_answer_and_a_url(page: Page, console_store: Cairn, bucket: str):
    """Allowed, denied by a statement, and denied by none, with what would allow it; the URL asks again."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/team*"), statement("deny", "GetObject", f"bucket:{bucket}/team/secret*"))
    page.go("account", account.id)
    page.see(f"This forbids to read: team/secret in {bucket}")
    page.click("Check access to a bucket or an object")
    page.settled()
    page.fill("Bucket", bucket)
    page.fill("Key", f"team/{KEY}")
    page.click("Check")
    page.see("A statement allows it")
    page.see("statement 1 of policy")
    assert "cairn policy check --account" in commands(page) and "curl" in commands(page)
    page.load(page.run("async () => location.hash"))
    page.settled()
    page.see("A statement allows it")
    assert page.run("async () => document.querySelector('textarea').value") == f"team/{KEY}"
    page.fill("Key", "team/secret plan")
    page.click("Check")
    page.see("A statement denies it")
    page.see("statement 2 of policy")
    page.see("detach this policy")
    page.fill("Key", "other")
    page.click("Check")
    page.see("No statement allows it")
    suggested = json.loads(page.run("async () => document.querySelector('main pre').textContent"))
    assert suggested == [{"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{bucket}/other"]}]
    page.choose("May it …", "s3:ListBucket")
    page.click("Check")
    page.wait("async (bucket) => document.querySelector('main pre')?.textContent.includes(`\"bucket:${bucket}\"`)", bucket)
    page.fill("Account or access key", account.keys["access_key"])
    page.choose("May it …", "s3:GetObject")
    page.fill("Key", "team/a")
    page.click("Check")
    page.see("A statement allows it")
    expect(console_store.admin.put(f"{account.path}/status", {"enabled": False}), 200)
    page.go("access", who=account.name, action="s3:GetObject", bucket=bucket, key="team/a")
    page.see("The account is turned off.")
    page.go("access", who="nobody", action="s3:GetObject", bucket=bucket, key="k")
    page.see("No account has this name, id or access key.")
    page.go("access", who=console_store.secrets.root_access_key, action="s3:ManageBucket", bucket=bucket)
    page.see("The root credential may do everything.")
    page.refusals_are_expected()


def test_roles_hide_what_they_may_not_do(page: Page, console_store: Cairn, locked: str):
    """An auditor sees locks and rules, and may ask; a storage administrator may lock, but not ask."""
    console_store.s3.put(locked, "k", b"x")
    expect(console_store.admin.put(f"/buckets/{locked}/object-legal-hold/k", {"legal_hold": True}), 200)
    expect(console_store.admin.put(f"/buckets/{locked}/cors", {"rules": [{"allowed_origins": ["*"], "allowed_methods": ["GET"]}]}), 200)
    page.sign_in(create_token(console_store, "auditor")["token"])
    page.go("object", locked, "k")
    page.see("legal hold")
    assert not page.has("More actions") and not page.has("Actions for Version 1")
    page.go("settings", locked)
    page.see("CORS rules")
    assert not page.has("Add CORS rule") and not page.has("Change default retention") and not page.has("Change")
    assert page.has("Who may what")
    page.sign_in(create_token(console_store, "storage_admin")["token"])
    assert not page.has("Who may what")
    page.go("object", locked, "k")
    page.click("More actions")
    page.element("button", "Take off hold")
    page.sign_in(console_store.secrets.system_token)


def test_rights_of_accounts_name_their_networks(page: Page, console_store: Cairn, bucket: str):
    """A statement without networks applies to all of them, and a denial from some leaves the others."""
    everything = f"bucket:{bucket}/*"
    inside = {"source_ip": ["10.0.0.0/8"]}
    allow, deny = statement("allow", "GetObject", everything), statement("deny", "GetObject", everything)
    folder = statement("deny", "GetObject", f"bucket:{bucket}/secret/*")
    cases = {
        "denied outside": ([allow, deny | inside], ["allowed", "not from 10.0.0.0/8"]),
        "allowed twice": ([allow, allow | inside], ["allowed"]),
        "allowed inside": ([allow | inside], ["allowed", "from 10.0.0.0/8"]),
        "one folder": ([allow, folder | inside], ["allowed", "not everywhere"]),
        "not everywhere": ([allow, folder], ["allowed", "not everywhere"]),
        "denied": ([allow, deny], ["denied"]),
    }
    for name, (statements, _) in cases.items():
        create_account(console_store, *statements, name=f"{bucket} {name}")
    page.go("bucket-access", bucket)
    page.see("Who can do what here")
    rows = page.run("""async () => [...document.querySelectorAll('.rights tbody tr')].map((row) =>
        [row.querySelector('a').textContent, [...row.cells[2].querySelectorAll('.hidden:not(.on-phones), .tag, .small')].map((one) => one.textContent)])""")
    assert {name.removeprefix(f"{bucket} "): cell for name, cell in rows} == {name: cell for name, (_, cell) in cases.items()}
