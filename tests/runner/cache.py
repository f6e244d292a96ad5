"""Tools that take long to make, kept outside the clone: one entry for each version of what it is made from.

An entry is a symbolic link to a folder with a name of its own. The folder is filled first and the link is renamed into place
last, so that an interrupted build is never used. Folders that no link points to are removed by a later build.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# An unfinished folder may belong to a build that is running now; after a day it does not.
ABANDONED_SECONDS = 24 * 3600
KEY_CHARACTERS = 16


def root() -> Path:
    """The folder of all entries."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cairn-tests"


def key_of(*parts: Path | str) -> str:
    """A digest of files' contents and of texts such as versions and flags."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:KEY_CHARACTERS]


def entry(name: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder of an entry; `build` fills it if the cache does not have it yet."""
    folder = root()
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / f"{name}-{key}"
    with locked(folder / f"{name}.lock"):
        if not link.exists():
            remove_abandoned(folder, name)
            made = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=folder))
            try:
                build(made)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise
            made.chmod(0o755)
            place_link(link, made)
    return link.resolve()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file, so that concurrent runs build an entry once."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def place_link(link: Path, target: Path) -> None:
    """Points a link to a target in one step; an older link or an ordinary folder in its place is removed."""
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f"{link.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.rename(link)


def remove_abandoned(folder: Path, name: str) -> None:
    """Removes folders of builds that were interrupted."""
    linked = {path.resolve() for path in folder.iterdir() if path.is_symlink()}
    for path in folder.glob(f"{name}.*"):
        old = path.is_dir() and not path.is_symlink() and time.time() - path.stat().st_mtime > ABANDONED_SECONDS
        if old and path.resolve() not in linked:
            shutil.rmtree(path, ignore_errors=True)
