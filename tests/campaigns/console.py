"""The speed of the console at full size: first views, a page among a million keys, thousands of buckets, a large upload.

Prints one line for each measurement and fails if one is over its limit. The rate of an upload is compared with that of the
AWS CLI with its defaults, in turn, on the same server. `CAIRN_TEST_PROFILE=release` measures what is shipped.
"""

import argparse
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from harness import console_speed
from harness.console import Console
from harness.page import Page, console_browser, start_with_console
from harness.server import RUNS, Cairn

PARTS = ("first-view", "keys", "buckets", "upload")
FIRST_BYTES_MAX = 40_000
PAGE_ROWS = 500
MIB = 1 << 20


class Report:
    """Lines of measurements, and whether all were within their limits."""

    def __init__(self) -> None:
        self.is_good = True

    def line(self, name: str, value: float, limit: float, unit: str, least: bool = False) -> None:
        """Prints a measurement. `least`: the limit is the smallest good value."""
        good = value >= limit if least else value <= limit
        self.is_good &= good
        print(f"{name:44} {value:10.2f} {unit:4} {'at least' if least else 'at most'} {limit:g}{'' if good else '  MISSED'}", flush=True)


def first_views(page: Page, store: Cairn, report: Report, rounds: int) -> None:
    """The login, and the overview of somebody who is signed in."""
    for name, is_signed_in, requests_max in (("login", False, 5), ("overview", True, 10)):
        page.sign_in(store.secrets.system_token)
        if not is_signed_in:
            page.sign_out()
        seen = [console_speed.first_view(page) for _ in range(rounds)]
        requests = max(view.requests if is_signed_in else view.requests_without_icon for view in seen)
        report.line(f"{name}: requests", requests, requests_max, "")
        report.line(f"{name}: bytes", max(view.bytes for view in seen), FIRST_BYTES_MAX, "B")
        report.line(f"{name}: can be used after", statistics.median(view.milliseconds for view in seen), 300, "ms")
    page.sign_in(store.secrets.system_token)


def uploads(page: Page, store: Cairn, report: Report, folder: Path, mib: int, rounds: int) -> None:
    """The same file through the browser and with the AWS CLI, in turn."""
    store.s3.create_bucket("uploads")
    file = folder / "film.bin"
    with file.open("wb") as out:
        for _ in range(mib):
            out.write(os.urandom(MIB))
    ratios = []
    for number in range(rounds):
        # The console would ask whether the object of the last round is replaced.
        store.s3.delete("uploads", file.name)
        aws = console_speed.upload_with_aws(store, "uploads", file)
        with console_speed.Memory(store.process.pid) as memory:
            browser = console_speed.upload_in_browser(page, store, "uploads", file, file.name)
        ratios.append(aws / browser)
        print(f"round {number + 1}: aws s3 cp {mib / aws:.0f} MiB/s, browser {mib / browser:.0f} MiB/s, ratio {aws / browser:.2f}, server at most {memory.most / MIB:.0f} MiB", flush=True)
    report.line("upload: rate of the browser to the AWS CLI", statistics.median(ratios), 0.7, "", least=True)


def main(arguments: list[str]) -> int:
    """Measures, and fails if a limit was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="this part alone; may come more than once")
    parser.add_argument("--keys", type=int, default=1_000_000, help="objects of the long list (default 1000000)")
    parser.add_argument("--buckets", type=int, default=5000, help="buckets of the list of buckets (default 5000)")
    parser.add_argument("--mib", type=int, default=4096, help="size of the upload (default 4096)")
    parser.add_argument("--rounds", type=int, default=5, help="times that each is measured (default 5)")
    given = parser.parse_args(arguments)
    parts, report = given.part or PARTS, Report()
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="console-", dir=RUNS))
    store = Cairn(folder / "store")
    try:
        with console_browser(folder / "browser") as browser:
            start_with_console(store)
            page = Page(browser, Console(store).address)
            page.sign_in(store.secrets.system_token)
            if "first-view" in parts:
                first_views(page, store, report, given.rounds)
            if "keys" in parts:
                console_speed.put_keys(store, "keys", given.keys)
                seen = [console_speed.page_of_keys(page, "keys", PAGE_ROWS) for _ in range(given.rounds)]
                report.line(f"page of {PAGE_ROWS} among {given.keys} keys", statistics.median(seen), 200, "ms")
                seen = [console_speed.newest_activity(page) for _ in range(given.rounds)]
                report.line(f"newest activity among {given.keys} storage events", statistics.median(seen), 100, "ms")
            if "upload" in parts:
                uploads(page, store, report, folder, given.mib, given.rounds)
            if "buckets" in parts:
                console_speed.create_buckets(store, given.buckets)
                seen = [console_speed.list_of_buckets(page, given.buckets) for _ in range(given.rounds)]
                for number, (name, limit) in enumerate((("drawn after", 1000), ("longest pause while scrolling", 200), ("filtered after", 300))):
                    report.line(f"{given.buckets} buckets: {name}", statistics.median(measured[number] for measured in seen), limit, "ms")
    finally:
        store.kill()
    shutil.rmtree(folder)
    return 0 if report.is_good else 1
