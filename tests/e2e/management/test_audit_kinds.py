"""Kinds of audit records: whoever can cause many records of one kind removes none of another."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.console import Console, create_token
from harness.management import expect
from harness.server import Cairn

# The smallest number that the configuration allows.
RECORDS_MAX = 1000
THREADS = 8


def operations(store: Cairn, **filters: str) -> list[str]:
    """Returns the operations of the matching events, oldest first, following the cursor through the pages."""
    found, cursor = [], {}
    while True:
        page = expect(store.admin.get("/audit/events", params={"limit": 1000} | filters | cursor), 200)
        found += [event["operation"] for event in page["events"]]
        if page["next_id"] is None:
            return found[::-1]
        cursor = {"after_time": page["next_time"], "after_id": page["next_id"]}


@pytest.fixture
def small_trail(make_store) -> Cairn:
    """A server that keeps few records, and records reads."""
    return make_store(SERVICE_AUDIT_RECORDS_MAX=str(RECORDS_MAX), SERVICE_AUDIT_DATA_EVENTS="all").start()


def test_reads_and_object_changes_remove_no_record_of_a_change(small_trail: Cairn):
    """Regression: a client without any right pushed the records of an administrator out of the trail, with anonymous HEADs."""
    store = small_trail
    create_token(store, "auditor")
    store.s3.create_bucket("kept")
    store.s3.put("kept", "k", b"1")

    def flood(number: int) -> None:
        assert store.s3.head("kept", "k").status == 200
        assert store.s3.put("kept", f"k{number % 3}", b"1").status == 200

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(flood, range(RECORDS_MAX + 200)))
    found = operations(store)
    counts = {name: found.count(name) for name in ("create_management_token", "CreateBucket", "HeadObject", "PutObject")}
    assert counts == {"create_management_token": 1, "CreateBucket": 1, "HeadObject": RECORDS_MAX, "PutObject": RECORDS_MAX}


def test_repeated_logins_and_disclosures_are_merged(small_trail: Cairn):
    """Regression: an auditor's logins and the disclosures of a link's URL filled the trail. They are one record and a count."""
    store = small_trail
    auditor = create_token(store, "auditor")
    store.s3.create_bucket("shared")
    store.s3.put("shared", "k", b"1")
    share = expect(store.admin.post("/buckets/shared/object-shares/k", {}), 201)["share"]

    def log_in(_: int) -> None:
        Console(store).log_in(auditor["token"])

    def disclose(_: int) -> None:
        expect(store.admin.get(f"/shares/{share['id']}/url"), 200)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(log_in, range(200)))
        list(pool.map(disclose, range(200)))
    found = operations(store)
    assert (found.count("begin_console_session"), found.count("get_share_url")) == (1, 1)
    assert store.stop() == 0
    store.start()
    for operation, principal in (("begin_console_session", "token:a auditor"), ("get_share_url", "system")):
        page = expect(store.admin.get("/audit/events", params={"operation": operation}), 200)
        more, first = page["events"]
        assert more["detail"].startswith(f"199 more since the record of request {first['request_id']}"), more
        assert (more["principal"], more["source_ip"], first["result"]) == (principal, "127.0.0.1", "allowed")
