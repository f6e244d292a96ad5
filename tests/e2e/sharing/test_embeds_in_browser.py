"""Embeds in a real Chromium: which pages show them, with which attributes and policies, and that nothing of them is ever run."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.browser import Browser, chromium
from harness.management import expect, segment
from harness.png import png
from harness.server import Cairn
from harness.web_pages import WebSite, web_pages
from harness.webm import vp8_frame, webm

_keys = itertools.count(1)
# Fetches and returns what a script of the page can see.
FETCH = """async (url, options) => {
    try {
        const answer = await fetch(url, options);
        const text = await answer.text(), header = name => answer.headers.get(name);
        return {status: answer.status, length: text.length, etag: header("ETag"), range: header("Content-Range"),
                accepts: header("Accept-Ranges"), id: header("x-amz-request-id"), text: text.slice(0, 200)};
    } catch (error) { return {error: error.name}; }
}"""
# Plays a video and then goes to this second. Returns the times.
SEEK = """async (second) => {
    const video = document.getElementById("v");
    video.muted = true;
    await video.play();
    await new Promise(done => video.addEventListener("timeupdate", done, {once: true}));
    const begun = performance.now();
    await new Promise(done => { video.addEventListener("seeked", done, {once: true}); video.currentTime = second; });
    return {duration: video.duration, at: video.currentTime, milliseconds: performance.now() - begun, width: video.videoWidth};
}"""

PICTURE = png(8, 8 * [8 * bytes([200, 0, 0])])


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for all tests of this file."""
    with chromium(run_folder / "embeds-browser") as opened:
        yield opened


@pytest.fixture(scope="module")
def site() -> Iterator[WebSite]:
    """The site that may use the embeds. A name and an address are different sites to a browser."""
    with web_pages("localhost") as served:
        yield served


@pytest.fixture(scope="module")
def other() -> Iterator[WebSite]:
    """A site that may not."""
    with web_pages() as served:
        yield served


class Maker:
    """Makes embeds for one site."""

    def __init__(self, store: Cairn, bucket: str, site: WebSite):
        self.store, self.bucket, self.site = store, bucket, site

    def put(self, key: str, body: bytes, content_type: str) -> None:
        assert self.store.s3.put(self.bucket, key, body, [("Content-Type", content_type)]).status == 200

    def __call__(self, body: bytes = PICTURE, content_type: str = "image/png", disposition: str = "inline") -> dict:
        """Stores an object and makes an embed of it. Returns the response of its creation, with the key."""
        key = f"embedded-{next(_keys)}"
        self.put(key, body, content_type)
        wanted = {"label": "", "allowed_origins": [self.site.origin], "disposition": disposition}
        made = self.store.admin.post(f"/buckets/{self.bucket}/object-embeds/{segment(key)}", wanted)
        return expect(made, 201) | {"key": key}


@pytest.fixture
def make(store: Cairn, bucket: str, site: WebSite) -> Maker:
    """Makes embeds in a bucket of the test."""
    return Maker(store, bucket, site)


def img(url: str, attributes: str = "", name: str = "i") -> str:
    """An element for a picture. Its URL is its own, because a browser loads a URL once for several elements of a page."""
    return f'<img id={name} src="{url}?{name}" {attributes}>'


def test_pages_of_the_site_show_a_picture_and_others_do_not(make: Maker, browser: Browser, site: WebSite, other: WebSite) -> None:
    url = make()["url"]
    elements = img(url, 'referrerpolicy="strict-origin"') + img(url, "", "plain") + img(url, 'crossorigin="anonymous"', "cors")
    shown = {"i": "load", "plain": "load", "cors": "load"}
    assert site.show(browser, elements) == shown
    assert other.show(browser, elements) == {"i": "error", "plain": "error", "cors": "error"}
    assert site.show(browser, elements) == shown, "what others were told is not kept"


def test_page_without_referrer_needs_the_attribute_of_the_snippet(make: Maker, browser: Browser, site: WebSite) -> None:
    made = make()
    url, snippet = made["url"], made["snippet"].replace("<img", "<img id=snippet").replace(' loading="lazy"', "")
    assert 'referrerpolicy="strict-origin"' in snippet
    elements = img(url, "", "plain") + img(url, 'crossorigin="anonymous"', "cors") + snippet
    for policy in ("no-referrer", "same-origin"):
        found = site.show(browser, elements, Referrer_Policy=policy)
        assert found == {"plain": "error", "cors": "load", "snippet": "load"}, policy
    for policy in ("strict-origin-when-cross-origin", "origin", "unsafe-url"):
        assert set(site.show(browser, elements, Referrer_Policy=policy).values()) == {"load"}, policy


def test_pages_in_frames_count_as_the_pages_that_they_are(make: Maker, browser: Browser, site: WebSite, other: WebSite) -> None:
    url = make()["url"]
    inner = f'<!doctype html><body><img src="{url}" onload="parent.postMessage(\'load\', \'*\')" onerror="parent.postMessage(\'error\', \'*\')">'
    listen = "<script>window.told = new Promise(done => addEventListener('message', event => done(event.data)));</script>"
    site.pages["/inner"] = other.pages["/inner"] = inner
    for outer, framed, told in [(other, site, "load"), (site, other, "error"), (site, site, "load")]:
        outer.show(browser, f'{listen}<iframe src="{framed.origin}/inner"></iframe>')
        assert browser.run("async () => window.told") == told
    # A sandboxed frame has the origin null, which `crossorigin` sends. It has no referrer.
    for attributes in ("", 'referrerpolicy="strict-origin"', 'crossorigin="anonymous"'):
        site.pages["/sandboxed"] = inner.replace("<img ", f"<img {attributes} ")
        site.show(browser, f'{listen}<iframe sandbox="allow-scripts" src="{site.origin}/sandboxed"></iframe>')
        assert browser.run("async () => window.told") == "error", attributes


def test_local_file_cannot_show_it(make: Maker, browser: Browser, tmp_path: Path) -> None:
    url = make()["url"]
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><title>file</title>{img(url)}{img(url, "crossorigin=anonymous", "cors")}')
    browser.open(page.as_uri())
    sizes = browser.run("async () => { await new Promise(done => setTimeout(done, 1000)); return [...document.images].map(image => image.naturalWidth); }")
    assert sizes == [0, 0]


def test_scripts_of_the_site_read_it_with_ranges_and_others_do_not(make: Maker, browser: Browser, site: WebSite, other: WebSite) -> None:
    url = make()["url"]
    site.show(browser, "")
    found = browser.run(FETCH, url, {})
    assert (found["status"], found["accepts"], found["range"]) == (200, "bytes", None) and found["etag"]
    # These headers need a preflight; a single range does not.
    part = browser.run(FETCH, url, {"headers": {"Range": "bytes=0-9", "If-Range": found["etag"]}})
    assert (part["status"], part["length"], part["range"]) == (206, 10, f"bytes 0-9/{len(PICTURE)}")
    assert browser.run(FETCH, url, {"headers": {"If-None-Match": found["etag"]}, "cache": "no-store"})["status"] == 304
    assert browser.run(FETCH, url, {"method": "HEAD"})["status"] == 200
    assert browser.run(FETCH, url, {"credentials": "include"}) == {"error": "TypeError"}, "no credentials are ever accepted"
    assert browser.run(FETCH, url, {"method": "DELETE"}) == {"error": "TypeError"}
    other.show(browser, "")
    assert browser.run(FETCH, url, {}) == {"error": "TypeError"}
    assert browser.run(FETCH, url, {"headers": {"If-None-Match": found["etag"]}}) == {"error": "TypeError"}


def test_video_plays_and_seeks(make: Maker, browser: Browser, site: WebSite, other: WebSite) -> None:
    site.show(browser, "")
    video = webm(vp8_frame(browser), seconds=120, padding_bytes=250_000)
    made = make(video, "video/webm")
    element = made["snippet"].replace("<video", "<video id=v")
    assert 'crossorigin="anonymous"' in element
    assert site.show(browser, element, Referrer_Policy="no-referrer") == {"v": "canplay"}
    found = browser.run(SEEK, 100)
    assert found["duration"] == 120 and found["at"] >= 100 and found["width"] == 64, found
    assert other.show(browser, element) == {"v": "error"}


def test_content_is_never_run_by_a_page(make: Maker, browser: Browser, site: WebSite) -> None:
    script = make(b"window.pwned = 1; document.title = 'pwned'", "text/javascript", "attachment")["url"]
    style = make(b"body { color: rgb(1, 2, 3) }", "text/css", "attachment")["url"]
    html = make(b"<script>parent.document.title = document.title = 'pwned'</script>", "text/html", "attachment")["url"]
    # A script that claims to be a picture.
    mislabelled = make(b"window.pwned = 1; document.title = 'pwned'", "image/png")["url"]
    worker = f"new Worker(URL.createObjectURL(new Blob(['importScripts(\"{script}\")'])))"
    found = site.show(
        browser,
        f'<script id=s src="{script}"></script><script id=m src="{mislabelled}"></script><link id=l rel=stylesheet href="{style}">'
        f'<object id=o data="{html}"></object><embed src="{html}"><iframe src="{html}"></iframe>'
        f'<iframe src="{mislabelled}"></iframe><script>{worker}</script>',
    )
    assert {found[name] for name in "sml"} == {"error"}, found
    seen = browser.run("async () => [window.pwned ?? null, document.title, getComputedStyle(document.body).color]")
    assert seen == [None, "site", "rgb(0, 0, 0)"]


def test_opened_as_a_document_it_cannot_run_scripts(make: Maker, browser: Browser, site: WebSite, store: Cairn) -> None:
    page = b"<!doctype html><title>pwned</title><script>document.title = 'pwned'</script>"
    made = make()
    mislabelled = make(page, "image/png")["url"]
    for url in (made["url"], mislabelled):
        site.show(browser, f'<a href="{url}">open</a>')
        element = browser.call("element", using="css selector", value="a")
        browser.call(f"element/{next(iter(element.values()))}/click")
        title = browser.read("title")
        assert title != "pwned", url
        assert browser.run("async () => [document.contentType, self.origin]") == ["image/png", "null"]
    # The address typed or from elsewhere: no page is named, so nothing is shown.
    browser.open(made["url"])
    assert "neither Origin nor Referer" in browser.run("async () => document.body.innerText")
    assert browser.run("async () => [document.contentType, self.origin]") == ["text/plain", "null"], "its origin is its own"


def test_type_changed_to_a_page_is_not_shown(make: Maker, browser: Browser, site: WebSite) -> None:
    """The story: a picture is embedded, then the object is overwritten with a page that contains a script."""
    made = make()
    assert site.show(browser, img(made["url"])) == {"i": "load"}
    for content_type in ("text/html", "image/svg+xml"):
        make.put(made["key"], b"<svg xmlns='http://www.w3.org/2000/svg'><script>top.document.title = 'pwned'</script></svg>", content_type)
        found = site.show(browser, f'<iframe src="{made["url"]}"></iframe>')
        answer = browser.run(FETCH, made["url"], {"cache": "no-store"})
        assert (found, answer["status"]) == ({}, 415) and "not an image" in answer["text"]
        assert browser.run("async () => document.title") == "site"
    wanted = {"label": "", "allowed_origins": [site.origin], "disposition": "inline"}
    refused = make.store.admin.post(f"/buckets/{make.bucket}/object-embeds/{made['key']}", wanted)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "EMBED_CONTENT_TYPE_REFUSED")


def test_revocation_reaches_a_page_that_has_the_picture(make: Maker, browser: Browser, site: WebSite) -> None:
    made = make()
    assert site.show(browser, img(made["url"])) == {"i": "load"}
    expect(make.store.admin.post(f"/embeds/{made['embed']['id']}/revoke"), 200)
    # `no-cache` revalidates, as the browser does by itself after a minute.
    answer = browser.run(FETCH, made["url"], {"cache": "no-cache"})
    assert answer["status"] == 410 and "revoked" in answer["text"], answer
    assert site.show(browser, img(made["url"], "", "again")) == {"again": "error"}
    assert browser.run(FETCH, made["url"], {})["status"] == 410, "the refusal replaced what was kept"


def test_responses_set_no_cookie(make: Maker, browser: Browser, site: WebSite, make_store: Callable[..., Cairn]) -> None:
    site.show(browser, img(make()["url"]))
    answer = browser.read("cookie")
    assert answer == []
