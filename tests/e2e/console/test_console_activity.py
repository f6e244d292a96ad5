"""Activity in a real Chromium: one list of what happened, with filters in the URL, sentences and actions."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.accounts import create_account, statement
from harness.console import create_token
from harness.management import expect
from harness.page import Page
from harness.server import Cairn


def sentences(page: Page) -> list[str]:
    """Returns the sentences that are shown, the newest first."""
    page.settled()
    return page.run("async () => [...document.querySelectorAll('.act-text > span:first-child')].map((text) => text.innerText.replace(/\\s+/g, ' '))")


def place(page: Page) -> str:
    """Returns the place in the URL."""
    return page.run("async () => location.hash")


def open_row(page: Page, text: str) -> None:
    """Opens the first row with this text."""
    page.run("""async (text) => [...document.querySelectorAll('.act')].find((row) => row.innerText.includes(text))
        .querySelector('button[aria-expanded]').click()""", text)


@pytest.fixture
def kept(console_store: Cairn, bucket: str) -> str:
    """A bucket that keeps versions."""
    expect(console_store.admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    return bucket


def test_events_and_audit_records_are_one_list(page: Page, console_store: Cairn, kept: str):
    """The newest first, as sentences; a change that both tell of is one row. Any part of a name finds it."""
    console_store.s3.put(kept, "projects/apollo/plan.docx", b"12345")
    quota = {"bytes": {"mode": "limit", "bytes": 1000}, "objects": {"mode": "unlimited"}}
    expect(console_store.admin.put(f"/buckets/{kept}/quota", {"quota": quota}), 200)
    expect(console_store.admin.delete(f"/buckets/{kept}/object/projects/apollo/plan.docx"), 204)
    page.go("activity", bucket=kept)
    assert sentences(page) == [
        f"system deleted {kept}/projects/apollo/plan.docx", f"system changed the quota of {kept}",
        f"root added {kept}/projects/apollo/plan.docx, 5 B", f"system changed versioning of {kept}", f"root created the bucket {kept}",
    ]
    page.fill("Text anywhere", "POLLO/pl")
    page.gone("changed the quota")
    page.wait("async () => document.querySelectorAll('.act').length === 2")
    assert "text=POLLO%2Fpl" in place(page) and f"bucket={kept}" in place(page)
    page.load(place(page))
    assert len(sentences(page)) == 2, "the filters are in the URL"
    page.click("Deletions")
    page.wait("async () => document.querySelectorAll('.act').length === 1")
    assert "show=deletions" in place(page)
    assert page.violations() == []


def test_deletion_is_restored_from_its_row(page: Page, console_store: Cairn, kept: str):
    """Objects that one person deletes one after the other are one row, and come back together."""
    for number in range(3):
        console_store.s3.put(kept, f"old/{number}", b"x")
    for number in range(3):
        console_store.s3.delete(kept, f"old/{number}")
    page.go("activity", bucket=kept)
    assert sentences(page)[:2] == [f"root deleted 3 objects in {kept}/old/", f"root added 3 objects in {kept}/old/, 3 B"]
    page.click("Restore")
    page.see("3 objects are back.")
    assert console_store.s3.get(kept, "old/1").body == b"x"
    page.go("overview")
    page.go("activity", bucket=kept)
    assert sentences(page)[0] == f"system brought back deleted objects of {kept}"


def test_opened_row_has_request_address_and_neighbours(page: Page, console_store: Cairn, kept: str):
    """And what came before and after for the object. The opened row is in the URL."""
    console_store.s3.put(kept, "k", b"1")
    second = console_store.s3.put(kept, "k", b"12")
    expect(console_store.admin.delete(f"/buckets/{kept}/object/k"), 204)
    page.go("activity", bucket=kept)
    open_row(page, f"root overwrote {kept}/k")
    page.see("5 minutes before and after")
    page.see(second.get("x-amz-request-id"))
    page.wait("async () => document.querySelector('.act-facts')?.innerText.includes('deleted by system')")
    text = page.run("async () => document.querySelector('.act-facts').innerText")
    assert "written by root" in text.partition("Before")[2], text
    assert f"open={second.get('x-amz-request-id')}" in place(page)
    page.load(place(page))
    page.see(second.get("x-amz-request-id"))
    page.click("5 minutes before and after")
    page.wait("async () => location.hash.includes('since=') && location.hash.includes('until=')")


def test_refused_request_is_explained(page: Page, console_store: Cairn, bucket: str):
    """Repetitions are counted in one row."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/*"), name="camera")
    for _ in range(3):
        assert account.s3.request("PUT", f"/{bucket}/k", None, b"x").status == 403
    page.go("activity", show="refused", principal="account:camera")
    assert sentences(page) == [f"camera was refused to write {bucket}/k"]
    page.see("3 times since")
    page.click("Explain")
    page.see("no policy of the account allows s3:PutObject")


def test_times_are_presets_or_given(page: Page, console_store: Cairn, bucket: str):
    """Today has everything, yesterday nothing; a range of one's own is in the URL."""
    console_store.s3.put(bucket, "k", b"1")
    page.go("activity", bucket=bucket)
    assert len(sentences(page)) == 2
    page.choose("Time", "yesterday")
    page.see("Nothing matches.")
    page.choose("Time", "7d")
    page.gone("Nothing matches.")
    assert "range=7d" in place(page)
    before = (datetime.now(UTC) - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    page.go("activity", bucket=bucket, until=before)
    page.see("Nothing matches.")
    assert page.run("async () => document.querySelector('select[aria-label=Time]').value") == "own"


def test_time_is_chosen_on_the_chart(page: Page, console_store: Cairn, bucket: str):
    """Bars are written, deleted by somebody, or removed by rules. A drag chooses a time, a click an interval; filters stay."""
    for number in range(5):
        console_store.s3.put(bucket, f"k{number}", b"1")
    console_store.s3.delete(bucket, "k0")
    page.go("activity", bucket=bucket)
    chart = ".activity-chart:not([hidden]) svg"
    page.wait("async (chart) => document.querySelector(chart)?.getAttribute('aria-label') === '6 changes'", chart, what="a chart of six changes")
    page.see("Each bar is 2 hours. Drag to choose a time.")
    layers = "async () => [...document.querySelectorAll('.activity-chart g rect')].map((bar) => bar.classList.value)"
    assert page.run(layers) == ["written", "deleted"]
    drag = """async (from, to) => {
        const plot = document.querySelector(".activity-chart svg");
        const box = plot.getBoundingClientRect();
        const send = (type, part) => plot.dispatchEvent(new PointerEvent(type, {bubbles: true, pointerId: 1, button: 0, clientX: box.left + part * box.width, clientY: box.top + 9}));
        plot.setPointerCapture = () => {};
        send("pointerdown", from);
        send("pointermove", to);
        send("pointerup", to);
    }"""
    page.run(drag, 0.2, 0.5)
    page.see("Nothing matches.")
    assert "since=" in place(page) and "until=" in place(page) and f"bucket={bucket}" in place(page)
    assert page.run("async () => Number(document.querySelector('.activity-chart .chosen').getAttribute('width'))") == pytest.approx(288, abs=2)
    page.run(drag, 0.999, 0.999)
    page.gone("Nothing matches.")
    assert len(sentences(page)) >= 2
    page.choose("Time", "30d")
    page.see("Each bar is 12 hours.")
    page.fill("All buckets", "")
    page.wait("async () => Number(document.querySelector('.activity-chart svg').getAttribute('aria-label').replace(/\\D/g, '')) >= 6", what="the changes of all buckets")


def test_old_places_lead_here(page: Page, console_store: Cairn, bucket: str):
    """Bookmarks of the views of events and of the audit trail."""
    console_store.s3.put(bucket, "k", b"1")
    page.load(f"#/audit?operation=CreateBucket&bucket={bucket}")
    assert sentences(page) == [f"root created the bucket {bucket}"]
    page.load("#/events")
    page.settled()
    assert place(page) == "#/activity"
    page.load("#/audit?result=denied")
    page.settled()
    assert place(page) == "#/activity?show=refused"


def test_older_rows_come_page_by_page(page: Page, console_store: Cairn, bucket: str):
    """The list grows when its end is reached, without a row twice."""
    for number in range(130):
        console_store.s3.put(bucket, f"k{number:03}", b"")
        console_store.s3.delete(bucket, f"k{number:03}")
    page.go("activity", bucket=bucket)
    first = page.run("async () => document.querySelectorAll('.act').length")
    assert 50 <= first < 200
    page.wait("async () => { scrollTo(0, document.body.scrollHeight); return document.querySelectorAll('.act').length === 261; }", what="all rows")
    keys = page.run("async () => [...document.querySelectorAll('.act-text')].map((row) => row.textContent)")
    assert len(set(keys)) == 261


def test_new_rows_are_followed(page: Page, console_store: Cairn, bucket: str):
    """On demand. Whoever does not ask for it, sees a list that stays."""
    page.go("activity", bucket=bucket)
    page.click("Follow live")
    assert "live=1" in place(page)
    console_store.s3.put(bucket, "fresh", b"1")
    page.run("async () => document.activeElement.blur()")
    page.see("fresh")


def test_hostile_names_change_nothing_around_them(page: Page, console_store: Cairn, kept: str):
    """Markup, a text that turns its direction, a very long name, and a name with a percent sign."""
    names = ["<img src=x onerror=alert(1)>", "a\u202egpj.exe", "x" * 1000, "100%25?#&=.txt"]
    for name in names:
        console_store.s3.put(kept, name, b"1")
        console_store.s3.put(kept, f"between{names.index(name)}/y", b"1")
    page.go("activity", bucket=kept)
    sentences(page)
    page.click("Details")
    assert page.run("async () => document.querySelectorAll('main img').length") == 0
    assert page.run("async () => document.documentElement.scrollWidth <= innerWidth")
    page.resize(390, 844)
    try:
        page.load(place(page))
        page.settled()
        assert page.run("async () => document.documentElement.scrollWidth <= innerWidth")
        assert page.violations() == []
    finally:
        page.resize()


def test_storage_administrator_sees_changes_of_objects_only(page: Page, console_store: Cairn, bucket: str):
    """The audit trail is for others. Nothing is asked that would be refused."""
    console_store.s3.put(bucket, "k", b"1")
    try:
        page.sign_in(create_token(console_store, "storage_admin")["token"])
        page.go("activity", bucket=bucket)
        assert sentences(page) == [f"root added {bucket}/k, 1 B", f"root created the bucket {bucket}"]
        assert not page.has("Refused") and page.has("Deletions")
        assert "cairn audit list" not in page.text()
    finally:
        page.sign_in(console_store.secrets.system_token)


def test_events_of_a_bucket_follow(page: Page, console_store: Cairn, bucket: str):
    """In its tab, new ones as they happen."""
    page.go("bucket-events", bucket)
    page.see(f"root created the bucket {bucket}")
    console_store.s3.put(bucket, "fresh", b"1")
    page.see(f"{bucket}/fresh")
