"""Tags, content type, headers and metadata of an object through the management API, and previews of PDF."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.management import Management, expect, expect_refusal
from harness.s3 import S3, xml

MIB = 1 << 20
PDF = b"%PDF-1.1\n%%EOF"


def change(admin: Management, bucket: str, key: str, **body: object) -> dict:
    """Replaces the metadata of an object."""
    return expect(admin.put(f"/buckets/{bucket}/object-metadata/{key}", {"content_type": None} | body), 201)


def test_metadata_are_replaced_by_a_new_version(admin: Management, s3: S3, versioned: str):
    """The content stays, and so does the old version with what it had. Tags come along."""
    s3.put(versioned, "a/b.txt", b"content", headers=[("Content-Type", "text/plain"), ("x-amz-meta-who", "Ann"), ("Cache-Control", "no-store")])
    expect(admin.put(f"/buckets/{versioned}/object-tags/a/b.txt", {"tags": [{"key": "project", "value": "regatta"}]}), 200)
    old = expect(admin.get(f"/buckets/{versioned}/object/a/b.txt"), 200)
    made = change(admin, versioned, "a/b.txt", content_type="text/html", headers={"content-language": "de"}, metadata={"Camera": "r5"}, if_match=old["etag"], if_last_modified=old["last_modified"])
    assert (made["content_type"], made["headers"], made["metadata"]) == ("text/html", {"content-language": "de"}, {"camera": "r5"})
    assert made["tags"] == [{"key": "project", "value": "regatta"}] and made["etag"] == old["etag"] and made["version_id"] != old["version_id"]
    found = s3.get(versioned, "a/b.txt")
    assert (found.body, found.get("content-type"), found.get("x-amz-meta-camera"), found.get("x-amz-meta-who"), found.get("cache-control")) == (b"content", "text/html", "r5", None, None)
    before = expect(admin.get(f"/buckets/{versioned}/object/a/b.txt?version_id={old['version_id']}"), 200)
    assert (before["content_type"], before["metadata"]) == ("text/plain", {"who": "Ann"})
    (event,) = expect(admin.get(f"/audit/events?operation=set_object_metadata&resource={versioned}/a/b.txt"), 200)["events"]
    assert event["result"] == "allowed" and event["detail"].startswith("metadata, version ")


def test_object_without_versions_is_replaced(admin: Management, s3: S3, bucket: str):
    """There is one object before and after. An object of parts keeps its parts and its entity tag."""
    parts = [os.urandom(5 * MIB), os.urandom(MIB)]
    upload = xml(s3.request("POST", f"/{bucket}/large?uploads", [("Content-Type", "video/mp4")])).findtext("UploadId")
    sent = [s3.request("PUT", f"/{bucket}/large?partNumber={number}&uploadId={upload}", body=part).get("etag") for number, part in enumerate(parts, 1)]
    listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in enumerate(sent, 1))
    whole = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
    assert s3.request("POST", f"/{bucket}/large?uploadId={upload}", body=whole).status == 200
    old = expect(admin.get(f"/buckets/{bucket}/object/large"), 200)
    made = change(admin, bucket, "large", content_type="video/webm")
    assert (made["etag"], made["size"], made["parts"]) == (old["etag"], 6 * MIB, old["parts"]) and len(old["parts"]) == 2
    assert s3.get(bucket, "large").body == b"".join(parts)
    assert expect(admin.get(f"/buckets/{bucket}"), 200)["usage"]["objects"] == 1


def test_no_write_in_between_is_lost(admin: Management, s3: S3, versioned: str):
    """Another content, and the same content written again, are refused. Of many that save at once, one succeeds."""
    s3.put(versioned, "k", b"old")
    seen = expect(admin.get(f"/buckets/{versioned}/object/k"), 200)
    body = {"content_type": "text/plain", "if_match": seen["etag"], "if_last_modified": seen["last_modified"]}
    for content in (b"new", b"old"):
        s3.put(versioned, "k", content)
        expect_refusal(admin.put(f"/buckets/{versioned}/object-metadata/k", body), 412, "PRECONDITION_FAILED")
    assert s3.get(versioned, "k").get("content-type") == "binary/octet-stream"
    seen = expect(admin.get(f"/buckets/{versioned}/object/k"), 200)
    body |= {"if_match": seen["etag"], "if_last_modified": seen["last_modified"]}
    with ThreadPoolExecutor(6) as people:
        answers = list(people.map(lambda number: admin.put(f"/buckets/{versioned}/object-metadata/k", body | {"metadata": {"n": str(number)}}).status_code, range(6)))
    assert sorted(answers) == [201, *[412] * 5], answers


@pytest.mark.parametrize("route", ["metadata", "move"])
def test_tags_set_in_between_are_kept(admin: Management, s3: S3, bucket: str, route: str):
    """The object is large, so its copy takes longer than a change of tags. What was acknowledged last is there afterwards."""
    body = {"content_type": "text/plain"} if route == "metadata" else {"destination_bucket": bucket, "destination_key": "other"}
    send = admin.put if route == "metadata" else admin.post
    s3.put(bucket, "k", os.urandom(32 * MIB))
    with ThreadPoolExecutor(1) as others:
        changed = others.submit(send, f"/buckets/{bucket}/object-{route}/k", body)
        acknowledged = []
        while not changed.done():
            answer = admin.put(f"/buckets/{bucket}/object-tags/k", {"tags": [{"key": "n", "value": str(len(acknowledged))}]})
            if answer.status_code == 200:
                acknowledged.append(expect(answer, 200)["tags"])
    assert len(acknowledged) > 1 and changed.result().status_code == (412 if route == "metadata" else 201)
    assert expect(admin.get(f"/buckets/{bucket}/object/k"), 200)["tags"] == acknowledged[-1]


@pytest.mark.parametrize("body", [
    {"content_type": "a\r\nset-cookie: x"}, {"content_type": None, "headers": {"x-other": "1"}}, {"content_type": None, "metadata": {"a b": "1"}},
    {"content_type": None, "metadata": {"a": "1", "A": "2"}}, {"content_type": None, "metadata": {"a": "v" * 2048}}, {"content_type": None, "if_last_modified": "yesterday"},
    {"content_type": None, "other": 1}, {"metadata": {"a": 1}},
], ids=str)
def test_malformed_metadata_change_nothing(admin: Management, s3: S3, versioned: str, body: dict):
    """There is no new version."""
    s3.put(versioned, "k", b"x", headers=[("Content-Type", "text/plain")])
    expect_refusal(admin.put(f"/buckets/{versioned}/object-metadata/k", body), 400, "INVALID_REQUEST")
    assert len(expect(admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"]) == 1
    assert expect(admin.get(f"/buckets/{versioned}/object/k"), 200)["content_type"] == "text/plain"


def test_tags_are_replaced_in_place(admin: Management, s3: S3, versioned: str):
    """Of the current version or an old one; there is no new version. Invalid ones change nothing."""
    old = s3.put(versioned, "k", b"old").get("x-amz-version-id")
    s3.put(versioned, "k", b"new")
    path = f"/buckets/{versioned}/object-tags/k"
    tags = [{"key": "größe", "value": "XL"}, {"key": "b", "value": ""}]
    assert expect(admin.put(f"{path}?version_id={old}", {"tags": tags}), 200) == {"tags": tags}
    assert expect(admin.get(f"/buckets/{versioned}/object/k?version_id={old}"), 200)["tags"] == tags
    assert "tags" not in expect(admin.get(f"/buckets/{versioned}/object/k"), 200)
    for wrong in ([{"key": "", "value": ""}], [{"key": "aws:x", "value": ""}], [{"key": "a", "value": "<b>"}], [{"key": "a", "value": ""}] * 2, [{"key": f"k{n}", "value": ""} for n in range(11)]):
        expect_refusal(admin.put(f"{path}?version_id={old}", {"tags": wrong}), 400, "INVALID_REQUEST")
    assert expect(admin.get(f"/buckets/{versioned}/object/k?version_id={old}"), 200)["tags"] == tags
    expect(admin.put(f"{path}?version_id={old}", {"tags": []}), 200)
    assert len(expect(admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"]) == 2
    expect_refusal(admin.put(f"/buckets/{versioned}/object-tags/none", {"tags": []}), 404, "OBJECT_NOT_FOUND")
    expect_refusal(admin.put(f"{path}?version_id=0000000000000001", {"tags": []}), 404, "VERSION_NOT_FOUND")


def test_preview_of_pdf_runs_nothing(admin: Management, s3: S3, bucket: str):
    """It is sent as what it is, never guessed, and may be framed by the console's own pages alone."""
    s3.put(bucket, "a.pdf", PDF, headers=[("Content-Type", "application/pdf")])
    s3.put(bucket, "b.pdf", b"<script>alert(1)</script>", headers=[("Content-Type", "application/pdf; x=y")])
    for key in ("a.pdf", "b.pdf"):
        shown = admin.get(f"/buckets/{bucket}/object-preview/{key}")
        assert shown.status_code == 200 and shown.headers["content-type"] == "application/pdf"
        assert shown.headers["x-content-type-options"] == "nosniff"
        policy = shown.headers["content-security-policy"]
        assert "script-src 'none'" in policy and "frame-ancestors 'self'" in policy and "base-uri 'none'" in policy


def test_changes_are_counted(admin: Management, s3: S3, versioned: str):
    """By time and prefix, with the largest deletions named."""
    for number in range(12):
        s3.put(versioned, f"a/{number}", b"x")
    s3.put(versioned, "b", b"x")
    for number in range(12):
        s3.delete(versioned, f"a/{number}")
    since, until = "2000-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    query = f"/buckets/{versioned}/changes?since={since}&until={until}"
    found = expect(admin.get(f"{query}&steps=3"), 200)
    assert [len(found["steps"]), sum(step["written"] for step in found["steps"]), sum(step["deleted"] for step in found["steps"])] == [3, 13, 12]
    assert all(step["complete"] for step in found["steps"])
    (deletion,) = found["deletions"]
    assert (deletion["objects"], deletion["rule_id"], deletion["complete"]) == (12, None, True) and deletion["principal"]
    below = expect(admin.get(f"{query}&steps=1&prefix=b"), 200)
    assert [(step["written"], step["deleted"]) for step in below["steps"]] == [(1, 0)] and below["deletions"] == []
    assert len(expect(admin.get(f"/buckets/{versioned}/changes?since={since}"), 200)["steps"]) == 84
    of_all = expect(admin.get(f"/events/changes?since={since}&until={until}&steps=1"), 200)
    assert of_all["steps"][0]["written"] >= 13 and of_all["steps"][0]["deleted"] >= 12 and of_all["deletions"]
    expect_refusal(admin.get(f"/events/changes?since={since}&prefix=a"), 400, "INVALID_REQUEST")
    for wrong in ("", f"?since={until}&until={since}", f"?since={since}&steps=0", f"?since={since}&steps=169", "?since=yesterday", f"?since={since}&until=2000-01-01T00:00:00.002Z&steps=3"):
        expect_refusal(admin.get(f"/buckets/{versioned}/changes{wrong}"), 400, "INVALID_REQUEST")
