"""The console in a real Chromium when something ends in the middle: the server, the page, the session. And long lists."""

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.browser import Browser
from harness.console import PART_BYTES, Console, create_token
from harness.held import hold_uploads, let_uploads_go
from harness.management import expect
from harness.page import Page, console_browser, start_with_console
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

FILE_BYTES = 104_000_001
# What has arrived of an upload when it is disturbed. The other parts that are being sent then take minutes.
ARRIVED_PARTS = 3
UPLOAD_BYTES_PER_SECOND = 50_000
# 20000 by hand; the default keeps the test short.
KEYS = int(os.environ.get("CAIRN_CONSOLE_KEYS", "3000"))
PAGE_KEYS = 500
CONNECTIONS = 16
_numbers = itertools.count()


@pytest.fixture(scope="module")
def store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """The server of this file."""
    return start_with_console(make_module_store())


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with console_browser(run_folder / "resilience-browser") as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, store: Cairn) -> Page:
    """The console, newly signed in with the system token."""
    page = Page(browser, Console(store).address)
    page.sign_in(store.secrets.system_token)
    return page


@pytest.fixture
def bucket_client(store: Cairn) -> S3:
    """Buckets are made on the server of the test."""
    return store.s3


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large file."""
    file = tmp_path_factory.mktemp("films") / "film.mp4"
    file.write_bytes(os.urandom(1 << 20) * (FILE_BYTES >> 20) + os.urandom(FILE_BYTES & 0xFFFFF))
    return file


def slow(page: Page, is_slow: bool = True) -> None:
    """Limits how quickly the browser sends."""
    page.cdp("Network.enable")
    page.cdp("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=UPLOAD_BYTES_PER_SECOND if is_slow else -1)


def parts(store: Cairn, bucket: str) -> int:
    """Returns the bytes of the unfinished uploads."""
    return expect(store.admin.get(f"/buckets/{bucket}/contents"), 200)["multipart_bytes"]


def upload_partly(page: Page, store: Cairn, bucket: str, film: Path) -> None:
    """Uploads a few parts of a file. Others are being sent when this returns, so slowly that they do not arrive."""
    page.go("bucket", bucket)
    hold_uploads(page, after=ARRIVED_PARTS)
    page.upload("Files to upload", film)
    until(lambda: parts(store, bucket) == ARRIVED_PARTS * PART_BYTES, "some parts")
    slow(page)
    let_uploads_go(page)


def assert_stored(store: Cairn, bucket: str, file: Path) -> None:
    """Asserts that the object is the file."""
    stored = store.s3.get(bucket, file.name)
    assert stored.status == 200 and stored.get("content-type") == "video/mp4"
    assert hashlib.sha256(stored.body).digest() == hashlib.sha256(file.read_bytes()).digest()
    assert parts(store, bucket) == 0


def test_upload_survives_a_kill_of_the_server(page: Page, store: Cairn, bucket: str, film: Path):
    """The server is killed and started again. The page asks for the login and goes on where it was."""
    upload_partly(page, store, bucket, film)
    store.kill()
    page.see("Waiting to try again…")
    page.go("activity")
    slow(page, is_slow=False)
    start_with_console(store)
    assert parts(store, bucket) >= ARRIVED_PARTS * PART_BYTES, "acknowledged parts were lost"
    page.see("Your session has ended.", seconds=120)
    page.fill("Token", store.secrets.system_token)
    page.click("Sign in")
    page.see("1 file uploaded", seconds=120)
    assert_stored(store, bucket, film)


def test_upload_is_continued_after_a_reload(page: Page, store: Cairn, bucket: str, film: Path):
    """The page offers it in the bucket. Another file is refused, and only what is missing is sent."""
    upload_partly(page, store, bucket, film)
    page.load(f"#/bucket/{bucket}")
    page.settled()
    slow(page, is_slow=False)
    page.see("1 upload was interrupted.")
    kept = parts(store, bucket)
    assert kept == ARRIVED_PARTS * PART_BYTES
    other = film.with_name("other.mp4")
    other.write_bytes(b"x")
    page.upload("Choose film.mp4 again", other)
    page.see("This is another file")
    page.requests()
    page.upload("Choose film.mp4 again", film)
    page.see("1 file uploaded", seconds=120)
    sent = [url for url in page.requests() if "/uploads/" in url and url.rsplit("/", 1)[-1].isdigit()]
    assert len(sent) <= (FILE_BYTES - kept) // PART_BYTES + 1, "parts were sent again"
    assert_stored(store, bucket, film)
    page.load(f"#/bucket/{bucket}")
    page.settled()
    assert "interrupted" not in page.text()


def test_cancelled_upload_leaves_nothing(page: Page, store: Cairn, bucket: str, film: Path):
    """Its parts are removed, and it is not offered again."""
    upload_partly(page, store, bucket, film)
    page.click("Cancel film.mp4")
    slow(page, is_slow=False)
    until(lambda: parts(store, bucket) == 0, "the parts are removed")
    page.load(f"#/bucket/{bucket}")
    page.settled()
    assert "interrupted" not in page.text() and store.s3.get(bucket, film.name).status == 404


def test_session_that_ends_is_renewed_in_place(page: Page, store: Cairn, bucket: str):
    """The change that found it ended is made after the login; nothing has to be typed again."""
    token = create_token(store, "system_admin")
    page.sign_in(token["token"])
    page.go("buckets")
    page.click("Create bucket")
    page.fill("Name", f"{bucket}-after")
    found = next(item for item in expect(store.admin.get("/management-tokens"), 200)["management_tokens"] if item["name"] == "a system_admin")
    expect(store.admin.delete(f"/management-tokens/{found['id']}"), 204)
    page.click("Create bucket")
    page.see("Your session has ended.")
    page.fill("Token", token["token"])
    page.click("Sign in")
    page.see("is wrong")
    page.press("Escape")
    page.see("Your session has ended.")
    page.fill("Token", store.secrets.system_token)
    page.click("Sign in")
    page.wait("async (hash) => location.hash === hash", f"#/bucket/{bucket}-after", what="the bucket's view")
    page.settled()
    assert store.admin.get(f"/buckets/{bucket}-after").status_code == 200
    page.see("system\nSystem administrator")


def test_late_answer_does_not_ask_for_another_login(page: Page, store: Cairn):
    """Regression: a request that began before the login, and was refused after it, opened the login again."""
    token = create_token(store, "system_admin")
    page.sign_in(token["token"])
    page.run("""async () => {
        const plain = window.fetch;
        window.asked = 0;
        window.fetch = async (...values) => {
            const answer = await plain(...values);
            if (String(values[0]).includes("/storage/backup") && ++window.asked === 1)
                await new Promise((resolve) => { window.letGo = resolve; });
            return answer;
        };
    }""")
    expect(store.admin.delete(f"/management-tokens/{token['management_token']['id']}"), 204)
    page.run("async () => { location.hash = '#/backups'; }")
    page.wait("async () => Boolean(window.letGo)", what="an answer that is held")
    page.run("async () => { location.hash = '#/tokens'; }")
    page.see("Your session has ended.")
    page.fill("Token", store.secrets.system_token)
    page.click("Sign in")
    page.see("system\nSystem administrator")
    page.run("async () => window.letGo()")
    page.wait("async () => window.asked > 1", what="the request is repeated")
    page.settled()
    assert "Your session has ended." not in page.text()


def test_unreachable_server_is_explained(page: Page, store: Cairn):
    """The rest of the page stays, and Try again works when the server is back. It may have been tried again by itself before."""
    page.go("buckets")
    page.wait("async () => performance.getEntriesByType('resource').filter(({name}) => name.includes('/views/')).length > 12", what="the other views are read ahead")
    store.kill()
    page.run("async () => { location.hash = '#/storage'; }")
    page.see("The server cannot be reached.")
    start_with_console(store)
    page.run("async () => { [...document.querySelectorAll('main .problem button')].find((one) => one.textContent === 'Try again')?.click(); }")
    page.see("Your session has ended.")
    page.fill("Token", store.secrets.system_token)
    page.click("Sign in")
    page.see("Compaction")


def test_long_list_is_read_while_scrolling(page: Page, store: Cairn, bucket: str):
    """Pages are added at the end, each is read once, the rows that are drawn stay few, and a selection stays."""
    def put(first: int) -> None:
        with store.s3.connect() as connection:
            for number in range(first, KEYS, CONNECTIONS):
                assert store.s3.request("PUT", object_target(bucket, f"list/{number:06}.txt"), None, b"x", connection=connection).status == 200

    with ThreadPoolExecutor(CONNECTIONS) as crowd:
        list(crowd.map(put, range(CONNECTIONS)))
    page.requests()
    page.go("bucket", bucket, prefix="list/")
    page.check("Select list/000003.txt")
    page.wait("""async (keys) => {
        scrollTo(0, document.documentElement.scrollHeight);
        await new Promise(requestAnimationFrame);
        window.mostDrawn = Math.max(window.mostDrawn ?? 0, document.querySelectorAll("tbody tr").length);
        return Number(document.querySelector("main table").getAttribute("aria-rowcount")) - 1 === keys;
    }""", KEYS, what="all rows", seconds=120)
    assert page.run("async () => window.mostDrawn") < 1500, "rows far from the screen are not kept"
    reads = sum("/objects?" in url for url in page.requests())
    assert reads <= KEYS // PAGE_KEYS + 1, "pages were read again"
    page.wait("""async (name) => {
        scrollTo(0, document.documentElement.scrollHeight);
        return [...document.querySelectorAll("tbody a")].some((link) => link.textContent === name);
    }""", f"{KEYS - 1:06}.txt", what="the last row")
    page.see("1 selected")
    page.run("async () => scrollTo(0, 0)")
    page.element("a", "000003.txt")
    page.wait("async () => document.querySelectorAll('tbody input:checked').length === 1", what="the selection of a row that is drawn again")
    page.check("Select all shown")
    page.see(f"{KEYS:,} selected")
    page.click("Clear")
    page.gone("selected")
