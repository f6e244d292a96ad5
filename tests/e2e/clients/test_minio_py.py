"""minio-py with `secure=False`, path style by itself."""

import io
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from minio import Minio
from minio.deleteobjects import DeleteObject
from minio.error import S3Error

from harness.server import LOOPBACK, Cairn

ONE_PUT_BYTES = 5 * 2**30


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
        client.fput_object(bucket, name, str(tree.folder / name), part_size=ONE_PUT_BYTES)
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
