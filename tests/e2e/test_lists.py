"""Attacks ListObjectsV2: every page of seeded random key sets is compared with a model in Python."""

import random
from dataclasses import dataclass
import xml.etree.ElementTree as ElementTree

import pytest

from harness.expect import assert_error, assert_status
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
        """As the client sends them; empty ones are left out."""
        given = {"prefix": self.prefix, "delimiter": self.delimiter, "start_after": self.start_after}
        return {name: value for name, value in given.items() if value} | {"max_keys": self.max_keys}


def model_entries(keys: list[str], query: Query) -> list[tuple[str, str]]:
    """All entries of a listing in order, each a ("key" | "prefix", name), as S3 defines them."""
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
    """A page holds exactly these entries, and says truthfully whether more follow."""
    assert page.keys == [name for kind, name in expected if kind == "key"], about
    assert page.prefixes == [name for kind, name in expected if kind == "prefix"], about
    assert page.key_count == len(expected), about
    assert page.truncated == more, about
    assert (page.token is not None) == more, about


def check_query(s3: S3, bucket: str, keys: list[str], query: Query) -> None:
    """Walk all pages of one listing beside the model."""
    left, token = model_entries(keys, query), {}
    while True:
        page = s3.list(bucket, encoding_type="url", **query.parameters(), **token)
        now, left = left[: query.max_keys], left[query.max_keys :]
        assert_page(page, now, bool(left), (query, token))
        if not left:
            return
        token = {"continuation_token": page.token}


def random_keys(rng: random.Random) -> list[str]:
    """A set of keys over one alphabet; a leading slash and runs of slashes are welcome."""
    alphabet = rng.choice(ALPHABETS)
    keys = {"".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))) for _ in range(KEYS_PER_SEED)}
    return sorted(keys)


def random_query(rng: random.Random, keys: list[str]) -> Query:
    """Parameters that bite: cut out of the keys themselves."""
    key = rng.choice(keys)
    prefix = rng.choice(("", key[: rng.randint(0, 3)], key, rng.choice(keys)[:2]))
    delimiter = rng.choice(("", "/", "/", "a", "ab", "//", key[-1:], "zz"))
    start = rng.choice(("", "", rng.choice(keys), rng.choice(keys)[:2], rng.choice(keys) + "!", "\U0010ffff"))
    return Query(prefix, delimiter, start, rng.choice((1, 2, 3, 7, 50, 1000)))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_key_sets_list_like_the_model(s3: S3, bucket: str, seed: int):
    """Order, prefixes, delimiters of any length, pages of any size."""
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


def test_more_than_a_thousand_keys(s3: S3, bucket: str):
    """The page bound is 1000 whatever is asked; the pages join without gap or repeat."""
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


def test_keys_written_between_pages(s3: S3, bucket: str):
    """A token marks a place in the order: what is written behind it shows, what lies before it does not repeat."""
    for key in ("b", "d", "f"):
        s3.put(bucket, key)
    first = s3.list(bucket, max_keys=2)
    s3.put(bucket, "a")
    s3.put(bucket, "e")
    s3.delete(bucket, "d")
    assert s3.list(bucket, continuation_token=first.token).keys == ["e", "f"]


# Parameters


@pytest.mark.parametrize("value", ["-1", "abc", "1.5", "0x10", "+5", "99999999999999999999999"])
def test_bad_max_keys(s3: S3, bucket: str, value: str):
    """Not a count. A number too large to hold may also be taken as the bound."""
    response = s3.request("GET", f"/{bucket}?list-type=2&max-keys={value.replace('+', '%2B')}")
    if value.startswith("999") and response.status == 200:
        return
    assert_error(response, 400, "InvalidArgument")


def test_max_keys_zero(s3: S3, bucket: str):
    """Empty, and not truncated, though there are keys."""
    s3.put(bucket, "k")
    assert_page(s3.list(bucket, max_keys=0), [], False, "max-keys=0")


@pytest.mark.parametrize("token", ["nonsense", "", "AAAA", "!!!!", "%00", "e" * 3000])
def test_bad_tokens(s3: S3, bucket: str, token: str):
    """Refused; a token is not a key to be guessed."""
    response = s3.request("GET", f"/{bucket}?list-type=2&continuation-token={token}")
    assert_error(response, 400, "InvalidArgument")


def test_start_after_is_echoed_and_yields_to_the_token(s3: S3, bucket: str):
    """A client that repeats it on every page still moves on."""
    for key in "abcdef":
        s3.put(bucket, key)
    first = s3.list(bucket, start_after="a", max_keys=2)
    assert first.keys == ["b", "c"] and first.root.findtext("StartAfter") == "a"
    second = s3.list(bucket, start_after="a", max_keys=2, continuation_token=first.token)
    assert second.keys == ["d", "e"]
    assert second.root.findtext("ContinuationToken") == first.token


def test_what_a_page_says_about_itself(s3: S3, bucket: str):
    """Name, Prefix, Delimiter, MaxKeys, KeyCount and IsTruncated, in the S3 namespace."""
    s3.put(bucket, "a/b", b"12345")
    response = s3.list_page(bucket, prefix="a/", delimiter="/")
    assert ElementTree.fromstring(response.body).tag == f"{{{NAMESPACE}}}ListBucketResult"
    assert response.get("content-type").split(";")[0] == "application/xml"
    root = xml(response)
    said = {name: root.findtext(name) for name in ("Name", "Prefix", "Delimiter", "MaxKeys", "KeyCount", "IsTruncated")}
    assert said == {"Name": bucket, "Prefix": "a/", "Delimiter": "/", "MaxKeys": "1000", "KeyCount": "1", "IsTruncated": "false"}
    item = root.find("Contents")
    assert item.findtext("Key") == "a/b" and item.findtext("Size") == "5" and item.findtext("StorageClass") == "STANDARD"
    assert item.findtext("ETag") == md5_etag(b"12345")
    assert item.find("Owner") is None


def test_an_empty_bucket(s3: S3, bucket: str):
    """KeyCount and IsTruncated are sent even so."""
    assert_page(s3.list(bucket), [], False, "empty")
    assert_page(s3.list(bucket, prefix="x", delimiter="/"), [], False, "empty")


def test_fetch_owner(s3: S3, bucket: str):
    """Only on request."""
    s3.put(bucket, "k")
    assert s3.list(bucket, fetch_owner="true").root.find("Contents/Owner/ID") is not None
    assert s3.list(bucket, fetch_owner="false").root.find("Contents/Owner") is None


def test_a_key_beside_a_folder_of_its_name(s3: S3, bucket: str):
    """`a` beside `a/…` shows both, in order."""
    for key in ("a", "a/b", "a/c", "a-", "a0"):
        s3.put(bucket, key)
    page = s3.list(bucket, delimiter="/")
    assert page.keys == ["a", "a-", "a0"] and page.prefixes == ["a/"]
    assert s3.list(bucket, prefix="a/", delimiter="/").keys == ["a/b", "a/c"]


def test_url_encoding_covers_everything(s3: S3, bucket: str):
    """Keys, prefixes, prefix, delimiter and start-after."""
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


def test_unknown_encoding_type(s3: S3, bucket: str):
    """Only `url` exists."""
    assert_error(s3.list_page(bucket, encoding_type="base64"), 400, "InvalidArgument")


def test_names_that_xml_must_escape(s3: S3, bucket: str):
    """Markup, quotes and carriage returns survive the way through XML."""
    keys = sorted(["a&b", "a<b>", 'a"b', "a'b", "a\rb", "a\nb", "a\tb", " lead", "trail ", "]]>"], key=str.encode)
    for key in keys:
        s3.put(bucket, key)
    assert s3.list(bucket).keys == keys
    assert s3.list(bucket, encoding_type="url").keys == keys


@pytest.mark.parametrize("key", ["a\x01b", "a\x1fb", "a\x0bb", "a\ufffeb", "a\uffffb"])
def test_names_that_xml_cannot_carry(s3: S3, bucket: str, key: str):
    """Listable with encoding-type=url; without it the answer is at least well-formed XML or an error that says so."""
    s3.put(bucket, key)
    assert s3.list(bucket, encoding_type="url").keys == [key]
    response = s3.list_page(bucket)
    assert response.status in (200, 400, 501), response.status
    xml(response)


def test_a_missing_bucket(s3: S3):
    """NoSuchBucket under every parameter."""
    assert_error(s3.list_page("no-such-bucket-here"), 404, "NoSuchBucket")
    assert_error(s3.list_page("no-such-bucket-here", max_keys=0), 404, "NoSuchBucket")


def test_parameters_given_twice(s3: S3, bucket: str):
    """Refused or the first one taken, but never an error of the server's own."""
    response = s3.request("GET", f"/{bucket}?list-type=2&prefix=a&prefix=b")
    assert response.status in (200, 400), response.status


def test_list_sees_every_acknowledged_write_at_once(s3: S3, bucket: str):
    """Read after write for lists, across slices."""
    for number in range(60):
        s3.put(bucket, f"{number:03}", b"x" * (number * 600))
        assert len(s3.list(bucket).keys) == number + 1
    for number in range(60):
        s3.delete(bucket, f"{number:03}")
        assert len(s3.list(bucket).keys) == 59 - number


def test_sizes_and_tags_in_lists_are_those_of_the_objects(s3: S3, bucket: str):
    """And after an overwrite those of the new one."""
    for body in (b"1", b"22" * 50_000, b""):
        s3.put(bucket, "k", body)
        item = parse_listing(s3.list_page(bucket)).root.find("Contents")
        assert (item.findtext("Size"), item.findtext("ETag")) == (str(len(body)), md5_etag(body))
