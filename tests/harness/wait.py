"""Waiting for a condition, never for a length of time."""

import time
from collections.abc import Callable
from typing import Any

# Longer than anything takes on a machine that is busy with other work. A wait that takes this long is a failure.
PATIENCE_SECONDS = 60.0
POLL_SECONDS = 0.03


def until(holds: Callable[[], Any], what: object = "the condition never held", seconds: float = PATIENCE_SECONDS) -> Any:
    """Polls until a condition holds, and returns its value. Fails with `what`, or with what it returns if it is a function."""
    give_up = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < give_up, what() if callable(what) else what
        time.sleep(POLL_SECONDS)
    return found
