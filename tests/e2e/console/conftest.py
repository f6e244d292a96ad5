"""Buckets, a member and a hostile OpenID provider of the console's tests."""

from collections.abc import Callable, Iterator

import pytest

from harness.console import Console
from harness.members import signed_in
from harness.openid import HostileProvider, settings
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


@pytest.fixture(scope="module")
def hostile() -> HostileProvider:
    """A provider that answers whatever a test wants."""
    return HostileProvider()


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn], hostile: HostileProvider) -> Cairn:
    """A server that trusts the hostile provider, unless a file has one of its own."""
    store = make_module_store()
    store.extra |= settings(hostile.issuer, store.console)
    return store.start()


@pytest.fixture
def provider(hostile: HostileProvider) -> Iterator[HostileProvider]:
    """The hostile provider, which answers well until the test changes that; unless a file has one of its own."""
    hostile.reset()
    yield hostile
    hostile.release()
