"""Webhooks: delivery, signatures, retries, targets, redelivery and rotation, with a real receiver."""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import Cli
from harness.management import Management, expect, expect_refusal
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.receiver import OK, Answer, Delivery, Receiver, service_signature, standard_signature
from harness.server import LOOPBACK, REPOSITORY, Cairn, free_ports, listens
from harness.wait import PATIENCE_SECONDS, until

WEBHOOK = {
    "id", "target_url", "event_types", "bucket_filter", "object_prefix_filter", "enabled", "created_at", "health",
}
HEALTH = {
    "state", "consecutive_failures", "last_success_at", "last_error", "oldest_pending_at", "pending", "lost", "lost_since",
    "redeliver_command",
}
DELIVERY = {
    "id", "webhook_id", "event_id", "event_type", "attempt", "status", "http_status", "timestamp", "success", "error",
    "next_attempt_at", "redelivery",
}
ATTEMPTS = 3
# Only answers end attempts, deliveries do not use up their attempts in the course of a test, and no poll hides a wake that is missing.
RELAXED = {
    "SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true",
    "SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS": "60", "SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS": "20",
    "SERVICE_WEBHOOKS_POLL_INTERVAL_SECONDS": "3600", "SERVICE_METRICS_SCRAPE_TOKEN": SCRAPE_TOKEN,
}
# For a receiver that was away: a delivery that has begun is repeated when it has been away for up to as long again.
AWAY_PATIENCE_SECONDS = 3 * PATIENCE_SECONDS
EXAMPLE = REPOSITORY / "docs/examples/webhooks/receiver.py"
ID = "01890000-0000-7000-8000-000000000000"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def hooks(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that may deliver to this machine, without TLS."""
    return make_module_store(**RELAXED).start()


@pytest.fixture(scope="module")
def hasty(make_module_store: Callable[..., Cairn]) -> Cairn:
    """As `hooks`, but deliveries fail permanently after a few attempts."""
    return make_module_store(**RELAXED | {"SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS": str(ATTEMPTS)}).start()


def new_bucket(store: Cairn) -> str:
    """Makes a bucket of the test's own."""
    bucket = f"hooks-{next(_numbers)}"
    store.s3.create_bucket(bucket)
    return bucket


@pytest.fixture
def name(hooks: Cairn) -> str:
    """A bucket of the test's own."""
    return new_bucket(hooks)


def create(admin: Management, url: str, bucket: str | None, *types: str, **more: object) -> tuple[dict, str]:
    """Creates a webhook. Returns it and its secret."""
    body = {"target_url": url, "event_types": list(types or ["object.created"]), "bucket_filter": bucket} | more
    made = expect(admin.post("/webhooks", body), 201)
    assert set(made) == {"subscription", "signing_secret"} and set(made["subscription"]) == WEBHOOK
    assert set(made["subscription"]["health"]) == HEALTH
    return made["subscription"], made["signing_secret"]


def shown(admin: Management, webhook: dict) -> dict:
    """Returns a webhook as it is now."""
    return expect(admin.get(f"/webhooks/{webhook['id']}"), 200)


def log(admin: Management, webhook: dict, **parameters: object) -> list[dict]:
    """Returns the delivery log of a webhook, the latest entry first, read in pages of three."""
    entries: list[dict] = []
    cursor: dict[str, str] = {}
    while True:
        query = {"webhook_id": webhook["id"], "limit": 3} | parameters | cursor
        page = expect(admin.get("/webhook-deliveries", params=query), 200)
        assert set(page) == {"deliveries", "next_time", "next_id"}
        assert all(set(entry) == DELIVERY for entry in page["deliveries"])
        entries += page["deliveries"]
        if page["next_id"] is None:
            return entries
        cursor = {"after_time": page["next_time"], "after_id": page["next_id"]}


def tried(admin: Management, webhook: dict) -> set[str]:
    """Returns the events of which an attempt has failed."""
    return {entry["event_id"] for entry in log(admin, webhook) if entry["error"]}


def statuses(entries: list[dict]) -> list[tuple[int, str, int | None]]:
    """Returns attempt, status and HTTP status of entries."""
    return [(entry["attempt"], entry["status"], entry["http_status"]) for entry in entries]


# Delivery


def test_delivery_has_the_event_and_two_signatures(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """The body has the bytes of the event in the API. Both signatures are right, and the log has one success."""
    receiver = make_receiver()
    webhook, secret = create(hooks.admin, receiver.url, name)
    hooks.s3.put(name, "a/é b", b"12345", [("content-type", "text/plain")])
    (got,) = receiver.wait(1)
    answer = hooks.admin.get(f"/events?bucket={name}&type=object.created")
    (event,) = answer.json()["events"]
    assert got.path == "/hook" and json.loads(got.body) == event and got.body in answer.content
    expected = {
        "content-type": "application/json", "x-service-event-id": event["id"], "x-service-event-type": "object.created",
        "x-service-event-time": event["time"], "webhook-id": event["id"],
        "x-service-signature": service_signature(secret, got.body), "webhook-signature": standard_signature(secret, got),
    }
    assert {header: got.headers[header] for header in expected} == expected
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert secret.startswith("whsec_") and len(secret) == 6 + 44

    (entry,) = until(lambda: log(hooks.admin, webhook, status="succeeded"))
    assert statuses([entry]) == [(1, "succeeded", 204)] and entry["success"] and entry["error"] is None
    assert (entry["event_id"], entry["event_type"], entry["redelivery"]) == (event["id"], "object.created", False)
    assert log(hooks.admin, webhook, event_id=event["id"]) == [entry] and log(hooks.admin, webhook, event_id=ID) == []
    health = shown(hooks.admin, webhook)["health"]
    assert (health["state"], health["pending"], health["consecutive_failures"]) == ("ok", 0, 0) and health["last_success_at"]


def test_filters_choose_the_events(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """Types, bucket and prefix. Events before the creation are not delivered."""
    receiver = make_receiver()
    hooks.s3.put(name, "a/before", b"")
    create(hooks.admin, receiver.url + "/types", name, "object.deleted")
    create(hooks.admin, receiver.url + "/prefix", name, "object.created", "object.deleted", object_prefix_filter="a/")
    create(hooks.admin, receiver.url + "/all", None, "bucket.created", "bucket.deleted")
    create(hooks.admin, receiver.url + "/off", name, enabled=False)
    for key in ("a/1", "b/1"):
        hooks.s3.put(name, key, b"")
        hooks.s3.delete(name, key)
    hooks.s3.create_bucket(f"{name}-more")

    def of(path: str, count: int) -> list[tuple[str, str | None]]:
        found = receiver.wait(count, lambda one: one.path.endswith(path))
        events = [json.loads(one.body) for one in found]
        return sorted((event["type"], event.get("object")) for event in events)

    assert of("/all", 1) == [("bucket.created", None)]
    assert of("/types", 2) == [("object.deleted", "a/1"), ("object.deleted", "b/1")]
    assert of("/prefix", 2) == [("object.created", "a/1"), ("object.deleted", "a/1")]
    assert of("/off", 0) == []
    expect(hooks.admin.delete(f"/buckets/{name}-more"), 204)
    assert of("/all", 2) == [("bucket.created", None), ("bucket.deleted", None)]


# Failures


def test_failures_are_repeated_with_growing_waits(hasty: Cairn, make_receiver: Callable[..., Receiver]):
    """After 2 and 4 seconds or more, with the same bytes. One webhook then succeeds, one has failed permanently, and a
    redirect is a failure that is not followed."""
    hooks, elsewhere = hasty, make_receiver()
    name = new_bucket(hooks)
    counts: dict[str, int] = {}

    def answer(delivery: Delivery) -> Answer:
        count = counts[delivery.path] = counts.get(delivery.path, 0) + 1
        if delivery.path == "/hook/redirected":
            return 302, {"location": elsewhere.url}, 0.0
        return OK if delivery.path == "/hook/third" and count == 3 else (500, {}, 0.0)

    receiver = make_receiver(answer)
    paths = ("third", "never", "redirected")
    third, never, redirected = (create(hooks.admin, f"{receiver.url}/{path}", name)[0] for path in paths)
    hooks.s3.put(name, "k", b"1")
    for path in paths:
        first, second, last = receiver.wait(ATTEMPTS, lambda one, path=path: one.path.endswith(path))
        assert second.time - first.time > 1.5 and last.time - second.time > 3.5, path
        assert first.body == second.body == last.body and first.event_id == last.event_id
    ended = until(lambda: log(hooks.admin, third, status="succeeded") and log(hooks.admin, third))
    assert statuses(ended) == [(3, "succeeded", 204), (2, "failed", 500), (1, "failed", 500)]
    ended = until(lambda: len(log(hooks.admin, never, status="failed")) == ATTEMPTS and log(hooks.admin, never))
    assert statuses(ended) == [(3, "failed", 500), (2, "failed", 500), (1, "failed", 500)]
    assert {entry["id"] for entry in ended} == {ended[0]["id"]} and all(entry["error"] for entry in ended)
    health = shown(hooks.admin, never)["health"]
    assert health["consecutive_failures"] == ATTEMPTS and health["state"] != "ok" and health["last_error"]
    # What was lost is counted, with the command that sends it again.
    assert health["lost"] == 1 and health["redeliver_command"] == f"cairn webhook redeliver {never['id']} --since {health['lost_since']}"
    assert (shown(hooks.admin, third)["health"]["lost"], shown(hooks.admin, third)["health"]["redeliver_command"]) == (0, None)
    cli = Cli(hooks.management, hooks.secrets.system_token)
    assert f"1 event could not be delivered. This sends it again:\n  {health['redeliver_command']}\n" in cli.text("webhook", "show", never["id"])
    # The command finds the event, whose time it names.
    again = health["redeliver_command"].removeprefix("cairn ").split()
    assert cli.json(*again) == {"queued": 1}
    assert [entry["http_status"] for entry in log(hooks.admin, redirected)] == [302] * ATTEMPTS
    assert elsewhere.received == []


def test_new_events_are_delivered_at_once(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """A delivery that waited for the poll would come after an hour."""
    receiver = make_receiver()
    create(hooks.admin, receiver.url, name)
    for number in range(5):
        hooks.s3.put(name, f"k{number}", b"1")
        receiver.wait(number + 1)


def test_slow_receiver_fails_after_the_time_limit(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """The attempt ends after `request_timeout_seconds`, and other webhooks are not delayed."""
    hooks = make_store(**RELAXED | {"SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS": "2"}).start()
    name = new_bucket(hooks)
    slow, fast = make_receiver(lambda _: (204, {}, 5.0)), make_receiver()
    webhook, _ = create(hooks.admin, slow.url, name)
    create(hooks.admin, fast.url, name)
    for number in range(20):
        hooks.s3.put(name, f"k{number}", b"1")
    fast.wait(20)
    # Most first attempts to the slow one are held back for minutes.
    assert len(tried(hooks.admin, webhook)) < 20, "the fast one waited for the slow one"
    entry = until(lambda: [entry for entry in log(hooks.admin, webhook) if entry["error"]])[0]
    assert entry["http_status"] is None and not entry["success"]
    expect(hooks.admin.delete(f"/webhooks/{webhook['id']}"), 204)


def test_disabled_webhook_drops_what_is_pending(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """The dropped delivery is in the log. When it is enabled again, it receives only new events."""
    failing = True
    receiver = make_receiver(lambda _: (500, {}, 0.0) if failing else OK)
    webhook, _ = create(hooks.admin, receiver.url, name)
    path = f"/webhooks/{webhook['id']}/status"
    hooks.s3.put(name, "old", b"1")
    receiver.wait(1)
    until(lambda: shown(hooks.admin, webhook)["health"]["pending"] == 1)
    disabled = expect(hooks.admin.put(path, {"enabled": False}), 200)
    assert disabled["enabled"] is False
    hooks.s3.put(name, "meanwhile", b"1")
    (dropped,) = until(lambda: log(hooks.admin, webhook, status="dropped"))
    assert dropped["error"] and not dropped["success"]
    until(lambda: shown(hooks.admin, webhook)["health"]["pending"] == 0)
    failing = False
    assert expect(hooks.admin.put(path, {"enabled": True}), 200)["enabled"] is True
    hooks.s3.put(name, "new", b"1")
    (new,) = receiver.wait(1, lambda one: json.loads(one.body)["object"] == "new")
    until(lambda: new.event_id in [entry["event_id"] for entry in log(hooks.admin, webhook, status="succeeded")])
    assert {json.loads(one.body)["object"] for one in receiver.received} == {"old", "new"}


def test_attempt_that_is_under_way_when_a_webhook_is_disabled_is_in_the_log(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """The receiver had answered 204, and the log said only that the delivery was dropped without an attempt."""
    begun, disabled = threading.Event(), threading.Event()

    def answer(_: Delivery) -> Answer:
        begun.set()
        disabled.wait(PATIENCE_SECONDS)
        return OK

    receiver = make_receiver(answer)
    webhook, _ = create(hooks.admin, receiver.url, name)
    hooks.s3.put(name, "a", b"1")
    assert begun.wait(PATIENCE_SECONDS)
    expect(hooks.admin.put(f"/webhooks/{webhook['id']}/status", {"enabled": False}), 200)
    assert statuses(until(lambda: log(hooks.admin, webhook, status="dropped"))) == [(0, "dropped", None)]
    disabled.set()
    until(lambda: log(hooks.admin, webhook, status="succeeded"))
    assert statuses(log(hooks.admin, webhook)) == [(1, "succeeded", 204)]
    health = shown(hooks.admin, webhook)["health"]
    assert health["last_success_at"] and health["pending"] == 0


def test_receiver_that_is_down_gets_everything_when_it_is_back(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """Its deliveries are held back, so that they do not use up their attempts, and the health says so."""
    # No client gets this port while it is away.
    receiver = make_receiver(port=free_ports(1)[0])
    webhook, _ = create(hooks.admin, receiver.url, name)
    receiver.close()
    for number in range(30):
        hooks.s3.put(name, f"k{number:02}", b"1")
    health = until(lambda: (now := shown(hooks.admin, webhook)["health"])["state"] == "paused" and now)
    assert health["pending"] > 0 and health["oldest_pending_at"] and health["last_error"]
    # Two at a time until it is paused, and then one after 5 seconds, 10, 20 and so on.
    assert len(tried(hooks.admin, webhook)) < 15, "first attempts are not held back"
    back = make_receiver(port=receiver.port)
    back.wait(30, seconds=AWAY_PATIENCE_SECONDS)
    until(lambda: len({json.loads(one.body)["object"] for one in back.received}) == 30, seconds=AWAY_PATIENCE_SECONDS)
    until(lambda: shown(hooks.admin, webhook)["health"]["pending"] == 0)
    assert shown(hooks.admin, webhook)["health"]["state"] == "ok"


def test_kill_loses_no_delivery(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """The process is killed while it delivers. After the next start everything that is left is delivered."""
    store = make_store(**RELAXED | {"SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS": "300"}).start()
    # Most are still to be delivered at the kill, however slow the puts are: no more than are sent at a time get no answer.
    is_slow = True
    receiver = make_receiver(lambda _: (204, {}, 600.0 if is_slow and len(receiver.received) >= 20 else 0.05))
    store.s3.create_bucket("killed")
    create(store.admin, receiver.url, "killed")
    for number in range(200):
        store.s3.put("killed", f"k{number:03}", b"1")
    receiver.wait(20)
    store.kill()
    is_slow = False
    before = {one.event_id for one in receiver.received}
    assert len(before) < 200, "killed too late to show anything"
    store.start()
    until(lambda: len({one.event_id for one in receiver.received}) == 200)
    assert {json.loads(one.body)["object"] for one in receiver.received} == {f"k{number:03}" for number in range(200)}
    assert store.stop() == 0


def test_shutdown_waits_for_running_attempts(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """An attempt that has begun ends within the grace period and is recorded, so it is not repeated after the next start."""
    store = make_store(**RELAXED, SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS="300").start()
    receiver = make_receiver(lambda _: (204, {}, 1.0))
    store.s3.create_bucket("drained")
    webhook, _ = create(store.admin, receiver.url, "drained")
    store.s3.put("drained", "k", b"1")
    receiver.wait(1)
    assert store.stop() == 0
    store.start()
    assert statuses(log(store.admin, webhook)) == [(1, "succeeded", 204)]
    assert len(receiver.received) == 1


# Targets


@pytest.mark.parametrize(("url", "setting"), [
    ("http://example.com/", "webhooks.allow_http"),
    ("https://127.0.0.1/", "webhooks.allow_private_networks"),
    ("https://10.1.2.3/hook", "webhooks.allow_private_networks"),
    ("https://[::1]/", "webhooks.allow_private_networks"),
    ("https://169.254.169.254/latest/", ""), ("https://0.0.0.0/", ""), ("https://[ff02::1]/", ""),
    ("https://user:word@example.com/", ""), ("https://example.com/#part", ""), ("ftp://example.com/", ""),
    ("example.com", ""), ("", ""), ("https://", ""),
])
def test_targets_that_are_not_allowed_are_refused(admin: Management, url: str, setting: str):
    """With the default settings. The message names the setting that would allow the target."""
    body = {"target_url": url, "event_types": ["object.created"]}
    assert setting in expect_refusal(admin.post("/webhooks", body), 400, "INVALID_WEBHOOK_TARGET")


def test_own_listeners_are_no_targets(hooks: Cairn):
    """Whatever the settings: a delivery must not reach the service itself."""
    for port in (hooks.api_port, hooks.s3_port):
        for host in (LOOPBACK, "[::ffff:127.0.0.1]"):
            body = {"target_url": f"http://{host}:{port}/", "event_types": ["object.created"]}
            expect_refusal(hooks.admin.post("/webhooks", body), 400, "INVALID_WEBHOOK_TARGET")


def test_host_names_are_checked_at_every_attempt(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """A name that resolves to a private address is accepted at creation and refused at the attempt."""
    settings = RELAXED | {"SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "false"}
    store, receiver = make_store(**settings).start(), make_receiver()
    store.s3.create_bucket("named")
    webhook, _ = create(store.admin, f"http://localhost:{receiver.port}/hook", "named")
    store.s3.put("named", "k", b"1")
    entry = until(lambda: [entry for entry in log(store.admin, webhook) if entry["error"]])[0]
    assert entry["http_status"] is None
    test = expect(store.admin.post(f"/webhooks/{webhook['id']}/test"), 200)
    assert not test["delivered"] and test["http_status"] is None
    assert [(step["step"], step["ok"]) for step in test["steps"]] == [("resolve", True), ("check", False)]
    assert receiver.received == []


# Requests


@pytest.mark.parametrize("wrong", [
    {"event_types": []}, {"event_types": ["object"]}, {"event_types": ["object.created"] * 2}, {"event_types": "object.created"},
    {"secret": "x"}, {"enabled": "yes"}, {"target_url": None}, {"object_prefix_filter": "x" * 2000},
])
def test_wrong_requests_are_refused(admin: Management, wrong: dict):
    """Unknown members too, so that a misspelt one is not ignored."""
    body = {"target_url": "https://example.com/", "event_types": ["object.created"]} | wrong
    expect_refusal(admin.post("/webhooks", body), 400, "INVALID_REQUEST")


def test_webhook_can_be_changed(admin: Management):
    """What is not given stays, and null removes a filter. The secret is in no other response."""
    webhook, secret = create(admin, "https://example.com/a", "some", "object.created", object_prefix_filter="x")
    path = f"/webhooks/{webhook['id']}"
    assert shown(admin, webhook) == webhook and webhook["enabled"] is True
    changed = expect(admin.request("PATCH", path, json={"event_types": ["bucket.created"], "bucket_filter": None}), 200)
    assert changed == webhook | {"event_types": ["bucket.created"], "bucket_filter": None}
    changed = expect(admin.request("PATCH", path, json={"target_url": "https://example.com/b"}), 200)
    assert (changed["target_url"], changed["object_prefix_filter"]) == ("https://example.com/b", "x")
    assert expect(admin.request("PATCH", path, json={}), 200) == changed
    for wrong in ({"target_url": None}, {"enabled": False}, {"event_types": []}, {"bucket": "x"}):
        expect_refusal(admin.request("PATCH", path, json=wrong), 400, "INVALID_REQUEST")
    expect_refusal(admin.request("PATCH", path, json={"target_url": "http://example.com/"}), 400, "INVALID_WEBHOOK_TARGET")
    expect_refusal(admin.request("PATCH", path, json={"bucket_filter": "A"}), 400, "INVALID_BUCKET_NAME")
    listed = admin.get("/webhooks")
    assert changed in listed.json()["webhooks"]
    assert secret not in listed.text and secret not in admin.get("/webhook-deliveries").text
    expect(admin.delete(path), 204)
    for method, end in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("PUT", "/status"), ("POST", "/test"), ("POST", "/rotate-secret")):
        body = {"PATCH": {}, "PUT": {"enabled": True}}.get(method)
        options = {} if body is None else {"json": body}
        expect_refusal(admin.request(method, path + end, **options), 404, "WEBHOOK_NOT_FOUND")
    since = {"since": "2026-01-01T00:00:00Z"}
    expect_refusal(admin.post(f"{path}/redeliver", since), 404, "WEBHOOK_NOT_FOUND")
    expect_refusal(admin.post(f"/webhook-deliveries/{ID}/redeliver"), 404, "DELIVERY_NOT_FOUND")


def test_changes_are_audited_without_the_secret(admin: Management):
    """The audit trail says that the secret was shown, and of the target only the host."""
    webhook, secret = create(admin, "https://example.com/with?token=hidden", None)
    path = f"/webhooks/{webhook['id']}"
    rotated = expect(admin.post(f"{path}/rotate-secret"), 201)["signing_secret"]
    expect(admin.put(f"{path}/status", {"enabled": False}), 200)
    expect(admin.put(f"{path}/status", {"enabled": False}), 200)
    expect(admin.delete(path), 204)
    trail = admin.get(f"/audit/events?resource={webhook['id']}")
    found = [(event["operation"], event["result"]) for event in trail.json()["events"]]
    assert found == [(operation, "allowed") for operation in (
        "delete_webhook", "set_webhook_status", "rotate_webhook_secret", "create_webhook",
    )]
    assert "secret was shown" in trail.json()["events"][-1]["detail"] and "https://example.com" in trail.text
    assert not any(word in trail.text for word in (secret, rotated, "hidden"))


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "status=ok", "webhook_id=x", "event_id=x", "webhook=x"])
def test_bad_queries_of_the_log_are_refused(admin: Management, query: str):
    """A misspelt filter must not return everything."""
    expect_refusal(admin.get(f"/webhook-deliveries?{query}"), 400, "INVALID_REQUEST")


# Test, rotation, redelivery


def test_test_shows_each_step(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """The event is signed, says that it is a test, and is neither in the log nor among the events."""
    receiver = make_receiver(lambda delivery: OK if delivery.path == "/hook" else (410, {}, 0.0))
    webhook, secret = create(hooks.admin, receiver.url, name, "object.deleted", "object.created")
    tested = expect(hooks.admin.post(f"/webhooks/{webhook['id']}/test"), 200)
    assert set(tested) == {"delivered", "http_status", "steps"} and (tested["delivered"], tested["http_status"]) == (True, 204)
    assert all(set(step) == {"step", "ok", "detail", "milliseconds"} and step["ok"] for step in tested["steps"])
    assert [step["step"] for step in tested["steps"]] in (
        ["resolve", "check", "connect", "response"], ["resolve", "check", "connect", "tls", "response"],
    )
    (got,) = receiver.received
    assert json.loads(got.body)["type"] == "object.deleted" and json.loads(got.body)["metadata"]["test"] is True
    assert got.headers["x-service-signature"] == service_signature(secret, got.body)
    assert log(hooks.admin, webhook) == []

    gone, _ = create(hooks.admin, receiver.url + "/gone", name)
    tested = expect(hooks.admin.post(f"/webhooks/{gone['id']}/test"), 200)
    assert (tested["delivered"], tested["http_status"], tested["steps"][-1]["step"]) == (False, 410, "response")
    receiver.close()
    tested = expect(hooks.admin.post(f"/webhooks/{webhook['id']}/test"), 200)
    last = tested["steps"][-1]
    assert (tested["delivered"], last["step"], last["ok"]) == (False, "connect", False) and last["detail"]


def test_rotated_secret_overlaps_with_the_previous_one(hooks: Cairn, name: str, make_receiver: Callable[..., Receiver]):
    """`webhook-signature` has both, `x-service-signature` is made with the new one. Without an overlap there is one."""
    receiver = make_receiver()
    webhook, old = create(hooks.admin, receiver.url, name)
    path = f"/webhooks/{webhook['id']}/rotate-secret"
    rotated = expect(hooks.admin.post(path, {"overlap_seconds": 3600}), 201)
    assert set(rotated) == {"signing_secret", "previous_expires_at"}
    new = rotated["signing_secret"]
    hooks.s3.put(name, "a", b"1")
    (got,) = receiver.wait(1)
    assert got.headers["webhook-signature"] == f"{standard_signature(new, got)} {standard_signature(old, got)}"
    assert got.headers["x-service-signature"] == service_signature(new, got.body) and new != old
    newest = expect(hooks.admin.post(path, {"overlap_seconds": 0}), 201)["signing_secret"]
    hooks.s3.put(name, "b", b"1")
    got = receiver.wait(2)[1]
    assert got.headers["webhook-signature"] == standard_signature(newest, got)
    for wrong in ({"overlap_seconds": 604_801}, {"overlap_seconds": -1}, {"overlap": 1}):
        expect_refusal(hooks.admin.post(path, wrong), 400, "INVALID_REQUEST")


def test_events_can_be_delivered_again(hasty: Cairn, make_receiver: Callable[..., Receiver]):
    """One delivery, all of a period, or those that failed. The event id stays, the delivery id is new."""
    hooks, name = hasty, new_bucket(hasty)
    failing = {"k1"}
    receiver = make_receiver(lambda one: (400, {}, 0.0) if json.loads(one.body)["object"] in failing else OK)
    webhook, _ = create(hooks.admin, receiver.url, name)
    path = f"/webhooks/{webhook['id']}/redeliver"
    for number in range(3):
        hooks.s3.put(name, f"k{number}", b"1")
    receiver.wait(2 + ATTEMPTS)
    until(lambda: len(log(hooks.admin, webhook, status="failed")) == ATTEMPTS)
    (first,) = [one for one in log(hooks.admin, webhook) if one["status"] == "succeeded"][-1:]

    again = hooks.admin.post(f"/webhook-deliveries/{first['id']}/redeliver")
    queued = expect(again, 202)
    assert set(queued) == DELIVERY and queued["id"] != first["id"] and queued["redelivery"] is True
    assert (queued["event_id"], queued["status"], queued["attempt"]) == (first["event_id"], "pending", 0)
    twice = receiver.wait(2, lambda one: one.event_id == first["event_id"])
    assert twice[0].body == twice[1].body

    failing.clear()
    since = {"since": webhook["created_at"]}
    assert expect(hooks.admin.post(path, since), 202) == {"queued": 1}
    receiver.wait(ATTEMPTS + 1, lambda one: json.loads(one.body)["object"] == "k1")
    count = len(receiver.received)
    assert expect(hooks.admin.post(path, since | {"only": "all"}), 202) == {"queued": 3}
    receiver.wait(count + 3)
    assert expect(hooks.admin.post(path, since | {"only": "all", "until": webhook["created_at"]}), 202) == {"queued": 0}
    for wrong in ({}, {"since": "x"}, since | {"only": "none"}, since | {"type": "object.created"}):
        expect_refusal(hooks.admin.post(path, wrong), 400, "INVALID_REQUEST")


def test_metrics_count_deliveries(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """Results, pending deliveries, the age of the oldest, and events by type."""
    store = make_store(**RELAXED).start()
    good, bad = make_receiver(), make_receiver(lambda _: (500, {}, 0.0))
    store.s3.create_bucket("counted")
    create(store.admin, good.url, "counted")
    webhook, _ = create(store.admin, bad.url, "counted")
    for number in range(5):
        store.s3.put("counted", f"k{number}", b"1")
    good.wait(5)
    name = "service_webhook_deliveries_total"
    seen = until(lambda: (seen := scrape(store)).sum(name, result="succeeded") == 5 and seen.sum(name, result="retried") > 0 and seen)
    assert seen.sum("service_events_total", type="object.created") == 5
    assert seen.sum("service_webhook_pending") == 5
    until(lambda: scrape(store).sum("service_webhook_oldest_pending_seconds") > 1)
    expect(store.admin.put(f"/webhooks/{webhook['id']}/status", {"enabled": False}), 200)
    seen = until(lambda: (seen := scrape(store)).sum(name, result="dropped") == 5 and seen)
    assert seen.sum("service_webhook_pending") == 0 and seen.sum("service_webhook_oldest_pending_seconds") == 0


# The example


def test_example_receiver_prints_each_key_once_although_it_was_away(hooks: Cairn, name: str, tmp_path: Path):
    """The receiver of the guide checks signatures with an unmodified library. It misses nothing while it is stopped."""
    (port,) = free_ports(1)
    webhook, secret = create(hooks.admin, f"http://{LOOPBACK}:{port}/", name)
    output = tmp_path / "output"

    def run(*keys: str, lines: int) -> None:
        """Writes the keys while the receiver runs, until it has printed so many lines in all and nothing is left to deliver."""
        with output.open("ab") as out:
            process = subprocess.Popen([sys.executable, EXAMPLE, secret, str(port)], stdout=out)
        try:
            # A delivery waits longer after each attempt, and Python may take long to start.
            until(lambda: listens(port), "the receiver listens")
            for key in keys:
                hooks.s3.put(name, key, b"x")
            # Nothing is pending either before the events have been queued.
            until(lambda: len(output.read_text().splitlines()) >= lines, "the receiver has printed the keys", AWAY_PATIENCE_SECONDS)
            until(lambda: shown(hooks.admin, webhook)["health"]["pending"] == 0, "nothing is pending")
        finally:
            process.kill()
            process.wait()

    run("a", "b", lines=2)
    hooks.s3.put(name, "while it was away", b"x")
    run("c", lines=4)
    printed = output.read_text().splitlines()
    assert sorted(printed) == sorted(f"object.created {name} {key}" for key in ("a", "b", "while it was away", "c"))
