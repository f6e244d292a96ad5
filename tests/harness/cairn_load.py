"""Runs the load generator against a store of the harness."""

import os
import subprocess
from pathlib import Path

from .server import BUILD, HOW_TO_BUILD, Cairn, clean_environment

BINARY = Path(os.environ.get("CAIRN_LOAD", BUILD / "cairn-load"))


class LoadFailed(AssertionError):
    """A request failed or returned a wrong result."""


def spawn(store: Cairn, command: str, *arguments: str, errors: int | None = None) -> subprocess.Popen:
    """Starts it with the root credential. Standard output is a pipe, and standard error goes to `errors`."""
    if not BINARY.is_file():
        raise LoadFailed(f"{BINARY} is missing; {HOW_TO_BUILD}")
    environment = clean_environment() | {
        "AWS_ACCESS_KEY_ID": store.secrets.root_access_key,
        "AWS_SECRET_ACCESS_KEY": store.secrets.root_secret_key,
    }
    called = [str(BINARY), command, "--endpoint", store.endpoint, *arguments]
    return subprocess.Popen(called, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


def run(store: Cairn, command: str, bucket: str, *arguments: str) -> None:
    """Runs it to its end. Every failed request is an error."""
    process = spawn(store, command, "--bucket", bucket, "--fail-on-error", *arguments, errors=subprocess.STDOUT)
    output, _ = process.communicate()
    if process.returncode != 0:
        raise LoadFailed(f"cairn-load {command} ended with {process.returncode}:\n{output[-4000:]}")
