"""Trusted proxies: forged client addresses must not reach the audit log, the log or the login throttle."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness.management import Management, basic, expect
from harness.s3 import S3, object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential

CLIENT, INVENTED = "198.51.100.7", "203.0.113.66"
# More than the eight delayed responses after which further attempts of a client are refused unchecked.
CROWD = 12


def refused_from(store: Cairn, *fields: tuple[str, str]) -> dict:
    """Sends a refused request with these headers to the data plane and returns its audit event."""
    stranger = S3(LOOPBACK, store.s3_port, Credential("AKNOBODY", "x" * 40))
    refused = stranger.request("PUT", object_target("no-such-bucket", "k"), list(fields), body=b"1")
    assert refused.status == 403
    return event_of(store, refused.get("x-amz-request-id"))


def event_of(store: Cairn, request_id: str) -> dict:
    """Returns the only event of a request."""
    (event,) = events(store, request_id=request_id)
    return event


def events(store: Cairn, **parameters: str) -> list[dict]:
    """Returns a page of the audit log."""
    return expect(store.admin.get("/audit/events", params=parameters), 200)["events"]


@pytest.fixture(scope="module")
def trusting(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a store that trusts connections from this host."""
    return make_module_store(SERVICE_SERVER_TRUSTED_PROXIES="127.0.0.0/8, 10.0.0.0/8").start()


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded"])
def test_forwarding_headers_are_ignored_without_trusted_proxies(store: Cairn, name: str):
    """By default the client address is that of the connection."""
    value = INVENTED if name == "X-Forwarded-For" else f"for={INVENTED}"
    assert refused_from(store, (name, value))["source_ip"] == LOOPBACK


@pytest.mark.parametrize(
    ("fields", "client"),
    [
        ([("X-Forwarded-For", CLIENT)], CLIENT),
        ([("X-Forwarded-For", f"{INVENTED}, {CLIENT}, 10.1.2.3")], CLIENT),
        ([("X-Forwarded-For", INVENTED), ("X-Forwarded-For", "2001:db8::7")], "2001:db8::7"),
        ([("X-Forwarded-For", f"{INVENTED}, nonsense, 10.1.2.3")], "10.1.2.3"),
        ([("X-Forwarded-For", f"{INVENTED}, nonsense")], LOOPBACK),
        ([("Forwarded", f"for={INVENTED}"), ("X-Forwarded-For", CLIENT)], CLIENT),
        ([("Forwarded", f"for={INVENTED}")], LOOPBACK),
    ],
)
def test_logs_contain_the_client_address_seen_by_the_proxy(trusting: Cairn, fields: list[tuple[str, str]], client: str):
    """Addresses further left in the header, and the header that is not configured, are ignored."""
    event = refused_from(trusting, *fields)
    assert event["source_ip"] == client
    (line,) = [line for line in trusting.wait_output(event["request_id"]).splitlines() if f"request_id={event['request_id']}" in line and "route=" in line]
    assert f" client={client} " in line
    assert (f" proxy={LOOPBACK} " in line) == (client != LOOPBACK)


def test_forwarded_header_is_used_when_configured(make_store: Callable[..., Cairn]):
    """`Forwarded` may contain quotes and ports. `X-Forwarded-For` is ignored then."""
    store = make_store(SERVICE_SERVER_TRUSTED_PROXIES=LOOPBACK, SERVICE_SERVER_FORWARDED_HEADER="forwarded").start()
    element = f'for={INVENTED}, for="[2001:db8::7]:4711";proto=https;host="a,b"'
    assert refused_from(store, ("Forwarded", element), ("X-Forwarded-For", CLIENT))["source_ip"] == "2001:db8::7"
    assert refused_from(store, ("X-Forwarded-For", CLIENT))["source_ip"] == LOOPBACK


def test_login_throttle_is_separate_for_clients_behind_a_proxy(trusting: Cairn):
    """A client that guesses credentials cannot change its address by sending headers."""
    wrong = basic("root", "wrong")
    right = basic(trusting.secrets.root_access_key, trusting.secrets.root_secret_key)

    def ask(credential: dict[str, str], forwarded: str) -> requests.Response:
        return Management(trusting.management, credential | {"X-Forwarded-For": forwarded}).get("/buckets")

    with ThreadPoolExecutor(CROWD) as crowd:
        addresses = itertools.count(1)
        guesses = [crowd.submit(ask, wrong, f"192.0.2.{next(addresses)}, {CLIENT}") for _ in range(4 * CROWD)]
        other = ask(right, "198.51.100.8")
        statuses = {guess.result().status_code for guess in guesses}
    assert other.status_code == 200
    assert statuses == {401, 429}, "forged addresses must not separate one client into several"
    assert events(trusting, source_ip=CLIENT, operation="list_buckets") and not events(trusting, source_ip="192.0.2.1")


def test_management_audit_events_contain_the_client_address(trusting: Cairn):
    """A proxy in front of the management port passes the address on."""
    made = trusting.admin.post("/buckets", {"name": "made-through-a-proxy"}, headers={"X-Forwarded-For": CLIENT})
    expect(made, 201)
    assert event_of(trusting, made.headers["x-request-id"])["source_ip"] == CLIENT
