"""The operations of tools and SDKs, written once over the few calls in which clients differ."""

import hashlib
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from client_matrix.workspace import LISTED_OBJECTS, Client, Refused, same

LARGE_BYTES = 17_000_000
STREAM_BYTES = 9_000_000
COPIED_BYTES = 70_000_000
BATCH = 30
RETENTION_SECONDS = 3600
# Sizes and keys of the objects that every client writes and reads.
OBJECTS = ((0, "empty"), (1000, "a b+c&d=ü(1).txt"), (300_000, "folder/sub/ordinary.bin"))
# The calls that an operation needs; a client that has all of them offers the operation.
CALLS = {
    "buckets": ("make", "buckets_seen", "drop"),
    "objects": ("upload", "download"),
    "large": ("upload", "download"),
    "stream": ("pipe",),
    "ranges": ("part",),
    "lists": ("listed",),
    "presigned": ("link_to_get",),
    "delete": ("remove",),
    "batch": ("remove_many",),
    "copy": ("copied",),
    "versions": ("version_on", "version_ids", "version_get", "version_remove"),
    "locks": ("retain", "retention", "hold"),
    "tags": ("tag", "tags_of"),
}


class Storage(Client):
    """A tool or an SDK. A subclass has the calls of CALLS that its client offers."""

    @classmethod
    def offers(cls, operation: str) -> bool:
        """Returns whether the client has what an operation needs."""
        return all(hasattr(cls, call) for call in CALLS.get(operation, ("",)))

    def buckets(self) -> None:
        """Creates a bucket, finds it in the list, removes it."""
        name = self.workspace.name()
        self.make(name)
        same(name in self.workspace.names(), True, "the bucket exists after it was created")
        same(name in self.buckets_seen(), True, "the bucket is in the client's list")
        self.drop(name)
        same(name in self.workspace.names(), False, "the bucket exists after it was removed")

    def objects(self) -> None:
        """Writes, reads and overwrites objects."""
        bucket = self.workspace.bucket()
        for size, key in OBJECTS:
            for generation in ("first", "second"):
                self.there_and_back(bucket, key, self.workspace.file(f"{generation}-{size}", size))

    def large(self) -> None:
        """Writes and reads one large object."""
        self.there_and_back(self.workspace.bucket(), "large.bin", self.workspace.file("large", LARGE_BYTES))

    def there_and_back(self, bucket: str, key: str, file: Path) -> None:
        """Writes a file, compares it on the server, and reads it back."""
        self.upload(bucket, key, file)
        content = file.read_bytes()
        same(digest(self.workspace.get(bucket, key)), digest(content), f"digest of the stored {key}")
        into = self.workspace.folder / "read"
        into.unlink(missing_ok=True)
        self.download(bucket, key, into)
        same(digest(into.read_bytes()), digest(content), f"digest of {key} that was read")

    def stream(self) -> None:
        """Writes a stream."""
        bucket, file = self.workspace.bucket(), self.workspace.file("stream", STREAM_BYTES)
        self.pipe(bucket, "piped", file)
        same(digest(self.workspace.get(bucket, "piped")), digest(file.read_bytes()), "digest of the stream")

    def ranges(self) -> None:
        """Reads a part of an object."""
        bucket = self.workspace.bucket()
        content = bytes(range(256)) * 40
        self.workspace.put(bucket, "ranged", content)
        same(self.part(bucket, "ranged", 1000, 1999), content[1000:2000], "bytes 1000 to 1999")

    def lists(self) -> None:
        """Lists more objects than a page holds, and folders."""
        same(len(set(self.listed("many"))), LISTED_OBJECTS, "objects listed")
        if hasattr(self, "folders"):
            bucket = self.workspace.bucket()
            for key in ("x", "a/1", "b c/2", "ü+/3"):
                self.workspace.put(bucket, key)
            same({name.rstrip("/") for name in self.folders(bucket)}, {"a", "b c", "ü+"}, "folders listed")

    def presigned(self) -> None:
        """Downloads and uploads by URLs that the client made."""
        bucket = self.workspace.bucket()
        self.workspace.put(bucket, "a b+c.txt", b"shared")
        same(self.fetch(self.link_to_get(bucket, "a b+c.txt")), b"shared", "content behind the URL")
        if hasattr(self, "link_to_put"):
            self.fetch(self.link_to_put(bucket, "sent"), b"sent")
            same(self.workspace.get(bucket, "sent"), b"sent", "content sent to the URL")

    def fetch(self, url: str, body: bytes | None = None) -> bytes:
        """GETs a URL, or PUTs a body to it, as a program does that knows nothing of S3."""
        trusted = ssl.create_default_context(cafile=str(self.workspace.server.authority)) if self.workspace.server.tls else None
        request = urllib.request.Request(url.strip(), data=body, method="GET" if body is None else "PUT")
        try:
            with urllib.request.urlopen(request, context=trusted, timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.read().decode(errors="replace")) from None

    def delete(self) -> None:
        """Deletes one object and leaves its neighbour."""
        bucket = self.workspace.bucket()
        self.workspace.fill(bucket, 2, "d/")
        self.remove(bucket, "d/00000")
        # Some clients leave an empty object that stands for the folder.
        same([key for key in self.workspace.keys(bucket) if not key.endswith("/")], ["d/00001"], "keys left")

    def batch(self) -> None:
        """Deletes many objects with one call of the client."""
        bucket = self.workspace.bucket()
        keys = self.workspace.fill(bucket, BATCH, "many/")
        self.workspace.put(bucket, "stays")
        self.remove_many(bucket, "many/", keys)
        same([key for key in self.workspace.keys(bucket) if not key.endswith("/")], ["stays"], "keys left")

    def copy(self) -> None:
        """Copies a small and a large object within the store."""
        bucket = self.workspace.bucket()
        for size, key in ((1000, "small source"), (COPIED_BYTES, "large source")):
            content = self.workspace.file(f"copied-{size}", size).read_bytes()
            self.workspace.put(bucket, key, content)
            self.copied(bucket, key, f"copy of {size}")
            same(digest(self.workspace.get(bucket, f"copy of {size}")), digest(content), f"digest of the copy of {size} bytes")

    def versions(self) -> None:
        """Switches versioning on, reads an old version, removes one."""
        bucket = self.workspace.bucket()
        self.version_on(bucket)
        same(self.workspace.checker.get_bucket_versioning(Bucket=bucket).get("Status"), "Enabled", "versioning")
        first, second = (self.workspace.checker.put_object(Bucket=bucket, Key="k", Body=body)["VersionId"] for body in (b"first", b"second"))
        same(sorted(self.version_ids(bucket, "k")), sorted([first, second]), "ids of versions")
        same(self.version_get(bucket, "k", first), b"first", "content of the first version")
        self.version_remove(bucket, "k", first)
        left = self.workspace.checker.list_object_versions(Bucket=bucket)["Versions"]
        same([version["VersionId"] for version in left], [second], "ids of versions left")

    def locks(self) -> None:
        """Sets and reads a retention and a legal hold."""
        bucket = self.workspace.bucket(ObjectLockEnabledForBucket=True)
        self.workspace.put(bucket, "k")
        self.retain(bucket, "k", RETENTION_SECONDS)
        found = self.workspace.checker.get_object_retention(Bucket=bucket, Key="k")["Retention"]["Mode"]
        same(found, "GOVERNANCE", "mode of the retention")
        same(self.retention(bucket, "k"), "GOVERNANCE", "mode that the client reads")
        for state in ("ON", "OFF"):
            self.hold(bucket, "k", state)
            found = self.workspace.checker.get_object_legal_hold(Bucket=bucket, Key="k")["LegalHold"]["Status"]
            same(found, state, "legal hold")

    def tags(self) -> None:
        """Sets and reads tags of an object, and of a bucket where the client has those."""
        bucket = self.workspace.bucket()
        self.workspace.put(bucket, "k")
        self.tag(bucket, "k", "project", "north + south")
        same(self.tags_of(bucket, "k"), {"project": "north + south"}, "tags of the object")
        if hasattr(self, "tag_bucket"):
            self.tag_bucket(bucket, "owner", "me")
            same(self.tags_of_bucket(bucket), {"owner": "me"}, "tags of the bucket")


def digest(content: bytes) -> str:
    """Returns the SHA-256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
