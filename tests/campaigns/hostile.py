"""Denial-of-service campaign at full size.

Other clients are measured alternately without and with each attack, and the medians of their p99 latencies are compared.
On a busy machine the ratio is not reliable; use the last column there.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from harness import hostile
from harness.server import RUNS


def main(arguments: list[str]) -> int:
    """Measures all attacks, prints the results, and fails if a limit was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="times that each attack is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=6, help="length of each measurement (default 6)")
    parser.add_argument("--attack", action="append", help="this attack alone; may come more than once")
    parser.add_argument("--report", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    attacks = [attack for attack in hostile.ATTACKS if not given.attack or attack.name in given.attack]
    RUNS.mkdir(parents=True, exist_ok=True)
    failed, figures = 0, []
    for attack in attacks:
        folder = Path(tempfile.mkdtemp(prefix="hostile-", dir=RUNS))
        with hostile.attacked_store(folder, attack) as store:
            results = [hostile.measure(store, attack, given.seconds) for _ in range(given.rounds)]
        shutil.rmtree(folder)
        for result in results:
            print(result.line(), flush=True)
        ratio = statistics.median(result.attacked.p99_ms for result in results) / statistics.median(
            result.quiet.p99_ms for result in results
        )
        bad = [problem for result in results for problem in result.problems()]
        failed += bool(bad) or ratio > attack.ratio_max
        print(f"{attack.name:44} ratio of the medians {ratio:.2f}, at most {attack.ratio_max}", flush=True)
        figures.append({
            "attack": attack.name, "connections": attack.connections, "ratio": ratio, "problems": bad,
            "memory_mib": max(result.memory_mib for result in results),
            "quiet_p99_ms": [result.quiet.p99_ms for result in results],
            "attacked_p99_ms": [result.attacked.p99_ms for result in results],
        })
    if given.report:
        given.report.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if failed else 0
