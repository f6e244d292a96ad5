"""Tokens of links that are sent to a wrong port or path: nothing keeps them in clear.

A URL of a link is easily sent to the wrong port: by a proxy that is set up wrongly, by a person who copies it, or by a program
that takes it for the URL of an object.
"""

import json
from collections.abc import Callable

import pytest

from harness.management import API, expect
from harness.metrics import SCRAPE_TOKEN, once, scrape
from harness.server import LOOPBACK, Cairn
from harness.shares import Share, share_body
from harness.wire import Connection, Response, encode_head

# What may stand in front of a token at any port. `files` is a possible name of a bucket, `photos` one that exists.
PLACES = [
    "/s/{}", "/s/{}/content", "/s/{}?x=1", "/%73/{}", "//s/{}", "/S/{}", "/s//{}", "/s%2F{}", "/e%2F{}", "/{}", "/{}/content", "/e/{}",
    "/./s/{}", "/a/../s/{}", "/files/s/{}/content", "/files/e/{}", "/photos/s/{}", "/photos/a/e/{}",
]  # fmt: skip
METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]
API_PLACES = [
    "shares/{}", "shares/{}/url", "embeds/{}/revoke", "buckets/{}", "buckets/s/object/{}", "buckets/s/object-shares/{}",
    "buckets/s%2F{}", "management-tokens/{}", "refused-requests/{}",
]  # fmt: skip


@pytest.fixture
def own(make_store: Callable[..., Cairn]) -> Cairn:
    """A store that records and logs as much as it can."""
    store = make_store(
        SERVICE_LOG="service=trace", SERVICE_OBSERVABILITY_LOG_PATHS="true", SERVICE_AUDIT_DATA_EVENTS="all",
        SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN,
    ).start()  # fmt: skip
    store.s3.create_bucket("photos")
    return store


def send(port: int, method: str, path: str, *headers: tuple[str, str]) -> Response:
    with Connection(LOOPBACK, port) as connection:
        head = [("Host", f"{LOOPBACK}:{port}"), ("Content-Length", "0"), *headers]
        connection.send(encode_head(method, path, head))
        return connection.read_response(method)


def make_tokens(own: Cairn) -> list[str]:
    """Returns the tokens of a share and of an embed."""
    share = share_body(own, "photos", b"a secret")
    assert own.s3.put("photos", "a.png", b"a picture", [("Content-Type", "image/png")]).status == 200
    embed = expect(own.admin.post("/buckets/photos/object-embeds/a.png", {"allowed_origins": ["https://a.example"]}), 201)
    return [share.token, embed["url"].rsplit("/", 1)[1]]


def assert_nothing_is_kept(own: Cairn, tokens: list[str]) -> None:
    """Looks for the tokens in everything that the server tells its operator or writes."""
    kept = {
        "audit trail": json.dumps(expect(own.admin.get("/audit/events?limit=1000"), 200)),
        "refused requests": json.dumps(expect(own.admin.get("/refused-requests?limit=1000"), 200)),
        "metrics": scrape(own).text,
    }
    assert "NoSuch" in kept["refused requests"] or "AccessDenied" in kept["refused requests"], "refusals are recorded"
    own.stop()
    kept["log"] = own.output()
    for token in tokens:
        assert [place for place, text in kept.items() if token in text] == []
        files = [path for path in own.data.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
        assert files == []


@pytest.mark.parametrize("port", ["s3_port", "api_port", "console_port"])
def test_token_in_a_path_is_not_kept(own: Cairn, port: str) -> None:
    """Regression: `GET /s/TOKEN` at the data plane was in the audit trail as `s/TOKEN`, and anybody who reads it has the object."""
    tokens = make_tokens(own)
    send(own.s3_port, "GET", "/photos/refused")
    for method in METHODS:
        for place in PLACES:
            for token in tokens:
                send(getattr(own, port), method, place.format(token), ("Origin", "https://a.example"))
    assert_nothing_is_kept(own, tokens)


def test_token_below_a_host_that_names_a_bucket_is_not_kept(make_store: Callable[..., Cairn]) -> None:
    """In the mode `extended`, the host of the shares may look like a bucket, and the path like a key."""
    own = make_store(
        SERVICE_S3_COMPATIBILITY="extended", SERVICE_SERVER_BASE_HOSTS="example.com", SERVICE_LOG="service=trace",
        SERVICE_OBSERVABILITY_LOG_PATHS="true", SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN,
    ).start()  # fmt: skip
    own.s3.create_bucket("photos")
    tokens = make_tokens(own)
    for host in ("share.example.com", "photos.example.com", "s.example.com"):
        for token in tokens:
            for path in (f"/s/{token}", f"/s/{token}/content", f"/e/{token}", f"/files/s/{token}"):
                with Connection(LOOPBACK, own.s3_port) as connection:
                    connection.send(encode_head("GET", path, [("Host", host)]))
                    assert connection.read_response().status == 403
    assert_nothing_is_kept(own, tokens)


def test_token_in_a_signed_request_is_not_kept(own: Cairn) -> None:
    """Clients take the URL of a share for that of an object, and sign the request."""
    tokens = make_tokens(own)
    send(own.s3_port, "GET", "/photos/refused")
    for token in tokens:
        for place in PLACES:
            for method in ["GET", "HEAD", "DELETE"]:
                own.s3.request(method, place.format(token))
        for source in [f"s/{token}", f"/s/{token}/content", f"e/{token}", token]:
            assert own.s3.request("PUT", "/photos/copy", [("x-amz-copy-source", source)]).status == 400
            send(own.s3_port, "PUT", "/photos/copy", ("x-amz-copy-source", source))
    assert_nothing_is_kept(own, tokens)


def test_token_in_place_of_an_id_is_not_kept(own: Cairn) -> None:
    """The management API names what a refused or failed request is about. People paste the URL in place of the id."""
    tokens = make_tokens(own)
    send(own.s3_port, "GET", "/photos/refused")
    for token in tokens:
        for place in API_PLACES:
            for method in ["GET", "PUT", "POST", "DELETE", "PATCH"]:
                send(own.api_port, method, f"{API}/{place.format(token)}")
                own.admin.request(method, f"/{place.format(token)}", json={})
    assert_nothing_is_kept(own, tokens)


def test_data_plane_says_that_shares_are_elsewhere(own: Cairn) -> None:
    share: Share = share_body(own, "photos", b"a secret")
    for path in [share.path, f"/s/{'a' * 43}", f"{share.path}/content", share.path.replace("/s/", "/%73/")]:
        answer = send(own.s3_port, "GET", path)
        assert answer.status == 404 and b"sharing.share_base_url" in answer.body
        assert share.token.encode() not in answer.body and answer.get("cache-control") == "no-store"
    assert send(own.s3_port, "HEAD", share.path).status == 404
    assert share.content().content == b"a secret"
    counted = {"plane": "data", "route": "/s/{token}", "operation": "get_share", "method": "GET"}
    found = once(own, lambda seen: seen.sum("service_requests_total", **counted) >= 4)
    assert found.sum("service_requests_total", **counted) == 4


def test_keys_that_look_like_links_are_still_recorded(own: Cairn) -> None:
    """Only tokens of links that exist are left out. An object may have any key."""
    key = f"s/{'a' * 43}"
    assert own.s3.put("photos", key, b"x").status == 200
    events = expect(own.admin.get("/audit/events?limit=1000"), 200)["events"]
    assert f"photos/{key}" in [event["resource"] for event in events]
