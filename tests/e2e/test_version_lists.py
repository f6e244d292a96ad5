"""Attacks lists of versions with random histories: every page, under any prefix, delimiter and size, against a plain model.

The model is a dictionary that knows nothing of the server: for each key its versions, newest first.
"""

import random
from dataclasses import dataclass, field

import pytest

from harness.s3 import S3, object_target, xml
from harness.sigv4 import uri_encode

KEYS = ["a", "a/", "a/b", "a/b/c", "a/bc", "ab", "b//x", "b/x y+z", "ä/1", "ä/2", "日本", "z"]
PREFIXES = ["", "a", "a/", "a/b", "b/", "ä/", "none", "z"]
DELIMITERS = ["", "/", "b", "/b", "ä"]
SEEDS = range(6)
# A version or a marker: its kind, key, version id and whether it is the latest; or a common prefix.
Entry = tuple


@dataclass
class History:
    """A bucket's versions, and the requests that made them."""

    s3: S3
    bucket: str
    rng: random.Random
    state: str = "Unversioned"
    keys: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def switch(self) -> None:
        """Enabled, or suspended once it has been."""
        self.state = "Enabled" if self.state != "Enabled" else "Suspended"
        body = f"<VersioningConfiguration><Status>{self.state}</Status></VersioningConfiguration>".encode()
        assert self.s3.request("PUT", f"/{self.bucket}?versioning", body=body).status == 200

    def write(self, kind: str) -> None:
        """A PUT or a plain DELETE of a random key."""
        key = self.rng.choice(KEYS)
        method, body = ("PUT", b"x") if kind == "Version" else ("DELETE", b"")
        response = self.s3.request(method, object_target(self.bucket, key), body=body)
        assert response.status in (200, 204), response.body
        versions = self.keys.setdefault(key, [])
        if self.state != "Enabled":
            versions[:] = [version for version in versions if version[1] != "null"]
        if kind == "Version" or self.state != "Unversioned":
            version = response.get("x-amz-version-id") if self.state == "Enabled" else "null"
            versions.insert(0, (kind, version))

    def remove(self) -> None:
        """A DELETE of one version of those that are there."""
        there = [(key, number) for key, versions in self.keys.items() for number in range(len(versions))]
        if there:
            key, number = self.rng.choice(there)
            _, version = self.keys[key].pop(number)
            assert self.s3.request("DELETE", object_target(self.bucket, key, f"versionId={version}")).status == 204

    def step(self) -> None:
        """Something random; mostly writes."""
        draw = self.rng.random()
        if draw < 0.08:
            self.switch()
        elif draw < 0.25:
            self.remove()
        else:
            self.write("DeleteMarker" if draw < 0.45 else "Version")

    def expected(self, prefix: str, delimiter: str) -> list[Entry]:
        """The whole list, in the order of the wire."""
        found: list[Entry] = []
        for key in sorted(self.keys, key=str.encode):
            if not key.startswith(prefix):
                continue
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            if at >= 0 and self.keys[key]:
                common = ("CommonPrefix", key[: at + len(delimiter)])
                if common not in found:
                    found.append(common)
            elif at < 0:
                found += [(kind, key, version, number == 0) for number, (kind, version) in enumerate(self.keys[key])]
        return found


def listed(history: History, prefix: str, delimiter: str, size: int) -> list[Entry]:
    """All pages one after the other; within a page common prefixes come last on the wire, so they are sorted in."""
    found: list[Entry] = []
    markers = ""
    for _ in range(1000):
        query = f"versions&max-keys={size}&prefix={uri_encode(prefix)}&delimiter={uri_encode(delimiter)}{markers}"
        response = history.s3.request("GET", f"/{history.bucket}?{query}")
        assert response.status == 200, response.body
        root = xml(response)
        page: list[Entry] = [
            (item.tag, item.findtext("Key"), item.findtext("VersionId"), item.findtext("IsLatest") == "true")
            for item in root if item.tag in ("Version", "DeleteMarker")
        ]
        page += [("CommonPrefix", item.findtext("Prefix")) for item in root.findall("CommonPrefixes")]
        assert len(page) <= size
        page.sort(key=lambda entry: entry[1].encode())
        found += page
        if root.findtext("IsTruncated") == "false":
            return found
        markers = f"&key-marker={uri_encode(root.findtext('NextKeyMarker'))}"
        if root.findtext("NextVersionIdMarker"):
            markers += f"&version-id-marker={root.findtext('NextVersionIdMarker')}"
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_of_random_histories(s3: S3, bucket: str, seed: int):
    """Nothing missing, nothing twice, nothing out of order, and `IsLatest` where it belongs."""
    history = History(s3, bucket, random.Random(seed))
    for number in range(120):
        history.step()
        if number % 40 == 39:
            for _ in range(12):
                asked = history.rng.choice(PREFIXES), history.rng.choice(DELIMITERS)
                size = history.rng.choice([1, 2, 3, 7, 1000])
                assert listed(history, *asked, size) == history.expected(*asked), (seed, number, asked, size)
    visible = [key for key in sorted(KEYS, key=str.encode) if history.keys.get(key) and history.keys[key][0][0] == "Version"]
    assert s3.list(bucket).keys == visible
