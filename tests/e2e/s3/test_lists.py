"""ListObjectsV2: parameters, pages, and random keys compared with a Python model."""

import random
from dataclasses import dataclass
import xml.etree.ElementTree as ElementTree

import pytest

from harness.expect import assert_error, assert_status, choice
from harness.s3 import NAMESPACE, S3, Listing, md5_etag, parse_listing, xml

SEEDS = range(6)
KEYS_PER_SEED = 120
QUERIES_PER_SEED = 30
ALPHABETS = ["ab/", "a/", "ab-/ é", "abc", "/", "a!b\"c'd&<>/+%?", "aé日🗝/\u0301", "a.~_-/ZzAa09", "ab//"]


@dataclass(frozen=True)
class Query:
    """The parameters of one listing."""

    prefix: str = ""
    delimiter: str = ""
    start_after: str = ""
    max_keys: int = 1000

    def parameters(self) -> dict[str, str | int]:
        """Returns the parameters as the client sends them, without the empty ones."""
        given = {"prefix": self.prefix, "delimiter": self.delimiter, "start_after": self.start_after}
        return {name: value for name, value in given.items() if value} | {"max_keys": self.max_keys}


def model_entries(keys: list[str], query: Query) -> list[tuple[str, str]]:
    """Returns all entries of a listing in S3's order, each as ("key" | "prefix", name)."""
    entries: list[tuple[str, str]] = []
    for key in sorted(keys, key=str.encode):
        if not key.startswith(query.prefix) or key.encode() <= query.start_after.encode():
            continue
        rest = key[len(query.prefix) :]
        if query.delimiter and query.delimiter in rest:
            end = rest.index(query.delimiter) + len(query.delimiter)
            entry = ("prefix", query.prefix + rest[:end])
        else:
            entry = ("key", key)
        if not entries or entries[-1] != entry:
            entries.append(entry)
    return entries


def assert_page(page: Listing, expected: list[tuple[str, str]], more: bool, about: object) -> None:
    """Asserts that a page has exactly these entries and reports correctly whether more follow."""
    assert page.keys == [name for kind, name in expected if kind == "key"], about
    assert page.prefixes == [name for kind, name in expected if kind == "prefix"], about
    assert page.key_count == len(expected), about
    assert page.truncated == more, about
    assert (page.token is not None) == more, about


def check_query(s3: S3, bucket: str, keys: list[str], query: Query) -> None:
    """Reads all pages of one listing and compares them with the model."""
    left, token = model_entries(keys, query), {}
    while True:
        page = s3.list(bucket, encoding_type="url", **query.parameters(), **token)
        now, left = left[: query.max_keys], left[query.max_keys :]
        assert_page(page, now, bool(left), (query, token))
        if not left:
            return
        token = {"continuation_token": page.token}


def random_keys(rng: random.Random) -> list[str]:
    """Returns random keys over one alphabet, including keys with leading and repeated slashes."""
    alphabet = rng.choice(ALPHABETS)
    keys = {"".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))) for _ in range(KEYS_PER_SEED)}
    return sorted(keys)


def random_query(rng: random.Random, keys: list[str]) -> Query:
    """Returns random parameters cut out of existing keys, so that most of them match something."""
    key = rng.choice(keys)
    prefix = rng.choice(("", key[: rng.randint(0, 3)], key, rng.choice(keys)[:2]))
    delimiter = rng.choice(("", "/", "/", "a", "ab", "//", key[-1:], "zz"))
    start = rng.choice(("", "", rng.choice(keys), rng.choice(keys)[:2], rng.choice(keys) + "!", "\U0010ffff"))
    return Query(prefix, delimiter, start, rng.choice((1, 2, 3, 7, 50, 1000)))


@pytest.mark.parametrize("seed", SEEDS)
def test_listings_of_random_keys_match_the_model(s3: S3, bucket: str, seed: int):
    """Covers order, prefixes, delimiters of any length and pages of any size, also after deletions."""
    rng = random.Random(seed)
    keys = random_keys(rng)
    with s3.connect() as connection:
        for key in rng.sample(keys, len(keys)):
            target = f"/{bucket}/" + "".join(f"%{byte:02X}" for byte in key.encode())
            assert_status(s3.request("PUT", target, body=b"", connection=connection), 200)
    for _ in range(QUERIES_PER_SEED):
        check_query(s3, bucket, keys, random_query(rng, keys))
    for key in rng.sample(keys, len(keys) // 3):
        assert s3.delete(bucket, key).status == 204
        keys.remove(key)
    for _ in range(QUERIES_PER_SEED // 2):
        check_query(s3, bucket, keys, random_query(rng, keys))


def test_pages_hold_at_most_1000_entries(s3: S3, bucket: str):
    """A larger max-keys is reduced to 1000. The pages have no gap and no duplicate between them."""
    keys = [f"p/{number:05}" for number in range(2100)]
    with s3.connect() as connection:
        for key in keys:
            s3.request("PUT", f"/{bucket}/{key}", body=b"", connection=connection)
    for asked in (1000, 5000, 2**31 - 1):
        page = s3.list(bucket, max_keys=asked)
        assert page.keys == keys[:1000] and page.truncated and page.key_count == 1000
        assert page.root.findtext("MaxKeys") == "1000"
    check_query(s3, bucket, keys, Query(max_keys=999))
    assert s3.list(bucket, delimiter="/").prefixes == ["p/"]


def test_tokens_stay_valid_across_writes_and_deletes(s3: S3, bucket: str):
    """A token marks a position in the key order: later keys are listed even if new, earlier keys are not."""
    for key in ("b", "d", "f"):
        s3.put(bucket, key)
    first = s3.list(bucket, max_keys=2)
    s3.put(bucket, "a")
    s3.put(bucket, "e")
    s3.delete(bucket, "d")
    assert s3.list(bucket, continuation_token=first.token).keys == ["e", "f"]


# Parameters


@pytest.mark.parametrize("value", ["-1", "abc", "1.5", "0x10", "+5", "99999999999999999999999"])
def test_invalid_max_keys_is_refused(s3: S3, bucket: str, value: str):
    """400 InvalidArgument. A number that is too large means the limit; other servers may refuse it."""
    response = s3.request("GET", f"/{bucket}?list-type=2&max-keys={value.replace('+', '%2B')}")
    if value.startswith("999"):
        assert response.status in choice(200, 400), response.status
        return
    assert_error(response, 400, "InvalidArgument")


def test_max_keys_zero_returns_an_empty_complete_page(s3: S3, bucket: str):
    """The page is empty and not truncated, although the bucket has keys."""
    s3.put(bucket, "k")
    assert_page(s3.list(bucket, max_keys=0), [], False, "max-keys=0")


@pytest.mark.parametrize("token", ["nonsense", "", "AAAA", "!!!!", "%00", "e" * 3000])
def test_invalid_continuation_tokens_are_refused(s3: S3, bucket: str, token: str):
    """400. A token is opaque: a client cannot make one from a key."""
    response = s3.request("GET", f"/{bucket}?list-type=2&continuation-token={token}")
    assert_error(response, 400, "InvalidArgument")


def test_continuation_token_overrides_start_after(s3: S3, bucket: str):
    """A client that repeats start-after on every page still advances. start-after is echoed."""
    for key in "abcdef":
        s3.put(bucket, key)
    first = s3.list(bucket, start_after="a", max_keys=2)
    assert first.keys == ["b", "c"] and first.root.findtext("StartAfter") == "a"
    second = s3.list(bucket, start_after="a", max_keys=2, continuation_token=first.token)
    assert second.keys == ["d", "e"]
    assert second.root.findtext("ContinuationToken") == first.token


def test_page_has_all_documented_fields(s3: S3, bucket: str):
    """Covers Name, Prefix, Delimiter, MaxKeys, KeyCount, IsTruncated and Contents, in the S3 namespace."""
    s3.put(bucket, "a/b", b"12345")
    response = s3.list_page(bucket, prefix="a/", delimiter="/")
    assert ElementTree.fromstring(response.body).tag == f"{{{NAMESPACE}}}ListBucketResult"
    assert response.get("content-type").split(";")[0] == "application/xml"
    root = xml(response)
    fields = {name: root.findtext(name) for name in ("Name", "Prefix", "Delimiter", "MaxKeys", "KeyCount", "IsTruncated")}
    assert fields == {"Name": bucket, "Prefix": "a/", "Delimiter": "/", "MaxKeys": "1000", "KeyCount": "1", "IsTruncated": "false"}
    item = root.find("Contents")
    assert item.findtext("Key") == "a/b" and item.findtext("Size") == "5" and item.findtext("StorageClass") == "STANDARD"
    assert item.findtext("ETag") == md5_etag(b"12345")
    assert item.find("Owner") is None


def test_empty_bucket_lists_nothing(s3: S3, bucket: str):
    """KeyCount and IsTruncated are present in an empty page too."""
    assert_page(s3.list(bucket), [], False, "empty")
    assert_page(s3.list(bucket, prefix="x", delimiter="/"), [], False, "empty")


def test_owner_is_listed_only_with_fetch_owner(s3: S3, bucket: str):
    """Owner is absent by default and with fetch-owner=false."""
    s3.put(bucket, "k")
    assert s3.list(bucket, fetch_owner="true").root.find("Contents/Owner/ID") is not None
    assert s3.list(bucket, fetch_owner="false").root.find("Contents/Owner") is None


def test_key_and_prefix_of_the_same_name_are_both_listed(s3: S3, bucket: str):
    """The key `a` and the prefix `a/` do not hide each other."""
    for key in ("a", "a/b", "a/c", "a-", "a0"):
        s3.put(bucket, key)
    page = s3.list(bucket, delimiter="/")
    assert page.keys == ["a", "a-", "a0"] and page.prefixes == ["a/"]
    assert s3.list(bucket, prefix="a/", delimiter="/").keys == ["a/b", "a/c"]


def test_url_encoding_applies_to_every_name(s3: S3, bucket: str):
    """Covers Key, CommonPrefixes, Prefix, Delimiter and StartAfter."""
    for key in ("x +%/é&", "x +%/é/1", "z"):
        s3.put(bucket, key)
    root = xml(s3.list_page(bucket, prefix="x +%", delimiter="é/", start_after="x ", encoding_type="url"))
    assert root.findtext("EncodingType") == "url"
    sent = {
        "Prefix": root.findtext("Prefix"), "Delimiter": root.findtext("Delimiter"),
        "StartAfter": root.findtext("StartAfter"), "Key": root.findtext("Contents/Key"),
        "CommonPrefix": root.findtext("CommonPrefixes/Prefix"),
    }
    for name, value in sent.items():
        assert value and not set(value) & set(" é&"), (name, value)
        assert "%" in value or "+" in value, (name, value)
    assert sent["CommonPrefix"].replace("+", "%20").upper() == "X%20%2B%25/%C3%A9/".upper()


def test_unknown_encoding_type_is_refused(s3: S3, bucket: str):
    """`url` is the only valid encoding-type."""
    assert_error(s3.list_page(bucket, encoding_type="base64"), 400, "InvalidArgument")


def test_keys_with_xml_markup_are_escaped(s3: S3, bucket: str):
    """Markup, quotes, line breaks and outer spaces are unchanged after XML parsing."""
    keys = sorted(["a&b", "a<b>", 'a"b', "a'b", "a\rb", "a\nb", "a\tb", " lead", "trail ", "]]>"], key=str.encode)
    for key in keys:
        s3.put(bucket, key)
    assert s3.list(bucket).keys == keys
    assert s3.list(bucket, encoding_type="url").keys == keys


@pytest.mark.parametrize("key", ["a\x01b", "a\x1fb", "a\x0bb", "a\ufffeb", "a\uffffb"])
def test_keys_with_characters_forbidden_in_xml(s3: S3, bucket: str, key: str):
    """They are listed with encoding-type=url. Without it, the response is still well-formed XML."""
    s3.put(bucket, key)
    assert s3.list(bucket, encoding_type="url").keys == [key]
    response = s3.list_page(bucket)
    assert response.status in choice(400, 200, 501), response.status
    xml(response)


def test_listing_a_missing_bucket_is_refused(s3: S3):
    """NoSuchBucket, also with max-keys=0."""
    assert_error(s3.list_page("no-such-bucket-here"), 404, "NoSuchBucket")
    assert_error(s3.list_page("no-such-bucket-here", max_keys=0), 404, "NoSuchBucket")


def test_duplicate_parameters_are_accepted(s3: S3, bucket: str):
    """200. Other servers may refuse them with 400."""
    response = s3.request("GET", f"/{bucket}?list-type=2&prefix=a&prefix=b")
    assert response.status in choice(200, 400), response.status


def test_listings_include_every_acknowledged_write(s3: S3, bucket: str):
    """Listings are read-after-write consistent across slices, for PUT and DELETE."""
    for number in range(60):
        s3.put(bucket, f"{number:03}", b"x" * (number * 600))
        assert len(s3.list(bucket).keys) == number + 1
    for number in range(60):
        s3.delete(bucket, f"{number:03}")
        assert len(s3.list(bucket).keys) == 59 - number


def test_listed_size_and_etag_match_the_object(s3: S3, bucket: str):
    """After an overwrite, the listing has the size and ETag of the new object."""
    for body in (b"1", b"22" * 50_000, b""):
        s3.put(bucket, "k", body)
        item = parse_listing(s3.list_page(bucket)).root.find("Contents")
        assert (item.findtext("Size"), item.findtext("ETag")) == (str(len(body)), md5_etag(body))
