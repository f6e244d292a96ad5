"""`cairn bucket empty`, `bucket delete --force` and the counts of `bucket show`, against a real server."""

import json

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.cli import FAILED, WRONG_USAGE, Cli
from harness.management import Management, expect, expect_refusal
from harness.server import Cairn

CONTENTS = {"objects": 2, "bytes": 7, "versions": 5, "version_bytes": 19, "delete_markers": 1, "multipart_uploads": 2, "multipart_bytes": 6}
LEFT = "5 versions (2 of them current), 1 delete marker and 2 unfinished uploads"


def fill(store: Cairn, admin: Management, bucket: str) -> None:
    """Writes versions, a delete marker and unfinished uploads: what CONTENTS counts."""
    client = make_client(store.s3)
    expect(admin.put(f"/buckets/{bucket}/versioning", json={"versioning": "Enabled"}), 200)
    for key, body in [("a", b"1234"), ("a", b"123456"), ("b/ü %+?", b"1234567"[:2]), ("c", b"12"), ("a", b"12345")]:
        client.put_object(Bucket=bucket, Key=key, Body=body)
    client.delete_object(Bucket=bucket, Key="c")
    for key in ("up/ü %", "a"):
        upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"123")


def test_show_counts_versions_markers_and_uploads(cli: Cli, store: Cairn, admin: Management, bucket: str):
    """`bucket show` showed only current objects, so nobody could see why a bucket was not empty."""
    fill(store, admin, bucket)
    assert expect(admin.get(f"/buckets/{bucket}/contents"), 200) == CONTENTS
    assert cli.json("bucket", "show", bucket)["contents"] == CONTENTS
    shown = dict(line.split(":", 1) for line in cli.text("bucket", "show", bucket).splitlines())
    counts = [shown[label].strip() for label in ("objects", "versions", "delete markers", "unfinished uploads", "size of uploads")]
    assert counts == ["2", "5", "1", "2", "6 B"]


def test_not_empty_says_what_is_left(cli: Cli, store: Cairn, admin: Management, bucket: str):
    """The API of both planes and the command line give the numbers."""
    fill(store, admin, bucket)
    assert LEFT in expect_refusal(admin.delete(f"/buckets/{bucket}"), 409, "BUCKET_NOT_EMPTY")
    message = cli.fails("bucket", "delete", bucket)
    assert LEFT in message and "cairn bucket empty" in message
    with pytest.raises(make_client(store.s3).exceptions.ClientError, match="5 versions .*1 delete marker and 2 unfinished"):
        make_client(store.s3).delete_bucket(Bucket=bucket)


def test_empty_needs_a_confirmation_that_states_the_numbers(cli: Cli, store: Cairn, admin: Management, bucket: str):
    """Without a terminal and --yes nothing is deleted. With it, everything is, and the bucket stays."""
    fill(store, admin, bucket)
    for command in (["empty", bucket], ["delete", bucket, "--force"]):
        message = cli.fails("bucket", *command)
        assert "5 versions (19 B), 1 delete marker and 2 unfinished uploads" in message and "--yes" in message
    assert expect(admin.get(f"/buckets/{bucket}/contents"), 200) == CONTENTS
    assert cli.json("bucket", "empty", bucket, "--yes") == {
        "bucket": bucket, "deleted_versions": 5, "deleted_delete_markers": 1, "aborted_uploads": 2, "refused": 0,
    }
    assert set(expect(admin.get(f"/buckets/{bucket}/contents"), 200).values()) == {0}
    assert "versions deleted:       0\n" in cli.text("bucket", "empty", bucket), "an empty bucket needs no confirmation"
    assert "--force" in cli.fails("bucket", "delete", bucket, "--yes", code=WRONG_USAGE)


def test_force_deletes_more_than_a_page(cli: Cli, store: Cairn, bucket: str):
    """The lists have several pages, and a key has more versions than a page."""
    cli.text("bucket", "versioning", bucket, "enabled")
    for number in range(1100):
        store.s3.put(bucket, "same", b"x")
        if number % 100 == 0:
            store.s3.put(bucket, f"other/{number}", b"y")
    assert cli.text("bucket", "delete", bucket, "--force", "--yes") == f"bucket {bucket} was deleted\n"
    assert "BUCKET_NOT_FOUND" in cli.fails("bucket", "show", bucket)


def test_what_object_lock_protects_is_kept(cli: Cli, store: Cairn, bucket: str):
    """A refused version is named, the others are deleted, and the bucket stays. A quota refuses no deletion."""
    locked = f"{bucket}-locked"
    cli.text("bucket", "create", locked, "--object-lock")
    client = make_client(store.s3)
    for key in ("held", "free"):
        client.put_object(Bucket=locked, Key=key, Body=b"1234")
    client.put_object_legal_hold(Bucket=locked, Key="held", LegalHold={"Status": "ON"})
    done = cli.run("bucket", "delete", locked, "--force", "--yes")
    assert done.returncode == FAILED and "held" in done.stderr and "OBJECT_LOCKED" in done.stderr
    assert "1 deletion was refused" in done.stderr and "legal-hold … off" in done.stderr
    assert cli.json("bucket", "show", locked)["contents"]["versions"] == 1
    client.put_object_legal_hold(Bucket=locked, Key="held", LegalHold={"Status": "OFF"})
    cli.text("bucket", "delete", locked, "--force", "--yes")

    cli.text("bucket", "versioning", bucket, "enabled")
    client.put_object(Bucket=bucket, Key="k", Body=b"x" * 100)
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    cli.text("quota", "set", bucket, "--bytes", "1")
    assert cli.json("bucket", "empty", bucket, "--yes")["refused"] == 0


def test_unfinished_uploads_are_listed_and_aborted(store: Cairn, admin: Management, bucket: str):
    """Pages contain every upload once, and an upload that is gone is 404."""
    client: BaseClient = make_client(store.s3)
    begun = {(key, client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]) for key in ("a", "a", "b/ü", "c")}
    path, found, markers = f"/buckets/{bucket}/multipart-uploads", [], {}
    while True:
        page = expect(admin.get(path, params={"limit": 1} | markers), 200)
        found += [(one["key"], one["upload_id"]) for one in page["multipart_uploads"]]
        markers = {name: page[f"next_{name}"] for name in ("key_marker", "upload_id_marker") if page[f"next_{name}"]}
        if not markers:
            break
    assert len(found) == 4 and set(found) == begun
    for wrong in ("limit=0", "limit=1001", "upload_id_marker=0000000000000001", "key_marker=a&upload_id_marker=x", "delimiter=/"):
        expect_refusal(admin.get(f"{path}?{wrong}"), 400, "INVALID_REQUEST")
    key, upload = found[0]
    expect_refusal(admin.delete(f"{path}/{key}"), 400, "INVALID_REQUEST")
    assert admin.delete(f"{path}/{key}", params={"upload_id": upload}).status_code == 204
    for gone in (upload, "x"):
        expect_refusal(admin.delete(f"{path}/{key}", params={"upload_id": gone}), 404, "UPLOAD_NOT_FOUND")
    assert len(expect(admin.get(path, params={"prefix": "a"}), 200)["multipart_uploads"]) == 1
    assert json.dumps(expect(admin.get("/audit/events", params={"operation": "abort_multipart_upload"}), 200)).count(upload) >= 1


def test_lifecycle_rule_about_uploads(cli: Cli, store: Cairn, bucket: str):
    """Created, kept by a change of something else, removed with `never`, and previewed."""
    make_client(store.s3).create_multipart_upload(Bucket=bucket, Key="k")
    preview = cli.json("lifecycle", "create", bucket, "--abort-uploads-days", "7", "--preview")
    assert (preview["multipart_uploads"], preview["multipart_bytes"]) == (0, 0) and preview["next_due_at"]
    rule = cli.json("lifecycle", "create", bucket, "--prefix", "a/", "--abort-uploads-days", "7")
    assert (rule["abort_incomplete_multipart_upload"], rule["expiration"]) == (7, None)
    assert "7 days" in cli.text("lifecycle", "list", bucket)
    changed = cli.json("lifecycle", "update", bucket, rule["id"], "--expire-days", "3")
    assert (changed["abort_incomplete_multipart_upload"], changed["expiration"]) == (7, 3)
    assert cli.json("lifecycle", "update", bucket, rule["id"], "--abort-uploads-days", "never")["abort_incomplete_multipart_upload"] is None
