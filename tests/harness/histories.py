"""Runs `cairn-load histories` against a store and reads its report."""

import json
from pathlib import Path

from . import cairn_load
from .server import Cairn


def record(store: Cairn, save: Path, *options: str) -> tuple[int, dict]:
    """Returns the exit code and the report. Failing histories are saved below `save`."""
    process = cairn_load.spawn(store, "histories", "--save", str(save), *options)
    output, _ = process.communicate()
    assert output, f"cairn-load histories ended with {process.returncode}"
    return process.returncode, json.loads(output)
