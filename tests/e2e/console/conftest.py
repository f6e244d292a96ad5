"""Buckets of the console's tests."""

import pytest

from harness.s3 import S3
from harness.server import Cairn


@pytest.fixture
def bucket_client(console_store: Cairn) -> S3:
    """Buckets are made on the server with the console."""
    return console_store.s3
