"""Attacks what is believed about a client's address: an invented one must not reach the trail, the log or the throttle."""

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
# More than the eight whose answers are held back before further guesses of the client are not looked at.
CROWD = 12


def refused_from(store: Cairn, *fields: tuple[str, str]) -> dict:
    """The audit event of a request that was refused on the data plane and had these header fields."""
    stranger = S3(LOOPBACK, store.s3_port, Credential("AKNOBODY", "x" * 40))
    refused = stranger.request("PUT", object_target("no-such-bucket", "k"), list(fields), body=b"1")
    assert refused.status == 403
    return event_of(store, refused.get("x-amz-request-id"))


def event_of(store: Cairn, request_id: str) -> dict:
    """The one event of a request."""
    (event,) = events(store, request_id=request_id)
    return event


def events(store: Cairn, **parameters: str) -> list[dict]:
    """A page of the trail."""
    return expect(store.admin.get("/audit/events", params=parameters), 200)["events"]


@pytest.fixture(scope="module")
def trusting(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Trusts whoever connects from here."""
    return make_module_store(SERVICE_SERVER_TRUSTED_PROXIES="127.0.0.0/8, 10.0.0.0/8").start()


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded"])
def test_without_trusted_proxies_nothing_is_believed(store: Cairn, name: str):
    """The default: whatever the headers say, a client is who connects."""
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
def test_the_trail_and_the_log_name_the_client_that_the_proxy_saw(trusting: Cairn, fields: list[tuple[str, str]], client: str):
    """Never what stands left of it, nor what the other header says."""
    event = refused_from(trusting, *fields)
    assert event["source_ip"] == client
    (line,) = [line for line in trusting.wait_output(event["request_id"]).splitlines() if f"request_id={event['request_id']}" in line and "route=" in line]
    assert f" client={client} " in line
    assert (f" proxy={LOOPBACK} " in line) == (client != LOOPBACK)


def test_the_standard_header_is_read_when_it_is_configured(make_store: Callable[..., Cairn]):
    """`Forwarded` with quotes and ports; the other header is not read then."""
    store = make_store(SERVICE_SERVER_TRUSTED_PROXIES=LOOPBACK, SERVICE_SERVER_FORWARDED_HEADER="forwarded").start()
    element = f'for={INVENTED}, for="[2001:db8::7]:4711";proto=https;host="a,b"'
    assert refused_from(store, ("Forwarded", element), ("X-Forwarded-For", CLIENT))["source_ip"] == "2001:db8::7"
    assert refused_from(store, ("X-Forwarded-For", CLIENT))["source_ip"] == LOOPBACK


def test_a_crowd_of_wrong_credentials_keeps_nobody_else_behind_the_proxy_out(trusting: Cairn):
    """Each client has its own throttle; the guesser cannot change clients by what it sends itself."""
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
    assert statuses == {401, 429}, "the invented addresses changed nothing: the crowd counted as one client"
    assert events(trusting, source_ip=CLIENT, operation="list_buckets") and not events(trusting, source_ip="192.0.2.1")


def test_a_change_on_the_management_plane_names_the_client(trusting: Cairn):
    """What a proxy in front of the management port passes on is in the record of the change."""
    made = trusting.admin.post("/buckets", {"name": "made-through-a-proxy"}, headers={"X-Forwarded-For": CLIENT})
    expect(made, 201)
    assert event_of(trusting, made.headers["x-request-id"])["source_ip"] == CLIENT
