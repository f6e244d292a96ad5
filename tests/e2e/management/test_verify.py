"""Verification: detection of damage, no false findings, valid proofs, and clients that disconnect."""

import base64
import json
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from harness import proof
from harness.damage import flip_bit, unit_places
from harness.s3 import S3
from harness.server import BINARY, LOOPBACK, Cairn, clean_environment
from harness.wait import until

TIMEOUT = 60
BLOCK_BYTES = 65536
SCRAPE_TOKEN = "scrape-token-of-the-tests"


def ask(store: Cairn, method: str, path: str, **options) -> requests.Response:
    """Sends a request to the management port with the system token."""
    headers = {"Authorization": f"Bearer {store.secrets.system_token}"}
    return requests.request(method, store.management + path, headers=headers, timeout=TIMEOUT, **options)


def verify(store: Cairn, path: str, **options) -> dict:
    """Returns the result of a verification, and asserts that its proof is valid and agrees with the result."""
    response = ask(store, "POST", f"/api/v1/verify/{path}", **options)
    assert response.status_code == 200, response.text
    body = response.json()
    bundle = body.pop("proof")
    assert proof.is_good(bundle)
    payload = bundle["payload"]
    assert payload["audit"]["available"] is False and payload["audit"]["reason"]
    assert {name: payload[name] for name in body} == body
    assert base64.b64decode(bundle["public_key"]) == proof.public_key_of(store.secrets.master_key, payload["store_id"])
    assert payload["started_at"] <= payload["completed_at"]
    return body


def problem(response: requests.Response) -> tuple[int, str]:
    """Returns the status and code of an error response."""
    return response.status_code, response.json()["error"]["code"]


def plant(store: Cairn, body: bytes, at: int) -> None:
    """Stops the server, flips one bit of a payload in its volume, and starts the server again."""
    assert store.stop() == 0
    unit = at // 4096 * 4096
    path, offset = unit_places(store.data, 64)[body[unit : unit + 64]]
    flip_bit(path, offset + at - unit, 5)
    store.start()


def fill(s3: S3, bucket: str, seed: int) -> dict[str, bytes]:
    """Writes objects of every storage form, some with keys that need encoding."""
    rng = random.Random(seed)
    sizes = {"empty": 0, "small": 900, "a/b c": 16_385, "schlüssel/ä+%": 300_000, "large": 17 << 20}
    bodies = {key: rng.randbytes(size) for key, size in sizes.items()}
    for key, body in bodies.items():
        assert s3.put(bucket, key, body).status == 200
    return bodies


def test_intact_objects_and_bucket_are_verified(own_store: Cairn):
    """Every storage form is reported as ok, keys are decoded once, and the proofs are valid."""
    own_store.s3.create_bucket("sound")
    bodies = fill(own_store.s3, "sound", 1)
    for key, body in bodies.items():
        found = verify(own_store, f"objects/sound/{requests.utils.quote(key, safe='/')}")
        assert found["status"] == "ok" and found["detail"] is None
        assert (found["bucket"], found["key"], found["size"]) == ("sound", key, len(body))
        assert found["blocks_checked"] == -(-len(body) // BLOCK_BYTES)
        same = verify(own_store, f"objects/sound/{requests.utils.quote(key)}?version_id={found['version_id']}")
        assert same == found
    found = verify(own_store, "buckets/sound")
    assert found["complete"] and found["corrupt"] == [] and found["corrupt_count"] == 0
    assert found["versions_verified"] == len(bodies)
    assert found["bytes_verified"] == sum(map(len, bodies.values()))
    assert ask(own_store, "GET", "/api/v1/verify/progress").json() == {"verifications": []}


def test_bucket_can_be_verified_in_steps(own_store: Cairn):
    """Each step continues where the previous one ended."""
    own_store.s3.create_bucket("pieces")
    for number in range(25):
        own_store.s3.put("pieces", f"k{number}", b"x")
    request, verified, pieces = {"maximum_versions": 4}, 0, 0
    while True:
        found = verify(own_store, "buckets/pieces", json=request)
        verified, pieces = verified + found["versions_verified"], pieces + 1
        if found["complete"]:
            break
        request["continuation_token"] = found["next_continuation_token"]
    assert verified == 25 and pieces >= 7


@pytest.mark.parametrize("block", [0, 3, 270])
def test_flipped_bit_is_found_in_its_block(own_store: Cairn, block: int):
    """Only the damaged block is reported. The object is no longer served, the others are."""
    s3 = own_store.s3
    s3.create_bucket("hurt")
    bodies = fill(s3, "hurt", 2)
    key = "large" if block > 4 else "schlüssel/ä+%"
    plant(own_store, bodies[key], block * BLOCK_BYTES + 1234)
    found = verify(own_store, f"objects/hurt/{requests.utils.quote(key)}")
    assert (found["status"], found["detail"]) == ("corrupt", f"block {block}")
    found = verify(own_store, "buckets/hurt")
    assert found["complete"] and found["corrupt_count"] == 1 and found["versions_verified"] == len(bodies)
    assert [(one["key"], one["detail"]) for one in found["corrupt"]] == [(key, f"block {block}")]
    for text in (f"block {block}", f"hurt/{key}"):
        own_store.wait_output(text)
    for other, body in bodies.items():
        if other != key:
            assert s3.get("hurt", other).body == body


def test_invalid_verify_requests_are_refused(store: Cairn, bucket: str):
    """Each mistake has its own error code, and misspelt options are not ignored."""
    store.s3.put(bucket, "k", b"x")
    objects, buckets = "/api/v1/verify/objects", "/api/v1/verify/buckets"
    for path, options, expected in [
        (f"{objects}/{bucket}/none", {}, (404, "OBJECT_NOT_FOUND")),
        (f"{objects}/no-such-bucket/k", {}, (404, "BUCKET_NOT_FOUND")),
        (f"{objects}/BAD/k", {}, (400, "INVALID_BUCKET_NAME")),
        (f"{objects}/{bucket}/k?version_id=999999", {}, (404, "VERSION_NOT_FOUND")),
        (f"{objects}/{bucket}/k?version_id=x", {}, (404, "VERSION_NOT_FOUND")),
        (f"{objects}/{bucket}/k?versionid=1", {}, (400, "INVALID_REQUEST")),
        (f"{objects}/{bucket}/k", {"json": {"x": 1}}, (400, "INVALID_REQUEST")),
        (f"{objects}/{bucket}", {}, (404, "NOT_FOUND")),
        (f"{buckets}/no-such-bucket", {}, (404, "BUCKET_NOT_FOUND")),
        (f"{buckets}/{bucket}?x=1", {}, (400, "INVALID_REQUEST")),
        (f"{buckets}/{bucket}", {"json": {"maximum_version": 1}}, (400, "INVALID_REQUEST")),
        (f"{buckets}/{bucket}", {"json": {"maximum_versions": 0}}, (400, "INVALID_REQUEST")),
        (f"{buckets}/{bucket}", {"json": {"continuation_token": "!"}}, (400, "INVALID_REQUEST")),
        (f"{buckets}/{bucket}", {"data": b"{" * ((1 << 20) + 1)}, (413, "PAYLOAD_TOO_LARGE")),
    ]:
        assert problem(ask(store, "POST", path, **options)) == expected, path
    assert problem(ask(store, "GET", f"{buckets}/{bucket}")) == (405, "METHOD_NOT_ALLOWED")
    for path in (f"{objects}/{bucket}/k", f"{buckets}/{bucket}"):
        assert requests.post(store.management + path, timeout=TIMEOUT).status_code == 401


def running(store: Cairn) -> list[dict]:
    """Returns the running verifications."""
    return ask(store, "GET", "/api/v1/verify/progress").json()["verifications"]


def test_verification_stops_when_its_client_disconnects(make_store: Callable[..., Cairn]):
    """At most two verifications run. Requests slow them down, so they still run when their clients disconnect."""
    # A drain that waited for them would last longer than the test does.
    own_store = make_store(SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS="300").start()
    s3 = own_store.s3
    s3.create_bucket("slow")
    body = random.Random(5).randbytes(64 << 20)
    for number in range(6):
        s3.put("slow", f"k{number}", body)
    head = (
        f"POST /api/v1/verify/buckets/slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
        f"Authorization: Bearer {own_store.secrets.system_token}\r\n\r\n"
    )

    def begin() -> socket.socket:
        client = socket.create_connection((LOOPBACK, own_store.api_port))
        client.sendall(head.encode())
        return client

    def count() -> int:
        # Requests on the data plane keep the store busy, so that verification stays slow.
        s3.get("slow", "k0", [("Range", "bytes=0-9")])
        return len(running(own_store))

    clients = [begin(), begin()]
    until(lambda: count() == 2, "two do not run")
    third = ask(own_store, "POST", "/api/v1/verify/buckets/slow")
    assert problem(third) == (429, "TOO_MANY_REQUESTS") and int(third.headers["retry-after"]) > 0
    progress = running(own_store)[0]
    assert progress["bucket"] == "slow" and progress["bytes_expected"] == 6 * len(body)
    clients[0].close()
    until(lambda: count() == 1, "the one without a client still runs")
    # Verifications do not delay the shutdown.
    assert own_store.stop() == 0
    clients[1].close()


def cli(store: Cairn, *arguments: str) -> subprocess.CompletedProcess:
    """Runs `cairn verify` against this store."""
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    command = [BINARY, "verify", *arguments, "--endpoint", store.management]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)


def test_verify_command_exits_by_result_and_writes_proofs(own_store: Cairn, tmp_path: Path):
    """The exit code depends on the result, and the proof is written unchanged."""
    s3 = own_store.s3
    s3.create_bucket("told")
    bodies = fill(s3, "told", 3)
    done = cli(own_store, "bucket", "told", "--proof", str(tmp_path / "sound.json"))
    assert done.returncode == 0 and "damaged versions:  0" in done.stdout, done.stderr
    assert proof.is_good(json.loads((tmp_path / "sound.json").read_text()))
    done = cli(own_store, "object", "told", "schlüssel/ä+%")
    assert done.returncode == 0 and "result:         ok\n" in done.stdout, done.stderr

    plant(own_store, bodies["large"], 5 * BLOCK_BYTES)
    done = cli(own_store, "object", "told", "large", "--proof", str(tmp_path / "hurt.json"))
    assert done.returncode == 1 and "result:         corrupt\n" in done.stdout and "block 5" in done.stdout
    bundle = json.loads((tmp_path / "hurt.json").read_text())
    assert proof.is_good(bundle) and bundle["payload"]["status"] == "corrupt"
    bundle["payload"]["status"] = "ok"
    assert not proof.is_good(bundle)
    done = cli(own_store, "bucket", "told")
    assert done.returncode == 1 and "damaged versions:  1" in done.stdout and "large" in done.stdout
    for wrong in (["object", "told", "none"], ["bucket", "no-such-bucket"]):
        done = cli(own_store, *wrong)
        assert done.returncode == 1 and "NOT_FOUND" in done.stderr and "panicked" not in done.stderr


def metrics(store: Cairn) -> dict[str, float]:
    """Returns the scraped values by name and labels."""
    headers = {"Authorization": f"Bearer {SCRAPE_TOKEN}"}
    response = requests.get(store.management + "/metrics", headers=headers, timeout=TIMEOUT)
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in response.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_metrics_are_refused_without_a_configured_scrape_token(store: Cairn):
    """An empty token is refused too."""
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {store.secrets.system_token}"}):
        assert requests.get(store.management + "/metrics", headers=headers, timeout=TIMEOUT).status_code == 401


def test_scrub_reports_damage_in_log_and_metrics(make_store):
    """A store that was never scrubbed is scrubbed immediately. The log names the block and a metric counts it."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, SERVICE_STORAGE_SCRUB_INTERVAL_DAYS="0").start()
    store.s3.create_bucket("scrubbed")
    bodies = fill(store.s3, "scrubbed", 4)
    assert metrics(store)["service_scrub_last_completed_timestamp_seconds"] == 0
    del store.extra["SERVICE_STORAGE_SCRUB_INTERVAL_DAYS"]
    plant(store, bodies["large"], 7 * BLOCK_BYTES)
    store.wait_output("scrub completed: damage found")
    assert "block 7" in store.output() and "scrubbed/large" in store.output()
    until(lambda: metrics(store)["service_scrub_running"] == 0, "the scrub still runs")
    seen = metrics(store)
    assert seen["service_scrub_pass_versions"] == len(bodies)
    assert seen["service_scrub_pass_bytes"] == sum(map(len, bodies.values()))
    assert seen["service_scrub_corrupt_versions_total"] == 1 and seen["service_corruptions_total"] == 1
    assert seen["service_scrub_last_completed_timestamp_seconds"] > 1_700_000_000


def run_command(store: Cairn, *arguments: str) -> subprocess.CompletedProcess:
    """Runs the command-line client with the system token."""
    variables = {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token, "SERVICE_MANAGEMENT_ENDPOINT": store.management}
    return subprocess.run(
        [BINARY, *arguments], env=clean_environment() | variables, capture_output=True, text=True, timeout=TIMEOUT
    )


def test_the_store_is_verified_and_its_proofs_are_checked_offline(own_store: Cairn, tmp_path: Path):
    """One proof for each bucket. Without the server, a changed proof or another key is found."""
    for number, bucket in enumerate(("first", "second")):
        own_store.s3.create_bucket(bucket)
        fill(own_store.s3, bucket, number)
    file = tmp_path / "proofs.json"
    done = run_command(own_store, "verify", "store", "--proof", str(file), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["buckets_verified"], found["versions_verified"], found["corrupt_count"]) == (2, 10, 0)
    shown = run_command(own_store, "verify", "store").stdout
    assert "BUCKET" in shown and "\nsecond  " in shown and "damaged versions:  0\n" in shown
    single = tmp_path / "single.json"
    assert run_command(own_store, "verify", "object", "first", "small", "--proof", str(single)).returncode == 0
    assert own_store.stop() == 0

    document = json.loads(file.read_text())
    key = document["proofs"][0]["public_key"]
    done = run_command(own_store, "verify", "proof", str(file), "--public-key", key)
    assert done.returncode == 0 and done.stdout.count("signature:  valid\n") == 2, done
    done = run_command(own_store, "verify", "proof", str(single), "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["proofs"][0]["payload"]["key"] == "small"
    assert run_command(own_store, "verify", "proof", str(file), "--public-key", base64.b64encode(bytes(32)).decode()).returncode == 1
    document["proofs"][1]["payload"]["corrupt_count"] = 1
    file.write_text(json.dumps(document))
    done = run_command(own_store, "verify", "proof", str(file))
    assert done.returncode == 1 and done.stdout.count("not valid") == 1 and "1 of 2" in done.stderr
    for text, said in (("{", "not JSON"), ('{"proofs": []}', "no proofs"), ("{}", "not valid")):
        file.write_text(text)
        assert said in (done := run_command(own_store, "verify", "proof", str(file))).stdout + done.stderr and done.returncode == 1
    assert run_command(own_store, "verify", "proof", str(tmp_path / "none")).returncode == 1
