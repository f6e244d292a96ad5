"""`cairn import verify`: planted differences are found, and the report is signed."""

import base64
import json
import subprocess
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.importer import Importer, order
from harness.management import expect
from harness.minio import Minio
from harness.proof import is_good, public_key_of
from harness.server import BINARY, Cairn


@pytest.fixture
def bucket(minio: Minio, bucket_name: str) -> str:
    """A bucket with versioning at the source, with three keys."""
    minio.boto.create_bucket(Bucket=bucket_name)
    minio.boto.put_bucket_versioning(Bucket=bucket_name, VersioningConfiguration={"Status": "Enabled"})
    for key in ("a", "b", "c"):
        minio.boto.put_object(Bucket=bucket_name, Key=key, Body=key.encode() * 1000, Tagging="kind=old", Metadata={"m": key})
    return bucket_name


def differences(importer: Importer, *arguments: str) -> list[tuple[str, str]]:
    """Returns keys and kinds of all differences, which fail the command."""
    found = importer.json("verify", *arguments, code=1)
    assert found["differences"] == len(found["first_differences"])
    return sorted((one["key"], one["kind"]) for one in found["first_differences"])


def test_equal_buckets_and_a_signed_report(importer: Importer, target: Cairn, bucket: str, tmp_path: Path):
    """The report is checked by `cairn verify proof`, and by an independent program; a page is beside it."""
    importer.objects("--bucket", bucket)
    found = importer.json("verify", "--bucket", bucket, "--read", "all", "--report", str(tmp_path / "report.html"))
    (counts,) = found["buckets"]
    assert (counts["versions"], counts["read_versions"], counts["read_bytes"], counts["differences"]) == (3, 3, 3000, 0)
    (proof,) = json.loads((tmp_path / "report.json").read_text())["proofs"]
    payload = proof["payload"]
    assert is_good(proof) and base64.b64decode(proof["public_key"]) == public_key_of(target.secrets.master_key, payload["store_id"])
    assert (payload["kind"], payload["differences"], payload["results"]["buckets"]) == ("import", [], found["buckets"])
    page = (tmp_path / "report.html").read_text()
    assert "All versions are equal" in page and proof["signature"] in page
    checked = subprocess.run([BINARY, "verify", "proof", str(tmp_path / "report.json")], capture_output=True, text=True, check=True)
    assert "valid" in checked.stdout and importer.source.endpoint in checked.stdout
    part = importer.json("verify", "--bucket", bucket, "--read", "0%")
    assert part["buckets"][0]["read_bytes"] == 0


def test_a_planted_tag_and_a_planted_date_are_found(minio: Minio, importer: Importer, target: Cairn, here: BaseClient, bucket: str):
    """The date is planted by an import of the same version with another one, which then is refused."""
    admin = target.admin
    expect(admin.post("/buckets", {"name": bucket}), 201)
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    run = expect(admin.post(f"/buckets/{bucket}/imports", {"source": "planted"}), 201)["import_id"]
    version = order(minio.boto, bucket, "b")[0]
    planted = {"import_id": run, "version_id": version, "last_modified": "2020-01-01T00:00:00Z"}
    headers = {"content-type": "binary/octet-stream", "x-amz-tagging": "kind=old", "x-amz-meta-m": "b"}
    expect(admin.request("PUT", f"/buckets/{bucket}/imported-objects/b", params=planted, data=b"b" * 1000, headers=headers), 201)
    assert importer.objects("--bucket", bucket, code=1) == {"listed": 3, "created": 2, "failed": 1}
    version = order(here, bucket, "c")[0]
    here.put_object_tagging(Bucket=bucket, Key="c", VersionId=version, Tagging={"TagSet": [{"Key": "kind", "Value": "new"}]})
    assert differences(importer, "--bucket", bucket, "--read", "all") == [("b", "date"), ("c", "tags")]


def test_a_planted_byte_is_found_only_by_reading(minio: Minio, importer: Importer, target: Cairn, bucket: str):
    """Everything else is equal, even the entity tag."""
    admin = target.admin
    expect(admin.post("/buckets", {"name": bucket}), 201)
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    run = expect(admin.post(f"/buckets/{bucket}/imports", {"source": "planted"}), 201)["import_id"]
    (entry,) = [one for one in minio.boto.list_object_versions(Bucket=bucket)["Versions"] if one["Key"] == "b"]
    planted = {
        "import_id": run, "version_id": entry["VersionId"], "last_modified": entry["LastModified"].isoformat(timespec="milliseconds"),
        "etag": entry["ETag"].strip('"'), "opaque_etag": "true",
    }
    headers = {"content-type": "binary/octet-stream", "x-amz-tagging": "kind=old", "x-amz-meta-m": "b"}
    content = b"b" * 700 + b"X" + b"b" * 299
    expect(admin.request("PUT", f"/buckets/{bucket}/imported-objects/b", params=planted, data=content, headers=headers), 201)
    assert importer.objects("--bucket", bucket) == {"listed": 3, "created": 2, "unchanged": 1}
    assert importer.json("verify", "--bucket", bucket)["differences"] == 0
    found = importer.json("verify", "--bucket", bucket, "--read", "all", code=1)
    (difference,) = found["first_differences"]
    assert (difference["key"], difference["kind"], difference["here"]) == ("b", "content", "differs at byte 700")


def test_missing_and_deleted_versions_are_found_and_own_ones_counted(minio: Minio, importer: Importer, here: BaseClient, bucket: str):
    """A version that a client has written here is no difference."""
    importer.objects("--bucket", bucket)
    minio.boto.put_object(Bucket=bucket, Key="d", Body=b"d")
    minio.boto.delete_object(Bucket=bucket, Key="a", VersionId=order(minio.boto, bucket, "a")[0])
    here.delete_object(Bucket=bucket, Key="b", VersionId=order(here, bucket, "b")[0])
    here.put_object(Bucket=bucket, Key="c", Body=b"client")
    assert differences(importer, "--bucket", bucket) == [("a", "gone"), ("b", "missing"), ("d", "missing")]
    assert importer.json("verify", "--bucket", bucket, code=1)["buckets"][0]["written_here"] == 1


def test_buckets_are_compared_too(minio: Minio, importer: Importer, here: BaseClient, bucket: str):
    """One that is not here, and one with another versioning."""
    assert differences(importer, "--bucket", bucket) == [("", "bucket")]
    importer.objects("--bucket", bucket)
    here.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    assert differences(importer, "--bucket", bucket) == [("", "bucket")]


def test_reports_with_fractions_are_not_signed(target: Cairn):
    """They have no canonical form."""
    refused = target.admin.post("/verify/imports", {"report": {"a": [1, {"b": 0.5}]}})
    assert refused.status_code == 400, refused.text
    proof = expect(target.admin.post("/verify/imports", {"report": {"a": [1], "kind": "object"}}), 200)["proof"]
    assert is_good(proof) and proof["payload"]["kind"] == "import"
