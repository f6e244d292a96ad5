"""Readiness: failing subsystems are named, and many concurrent requests need no further threads."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from harness.management import bearer
from harness.server import Cairn
from harness.wait import until

TIMEOUT = 60


def ready(store: Cairn) -> requests.Response:
    """Requests /ready."""
    return requests.get(f"{store.management}/ready", timeout=TIMEOUT)


def without_disk_notice(answer: requests.Response) -> dict:
    """Returns the response without a notice about the disk of the machine, which may be nearly full."""
    body = answer.json()
    body.get("notices", {}).pop("disk", None)
    return {name: value for name, value in body.items() if value != {}}


def threads(store: Cairn) -> int:
    """Returns the number of the server's threads."""
    return len(os.listdir(f"/proc/{store.process.pid}/task"))


def truncated(volume: Path, store: Cairn) -> requests.Response:
    """Truncates a volume to zero bytes and returns the response of /ready."""
    os.truncate(volume, 0)
    return ready(store)


def test_truncated_volume_makes_storage_not_ready(own_store: Cairn):
    """/ready must read from the volumes, and not rely on the flags that failed flushes set."""
    until(lambda: without_disk_notice(ready(own_store)) == {"status": "ready"}, "ready")
    volume = own_store.data / "slices" / "00" / "volumes" / "000000.vol"
    size = volume.stat().st_size
    header = volume.read_bytes()[:4096]
    # Preallocation may extend the file again.
    refused = lambda answer: without_disk_notice(answer) if answer.status_code == 503 else None
    found = until(lambda: refused(truncated(volume, own_store)), lambda: ready(own_store).text)
    states = {"storage": "not_ready", "metadata": "ready", "audit": "ready", "identity": "ready", "sharing": "ready", "events": "ready", "listeners": "ready"}
    assert found == {"status": "not_ready", "subsystems": states}, "the public response must not name files"
    assert requests.get(f"{own_store.management}/health", timeout=TIMEOUT).status_code == 200
    headers = bearer(own_store.secrets.system_token)
    info = requests.get(f"{own_store.management}/api/v1/system/info", headers=headers, timeout=TIMEOUT).json()
    assert info["status"] == "not_ready"
    own_store.wait_output("not ready")
    assert volume.name in own_store.output(), "the log must name the volume"
    with volume.open("r+b") as file:
        file.write(header)
        file.truncate(size)
    until(lambda: without_disk_notice(ready(own_store)) == {"status": "ready"}, "ready")
    own_store.wait_output("ready again")


def test_concurrent_readiness_requests_create_no_threads(own_store: Cairn):
    """Thirty concurrent clients are answered, and the number of threads does not grow."""
    until(lambda: ready(own_store).status_code == 200, "ready")
    before = threads(own_store)
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: ready(own_store).status_code, range(300)))
    # A probe that takes two seconds says that the server is not ready.
    assert set(answers) <= {200, 503}
    assert threads(own_store) == before
