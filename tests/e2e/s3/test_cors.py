"""CORS: configurations, preflights and response headers follow the first matching rule."""

import pytest
from botocore.client import BaseClient

from harness.boto import make_client, refused
from harness.expect import assert_error, choice
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
    """Stores the rules as the bucket's CORS configuration."""
    boto.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": list(rules)})


@pytest.fixture
def shared(boto: BaseClient, bucket: str) -> str:
    """A bucket whose only CORS rule is `RULE`."""
    configure(boto, bucket, RULE)
    return bucket


def preflight(s3: S3, target: str, origin: str | None = ORIGIN, method: str | None = "PUT", wanted: str | None = None) -> Response:
    """Sends an unsigned OPTIONS preflight as a browser does. `None` leaves a header out."""
    asked = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": wanted}
    headers = [("Host", s3.authority), *((name, value) for name, value in asked.items() if value is not None)]
    return s3.send_raw("OPTIONS", target, headers)


def cors_headers(response: Response) -> list[str]:
    """Returns the names of the CORS headers in the response."""
    return sorted(name.lower() for name, _ in response.headers if name.lower().startswith("access-control-"))


def varies_on(response: Response) -> set[str]:
    """Returns the header names in `Vary`."""
    values = ",".join(value for name, value in response.headers if name.lower() == "vary")
    return {name.strip().lower() for name in values.split(",") if name.strip()}


def test_configuration_is_stored_replaced_and_deleted(boto: BaseClient, bucket: str):
    """GET is 404 before the first PUT and after DELETE. A second PUT replaces all rules."""
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
def test_invalid_rules_are_refused(boto: BaseClient, shared: str, change: dict):
    """400, and the stored rules do not change. An origin is exact: wildcards within it and paths are invalid."""
    with refused(400, "InvalidRequest", "MalformedXML"):
        configure(boto, shared, RULE | {"MaxAgeSeconds": 5}, RULE | change)
    assert boto.get_bucket_cors(Bucket=shared)["CORSRules"] == [RULE]


@pytest.mark.parametrize("document", [
    b"", b"<CORSConfiguration/>", b"<Other/>", b"<CORSConfiguration>", b"<CORSConfiguration><CORSRule/></CORSConfiguration>",
    b"<CORSConfiguration>" + b"<CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>https://a.example</AllowedOrigin></CORSRule>" * 101
    + b"</CORSConfiguration>",
    b"<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule>"
    + b" " * (64 << 10) + b"</CORSConfiguration>",
], ids=["nothing", "no rules", "another", "not closed", "empty rule", "101 rules", "65 KiB"])
def test_invalid_documents_are_refused(s3: S3, boto: BaseClient, shared: str, document: bytes):
    """400, and the stored rules do not change."""
    response = s3.request("PUT", f"/{shared}?cors", body=document)
    is_too_large = len(document) > 4096
    codes = ("InvalidRequest", "MalformedXML") if is_too_large else ("MalformedXML", "InvalidRequest")
    assert_error(response, 400, *codes)
    assert boto.get_bucket_cors(Bucket=shared)["CORSRules"] == [RULE]


def test_damaged_document_is_refused(s3: S3, boto: BaseClient, shared: str):
    """A wrong Content-MD5 is 400, and the stored rules do not change."""
    headers = [("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")]
    assert_error(s3.request("PUT", f"/{shared}?cors", headers, b"<CORSConfiguration/>"), 400, "BadDigest")
    assert boto.get_bucket_cors(Bucket=shared)["CORSRules"] == [RULE]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_rules_of_a_missing_bucket_are_refused(s3: S3, method: str):
    """404 for GET, PUT and DELETE."""
    assert_error(s3.request(method, "/no-such-bucket-here?cors"), 404, "NoSuchBucket")


@pytest.mark.parametrize("target", ["/{}/key", "/{}", "/{}/a%20b?X-Amz-Signature=x&uploadId=y"])
def test_allowed_preflight_returns_the_rule(s3: S3, shared: str, target: str):
    """The response names one origin, the rule's methods, the requested headers (in any case) and the maximum age."""
    response = preflight(s3, target.format(shared), wanted="Content-Type, x-amz-meta-COLOR")
    assert response.status in choice(200, 204) and response.body == b""
    assert response.get("access-control-allow-origin") == ORIGIN
    methods = {name.strip() for name in response.get("access-control-allow-methods").split(",")}
    assert "PUT" in methods and methods <= {"GET", "PUT", "HEAD"}
    allowed = {name.strip().lower() for name in response.get("access-control-allow-headers").split(",")}
    assert {"content-type", "x-amz-meta-color"} <= allowed
    assert response.get("access-control-max-age") == "600" and VARY <= varies_on(response)
    assert response.get("access-control-allow-credentials") == "true"


@pytest.mark.parametrize("asked", [
    {"origin": "https://evil.example.com"}, {"origin": "http://app.example.com"}, {"origin": "https://app.example.com:8443"},
    {"origin": "https://app.example.com.evil.net"}, {"origin": "null"}, {"method": "DELETE"}, {"method": "put"},
    {"wanted": "content-type,x-secret"}, {"origin": "https://APP.example.com/"},
], ids=str)
def test_preflight_that_matches_no_rule_is_refused(s3: S3, shared: str, asked: dict):
    """Another scheme, host, port, method or header: 403 without any CORS header."""
    response = preflight(s3, f"/{shared}/key", **asked)
    assert_error(response, 403, "AccessForbidden")
    assert cors_headers(response) == []


def test_preflight_without_rules_is_refused(s3: S3, bucket: str):
    """CORS is denied by default, also for a missing bucket."""
    for name in (bucket, f"{bucket}-none"):
        response = preflight(s3, f"/{name}/key")
        assert response.status in choice(403, 404) and cors_headers(response) == []


def test_incomplete_preflights_are_refused(s3: S3, shared: str):
    """400 if Origin or Access-Control-Request-Method is missing."""
    assert preflight(s3, f"/{shared}/key", origin=None).status == 400
    assert preflight(s3, f"/{shared}/key", method=None).status == 400


def test_first_matching_rule_applies(boto: BaseClient, s3: S3, bucket: str):
    """A rule matches only if origin, method and headers all match."""
    rules = [
        RULE | {"AllowedMethods": ["GET"], "MaxAgeSeconds": 1}, RULE | {"AllowedHeaders": ["x-other"], "MaxAgeSeconds": 2},
        RULE | {"AllowedHeaders": ["*"], "MaxAgeSeconds": 3}, RULE | {"MaxAgeSeconds": 4},
    ]
    configure(boto, bucket, *rules)
    for method, wanted, age in (("GET", None, "1"), ("PUT", None, "2"), ("PUT", "x-other", "2"), ("PUT", "content-type", "3")):
        assert preflight(s3, f"/{bucket}/k", method=method, wanted=wanted).get("access-control-max-age") == age


def test_responses_to_an_allowed_origin_have_cors_headers(s3: S3, shared: str):
    """The origin and the exposed headers are in successful, failed and 304 responses."""
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
def test_responses_to_other_origins_have_no_cors_headers(s3: S3, shared: str, origin: str | None):
    """The request itself succeeds, because browsers enforce CORS. The page cannot read the response."""
    s3.put(shared, "k", b"x")
    response = s3.get(shared, "k", [("Origin", origin)] if origin else None)
    assert response.status == 200 and cors_headers(response) == []


def test_wildcard_origin_never_allows_credentials(boto: BaseClient, s3: S3, bucket: str):
    """The rule origin `*` is returned as `*`, without Access-Control-Allow-Credentials."""
    configure(boto, bucket, RULE | {"AllowedOrigins": ["*"]})
    for response in (preflight(s3, f"/{bucket}/k", origin="https://anyone.example"), s3.get(bucket, "k", [("Origin", "null")])):
        assert response.get("access-control-allow-origin") == "*"
        assert response.get("access-control-allow-credentials") is None


def test_method_without_a_rule_gets_no_headers(s3: S3, shared: str):
    """No rule allows DELETE, so its response has no CORS headers."""
    assert cors_headers(s3.delete(shared, "none", [("Origin", ORIGIN)])) == []


def test_recreated_bucket_has_no_rules(boto: BaseClient, s3: S3, shared: str):
    """Deleting a bucket deletes its rules."""
    boto.delete_bucket(Bucket=shared)
    boto.create_bucket(Bucket=shared)
    assert cors_headers(preflight(s3, f"/{shared}/k")) == []
    with refused(404, "NoSuchCORSConfiguration"):
        boto.get_bucket_cors(Bucket=shared)


def test_acknowledged_rules_survive_kill_9(own_store: Cairn):
    """The rules are stored before the PUT is answered."""
    boto = make_client(own_store.s3)
    boto.create_bucket(Bucket="killed")
    configure(boto, "killed", RULE)
    own_store.kill()
    own_store.start()
    assert boto.get_bucket_cors(Bucket="killed")["CORSRules"] == [RULE]
    assert preflight(own_store.s3, "/killed/k").get("access-control-allow-origin") == ORIGIN
