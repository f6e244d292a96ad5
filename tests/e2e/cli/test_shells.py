"""Shell completions and the manual page, tested with real shells and linters."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.server import BINARY, clean_environment

# zsh's completion system runs only in a terminal, so this replaces it and prints its arguments.
ZSH = """
compdef() {{ :; }}
_describe() {{ [[ $1 == -o ]] && shift; print -l -- ${{(P)2}}; }}
_files() {{ print -l -- FILES $@; }}
source {script}
words=({words})
CURRENT=$#words
_cairn
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Returns the output of a command, which must succeed and write nothing to standard error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=cwd, env=clean_environment())
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def needs(program: str) -> str:
    """Returns the path of a program that `./test` has installed."""
    path = shutil.which(program)
    assert path, f"{program} is missing; Debian: apt-get install {program}"
    return path


def bash(folder: Path, script: Path, *words: str) -> list[str]:
    """Returns bash's completions of the last word."""
    line = " ".join(f"'{word}'" for word in words)
    program = f"""source {script}; COMP_WORDS=({line}); COMP_CWORD=$(({len(words)} - 1)); _cairn; for offer in "${{COMPREPLY[@]}}"; do echo "$offer"; done"""
    return run(needs("bash"), "--norc", "-c", program, cwd=folder).split("\n")[:-1]


def zsh(folder: Path, script: Path, *words: str) -> list[str]:
    """Returns zsh's completions, which zsh itself would filter by prefix, without descriptions."""
    line = " ".join(f"'{word}'" for word in words)
    program = ZSH.format(script=script, words=line)
    offered = run(needs("zsh"), "-f", "-c", program, cwd=folder).splitlines()
    if offered[:1] == ["FILES"]:
        kept = [path.name for path in folder.iterdir() if path.is_dir() or "-/" not in offered]
        return sorted(name for name in kept if name.startswith(words[-1]))
    return [name for line in offered if (name := line.split(":")[0]).startswith(words[-1])]


def fish(folder: Path, script: Path, *words: str) -> list[str]:
    """Returns fish's completions of the last word."""
    line = " ".join(words)
    offered = run(needs("fish"), "--no-config", "-c", f"source {script}; complete -C '{line}'", cwd=folder)
    return [line.split("\t")[0].rstrip("/") for line in offered.splitlines()]


@pytest.fixture(params=[bash, zsh, fish], ids=lambda shell: shell.__name__)
def complete(request: pytest.FixtureRequest, tmp_path: Path):
    """Returns a function that completes a line, in a directory with a file and a subdirectory."""
    script = tmp_path / "script"
    script.write_text(run(BINARY, "completions", request.param.__name__))
    folder = tmp_path / "here"
    (folder / "tree").mkdir(parents=True)
    (folder / "trial file.json").write_text("{}")
    return lambda *words: request.param(folder, script, *words)


def test_commands_and_options_are_completed(complete):
    """Completions belong to the current command, whatever options and values precede it."""
    assert complete("cairn", "serv") == ["serve", "service-account"]
    assert sorted(complete("cairn", "bucket", "")) == ["cors", "create", "delete", "empty", "list", "object-lock", "protect", "restore", "show", "tags", "versioning"]
    assert complete("cairn", "service-account", "credential", "en") == ["enable"]
    assert complete("cairn", "bucket", "create", "photos", "--ob") == ["--object-lock"]
    assert sorted(complete("cairn", "completions", "")) == ["bash", "fish", "zsh"]
    assert sorted(complete("cairn", "serve", "--d")) == ["--data-dir", "--dev"]
    assert complete("cairn", "token", "create", "--expires-in", "list", "--ro") == ["--role"]
    assert complete("cairn", "bucket", "create", "list", "--obj") == ["--object-lock"], "a bucket named list must not be taken for the command"
    assert complete("cairn", "--vers") == ["--version"]


def test_paths_are_completed_only_where_paths_are_expected(complete):
    """Files are completed for file arguments, directories for directory arguments."""
    assert sorted(complete("cairn", "serve", "--config", "tr")) == ["tree", "trial file.json"]
    assert complete("cairn", "serve", "--data-dir", "tr") == ["tree"]
    assert sorted(complete("cairn", "policy", "create", "tr")) == ["tree", "trial file.json"]
    assert complete("cairn", "token", "create", "--role", "tr") == [], "a role must not be completed with file names"


def test_manual_page_passes_its_linters(tmp_path: Path):
    """groff and mandoc accept it. It has no date on purpose, because a build has none."""
    page = tmp_path / "cairn.1"
    page.write_text(run(BINARY, "man"))
    page.read_bytes().decode("ascii")
    linted = subprocess.run([needs("mandoc"), "-T", "lint", "-W", "style", page], capture_output=True, text=True, timeout=30)
    complaints = [line for line in linted.stdout.splitlines() if "missing date" not in line]
    assert not complaints, complaints
    shown = re.sub(".\x08", "", run(needs("mandoc"), "-T", "ascii", page))
    assert "SERVICE_ROOT_SECRET_KEY" in shown and "cairn storage compact" in shown
