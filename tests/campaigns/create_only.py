"""Writers that may create and never overwrite: `--keys 10000 --kills 200 --writers 64 --seed S`.

Every key must be written exactly once, also when the server is killed while all writers wait for their answers.
"""

import argparse
import shutil
import sys
from pathlib import Path

from harness import create_only
from harness.expect import Broken
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Runs the test, prints what it saw, and keeps the store after a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000, help="keys that all writers race for (default 10000)")
    parser.add_argument("--kills", type=int, default=200, help="races in which the server is killed (default 200)")
    parser.add_argument("--writers", type=int, default=64, help="writers at once (default 64)")
    parser.add_argument("--seed", type=int, default=1, help="keys, order of the requests, and when the kills strike")
    parser.add_argument("--folder", type=Path, help="where the store goes; on a real disk")
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / f"create-only-{given.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        outcome = create_only.run(folder, given.seed, given.keys, min(given.kills, given.keys), given.writers, print)
    except Broken as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print(f"seed {given.seed}, {given.writers} writers: {outcome.line()}")
    return 0
