"""nginx, Caddy and HAProxy publish shares and embeds, and nothing else of the server."""

import hashlib
import http.client
import json
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from harness.management import expect, segment
from harness.proxies import NAME, PROXIES, Proxy, links_proxy
from harness.s3 import object_target
from harness.server import LOOPBACK, Cairn
from harness.wire import encode_head

BUCKET, KEY, PAGE = "published", "ünï picture.png", "https://blog.example"
BODY = hashlib.shake_128(b"picture").digest(300_000)
PASSWORD = "correct horse"
# An address of this host that differs from the one that the proxies connect from.
CLIENT = "127.0.0.2"


@pytest.fixture(scope="module")
def behind(make_module_store) -> Cairn:
    """Starts a store that trusts the proxies on this host, with an object to link."""
    store = make_module_store(SERVICE_SERVER_TRUSTED_PROXIES=LOOPBACK).start()
    store.s3.create_bucket(BUCKET)
    store.s3.put(BUCKET, KEY, BODY, [("Content-Type", "image/png")])
    return store


@pytest.fixture(scope="module", params=list(PROXIES))
def front(request: pytest.FixtureRequest, behind: Cairn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Starts each proxy in front of the store."""
    with links_proxy(request.param, tmp_path_factory.mktemp("links") / request.param, (behind.s3_port, behind.console_port)) as running:
        yield running


def visit(front: Proxy, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> tuple[http.client.HTTPResponse, bytes]:
    """Sends a visitor's request through the proxy. The path is sent as it is."""
    context = ssl.create_default_context(cafile=front.certificate)
    connection = http.client.HTTPSConnection(NAME, front.port, timeout=30, context=context, source_address=(CLIENT, 0))
    try:
        connection.putrequest(method, path)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def create(store: Cairn, kind: str, **asked: object) -> tuple[dict, str]:
    """Creates a link and returns its record and path."""
    made = expect(store.admin.post(f"/buckets/{BUCKET}/object-{kind}s/{segment(KEY)}", asked), 201)
    return made[kind], urlsplit(made["url"]).path


def test_share_works_through_the_proxy(front: Proxy, behind: Cairn):
    """Page, descriptor, password, ranges, conditions, the name of the file, and the client's address."""
    share, path = create(behind, "share", password=PASSWORD)
    page, html = visit(front, "GET", path, {"Accept": "text/html"})
    assert page.status == 200 and page.headers["content-type"].startswith("text/html") and b"<form" in html
    assert visit(front, "GET", f"{path}/content")[0].status == 401
    sent = {"Content-Type": "application/json", "Accept": "application/json", "X-Forwarded-For": "203.0.113.66"}
    wrong, answer = visit(front, "POST", f"{path}/unlock", sent, b'{"password":"wrong"}')
    assert (wrong.status, json.loads(answer)["error"]["code"]) == (401, "SHARE_PASSWORD_INCORRECT")
    (event,) = expect(behind.admin.get("/audit/events", params={"request_id": wrong.headers["x-request-id"]}), 200)["events"]
    assert event["source_ip"] == CLIENT, "the address that a visitor invents must not count"
    unlocked, answer = visit(front, "POST", f"{path}/unlock", sent, json.dumps({"password": PASSWORD}).encode())
    assert unlocked.status == 200
    cookie = unlocked.headers["set-cookie"]
    assert f"Path={path};" in cookie + ";" and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    with_cookie = {"Cookie": cookie.split(";")[0]}
    whole, content = visit(front, "GET", f"{path}/content", with_cookie | {"Accept-Encoding": "gzip, br"})
    assert (whole.status, content, whole.headers.get("content-encoding")) == (200, BODY, None)
    assert "filename*=UTF-8''%C3%BCn%C3%AF%20picture.png" in whole.headers["content-disposition"]
    part, content = visit(front, "GET", f"{path}/content", with_cookie | {"Range": "bytes=70000-199999"})
    assert (part.status, content, part.headers["content-range"]) == (206, BODY[70_000:200_000], "bytes 70000-199999/300000")
    head, content = visit(front, "HEAD", f"{path}/content", with_cookie)
    assert (head.status, content, head.headers["content-length"]) == (200, b"", "300000")
    expect(behind.admin.post(f"/shares/{share['id']}/revoke"), 200)
    gone, answer = visit(front, "GET", f"{path}/content", with_cookie | {"If-None-Match": whole.headers.get("etag", '"x"')})
    assert (gone.status, json.loads(answer)["error"]["code"]) == (410, "SHARE_GONE"), "no proxy may answer from a cache"


def test_embed_works_through_the_proxy(front: Proxy, behind: Cairn):
    """Origins are checked, conditions and ranges work, and nothing is served after a revocation."""
    embed, path = create(behind, "embed", allowed_origins=[PAGE])
    got, content = visit(front, "GET", path, {"Origin": PAGE})
    assert (got.status, content, got.headers["access-control-allow-origin"]) == (200, BODY, PAGE)
    assert visit(front, "GET", path, {"Referer": f"{PAGE}/"})[0].status == 200
    assert visit(front, "GET", path, {"Origin": "https://other.example"})[0].status == 403
    assert visit(front, "GET", path)[0].status == 403
    same = {"Origin": PAGE, "If-None-Match": got.headers["etag"]}
    assert visit(front, "GET", path, same)[0].status == 304
    part, content = visit(front, "GET", path, {"Origin": PAGE, "Range": "bytes=-5"})
    assert (part.status, content) == (206, BODY[-5:])
    expect(behind.admin.post(f"/embeds/{embed['id']}/revoke"), 200)
    assert visit(front, "GET", path, same)[0].status == 410


# Paths that one of the two, proxy and server, could take for a link and the other not.
OTHERS = [
    "/", "/api/v1/buckets", "/health", "/ready", "/metrics", f"/{BUCKET}", f"/{BUCKET}/k", "/s", "/e", "/S/x", "//s/x",
    "/s/../api/v1/buckets", "/s/%2e%2e/ready", "/s/..%2fready", "/e/../{b}/k", "/e/%2e%2e/{b}/k", "/e/x/../../{b}/k",
    "/e/..%2f{b}%2fk", "/{b}/../e/x", "/{b}/%2e%2e/s/x", "/./e/../{b}/k", "/e/./../{b}/k", "/e//../../{b}/k", "/%65/x", "/%73/x",
]


@pytest.mark.parametrize("path", OTHERS)
def test_nothing_else_is_published(front: Proxy, behind: Cairn, path: str):
    """Every other path is refused, however it is written, also with the credential of an administrator."""
    path = path.replace("{b}", BUCKET)
    secret = {"Authorization": f"Bearer {behind.secrets.system_token}"}
    response, body = visit(front, "GET", path, secret)
    # A proxy refuses some spellings itself, each its own ones.
    assert response.status in (400, 404), body
    assert b"ListAllMyBuckets" not in body and b"buckets" not in body and b"ready" not in body


@pytest.mark.parametrize("target", ["/e/../{b}/k", "/e/..%2F{b}/k", "/{b}/../e/x", "/e/{b}/k"])
def test_signed_requests_do_not_pass(front: Proxy, behind: Cairn, target: str):
    """A signed upload does not arrive, however its path is written."""
    s3, target = front.s3(behind.credential), target.replace("{b}", BUCKET)
    with s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, s3.signed_head("PUT", target, [], b"x")) + b"x")
        # The proxies differ: by the path as it is written, or by the path that it means.
        assert connection.read_response("PUT").status in (400, 404, 405)
    assert behind.s3.request("GET", object_target(BUCKET, "k")).status == 404


def test_the_proxy_limits_the_body_of_a_visitor(front: Proxy, behind: Cairn):
    """A huge password is refused, and the server still works."""
    _, path = create(behind, "share", password=PASSWORD)
    try:
        response, _ = visit(front, "POST", f"{path}/unlock", {"Content-Type": "application/json"}, b'{"password":"' + b"x" * 3_000_000 + b'"}')
        # Ours, the proxy's, or the proxy's when the server has closed the connection while the body was sent.
        assert response.status in (400, 413, 502)
    except OSError:
        # The connection may be closed while the body is sent.
        pass
    assert visit(front, "GET", path)[0].status == 200


def test_tokens_are_in_no_log(front: Proxy, behind: Cairn):
    """Neither the proxy nor the server logs the path of a link, whatever its answer is."""
    share, path = create(behind, "share")
    assert visit(front, "GET", f"{path}/content")[0].status == 200
    expect(behind.admin.delete(f"/shares/{share['id']}"), 204)
    assert visit(front, "GET", f"{path}/content")[0].status == 404
    token = path.rsplit("/", 1)[1]
    logs = [behind.output(), *(log.read_text(errors="replace") for log in front.certificate.parent.glob("*.log"))]
    assert len(logs) > 1 and not any(token in log for log in logs)
