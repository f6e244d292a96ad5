"""The order of the end-to-end files, and fixtures of several folders: clients, servers with TLS, the console, the extended mode, MinIO.

Files that take long begin first, so that none of them runs alone at the end.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.certificates import Authority
from harness.cli import Cli
from harness.console import Console
from harness.minio import Minio
from harness.page import Page, console_browser, start_with_console, watched
from harness.s3 import S3
from harness.server import Cairn

SLOW_FILES = (
    "test_import_resumes", "test_backup", "test_lifecycle", "test_aws_cli", "test_compact", "test_openapi", "test_accounts", "test_console_hostile_names",
    "test_console_browser", "test_console_forms", "test_extended", "test_over_tls", "test_dev", "test_console_accessibility", "test_client_matrix",
    "test_doctor_settings", "test_console", "test_backup_recipes", "test_unlock_flood", "test_hostile", "test_import_objects", "test_console_import",
    "test_share_pages", "test_boto3", "test_damaged_store", "test_console_speed", "test_recorded_extended", "test_recorded_strict",
    "test_console_resilience", "test_slow_copies", "test_console_activity", "test_console_past", "test_console_overview", "test_lifecycle_clients",
)
RANKS = {name: rank for rank, name in enumerate(SLOW_FILES)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts files; the tests of a file keep their order."""
    items.sort(key=lambda item: RANKS.get(Path(item.path).stem, len(RANKS)))


@pytest.fixture
def cli(store: Cairn) -> Cli:
    """The command line with the system token. A file whose tests use another server overrides `store`."""
    return Cli(store.management, store.secrets.system_token)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that the clients of a file trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure(make_module_store: Callable[..., Cairn], authority: Authority) -> Cairn:
    """A server with TLS on the data plane, for all tests of a file."""
    return make_module_store(**authority.issue("server").environment(), SERVICE_TLS_API_ENABLED="false").start()


@pytest.fixture(scope="module")
def console_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with the console, for all tests of a file."""
    return start_with_console(make_module_store(SERVICE_WEBHOOKS_ALLOW_HTTP="true", SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS="true"))


@pytest.fixture(scope="module")
def console_page(console_store: Cairn, run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The console in one browser for all tests of a file, signed in with the system token."""
    with console_browser(run_folder / request.path.stem) as browser:
        page = Page(browser, Console(console_store).address)
        page.sign_in(console_store.secrets.system_token)
        yield page


@pytest.fixture
def page(console_page: Page) -> Iterator[Page]:
    """The console. What the browser reports is looked at afterwards."""
    with watched(console_page) as page:
        yield page


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server in the extended mode of S3, for all tests of a file."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()


@pytest.fixture
def extended(extended_store: Cairn) -> S3:
    """A client of the extended data plane under the root credential."""
    return extended_store.s3


@pytest.fixture
def extended_bucket(extended: S3, request: pytest.FixtureRequest) -> str:
    """An empty bucket of the test's own in the extended store."""
    name = f"bucket-{hashlib.sha256(request.node.name.encode()).hexdigest()[:16]}"
    extended.create_bucket(name)
    return name


@pytest.fixture
def bucket_name(request: pytest.FixtureRequest) -> str:
    """The test's name, as the name of a bucket."""
    return request.node.name.replace("_", "-").replace("[", "-").rstrip("]")[:60].rstrip("-").lower()


@pytest.fixture(scope="module")
def minio(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Minio]:
    """A MinIO for all tests of a file. Each uses buckets of its own."""
    server = Minio(run_folder / f"{request.path.stem}-minio").start()
    yield server
    server.kill()
    shutil.rmtree(server.folder / "data", ignore_errors=True)
