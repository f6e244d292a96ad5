"""Repeats failed tests once, alone, to tell a test that depends on the machine's load from one that fails always.

Only a few failures are repeated: end-to-end tests, tests of the crates, and the files of failed tests of packages, whose tests build
on each other. A test that compares data after a crash or a power cut never is. A test that passes when it is repeated is reported as
unstable, loudly and with the output of its failure: it is a fault to be fixed, in the test or in the server. CAIRN_REPEAT_FAILED=0
switches this off.
"""

import os
from dataclasses import replace
from pathlib import Path

from runner.report import counts_of, failed_crate_tests
from runner.schedule import Result, Schedule, Step
from runner.sections import UNIT_TESTS, pytest, unit_tests

# More failures at once are not the machine's fault.
REPEATED_MAX = 4
ALONE = "alone"
BANNER = 100 * "!"


def failed_tests(result: Result) -> list[str]:
    """Returns the tests of a step that failed, as pytest or cargo has listed them."""
    if result.step.name == UNIT_TESTS:
        return failed_crate_tests(result)
    path = Path(result.step.environment.get("CAIRN_FAILED_TESTS", os.devnull))
    return path.read_text().splitlines() if path.exists() else []


def repetition(result: Result) -> Step | None:
    """Returns the step that runs the failed tests of another step again, or none if they may not be repeated."""
    tests, name = failed_tests(result), f"{result.step.name}, repeated"
    if not tests:
        return None
    if result.step.name == UNIT_TESTS:
        return replace(unit_tests("--", "--exact", *tests), name=name, lane=ALONE)
    if result.step.section == "e2e":
        return pytest("e2e", name, ALONE, *tests)
    if result.step.section == "packages":
        files = sorted({test.split("::")[0] for test in tests})
        return pytest("packages", name, ALONE, *files)
    return None


def repeat_failed(results: list[Result], logs: Path) -> list[Result]:
    """Runs failed tests again. Returns all results, with those that passed now as unstable."""
    failed = [result for result in results if not result.ok]
    steps = [repetition(result) for result in failed]
    count = sum(len(failed_tests(result)) for result in failed)
    if not failed or None in steps or count > REPEATED_MAX or os.environ.get("CAIRN_REPEAT_FAILED") == "0":
        return results
    tests = [test for result in failed for test in failed_tests(result)]
    print(f"\n{BANNER}\n{count} tests FAILED and are repeated alone:\n" + "\n".join(f"  {test}" for test in tests) + f"\n{BANNER}", flush=True)
    repeated = Schedule([step for step in steps if step], logs).run()
    passed = sum(counts_of(result).passed for result in repeated)
    # A name that chooses no test, as that of an example in the documentation, would pass without one.
    if passed < count or not all(result.ok for result in repeated):
        return results + repeated
    well = [replace(result, code=0, unstable=tuple(failed_tests(result))) for result in failed]
    return [result for result in results if result.ok] + well + repeated
