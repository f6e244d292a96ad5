"""Attacks SigV4 in headers and in presigned URLs: what must be accepted, what must be refused, and how."""

import random
from email.utils import format_datetime
import datetime as dt

import pytest

from harness import sigv4
from harness.expect import assert_error, assert_status
from harness.s3 import S3, md5_etag, object_target, sha256_hex
from harness.sigv4 import Credential, Scope

BODY = b"signed bytes"
MINUTE = 60


@pytest.mark.parametrize(
    "key",
    [
        "plain", "a b", "a+b", "a%b", "a%20b", "a//b", "/leading", "trailing/", "a/./b", "a/../b", "..", ".", "~-_.",
        "!$&'()*,:;=@", "é", "e\u0301", "日本語/鍵", "🗝", "a?b#c", 'quo"te', "back\\slash", "[x]{y}|z^`", "%2F", "a\tb",
    ],
)
def test_every_key_signs_and_is_stored_under_its_own_name(s3: S3, bucket: str, key: str):
    """A path that is normalised, or encoded twice, either fails the signature or lands under another key."""
    s3.put(bucket, key, key.encode())
    assert assert_status(s3.get(bucket, key), 200).body == key.encode()
    assert s3.list(bucket, encoding_type="url").keys == [key]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/a%2fb", "a/b"), ("/a%2Fb", "a/b"), ("/%c3%a9", "é"), ("/%61bc", "abc"), ("/a!b'(c)*", "a!b'(c)*"),
        ("/x=1&y=2", "x=1&y=2"), ("/a:b@c,d;e$f", "a:b@c,d;e$f"), ("/a+b", "a+b"),
    ],
)
def test_paths_are_signed_in_canonical_form_however_they_are_sent(s3: S3, bucket: str, path: str, key: str):
    """Clients differ in what they encode; AWS decodes the path and encodes it once, strictly."""
    assert_status(s3.request("PUT", f"/{bucket}{path}", body=BODY), 200)
    assert s3.list(bucket).keys == [key]


def test_query_is_sorted_by_encoded_name_then_value(s3: S3, bucket: str):
    """Unknown parameters, repeated names, names without `=` and odd characters are signed, then ignored."""
    s3.put(bucket, "k", BODY)
    target = object_target(bucket, "k", "zz&b=2&b=1&a%20b=c%2Fd&A=1&aa=%7E~&%C3%A9=x&c=a%3Bb;c&x-id=GetObject")
    assert assert_status(s3.request("GET", target), 200).body == BODY


def test_plus_in_a_query_is_a_space_and_percent_2b_a_plus(s3: S3, bucket: str):
    """`+` must never be signed or read as itself, or prefixes with spaces and pluses get mixed up."""
    for key in ("a b", "a+b"):
        s3.put(bucket, key)
    for sent, key in (("a%20b", "a b"), ("a%2Bb", "a+b"), ("a+b", "a b")):
        response = assert_status(s3.request("GET", f"/{bucket}?list-type=2&prefix={sent}"), 200)
        assert f"<Key>{key}</Key>".encode() in response.body, (sent, response.body)


def test_header_values_are_trimmed_folded_and_joined(s3: S3, bucket: str):
    """Signed values lose outer blanks and inner runs of them; repeated headers join in the order sent."""
    headers = [("x-amz-meta-a", "  one   two  "), ("x-amz-meta-b", "1"), ("x-amz-meta-b", "2")]
    s3.put(bucket, "k", BODY, headers)
    response = s3.head(bucket, "k")
    assert response.get("x-amz-meta-b") in ("1,2", "1, 2")


def test_unsigned_amz_header_is_refused(s3: S3, bucket: str):
    """Else a header that changes the meaning could be added on the way."""
    target = object_target(bucket, "k")
    head = s3.signed_head("PUT", target, body=BODY) + [("x-amz-meta-added", "later")]
    root = assert_error(s3.send_raw("PUT", target, head, BODY), 403, "AccessDenied")
    assert "not signed" in root.findtext("Message")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_host_must_be_signed(s3: S3, bucket: str):
    """A signature that leaves out the host would be good for any server."""
    response = s3.request("GET", f"/{bucket}?list-type=2", signed=["x-amz-content-sha256", "x-amz-date"])
    assert response.status in (400, 403), (response.status, response.body)


def test_payload_digest_must_be_there(s3: S3, bucket: str):
    """Header signatures without `x-amz-content-sha256` say nothing about the body."""
    target = object_target(bucket, "k")
    head = [pair for pair in s3.signed_head("PUT", target, body=BODY) if pair[0] != "x-amz-content-sha256"]
    assert_error(s3.send_raw("PUT", target, head, BODY), 400, "InvalidRequest")


@pytest.mark.parametrize("size", [12, 100_000, 3_000_000])
def test_wrong_payload_digest_stores_nothing(s3: S3, bucket: str, size: int):
    """For inline bodies and for those in volumes alike; what was there before stays."""
    s3.put(bucket, "k", b"before")
    body = b"x" * size
    response = s3.request("PUT", object_target(bucket, "k"), body=body, payload=sha256_hex(b"other"))
    assert_error(response, 400, "XAmzContentSHA256Mismatch")
    assert s3.get(bucket, "k").body == b"before"


@pytest.mark.parametrize("value", ["", "abc", "Z" * 64, "0" * 63, "unsigned-payload"])
def test_malformed_payload_digest_is_refused(s3: S3, bucket: str, value: str):
    """A digest that is none must not count as a promise kept."""
    response = s3.request("PUT", object_target(bucket, "k"), body=BODY, payload=value)
    assert response.status == 400, (response.status, response.body)
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_unsigned_payload_is_accepted(s3: S3, bucket: str):
    """`UNSIGNED-PAYLOAD` in the header leaves the body out of the signature."""
    assert_status(s3.request("PUT", object_target(bucket, "k"), body=BODY, payload=sigv4.UNSIGNED_PAYLOAD), 200)
    assert s3.get(bucket, "k").body == BODY


@pytest.mark.parametrize("minutes", [-20, -16, 16, 60 * 24])
def test_clock_skew_is_refused(s3: S3, bucket: str, minutes: int):
    """More than 15 minutes off, either way."""
    scope = Scope(sigv4.amz_date(minutes * MINUTE))
    assert_error(s3.request("GET", f"/{bucket}?list-type=2", scope=scope), 403, "RequestTimeTooSkewed")


@pytest.mark.parametrize("minutes", [-14, 14])
def test_small_clock_skew_is_accepted(s3: S3, bucket: str, minutes: int):
    """Within 15 minutes clients' clocks may differ."""
    scope = Scope(sigv4.amz_date(minutes * MINUTE))
    assert_status(s3.request("GET", f"/{bucket}?list-type=2", scope=scope), 200)


def test_date_header_stands_in_for_amz_date(s3: S3, bucket: str):
    """An RFC 7231 `Date` is accepted when there is no `x-amz-date`."""
    now = dt.datetime.now(dt.timezone.utc).replace(microsecond=0)
    scope = Scope(now.strftime("%Y%m%dT%H%M%SZ"))
    target = f"/{bucket}?list-type=2"
    signed = ["date", "host", "x-amz-content-sha256"]
    headers = [("Date", format_datetime(now, usegmt=True))]
    assert_status(s3.request("GET", target, headers, scope=scope, signed=signed), 200)


def test_amz_date_wins_over_date(s3: S3, bucket: str):
    """Proxies and libraries rewrite `Date`."""
    stale = format_datetime(dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), usegmt=True)
    scope = Scope(sigv4.amz_date())
    headers = [("Date", stale), ("x-amz-date", scope.amz_date)]
    assert_status(s3.request("GET", f"/{bucket}?list-type=2", headers, scope=scope), 200)


def test_no_date_at_all(s3: S3, bucket: str):
    """A signature without a date never ends."""
    target = f"/{bucket}?list-type=2"
    head = [pair for pair in s3.signed_head("GET", target) if pair[0] != "x-amz-date"]
    assert_error(s3.send_raw("GET", target, head), 403, "AccessDenied")


def test_any_region_is_accepted(s3: S3, bucket: str):
    """The specification accepts every region string."""
    for region in ("us-east-1", "eu-central-1", "auto", "garage", "x"):
        scope = Scope(sigv4.amz_date(), region=region)
        assert_status(s3.request("GET", f"/{bucket}?list-type=2", scope=scope), 200)


@pytest.mark.parametrize("change", [{"service": "ec2"}, {"terminator": "aws5_request"}, {"date": "20200101"}])
def test_wrong_scope_is_refused(s3: S3, bucket: str, change: dict[str, str]):
    """Service, terminator and day are part of what is signed."""
    scope = Scope(sigv4.amz_date(), **change)
    response = s3.request("GET", f"/{bucket}?list-type=2", scope=scope)
    assert response.status in (400, 403), (response.status, response.body)
    assert_error(response, response.status, "AuthorizationHeaderMalformed", "SignatureDoesNotMatch", "AccessDenied")


def test_unknown_access_key(s3: S3, bucket: str):
    """A key nobody has."""
    other = Credential("AKNOBODY0000", s3.credential.secret_key)
    assert_error(s3.request("GET", f"/{bucket}?list-type=2", credential=other), 403, "InvalidAccessKeyId")


def test_wrong_secret_shows_the_canonical_request(s3: S3, bucket: str):
    """The error says what the server signed, so that people can find the difference."""
    other = Credential(s3.credential.access_key, "wrong" * 8)
    response = s3.request("GET", f"/{bucket}?list-type=2&prefix=a%20b", credential=other)
    root = assert_error(response, 403, "SignatureDoesNotMatch")
    assert root.findtext("CanonicalRequest").startswith(f"GET\n/{bucket}\nlist-type=2&prefix=a%20b\n")
    assert root.findtext("StringToSign").startswith(sigv4.ALGORITHM)
    assert s3.credential.secret_key.encode() not in response.body


@pytest.mark.parametrize(
    "value",
    [
        "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=a", "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=, Signature=",
        "AWS4-HMAC-SHA256 Credential=a/20260101/r/s3/aws4_request, Signature=00", "AWS4-HMAC-SHA512 Credential=x",
    ],
)
def test_malformed_authorization_header(s3: S3, bucket: str, value: str):
    """Refused by name, without a guess."""
    head = [("Host", s3.authority), ("x-amz-date", sigv4.amz_date()), ("x-amz-content-sha256", sigv4.EMPTY_SHA256)]
    response = s3.send_raw("GET", f"/{bucket}?list-type=2", head + [("Authorization", value)])
    assert_error(response, 400, "AuthorizationHeaderMalformed", "InvalidRequest", "InvalidArgument")


def test_signature_version_2_is_refused(s3: S3, bucket: str):
    """In the header and in the query."""
    head = [("Host", s3.authority), ("Date", format_datetime(dt.datetime.now(dt.timezone.utc), usegmt=True))]
    response = s3.send_raw("GET", f"/{bucket}?list-type=2", head + [("Authorization", "AWS key:c2lnbmF0dXJl")])
    assert response.status == 400, response.body
    query = f"/{bucket}?list-type=2&AWSAccessKeyId=key&Expires=99999999999&Signature=c2ln"
    assert s3.send_raw("GET", query, [("Host", s3.authority)]).status == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
def test_anonymous_requests_are_refused(s3: S3, bucket: str, method: str):
    """And change nothing."""
    s3.put(bucket, "k", BODY)
    length = [("Content-Length", "0")] if method == "PUT" else []
    response = s3.send_raw(method, object_target(bucket, "k"), [("Host", s3.authority), *length])
    assert response.status == 403
    if method != "HEAD":
        assert_error(response, 403, "AccessDenied")
    assert s3.get(bucket, "k").body == BODY


def test_security_token_is_not_implemented(s3: S3, bucket: str):
    """Session tokens are not taken in the header or in the query, signed as they may be."""
    assert_error(s3.request("GET", f"/{bucket}?list-type=2", [("x-amz-security-token", "t")]), 501, "NotImplemented")
    target = s3.presigned("GET", f"/{bucket}?list-type=2&X-Amz-Security-Token=t")
    assert_error(s3.use_presigned("GET", target), 501, "NotImplemented")


# Presigned URLs


def test_presigned_get_and_put(s3: S3, bucket: str):
    """The plain case, as curl sends it."""
    target = object_target(bucket, "k é+ b")
    assert_status(s3.use_presigned("PUT", s3.presigned("PUT", target), body=BODY), 200)
    assert s3.use_presigned("GET", s3.presigned("GET", target)).body == BODY


@pytest.mark.parametrize("expires", ["0", "-1", "604801", "abc", "", "99999999999999999999"])
def test_presigned_expiry_must_be_in_range(s3: S3, bucket: str, expires: str):
    """One second to seven days."""
    target = s3.presigned("GET", object_target(bucket, "k"), expires=expires)
    assert_error(s3.use_presigned("GET", target), 400, "AuthorizationQueryParametersError")


def test_presigned_url_expires(s3: S3, bucket: str):
    """The last valid second counts from the date in the URL."""
    s3.put(bucket, "k", BODY)
    target = object_target(bucket, "k")
    old = s3.presigned("GET", target, expires=60, scope=Scope(sigv4.amz_date(-120)))
    root = assert_error(s3.use_presigned("GET", old), 403, "AccessDenied")
    assert "expired" in root.findtext("Message").lower()
    long = s3.presigned("GET", target, expires=604800, scope=Scope(sigv4.amz_date(-6 * 86400)))
    assert_status(s3.use_presigned("GET", long), 200)


def test_presigned_date_may_be_a_little_ahead(s3: S3, bucket: str):
    """Up to 15 minutes; beyond, the URL is not valid yet."""
    s3.put(bucket, "k", BODY)
    near = s3.presigned("GET", object_target(bucket, "k"), scope=Scope(sigv4.amz_date(14 * MINUTE)))
    assert_status(s3.use_presigned("GET", near), 200)
    far = s3.presigned("GET", object_target(bucket, "k"), scope=Scope(sigv4.amz_date(17 * MINUTE)))
    assert_error(s3.use_presigned("GET", far), 403, "AccessDenied")


def test_every_query_name_is_signed(s3: S3, bucket: str):
    """A parameter added to a presigned URL breaks it."""
    s3.put(bucket, "k", BODY)
    target = s3.presigned("GET", object_target(bucket, "k"))
    added = target + "&response-content-type=text%2Fhtml"
    assert_error(s3.use_presigned("GET", added), 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("name", ["x-amz-meta-a", "x-amz-copy-source", "x-amz-acl", "x-amz-tagging"])
def test_presigned_refuses_unsigned_amz_headers(s3: S3, bucket: str, name: str):
    """Else the bearer could add a copy source after the signing."""
    s3.put(bucket, "other", b"other")
    target = s3.presigned("PUT", object_target(bucket, "k"))
    response = s3.use_presigned("PUT", target, [(name, f"/{bucket}/other")], BODY)
    assert_error(response, 403, "AccessDenied")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


@pytest.mark.parametrize("name", ["X-Amz-Acl=public-read", "X-Amz-Tagging=a%3Db", "X-Amz-Server-Side-Encryption=AES256"])
def test_hoisted_headers_are_still_not_implemented(s3: S3, bucket: str, name: str):
    """A query name stands for the header of that name."""
    target = s3.presigned("PUT", object_target(bucket, "k", name))
    assert_error(s3.use_presigned("PUT", target, body=BODY), 501, "NotImplemented")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_presigned_checksum_parameters_are_signed_and_not_enforced(s3: S3, bucket: str):
    """The JavaScript SDK hoists the checksum of an empty body into every presigned PUT."""
    query = "x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32&x-id=PutObject"
    target = s3.presigned("PUT", object_target(bucket, "k", query))
    assert_status(s3.use_presigned("PUT", target, body=BODY), 200)
    mode = s3.presigned("GET", object_target(bucket, "k", "x-amz-checksum-mode=ENABLED&x-id=GetObject"))
    assert s3.use_presigned("GET", mode).body == BODY


def test_signed_content_type_must_match(s3: S3, bucket: str):
    """The specification's upload flow: exactly the signed type, or 403."""
    target = object_target(bucket, "k")
    url = s3.presigned("PUT", target, headers=[("content-type", "image/png")])
    assert_error(s3.use_presigned("PUT", url, [("Content-Type", "text/html")], BODY), 403, "SignatureDoesNotMatch")
    response = s3.use_presigned("PUT", url, body=BODY)
    assert response.status == 403, "a signed header that is missing"
    assert_status(s3.use_presigned("PUT", url, [("Content-Type", "image/png")], BODY), 200)
    assert s3.head(bucket, "k").get("content-type") == "image/png"
    free = s3.presigned("PUT", object_target(bucket, "free"))
    assert_status(s3.use_presigned("PUT", free, [("Content-Type", "text/plain")], BODY), 200)
    assert s3.head(bucket, "free").get("content-type") == "text/plain"


@pytest.mark.parametrize("kind", ["method", "key", "bucket", "host"])
def test_a_signature_is_good_for_one_request_only(s3: S3, bucket: str, kind: str):
    """Another method, key, bucket or host under the same signature."""
    s3.put(bucket, "k", BODY)
    s3.put(bucket, "other", BODY)
    s3.create_bucket(f"{bucket}-b")
    s3.put(f"{bucket}-b", "k", BODY)
    url = s3.presigned("GET", object_target(bucket, "k"))
    if kind == "method":
        for method in ("HEAD", "DELETE", "PUT"):
            assert s3.use_presigned(method, url).status == 403, method
        assert s3.get(bucket, "k").body == BODY
        return
    if kind == "host":
        response = s3.send_raw("GET", url, [("Host", "elsewhere.example:80")])
    else:
        changed = {"key": (f"/{bucket}/k?", f"/{bucket}/other?"), "bucket": (f"/{bucket}/", f"/{bucket}-b/")}[kind]
        response = s3.use_presigned("GET", url.replace(*changed, 1))
    assert_error(response, 403, "SignatureDoesNotMatch")


def test_header_and_query_authentication_together_are_refused(s3: S3, bucket: str):
    """Which of the two would count?"""
    url = s3.presigned("GET", object_target(bucket, "k"))
    response = s3.request("GET", url)
    assert response.status == 400, (response.status, response.body)


@pytest.mark.parametrize(
    "name", ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders"]
)
def test_presigned_without_a_part_is_refused(s3: S3, bucket: str, name: str):
    """Each of the parts is needed; nothing is taken for granted."""
    s3.put(bucket, "k", BODY)
    path, _, query = s3.presigned("GET", object_target(bucket, "k")).partition("?")
    left = "&".join(part for part in query.split("&") if not part.startswith(name + "="))
    assert s3.use_presigned("GET", f"{path}?{left}").status in (400, 403)


def test_flipping_any_part_of_a_signature_is_refused(s3: S3, bucket: str):
    """Shortened, extended, upper-cased or changed signatures, from a fixed seed."""
    s3.put(bucket, "k", BODY)
    rng = random.Random(4)
    url = s3.presigned("GET", object_target(bucket, "k"))
    head, _, given = url.rpartition("=")
    wrong = [given[:-1], given + "0", "", "0" * 64]
    for _ in range(20):
        place = rng.randrange(64)
        wrong.append(given[:place] + rng.choice([d for d in "0123456789abcdef" if d != given[place]]) + given[place + 1:])
    for value in wrong:
        assert s3.use_presigned("GET", f"{head}={value}").status in (400, 403), value


def test_expect_counts_when_it_is_signed(s3: S3, bucket: str):
    """botocore signs `Expect` in some settings; stripping it before the check breaks the signature."""
    target = object_target(bucket, "k")
    headers = [("Expect", "100-continue")]
    signed = ["expect", "host", "x-amz-content-sha256", "x-amz-date"]
    response = s3.request("PUT", target, headers, BODY, signed=signed)
    assert_status(response, 200)
    assert s3.head(bucket, "k").get("etag") == md5_etag(BODY)
