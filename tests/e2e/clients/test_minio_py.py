"""minio-py with `secure=False`, path style by itself."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests
from minio import Minio
from minio.commonconfig import ENABLED, GOVERNANCE, REPLACE, ComposeSource, CopySource
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from minio.objectlockconfig import DAYS, ObjectLockConfig
from minio.retention import Retention
from minio.versioningconfig import VersioningConfig

from harness.boto import PART_BYTES, random_bytes
from harness.s3 import md5_etag
from harness.server import LOOPBACK, Cairn

@pytest.fixture
def client(store: Cairn) -> Minio:
    """A client of the store."""
    return Minio(
        f"{LOOPBACK}:{store.s3_port}", access_key=store.secrets.root_access_key, secret_key=store.secrets.root_secret_key,
        secure=False, region="us-east-1",
    )


def test_copy_a_tree_in_and_out(client: Minio, tree, out: Path, bucket: str):
    """fput and fget of every file."""
    for name in tree.content:
        client.fput_object(bucket, name, str(tree.folder / name))
    names = [item.object_name for item in client.list_objects(bucket, recursive=True)]
    assert sorted(names) == sorted(tree.content)
    for name in names:
        client.fget_object(bucket, name, str(out / name))
    tree.assert_same(out)


def test_metadata_ranges_and_links(client: Minio, bucket: str):
    """Stat, a piece, a presigned URL, removal."""
    body = bytes(range(256)) * 100
    client.put_object(bucket, "a b+é", io.BytesIO(body), len(body), content_type="audio/ogg", metadata={"mood": "calm"})
    found = client.stat_object(bucket, "a b+é")
    assert found.size == len(body) and found.content_type == "audio/ogg" and found.metadata["x-amz-meta-mood"] == "calm"
    piece = client.get_object(bucket, "a b+é", offset=100, length=50)
    assert piece.read() == body[100:150]
    piece.close()
    assert requests.get(client.presigned_get_object(bucket, "a b+é", timedelta(hours=1)), timeout=10).content == body
    put = client.presigned_put_object(bucket, "put", timedelta(hours=1))
    assert requests.put(put, data=b"put", timeout=10).status_code == 200
    for name in ("a b+é", "put"):
        client.remove_object(bucket, name)
    client.remove_bucket(bucket)
    assert not client.bucket_exists(bucket)


def test_batch_delete_is_refused(client: Minio, bucket: str):
    """remove_objects says NotImplemented and removes nothing."""
    client.put_object(bucket, "k", io.BytesIO(b"stays"), 5)
    with pytest.raises(S3Error) as refused:
        list(client.remove_objects(bucket, [DeleteObject("k")]))
    assert refused.value.code == "NotImplemented"
    assert client.get_object(bucket, "k").read() == b"stays"


def test_a_file_in_parts(client: Minio, bucket: str, tmp_path: Path):
    """fput, a stream of known and one of unknown length, in parts of 5 MiB."""
    body = random_bytes("minio", 2 * PART_BYTES + 4321)
    (tmp_path / "file").write_bytes(body)
    client.fput_object(bucket, "file", str(tmp_path / "file"), part_size=PART_BYTES, num_parallel_uploads=3)
    client.put_object(bucket, "known", io.BytesIO(body), len(body), part_size=PART_BYTES)
    client.put_object(bucket, "unknown", io.BytesIO(body), -1, part_size=PART_BYTES)
    for name in ("file", "known", "unknown"):
        assert client.stat_object(bucket, name).etag.endswith("-3")
        client.fget_object(bucket, name, str(tmp_path / name))
        assert (tmp_path / name).read_bytes() == body


def test_copies(client: Minio, bucket: str):
    """On the server, with the metadata or with other; a compose of several would be UploadPartCopy."""
    body = random_bytes("minio copies", 2 * PART_BYTES)
    client.put_object(bucket, "a b+é", io.BytesIO(body), len(body), metadata={"mood": "calm"})
    client.copy_object(bucket, "copy", CopySource(bucket, "a b+é"))
    found = client.stat_object(bucket, "copy")
    assert found.metadata["x-amz-meta-mood"] == "calm" and found.etag == md5_etag(body).strip('"')
    client.copy_object(bucket, "copy", CopySource(bucket, "copy"), metadata={"mood": "wild"}, metadata_directive=REPLACE)
    assert client.stat_object(bucket, "copy").metadata["x-amz-meta-mood"] == "wild"
    with pytest.raises(S3Error) as refused:
        client.compose_object(bucket, "both", [ComposeSource(bucket, "copy"), ComposeSource(bucket, "a b+é")])
    assert refused.value.code == "NotImplemented"


def test_versions(client: Minio, bucket: str):
    """Enable, list with markers, read and remove by version."""
    client.set_bucket_versioning(bucket, VersioningConfig(ENABLED))
    assert client.get_bucket_versioning(bucket).status == ENABLED
    ids = [client.put_object(bucket, "k", io.BytesIO(text), len(text)).version_id for text in (b"first", b"second")]
    client.remove_object(bucket, "k")
    listed = list(client.list_objects(bucket, include_version=True))
    assert [item.version_id for item in listed if not item.is_delete_marker] == ids[::-1]
    (marker,) = [item.version_id for item in listed if item.is_delete_marker]
    assert client.get_object(bucket, "k", version_id=ids[0]).read() == b"first"
    client.remove_object(bucket, "k", version_id=marker)
    assert client.get_object(bucket, "k").read() == b"second"


def test_locks(client: Minio, bucket: str):
    """The bucket's default, a retention, a legal hold."""
    name, until = f"{bucket}-lock", datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    client.make_bucket(name, object_lock=True)
    client.set_object_lock_config(name, ObjectLockConfig(GOVERNANCE, 1, DAYS))
    found = client.get_object_lock_config(name)
    assert (found.mode, found.duration, found.duration_unit) == (GOVERNANCE, 1, DAYS)
    # Over plain HTTP minio-py sends no digest but the signed one.
    version = client.put_object(name, "own", io.BytesIO(b"locked"), 6, retention=Retention(GOVERNANCE, until)).version_id
    assert client.get_object_retention(name, "own", version).retain_until_date == until
    version = client.put_object(name, "k", io.BytesIO(b"locked"), 6).version_id
    assert client.get_object_retention(name, "k", version).mode == GOVERNANCE
    client.set_object_retention(name, "k", Retention(GOVERNANCE, until), version)
    assert client.get_object_retention(name, "k", version).retain_until_date == until
    client.enable_object_legal_hold(name, "k", version)
    assert client.is_object_legal_hold_enabled(name, "k", version)
    client.disable_object_legal_hold(name, "k", version)
    assert not client.is_object_legal_hold_enabled(name, "k", version)
    with pytest.raises(S3Error) as refused:
        client.remove_object(name, "k", version)
    assert refused.value.code == "AccessDenied"
