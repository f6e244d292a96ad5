"""Runs steps side by side where they allow it; each one's output goes to a file and is printed when the step has ended.

Steps of one lane run one after the other, in the order of the plan. A step waits for those that it names; when one of them
fails, it does not run.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.1
# Longest time without output, after which a step is considered hung. Compilers are silent for longest.
SILENT_SECONDS = 15 * 60
# After an interrupt, steps unmount and end what they have started; then they are killed.
END_SECONDS = 30
# Of a step that only builds or installs and that ended well.
TAIL_LINES = 4


@dataclass(frozen=True)
class Step:
    """One command."""

    section: str
    name: str
    command: tuple[str, ...]
    lane: str
    after: tuple[str, ...] = ()
    # Runs tests: its output is printed in full, and its summaries are counted.
    tests: bool = False
    # A compiler's warning is a failure.
    no_warnings: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Result:
    """The result of a step."""

    step: Step
    log: Path
    code: int
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    reason: str = ""
    # Tests that failed at first and passed when they were repeated.
    unstable: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Returns whether it ended well; a step that others wait for can have done its work and still not be well."""
        return self.code == 0 and not self.reason

    def output(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class Running:
    """A step's process."""

    def __init__(self, step: Step, log: Path):
        self.step, self.log, self.begun = step, log, time.monotonic()
        # The time at which it was interrupted because it hung.
        self.interrupted: float | None = None
        with log.open("wb") as output:
            # A process group of its own, so that an interrupt can reach all of it.
            self.process = subprocess.Popen(
                step.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=os.environ | step.environment, start_new_session=True,
            )

    def poll(self) -> Result | None:
        """The result, once the process has ended; processor time is that of the process and of all that it waited for."""
        process, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if process == 0:
            self.end_if_silent()
            return None
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        wall, cpu = time.monotonic() - self.begun, usage.ru_utime + usage.ru_stime
        reason = "" if self.interrupted is None else f"it hung: no output for {SILENT_SECONDS} seconds"
        return Result(self.step, self.log, code, wall, cpu, reason)

    def end_if_silent(self) -> None:
        """Interrupts a step that hangs, and kills it if it does not exit."""
        if self.interrupted is not None:
            if time.monotonic() - self.interrupted > END_SECONDS:
                self.end(signal.SIGKILL)
        elif time.time() - self.log.stat().st_mtime > SILENT_SECONDS:
            self.interrupted = time.monotonic()
            self.end(signal.SIGINT)

    def end(self, number: signal.Signals) -> None:
        """Sends a signal to the process and all that it has started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


class Schedule:
    """All steps of a run."""

    def __init__(self, steps: list[Step], logs: Path):
        self.waiting, self.running, self.results = list(steps), [], {}
        self.logs = logs

    def run(self) -> list[Result]:
        """Runs everything; the results in the order in which the steps ended."""
        try:
            while self.waiting or self.running:
                self.give_up_on_the_impossible()
                for step in [step for step in self.waiting if self.may_start(step)]:
                    # An earlier step of this round may have taken the lane.
                    if self.may_start(step):
                        self.start(step)
                time.sleep(POLL_SECONDS)
                for running in list(self.running):
                    if (result := running.poll()) is not None:
                        self.running.remove(running)
                        self.finish(result)
        except BaseException:
            self.interrupt()
            raise
        return list(self.results.values())

    def may_start(self, step: Step) -> bool:
        """Returns whether all that it waits for has ended, and its lane is free."""
        return all(name in self.results for name in step.after) and all(other.step.lane != step.lane for other in self.running)

    def start(self, step: Step) -> None:
        """Starts it."""
        self.waiting.remove(step)
        print(f"-- begun: {step.name}", flush=True)
        name = "".join(letter if letter.isalnum() else "-" for letter in step.name)
        self.running.append(Running(step, self.logs / f"{name}.log"))

    def give_up_on_the_impossible(self) -> None:
        """Fails the steps whose preconditions have failed."""
        for step in list(self.waiting):
            failed = [name for name in step.after if name in self.results and self.results[name].code != 0]
            if failed:
                self.waiting.remove(step)
                result = Result(step, Path(os.devnull), 1, reason=f"not run: {', '.join(failed)} failed")
                self.finish(result)

    def finish(self, result: Result) -> None:
        """Remembers the result and prints the output."""
        output = result.output()
        if result.ok and result.step.no_warnings and "warning: `" in output:
            result.reason = "the compiler warns"
        self.results[result.step.name] = result
        lines = output.splitlines()
        print(f"\n== {result.step.name}: {' '.join(result.step.command)}")
        if result.ok and not result.step.tests and len(lines) > TAIL_LINES:
            print(f"({len(lines) - TAIL_LINES} lines more in {result.log})")
            lines = lines[-TAIL_LINES:]
        print("\n".join(lines))
        ended = "ok" if result.ok else f"FAILED ({result.reason or f'exit status {result.code}'})"
        print(f"== {ended}, {result.wall_seconds:.0f} s: {result.step.name}", flush=True)

    def interrupt(self) -> None:
        """Ends what runs: politely first, because some steps have mounted file systems."""
        print(f"\n./test: ending {', '.join(running.step.name for running in self.running)}", file=sys.stderr, flush=True)
        for running in self.running:
            running.end(signal.SIGINT)
        give_up = time.monotonic() + END_SECONDS
        while self.running and time.monotonic() < give_up:
            self.running = [running for running in self.running if running.poll() is None]
            time.sleep(POLL_SECONDS)
        for running in self.running:
            running.end(signal.SIGKILL)
