"""The servers of the recorded scenarios, and clients that check nothing by themselves, so that wrong values are sent."""

from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.s3 import S3
from harness.server import Cairn


@pytest.fixture(scope="module")
def recorded_strict(shared_store: Cairn) -> tuple[S3, BaseClient]:
    """Clients of the server that most tests talk to."""
    return shared_store.s3, make_client(shared_store.s3, parameter_validation=False)


@pytest.fixture(scope="module")
def recorded_extended(make_module_store: Callable[..., Cairn]) -> tuple[S3, BaseClient]:
    """Clients of a server in the extended mode. It encrypts what it stores, as AWS does."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_STORAGE_ENCRYPTION_ENABLED="true").start()
    return store.s3, make_client(store.s3, parameter_validation=False)
