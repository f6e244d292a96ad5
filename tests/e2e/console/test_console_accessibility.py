"""The console for everyone: with the keyboard alone, on a narrow screen, light and dark, in German, and checked by axe-core.

axe-core finds about half of what makes a page hard to use (WCAG 2.2). The keyboard, the focus and the width have tests of
their own.
"""

import itertools

import pytest

from harness.management import expect, segment
from harness.page import TABS, VIEWS, Page
from harness.server import Cairn

_numbers = itertools.count()


def test_keyboard_alone(page: Page, console_store: Cairn, bucket: str):
    """Sign in, open a bucket, select an object and delete it."""
    console_store.s3.put(bucket, "unwanted.txt", b"x")
    page.sign_out()
    page.load()
    page.wait("async () => document.activeElement.name === 'token'")
    page.press(console_store.secrets.system_token, "Enter")
    page.settled()
    page.press("Tab")
    page.tab_to("Buckets")
    page.press("Enter")
    page.wait("async () => document.title.startsWith('Buckets')")
    page.settled()
    page.tab_to(bucket, 200)
    page.press("Enter")
    page.wait("async (bucket) => document.title.startsWith(bucket)", bucket)
    page.settled()
    page.tab_to("Select unwanted.txt")
    page.press("Space")
    page.see("1 selected")
    page.press("Delete")
    page.see("cannot be undone")
    page.tab_to("Delete 1 object")
    page.press("Enter")
    page.see("No objects yet.")
    assert console_store.s3.get(bucket, "unwanted.txt").status == 404
    page.press("/")
    assert page.focused() == f"Search all of {bucket}"
    page.press("no-such/", "Enter")
    page.see("Nothing begins with this prefix.")


def test_dialog_gives_the_focus_back(page: Page):
    """Escape closes it without a change."""
    page.go("buckets")
    page.tab_to("Create bucket")
    page.press("Enter")
    page.wait("async () => document.querySelector('dialog[open]')")
    assert page.focused() == "Name"
    page.press("never-made", "Escape")
    page.wait("async () => !document.querySelector('dialog')")
    assert page.focused() == "Create bucket"


def test_german(page: Page):
    """The choice is kept over a reload, and every view opens."""
    page.go("buckets")
    try:
        page.run("async () => { document.querySelector('details.user').open = true; }")
        page.choose("Language", "de")
        page.see("Abmelden")
        page.load("#/activity")
        page.settled()
        assert page.run("async () => document.documentElement.lang") == "de"
        for view in VIEWS:
            page.go(view)
            assert not page.run("async () => Boolean(document.querySelector('main [role=alert]'))"), view
            assert "System administrator" not in page.text() and "Systemverwalter" in page.text()
    finally:
        page.run("async () => { localStorage.clear(); }")
        page.load()
        page.settled()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_accessible(page: Page, console_store: Cairn, versioned: str, scheme: str):
    """axe-core finds nothing, with data in every view and with the dialogs."""
    refused = fill_every_view(console_store, versioned)
    page.scheme(scheme)
    try:
        account = expect(console_store.admin.get("/service-accounts"), 200)["service_accounts"][0]["id"]
        found = {}
        for place in [*((view,) for view in VIEWS), *places_with_data(versioned, account), ("sessions",), ("refused", refused), ("bucket", "no-such-bucket")]:
            open_place(page, place)
            found |= {(str(place), line): "" for line in page.violations()}
        for place, name in [(("buckets",), "Create bucket"), (("tokens",), "Create token"), (("webhooks",), "Create webhook"),
                            (("lifecycle", versioned), "Create rule"), (("settings", versioned), "Add CORS rule"), (("bucket-access", versioned), "Make objects public"),
                            (("settings", f"{versioned}-lock"), "Change default retention"), (("object", f"{versioned}-lock", "locked"), "Retention"), (("object", versioned, "folder/text.json"), "Share"), (("object", versioned, "folder/text.json"), "Embed")]:
            page.go(*place)
            page.act(name) if name in ("Retention", "Embed") else page.click(name)
            page.wait("async () => document.querySelector('dialog[open]')")
            found |= {(*place, name, line): "" for line in page.violations()}
            page.press("Escape")
        assert list(found) == [], "\n".join(map(str, found))
        colours = page.run("async () => getComputedStyle(document.documentElement).backgroundColor")
        assert colours == {"light": "rgb(247, 247, 245)", "dark": "rgb(21, 22, 23)"}[scheme]
    finally:
        page.scheme("light")
        page.refusals_are_expected()


def test_login_is_accessible(page: Page, console_store: Cairn):
    """Also the form that comes before everything, in both schemes."""
    page.go("buckets")
    page.menu("Sign out")
    for scheme in ("dark", "light"):
        page.scheme(scheme)
        page.see("Token")
        assert page.violations() == [], scheme
    page.sign_in(console_store.secrets.system_token)


def test_narrow_screen_does_not_scroll_sideways(page: Page, console_store: Cairn, versioned: str):
    """At 320 pixels, which is also a zoom of 400 % (WCAG 1.4.10)."""
    refused = fill_every_view(console_store, versioned)
    page.resize(320)
    try:
        wide = {}
        account = expect(console_store.admin.get("/service-accounts"), 200)["service_accounts"][0]["id"]
        for place in [*((view,) for view in VIEWS), *places_with_data(versioned, account), ("sessions",), ("refused", refused)]:
            open_place(page, place)
            width = page.run("async () => document.documentElement.scrollWidth")
            if width > 320:
                wide[str(place)] = width, page.run("async () => [...document.querySelectorAll('main *, nav *')].filter((element) => element.getBoundingClientRect().right > 321 && !element.closest('.table, pre, textarea')).slice(0, 3).map((element) => element.outerHTML.slice(0, 120))")
        assert wide == {}
        small = page.run("""async () => [...document.querySelectorAll("button, a.button, .rail a")].filter((element) => element.checkVisibility())
            .filter((element) => { const box = element.getBoundingClientRect(); return box.width < 24 || box.height < 24; }).map((element) => element.textContent)""")
        assert small == [], "targets of less than 24 pixels (WCAG 2.5.8)"
    finally:
        page.resize()


def fill_every_view(store: Cairn, bucket: str) -> str:
    """Creates one of everything. Returns the id of a refused request."""
    store.s3.put(bucket, "folder/text.json", b'{"a": [1, 2]}', headers=[("Content-Type", "application/json")])
    store.s3.put(bucket, "folder/text.json", b'{"a": [1, 2, 3]}', headers=[("Content-Type", "application/json")])
    store.s3.put(bucket, "a-long-name-without-any-place-to-break-it-" * 8, b"x")
    store.s3.delete(bucket, "gone")
    name = next(_numbers)
    for path, body in [
        (f"/buckets/{bucket}/object-shares/{segment('folder/text.json')}", {"label": "for a visitor", "password": "secret"}),
        (f"/buckets/{bucket}/object-embeds/{segment('folder/text.json')}", {"allowed_origins": ["https://example.com"], "disposition": "attachment"}),
        (f"/buckets/{bucket}/lifecycle", {"prefix": "tmp/", "expiration": 3}),
        ("/service-accounts", {"name": f"an account with a long name {name}", "description": "for the tests"}),
        ("/buckets", {"name": f"{bucket}-lock", "object_lock": True}),
        ("/policies", {"name": f"a policy {name}", "description": "", "statements": [{"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{bucket}/*"]}]}),
        ("/management-tokens", {"name": f"a token {name}", "role": "auditor"}),
        ("/webhooks", {"target_url": "http://127.0.0.1:9/hook", "event_types": ["object.created"]}),
    ]:
        expect(store.admin.post(path, body), 201)
    store.s3.put(f"{bucket}-lock", "locked", b"x")
    retention = {"mode": "GOVERNANCE", "retain_until": "2099-01-01T00:00:00Z"}
    rule = {"id": "app", "allowed_origins": ["https://app.example.com"], "allowed_methods": ["GET", "PUT"], "allowed_headers": ["x-amz-*"], "max_age_seconds": 5}
    for path, body in [
        (f"/buckets/{bucket}-lock/object-retention/locked", {"retention": retention}), (f"/buckets/{bucket}-lock/object-legal-hold/locked", {"legal_hold": True}),
        (f"/buckets/{bucket}/cors", {"rules": [rule, rule]}),
        (f"/buckets/{bucket}/public-access", {"rules": [{"prefix": "folder/", "list": True}, {"prefix": "a-long-prefix-without-any-place-to-break-it-" * 8}]}),
    ]:
        expect(store.admin.put(path, body), 200)
    account = expect(store.admin.get("/service-accounts"), 200)["service_accounts"][0]["id"]
    policy = expect(store.admin.get("/policies"), 200)["policies"][-1]["id"]
    expect(store.admin.put(f"/policies/{policy}/bindings/{account}"), 204)
    return store.s3.get(bucket, "k", headers=[("User-Agent", "a client with a long name " * 9)], query="acl").get("x-amz-request-id")


def places_with_data(bucket: str, account: str) -> list[tuple]:
    """Returns the places of one bucket, object and account, and a question with an answer."""
    key = "folder/text.json"
    question = {"who": account, "action": "s3:GetObject", "bucket": bucket, "key": key}
    return [("bucket", bucket), ("object", bucket, key), ("object", f"{bucket}-lock", "locked"), ("settings", bucket), *((tab, bucket) for tab in TABS), ("account", account), ("access", question), ("connect",), ("policy", "new", {"bucket": bucket})]


def open_place(page: Page, place: tuple) -> None:
    """Opens a place; the parameters of its URL may come last."""
    if isinstance(place[-1], dict):
        page.go(*place[:-1], **place[-1])
    else:
        page.go(*place)
