"""Compares docs/migrating.md with the program, and runs its blocks with a second server in MinIO's place."""

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from harness.accounts import client
from harness.follower import Shell, blocks_of
from harness.metrics import SCRAPE_TOKEN
from harness.minio_export import BucketExport, IamExport, allow, document
from harness.server import BINARY, REPOSITORY, Cairn, clean_environment

MakeStore = Callable[..., Cairn]
PAGE = REPOSITORY / "docs" / "migrating.md"
TEXT = PAGE.read_text()
CONFIGURATION = (REPOSITORY / "docs" / "configuration.md").read_text()
OBJECTS = {"a b/ü+%.txt": b"text", "large": random.Random(2).randbytes(9_000_000), "empty": b""}


def named(pattern: str) -> list[str]:
    """Returns the code spans of the page that match a pattern, without repetitions."""
    found = sorted(set(re.findall(f"`({pattern})`", TEXT)))
    assert found, pattern
    return found


@pytest.mark.parametrize("variable", named(r"SERVICE_[A-Z_0-9]+"))
def test_every_variable_exists(variable: str):
    """docs/configuration.md is generated from the table of keys."""
    assert f"`{variable.removesuffix('_FILE')}`" in CONFIGURATION


@pytest.mark.parametrize("command", named(r"cairn [a-z -]+"))
def test_every_command_exists(command: str):
    """Its help is shown."""
    done = subprocess.run(
        [BINARY, *command.split()[1:], "--help"], env=clean_environment(), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0 and "Usage" in done.stdout, done


def test_every_route_answers(make_store: MakeStore):
    """The routes of the table, on the management port. Metrics need the scrape token."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    routes = re.findall(r"\| port 7601, \[?`(/[a-z0-9/]+)`", TEXT)
    assert sorted(routes) == ["/api/v1", "/health", "/metrics", "/ready"]
    for route in routes:
        headers = {"Authorization": f"Bearer {SCRAPE_TOKEN}"} if route == "/metrics" else {}
        path = "/api/v1/buckets" if route == "/api/v1" else route
        expected = 401 if route == "/api/v1" else 200
        assert requests.get(store.management + path, headers=headers, timeout=20).status_code == expected, route
    assert store.stop() == 0


def test_every_block_works(make_store: MakeStore, run_folder: Path):
    """The policies are accepted, and the import moves the objects of a bucket with their types and metadata."""
    minio, store = make_store().start(), make_store().start()
    minio.s3.create_bucket("photos")
    headers = [("Content-Type", "image/x-test"), ("x-amz-meta-colour", "green"), ("x-amz-meta-mtime", "1600000000.5")]
    for key, body in OBJECTS.items():
        assert minio.s3.put("photos", key, body, headers).status == 200
    shell = Shell(run_folder / "migrating", ["SOURCE_ACCESS_KEY", "SOURCE_SECRET_KEY"])
    export = IamExport()
    export.policies["shop"] = document(allow("s3:GetObject", "photos/*"))
    export.user("shop-web", "the-secret-of-a-shop", "shop")
    export.write(shell.folder / "iam.zip")
    settings = BucketExport()
    settings.bucket("archive", "Enabled", 1 << 30)
    settings.write(shell.folder / "buckets.zip")
    shell.environment |= {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    replaced = {
        "http://127.0.0.1:9000": minio.endpoint,
        "SOURCE_ACCESS_KEY=minioadmin": f"SOURCE_ACCESS_KEY={minio.secrets.root_access_key}",
        "SOURCE_SECRET_KEY=minioadmin": f"SOURCE_SECRET_KEY={minio.secrets.root_secret_key}",
    }
    blocks = blocks_of(PAGE)
    assert len(blocks) >= 7
    for language, name, text in blocks:
        for theirs, ours in replaced.items():
            text = text.replace(theirs, ours)
        if name:
            (shell.folder / name).write_text(text)
            continue
        assert language == "sh", language
        shell.run(re.sub(r"^(cairn (?!verify proof).*)$", rf"\1 --endpoint {store.management}", text, flags=re.MULTILINE))
    for key, body in OBJECTS.items():
        got = store.s3.get("photos", key)
        assert (got.body, *(got.get(header) for header, _ in headers)) == (body, *(value for _, value in headers))
    accounts = store.admin.get("/service-accounts").json()["service_accounts"]
    policies = {account["name"]: [policy["name"] for policy in account["policies"]] for account in accounts}
    assert policies == {"web": ["readwrite"], "shop-web": ["shop"], "shop": ["readwrite"]}
    moved = client(store, {"access_key": "shop@example.com", "secret_key": "the+secret/of=the+application"})
    assert moved.get("photos", next(iter(OBJECTS))).status == 200
    assert store.stop() == 0 and minio.stop() == 0
