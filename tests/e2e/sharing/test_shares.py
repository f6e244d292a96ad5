"""Shares as programs see them: descriptor, unlock and content; who is refused, and how.

`test_share_pages.py` tests what depends on a browser.
"""

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from harness.boto import random_bytes
from harness.certificates import Authority
from harness.damage import find_bytes, flip_bit, volumes
from harness.management import Management, expect, expect_refusal
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.moments import with_an_end, written
from harness.s3 import S3, md5_etag
from harness.server import Cairn
from harness.shares import PAGE, Share, after, share_body, share_object
from harness.wait import until

BODY = random_bytes("shared with a friend", 300_001)
PASSWORD = "correct horse ü"
ROUTES = ["", "/content", "/unlock"]
Make = Callable[..., Share]


@pytest.fixture
def make(store: Cairn, bucket: str) -> Make:
    """Makes shares of new objects in a bucket of the test."""
    return lambda body=BODY, *args, **options: share_body(store, bucket, body, *args, **options)


def assert_private(response: requests.Response) -> None:
    """No cache keeps it, no search engine lists it, no other site uses it, and its URL goes nowhere."""
    expected = {
        "cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
        "x-robots-tag": "noindex, nofollow, noarchive", "cross-origin-resource-policy": "same-origin",
    }  # fmt: skip
    assert {name: response.headers.get(name) for name in expected} == expected
    assert "access-control-allow-origin" not in response.headers


def test_descriptor_says_what_the_share_gives_access_to(make: Make) -> None:
    share = make(content_type="video/mp4", key="2026/party.mp4", expires_at=after(days=1))
    answer = share.get()
    found = expect(answer, 200)
    assert found.pop("last_modified").endswith("Z") and found.pop("expires_at") == share.record["expires_at"]
    assert found == {
        "name": "party.mp4", "size": len(BODY), "content_type": "video/mp4", "password_required": False, "unlocked": True,
        "content_url": f"{share.url}/content",
    }  # fmt: skip
    assert answer.headers["content-type"] == "application/json"
    assert {"Accept", "Accept-Language", "Cookie"} <= set(answer.headers["vary"].split(", "))
    assert_private(answer)
    assert requests.get(f"{share.url}?utm_source=mail", timeout=60).json()["name"] == "party.mp4"


def test_both_listeners_serve_shares(make: Make, store: Cairn) -> None:
    share = make()
    for base in (store.management, f"http://127.0.0.1:{store.console_port}"):
        assert requests.get(f"{base}{share.path}/content", timeout=60).content == BODY
        assert requests.get(f"{base}{share.path}", timeout=60).json()["size"] == len(BODY)


def test_locked_share_says_nothing_about_its_object(make: Make) -> None:
    share = make(content_type="video/mp4", key="salaries/of-everybody.mp4", password=PASSWORD)
    found = expect(share.get(), 200)
    assert found == {
        "name": None, "size": None, "content_type": None, "last_modified": None, "expires_at": None, "password_required": True,
        "unlocked": False, "content_url": None,
    }  # fmt: skip
    for answer in (share.get(), share.page(), share.content(), share.page("/content"), share.unlock("x")):
        assert_private(answer)
        seen = answer.text + str(answer.headers)
        assert "everybody" not in seen and "video/mp4" not in seen and str(len(BODY)) not in seen and "etag" not in seen.lower()


def test_password_unlocks_by_header_and_by_cookie(make: Make) -> None:
    share = make(password=PASSWORD)
    answer = share.unlock(PASSWORD)
    found = expect(answer, 200)
    assert set(found) == {"unlocked", "unlock_token", "expires_at"} and found["unlocked"] is True
    hours = (time.mktime(time.strptime(found["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())) / 3600
    assert 11.9 < hours < 12.1
    assert_private(answer)
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.split("=")[1] == found["unlock_token"] and share.id in name
    assert attributes == [f"Path={share.path}", "Max-Age=43200", "HttpOnly", "SameSite=Strict"]
    for headers in ({"x-service-unlock": found["unlock_token"]}, {"Cookie": f"other=1; {name}"}):
        assert share.content(headers=headers).content == BODY
        seen = expect(share.get(headers=headers), 200)
        assert seen["unlocked"] is True and seen["size"] == len(BODY)
    for refused in (share.content(), share.content(headers={"x-service-unlock": "x"}), share.content(headers={"Cookie": "share=1"})):
        expect_refusal(refused, 401, "SHARE_LOCKED")
    expect_refusal(share.get(f"/content?unlock_token={found['unlock_token']}&x-service-unlock={found['unlock_token']}"), 401, "SHARE_LOCKED")


def test_unlock_of_unknown_size_is_read(make: Make) -> None:
    """With the chunked transfer coding, up to the same limit."""
    share = make(password=PASSWORD)
    body = json.dumps({"password": PASSWORD}).encode()
    headers = {"Content-Type": "application/json"}
    assert expect(share.request("POST", "/unlock", data=iter([body[:5], body[5:]]), headers=headers), 200)["unlocked"]
    expect_refusal(share.request("POST", "/unlock", data=iter([body, b" " * 4096]), headers=headers), 413, "PAYLOAD_TOO_LARGE")


def test_unlock_is_for_one_share_and_one_password(make: Make) -> None:
    first, second = make(password=PASSWORD), make(password=PASSWORD)
    unlocked = first.unlocked(PASSWORD)
    assert unlocked.content().status_code == 200
    expect_refusal(second.content(headers=unlocked.headers), 401, "SHARE_LOCKED")
    first.change(password="another")
    expect_refusal(unlocked.content(), 401, "SHARE_LOCKED")
    expect_refusal(first.unlock(PASSWORD), 401, "SHARE_PASSWORD_INCORRECT")
    again = first.unlocked("another")
    assert again.content().content == BODY
    first.revoke()
    expect_refusal(again.content(), 410, "SHARE_GONE")
    second.change(password=None)
    assert second.content().content == BODY


def test_unlock_survives_a_restart(own_store: Cairn) -> None:
    own_store.s3.create_bucket("kept")
    share = share_body(own_store, "kept", BODY, password=PASSWORD)
    unlocked = share.unlocked(PASSWORD)
    own_store.restart()
    assert unlocked.content().content == BODY
    expect_refusal(share.content(), 401, "SHARE_LOCKED")


def test_form_unlocks_without_a_script(make: Make) -> None:
    share = make(password=PASSWORD, key="hidden-name.bin")
    wrong = share.request("POST", "/unlock", data={"password": "wrong"}, headers={"Accept": PAGE})
    assert wrong.status_code == 401 and wrong.headers["content-type"] == "text/html; charset=utf-8"
    assert 'role="alert"' in wrong.text and 'action="unlock"' in wrong.text and "hidden-name" not in wrong.text
    session = requests.Session()
    answer = session.post(f"{share.url}/unlock", data={"password": PASSWORD}, headers={"Accept": PAGE}, timeout=60, allow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == f"../{share.token}"
    assert_private(answer)
    page = session.get(share.url, headers={"Accept": PAGE}, timeout=60)
    assert page.status_code == 200 and "hidden-name.bin" in page.text
    assert session.get(f"{share.url}/content", timeout=60).content == BODY
    # The address of the form, loaded again.
    again = share.page("/unlock")
    assert again.status_code == 303 and again.headers["location"] == f"../{share.token}"


def test_unlock_token_is_in_no_url_page_or_log(make: Make, store: Cairn) -> None:
    share = make(password=PASSWORD)
    token = share.unlocked(PASSWORD).headers["x-service-unlock"]
    share.page(headers={"x-service-unlock": token})
    page = share.page(headers={"x-service-unlock": token}).text
    assert token not in page and token not in store.output()
    assert share.token not in store.output() and PASSWORD not in store.output()


@pytest.mark.parametrize(
    "body, headers, status, code",
    [
        (b"", {}, 400, "INVALID_REQUEST"),
        (b"{}", {}, 400, "INVALID_REQUEST"),
        (b"[]", {}, 400, "INVALID_REQUEST"),
        (b'["correct"]', {}, 400, "INVALID_REQUEST"),
        (b'{"password": 5}', {}, 400, "INVALID_REQUEST"),
        (b'{"password": null}', {}, 400, "INVALID_REQUEST"),
        (b'{"password": "a", "more": 1}', {}, 400, "INVALID_REQUEST"),
        (b'{"password": "a"} {}', {}, 400, "INVALID_REQUEST"),
        (b'{"password": "\xff"}', {}, 400, "INVALID_REQUEST"),
        (b"password=a&more=1", {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}, 400, None),
        (b'{"password": "' + b"a" * 4096 + b'"}', {}, 413, "PAYLOAD_TOO_LARGE"),
        (b'{"password": "a"}', {"Sec-Fetch-Site": "cross-site"}, 403, "FORBIDDEN"),
        (b'{"password": "a"}', {"Sec-Fetch-Site": "same-site"}, 403, "FORBIDDEN"),
        (b'{"password": "' + b"a" * 1025 + b'"}', {}, 401, "SHARE_PASSWORD_INCORRECT"),
    ],
)  # fmt: skip
def test_bad_unlocks_are_refused(make: Make, body: bytes, headers: dict, status: int, code: str | None) -> None:
    share = make(password=PASSWORD)
    answer = share.request("POST", "/unlock", data=body, headers={"Content-Type": "application/json"} | headers)
    if code:
        expect_refusal(answer, status, code)
    assert answer.status_code == status and "set-cookie" not in answer.headers
    # Invalid requests are no attempts.
    assert share.unlock(PASSWORD).status_code == 200


def test_unlock_of_a_share_without_password_is_refused(make: Make) -> None:
    assert "no password" in expect_refusal(make().unlock("x"), 400, "INVALID_REQUEST")


def test_guesses_are_limited_and_do_not_disturb_unlocked_visitors(make_store: Callable[..., Cairn]) -> None:
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    store.s3.create_bucket("guessed")
    share, other = (share_body(store, "guessed", BODY, password=PASSWORD) for _ in range(2))
    admin = store.admin
    unlocked = share.unlocked(PASSWORD)
    before = scrape(store)
    for _ in range(5):
        expect_refusal(share.unlock("wrong"), 401, "SHARE_PASSWORD_INCORRECT")
    for password in ("wrong", PASSWORD):
        refused = share.unlock(password)
        expect_refusal(refused, 429, "TOO_MANY_REQUESTS")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert_private(refused)
    page = share.request("POST", "/unlock", data={"password": "x"}, headers={"Accept": PAGE})
    assert page.status_code == 429 and "Too many attempts" in page.text and "retry-after" in page.headers
    assert unlocked.content().content == BODY
    assert other.unlock(PASSWORD).status_code == 200
    asked = {"operation": "unlock_share", "resource": share.id}
    failures = until(lambda: len(found := expect(admin.get("/audit/events", params=asked), 200)["events"]) >= 8 and found, "not audited")
    assert {event["result"] for event in failures} == {"denied"} and {event["principal"] for event in failures} == {"anonymous"}
    assert {event["detail"] for event in failures} == {"SHARE_PASSWORD_INCORRECT", "TOO_MANY_REQUESTS"}
    assert share.token not in json.dumps(failures) and failures[0]["source_ip"] == "127.0.0.1"
    now = scrape(store)
    for reason, count in (("password", 5), ("attempts", 3)):
        labels = {"kind": "share", "reason": reason}
        name = "service_share_access_denied_total"
        assert now.sum(name, **labels) - before.sum(name, **labels) == count


def test_content_has_ranges_conditions_and_head(make: Make) -> None:
    share = make(content_type="video/mp4")
    etag = md5_etag(BODY)
    whole = share.content()
    assert whole.status_code == 200 and whole.content == BODY
    assert whole.headers["etag"] == etag and whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-length"] == str(len(BODY))
    assert_private(whole)
    for sent, first, last in (
        ("bytes=0-", 0, len(BODY) - 1), ("bytes=0-1", 0, 1), ("bytes=100000-200000", 100_000, 200_000), ("bytes=-7", len(BODY) - 7, len(BODY) - 1),
    ):  # fmt: skip
        part = share.content(headers={"Range": sent})
        assert part.status_code == 206 and part.content == BODY[first : last + 1]
        assert part.headers["content-range"] == f"bytes {first}-{last}/{len(BODY)}" and part.headers["etag"] == etag
        assert_private(part)
    beyond = share.content(headers={"Range": f"bytes={len(BODY)}-"})
    expect_refusal(beyond, 416, "RANGE_NOT_SATISFIABLE")
    assert beyond.headers["content-range"] == f"bytes */{len(BODY)}"
    assert share.content(headers={"Range": "bytes=5-9", "If-Range": etag}).status_code == 206
    assert share.content(headers={"Range": "bytes=5-9", "If-Range": '"other"'}).status_code == 200
    unchanged = share.content(headers={"If-None-Match": etag})
    assert unchanged.status_code == 304 and unchanged.content == b""
    assert_private(unchanged)
    expect_refusal(share.content(headers={"If-Match": '"other"'}), 412, "PRECONDITION_FAILED")
    head = share.request("HEAD", "/content")
    assert head.status_code == 200 and head.content == b"" and dict(head.headers) | {"Date": 0, "x-request-id": 0} == dict(
        whole.headers
    ) | {"Date": 0, "x-request-id": 0}


def test_head_works_and_other_methods_do_not(make: Make) -> None:
    share = make()
    assert share.request("HEAD").status_code == 200
    assert share.request("HEAD", headers={"Accept": PAGE}).headers["content-type"].startswith("text/html")
    allowed = {"": "GET, HEAD", "/content": "GET, HEAD", "/unlock": "POST"}
    # An unlock needs a password.
    answers = {"": 200, "/content": 200, "/unlock": 400}
    for name, method in itertools.product(ROUTES, ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]):
        answer = share.request(method, name)
        if method in allowed[name].split(", "):
            assert answer.status_code == answers[name], (method, name)
        else:
            assert answer.status_code == 405 and answer.headers["allow"] == allowed[name], (method, name)


@pytest.mark.parametrize(
    "content_type, sent, disposition",
    [
        ("image/png", "image/png", "inline"),
        ("image/png; charset=x, text/html", "image/png", "inline"),
        ("video/mp4", "video/mp4", "inline"),
        ("audio/mpeg", "audio/mpeg", "inline"),
        ("application/pdf", "application/pdf", "inline"),
        ("text/plain", "text/plain; charset=utf-8", "inline"),
        ("text/plain; charset=utf-7", "text/plain; charset=utf-8", "inline"),
        ("text/html", "text/html", "attachment"),
        ("image/svg+xml", "image/svg+xml", "attachment"),
        ("application/xhtml+xml", "application/xhtml+xml", "attachment"),
        ("text/xml", "text/xml", "attachment"),
        ("text/javascript", "text/javascript", "attachment"),
        ("multipart/x-mixed-replace", "multipart/x-mixed-replace", "attachment"),
        ("", "binary/octet-stream", "attachment"),
    ],
)
def test_only_harmless_types_are_shown(make: Make, content_type: str, sent: str, disposition: str) -> None:
    share = make(b"<script>alert(1)</script>", content_type)
    answer = share.content()
    assert answer.headers["content-type"] == sent
    assert answer.headers["content-disposition"].split(";")[0] == disposition
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy and "allow-scripts" not in policy
    if sent == "application/pdf":
        assert "sandbox" not in policy and "script-src 'none'" in policy
    else:
        assert policy.startswith("sandbox") and "default-src 'none'" in policy
    assert_private(answer)
    attached = share_object(share.store, share.record["bucket"], share.record["key"], disposition="attachment")
    assert attached.content().headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize("used", ["script", "style", "object", "embed", "worker", "serviceworker"])
def test_content_cannot_be_part_of_a_program(make: Make, used: str) -> None:
    """The console has the same origin, so a script of a share would be a script of the console."""
    share = make(b"alert(1)", "text/javascript")
    expect_refusal(share.content(headers={"Sec-Fetch-Dest": used}), 403, "FORBIDDEN")


def test_prefetch_is_no_download(make: Make) -> None:
    share = make(maximum_downloads=1)
    expect_refusal(share.content(headers={"Sec-Purpose": "prefetch;prerender"}), 403, "FORBIDDEN")
    assert share.content().content == BODY


def test_type_that_changes_later_is_judged_at_each_request(make: Make, s3: S3) -> None:
    share = make(b"picture", "image/png")
    assert share.content().headers["content-disposition"].startswith("inline")
    assert s3.put(share.record["bucket"], share.record["key"], b"<script>", [("Content-Type", "text/html")]).status == 200
    assert share.content().headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "key, plain, extended",
    [
        ("a/report.txt", "report.txt", None),
        ("a/Grüße '(1)*.txt", "Gr__e '(1)*.txt", "Gr%C3%BC%C3%9Fe%20%27%281%29%2A.txt"),
        ("日本語.pdf", "___.pdf", "%E6%97%A5%E6%9C%AC%E8%AA%9E.pdf"),
        ('q"uote\\.txt', ".txt", None),
        ("a\r\nSet-Cookie: x=1", "a__Set-Cookie: x=1", None),
        ("\u202etxt.exe", "_txt.exe", None),
        ("folder/", "folder", None),
        ("x" * 300, "x" * 255, None),
    ],
)
def test_file_names_are_safe(make: Make, key: str, plain: str, extended: str | None) -> None:
    share = make(b"x", "text/plain", key=key)
    sent = share.content().headers["content-disposition"]
    assert sent == f"inline; filename=\"{plain}\"; filename*=UTF-8''{extended or quote(plain)}"
    assert "set-cookie" not in share.content().headers
    page = share.page()
    assert page.status_code == 200 and "\r" not in page.text


def test_stored_encoding_and_language_are_sent(make: Make) -> None:
    share = make(b"x", "text/plain", headers=[("Content-Encoding", "br"), ("Content-Language", "de"), ("Cache-Control", "public")])
    answer = requests.get(f"{share.url}/content", timeout=60, stream=True)
    assert answer.headers["content-encoding"] == "br" and answer.headers["content-language"] == "de"
    assert answer.headers["cache-control"] == "no-store"


def test_revocation_ends_everything_at_once(make: Make) -> None:
    share = make()
    etag = share.content().headers["etag"]
    assert share.content(headers={"If-None-Match": etag}).status_code == 304
    share.revoke()
    for answer in (share.get(), share.content(), share.content(headers={"If-None-Match": etag}), share.content(headers={"Range": "bytes=5-"})):
        assert "revoked" in expect_refusal(answer, 410, "SHARE_GONE")
        assert "etag" not in answer.headers
        assert_private(answer)
    expect_refusal(share.unlock("x"), 410, "SHARE_GONE")
    for name in ("", "/content"):
        page = share.page(name)
        assert page.status_code == 410 and "Link revoked" in page.text
    assert share.request("HEAD", "/content").status_code == 410
    assert share.store.admin.delete(f"/shares/{share.id}").status_code == 204
    expect_refusal(share.content(), 404, "SHARE_NOT_FOUND")


def test_expired_share_is_gone(make: Make) -> None:
    share = make(expires_at=after(hours=1))
    assert share.content().status_code == 200
    with_an_end(lambda end: share.change(expires_at=written(end)))
    until(lambda: share.content().status_code == 410, "it does not expire")
    assert "expired" in expect_refusal(share.content(), 410, "SHARE_GONE")
    assert "Link expired" in share.page().text
    share.change(expires_at=after(hours=1))
    assert share.content().content == BODY


def test_downloads_are_limited_but_can_be_finished(make: Make) -> None:
    share = make(content_type="video/mp4", maximum_downloads=1)
    etag = md5_etag(BODY)
    # What delivers no byte is no download.
    for answer in (share.get(), share.page(), share.request("HEAD", "/content")):
        assert answer.status_code == 200
    assert share.content(headers={"If-None-Match": etag}).status_code == 304
    expect_refusal(share.content(headers={"Range": "bytes=999999999-"}), 416, "RANGE_NOT_SATISFIABLE")
    page = share.page().text
    assert "Downloads left</dt><dd>1<" in page and "<video" not in page and "og:image" not in page
    assert share.refresh()["access_count"] == 0
    assert share.content(headers={"Range": "bytes=0-99"}).content == BODY[:100]
    assert share.refresh()["access_count"] == 1 and share.record["status"] == "exhausted"
    # Players ask for two bytes first, and for the beginning again when somebody seeks.
    for begin in (100, 0):
        assert share.content(headers={"Range": f"bytes={begin}-"}).content == BODY[begin:]
    for headers in ({}, {"If-None-Match": etag}, {"Range": "bytes=999999999-"}, {"Range": "bytes=5-", "If-Match": '"x"'}):
        expect_refusal(share.content(headers=headers), 410, "SHARE_GONE")
    expect_refusal(share.get(), 410, "SHARE_GONE")
    assert "Download limit reached" in share.page().text
    assert share.refresh()["access_count"] == 1


def test_player_that_seeks_is_one_download(make: Make) -> None:
    share = make(content_type="video/mp4")
    for first in (0, 200_000, 100_000, 250_000):
        assert share.content(headers={"Range": f"bytes={first}-"}).status_code == 206
    assert share.get().status_code == 200
    # A download is counted before its first byte is sent.
    assert share.refresh()["access_count"] == 1 and share.record["last_accessed_at"]


def test_missing_object_and_new_bucket_of_the_name(make: Make, s3: S3, admin: Management) -> None:
    share = make()
    bucket, key = share.record["bucket"], share.record["key"]
    assert s3.delete(bucket, key).status == 204
    expect_refusal(share.get(), 404, "OBJECT_NOT_FOUND")
    expect_refusal(share.content(), 404, "OBJECT_NOT_FOUND")
    assert share.page().status_code == 404 and "File not available" in share.page().text
    assert admin.delete(f"/buckets/{bucket}").status_code == 204
    expect_refusal(share.content(), 404, "OBJECT_NOT_FOUND")
    s3.create_bucket(bucket)
    assert s3.put(bucket, key, b"of somebody else").status == 200
    expect_refusal(share.content(), 404, "OBJECT_NOT_FOUND")


def test_pinned_version_stays(make: Make, s3: S3, bucket: str, admin: Management) -> None:
    assert admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}).status_code == 200
    version = s3.put(bucket, "contract.pdf", b"first", [("Content-Type", "application/pdf")]).get("x-amz-version-id")
    store = make().store
    pinned = share_object(store, bucket, "contract.pdf", version_id=version)
    current = share_object(store, bucket, "contract.pdf")
    assert s3.put(bucket, "contract.pdf", b"second").status == 200
    assert pinned.content().content == b"first" and current.content().content == b"second"
    page = pinned.page().text
    assert md5_etag(b"first").strip('"') in page and "always gives this version" in page
    assert "ETag" not in current.page().text
    assert s3.delete(bucket, "contract.pdf").status == 204
    assert pinned.content().content == b"first"
    expect_refusal(current.content(), 404, "OBJECT_NOT_FOUND")


def test_unknown_tokens_and_odd_paths_find_nothing(make: Make) -> None:
    share = make()
    token = share.token
    flipped = ("A" if token[0] != "A" else "B") + token[1:]
    for path in (
        f"/s/{flipped}", f"/s/{token}A", f"/s/{token[:-1]}", "/s/", "/s/x", f"/s/{token}/", f"/s/{token}/content/", f"/s/{token}/Content",
        f"/s/{token}/content/../content", f"/s/{token}/../{token}", f"/s/%2e%2e/{token}", f"/s/{token}%2Fcontent", f"/s//{token}",
        f"/s/{token}/content%00", f"/s/{token}/..%2f..%2fetc%2fpasswd", f"/s/{token};x/content", f"/s/%{ord(token[0]):02x}{token[1:]}",
    ):  # fmt: skip
        for method in ("GET", "HEAD"):
            answer = share.raw(method, path)
            assert answer.status == 404, path
            assert answer.get("location") is None
        assert json.loads(share.raw("GET", path).body)["error"]["code"] == "SHARE_NOT_FOUND", path
    for path in ("/e/x", "/health", "/metrics", f"/S/{token}", f"/x/../s/{token}"):
        assert share.raw("GET", path).status == 404, path
    robots = share.raw("GET", "/robots.txt")
    assert robots.status == 200 and b"Disallow: /\n" in robots.body and b"Disallow: /s" not in robots.body


def test_error_ids_and_messages_repeat_no_secret(make: Make) -> None:
    share = make(password=PASSWORD)
    answer = share.content(headers={"x-request-id": "my-id"})
    assert answer.json()["error"]["request_id"] == "my-id" == answer.headers["x-request-id"]
    assert share.token not in answer.text


def test_tokens_are_in_no_log_even_with_paths(make_store: Callable[..., Cairn]) -> None:
    store = make_store(
        SERVICE_OBSERVABILITY_LOG_PATHS="true", SERVICE_LOG="service=trace", SERVICE_AUDIT_DATA_EVENTS="all",
        SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN,
    ).start()  # fmt: skip
    store.s3.create_bucket("logged")
    share = share_body(store, "logged", BODY, "image/png", key="folder/a.png", password=PASSWORD)
    unlocked = share.unlocked(PASSWORD)
    token = unlocked.headers["x-service-unlock"]
    for base in (store.management, f"http://127.0.0.1:{store.console_port}"):
        for name in (*ROUTES, "/other"):
            requests.get(f"{base}{share.path}{name}", headers=unlocked.headers, timeout=60)
        requests.get(f"{base}/%73/{share.token}", timeout=60)
    share.unlock("wrong")
    log = until(lambda: all(f"route=/s/{{token}}{name}" in (log := store.output()) for name in (" ", "/content", "/unlock")) and log, store.output)
    assert share.token not in log and token not in log and PASSWORD not in log
    reads = expect(store.admin.get("/audit/events", params={"operation": "get_share_content"}), 200)["events"]
    assert reads and reads[0]["resource"] == "logged/folder/a.png" and share.id in reads[0]["detail"]
    trail = json.dumps(expect(store.admin.get("/audit/events", params={"limit": 1000}), 200))
    assert share.token not in trail and token not in trail
    assert share.token not in scrape(store).text


def test_damage_is_an_error_and_no_download(own_store: Cairn) -> None:
    own_store.s3.create_bucket("damaged")
    share = share_body(own_store, "damaged", BODY, maximum_downloads=3)
    own_store.stop()
    places = find_bytes(volumes(own_store.data), BODY[:64])
    assert places
    for path, at in places:
        flip_bit(path, at + 10, 0)
    own_store.start()
    expect_refusal(share.content(), 500, "INTERNAL_ERROR")
    assert share.page("/content").status_code == 500
    assert share.refresh()["access_count"] == 0
    events = expect(own_store.admin.get("/audit/events", params={"operation": "get_share_content", "result": "failed"}), 200)["events"]
    assert events and share.token not in json.dumps(events)


def test_cookie_is_secure_and_has_the_prefix_of_the_base_url(make_store: Callable[..., Cairn]) -> None:
    store = make_store(SERVICE_SHARING_SHARE_BASE_URL="https://share.example").start()
    store.s3.create_bucket("proxied")
    share = share_body(store, "proxied", BODY, password=PASSWORD)
    assert share.url.startswith("https://share.example/s/")
    share.url = f"http://127.0.0.1:{store.console_port}{share.path}"
    for host, is_secure in (("share.example", True), ("SHARE.example:443", True), ("127.0.0.1", False)):
        answer = share.request("POST", "/unlock", json={"password": PASSWORD}, headers={"Host": host})
        assert answer.headers["set-cookie"].endswith("Secure") is is_secure, host
    # What a client claims about a proxy counts for nothing.
    claims = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "Forwarded": "proto=https"}
    answer = share.request("POST", "/unlock", json={"password": PASSWORD}, headers=claims)
    assert not answer.headers["set-cookie"].endswith("Secure")
    assert "evil.example" not in share.get(headers=claims).text


def test_share_pages_are_in_two_languages(make: Make) -> None:
    share = make(b"x" * 1500, "image/png", key="<b>&\"'.png", expires_at="2030-03-05T08:04:00.000Z")
    english, german = share.page(language="en-GB,de;q=0.5"), share.page(language="de-AT,en;q=0.5")
    assert english.headers["content-language"] == "en" and german.headers["content-language"] == "de"
    assert "1.5 kB (1,500 bytes)" in english.text and "5 March 2030, 08:04 UTC" in english.text
    assert "1,5 kB (1.500 Bytes)" in german.text and "5. März 2030, 08:04 UTC" in german.text and "Herunterladen" in german.text
    assert "<b>" not in english.text and "&lt;b&gt;&amp;&quot;&#39;.png" in english.text
    assert f'<meta property="og:image" content="{share.url}/content">' in english.text
    policy = english.headers["content-security-policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert_private(english)
    locked = make(b"x", "image/png", password=PASSWORD).page(language="de")
    assert "Geschützte Datei" in locked.text and "og:image" not in locked.text and 'content="Geschützte Datei"' in locked.text


def test_cookie_is_secure_over_tls(make_store: Callable[..., Cairn], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("share").environment()
    store = make_store(**pair, SERVICE_TLS_S3_ENABLED="false", SERVICE_TLS_API_ENABLED="false").start()
    store.s3.create_bucket("secure")
    share = share_body(store, "secure", BODY, "video/mp4", password=PASSWORD)
    assert share.url.startswith(f"https://127.0.0.1:{store.console_port}/s/")
    session = requests.Session()
    trusted = {"verify": str(authority.certificate), "timeout": 60}
    answer = session.post(f"{share.url}/unlock", json={"password": PASSWORD}, **trusted)
    assert answer.headers["set-cookie"].endswith("; Secure")
    assert session.get(f"{share.url}/content", **trusted).content == BODY
    assert session.get(f"{share.url}/content", headers={"Range": "bytes=100000-"}, **trusted).content == BODY[100_000:]
