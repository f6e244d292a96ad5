"""The long crash test: repeated SIGKILL under load. `--cycles N --seed S`."""

import argparse
import json
import shutil
import sys
from pathlib import Path

from harness import crash
from harness.load import Broken
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Runs the test, prints the report, and keeps the store after a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=200, help="kills (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="what the writers do and how long each load lasts")
    parser.add_argument("--folder", type=Path, help="where the store goes; on a real disk")
    parser.add_argument("--report", type=Path, help="write the figures there as JSON")
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / f"crash-{given.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        report = crash.run(folder, given.seed, lambda so_far: so_far.cycles >= given.cycles)
    except Broken as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(f"seed {given.seed}, kill -9: {report.line()}")
    if given.report is not None:
        given.report.write_text(json.dumps({"seed": given.seed, **report.figures()}) + "\n")
    return 0
