"""The long power-cut test: `--cuts N --seed S --file-system ext4|xfs`, or `--snapshot`.

Needs root, loop devices and FUSE (not with --snapshot). Exits with 2 if one of them is missing.
"""

import argparse
import json
import shutil
import signal
import sys
from pathlib import Path

from harness import power_cut
from harness.disks import ForgetfulDisk, SnapshotDisk, Unavailable
from harness.load import Broken
from harness.server import RUNS


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=100, help="cycles, each with at least one cut (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="what the writers do, when the cuts come, what they leave")
    parser.add_argument("--file-system", choices=["ext4", "xfs"], default="ext4", help="on the forgetful disk")
    parser.add_argument("--snapshot", action="store_true", help="cut by copying the image of the disk in an instant")
    parser.add_argument("--folder", type=Path, help="where images and logs go; on a real disk")
    parser.add_argument("--report", type=Path, help="write the figures there as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Runs the test, prints the report, and keeps images and logs after a failure."""
    # A terminated run must unmount its disks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = parsed(arguments)
    kind = "snapshot" if given.snapshot else given.file_system
    folder = given.folder or RUNS / f"power-cut-{kind}-{given.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    disk = None
    try:
        disk = SnapshotDisk(folder) if given.snapshot else ForgetfulDisk(folder, given.file_system)
        done = power_cut.run(disk, folder, given.seed, lambda so_far: so_far.cycles >= given.cuts)
    except Unavailable as missing:
        print(f"the power-cut test cannot run on this machine: {missing}", file=sys.stderr)
        return 2
    except Broken as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    finally:
        if disk is not None:
            disk.close()
    shutil.rmtree(folder)
    print(f"{kind}, seed {given.seed}, cuts {done.cuts}: {done.report.line()}")
    if given.report is not None:
        figures = {"disk": kind, "seed": given.seed, "cuts": done.cuts, **done.report.figures()}
        given.report.write_text(json.dumps(figures) + "\n")
    return 0
