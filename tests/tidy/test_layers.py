"""Allowed dependencies between crates, and which crates may use heed and glommio."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# From top to bottom. A crate may depend only on crates of lower layers.
LAYERS = [
    {"cairn"},
    {"cairn-server"},
    {"cairn-console"},
    {"cairn-s3", "cairn-admin"},
    {"cairn-openid", "cairn-sharing", "cairn-webhooks"},
    {"cairn-identity", "cairn-observe", "cairn-transfer"},
    {"cairn-api", "cairn-engine", "cairn-net", "cairn-tables"},
    {"cairn-cors", "cairn-fixtures", "cairn-http1", "cairn-lmdb", "cairn-md5", "cairn-trust", "cairn-xml"},
    {"cairn-model", "cairn-sync"},
]
# These may use the others, but no crate may depend on them.
APART = {"cairn-benches", "cairn-forgetful-disk", "cairn-loadtests"}
# External crates that only some of our crates may use, so that they can be replaced in one place.
RESERVED = {
    "heed": {"cairn-lmdb"},
    "glommio": {"cairn-net", "cairn-engine", "cairn-fixtures"},
    "httparse": {"cairn-http1"},
    "quick-xml": {"cairn-xml"},
    "argh": {"cairn", "cairn-loadtests"},
}


def workspace() -> dict[str, list[dict]]:
    """Returns the dependencies of every workspace crate."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return {package["name"]: package["dependencies"] for package in json.loads(done.stdout)["packages"]}


@pytest.fixture(scope="module")
def dependencies() -> dict[str, list[dict]]:
    """Reads the dependencies once."""
    return workspace()


def level(name: str) -> int:
    """Returns the layer of a crate; 0 is the top."""
    return next(number for number, names in enumerate(LAYERS) if name in names)


def test_every_crate_has_a_layer(dependencies: dict[str, list[dict]]):
    """A new crate must be assigned to a layer."""
    assert set(dependencies) == set().union(*LAYERS) | APART


def test_dependencies_point_to_lower_layers(dependencies: dict[str, list[dict]]):
    """Development dependencies follow the same order, and no crate depends on one outside the layers."""
    wrong = []
    for name, targets in dependencies.items():
        for target in (found["name"] for found in targets if found["name"] in dependencies):
            if target in APART or (name not in APART and level(target) <= level(name)):
                wrong.append(f"{name} -> {target}")
    assert not wrong, wrong


def test_fixtures_are_used_by_tests_only(dependencies: dict[str, list[dict]]):
    """The product contains nothing of them. The engine's simulation, a feature of test builds, runs on their executor."""
    found = [(name, target) for name, targets in dependencies.items() for target in targets if target["name"] == "cairn-fixtures"]
    assert {(name, target["optional"]) for name, target in found if target["kind"] != "dev"} == {("cairn-engine", True)}
    engine = tomllib.loads((REPOSITORY / "engine/Cargo.toml").read_text())["features"]
    assert [name for name, needed in engine.items() if "dep:cairn-fixtures" in needed] == ["simulation"]
    simulated = [name for name, targets in dependencies.items() for target in targets if "simulation" in target["features"]]
    assert not simulated, simulated


@pytest.mark.parametrize("reserved", RESERVED)
def test_reserved_crates_are_used_only_where_allowed(dependencies: dict[str, list[dict]], reserved: str):
    """The rule covers normal dependencies. Tests and benchmarks may use any crate."""
    named = {
        name for name, targets in dependencies.items()
        for found in targets if found["name"] == reserved and found["kind"] is None
    }
    assert named - APART <= RESERVED[reserved], f"{reserved} is named by {sorted(named - RESERVED[reserved])}"


def test_model_and_http1_depend_on_no_runtime(dependencies: dict[str, list[dict]]):
    """Pure crates have no sockets, executors or files."""
    for name in ("cairn-model", "cairn-http1"):
        named = {found["name"] for found in dependencies[name] if found["kind"] is None}
        assert not named & {"glommio", "tokio", "socket2", "rustix", "heed", "libc"}, (name, named)
