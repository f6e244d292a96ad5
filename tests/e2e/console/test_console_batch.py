"""Several reads in one request (`GET /batch`): answers, rights, audit and limits are those of each route."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests

from harness.console import Console, create_token, signed_in
from harness.management import API, expect, expect_refusal
from harness.members import show_console
from harness.page import Page, console_browser
from harness.server import Cairn

READS_MAX = 16


def batch(console: Console, *paths: str, **options) -> requests.Response:
    """Asks for several paths at once."""
    return console.get("/batch?" + urlencode([("path", path) for path in paths]), **options)


def answers(console: Console, *paths: str) -> list[dict]:
    """Returns the answers to several paths."""
    return expect(batch(console, *paths), 200)["answers"]


def test_answers_are_those_of_the_routes(console_store: Cairn, bucket: str):
    """In the order of the paths, with their queries. A refusal is an answer like others."""
    console_store.s3.put(bucket, "a b", b"1")
    console = signed_in(console_store)
    paths = [f"{API}/buckets/{bucket}", f"{API}/buckets/{bucket}/object/a%20b", f"{API}/buckets/no-such-bucket", f"{API}/buckets?limit=x", "/nowhere"]
    found = answers(console, *paths)
    assert [one["status"] for one in found] == [200, 200, 404, 400, 404]
    for path, one in zip(paths, found, strict=True):
        alone = console.get(path)
        same = {"request_id": None}
        body = alone.json()
        if "error" in body:
            assert body["error"] | same == one["body"]["error"] | same
        else:
            assert body == one["body"]


def test_rights_are_those_of_each_route(console_store: Cairn):
    """A storage administrator sees no accounts, in a batch neither. The refusal is in the audit trail."""
    token = create_token(console_store, "storage_admin")
    console = signed_in(console_store, token["token"])
    response = batch(console, f"{API}/storage/status", f"{API}/service-accounts")
    status, accounts = expect(response, 200)["answers"]
    assert status["status"] == 200 and "capacity_bytes" in status["body"]
    assert (accounts["status"], accounts["body"]["error"]["code"]) == (403, "FORBIDDEN")
    refused = console_store.admin.get("/audit/events?operation=list_service_accounts&result=denied").json()["events"]
    assert [event for event in refused if event["request_id"] == response.headers["x-request-id"]]


def test_a_session_is_needed(console_store: Cairn):
    """And a page of the console."""
    path = f"{API}/storage/status"
    expect_refusal(batch(Console(console_store), path), 401, "UNAUTHENTICATED")
    console = signed_in(console_store)
    foreign = console.headers | {"Sec-Fetch-Site": "same-site"}
    assert batch(console, path, headers=foreign).status_code == 403
    ended = create_token(console_store, "auditor")
    auditor = signed_in(console_store, ended["token"])
    expect(console_store.admin.delete(f"/management-tokens/{ended['management_token']['id']}"), 204)
    expect_refusal(batch(auditor, path), 401, "UNAUTHENTICATED")


@pytest.mark.parametrize("path", ["", "storage", "/a b", "/a HTTP/1.1\r\nx: y", "//a\n", "http://other/a", "/ä"])
def test_only_paths_are_accepted(console_store: Cairn, path: str):
    """A path cannot bring header fields with it."""
    refusal = expect_refusal(batch(signed_in(console_store), f"{API}/storage/status", path), 400, "INVALID_REQUEST")
    assert "path must be the path and query of a GET" in refusal


def test_number_of_paths_is_bounded(console_store: Cairn):
    """Without a path there is nothing to answer."""
    console = signed_in(console_store)
    path = f"{API}/lifecycle/status"
    assert len(answers(console, *[path] * READS_MAX)) == READS_MAX
    for number in (0, READS_MAX + 1):
        expect_refusal(batch(console, *[path] * number), 400, "INVALID_REQUEST")
    expect_refusal(console.get("/batch?other=1"), 400, "INVALID_REQUEST")


def test_what_cannot_be_part_of_a_batch(console_store: Cairn, bucket: str):
    """A batch, a login, a download: each says so, and the others are answered."""
    console_store.s3.put(bucket, "k", b"content")
    console = signed_in(console_store)
    inner = "/batch?" + urlencode({"path": f"{API}/storage/status"})
    paths = [inner, "/session", f"{API}/buckets/{bucket}/object-content/k", f"{API}/storage/status"]
    *refused, answered = answers(console, *paths)
    assert [one["status"] for one in refused] == [400, 400, 400] and answered["status"] == 200
    assert "part of a batch" in refused[0]["body"]["error"]["message"]
    assert "by itself" in refused[2]["body"]["error"]["message"]


def test_a_large_answer_comes_by_itself(make_store: Callable[..., Cairn], run_folder: Path):
    """A batch has what a connection may hold. The page asks again for what did not fit."""
    store = make_store().start()
    names = [f"one-of-many-buckets-with-names-of-some-length-{number}" for number in range(600)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store.s3.create_bucket, names))
    console = signed_in(store)
    large, small = answers(console, f"{API}/buckets", f"{API}/storage/status")
    assert (large["status"], large["body"]["error"]["code"], small["status"]) == (400, "INVALID_REQUEST", 200)
    assert "ask for it by itself" in large["body"]["error"]["message"]
    with console_browser(run_folder / "large-batch-browser") as browser:
        page = Page(browser, store.console)
        show_console(page, console)
        page.load("#/overview")
        page.wait("async () => performance.getEntriesByType('resource').some((one) => one.name.endsWith('/api/v1/buckets'))")
        page.see("600")
        assert page.violations() == []


def test_other_methods_and_listeners_have_no_batches(console_store: Cairn):
    """It is a read, and for the console alone."""
    console = signed_in(console_store)
    expect_refusal(console.post("/batch"), 405, "METHOD_NOT_ALLOWED")
    response = requests.get(f"{console_store.management}/batch", headers={"authorization": f"Bearer {console_store.secrets.system_token}"}, timeout=20)
    assert response.status_code == 404
