"""Versioned writes in the load of the crash tests; each writer owns one key.

A writer puts, adds delete markers, and permanently removes versions, one at a time. After a kill the key has the
versions whose writes were acknowledged, and perhaps the effect of the single unacknowledged change.
"""

import random
from dataclasses import dataclass, field

from .crash_model import Model, Version
from .expect import Broken
from .s3 import S3, object_target, xml
from .wire import Connection

BUCKET = "crash-versions"
# Versions of a key are removed when it has this many.
VERSIONS_MAX = 6
ENABLED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


@dataclass
class Versions:
    """The versions of a writer's key; a delete marker is None."""

    # By version id, in the order of writing.
    acknowledged: dict[str, Version | None] = field(default_factory=dict)
    # What unacknowledged changes may have written, and which versions they may have removed.
    written: list[Version | None] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def create(s3: S3) -> None:
    """Creates the bucket and enables versioning."""
    s3.create_bucket(BUCKET)
    response = s3.request("PUT", f"/{BUCKET}?versioning=", None, ENABLED)
    assert response.status == 200, (response.status, response.body)


def change(model: Model, writer: int, rng: random.Random, s3: S3, connection: Connection) -> None:
    """Makes one change of the writer's key."""
    state, key = model.versions.setdefault(writer, Versions()), f"w{writer:02}"
    if state.acknowledged and rng.random() < (0.8 if len(state.acknowledged) >= VERSIONS_MAX else 0.2):
        chosen = rng.choice(list(state.acknowledged))
        state.removed.append(chosen)
        target = object_target(BUCKET, key, f"versionId={chosen}")
        response = s3.request("DELETE", target, connection=connection)
        expect(response.status == 204, f"DELETE {target}: {response.status} {response.body[:500]!r}")
        if not model.frozen:
            state.acknowledged.pop(chosen)
            state.removed.remove(chosen)
        return
    wish = None if rng.random() < 0.2 else model.new_version(writer, rng)
    state.written.append(wish)
    method, body = ("DELETE", b"") if wish is None else ("PUT", model.body(key, wish))
    response = s3.request(method, object_target(BUCKET, key), None, body, connection=connection)
    expect(response.status == (204 if wish is None else 200), f"{method} {key}: {response.status} {response.body[:500]!r}")
    made = response.get("x-amz-version-id")
    expect(made and made not in state.acknowledged, f"{method} {key} made version {made}")
    if not model.frozen:
        state.acknowledged[made] = wish
        state.written.remove(wish)


def expect(holds: bool, what: str) -> None:
    """Raises Broken."""
    if not holds:
        raise Broken(what)


def compare(s3: S3, model: Model) -> int:
    """Asserts that exactly the known versions exist, newest first, and returns their number."""
    response = s3.request("GET", f"/{BUCKET}?versions=")
    root = xml(response)
    expect(response.status == 200 and root.findtext("IsTruncated") == "false", f"list of versions: {response.body[:500]!r}")
    found: dict[str, list] = {}
    for item in root:
        if item.tag in ("Version", "DeleteMarker"):
            found.setdefault(item.findtext("Key"), []).append(item)
    for writer, state in model.versions.items():
        items = found.pop(f"w{writer:02}", [])
        settle(s3, model, f"w{writer:02}", state, list(reversed(items)))
    expect(not found, f"keys that nobody wrote: {list(found)[:5]}")
    return sum(len(state.acknowledged) for state in model.versions.values())


def settle(s3: S3, model: Model, key: str, state: Versions, items: list) -> None:
    """Compares the versions of a key, oldest first, with its state, and adopts them for the next cycle."""
    ids = [item.findtext("VersionId") for item in items]
    known = [version for version in ids if version in state.acknowledged]
    kept = [version for version in state.acknowledged if version in known or version not in state.removed]
    expect(known == kept, f"versions of {key}: {ids}, acknowledged are {list(state.acknowledged)}, {state.removed} may be gone")
    truth = {}
    for item, version in zip(items, ids, strict=True):
        allowed = [state.acknowledged[version]] if version in state.acknowledged else state.written
        truth[version] = match(s3, model, key, item, allowed)
        expect(item.findtext("IsLatest") == ("true" if version == ids[-1] else "false"), f"the latest version of {key}: {ids}")
    state.acknowledged, state.written, state.removed = truth, [], []


def match(s3: S3, model: Model, key: str, item: object, allowed: list[Version | None]) -> Version | None:
    """Returns which of the allowed contents a listed version has."""
    version = item.findtext("VersionId")
    if item.tag == "DeleteMarker":
        expect(None in allowed, f"version {version} of {key} is a delete marker, allowed are {allowed}")
        return None
    body = s3.request("GET", object_target(BUCKET, key, f"versionId={version}")).body
    for wish in allowed:
        if wish is not None and item.findtext("ETag") == model.etag(key, wish) and body == model.body(key, wish):
            return wish
    raise Broken(f"version {version} of {key}: {len(body)} bytes, expected one of {allowed}")
