"""The AWS SDKs for JavaScript (v3) and Go (v2): the programs under tests/clients do what an application does, and say what they saw."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.boto import PART_BYTES, parts_etag
from harness.programs import SDK_PROGRAMS
from harness.s3 import S3, md5_etag

# Three parts, the last a short one.
FILE = random.Random("file of the SDKs").randbytes(2 * PART_BYTES + 123_457)
Run = Callable[..., dict]


def sha256(body: bytes) -> str:
    """Returns a digest in hex."""
    return hashlib.sha256(body).hexdigest()


@pytest.fixture(params=SDK_PROGRAMS)
def sdk(request: pytest.FixtureRequest) -> str:
    """Returns the name of one of the two SDKs."""
    return request.param


@pytest.fixture(params=["when required", "defaults"])
def run(request: pytest.FixtureRequest, sdk: str, command, tmp_path: Path) -> Run:
    """Runs a scenario with both checksum settings."""
    if request.param == "defaults":
        for name in ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"):
            del command.environment[name]
    file = tmp_path / "file"
    file.write_bytes(FILE)
    return lambda scenario, bucket: json.loads(command.must(*SDK_PROGRAMS[sdk], scenario, bucket, file))


def test_objects(run: Run, bucket: str):
    """Put, head, get, a range, pages of a list, a condition, delete."""
    body = b"objects " * 37_500
    assert run("objects", bucket) == {
        "etag": md5_etag(body), "type": "text/css", "metadata": {"color": "green"}, "digest": sha256(body), "piece": "objects",
        "keys": ["a b+ü", *(f"list/{number}" for number in range(5))],
        "taken": ["PreconditionFailed", 412], "missing": ["NoSuchKey", 404],
    }


def test_multipart(run: Run, s3: S3, bucket: str):
    """The SDK's own uploader, and every operation by hand: parts out of order, listed, completed, aborted, read by number."""
    seen = run("multipart", bucket)
    two = FILE[: 2 * PART_BYTES]
    assert seen == {
        "etag": parts_etag(FILE), "digest": sha256(FILE), "listed": [1, 2], "uploads": 1, "completed": parts_etag(two),
        "by_hand": sha256(two), "parts_count": 2, "second": sha256(two[PART_BYTES:]), "aborted": ["NoSuchUpload", 404], "left": 0,
    }
    assert s3.get(bucket, "managed").body == FILE


def test_versions(run: Run, bucket: str):
    """Old versions, delete markers, and the way back."""
    seen = run("versions", bucket)
    assert seen.pop("listed") == seen.pop("ids")[::-1]
    assert seen == {
        "status": "Enabled", "marker": True, "hidden": ["NoSuchKey", 404], "old": "first", "restored": "second", "markers": 1,
    }


def test_locks(run: Run, bucket: str):
    """Governance, a hold, compliance, and the bucket's default."""
    denied = ["AccessDenied", 403]
    assert run("locks", f"{bucket}-lock") == {
        "mode": "GOVERNANCE", "until": True, "kept": denied, "held": denied, "other_mode": denied, "compliant": denied,
        "default": ["GOVERNANCE", 1],
    }


def test_copies(run: Run, bucket: str):
    """With the metadata and with other metadata, from a name that is easy to get wrong."""
    assert run("copies", bucket) == {
        "etag": md5_etag(b"copied"), "body": "copied", "metadata": {"color": "green"}, "replaced": {"shape": "round"},
        "condition": ["PreconditionFailed", 412],
    }


def test_unsupported_operations_are_refused(run: Run, bucket: str):
    """The SDK reports NotImplemented, and the object stays."""
    refused = ["NotImplemented", 501]
    assert run("refusals", bucket) == {"batch": refused, "first": refused, "acl": refused, "stays": "stays"}


@pytest.mark.parametrize(("setting", "outcome"), [("when_required", "accepted"), ("when_supported", ["NotImplemented", 501])])
def test_a_stream_of_javascript(command, s3: S3, bucket: str, tmp_path: Path, setting: str, outcome: object):
    """By default the checksum of a stream follows its body, which is refused and stores nothing; "when required" leaves it out."""
    command.environment["AWS_REQUEST_CHECKSUM_CALCULATION"] = setting
    (tmp_path / "file").write_bytes(FILE)
    assert json.loads(command.must(*SDK_PROGRAMS["javascript"], "stream", bucket, tmp_path / "file")) == {"stream": outcome}
    assert s3.get(bucket, "k").status == (200 if outcome == "accepted" else 404)
