"""The long simulation of power cuts: `--cuts 100000 --seed 1`.

Prints one line of counts, and the seed and moment of each loss. Needs Rust, and stores metadata in /dev/shm while it
runs.
"""

import os

from harness.server import REPOSITORY

COMMAND = ["cargo", "run", "--release", "--quiet", "-p", "cairn-engine", "--features", "simulation", "--example", "cut_campaign", "--"]


def main(arguments: list[str]) -> int:
    """Executes `engine/examples/cut_campaign.rs` with this campaign's options."""
    os.chdir(REPOSITORY)
    os.execvp(COMMAND[0], [*COMMAND, *arguments])
