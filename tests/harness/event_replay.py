"""Replays the storage events of a store: they must lead to exactly the versions that it holds.

A follower keeps its cursor over kills and power cuts. A missing event leaves out a version that is there, or keeps one that is not;
an invented event, or one that a power cut took back, does the opposite. Delete markers are left out: a marker over nothing has no
event.
"""

from collections import defaultdict

from .expect import Broken
from .management import expect
from .s3 import S3, strip_namespaces, xml
from .server import Cairn

PAGE_EVENTS = 1000
WRITTEN = {"object.created", "object.updated", "object.restored"}
REMOVED = {"object.deleted"}


class EventReplay:
    """A follower of a store's events, and the versions that they lead to."""

    def __init__(self) -> None:
        self.cursor: dict[str, str] = {}
        self.ids: set[str] = set()
        # Entity tag by version id, for each bucket and key.
        self.versions: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)

    def follow(self, store: Cairn) -> None:
        """Reads all events after the last one that was read."""
        while True:
            page = expect(store.admin.get("/events", params={"limit": PAGE_EVENTS, **self.cursor}), 200)
            for event in page["events"]:
                self.apply(event)
            if page["next_id"] is not None:
                self.cursor = {"after_time": page["next_time"], "after_id": page["next_id"]}
            elif page["events"]:
                last = page["events"][-1]
                self.cursor = {"after_time": last["time"], "after_id": last["id"]}
            if page["next_id"] is None:
                return

    def apply(self, event: dict) -> None:
        """Applies one event."""
        self.ids.add(event["id"])
        if "object" not in event:
            return
        versions = self.versions[event["bucket"], event["object"]]
        if event["type"] in WRITTEN:
            versions[event["version_id"]] = event["metadata"]["etag"]
        elif event["type"] in REMOVED:
            versions.pop(event["version_id"], None)

    def compare(self, store: Cairn, *buckets: str) -> None:
        """Follows the events to their end and compares what they lead to with the lists of versions."""
        self.follow(store)
        for bucket in buckets:
            held = list_versions(store.s3, bucket)
            replayed = {key: of for (name, key), of in self.versions.items() if name == bucket and of}
            for key in held.keys() | replayed.keys():
                if held.get(key) != replayed.get(key):
                    raise Broken(f"{bucket}/{key}: the events lead to {replayed.get(key)}, the store holds {held.get(key)}")


def list_versions(s3: S3, bucket: str) -> dict[str, dict[str, str]]:
    """Returns the entity tag of every version with a payload, by key and version id."""
    found: dict[str, dict[str, str]] = {}
    marker = ""
    while True:
        root = strip_namespaces(xml(s3.request("GET", f"/{bucket}?versions={marker}")))
        for item in root.iter("Version"):
            of_key = found.setdefault(item.findtext("Key", ""), {})
            of_key[item.findtext("VersionId", "")] = item.findtext("ETag", "").strip('"')
        if root.findtext("IsTruncated") != "true":
            return found
        key, version = root.findtext("NextKeyMarker", ""), root.findtext("NextVersionIdMarker", "")
        marker = f"&key-marker={key}&version-id-marker={version}"
