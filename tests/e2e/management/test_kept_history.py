"""Figures over time survive a restart: requests, latency, and the space of each bucket. A damaged file is set aside."""

import hashlib
import json
import struct
import time
from collections.abc import Callable

import pytest

from harness.cli import Cli
from harness.management import expect, expect_refusal
from harness.server import Cairn
from harness.wait import until

SAMPLE_SECONDS = 60
HEAD_BYTES = 20


def reads(store: Cairn) -> int:
    """Returns the reads of objects in the last hour."""
    return sum(expect(store.admin.get("/system/metrics/history"), 200)["planes"]["data"]["reads"])


def days(store: Cairn) -> dict:
    """Returns the space of each bucket by day."""
    found = expect(store.admin.get("/storage/history"), 200)
    numbers = [found["capacity_bytes"], found["available_bytes"], found["other_physical_bytes"], found["other_objects"]]
    lines = [values for line in found["buckets"] for values in (line["physical_bytes"], line["objects"])]
    assert {len(values) for values in numbers + lines} == {len(found["time"])}, "one value for each day"
    return found


def of_bucket(store: Cairn, name: str) -> list[int | None]:
    """Returns the bytes of a bucket by day."""
    return next(line["physical_bytes"] for line in days(store)["buckets"] if line["bucket"] == name)


def test_figures_survive_a_restart(own_store: Cairn):
    """The samples of before, the figures of today, and what was dismissed."""
    store = own_store
    store.s3.create_bucket("photos")
    store.s3.put("photos", "a", b"x" * 1000)
    for _ in range(5):
        store.s3.get("photos", "a")
    until(lambda: reads(store) >= 5, "a sample", SAMPLE_SECONDS)
    began = expect(store.admin.get("/system/metrics/history"), 200)["started_at"]
    expect(store.admin.post("/attention/dismissals", {"subject": "amber disk"}), 200)
    assert store.stop() == 0
    store.start()
    assert reads(store) >= 5 and expect(store.admin.get("/system/metrics/history"), 200)["started_at"] == began
    assert of_bucket(store, "photos")[-1] == 1000
    assert [one["subject"] for one in expect(store.admin.get("/attention"), 200)["dismissed"]] == ["amber disk"]
    # The restart is a gap: what happens after it is added.
    store.s3.get("photos", "a")
    until(lambda: reads(store) >= 6, "a sample after the restart", SAMPLE_SECONDS)


def test_dismissal_survives_a_kill(own_store: Cairn):
    """It is written at once, and with it everything else."""
    own_store.s3.create_bucket("photos")
    expect(own_store.admin.post("/attention/dismissals", {"subject": "red backup"}), 200)
    file = own_store.data / "history"
    until(lambda: file.exists() and b"red backup" in file.read_bytes(), "the file")
    own_store.kill()
    # A write that the kill interrupted leaves a file that nobody reads.
    (own_store.data / "history.new").write_bytes(b"half a fi")
    own_store.start()
    assert [one["subject"] for one in expect(own_store.admin.get("/attention"), 200)["dismissed"]] == ["red backup"]
    assert own_store.stop() == 0 and not (own_store.data / "history.new").exists()


@pytest.mark.parametrize("harm", ["cut", "flipped", "empty", "foreign", "newer"])
def test_damaged_file_is_set_aside(own_store: Cairn, harm: str):
    """With a line in the log. The history begins anew, and the server serves."""
    own_store.s3.create_bucket("photos")
    until(lambda: len(days(own_store)["time"]) == 1, "the first figures")
    assert own_store.stop() == 0
    file = own_store.data / "history"
    content = file.read_bytes()
    wrong = {
        "cut": content[:-1], "flipped": content[:50] + bytes([content[50] ^ 1]) + content[51:], "empty": b"", "foreign": b"\0" * 5_000_000,
        "newer": content[:8] + struct.pack("<I", 2) + content[12:],
    }[harm]
    file.write_bytes(wrong)
    own_store.start()
    own_store.wait_output("the history of metrics cannot be read and begins anew")
    assert (own_store.data / "history.damaged").read_bytes() == wrong
    assert own_store.s3.put("photos", "a", b"x").status == 200
    assert len(days(own_store)["time"]) == 1


def test_days_of_the_past_are_shown(own_store: Cairn):
    """A bucket that did not exist then has nulls; one that is gone has a line as long as there is room."""
    assert own_store.stop() == 0
    now = int(time.time() * 1000)

    def numbers(*values: int) -> bytes:
        return struct.pack(f"<{len(values)}Q", *values)

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value)) + value.encode()

    day = numbers(now - 2 * 86_400_000, 10_000, 500, 7, 1) + struct.pack("<I", 1) + text("gone-by-now") + numbers(4711, 3)
    body = numbers(now) + struct.pack("<4I", 0, 0, 0, 1) + day + struct.pack("<2I", 0, 0)
    (own_store.data / "history").write_bytes(b"CAIRNHST" + struct.pack("<I", 1) + hashlib.sha256(body).digest()[:8] + body)
    own_store.start()
    own_store.s3.create_bucket("new-one")
    own_store.s3.put("new-one", "a", b"x" * 10)
    assert own_store.stop() == 0
    own_store.start()
    found = days(own_store)
    assert len(found["time"]) == 2 and found["other_physical_bytes"] == [7, 0]
    assert {line["bucket"]: line["physical_bytes"] for line in found["buckets"]} == {"new-one": [None, 10], "gone-by-now": [4711, None]}


def test_month_has_intervals_of_an_hour(store: Cairn):
    """Also for the command line."""
    month = expect(store.admin.get("/system/metrics/history?period=month"), 200)
    assert (month["period_seconds"], month["interval_seconds"]) == (30 * 86400, 3600)
    cli = Cli(store.admin.address, store.secrets.system_token)
    assert json.loads(cli.text("history", "--period", "month", "--json"))["period"] == "month"


def test_dismissals_have_a_name_and_an_end(store: Cairn):
    """In the answer and in the audit trail. They can be taken back. Bad ones change nothing."""
    made = expect(store.admin.post("/attention/dismissals", {"subject": "amber quota bytes photos"}), 200)
    assert made["by"] == "system" and made["subject"] == "amber quota bytes photos"
    assert expect(store.admin.get("/attention"), 200)["dismissed"] == [made]
    (event,) = expect(store.admin.get("/audit/events", params={"operation": "dismiss_attention"}), 200)["events"]
    assert (event["principal"], event["resource"]) == ("system", "amber quota bytes photos") and made["until"] in event["detail"]
    for body in ({"subject": ""}, {"subject": "x" * 257}, {"subject": "a\nb"}, {"subject": "a", "seconds": 86_401}, {"subject": "a", "seconds": -1}, {}, {"subject": "a", "until": "x"}):
        expect_refusal(store.admin.post("/attention/dismissals", body), 400, "INVALID_REQUEST")
    assert expect(store.admin.get("/attention"), 200)["dismissed"] == [made]
    expect(store.admin.post("/attention/dismissals", {"subject": made["subject"], "seconds": 0}), 200)
    assert expect(store.admin.get("/attention"), 200)["dismissed"] == []


def test_number_of_dismissals_is_limited(make_store: Callable[..., Cairn]):
    """They end within a day, so a limit is no obstacle for people."""
    store = make_store().start()
    for number in range(256):
        expect(store.admin.post("/attention/dismissals", {"subject": f"amber {number}"}), 200)
    expect_refusal(store.admin.post("/attention/dismissals", {"subject": "one more"}), 429, "TOO_MANY_REQUESTS")
    expect(store.admin.post("/attention/dismissals", {"subject": "amber 7", "seconds": 0}), 200)
    expect(store.admin.post("/attention/dismissals", {"subject": "one more"}), 200)


def test_backups_that_were_made_are_remembered(own_store: Cairn):
    """With the time whose state they show; holds that were given up do not count. After a restart, too."""
    admin = own_store.admin
    own_store.s3.create_bucket("photos")
    assert expect(admin.get("/attention"), 200)["backups"] == []

    def hold() -> str:
        begun = expect(admin.post("/storage/backup", {}), 202)["id"]
        until(lambda: expect(admin.get("/storage/backup"), 200)["state"] == "held", "a hold")
        return begun

    ended = expect(admin.delete("/storage/backup", params={"id": hold()}), 200)
    assert ended["state"] == "released"
    assert expect(admin.get("/attention"), 200)["backups"] == [ended["held_at"]]
    hold()
    assert own_store.stop() == 0
    own_store.start()
    assert expect(admin.get("/attention"), 200)["backups"] == [ended["held_at"]]
