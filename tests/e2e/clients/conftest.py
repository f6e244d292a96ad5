"""A real tree of files, a bucket, and the settings that every client needs on the strict surface."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.boto import random_bytes
from harness.folders import digests
from harness.server import Cairn, clean_environment

# The slice that ./test copies; CAIRN_TREE=full takes the whole toolchain, CAIRN_TREE=<folder> any other tree.
FILES_MAX = 400
BYTES_MAX = 120_000_000
LARGE_FILE_BYTES_MAX = 60_000_000
CLIENT_SECONDS = 1800


def toolchain() -> Path:
    """The folder of the Rust toolchain: documentation pages, sources, libraries of every size."""
    done = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def chosen_files(source: Path) -> list[Path]:
    """All files, or a bounded slice: the largest that fits, then a seeded sample of the rest."""
    files = sorted(path for path in source.rglob("*") if path.is_file() and not path.is_symlink())
    if "CAIRN_TREE" in os.environ:
        return files
    sizes = {path: path.stat().st_size for path in files}
    large = max((path for path in files if sizes[path] <= LARGE_FILE_BYTES_MAX), key=lambda path: sizes[path])
    chosen, total = [large], sizes[large]
    for path in random.Random(1).sample(files, len(files)):
        if len(chosen) < FILES_MAX and total + sizes[path] <= BYTES_MAX and path != large:
            chosen.append(path)
            total += sizes[path]
    return chosen


@dataclass
class Tree:
    """A folder of real files and what is in them."""

    folder: Path
    content: dict[str, tuple[int, str]] = field(repr=False)

    def assert_same(self, other: Path) -> None:
        """Nothing missing, nothing more, no byte different."""
        found = digests(other)
        missing, strange = set(self.content) - set(found), set(found) - set(self.content)
        different = [name for name in self.content if name in found and found[name] != self.content[name]]
        assert not missing and not strange and not different, (
            f"{len(missing)} missing {sorted(missing)[:3]}, {len(strange)} too many {sorted(strange)[:3]}, "
            f"{len(different)} different {different[:3]}"
        )

    def largest(self) -> str:
        """The name of the largest file."""
        return max(self.content, key=lambda name: self.content[name][0])


def link_or_copy(path: Path, target: Path) -> None:
    """A hard link where the file system allows it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


ODD_NAMES = ["with space.txt", "plus+and&more=.txt", "ünï/日本.txt", "percent%20.txt", "empty", "~tilde/(paren)!.txt"]


@pytest.fixture(scope="session")
def tree(run_folder: Path) -> Tree:
    """The tree to copy: real files, and a few with names that clients like to get wrong."""
    folder = run_folder / "tree"
    given = os.environ.get("CAIRN_TREE", "full")
    source = toolchain() if given == "full" else Path(given)
    for path in chosen_files(source):
        link_or_copy(path, folder / path.relative_to(source))
    for name in ODD_NAMES:
        odd = folder / "odd" / name
        odd.parent.mkdir(parents=True, exist_ok=True)
        odd.write_bytes(b"" if name == "empty" else name.encode() * 100)
    return Tree(folder, digests(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few files, one of several parts."""
    made = tmp_path / "from"
    (made / "sub dir").mkdir(parents=True)
    for name, size in (("large", 17_000_000), ("sub dir/ünï +%", 300_000), ("empty", 0)):
        (made / name).write_bytes(random_bytes(name, size))
    return made


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """A folder for the copy of a tree; removed afterwards, for it is large."""
    folder = tmp_path / "out"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def client_environment(store: Cairn, home: Path) -> dict[str, str]:
    """The environment of the command-line clients: keys, region, endpoint, and checksums only where required."""
    home.mkdir(parents=True, exist_ok=True)
    return clean_environment() | {
        "HOME": str(home),
        "AWS_ACCESS_KEY_ID": store.secrets.root_access_key,
        "AWS_SECRET_ACCESS_KEY": store.secrets.root_secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": store.endpoint,
        "S3_ENDPOINT_URL": store.endpoint,
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
        "AWS_EC2_METADATA_DISABLED": "true",
        # One attempt, here and in the clients' own options: a retry would hide what broke.
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_CONFIG_FILE": str(home / "aws-config"),
        "RCLONE_CONFIG": str(home / "rclone.conf"),
        "RCLONE_S3_PROVIDER": "Other",
        "RCLONE_S3_ENV_AUTH": "true",
        "RCLONE_S3_ENDPOINT": store.endpoint,
        "RCLONE_S3_REGION": "us-east-1",
        "RCLONE_S3_LIST_VERSION": "2",
        "RCLONE_S3_FORCE_PATH_STYLE": "true",
        # Above it a copy within the store is made of UploadPartCopy.
        "RCLONE_S3_COPY_CUTOFF": "5G",
    }


@dataclass
class Command:
    """Runs command-line clients under one environment."""

    environment: dict[str, str] = field(repr=False)

    @contextlib.contextmanager
    def running(self, *arguments: object) -> Iterator[subprocess.Popen]:
        """Run one beside the test, and end it with all its children at the end; some clients are wrappers."""
        process = subprocess.Popen(
            [str(argument) for argument in arguments], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def run(self, *arguments: object) -> subprocess.CompletedProcess:
        """Run one to its end, whatever that is."""
        return subprocess.run(
            [str(argument) for argument in arguments], env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=CLIENT_SECONDS,
        )

    def must(self, *arguments: object) -> str:
        """Run one that must succeed; its output."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture
def command(store: Cairn, tmp_path: Path) -> Command:
    """Command-line clients against the shared server."""
    made = Command(client_environment(store, tmp_path / "home"))
    Path(made.environment["AWS_CONFIG_FILE"]).write_text(
        "[default]\ns3 =\n    addressing_style = path\n    signature_version = s3v4\n"
    )
    return made


@pytest.fixture
def command_for(tmp_path: Path) -> Callable[[Cairn], Command]:
    """Command-line clients against a store of the test's own."""
    return lambda store: Command(client_environment(store, tmp_path / "home"))
