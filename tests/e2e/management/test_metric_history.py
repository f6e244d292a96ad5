"""The server's own figures over time: requests, latency and space of the last hour and day."""

import time
from collections.abc import Callable
from datetime import datetime

import pytest

from harness.cli import Cli
from harness.management import expect, expect_refusal
from harness.server import Cairn
from harness.wait import until

SAMPLE_SECONDS = 60


@pytest.fixture(scope="module")
def counted(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that has had some requests."""
    store = make_module_store().start()
    store.s3.create_bucket("photos")
    store.s3.put("photos", "a", b"x" * 1000)
    for _ in range(5):
        store.s3.get("photos", "a")
        store.s3.list("photos")
    store.s3.get("photos", "missing")
    return store


def history(store: Cairn, period: str = "hour") -> dict:
    """Returns the history of a period."""
    return expect(store.admin.get("/system/metrics/history", params={"period": period}), 200)


def test_requests_are_in_the_history(counted: Cairn):
    """Every request is in exactly one interval."""
    found = until(lambda: (now := history(counted))["time"] and sum(now["planes"]["data"]["reads"]) >= 6 and now, "a sample", SAMPLE_SECONDS)
    data = found["planes"]["data"]
    # The bucket was created and the object written; the missing object was a read.
    assert [sum(data[name]) for name in ("reads", "writes", "lists", "client_errors", "server_errors")] == [6, 2, 5, 1, 0]
    assert sum(data["bytes_in"]) == 1000 and sum(data["bytes_out"]) >= 5000
    assert any(data["latency_p50"]) and all(p99 is None or p99 >= p50 for p50, p99 in zip(data["latency_p50"], data["latency_p99"], strict=True))
    assert found["storage"]["physical_bytes"][-1] == found["storage"]["logical_bytes"][-1] == 1000
    lists = [found["time"], found["seconds"], *(values for group in (*found["planes"].values(), found["storage"]) for values in group.values())]
    assert len({len(values) for values in lists}) == 1, "one value for each interval"
    assert sum(found["planes"]["management"]["reads"]) > 0
    assert (found["period_seconds"], found["interval_seconds"]) == (3600, 10)


def test_periods(counted: Cairn):
    """The default is the hour. The day has intervals of a minute."""
    assert expect(counted.admin.get("/system/metrics/history"), 200)["period"] == "hour"
    day = history(counted, "day")
    assert (day["period_seconds"], day["interval_seconds"]) == (86400, 60)
    expect_refusal(counted.admin.get("/system/metrics/history?period=week"), 400, "INVALID_REQUEST")


def test_command_line_shows_rows(counted: Cairn):
    """A row for each interval, with the same figures."""
    until(lambda: history(counted)["time"], "a sample", SAMPLE_SECONDS)
    cli = Cli(counted.admin.address, counted.secrets.system_token)
    heads = cli.text("history").splitlines()[0].split()
    assert heads == ["TIME", "SECONDS", "READS", "WRITES", "LISTS", "4XX", "5XX", "P50", "P99", "STORED"]
    assert cli.json("history", "--period", "day")["period"] == "day"
    assert "expected hour, day or month" in cli.fails("history", "--period", "week", code=2)


def ended_at(found: dict) -> list[float]:
    """Returns when the intervals ended."""
    return [datetime.fromisoformat(time).timestamp() for time in found["time"]]


def begun_at(found: dict) -> list[float]:
    """Returns when the intervals began."""
    return [end - seconds for end, seconds in zip(ended_at(found), found["seconds"], strict=True)]


def test_a_restart_is_a_gap(make_module_store: Callable[..., Cairn]):
    """The history goes on, and no interval covers the time between: a gap, not a line at zero."""
    store = make_module_store().start()
    until(lambda: history(store)["time"], "a sample", SAMPLE_SECONDS)
    before = history(store)
    assert store.stop() == 0
    stopped = time.time()
    time.sleep(0.01)
    store.start()
    # A sample that was taken before the stop may be the last one at first.
    found = until(lambda: begun_at(now := history(store))[-1] >= stopped - 0.01 and now, "a sample after the start", SAMPLE_SECONDS)
    assert found["started_at"] == before["started_at"] and found["time"][: len(before["time"])] == before["time"]
    assert [begin for begin, end in zip(begun_at(found), ended_at(found), strict=True) if begin < stopped - 0.01 and end > stopped] == []

