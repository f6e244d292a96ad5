"""The tables and plots of docs/benchmarks are what the scripts make of the measured rounds."""

import json
import re
import sys
from xml.etree import ElementTree

import pytest

from tidy.test_files import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "loadtests/scenarios"))

import plot  # noqa: E402  (the path comes first)
import results  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = REPOSITORY / "docs/benchmarks"
EXAMPLE = plot.Plot("example", "example.csv", "p99_ms", "Title <of> it", "milliseconds")


def report(rate: float, p99_us: float) -> str:
    """The parts of a cairn-load report that are read."""
    latency = {"p50": 500.0, "p99": p99_us, "p99_9": 9000.0, "max": 10_000.0}
    total = {"requests": 1000, "requests_per_second": rate, "bytes_per_second": 4 * 2**20, "latency_us": latency}
    return json.dumps({"total": total, "error_count": 0, "rate": 2000, "server": {"cpu_seconds": 0.05}})


def picture(works: dict) -> ElementTree.Element:
    """The parsed picture of some rounds."""
    return ElementTree.fromstring(plot.draw(EXAMPLE, works))


def test_results_become_csv_and_table(tmp_path):
    """Rounds of one work and server are one row, with their median, lowest and highest."""
    for round_, p99 in enumerate((1000, 3000, 2000), 1):
        (tmp_path / f"get@quiet@{round_}.json").write_text(report(1990, p99))
    (tmp_path / "get@scrub@1.json").write_text(report(1000, 4000))
    (tmp_path / "get@scrub@1.extra").write_text("meanwhile 12\n")
    (tmp_path / "get@scrub@2.json").write_text("")  # a run that failed
    (tmp_path / "start@quiet@1.json").write_text('{"measures": {"ready_ms": 250}}')
    lines = results.read_folder(tmp_path)
    results.write_csv(tmp_path / "results.csv", lines)
    assert results.read_csv(tmp_path / "results.csv")[0]["p99_ms"] == "1"
    table = results.table(results.read_csv(tmp_path / "results.csv"))
    quiet = next(line for line in table.splitlines() if line.startswith("| get | quiet"))
    assert "| 3 | 2 000 | 1 990 | 4 | 0.5 | 2 (1 to 3) | 9 | 50 |" in quiet
    assert "errors" not in table and "| 12 |" in table and "| 250 |" in table


def test_bars_and_whiskers_have_their_lengths():
    """On a linear axis from 0, a bar is as long as its median, and its whisker spans the rounds."""
    root = picture({"get": {"one": [1.0, 2.0, 4.0], "other": [4.0, 4.0, 4.0]}})
    bars = [rectangle for rectangle in root.iter(f"{SVG}rect") if rectangle.get("class") != "ground"]
    lengths = [float(bar.get("width")) for bar in bars]
    assert lengths[0] * 2 == pytest.approx(lengths[1], abs=0.2)
    whisker = next(path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "whisker")
    begin, end = (float(number) for number in re.match(r"M(\S+) \S+?H([\d.]+)", whisker).groups())
    assert begin - plot.LEFT == pytest.approx(lengths[1] / 4, abs=0.2) and end - plot.LEFT == pytest.approx(lengths[1], abs=0.2)


def test_a_wide_range_has_a_logarithmic_axis():
    """Short bars stay visible beside long ones."""
    assert plot.axis(1, 20) == (False, [0, 5, 10, 15, 20])
    assert plot.axis(0.5, 2000) == (True, [0.1, 1, 10, 100, 1000, 10_000])
    assert plot.axis(0, 0)[1][-1] > 0
    root = picture({"get": {"fast": [1.0], "slow": [1000.0]}})
    assert min(float(bar.get("width")) for bar in root.iter(f"{SVG}rect") if bar.get("class") == "c0") > 0


def test_a_picture_is_accessible():
    """It has a title, a description with the figures, names that are escaped, and colours for both themes."""
    root = picture({"a & b": {"one": [1.0, 2.0, 3.0]}})
    assert root.get("role") == "img" and root.get("aria-labelledby") == "title description"
    assert root.find(f"{SVG}title").text == "Title <of> it"
    assert "a & b, one: 2 (1 to 3)" in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text


def test_committed_pictures_are_those_of_the_committed_figures():
    """After a change of figures or script: `loadtests/scenarios/plot.py`."""
    expected = plot.drawn(PICTURES)
    assert {path.name: path.read_text() for path in PICTURES.glob("*.svg")} == expected
    page = (REPOSITORY / "docs/benchmarks.md").read_text()
    assert [name for name in expected if f"](benchmarks/{name})" not in page] == []
