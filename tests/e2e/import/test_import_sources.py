"""Imports from another Cairn: in both modes, of which the strict one lists neither tags nor locks, and with TLS."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.backups import cli_of
from harness.boto import make_client
from harness.certificates import Authority
from harness.exporter import Exporter
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


def test_a_certificate_that_is_not_trusted_is_refused_with_the_way_out(make_store: Callable[..., Cairn], authority: Authority, tmp_path: Path):
    """Of a source, and of the target of an export, by the variables that belong to each."""
    source = make_store(**authority.issue("source").environment(), SERVICE_TLS_API_ENABLED="false").start()
    expired = make_store(**authority.issue("expired", days=-1).environment(), SERVICE_TLS_API_ENABLED="false").start()
    cli_of(source).text("bucket", "create", "moved")
    importer = Importer(source, source, tmp_path / "journal")
    done = importer.run("plan")
    assert done.returncode == 3 and "set SOURCE_CA_CERTIFICATE to its PEM file" in done.stderr, done
    trusted = {"SOURCE_CA_CERTIFICATE": str(authority.certificate)}
    assert importer.run("plan", **trusted).returncode == 0
    importer.relay = expired.endpoint
    done = importer.run("plan", **trusted)
    assert done.returncode == 3 and "renew the certificate, and check the clock of this computer" in done.stderr, done
    done = Exporter(source, tmp_path).run("moved", "s3://moved", target=source)
    assert done.returncode == 3 and "set TARGET_CA_CERTIFICATE to its PEM file" in done.stderr, done
