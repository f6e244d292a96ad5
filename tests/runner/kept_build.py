"""Keeps what cargo has built between runs of `.ci/run`.

Each run has a fresh clone. Cargo compares the times of sources with the time at which it compiled them, and the times of a clone say
nothing. So a source that is the same as in the run before gets the time that it had then. Any other one gets a time that is later
than everything that was built. Sources and times are written down before anything is compiled, so an interrupted run is no different
from one that ended.

    kept_build.py FOLDER    prepares the repository for builds in FOLDER; exit status 1: nothing that is there can be used
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

STATE = "sources.json"


def digests(repository: Path) -> dict[str, str]:
    """Returns a digest of each source and each folder.

    That of a folder is of the names in it, because build scripts may watch folders.
    """
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), cwd=repository, check=True, stdout=subprocess.PIPE
    )
    found, names = {}, {}
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        path, inner = repository / name, Path(name)
        if not os.path.lexists(path):
            continue
        for folder in inner.parents:
            names.setdefault(str(folder), set()).add(inner.name)
            inner = folder
        if path.is_file() and not path.is_symlink():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found | {folder: hashlib.sha256(repr(sorted(inside)).encode()).hexdigest() for folder, inside in names.items()}


def newest(folder: Path) -> int:
    """Returns the latest time of cargo's builds in nanoseconds; 0 without any."""
    return max((path.stat().st_mtime_ns for path in folder.glob("**/.fingerprint/*/*")), default=0)


def places(folder: Path, repository: Path) -> list[str]:
    """Returns the paths that programs contain."""
    return [str(repository), str(folder)]


def take_state(folder: Path, repository: Path) -> dict[str, tuple[str, int]]:
    """Returns and removes what the last run has written down; nothing if it was in another place.

    It is removed because it describes no build that follows until it is written again. Programs contain the paths of their sources
    and of the folder.
    """
    state = folder / STATE
    try:
        before = json.loads(state.read_text())
    except (OSError, ValueError):
        before = {}
    state.unlink(missing_ok=True)
    return before.get("sources", {}) if before.get("places") == places(folder, repository) else {}


def prepare(repository: Path, folder: Path) -> bool:
    """Sets the times of the sources. Returns whether what was built in `folder` can be used."""
    known = take_state(folder, repository)
    # Also after the clock was set back.
    now = max(time.time_ns(), newest(folder) + 1)
    found = digests(repository)
    time_of = {name: (repository / name).stat().st_mtime_ns for name in found}
    # In a tree that an earlier run has used, somebody may have changed a source while it was compiled, and changed it back.
    is_used = any(time_of[name] == known[name][1] for name in found if name in known)
    sources = {}
    for name, digest in found.items():
        known_digest, known_time = known.get(name, ("", now))
        is_same = digest == known_digest and (not is_used or time_of[name] == known_time)
        sources[name] = (digest, known_time if is_same else now)
        os.utime(repository / name, ns=(now, sources[name][1]))
    written = folder / f"{STATE}.new"
    written.write_text(json.dumps({"places": places(folder, repository), "sources": sources}))
    written.replace(folder / STATE)
    return bool(known)


if __name__ == "__main__":
    sys.exit(not prepare(Path.cwd(), Path(sys.argv[1])))
