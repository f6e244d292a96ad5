"""A paused webhook is resumed; the delivery log names objects, and what was lost."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from harness.management import Management, expect, expect_refusal
from harness.receiver import OK, Answer, Delivery, Receiver
from harness.server import Cairn
from harness.wait import until

ATTEMPTS = 1
# Failures in a row after which a webhook is paused.
FAILURES = 5
ID = "01890000-0000-7000-8000-000000000000"
RELAXED = {
    "SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true",
    "SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS": "60", "SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS": str(ATTEMPTS),
}
_numbers = itertools.count(1)


class Unsteady(Receiver):
    """A receiver that answers 500 as long as it fails, and knows to what."""

    def __init__(self) -> None:
        self.fails = True
        self.refused: set[str] = set()
        super().__init__(self.choose)

    def choose(self, delivery: Delivery) -> Answer:
        """Returns the answer to a delivery."""
        if not self.fails:
            return OK
        self.refused.add(delivery.event_id)
        return 500, {}, 0.0


@pytest.fixture(scope="module")
def hooks(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that may deliver to this machine, without TLS."""
    return make_module_store(**RELAXED).start()


@pytest.fixture
def name(hooks: Cairn) -> str:
    """A bucket of the test's own."""
    bucket = f"resumed-{next(_numbers)}"
    hooks.s3.create_bucket(bucket)
    return bucket


@pytest.fixture
def unsteady() -> Iterator[Unsteady]:
    """A receiver that fails at first."""
    receiver = Unsteady()
    yield receiver
    receiver.close()


def create(admin: Management, receiver: Unsteady, bucket: str) -> str:
    """Creates a webhook and returns its path."""
    body = {"target_url": receiver.url, "event_types": ["object.created", "bucket.deleted"], "bucket_filter": bucket}
    return f"/webhooks/{expect(admin.post('/webhooks', body), 201)['subscription']['id']}"


def health(admin: Management, path: str) -> dict:
    """Returns the health of a webhook."""
    return expect(admin.get(path), 200)["health"]


def log(admin: Management, path: str, **parameters: object) -> list[dict]:
    """Returns entries of the delivery log."""
    parameters |= {"webhook_id": path.removeprefix("/webhooks/")}
    return expect(admin.get("/webhook-deliveries", params=parameters), 200)["deliveries"]


def pause(store: Cairn, path: str, bucket: str) -> None:
    """Writes until the webhook is paused with events that wait."""
    for number in range(FAILURES + 5):
        store.s3.put(bucket, f"k/{number:02}", b"1")
    until(lambda: health(store.admin, path)["state"] == "paused" and health(store.admin, path)["pending"] > 0, "a pause")


def test_resume_sends_what_waits_at_once(hooks: Cairn, name: str, unsteady: Unsteady):
    """Without waiting for the next probe, whose interval grows. Lost events stay lost until they are redelivered."""
    admin = hooks.admin
    path = create(admin, unsteady, name)
    pause(hooks, path, name)
    assert health(admin, path)["lost"] >= FAILURES
    unsteady.fails = False
    resumed = expect(admin.post(f"{path}/resume", None), 200)
    assert resumed["id"] == path.removeprefix("/webhooks/")
    until(lambda: health(admin, path)["pending"] == 0 and health(admin, path)["state"] == "ok", "what waited is delivered")
    # A probe may have failed just before the receiver was well.
    assert health(admin, path)["lost"] == len(unsteady.refused)
    (event,) = expect(admin.get("/audit/events", params={"operation": "resume_webhook", "resource": resumed["id"]}), 200)["events"]
    assert event["result"] == "allowed" and "deliveries waited" in event["detail"]


def test_resumed_webhook_of_a_dead_target_is_paused_again(hooks: Cairn, name: str, unsteady: Unsteady):
    """After as many failures as before."""
    path = create(hooks.admin, unsteady, name)
    pause(hooks, path, name)
    expect(hooks.admin.post(f"{path}/resume", None), 200)
    for number in range(FAILURES):
        hooks.s3.put(name, f"again/{number:02}", b"1")
    until(lambda: health(hooks.admin, path)["state"] == "paused", "another pause")


def test_resume_needs_an_enabled_webhook(hooks: Cairn, name: str, unsteady: Unsteady):
    """404 and 409, as for a redelivery."""
    path = create(hooks.admin, unsteady, name)
    expect(hooks.admin.put(f"{path}/status", {"enabled": False}), 200)
    expect_refusal(hooks.admin.post(f"{path}/resume", None), 409, "WEBHOOK_DISABLED")
    expect_refusal(hooks.admin.post(f"/webhooks/{ID}/resume", None), 404, "WEBHOOK_NOT_FOUND")


def test_log_names_objects_and_what_is_lost(hooks: Cairn, name: str, unsteady: Unsteady):
    """With `details`; `lost` selects the entries of events that no delivery has reached. Without them the log is as it was."""
    admin = hooks.admin
    path = create(admin, unsteady, name)
    hooks.s3.put(name, "lost/é", b"1")
    until(lambda: health(admin, path)["lost"] == 1, "a lost event")
    unsteady.fails = False
    hooks.s3.put(name, "arrived", b"1")
    until(lambda: log(admin, path, status="succeeded"), "a delivered event")
    (plain, *_) = log(admin, path)
    assert not {"event_lost", "bucket", "object"} & set(plain)
    detailed = log(admin, path, details="true")
    assert {(one["bucket"], one["object"], one["event_lost"]) for one in detailed} == {(name, "arrived", False), (name, "lost/é", True)}
    assert [one["object"] for one in log(admin, path, lost="true", details="true")] == ["lost/é"]
    hooks.s3.delete(name, "lost/é")
    hooks.s3.delete(name, "arrived")
    hooks.s3.request("DELETE", f"/{name}")
    of_bucket = until(lambda: [one for one in log(admin, path, details="true") if one["event_type"] == "bucket.deleted"], "an event of the bucket")
    assert of_bucket[0]["bucket"] == name and "object" not in of_bucket[0]
    since = health(admin, path)["lost_since"]
    assert expect(admin.post(f"{path}/redeliver", {"since": since}), 202) == {"queued": 1}
    until(lambda: health(admin, path)["lost"] == 0, "nothing is lost any more")
    assert log(admin, path, lost="true") == []
    for query in ("lost=1", "details=yes", "lost=true&status=failed"):
        expect_refusal(admin.get(f"/webhook-deliveries?{query}"), 400, "INVALID_REQUEST")
