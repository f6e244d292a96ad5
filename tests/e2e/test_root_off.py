"""SERVICE_ROOT_S3_ENABLED=false: root has no business on the data plane, and is still who administers."""

from collections.abc import Callable

from harness.management import Management, basic, expect
from harness.s3 import error_code, object_target
from harness.server import Cairn


def test_root_is_refused_on_the_data_plane_and_nowhere_else(make_store: Callable[..., Cairn]):
    """Right signatures, wrong ones and presigned URLs are refused; accounts work, and root still manages."""
    store = make_store(SERVICE_ROOT_S3_ENABLED="false").start()
    root = Management(store.management, basic(store.secrets.root_access_key, store.secrets.root_secret_key))
    expect(root.post("/buckets", {"name": "without-root"}), 201)
    key = object_target("without-root", "key")
    for method, target, body in (("PUT", key, b"text"), ("GET", "/", b""), ("GET", "/without-root?list-type=2", b""), ("GET", key, b"")):
        answer = store.s3.request(method, target, body=body)
        assert (answer.status, error_code(answer)) == (403, "AccessDenied"), target
    usage = expect(root.get("/storage/usage"), 200)
    assert (usage["buckets"], usage["objects"]) == (1, 0)
    store.stop()
    store.extra["SERVICE_ROOT_S3_ENABLED"] = "true"
    store.start()
    store.s3.put("without-root", "key", b"text")
