"""Clients that name the bucket in the host, in the extended mode: the AWS CLI, the SDK for Go, and curl.

The hosts are in no DNS. Python clients get a resolver that knows them, the program in Go its own dialer, and curl
`--resolve`.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.boto import random_bytes
from harness.folders import digests
from harness.programs import SDK_PROGRAMS
from harness.s3 import md5_etag
from harness.server import Cairn

BASE = "store.test"
RESOLVER = f"""
import socket
resolve = socket.getaddrinfo
def known(host, *rest, **more):
    return resolve("127.0.0.1" if str(host).endswith({BASE!r}) else host, *rest, **more)
socket.getaddrinfo = known
"""


@pytest.fixture(scope="module")
def hosted_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with a name."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_SERVER_BASE_HOSTS=BASE).start()


@pytest.fixture
def hosted(hosted_store: Cairn, command_for, tmp_path: Path):
    """Command-line clients that use the server's name."""
    made = command_for(hosted_store)
    (tmp_path / "python").mkdir()
    (tmp_path / "python/sitecustomize.py").write_text(RESOLVER)
    made.environment |= {
        "AWS_ENDPOINT_URL": f"http://{BASE}:{hosted_store.s3_port}", "PYTHONPATH": str(tmp_path / "python"),
        "CAIRN_VIRTUAL_HOSTED": hosted_store.s3.authority,
    }
    Path(made.environment["AWS_CONFIG_FILE"]).write_text("[default]\ns3 =\n    addressing_style = virtual\n")
    return made


def test_the_aws_cli(hosted, hosted_store: Cairn, tmp_path: Path):
    """Make a bucket, copy a tree in and out, list, copy within, remove."""
    (tmp_path / "from/sub dir").mkdir(parents=True)
    for name, size in (("large", 17_000_000), ("sub dir/ünï +%", 300_000), ("empty", 0)):
        (tmp_path / "from" / name).write_bytes(random_bytes(name, size))
    hosted.must("aws", "s3", "mb", "s3://cli.hosted")
    hosted.must("aws", "s3", "cp", "--recursive", tmp_path / "from", "s3://cli.hosted/tree")
    hosted.must("aws", "s3", "cp", "--recursive", "s3://cli.hosted/tree", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(tmp_path / "from")
    hosted.must("aws", "s3", "mv", "s3://cli.hosted/tree/large", "s3://cli.hosted/moved")
    assert hosted_store.s3.head("cli.hosted", "moved").status == 200, "the path style finds it as well"
    assert "moved" in hosted.must("aws", "s3", "ls", "s3://cli.hosted/") and "cli.hosted" in hosted.must("aws", "s3", "ls")
    requested = hosted.run("aws", "s3", "ls", "s3://cli.hosted", "--debug").stderr
    assert f"http://cli.hosted.{BASE}:{hosted_store.s3_port}/" in requested, "the CLI did name the bucket in the host"
    hosted.must("aws", "s3", "rb", "--force", "s3://cli.hosted")


def test_the_sdk_for_go(hosted, hosted_store: Cairn):
    """Its default style: objects and copies, with a key that is easy to get wrong."""
    run = lambda scenario, bucket: json.loads(hosted.must(*SDK_PROGRAMS["go"], scenario, bucket))
    for bucket in ("go-hosted", "go-copies"):
        hosted_store.s3.create_bucket(bucket)
    seen = run("objects", "go-hosted")
    assert (seen["etag"], seen["keys"]) == (md5_etag(b"objects " * 37_500), ["a b+ü", *(f"list/{number}" for number in range(5))])
    assert run("copies", "go-copies")["body"] == "copied"


def test_curl(hosted, hosted_store: Cairn, tmp_path: Path):
    """Its own signatures, with the host as sent."""
    secrets, port = hosted_store.secrets, hosted_store.s3_port
    hosted_store.s3.create_bucket("curl-hosted")
    (tmp_path / "file").write_bytes(random_bytes("curl", 100_000))
    curl = (
        "curl", "-sSf", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--resolve", f"curl-hosted.{BASE}:{port}:127.0.0.1", "--aws-sigv4", "aws:amz:us-east-1:s3",
        "--user", f"{secrets.root_access_key}:{secrets.root_secret_key}", f"http://curl-hosted.{BASE}:{port}/a/b",
    )
    hosted.must(*curl, "-T", tmp_path / "file")
    hosted.must(*curl, "-o", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()
    assert hosted_store.s3.get("curl-hosted", "a/b").body == (tmp_path / "file").read_bytes()
