"""Shares of new objects, and requests for them as visitors send them."""

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import requests

from .management import expect, segment
from .moments import written
from .server import LOOPBACK, Cairn
from .wire import Connection, Response, encode_head

PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_keys = itertools.count(1)


@dataclass
class Share:
    """A share of an object, and a client of its URL."""

    store: Cairn
    record: dict
    url: str
    headers: dict = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def token(self) -> str:
        return self.url.rsplit("/", 1)[1]

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    def request(self, method: str, name: str = "", **options) -> requests.Response:
        """Sends a request to the share's URL, or to a name below it. Redirects are not followed."""
        headers = {"Accept": "application/json"} | self.headers | options.pop("headers", {})
        options = {"allow_redirects": False, "timeout": 60} | options
        return requests.request(method, f"{self.url}{name}", headers=headers, **options)

    def get(self, name: str = "", **options) -> requests.Response:
        """GET."""
        return self.request("GET", name, **options)

    def page(self, name: str = "", language: str = "en", **options) -> requests.Response:
        """GET as a browser of this language."""
        headers = {"Accept": PAGE, "Accept-Language": language} | options.pop("headers", {})
        return self.get(name, headers=headers, **options)

    def content(self, **options) -> requests.Response:
        """GET of the content."""
        return self.get("/content", **options)

    def unlock(self, password: str) -> requests.Response:
        """Sends a password as JSON."""
        return self.request("POST", "/unlock", json={"password": password})

    def unlocked(self, password: str) -> "Share":
        """Returns the share, seen by a program that has unlocked it."""
        token = expect(self.unlock(password), 200)["unlock_token"]
        return Share(self.store, self.record, self.url, {"x-service-unlock": token})

    def raw(self, method: str, path: str, *headers: tuple[str, str]) -> Response:
        """Sends a request with exactly this path to the console's listener."""
        with Connection(LOOPBACK, self.store.console_port) as connection:
            connection.send(encode_head(method, path, [("Host", f"{LOOPBACK}:{self.store.console_port}"), *headers]))
            return connection.read_response(method)

    def refresh(self) -> dict:
        """Reads the record again."""
        self.record = expect(self.store.admin.get(f"/shares/{self.id}"), 200)
        return self.record

    def change(self, **fields) -> None:
        """Changes the record."""
        expect(self.store.admin.request("PATCH", f"/shares/{self.id}", json=fields), 200)

    def revoke(self) -> None:
        """Revokes it."""
        assert self.store.admin.post(f"/shares/{self.id}/revoke").status_code == 200


def share_object(store: Cairn, bucket: str, key: str, **fields) -> Share:
    """Makes a share of an object."""
    made = expect(store.admin.post(f"/buckets/{bucket}/object-shares/{segment(key)}", fields), 201)
    return share_of(store, made)


def share_of(store: Cairn, made: dict) -> Share:
    """Returns a client of a share, whose creation had this answer."""
    return Share(store, made["share"], made["url"])


def share_body(store: Cairn, bucket: str, body: bytes, content_type: str = "", key: str = "", headers: list | None = None, **fields) -> Share:
    """Stores an object and makes a share of it."""
    key = key or f"folder/{next(_keys)}"
    sent = [("Content-Type", content_type)] if content_type else []
    assert store.s3.put(bucket, key, body, [*sent, *(headers or [])]).status == 200
    return share_object(store, bucket, key, **fields)


def after(**period: float) -> str:
    """Returns the time after a period, as requests contain it."""
    return written(datetime.now(UTC) + timedelta(**period))
