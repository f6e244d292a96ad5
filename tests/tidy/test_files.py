"""Rules on every source file: it says what it is for, and it has one subject."""

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LINES_MAX = 600


def tracked(*patterns: str) -> list[Path]:
    """The files in version control, and new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    return [path for line in listed.splitlines() if (path := REPOSITORY / line).is_file()]


def test_there_are_files_to_look_at():
    """A wrong pattern would make every rule below pass."""
    assert len(tracked("*.rs")) > 40 and len(tracked("*.py")) > 15


def test_every_rust_file_begins_with_its_purpose():
    """A `//!` header in the first line."""
    assert [str(path) for path in tracked("*.rs") if not path.read_text().startswith("//!")] == []


def test_every_python_file_begins_with_its_purpose():
    """A docstring before anything else."""
    assert [str(path) for path in tracked("*.py") if not path.read_text().startswith(('"""', "#!"))] == []


def test_no_file_is_too_long():
    """Over 600 lines a file holds two subjects."""
    long = {str(path): lines for path in tracked("*.rs", "*.py") if (lines := path.read_text().count("\n")) > LINES_MAX}
    assert long == {}


def test_nothing_is_left_for_later():
    """No to-do marks and no ignored tests: what is not done is an issue, not a comment."""
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|todo!\(|unimplemented!\(|#\[ignore|pytest\.mark\.(skip|xfail)")
    here = Path(__file__).resolve()
    found = [
        f"{path}:{number}" for path in tracked("*.rs", "*.py") if path.resolve() != here
        for number, line in enumerate(path.read_text().splitlines(), 1) if marks.search(line)
    ]
    assert found == []


def test_unsafe_stays_where_it_is_allowed():
    """Only lmdb, net and engine may switch the lint off; everybody else lives under `deny` or `forbid`."""
    allowed = {"lmdb", "net", "engine"}
    mark = re.compile(r"#!?\[(allow|expect)\(.*unsafe_code")
    found = {path.relative_to(REPOSITORY).parts[0] for path in tracked("*.rs") if mark.search(path.read_text())}
    assert found <= allowed, found - allowed
