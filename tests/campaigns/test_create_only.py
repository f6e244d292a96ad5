"""The short version of the race of writers that may only create; `tests/campaign create-only` is the long one."""

import os
from pathlib import Path

from harness import create_only

SEED = int(os.environ.get("CREATE_ONLY_SEED", "1"))
KEYS = 200
KILLS = 8


def test_each_key_is_written_once_also_around_kill_9(run_folder: Path):
    """By 64 writers with puts, copies and completions, in a bucket without versions and in one with them."""
    outcome = create_only.run(run_folder / "create-only", SEED, KEYS, KILLS)
    assert (outcome.keys, outcome.kills) == (KEYS, KILLS)
    assert outcome.unanswered > 0, "no kill struck a race"
    print(outcome.line())
