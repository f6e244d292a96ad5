"""A short slice of the crash test for every run of `./test`; `tests/crash/run` is the long one."""

import os
import time
from pathlib import Path

from harness import crash

SEED = int(os.environ.get("CRASH_SEED", "1"))
SECONDS = float(os.environ.get("CRASH_SECONDS", "60"))
CYCLES_MIN = 5


def test_every_acknowledged_change_outlives_kill_9(run_folder: Path):
    """Objects whole, deletes done, lists exact, no space lost, over a minute of kills."""
    give_up = time.monotonic() + SECONDS
    report = crash.run(
        run_folder / "crash", SEED, lambda so_far: time.monotonic() > give_up and so_far.cycles >= CYCLES_MIN
    )
    assert report.acknowledged > 100 * CYCLES_MIN, f"hardly any load: {report.line()}"
    print(report.line())
