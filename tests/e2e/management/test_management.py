"""Management port and command-line client: health, readiness, request ids, authentication, status."""

import json
import subprocess
import uuid

import pytest
import requests

from harness.expect import choice
from harness.management import basic, bearer, expect_refusal
from harness.s3 import object_target
from harness.server import BINARY, Cairn, clean_environment

TIMEOUT = 60


def get(store: Cairn, path: str, method: str = "GET", **options) -> requests.Response:
    """Sends a request to the management port."""
    return requests.request(method, store.management + path, timeout=TIMEOUT, **options)


@pytest.mark.parametrize(("path", "status"), [("/health", "ok"), ("/ready", "ready")])
def test_health_and_readiness_are_public(store: Cairn, path: str, status: str):
    """Load balancers need no token, for GET and for HEAD."""
    response = get(store, path)
    assert response.status_code == 200 and response.json()["status"] == status
    assert response.headers["content-type"].split(";")[0] == "application/json"
    assert get(store, path, "HEAD").status_code == 200


def test_request_ids_are_unique_or_taken_from_the_client(store: Cairn):
    """A client's request id is used unless it could break a log line or a header."""
    first, second = (get(store, "/health").headers["x-request-id"] for _ in range(2))
    assert first and first != second
    given = f"trace-{uuid.uuid4()}"
    assert get(store, "/health", headers={"x-request-id": given}).headers["x-request-id"] == given
    for bad in ("a b\tc", "x" * 5000, "é"):
        back = get(store, "/health", headers={"x-request-id": bad.encode()}).headers["x-request-id"]
        assert back and len(back) < 300 and back.isascii() and "\t" not in back


def test_system_info_lists_the_capabilities(store: Cairn):
    """The system token and the root credential both give access. Capabilities are the implemented features."""
    root = basic(store.secrets.root_access_key, store.secrets.root_secret_key)
    for headers in (bearer(store.secrets.system_token), root):
        response = get(store, "/api/v1/system/info", headers=headers)
        assert response.status_code == 200, response.text
        info = response.json()
        assert info["name"] and info["version"] and info["status"]
        assert info["s3_compatibility"] == "strict" and info["s3_endpoint"] == store.endpoint
        names = {"versioning", "webhooks", "events", "lifecycle", "object_browser", "erasure_coding"}
        assert names <= set(info["capabilities"])
        assert all(isinstance(value, bool) for value in info["capabilities"].values())
        assert info["capabilities"]["erasure_coding"] is False


@pytest.mark.parametrize(
    "headers",
    [
        {}, bearer("wrong"), bearer(""), {"Authorization": "Bearer"}, {"Authorization": "Basic eDp5"},
        {"Authorization": "Basic !!!"}, {"Authorization": "Digest x"},
    ],
)
def test_requests_without_a_valid_token_are_refused(store: Cairn, headers: dict[str, str]):
    """The answer is 401 with a challenge."""
    response = get(store, "/api/v1/system/info", headers=headers)
    expect_refusal(response, 401, "UNAUTHENTICATED")
    assert response.headers["www-authenticate"]


def test_credentials_of_one_plane_are_refused_on_the_other(store: Cairn):
    """The root secret is not a bearer token, the token is not an S3 key, and a prefix of the token is not a token."""
    token = store.secrets.system_token
    for wrong in (store.secrets.root_secret_key, store.secrets.master_key, token[:-1], token + "x", token.upper()):
        assert get(store, "/api/v1/system/info", headers=bearer(wrong)).status_code == 401


def test_unknown_routes_and_methods_are_refused(store: Cairn):
    """The answers are 404 and 405 in the error format of the management API."""
    headers = bearer(store.secrets.system_token)
    expect_refusal(get(store, "/api/v1/nonsense", headers=headers), 404, "NOT_FOUND")
    response = get(store, "/health", "DELETE", headers=headers)
    expect_refusal(response, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in response.headers["allow"]


def test_management_routes_are_not_served_on_the_data_port(store: Cairn):
    """On the data plane /health, /ready and /api are unsigned requests for buckets."""
    for path in ("/health", "/ready", "/api/v1/system/info"):
        response = requests.get(store.endpoint + path, headers=bearer(store.secrets.system_token), timeout=TIMEOUT)
        assert response.status_code in choice(400, 403), (path, response.status_code)


def test_s3_is_not_served_on_the_management_port(store: Cairn):
    """A signed S3 request to the management port finds nothing."""
    s3 = store.s3
    s3.create_bucket("not-managed")
    head = dict(s3.signed_head("GET", "/not-managed?list-type=2"))
    assert get(store, "/not-managed?list-type=2", headers=head).status_code in choice(404, 401)


# Logs


def log_lines(store: Cairn) -> list[dict]:
    """Returns the JSON lines of the output."""
    lines = []
    for line in store.output().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def test_request_log_never_contains_keys_or_queries(make_store):
    """JSON lines contain request id, method, route pattern, status and latency."""
    store = make_store(SERVICE_LOG_JSON="true", SERVICE_LOG="service=info").start()
    s3 = store.s3
    s3.create_bucket("log-bucket")
    secret_key_name = "private-name-7f21"
    put = s3.put("log-bucket", secret_key_name, b"1")
    url = s3.presigned("GET", object_target("log-bucket", secret_key_name))
    got = s3.use_presigned("GET", url)
    managed = get(store, "/ready", headers={"x-request-id": "given-id-1"})
    assert managed.status_code == 200 and store.stop() == 0
    text = store.output()
    for request_id, method in ((put.get("x-amz-request-id"), "PUT"), (got.get("x-amz-request-id"), "GET"), ("given-id-1", "GET")):
        lines = [line for line in log_lines(store) if request_id in json.dumps(line)]
        assert lines, f"no line for {request_id}:\n{text[-3000:]}"
        flat = json.dumps(lines)
        assert f'"{method}"' in flat and "200" in flat and "latency" in flat, flat
    assert secret_key_name not in text, "the log must contain route patterns only"
    assert url.rpartition("=")[2] not in text and "X-Amz-Signature" not in text


def test_text_log_has_one_line_for_each_request(make_store):
    """The text format is the default, and has no colours if the output is not a terminal."""
    store = make_store(SERVICE_LOG="service=info").start()
    answer = store.s3.request("GET", "/")
    assert store.stop() == 0
    lines = [line for line in store.output().splitlines() if answer.get("x-amz-request-id") in line]
    assert len(lines) == 1 and "\x1b[" not in store.output()


# `cairn status`


def status(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs the command with only these environment variables."""
    return subprocess.run(
        [BINARY, "status", *arguments], env=clean_environment() | variables, capture_output=True, text=True, timeout=30
    )


def test_status_exits_with_0_when_ready(store: Cairn):
    """The exit code follows the readiness of the server."""
    done = status("--endpoint", store.management)
    assert done.returncode == 0, done.stderr
    assert "ready" in done.stdout.lower()


def test_status_prints_system_information(store: Cairn):
    """It needs a token, which is never printed. A wrong token is reported, but only readiness decides the exit code."""
    done = status("--endpoint", store.management, SERVICE_MANAGEMENT_TOKEN=store.secrets.system_token)
    assert done.returncode == 0, done.stderr
    info = get(store, "/api/v1/system/info", headers=bearer(store.secrets.system_token)).json()
    assert info["version"] in done.stdout
    assert store.secrets.system_token not in done.stdout + done.stderr


def test_status_fails_when_nothing_answers(make_store):
    """The exit code is not 0, and there is a message instead of a panic."""
    done = status("--endpoint", make_store().management)
    assert done.returncode != 0 and done.stderr and "panicked" not in done.stderr


def test_status_refuses_an_invalid_endpoint():
    """The endpoint is not an address."""
    for endpoint in ("nonsense", "ftp://127.0.0.1:1", "http://127.0.0.1:99999"):
        done = status("--endpoint", endpoint)
        assert done.returncode != 0 and "panicked" not in done.stderr
