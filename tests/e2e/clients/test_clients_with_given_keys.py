"""Clients whose accounts have given keys, with characters that are encoded in URLs and that divide scopes."""

import os
import subprocess
from pathlib import Path

import pytest
import requests

from harness.accounts import client, create_policy, statement
from harness.management import expect
from harness.programs import MC
from harness.s3 import S3
from harness.server import LOOPBACK, Cairn

KEYS = {"access_key": "my.app+key=1/2@x", "secret_key": "my+secret/of=an@application"}
ALL = ["ListBucket", "GetObject", "PutObject", "DeleteObject"]


@pytest.fixture(scope="module")
def account(make_module_store) -> tuple[Cairn, S3]:
    """A server with an account that has given keys and access to one bucket."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()
    store.s3.create_bucket("kept")
    made = expect(store.admin.post("/service-accounts", {"name": "moved", "credential": KEYS}), 201)
    policy = create_policy(store, statement("allow", ALL, "bucket:kept", "bucket:kept/*"))
    expect(store.admin.put(f"/policies/{policy}/bindings/{made['service_account']['id']}"), 204)
    return store, client(store, KEYS)


def run(folder: Path, *command: str, **environment: str) -> str:
    """Runs a program that must succeed, without the configuration of this machine. Returns its output."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder)} | environment
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=variables, cwd=folder)
    assert done.returncode == 0, done
    return done.stdout


def test_mc(account: tuple[Cairn, S3], tmp_path: Path):
    """Uploads, reads, and a presigned URL."""
    store, s3 = account

    def mc(*arguments: str) -> str:
        return run(tmp_path, MC, "--config-dir", str(tmp_path / "mc"), "--no-color", *arguments)

    mc("alias", "set", "cairn", f"http://{LOOPBACK}:{store.s3_port}", KEYS["access_key"], KEYS["secret_key"], "--api", "S3v4", "--path", "on")
    (tmp_path / "file").write_bytes(b"by mc")
    mc("cp", "file", "cairn/kept/by mc")
    assert mc("cat", "cairn/kept/by mc") == "by mc" and s3.get("kept", "by mc").body == b"by mc"
    shared = mc("share", "download", "cairn/kept/by mc")
    url = next(line for line in shared.splitlines() if line.startswith("Share: ")).removeprefix("Share: ")
    assert requests.get(url, timeout=30).content == b"by mc"


def test_aws(account: tuple[Cairn, S3], tmp_path: Path):
    """The AWS CLI, with the keys in its variables."""
    store, s3 = account

    def aws(*arguments: str) -> str:
        return run(
            tmp_path, "aws", *arguments, AWS_ENDPOINT_URL=f"http://{LOOPBACK}:{store.s3_port}", AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID=KEYS["access_key"], AWS_SECRET_ACCESS_KEY=KEYS["secret_key"],
        )

    (tmp_path / "file").write_bytes(b"by aws")
    aws("s3", "cp", "file", "s3://kept/by aws")
    assert s3.get("kept", "by aws").body == b"by aws" and "by aws" in aws("s3", "ls", "s3://kept/")
    url = aws("s3", "presign", "s3://kept/by aws").strip()
    assert requests.get(url, timeout=30).content == b"by aws"
