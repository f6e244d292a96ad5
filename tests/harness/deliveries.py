"""Webhook deliveries of the crash tests: every event arrives at least once, and nothing else does.

The receiver refuses some requests, so that retries are cut short by kills and power cuts too.
"""

import random
import time

from .event_replay import EventReplay
from .expect import Broken
from .management import expect
from .receiver import OK, Answer, Delivery, Receiver
from .server import Cairn

ENVIRONMENT = {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true"}
TYPES = [
    "bucket.created", "bucket.deleted", "object.created", "object.updated", "object.deleted", "object.restored",
    "multipart.completed", "multipart.aborted",
]
REFUSED_SHARE = 0.02
# Refused deliveries wait for 2, 4, 8 … seconds.
END_SECONDS = 120
POLL_SECONDS = 0.1


class Deliveries:
    """A webhook for all events, and what its receiver got."""

    def __init__(self, seed: int):
        self.rng = random.Random(f"{seed}-deliveries")
        self.received: set[str] = set()
        # Received after the power was cut: their events may be lost with it.
        self.unsafe: set[str] = set()
        self.is_cut = False
        self.requests = 0
        self.receiver = Receiver(self.answer)

    def answer(self, delivery: Delivery) -> Answer:
        """Takes a delivery or refuses it; the receiver calls this for one request at a time."""
        self.requests += 1
        if self.rng.random() < REFUSED_SHARE:
            return 503, {}, 0.0
        self.received.add(delivery.event_id)
        if self.is_cut:
            self.unsafe.add(delivery.event_id)
        return OK

    def subscribe(self, store: Cairn) -> None:
        """Creates the webhook, before the first event that must arrive."""
        expect(store.admin.post("/webhooks", {"target_url": self.receiver.url, "event_types": TYPES}), 201)

    def check(self, store: Cairn, replay: EventReplay) -> None:
        """Waits until nothing is pending. Then every event must have arrived, and nothing else."""
        give_up = time.monotonic() + END_SECONDS
        while (webhook := expect(store.admin.get("/webhooks"), 200)["webhooks"][0])["health"]["pending"] > 0:
            if time.monotonic() > give_up:
                raise Broken(f"deliveries are still pending: {webhook['health']}")
            time.sleep(POLL_SECONDS)
        lost, invented = replay.ids - self.received, self.received - self.unsafe - replay.ids
        if lost or invented:
            raise Broken(f"{len(lost)} events were not delivered: {sorted(lost)[:3]}; {len(invented)} are none: {sorted(invented)[:3]}")

    def close(self) -> None:
        """Ends the receiver."""
        self.receiver.close()
