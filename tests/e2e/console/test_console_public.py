"""Public access in the console, in a real Chromium: rules, the switch of a bucket, and the list of all that is public."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.console import Console, create_token
from harness.management import expect
from harness.page import Page, console_browser, start_with_console
from harness.s3 import S3
from harness.server import Cairn
from harness.wait import until


@pytest.fixture
def site(console_store: Cairn, bucket: str) -> str:
    """A bucket of which nothing is public."""
    for key in ("assets/app.js", "assets/style.css", "private/letter"):
        console_store.s3.put(bucket, key, key.encode())
    return bucket


def access(store: Cairn, bucket: str) -> dict:
    """Returns the rules of a bucket and its switch."""
    return expect(store.admin.get(f"/buckets/{bucket}/public-access"), 200)


def strangers_get(s3: S3, bucket: str, key: str) -> int:
    """Returns the status of a request without a signature."""
    return s3.send_raw("GET", f"/{bucket}/{key}", [("Host", s3.authority)]).status


def closed(page: Page) -> None:
    """Waits until no dialog is open and the view is drawn."""
    page.wait("async () => !document.querySelector('dialog')", what="no dialog")
    page.settled()


def test_prefix_becomes_public_and_private_again(page: Page, console_store: Cairn, site: str):
    """The sentence says what everybody can read, and nothing changes before the second question is answered."""
    page.go("bucket-access", site)
    page.see("Nothing is public: every request needs an account or a link.")
    page.click("Make objects public")
    page.see(f"Everybody can read every object of {site}, without an account.")
    page.fill("Prefix", "assets/")
    page.see(f"Everybody can read every object of {site} whose key begins with “assets/”, without an account. Nobody can list their keys that way")
    page.check("Let everybody list the keys")
    page.see("Everybody can list the keys of these objects, too.")
    page.click("Continue")
    page.see("Make these objects public?")
    page.see("assets/app.js")
    assert "private/letter" not in page.run("async () => document.querySelector('dialog').innerText")
    page.press("Escape")
    closed(page)
    assert access(console_store, site) == {"rules": [], "blocked": False}
    page.click("Make objects public")
    page.fill("Prefix", "assets/")
    page.click("Continue")
    page.click("Make public")
    closed(page)
    page.see("system")
    assert access(console_store, site)["rules"] == [{"prefix": "assets/", "read": True, "list": False}]
    assert (strangers_get(console_store.s3, site, "assets/app.js"), strangers_get(console_store.s3, site, "private/letter")) == (200, 403)
    assert f"cairn public set {site} assets/" in page.run("async () => document.querySelector('.commands').textContent")
    page.click("Make private")
    page.see("are refused to strangers at once")
    page.click("Make private")
    page.see("Nothing is public: every request needs an account or a link.")
    assert strangers_get(console_store.s3, site, "assets/app.js") == 403


def test_whole_bucket_asks_for_its_name(page: Page, console_store: Cairn, site: str):
    """A prefix that somebody forgot to type would open everything."""
    page.go("bucket-access", site)
    page.click("Make objects public")
    page.click("Continue")
    page.fill(f"Type {site} to confirm", "something else")
    page.click("Make public")
    page.see("The name does not match.")
    assert access(console_store, site)["rules"] == []
    page.fill(f"Type {site} to confirm", site)
    page.click("Make public")
    closed(page)
    page.see("all objects")
    assert strangers_get(console_store.s3, site, "private/letter") == 200


def test_rules_that_others_made_meanwhile_stay(page: Page, console_store: Cairn, site: str):
    """A rule is added to what the bucket has then, not to what the page has shown. The same prefix again replaces its rule."""
    page.go("bucket-access", site)
    expect(console_store.admin.put(f"/buckets/{site}/public-access", {"rules": [{"prefix": "by-others/"}, {"prefix": "assets/"}]}), 200)
    page.click("Make objects public")
    page.fill("Prefix", "assets/")
    page.check("Let everybody list the keys")
    page.click("Continue")
    page.click("Make public")
    closed(page)
    assert access(console_store, site)["rules"] == [{"prefix": "by-others/", "read": True, "list": False}, {"prefix": "assets/", "read": True, "list": True}]


def test_switch_ends_the_effect_of_all_rules(page: Page, console_store: Cairn, site: str):
    """Blocked rules stay in both lists, without effect. Before they have one again, the console says what it will be."""
    expect(console_store.admin.put(f"/buckets/{site}/public-access", {"rules": [{"prefix": "assets/"}]}), 200)
    page.go("bucket-access", site)
    page.click("Block public access")
    page.see("strangers are refused at once")
    page.click("Block public access")
    page.see("Public access to this bucket is blocked")
    assert (access(console_store, site)["blocked"], strangers_get(console_store.s3, site, "assets/app.js")) == (True, 403)
    page.go("public")
    row = "async (bucket) => [...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes(bucket))?.innerText"
    assert "no effect" in page.wait(row, site, what="a row of the bucket")
    page.go("bucket-access", site)
    page.click("Unblock public access")
    page.see("whose key begins with “assets/”")
    page.click("Unblock public access")
    page.gone("Public access to this bucket is blocked")
    until(lambda: strangers_get(console_store.s3, site, "assets/app.js") == 200, "the rule has an effect")


def test_everything_public_is_on_one_page(page: Page, console_store: Cairn, site: str):
    """With the bucket, what everybody may do, who made it so and when. Lists of objects have a mark."""
    expect(console_store.admin.put(f"/buckets/{site}/public-access", {"rules": [{"prefix": "assets/", "list": True}]}), 200)
    page.go("public")
    cells = page.wait("""async (bucket) => {
        const row = [...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes(bucket));
        return row && [...row.cells].map((cell) => cell.innerText.trim());
    }""", site, what="a row of the bucket")
    assert cells[0] == site and cells[1].split() == ["assets/", "public"] and cells[2] == "read and list" and cells[4] == "system"
    assert page.run("async (bucket) => !isNaN(new Date([...document.querySelectorAll('tbody tr')].find((row) => row.textContent.includes(bucket)).querySelector('time').dateTime))", site)
    page.click(site)
    page.settled()
    assert page.run("async () => location.hash") == f"#/bucket-access/{site}"
    mark = "async () => document.querySelector('.tags').innerText.trim()"
    for prefix, expected in (("", "partly public"), ("assets/", "public")):
        page.go("bucket", site, prefix=prefix)
        page.wait("async (expected) => document.querySelector('.tags').innerText.trim() === expected", expected, what="a mark")
    page.go("bucket", site, prefix="private/")
    assert page.run(mark) == ""


def test_auditor_sees_and_changes_nothing(page: Page, console_store: Cairn, site: str):
    """A storage administrator has the buttons."""
    expect(console_store.admin.put(f"/buckets/{site}/public-access", {"rules": [{"prefix": "assets/"}]}), 200)
    buttons = ("Make objects public", "Make private", "Block public access")
    try:
        for role, may_change in (("auditor", False), ("storage_admin", True)):
            page.sign_in(create_token(console_store, role)["token"])
            page.go("bucket-access", site)
            page.see("assets/")
            assert [page.has(name) for name in buttons] == [may_change] * 3, role
            page.go("public")
            page.see(site)
            assert page.has("Make private") == may_change, role
    finally:
        page.sign_in(console_store.secrets.system_token)


def test_with_the_keyboard_alone(page: Page, console_store: Cairn, site: str):
    """Both dialogs, and the focus comes back to where it was."""
    page.go("bucket-access", site)
    page.tab_to("Make objects public", 120)
    page.press("Enter")
    page.see("Let everybody list the keys")
    assert page.focused() == "Prefix"
    page.press("assets/")
    page.tab_to("Let everybody list the keys")
    page.press("Space")
    page.tab_to("Continue")
    page.press("Enter")
    page.see("Make these objects public?")
    page.tab_to("Make public")
    page.press("Enter")
    closed(page)
    assert access(console_store, site)["rules"] == [{"prefix": "assets/", "read": True, "list": True}]
    assert page.focused().startswith(site), "the view is drawn again, so the focus is at its title"


def test_server_without_public_access_says_so(make_store: Callable[..., Cairn], run_folder: Path):
    """Rules are shown without effect, and can only be removed."""
    store = make_store().start()
    store.s3.create_bucket("site")
    expect(store.admin.put("/buckets/site/public-access", {"rules": [{"prefix": "assets/"}]}), 200)
    store.stop()
    store.extra["SERVICE_AUTH_PUBLIC_ACCESS_ENABLED"] = "false"
    start_with_console(store)
    with console_browser(run_folder / "test_console_public_disabled") as browser:
        page = Page(browser, Console(store).address)
        page.sign_in(store.secrets.system_token)
        page.go("bucket-access", "site")
        page.see("Public access is turned off by the configuration of the server.")
        page.see("no effect")
        assert not page.has("Make objects public")
        page.click("Make private")
        page.click("Make private")
        page.see("Nothing is public: every request needs an account or a link.")
    assert access(store, "site")["rules"] == []
