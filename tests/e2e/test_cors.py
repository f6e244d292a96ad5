"""Attacks CORS: configurations, preflights, and the headers of actual requests, allowed only as the first rule that fits says."""

import pytest
from botocore.client import BaseClient

from harness.boto import make_client, refused
from harness.expect import assert_error
from harness.s3 import S3, md5_etag, object_target
from harness.server import Cairn
from harness.wire import Response

ORIGIN = "https://app.example.com"
RULE = {
    "AllowedOrigins": [ORIGIN, "http://localhost:3000"], "AllowedMethods": ["GET", "PUT", "HEAD"],
    "AllowedHeaders": ["content-type", "X-Amz-Meta-Color"], "ExposeHeaders": ["ETag", "x-amz-version-id"], "MaxAgeSeconds": 600,
}
VARY = {"origin", "access-control-request-method", "access-control-request-headers"}


def configure(boto: BaseClient, bucket: str, *rules: dict) -> None:
    """Put the rules."""
    boto.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": list(rules)})


@pytest.fixture
def shared(boto: BaseClient, bucket: str) -> str:
    """A bucket that shares with one site."""
    configure(boto, bucket, RULE)
    return bucket


def preflight(s3: S3, target: str, origin: str | None = ORIGIN, method: str | None = "PUT", wanted: str | None = None) -> Response:
    """What a browser asks before the request: unsigned."""
    asked = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": wanted}
    headers = [("Host", s3.authority), *((name, value) for name, value in asked.items() if value is not None)]
    return s3.send_raw("OPTIONS", target, headers)


def cors_headers(response: Response) -> list[str]:
    """The names of the headers that let a page read the answer."""
    return sorted(name.lower() for name, _ in response.headers if name.lower().startswith("access-control-"))


def varies_on(response: Response) -> set[str]:
    """The header names in `Vary`."""
    values = ",".join(value for name, value in response.headers if name.lower() == "vary")
    return {name.strip().lower() for name in values.split(",") if name.strip()}


def test_the_configuration_comes_and_goes(boto: BaseClient, bucket: str):
    """404 before and after; what was put comes out, and a second one replaces it whole."""
    with refused(404, "NoSuchCORSConfiguration"):
        boto.get_bucket_cors(Bucket=bucket)
    other = {"AllowedOrigins": ["https://other.example.com"], "AllowedMethods": ["DELETE", "POST"], "ID": "second"}
    configure(boto, bucket, RULE, other)
    assert boto.get_bucket_cors(Bucket=bucket)["CORSRules"] == [RULE, other]
    configure(boto, bucket, other)
    assert boto.get_bucket_cors(Bucket=bucket)["CORSRules"] == [other]
    for _ in range(2):
        boto.delete_bucket_cors(Bucket=bucket)
    with refused(404, "NoSuchCORSConfiguration"):
        boto.get_bucket_cors(Bucket=bucket)


@pytest.mark.parametrize("change", [
    {"AllowedMethods": ["PATCH"]}, {"AllowedMethods": ["get"]}, {"AllowedOrigins": ["https://*.example.com"]},
    {"AllowedOrigins": ["https://app.example.com/"]}, {"AllowedOrigins": []}, {"AllowedMethods": []}, {"AllowedOrigins": [""]},
    {"AllowedHeaders": ["x-*-*"]}, {"ExposeHeaders": ["bad header"]}, {"MaxAgeSeconds": -1},
], ids=str)
def test_rules_that_are_none(boto: BaseClient, shared: str, change: dict):
    """400, and the rules stay as they were. Origins are exact: neither a pattern nor a path."""
    with refused(400, "InvalidRequest", "MalformedXML"):
        configure(boto, shared, RULE | {"MaxAgeSeconds": 5}, RULE | change)
    assert boto.get_bucket_cors(Bucket=shared)["CORSRules"] == [RULE]


@pytest.mark.parametrize("document", [
    b"", b"<CORSConfiguration/>", b"<Other/>", b"<CORSConfiguration>", b"<CORSConfiguration><CORSRule/></CORSConfiguration>",
    b"<CORSConfiguration>" + b"<CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>https://a.example</AllowedOrigin></CORSRule>" * 101
    + b"</CORSConfiguration>",
], ids=["nothing", "no rules", "another", "not closed", "empty rule", "101 rules"])
def test_documents_that_are_none(s3: S3, boto: BaseClient, shared: str, document: bytes):
    """400, and the rules stay as they were."""
    response = s3.request("PUT", f"/{shared}?cors", body=document)
    assert_error(response, 400, "MalformedXML", "InvalidRequest")
    assert boto.get_bucket_cors(Bucket=shared)["CORSRules"] == [RULE]


@pytest.mark.parametrize("target", ["/{}/key", "/{}", "/{}/a%20b?X-Amz-Signature=x&uploadId=y"])
def test_a_preflight_that_is_allowed(s3: S3, shared: str, target: str):
    """One origin, the rule's methods, the asked headers whatever their case, and how long it holds; no body."""
    response = preflight(s3, target.format(shared), wanted="Content-Type, x-amz-meta-COLOR")
    assert response.status in (200, 204) and response.body == b""
    assert response.get("access-control-allow-origin") == ORIGIN
    methods = {name.strip() for name in response.get("access-control-allow-methods").split(",")}
    assert "PUT" in methods and methods <= {"GET", "PUT", "HEAD"}
    allowed = {name.strip().lower() for name in response.get("access-control-allow-headers").split(",")}
    assert {"content-type", "x-amz-meta-color"} <= allowed
    assert response.get("access-control-max-age") == "600" and VARY <= varies_on(response)


@pytest.mark.parametrize("asked", [
    {"origin": "https://evil.example.com"}, {"origin": "http://app.example.com"}, {"origin": "https://app.example.com:8443"},
    {"origin": "https://app.example.com.evil.net"}, {"origin": "null"}, {"method": "DELETE"}, {"method": "put"},
    {"wanted": "content-type,x-secret"}, {"origin": "https://APP.example.com/"},
], ids=str)
def test_a_preflight_that_is_not(s3: S3, shared: str, asked: dict):
    """Another scheme, host, port, method or header: 403, and nothing that a browser could take for a yes."""
    response = preflight(s3, f"/{shared}/key", **asked)
    assert_error(response, 403, "AccessForbidden", "AccessDenied")
    assert cors_headers(response) == []


def test_preflights_without_rules(s3: S3, bucket: str):
    """Denied by default, also for a bucket that is not there."""
    for name in (bucket, f"{bucket}-none"):
        response = preflight(s3, f"/{name}/key")
        assert response.status in (403, 404) and cors_headers(response) == []


def test_preflights_that_are_none(s3: S3, shared: str):
    """Without an origin or a method there is nothing to decide."""
    assert preflight(s3, f"/{shared}/key", origin=None).status == 400
    assert preflight(s3, f"/{shared}/key", method=None).status == 400


def test_the_first_rule_that_fits_wins(boto: BaseClient, s3: S3, bucket: str):
    """By origin, method and headers together."""
    rules = [
        RULE | {"AllowedMethods": ["GET"], "MaxAgeSeconds": 1}, RULE | {"AllowedHeaders": ["x-other"], "MaxAgeSeconds": 2},
        RULE | {"AllowedHeaders": ["*"], "MaxAgeSeconds": 3}, RULE | {"MaxAgeSeconds": 4},
    ]
    configure(boto, bucket, *rules)
    for method, wanted, age in (("GET", None, "1"), ("PUT", None, "2"), ("PUT", "x-other", "2"), ("PUT", "content-type", "3")):
        assert preflight(s3, f"/{bucket}/k", method=method, wanted=wanted).get("access-control-max-age") == age


def test_actual_requests(s3: S3, shared: str):
    """The answer names the origin and what a page may read, on success and on errors alike."""
    stored = s3.request("PUT", object_target(shared, "k"), [("Origin", ORIGIN)], b"shared")
    assert stored.status == 200 and stored.get("etag") == md5_etag(b"shared")
    missing = s3.get(shared, "none", [("Origin", ORIGIN)])
    assert missing.status == 404
    unsigned = s3.send_raw("GET", object_target(shared, "k"), [("Host", s3.authority), ("Origin", ORIGIN)])
    assert unsigned.status == 403
    not_changed = s3.get(shared, "k", [("Origin", ORIGIN), ("If-None-Match", md5_etag(b"shared"))])
    assert not_changed.status == 304
    for response in (stored, s3.get(shared, "k", [("Origin", ORIGIN)]), missing, unsigned, not_changed):
        assert response.get("access-control-allow-origin") == ORIGIN
        exposed = {name.strip().lower() for name in response.get("access-control-expose-headers").split(",")}
        assert exposed == {"etag", "x-amz-version-id"}
        assert "origin" in varies_on(response)


@pytest.mark.parametrize("origin", [None, "https://evil.example.com", "http://app.example.com", "*"])
def test_actual_requests_from_elsewhere(s3: S3, shared: str, origin: str | None):
    """They are answered, for CORS is the browser's rule, but without a header that opens them to a page."""
    s3.put(shared, "k", b"x")
    response = s3.get(shared, "k", [("Origin", origin)] if origin else None)
    assert response.status == 200 and cors_headers(response) == []


def test_a_rule_for_every_origin(boto: BaseClient, s3: S3, bucket: str):
    """`*` alone is answered with `*`, and never together with credentials."""
    configure(boto, bucket, RULE | {"AllowedOrigins": ["*"]})
    for response in (preflight(s3, f"/{bucket}/k", origin="https://anyone.example"), s3.get(bucket, "k", [("Origin", "null")])):
        assert response.get("access-control-allow-origin") == "*"
        assert response.get("access-control-allow-credentials") is None


def test_a_method_that_no_rule_has(s3: S3, shared: str):
    """DELETE is in none: no headers."""
    assert cors_headers(s3.delete(shared, "none", [("Origin", ORIGIN)])) == []


def test_rules_end_with_their_bucket(boto: BaseClient, s3: S3, shared: str):
    """A new bucket of the same name shares nothing."""
    boto.delete_bucket(Bucket=shared)
    boto.create_bucket(Bucket=shared)
    assert cors_headers(preflight(s3, f"/{shared}/k")) == []
    with refused(404, "NoSuchCORSConfiguration"):
        boto.get_bucket_cors(Bucket=shared)


def test_kill_9_keeps_rules(own_store: Cairn):
    """As acknowledged."""
    boto = make_client(own_store.s3)
    boto.create_bucket(Bucket="killed")
    configure(boto, "killed", RULE)
    own_store.kill()
    own_store.start()
    assert boto.get_bucket_cors(Bucket="killed")["CORSRules"] == [RULE]
    assert preflight(own_store.s3, "/killed/k").get("access-control-allow-origin") == ORIGIN
