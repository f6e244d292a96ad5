"""`cairn export` to another S3 store, MinIO or another Cairn: what arrives, and what a second run does."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.damage import find_bytes, flip_bit, volumes
from harness.exporter import Exporter, manifest
from harness.importer import stored
from harness.minio import Minio
from harness.s3 import S3, xml
from harness.server import LOOPBACK, Cairn
from harness.unsteady import Unsteady

from test_export_folder import enable, upload


@pytest.fixture(params=["cairn", "minio"])
def target(request: pytest.FixtureRequest) -> Cairn | Minio:
    """Both kinds of targets."""
    return request.getfixturevalue({"cairn": "other", "minio": "minio"}[request.param])


@pytest.fixture
def there(target: Cairn | Minio) -> BaseClient:
    """boto3 for the target."""
    return target.boto if isinstance(target, Minio) else make_client(target.s3)


def without_date(found: dict) -> dict:
    """Returns what is stored with a version, without its date, which no store keeps."""
    return found | {"headers": {name: value for name, value in found["headers"].items() if name != "last-modified"}}


def history(store: Cairn | Minio, bucket: str) -> dict[str, list]:
    """Returns entity tag and size of all versions by key, oldest first; `None` for delete markers."""
    s3 = S3(LOOPBACK, store.port, store.credential) if isinstance(store, Minio) else store.s3
    found: dict[str, list] = {}
    for one in xml(s3.request("GET", f"/{bucket}?versions=")):
        if one.tag in ("Version", "DeleteMarker"):
            what = (one.findtext("ETag"), int(one.findtext("Size"))) if one.tag == "Version" else None
            found.setdefault(one.findtext("Key"), []).insert(0, what)
    return found


def test_current_objects_arrive_with_everything(exporter: Exporter, here: BaseClient, there: BaseClient, target: Cairn | Minio, bucket: str):
    """Headers, metadata, tags, parts with their entity tag. A second run copies only what has changed."""
    headers = {"ContentType": "text/css", "CacheControl": "no-store", "ContentDisposition": "inline", "ContentLanguage": "de", "ContentEncoding": "gzip"}
    here.put_object(Bucket=bucket, Key="a b/ü+%", Body=b"abc", Metadata={"m": "two  words", "n": "1"}, Tagging="x=y&na%20me=a%20b", **headers)
    here.put_object(Bucket=bucket, Key="plain", Body=os.urandom(3 << 20))
    here.put_object(Bucket=bucket, Key="empty", Body=b"")
    upload(here, bucket, "parts", [5 << 20, 6 << 20, 17])
    there.create_bucket(Bucket=bucket)
    done = exporter.json(bucket, f"s3://{bucket}", target=target)
    assert done == {"exported": 4, "bytes": (14 << 20) + 20}
    for key in ("a b/ü+%", "plain", "empty", "parts"):
        parts = 3 if key == "parts" else 0
        sent, got = (without_date(stored(client, bucket, key, "null", parts)) for client in (here, there))
        if key == "parts":
            # The checksums of parts are not sent: their entity tags are.
            sent["headers"] = {name: value for name, value in sent["headers"].items() if not name.startswith("x-amz-checksum-")}
        assert got == sent, key
    lines = manifest(exporter.folder / "manifest.jsonl")
    assert [line["key"] for line in lines] == ["a b/ü+%", "empty", "parts", "plain"] and all(line["sha256"] and not line["file"] for line in lines)
    assert exporter.json(bucket, f"s3://{bucket}", target=target) == {"unchanged": 4}
    assert [line["sha256"] for line in manifest(exporter.folder / "manifest.jsonl")] == [line["sha256"] for line in lines]
    here.put_object_tagging(Bucket=bucket, Key="a b/ü+%", Tagging={"TagSet": [{"Key": "x", "Value": "z"}]})
    here.put_object(Bucket=bucket, Key="empty", Body=b"", Metadata={"new": "1"})
    there.delete_object(Bucket=bucket, Key="plain")
    assert exporter.json(bucket, f"s3://{bucket}", target=target)["exported"] == 3
    assert exporter.json(bucket, f"s3://{bucket}", target=target) == {"unchanged": 4}


def test_hostile_keys_arrive(exporter: Exporter, here: BaseClient, there: BaseClient, target: Cairn | Minio, bucket: str):
    """As they are."""
    keys = ["a b", "a+b", "%41", "a&b=c?d#e", "quote'\"", "<x>&amp;", "emoji😀", ";,:@!$*()", " lead", "trail ", "tilde~", "deep/" + "/".join(["y" * 200] * 4)]
    for key in keys:
        here.put_object(Bucket=bucket, Key=key, Body=key.encode())
    there.create_bucket(Bucket=bucket)
    assert exporter.json(bucket, f"s3://{bucket}", target=target)["exported"] == len(keys)
    found = {one["Key"]: there.get_object(Bucket=bucket, Key=one["Key"])["Body"].read() for one in there.list_objects_v2(Bucket=bucket)["Contents"]}
    assert found == {key: key.encode() for key in keys}
    assert exporter.json(bucket, f"s3://{bucket}", target=target) == {"unchanged": len(keys)}


@pytest.mark.parametrize("options", [[], ["--versions"]])
def test_opaque_tags_are_recognised_by_the_manifest(make_store: Callable[..., Cairn], other: Cairn, tmp_path: Path, options: list[str]):
    """A store with such tags: content is compared twice, the target has other tags, and a second run copies nothing."""
    store = make_store(SERVICE_S3_ETAG="opaque", SERVICE_S3_COMPATIBILITY="extended").start()
    here, there, bucket = make_client(store.s3), make_client(other.s3), f"opaque-{len(options)}"
    for client in (here, there):
        client.create_bucket(Bucket=bucket)
        enable(client, bucket)
    for key, body in (("a", b"abc"), ("b", os.urandom(2 << 20))):
        here.put_object(Bucket=bucket, Key=key, Body=body)
    upload(here, bucket, "c", [5 << 20, 1])
    exporter = Exporter(store, tmp_path)
    done = exporter.json(bucket, f"s3://{bucket}", *options, target=other)
    assert (done["exported"], done["other_etags"]) == (3, 3)
    for key in ("a", "b", "c"):
        assert there.get_object(Bucket=bucket, Key=key)["Body"].read() == here.get_object(Bucket=bucket, Key=key)["Body"].read()
    assert exporter.json(bucket, f"s3://{bucket}", *options, target=other) == {"unchanged": 3}
    out = tmp_path / "out"
    assert exporter.json(bucket, str(out))["exported"] == 3
    assert exporter.json(bucket, str(out)) == {"unchanged": 3}


def test_versions_and_delete_markers_arrive_in_order(
    exporter: Exporter, source: Cairn, here: BaseClient, there: BaseClient, target: Cairn | Minio, bucket: str
):
    """A second run copies nothing; later versions are added, also when old ones were removed here."""
    here.put_object(Bucket=bucket, Key="k", Body=b"null")
    enable(here, bucket)
    ids = [here.put_object(Bucket=bucket, Key="k", Body=b"same", Metadata={"i": str(number)})["VersionId"] for number in range(3)]
    here.delete_object(Bucket=bucket, Key="k")
    here.put_object(Bucket=bucket, Key="k", Body=b"after")
    here.put_object(Bucket=bucket, Key="k-other", Body=b"other key")
    here.put_object(Bucket=bucket, Key="gone", Body=b"gone")
    here.delete_object(Bucket=bucket, Key="gone")
    upload(here, bucket, "parts", [5 << 20, 1])
    there.create_bucket(Bucket=bucket)
    enable(there, bucket)
    done = exporter.json(bucket, f"s3://{bucket}", "--versions", target=target)
    assert (done["exported"], done["delete_markers"]) == (8, 2)
    assert history(target, bucket) == history(source, bucket)
    lines = [line for line in manifest(exporter.folder / "manifest.jsonl") if line["key"] == "k"]
    assert [line["version_id"] for line in lines][1:4] == ids
    there_ids = [line["target_version_id"] for line in lines if not line["delete_marker"]]
    assert [there.get_object(Bucket=bucket, Key="k", VersionId=one)["Body"].read() for one in there_ids] == [b"null", b"same", b"same", b"same", b"after"]
    assert exporter.json(bucket, f"s3://{bucket}", "--versions", target=target) == {"unchanged": 8, "delete_markers": 2}
    assert history(target, bucket) == history(source, bucket)
    assert [line["target_version_id"] for line in manifest(exporter.folder / "manifest.jsonl") if line["key"] == "k"] == [line["target_version_id"] for line in lines]
    here.delete_object(Bucket=bucket, Key="k", VersionId=ids[0])
    here.put_object(Bucket=bucket, Key="k", Body=b"latest")
    done = exporter.json(bucket, f"s3://{bucket}", "--versions", target=target)
    assert (done["exported"], done["bytes"]) == (1, 6)
    assert history(target, bucket)["k"][-1] == history(source, bucket)["k"][-1]
    # What the target has of another origin is not continued.
    there.put_object(Bucket=bucket, Key="gone", Body=b"foreign")
    failed = exporter.run(bucket, f"s3://{bucket}", "--versions", target=target)
    assert failed.returncode == 1 and "the target has other versions of this key" in failed.stderr and "2 versions were not exported" in failed.stderr


def test_an_unsteady_target_gets_every_version_once(exporter: Exporter, source: Cairn, here: BaseClient, other: Cairn, bucket: str):
    """It refuses changes for a while, and does not answer others that it has made: the export looks before it sends again."""
    there = make_client(other.s3)
    there.create_bucket(Bucket=bucket)
    for client in (here, there):
        enable(client, bucket)
    for number in range(4):
        here.put_object(Bucket=bucket, Key="small", Body=b"same", Metadata={"number": str(number)})
    here.delete_object(Bucket=bucket, Key="small")
    here.put_object(Bucket=bucket, Key="large", Body=os.urandom(3 << 20))
    upload(here, bucket, "parts", [5 << 20, 5 << 20, 1])
    relay = Unsteady(other.s3.port)
    try:
        done = exporter.json(bucket, f"s3://{bucket}", "--versions", "--to-endpoint", relay.endpoint, "--concurrency", "1", target=other)
    finally:
        relay.close()
    assert done["exported"] + done.get("unchanged", 0) == 6 and relay.changes > 10
    assert history(other, bucket) == history(source, bucket)
    assert "Uploads" not in there.list_multipart_uploads(Bucket=bucket)
    assert exporter.json(bucket, f"s3://{bucket}", "--versions", target=other) == {"unchanged": 6, "delete_markers": 1}


def test_a_damaged_version_does_not_hold_back_newer_ones(make_store: Callable[..., Cairn], other: Cairn, tmp_path: Path):
    """It is named in each run. Versions that are written later are added."""
    store, body = make_store().start(), os.urandom(3 << 20)
    here, there = make_client(store.s3), make_client(other.s3)
    for client in (here, there):
        client.create_bucket(Bucket="gap")
        enable(client, "gap")
    for content in (b"oldest", body, b"newer"):
        here.put_object(Bucket="gap", Key="k", Body=content)
    store.stop()
    ((path, at),) = find_bytes(volumes(store.data), body[-(1 << 20) : -(1 << 20) + 64])
    flip_bit(path, at, 1)
    store.start()
    exporter = Exporter(store, tmp_path)
    assert exporter.json("gap", "s3://gap", "--versions", target=other, code=1) == {"exported": 2, "failed": 1, "bytes": 11}
    make_client(store.s3).put_object(Bucket="gap", Key="k", Body=b"newest")
    assert exporter.json("gap", "s3://gap", "--versions", target=other, code=1) == {"exported": 1, "unchanged": 2, "failed": 1, "bytes": 6}
    assert [size for _, size in history(other, "gap")["k"]] == [6, 5, 6]
    assert there.get_object(Bucket="gap", Key="k")["Body"].read() == b"newest"


def test_locks_arrive_where_the_target_has_them(exporter: Exporter, source: Cairn, there: BaseClient, target: Cairn | Minio, bucket: str):
    """Elsewhere they are named, and in the manifest."""
    here, locked = make_client(source.s3), f"{bucket}-l"[-60:].lstrip("-")
    here.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    here.put_object(Bucket=locked, Key="a", Body=b"a", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=until, ObjectLockLegalHoldStatus="ON")
    there.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    assert exporter.json(locked, f"s3://{locked}", "--versions", target=target) == {"exported": 1, "bytes": 1}
    found = there.head_object(Bucket=locked, Key="a")
    assert (found["ObjectLockMode"], found["ObjectLockRetainUntilDate"], found["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", until, "ON")
    plain = f"{locked}-p"[-60:].lstrip("-")
    there.create_bucket(Bucket=plain)
    assert exporter.json(locked, f"s3://{plain}", target=target) == {"exported": 1, "bytes": 1, "locks_lost": 1}
    (line,) = manifest(exporter.folder / "manifest.jsonl")
    assert line["retention"]["mode"] == "GOVERNANCE" and line["legal_hold"]


def test_targets_that_do_not_fit_are_refused(exporter: Exporter, here: BaseClient, other: Cairn, bucket: str, tmp_path: Path):
    """A bucket that does not exist, that keeps no versions, a wrong credential, a store that does not answer."""
    here.put_object(Bucket=bucket, Key="a", Body=b"a")
    done = exporter.run(bucket, f"s3://{bucket}", target=other)
    assert done.returncode == 1 and "NoSuchBucket" in done.stderr
    make_client(other.s3).create_bucket(Bucket=bucket)
    done = exporter.run(bucket, f"s3://{bucket}", "--versions", target=other)
    assert done.returncode == 1 and "turn versioning on there" in done.stderr
    done = exporter.run(bucket, f"s3://{bucket}")
    assert done.returncode == 2 and "TARGET_ENDPOINT" in done.stderr
    done = exporter.run(bucket, f"s3://{bucket}", "--to-endpoint", other.endpoint)
    assert done.returncode == 2 and "TARGET_ACCESS_KEY" in done.stderr
    assert not list(tmp_path.glob("manifest*"))


def test_damage_is_not_exported(make_store: Callable[..., Cairn], other: Cairn, tmp_path: Path):
    """Neither whole objects nor parts: the target gets nothing under that key, and no upload stays."""
    store = make_store().start()
    here, there, bodies = make_client(store.s3), make_client(other.s3), {}
    for client in (here, there):
        client.create_bucket(Bucket="damaged")
    here.put_object(Bucket="damaged", Key="a", Body=b"intact")
    bodies["b"] = os.urandom(3 << 20)
    here.put_object(Bucket="damaged", Key="b", Body=bodies["b"])
    bodies["c"] = upload(here, "damaged", "c", [5 << 20, 2 << 20])
    store.stop()
    for body in bodies.values():
        ((path, at),) = find_bytes(volumes(store.data), body[-(1 << 20) : -(1 << 20) + 64])
        flip_bit(path, at, 1)
    store.start()
    done = Exporter(store, tmp_path).run("damaged", "s3://damaged", target=other)
    assert done.returncode == 1 and "damaged/b" in done.stderr and "damaged/c" in done.stderr and "2 versions were not exported" in done.stderr
    assert [one["Key"] for one in there.list_objects_v2(Bucket="damaged")["Contents"]] == ["a"]
    assert "Uploads" not in there.list_multipart_uploads(Bucket="damaged")
