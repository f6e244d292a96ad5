"""Sources and targets of exports."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.exporter import Exporter
from harness.minio import Minio
from harness.server import Cairn


@pytest.fixture(scope="module")
def source(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A store for all tests of a file. It is in the extended mode, so that S3 clients can set tags."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture(scope="module")
def other(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Another store, as a target."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture(scope="module")
def minio(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Minio]:
    """A MinIO for all tests of a file. Each uses buckets of its own."""
    server = Minio(run_folder / f"{request.path.stem}-minio").start()
    yield server
    server.kill()
    shutil.rmtree(server.folder / "data", ignore_errors=True)


@pytest.fixture
def here(source: Cairn) -> BaseClient:
    """boto3 for the source."""
    return make_client(source.s3)


@pytest.fixture
def bucket(here: BaseClient, request: pytest.FixtureRequest) -> str:
    """A bucket of the test's own, without versioning."""
    name = request.node.name.replace("_", "-").replace("[", "-").rstrip("]")[:60].rstrip("-").lower()
    here.create_bucket(Bucket=name)
    return name


@pytest.fixture
def exporter(source: Cairn, tmp_path: Path) -> Exporter:
    """The command, in a folder of the test's own."""
    return Exporter(source, tmp_path)
