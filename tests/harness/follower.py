"""Runs the code blocks of a documentation page in order and keeps exported variables."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .server import BINARY, clean_environment

# Language, name and text of a block.
BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND_SECONDS = 120


def blocks_of(page: Path) -> list[tuple[str, str, str]]:
    """Returns all code blocks of a page."""
    return BLOCK.findall(page.read_text())


class Shell:
    """A shell in its own directory, in which `cairn` is the binary under test."""

    def __init__(self, folder: Path, exports: list[str]):
        self.folder, self.exports = folder, exports
        self.tools = folder / "bin"
        self.tools.mkdir(parents=True)
        (self.tools / "cairn").symlink_to(BINARY)
        (self.tools / "python3").symlink_to(sys.executable)
        self.environment = clean_environment() | {
            "PATH": f"{self.tools}:{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder),
            "VIRTUAL_ENV": sys.prefix, "AWS_EC2_METADATA_DISABLED": "true",
        }

    def run(self, commands: str) -> str:
        """Runs commands that must succeed and returns their output. Exports of the chosen names are kept."""
        script = f"set -euo pipefail\n{commands}\nenv -0 > exported\n"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            timeout=COMMAND_SECONDS,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        exported = dict(line.split("=", 1) for line in (self.folder / "exported").read_text().split("\0") if "=" in line)
        self.environment |= {name: exported[name] for name in self.exports if name in exported}
        return done.stdout
