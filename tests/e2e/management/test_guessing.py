"""Guesses of credentials are limited per address, with one count for both planes. Nobody else is locked out."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import pytest
from harness.accounts import create_account, statement
from harness.management import Management, basic, expect
from harness.s3 import S3, error_code
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential
from harness.wait import until

CONNECTIONS = 16
# Guesses that are refused without a check, and answers to others meanwhile.
REFUSED_MIN, SAMPLES_MIN = 1000, 20
# So many come at once if nothing delays them, which is more than are allowed then.
GUESSES_MIN = 60
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


@dataclass
class Attack:
    """Guesses over many connections until its end: the codes of all responses so far, and the wait for each."""

    begun: float = 0.0
    seconds: float = 0.0
    codes: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    running: list[Future] = field(default_factory=list)

    def guess(self, client: S3) -> None:
        """Sends wrong signatures over one connection at a time."""
        while not self.ended.is_set():
            with client.connect() as connection:
                while not self.ended.is_set():
                    before = time.monotonic()
                    response = client.request("GET", TARGET, connection=connection)
                    self.waits.append(time.monotonic() - before)
                    self.codes.append(error_code(response))
                    if response.get("connection") == "close":
                        break

    def end(self) -> Counter[str]:
        """Ends it, and returns how often each code came."""
        self.ended.set()
        for guesses in self.running:
            guesses.result()
        self.seconds = time.monotonic() - self.begun
        return Counter(self.codes)


@pytest.fixture
def attack() -> Iterator[Callable[[Cairn, str], Attack]]:
    """Begins an attack."""
    with ThreadPoolExecutor(CONNECTIONS) as crowd:
        guesses = Attack()

        def begin(store: Cairn, access_key: str) -> Attack:
            client = S3(LOOPBACK, store.s3_port, Credential(access_key, "guessed-secret"))
            guesses.begun = time.monotonic()
            guesses.running = [crowd.submit(guesses.guess, client) for _ in range(CONNECTIONS)]
            return guesses

        yield begin
        guesses.ended.set()


def test_guesses_of_the_root_secret_are_limited_on_both_planes(guessed: Cairn, attack):
    """Regression: 38 700 guesses a second were checked on the data plane. An account at the same address is unaffected."""
    account = create_account(guessed, statement("allow", ["PutObject", "GetObject"], "bucket:kept/*"))
    assert account.s3.put("kept", "key", b"body").status == 200
    guesses = attack(guessed, guessed.secrets.root_access_key)
    root = Management(guessed.management, basic(guessed.secrets.root_access_key, guessed.secrets.root_secret_key))
    waits, other_plane = [], Counter[int]()

    def has_seen_enough() -> bool:
        before = time.monotonic()
        assert account.s3.get("kept", "key").status == 200
        waits.append(time.monotonic() - before)
        other_plane[root.get("/buckets").status_code] += 1
        expect(guessed.admin.get("/buckets"), 200)
        return guesses.codes.count("SlowDown") >= REFUSED_MIN and len(waits) >= SAMPLES_MIN

    until(has_seen_enough, lambda: Counter(guesses.codes))
    found = guesses.end()
    assert found.keys() == {"SignatureDoesNotMatch", "SlowDown"}
    checked = FREE_GUESSES + GUESSES_PER_SECOND * guesses.seconds + 2
    assert found["SignatureDoesNotMatch"] <= checked < found["SlowDown"], (found, guesses.seconds)
    assert other_plane[429] > 0, "the planes have one count"
    assert statistics.median(waits) < max(guesses.waits) / 2, "a correct signature was delayed as a wrong one is"
    until(lambda: guessed.s3.get("kept", "key").status == 200, "root is refused long after the last guess")
    expect(root.get("/buckets"), 200)


@pytest.mark.parametrize("known", [False, True])
def test_wrong_credentials_of_accounts_are_delayed_and_lock_nobody_out(guessed: Cairn, attack, known: bool):
    """Their secrets are too long to be guessed, so neither root nor another account is refused because of them."""
    access_key = create_account(guessed).keys["access_key"] if known else "AKNOBODY"
    guesses = attack(guessed, access_key)

    def has_seen_enough() -> bool:
        assert guessed.s3.request("GET", "/kept?list-type=2").status == 200, "root is locked out"
        return len(guesses.codes) >= GUESSES_MIN

    until(has_seen_enough, lambda: Counter(guesses.codes))
    found = guesses.end()
    assert found.keys() == {"SignatureDoesNotMatch" if known else "InvalidAccessKeyId"}
    # Each connection gets at most one response in two seconds, after those that are free.
    assert found.total() <= 16 + CONNECTIONS * (2 + guesses.seconds), (found, guesses.seconds)


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
