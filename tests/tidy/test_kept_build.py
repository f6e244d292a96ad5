"""Builds that `.ci/run` keeps: only what has changed is compiled again."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from runner.kept_build import STATE, prepare

REPOSITORY = Path(__file__).resolve().parents[2]
MANIFEST = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n[dependencies]\n{dependency}'
WORD, MAIN = "lower/words/word.txt", "upper/src/main.rs"
SOURCES = {
    "Cargo.toml": '[workspace]\nresolver = "3"\nmembers = ["lower", "upper"]\n',
    "rust-toolchain.toml": (REPOSITORY / "rust-toolchain.toml").read_text(),
    "lower/Cargo.toml": MANIFEST.format(name="lower", dependency=""),
    # The number of files in a folder, which no source names.
    "lower/build.rs": "fn main() {\n"
    '    println!("cargo::rerun-if-changed=words");\n'
    '    println!("cargo::rustc-env=FILES={}", std::fs::read_dir("words").unwrap().count());\n'
    "}\n",
    "lower/src/lib.rs": 'pub const WORD: &str = concat!(include_str!("../words/word.txt"), env!("FILES"));\n',
    WORD: "first",
    "upper/Cargo.toml": MANIFEST.format(name="upper", dependency='lower.path = "../lower"\n'),
    MAIN: 'fn main() { print!("{}", lower::WORD); }\n',
}
BOTH = {"lower", "upper"}


class Runs:
    """Runs with fresh clones, and what they build."""

    def __init__(self, folder: Path):
        self.folder, self.clone, self.built = folder, folder / "clone", folder / "built"
        self.built.mkdir()

    def checkout(self, **changes: str) -> None:
        """Makes a fresh clone with these changes."""
        for clone in self.folder.glob("*clone"):
            shutil.rmtree(clone)
        for name, content in (SOURCES | changes).items():
            path = self.clone / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(("git", "init", "--quiet"), cwd=self.clone, check=True)

    def build(self) -> tuple[str, set[str]]:
        """Returns what the built program prints, and what was compiled."""
        cargo = ("cargo", "build", "--offline", "--target-dir", str(self.built))
        done = subprocess.run(cargo, cwd=self.clone, check=True, capture_output=True, text=True)
        compiled = {line.split()[1] for line in done.stderr.splitlines() if line.split()[0] == "Compiling"}
        return subprocess.run((self.built / "debug/upper",), check=True, capture_output=True, text=True).stdout, compiled

    def run(self, **changes: str) -> tuple[str, set[str]]:
        """Runs as `.ci/run` does."""
        self.checkout(**changes)
        prepare(self.clone, self.built)
        return self.build()


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Runs in a folder of the test's own."""
    return Runs(tmp_path)


def test_only_what_has_changed_is_compiled(runs: Runs):
    """Also after a change was taken back, and after a run that did not compile what it had changed."""
    assert runs.run() == ("first1", BOTH)
    assert runs.run() == ("first1", set())
    changed = SOURCES[MAIN].replace("{}", "{}!")
    assert runs.run(**{MAIN: changed}) == ("first1!", {"upper"})
    assert runs.run() == ("first1", {"upper"})
    assert runs.run(**{WORD: "other"}) == ("other1", BOTH)
    runs.checkout(**{WORD: "third"})
    prepare(runs.clone, runs.built)
    assert runs.run(**{WORD: "third"}) == ("third1", BOTH)
    assert runs.run() == ("first1", BOTH)


def test_a_file_that_no_source_names_counts(runs: Runs):
    """A build script watches the folder, and a file comes and goes."""
    assert runs.run() == ("first1", BOTH)
    assert runs.run(**{"lower/words/more.txt": ""}) == ("first2", BOTH)
    assert runs.run(**{"lower/words/more.txt": ""}) == ("first2", set())
    assert runs.run() == ("first1", BOTH)


def test_a_build_without_preparation_is_not_trusted(runs: Runs, monkeypatch: pytest.MonkeyPatch):
    """The disk was full, so the last state does not describe what was built."""
    assert runs.run() == ("first1", BOTH)
    runs.checkout(**{WORD: "other"})
    with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
        patched.setattr(Path, "write_text", lambda *_: (_ for _ in ()).throw(OSError("full")))
        prepare(runs.clone, runs.built)
    assert runs.build()[0] == "other1"
    assert runs.run() == ("first1", BOTH)


def test_a_source_that_is_changed_during_a_run_and_back_is_compiled(runs: Runs):
    """Somebody works in the tree, which is no fresh clone then."""
    assert runs.run() == ("first1", BOTH)
    (runs.clone / WORD).write_text("other")
    assert runs.build()[0] == "other1"
    (runs.clone / WORD).write_text("first")
    prepare(runs.clone, runs.built)
    assert runs.build() == ("first1", BOTH)
    prepare(runs.clone, runs.built)
    assert runs.build() == ("first1", set())


def test_builds_of_another_place_or_of_the_future_hide_no_change(runs: Runs):
    """Programs contain the paths of their sources and of the folder, and a clock can be set back."""
    assert runs.run() == ("first1", BOTH)
    runs.clone = runs.folder / "other clone"
    assert runs.run() == ("first1", BOTH)
    runs.built = runs.built.rename(runs.folder / "moved")
    assert runs.run() == ("first1", BOTH)
    for path in runs.built.glob("**/.fingerprint/*/*"):
        os.utime(path, (2**32, 2**32))
    assert runs.run(**{WORD: "other"}) == ("other1", BOTH)
    (runs.built / STATE).write_text("{")
    assert runs.run(**{WORD: "other"}) == ("other1", BOTH)
