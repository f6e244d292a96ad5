"""The salvage campaign: random damage to a stopped store, and what `cairn salvage` makes of it.

Every intact object must be salvaged bit for bit, and every other one must be named.
"""

import argparse
import json
import sys
from pathlib import Path

from harness import salvage_campaign
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Runs the campaign, prints the report, and keeps the store after a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=500, help="rounds, each with a damage of its own (default 500)")
    parser.add_argument("--objects", type=int, default=150, help="objects in the store (default 150)")
    parser.add_argument("--seed", type=int, default=1, help="what is stored and what is damaged")
    parser.add_argument("--encryption", action="store_true", help="with encryption at rest")
    parser.add_argument("--folder", type=Path, help="where the store goes; 200 MB, on a real disk")
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / f"salvage-{given.seed}"
    try:
        report = salvage_campaign.run(
            folder, given.seed, given.damages, given.objects, given.encryption, lambda line: print(line, flush=True)
        )
    except salvage_campaign.Broken as broken:
        print(f"BROKEN: {broken}\nthe store is kept in {folder}", file=sys.stderr)
        return 1
    print(report.line())
    if given.report:
        given.report.write_text(json.dumps(vars(report), indent=2) + "\n")
    return 0
