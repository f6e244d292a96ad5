"""Moments in the near future, which a server must still find in the future when a request arrives."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

Made = TypeVar("Made")
# On a busy machine the first ones may pass before everything is done that must be done earlier.
PERIODS_SECONDS = (2, 10, 60)


def written(moment: datetime) -> str:
    """Returns a moment as requests of the management plane contain it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def soon(seconds: int) -> datetime:
    """Returns a moment in whole seconds, because S3 clients send no more."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)


def with_an_end(act: Callable[[datetime], Made]) -> Made:
    """Calls `act` with a moment that comes soon, and returns its result.

    If it fails and the moment has passed, it is called again with a later one. Each other failure counts.
    """
    for seconds in PERIODS_SECONDS[:-1]:
        end = soon(seconds)
        try:
            return act(end)
        except (Exception, pytest.fail.Exception):
            if datetime.now(UTC) < end:
                raise
    return act(soon(PERIODS_SECONDS[-1]))
