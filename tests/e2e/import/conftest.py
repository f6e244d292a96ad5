"""Sources and targets of imports."""

from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.importer import Importer
from harness.minio import Minio
from harness.server import Cairn


@pytest.fixture(scope="module")
def target(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A store for all tests of a file. It is in the extended mode, so that S3 clients can read tags."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture
def here(target: Cairn) -> BaseClient:
    """boto3 for the target."""
    return make_client(target.s3)


@pytest.fixture
def importer(minio: Minio, target: Cairn, tmp_path: Path) -> Importer:
    """The command from MinIO, with a journal of the test's own."""
    return Importer(minio, target, tmp_path / "journal")
