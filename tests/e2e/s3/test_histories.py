"""Linearizability: an order of concurrent requests must explain every response.

This is a short version of `tests/campaign histories`.
"""

import os
from pathlib import Path

import pytest

from harness.histories import record
from harness.server import Cairn

SEED = os.environ.get("HISTORIES_SEED", "1")


@pytest.mark.parametrize(("clients", "operations", "keys"), [(5, 20, 3), (3, 18, 1), (8, 15, 4)])
def test_histories_are_linearizable(store: Cairn, run_folder: Path, clients: int, operations: int, keys: int):
    """Conditions are evaluated atomically with their write, and no read is stale."""
    shape = ("--clients", str(clients), "--operations", str(operations), "--keys", str(keys))
    code, report = record(store, run_folder / "failed", "--histories", "30", "--seed", SEED, *shape)
    assert code == 0, report
    assert report["histories"] == 30 and report["refused"] > 0 and report["unknown"] == 0, report


def test_checker_finds_stale_reads(store: Cairn, run_folder: Path):
    """Fault injection adds a read of an overwritten value to every history. The checker must find each."""
    folder = run_folder / "stale"
    code, report = record(store, folder, "--histories", "5", "--seed", SEED, "--fault-stale-read")
    assert code == 2 and report["not_linearizable"] == 5, report
    assert sorted(str(path) for path in folder.iterdir()) == sorted(report["saved"])
