"""Runs `cairn-load histories` against a store and reads its report."""

import json
import subprocess
from pathlib import Path

from .hostile import LOAD
from .server import Cairn, clean_environment


def record(store: Cairn, save: Path, *options: str) -> tuple[int, dict]:
    """Exit code and report; the failing histories, if any, are below `save`."""
    command = [str(LOAD), "histories", "--endpoint", store.endpoint, "--save", str(save), *options]
    keys = {"AWS_ACCESS_KEY_ID": store.credential.access_key, "AWS_SECRET_ACCESS_KEY": store.credential.secret_key}
    done = subprocess.run(command, env=clean_environment() | keys, stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout, f"{command} ended with {done.returncode}"
    return done.returncode, json.loads(done.stdout)
