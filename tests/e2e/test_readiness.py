"""Attacks readiness: a subsystem that fails is named while it does; a flood of questions costs little."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from harness.management import bearer
from harness.server import Cairn

TIMEOUT = 20
PATIENCE_SECONDS = 20.0


def ready(store: Cairn) -> requests.Response:
    """GET /ready."""
    return requests.get(f"{store.management}/ready", timeout=TIMEOUT)


def threads(store: Cairn) -> int:
    """Threads of the server."""
    return len(os.listdir(f"/proc/{store.process.pid}/task"))


def truncated(volume: Path, store: Cairn) -> requests.Response:
    """What /ready says of a volume without a byte."""
    os.truncate(volume, 0)
    return ready(store)


def test_storage_that_cannot_be_read_is_not_ready(own_store: Cairn):
    """A volume lost its bytes: /ready only looked at flags that failed flushes set, and went on saying that all was well."""
    assert ready(own_store).json() == {"status": "ready"}
    volume = own_store.data / "slices" / "00" / "volumes" / "000000.vol"
    size = volume.stat().st_size
    header = volume.read_bytes()[:4096]
    give_up = time.monotonic() + PATIENCE_SECONDS
    # Writing space ahead may make the file longer again.
    while (answer := truncated(volume, own_store)).status_code != 503:
        assert time.monotonic() < give_up, answer.text
    states = {"storage": "not_ready", "metadata": "ready", "audit": "ready", "identity": "ready", "listeners": "ready"}
    assert answer.json() == {"status": "not_ready", "subsystems": states}, "and no file is named"
    assert requests.get(f"{own_store.management}/health", timeout=TIMEOUT).status_code == 200
    headers = bearer(own_store.secrets.system_token)
    info = requests.get(f"{own_store.management}/api/v1/system/info", headers=headers, timeout=TIMEOUT).json()
    assert info["status"] == "not_ready"
    own_store.wait_output("not ready")
    assert volume.name in own_store.output(), "the log says which"
    with volume.open("r+b") as file:
        file.write(header)
        file.truncate(size)
    assert ready(own_store).json() == {"status": "ready"}
    own_store.wait_output("ready again")


def test_a_flood_of_questions_makes_no_threads(own_store: Cairn):
    """Thirty clients at once: each is answered, and the server has the threads that it had."""
    assert ready(own_store).status_code == 200
    before, begun = threads(own_store), time.monotonic()
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: ready(own_store).status_code, range(300)))
    assert set(answers) == {200} and time.monotonic() - begun < PATIENCE_SECONDS
    assert threads(own_store) == before
