"""Sources and targets of exports."""

from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.exporter import Exporter
from harness.server import Cairn


@pytest.fixture(scope="module")
def source(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A store for all tests of a file. It is in the extended mode, so that S3 clients can set tags."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture(scope="module")
def other(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Another store, as a target."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture
def here(source: Cairn) -> BaseClient:
    """boto3 for the source."""
    return make_client(source.s3)


@pytest.fixture
def bucket(here: BaseClient, bucket_name: str) -> str:
    """A bucket of the test's own, without versioning."""
    here.create_bucket(Bucket=bucket_name)
    return bucket_name


@pytest.fixture
def exporter(source: Cairn, tmp_path: Path) -> Exporter:
    """The command, in a folder of the test's own."""
    return Exporter(source, tmp_path)
