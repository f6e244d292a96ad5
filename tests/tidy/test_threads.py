"""The table of threads in docs/architecture.md has every thread that the server starts, and no other."""

import re
from pathlib import Path

from tidy.test_files import REPOSITORY

# The command line and the load generator are programs of their own.
APART = {"benches", "cairn", "fuzz", "loadtests"}
# A name in a call of `Builder::name`, or of a function that starts a thread: `spawn...` or `...::start`. Numbers follow a hyphen.
LITERAL = r'(?:format!\(\s*)?"([a-z][a-z-]*[a-z])(?:-?\{[^"]*\})?"'
STARTED = re.compile(rf"(?:\.name|\bspawn\w*|::start)\(\s*{LITERAL}")
# Names beside the functions that threads run, in a file that starts them.
PAIRED = re.compile(r'(?<!\w)\("([a-z][a-z-]*[a-z])", \w+(?:::\w+)*\)')
BUILDER = "thread::Builder::new()"


def started(source: str) -> set[str]:
    """The names of the threads that a file starts, without its tests."""
    code = source.partition("#[cfg(test)]\nmod tests")[0]
    paired = PAIRED.findall(code) if BUILDER in code else []
    return {*STARTED.findall(code), *paired}


def listed(page: str) -> set[str]:
    """The names in the table of threads; `<name>` stands for numbers and subsystems."""
    table = page.partition("\n| thread | number | task |\n")[2].partition("\n\n")[0]
    names = re.findall(r"`([^`]+)`", " ".join(row.split("|")[1] for row in table.splitlines()))
    return {re.sub(r"-<\w+>$", "", name) for name in names}


def test_table_of_threads_is_that_of_the_code():
    """In both directions."""
    crates = [path for path in REPOSITORY.glob("*/src") if path.parent.name not in APART]
    files = [path for crate in crates for path in crate.rglob("*.rs") if "tests" not in path.parts and path.name != "tests.rs"]
    found = set().union(*(started(path.read_text()) for path in files))
    assert len(found) > 25
    assert listed((REPOSITORY / "docs/architecture.md").read_text()) == found


def test_every_way_to_start_a_thread_is_seen():
    """Names in calls, in formats, and beside functions."""
    source = """
        thread::Builder::new().name("one".to_owned()).spawn(run)?;
        thread::Builder::new()
            .name(format!("two-{number:02}"))
            .spawn(run);
        spawn_background("three".to_owned(), path, body);
        Queries::start(
            "four", 8);
        for (name, run) in [("five", five::run), ("six", close)] { run.doing("eight", path) }
        #[cfg(test)]
        mod tests { fn test() { spawn("seven", run) } }
    """
    assert started(source.replace("        ", "")) == {"one", "two", "three", "four", "five", "six"}
    page = "text `zero`\n\n| thread | number | task |\n|---|---|---|\n| `one`, `two-<slice>` | `ten` | `no` |\n| audit | | |\n\n`eight`"
    assert listed(page) == {"one", "two"}
