#!/usr/bin/env python3
"""Requests of the scenario scale.sh that cairn-load does not send: buckets, and versions of one key.

    scale_requests.py buckets-create ENDPOINT FIRST COUNT        # creates scale-<number>, eight connections
    scale_requests.py buckets-list ENDPOINT COUNT REPEATS        # lists all buckets, which must be COUNT or more
    scale_requests.py versions-list ENDPOINT BUCKET KEY COUNT    # walks the pages of 1000 versions, which must be COUNT together
    scale_requests.py versions-get ENDPOINT BUCKET KEY REPEATS   # GETs of the oldest version by its id
    scale_requests.py versions-delete ENDPOINT BUCKET KEY COUNT  # deletes COUNT versions one by one, eight connections
    scale_requests.py versions-delete-many ENDPOINT BUCKET KEY   # deletes all versions, 1000 with each DeleteObjects

Prints the figures as results.py reads them. Needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and nothing but Python. It is
slower than cairn-load, so rates beyond some thousand a second are its own.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import statistics
import sys
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

CONNECTIONS = 8
PAGE = 1000
REGION = "us-east-1"
Timed = tuple[float, bytes]


class Client:
    """One connection, and the latency of each request on it in seconds."""

    def __init__(self, endpoint: str):
        self.host = urllib.parse.urlsplit(endpoint).netloc
        self.connection = http.client.HTTPConnection(self.host)
        self.access_key, self.secret_key = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]

    def send(self, method: str, path: str, query: dict[str, str] | None = None, body: bytes = b"") -> Timed:
        """Sends a signed request; any status that is no success ends the program."""
        target = urllib.parse.quote(path)
        arguments = "&".join(f"{urllib.parse.quote(name, '')}={urllib.parse.quote(value, '')}" for name, value in sorted((query or {}).items()))
        headers = self.signed(method, target, arguments, body)
        begun = time.perf_counter()
        self.connection.request(method, f"{target}?{arguments}" if arguments else target, body or None, headers)
        response = self.connection.getresponse()
        content = response.read()
        took = time.perf_counter() - begun
        if response.status not in (200, 204):
            sys.exit(f"{method} {target}: {response.status} {content[:500].decode()}")
        return took, content

    def signed(self, method: str, target: str, arguments: str, body: bytes) -> dict[str, str]:
        """The headers of Signature Version 4 (AWS General Reference, "Signing AWS API requests")."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {"host": self.host, "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now}
        if body:
            headers["x-amz-checksum-crc32"] = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
        names = ";".join(sorted(headers))
        canonical = "\n".join([
            method, target, arguments, *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, headers["x-amz-content-sha256"],
        ])
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(key, text.encode(), "sha256").hexdigest()
        headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return headers


def figures(took: list[float], seconds: float, each: int = 1) -> dict[str, float]:
    """Rate and latencies of requests, each of which counts for several."""
    cuts = statistics.quantiles(took, n=1000, method="inclusive") if len(took) > 1 else took * 999
    return {
        "requests_per_second": len(took) * each / seconds,
        "p50_ms": cuts[499] * 1000,
        "p99_ms": cuts[989] * 1000,
        "max_ms": max(took) * 1000,
    }


def together(endpoint: str, count: int, send: Callable[[Client, int], Timed], each: int = 1) -> dict[str, float]:
    """Sends numbered requests over several connections."""

    def some(first: int) -> list[float]:
        client = Client(endpoint)
        return [send(client, number)[0] for number in range(first, count, CONNECTIONS)]

    begun = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        took = [seconds for part in pool.map(some, range(CONNECTIONS)) for seconds in part]
    return figures(took, time.perf_counter() - begun, each)


def values(text: str, name: str) -> list[str]:
    """The contents of all elements of a name. A parser would take most of the time; nothing that is read here is escaped."""
    return re.findall(f"<{name}>([^<]*)</{name}>", text)


def pages(client: Client, bucket: str, key: str, took: list[float]) -> Iterator[list[str]]:
    """The version ids of a key, page by page."""
    markers = {}
    while True:
        seconds, content = client.send("GET", f"/{bucket}", {"versions": "", "prefix": key, "max-keys": str(PAGE), **markers})
        took.append(seconds)
        text = content.decode()
        yield values(text, "VersionId")
        if values(text, "IsTruncated") != ["true"]:
            return
        markers = {"key-marker": values(text, "NextKeyMarker")[0], "version-id-marker": values(text, "NextVersionIdMarker")[0]}


def versions(endpoint: str, bucket: str, key: str) -> list[str]:
    """All version ids of a key, newest first."""
    return [version for page in pages(Client(endpoint), bucket, key, []) for version in page]


def buckets_list(endpoint: str, count: int, repeats: int) -> dict[str, float]:
    """Whole lists on one connection."""
    client, took = Client(endpoint), []
    for _ in range(repeats):
        seconds, content = client.send("GET", "/")
        found = content.count(b"<Bucket>")
        if found < count:
            sys.exit(f"{found} of {count} buckets are listed")
        took.append(seconds)
    return figures(took, sum(took))


def versions_list(endpoint: str, bucket: str, key: str, count: int) -> dict[str, float]:
    """One walk over all pages; the rate is of pages, without the time that this program needs to read them."""
    took: list[float] = []
    found = sum(len(page) for page in pages(Client(endpoint), bucket, key, took))
    if found != count:
        sys.exit(f"{found} versions are listed, not {count}")
    return figures(took, sum(took))


def versions_get(endpoint: str, bucket: str, key: str, repeats: int) -> dict[str, float]:
    """The oldest version, on one connection."""
    client, oldest = Client(endpoint), versions(endpoint, bucket, key)[-1]
    took = [client.send("GET", f"/{bucket}/{key}", {"versionId": oldest})[0] for _ in range(repeats)]
    return figures(took, sum(took))


def versions_delete(endpoint: str, bucket: str, key: str, count: int) -> dict[str, float]:
    """Versions from the middle, one with each request."""
    found = versions(endpoint, bucket, key)
    chosen = found[(len(found) - count) // 2 :][:count]
    return together(endpoint, len(chosen), lambda client, number: client.send("DELETE", f"/{bucket}/{key}", {"versionId": chosen[number]}))


def versions_delete_many(endpoint: str, bucket: str, key: str) -> dict[str, float]:
    """All versions; the rate is of versions, and the latencies are those of requests."""
    found = versions(endpoint, bucket, key)
    groups = [found[first : first + PAGE] for first in range(0, len(found), PAGE)]

    def send(client: Client, number: int) -> Timed:
        entries = "".join(f"<Object><Key>{key}</Key><VersionId>{version}</VersionId></Object>" for version in groups[number])
        took, answer = client.send("POST", f"/{bucket}", {"delete": ""}, f"<Delete>{entries}</Delete>".encode())
        if (deleted := answer.count(b"<Deleted>")) != len(groups[number]):
            sys.exit(f"DeleteObjects deleted {deleted} of {len(groups[number])} versions")
        return took, answer

    return together(endpoint, len(groups), send, len(found) / len(groups))


def main() -> int:
    """Runs the command and prints its figures."""
    match sys.argv[1:]:
        case ["buckets-create", endpoint, first, count]:
            measured = together(endpoint, int(count), lambda client, number: client.send("PUT", f"/scale-{int(first) + number:06}"))
        case ["buckets-list", endpoint, count, repeats]:
            measured = buckets_list(endpoint, int(count), int(repeats))
        case ["versions-list", endpoint, bucket, key, count]:
            measured = versions_list(endpoint, bucket, key, int(count))
        case ["versions-get", endpoint, bucket, key, repeats]:
            measured = versions_get(endpoint, bucket, key, int(repeats))
        case ["versions-delete", endpoint, bucket, key, count]:
            measured = versions_delete(endpoint, bucket, key, int(count))
        case ["versions-delete-many", endpoint, bucket, key]:
            measured = versions_delete_many(endpoint, bucket, key)
        case _:
            print(__doc__)
            return 2
    print(json.dumps({"measures": measured}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
