"""Rules on the dependencies: reasons, use, licences, one version of each crate, and where they come from.

The rules are those of deny.toml, in cargo-deny's format, and `cargo deny check bans licenses sources` judges the same. They are
applied here because building cargo-deny takes longer than all that it checks. Advisories are left to a scheduled run: their
database is fetched from the network and changes without a commit.
"""

import json
import re
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from tidy.test_files import tracked

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = tomllib.loads((REPOSITORY / "deny.toml").read_text())
REASONS = REPOSITORY / "docs/dependencies.md"
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


@pytest.fixture(scope="module")
def crates() -> list[dict]:
    """Every crate that a build for one of our platforms can contain, with all features and with what tests need."""
    found: dict[str, dict] = {}
    for target in RULES["graph"]["targets"]:
        command = ["cargo", "metadata", "--format-version=1", "--all-features", f"--filter-platform={target['triple']}"]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
        metadata = json.loads(done.stdout)
        nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        shipped = with_dependencies(nodes, metadata["workspace_members"])
        for crate in metadata["packages"]:
            if crate["id"] in nodes:
                known = found.setdefault(crate["id"], crate | {"shipped": False})
                known["shipped"] |= crate["id"] in shipped
    return list(found.values())


def with_dependencies(nodes: dict[str, dict], members: list[str]) -> set[str]:
    """Members of the workspace and what they are built from, without what only tests need."""
    reached, waiting = set(members), list(members)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            if kinds != {"dev"} and dependency["pkg"] not in reached:
                reached.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return reached


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Returns whether a licence expression of SPDX, or of crates that still divide with a slash, can be met by allowed licences."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def choice() -> bool:
        met = conjunction()
        while words and words[0] == "OR":
            words.pop(0)
            met = conjunction() or met
        return met

    def conjunction() -> bool:
        met = licence()
        while words and words[0] == "AND":
            words.pop(0)
            met = licence() and met
        return met

    def licence() -> bool:
        word = words.pop(0)
        if word == "(":
            met = choice()
            assert words.pop(0) == ")", expression
            return met
        if words and words[0] == "WITH":
            word = f"{word} {words.pop(0)} {words.pop(0)}"
        # A plus after a name is "or any later version".
        return word in allowed or word.removesuffix("+") in allowed

    met = choice()
    assert not words, f"not an expression: {expression}"
    return met


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True), ("MIT AND GPL-3.0", False), ("MIT/GPL-3.0", True),
        ("(MIT OR GPL-3.0) AND ISC", True), ("GPL-3.0 OR MIT AND GPL-2.0", False), ("Apache-2.0 WITH LLVM-exception", False),
        ("ISC+", True), ("GPL-2.0+", False),
    ],
)
def test_licence_expressions_are_understood(expression: str, allowed: bool):
    """AND binds tighter than OR, and an exception to a licence is another licence."""
    assert is_allowed(expression, {"MIT", "ISC", "Apache-2.0"}) == allowed


def test_every_licence_is_one_that_was_decided_on(crates: list[dict]):
    """A crate without a licence has none that was; an exception that nothing needs is removed."""
    rules = RULES["licenses"]
    exceptions = {exception["crate"]: set(exception["allow"]) for exception in rules["exceptions"]}
    wrong = {
        f"{crate['name']} {crate['version']}": crate["license"] for crate in crates
        if not is_allowed(crate["license"] or "none", set(rules["allow"]) | exceptions.get(crate["name"], set()))
    }
    assert len(crates) > 100 and wrong == {}
    assert {name for name in exceptions if not any(crate["name"] == name for crate in crates)} == set()


def test_there_is_one_version_of_each_crate(crates: list[dict]):
    """Or the others are listed with a reason; an entry that nothing needs is removed. What only tests need does not count."""
    skipped = {entry["crate"] for entry in RULES["bans"]["skip"]}
    assert all(entry["reason"] for entry in RULES["bans"]["skip"])
    versions, used = defaultdict(set), defaultdict(set)
    for crate in (crate for crate in crates if crate["shipped"]):
        name = f"{crate['name']}@{crate['version']}"
        used[crate["name"]].add(crate["version"])
        if name not in skipped:
            versions[crate["name"]].add(crate["version"])
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}
    needed = {f"{name}@{version}" for name, found in used.items() if len(found) > 1 for version in found}
    assert skipped - needed == set()


def test_no_dependency_takes_any_version(crates: list[dict]):
    """A `*` would; those of the workspace have paths."""
    wild = [
        f"{crate['name']} -> {dependency['name']}" for crate in crates for dependency in crate["dependencies"]
        if dependency["req"] == "*" and "path" not in dependency and crate["source"] is None
    ]
    assert wild == []


def test_every_crate_comes_from_the_registry_or_from_here(crates: list[dict]):
    """Neither from another registry nor from a repository."""
    strange = [
        crate["name"] for crate in crates
        if crate["source"] != REGISTRY and not (crate["source"] is None and Path(crate["manifest_path"]).is_relative_to(REPOSITORY))
    ]
    assert strange == []


def test_the_fuzz_targets_have_a_current_lock_file():
    """They are a workspace of their own, which no other build uses: `cargo metadata` in fuzz updates it."""
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(command, cwd=REPOSITORY / "fuzz", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def manifests() -> dict[Path, set[str]]:
    """The crates from elsewhere that each of our packages names, with those for its tests and its build script."""
    named = {}
    for file in (path for path in tracked("Cargo.toml", "*/Cargo.toml") if "clients" not in path.parts):
        parts = tomllib.loads(file.read_text())
        kinds = [parts.get(kind, {}) for kind in ("dependencies", "dev-dependencies", "build-dependencies")]
        named[file.parent] = {name for kind in kinds for name in kind if not name.startswith("cairn-")}
    return named


def unexplained(page: str, named: set[str]) -> tuple[set[str], set[str]]:
    """Crates without a row in the page of reasons, and rows without a crate."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]{10,} \|$", page, re.MULTILINE)
    explained = {name for row in rows for name in row.split(", ")} - {"crate"}
    return named - explained, explained - named


def unused(names: set[str], sources: str) -> set[str]:
    """Crates that no source mentions."""
    return {name for name in names if not re.search(rf"\b{name.replace('-', '_')}\b", sources)}


def test_every_direct_dependency_has_a_reason():
    """In docs/dependencies.md, which lists no other."""
    named = set().union(*manifests().values())
    assert len(named) > 40
    assert unexplained(REASONS.read_text(), named) == (set(), set())


def test_every_direct_dependency_is_used():
    """By the package that names it; one of the workspace by some package."""
    packages = manifests()
    shared = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["dependencies"]
    ours = {name for name in shared if name.startswith("cairn-")}
    assert set(shared) - ours - set().union(*packages.values()) == set(), "used by no package"
    left_over = {}
    for folder, names in packages.items():
        sources = "".join(path.read_text() for path in tracked("*.rs") if path.is_relative_to(folder))
        if found := unused(names, sources):
            left_over[str(folder.relative_to(REPOSITORY))] = found
    assert left_over == {}


def test_dependencies_without_reason_or_use_are_found():
    """A row may name several crates. A single word is not a reason."""
    page = "| crate | where | why |\n|---|---|---|\n| a, b-c | all | they are well kept |\n| gone | all | it was well kept |\n| d | all | why |\n"
    assert unexplained(page, {"a", "b-c", "d"}) == ({"d"}, {"gone"})
    assert unused({"b-c", "d"}, "use b_c::X; // `dd`") == {"d"}
