"""Runs the command-line client against one server."""

import json
import subprocess

from .server import BINARY, clean_environment

TIMEOUT = 60
DONE, FAILED, WRONG_USAGE, NO_ANSWER = range(4)


class Cli:
    """Runs `cairn` with a token against one server."""

    def __init__(self, endpoint: str, token: str | None, **variables: str):
        self.endpoint, self.token, self.variables = endpoint, token, variables

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
        """Runs one command to its end. Asserts that it does not panic and does not print its token."""
        done = subprocess.run(
            [BINARY, *arguments, "--endpoint", self.endpoint], env=self.environment(), input=stdin,
            capture_output=True, text=True, timeout=TIMEOUT,
        )
        assert "panicked" not in done.stderr
        assert not self.token or self.token not in done.stdout + done.stderr
        return done

    def environment(self) -> dict[str, str]:
        """The environment of a command: the token, and what the client was made with."""
        variables = {} if self.token is None else {"SERVICE_MANAGEMENT_TOKEN": self.token}
        return clean_environment() | variables | self.variables

    def text(self, *arguments: str, **options: str) -> str:
        """Runs a command that must succeed. Returns its human-readable output."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stderr) == (DONE, ""), done
        return done.stdout

    def json(self, *arguments: str, **options: str) -> dict:
        """Runs a command with `--json` that must succeed. Returns its parsed output."""
        return json.loads(self.text(*arguments, "--json", **options))

    def fails(self, *arguments: str, code: int = FAILED, **options: str) -> str:
        """Runs a command that must fail with this exit code and an empty standard output. Returns its standard error."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stdout) == (code, ""), done
        return done.stderr
