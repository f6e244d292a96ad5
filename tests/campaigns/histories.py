"""The long linearizability test: histories of 2 to 8 clients on 1 to 4 keys.

Runs several parts with different numbers, prints a line for each part, and keeps the histories that fail.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path

from harness.histories import record
from harness.server import RUNS, Cairn

# Clients, operations of each client, keys.
SHAPES = [(5, 20, 3), (8, 15, 4), (3, 18, 1), (6, 20, 4), (2, 30, 2), (8, 8, 1)]


def main(arguments: list[str]) -> int:
    """Records and checks the histories, and keeps those that fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=5000, help="in all (default 5000)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="what clients do follows from it")
    given = parser.parse_args(arguments)
    RUNS.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="histories-", dir=RUNS))
    total, codes = {"histories": 0, "operations": 0, "refused": 0, "unknown": 0, "not_linearizable": 0, "undecided": 0}, []
    store = Cairn(folder / "store").start()
    for number, (clients, operations, keys) in enumerate(SHAPES):
        count = (given.histories + len(SHAPES) - 1 - number) // len(SHAPES)
        shape = ("--clients", str(clients), "--operations", str(operations), "--keys", str(keys))
        code, report = record(
            store, folder / "failed", "--histories", str(count), "--seed", str(given.seed + number), *shape
        )
        codes.append(code)
        print(f"{clients} clients, {operations} operations each, {keys} keys: {json.dumps(report)}", flush=True)
        for name in total:
            total[name] += report[name]
    stopped = store.stop()
    print(f"seed {given.seed}: {total}")
    if not any(codes) and stopped == 0:
        shutil.rmtree(folder)
        return 0
    print(f"the store, its log and the failed histories are in {folder}")
    return 1
