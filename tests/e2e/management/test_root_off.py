"""SERVICE_ROOT_S3_ENABLED=false: root is refused on the data plane and still administers."""

from collections.abc import Callable

from harness.management import Management, basic, expect
from harness.s3 import S3, error_code, object_target
from harness.server import LOOPBACK, Cairn
from harness.sigv4 import Credential


def test_disabled_root_is_refused_on_the_data_plane_only(make_store: Callable[..., Cairn]):
    """Root is refused whether its signature is right or wrong, so nobody can guess it here. Root can still manage."""
    store = make_store(SERVICE_ROOT_S3_ENABLED="false").start()
    root = Management(store.management, basic(store.secrets.root_access_key, store.secrets.root_secret_key))
    expect(root.post("/buckets", {"name": "without-root"}), 201)
    wrong = S3(LOOPBACK, store.s3_port, Credential(store.secrets.root_access_key, "a-wrong-secret"))
    key = object_target("without-root", "key")
    for method, target, body in (("PUT", key, b"text"), ("GET", "/", b""), ("GET", "/without-root?list-type=2", b""), ("GET", key, b"")):
        for client in (store.s3, wrong):
            answer = client.request(method, target, body=body)
            assert (answer.status, error_code(answer)) == (403, "AccessDenied"), target
    usage = expect(root.get("/storage/usage"), 200)
    assert (usage["buckets"], usage["objects"]) == (1, 0)
    store.stop()
    store.extra["SERVICE_ROOT_S3_ENABLED"] = "true"
    store.start()
    store.s3.put("without-root", "key", b"text")
