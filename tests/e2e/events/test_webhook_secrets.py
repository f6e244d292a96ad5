"""Secrets in the targets of webhooks: who sees them, and where they must not appear."""

from collections.abc import Callable, Iterator

import pytest

from harness.management import Management, expect, with_role
from harness.receiver import Answer, Delivery, Receiver
from harness.server import Cairn, free_ports
from harness.wait import until

SECRET = "T0PSECRET"
RELAXED = {
    "SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true",
    "SERVICE_WEBHOOKS_REQUEST_TIMEOUT_SECONDS": "2", "SERVICE_WEBHOOKS_MAXIMUM_ATTEMPTS": "1",
}


@pytest.fixture
def failing() -> Iterator[Receiver]:
    """A receiver that refuses everything, in several ways."""
    def answer(delivery: Delivery) -> Answer:
        if "redirected" in delivery.path:
            return 302, {"location": f"http://127.0.0.1:1/{SECRET}"}, 0.0
        return 500, {}, 0.0

    receiver = Receiver(answer)
    yield receiver
    receiver.close()


def create(admin: Management, url: str) -> dict:
    """Creates a webhook for all new objects."""
    body = {"target_url": url, "event_types": ["object.created"]}
    return expect(admin.post("/webhooks", body), 201)["subscription"]


def test_secret_of_a_target_is_shown_only_to_those_who_change_webhooks(make_store: Callable[..., Cairn], failing: Receiver):
    """Receivers such as Slack authenticate by a secret in the URL. Every role may read webhooks, and an auditor read it there: it
    could send messages in the name of the server. Deliveries fail in several ways, and no log, record or error has it either."""
    store = make_store(**RELAXED).start()
    admin = store.admin
    (closed,) = free_ports(1)
    base = f"http://127.0.0.1:{failing.port}"
    origins = [base, base, base, f"http://127.0.0.1:{closed}", f"https://127.0.0.1:{failing.port}"]
    paths = [f"/services/{SECRET}", f"?token={SECRET}", f"/redirected/{SECRET}", f"/{SECRET}?{SECRET}", f"/{SECRET}"]
    hooks = [create(admin, origin + path) for origin, path in zip(origins, paths, strict=True)]
    plain = create(admin, base + "/")
    for url in (f"http://user:{SECRET}@{base[7:]}/", f"ftp://host/{SECRET}", f"http://host/{SECRET}#{SECRET}"):
        refused = admin.post("/webhooks", {"target_url": url, "event_types": ["object.created"]})
        assert refused.status_code == 400 and SECRET not in refused.text
    expect(admin.post(f"/webhooks/{hooks[3]['id']}/test"), 200)
    store.s3.create_bucket("watched")
    store.s3.put("watched", "new", b"1")

    def deliveries() -> list[dict]:
        return expect(admin.get("/webhook-deliveries"), 200)["deliveries"]

    until(lambda: [one["status"] for one in deliveries()].count("failed") == 6, "the deliveries did not fail")
    readers = {role: with_role(admin, role) for role in ("auditor", "storage_admin")}
    for role, reader in readers.items():
        listed = expect(reader.get("/webhooks"), 200)["webhooks"]
        assert [one["target_url"] for one in listed] == [f"{origin}/…" for origin in origins] + [base + "/"]
        answers = [reader.get(f"/webhooks/{hook['id']}") for hook in [*hooks, plain]]
        assert [expect(answer, 200) for answer in answers] == listed
        paths = ["/webhooks", "/webhook-deliveries", "/events", "/system/info", "//ready"]
        paths += ["/audit/events"] if role == "auditor" else []
        answers += [reader.get(path) for path in paths]
        assert not any(SECRET in answer.text for answer in answers)
    assert [one["target_url"] for one in expect(admin.get("/webhooks"), 200)["webhooks"]][:2] == [
        base + f"/services/{SECRET}", base + f"?token={SECRET}",
    ]
    # What writes is answered with what was written, and only system administrators write.
    assert SECRET in admin.put(f"/webhooks/{hooks[0]['id']}/status", {"enabled": False}).text
    expect(admin.delete(f"/webhooks/{hooks[1]['id']}"), 204)
    assert SECRET not in admin.get("/audit/events").text
    assert SECRET not in store.output()
