"""Targets of webhooks in every spelling, redirects, proxies, certificates, and a library that receivers use."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import standardwebhooks

from harness.certificates import Authority
from harness.management import Management, expect, expect_refusal
from harness.receiver import Receiver, service_signature
from harness.server import LOOPBACK, Cairn

LOCAL = {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true"}
NEVER = "which is never allowed"
PRIVATE = "webhooks.allow_private_networks = true allows it"


@pytest.fixture(scope="module")
def local_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server that delivers to this host."""
    return make_module_store(**LOCAL).start()


def create(admin: Management, url: str) -> tuple[str, str]:
    """Creates a webhook for new buckets and returns its id and secret."""
    made = expect(admin.post("/webhooks", {"target_url": url, "event_types": ["bucket.created"]}), 201)
    return made["subscription"]["id"], made["signing_secret"]


def refusal(admin: Management, url: str) -> str:
    """Asserts that no webhook can be created with a URL, and returns the message."""
    body = {"target_url": url, "event_types": ["bucket.created"]}
    return expect_refusal(admin.post("/webhooks", body), 400, "INVALID_WEBHOOK_TARGET")


def trial(admin: Management, url: str) -> dict:
    """Sends a test delivery to a URL and returns the report."""
    webhook, _ = create(admin, url)
    report = expect(admin.post(f"/webhooks/{webhook}/test"), 200)
    expect(admin.delete(f"/webhooks/{webhook}"), 204)
    return report


def steps(report: dict) -> list[tuple[str, bool]]:
    """The steps of a test delivery."""
    return [(step["step"], step["ok"]) for step in report["steps"]]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://b\u00fccher.example/", "xn--"),
        ("https://2130706433/", f"127.0.0.1 is a loopback address; {PRIVATE}"),
        ("https://0x7f.1/", f"127.0.0.1 is a loopback address; {PRIVATE}"),
        ("https://0177.0.0.1/", f"127.0.0.1 is a loopback address; {PRIVATE}"),
        ("https://[::ffff:7f00:1]/", f"contains 127.0.0.1, which is a loopback address; {PRIVATE}"),
        ("https://[fd00::1]/", PRIVATE),
        ("https://100.64.0.1/", PRIVATE),
        ("https://[2002:7f00:1::]/", NEVER),
        ("https://[64:ff9b::a9fe:a9fe]/", f"metadata service, {NEVER}"),
        ("https://168.63.129.16/", f"metadata service, {NEVER}"),
        ("https://0/", NEVER),
        ("https://127.0.0.1.5/", "neither a host name nor an address"),
        ("https://127%2e0.0.1/", "neither a host name nor an address"),
        ("https://example.com\\@127.0.0.1/", "percent-encoded"),
        ("https://exam\tple.com/", "percent-encoded"),
    ],
)
def test_no_spelling_of_an_inner_address_is_accepted(admin: Management, url: str, reason: str):
    """The message names the address, the reason and the setting."""
    assert reason in refusal(admin, url)


def test_settings_open_private_networks_and_nothing_else(local_store: Cairn):
    """Metadata services and link-local addresses stay closed, whatever encloses them."""
    for url in ("http://169.254.169.254/", "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://[fe80::1]/", "http://0.0.0.0/"):
        assert NEVER in refusal(local_store.admin, url), url


def test_a_delivery_is_verified_by_a_library_of_standard_webhooks(local_store: Cairn, make_receiver: Callable[..., Receiver]):
    """The library is used as it is. Our own signature covers the same bytes."""
    receiver = make_receiver()
    webhook, secret = create(local_store.admin, receiver.url_at("localhost"))
    local_store.s3.create_bucket("verified-delivery")
    delivery = receiver.wait(1)[0]
    library = standardwebhooks.Webhook(secret)
    event = library.verify(delivery.body, delivery.headers)
    assert (event["type"], event["bucket"], event["id"]) == ("bucket.created", "verified-delivery", delivery.event_id)
    assert delivery.headers["x-service-signature"] == service_signature(secret, delivery.body)
    assert delivery.headers["user-agent"].startswith("Cairn-Webhook/")
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        library.verify(delivery.body.replace(b"created", b"deleted"), delivery.headers)
    expect(local_store.admin.delete(f"/webhooks/{webhook}"), 204)


def test_a_redirect_is_a_failure(local_store: Cairn, make_receiver: Callable[..., Receiver]):
    """The receiver that it leads to is not asked."""
    other = make_receiver()
    redirecting = make_receiver(answer=lambda _: (302, {"location": other.url}, 0.0))
    report = trial(local_store.admin, redirecting.url)
    assert (report["delivered"], report["http_status"], other.received) == (False, 302, [])
    assert steps(report)[-1] == ("response", False)


def test_proxies_of_the_environment_are_not_used(make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver]):
    """A proxy would connect to whatever it likes."""
    receiver = make_receiver()
    with socket.create_server((LOOPBACK, 0)) as proxy:
        url = f"http://{LOOPBACK}:{proxy.getsockname()[1]}"
        names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
        store = make_store(**LOCAL, **dict.fromkeys(names, url)).start()
        assert trial(store.admin, receiver.url)["delivered"]
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_certificates_are_checked_with_the_authorities_of_the_host(
    make_store: Callable[..., Cairn], make_receiver: Callable[..., Receiver], tmp_path: Path
):
    """`SSL_CERT_FILE` names them, as for other programs."""
    authority, other = Authority(tmp_path / "authority"), Authority(tmp_path / "other")
    store = make_store(**LOCAL, SSL_CERT_FILE=str(authority.certificate)).start()
    trusted, unknown = make_receiver(pair=authority.issue("trusted")), make_receiver(pair=other.issue("unknown"))
    report = trial(store.admin, trusted.url_at("localhost"))
    assert report["delivered"] and steps(report) == [(step, True) for step in ("resolve", "check", "connect", "tls", "response")]
    report = trial(store.admin, unknown.url_at("localhost"))
    assert not report["delivered"] and steps(report)[-1] == ("tls", False)
    assert unknown.received == []
