"""The speed of the console: bytes and requests of a first view, a page of a long list, a list of many buckets, uploads."""

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import cairn_load
from .page import Page
from .wait import until
from .server import REPOSITORY, Cairn, clean_environment

LINES = 16
# What a user waits for. The page itself marks the moment that a view can be used.
FIRST_VIEW = """async () => {
    const shown = performance.getEntriesByName("shown")[0].startTime;
    const loaded = performance.getEntries().filter(({entryType, startTime}) => ["navigation", "resource"].includes(entryType) && startTime < shown);
    return {milliseconds: shown, requests: loaded.length, bytes: loaded.reduce((sum, {transferSize}) => sum + transferSize, 0), names: loaded.map(({name}) => name)};
}"""
# Goes to a place and returns the milliseconds until so many rows are drawn and the browser has painted them.
UNTIL_ROWS = """async (where, rows) => {
    const begin = performance.now();
    location.hash = where;
    for (;;) {
        await new Promise(requestAnimationFrame);
        const table = document.querySelector("main table");
        if (Number(table?.getAttribute("aria-rowcount")) > rows && table.querySelectorAll("tbody tr:not([aria-hidden])").length > 0) break;
        if (performance.now() - begin > 20000) return -1;
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    return performance.now() - begin;
}"""
# Goes to the activity and returns the milliseconds until its newest rows are drawn and the browser has painted them.
UNTIL_NEWEST = """async () => {
    const begin = performance.now();
    location.hash = "#/activity";
    while (!document.querySelector(".act")) {
        await new Promise(requestAnimationFrame);
        if (performance.now() - begin > 20000) return -1;
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    return performance.now() - begin;
}"""
# Scrolls to the end in steps and returns the longest time that the page stood still.
SCROLL = """async () => {
    let longest = 0;
    for (let step = 0; step <= 40; step += 1) {
        const before = performance.now();
        scrollTo(0, document.documentElement.scrollHeight * step / 40);
        await new Promise(requestAnimationFrame);
        await new Promise((resolve) => setTimeout(resolve, 0));
        longest = Math.max(longest, performance.now() - before);
    }
    return longest;
}"""


@dataclass(frozen=True)
class FirstView:
    """The measurements of a first view, from an empty cache."""

    requests: int
    bytes: int
    milliseconds: float
    names: list[str]

    @property
    def requests_without_icon(self) -> int:
        """The requests but that of the icon of the tab, which a browser may leave out."""
        return len([name for name in self.names if not name.endswith("icon.svg")])


def first_view(page: Page, where: str = "") -> FirstView:
    """Loads the page from an empty cache and returns what happened until it could be used."""
    page.cdp("Network.enable")
    page.cdp("Network.clearBrowserCache")
    page.load(where)
    page.wait("async () => performance.getEntriesByName('shown').length > 0", what="a view")
    return FirstView(**page.run(FIRST_VIEW))


def put_keys(store: Cairn, bucket: str, keys: int) -> None:
    """Creates a bucket with many small objects below `load/`."""
    cairn_load.run(store, "prepare", bucket, "--keys", str(keys), "--size", "1", "--connections", "64", "--warm-up", "0s")


def create_buckets(store: Cairn, count: int) -> None:
    """Creates many empty buckets."""
    def create(first: int) -> None:
        for number in range(first, count, LINES):
            store.s3.create_bucket(f"team-{number:05}")

    with ThreadPoolExecutor(LINES) as crowd:
        list(crowd.map(create, range(LINES)))


def page_of_keys(page: Page, bucket: str, rows: int) -> float:
    """Returns the milliseconds from a click on a prefix until its first page of rows is drawn."""
    page.go("overview")
    return page.run(UNTIL_ROWS, f"#/bucket/{bucket}?prefix=load%2F", rows)


def newest_activity(page: Page) -> float:
    """Returns the milliseconds from a click on the activity until its newest rows are drawn."""
    page.go("overview")
    return page.run(UNTIL_NEWEST)


def list_of_buckets(page: Page, count: int) -> tuple[float, float, float]:
    """Returns milliseconds until all buckets can be scrolled, the longest pause while scrolling, and of a filter."""
    page.go("overview")
    drawn = page.run(UNTIL_ROWS, "#/buckets", count)
    longest = page.run(SCROLL)
    page.run("async () => { const field = document.querySelector('main input[type=search]'); field.value = '00042'; field.dispatchEvent(new Event('input')); window.begun = performance.now(); }")
    filtered = page.wait("async () => document.querySelectorAll('tbody tr:not([aria-hidden])').length === 1 && performance.now() - window.begun", what="one bucket")
    return drawn, longest, filtered


def process_memory(process: int) -> int:
    """Returns the resident memory of a process without files, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024


class Memory:
    """The most memory of a process while something runs, in bytes."""

    def __init__(self, process: int):
        self.process, self.most, self.ended = process, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        """Looks every tenth of a second."""
        while not self.ended.wait(0.1):
            self.most = max(self.most, process_memory(self.process))

    def __enter__(self) -> "Memory":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def upload_in_browser(page: Page, store: Cairn, bucket: str, file: Path, key: str) -> float:
    """Uploads a file by the button and returns the seconds until it is an object."""
    page.go("bucket", bucket)
    begun = time.monotonic()
    page.upload("Files to upload", file)
    until(lambda: page.run("async () => / uploaded$/.test(document.querySelector('.sheet b')?.textContent)"), "the upload", seconds=1800)
    took = time.monotonic() - begun
    assert int(store.s3.head(bucket, key).get("content-length")) == file.stat().st_size
    page.click("Close")
    return took


def upload_with_aws(store: Cairn, bucket: str, file: Path) -> float:
    """Uploads a file with `aws s3 cp` as it is installed and returns the seconds, with those of its start."""
    environment = clean_environment() | {
        "AWS_ACCESS_KEY_ID": store.secrets.root_access_key, "AWS_SECRET_ACCESS_KEY": store.secrets.root_secret_key, "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true", "HOME": os.devnull,
    }
    command = [str(REPOSITORY / "tests/.venv/bin/aws"), "s3", "cp", "--quiet", "--endpoint-url", store.endpoint, str(file), f"s3://{bucket}/aws"]
    begun = time.monotonic()
    subprocess.run(command, env=environment, check=True)
    return time.monotonic() - begun
