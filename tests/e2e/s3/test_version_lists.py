"""Version lists of random histories compared with a model, for any prefix, delimiter and page size.

The model is a dictionary of the versions of each key, newest first, and independent of the server.
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
# A version or delete marker (kind, key, version id, is latest) or a common prefix.
Entry = tuple


@dataclass
class History:
    """The model of a bucket's versions, and the requests that change both."""

    s3: S3
    bucket: str
    rng: random.Random
    state: str = "Unversioned"
    keys: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def switch(self) -> None:
        """Enables versioning, or suspends it if it was enabled before."""
        self.state = "Enabled" if self.state != "Enabled" else "Suspended"
        body = f"<VersioningConfiguration><Status>{self.state}</Status></VersioningConfiguration>".encode()
        assert self.s3.request("PUT", f"/{self.bucket}?versioning", body=body).status == 200

    def write(self, kind: str) -> None:
        """Puts or deletes a random key without a version id."""
        key = self.rng.choice(KEYS)
        method, body, status = ("PUT", b"x", 200) if kind == "Version" else ("DELETE", b"", 204)
        response = self.s3.request(method, object_target(self.bucket, key), body=body)
        assert response.status == status, response.body
        versions = self.keys.setdefault(key, [])
        if self.state != "Enabled":
            versions[:] = [version for version in versions if version[1] != "null"]
        if kind == "Version" or self.state != "Unversioned":
            version = response.get("x-amz-version-id") if self.state == "Enabled" else "null"
            versions.insert(0, (kind, version))

    def remove(self) -> None:
        """Deletes one of the existing versions."""
        there = [(key, number) for key, versions in self.keys.items() for number in range(len(versions))]
        if there:
            key, number = self.rng.choice(there)
            _, version = self.keys[key].pop(number)
            assert self.s3.request("DELETE", object_target(self.bucket, key, f"versionId={version}")).status == 204

    def step(self) -> None:
        """Makes a random change, mostly a write."""
        draw = self.rng.random()
        if draw < 0.08:
            self.switch()
        elif draw < 0.25:
            self.remove()
        else:
            self.write("DeleteMarker" if draw < 0.45 else "Version")

    def expected(self, prefix: str, delimiter: str) -> list[Entry]:
        """Returns the complete expected list, in the order of the responses."""
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
    """Returns the items of all pages. The XML has common prefixes last in a page, so they are sorted in."""
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
def test_version_lists_of_random_histories_match_the_model(s3: S3, bucket: str, seed: int):
    """No item is missing, repeated or out of order, and `IsLatest` is right."""
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
