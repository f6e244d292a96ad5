"""Veeam's Smart Object Storage API: two objects of every bucket that the server itself answers, with `s3.sosapi`.

Veeam takes `ProtocolVersion` only with double quotes in its text, and `APIEndpoints` for a promise of IAM (minio#17195).
"""

from collections.abc import Callable

import pytest

from harness.accounts import create_account, statement
from harness.boto import make_client
from harness.expect import assert_error
from harness.management import expect
from harness.s3 import S3, md5_etag, object_target, xml
from harness.server import Cairn

FOLDER = ".system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c"
SYSTEM, CAPACITY = f"{FOLDER}/system.xml", f"{FOLDER}/capacity.xml"
SYSTEM_DOCUMENT = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<SystemInfo><ProtocolVersion>"1.0"</ProtocolVersion><ModelName>"Cairn"</ModelName>'
    b"<ProtocolCapabilities><CapacityInfo>true</CapacityInfo><UploadSessions>false</UploadSessions><IAMSTS>false</IAMSTS>"
    b"</ProtocolCapabilities></SystemInfo>"
)
QUOTA = {"bytes": {"mode": "limit", "bytes": 1_000_000}, "objects": {"mode": "unlimited"}}
both_objects = pytest.mark.parametrize("key", [SYSTEM, CAPACITY])


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server with the setting, in place of the one without it."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_S3_SOSAPI="true").start()


def capacity(s3: S3, bucket: str) -> dict[str, int]:
    """Reads the figures."""
    root = xml(s3.get(bucket, CAPACITY))
    assert root.tag == "CapacityInfo"
    return {child.tag: int(child.text or "") for child in root}


def test_what_the_store_can_do(extended: S3, extended_bucket: str):
    """The document is to the letter what Veeam accepts; GET and HEAD have the headers of a stored object."""
    answer = extended.get(extended_bucket, SYSTEM)
    assert answer.body == SYSTEM_DOCUMENT
    for found in (answer, extended.head(extended_bucket, SYSTEM)):
        assert (found.get("content-length"), found.get("content-type")) == (str(len(SYSTEM_DOCUMENT)), "application/xml")
        assert (found.get("etag"), found.get("accept-ranges")) == (md5_etag(SYSTEM_DOCUMENT), "bytes")
        assert found.get("last-modified") and found.get("x-amz-version-id") is None


@both_objects
def test_ranges_and_conditions(extended: S3, extended_store: Cairn, extended_bucket: str, key: str):
    """They are those of any small object."""
    # Without a quota, the space that others take on the disk changes the capacity and its tag.
    expect(extended_store.admin.put(f"/buckets/{extended_bucket}/quota", {"quota": QUOTA}), 200)
    target = object_target(extended_bucket, key)
    whole = extended.request("GET", target)
    size, etag = len(whole.body), whole.get("etag")
    part = extended.request("GET", target, [("Range", "bytes=2-9")])
    assert (part.status, part.body, part.get("content-range")) == (206, whole.body[2:10], f"bytes 2-9/{size}")
    tail = extended.request("GET", target, [("Range", "bytes=-5")])
    assert (tail.status, tail.body) == (206, whole.body[-5:])
    head = extended.request("HEAD", target, [("Range", "bytes=0-0")])
    assert (head.status, head.get("content-length")) == (206, "1")
    assert_error(extended.request("GET", target, [("Range", f"bytes={size}-")]), 416, "InvalidRange")
    assert extended.request("GET", target, [("If-None-Match", etag)]).status == 304
    assert extended.request("HEAD", target, [("If-Match", '"other"')]).status == 412
    assert extended.request("GET", f"{target}?response-content-type=text/plain").get("content-type") == "text/plain"


def test_figures_of_a_bucket_without_a_quota(extended: S3, extended_store: Cairn, extended_bucket: str):
    """The capacity is that of the file system, and every version counts as used."""
    space = expect(extended_store.admin.get("/storage/status"), 200)
    before = capacity(extended, extended_bucket)
    assert list(before) == ["Capacity", "Available", "Used"]
    assert before["Used"] == 0 and 0 < before["Available"] < before["Capacity"]
    assert before["Capacity"] == space["capacity_bytes"], space
    make_client(extended).put_bucket_versioning(Bucket=extended_bucket, VersioningConfiguration={"Status": "Enabled"})
    for size in (70_000, 30_000):
        extended.put(extended_bucket, "k", bytes(size))
    assert capacity(extended, extended_bucket)["Used"] == 100_000
    assert extended.get(extended_bucket, SYSTEM).get("x-amz-version-id") == "null"
    assert extended.request("GET", object_target(extended_bucket, SYSTEM, "versionId=null")).body == SYSTEM_DOCUMENT
    version = extended.head(extended_bucket, "k").get("x-amz-version-id")
    assert_error(extended.request("GET", object_target(extended_bucket, SYSTEM, f"versionId={version}")), 404, "NoSuchVersion")


def test_a_quota_is_the_capacity(extended: S3, extended_store: Cairn, extended_bucket: str):
    """What is left of the quota is available, as long as the disk has it."""
    expect(extended_store.admin.put(f"/buckets/{extended_bucket}/quota", {"quota": QUOTA}), 200)
    extended.put(extended_bucket, "k", bytes(300_000))
    assert capacity(extended, extended_bucket) == {"Capacity": 1_000_000, "Available": 700_000, "Used": 300_000}


def test_they_are_not_listed_and_not_counted(extended: S3, extended_bucket: str):
    """A bucket in which nothing was stored is empty."""
    extended.get(extended_bucket, SYSTEM)
    boto = make_client(extended)
    assert extended.list_all(extended_bucket) == {} and "Versions" not in boto.list_object_versions(Bucket=extended_bucket)
    assert boto.list_objects_v2(Bucket=extended_bucket, Prefix=FOLDER)["KeyCount"] == 0
    boto.delete_bucket(Bucket=extended_bucket)
    assert_error(extended.request("GET", object_target(extended_bucket, SYSTEM)), 404, "NoSuchBucket")


@both_objects
def test_changes_are_refused_by_name(extended: S3, extended_bucket: str, key: str):
    """Whatever would create or delete them is refused; neighbours are ordinary keys."""
    target = object_target(extended_bucket, key)
    extended.put(extended_bucket, "k", b"x")
    source = ("x-amz-copy-source", f"/{extended_bucket}/k")
    changes = [
        ("PUT", target, [], b"<SystemInfo/>"), ("PUT", target, [source], b""), ("POST", f"{target}?uploads", [], b""),
        ("DELETE", target, [], b""), ("PUT", f"{target}?tagging", [], b"<Tagging><TagSet/></Tagging>"),
    ]
    for method, path, headers, body in changes:
        refusal = extended.request(method, path, headers, body)
        assert_error(refusal, 400, "InvalidRequest")
        assert key in refusal.body.decode() and "s3.sosapi" in refusal.body.decode()
    named = f"<Delete><Object><Key>{key}</Key></Object><Object><Key>k</Key></Object></Delete>".encode()
    root = xml(extended.request("POST", f"/{extended_bucket}?delete", body=named))
    assert (root.findtext("Error/Key"), root.findtext("Error/Code"), root.findtext("Deleted/Key")) == (key, "InvalidRequest", "k")
    extended.put(extended_bucket, f"{key}.old", b"y")
    assert extended.get(extended_bucket, f"{key}.old").body == b"y"
    assert set(extended.list_all(extended_bucket)) == {f"{key}.old"}


def test_only_readers_of_the_key_get_them(extended: S3, extended_store: Cairn, extended_bucket: str):
    """An account needs `s3:GetObject` on the key, as for any object."""
    allowed = create_account(extended_store, statement("allow", "GetObject", f"bucket:{extended_bucket}/{FOLDER}/*"))
    other = create_account(extended_store, statement("allow", "GetObject", f"bucket:{extended_bucket}/backups/*"))
    target = object_target(extended_bucket, CAPACITY)
    assert allowed.s3.request("GET", target).status == 200
    assert_error(other.s3.request("GET", target), 403, "AccessDenied")


def test_without_the_setting_they_are_ordinary_keys(make_store: Callable[..., Cairn]):
    """Off by default, and off in the strict mode. What was stored before is read again when it is off."""
    store = make_store(SERVICE_S3_SOSAPI="true").start()
    s3 = store.s3
    s3.create_bucket("bucket")
    assert_error(s3.request("GET", object_target("bucket", SYSTEM)), 404, "NoSuchKey")
    s3.put("bucket", SYSTEM, b"stored")
    assert s3.get("bucket", SYSTEM).body == b"stored"
    store.stop()
    store.extra["SERVICE_S3_COMPATIBILITY"] = "extended"
    store.start()
    assert store.s3.get("bucket", SYSTEM).body == SYSTEM_DOCUMENT
    store.stop()
    del store.extra["SERVICE_S3_SOSAPI"]
    store.start()
    assert store.s3.get("bucket", SYSTEM).body == b"stored"
