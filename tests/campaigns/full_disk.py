"""The long full-disk test: fills a small disk repeatedly. `--rounds N --seed S`.

Needs root and loop devices. Exits with 2 if they are missing.
"""

import argparse
import json
import shutil
import signal
import sys
from pathlib import Path

from harness import full_disk
from harness.disks import SmallDisk, Unavailable
from harness.load import Broken
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Runs the test, prints the report, and keeps the image and the log after a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="times that the disk becomes full (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="what the writers do, and how the disk becomes full")
    parser.add_argument("--folder", type=Path, help="where the image and the log go; on a real disk")
    parser.add_argument("--report", type=Path, help="write the figures there as JSON")
    # A terminated run must unmount its disks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / f"full-disk-{given.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    disk = None
    try:
        disk = SmallDisk(folder, full_disk.DISK_BYTES)
        counts = full_disk.run(disk.folder, folder, given.seed, lambda so_far: so_far.total() >= given.rounds)
    except Unavailable as missing:
        print(f"the full-disk test cannot run on this machine: {missing}", file=sys.stderr)
        return 2
    except Broken as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    finally:
        if disk is not None:
            disk.close()
    shutil.rmtree(folder)
    print(counts.line())
    if given.report is not None:
        given.report.write_text(json.dumps({"seed": given.seed, **counts.figures()}) + "\n")
    return 0
