"""Client of the management plane with one credential, and helpers for its responses."""

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import requests

from .wait import until

TIMEOUT = 60
API = "/api/v1"


def bearer(token: str) -> dict[str, str]:
    """Returns the header that sends a token."""
    return {"Authorization": f"Bearer {token}"}


def basic(name: str, secret: str) -> dict[str, str]:
    """Returns the header that sends a name and secret."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


@dataclass
class Management:
    """A client of one server with one credential or none."""

    address: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)

    def request(self, method: str, path: str, **options) -> requests.Response:
        """Sends a request to a path below /api/v1, or below the root if the path begins with two slashes."""
        target = path[1:] if path.startswith("//") else API + path
        headers = self.headers | options.pop("headers", {})
        return requests.request(method, self.address + target, headers=headers, timeout=TIMEOUT, **options)

    def get(self, path: str, **options) -> requests.Response:
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, body=None, **options) -> requests.Response:
        """POST with a JSON body."""
        return self.request("POST", path, json=body, **options) if body is not None else self.request("POST", path, **options)

    def put(self, path: str, body=None, **options) -> requests.Response:
        """PUT with a JSON body."""
        return self.request("PUT", path, json=body, **options) if body is not None else self.request("PUT", path, **options)

    def delete(self, path: str, **options) -> requests.Response:
        """DELETE."""
        return self.request("DELETE", path, **options)


def with_role(admin: Management, role: str) -> Management:
    """Returns a client with a new management token of this role."""
    token = expect(admin.post("/management-tokens", {"name": f"a {role}", "role": role}), 201)["token"]
    return Management(admin.address, bearer(token))


def segment(text: str) -> str:
    """Encodes a bucket name or key as one path segment."""
    return quote(text, safe="")


def expect(response: requests.Response, status: int):
    """Asserts the status and returns the JSON body, or None if there is no body."""
    assert response.status_code == status, f"{response.status_code}, not {status}: {response.text[:2000]}"
    return response.json() if response.content else None


def expect_refusal(response: requests.Response, status: int, code: str) -> str:
    """Asserts status, code and format of an error response and returns its message."""
    assert response.status_code == status, f"{response.status_code}, not {status}: {response.text[:2000]}"
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error["code"] == code, error
    assert error["request_id"] == response.headers["x-request-id"] and error["message"]
    return error["message"]


def lifecycle_runs_later(admin: Management, seconds: float) -> None:
    """Waits until a run of the lifecycle rules has ended that began at least this much later than now."""
    begin = datetime.now(UTC) + timedelta(seconds=seconds)

    def has_run() -> bool:
        status = expect(admin.get("/lifecycle/status"), 200)
        started, finished = status["last_run_started_at"], status["last_run_finished_at"]
        return bool(started and finished) and datetime.fromisoformat(started) > begin

    until(has_run, "the rules are not applied again")


def compaction_ends(admin: Management) -> dict:
    """Waits for the end of a compaction and returns its status."""
    show = lambda: expect(admin.get("/storage/compact"), 200)
    return until(lambda: (status := show())["state"] != "running" and status, show)
