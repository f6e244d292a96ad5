"""Browser forms."""

from collections.abc import Callable

import pytest

from harness.forms import Form
from harness.s3 import S3


@pytest.fixture
def form(extended: S3, extended_bucket: str) -> Callable[..., Form]:
    """Makes a form for the test's bucket."""
    def made(key: str = "k", content: bytes = b"content", **fields: str) -> Form:
        return Form(extended, extended_bucket, key, content, **fields)

    return made
