"""Embeds as any client sees them: who gets the content, in which form, and what revocation, expiry and changes do.

`test_embeds_in_browser.py` tests what depends on a browser.
"""

import base64
import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from harness.boto import random_bytes
from harness.damage import find_bytes, flip_bit, volumes
from harness.management import Management, expect, segment
from harness.metrics import SCRAPE_TOKEN, once
from harness.moments import with_an_end, written
from harness.s3 import S3, md5_etag
from harness.server import LOOPBACK, Cairn
from harness.wait import until
from harness.wire import Connection, Response, encode_head

SITE = "https://www.site.example"
PAGE = f"{SITE}/a/page.html?x=1"
BODY = random_bytes("a picture", 70_001)
_keys = itertools.count(1)


@dataclass
class Embed:
    """An embed of a new object, and a client of its URL."""

    store: Cairn
    bucket: str
    key: str
    record: dict
    url: str
    sent: dict = field(default_factory=lambda: {"Origin": SITE})

    @property
    def path(self) -> str:
        return "/" + self.url.split("/", 3)[3]

    @property
    def token(self) -> str:
        return self.path.removeprefix("/e/")

    def request(self, method: str = "GET", path: str = "", **headers: str | None) -> Response:
        """Sends a request as a page of the allowed site does; a header of None is left out. Underscores are dashes."""
        fields = self.sent | {name.replace("_", "-"): value for name, value in headers.items()}
        return raw(self.store, method, path or self.path, [(n, v) for n, v in fields.items() if v is not None])


def raw(store: Cairn, method: str, path: str, headers: list[tuple[str, str]]) -> Response:
    """Sends a request without a signature."""
    with Connection(LOOPBACK, store.s3_port) as connection:
        connection.send(encode_head(method, path, [("Host", f"{LOOPBACK}:{store.s3_port}"), *headers]))
        return connection.read_response(method)


Make = Callable[..., Embed]


@pytest.fixture
def make(store: Cairn, bucket: str) -> Make:
    """Makes embeds of new objects in a bucket of the test."""
    return lambda *args, **options: make_embed(store, bucket, *args, **options)


def make_embed(
    store: Cairn, bucket: str, body: bytes = BODY, content_type: str = "image/png", key: str = "", origins: list[str] | None = None, **fields
) -> Embed:
    """Stores an object and makes an embed of it."""
    key = key or f"pictures/{next(_keys)}.png"
    assert store.s3.put(bucket, key, body, [("Content-Type", content_type)]).status == 200
    wanted = {"label": "", "allowed_origins": origins or [SITE], "disposition": "inline"} | fields
    made = expect(store.admin.post(f"/buckets/{bucket}/object-embeds/{segment(key)}", wanted), 201)
    return Embed(store, bucket, key, made["embed"], made["url"])


def assert_refused(response: Response, status: int, words: str) -> None:
    """A refusal is one line of text that no cache keeps and no browser takes for anything else."""
    assert response.status == status, response
    text = response.body.decode()
    assert text.endswith(".\n") and text.count("\n") == 1, text
    assert words in text, text
    assert response.get("content-type") == "text/plain; charset=utf-8"
    assert response.get("cache-control") == "no-store"
    assert response.get("x-content-type-options") == "nosniff"
    assert response.get("x-robots-tag").startswith("noindex")
    assert response.get("x-amz-request-id") and response.get("etag") is None and response.get("set-cookie") is None


def test_page_of_an_allowed_origin_gets_the_content_with_its_headers(make: Make) -> None:
    embed = make(key="pictures/Grüße 1.png")
    found = embed.request()
    assert (found.status, found.body) == (200, BODY)
    expected = {
        "content-type": "image/png", "etag": md5_etag(BODY), "content-length": str(len(BODY)), "accept-ranges": "bytes",
        "cache-control": "private, max-age=60, must-revalidate", "vary": "Origin, Referer",
        "access-control-allow-origin": SITE, "access-control-allow-credentials": None,
        "cross-origin-resource-policy": "cross-origin", "x-content-type-options": "nosniff",
        "x-robots-tag": "noindex, nofollow, noarchive", "set-cookie": None,
        "content-disposition": "inline; filename=\"Gr__e 1.png\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%201.png",
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected
    assert {"Content-Range", "Content-Length", "ETag", "Accept-Ranges"} <= set(
        found.get("access-control-expose-headers").split(", ")
    )
    assert found.get("content-security-policy").split("; ")[:2] == ["sandbox", "default-src 'none'"]
    assert found.get("x-amz-request-id") and found.get("last-modified")

    by_referrer = embed.request(Origin=None, Referer=PAGE)
    assert (by_referrer.status, by_referrer.body) == (200, BODY)
    assert by_referrer.get("access-control-allow-origin") is None, "only for requests with Origin"
    assert by_referrer.get("vary") == "Origin, Referer"


def test_head_has_the_headers_of_get_and_no_body(make: Make) -> None:
    embed = make()
    get, head = embed.request(), embed.request("HEAD")
    volatile = {"date", "x-amz-request-id"}
    strip = lambda response: [(name, value) for name, value in response.headers if name.lower() not in volatile]  # noqa: E731
    assert (head.status, head.body, strip(head)) == (200, b"", strip(get))
    refused = embed.request("HEAD", Origin="https://other.example")
    assert (refused.status, refused.body) == (403, b"")


def test_ranges_and_conditions_are_those_of_get(make: Make) -> None:
    embed, etag = make(), md5_etag(BODY)
    whole = embed.request()
    for wanted, status, body, content_range in [
        ("bytes=0-", 206, BODY, f"bytes 0-{len(BODY) - 1}/{len(BODY)}"),
        ("bytes=0-1", 206, BODY[:2], f"bytes 0-1/{len(BODY)}"),
        ("bytes=100-199", 206, BODY[100:200], f"bytes 100-199/{len(BODY)}"),
        ("bytes=-7", 206, BODY[-7:], f"bytes {len(BODY) - 7}-{len(BODY) - 1}/{len(BODY)}"),
        ("bytes=65000-99999999", 206, BODY[65000:], f"bytes 65000-{len(BODY) - 1}/{len(BODY)}"),
        ("bytes=0-1,5-6", 200, BODY, None),
        ("lines=1-2", 200, BODY, None),
    ]:
        found = embed.request(Range=wanted)
        assert (found.status, found.body, found.get("content-range")) == (status, body, content_range), wanted
    outside = embed.request(Range=f"bytes={len(BODY)}-")
    assert_refused(outside, 416, "range")
    assert outside.get("content-range") == f"bytes */{len(BODY)}"
    assert outside.get("access-control-allow-origin") == SITE

    for fields, status in [
        ({"If-None-Match": etag}, 304),
        ({"If-None-Match": f'"x", W/{etag}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"x"'}, 200),
        ({"If-Modified-Since": whole.get("last-modified")}, 304),
        ({"If-Match": '"x"'}, 412),
        ({"Range": "bytes=0-0", "If-Range": etag}, 206),
        ({"Range": "bytes=0-0", "If-Range": '"x"'}, 200),
    ]:
        found = embed.request(**fields)
        assert found.status == status, fields
        if status == 304:
            assert found.body == b"" and found.get("etag") == etag and found.get("vary") == "Origin, Referer"
            assert found.get("cache-control") == whole.get("cache-control")
            assert found.get("access-control-allow-origin") == SITE


def test_empty_object_and_large_object(make: Make) -> None:
    empty = make(b"").request()
    assert (empty.status, empty.body, empty.get("content-length")) == (200, b"", "0")
    small = random_bytes("small", 4096)
    assert make(small).request().body == small
    large = random_bytes("large", 20_000_003)
    embed = make(large, "video/mp4")
    assert hashlib.sha256(embed.request().body).digest() == hashlib.sha256(large).digest()
    assert embed.request(Range="bytes=19999999-").body == large[19_999_999:]


OTHERS = [
    "https://other.example", "http://www.site.example", f"{SITE}:8443", "https://site.example", f"{SITE}.evil.example",
    "https://evil-www.site.example", f"{SITE}@evil.example", f"{SITE}\\@evil.example", "null", "", "https://",
    f"{SITE} https://other.example", f"https://other.example, {SITE}",
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_other_pages_are_refused_in_words(make: Make, other: str) -> None:
    embed = make()
    for fields in [{"Origin": other, "Referer": None}, {"Origin": other, "Referer": PAGE}, {"Origin": None, "Referer": other}]:
        refused = embed.request(**fields)
        assert refused.status == 403, (fields, refused)
        assert refused.get("access-control-allow-origin") is None
        assert refused.get("content-type") == "text/plain; charset=utf-8" and refused.get("cache-control") == "no-store"


def test_refusals_say_what_to_do(make: Make) -> None:
    embed = make()
    assert_refused(embed.request(Origin=None), 403, 'referrerpolicy="strict-origin"')
    assert_refused(embed.request(Origin="null"), 403, "Origin: null")
    assert_refused(embed.request(Origin="https://other.example"), 403, "https://other.example may not use this embed")
    assert_refused(embed.request(Origin=None, Referer="https://other.example/x"), 403, "allowed_origins")
    assert_refused(embed.request(Origin=None, Referer="http://www.site.example/x"), 403, "http://www.site.example may not")
    two = [("Origin", SITE), ("Origin", "https://other.example")]
    assert_refused(raw(embed.store, "GET", embed.path, two), 403, "more than one header Origin")
    two = [("Referer", PAGE), ("Referer", "https://other.example/")]
    assert_refused(raw(embed.store, "GET", embed.path, two), 403, "more than one header Referer")
    hostile = embed.request(Origin="https://<script>alert(1)</script>")
    assert b"<script>" not in hostile.body and hostile.status == 403


def test_origins_are_compared_in_the_form_that_browsers_send(make: Make) -> None:
    origins = ["HTTPS://WWW.Bücher.Example:443", "http://[2001:DB8::0:1]:8080", "http://127.0.0.1:3000"]
    embed = make(origins=origins)
    canonical = ["https://www.xn--bcher-kva.example", "http://[2001:db8::1]:8080", "http://127.0.0.1:3000"]
    assert embed.record["allowed_origins"] == canonical
    for origin in canonical:
        assert embed.request(Origin=origin).get("access-control-allow-origin") == origin
        assert embed.request(Origin=None, Referer=f"{origin}/page").status == 200
    assert embed.request(Origin="https://www.xn--bcher-kva.example:444").status == 403


@pytest.mark.parametrize("destination", ["script", "style", "object", "embed", "worker", "serviceworker", "audioworklet"])
def test_content_is_never_given_to_be_run(make: Make, destination: str) -> None:
    embed = make(disposition="attachment", content_type="text/javascript")
    assert_refused(embed.request(Sec_Fetch_Dest=destination), 403, destination)
    for fine in ("image", "video", "audio", "empty", "document", "iframe"):
        assert embed.request(Sec_Fetch_Dest=fine).status == 200, fine


def test_preflights_are_answered_for_allowed_origins_only(make: Make) -> None:
    embed = make()
    asked = {"Access_Control_Request_Method": "GET", "Access_Control_Request_Headers": "range,if-none-match"}
    allowed = embed.request("OPTIONS", **asked)
    assert (allowed.status, allowed.body) == (204, b"")
    assert allowed.get("access-control-allow-origin") == SITE
    assert allowed.get("access-control-allow-methods") == "GET, HEAD"
    headers = set(allowed.get("access-control-allow-headers").split(", "))
    assert headers == {"range", "if-none-match", "if-range", "if-modified-since"}
    assert 0 < int(allowed.get("access-control-max-age")) <= 3600
    assert allowed.get("vary") == "Origin, Referer" and allowed.get("access-control-allow-credentials") is None
    refused = embed.request("OPTIONS", Origin="https://other.example", **asked)
    assert_refused(refused, 403, "may not use this embed")
    assert refused.get("access-control-allow-origin") is None and refused.get("access-control-allow-methods") is None
    expect(embed.store.admin.post(f"/embeds/{embed.record['id']}/revoke"), 200)
    assert embed.request("OPTIONS", **asked).status == 410


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "TRACE", "PROPFIND"])
def test_other_methods_are_not_allowed(make: Make, method: str) -> None:
    embed = make()
    refused = embed.request(method, Content_Length="0")
    assert_refused(refused, 405, "GET or HEAD")
    assert refused.get("allow") == "GET, HEAD, OPTIONS"
    assert embed.request().body == BODY


def test_unknown_tokens_are_404_and_say_nothing(make: Make, bucket: str) -> None:
    embed = make()
    token = embed.token
    other = ("A" if token[0] != "A" else "B") + token[1:]
    for path in ["/e/", "/e/x", f"/e/{other}", f"/e/{token}/", f"/e/{token}/content", f"/e/{token}A", f"/e/{token[:-1]}",
                 f"/e/{token}%00", f"/e/../{bucket}/{embed.key}", f"/e//{token}", f"//e/{token}", f"/e/%2e%2e/{bucket}/{embed.key}"]:  # fmt: skip
        for fields in ({}, {"Origin": "https://other.example"}, {"Origin": None}):
            assert_refused(embed.request(path=path, **fields), 404, "no embed")
    share = expect(embed.store.admin.post(f"/buckets/{bucket}/object-shares/{segment(embed.key)}", {}), 201)
    assert_refused(embed.request(path="/e/" + share["url"].rsplit("/", 1)[1]), 404, "no embed")
    assert embed.request(path=f"/e/{token}?v=2").status == 200, "a query changes nothing"
    assert embed.request(path=f"/%65/{token}").status == 200, "the same path in another spelling"
    # A bucket named e cannot exist, and nothing below it is an object.
    assert embed.store.s3.request("PUT", f"/e/{token}", body=b"x").status == 405
    assert embed.store.s3.request("GET", "/e?list-type=2").status == 400


def test_revocation_is_in_force_at_once_also_for_those_who_have_the_content(make: Make) -> None:
    embed, etag = make(), md5_etag(BODY)
    assert embed.request(If_None_Match=etag).status == 304
    expect(embed.store.admin.post(f"/embeds/{embed.record['id']}/revoke"), 200)
    for fields in ({}, {"If_None_Match": etag}, {"Range": "bytes=0-1"}, {"Origin": None, "Referer": PAGE}):
        refused = embed.request(**fields)
        assert_refused(refused, 410, "revoked")
        assert refused.get("access-control-allow-origin") == (SITE if "Origin" not in fields else None)
    assert embed.request("HEAD", If_None_Match=etag).status == 410
    assert_refused(embed.request(Origin=None), 410, "revoked")
    expect(embed.store.admin.delete(f"/embeds/{embed.record['id']}"), 204)
    assert_refused(embed.request(If_None_Match=etag), 404, "no embed")


def test_expiry_is_in_force_when_its_time_comes(make: Make) -> None:
    def make_and_visit(end: datetime) -> tuple[Embed, datetime]:
        embed = make(expires_at=written(end))
        assert embed.request().status == 200
        return embed, end

    embed, end = with_an_end(make_and_visit)
    until(lambda: datetime.now(UTC) > end)
    assert_refused(embed.request(If_None_Match=md5_etag(BODY)), 410, "expired")


def test_narrowed_origins_are_in_force_with_the_next_request(make: Make, admin: Management) -> None:
    embed = make(origins=[SITE, "https://partner.example"])
    assert embed.request(Origin="https://partner.example").status == 200
    expect(admin.request("PATCH", f"/embeds/{embed.record['id']}", json={"allowed_origins": [SITE]}), 200)
    assert embed.request(Origin="https://partner.example", If_None_Match=md5_etag(BODY)).status == 403
    assert embed.request().status == 200


@pytest.mark.parametrize(
    "content_type", ["text/html", "image/svg+xml", "application/xhtml+xml", "text/javascript", "application/pdf", "text/plain", "image/png, text/html"]
)
def test_type_is_checked_again_at_delivery(make: Make, s3: S3, content_type: str) -> None:
    """The story: a picture is embedded, then the object is overwritten with a page that contains a script."""
    embed = make()
    page = b"<script>alert(1)</script>"
    assert s3.put(embed.bucket, embed.key, page, [("Content-Type", content_type)]).status == 200
    for fields in ({}, {"Range": "bytes=0-3"}, {"If_None_Match": md5_etag(page)}):
        refused = embed.request(**fields)
        assert_refused(refused, 415, "not an image")
        assert refused.get("access-control-allow-origin") == SITE, "the page's script can read why"
    assert s3.put(embed.bucket, embed.key, BODY, [("Content-Type", "image/png")]).status == 200
    assert embed.request().body == BODY
    expect(embed.store.admin.request("PATCH", f"/embeds/{embed.record['id']}", json={"disposition": "attachment"}), 200)
    assert s3.put(embed.bucket, embed.key, page, [("Content-Type", content_type)]).status == 200
    assert embed.request().get("content-disposition").startswith("attachment; ")


def test_sent_type_is_one_type(make: Make) -> None:
    """Browsers take the last of several types, so a list must not become the type of a picture."""
    for stored, sent in [("image/png; a=b, text/html", "image/png"), ("Image/PNG;x", "image/png"), ("video/mp4", "video/mp4")]:
        assert make(content_type=stored).request().get("content-type") == sent


def test_embed_follows_the_current_version_or_stays_with_a_pinned_one(make: Make, s3: S3, admin: Management) -> None:
    embed = make()
    newer = random_bytes("newer", 5000)
    assert s3.put(embed.bucket, embed.key, newer, [("Content-Type", "image/webp")]).status == 200
    followed = embed.request(If_None_Match=md5_etag(BODY))
    assert (followed.status, followed.body, followed.get("content-type")) == (200, newer, "image/webp")

    expect(admin.put(f"/buckets/{embed.bucket}/versioning", {"versioning": "Enabled"}), 200)
    version = s3.put(embed.bucket, "pinned.png", BODY, [("Content-Type", "image/png")]).get("x-amz-version-id")
    assert s3.put(embed.bucket, "pinned.png", newer, [("Content-Type", "text/html")]).status == 200
    wanted = {"label": "", "allowed_origins": [SITE], "disposition": "inline", "version": {"mode": "pinned", "version_id": version}}
    made = expect(admin.post(f"/buckets/{embed.bucket}/object-embeds/pinned.png", wanted), 201)
    pinned = Embed(embed.store, embed.bucket, "pinned.png", made["embed"], made["url"])
    assert pinned.request().body == BODY
    assert s3.delete(embed.bucket, "pinned.png").status == 204
    assert pinned.request().body == BODY, "a delete marker hides the current version only"
    assert s3.request("DELETE", f"/{embed.bucket}/pinned.png?versionId={version}").status == 204
    assert_refused(pinned.request(), 404, "does not exist any more")
    assert s3.delete(embed.bucket, embed.key).status == 204
    assert_refused(embed.request(), 404, "does not exist any more")


def test_embed_does_not_survive_in_a_new_bucket_of_the_same_name(store: Cairn, s3: S3, admin: Management) -> None:
    s3.create_bucket("embeds-again")
    embed = make_embed(store, "embeds-again", key="a.png")
    assert s3.delete("embeds-again", "a.png").status == 204
    assert s3.request("DELETE", "/embeds-again").status == 204
    assert_refused(embed.request(), 404, "does not exist any more")
    s3.create_bucket("embeds-again")
    assert s3.put("embeds-again", "a.png", b"secret", [("Content-Type", "image/png")]).status == 200
    assert_refused(embed.request(), 404, "does not exist any more")


def test_rules_of_the_bucket_for_other_origins_do_not_apply(make: Make) -> None:
    embed = make()
    rules = b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>"
    md5 = base64.b64encode(hashlib.md5(rules).digest()).decode()
    assert embed.store.s3.request("PUT", f"/{embed.bucket}?cors", [("Content-MD5", md5)], rules).status == 200
    refused = embed.request(Origin="https://other.example")
    assert refused.status == 403 and refused.get("access-control-allow-origin") is None
    assert embed.request().get("access-control-allow-origin") == SITE


def test_stored_encoding_is_sent_and_metadata_is_not(make: Make, s3: S3) -> None:
    embed = make()
    stored = [("Content-Type", "image/png"), ("Content-Encoding", "gzip"), ("Cache-Control", "public, max-age=9"),
              ("Content-Disposition", "attachment"), ("x-amz-meta-secret", "internal")]  # fmt: skip
    assert s3.put(embed.bucket, embed.key, BODY, stored).status == 200
    found = embed.request()
    assert found.get("content-encoding") == "gzip" and found.get("cache-control").startswith("private, ")
    assert found.get("content-disposition").startswith("inline; ") and found.get("x-amz-meta-secret") is None


def test_downloads_are_counted_once_an_hour_and_only_with_content(make: Make, admin: Management) -> None:
    embed = make()
    count = lambda: expect(admin.get(f"/embeds/{embed.record['id']}"), 200)["access_count"]  # noqa: E731
    embed.request("HEAD")
    embed.request("OPTIONS")
    embed.request(If_None_Match=md5_etag(BODY))
    embed.request(Origin="https://other.example")
    embed.request(Range="bytes=999999999-")
    assert count() == 0
    for start in (0, 100, 5000):
        assert embed.request(Range=f"bytes={start}-").status == 206
    assert embed.request().status == 200
    assert count() == 1


def test_token_is_in_no_log_and_no_audit_record(make_store: Callable[..., Cairn]) -> None:
    own = make_store(SERVICE_LOG="service=trace", SERVICE_OBSERVABILITY_LOG_PATHS="true", SERVICE_AUDIT_DATA_EVENTS="all").start()
    own.s3.create_bucket("pictures")
    embed = make_embed(own, "pictures", key="a.png")
    assert embed.request().status == 200
    spellings = [f"/%65/{embed.token}", f"/e/{embed.token}?x=1", f"/e/{embed.token}/x", f"//e/{embed.token}"]
    for path in [embed.path, *spellings]:
        for method in ("GET", "HEAD", "OPTIONS", "PUT"):
            embed.request(method, path, Origin="https://other.example", Content_Length="0")
    page = expect(own.admin.get("/audit/events?limit=1000"), 200)
    reads = [event for event in page["events"] if event["operation"] == "get_embed"]
    assert reads and reads[-1]["resource"] == "pictures/a.png" and embed.record["id"] in reads[-1]["detail"]
    own.wait_output("route=/e/{token} status=200")
    own.stop()
    assert embed.token not in json.dumps(page) and embed.token not in own.output()
    stored = [path for path in own.data.rglob("*") if path.is_file() and embed.token.encode() in path.read_bytes()]
    assert stored == []


def test_requests_and_refusals_are_counted(make_store: Callable[..., Cairn]) -> None:
    own = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    own.s3.create_bucket("pictures")
    embed, revoked = make_embed(own, "pictures"), make_embed(own, "pictures")
    expect(own.admin.post(f"/embeds/{revoked.record['id']}/revoke"), 200)
    assert [embed.request().status, embed.request("HEAD").status, revoked.request().status] == [200, 200, 410]
    assert embed.request(path="/e/x").status == 404
    for _ in range(2):
        assert embed.request(Origin="null").status == 403
    assert embed.request(Sec_Fetch_Dest="script").status == 403
    assert own.s3.put("pictures", embed.key, b"<p>", [("Content-Type", "text/html")]).status == 200
    assert embed.request().status == 415
    assert own.s3.delete("pictures", embed.key).status == 204
    assert embed.request().status == 404
    counted = {"plane": "data", "route": "/e/{token}", "operation": "get_embed", "method": "GET"}
    found = once(own, lambda seen: seen.sum("service_requests_total", **counted) >= 8)
    expected = {"not_found": 1, "revoked": 1, "origin": 2, "destination": 1, "content_type": 1, "object_missing": 1, "expired": 0}
    denied = {reason: found.sum("service_share_access_denied_total", kind="embed", reason=reason) for reason in expected}
    assert denied == expected
    assert found.sum("service_requests_total", **counted) == 8
    assert embed.token not in found.text


def test_embeds_stop_while_they_are_turned_off(make_store: Callable[..., Cairn]) -> None:
    own = make_store().start()
    own.s3.create_bucket("pictures")
    embed = make_embed(own, "pictures")
    own.stop()
    own.extra["SERVICE_SHARING_EMBEDS_ENABLED"] = "false"
    own.start()
    assert_refused(embed.request(If_None_Match=md5_etag(BODY)), 403, "turned off")
    own.stop()
    own.extra["SERVICE_SHARING_EMBEDS_ENABLED"] = "true"
    own.start()
    assert embed.request().body == BODY, "embeds survive restarts"


def test_damage_at_the_start_is_500_and_later_cuts_the_response(make_store: Callable[..., Cairn]) -> None:
    own = make_store().start()
    own.s3.create_bucket("pictures")
    body = random_bytes("hurt", 3_000_000)
    embed = make_embed(own, "pictures", body, "video/mp4", key="a.mp4")
    own.stop()
    for at, needle in ((0, body[:64]), (2_000_000, body[2_000_000:2_000_064])):
        (place,) = find_bytes(volumes(own.data), needle)
        flip_bit(*place, 0)
        own.start()
        if at == 0:
            assert_refused(embed.request(), 500, "could not be read")
            flip_bit(*place, 0)
        else:
            with pytest.raises(AssertionError):
                embed.request()
            assert embed.request(Range="bytes=0-999").body == body[:1000]
        page = expect(own.admin.get("/audit/events?limit=100&result=failed"), 200)
        found = [event for event in page["events"] if event["operation"] == "get_embed"]
        assert found and found[0]["resource"] == "pictures/a.mp4" and embed.record["id"] in found[0]["detail"]
        own.stop()
    assert embed.token not in own.output()
