"""The keys of a provider: they change without notice, and a provider that does not publish them stops nobody else."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from Crypto.PublicKey import RSA

from harness.management import expect
from harness.openid import HostileProvider, Visitor, log_out, settings
from harness.server import Cairn
from harness.wait import until


def signs_in(store: Cairn, provider: HostileProvider) -> bool:
    """Returns whether a person gets a session."""
    visitor = Visitor(store)
    provider.come_back(visitor)
    return visitor.session() is not None


@pytest.mark.parametrize("header", [{"alg": "RS256", "kid": "one"}, {"alg": "RS256"}], ids=["same-id", "no-id"])
def test_a_replaced_key_is_found(served: Cairn, provider: HostileProvider, header: dict):
    """Nobody could sign in for an hour when a key was replaced under its id, or when keys had none."""
    provider.header = header
    assert signs_in(served, provider)
    provider.key = RSA.generate(2048)
    # The keys are read again at most every 10 s.
    until(lambda: signs_in(served, provider))


def test_known_keys_are_used_while_the_provider_does_not_answer(served: Cairn, provider: HostileProvider):
    """Regression: a logout token with an unknown key stopped all sign-ins for as long as the request for the keys took."""
    assert signs_in(served, provider)
    provider.hold("/keys")
    provider.header = {"alg": "RS256", "kid": "unknown"}
    forged, asked = provider.logout_token(), threading.Event()

    def forge() -> None:
        while not asked.is_set():
            log_out(served, forged)

    with ThreadPoolExecutor() as pool:
        provider.requests.clear()
        forging = pool.submit(forge)
        try:
            until(lambda: any(path == "/keys" for path, _, _ in provider.requests))
            asked.set()
            provider.header = {"alg": "RS256", "kid": "one"}
            assert signs_in(served, provider) and not forging.done()
        finally:
            asked.set()
            provider.release()
        forging.result()


def test_many_logouts_of_one_network_are_refused_and_recorded(make_store: Callable[..., Cairn], provider: HostileProvider):
    """A refused one may be of the provider: then sessions go on that it wanted to end."""
    store = make_store()
    store.extra |= settings(provider.issuer, store.console)
    store.start()
    provider.hold("/keys")
    with ThreadPoolExecutor(17) as pool:
        answers = [pool.submit(log_out, store, provider.logout_token()) for _ in range(17)]
        until(lambda: any(answer.done() for answer in answers))
        provider.release()
        assert sorted(answer.result().status_code for answer in answers) == 16 * [200] + [429]
    (event,) = expect(store.admin.get("/audit/events", params={"operation": "end_sessions_of_provider", "result": "denied"}), 200)["events"]
    assert event["detail"] == "TOO_MANY_REQUESTS: too many logouts are being processed; try again later"
