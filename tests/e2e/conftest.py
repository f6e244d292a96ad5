"""The order of the end-to-end files: those that take long begin first, so that none of them runs alone at the end."""

from pathlib import Path

import pytest

SLOW_FILES = (
    "test_openapi", "test_accounts", "test_aws_cli", "test_compact", "test_dev", "test_boto3", "test_histories", "test_over_tls",
    "test_webhooks", "test_large_file", "test_integrity", "test_kill_and_resume", "test_verify", "test_tls",
)
RANKS = {name: rank for rank, name in enumerate(SLOW_FILES)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts files; the tests of a file keep their order."""
    items.sort(key=lambda item: RANKS.get(Path(item.path).stem, len(RANKS)))
