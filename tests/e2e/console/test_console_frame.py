"""The frame of the console, in a real Chromium: jumping by name, keys, the bars of a phone, notices and their places."""

import pytest

from harness.accounts import create_account, statement
from harness.management import expect
from harness.page import Page
from harness.server import Cairn


def where(page: Page) -> str:
    """Returns the fragment of the page."""
    return page.run("async () => location.hash")


def box(page: Page, selector: str) -> dict:
    """Returns the place of an element."""
    return page.run("async (selector) => document.querySelector(selector).getBoundingClientRect().toJSON()", selector)


def test_jump_leads_to_buckets_and_views(page: Page, console_store: Cairn, bucket: str):
    """By a part of the name, with the keyboard alone; Escape gives the focus back."""
    page.go("overview")
    page.press("Control+k")
    page.wait("async () => document.activeElement.closest('dialog')", what="the dialog")
    assert page.violations() == []
    page.press(bucket[2:])
    # The view behind has the name, too.
    listed = "async (bucket) => [...document.querySelectorAll('dialog [role=option] .key')].some((name) => name.textContent === bucket)"
    page.wait(listed, bucket, what="the bucket in the list")
    page.press("Enter")
    page.wait("async (bucket) => location.hash === `#/bucket/${bucket}`", bucket)
    page.settled()
    page.press("Control+k")
    page.wait("async () => document.activeElement.closest('dialog')")
    page.press("refu", "Down", "Up", "Enter")
    page.wait("async () => location.hash === '#/refused'")
    page.settled()
    page.click("Search or jump")
    page.wait("async () => document.querySelector('dialog')")
    page.press("no such name anywhere")
    page.see("Nothing found.")
    page.press("Escape")
    page.wait("async () => !document.querySelector('dialog')")
    assert page.focused().startswith("Search or jump")


def test_keys_go_to_places_and_are_listed(page: Page, bucket: str):
    """Not while somebody types."""
    page.go("overview")
    page.press("g", "b")
    page.wait("async () => location.hash === '#/buckets'")
    page.settled()
    page.press("g", "a")
    page.wait("async () => location.hash === '#/activity'")
    page.settled()
    page.press("?")
    page.see("Move between rows")
    page.press("Escape")
    page.wait("async () => !document.querySelector('dialog')")
    page.go("bucket", bucket)
    page.press("/")
    page.press("g", "o")
    assert where(page) == f"#/bucket/{bucket}"


def test_phone_has_bars(page: Page, bucket: str):
    """Five places at the bottom; More has the rest, the account and the choice of language. Targets are 44 pixels high."""
    page.resize(390, 844)
    try:
        page.go("overview")
        assert not page.has("Policies")
        page.click("Buckets")
        page.wait("async () => location.hash === '#/buckets'")
        page.settled()
        assert page.run("async () => document.querySelector('.bottom-bar [aria-current]').textContent") == "Buckets"
        page.click("More")
        page.element("a", "Policies")
        assert page.violations() == []
        small = page.run("""async () => [...document.querySelectorAll(".rail a, .bottom-bar a, .bottom-bar button, .top-bar button")]
            .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44).map((one) => one.textContent)""")
        assert small == []
        page.press("Escape")
        assert page.focused() == "More" and not page.has("Policies")
        page.click("Account and settings")
        page.click("Policies")
        page.wait("async () => location.hash === '#/policies'")
        page.settled()
        assert not page.has("Refused requests"), "the rail closes"
    finally:
        page.resize()


def test_tables_of_phones_do_not_scroll_sideways(page: Page, console_store: Cairn, versioned: str):
    """They become rows: what is rejected and what helps is in sight."""
    console_store.s3.put(versioned, "2026/a file with a rather long name.txt", b"x")
    console_store.s3.delete(versioned, "2026/a file with a rather long name.txt")
    create_account(console_store, statement("allow", "GetObject", f"bucket:{versioned}/2026/*"), name="phone-reader")
    page.resize(390, 844)
    try:
        wide = {}
        for place in (("deleted", versioned), ("bucket-access", versioned), ("buckets",), ("tokens",), ("accounts",), ("policies",), ("sessions",)):
            page.go(*place)
            wide[place] = page.run("async () => [...document.querySelectorAll('main .table')].filter((one) => one.scrollWidth > one.clientWidth + 1).length")
        assert not any(wide.values()), wide
    finally:
        page.resize()


@pytest.mark.parametrize("width", [1280, 390])
def test_toasts_are_at_the_lower_right_and_wait(page: Page, console_store: Cairn, versioned: str, width: int):
    """They never lie over the navigation, and stay while they have the focus."""
    console_store.s3.put(versioned, "a", b"x")
    page.resize(width, 844)
    try:
        page.go("bucket", versioned)
        if width == 390:
            page.click("Actions for a")
            page.click("Select")
        else:
            page.check("Select a")
        page.click("Delete")
        page.see("1 object deleted.")
        toast, frame = box(page, ".toast"), box(page, ".side" if width > 760 else ".bottom-bar")
        assert toast["right"] > width / 2 and toast["bottom"] > 600
        assert toast["left"] >= frame["right"] or toast["bottom"] <= frame["top"], (toast, frame)
        colours = page.run("async () => [getComputedStyle(document.querySelector('.toast > .icon-mark')).stroke, getComputedStyle(document.documentElement).getPropertyValue('--red')]")
        assert "173, 32, 24" not in colours[0], "success is not red"
        page.click("Undo")
        page.see("1 object is back.")
        assert console_store.s3.get(versioned, "a").body == b"x"
    finally:
        page.resize()


def test_problems_stay_until_they_are_closed(page: Page, console_store: Cairn, bucket: str):
    """An error is no toast: it is above the view, with the request id, and the rest of the page works."""
    console_store.s3.put(bucket, "a", b"x")
    page.go("bucket", bucket)
    page.check("Select a")
    expect(console_store.admin.delete(f"/buckets/{bucket}/object/a"), 204)
    expect(console_store.admin.delete(f"/buckets/{bucket}"), 204)
    page.click("Delete")
    page.click("Delete 1 object")
    page.wait("async () => document.querySelector('main [role=alert]')", what="the problem")
    assert not page.run("async () => Boolean(document.querySelector('.toast'))")
    page.go("buckets")
    assert not page.run("async () => Boolean(document.querySelector('main [role=alert]'))"), "another view begins without it"
    page.refusals_are_expected()


def test_stone_of_a_bucket_is_the_same_everywhere(page: Page, bucket: str):
    """In the list and in the head."""
    stone = "(tile) => [...tile.classList].find((name) => name.startsWith('stone-'))"
    page.go("buckets")
    page.element("a", bucket)
    listed = page.run(f"async (name) => ({stone})([...document.querySelectorAll('main tr')].find((row) => row.textContent.includes(name)).querySelector('.tile'))", bucket)
    page.go("bucket", bucket)
    assert page.run(f"async () => ({stone})(document.querySelector('.head .tile'))") == listed


def test_link_to_this_machine_is_pointed_out(page: Page, console_store: Cairn, bucket: str):
    """Nobody else could open it."""
    console_store.s3.put(bucket, "plan.txt", b"x")
    page.go("object", bucket, "plan.txt")
    page.click("Share")
    page.click("Create link")
    page.see("This link works only on this machine: its address is 127.0.0.1.")
    page.click("Done")


def test_count_of_buckets_follows(page: Page, console_store: Cairn, bucket: str):
    """The rail had the number of buckets of the login, whatever was made later."""
    page.go("overview")
    console_store.s3.create_bucket(f"{bucket}-more")
    number = f"{len(expect(console_store.admin.get('/buckets'), 200)['buckets'])}"
    page.go("sharing")
    page.wait("async (number) => document.querySelector('.rail [data-view=buckets]').dataset.count === number", number, what="the count of buckets")


def test_tabs_and_entries_have_counts_that_are_not_zero(page: Page, console_store: Cairn, bucket: str):
    """Lifecycle rules beside their tab, applications in the rail; both follow changes."""
    of_tab = "async () => [...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Lifecycle').dataset.count"
    page.go("bucket", bucket)
    assert page.run(of_tab) is None
    expect(console_store.admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": "tmp/", "expiration": 7}), 201)
    page.go("deleted", bucket)
    page.wait(of_tab.replace("dataset.count", "dataset.count === '1'"), what="one rule")
    expect(console_store.admin.post("/service-accounts", {"name": f"counted-{bucket}", "description": ""}), 201)
    page.go("accounts")
    number = len(expect(console_store.admin.get("/service-accounts"), 200)["service_accounts"])
    page.wait("async (number) => document.querySelector('.rail [data-view=accounts]').dataset.count === String(number)", number, what="the number of applications")
