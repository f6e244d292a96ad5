"""A flood of wrong passwords: other requests stay fast, memory stays bounded, unlocked visitors notice nothing."""

import http.client
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness import cairn_load
from harness.management import expect
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.server import LOOPBACK, Cairn
from harness.wait import until

MakeStore = Callable[..., Cairn]
BUCKET, KEY, PASSWORD = "flooded", "secret.txt", "correct horse battery staple"
BODY = b"what the password protects" * 100
# Each share may fail 100 times an hour: the flood makes more attempts than can be checked while it lasts.
SHARES_OF_FLOOD = 40
ATTACKERS = 80
# A pause of each attacker, so that this process does not take the processor time that it measures.
PAUSE_SECONDS = 0.1
WINDOW_SECONDS = 3
ROUNDS = 3
# Visits, and passwords that are checked, in each round at least.
OF_ROUND = 7
# The attackers take processor time of the same machine, so by default only queueing behind hashes is judged: the best round's p99
# is below the time that guesses wait. The aim is a ratio of 1.25 with attackers elsewhere and nothing else to do: FLOOD_P99_RATIO_MAX
# judges the best round's.
P99_RATIO_MAX = float(os.environ.get("FLOOD_P99_RATIO_MAX", "inf"))
# Two hashes of 19 MiB, connections, and what the allocator keeps.
MEMORY_BYTES_MAX = 90 << 20
TIMEOUT = 60
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


class Flood:
    """Attackers, each with a connection after the other from addresses of its own."""

    def __init__(self, store: Cairn, paths: list[str]):
        self.store, self.paths = store, paths
        self.ended = threading.Event()
        self.answers: Counter[tuple[int, str]] = Counter()
        self.faults: list[str] = []
        self.longest = 0.0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.attack, args=(number,)) for number in range(ATTACKERS)]

    def attack(self, number: int) -> None:
        """Sends wrong passwords until the end."""
        step = 0
        while not self.ended.wait(PAUSE_SECONDS):
            step += 1
            path = self.paths[(number + step) % len(self.paths)]
            source = f"127.{number + 1}.{step // 250 % 250 + 1}.{step % 250 + 1}"
            connection = http.client.HTTPConnection(LOOPBACK, self.store.console_port, timeout=TIMEOUT, source_address=(source, 0))
            began = time.monotonic()
            try:
                connection.request("POST", f"{path}/unlock", json.dumps({"password": f"guess {number} {step}"}), JSON)
                response = connection.getresponse()
                code = json.loads(response.read())["error"]["code"]
                wait = response.headers["retry-after"]
            except (OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.faults.append(repr(error))
                continue
            finally:
                connection.close()
            with self.lock:
                self.answers[response.status, code] += 1
                self.longest = max(self.longest, time.monotonic() - began)
                if response.status == 429 and not (wait and wait.isdigit() and 1 <= int(wait) <= 3600):
                    self.faults.append(f"429 with Retry-After {wait!r}")


@contextmanager
def flooded(store: Cairn, paths: list[str]) -> Iterator[Flood]:
    """Attacks while the block runs."""
    flood = Flood(store, paths)
    for thread in flood.threads:
        thread.start()
    try:
        yield flood
    finally:
        flood.ended.set()
        for thread in flood.threads:
            thread.join()


@pytest.fixture
def target(make_store: MakeStore, request: pytest.FixtureRequest) -> tuple[Cairn, list[str]]:
    """Starts a store with shares that have a password. Returns their paths. Each needs a hash, so most tests have few."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, SERVICE_STORAGE_CACHE_BYTES="16MiB").start()
    store.s3.create_bucket(BUCKET)
    store.s3.put(BUCKET, KEY, BODY, [("Content-Type", "text/plain")])
    asked = {"password": PASSWORD}
    made = [expect(store.admin.post(f"/buckets/{BUCKET}/object-shares/{KEY}", asked), 201)["url"] for _ in range(getattr(request, "param", 4))]
    return store, [urlsplit(url).path for url in made]


def unlock(store: Cairn, path: str, password: str, source: str = "127.200.0.1") -> tuple[int, dict]:
    """Gives a password. Returns the status and the body of the response."""
    connection = http.client.HTTPConnection(LOOPBACK, store.console_port, timeout=TIMEOUT, source_address=(source, 0))
    try:
        connection.request("POST", f"{path}/unlock", json.dumps({"password": password}), JSON)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def anonymous_bytes(store: Cairn) -> int:
    """Returns the server's resident anonymous memory."""
    text = Path(f"/proc/{store.process.pid}/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) * 1024


def p99_ms(store: Cairn) -> float:
    """Returns the p99 latency of verified reads of 4 KiB on the data plane."""
    done = cairn_load.spawn(
        store, "get", "--bucket", "load", "--keys", "200", "--connections", "2", "--duration", f"{WINDOW_SECONDS}s", "--warm-up", "500ms",
        "--verify", "--json", "--fail-on-error",
    )
    output, _ = done.communicate()
    assert done.returncode == 0, output
    report = json.loads(output)
    assert not report["errors"] and report["verification"]["failures"] == 0, report
    return report["total"]["latency_us"]["p99"] / 1000


@pytest.mark.parametrize("target", [SHARES_OF_FLOOD], indirect=True)
def test_flood_of_wrong_passwords(target: tuple[Cairn, list[str]]):
    """Reads keep their p99, memory stays bounded, an unlocked visitor keeps downloading, further guesses get 429."""
    store, paths = target
    cairn_load.run(store, "prepare", "load", "--keys", "200")
    visited = paths[0]
    status, unlocked = unlock(store, visited, PASSWORD)
    assert status == 200
    visitor = {"x-service-unlock": unlocked["unlock_token"]}
    before, slowest, ratios, memory, visits, longest = anonymous_bytes(store), [], [], [], [], []
    answers: Counter[tuple[int, str]] = Counter()
    for _ in range(ROUNDS):
        quiet = p99_ms(store)
        with flooded(store, paths) as flood:
            until(lambda flood=flood: flood.answers, "nobody guesses")
            stop = threading.Event()

            def visit(stop: threading.Event = stop, least: int = len(visits) + OF_ROUND) -> None:
                while not stop.wait(0.05) or len(visits) < least:
                    began = time.monotonic()
                    got = requests.get(f"{store.console}{visited}/content", headers=visitor, timeout=TIMEOUT)
                    visits.append((got.status_code, got.content == BODY, time.monotonic() - began))
                    memory.append(anonymous_bytes(store))

            visiting = threading.Thread(target=visit)
            visiting.start()
            attacked = p99_ms(store)
            until(lambda flood=flood: flood.answers[401, "SHARE_PASSWORD_INCORRECT"] >= OF_ROUND, "the flood checks too few passwords to be one")
            stop.set()
            visiting.join()
        slowest.append(attacked)
        ratios.append(attacked / quiet)
        answers += flood.answers
        longest.append(flood.longest)
        assert not flood.faults, flood.faults[:5]
        print(f"p99 {quiet:.2f} -> {attacked:.2f} ms, x{ratios[-1]:.2f}; {dict(flood.answers)}")
    statuses = {status for status, _ in answers}
    assert statuses <= {401, 429} and {code for _, code in answers} <= {"SHARE_PASSWORD_INCORRECT", "TOO_MANY_REQUESTS"}, answers
    assert answers[401, "SHARE_PASSWORD_INCORRECT"] > 20, f"the flood checked too few passwords to be one: {answers}"
    assert len(visits) > 20 and all(status == 200 and whole for status, whole, _ in visits), Counter(visit[:2] for visit in visits)
    print(f"memory {before >> 20} -> {max(memory) >> 20} MiB; slowest visit {max(seconds for *_, seconds in visits) * 1000:.0f} ms of {len(visits)}")
    assert max(memory) - before < MEMORY_BYTES_MAX, f"{(max(memory) - before) >> 20} MiB"
    assert max(seconds for *_, seconds in visits) < max(longest), "an unlocked visitor waited as long as the guessing clients"
    assert min(slowest) < 1000 * max(longest) and min(ratios) < P99_RATIO_MAX, (slowest, longest, ratios)
    checked = scrape(store).sum("service_share_access_denied_total", kind="share", reason="password")
    assert checked == answers[401, "SHARE_PASSWORD_INCORRECT"]


def test_guesses_end_and_the_right_password_waits_its_turn(target: tuple[Cairn, list[str]]):
    """One address may fail five times a minute for a share, and is still served for other shares. The hashing memory is given back."""
    store, paths = target
    answers = [unlock(store, paths[1], f"guess {number}") for number in range(8)]
    assert [status for status, _ in answers] == [401] * 5 + [429] * 3
    assert unlock(store, paths[1], PASSWORD)[0] == 429, "the right password is not checked either: it would tell that the limit can be passed"
    assert unlock(store, paths[1], PASSWORD, "127.201.0.1")[0] == 200, "another address is not affected"
    assert unlock(store, paths[2], PASSWORD)[0] == 200, "another share is not affected"
    high = anonymous_bytes(store)
    until(lambda: anonymous_bytes(store) <= high - (15 << 20), lambda: f"{anonymous_bytes(store) >> 20} MiB of {high >> 20} MiB are still used")


def test_a_share_under_attack_stays_open_for_those_who_unlocked_it(target: tuple[Cairn, list[str]]):
    """After 100 failures of many addresses, nobody can unlock the share for a while, and visitors who had done so notice nothing."""
    store, paths = target
    status, unlocked = unlock(store, paths[3], PASSWORD)
    assert status == 200
    answers = Counter(unlock(store, paths[3], "guess", f"127.202.{number // 250}.{number % 250 + 1}")[0] for number in range(110))
    assert answers == {401: 100, 429: 10}
    refused, answer = unlock(store, paths[3], PASSWORD, "127.203.0.1")
    assert (refused, answer["error"]["code"]) == (429, "TOO_MANY_REQUESTS")
    got = requests.get(f"{store.console}{paths[3]}/content", headers={"x-service-unlock": unlocked["unlock_token"]}, timeout=TIMEOUT)
    assert (got.status_code, got.content) == (200, BODY)
