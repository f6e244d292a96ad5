"""ListObjects, the first version: every page, compared with ListObjectsV2, and boto3's paginator. Extended mode only."""

import random
import xml.etree.ElementTree as ElementTree

import pytest

from harness.boto import make_client
from harness.expect import assert_error
from harness.s3 import S3, xml
from harness.sigv4 import unquote_to_bytes, uri_encode

KEYS = ["a", "a/1", "a/2", "a/b/3", "b c", "b c/4", "c/", "d+é", "e/5", "e/6", "f"]


def page_of(s3: S3, bucket: str, **parameters: str | int) -> ElementTree.Element:
    """Returns one page of the first version of the list."""
    query = "&".join(f"{name.replace('_', '-')}={uri_encode(str(value))}" for name, value in parameters.items())
    response = s3.request("GET", f"/{bucket}?{query}")
    assert response.status == 200, (response.status, response.body)
    return xml(response)


def entries(page: ElementTree.Element) -> list[str]:
    """Returns the keys and common prefixes of a page, decoded and in order."""
    names = [item.findtext("Key") for item in page.findall("Contents")]
    names += [item.findtext("Prefix") for item in page.findall("CommonPrefixes")]
    return sorted((unquote_to_bytes(name).decode() for name in names), key=str.encode)


def all_pages(s3: S3, bucket: str, **parameters: str | int) -> list[str]:
    """Walks a list as clients do: with NextMarker, or else after the last key."""
    found, marker = [], {}
    while True:
        page = page_of(s3, bucket, encoding_type="url", **parameters, **marker)
        found += entries(page)
        if page.findtext("IsTruncated") == "false":
            assert page.find("NextMarker") is None
            return found
        next_marker = page.findtext("NextMarker")
        assert (next_marker is not None) == ("delimiter" in parameters), "NextMarker is sent with a delimiter only"
        marker = {"marker": unquote_to_bytes(next_marker or page.findall("Contents")[-1].findtext("Key")).decode()}


@pytest.fixture
def filled(extended: S3, extended_bucket: str) -> str:
    """A bucket with keys that share prefixes."""
    for key in KEYS:
        extended.put(extended_bucket, key, b"x")
    return extended_bucket


def test_pages_have_the_entries_of_the_second_version(extended: S3, filled: str):
    """Whatever the size of the pages, all keys and prefixes come once and in order."""
    rng = random.Random(7)
    for _ in range(40):
        parameters = {"max_keys": rng.randint(1, 5)}
        if rng.random() < 0.7:
            parameters["delimiter"] = rng.choice(["/", "/b", "c/"])
        if rng.random() < 0.5:
            parameters["prefix"] = rng.choice(["a", "a/", "b c", "e/", "none"])
        whole = {name: value for name, value in parameters.items() if name != "max_keys"}
        second = extended.list(filled, **whole)
        expected = sorted(second.keys + second.prefixes, key=str.encode)
        assert all_pages(extended, filled, **parameters) == expected, parameters


def test_a_page_repeats_its_request(extended: S3, filled: str):
    """The elements that clients read besides the keys."""
    page = page_of(extended, filled, prefix="a", marker="a", delimiter="/", max_keys=1, encoding_type="url")
    found = {child.tag: child.text for child in page if len(child) == 0}
    assert found == {
        "Name": filled, "Prefix": "a", "Marker": "a", "Delimiter": "/", "MaxKeys": "1", "EncodingType": "url",
        "IsTruncated": "false",
    }
    assert entries(page) == ["a/"]
    first = page_of(extended, filled, max_keys=1).find("Contents")
    assert first.find("Owner/ID") is not None and first.findtext("StorageClass") == "STANDARD"
    empty = page_of(extended, filled, max_keys=0)
    assert (entries(empty), empty.findtext("IsTruncated")) == ([], "false")


def test_wrong_lists_are_refused(extended: S3, filled: str):
    """A client that asks for a list that does not exist must not get this one."""
    for query in ("list-type=3", "list-type=", "max-keys=-1", "max-keys=x", "encoding-type=base64"):
        assert_error(extended.request("GET", f"/{filled}?{query}"), 400, "InvalidArgument")
    assert_error(extended.request("GET", "/no-such-bucket"), 404, "NoSuchBucket")


def test_many_deleted_keys_do_not_stop_a_list(extended: S3, extended_bucket: str):
    """A list passes over the delete markers of a versioned bucket."""
    extended.request(
        "PUT", f"/{extended_bucket}?versioning",
        body=b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    )
    for number in range(20):
        extended.put(extended_bucket, f"gone-{number}")
        extended.delete(extended_bucket, f"gone-{number}")
    extended.put(extended_bucket, "kept")
    assert all_pages(extended, extended_bucket, max_keys=1) == ["kept"]


def test_boto3_pages(extended: S3, filled: str):
    """boto3's paginator of the first version, with its defaults."""
    boto = make_client(extended)
    pages = boto.get_paginator("list_objects").paginate(Bucket=filled, PaginationConfig={"PageSize": 2})
    assert [item["Key"] for page in pages for item in page.get("Contents", [])] == KEYS
    pages = boto.get_paginator("list_objects").paginate(Bucket=filled, Delimiter="/", PaginationConfig={"PageSize": 1})
    assert [item["Prefix"] for page in pages for item in page.get("CommonPrefixes", [])] == ["a/", "b c/", "c/", "e/"]
