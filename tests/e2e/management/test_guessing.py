"""Guesses of credentials are limited per address, with one count for both planes. Nobody else is locked out."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from harness.accounts import create_account, statement
from harness.management import Management, basic, expect
from harness.s3 import S3, error_code
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential

CONNECTIONS = 16
ATTACK_SECONDS = 3.0
# 16 failures without a delay, a second's worth beyond them, then four a second; with room for the end of the attack.
GUESSES_MAX = 16 + 4 + 4 * (ATTACK_SECONDS + 1) + 2
TARGET = "/?x-id=ListBuckets"


@pytest.fixture
def guessed(make_store: Callable[..., Cairn]) -> Cairn:
    """A store of its own, because all tests have the same address."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    return store


def guess(store: Cairn, access_key: str, ended: Event) -> Counter[str]:
    """Sends wrong signatures over one connection until the attack ends. Counts the codes of the responses."""
    client, codes = S3(LOOPBACK, store.s3_port, Credential(access_key, "guessed-secret")), Counter[str]()
    while not ended.is_set():
        with client.connect() as connection:
            while not ended.is_set():
                response = client.request("GET", TARGET, connection=connection)
                codes[error_code(response)] += 1
                if response.get("connection") == "close":
                    break
    return codes


@pytest.fixture
def attack() -> Iterator[Callable[[Cairn, str], Callable[[], Counter[str]]]]:
    """Starts guesses over many connections. What it returns ends them and returns the codes of all responses."""
    with ThreadPoolExecutor(CONNECTIONS) as crowd:
        ended = Event()

        def start(store: Cairn, access_key: str) -> Callable[[], Counter[str]]:
            running = [crowd.submit(guess, store, access_key, ended) for _ in range(CONNECTIONS)]

            def end() -> Counter[str]:
                ended.set()
                return sum((codes.result() for codes in running), Counter[str]())

            return end

        yield start
        ended.set()


def test_guesses_of_the_root_secret_are_limited_on_both_planes(guessed: Cairn, attack):
    """Regression: 38 700 guesses a second were checked on the data plane. An account at the same address is unaffected."""
    account = create_account(guessed, statement("allow", "PutObject", "bucket:kept/*"))
    end = attack(guessed, guessed.secrets.root_access_key)
    root = Management(guessed.management, basic(guessed.secrets.root_access_key, guessed.secrets.root_secret_key))
    begin, longest, other_plane = time.monotonic(), 0.0, Counter[int]()
    while time.monotonic() < begin + ATTACK_SECONDS:
        before = time.monotonic()
        account.s3.put("kept", "key", b"body")
        longest = max(longest, time.monotonic() - before)
        other_plane[root.get("/buckets").status_code] += 1
        expect(guessed.admin.get("/buckets"), 200)
        time.sleep(0.02)
    codes = end()
    assert codes.keys() == {"SignatureDoesNotMatch", "SlowDown"}
    assert codes["SignatureDoesNotMatch"] <= GUESSES_MAX < codes["SlowDown"], codes
    assert other_plane[429] > 0, "the planes have one count"
    assert longest < 1.0, "a correct signature was delayed"
    time.sleep(0.5)
    assert guessed.s3.get("kept", "key").status == 200, "root is refused long after the last guess"
    expect(root.get("/buckets"), 200)


@pytest.mark.parametrize("known", [False, True])
def test_wrong_credentials_of_accounts_are_delayed_and_lock_nobody_out(guessed: Cairn, attack, known: bool):
    """Their secrets are too long to be guessed, so neither root nor another account is refused because of them."""
    access_key = create_account(guessed).keys["access_key"] if known else "AKNOBODY"
    end = attack(guessed, access_key)
    begin = time.monotonic()
    while time.monotonic() < begin + ATTACK_SECONDS:
        assert guessed.s3.request("GET", "/kept?list-type=2").status == 200, "root is locked out"
        time.sleep(0.02)
    codes = end()
    assert codes.keys() == {"SignatureDoesNotMatch" if known else "InvalidAccessKeyId"}
    # Each connection gets at most one response in two seconds, after those that are free.
    assert codes.total() <= 16 + CONNECTIONS * (2 + ATTACK_SECONDS), codes


def test_a_mistyped_secret_is_reported_at_once(guessed: Cairn):
    """A few failures cause no delay."""
    mistyped = S3(LOOPBACK, guessed.s3_port, Credential(guessed.secrets.root_access_key, "mistyped"))
    begin = time.monotonic()
    for _ in range(8):
        assert error_code(mistyped.request("GET", TARGET)) == "SignatureDoesNotMatch"
    assert time.monotonic() - begin < 1.0
