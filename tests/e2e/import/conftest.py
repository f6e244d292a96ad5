"""Sources and targets of imports."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.importer import Importer
from harness.minio import Minio
from harness.server import Cairn


@pytest.fixture(scope="module")
def minio(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Minio]:
    """A MinIO for all tests of a file. Each uses buckets of its own."""
    server = Minio(run_folder / f"{request.path.stem}-minio").start()
    yield server
    server.kill()
    shutil.rmtree(server.folder / "data", ignore_errors=True)


@pytest.fixture(scope="module")
def target(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A store for all tests of a file. It is in the extended mode, so that S3 clients can read tags."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture
def importer(minio: Minio, target: Cairn, tmp_path: Path) -> Importer:
    """The command from MinIO, with a journal of the test's own."""
    return Importer(minio, target, tmp_path / "journal")
