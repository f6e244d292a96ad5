#!/usr/bin/env python3
"""Turns the results of a scenario into a CSV file and a Markdown table of medians and spreads.

    results.py FOLDER > table.md      # reads FOLDER/WORK@SERVER@ROUND.json, writes FOLDER/results.csv
    results.py FILE.csv > table.md    # the table again
    results.py FOLDER WORKS           # the same, but the table has only the works that this regular expression finds

A result is a report of cairn-load, or an object `{"measures": {...}}` of a scenario's own figures. A file WORK@SERVER@ROUND.extra
beside it, with lines `name value`, adds figures. A line of the CSV is one round.
"""

import csv
import json
import re
import statistics
import sys
from pathlib import Path

# Columns of the CSV after work, server and round, with their heading in the table. Latencies are in milliseconds.
MEASURES = {
    "due_per_second": "due /s",
    "requests_per_second": "requests /s",
    "mib_per_second": "MiB/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "p99_9_ms": "p99.9 ms",
    "max_ms": "longest ms",
    "errors": "errors",
    "server_cpu_us": "server CPU, µs a request",
    "meanwhile": "done meanwhile",
    "ready_ms": "ready after ms",
    "resident_mib": "resident MiB",
    "anonymous_mib": "of it no file",
    "disk_mib": "disk MiB",
    "used_mib": "used MiB",
    "metadata_mib": "metadata MiB",
    "payload_mib": "volumes MiB",
    "tree_depth": "depth",
    "metadata_bytes_each": "metadata bytes each",
    "disk_bytes_each": "disk bytes each",
}
# These would be the same in every line, or are in the plots only.
NOT_IN_TABLE = {"max_ms"}
KEY = ["work", "server", "round"]


def measures(report: dict) -> dict[str, float]:
    """The figures of one result."""
    if "measures" in report:
        return {name: float(value) for name, value in report["measures"].items()}
    total = report["total"]
    found = {"requests_per_second": total["requests_per_second"], "errors": report["error_count"]}
    if total["bytes_per_second"]:
        found["mib_per_second"] = total["bytes_per_second"] / 2**20
    if report.get("rate"):
        found["due_per_second"] = report["rate"]
    latency = total["latency_us"] or {}
    for name in ("p50", "p99", "p99_9", "max"):
        if name in latency:
            found[f"{name}_ms"] = latency[name] / 1000
    cpu = (report.get("server") or {}).get("cpu_seconds")
    if cpu and total["requests"]:
        found["server_cpu_us"] = cpu * 1e6 / total["requests"]
    return found


def read_folder(folder: Path) -> list[dict[str, str]]:
    """The lines of all results in a folder, in the order in which they were measured."""
    lines = []
    for path in sorted(folder.glob("*@*@*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name)):
        text = path.read_text()
        if not text.strip():
            continue  # the run failed, and the scenario has noted it
        found = measures(json.loads(text))
        extra = path.with_suffix(".extra")
        if extra.exists():
            found |= {name: float(value) for name, value in (line.split() for line in extra.read_text().splitlines())}
        line = dict(zip(KEY, path.stem.split("@"), strict=True))
        lines.append(line | {name: short(found[name]) for name in MEASURES if name in found})
    return lines


def short(value: float) -> str:
    """At least four significant digits, without an exponent."""
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def read_csv(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, lines: list[dict[str, str]]) -> None:
    """Writes the lines, without columns that are empty in all of them."""
    used = [name for name in MEASURES if any(line.get(name) for line in lines)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*KEY, *used], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def grouped(lines: list[dict[str, str]], measure: str) -> dict[str, dict[str, list[float]]]:
    """The rounds of one measure, by work and server, both in the order in which they first occur."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        if line.get(measure):
            found.setdefault(line["work"], {}).setdefault(line["server"], []).append(float(line[measure]))
    return found


def number(value: float) -> str:
    """Three significant digits, with a narrow space between thousands."""
    if value >= 1000:
        digits = 10 ** (len(str(int(value))) - 3)
        return f"{round(value / digits) * digits:,}".replace(",", " ")
    return f"{value:.3g}"


def spread(values: list[float]) -> str:
    """The median, and the lowest and highest round if they differ."""
    low, middle, high = number(min(values)), number(statistics.median(values)), number(max(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(lines: list[dict[str, str]]) -> str:
    """A row for each work and server; a cell has the median of the rounds, the lowest and the highest."""
    rounds = {name: grouped(lines, name) for name in MEASURES if name not in NOT_IN_TABLE}
    used = [name for name, works in rounds.items() if any(any(values) for servers in works.values() for values in servers.values())]
    rows = [["work", "server", "rounds", *(MEASURES[name] for name in used)], ["---"] * (3 + len(used))]
    for work, server in dict.fromkeys((line["work"], line["server"]) for line in lines):
        count = sum(line["work"] == work and line["server"] == server for line in lines)
        cells = [rounds[name].get(work, {}).get(server) for name in used]
        rows.append([work, server, str(count), *(spread(values) if values else "" for values in cells)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> int:
    """Prints the table of the folder or file that the command line names."""
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    place = Path(sys.argv[1])
    if place.is_dir():
        lines = read_folder(place)
        write_csv(place / "results.csv", lines)
    else:
        lines = read_csv(place)
    works = sys.argv[2] if len(sys.argv) == 3 else ""
    print(table([line for line in lines if re.search(works, line["work"])]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
