"""The checksums that clients have declared at the source come along, and are compared with the content."""

import os

from botocore.client import BaseClient

from harness.boto import Upload
from harness.importer import Importer, assert_equal
from harness.management import expect
from harness.minio import Minio
from harness.server import Cairn

MIB = 1 << 20
WHOLE = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
IN_PARTS = (
    ("CRC32", "COMPOSITE"), ("CRC32C", "COMPOSITE"), ("SHA1", "COMPOSITE"), ("SHA256", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("CRC64NVME", "FULL_OBJECT"),
)


def test_checksums_of_all_kinds_come(minio: Minio, here: BaseClient, importer: Importer, target: Cairn):
    """Of objects in one piece and in parts; and verify finds one that is missing."""
    source, bucket = minio.boto, "checksums"
    source.create_bucket(Bucket=bucket)
    source.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for algorithm in WHOLE:
        source.put_object(Bucket=bucket, Key=f"whole/{algorithm}", Body=os.urandom(2 * MIB), ChecksumAlgorithm=algorithm)
        source.put_object(Bucket=bucket, Key=f"empty/{algorithm}", Body=b"", ChecksumAlgorithm=algorithm)
    for algorithm, kind in IN_PARTS:
        upload = Upload(source, bucket, f"parts/{algorithm}/{kind}", ChecksumAlgorithm=algorithm, ChecksumType=kind)
        for number, size in enumerate((5 * MIB, 5 * MIB, 6 * MIB, 1), 1):
            upload.send(number, os.urandom(size), ChecksumAlgorithm=algorithm)
        upload.complete(ChecksumType=kind)
    source.put_object(Bucket=bucket, Key="without", Body=b"x")
    count = 2 * len(WHOLE) + len(IN_PARTS) + 1
    assert importer.objects("--bucket", bucket) == {"listed": count, "created": count}
    assert assert_equal(source, here, bucket) == count
    for key, parts in (("parts/CRC32/COMPOSITE", 4), ("parts/CRC64NVME/FULL_OBJECT", 4)):
        there, arrived = (client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED") for client in (source, here))
        sums = {name: value for name, value in there.items() if name.startswith("Checksum")}
        assert sums and sums == {name: value for name, value in arrived.items() if name.startswith("Checksum")}
        assert there["ETag"].endswith(f'-{parts}"')
    assert importer.json("verify", "--bucket", bucket)["differences"] == 0
    # The same version without its checksum.
    version = here.list_object_versions(Bucket=bucket, Prefix="whole/SHA1")["Versions"][0]["VersionId"]
    here.delete_object(Bucket=bucket, Key="whole/SHA1", VersionId=version)
    there = source.get_object(Bucket=bucket, Key="whole/SHA1", VersionId=version)
    run = expect(target.admin.post(f"/buckets/{bucket}/imports", {"source": "test"}), 201)["import_id"]
    entry = next(one for one in source.list_object_versions(Bucket=bucket)["Versions"] if one["VersionId"] == version)
    parameters = {"import_id": run, "version_id": version, "last_modified": entry["LastModified"].isoformat(timespec="milliseconds").replace("+00:00", "Z")}
    imported = target.admin.request(
        "PUT", f"/buckets/{bucket}/imported-objects/whole/SHA1", params=parameters, data=there["Body"].read(),
        headers={"content-type": there["ContentType"]},
    )
    expect(imported, 201)
    found = importer.json("verify", "--bucket", bucket, code=1)["first_differences"]
    assert [(one["key"], one["kind"]) for one in found] == [("whole/SHA1", "checksum")]
