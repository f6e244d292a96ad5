"""The page of a webhook in a real Chromium: what was lost, one row for each event, resuming and redelivering."""

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from harness.console import create_token
from harness.management import expect
from harness.page import Page, start_with_console
from harness.receiver import OK, Answer, Delivery, Receiver
from harness.server import Cairn
from harness.wait import until

# Failures in a row after which a webhook is paused.
FAILURES = 5


@pytest.fixture(scope="module")
def console_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that gives up after two attempts, about two seconds. An attempt that a test holds has much time."""
    relaxed = {name: "true" for name in ("SERVICE_WEBHOOKS_ALLOW_HTTP", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS")}
    return start_with_console(make_module_store(SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS="2", SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS="300", **relaxed))


class Unsteady(Receiver):
    """A receiver whose answer can be changed. It answers nothing while `answers` is not set."""

    def __init__(self) -> None:
        self.status, self.answers = 503, Event()
        self.answers.set()
        super().__init__(lambda _: OK if self.status == 204 else (self.status, {}, 0.0))

    def take(self, delivery: Delivery) -> Answer:
        """Chooses the answer when it may be given."""
        self.answers.wait()
        return super().take(delivery)


@pytest.fixture
def unsteady() -> Iterator[Unsteady]:
    """A receiver that fails at first."""
    receiver = Unsteady()
    yield receiver
    receiver.answers.set()
    receiver.close()


def create(store: Cairn, receiver: Receiver, bucket: str) -> str:
    """Creates a webhook and returns its id."""
    hook = {"target_url": receiver.url, "event_types": ["object.created"], "bucket_filter": bucket}
    return expect(store.admin.post("/webhooks", hook), 201)["subscription"]["id"]


def health(store: Cairn, webhook: str) -> dict:
    """Returns the health of a webhook."""
    return expect(store.admin.get(f"/webhooks/{webhook}"), 200)["health"]


def rows(page: Page) -> list[str]:
    """Returns the rows of the table of deliveries."""
    page.settled()
    return page.run("async () => [...document.querySelectorAll('.deliveries tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' '))")


def test_paused_webhook_is_resumed(page: Page, console_store: Cairn, bucket: str, unsteady: Unsteady):
    """One row for each event, with its attempts inside. Resume sends what waits."""
    webhook = create(console_store, unsteady, bucket)
    for number in range(FAILURES + 3):
        console_store.s3.put(bucket, f"summer/IMG_{number}.jpg", b"1")
    until(lambda: health(console_store, webhook)["state"] == "paused", "a pause")
    # A probe that is answered could begin with the others, or end the pause before the button does.
    unsteady.answers.clear()
    page.go("webhooks", webhook)
    page.see("Waits until resumed")
    found = rows(page)
    assert len(found) == FAILURES + 3 and all("IMG_" in row and f"{bucket}/summer/" in row for row in found), found
    page.run("""async () => [...document.querySelectorAll('.deliveries tbody tr')].find((row) => row.innerText.includes('IMG_0.jpg'))
        .querySelector('button[aria-expanded]').click()""")
    page.wait("async () => document.querySelector('.attempts')?.innerText.includes('HTTP')", what="the attempts")
    assert page.violations() == []
    page.click("Resume")
    page.see("What waits is sent now.")
    unsteady.status = 204
    unsteady.answers.set()
    until(lambda: health(console_store, webhook)["pending"] == 0, "all are delivered")
    page.go("webhooks")
    page.go("webhooks", webhook)
    assert all("Delivered" in row or "Lost after 2 attempts" in row for row in rows(page)) and not page.has("Resume")


def test_lost_events_are_sent_again_in_one_click(page: Page, console_store: Cairn, bucket: str, unsteady: Unsteady):
    """The banner has their number. The filter shows them alone, and is in the URL."""
    webhook = create(console_store, unsteady, bucket)
    unsteady.status = 410
    for key in ("a/<b>lost</b>.jpg", "lost too"):
        console_store.s3.put(bucket, key, b"1")
    until(lambda: health(console_store, webhook)["lost"] == 2, "two lost events")
    unsteady.status = 204
    console_store.s3.put(bucket, "arrived", b"1")
    until(lambda: health(console_store, webhook)["last_success_at"], "a delivered event")
    page.go("webhooks", webhook, state="lost")
    page.see("2 events were not delivered.")
    assert len(rows(page)) == 2 and all("Lost after" in row for row in rows(page))
    page.click("Redeliver 2 lost")
    page.see("2 events are sent again.")
    until(lambda: health(console_store, webhook)["lost"] == 0, "nothing is lost")
    page.see("Nothing matches.")
    page.gone("were not delivered.")
    page.click("All")
    page.wait("async () => document.querySelectorAll('.deliveries tbody tr').length === 3")


def test_phone_shows_state_and_remedy(page: Page, console_store: Cairn, bucket: str, unsteady: Unsteady):
    """In two lines, without scrolling sideways, also with a very long name."""
    webhook = create(console_store, unsteady, bucket)
    unsteady.status = 410
    console_store.s3.put(bucket, "x" * 1000, b"1")
    until(lambda: health(console_store, webhook)["lost"] == 1, "a lost event")
    page.resize(390, 844)
    try:
        page.go("webhooks", webhook)
        page.see("Lost after")
        assert page.has("Redeliver") and page.has("Redeliver 1 lost")
        assert page.run("async () => document.documentElement.scrollWidth <= innerWidth")
        assert page.violations() == []
    finally:
        page.resize()


def test_others_see_deliveries_without_actions(page: Page, console_store: Cairn, bucket: str, unsteady: Unsteady):
    """Only a system administrator sends again."""
    webhook = create(console_store, unsteady, bucket)
    unsteady.status = 204
    console_store.s3.put(bucket, "k", b"1")
    until(lambda: health(console_store, webhook)["last_success_at"], "a delivery")
    try:
        page.sign_in(create_token(console_store, "auditor")["token"])
        page.go("webhooks", webhook)
        page.see("Delivered")
        assert not page.has("Redeliver") and not page.has("Send a test")
    finally:
        page.sign_in(console_store.secrets.system_token)
