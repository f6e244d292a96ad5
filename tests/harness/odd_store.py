"""Imitates stores that differ from S3 where an import looks: what versitygw, SeaweedFS and Garage were seen to answer.

It keeps a few objects in memory, answers reads only, and does not check signatures.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from .server import LOOPBACK
from .sigv4 import Credential

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# A page has at most this many entries, whatever the client asks for.
PAGE = 3
# All of 2026-11-26, in seconds of the day.
DATE = "2026-11-26T12:00:{:02}"
HTTP_DATE = "Thu, 26 Nov 2026 12:00:{:02} GMT"


@dataclass
class Version:
    """A version; without content it is a delete marker."""

    key: str
    version_id: str
    second: int
    content: bytes | None = b""
    is_latest: bool = True
    listed_etag: str | None = None
    listed_size: int | None = None
    etag: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    locks: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """Returns the entity tag that answers have."""
        return hashlib.md5(self.content or b"").hexdigest() if self.etag is None else self.etag


@dataclass
class Oddities:
    """In what a store differs from S3. The comments name those that do."""

    # versitygw 1.8.0: markers come before the versions of a page, with dates in nanoseconds.
    lists_markers_apart: bool = False
    # versitygw: a page begins with the last key of the page before.
    repeats_keys: bool = False
    # versitygw: keys are not encoded, and U+FFFD takes the place of characters that XML lacks.
    lacks_encoding: bool = False
    # versitygw: keys whose current version is `null` have no versions for HEAD, and `null` has no tags.
    forgets_null: bool = False
    # versitygw: only HEAD tells retention and legal hold.
    hides_locks_in_get: bool = False
    # SeaweedFS 4.53: `null` is the last version of its key in lists, even if it is the current one.
    lists_null_last: bool = False
    # Garage 2.5.0: no versions, no object lock, no tags.
    lacks_versions: bool = False
    # Garage: its region is `garage`.
    region: str | None = None
    # Keys that are listed and cannot be read.
    lost_keys: frozenset[str] = frozenset()
    # The same page again and again.
    never_ends: bool = False


VERSITYGW = Oddities(lists_markers_apart=True, repeats_keys=True, lacks_encoding=True, forgets_null=True, hides_locks_in_get=True)
SEAWEEDFS = Oddities(lists_null_last=True)
GARAGE = Oddities(lacks_versions=True, region="garage")


class OddStore:
    """The server, and what it has."""

    def __init__(self, oddities: Oddities):
        self.oddities, self.credential = oddities, Credential("source", "source-secret")
        # Versioning, object lock, and versions, newest first within a key.
        self.buckets: dict[str, tuple[str | None, bool, list[Version]]] = {}
        self.calls: list[str] = []
        store = self

        class Handler(BaseHTTPRequestHandler):
            """One request."""

            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Answers it."""
                store.calls.append(f"{self.command} {self.path}")
                status, headers, body = store.answer(self.command, self.path, self.headers)
                self.send_response_only(status)
                for name, value in ({"content-length": str(len(body)), "connection": "close"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        """Returns the address."""
        return f"http://{LOOPBACK}:{self.server.server_port}"

    def add(self, bucket: str, *versions: Version, versioning: str | None = None, lock: bool = False) -> None:
        """Adds a bucket."""
        self.buckets[bucket] = (versioning, lock, sorted(versions, key=lambda one: one.key.encode()))

    def close(self) -> None:
        """Ends the server."""
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method: str, target: str, headers: object) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(url.path.lstrip("/")).partition("/")
        region = self.oddities.region
        if region and f"/{region}/s3/" not in headers.get("authorization", ""):  # type: ignore[attr-defined]
            return error(400, "AuthorizationHeaderMalformed", f"<Region>{region}</Region>")
        if not bucket:
            return document("ListAllMyBucketsResult", "<Buckets>" + "".join(f"<Bucket><Name>{name}</Name></Bucket>" for name in self.buckets) + "</Buckets>")
        versioning, lock, versions = self.buckets[bucket]
        if key:
            return self.object(method, key, query, headers.get("range"), versions)  # type: ignore[attr-defined]
        if "versioning" in query:
            return document("VersioningConfiguration", f"<Status>{versioning}</Status>" if versioning else "")
        if self.oddities.lacks_versions and query.keys() & {"versions", "object-lock"}:
            return error(501, "NotImplemented")
        if "object-lock" in query:
            return document("ObjectLockConfiguration", "<ObjectLockEnabled>Enabled</ObjectLockEnabled>") if lock else error(404, "ObjectLockConfigurationNotFoundError")
        if "uploads" in query:
            return document("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
        return self.versions(versions, query) if "versions" in query else self.objects(versions, query)

    def object(self, method: str, key: str, query: dict[str, str], span: str | None, versions: list[Version]) -> tuple[int, dict[str, str], bytes]:
        """Answers GET and HEAD of an object, and GetObjectTagging."""
        found = [one for one in versions if one.key == key and key not in self.oddities.lost_keys]
        wanted = query.get("versionId")
        one = next((one for one in found if (one.is_latest if wanted is None else one.version_id == wanted)), None)
        has_null_on_top = any(one.is_latest and one.version_id == "null" for one in found)
        is_forgotten = self.oddities.forgets_null and has_null_on_top and wanted is not None
        if one is None or one.content is None or is_forgotten and (method == "HEAD" or "tagging" in query and wanted == "null"):
            return error(404, "NoSuchVersion" if wanted else "NoSuchKey")
        if "tagging" in query:
            tags = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in one.tags.items())
            return document("Tagging", f"<TagSet>{tags}</TagSet>")
        headers = {"last-modified": HTTP_DATE.format(one.second), **one.headers}
        if one.tag:
            headers["etag"] = f'"{one.tag}"'
        if one.tags:
            headers["x-amz-tagging-count"] = str(len(one.tags))
        if method == "HEAD" or not self.oddities.hides_locks_in_get:
            headers |= one.locks
        if "partNumber" in query:
            return error(501, "NotImplemented")
        if span is None:
            return 200, headers | {"content-length": str(len(one.content))}, one.content
        first, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
        part = one.content[first : last + 1]
        return 206, headers | {"content-range": f"bytes {first}-{first + len(part) - 1}/{len(one.content)}", "content-length": str(len(part))}, part

    def named(self, key: str) -> str:
        """Returns a key as lists have it."""
        if self.oddities.lacks_encoding:
            return escape("".join("\ufffd" if ord(letter) < 32 else letter for letter in key))
        return quote(key, safe="/")

    def encoding(self) -> str:
        """Returns what lists say of the encoding of keys."""
        return "<EncodingType></EncodingType>" if self.oddities.lacks_encoding else "<EncodingType>url</EncodingType>"

    def versions(self, versions: list[Version], query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Answers ListObjectVersions."""
        found = [one for one in versions if one.key.startswith(query.get("prefix", ""))]
        if self.oddities.lists_null_last:
            found.sort(key=lambda one: (one.key.encode(), one.version_id == "null"))
        places = [(one.key, one.version_id) for one in found]
        begin, marker = 0, query.get("key-marker")
        if marker is not None and not self.oddities.never_ends:
            place = (marker, query.get("version-id-marker", ""))
            begin = places.index(place) + (not self.oddities.repeats_keys) if place in places else sum(one.key.encode() <= marker.encode() for one in found)
        # A page that repeats an entry has one more.
        page = found[begin : begin + PAGE + (marker is not None and self.oddities.repeats_keys)]
        is_truncated = self.oddities.never_ends or begin + len(page) < len(found)
        if self.oddities.lists_markers_apart:
            page_in_order = [one for one in page if one.content is None] + [one for one in page if one.content is not None]
        else:
            page_in_order = page
        text = "".join(self.version_entry(one) for one in page_in_order) + self.encoding() + f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
        if is_truncated:
            text += f"<NextKeyMarker>{self.named(page[-1].key)}</NextKeyMarker><NextVersionIdMarker>{page[-1].version_id}</NextVersionIdMarker>"
        return document("ListVersionsResult", text)

    def version_entry(self, one: Version) -> str:
        """Returns an entry of a list of versions."""
        common = f"<Key>{self.named(one.key)}</Key><VersionId>{one.version_id}</VersionId><IsLatest>{str(one.is_latest).lower()}</IsLatest>"
        if one.content is None:
            fraction = ".606504829Z" if self.oddities.lists_markers_apart else "Z"
            return f"<DeleteMarker>{common}<LastModified>{DATE.format(one.second)}{fraction}</LastModified></DeleteMarker>"
        tag = one.tag if one.listed_etag is None else one.listed_etag
        return f"<Version>{common}<LastModified>{DATE.format(one.second)}Z</LastModified><ETag>&#34;{tag}&#34;</ETag><Size>{len(one.content)}</Size></Version>"

    def objects(self, versions: list[Version], query: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Answers ListObjectsV2."""
        found = [one for one in versions if one.is_latest and one.content is not None and one.key.startswith(query.get("prefix", ""))]
        begin = int(query.get("continuation-token", "0"))
        page = found[begin : begin + PAGE]
        text = "".join(
            f"<Contents><Key>{self.named(one.key)}</Key><LastModified>{DATE.format(one.second)}Z</LastModified>"
            f"<ETag>&#34;{one.tag}&#34;</ETag><Size>{len(one.content or b'') if one.listed_size is None else one.listed_size}</Size></Contents>"
            for one in page
        )
        text += self.encoding()
        if begin + PAGE < len(found):
            text += f"<IsTruncated>true</IsTruncated><NextContinuationToken>{begin + PAGE}</NextContinuationToken>"
        return document("ListBucketResult", text)


def document(name: str, text: str) -> tuple[int, dict[str, str], bytes]:
    """Returns an answer of XML."""
    return 200, {"content-type": "application/xml"}, f'{HEAD}<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{text}</{name}>'.encode()


def error(status: int, code: str, more: str = "") -> tuple[int, dict[str, str], bytes]:
    """Returns a refusal."""
    return status, {"content-type": "application/xml"}, f"{HEAD}<Error><Code>{code}</Code><Message>no</Message>{more}</Error>".encode()


def many(count: int, key: str = "many/{:02}") -> Iterator[Version]:
    """Yields null versions, each the only one of its key."""
    for number in range(count):
        name = key.format(number)
        yield Version(name, "null", number % 60, name.encode())
