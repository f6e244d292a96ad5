"""The waiting times of a user of the console: the budget of a first view, long lists, and a slow network.

Other tests run at the same time, so what is counted here are requests, bytes and rows that are drawn. `tests/campaign console`
measures times.
"""

import os
from pathlib import Path

from harness import console_speed
from harness.held import held, let_go
from harness.page import Page
from harness.server import Cairn

KEYS = 20_000
BUCKETS = 1000
PAGE_ROWS = 500
# Without the icon of the tab: page, style, program, session, and how people sign in. The overview adds what it shows.
LOGIN_REQUESTS_MAX = 5
VIEW_REQUESTS_MAX = 10
BYTES_MAX = 40_000
# Rows that are drawn at a time: those on the screen, and some around them.
DRAWN_ROWS_MAX = 300
SCROLL_STEPS = 40
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 60_000, "uploadThroughput": 60_000}
# It takes a minute on the slow network.
REPORT_BYTES = 3_600_000
FAST = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def network(page: Page, conditions: dict) -> None:
    """Sets how quick the network is."""
    page.cdp("Network.enable")
    page.cdp("Network.emulateNetworkConditions", **conditions)


def test_first_views_stay_small(page: Page, console_store: Cairn):
    """From an empty cache, until the view can be used; the other views are read afterwards."""
    overview = console_speed.first_view(page)
    page.sign_out()
    login = console_speed.first_view(page)
    page.sign_in(console_store.secrets.system_token)
    # The modules of a folder are single files and not compressed.
    if "CAIRN_CONSOLE_DIR" not in os.environ:
        assert login.requests_without_icon <= LOGIN_REQUESTS_MAX, login.names
        assert overview.requests <= VIEW_REQUESTS_MAX, overview.names
        assert not [name for view in (login, overview) for name in view.names if "/views/" in name]
        assert max(login.bytes, overview.bytes) < BYTES_MAX, (login, overview)


def wait_for_rows(page: Page, rows: int) -> None:
    """Waits until a list has more than so many rows, and draws some."""
    page.wait("""async (rows) => Number(document.querySelector("main table")?.getAttribute("aria-rowcount")) > rows
        && document.querySelectorAll("tbody tr:not([aria-hidden])").length > 0""", rows, what="a list")


def drawn_rows(page: Page) -> int:
    """Scrolls to the end in steps and returns how many rows were drawn at most."""
    # A frame takes its time on a busy machine, so each is a script of its own, with the limit of one.
    step = """async (part) => {
        scrollTo(0, document.documentElement.scrollHeight * part);
        await new Promise(requestAnimationFrame);
        return document.querySelectorAll("tbody tr").length;
    }"""
    return max(page.run(step, number / SCROLL_STEPS) for number in range(SCROLL_STEPS + 1))


def reads(page: Page, part: str) -> int:
    """Returns how many requests to URLs with this part there were since the last call."""
    return sum(part in url for url in page.requests())


def test_page_of_a_long_list_is_quick(page: Page, console_store: Cairn):
    """One page of many keys is read. Rows far from the screen are not drawn, so the layout takes the time of few."""
    console_speed.put_keys(console_store, "many-keys", KEYS)
    page.go("overview")
    page.requests()
    page.go("bucket", "many-keys", prefix="load/")
    wait_for_rows(page, PAGE_ROWS)
    assert page.run("async () => document.querySelectorAll('tbody tr').length") <= DRAWN_ROWS_MAX
    assert reads(page, "/objects?") == 1
    page.go("activity")
    page.wait("async () => document.querySelector('.act')", what="the newest activity")
    assert page.run("async () => document.querySelectorAll('.act').length") <= DRAWN_ROWS_MAX


def test_thousand_buckets_are_a_list(page: Page, console_store: Cairn):
    """Read once; drawn, scrolled and filtered with few rows."""
    console_speed.create_buckets(console_store, BUCKETS)
    page.go("overview")
    page.requests()
    page.go("buckets")
    wait_for_rows(page, BUCKETS)
    assert drawn_rows(page) <= DRAWN_ROWS_MAX
    page.run("async () => { const field = document.querySelector('main input[type=search]'); field.value = '00042'; field.dispatchEvent(new Event('input')); }")
    page.wait("async () => document.querySelectorAll('tbody tr:not([aria-hidden])').length === 1", what="one bucket")
    assert reads(page, "/buckets") == 1
    assert page.run("async () => document.querySelector('[data-view=buckets]').dataset.count") >= f"{BUCKETS:,}"


def test_slow_network_shows_what_happens(page: Page, console_store: Cairn, tmp_path: Path):
    """Rows of a skeleton, then the list; an upload with progress, and navigation meanwhile."""
    console_store.s3.create_bucket("far-away")
    file = tmp_path / "report.pdf"
    file.write_bytes(os.urandom(REPORT_BYTES))
    network(page, SLOW)
    try:
        with held(page, "/objects?"):
            page.run("async () => { location.hash = '#/bucket/far-away'; }")
        page.wait("async () => document.querySelector('.skeleton')", what="a skeleton")
        let_go(page)
        page.settled()
        page.upload("Files to upload", file)
        page.wait("async () => /[1-9]\\d? %/.test(document.querySelector('.sheet')?.textContent)", what="progress")
        page.go("sharing")
        page.see("Nothing is shared.")
    finally:
        network(page, FAST)
    page.see("1 file uploaded", seconds=120)
    assert console_store.s3.get("far-away", "report.pdf").body == file.read_bytes()
    page.click("Close")
