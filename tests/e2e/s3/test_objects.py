"""Object PUT, GET, HEAD and DELETE: digests, checksums, ranges, conditions, metadata, unusual keys."""

import base64
import hashlib
import random
import re
import zlib
from email.header import decode_header, make_header
from email.utils import format_datetime, parsedate_to_datetime
import datetime as dt

import pytest

from harness.expect import assert_error, assert_status, choice
from harness.s3 import S3, md5_etag, object_target, xml
from harness.wire import Connection, Response, encode_head

BODY = bytes(range(256)) * 40
SIZES = [0, 1, 4095, 4096, 4097, 16383, 16384, 16385, 65535, 65536, 65537, 131072, 1_000_003, 8_388_608, 20_000_001]


def b64(data: bytes) -> str:
    """Returns base64 text for a header value."""
    return base64.b64encode(data).decode()


def seeded_bytes(size: int, seed: int = 1) -> bytes:
    """Returns incompressible bytes that are the same in every run."""
    return random.Random(seed * 1_000_003 + size).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
def test_get_returns_the_bytes_that_were_put(s3: S3, bucket: str, size: int):
    """Sizes around every boundary: inline or volume storage, block, allocation unit, several writes in flight."""
    body = seeded_bytes(size)
    assert s3.put(bucket, "k", body).get("etag") == md5_etag(body)
    response = assert_status(s3.get(bucket, "k"), 200)
    assert response.body == body
    head = assert_status(s3.head(bucket, "k"), 200)
    for answer in (response, head):
        assert answer.get("etag") == md5_etag(body)
        assert answer.get("content-length") == str(size)
        assert answer.get("accept-ranges") == "bytes"
        assert answer.get("content-type") == "binary/octet-stream"


def test_last_modified_is_the_same_everywhere(s3: S3, bucket: str):
    """Headers use the RFC 7231 form, XML uses ISO 8601 with milliseconds and Z. Both are close to the current time."""
    s3.put(bucket, "k", BODY)
    header = s3.head(bucket, "k").get("last-modified")
    assert re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT", header)
    listed = s3.list(bucket).root.findtext("Contents/LastModified")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", listed)
    in_header, in_list = parsedate_to_datetime(header), dt.datetime.fromisoformat(listed)
    assert abs((in_list - in_header).total_seconds()) < 1
    assert abs((dt.datetime.now(dt.timezone.utc) - in_list).total_seconds()) < 60


def test_overwrite_replaces_everything(s3: S3, bucket: str):
    """No body, type or metadata of the old object remains, when small (inline) and large (volume) objects alternate."""
    s3.put(bucket, "k", seeded_bytes(300_000), [("x-amz-meta-old", "1"), ("Content-Type", "text/old")])
    s3.put(bucket, "k", b"new", [("x-amz-meta-new", "2")])
    response = s3.get(bucket, "k")
    assert response.body == b"new"
    assert response.get("x-amz-meta-old") is None and response.get("x-amz-meta-new") == "2"
    assert response.get("content-type") == "binary/octet-stream"
    s3.put(bucket, "k", seeded_bytes(300_000, seed=2))
    assert s3.get(bucket, "k").body == seeded_bytes(300_000, seed=2)


def test_delete_is_idempotent(s3: S3, bucket: str):
    """DELETE answers 204 whether or not the key exists."""
    s3.put(bucket, "k", BODY)
    for _ in range(3):
        assert s3.delete(bucket, "k").status == 204
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")
    assert s3.head(bucket, "k").status == 404
    assert s3.list(bucket).keys == []


# Digests and checksums


@pytest.mark.parametrize("value", ["", "nonsense", "AAAA", b64(b"x" * 15), b64(b"x" * 17), "=" * 24, "é"])
def test_malformed_content_md5_is_refused(s3: S3, bucket: str, value: str):
    """The value must be base64 of exactly 16 bytes."""
    response = s3.request("PUT", object_target(bucket, "k"), [("Content-MD5", value)], BODY)
    assert_error(response, 400, "InvalidDigest")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


@pytest.mark.parametrize("size", [10, 500_000])
def test_wrong_content_md5_is_refused(s3: S3, bucket: str, size: int):
    """The answer is BadDigest and the previous object is unchanged."""
    s3.put(bucket, "k", b"before")
    headers = [("Content-MD5", b64(hashlib.md5(b"other").digest()))]
    assert_error(s3.request("PUT", object_target(bucket, "k"), headers, b"x" * size), 400, "BadDigest")
    assert s3.get(bucket, "k").body == b"before"
    good = [("Content-MD5", b64(hashlib.md5(b"x" * size).digest()))]
    s3.put(bucket, "k", b"x" * size, good)


def crc32c(data: bytes) -> int:
    """Computes CRC-32C bit by bit: slow, but easy to verify."""
    return crc_reflected(data, 0x82F63B78, 32)


def crc64nvme(data: bytes) -> int:
    """Computes CRC-64/NVME bit by bit."""
    return crc_reflected(data, 0x9A6C9329AC4BC9B5, 64)


def crc_reflected(data: bytes, polynomial: int, width: int) -> int:
    """Computes a reflected CRC whose initial value and final XOR are all ones."""
    crc = (1 << width) - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (polynomial if crc & 1 else 0)
    return crc ^ ((1 << width) - 1)


CHECKSUMS = {
    "crc32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "crc32c": lambda data: crc32c(data).to_bytes(4, "big"),
    "crc64nvme": lambda data: crc64nvme(data).to_bytes(8, "big"),
    "sha1": lambda data: hashlib.sha1(data).digest(),
    "sha256": lambda data: hashlib.sha256(data).digest(),
}


def test_reference_checksums_match_published_values():
    """The tests below depend on these implementations, so they are checked against the published check values."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc64nvme(b"123456789") == 0xAE8B14860A799888


@pytest.mark.parametrize("algorithm", CHECKSUMS)
@pytest.mark.parametrize("size", [0, 1000, 70_000])
def test_checksum_headers_are_verified_stored_and_returned(s3: S3, bucket: str, algorithm: str, size: int):
    """A correct checksum is stored, and returned on request. A wrong or malformed one is refused; nothing is stored."""
    body, name = seeded_bytes(size), f"x-amz-checksum-{algorithm}"
    right = b64(CHECKSUMS[algorithm](body))
    put = s3.put(bucket, "k", body, [(name, right), ("x-amz-sdk-checksum-algorithm", algorithm.upper())])
    assert put.get(name) == right
    for mode in ("ENABLED", "enabled"):
        for answer in (s3.get(bucket, "k", [("x-amz-checksum-mode", mode)]), s3.head(bucket, "k", [("x-amz-checksum-mode", mode)])):
            assert answer.get(name) == right and answer.get("x-amz-checksum-type") == "FULL_OBJECT"
    assert s3.get(bucket, "k").get(name) is None, "the checksum was returned without x-amz-checksum-mode"
    wrong = b64(CHECKSUMS[algorithm](body + b"x"))
    assert_error(s3.request("PUT", object_target(bucket, "other"), [(name, wrong)], body), 400, "BadDigest")
    for value in ("nonsense!", b64(b"short")):
        assert s3.request("PUT", object_target(bucket, "other"), [(name, value)], body).status == 400
    assert_error(s3.get(bucket, "other"), 404, "NoSuchKey")


def test_ranged_response_has_no_full_object_checksum(s3: S3, bucket: str):
    """SDKs would compare the range with the checksum of the full object and fail."""
    s3.put(bucket, "k", BODY, [("x-amz-checksum-crc32", b64(CHECKSUMS["crc32"](BODY)))])
    answer = s3.get(bucket, "k", [("x-amz-checksum-mode", "ENABLED"), ("Range", "bytes=0-9")])
    assert answer.status == 206 and answer.get("x-amz-checksum-crc32") is None


@pytest.mark.parametrize("algorithm", ["md5", "sha512", "xxhash64", "xxhash3", "xxhash128"])
def test_newer_checksum_algorithms_are_not_implemented(s3: S3, bucket: str, algorithm: str):
    """Ignoring the header would let the client believe that its checksum was verified."""
    for header in ((f"x-amz-checksum-{algorithm}", b64(b"0" * 8)), ("x-amz-sdk-checksum-algorithm", algorithm.upper())):
        answer = s3.request("PUT", object_target(bucket, "k"), [header], BODY)
        assert "s3.compatibility" in assert_error(answer, 501, "NotImplemented").findtext("Message")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


def test_contradictory_checksum_headers_are_refused(s3: S3, bucket: str):
    """The algorithm header names a different algorithm than the checksum header."""
    headers = [("x-amz-checksum-crc32", b64(CHECKSUMS["crc32"](BODY))), ("x-amz-sdk-checksum-algorithm", "SHA256")]
    assert s3.request("PUT", object_target(bucket, "k"), headers, BODY).status == 400
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")


# Ranges

RANGES = [
    ("bytes=0-0", (0, 0)), ("bytes=0-9", (0, 9)), ("bytes=5-", (5, 99)), ("bytes=-1", (99, 99)), ("bytes=-100", (0, 99)),
    ("bytes=-1000", (0, 99)), ("bytes=99-99", (99, 99)), ("bytes=90-1000", (90, 99)), ("bytes=0-", (0, 99)),
    ("bytes=0-99999999999999999999999", (0, 99)),
]
WHOLE = ["bytes=", "bytes=a-b", "bytes=5-2", "bytes=0-1,5-6", "items=0-5", "bytes 0-5", "bytes=1-2-3", "bytes=--1", "0-5", "bytes=0x0-5"]
BEYOND = ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("text", "span"), RANGES)
def test_valid_range_returns_206(s3: S3, bucket: str, method: str, text: str, span: tuple[int, int]):
    """The response is 206 with Content-Range, for GET and for HEAD."""
    body = seeded_bytes(100)
    s3.put(bucket, "k", body)
    response = assert_status(s3.request(method, object_target(bucket, "k"), [("Range", text)]), 206)
    assert response.get("content-range") == f"bytes {span[0]}-{span[1]}/100"
    assert response.get("content-length") == str(span[1] - span[0] + 1)
    assert response.body == (body[span[0] : span[1] + 1] if method == "GET" else b"")
    assert response.get("etag") == md5_etag(body)


@pytest.mark.parametrize("text", WHOLE)
def test_invalid_or_multiple_ranges_return_the_whole_object(s3: S3, bucket: str, text: str):
    """A range that cannot be parsed, or a list of ranges, is ignored: the response is 200 with the whole object."""
    s3.put(bucket, "k", BODY)
    response = assert_status(s3.get(bucket, "k", [("Range", text)]), 200)
    assert response.body == BODY and response.get("content-range") is None


@pytest.mark.parametrize("text", BEYOND)
def test_range_beyond_the_end_is_refused(s3: S3, bucket: str, text: str):
    """The response is 416 and carries the object's size, so that clients can correct the range."""
    s3.put(bucket, "k", seeded_bytes(100))
    response = s3.get(bucket, "k", [("Range", text)])
    assert_error(response, 416, "InvalidRange")
    assert response.get("content-range") == "bytes */100"
    assert s3.head(bucket, "k", [("Range", text)]).status == 416


@pytest.mark.parametrize("text", ["bytes=0-0", "bytes=0-", "bytes=-1", "bytes=5-6"])
def test_every_range_of_an_empty_object_is_refused(s3: S3, bucket: str, text: str):
    """An empty object has no byte that could satisfy a range."""
    s3.put(bucket, "k")
    assert_error(s3.get(bucket, "k", [("Range", text)]), 416, "InvalidRange")


def test_ranges_across_block_boundaries(s3: S3, bucket: str):
    """Ranges that begin or end around block boundaries, chosen at random from a fixed seed."""
    rng, body = random.Random(7), seeded_bytes(3_000_017)
    s3.put(bucket, "k", body)
    edges = [n * 65536 + d for n in range(46) for d in (-1, 0, 1) if 0 <= n * 65536 + d < len(body)]
    with s3.connect() as connection:
        for _ in range(150):
            first, last = sorted((rng.choice(edges), rng.choice((rng.randrange(len(body)), rng.choice(edges)))))
            headers = [("Range", f"bytes={first}-{last}")]
            response = s3.request("GET", object_target(bucket, "k"), headers, connection=connection)
            assert response.status == 206 and response.body == body[first : last + 1], (first, last)


def test_if_range_applies_only_to_an_unchanged_object(s3: S3, bucket: str):
    """The range is honoured only if the validator still matches; otherwise the whole object is returned."""
    s3.put(bucket, "k", BODY)
    modified = s3.head(bucket, "k").get("last-modified")
    for value, status in ((md5_etag(BODY), 206), ('"other"', 200), (f"W/{md5_etag(BODY)}", 200), (modified, 206), (past(), 200)):
        response = s3.get(bucket, "k", [("Range", "bytes=0-9"), ("If-Range", value)])
        assert response.status == status, value
        assert response.body == (BODY[:10] if status == 206 else BODY)


def past(days: int = 1) -> str:
    """Returns an HTTP date some days ago."""
    return format_datetime(dt.datetime.now(dt.timezone.utc) - dt.timedelta(days=days), usegmt=True)


def future() -> str:
    """Returns an HTTP date one day in the future."""
    return past(-1)


# Conditional reads


ETAG = md5_etag(BODY)
CONDITIONS = [
    ({"If-Match": ETAG}, 200), ({"If-Match": ETAG.strip('"')}, 200), ({"If-Match": '"other"'}, 412), ({"If-Match": "*"}, 200),
    ({"If-Match": f'"other", {ETAG}'}, 200), ({"If-Match": f'"a","b"'}, 412), ({"If-None-Match": ETAG}, 304),
    ({"If-None-Match": f"W/{ETAG}"}, 304), ({"If-None-Match": '"other"'}, 200), ({"If-None-Match": "*"}, 304),
    ({"If-None-Match": f'"x", W/{ETAG}, "y"'}, 304), ({"If-None-Match": ETAG.strip('"')}, 304),
    ({"If-Modified-Since": past()}, 200), ({"If-Modified-Since": future()}, 200), ({"If-Unmodified-Since": past()}, 412),
    ({"If-Unmodified-Since": future()}, 200), ({"If-Match": ETAG, "If-Unmodified-Since": past()}, 200),
    ({"If-None-Match": ETAG, "If-Modified-Since": past()}, 304),
    ({"If-None-Match": '"other"', "If-Modified-Since": future()}, 200),
    ({"If-Modified-Since": "not a date"}, 200), ({"If-Unmodified-Since": "not a date"}, 200),
    ({"If-Match": '"other"', "If-None-Match": ETAG}, 412), ({"If-Match": ETAG, "If-None-Match": ETAG}, 304),
]


@pytest.mark.parametrize(("conditions", "status"), CONDITIONS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_conditional_reads_follow_rfc_7232_precedence(s3: S3, bucket: str, method: str, conditions: dict[str, str], status: int):
    """Each combination of conditions gives the status that RFC 7232, section 6, prescribes."""
    s3.put(bucket, "k", BODY, [("Cache-Control", "max-age=5")])
    response = s3.request(method, object_target(bucket, "k"), list(conditions.items()))
    assert response.status == status, conditions
    if status == 304:
        assert response.body == b"" and response.get("etag") == ETAG
        assert response.get("last-modified") and response.get("cache-control") == "max-age=5"
    elif status == 412 and method == "GET":
        assert_error(response, 412, "PreconditionFailed")


@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"])
def test_all_three_http_date_formats_are_accepted(s3: S3, bucket: str, form: str):
    """The formats are IMF-fixdate (RFC 7231), RFC 850 and asctime."""
    s3.put(bucket, "k", BODY)
    now = dt.datetime.now(dt.timezone.utc)
    earlier, later = (now - dt.timedelta(days=2)).strftime(form), now.strftime(form)
    assert s3.get(bucket, "k", [("If-Modified-Since", later)]).status == 304, later
    assert s3.get(bucket, "k", [("If-Modified-Since", earlier)]).status == 200, earlier
    assert s3.get(bucket, "k", [("If-Unmodified-Since", earlier)]).status == 412, earlier


def test_failed_conditions_override_ranges(s3: S3, bucket: str):
    """304 and 412 take precedence over 206 and 416."""
    s3.put(bucket, "k", BODY)
    assert s3.get(bucket, "k", [("If-None-Match", ETAG), ("Range", "bytes=0-1")]).status == 304
    assert s3.get(bucket, "k", [("If-Match", '"x"'), ("Range", "bytes=999999-")]).status == 412


# Metadata

SYSTEM_HEADERS = [
    ("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-cache, max-age=1"),
    ("Content-Disposition", 'attachment; filename="a b.txt"'), ("Content-Encoding", "gzip"), ("Content-Language", "de, en"),
    ("Expires", "Wed, 21 Oct 2026 07:28:00 GMT"),
]


def test_system_headers_are_stored_and_returned(s3: S3, bucket: str):
    """GET and HEAD return the values exactly as they were sent."""
    s3.put(bucket, "k", BODY, SYSTEM_HEADERS)
    for response in (s3.get(bucket, "k"), s3.head(bucket, "k"), s3.get(bucket, "k", [("Range", "bytes=0-1")])):
        for name, value in SYSTEM_HEADERS:
            assert response.get(name) == value


def test_user_metadata_is_stored_and_returned(s3: S3, bucket: str):
    """Names are lower case, values are trimmed, UTF-8 becomes encoded words and repeated headers are joined.

    Regression: bytes beyond ASCII were returned as they were, and clients that refuse them could not read the object.
    """
    headers = [("X-Amz-Meta-Mixed-Case", "  Value  "), ("x-amz-meta-utf8", "grün 日本"), ("x-amz-meta-empty", ""), ("x-amz-meta-word", "=?UTF-8?Q?a=20b?="),
               ("x-amz-meta-twice", "a"), ("x-amz-meta-twice", "b")]
    s3.put(bucket, "k", BODY, headers)
    for response in (s3.get(bucket, "k"), s3.head(bucket, "k")):
        names = [name for name, _ in response.headers if name.lower().startswith("x-amz-meta-")]
        assert sorted(names) == sorted(name.lower() for name in names), "metadata names must be in lower case"
        assert response.get("x-amz-meta-mixed-case") == "Value"
        assert response.get("x-amz-meta-utf8") == "=?UTF-8?Q?gr=C3=BCn_=E6=97=A5=E6=9C=AC?="
        assert str(make_header(decode_header(response.get("x-amz-meta-utf8")))) == "grün 日本"
        assert response.get("x-amz-meta-word") == "a b"
        assert response.get("x-amz-meta-twice").replace(" ", "") == "a,b"


def test_user_metadata_over_2_kib_is_refused(s3: S3, bucket: str):
    """The limit counts the names, without the prefix, and the values together."""
    s3.put(bucket, "k", BODY, [("x-amz-meta-a", "v" * 2047)])
    assert s3.head(bucket, "k").get("x-amz-meta-a") == "v" * 2047
    response = s3.request("PUT", object_target(bucket, "k2"), [("x-amz-meta-a", "v" * 2048)], BODY)
    assert_error(response, 400, "MetadataTooLarge")
    many = [(f"x-amz-meta-n{number:03}", "v" * 20) for number in range(100)]
    assert_error(s3.request("PUT", object_target(bucket, "k2"), many, BODY), 400, "MetadataTooLarge")
    assert_error(s3.get(bucket, "k2"), 404, "NoSuchKey")


def test_response_headers_can_be_overridden_by_query(s3: S3, bucket: str):
    """Overrides work for signed and presigned GETs, and a value cannot inject another header."""
    s3.put(bucket, "k", BODY, [("Content-Type", "text/html")])
    query = (
        "response-content-type=text%2Fplain&response-content-disposition=attachment%3B%20filename%3D%22x%22"
        "&response-cache-control=no-store&response-content-language=fr&response-expires=Thu%2C%2001%20Dec%202026%2016%3A00%3A00%20GMT"
        "&response-content-encoding=identity"
    )
    url = s3.presigned("GET", object_target(bucket, "k", query))
    for response in (s3.get(bucket, "k", query=query), s3.use_presigned("GET", url)):
        assert response.get("content-type") == "text/plain"
        assert response.get("content-disposition") == 'attachment; filename="x"'
        assert response.get("cache-control") == "no-store"
        assert response.get("content-language") == "fr"
        assert response.get("expires") == "Thu, 01 Dec 2026 16:00:00 GMT"
        assert response.get("content-encoding") == "identity"
        assert response.body == BODY
    empty = s3.get(bucket, "k", query="response-content-type=&response-cache-control")
    assert empty.get("content-type") == "text/html" and empty.get("cache-control") is None, "an empty override must not change a header"
    injected = s3.get(bucket, "k", query="response-content-type=a%0D%0Ax-evil%3A%201")
    assert injected.get("x-evil") is None
    anonymous = s3.send_raw("GET", object_target(bucket, "k", "response-content-type=a"), [("Host", s3.authority)])
    assert anonymous.status in choice(403, 400)


def test_part_number_of_a_single_part_object(s3: S3, bucket: str):
    """Part 1 is the whole object, with status 206. Part 2 does not exist. Zero and words are invalid."""
    s3.put(bucket, "k", BODY)
    for response in (s3.get(bucket, "k", query="partNumber=1"), s3.head(bucket, "k", query="partNumber=1")):
        assert response.status == 206 and response.get("x-amz-mp-parts-count") in ("1", None)
        assert response.get("content-length") == str(len(BODY))
    assert_error(s3.get(bucket, "k", query="partNumber=2"), 416, "InvalidPartNumber")
    for value in ("0", "10001", "-1", "one", ""):
        assert s3.get(bucket, "k", query=f"partNumber={value}").status == 400, value


def test_empty_tagging_counts_as_absent(s3: S3, bucket: str):
    """Some SDKs always send an empty `x-amz-tagging` header."""
    s3.put(bucket, "k", BODY, [("x-amz-tagging", "")])
    assert s3.get(bucket, "k").body == BODY


def test_standard_storage_class_is_accepted(s3: S3, bucket: str):
    """Many tools send it by default."""
    s3.put(bucket, "k", BODY, [("x-amz-storage-class", "STANDARD")])
    assert s3.list(bucket).root.findtext("Contents/StorageClass") == "STANDARD"


def test_wrong_expected_bucket_owner_is_refused(s3: S3, bucket: str):
    """Another account's id is refused and nothing changes. The owner id that ListBuckets returns is accepted."""
    headers = [("x-amz-expected-bucket-owner", "123456789012")]
    assert_error(s3.request("PUT", object_target(bucket, "k"), headers, BODY), 403, "AccessDenied")
    assert_error(s3.get(bucket, "k"), 404, "NoSuchKey")
    owner = xml(s3.request("GET", "/")).findtext("Owner/ID")
    s3.put(bucket, "k", BODY, [("x-amz-expected-bucket-owner", owner)])
    assert_error(s3.get(bucket, "k", headers), 403, "AccessDenied")
    assert_error(s3.delete(bucket, "k", headers), 403, "AccessDenied")
    assert s3.get(bucket, "k").body == BODY


# Unusual keys


def test_a_folder_marker_is_an_ordinary_object(s3: S3, bucket: str):
    """A key that ends in a slash may have a body and is independent of the keys below it."""
    for key, body in (("dir/", b""), ("dir/file", b"1"), ("dir", b"2"), ("other/", BODY)):
        s3.put(bucket, key, body)
    for key, body in (("dir/", b""), ("dir/file", b"1"), ("dir", b"2"), ("other/", BODY)):
        assert s3.get(bucket, key).body == body
    s3.delete(bucket, "dir/")
    assert s3.list(bucket).keys == ["dir", "dir/file", "other/"]


def test_keys_that_look_like_paths_create_no_files(store, s3: S3, bucket: str):
    """Keys such as `..` and absolute paths never create or change an entry in the data directory."""
    before = sorted(entry.name for entry in store.folder.iterdir())
    for key in ("../../../escape", "/etc/escape", "..", "a/../../escape", "con\x00trol"):
        response = s3.request("PUT", object_target(bucket, key), body=BODY)
        assert response.status in choice(200, 400), (key, response.status)
    assert sorted(entry.name for entry in store.folder.iterdir()) == before
    assert not list(store.folder.rglob("*escape*"))


def test_trailing_slash_after_a_bucket_addresses_the_bucket(s3: S3, bucket: str):
    """`/bucket/` must not be read as an object with an empty key."""
    s3.put(bucket, "k", BODY)
    response = assert_status(s3.request("GET", f"/{bucket}/?list-type=2"), 200)
    assert b"<Key>k</Key>" in response.body
    assert s3.request("HEAD", f"/{bucket}/").status == 200


def test_keys_are_not_normalised(s3: S3, bucket: str):
    """Composed and decomposed Unicode, surrounding spaces and letter case all distinguish keys."""
    keys = ["é", "e\u0301", "k", "k ", " k", "K"]
    for number, key in enumerate(keys):
        s3.put(bucket, key, str(number).encode())
    for number, key in enumerate(keys):
        assert s3.get(bucket, key).body == str(number).encode()
    assert len(s3.list(bucket).keys) == len(keys)


def read_slowly(s3: S3, bucket: str, key: str, first: int) -> tuple[Connection, Response]:
    """Begins a GET with a small receive buffer and reads the first bytes of the body."""
    target = object_target(bucket, key)
    connection = s3.connect(receive_buffer_bytes=4096)
    connection.send_must(encode_head("GET", target, s3.signed_head("GET", target)))
    response = connection.read_head()
    response.body = connection.take(first)
    return connection, response


@pytest.mark.parametrize("change", ["overwrite", "delete"])
def test_running_read_is_unaffected_by_overwrite_or_delete(s3: S3, bucket: str, change: str):
    """An overwrite or delete during a GET never changes, truncates or reuses the bytes of the running response."""
    body = seeded_bytes(20_000_000, seed=5)
    s3.put(bucket, "k", body)
    connection, response = read_slowly(s3, bucket, "k", 1000)
    try:
        if change == "delete":
            s3.delete(bucket, "k")
        for number in range(6):
            s3.put(bucket, "k" if change == "overwrite" else f"n{number}", seeded_bytes(20_000_000, seed=10 + number))
        rest = connection.take(len(body) - 1000)
        assert response.body + rest == body
    finally:
        connection.close()
