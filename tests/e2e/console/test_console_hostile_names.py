"""Names as long and as odd as they may be: no view is wider than its window, at any width, in either language."""

import pytest

from harness.accounts import create_account, create_policy, statement
from harness.management import expect, segment
from harness.page import Page
from harness.server import Cairn

LONG = "k" * 900
MARKUP = "<script>alert(1)</script>.html"
ARABIC = "عربي/ملف طويل جدا بالعربية مع كلمات كثيرة.txt"
OBJECT_ACTIONS = ["GetObject", "PutObject", "DeleteObject"]
# Elements that scroll sideways or stick out. Tabs and blocks of code may scroll.
TOO_WIDE = """async () => {
    const inside = [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && !one.closest(".tabs, pre, textarea, .hidden, svg, thead"));
    const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1;
    const spills = (one) => !one.firstElementChild && getComputedStyle(one).display !== "inline" && getComputedStyle(one).overflowX === "visible" && one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1;
    const found = inside.filter((one) => scrolls(one) || spills(one)).map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`);
    return document.documentElement.scrollWidth > document.documentElement.clientWidth ? ["the page", ...found] : found;
}"""


def fill(store: Cairn, bucket: str) -> list[tuple]:
    """Creates one of everything with long names, and returns the places that show them."""
    for key in (LONG, MARKUP, ARABIC, "x/..", "folder/", "/".join(f"folder-{number:03}" for number in range(60)) + "/file"):
        store.s3.put(bucket, key, key.encode(), headers=[("x-amz-meta-" + "m" * 40, "w" * 300)])
    store.s3.put(bucket, LONG + "2", b"x")
    store.s3.delete(bucket, LONG + "2")
    admin = store.admin
    policy = create_policy(store, statement("deny", OBJECT_ACTIONS, f"bucket:{bucket}/{'r' * 300}*"), name="P" * 100)
    account = create_account(store, statement("allow", OBJECT_ACTIONS, f"bucket:{bucket}/*"), name="A" * 100)
    account.attach(policy)
    account.s3.get(bucket, LONG)
    for path, body in (
        (f"/buckets/{bucket}/object-shares/{segment(LONG)}", {"label": "L" * 200}),
        (f"/buckets/{bucket}/lifecycle", {"prefix": "p" * 500, "expiration": 9, "tags": [{"key": "K" * 128, "value": "V" * 256}]}),
        ("/management-tokens", {"name": "T" * 100, "role": "auditor"}),
        ("/webhooks", {"target_url": f"http://127.0.0.1:9/{'u' * 300}", "event_types": ["object.created"], "bucket_filter": bucket}),
    ):
        expect(admin.post(path, body), 201)
    rule = {"id": "i" * 200, "allowed_origins": [f"https://{'o' * 60}.example.com"], "allowed_methods": ["GET", "PUT", "DELETE"], "allowed_headers": ["x-amz-" + "h" * 90], "max_age_seconds": 5}
    expect(admin.put(f"/buckets/{bucket}/cors", {"rules": [rule]}), 200)
    expect(admin.put(f"/buckets/{bucket}/public-access", {"rules": [{"prefix": "q" * 500, "list": True}]}), 200)
    question = {"who": account.id, "action": "s3:GetObject", "bucket": bucket, "key": LONG}
    of_bucket = [(view, bucket) for view in ("bucket", "deleted", "bucket-access", "lifecycle", "bucket-events", "settings")]
    views = [(view,) for view in ("overview", "buckets", "sharing", "public", "accounts", "policies", "tokens", "webhooks", "activity", "refused")]
    objects = [("object", bucket, key) for key in (LONG, MARKUP, ARABIC, "x/..")]
    return [*views, *of_bucket, *objects, ("bucket", bucket, {"q": "k"}), ("access", question), ("account", account.id), ("policy", policy)]


@pytest.fixture(scope="module")
def places(console_store: Cairn) -> list[tuple]:
    """The places of a bucket with the longest name, which keeps versions."""
    bucket = "long-" + "b" * 58
    console_store.s3.create_bucket(bucket)
    expect(console_store.admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    return fill(console_store, bucket)


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_view_is_wider_than_its_window(page: Page, places: list[tuple], width: int, language: str):
    """Long names break, shorter words do not, and nothing scrolls sideways or sticks out of its box."""
    page.resize(width, 900)
    with page.in_language(language):
        wrong = {}
        for place in places:
            *parts, last = place
            page.go(*parts, **last) if isinstance(last, dict) else page.go(*place)
            if found := page.run(TOO_WIDE):
                wrong[str(place)[:60]] = found
        assert wrong == {}, "\n".join(f"{place}: {found}" for place, found in wrong.items())


def test_views_are_accessible_in_german(page: Page, places: list[tuple]):
    """Axe finds nothing in dark colours either. A name that is read aloud contains the words that are seen."""
    page.scheme("dark")
    try:
        with page.in_language("de"):
            found = {}
            for place in places:
                *parts, last = place
                page.go(*parts, **last) if isinstance(last, dict) else page.go(*place)
                if violations := page.violations():
                    found[str(place)[:60]] = violations[:3]
            assert found == {}, "\n".join(f"{place}: {lines}" for place, lines in found.items())
    finally:
        page.scheme("light")


def test_dialogs_are_in_the_middle(page: Page, places: list[tuple]):
    """Those that ask, and those that only tell. The name of an object takes at most three lines of the title."""
    where = "async () => { const { left, right } = document.querySelector('dialog[open]').getBoundingClientRect(); return Math.abs(left + right - document.documentElement.clientWidth); }"
    page.go("buckets")
    page.click("Create bucket")
    assert page.run(where) <= 2
    page.press("Escape")
    page.wait("async () => !document.querySelector('dialog')", what="no dialog")
    page.run("async () => document.activeElement.blur()")
    page.press("?")
    page.see("What it does")
    assert page.run(where) <= 2
    page.press("Escape")
    bucket = next(place[1] for place in places if place[0] == "object")
    page.go("object", bucket, MARKUP)
    page.click("Share")
    assert page.run("async () => document.querySelector('dialog[open] h2').getBoundingClientRect().height") <= 80
    page.press("Escape")


def test_a_small_quota_is_shown_in_bytes(page: Page, console_store: Cairn, bucket: str):
    """It was a fraction of a gigabyte with an exponent."""
    quota = {"bytes": {"mode": "limit", "bytes": 620}, "objects": {"mode": "unlimited"}}
    expect(console_store.admin.put(f"/buckets/{bucket}/quota", {"quota": quota}), 200)
    page.go("settings", bucket)
    page.click("Change quota")
    page.see("Size limit")
    assert page.run("async () => [...document.querySelectorAll('dialog :is([name=bytes], .with-unit select)')].map((one) => one.value)") == ["620", "1"]
    page.press("Escape")


def test_filter_of_the_activity_is_a_list_on_phones(page: Page, console_store: Cairn, bucket: str):
    """It does what the chips of wider screens do, and is in the URL."""
    console_store.s3.put(bucket, "gone", b"x")
    console_store.s3.delete(bucket, "gone")
    page.resize(390, 844)
    try:
        page.go("activity", bucket=bucket)
        page.see("added")
        page.choose("Show", "deletions")
        page.wait("async () => location.hash.includes('show=deletions') && !document.querySelector('main').innerText.includes('added')", what="deletions alone")
        page.see("deleted")
        assert not page.has("Deletions"), "the chips are not shown"
    finally:
        page.resize()
