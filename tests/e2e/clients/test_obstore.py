"""obstore: Python over Rust's object_store, which DataFusion, Polars and others use underneath."""

import asyncio
from collections.abc import Iterator

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PreconditionError
from obstore.store import S3Store

from harness.boto import PART_BYTES, parts_etag, random_bytes
from harness.s3 import S3, md5_etag
from harness.server import Cairn

BODY = random_bytes("obstore", 2 * PART_BYTES + 123_457)
ONE_ATTEMPT = {"max_retries": 0}


def make_store(store: Cairn, bucket: str, **options: object) -> S3Store:
    """Path style is its default; its deletes are batch deletes unless told otherwise."""
    return S3Store(
        bucket, endpoint=store.endpoint, region="us-east-1", access_key_id=store.secrets.root_access_key,
        secret_access_key=store.secrets.root_secret_key, client_options={"allow_http": True}, retry_config=ONE_ATTEMPT, **options,
    )


@pytest.fixture
def remote(store: Cairn, bucket: str) -> S3Store:
    """A store of obstore's, with the settings that docs/clients.md names."""
    return make_store(store, bucket, disable_bulk_delete=True)


def test_objects(remote: S3Store):
    """Put, head, get, ranges, lists, attributes, delete."""
    told = {"Content-Type": "text/css", "Cache-Control": "no-store", "color": "green"}
    assert obstore.put(remote, "dir/a b+ü", b"0123456789", attributes=told)["e_tag"] == md5_etag(b"0123456789")
    found = obstore.get(remote, "dir/a b+ü")
    assert found.attributes == told and bytes(found.bytes()) == b"0123456789"
    assert bytes(obstore.get_range(remote, "dir/a b+ü", start=2, end=5)) == b"234"
    assert [bytes(piece) for piece in obstore.get_ranges(remote, "dir/a b+ü", starts=[0, 8], ends=[2, 10])] == [b"01", b"89"]
    assert obstore.head(remote, "dir/a b+ü")["size"] == 10
    for number in range(5):
        obstore.put(remote, f"list/{number}", b"x")
    assert [item["path"] for page in obstore.list(remote, "list") for item in page] == [f"list/{number}" for number in range(5)]
    assert obstore.list_with_delimiter(remote)["common_prefixes"] == ["dir", "list"]
    obstore.delete(remote, "dir/a b+ü")
    with pytest.raises(FileNotFoundError):
        obstore.head(remote, "dir/a b+ü")


def test_batch_delete_is_refused(store: Cairn, bucket: str):
    """Without `disable_bulk_delete` even one delete is a batch: NotImplemented, and the object stays."""
    remote = make_store(store, bucket)
    obstore.put(remote, "k", b"stays")
    with pytest.raises(GenericError, match="NotImplemented"):
        obstore.delete(remote, "k")
    assert bytes(obstore.get(remote, "k").bytes()) == b"stays"


def test_multipart(remote: S3Store, s3: S3, bucket: str):
    """Parts side by side, and a writer that sends them as it fills."""
    answer = obstore.put(remote, "k", BODY, use_multipart=True, chunk_size=PART_BYTES, max_concurrency=3)
    assert answer["e_tag"] == parts_etag(BODY)
    with obstore.open_writer(remote, "written", buffer_size=PART_BYTES) as writer:
        for at in range(0, len(BODY), 1_000_000):
            writer.write(BODY[at : at + 1_000_000])
    for key in ("k", "written"):
        assert s3.get(bucket, key).body == BODY
        assert bytes(obstore.get(remote, key).bytes()) == BODY


def test_an_upload_that_fails_is_aborted(remote: S3Store, boto, bucket: str):
    """A source that breaks off: no object, and no upload stays behind."""
    def broken() -> Iterator[bytes]:
        yield BODY[: 2 * PART_BYTES]
        raise OSError("the source is gone")

    with pytest.raises((GenericError, OSError)):
        obstore.put(remote, "k", broken(), use_multipart=True, chunk_size=PART_BYTES)
    assert boto.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    assert "Contents" not in boto.list_objects_v2(Bucket=bucket)


def test_conditions(remote: S3Store):
    """Create only, and update only what was read."""
    first = obstore.put(remote, "k", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(remote, "k", b"2", mode="create")
    obstore.put(remote, "k", b"3", mode={"e_tag": first["e_tag"]})
    with pytest.raises(PreconditionError):
        obstore.put(remote, "k", b"4", mode={"e_tag": first["e_tag"]})
    assert bytes(obstore.get(remote, "k").bytes()) == b"3"


def test_copies_and_renames(remote: S3Store):
    """On the server."""
    obstore.put(remote, "a b+ü", b"copied", attributes={"color": "green"})
    obstore.copy(remote, "a b+ü", "copy")
    obstore.rename(remote, "copy", "renamed")
    found = obstore.get(remote, "renamed")
    assert bytes(found.bytes()) == b"copied" and found.attributes["color"] == "green"
    assert sorted(item["path"] for page in obstore.list(remote) for item in page) == ["a b+ü", "renamed"]


def test_versions(remote: S3Store, boto, bucket: str):
    """An old version by its id."""
    boto.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    old = obstore.put(remote, "k", b"old")["version"]
    obstore.put(remote, "k", b"new")
    assert bytes(obstore.get(remote, "k", options={"version": old}).bytes()) == b"old"
    assert bytes(obstore.get(remote, "k").bytes()) == b"new"


def test_many_at_once(remote: S3Store):
    """The async side."""
    async def go() -> list[bytes]:
        await asyncio.gather(*(obstore.put_async(remote, f"k{number}", b"%d" % number) for number in range(50)))
        found = await asyncio.gather(*(obstore.get_async(remote, f"k{number}") for number in range(50)))
        return [bytes(await one.bytes_async()) for one in found]

    assert asyncio.run(go()) == [b"%d" % number for number in range(50)]
