"""Storage routes and `cairn storage`: usage, inspection under load, damage and invalid requests."""

import json
import subprocess
import threading

import pytest
import requests

from harness.s3 import object_target
from harness.server import BINARY, Cairn, clean_environment
from harness.sigv4 import UNSIGNED_PAYLOAD
from harness.wait import until
from harness.wire import encode_head

TIMEOUT = 60
HEADER_BYTE = 100


def call(store: Cairn, method: str, path: str, **options) -> requests.Response:
    """Sends a request with the system token."""
    headers = {"Authorization": f"Bearer {store.secrets.system_token}"}
    return requests.request(method, store.management + path, headers=headers, timeout=TIMEOUT, **options)


def inspect(store: Cairn, query: str = "") -> dict:
    """Returns the result of an inspection that must succeed."""
    answer = call(store, "GET", f"/api/v1/storage/inspect{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def cairn(store: Cairn, *arguments: str) -> subprocess.CompletedProcess:
    """Runs `cairn storage ...` against the store."""
    variables = {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    command = [BINARY, "storage", *arguments, "--endpoint", store.management]
    return subprocess.run(command, env=clean_environment() | variables, capture_output=True, text=True, timeout=TIMEOUT)


@pytest.fixture
def filled(own_store: Cairn) -> Cairn:
    """Returns a store with two buckets and three objects."""
    for bucket in ("first", "second"):
        own_store.s3.create_bucket(bucket)
    for bucket, key, size in (("first", "small", 10), ("first", "large", 3_000_000), ("second", "middle", 70_000)):
        assert own_store.s3.put(bucket, key, b"x" * size).status == 200
    return own_store


def test_usage_matches_the_stored_objects(filled: Cairn):
    """The totals and the numbers of each bucket are exact."""
    usage = call(filled, "GET", "/api/v1/storage/usage").json()
    of_buckets = {one.pop("bucket"): one for one in usage.pop("by_bucket")}
    assert of_buckets == {
        "first": {"objects": 2, "versions": 2, "logical_bytes": 3_000_010, "physical_bytes": 3_000_010},
        "second": {"objects": 1, "versions": 1, "logical_bytes": 70_000, "physical_bytes": 70_000},
    }
    assert usage == {
        "buckets": 2, "objects": 3, "versions": 3, "delete_markers": 0, "multipart_uploads": 0,
        "logical_bytes": 3_070_010, "physical_bytes": 3_070_010,
    }


def temporary_bytes(store: Cairn) -> int:
    """Returns the space that unfinished uploads occupy."""
    status = call(store, "GET", "/api/v1/storage/status").json()
    assert status["capacity_bytes"] >= status["available_bytes"] > 0
    return status["temporary_upload_bytes"]


def test_running_uploads_are_reported_and_not_orphaned(filled: Cairn):
    """A running upload reserves its space. The space is released when the client disconnects."""
    assert temporary_bytes(filled) == 0
    size = 5_000_000
    target = object_target("first", "half")
    headers = filled.s3.signed_head("PUT", target, payload=UNSIGNED_PAYLOAD, content_length=size)
    with filled.s3.connect() as connection:
        connection.send_must(encode_head("PUT", target, headers) + b"x" * (size // 2))
        # Space is reserved in steps as the bytes arrive.
        until(lambda: temporary_bytes(filled) >= size // 2)
        found = inspect(filled)
        assert found["complete"] and found["findings"] == [] and found["orphaned_payloads"] == 0
    until(lambda: temporary_bytes(filled) == 0)


def test_intact_store_has_no_findings_and_needs_no_repair(filled: Cairn):
    """Checks the complete answers of an inspection and of both modes of repair."""
    assert inspect(filled) == {
        "complete": True, "entries_examined": 3, "objects": 3, "versions": 3, "delete_markers": 0,
        "multipart_uploads": 0, "parts": 0, "logical_bytes": 3_070_010, "physical_bytes": 3_070_010,
        "orphaned_payloads": 0, "orphaned_bytes": 0, "findings": [], "findings_omitted": 0,
    }
    for body, dry_run in ((None, True), ({}, True), ({"dry_run": True}, True), ({"dry_run": False}, False)):
        answer = call(filled, "POST", "/api/v1/storage/repair", json=body)
        assert answer.status_code == 200 and answer.json() == {
            "dry_run": dry_run, "complete": True, "entries_examined": 3, "orphaned_payloads": 0,
            "orphaned_bytes": 0, "removed_payloads": 0, "removed_bytes": 0, "refused": [],
        }


def test_entry_limit_makes_inspection_and_repair_incomplete(filled: Cairn):
    """An inspection that reaches its limit reports that it is incomplete, and so does a repair."""
    assert (cut := inspect(filled, "?maximum_entries=1"))["complete"] is False and cut["entries_examined"] == 1
    assert inspect(filled, "?maximum_entries=3")["complete"] is True
    body = {"maximum_entries": 1, "dry_run": False}
    assert call(filled, "POST", "/api/v1/storage/repair", json=body).json()["complete"] is False


@pytest.mark.parametrize("query", ["?maximum_entries=0", "?maximum_entries=x", "?maximum_entries=-1", "?max=1",
                                   "?maximum_entries=1&maximum_entries=2", "?maximum_entries=99999999999"])
def test_invalid_inspection_queries_are_refused(store: Cairn, query: str):
    """An invalid value must not be replaced by the default."""
    answer = call(store, "GET", f"/api/v1/storage/inspect{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("body", ['{"dryrun": false}', '{"dry_run": 0}', '{"maximum_entries": 0}', "[", '"x"', "\xff"])
def test_invalid_repair_bodies_are_refused(store: Cairn, body: str):
    """A misspelt option must not be replaced silently by its default."""
    answer = call(store, "POST", "/api/v1/storage/repair", data=body.encode("latin-1"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


def test_oversized_repair_body_is_refused(store: Cairn):
    """A body above 1 MiB is refused without being read."""
    answer = call(store, "POST", "/api/v1/storage/repair", data=b" " * ((1 << 20) + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(("method", "path"), [("GET", "status"), ("GET", "usage"), ("GET", "inspect"), ("POST", "repair")])
def test_storage_routes_need_a_token(store: Cairn, method: str, path: str):
    """The read-only routes need one too."""
    answer = requests.request(method, f"{store.management}/api/v1/storage/{path}", timeout=TIMEOUT)
    assert answer.status_code == 401 and "www-authenticate" in answer.headers


def test_inspection_under_load_has_no_findings(filled: Cairn):
    """Four clients put, overwrite and delete objects during thirty inspections."""
    ended = threading.Event()
    failures: list[str] = []

    def load(worker: int) -> None:
        s3, number = filled.s3, 0
        while not ended.is_set():
            number += 1
            key = f"{worker}-{number % 7}"
            is_deletion = number % 3 == 0
            answer = s3.delete("first", key) if is_deletion else s3.put("first", key, b"y" * (number % 5 * 60_000))
            if answer.status != (204 if is_deletion else 200):
                failures.append(f"{answer.status}")

    workers = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(30):
            found = inspect(filled)
            assert found["complete"] and found["findings"] == [], found
    finally:
        ended.set()
        for worker in workers:
            worker.join()
    assert failures == []


def damage_header(store: Cairn) -> None:
    """Flips one bit in the header of a volume."""
    volume = store.data / "slices" / "00" / "volumes" / "000000.vol"
    with volume.open("r+b") as file:
        file.seek(HEADER_BYTE)
        byte = file.read(1)[0]
        file.seek(HEADER_BYTE)
        file.write(bytes([byte ^ 1]))


def test_inspection_finds_a_damaged_volume_header(filled: Cairn):
    """The route and the command both report it while the store serves, and the command exits with 1."""
    damage_header(filled)
    found = inspect(filled)
    assert [finding["kind"] for finding in found["findings"]] == ["volume_header_damaged"]
    done = cairn(filled, "inspect")
    assert done.returncode == 1 and "volume_header_damaged" in done.stdout and "panicked" not in done.stderr
    damage_header(filled)
    assert inspect(filled)["findings"] == []


def test_storage_command_inspects_and_repairs(filled: Cairn):
    """It exits with 0 if nothing was found, prints the raw answer with --json, and repairs only with --apply."""
    done = cairn(filled, "inspect")
    assert done.returncode == 0 and "findings:           0\n" in done.stdout, done.stdout + done.stderr
    done = cairn(filled, "inspect", "--json", "--maximum-entries", "2")
    assert json.loads(done.stdout)["entries_examined"] == 2
    assert done.returncode == 1, "an incomplete inspection must not exit with 0"
    for arguments, mode in ((("repair",), "dry run"), (("repair", "--apply"), "applied")):
        done = cairn(filled, *arguments)
        assert done.returncode == 0 and mode in done.stdout, done.stdout + done.stderr
    assert json.loads(cairn(filled, "repair", "--apply", "--json").stdout)["dry_run"] is False


def test_storage_command_refuses_wrong_arguments(filled: Cairn):
    """Covers invalid limits, an unknown command and a missing token."""
    assert cairn(filled, "inspect", "--maximum-entries", "0").returncode == 2
    assert cairn(filled, "inspect", "--maximum-entries", "x").returncode == 2
    assert cairn(filled, "destroy").returncode == 2
    command = [BINARY, "storage", "inspect", "--endpoint", filled.management]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1 and "SERVICE_MANAGEMENT_TOKEN" in done.stderr
