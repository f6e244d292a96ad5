"""The short version of the crash test for `./test`; `tests/campaign crash` is the long one."""

import os
import time
from pathlib import Path

from harness import crash

SEED = int(os.environ.get("CRASH_SEED", "1"))
SECONDS = float(os.environ.get("CRASH_SECONDS", "60"))
CYCLES_MIN = 5


def test_every_acknowledged_change_survives_kill_9(run_folder: Path):
    """After repeated kills objects are intact, deletes are done, lists are exact and no space is lost."""
    give_up = time.monotonic() + SECONDS
    report = crash.run(
        run_folder / "crash", SEED, lambda so_far: time.monotonic() > give_up and so_far.cycles >= CYCLES_MIN
    )
    assert report.acknowledged > 100 * CYCLES_MIN, f"too little load: {report.line()}"
    print(report.line())
