"""The damage campaign: thousands of single flipped bits in a stopped store.

Verification must find every flip in a payload, and no flip may cause wrong bytes to be served.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

from harness import damage_campaign
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Runs the campaign, prints the report, and keeps the store after a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payload-flips", type=int, default=10_000, help="bits in payload blocks (default 10000)")
    parser.add_argument(
        "--metadata-flips", type=int, default=1_000, help="bits in check tables and LMDB records (default 1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="what is stored and which bits are turned")
    parser.add_argument("--encryption", action="store_true", help="with encryption at rest")
    parser.add_argument("--folder", type=Path, help="where the stores go; 1.3 GB for the default, on a real disk")
    parser.add_argument("--report", type=Path, help="where to write the figures as JSON")
    given = parser.parse_args(arguments)
    folder = given.folder or RUNS / f"damage-{given.seed}"
    try:
        report = damage_campaign.run(
            folder, given.seed, given.payload_flips, given.metadata_flips, given.encryption, lambda line: print(line, flush=True)
        )
    except damage_campaign.Broken as broken:
        print(f"BROKEN: {broken}\nthe stores are kept in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    if given.report:
        given.report.write_text(json.dumps(report.as_json(), indent=2) + "\n")
    return 0
