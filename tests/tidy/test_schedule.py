"""The schedule of the test runner: a step that hangs is ended."""

import sys
from pathlib import Path

import pytest
from runner import schedule
from runner.schedule import Schedule, Step

# The second one ignores the interrupt.
HANGING = ["import time; time.sleep(3600)", "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(3600)"]


@pytest.mark.parametrize("program", HANGING)
def test_a_step_that_writes_nothing_for_long_is_ended(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A test that hung kept a run from ending."""
    monkeypatch.setattr(schedule, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(schedule, "END_SECONDS", 0.2)
    step = Step("unit", "hangs", (sys.executable, "-c", program), lane="cargo")
    (result,) = Schedule([step], tmp_path).run()
    assert not result.ok and result.reason.startswith("it hung")
