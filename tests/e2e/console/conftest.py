"""Buckets and a member of the console's tests."""

import pytest

from harness.console import Console
from harness.members import signed_in
from harness.s3 import S3
from harness.server import Cairn


@pytest.fixture
def bucket_client(console_store: Cairn) -> S3:
    """Buckets are made on the server with the console."""
    return console_store.s3


@pytest.fixture(scope="module")
def mia(served: Cairn) -> Console:
    """A member. The file's `served` is a server that knows her, and says what she may do."""
    return signed_in(served, "mia")
