"""The pages of shares in a real Chromium, which is the full one: it has the viewer of PDF.

What is tested: everything works with the keyboard and without JavaScript, nothing is loaded from elsewhere, nothing of an object is
ever run, and cookies and addresses stay where they belong.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.browser import CHROMIUM, Browser, chromium
from harness.server import Cairn
from harness.shares import Share, share_body
from harness.wait import until
from harness.web_pages import WebSite, web_pages
from harness.webm import vp8_frame, webm

PASSWORD = "correct horse ü"
ENTER, TAB = "\ue007", "\ue004"
# What would show that an object was run.
EVIL = "document.title = 'pwned'; try { parent.document.title = 'pwned' } catch {}; fetch('/s/pwned')"
# Waits until all that a page shows has loaded. Returns what it shows.
SHOWN = """async () => {
    const found = [];
    for (const image of document.querySelectorAll("img")) {
        if (!image.complete) await new Promise(done => image.onload = image.onerror = done);
        found.push(["img", image.naturalWidth]);
    }
    for (const player of document.querySelectorAll("video, audio")) {
        if (player.readyState < 1 && !player.error) await new Promise(done => player.onloadedmetadata = player.onerror = done);
        found.push([player.localName, player.duration]);
    }
    for (const frame of document.querySelectorAll("iframe")) found.push(["iframe", frame.title]);
    return found;
}"""
SEEK = """async (second) => {
    const player = document.querySelector("video");
    player.muted = true;
    if (player.readyState < 1) await new Promise(done => player.onloadedmetadata = done);
    const begun = performance.now();
    await new Promise(done => { player.onseeked = done; player.currentTime = second; });
    return {at: player.currentTime, milliseconds: performance.now() - begun, width: player.videoWidth};
}"""
# The smallest contrast of a text with what is behind it (WCAG 2.2, "contrast ratio").
CONTRAST = """async () => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => { const f = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
    const behind = element => { for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor); if (colour.length < 4 || colour[3] > 0) return colour; }
        return [255, 255, 255]; };
    let least = [21, ""];
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        if (!walker.currentNode.data.trim()) continue;
        const element = walker.currentNode.parentElement;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < least[0]) least = [ratio, element.outerHTML.slice(0, 100)];
    }
    return least;
}"""
# Faults that a person with a keyboard, a screen reader or a small screen would notice.
FAULTS = """async () => {
    const found = [], all = selector => [...document.querySelectorAll(selector)];
    if (!document.documentElement.lang) found.push("no language");
    if (!document.title) found.push("no title");
    if (all("h1").length !== 1 || all("main").length !== 1) found.push("not one main heading");
    if (document.documentElement.scrollWidth > innerWidth) found.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
    for (const input of all("input")) if (!input.labels.length) found.push("an input without label");
    for (const image of all("img")) if (!image.alt) found.push("an image without text");
    for (const frame of all("iframe")) if (!frame.title) found.push("a frame without title");
    for (const player of all("video, audio")) if (!player.ariaLabel || !player.controls) found.push("a player without name");
    for (const target of all("a, button, input")) {
        const box = target.getBoundingClientRect();
        if (box.height < 44) found.push(`${target.outerHTML} is ${box.height} high`);
    }
    return found;
}"""
_keys = itertools.count(1)


def png() -> bytes:
    """A picture of one pixel."""
    return bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
    )


def pdf() -> bytes:
    """A document with one page."""
    text = b"BT /F1 24 Tf 50 100 Td (Hello) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text), b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]  # fmt: skip
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%sendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for all tests of this file, with a viewer of PDF."""
    with chromium(run_folder / "share-browser", binary=CHROMIUM) as opened:
        yield opened


@pytest.fixture(autouse=True)
def forget(browser: Browser) -> None:
    """Each test begins with an empty page, a large screen, light colours and empty logs."""
    browser.open("about:blank")
    browser.devtools("Emulation.setDeviceMetricsOverride", width=1000, height=800, deviceScaleFactor=1, mobile=False)
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    browser.devtools("Network.enable")
    browser.devtools("Network.setExtraHTTPHeaders", headers={})
    browser.requested_urls()
    browser.log("browser")


@pytest.fixture
def make(store: Cairn, bucket: str) -> Callable[..., Share]:
    """Makes shares of new objects in a bucket of the test."""
    return lambda *args, **options: share_body(store, bucket, *args, **options)


@pytest.fixture(scope="module")
def video(browser: Browser) -> bytes:
    """A video of two minutes and 30 MB, so that seeking needs ranges."""
    with web_pages() as site:
        site.show(browser, "")
        return webm(vp8_frame(browser), seconds=120, padding_bytes=250_000)


def console_errors(browser: Browser) -> list[str]:
    """Returns what the browser complains about: blocked content, failed requests, scripts with errors."""
    return [entry["message"] for entry in browser.log("browser") if entry["level"] == "SEVERE"]


def answered_urls(browser: Browser) -> list[str]:
    """Waits until every request that pages have begun is answered or has failed. Returns their URLs, and forgets them."""
    begun, ended = {}, set()

    def is_answered() -> bool:
        for message in browser.network_messages():
            if message["method"] == "Network.requestWillBeSent":
                begun[message["params"]["requestId"]] = message["params"]["request"]["url"]
            elif message["method"] in ("Network.responseReceived", "Network.loadingFailed", "Network.loadingFinished"):
                ended.add(message["params"]["requestId"])
        return begun.keys() <= ended

    until(is_answered, lambda: [url for request, url in begun.items() if request not in ended])
    return [url for url in begun.values() if not url.startswith(("data:", "blob:"))]


def sent_headers(browser: Browser) -> list[dict]:
    """Returns the headers that were sent, and forgets them."""
    return [event["headers"] for event in browser.network_events("Network.requestWillBeSentExtraInfo")]


def wait_url(browser: Browser, url: str) -> None:
    """Waits until the browser shows an address."""
    until(lambda: browser.url() == url, browser.url)


def kinds(video: bytes) -> list[tuple[str, str, bytes, list]]:
    """Name, type and content of an object, and what the page shows of it."""
    return [
        ("picture.png", "image/png", png(), [["img", 1]]),
        ("clip.webm", "video/webm", video, [["video", 120]]),
        ("paper.pdf", "application/pdf", pdf(), [["iframe", "Preview: paper.pdf"]]),
        ("notes.txt", "text/plain", "Grüße <b>".encode(), [["iframe", "Preview: notes.txt"]]),
        ("page.html", "text/html", f"<script>{EVIL}</script>".encode(), []),
        ("data.zip", "application/zip", b"PK", []),
    ]


def wait_title(browser: Browser, title: str) -> None:
    """Waits until the browser shows a page with this title."""
    until(lambda: browser.read("title") == title, lambda: browser.read("source"))


def unlock(browser: Browser, share: Share) -> None:
    """Gives the password of a share, as a person does."""
    browser.open(share.url)
    browser.type_keys(f"{PASSWORD}{ENTER}")
    wait_title(browser, share.record["key"].rsplit("/", 1)[-1])


def test_pages_show_what_is_safe_and_load_nothing_else(make: Callable[..., Share], browser: Browser, video: bytes) -> None:
    for name, content_type, body, expected in kinds(video):
        share = make(body, content_type, key=f"Ordner/{name}")
        # A player goes on loading until its page is left.
        browser.open("about:blank")
        browser.requested_urls()
        browser.open(share.url)
        assert browser.run(SHOWN) == expected, name
        assert browser.run("async () => document.querySelector('h1').textContent") == name
        allowed = {share.url, f"{share.url}/content"}
        outside = [url for url in answered_urls(browser) if url not in allowed and not url.startswith("chrome-extension://")]
        assert outside == [] and console_errors(browser) == [], name
        assert browser.run(FAULTS) == [], name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(make: Callable[..., Share], browser: Browser, scheme: str) -> None:
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    locked = make(png(), "image/png", password=PASSWORD)
    open_share = make(png(), "image/png", expires_at="2040-01-01T00:00:00Z", maximum_downloads=3)
    revoked = make(png(), "image/png")
    revoked.revoke()
    grounds = set()
    for url in (locked.url, open_share.url, revoked.url):
        browser.open(url)
        ratio, element = browser.run(CONTRAST)
        assert ratio >= 4.5, element
        grounds.add(browser.run("async () => getComputedStyle(document.body).backgroundColor"))
    assert grounds == {"rgb(247, 247, 245)" if scheme == "light" else "rgb(20, 21, 22)"}
    browser.open(f"{locked.url}")
    browser.type_keys(f"wrong{ENTER}")
    wait_url(browser, f"{locked.url}/unlock")
    assert browser.run(CONTRAST)[0] >= 4.5


def test_page_fits_a_phone(make: Callable[..., Share], browser: Browser, video: bytes) -> None:
    browser.devtools("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=3, mobile=True)
    for name, content_type, body, _ in kinds(video):
        key = f"a-name-without-any-space-that-is-far-too-long-for-the-screen-of-a-phone-{'x' * 60}-{name}"
        browser.open(make(body, content_type, key=key, expires_at="2040-01-01T00:00:00Z").url)
        assert browser.run(FAULTS) == [], name
    browser.open(make(b"x", "text/plain", password=PASSWORD).url)
    assert browser.run(FAULTS) == []


@pytest.mark.parametrize("has_scripts", [True, False])
def test_unlock_with_the_keyboard_alone(make: Callable[..., Share], browser: Browser, has_scripts: bool) -> None:
    share = make(png(), "image/png", key="secret-name.png", password=PASSWORD)
    browser.devtools("Emulation.setScriptExecutionDisabled", value=not has_scripts)
    browser.open(share.url)
    assert "secret-name" not in str(browser.read("source"))
    browser.type_keys(f"wrong{ENTER}")
    wait_url(browser, f"{share.url}/unlock")
    source = str(browser.read("source"))
    assert "The password is wrong" in source and "secret-name" not in source
    browser.type_keys(f"{PASSWORD}{TAB}{ENTER}")
    wait_url(browser, share.url)
    assert "secret-name.png" in str(browser.read("source"))
    if has_scripts:
        assert browser.run(SHOWN) == [["img", 1]]
        # Scripts of the page do not see the cookie.
        assert browser.run("async () => document.cookie") == ""
    urls = browser.requested_urls()
    assert PASSWORD not in json.dumps(urls) and all("?" not in url and "#" not in url for url in urls)


def test_cookie_stays_with_its_share(make: Callable[..., Share], browser: Browser, store: Cairn) -> None:
    first, second = (make(png(), "image/png", password=PASSWORD) for _ in range(2))
    unlock(browser, first)
    cookies = [cookie for cookie in browser.devtools("Network.getAllCookies")["cookies"] if first.id in cookie["name"]]
    assert [(cookie["path"], cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(first.path, True, "Strict")]
    value = cookies[0]["value"]
    browser.log("performance")
    browser.open(second.url)
    # Ports of a host share cookies, so the data plane and the management plane could get it.
    for url in (f"{store.endpoint}/e/x", f"{store.management}/health", f"{store.management}{second.path}"):
        browser.open(url)
    sent = sent_headers(browser)
    assert len(sent) >= 4 and value not in json.dumps(sent)
    browser.open(f"{first.url}/content")
    assert value in json.dumps(sent_headers(browser))


def test_video_of_a_protected_share_seeks(make: Callable[..., Share], browser: Browser, video: bytes) -> None:
    share = make(video, "video/webm", password=PASSWORD)
    unlock(browser, share)
    found = browser.run(SEEK, 100)
    assert found["at"] >= 100 and found["width"] == 64, found
    assert media_statuses(browser) == {206}
    # In a document of its own, where no script gets events.
    browser.open(f"{share.url}/content")
    wait_player(browser, "player.readyState >= 1")
    browser.run("async () => { document.querySelector('video').currentTime = 100; }")
    wait_player(browser, "player.currentTime >= 100 && !player.seeking && player.videoWidth == 64")
    assert 206 in media_statuses(browser)
    # Seeking is one download. It is counted before its first byte is sent.
    assert share.refresh()["access_count"] == 1


def media_statuses(browser: Browser) -> set[int]:
    """Returns the statuses of the answers to a player."""
    return {event["response"]["status"] for event in browser.network_events("Network.responseReceived") if event["type"] == "Media"}


def wait_player(browser: Browser, condition: str) -> None:
    """Waits for a state of the player."""
    script = f"async () => {{ const player = document.querySelector('video'); return {condition}; }}"
    until(lambda: browser.run(script), lambda: f"{condition}: {console_errors(browser)}")


@pytest.mark.parametrize(
    "content_type, body",
    [
        ("text/html", f"<script>{EVIL}</script>"),
        ("image/svg+xml", f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{EVIL}\"><script>{EVIL}</script></svg>"),
        ("application/xhtml+xml", f"<html xmlns='http://www.w3.org/1999/xhtml'><script>{EVIL}</script></html>"),
        ("text/xml", f"<x:script xmlns:x='http://www.w3.org/1999/xhtml'>{EVIL}</x:script>"),
        ("text/plain", f"<html><script>{EVIL}</script>"),
        ("image/png", f"<html><script>{EVIL}</script>"),
        ("image/png;x, text/html", f"<html><script>{EVIL}</script>"),
        ("video/mp4", f"<html><script>{EVIL}</script>"),
        ("", f"<html><script>{EVIL}</script>"),
    ],
)
def test_nothing_of_an_object_is_run(make: Callable[..., Share], browser: Browser, content_type: str, body: str) -> None:
    share = make(body.encode(), content_type, key=f"x{next(_keys)}<script>{EVIL.replace('/', '')}</script>")
    for url in (share.url, f"{share.url}/content"):
        browser.open(url)
        requested = answered_urls(browser)
        assert browser.read("title") != "pwned"
        assert not any("pwned" in url for url in requested)
    # Also not in pages of the same origin, as the console will be one.
    browser.open(share.url.rsplit("/s/", 1)[0] + "/robots.txt")
    found = browser.run(
        """async url => {
            const ended = element => new Promise(done => { element.onload = () => done("load"); element.onerror = () => done("error"); });
            const script = Object.assign(document.createElement("script"), {src: url});
            const frame = Object.assign(document.createElement("iframe"), {src: url});
            const results = [ended(script)];
            document.body.append(script, frame);
            await new Promise(done => setTimeout(done, 500));
            return [await results[0], document.title];
        }""",
        f"{share.url}/content",
    )
    assert found == ["error", ""]


@pytest.mark.parametrize("body", [f"<script>{EVIL}</script>", f'<svg onload="{EVIL}"></svg>'])
def test_what_another_server_lets_run_is_noticed(browser: Browser, body: str) -> None:
    """The test before would accept everything if it looked too early."""
    with web_pages() as site:
        site.pages["/evil"] = f"<!doctype html><title>site</title>{body}"
        browser.open(f"{site.origin}/evil")
        requested = answered_urls(browser)
        assert browser.read("title") == "pwned" and any("pwned" in url for url in requested)


def test_type_that_becomes_html_is_not_run(make: Callable[..., Share], browser: Browser) -> None:
    share = make(png(), "image/png")
    browser.open(f"{share.url}/content")
    bucket, key = share.record["bucket"], share.record["key"]
    assert share.store.s3.put(bucket, key, f"<script>{EVIL}</script>".encode(), [("Content-Type", "text/html")]).status == 200
    for url in (f"{share.url}/content", share.url):
        browser.open(url)
        assert browser.read("title") != "pwned"
    assert browser.run(SHOWN) == []


def test_viewer_of_pdf_is_not_blocked(make: Callable[..., Share], browser: Browser) -> None:
    """A sandbox, or a policy without inline styles, would leave an empty page or an error of the browser."""
    share = make(pdf(), "application/pdf")
    for url in (share.url, f"{share.url}/content"):
        browser.open(url)
        requested = []

        def is_viewed(requested: list[str] = requested) -> bool:
            requested += browser.requested_urls()
            return any(url.startswith("chrome-extension://") and url.endswith("index.html") for url in requested)

        until(is_viewed, lambda: requested)
        assert [error for error in console_errors(browser) if "favicon" not in error] == []


def test_address_goes_to_no_other_site(make: Callable[..., Share], browser: Browser) -> None:
    share = make(b"see http://example.com", "text/plain")
    browser.open(share.url)
    assert browser.run("async () => [document.referrer, document.querySelector('a[target]').rel]") == ["", "noopener noreferrer"]
    with web_pages() as site:
        site.pages["/"] = "<!doctype html><title>other</title>"
        browser.run("async url => { location.href = url; }", f"{site.origin}/")
        wait_url(browser, f"{site.origin}/")
        assert browser.run("async () => document.referrer") == ""


def test_link_of_another_site_finds_the_share_unlocked(make: Callable[..., Share], browser: Browser) -> None:
    """Browsers leave a strict cookie out of such a request. People would have to give the password for every mail that they open."""
    share = make(png(), "image/png", key="again.png", password=PASSWORD)
    unlock(browser, share)
    with web_pages("localhost") as site:
        site.pages["/mail"] = f"<!doctype html><title>mail</title><a href='{share.url}'>link</a>"
        browser.open(f"{site.origin}/mail")
        browser.run("async () => { document.querySelector('a').click(); }")
        wait_title(browser, "again.png")
        # Without an unlock, the page stays as it is.
        locked = make(png(), "image/png", password=PASSWORD)
        site.pages["/other"] = f"<!doctype html><title>mail</title><a href='{locked.url}'>link</a>"
        browser.open(f"{site.origin}/other")
        browser.requested_urls()
        browser.run("async () => { document.querySelector('a').click(); }")
        requested = []

        def is_asked_again() -> bool:
            requested.extend(browser.requested_urls())
            return requested.count(locked.url) >= 2

        # The page asks for itself once, as a request of this site. What it gets then must not do so again.
        until(is_asked_again, lambda: requested)
        wait_title(browser, "Protected file")
        assert browser.run("async () => document.querySelectorAll('meta[http-equiv=refresh]').length") == 0
        requested += answered_urls(browser)
        assert requested.count(locked.url) == 2


def test_other_sites_cannot_use_a_share(make: Callable[..., Share], browser: Browser) -> None:
    picture, page = make(png(), "image/png"), make(b"text", "text/plain")
    with web_pages("localhost") as site:
        shown = site.show(browser, f"<img id=i src='{picture.url}/content'><script id=s src='{page.url}/content'></script>")
        assert shown == {"i": "error", "s": "error"}
        site.show(browser, f"<iframe src='{page.url}'></iframe><iframe src='{page.url}/content'></iframe>")
        errors = []

        def are_refused() -> bool:
            errors.extend(error for error in console_errors(browser) if "frame-ancestors" in error)
            return len(errors) >= 2

        until(are_refused, lambda: errors)
        assert len(errors) == 2, errors
        assert browser.run("async url => fetch(url).then(() => 'read', () => 'refused')", page.url) == "refused"


def test_page_of_a_german(make: Callable[..., Share], browser: Browser) -> None:
    browser.devtools("Network.setExtraHTTPHeaders", headers={"Accept-Language": "de-DE,de;q=0.9,en;q=0.1"})
    share = make(png(), "image/png", key="größe.png", expires_at="2040-03-05T08:04:00Z")
    browser.open(share.url)
    text = browser.run("async () => document.body.innerText")
    assert "Herunterladen" in text and "5. März 2040" in text and "größe.png" in text
    assert browser.run("async () => document.documentElement.lang") == "de"
    share.revoke()
    browser.open(share.url)
    assert browser.read("title") == "Link widerrufen"


def test_download_button_gives_the_file_its_name(make: Callable[..., Share], browser: Browser, tmp_path: Path) -> None:
    browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    share = make(b"content", "text/plain", key="Ordner/Grüße an alle.txt")
    browser.open(share.url)
    browser.run("async () => { document.querySelector('.button').click(); }")
    file = tmp_path / "Grüße an alle.txt"
    until(lambda: file.exists() and file.read_bytes() == b"content", lambda: list(tmp_path.iterdir()))
