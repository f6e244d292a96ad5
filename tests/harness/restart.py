"""Measures restarts of a large store after SIGKILL, with warm and cold page cache."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cairn_load
from .management import expect
from .server import Cairn
from .wait import until

BUCKET = "restart"
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
POLL_SECONDS = 0.001
READY_SECONDS_MAX = 60.0
# Acknowledged before the kill, so that it comes in the middle of a load.
PUTS_MIN = 500


class NotReady(AssertionError):
    """The store did not come back."""


@dataclass
class Report:
    """Seconds from the process start to the first 200 of GET /ready, for each restart."""

    objects: int
    size: str
    fill_seconds: float
    data_bytes: int
    warm_seconds: list[float]
    cold_seconds: list[float]

    def json(self) -> str:
        """Returns a JSON object."""
        return json.dumps(asdict(self))

    def worst(self) -> float:
        """Returns the duration of the longest restart."""
        return max(self.warm_seconds + self.cold_seconds)


def puts(store: Cairn) -> float:
    """Returns how many puts the server has acknowledged since its start."""
    found = expect(store.admin.get("/system/metrics"), 200)["metrics"]
    labels = {"operation": "PutObject", "status_class": "2xx"}
    return sum(one["value"] for one in found if one["name"] == "service_requests_total" and labels.items() <= one["labels"].items())


def restart(store: Cairn, cold: bool) -> float:
    """Kills the server during puts, starts it, and waits for the first 200."""
    writers = cairn_load.spawn(
        store, "put", "--bucket", BUCKET, "--prefix", "during-the-kill/", "--keys", "20000", "--size", "4KiB:50,256KiB:50",
        "--connections", "16", "--duration", "60s", errors=subprocess.STDOUT,
    )
    until(lambda: puts(store) >= PUTS_MIN or writers.poll() is not None, "the load does not begin")
    assert writers.poll() is None, writers.communicate()[0]
    store.kill()
    writers.kill()
    writers.communicate()
    if cold:
        os.sync()
        DROP_CACHES.write_text("3")
    began = time.monotonic()
    store.spawn()
    while store.ready_status() != 200:
        if not store.running() or time.monotonic() - began > READY_SECONDS_MAX:
            raise NotReady(f"not ready after {time.monotonic() - began:.1f} s:\n{store.output()[-4000:]}")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


def run(folder: Path, objects: int, size: str, restarts: int) -> Report:
    """Fills a new store, then kills and restarts it. Cold restarts need permission to drop the page cache."""
    shutil.rmtree(folder, ignore_errors=True)
    store = Cairn(folder).start()
    try:
        kept = ("--keys", str(objects), "--size", size)
        began = time.monotonic()
        cairn_load.run(store, "prepare", BUCKET, *kept, "--connections", "256")
        report = Report(objects, size, round(time.monotonic() - began, 1), 0, [], [])
        print(f"{objects} objects of {size} in {report.fill_seconds} s", flush=True)
        for number in range(1, restarts + 1):
            report.warm_seconds.append(round(restart(store, cold=False), 3))
            print(f"restart {number}: ready after {report.warm_seconds[-1]} s", flush=True)
            if os.access(DROP_CACHES, os.W_OK):
                report.cold_seconds.append(round(restart(store, cold=True), 3))
                print(f"restart {number}, page cache dropped: ready after {report.cold_seconds[-1]} s", flush=True)
        files = (path for path in store.data.rglob("*") if path.is_file())
        report.data_bytes = sum(path.stat().st_blocks * 512 for path in files)
        cairn_load.run(store, "get", BUCKET, *kept, "--verify", "--connections", "16", "--duration", "5s")
        return report
    finally:
        store.kill()
