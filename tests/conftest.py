"""Fixtures that every suite shares: one server for most tests, own stores for those that stop, kill or damage one.

With CI=true a skipped test fails, unless CAIRN_ALLOW_SKIPS=1 is set: a machine that cannot run a test says nothing about it.
Only a test that is marked `may_skip` may be skipped: it needs something of the kernel that cannot be installed.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.diagnosis import describe_running_servers
from harness.management import Management
from harness.s3 import S3
from harness.server import RUNS, Cairn, ServerError
from harness.sigv4 import Credential

FOREIGN_ENDPOINT = "S3_TEST_ENDPOINT"
SKIPS_FAIL = os.environ.get("CI") == "true" and os.environ.get("CAIRN_ALLOW_SKIPS") != "1"
_bucket_numbers = itertools.count(1)


def failed_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> pytest.TestReport | pytest.CollectReport:
    """The report of a test or a module, as a failure when it was skipped and must not be."""
    if report.skipped and SKIPS_FAIL:
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure with CI=true: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judges a test that was skipped by a mark, by a fixture, or in the middle, and explains a failure."""
    report = yield
    if item.get_closest_marker("may_skip") is None:
        report = failed_if_skipped(report)
    if report.failed and report.when == "call":
        report.sections.append(("running servers", describe_running_servers()))
    return report


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Lists failed tests in the file that CAIRN_FAILED_TESTS names; only the process that sees all reports does it."""
    listed = os.environ.get("CAIRN_FAILED_TESTS")
    if report.failed and listed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(listed).open("a") as file:
            print(f"tests/{report.nodeid.removeprefix('tests/')}", file=file)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judges a module that was skipped while it was imported."""
    return failed_if_skipped((yield))


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder on a real disk for this run; it is kept when a test fails, for the logs in it."""
    folder = RUNS / f"run-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    if request.session.testsfailed == 0:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"\nserver logs of this run: {folder}")


@pytest.fixture(scope="session")
def shared_store(run_folder: Path) -> Iterator[Cairn]:
    """The server that most tests talk to. Its output must be free of secrets when all is done."""
    store = Cairn(run_folder / "shared", {"SERVICE_LOG": "service=debug"}).start()
    yield store
    if store.running():
        code = store.stop()
        assert code == 0, f"the shared server ended with {code}:\n{store.output()[-4000:]}"
    assert store.leaked_secrets() == [], f"secrets in {store.log}"


@pytest.fixture
def store(shared_store: Cairn) -> Iterator[Cairn]:
    """The shared server, seen to be alive before and after each test; a death is charged to the test that saw it."""
    if not shared_store.running():
        shared_store.start()
    yield shared_store
    if not shared_store.running():
        raise ServerError(f"the server died during this test:\n{shared_store.output()[-4000:]}")


def foreign_client() -> S3 | None:
    """A client of another server, so that the harness can be tried against one: S3_TEST_ENDPOINT and its keys."""
    if FOREIGN_ENDPOINT not in os.environ:
        return None
    parts = urlsplit(os.environ[FOREIGN_ENDPOINT])
    keys = Credential(os.environ["S3_TEST_ACCESS_KEY"], os.environ["S3_TEST_SECRET_KEY"])
    return S3(parts.hostname, parts.port or 80, keys)


@pytest.fixture
def s3(request: pytest.FixtureRequest) -> S3:
    """A client of the data plane under the root credential."""
    return foreign_client() or request.getfixturevalue("store").s3


@pytest.fixture
def admin(store: Cairn) -> Management:
    """A client of the management plane under the system token, on the shared server."""
    return store.admin


@pytest.fixture
def bucket_client(s3: S3) -> S3:
    """The client that makes the buckets of tests. A file whose tests use another server names that server's."""
    return s3


def new_bucket(client: S3) -> str:
    """Makes an empty bucket of the test's own."""
    name = f"test-{os.getpid()}-{next(_bucket_numbers)}"
    client.create_bucket(name)
    return name


@pytest.fixture
def bucket(bucket_client: S3) -> str:
    """An empty bucket of the test's own."""
    return new_bucket(bucket_client)


@pytest.fixture
def versioned(bucket_client: S3, bucket: str) -> str:
    """An empty bucket of the test's own, with versioning."""
    body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert bucket_client.request("PUT", f"/{bucket}?versioning", body=body).status == 200
    return bucket


@pytest.fixture
def locked(bucket_client: S3, bucket: str) -> str:
    """An empty bucket of the test's own, with object lock."""
    name = f"{bucket}-lock"
    assert bucket_client.request("PUT", f"/{name}", [("x-amz-bucket-object-lock-enabled", "true")]).status == 200
    return name


@pytest.fixture
def make_store(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Cairn]]:
    """Makes stores of the test's own, not started; whatever still runs at the end is killed, data is removed."""
    made: list[Cairn] = []

    def make(**extra: str | None) -> Cairn:
        name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:80]
        made.append(Cairn(run_folder / f"{name}-{len(made)}", extra))
        return made[-1]

    yield make
    for own in made:
        own.kill()
        shutil.rmtree(own.data, ignore_errors=True)
    leaks = {str(own.log): own.leaked_secrets() for own in made}
    assert not any(leaks.values()), f"secrets in the output: {leaks}"


@pytest.fixture(scope="module")
def make_module_store(run_folder: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Cairn]]:
    """Makes stores that all tests of a module share, not started; they are stopped at its end."""
    made: list[Cairn] = []

    def make(**extra: str | None) -> Cairn:
        made.append(Cairn(run_folder / f"{Path(request.module.__file__).stem}-{len(made)}", extra))
        return made[-1]

    yield make
    for own in made:
        if own.running():
            assert own.stop() == 0, own.output()[-4000:]
        shutil.rmtree(own.data, ignore_errors=True)
    leaks = {str(own.log): own.leaked_secrets() for own in made}
    assert not any(leaks.values()), f"secrets in the output: {leaks}"


@pytest.fixture
def own_store(make_store: Callable[..., Cairn]) -> Cairn:
    """A running store of the test's own."""
    return make_store().start()


@pytest.fixture
def boto(s3: S3) -> BaseClient:
    """boto3 under the root credential, with its defaults."""
    return make_client(s3)
