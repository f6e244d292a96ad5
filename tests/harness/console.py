"""A browser's view of the console's listener without a browser: cookies, and the headers of the console's own page."""

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

import requests

from .management import API, TIMEOUT, expect
from .moments import with_an_end
from .server import LOOPBACK, Cairn

OWN_PAGE = {"x-service-console": "1", "Sec-Fetch-Site": "same-origin"}
MIB = 1 << 20
PART_BYTES = 8 * MIB
Found = TypeVar("Found")


@dataclass
class Console:
    """A client of the console of one store, with the cookies of one browser."""

    store: Cairn
    headers: dict[str, str] = field(default_factory=lambda: dict(OWN_PAGE))
    cookies: requests.Session = field(default_factory=requests.Session, repr=False)

    def __post_init__(self) -> None:
        # A bundle of certificates in the environment would replace the one of a test.
        self.cookies.trust_env = False

    @property
    def address(self) -> str:
        """Returns the origin of the console."""
        return f"{'https' if self.store.has_tls('CONSOLE') else 'http'}://{LOOPBACK}:{self.store.console_port}"

    def request(self, method: str, path: str, **options) -> requests.Response:
        """Sends a request as the console's page does; `headers` replaces its headers."""
        headers = options.pop("headers", self.headers)
        return self.cookies.request(method, self.address + path, headers=headers, timeout=TIMEOUT, allow_redirects=False, **options)

    def get(self, path: str, **options) -> requests.Response:
        """GET of a path."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: object = None, **options) -> requests.Response:
        """POST with a JSON body."""
        return self.request("POST", path, json=body, **options)

    def put(self, path: str, data: object = None, **options) -> requests.Response:
        """PUT of bytes."""
        return self.request("PUT", path, data=data, **options)

    def delete(self, path: str, **options) -> requests.Response:
        """DELETE of a path."""
        return self.request("DELETE", path, **options)

    def api(self, path: str, **options) -> requests.Response:
        """GET of a path of the management API."""
        return self.get(API + path, **options)

    def log_in(self, token: str | None = None) -> dict:
        """Begins a session with a token, by default the system token, and returns it."""
        return expect(self.post("/session", {"token": token or self.store.secrets.system_token}), 200)

    def is_signed_in(self) -> bool:
        """Returns whether the server knows the session."""
        return self.get("/session").status_code == 200


def signed_in(store: Cairn, token: str | None = None) -> Console:
    """Returns a client with a session."""
    console = Console(store)
    console.log_in(token)
    return console


def create_token(store: Cairn, role: str, **options: object) -> dict:
    """Creates a management token and returns its record with `token`."""
    return expect(store.admin.post("/management-tokens", {"name": f"a {role}", "role": role} | options), 201)


def before_expiry(store: Cairn, role: str, begin: Callable[[dict], Found]) -> Found:
    """Returns what `begin` does with a token that expires soon."""
    def attempt(end: datetime) -> Found:
        life = math.ceil((end - datetime.now(UTC)).total_seconds())
        return begin(create_token(store, role, expires_in_seconds=max(life, 1)))

    return with_an_end(attempt)


def upload_id(**members: object) -> str:
    """Returns a made-up id of an upload."""
    return base64.urlsafe_b64encode(json.dumps(members).encode()).decode().rstrip("=")
