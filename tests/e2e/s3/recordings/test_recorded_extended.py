"""Every recorded scenario in extended mode: the answers are those of AWS, except for the differences of the table."""

import pytest
from botocore.client import BaseClient

from harness.s3 import S3
from recordings import scenarios
from recordings.case import EXTENDED, SCENARIOS
from recordings.judge import assert_as_recorded

scenarios.load()


@pytest.mark.parametrize("name", SCENARIOS)
def test_extended_answers(name: str, recorded_extended: tuple[S3, BaseClient]):
    """A difference that no entry of the table covers fails, and so does an entry without a difference."""
    assert_as_recorded(name, EXTENDED, *recorded_extended)
