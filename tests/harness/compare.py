"""Compares a store with the model of the crash tests, over S3 and with the offline checker."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import multipart_load, version_load
from .crash_model import Model, Version
from .event_replay import EventReplay
from .expect import Broken
from .load import BUCKET
from .s3 import object_target
from .server import BUILD, HOW_TO_BUILD, Cairn
from .wire import Response

# The engine's offline checker. CAIRN_CHECK names another build of it.
CHECKER = Path(os.environ.get("CAIRN_CHECK", BUILD / "examples" / "check_store"))
# Allows for growth in steps and fragmentation. Space beyond this was lost by crashes.
SPACE_FACTOR = 4
SPACE_FLOOR_BYTES = 1 << 30


@dataclass
class Report:
    """Counts of what a run has done."""

    cycles: int = 0
    acknowledged: int = 0
    unanswered: int = 0
    landed: int = 0
    uploads: int = 0
    versions: int = 0
    compared_bytes: int = 0
    offline_checks: int = 0
    events: int = 0
    deliveries: int = 0
    link_changes: int = 0
    downloads: int = 0
    seconds: float = 0.0
    # Follows the storage events over all cycles.
    replay: EventReplay = field(default_factory=EventReplay, repr=False)

    def line(self) -> str:
        """Returns a line for the report."""
        return (
            f"{self.cycles} cycles in {self.seconds:.0f} s, {self.acknowledged} acknowledged changes, "
            f"{self.unanswered} unanswered ({self.landed} of them found done), {self.uploads} unfinished uploads, "
            f"{self.versions} versions, {self.compared_bytes >> 20} MiB and {self.events} events compared, "
            f"{self.deliveries} deliveries received, {self.link_changes} changes of links, {self.downloads} downloads through them, "
            f"{self.offline_checks} offline checks, no difference"
        )

    def figures(self) -> dict[str, float]:
        """Returns a JSON object."""
        return {name: value for name, value in vars(self).items() if name != "replay"}


def match_listed(model: Model, key: str, allowed: list[Version | None], listed: tuple[int, str] | None) -> Version | None:
    """Returns the allowed version that the list shows. Fails if it shows none of them."""
    for version in allowed:
        if version is None and listed is None:
            return None
        if version is not None and listed == (version.size, model.etag(key, version)):
            return version
    raise Broken(f"{key}: the list shows {listed}, expected one of {allowed}")


def compare(store: Cairn, model: Model, report: Report) -> None:
    """Lists and reads everything and compares it with the model, and the events with the lists."""
    s3, states = store.s3, model.all()
    listed = s3.list_all(BUCKET)
    if strangers := set(listed) - set(states):
        raise Broken(f"unknown keys in the list: {sorted(strangers)[:5]}")
    found = {key: match_listed(model, key, state.allowed(), listed.get(key)) for key, state in states.items()}
    with s3.connect() as connection:
        for key, version in found.items():
            response = s3.request("GET", object_target(BUCKET, key), connection=connection)
            compare_object(model, key, version, response)
            report.compared_bytes += len(response.body)
    report.uploads += multipart_load.compare(s3, BUCKET, model)
    report.versions += version_load.compare(s3, model)
    report.replay.compare(store, BUCKET, version_load.BUCKET)
    report.events = len(report.replay.ids)
    for key, state in states.items():
        report.unanswered += len(state.pending)
        report.landed += model.settle(state, found[key])


def compare_object(model: Model, key: str, version: Version | None, response: Response) -> None:
    """Asserts that an object has the listed content, byte for byte, or is absent."""
    if version is None:
        if response.status != 404:
            raise Broken(f"{key}: deleted or never written, but GET answers {response.status}")
    elif response.status != 200 or response.body != model.body(key, version):
        raise Broken(f"{key}: GET answers {response.status}, {len(response.body)} bytes, expected {version}")


def volume_bytes(data: Path) -> int:
    """Returns the bytes that the volumes occupy on the disk."""
    return sum(path.stat().st_blocks * 512 for path in data.glob("slices/*/volumes/*.vol"))


def check_space(store: Cairn, model: Model) -> None:
    """Asserts that the volumes stay bounded like the working set: lost space would make them grow without limit."""
    bound = max(SPACE_FLOOR_BYTES, SPACE_FACTOR * model.live_bytes())
    used = volume_bytes(store.data)
    if used > bound:
        raise Broken(f"the volumes hold {used} bytes for {model.live_bytes()} live ones: space is being lost")


def check_offline(store: Cairn, report: Report) -> dict:
    """Runs the offline checker, which compares free map, records, counters and payloads, and returns its output."""
    if not CHECKER.is_file():
        raise Broken(f"{CHECKER} is missing; {HOW_TO_BUILD}")
    done = subprocess.run(
        [CHECKER, str(store.data)], env=store.environment(), capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0 or json.loads(done.stdout)["orphaned_units"] != 0:
        raise Broken(f"the offline check found:\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    report.offline_checks += 1
    return json.loads(done.stdout)


def empty_and_check(store: Cairn, model: Model) -> None:
    """Deletes everything and asserts that the bucket can be deleted."""
    s3 = store.s3
    with s3.connect() as connection:
        for key in model.all():
            s3.request("DELETE", object_target(BUCKET, key), connection=connection)
    if s3.list(BUCKET).keys or s3.request("DELETE", f"/{BUCKET}").status != 204:
        raise Broken("the bucket is not empty after everything was deleted")
