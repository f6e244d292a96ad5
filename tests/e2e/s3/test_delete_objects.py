"""DeleteObjects: results of each object, versions, locks, conditions, permissions, events, audit. Extended mode only."""

import base64
import hashlib
import time
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable
from xml.sax.saxutils import escape

import pytest

from harness.accounts import create_account, statement
from harness.boto import make_client
from harness.events import walk
from harness.expect import assert_error
from harness.management import expect
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.s3 import S3, Headers, md5_etag, xml
from harness.server import Cairn

VERSIONING = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
BYPASS = [("x-amz-bypass-governance-retention", "true")]
# A request of 1000 keys takes a few commits; single deletes take one each.
COMMITS_MAX = 50


def document(*objects: str | tuple[str, str], quiet: bool = False, more: str = "") -> bytes:
    """Returns the body of a request. An object is a key, or a key and further elements."""
    entries = "".join(
        f"<Object><Key>{escape(named if isinstance(named, str) else named[0])}</Key>"
        f"{'' if isinstance(named, str) else named[1]}</Object>"
        for named in objects
    )
    return f"<Delete>{'<Quiet>true</Quiet>' if quiet else ''}{entries}{more}</Delete>".encode()


def send(s3: S3, bucket: str, body: bytes, headers: Headers | None = None) -> ElementTree.Element:
    """Sends a request that must succeed, and returns its result."""
    response = s3.request("POST", f"/{bucket}?delete", headers, body)
    assert response.status == 200, (response.status, response.body)
    root = xml(response)
    assert root.tag == "DeleteResult"
    return root


def outline(root: ElementTree.Element) -> list[tuple[str, ...]]:
    """Returns the entries of a result: `Deleted` or `Error`, and the texts in it except messages."""
    return [(entry.tag, *(child.text for child in entry if child.tag != "Message")) for entry in root]


def keys(s3: S3, bucket: str) -> list[str]:
    """Returns the keys of the current objects."""
    return sorted(s3.list_all(bucket))


def test_named_objects_are_deleted_and_missing_ones_count_as_deleted(extended: S3, extended_bucket: str):
    """Each entry of the result is in the order of the request. A key may be named twice."""
    for key in ("a", "b & c/é", " d ", "kept"):
        extended.put(extended_bucket, key, b"x")
    result = send(extended, extended_bucket, document("a", "b & c/é", " d ", "missing", "a"))
    assert outline(result) == [("Deleted", key) for key in ("a", "b & c/é", " d ", "missing", "a")]
    assert keys(extended, extended_bucket) == ["kept"]
    assert outline(send(extended, extended_bucket, document("kept", quiet=True))) == []
    assert keys(extended, extended_bucket) == []


def test_versions_and_delete_markers_are_named_in_the_result(extended: S3, extended_bucket: str):
    """A delete creates a marker, a named version is removed, and removing a marker brings the object back."""
    extended.request("PUT", f"/{extended_bucket}?versioning", body=VERSIONING)
    version = extended.put(extended_bucket, "k", b"1").get("x-amz-version-id")
    (entry,) = send(extended, extended_bucket, document("k"))
    assert (entry.findtext("Key"), entry.findtext("DeleteMarker"), entry.find("VersionId")) == ("k", "true", None)
    marker = entry.findtext("DeleteMarkerVersionId")
    assert extended.get(extended_bucket, "k").get("x-amz-version-id") == marker
    result = send(extended, extended_bucket, document(("k", f"<VersionId>{marker}</VersionId>")))
    assert outline(result) == [("Deleted", "k", marker, "true", marker)]
    assert extended.get(extended_bucket, "k").body == b"1"
    result = send(extended, extended_bucket, document(
        ("k", f"<VersionId>{version}</VersionId>"), ("k", f"<VersionId>{version}</VersionId>"),
        ("k", "<VersionId>nonsense</VersionId>"), ("k", "<VersionId></VersionId>"),
    ))
    assert outline(result) == [
        ("Deleted", "k", version), ("Deleted", "k", version), ("Error", "k", "nonsense", "NoSuchVersion"),
        ("Error", "k", None, "InvalidArgument"),
    ]
    assert extended.get(extended_bucket, "k").status == 404


def test_a_refused_object_does_not_stop_the_others(extended: S3, extended_bucket: str):
    """Conditions that do not hold, and keys that cannot exist, are errors of their entries."""
    for key in ("a", "b", "c", "d"):
        extended.put(extended_bucket, key, b"xyz")
    modified = extended.head(extended_bucket, "a").get("last-modified")
    etag = escape(md5_etag(b"xyz"), {'"': "&quot;"})
    too_long = "k" * 1025
    result = send(extended, extended_bucket, document(
        ("a", f"<ETag>{etag}</ETag><Size>3</Size><LastModifiedTime>{modified}</LastModifiedTime>"),
        ("b", "<ETag>other</ETag>"), ("c", "<Size>4</Size>"), ("d", "<ETag>*</ETag>"), too_long,
        ("missing", "<ETag>*</ETag>"), ("c", "<Size>x</Size>"),
        ("c", "<LastModifiedTime>1994-11-06T08:49:37Z</LastModifiedTime>"), quiet=True,
    ))
    assert outline(result) == [
        ("Error", "b", "PreconditionFailed"), ("Error", "c", "PreconditionFailed"), ("Error", too_long, "KeyTooLongError"),
        ("Error", "c", "InvalidArgument"), ("Error", "c", "PreconditionFailed"),
    ]
    assert keys(extended, extended_bucket) == ["b", "c"]


def test_locked_versions_are_refused_and_governance_can_be_bypassed(extended: S3):
    """A lock concerns its version only; the bypass is a header of the request."""
    bucket = "locked-objects"
    boto = make_client(extended)
    boto.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    locks = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": time.time() + 3600}
    versions = [
        boto.put_object(Bucket=bucket, Key=key, Body=b"x", **options)["VersionId"]
        for key, options in (("free", {}), ("governed", locks), ("held", {"ObjectLockLegalHoldStatus": "ON"}))
    ]
    entries = [(key, f"<VersionId>{version}</VersionId>") for key, version in zip(("free", "governed", "held"), versions)]
    first = outline(send(extended, bucket, document(*entries)))
    assert first == [
        ("Deleted", "free", versions[0]), ("Error", "governed", versions[1], "AccessDenied"),
        ("Error", "held", versions[2], "AccessDenied"),
    ]
    second = outline(send(extended, bucket, document(*entries[1:]), BYPASS))
    assert second == [("Deleted", "governed", versions[1]), ("Error", "held", versions[2], "AccessDenied")]


def test_a_bypass_without_object_lock_is_refused(extended: S3, extended_bucket: str):
    """As DeleteObject, nothing is deleted."""
    extended.put(extended_bucket, "k")
    answer = extended.request("POST", f"/{extended_bucket}?delete", BYPASS, document("k"))
    assert_error(answer, 400, "InvalidArgument")
    assert keys(extended, extended_bucket) == ["k"]


@pytest.mark.parametrize("body", [
    b"", b"<Delete/>", b"<Delete><Object/></Delete>", b"<Delete><Object><Key></Key></Object></Delete>", b"<Delete><Object>",
    b"<Other><Object><Key>k</Key></Object></Other>", document(*["k"] * 1001), document("k", more="<Quiet>maybe</Quiet>"),
    b"<!DOCTYPE Delete><Delete><Object><Key>k</Key></Object></Delete>", b"<Delete>" + b" " * (2 << 20) + b"</Delete>",
    b"<Delete><Object><Key>&#x1;</Key></Object></Delete>",
])
def test_malformed_requests_delete_nothing(extended: S3, extended_bucket: str, body: bytes):
    """Also documents that are too long or name too many objects."""
    extended.put(extended_bucket, "k")
    assert_error(extended.request("POST", f"/{extended_bucket}?delete", body=body), 400, "MalformedXML")
    assert keys(extended, extended_bucket) == ["k"]


def test_digests_are_checked_if_they_are_sent(extended: S3, extended_bucket: str):
    """AWS requires one; clients that are set to send none when none is needed work here."""
    body = document("k")
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    crc = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
    for headers in ([("Content-MD5", md5)], [("x-amz-checksum-crc32", crc)], []):
        extended.put(extended_bucket, "k")
        assert outline(send(extended, extended_bucket, body, headers)) == [("Deleted", "k")]
    extended.put(extended_bucket, "k")
    for headers in ([("Content-MD5", base64.b64encode(bytes(16)).decode())], [("x-amz-checksum-crc32", "AAAAAA==")]):
        assert_error(extended.request("POST", f"/{extended_bucket}?delete", headers, body), 400, "BadDigest")
    for headers in ([("If-Match", "*")], [("x-amz-if-match-size", "1")], [("x-amz-mfa", "1 2")]):
        assert_error(extended.request("POST", f"/{extended_bucket}?delete", headers, body), 501, "NotImplemented")
    assert keys(extended, extended_bucket) == ["k"]
    assert_error(extended.request("POST", "/no-such-bucket?delete", body=body), 404, "NoSuchBucket")


def test_each_key_needs_its_permission(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Keys that the account may not delete are errors, and denied in the audit trail. A condition needs s3:GetObject."""
    name = extended_bucket
    for key in ("mine/a", "mine/b", "other/c"):
        extended.put(name, key, b"x")
    account = create_account(extended_store, statement("allow", "DeleteObject", f"bucket:{name}/mine/*"))
    result = send(account.s3, name, document("mine/a", "other/c", ("mine/b", "<ETag>*</ETag>")))
    assert outline(result) == [
        ("Deleted", "mine/a"), ("Error", "other/c", "AccessDenied"), ("Error", "mine/b", "AccessDenied"),
    ]
    assert "s3:DeleteObject" in result[1].findtext("Message") and "s3:GetObject" in result[2].findtext("Message")
    assert keys(extended, name) == ["mine/b", "other/c"]
    page = expect(extended_store.admin.get("/audit/events", params={"bucket": name, "limit": 100}), 200)
    denied = [(event["operation"], event["resource"]) for event in page["events"] if event["result"] == "denied"]
    assert sorted(denied) == [("DeleteObjects", f"{name}/mine/b"), ("DeleteObjects", f"{name}/other/c")]
    # An account that may delete none of the keys does not learn whether the bucket exists.
    for bucket in (name, "no-such-bucket"):
        assert outline(send(account.s3, bucket, document("other/c"))) == [("Error", "other/c", "AccessDenied")]
    governed = account.s3.request("POST", f"/{name}?delete", BYPASS, document("mine/b"))
    assert_error(governed, 400, "InvalidArgument")


def test_each_deleted_object_has_its_event(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Deleting what does not exist has no event."""
    for key in ("a", "b"):
        extended.put(extended_bucket, key, b"12345")
    send(extended, extended_bucket, document("a", "missing", "b"))
    events = [event for event in walk(extended_store.admin, bucket=extended_bucket) if event["type"] == "object.deleted"]
    assert sorted((event["object"], event["size"]) for event in events) == [("a", 5), ("b", 5)]
    assert len({event["metadata"]["request_id"] for event in events}) == 1


@pytest.mark.parametrize(("data_events", "count"), [("off", 0), ("writes", 301)])
def test_deletes_are_audited_as_data_events(make_store, data_events: str, count: int):
    """One record for each object, with its key. A bypass of governance is recorded whatever the setting."""
    store = make_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_AUDIT_DATA_EVENTS=data_events).start()
    boto = make_client(store.s3)
    boto.create_bucket(Bucket="photos", ObjectLockEnabledForBucket=True)
    names = [f"k{number}" for number in range(300)]
    send(store.s3, "photos", document(*names))

    def recorded(detail: str) -> list[dict]:
        page = expect(store.admin.get("/audit/events", params={"bucket": "photos", "limit": 1000}), 200)
        return [event for event in page["events"] if event["operation"] == "DeleteObjects" and detail in event["detail"]]

    assert len(recorded("delete marker")) == (count and 300)
    send(store.s3, "photos", document("k0", ("k1", "<VersionId>null</VersionId>")), BYPASS)
    bypassed = recorded("bypass governance")
    assert sorted(event["resource"] for event in bypassed) == ["photos/k0", "photos/k1"]
    assert all(event["result"] == "allowed" for event in bypassed)


def test_a_thousand_keys_take_a_few_commits(make_store: Callable[..., Cairn]):
    """They are deleted together, not in a transaction each."""
    store = make_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    boto = make_client(store.s3)
    store.s3.create_bucket("many")
    names = [f"many/{number:04}" for number in range(1000)]
    with store.s3.connect() as connection:
        for name in names:
            assert store.s3.request("PUT", f"/many/{name}", connection=connection).status == 200
    before = scrape(store).sum("service_commit_batch_changes_count")
    answer = boto.delete_objects(Bucket="many", Delete={"Objects": [{"Key": name} for name in names]})
    commits = scrape(store).sum("service_commit_batch_changes_count") - before
    assert len(answer["Deleted"]) == 1000 and "Errors" not in answer
    assert before >= 1000 and commits <= COMMITS_MAX, (before, commits)


def test_boto3_deletes_with_its_defaults(extended: S3, extended_bucket: str):
    """`delete_objects` with the default checksums, and with those that are required."""
    for settings in ({}, {"request_checksum_calculation": "when_required"}):
        boto = make_client(extended, **settings)
        for key in ("a b", "é/+%?", "kept"):
            boto.put_object(Bucket=extended_bucket, Key=key, Body=b"x")
        objects = [{"Key": "a b"}, {"Key": "é/+%?"}, {"Key": "missing"}]
        answer = boto.delete_objects(Bucket=extended_bucket, Delete={"Objects": objects})
        assert [item["Key"] for item in answer["Deleted"]] == ["a b", "é/+%?", "missing"]
        assert keys(extended, extended_bucket) == ["kept"]
