"""The load generator, run against a store of the harness."""

import os
import subprocess
from pathlib import Path

from .server import TARGET, Cairn, clean_environment

BINARY = Path(os.environ.get("CAIRN_LOAD", TARGET / "release" / "cairn-load"))


class LoadFailed(AssertionError):
    """A request failed, or something came back wrong."""


def spawn(store: Cairn, command: str, *arguments: str, errors: int | None = None) -> subprocess.Popen:
    """Start it under the root credential, with its standard output piped and its standard error where `errors` says."""
    if not BINARY.is_file():
        raise LoadFailed(f"{BINARY} is missing; `cargo build --release -p cairn-loadtests` makes it")
    environment = clean_environment() | {
        "AWS_ACCESS_KEY_ID": store.secrets.root_access_key,
        "AWS_SECRET_ACCESS_KEY": store.secrets.root_secret_key,
    }
    called = [str(BINARY), command, "--endpoint", store.endpoint, *arguments]
    return subprocess.Popen(called, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


def run(store: Cairn, command: str, bucket: str, *arguments: str) -> None:
    """Run it to its end; any failed request is a failure."""
    process = spawn(store, command, "--bucket", bucket, "--fail-on-error", *arguments, errors=subprocess.STDOUT)
    output, _ = process.communicate()
    if process.returncode != 0:
        raise LoadFailed(f"cairn-load {command} ended with {process.returncode}:\n{output[-4000:]}")
