"""The workspace's shape as a test: which crate may name which, and who may name heed and glommio."""

import json
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# From the top down. An arrow may only point to a lower layer, never up and never sideways.
LAYERS = [
    {"cairn"},
    {"cairn-server"},
    {"cairn-s3", "cairn-admin"},
    {"cairn-identity", "cairn-observe"},
    {"cairn-engine", "cairn-net"},
    {"cairn-http1", "cairn-lmdb"},
    {"cairn-model"},
]
# They look at the others from outside, and nobody names them.
APART = {"cairn-benches", "cairn-forgetful-disk", "cairn-loadtests"}
# Crates that only some of ours may name, so that they can be replaced in one place.
RESERVED = {
    "heed": {"cairn-lmdb"},
    "glommio": {"cairn-net", "cairn-engine"},
    "httparse": {"cairn-http1"},
    "quick-xml": {"cairn-s3", "cairn-loadtests"},
    "argh": {"cairn", "cairn-loadtests"},
}


def workspace() -> dict[str, list[dict]]:
    """The dependencies of every crate of ours."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {package["name"]: package["dependencies"] for package in json.loads(done.stdout)["packages"]}


@pytest.fixture(scope="module")
def dependencies() -> dict[str, list[dict]]:
    """Read once."""
    return workspace()


def level(name: str) -> int:
    """The layer of a crate, 0 at the top."""
    return next(number for number, names in enumerate(LAYERS) if name in names)


def test_every_crate_has_a_place(dependencies: dict[str, list[dict]]):
    """A new crate is put into the picture before it is used."""
    assert set(dependencies) == set().union(*LAYERS) | APART


def test_arrows_point_down(dependencies: dict[str, list[dict]]):
    """Never up, never sideways; nobody leans on what stands apart. Test-only dependencies keep the order too."""
    wrong = []
    for name, targets in dependencies.items():
        for target in (found["name"] for found in targets if found["name"] in dependencies):
            if target in APART or (name not in APART and level(target) <= level(name)):
                wrong.append(f"{name} -> {target}")
    assert not wrong, wrong


@pytest.mark.parametrize("reserved", RESERVED)
def test_reserved_crates_have_one_keeper(dependencies: dict[str, list[dict]], reserved: str):
    """In normal dependencies; a test or a benchmark may use what it likes."""
    named = {
        name for name, targets in dependencies.items()
        for found in targets if found["name"] == reserved and found["kind"] is None
    }
    assert named - APART <= RESERVED[reserved], f"{reserved} is named by {sorted(named - RESERVED[reserved])}"


def test_model_and_http1_name_no_runtime(dependencies: dict[str, list[dict]]):
    """Pure crates stay pure: no sockets, no executors, no files."""
    for name in ("cairn-model", "cairn-http1"):
        named = {found["name"] for found in dependencies[name] if found["kind"] is None}
        assert not named & {"glommio", "tokio", "socket2", "rustix", "heed", "libc"}, (name, named)
