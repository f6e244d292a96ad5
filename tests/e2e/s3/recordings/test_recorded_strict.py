"""Every recorded scenario in strict mode: the answers are those of AWS, except for the differences of the table."""

import pytest
from botocore.client import BaseClient

from harness.s3 import S3
from recordings import scenarios
from recordings.case import STRICT, SCENARIOS
from recordings.judge import assert_as_recorded

scenarios.load()


@pytest.mark.parametrize("name", SCENARIOS)
def test_strict_answers(name: str, recorded_strict: tuple[S3, BaseClient]):
    """A difference that no entry of the table covers fails, and so does an entry without a difference."""
    assert_as_recorded(name, STRICT, *recorded_strict)
