"""Repeats failed end-to-end tests once, alone: a busy machine can make a time limit fail that says nothing about the server.

Only a few failures are repeated, and only of section e2e: a test that compares data after a crash or a power cut never is. A test
that passes when it is repeated is reported as unstable, with the output of its failure. CAIRN_REPEAT_FAILED=0 switches this off.
"""

import os
from dataclasses import replace
from pathlib import Path

from runner.schedule import Result, Schedule, Step
from runner.sections import pytest

# More failures at once are not the machine's fault.
REPEATED_MAX = 2
SECTION = "e2e"
ALONE = "alone"


def failed_tests(result: Result) -> list[str]:
    """Returns the tests of a step that failed, as its pytest has listed them."""
    path = Path(result.step.environment.get("CAIRN_FAILED_TESTS", os.devnull))
    return path.read_text().splitlines() if path.exists() else []


def repeat_failed(results: list[Result], logs: Path) -> list[Result]:
    """Runs failed end-to-end tests again. Returns all results, with those that passed now as unstable."""
    failed = [result for result in results if not result.ok]
    tests = [test for result in failed for test in failed_tests(result)]
    of_section = all(result.step.section == SECTION and failed_tests(result) for result in failed)
    if not tests or len(tests) > REPEATED_MAX or not of_section or os.environ.get("CAIRN_REPEAT_FAILED") == "0":
        return results
    repeated = Schedule([repetition(tests)], logs).run()
    if not all(result.ok for result in repeated):
        return results + repeated
    well = [replace(result, code=0, unstable=tuple(failed_tests(result))) for result in failed]
    return [result for result in results if result.ok] + well + repeated


def repetition(tests: list[str]) -> Step:
    """Returns the step that runs the tests again."""
    return pytest(SECTION, "failed tests, repeated", ALONE, *tests)
