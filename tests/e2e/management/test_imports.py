"""Imports through the management API: what a version keeps, its place in the history, and what is refused."""

import base64
import hashlib
import zlib
from urllib.parse import quote, urlencode

from harness.expect import assert_error
from harness.management import Management, expect, expect_refusal, with_role
from harness.s3 import S3, error_code, object_target, xml
from harness.server import Cairn
from harness.wait import until

FIRST, SECOND, MARKER = "11111111-2222-4333-8444-555555555555", "AbC._-9", "0c8a5b0e-ee2a-4b19-9d11-3f1b8a6e0d27"
DATE = "2021-03-04T05:06:07.089Z"


def md5(content: bytes) -> str:
    """Returns the entity tag of content in one piece."""
    return hashlib.md5(content).hexdigest()


def crc32(content: bytes) -> str:
    """Returns the CRC-32 as S3 writes it."""
    return base64.b64encode(zlib.crc32(content).to_bytes(4)).decode()


class Run:
    """A run of imports into one bucket."""

    def __init__(self, admin: Management, bucket: str, **members):
        self.admin, self.bucket = admin, bucket
        self.id = expect(admin.post(f"/buckets/{bucket}/imports", {"source": "https://minio:9000", **members}), 201)["import_id"]

    def send(self, method: str, route: str, key: str, *, content: bytes = b"", headers: dict | None = None, body=None, **query):
        """Sends one request of the run."""
        parameters = {"import_id": self.id} | query
        path = f"/buckets/{self.bucket}/{route}/{key}"
        options = {"json": body} if body is not None else {"data": content}
        return self.admin.request(method, path, params=parameters, headers=headers or {}, **options)

    def batch(self, *parts: bytes):
        """Sends a batch."""
        path, headers = f"/buckets/{self.bucket}/imported-objects", {"content-type": "application/http"}
        return self.admin.request("POST", path, params={"import_id": self.id}, headers=headers, data=b"".join(parts))

    def version(self, key: str, version: str, content: bytes = b"", date: str = DATE, headers: dict | None = None, **query):
        """Imports a version in one piece."""
        return self.send("PUT", "imported-objects", key, content=content, headers=headers, version_id=version, last_modified=date, **query)


def part(bucket: str, key: str, content: bytes = b"", *fields: str, method: str = "PUT", **query: str) -> bytes:
    """Returns a request of a batch."""
    path = f"/api/v1/buckets/{bucket}/imported-objects/{quote(key)}?{urlencode(query)}"
    head = [f"{method} {path} HTTP/1.1", "host: batch", f"content-length: {len(content)}", *fields]
    return "\r\n".join([*head, "", ""]).encode() + content


def listed(s3: S3, bucket: str) -> list[tuple[str, str, str]]:
    """Returns kind, version id and date of all versions, newest first."""
    root = xml(s3.request("GET", f"/{bucket}?versions"))
    entries = [entry for entry in root if entry.tag in ("Version", "DeleteMarker")]
    return [(entry.tag, entry.findtext("VersionId"), entry.findtext("LastModified")) for entry in entries]


def test_versions_keep_id_date_tag_headers_and_tags(admin: Management, s3: S3, versioned: str):
    """And S3 as well as the management API accept the id. What was written here before stays the newest."""
    own = s3.put(versioned, "k", b"written here").get("x-amz-version-id")
    run = Run(admin, versioned)
    headers = {"content-type": "text/plain", "x-amz-meta-a": "b", "cache-control": "no-store", "x-amz-tagging": "kind=old&x=y%20z"}
    assert expect(run.version("k", FIRST, b"first", headers=headers, etag=md5(b"first")), 201) == {"outcome": "created"}
    assert expect(run.version("k", MARKER, date="2021-03-04T05:06:08.000Z", delete_marker="true"), 201) == {"outcome": "created"}
    assert expect(run.version("k", SECOND, b"second", date="2021-03-04T05:06:07.100Z"), 201) == {"outcome": "created"}
    assert expect(run.version("k", FIRST, b"first", headers=headers, etag=md5(b"first")), 200) == {"outcome": "unchanged"}
    assert expect(run.version("k", MARKER, date="2021-03-04T05:06:08.000Z", delete_marker="true"), 200) == {"outcome": "unchanged"}
    second = "2021-03-04T05:06:07.000Z"
    older = [("DeleteMarker", MARKER, "2021-03-04T05:06:08.000Z"), ("Version", SECOND, second), ("Version", FIRST, second)]
    assert listed(s3, versioned)[1:] == older
    assert listed(s3, versioned)[0][:2] == ("Version", own)
    got = s3.request("GET", object_target(versioned, "k", f"versionId={FIRST}"))
    kept = {name: got.get(name) for name in ("content-type", "x-amz-meta-a", "cache-control", "etag", "last-modified", "x-amz-version-id")}
    assert (got.status, got.body, kept) == (200, b"first", {
        "content-type": "text/plain", "x-amz-meta-a": "b", "cache-control": "no-store", "etag": f'"{md5(b"first")}"',
        "last-modified": "Thu, 04 Mar 2021 05:06:07 GMT", "x-amz-version-id": FIRST,
    })
    assert_error(s3.request("GET", object_target(versioned, "k", f"versionId={MARKER}")), 405, "MethodNotAllowed")
    record = expect(admin.get(f"/buckets/{versioned}/object/k", params={"version_id": SECOND}), 200)
    assert (record["version_id"], record["size"], record["last_modified"]) == (SECOND, 6, "2021-03-04T05:06:07.100Z")
    pages, markers = [], ""
    while markers is not None:
        root = xml(s3.request("GET", f"/{versioned}?versions&max-keys=1{markers}"))
        pages += [entry.findtext("VersionId") for entry in root if entry.tag in ("Version", "DeleteMarker")]
        following = root.findtext("NextVersionIdMarker")
        markers = f"&key-marker=k&version-id-marker={following}" if following else None
    assert pages == [own, MARKER, SECOND, FIRST], "each of them can be a marker of a list"
    for version, status in ((FIRST, 204), (FIRST, 204), (SECOND, 204), (SECOND, 400)):
        assert s3.request("DELETE", object_target(versioned, "k", f"versionId={version}")).status == status, version
    assert [name for _, name, _ in listed(s3, versioned)] == [own, MARKER]
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []


def test_tags_come_with_the_version_and_change_with_the_source(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Signed requests of the extended mode read them."""
    admin = extended_store.admin
    expect(admin.put(f"/buckets/{extended_bucket}/versioning", {"versioning": "Enabled"}), 200)
    run = Run(admin, extended_bucket)
    expect(run.version("k", FIRST, b"x", headers={"x-amz-tagging": "kind=old&x=y%20z"}), 201)

    def tags() -> dict[str, str]:
        root = xml(extended.request("GET", object_target(extended_bucket, "k", f"tagging&versionId={FIRST}")))
        return {tag.findtext("Key"): tag.findtext("Value") for tag in root.iter("Tag")}

    assert tags() == {"kind": "old", "x": "y z"}
    for outcome in ("changed", "unchanged"):
        changed = run.send("PATCH", "imported-objects", "k", body={"tags": [{"key": "kind", "value": "new"}]}, version_id=FIRST)
        assert expect(changed, 200) == {"outcome": outcome}
        assert tags() == {"kind": "new"}


def test_ids_that_nothing_has_are_answered_as_before(s3: S3, versioned: str):
    """A UUID might be the id of an imported version that was deleted; any other text is a mistake."""
    s3.put(versioned, "k", b"x")
    assert_error(s3.request("GET", object_target(versioned, "k", f"versionId={FIRST}")), 404, "NoSuchVersion")
    for method in ("GET", "HEAD", "DELETE"):
        response = s3.request(method, object_target(versioned, "k", "versionId=nonsense"))
        assert response.status == 400, method
        assert method == "HEAD" or error_code(response) == "InvalidArgument"
    assert_error(s3.request("GET", f"/{versioned}?versions&key-marker=k&version-id-marker=nonsense"), 400, "InvalidArgument")


def test_different_content_under_a_known_id_is_refused(admin: Management, versioned: str):
    """And a tag that the content does not have, unless it is said to be opaque."""
    run = Run(admin, versioned)
    opaque = "0123456789abcdef0123456789abcdef"
    assert expect(run.version("k", "x", b"one", etag=opaque, opaque_etag="true"), 201) == {"outcome": "created"}
    assert expect(run.version("k", "x", b"one", etag=opaque, opaque_etag="true"), 200) == {"outcome": "unchanged"}
    assert expect(admin.get(f"/buckets/{versioned}/object/k"), 200)["etag"] == opaque
    for refused in (run.version("k", "x", b"two"), run.version("k", "x", b"one"), run.version("k", "x", b"one", date="2022-01-01T00:00:00Z")):
        expect_refusal(refused, 409, "IMPORT_CONFLICT")
    for query in (
        {"etag": md5(b"other")}, {"etag": "x"}, {"opaque_etag": "true"}, {"opaque_etag": "1", "etag": opaque}, {"date": "soon"},
        {"date": "2300-01-01T00:00:00Z"}, {"delete_marker": "true", "etag": opaque}, {"delete_marker": "true", "upload_id": "0" * 16},
    ):
        expect_refusal(run.version("n", "y", b"content" if "delete_marker" not in query else b"", **query), 400, "INVALID_REQUEST")
    for version in ("", "a/b", "a" * 65, "é"):
        expect_refusal(run.version("n", version, b"content"), 400, "INVALID_REQUEST")
    expect_refusal(run.version("n", "y", b"x", upload_id="0" * 16), 400, "INVALID_REQUEST")
    expect_refusal(run.version("n", "y", b"", upload_id="0" * 16), 404, "UPLOAD_NOT_FOUND")
    expect_refusal(admin.get(f"/buckets/{versioned}/object/n"), 404, "OBJECT_NOT_FOUND")


def test_parts_of_the_same_sizes_give_the_same_tag(admin: Management, s3: S3, versioned: str):
    """A retry of the whole changes nothing, and its upload can be aborted."""
    pieces = [b"a" * (5 << 20), b"b" * (5 << 20), b"c"]
    tag = hashlib.md5(b"".join(hashlib.md5(piece).digest() for piece in pieces)).hexdigest() + "-3"
    run = Run(admin, versioned)
    for outcome, status in (("created", 201), ("unchanged", 200)):
        begun = run.send("POST", "imported-uploads", "k", headers={"content-type": "video/mp4", "x-amz-meta-a": "b"})
        upload = expect(begun, 201)["upload_id"]
        for number, piece in enumerate(pieces, 1):
            part = expect(run.send("PUT", "imported-uploads", "k", content=piece, upload_id=upload, part_number=number), 200)
            assert part == {"etag": md5(piece)}
        expect_refusal(run.version("k", "other", upload_id=upload, etag="1" * 32 + "-3"), 409, "IMPORT_CONFLICT")
        assert expect(run.version("k", FIRST, upload_id=upload, etag=tag), status) == {"outcome": outcome}
    expect(admin.delete(f"/buckets/{versioned}/multipart-uploads/k", params={"upload_id": upload}), 204)
    got = s3.request("GET", object_target(versioned, "k"))
    assert (got.body, got.get("etag"), got.get("content-type")) == (b"".join(pieces), f'"{tag}"', "video/mp4")
    assert s3.request("GET", object_target(versioned, "k", "partNumber=2")).body == pieces[1]
    expect_refusal(run.send("PUT", "imported-uploads", "k", content=b"x", upload_id=upload, part_number=1), 404, "UPLOAD_NOT_FOUND")
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []


def test_checksums_are_verified_and_kept(admin: Management, s3: S3, versioned: str):
    """Those of the whole content, in one piece or in parts, and those of the digests of parts."""
    run = Run(admin, versioned)

    def kept(version: str) -> tuple[dict, str | None]:
        record = expect(admin.get(f"/buckets/{versioned}/object/k", params={"version_id": version}), 200)
        shown = s3.request("HEAD", object_target(versioned, "k", f"versionId={version}"), headers=[("x-amz-checksum-mode", "ENABLED")])
        return record["checksums"], shown.get("x-amz-checksum-crc32")

    expect(run.version("k", "whole", b"content", headers={"x-amz-checksum-crc32": crc32(b"content")}), 201)
    assert kept("whole") == ({"crc32": crc32(b"content")}, crc32(b"content"))
    expect(run.version("k", "sha", b"content", headers={"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(b"content").digest()).decode()}), 201)
    pieces = [b"a" * (5 << 20), b"b"]
    composite = crc32(b"".join(zlib.crc32(piece).to_bytes(4) for piece in pieces)) + "-2"
    for kind, checksum in (("COMPOSITE", composite), ("FULL_OBJECT", crc32(b"".join(pieces)))):
        begun = run.send("POST", "imported-uploads", "k", headers={"x-amz-checksum-algorithm": "crc32", "x-amz-checksum-type": kind})
        upload = expect(begun, 201)["upload_id"]
        for number, piece in enumerate(pieces, 1):
            expect(run.send("PUT", "imported-uploads", "k", content=piece, upload_id=upload, part_number=number), 200)
        other = {"COMPOSITE": f"{checksum[:-1]}3", "FULL_OBJECT": f"{checksum}-2"}[kind]
        for headers in ({}, {"x-amz-checksum-crc32": crc32(b"other")}, {"x-amz-checksum-crc32": other}, {"x-amz-checksum-crc32c": "AAAAAA=="}):
            expect_refusal(run.version("k", kind, upload_id=upload, headers=headers), 400, "INVALID_REQUEST")
        expect(run.version("k", kind, upload_id=upload, headers={"x-amz-checksum-crc32": checksum}), 201)
        assert kept(kind) == ({"crc32": checksum}, checksum)
    for headers in (
        {"x-amz-checksum-crc32": crc32(b"other")}, {"x-amz-checksum-crc32": composite}, {"x-amz-checksum-crc32": "x"}, {"x-amz-checksum-md4": "x"},
        {"x-amz-checksum-crc32": crc32(b"content"), "x-amz-checksum-crc32c": "AAAAAA=="},
    ):
        expect_refusal(run.version("n", "n", b"content", headers=headers), 400, "INVALID_REQUEST")
    for headers in (
        {"x-amz-checksum-algorithm": "SHA256", "x-amz-checksum-type": "FULL_OBJECT"}, {"x-amz-checksum-type": "COMPOSITE"}, {"x-amz-checksum-algorithm": "md4"},
    ):
        expect_refusal(run.send("POST", "imported-uploads", "n", headers=headers), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(f"/buckets/{versioned}/object/n"), 404, "OBJECT_NOT_FOUND")
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []


def test_null_versions_follow_the_source_until_a_client_writes(admin: Management, s3: S3, bucket: str):
    """A bucket without versioning takes nothing else."""
    run = Run(admin, bucket)
    expect_refusal(run.version("k", FIRST, b"x"), 409, "INVALID_BUCKET_STATE")
    expect_refusal(run.version("k", "null", delete_marker="true"), 409, "INVALID_BUCKET_STATE")
    for content, date, status, outcome in (
        (b"one", DATE, 201, "created"), (b"one", DATE, 200, "unchanged"), (b"two", "2022-01-01T00:00:00.000Z", 201, "replaced"),
    ):
        assert expect(run.version("k", "null", content, date=date), status) == {"outcome": outcome}
    assert s3.request("GET", object_target(bucket, "k")).body == b"two"
    s3.put(bucket, "k", b"client")
    assert expect(run.version("k", "null", b"three", date="2030-01-01T00:00:00.000Z"), 200) == {"outcome": "kept"}
    assert s3.request("GET", object_target(bucket, "k")).body == b"client"
    expect_refusal(run.send("PATCH", "imported-objects", "k", body={"tags": []}, version_id="null"), 409, "IMPORT_CONFLICT")


def test_locks_come_from_the_source_and_change_with_it(admin: Management, s3: S3):
    """Neither the default retention nor the present time matters, but what is locked cannot be deleted."""
    expect(admin.post("/buckets", {"name": "locked", "object_lock": True}), 201)
    expect(admin.put("/buckets/locked/object-lock", {"default_retention": {"mode": "GOVERNANCE", "days": 1}}), 200)
    run = Run(admin, "locked")
    lock = {
        "x-amz-object-lock-mode": "COMPLIANCE", "x-amz-object-lock-retain-until-date": "2040-01-01T00:00:00.000Z",
        "x-amz-object-lock-legal-hold": "ON",
    }
    expect(run.version("k", FIRST, b"one", headers=lock), 201)
    expect(run.version("k", SECOND, b"two"), 201)
    record = expect(admin.get("/buckets/locked/object/k", params={"version_id": FIRST}), 200)
    assert record["retention"] == {"mode": "COMPLIANCE", "retain_until": "2040-01-01T00:00:00.000Z"}
    assert record["legal_hold"] is True
    assert "retention" not in expect(admin.get("/buckets/locked/object/k", params={"version_id": SECOND}), 200)
    assert_error(s3.request("DELETE", object_target("locked", "k", f"versionId={FIRST}")), 403, "AccessDenied")
    change = {
        "tags": [{"key": "a", "value": "b"}], "retention": {"mode": "COMPLIANCE", "retain_until": "2041-01-01T00:00:00.000Z"},
        "legal_hold": False,
    }
    for outcome in ("changed", "unchanged"):
        changed = run.send("PATCH", "imported-objects", "k", body=change, version_id=FIRST)
        assert expect(changed, 200) == {"outcome": outcome}
    record = expect(admin.get("/buckets/locked/object/k", params={"version_id": FIRST}), 200)
    assert (record["retention"]["retain_until"], record["legal_hold"]) == ("2041-01-01T00:00:00.000Z", False)
    shorter = {"retention": {"mode": "COMPLIANCE", "retain_until": "2039-01-01T00:00:00.000Z"}}
    expect_refusal(run.send("PATCH", "imported-objects", "k", body=shorter, version_id=FIRST), 403, "OBJECT_LOCKED")
    for headers in ({"x-amz-object-lock-mode": "COMPLIANCE"}, {"x-amz-object-lock-legal-hold": "yes"}, {"x-amz-acl": "private"}):
        expect_refusal(run.version("n", "n", b"x", headers=headers), 400, "INVALID_REQUEST")


def test_locks_need_a_bucket_with_object_lock(admin: Management, versioned: str):
    """Whether the version comes in one piece or in parts."""
    run = Run(admin, versioned)
    hold = {"x-amz-object-lock-legal-hold": "ON"}
    expect_refusal(run.version("k", FIRST, b"x", headers=hold), 409, "INVALID_BUCKET_STATE")
    expect_refusal(run.send("POST", "imported-uploads", "k", headers=hold), 409, "OBJECT_LOCK_NOT_ENABLED")
    expect(run.version("k", FIRST, b"x"), 201)
    expect_refusal(run.send("PATCH", "imported-objects", "k", body={"legal_hold": True}, version_id=FIRST), 409, "OBJECT_LOCK_NOT_ENABLED")


def test_one_audit_record_for_a_run_and_events_only_if_asked_for(admin: Management, s3: S3, versioned: str):
    """A run belongs to its bucket and ends with the process."""
    before = len(expect(admin.get("/events", params={"bucket": versioned, "limit": 100}), 200)["events"])
    quiet = Run(admin, versioned)
    for number in range(3):
        expect(quiet.version(f"k{number}", FIRST, b"x"), 201)
    expect(Run(admin, versioned, events=True).version("told", FIRST, b"x"), 201)
    events = expect(admin.get("/events", params={"bucket": versioned, "limit": 100}), 200)["events"]
    assert [(event["type"], event["object"], event["version_id"]) for event in events[before:]] == [("object.created", "told", FIRST)]
    records = expect(admin.get("/audit/events?operation=begin_import&limit=10"), 200)["events"]
    assert len([record for record in records if versioned in record["resource"]]) == 2
    assert not [record for record in expect(admin.get("/audit/events?limit=100"), 200)["events"] if record["operation"] == "import_object"]
    expect(admin.post("/buckets", {"name": f"{versioned}-2"}), 201)
    for id in (quiet.id.replace("7", "8"), "x", ""):
        other = admin.put(f"/buckets/{versioned}/imported-objects/k", params={"import_id": id, "version_id": "x", "last_modified": DATE})
        expect_refusal(other, 404, "IMPORT_NOT_FOUND")
    quiet.bucket = f"{versioned}-2"
    expect_refusal(quiet.version("k", FIRST, b"x"), 404, "IMPORT_NOT_FOUND")
    for members in ({"source": ""}, {"source": "x" * 1025}, {"source": "a\nb"}, {}, {"source": "x", "more": 1}):
        expect_refusal(admin.post(f"/buckets/{versioned}/imports", members), 400, "INVALID_REQUEST")


def test_only_system_administrators_import(admin: Management, versioned: str):
    """A storage administrator may write objects, but not give them ids and dates."""
    run = Run(admin, versioned)
    run.admin = with_role(admin, "storage_admin")
    expect_refusal(run.version("k", FIRST, b"x"), 403, "FORBIDDEN")


def test_imported_versions_survive_a_restart(store: Cairn, admin: Management, s3: S3, versioned: str):
    """The run does not."""
    run = Run(admin, versioned)
    expect(run.version("k", FIRST, b"x" * 100_000), 201)
    expect(run.version("k", "null", b"null", date="2020-01-01T00:00:00.000Z"), 201)
    store.restart()
    assert [(name, date) for _, name, date in listed(s3, versioned)] == [(FIRST, "2021-03-04T05:06:07.000Z"), ("null", "2020-01-01T00:00:00.000Z")]
    assert s3.request("GET", object_target(versioned, "k", f"versionId={FIRST}")).body == b"x" * 100_000
    expect_refusal(run.version("k", SECOND, b"x"), 404, "IMPORT_NOT_FOUND")
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []


def test_runs_are_listed_with_what_came_in_them(admin: Management, versioned: str):
    """The newest first: versions, bytes with those of parts, what was there already, and the last failure. Reports that were signed follow."""
    run = Run(admin, versioned)
    expect(run.version("k", FIRST, b"first"), 201)
    expect(run.version("k", FIRST, b"first", etag=md5(b"first")), 200)
    expect(run.version("k", MARKER, date="2021-03-04T05:06:08.000Z", delete_marker="true"), 201)
    upload = expect(run.send("POST", "imported-uploads", "parts"), 201)["upload_id"]
    expect(run.send("PUT", "imported-uploads", "parts", content=b"0123456789", upload_id=upload, part_number=1), 200)
    expect(run.version("parts", SECOND, upload_id=upload), 201)
    key = "<b>" * 100
    expect_refusal(run.version(key, FIRST, b"first", etag=md5(b"other")), 400, "INVALID_REQUEST")
    body = expect(admin.get("/imports"), 200)
    found = body["imports"][0]
    assert (found["import_id"], found["bucket"], found["source"], found["principal"]) == (run.id, versioned, "https://minio:9000", "system")
    assert (found["versions"], found["unchanged"], found["bytes"], found["failures"]) == (3, 1, 15, 1)
    failure = found["last_failure"]
    assert (failure["key"], failure["code"]) == (key[:200], "INVALID_REQUEST") and "entity tag" in failure["message"]
    assert body["since"] <= found["begun_at"] <= found["last_at"] and failure["time"] <= found["last_at"]
    for number in range(9):
        expect(admin.post("/verify/imports", {"report": {"number": number}}), 200)
    reports = expect(admin.get("/imports"), 200)["reports"]
    assert [report["payload"]["number"] for report in reports] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert reports[0]["payload"]["kind"] == "import" and reports[0]["signature"]


def test_versions_of_a_batch_are_imported_as_those_of_single_requests(admin: Management, s3: S3, versioned: str):
    """Each with its own outcome, in the order of the requests. A version that is refused does not affect the others."""
    run = Run(admin, versioned)
    expect(run.version("known", FIRST, b"first", etag=md5(b"first")), 201)
    expect(run.version("other", FIRST, b"other"), 201)
    parts = [
        part(versioned, "k/ä b", b"one", "x-amz-meta-a: b", "x-amz-tagging: a=1", version_id=FIRST, last_modified=DATE, etag=md5(b"one")),
        part(versioned, "known", b"first", version_id=FIRST, last_modified=DATE, etag=md5(b"first")),
        part(versioned, "other", b"changed", version_id=FIRST, last_modified=DATE),
        part(versioned, "tag", b"x", version_id=FIRST, last_modified=DATE, etag=md5(b"y")),
        part(versioned, "sum", b"x", f"x-amz-checksum-crc32: {crc32(b'y')}", version_id=FIRST, last_modified=DATE),
        part(versioned, "acl", b"x", "x-amz-acl: private", version_id=FIRST, last_modified=DATE),
        part(versioned, "upload", version_id=FIRST, last_modified=DATE, upload_id="u1"),
        part(versioned, "run", b"x", version_id=FIRST, last_modified=DATE, import_id=run.id),
        part(versioned, "marker", version_id=MARKER, last_modified=DATE, delete_marker="true"),
        part(versioned, "marker2", b"x", version_id=MARKER, last_modified=DATE, delete_marker="true"),
        part(versioned, "method", b"x", method="POST", version_id=FIRST, last_modified=DATE),
        part("elsewhere", "k", b"x", version_id=FIRST, last_modified=DATE),
        part(versioned, "last", version_id=SECOND, last_modified=DATE),
    ]
    found = expect(run.batch(*parts), 200)["versions"]
    outcomes = [one["outcome"] or one["error"]["code"] for one in found]
    refused = "INVALID_REQUEST"
    expected = ["created", "unchanged", "IMPORT_CONFLICT", *[refused] * 5, "created", *[refused] * 3, "created"]
    assert outcomes == expected, found
    assert all((one["outcome"] is None) != (one["error"] is None) for one in found)
    kept = s3.request("GET", object_target(versioned, "k/ä b", f"versionId={FIRST}"))
    assert (kept.status, kept.body, kept.get("x-amz-meta-a"), kept.get("x-amz-tagging-count")) == (200, b"one", "b", "1")
    keys = [entry.findtext("Key") for entry in xml(s3.request("GET", f"/{versioned}?versions")) if entry.tag in ("Version", "DeleteMarker")]
    assert keys == ["k/ä b", "known", "last", "marker", "other"]
    (shown,) = [one for one in expect(admin.get("/imports"), 200)["imports"] if one["import_id"] == run.id]
    assert (shown["versions"], shown["unchanged"], shown["bytes"], shown["failures"]) == (5, 1, len(b"first" + b"other" + b"one"), 9)


def test_a_batch_that_is_no_pipeline_imports_nothing(admin: Management, s3: S3, versioned: str):
    """The error says which request is wrong."""
    run = Run(admin, versioned)
    one = part(versioned, "k", b"x", version_id=FIRST, last_modified=DATE)
    for bad, why in [
        (one[:-1], "request 2 of the batch is incomplete"),
        (b"\r\n", "request 2 of the batch: there is an empty line"),
        (one.replace(b"content-length: 1", b"transfer-encoding: chunked"), "request 2 of the batch must have a Content-Length"),
        (b"".join(part(versioned, f"k{number}", version_id=FIRST, last_modified=DATE) for number in range(64)), "the limit is 64"),
    ]:
        assert why in expect_refusal(run.batch(one, bad), 400, "INVALID_REQUEST")
    large = part(versioned, "k", b"x" * (512 << 10), version_id=FIRST, last_modified=DATE)
    expect_refusal(run.batch(large), 413, "PAYLOAD_TOO_LARGE")
    run.id = "0" * 32
    expect_refusal(run.batch(one), 404, "IMPORT_NOT_FOUND")
    run = Run(admin, versioned)
    assert expect(run.batch(), 200) == {"versions": []}
    assert listed(s3, versioned) == []


def test_a_pause_is_kept_and_audited(admin: Management, versioned: str):
    """Nothing is refused meanwhile: the importer asks. What changes nothing is not recorded."""
    run, other = Run(admin, versioned), Run(admin, versioned)
    path = f"/imports/{run.id}"
    assert expect(admin.get(path), 200)["paused_at"] is None
    paused = expect(admin.post(f"{path}/pause"), 200)
    assert (paused["import_id"], paused["bucket"]) == (run.id, versioned) and paused["paused_at"] >= paused["begun_at"]
    assert expect(admin.post(f"{path}/pause"), 200)["paused_at"] == paused["paused_at"]
    expect(run.version("k", FIRST, b"x"), 201)
    assert expect(admin.get(path), 200)["paused_at"] == paused["paused_at"]
    assert [found["paused_at"] for found in expect(admin.get("/imports"), 200)["imports"][:2]] == [None, paused["paused_at"]]
    for role in ("storage_admin", "auditor"):
        expect_refusal(with_role(admin, role).post(f"{path}/resume"), 403, "FORBIDDEN")
        assert expect(with_role(admin, role).get(path), 200)["paused_at"] == paused["paused_at"]
    for id in (run.id.replace("7", "8"), "x", other.id + "0"):
        for response in (admin.get(f"/imports/{id}"), admin.post(f"/imports/{id}/pause"), admin.post(f"/imports/{id}/resume")):
            expect_refusal(response, 404, "IMPORT_NOT_FOUND")
    for wrong in ({"body": {"for": "1h"}}, {"params": {"for": "1h"}}):
        expect_refusal(admin.post(f"/imports/{other.id}/pause", **wrong), 400, "INVALID_REQUEST")
    assert expect(admin.get(f"/imports/{other.id}"), 200)["paused_at"] is None
    for _ in range(2):
        assert expect(admin.post(f"{path}/resume"), 200)["paused_at"] is None
    events = expect(admin.get("/audit/events", params={"resource": run.id, "limit": 100}), 200)["events"]
    allowed = [(event["operation"], event["detail"]) for event in events if event["result"] == "allowed"]
    assert allowed == [(name, f"into {versioned} from https://minio:9000") for name in ("resume_import", "pause_import")]


def test_the_rate_of_the_last_minutes(admin: Management, versioned: str):
    """Bytes of content are counted in intervals of ten seconds, when they have come."""
    run, content = Run(admin, versioned), b"x" * 70_001
    expect(run.version("k", FIRST, content), 201)
    expect(run.version("k", FIRST, content, etag=md5(content)), 200)
    rate = until(lambda: (found := expect(admin.get("/imports"), 200)["rate"]) and max(found["bytes"]) >= len(content) and found, "the bytes are not counted")
    assert (rate["interval_seconds"], len(rate["bytes"])) == (10, 60) and rate["until"].endswith("0.000Z")
    assert sum(rate["bytes"]) < 2 * len(content)
