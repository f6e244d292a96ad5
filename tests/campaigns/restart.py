"""Restarts after kill -9 of a store with many objects. `--objects N --restarts N`.

Fails if a restart takes longer than the limit.
"""

import argparse
import shutil
import sys
from pathlib import Path

from harness import restart
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Fills, kills and starts the store, prints the times, and fails if a restart takes longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000, help="objects of the store (default 1000000)")
    parser.add_argument("--size", default="1KiB:95,20KiB:5", help="their sizes, as cairn-load takes them")
    parser.add_argument("--restarts", type=int, default=5, help="kills with the page cache kept, and as many without it")
    parser.add_argument("--seconds-max", type=float, default=3.0, help="longest time to be ready (default 3)")
    parser.add_argument("--folder", type=Path, help="where the store goes; on a real disk")
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / "restart"
    try:
        report = restart.run(folder, given.objects, given.size, given.restarts)
    except AssertionError as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(report.json())
    return 0 if report.worst() <= given.seconds_max else 1
