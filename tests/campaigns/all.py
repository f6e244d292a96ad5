"""The whole reliability campaign, or parts of it: `[--scale F] [--part NAME ...] [--report FILE]`.

Runs each campaign as the command that it prints, and ends with a table of commands and results. docs/reliability.md
contains the last table. Needs the binaries and tools of `./test`, and root, loop devices and FUSE for the disks.
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# How many characters of a campaign's last line the table shows.
LINE_CHARACTERS_MAX = 400


@dataclass(frozen=True)
class Part:
    """A campaign: its command and the option that sets its length."""

    name: str
    command: tuple[str, ...]
    count_option: str
    count: int
    # Further options that are scaled in the same way.
    more: tuple[tuple[str, int], ...] = ()

    def line(self, scale: float) -> list[str]:
        """Returns the scaled command."""
        counts = [(self.count_option, self.count), *self.more]
        return [*self.command, *(text for name, count in counts for text in (name, str(max(1, round(count * scale)))))]


PARTS = [
    Part("simulated cuts", ("tests/campaign", "cuts", "--seed", "1"), "--cuts", 100_000),
    Part("the edge of quotas", ("tests/campaign", "quota", "--seed", "1"), "--operations", 10_000_000),
    Part("kill -9", ("tests/campaign", "crash", "--seed", "1"), "--cycles", 2000),
    Part("writers that may only create", ("tests/campaign", "create-only", "--seed", "1"), "--keys", 10_000, (("--kills", 200),)),
    Part("power cuts, ext4", ("tests/campaign", "power-cut", "--seed", "1"), "--cuts", 200),
    Part("power cuts, XFS", ("tests/campaign", "power-cut", "--seed", "2", "--file-system", "xfs"), "--cuts", 200),
    Part("power cuts by snapshot", ("tests/campaign", "power-cut", "--seed", "3", "--snapshot"), "--cuts", 100),
    Part("copies of a held store, ext4", ("tests/campaign", "backup", "--seed", "1"), "--copies", 50, (("--kills", 10),)),
    Part("copies of a held store, XFS", ("tests/campaign", "backup", "--seed", "2", "--file-system", "xfs", "--encryption"), "--copies", 50, (("--kills", 10),)),
    Part("full disk", ("tests/campaign", "full-disk", "--seed", "1"), "--rounds", 100),
    Part("flipped bits", ("tests/campaign", "damage", "--seed", "1"), "--payload-flips", 10_000, (("--metadata-flips", 1000),)),
    Part("salvage", ("tests/campaign", "salvage", "--seed", "1"), "--damages", 500),
    Part(
        "flipped bits, sealed", ("tests/campaign", "damage", "--seed", "2", "--encryption"),
        "--payload-flips", 10_000, (("--metadata-flips", 1000),),
    ),
    Part("restart", ("tests/campaign", "restart",), "--objects", 1_000_000),
    Part("histories", ("tests/campaign", "histories", "--seed", "7"), "--histories", 5000),
    Part("fuzzing", ("fuzz/run",), "--executions", 100_000_000),
    Part("imports from other stores", ("tests/campaign", "import-sources", "--seed", "1"), "--kills", 20),
    Part("hostile clients", ("tests/campaign", "hostile",), "--rounds", 3),
]


def run(part: Part, scale: float) -> tuple[str, bool]:
    """Runs a part, shows its output, and returns its row of the table and whether it succeeded."""
    command = part.line(scale)
    print(f"== {part.name}: {' '.join(command)}", flush=True)
    begun, last = time.monotonic(), ""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    code = process.wait()
    ended = "ended well" if code == 0 else f"FAILED ({code})"
    minutes = (time.monotonic() - begun) / 60
    text = last[:LINE_CHARACTERS_MAX].replace("|", "/")
    return f"| {part.name} | `{' '.join(command)}` | {ended}, {minutes:.1f} min | {text} |", code == 0


def main(arguments: list[str]) -> int:
    """Runs the parts and prints the table."""
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full counts (default 1)")
    parser.add_argument("--part", action="append", choices=names, help="this part alone; may come more than once")
    parser.add_argument("--report", type=Path, help="write the table there too")
    given = parser.parse_args(arguments)
    rows, well = [], True
    for part in PARTS:
        if given.part is None or part.name in given.part:
            row, ended_well = run(part, given.scale)
            rows.append(row)
            well &= ended_well
    table = "\n".join(["| part | command | ended | what it said last |", "|---|---|---|---|", *rows]) + "\n"
    print(table)
    if given.report is not None:
        given.report.write_text(table)
    return 0 if well else 1
