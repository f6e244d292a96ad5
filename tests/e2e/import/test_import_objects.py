"""`cairn import objects` from a MinIO: what arrives, and what a second run does."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from harness.importer import Importer, assert_equal, order, versions
from harness.management import expect
from harness.minio import KMS_KEY, Minio
from harness.moments import with_an_end
from harness.server import Cairn, free_ports
from harness.wait import until

MIB = 1 << 20
QUOTA = {"quota": {"bytes": {"mode": "limit", "bytes": 1}, "objects": {"mode": "unlimited"}}}
HOSTILE_KEYS = [
    "a b", "a+b", "ü/ö", "%41", "a&b=c?d#e", "quote'\"", "<x>&amp;", "ctl\x01\x7f", "emoji😀", "\u202ertl", ";,:@!$*()", " lead", "trail ", "tilde~",
    "deep/" + "/".join(["y" * 200] * 4),
]


@pytest.fixture
def bucket(minio: Minio, bucket_name: str) -> str:
    """A bucket with versioning at the source, for one test."""
    minio.boto.create_bucket(Bucket=bucket_name)
    enable(minio.boto, bucket_name)
    return bucket_name


def enable(client: BaseClient, bucket: str, status: str = "Enabled") -> None:
    """Turns versioning on, or suspends it."""
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


def upload(client: BaseClient, bucket: str, key: str, sizes: list[int], **options: str) -> None:
    """Uploads random parts of these sizes."""
    upload_id = client.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]
    parts = []
    for number, size in enumerate(sizes, 1):
        etag = client.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=os.urandom(size))["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    client.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts})


def test_versions_markers_and_the_null_version_come_in_their_order(minio: Minio, here: BaseClient, importer: Importer):
    """And a second run copies nothing."""
    bucket, source = "history", minio.boto
    source.create_bucket(Bucket=bucket)
    source.put_object(Bucket=bucket, Key="n/ull", Body=b"before versioning", Metadata={"i": "null"})
    enable(source, bucket)
    for number in range(3):
        source.put_object(Bucket=bucket, Key="n/ull", Body=b"%d" % number, Metadata={"i": str(number)}, Tagging=f"i={number}&na%20me=a%20b")
    source.delete_object(Bucket=bucket, Key="n/ull")
    source.put_object(Bucket=bucket, Key="n/ull", Body=b"after")
    source.put_object(Bucket=bucket, Key="deleted", Body=b"x")
    source.delete_object(Bucket=bucket, Key="deleted")
    assert importer.objects("--bucket", bucket) == {"listed": 8, "created": 8}
    assert assert_equal(source, here, bucket) == 8
    again = importer.json("objects", "--bucket", bucket)
    assert (again["bytes"], again["total"]["created"], again["total"]["unchanged"]) == (0, 0, 8)
    # Without the journal, the server recognises what it has.
    importer.journal = importer.journal.with_name("other")
    assert importer.objects("--bucket", bucket) == {"listed": 8, "unchanged": 8}
    assert assert_equal(source, here, bucket) == 8


def test_suspended_and_unversioned_buckets(minio: Minio, here: BaseClient, importer: Importer):
    """Both are created as they are at the source."""
    source = minio.boto
    source.create_bucket(Bucket="unversioned")
    source.put_object(Bucket="unversioned", Key="k", Body=b"1")
    source.create_bucket(Bucket="suspended")
    enable(source, "suspended")
    for body in (b"1", b"2"):
        source.put_object(Bucket="suspended", Key="s", Body=body)
    enable(source, "suspended", "Suspended")
    source.put_object(Bucket="suspended", Key="s", Body=b"3")
    source.put_object(Bucket="suspended", Key="t", Body=b"3")
    source.delete_object(Bucket="suspended", Key="t")
    assert importer.objects("--bucket", "unversioned", "--bucket", "suspended") == {"listed": 5, "created": 5}
    assert assert_equal(source, here, "unversioned") == 1
    assert assert_equal(source, here, "suspended") == 4
    assert "Status" not in here.get_bucket_versioning(Bucket="unversioned")
    assert here.get_bucket_versioning(Bucket="suspended")["Status"] == "Suspended"


def test_hostile_keys_keep_headers_and_metadata(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """Whatever the key is."""
    for key in HOSTILE_KEYS:
        minio.boto.put_object(
            Bucket=bucket, Key=key, Body=key.encode(), ContentType="text/plain; charset=utf-8", CacheControl="no-cache",
            ContentDisposition='attachment; filename="x y.txt"', ContentLanguage="de", ContentEncoding="gzip", Expires=datetime(2030, 1, 1, tzinfo=UTC),
            Metadata={"foo-bar": "baz <&> x", "spaces": "a  b"},
        )
    assert importer.objects("--bucket", bucket) == {"listed": len(HOSTILE_KEYS), "created": len(HOSTILE_KEYS)}
    assert assert_equal(minio.boto, here, bucket) == len(HOSTILE_KEYS)


def test_objects_in_parts_keep_their_parts_and_tags(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """The entity tags come out equal by themselves, because the parts are those of the source."""
    source = minio.boto
    upload(source, bucket, "equal", [5 * MIB, 5 * MIB, 5 * MIB, 100], Metadata={"m": "1"}, Tagging="a=b")
    upload(source, bucket, "unequal", [5 * MIB, 6 * MIB, 7 * MIB, 1])
    upload(source, bucket, "one", [1000])
    source.put_object(Bucket=bucket, Key="large", Body=os.urandom(9 * MIB))
    source.put_object(Bucket=bucket, Key="empty", Body=b"")
    assert importer.objects("--bucket", bucket) == {"listed": 5, "created": 5}
    assert assert_equal(source, here, bucket) == 5
    assert here.get_object_tagging(Bucket=bucket, Key="equal")["TagSet"] == [{"Key": "a", "Value": "b"}]
    importer.journal = importer.journal.with_name("other")
    assert importer.objects("--bucket", bucket) == {"listed": 5, "unchanged": 5}
    assert here.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []


def test_entity_tags_of_encrypted_objects_are_kept_as_they_are(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """With a KMS they are no MD5 of the content, and are counted. The content is equal all the same."""
    source = minio.boto
    kms = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": KMS_KEY}
    source.put_object(Bucket=bucket, Key="kms", Body=b"secret", **kms)
    source.put_object(Bucket=bucket, Key="kms-large", Body=os.urandom(2 * MIB), **kms)
    source.put_object(Bucket=bucket, Key="s3", Body=b"secret", ServerSideEncryption="AES256")
    upload(source, bucket, "kms-parts", [5 * MIB, 6 * MIB, 100], **kms)
    assert importer.objects("--bucket", bucket) == {"listed": 4, "created": 4, "opaque_etags": 3}
    assert assert_equal(source, here, bucket) == 4
    assert importer.json("verify", "--bucket", bucket, "--read", "all")["differences"] == 0


def put_until_then(source: BaseClient, bucket: str, key: str) -> None:
    """Writes an object with a lock that has ended afterwards."""
    def put(end: datetime) -> datetime:
        source.put_object(Bucket=bucket, Key=key, Body=b"e", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=end)
        return end

    ended = with_an_end(put)
    until(lambda: datetime.now(UTC) > ended, "the lock does not end")


def test_locks_come_even_if_they_have_ended(minio: Minio, here: BaseClient, importer: Importer):
    """Retention and legal holds are those of the source, and hold."""
    source, bucket = minio.boto, "locked"
    source.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    later = datetime.now(UTC) + timedelta(days=1)
    source.put_object(Bucket=bucket, Key="held", Body=b"g", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later, ObjectLockLegalHoldStatus="ON")
    source.put_object(Bucket=bucket, Key="strict", Body=b"c", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=later)
    source.delete_object(Bucket=bucket, Key="held")
    put_until_then(source, bucket, "ended")
    assert importer.objects("--bucket", bucket) == {"listed": 4, "created": 4}
    assert assert_equal(source, here, bucket) == 4
    for key in ("held", "strict"):
        with pytest.raises(ClientError):
            here.delete_object(Bucket=bucket, Key=key, VersionId=order(here, bucket, key)[0])
    # A hold that ends at the source ends here.
    version = order(source, bucket, "held")[0]
    source.put_object_legal_hold(Bucket=bucket, Key="held", VersionId=version, LegalHold={"Status": "OFF"})
    assert importer.objects("--bucket", bucket) == {"listed": 4, "unchanged": 3, "changed": 1}
    assert here.get_object_legal_hold(Bucket=bucket, Key="held", VersionId=version)["LegalHold"]["Status"] == "OFF"


def test_changes_at_the_source_come_with_the_next_run(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """New versions, markers and tags; deletions only when they are asked for."""
    source = minio.boto
    for key in ("tagged", "stays", "goes", "versions"):
        source.put_object(Bucket=bucket, Key=key, Body=b"1")
    assert importer.objects("--bucket", bucket) == {"listed": 4, "created": 4}
    version = order(source, bucket, "tagged")[0]
    source.put_object_tagging(Bucket=bucket, Key="tagged", VersionId=version, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    source.put_object(Bucket=bucket, Key="versions", Body=b"2")
    source.delete_object(Bucket=bucket, Key="versions")
    source.delete_object(Bucket=bucket, Key="goes", VersionId=order(source, bucket, "goes")[0])
    assert importer.objects("--bucket", bucket) == {"listed": 5, "created": 2, "changed": 1, "unchanged": 2}
    assert len(versions(here, bucket)) == 6
    # What a client writes here is not of the import.
    here.put_object(Bucket=bucket, Key="own", Body=b"x")
    assert importer.objects("--bucket", bucket, "--delete") == {"listed": 5, "unchanged": 5, "deleted": 1}
    assert {one[0] for one in versions(here, bucket)} == {"tagged", "stays", "versions", "own"}
    here.delete_object(Bucket=bucket, Key="own", VersionId=order(here, bucket, "own")[0])
    assert assert_equal(source, here, bucket) == 5
    assert importer.objects("--bucket", bucket, "--delete") == {"listed": 5, "unchanged": 5}


def test_what_clients_do_here_stays(minio: Minio, here: BaseClient, importer: Importer):
    """In a bucket that is in use: null versions that a client has written, its versions on top, and its deletions."""
    source, bucket = minio.boto, "in-use"
    source.create_bucket(Bucket=bucket)
    for key in ("changed-there", "changed-here", "changed-in-both", "deleted-here"):
        source.put_object(Bucket=bucket, Key=key, Body=b"old")
    assert importer.objects("--bucket", bucket) == {"listed": 4, "created": 4}
    source.put_object(Bucket=bucket, Key="changed-there", Body=b"new")
    source.put_object(Bucket=bucket, Key="changed-in-both", Body=b"new")
    for key in ("changed-here", "changed-in-both"):
        here.put_object(Bucket=bucket, Key=key, Body=b"client")
    here.delete_object(Bucket=bucket, Key="deleted-here")
    assert importer.objects("--bucket", bucket, code=1) == {"listed": 4, "replaced": 1, "kept": 2, "deleted_here": 1}
    # They are named in each run, and scripts notice.
    again = importer.run("objects", "--bucket", bucket)
    kept = [json.loads(line) for line in (importer.journal / "kept.jsonl").read_text().splitlines()]
    assert kept == [{"bucket": bucket, "key": key, "version_id": "null"} for key in ("changed-here", "changed-in-both")]
    assert again.returncode == 1 and "2 versions of the source" in again.stderr, again
    assert all(f"{bucket}/{one['key']} version null: a client has written" in again.stderr for one in kept), again
    assert "deleted here, stays deleted" in again.stdout and str(importer.journal / "kept.jsonl") in again.stderr, again
    # Settings that changed at the source do not fail for them, and are not given to what is here.
    for key in ("changed-here", "deleted-here"):
        source.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    assert importer.objects("--bucket", bucket, code=1) == {"listed": 4, "unchanged": 1, "kept": 2, "deleted_here": 1}
    assert here.get_object_tagging(Bucket=bucket, Key="changed-here")["TagSet"] == []
    read = {key: here.get_object(Bucket=bucket, Key=key)["Body"].read() for key in ("changed-there", "changed-here", "changed-in-both")}
    assert read == {"changed-there": b"new", "changed-here": b"client", "changed-in-both": b"client"}
    assert {one[0] for one in versions(here, bucket)} == read.keys()
    # A version that is imported later is below what a client has written, whatever its date.
    enable(source, bucket)
    enable(here, bucket)
    mine = here.put_object(Bucket=bucket, Key="changed-there", Body=b"client")["VersionId"]
    theirs = source.put_object(Bucket=bucket, Key="changed-there", Body=b"newer")["VersionId"]
    assert importer.objects("--bucket", bucket, code=1)["created"] == 1
    assert order(here, bucket, "changed-there") == [mine, theirs, "null"]


def test_a_token_of_another_role_makes_nothing(minio: Minio, importer: Importer, bucket: str, target: Cairn):
    """It created the bucket, which a storage administrator may do, and was refused afterwards."""
    minio.boto.put_object(Bucket=bucket, Key="k", Body=b"x")
    token = expect(target.admin.post("/management-tokens", {"name": "storage", "role": "storage_admin"}), 201)["token"]
    refused = importer.run("objects", "--bucket", bucket, SERVICE_MANAGEMENT_TOKEN=token)
    assert refused.returncode == 1 and "system_admin" in refused.stderr and "storage_admin" in refused.stderr, refused
    assert target.admin.get(f"/buckets/{bucket}").status_code == 404
    assert not importer.journal.exists()


def test_what_cannot_come_is_named_and_the_rest_comes(minio: Minio, here: BaseClient, importer: Importer, bucket: str, target: Cairn):
    """A refused version fails the command, is listed in the journal, and is tried again by the next run."""
    source = minio.boto
    source.put_object(Bucket=bucket, Key="a", Body=b"1")
    source.put_object(Bucket=bucket, Key="b", Body=b"22")
    here.create_bucket(Bucket=bucket)
    enable(here, bucket)
    expect(target.admin.put(f"/buckets/{bucket}/quota", QUOTA), 200)
    done = importer.run("objects", "--bucket", bucket)
    assert done.returncode == 1 and f"{bucket}/b version" in done.stderr and "QUOTA_EXCEEDED" in done.stderr, done
    listed = [json.loads(line) for line in (importer.journal / "failures.jsonl").read_text().splitlines()]
    assert [(one["bucket"], one["key"]) for one in listed] == [(bucket, "b")]


def test_buckets_that_do_not_fit_are_refused_before_anything_is_copied(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """A bucket with versions does not go into one without."""
    minio.boto.put_object(Bucket=bucket, Key="a", Body=b"1")
    here.create_bucket(Bucket=bucket)
    done = importer.run("objects", "--bucket", bucket)
    assert done.returncode == 1 and "INVALID_BUCKET_STATE" in done.stderr
    assert versions(here, bucket) == []


def test_wrong_use_and_silent_servers(minio: Minio, importer: Importer):
    """Each has its exit code, and the message says what is wrong."""
    done = importer.run("objects", SOURCE_SECRET_KEY="")
    assert done.returncode == 2 and "SOURCE_SECRET_KEY" in done.stderr
    done = importer.run("objects", SOURCE_SECRET_KEY="wrong-secret")
    assert done.returncode == 1 and "SignatureDoesNotMatch" in done.stderr
    done = importer.run("objects", "--bucket", "no-such-bucket")
    assert done.returncode == 1 and "no-such-bucket" in done.stderr
    port, minio_port = free_ports(1)[0], minio.port
    try:
        minio.port = port
        done = importer.run("plan")
        assert done.returncode == 3 and f":{port}" in done.stderr
    finally:
        minio.port = minio_port


def test_plan_counts_and_changes_nothing(minio: Minio, target: Cairn, importer: Importer, bucket: str):
    """It says what would come."""
    source = minio.boto
    source.put_object(Bucket=bucket, Key="a", Body=b"1234", Tagging="a=b")
    source.put_object(Bucket=bucket, Key="a", Body=b"12")
    source.delete_object(Bucket=bucket, Key="a")
    upload(source, bucket, "parts", [5 * MIB, 1])
    plan = importer.json("plan", "--bucket", bucket)
    (found,) = plan["buckets"]
    assert (found["unfinished_uploads"], found["unfinished_bytes"]) == (0, 0)
    expected = {"keys": 2, "versions": 3, "delete_markers": 1, "multipart": 1, "tagged": 1, "locked": 0, "bytes": 5 * MIB + 7, "versioning": "Enabled"}
    assert {name: found[name] for name in expected} == expected
    assert (plan["losses"], plan["failures"]) == ([], [])
    assert bucket not in {one["name"] for one in target.admin.get("/buckets").json()["buckets"]}


def test_plan_names_unfinished_uploads(minio: Minio, importer: Importer, bucket: str):
    """With their number and the bytes of their parts: nobody could complete them here."""
    for key in ("a b", "c"):
        upload_id = minio.boto.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        for number in (1, 2):
            minio.boto.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=b"x" * 1000)
    plan = importer.json("plan", "--bucket", bucket)
    (found,) = plan["buckets"]
    assert (found["unfinished_uploads"], found["unfinished_bytes"]) == (2, 4000)
    (loss,) = plan["losses"]
    assert (loss["kind"], loss["name"]) == ("uploads", bucket) and "2 unfinished uploads" in loss["reason"]
    assert "unfinished uploads" in importer.run("plan", "--bucket", bucket).stdout


def test_a_later_run_over_many_pages_finds_every_change(minio: Minio, here: BaseClient, importer: Importer, bucket: str):
    """It lists ranges of keys at the same time, whose ends it takes from the journal. Changes at these ends count as well."""
    source = minio.boto
    keys = [f"{number // 100:02}/{number:04}" for number in range(3000)]
    with ThreadPoolExecutor(8) as pool:
        assert {answer.status for answer in pool.map(lambda key: minio.s3.put(bucket, key, key.encode()), keys)} == {200}
    assert importer.objects("--bucket", bucket) == {"listed": 3000, "created": 3000}
    assert importer.objects("--bucket", bucket) == {"listed": 3000, "unchanged": 3000}
    # The ends of the ranges, which have 950 versions, and the keys beside them.
    ends = [keys[950 * number - 1 + step] for number in (1, 2, 3) for step in (-1, 0, 1)]
    for key in ends[::3]:
        source.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    for key in ends[1::3]:
        source.delete_object(Bucket=bucket, Key=key, VersionId=order(source, bucket, key)[0])
    for key in ends[2::3]:
        source.put_object(Bucket=bucket, Key=key, Body=b"again")
        source.put_object(Bucket=bucket, Key=f"{key} new", Body=b"new")
    source.put_object(Bucket=bucket, Key="~last", Body=b"new")
    assert importer.objects("--bucket", bucket, "--delete") == {"listed": 3004, "created": 7, "changed": 3, "unchanged": 2994, "deleted": 3}
    assert versions(source, bucket) == versions(here, bucket)
    assert importer.objects("--bucket", bucket) == {"listed": 3004, "unchanged": 3004}
