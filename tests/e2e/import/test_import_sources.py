"""Imports from another Cairn, in both modes: a source that lists neither tags nor locks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.boto import make_client
from harness.importer import Importer, assert_equal
from harness.server import Cairn


@pytest.mark.parametrize("mode", ["extended", "strict"])
def test_another_cairn_is_a_source(make_store: Callable[..., Cairn], tmp_path: Path, mode: str):
    """Its ids have the form of our own. In the strict mode there are no tags."""
    old = make_store(SERVICE_S3_COMPATIBILITY=mode).start()
    new = make_store(SERVICE_S3_COMPATIBILITY="extended").start()
    tags = {"Tagging": "a=b"} if mode == "extended" else {}
    source, here = make_client(old.s3, request_checksum_calculation="when_required"), make_client(new.s3)
    source.create_bucket(Bucket="moved", ObjectLockEnabledForBucket=True)
    for number in range(3):
        source.put_object(Bucket="moved", Key="ä b", Body=b"%d" % number, Metadata={"i": str(number)}, **tags)
    source.delete_object(Bucket="moved", Key="ä b")
    until = datetime.now(UTC) + timedelta(days=1)
    source.put_object(Bucket="moved", Key="locked", Body=b"x", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until)
    importer = Importer(old, new, tmp_path / "journal")
    assert importer.objects() == {"listed": 5, "created": 5}
    if mode == "extended":
        assert assert_equal(source, here, "moved") == 5
    assert importer.json("verify", "--read", "all")["differences"] == 0
    assert importer.objects() == {"listed": 5, "unchanged": 5}
    written = here.put_object(Bucket="moved", Key="ä b", Body=b"here")["VersionId"]
    assert here.get_object(Bucket="moved", Key="ä b")["Body"].read() == b"here" and written
    if mode == "extended":
        version = source.list_object_versions(Bucket="moved")["Versions"][-1]
        source.put_object_tagging(Bucket="moved", Key="ä b", VersionId=version["VersionId"], Tagging={"TagSet": [{"Key": "a", "Value": "c"}]})
        assert importer.objects()["changed"] == 1
        assert importer.json("verify", "--read", "all")["differences"] == 0
