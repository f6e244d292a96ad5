"""Moving objects: what comes along, what stays, and what is refused."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.cli import Cli
from harness.management import Management, expect, expect_refusal, segment
from harness.s3 import S3, object_target
from harness.server import Cairn


def move(admin: Management, bucket: str, key: str, to_bucket: str, to_key: str, **members):
    """Sends a request to move an object."""
    body = {"destination_bucket": to_bucket, "destination_key": to_key} | members
    return admin.post(f"/buckets/{bucket}/object-move/{segment(key)}", body)


def keys(admin: Management, bucket: str) -> list[str]:
    """Returns the keys of the current objects."""
    return [entry["key"] for entry in expect(admin.get(f"/buckets/{bucket}/objects"), 200)["objects"]]


def versions(admin: Management, bucket: str) -> list[dict]:
    """Returns all versions and delete markers."""
    return expect(admin.get(f"/buckets/{bucket}/object-versions"), 200)["versions"]


def test_everything_but_the_lock_comes_along(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Content, headers, metadata and tags. The source is gone."""
    admin, s3, bucket = extended_store.admin, extended, extended_bucket
    headers = [("content-type", "text/css"), ("cache-control", "no-cache"), ("x-amz-meta-a", "1"), ("x-amz-tagging", "x=y")]
    assert s3.put(bucket, "from/a", b"content", headers=headers).status == 200
    before = expect(admin.get(f"/buckets/{bucket}/object/from/a"), 200)
    response = move(admin, bucket, "from/a", bucket, "to/b")
    after = expect(response, 201)
    assert response.headers["etag"] == f'"{before["etag"]}"'
    same = ("size", "etag", "content_type", "metadata", "headers", "checksums", "tags")
    assert [after[name] for name in same] == [before[name] for name in same] and after["tags"]
    assert keys(admin, bucket) == ["to/b"] and s3.get(bucket, "to/b").body == b"content"
    (event,) = expect(admin.get("/audit/events", params={"request_id": response.headers["x-request-id"]}), 200)["events"]
    assert (event["operation"], event["resource"], event["result"]) == ("move_object", f"{bucket}/from/a", "allowed")
    assert f"to {bucket}/to/b" in event["detail"]
    kinds = [event["type"] for event in expect(admin.get("/events", params={"bucket": bucket}), 200)["events"]]
    assert kinds[-2:] == ["object.created", "object.deleted"], kinds


def test_parts_come_along(admin: Management, boto, bucket: str):
    """With the entity tag that is made of them."""
    upload = boto.create_multipart_upload(Bucket=bucket, Key="m")
    part = {"Bucket": bucket, "Key": "m", "UploadId": upload["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": boto.upload_part(**part, PartNumber=number, Body=body)["ETag"]}
        for number, body in enumerate((b"a" * (5 << 20), b"b"), 1)
    ]
    etag = boto.complete_multipart_upload(**part, MultipartUpload={"Parts": parts})["ETag"].strip('"')
    moved = expect(move(admin, bucket, "m", bucket, "n"), 201)
    assert moved["etag"] == etag and [one["size"] for one in moved["parts"]] == [5 << 20, 1]
    assert keys(admin, bucket) == ["n"]


def test_versions_of_the_source_stay_below_a_delete_marker(admin: Management, s3: S3, bucket: str):
    """Only the current version is moved, to another bucket here."""
    other = f"{bucket}-other"
    s3.create_bucket(other)
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    for body in (b"1", b"2"):
        assert s3.put(bucket, "k", body).status == 200
    before = versions(admin, bucket)
    expect(move(admin, bucket, "k", other, "k"), 201)
    after = versions(admin, bucket)
    assert after[0]["is_delete_marker"] and [one | {"is_latest": None} for one in after[1:]] == [one | {"is_latest": None} for one in before]
    assert (keys(admin, bucket), s3.get(other, "k").body) == ([], b"2")
    expect_refusal(move(admin, bucket, "k", other, "k"), 404, "OBJECT_NOT_FOUND")


def test_taken_destinations_can_be_kept(admin: Management, s3: S3, bucket: str):
    """With `if_absent` nothing changes, also for two moves at once."""
    for key in ("a", "b", "taken"):
        assert s3.put(bucket, key, key.encode()).status == 200
    for route in ("object-move", "object-copy"):
        body = {"destination_bucket": bucket, "destination_key": "taken", "if_absent": True}
        expect_refusal(admin.post(f"/buckets/{bucket}/{route}/a", body), 409, "OBJECT_ALREADY_EXISTS")
    assert (keys(admin, bucket), s3.get(bucket, "taken").body) == (["a", "b", "taken"], b"taken")
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda key: move(admin, bucket, key, bucket, "one", if_absent=True), ["a", "b"]))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert len(keys(admin, bucket)) == 3
    expect(move(admin, bucket, "one", bucket, "taken"), 201)
    assert s3.get(bucket, "taken").body != b"taken"


def test_wrong_moves_change_nothing(admin: Management, s3: S3, bucket: str):
    """Onto itself, to a bucket that does not exist, over a quota, with conditions or unknown members."""
    assert s3.put(bucket, "a", b"12345").status == 200
    message = expect_refusal(move(admin, bucket, "a", bucket, "a"), 400, "INVALID_REQUEST")
    assert "onto itself" in message
    expect_refusal(move(admin, bucket, "a", "no-such-bucket", "a"), 404, "BUCKET_NOT_FOUND")
    expect_refusal(move(admin, "no-such-bucket", "a", bucket, "b"), 404, "BUCKET_NOT_FOUND")
    expect_refusal(move(admin, bucket, "none", bucket, "b"), 404, "OBJECT_NOT_FOUND")
    expect_refusal(move(admin, bucket, "a", bucket, ""), 400, "INVALID_REQUEST")
    expect_refusal(move(admin, bucket, "a", bucket, "b", version_id="null"), 400, "INVALID_REQUEST")
    refused = admin.request("POST", f"/buckets/{bucket}/object-move/a", headers={"if-match": "x"}, json={"destination_bucket": bucket, "destination_key": "b"})
    expect_refusal(refused, 400, "INVALID_REQUEST")
    small = f"{bucket}-small"
    s3.create_bucket(small)
    quota = {"bytes": {"mode": "limit", "bytes": 4}, "objects": {"mode": "limit", "objects": 9}}
    expect(admin.put(f"/buckets/{small}/quota", {"quota": quota}), 200)
    expect_refusal(move(admin, bucket, "a", small, "a"), 409, "QUOTA_EXCEEDED")
    assert keys(admin, bucket) == ["a"] and keys(admin, small) == []


def test_locked_version_stays_and_default_retention_applies(admin: Management, s3: S3, bucket: str):
    """A move adds a delete marker, which a lock allows. The copy is locked as every new version of its bucket."""
    locked = f"{bucket}-locked"
    expect(admin.post("/buckets", {"name": locked, "object_lock": True}), 201)
    retention = {"mode": "GOVERNANCE", "days": 1}
    expect(admin.put(f"/buckets/{locked}/object-lock", {"default_retention": retention}), 200)
    assert s3.put(locked, "a", b"a").status == 200
    moved = expect(move(admin, locked, "a", locked, "b"), 201)
    assert moved["retention"]["mode"] == "GOVERNANCE"
    kept = [one for one in versions(admin, locked) if one["key"] == "a"]
    assert [one["is_delete_marker"] for one in kept] == [True, False]
    expect_refusal(admin.delete(f"/buckets/{locked}/object-versions/a?version_id={kept[1]['version_id']}"), 403, "OBJECT_LOCKED")


@pytest.mark.parametrize("versioning", [None, "Enabled"])
def test_what_is_written_meanwhile_survives(admin: Management, s3: S3, bucket: str, versioning: str | None):
    """The last acknowledged write of the source is there after any number of moves, at the source or at the destination.

    All writes have the same content, so their entity tags are equal, and only the version tells them apart.
    """
    if versioning:
        expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": versioning}), 200)
    over, written = threading.Event(), 0

    def mover() -> None:
        while not over.is_set():
            answer = move(admin, bucket, "k", bucket, "moved")
            # Between a move and the next write there is nothing to move.
            assert answer.status_code in (201, 404), answer.text

    def number_of(key: str) -> int:
        answer = s3.head(bucket, key)
        return int(answer.get("x-amz-meta-number")) if answer.status == 200 else 0

    thread = threading.Thread(target=mover)
    thread.start()
    with s3.connect() as connection:
        for written in range(1, 401):
            headers = [("x-amz-meta-number", str(written))]
            assert s3.request("PUT", object_target(bucket, "k"), headers, b"same", connection=connection).status == 200
    over.set()
    thread.join()
    assert written in (number_of("k"), number_of("moved"))


def test_command_moves_one_object_and_folders(admin: Management, cli: Cli, s3: S3, bucket: str):
    """A folder keeps its paths. It can be repeated, fails with a count, and refuses to move what it moved."""
    for key in ("in/a", "in/b/c", "in/d", "x", "top"):
        assert s3.put(bucket, key, key.encode()).status == 200
    assert "was moved to" in cli.text("object", "mv", f"{bucket}/top", f"{bucket}/out/")
    assert cli.json("object", "mv", f"{bucket}/x", f"{bucket}/in/a2")["key"] == "in/a2"
    moved = cli.json("object", "mv", f"{bucket}/in/", f"{bucket}/out/", "--recursive")
    assert moved == {"moved": 4, "refused": 0}
    assert keys(admin, bucket) == ["out/a", "out/a2", "out/b/c", "out/d", "out/top"]
    assert cli.json("object", "mv", f"{bucket}/in/", f"{bucket}/out/", "--recursive") == {"moved": 0, "refused": 0}
    assert "below the source" in cli.fails("object", "mv", f"{bucket}/out/", f"{bucket}/out/more/", "--recursive", code=2)
    assert "need a folder" in cli.fails("object", "mv", f"{bucket}/out/", f"{bucket}/one", "--recursive", code=2)
    for key in ("new/a", "new/z"):
        assert s3.put(bucket, key, b"new").status == 200
    done = cli.run("object", "mv", f"{bucket}/new/", f"{bucket}/out/", "--recursive", "--if-absent", "--json")
    assert done.returncode == 1 and '"moved": 1' in done.stdout and "new/a" in done.stderr and "1 object was not moved" in done.stderr
    assert s3.get(bucket, "out/a").body == b"in/a" and s3.get(bucket, "new/a").body == b"new"
