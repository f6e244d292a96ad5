"""What a user of the console waits for: the budget of a first view, long lists, and a slow network.

Short slices of `tests/campaign console`. Other tests run at the same time, so times are compared with that of a plain list of 2000
rows in the same browser, and only what is much too slow is found.
"""

import os
from pathlib import Path

from harness import console_speed
from harness.page import Page
from harness.server import Cairn

KEYS = 20_000
BUCKETS = 1000
PAGE_ROWS = 500
# Without the icon of the tab: page, style, program, session, and how people sign in. The overview adds what it shows.
LOGIN_REQUESTS_MAX = 5
VIEW_REQUESTS_MAX = 10
BYTES_MAX = 40_000
SLOW = {"offline": False, "latency": 300, "downloadThroughput": 60_000, "uploadThroughput": 60_000}
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
    assert min(login.milliseconds, overview.milliseconds) < console_speed.PLAIN_LISTS_MAX * console_speed.plain_list(page), (login, overview)


def test_page_of_a_long_list_is_quick(page: Page, console_store: Cairn):
    """The first 500 of many keys. Rows far from the screen are not drawn, so the layout takes the time of few."""
    console_speed.put_keys(console_store, "many-keys", KEYS)
    took = min(console_speed.page_of_keys(page, "many-keys", PAGE_ROWS) for _ in range(3))
    assert 0 < took < console_speed.PLAIN_LISTS_MAX * console_speed.plain_list(page)
    assert page.run("async () => document.querySelectorAll('tbody tr').length") <= 300
    took = min(console_speed.newest_activity(page) for _ in range(3))
    assert 0 < took < console_speed.PLAIN_LISTS_MAX * console_speed.plain_list(page)


def test_thousand_buckets_are_a_list(page: Page, console_store: Cairn):
    """Drawn, scrolled and filtered without standing still."""
    console_speed.create_buckets(console_store, BUCKETS)
    times = [console_speed.list_of_buckets(page, BUCKETS) for _ in range(3)]
    limit = console_speed.PLAIN_LISTS_MAX * console_speed.plain_list(page)
    # The best of three, for the drawing, the longest pause and the filter.
    assert all(0 < min(kind) < limit for kind in zip(*times, strict=True)), (times, limit)
    assert page.run("async () => document.querySelector('[data-view=buckets]').dataset.count") >= f"{BUCKETS:,}"


def test_slow_network_shows_what_happens(page: Page, console_store: Cairn, tmp_path: Path):
    """Rows of a skeleton, then the list; an upload with progress, and navigation meanwhile."""
    console_store.s3.create_bucket("far-away")
    file = tmp_path / "report.pdf"
    file.write_bytes(os.urandom(150_000))
    network(page, SLOW)
    try:
        page.run("async () => { location.hash = '#/bucket/far-away'; }")
        page.wait("async () => document.querySelector('.skeleton')", what="a skeleton")
        page.settled()
        page.upload("Files to upload", file)
        page.wait("async () => /[1-9]\\d? %/.test(document.querySelector('.sheet')?.textContent)", what="progress")
        page.go("sharing")
        page.see("Nothing is shared.")
        page.see("1 file uploaded", seconds=120)
    finally:
        network(page, FAST)
    assert console_store.s3.get("far-away", "report.pdf").body == file.read_bytes()
    page.click("Close")
