"""Keeps what cargo has built between runs of `.ci/run`, although each of them has a fresh clone.

Cargo compares the times of sources with the time at which it compiled them, and the times of a clone say nothing. So a source that
is the same as in the run before gets the time that it had then. Any other one gets the present time, which is later than
everything that was built. The sources and their times are written down before anything is compiled, so an interrupted run is no
different from one that ended.

    kept_build.py FOLDER    prepares the repository for builds in FOLDER; exit status 1: what is built there cannot be used
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
    """Returns a digest of the content of each source, and of the names in each folder, which build scripts may watch."""
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), cwd=repository, check=True, stdout=subprocess.PIPE
    )
    found, names = {}, {}
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        path = repository / name
        if path.is_symlink() or not path.is_file():
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        inner = Path(name)
        for folder in inner.parents:
            names.setdefault(str(folder), set()).add(inner.name)
            inner = folder
    return found | {folder: hashlib.sha256(repr(sorted(inside)).encode()).hexdigest() for folder, inside in names.items()}


def newest(folder: Path) -> int:
    """Returns the latest time of what cargo remembers of its builds, in nanoseconds; 0 without any."""
    return max((path.stat().st_mtime_ns for path in folder.glob("*/.fingerprint/*/*")), default=0)


def prepare(repository: Path, folder: Path) -> bool:
    """Sets the times of the sources. Returns whether what was built in `folder` can be used."""
    state, now = folder / STATE, time.time_ns()
    try:
        before = json.loads(state.read_text())
    except (OSError, ValueError):
        before = {}
    # Programs contain the path of their sources. After the clock was set back, a changed source could look older than its build.
    is_usable = before.get("repository") == str(repository) and newest(folder) < now
    known = before.get("sources", {}) if is_usable else {}
    sources = {}
    for name, digest in digests(repository).items():
        known_digest, known_time = known.get(name, ("", now))
        sources[name] = (digest, known_time if known_digest == digest else now)
        os.utime(repository / name, ns=(now, sources[name][1]))
    written = folder / f"{STATE}.new"
    written.write_text(json.dumps({"repository": str(repository), "sources": sources}))
    written.replace(state)
    return is_usable


if __name__ == "__main__":
    sys.exit(not prepare(Path.cwd(), Path(sys.argv[1])))
