"""Summaries of directories for comparisons."""

import hashlib
from pathlib import Path


def digests(folder: Path) -> dict[str, tuple[int, str]]:
    """Returns size and SHA-256 of every file below a directory, by relative path."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                found[path.relative_to(folder).as_posix()] = (
                    path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
                )
    return found


def tree(folder: Path) -> list[tuple[str, int, int]]:
    """Returns every path with its size and modification time."""
    return sorted((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*"))
