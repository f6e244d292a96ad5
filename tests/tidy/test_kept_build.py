"""Builds that `.ci/run` keeps: what has not changed is not compiled again, and everything else is."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from runner.kept_build import STATE, prepare

MANIFEST = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\n{dependency}'
SOURCES = {
    "Cargo.toml": '[workspace]\nresolver = "3"\nmembers = ["lower", "upper"]\n',
    "lower/Cargo.toml": MANIFEST.format(name="lower", dependency=""),
    "lower/src/lib.rs": "pub const WORD: &str = include_str!(\"word.txt\");\n",
    "lower/src/word.txt": "first",
    "upper/Cargo.toml": MANIFEST.format(name="upper", dependency='lower.path = "../lower"\n'),
    "upper/src/main.rs": 'fn main() { print!("{}", lower::WORD); }\n',
}
BOTH = {"lower", "upper"}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[str, set[str]]]:
    """A run with a fresh clone: returns what the built program prints, and what was compiled for it."""
    repository, built = tmp_path / "clone", tmp_path / "built"
    built.mkdir()

    def start(interrupted: bool = False, at: Path = repository, **changes: str) -> tuple[str, set[str]]:
        for clone in tmp_path.glob("*clone"):
            shutil.rmtree(clone)
        for name, content in (SOURCES | changes).items():
            path = at / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(("git", "init", "--quiet"), cwd=at, check=True)
        if not prepare(at, built):
            shutil.rmtree(built / "debug", ignore_errors=True)
        if interrupted:
            return "", set()
        cargo = ("cargo", "build", "--offline", "--target-dir", str(built))
        done = subprocess.run(cargo, cwd=at, check=True, capture_output=True, text=True)
        compiled = {line.split()[1] for line in done.stderr.splitlines() if line.split()[0] == "Compiling"}
        return subprocess.run((built / "debug/upper",), check=True, capture_output=True, text=True).stdout, compiled

    return start


def test_only_what_has_changed_is_compiled(run: Callable[..., tuple[str, set[str]]]):
    """Also after a change was taken back, and after a run that did not compile what it had changed."""
    assert run() == ("first", BOTH)
    assert run() == ("first", set())
    changed = SOURCES["upper/src/main.rs"].replace("{}", "{}!")
    assert run(**{"upper/src/main.rs": changed}) == ("first!", {"upper"})
    assert run() == ("first", {"upper"})
    assert run(**{"lower/src/word.txt": "other"}) == ("other", BOTH)
    run(interrupted=True, **{"lower/src/word.txt": "third"})
    assert run(**{"lower/src/word.txt": "third"}) == ("third", BOTH)
    run(interrupted=True)
    assert run(**{"lower/src/word.txt": "third"})[0] == "third"
    assert run()[0] == "first"


def test_builds_of_another_place_or_of_the_future_are_not_used(run: Callable[..., tuple[str, set[str]]], tmp_path: Path):
    """Programs contain the path of their sources, and a clock that was set back would hide changes."""
    assert run() == ("first", BOTH)
    assert run(at=tmp_path / "other clone") == ("first", BOTH)
    assert run() == ("first", BOTH)
    for path in (tmp_path / "built").glob("*/.fingerprint/*/*"):
        os.utime(path, (2**32, 2**32))
    assert run(**{"lower/src/word.txt": "other"}) == ("other", BOTH)
    (tmp_path / "built" / STATE).write_text(json.dumps({"repository": 1})[:-1])
    assert run(**{"lower/src/word.txt": "other"}) == ("other", BOTH)
