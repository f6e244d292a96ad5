"""The report at the end of a run of `./test`: times, skipped tests, failed steps, and how many tests passed and failed."""

import re
import shlex
from dataclasses import dataclass, field

from runner.schedule import Result

PYTEST_SUMMARY = re.compile(r"^=+ (?P<counts>(?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*=+$", re.MULTILINE)
CARGO_SUMMARY = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
CARGO_IGNORED = re.compile(r"^test (.+) \.\.\. ignored", re.MULTILINE)
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (.+::.+)$|^test (.+) \.\.\. FAILED$", re.MULTILINE)
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (.+)$", re.MULTILINE)


@dataclass
class Counts:
    """Tests of one step or of a run."""

    passed: int = 0
    failed: int = 0
    # Pytest has failed those that may not be skipped. Cargo's are never run by anybody.
    skipped: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Adds those of another step."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.ignored += other.ignored


def failed_crate_tests(result: Result) -> list[str]:
    """Returns the failed tests that cargo has listed."""
    return [name for _, name in FAILED_TEST.findall(result.output()) if name]


def counts_of(result: Result) -> Counts:
    """Reads the summaries of pytest and cargo; a step that failed without a failed test counts as one."""
    found = Counts()
    if result.step.tests:
        output = result.output()
        for summary in PYTEST_SUMMARY.finditer(output):
            words = {word.rstrip("s"): int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", summary["counts"])}
            found.passed += words.get("passed", 0)
            found.failed += words.get("failed", 0) + words.get("error", 0)
        for passed, failed, _ in CARGO_SUMMARY.findall(output):
            found.passed += int(passed)
            found.failed += int(failed)
        # They are counted where they passed.
        found.failed -= len(result.unstable)
        found.skipped, found.ignored = PYTEST_SKIPPED.findall(output), CARGO_IGNORED.findall(output)
    if not result.ok and found.failed == 0:
        found.failed = 1
    return found


def table(results: list[Result], sections: list[str]) -> str:
    """Seconds of each step, by section, on the clock and of the processor; steps run side by side."""
    lines = [f"{'section':10} {'step':34} {'wall s':>7} {'CPU s':>7} {'passed':>7} {'failed':>7}"]
    for section in sections:
        for result in results:
            if result.step.section == section:
                counts = counts_of(result)
                tests = f"{counts.passed:7} {counts.failed:7}" if result.step.tests else f"{'':7} {'' if result.ok else 'FAILED':>7}"
                times = f"{result.wall_seconds:7.0f} {result.cpu_seconds:7.0f}"
                lines.append(f"{section:10} {result.step.name:34} {times} {tests}".rstrip())
    return "\n".join(lines)


def print_report(results: list[Result], sections: list[str], wall_seconds: float, skips_allowed: bool) -> bool:
    """Prints it, with the counts in the last line; whether all is well."""
    total = Counts()
    for result in results:
        total.add(counts_of(result))
    failed = [result for result in results if not result.ok]
    print(f"\n{table(results, sections)}")
    cpu_seconds = sum(result.cpu_seconds for result in results)
    print(f"{'in all':45} {wall_seconds:7.0f} {cpu_seconds:7.0f} {total.passed:7} {total.failed:7}")
    if skipped := total.skipped + total.ignored:
        print(f"\n{len(skipped)} tests were skipped:")
        print("\n".join(f"  {test}" for test in skipped))
    unstable = [test for result in results for test in result.unstable]
    well = not failed and (skips_allowed or not total.ignored)
    if failed:
        print(f"\n./test: {len(failed)} steps failed:")
        for result in failed:
            print(f"  {result.step.name}: {result.reason or f'exit status {result.code} of {shlex.join(result.step.command)}'}")
            tests = FAILED_TEST.findall(result.output()) if result.step.tests else []
            print("".join(f"    {python or rust}\n" for python, rust in tests), end="")
    elif not well:
        print("\n./test: tests are ignored, and CI is set; CAIRN_ALLOW_SKIPS=1 allows it")
    elif unstable:
        print(f"\n./test: well only because {len(unstable)} tests passed when they were repeated alone. Each is UNSTABLE, a fault to fix:")
        print("\n".join(f"  {test}" for test in unstable))
    else:
        print("\n./test: all well, at the first attempt")
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return well
