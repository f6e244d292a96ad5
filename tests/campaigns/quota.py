"""The long test of concurrent writes at quota limits: `--operations 10000000 --seed 1 [--folder F]`.

Prints one line of counts and the errors, if any. Needs Rust, and a folder on a disk that supports direct I/O.
"""

import os

from harness.server import REPOSITORY

COMMAND = ["cargo", "run", "--release", "--quiet", "-p", "cairn-engine", "--example", "quota_campaign", "--"]


def main(arguments: list[str]) -> int:
    """Executes `engine/examples/quota_campaign.rs` with this campaign's options."""
    os.chdir(REPOSITORY)
    os.execvp(COMMAND[0], [*COMMAND, *arguments])
