"""OpenAPI: schemathesis runs all its checks on every operation of a running server."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.management import API, expect, segment
from harness.server import REPOSITORY, Cairn

EXAMPLES = int(os.environ.get("OPENAPI_EXAMPLES", "8"))
SEED = int(os.environ.get("OPENAPI_SEED", "6"))
RUN_SECONDS = 500
# Each gets its own process: responses to wrong credentials, which some checks send, are delayed.
PROCESSES = 4
SCRAPED = "scrape_metrics"
# Responses to valid requests: also for objects without a preview, and for shares that another case has revoked.
CONFIGURATION = """[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 410, 415, 429, "5xx"]
"""


@pytest.fixture(scope="module")
def described_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server with some content."""
    store = make_module_store(SERVICE_LOG="service=info").start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "an object/of two segments", b"text", headers=[("content-type", "text/plain")])
    return store


def operations(store: Cairn) -> list[str]:
    """Returns the names of all operations."""
    paths = expect(store.admin.get("/openapi.json"), 200)["paths"]
    return [operation["operationId"] for path in paths.values() for operation in path.values()]


def hold_against(store: Cairn, folder: Path, names: list[str]) -> tuple[int, str]:
    """Runs schemathesis on some operations and returns its exit code and output."""
    folder.mkdir()
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    chosen = [option for name in names for option in ("--include-operation-id", name)]
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run", f"{store.management}{API}/openapi.json",
        "--header", f"Authorization: Bearer {store.secrets.system_token}", "--checks", "all", "--max-examples", str(EXAMPLES),
        "--seed", str(SEED), "--continue-on-failure", "--request-timeout", "30", *chosen,
    ]
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "harness.openapi_hooks", "PYTHONPATH": str(REPOSITORY / "tests"), "NO_COLOR": "1", "COLUMNS": "160",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=RUN_SECONDS,
    )
    return done.returncode, done.stdout


def test_server_conforms_to_its_openapi_description(described_store: Cairn, tmp_path: Path):
    """Responses match their schemas, valid requests are accepted, invalid and unauthenticated ones are refused."""
    names = sorted(set(operations(described_store)) - {SCRAPED})
    shares = [names[start::PROCESSES] for start in range(PROCESSES)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        runs = list(pool.map(lambda share: hold_against(described_store, tmp_path / str(share[0]), share), shares))
    tested = 0
    for code, output in runs:
        assert code == 0, output[-8000:]
        tested += int(re.search(r"Tested: (\d+)", output)[1])
    assert tested == len(names)
    assert described_store.s3.get("kept", "an object/of two segments").body == b"text"
    assert "panicked" not in described_store.output()


def test_key_with_encoded_slashes_is_one_parameter(described_store: Cairn):
    """The description has one path segment for a key, so generated clients encode its slashes."""
    key = "an object/of two segments"
    for path in (f"/verify/objects/kept/{segment(key)}", "/verify/objects/kept/an%20object/of%20two%20segments"):
        assert expect(described_store.admin.post(path), 200)["key"] == key
