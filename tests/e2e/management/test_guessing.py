"""Guesses of credentials are limited per address, with one count for both planes. Nobody else is locked out."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pytest
from harness.accounts import create_account, statement
from harness.management import Management, basic, expect
from harness.s3 import S3, error_code
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential
from harness.wait import until

CONNECTIONS = 16
ATTACK_SECONDS = 3.0
# 16 failures without a delay, a second's worth beyond them, then four a second; with room for the end of the attack.
FREE_GUESSES = 16 + 4
GUESSES_PER_SECOND = 4
TARGET = "/?x-id=ListBuckets"


@pytest.fixture
def guessed(make_store: Callable[..., Cairn]) -> Cairn:
    """A store of its own, because all tests have the same address."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    return store


def guess(store: Cairn, access_key: str, ended: Event) -> tuple[Counter[str], float]:
    """Sends wrong signatures over one connection until the attack ends. Returns the codes and the longest wait for one."""
    client, codes, longest = S3(LOOPBACK, store.s3_port, Credential(access_key, "guessed-secret")), Counter[str](), 0.0
    while not ended.is_set():
        with client.connect() as connection:
            while not ended.is_set():
                before = time.monotonic()
                response = client.request("GET", TARGET, connection=connection)
                longest = max(longest, time.monotonic() - before)
                codes[error_code(response)] += 1
                if response.get("connection") == "close":
                    break
    return codes, longest


@dataclass
class Attack:
    """The result of an attack: the codes of all responses, the longest wait for one, and how long it lasted."""

    codes: Counter[str]
    longest: float
    seconds: float


@pytest.fixture
def attack() -> Iterator[Callable[[Cairn, str], Callable[[], Attack]]]:
    """Starts guesses over many connections. What it returns ends them."""
    with ThreadPoolExecutor(CONNECTIONS) as crowd:
        ended = Event()

        def start(store: Cairn, access_key: str) -> Callable[[], Attack]:
            begun = time.monotonic()
            running = [crowd.submit(guess, store, access_key, ended) for _ in range(CONNECTIONS)]

            def end() -> Attack:
                ended.set()
                codes, waits = zip(*(guesses.result() for guesses in running))
                return Attack(sum(codes, Counter[str]()), max(waits), time.monotonic() - begun)

            return end

        yield start
        ended.set()


def test_guesses_of_the_root_secret_are_limited_on_both_planes(guessed: Cairn, attack):
    """Regression: 38 700 guesses a second were checked on the data plane. An account at the same address is unaffected."""
    account = create_account(guessed, statement("allow", ["PutObject", "GetObject"], "bucket:kept/*"))
    assert account.s3.put("kept", "key", b"body").status == 200
    end = attack(guessed, guessed.secrets.root_access_key)
    root = Management(guessed.management, basic(guessed.secrets.root_access_key, guessed.secrets.root_secret_key))
    begin, waits, other_plane = time.monotonic(), [], Counter[int]()
    while time.monotonic() < begin + ATTACK_SECONDS:
        before = time.monotonic()
        assert account.s3.get("kept", "key").status == 200
        waits.append(time.monotonic() - before)
        other_plane[root.get("/buckets").status_code] += 1
        expect(guessed.admin.get("/buckets"), 200)
        time.sleep(0.02)
    found = end()
    assert found.codes.keys() == {"SignatureDoesNotMatch", "SlowDown"}
    checked = FREE_GUESSES + GUESSES_PER_SECOND * found.seconds + 2
    assert found.codes["SignatureDoesNotMatch"] <= checked < found.codes["SlowDown"], found
    assert other_plane[429] > 0, "the planes have one count"
    assert statistics.median(waits) < found.longest / 2, "a correct signature was delayed as a wrong one is"
    until(lambda: guessed.s3.get("kept", "key").status == 200, "root is refused long after the last guess")
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
    found = end()
    assert found.codes.keys() == {"SignatureDoesNotMatch" if known else "InvalidAccessKeyId"}
    # Each connection gets at most one response in two seconds, after those that are free.
    assert found.codes.total() <= 16 + CONNECTIONS * (2 + found.seconds), found


def test_a_mistyped_secret_is_reported_at_once(guessed: Cairn):
    """A few failures cause no delay. Those that come after them do, which shows what a delay is."""
    mistyped = S3(LOOPBACK, guessed.s3_port, Credential(guessed.secrets.root_access_key, "mistyped"))

    def wait() -> float:
        begin = time.monotonic()
        assert error_code(mistyped.request("GET", TARGET)) in ("SignatureDoesNotMatch", "SlowDown")
        return time.monotonic() - begin

    free = [wait() for _ in range(8)]
    later = [wait() for _ in range(FREE_GUESSES)]
    assert statistics.median(free) < max(later) / 2, (free, later)
