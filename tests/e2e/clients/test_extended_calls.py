"""Clients with their defaults on the extended surface: what needs a setting, or does not work, on the strict one."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from minio import Minio
from minio.commonconfig import ComposeSource
from minio.deleteobjects import DeleteObject
from obstore.store import S3Store

from harness.boto import PART_BYTES, random_bytes
from harness.s3 import S3
from harness.server import Cairn

LARGE = random_bytes("extended", 2 * PART_BYTES + 123_457)
# What clients need on the strict surface; without them they use their defaults.
STRICT_SETTINGS = (
    "AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION", "RCLONE_S3_LIST_VERSION", "RCLONE_S3_COPY_CUTOFF",
)


@pytest.fixture
def command(extended_store: Cairn, command_for: Callable):
    """Command-line clients against the extended store, with their defaults beyond path style."""
    made = command_for(extended_store)
    for name in STRICT_SETTINGS:
        del made.environment[name]
    Path(made.environment["AWS_CONFIG_FILE"]).write_text(
        "[default]\ns3 =\n    addressing_style = path\n    multipart_threshold = 5MB\n    multipart_chunksize = 5MB\n"
    )
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a few files, one of them large enough for parts."""
    made = tmp_path / "from"
    for name, body in (("a", b"a" * 1000), ("dir/b c", b"b" * 70_000), ("dir/large", LARGE)):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(body)
    return made


def test_aws_cli(command, extended: S3, extended_bucket: str, folder: Path):
    """rm --recursive, sync --delete, delete-objects, the first version of the list, and a copy in pieces."""
    url = f"s3://{extended_bucket}"
    command.must("aws", "s3", "sync", folder, f"{url}/")
    (folder / "a").unlink()
    command.must("aws", "s3", "sync", "--delete", folder, f"{url}/")
    command.must("aws", "s3", "cp", "--recursive", f"{url}/dir/", f"{url}/copied/")
    assert extended.get(extended_bucket, "copied/large").body == LARGE
    listed = json.loads(command.must("aws", "--output", "json", "s3api", "list-objects", "--bucket", extended_bucket))
    assert [item["Key"] for item in listed["Contents"]] == ["copied/b c", "copied/large", "dir/b c", "dir/large"]
    attributes = ("--object-attributes", "ObjectSize", "ETag")
    found = json.loads(
        command.must("aws", "--output", "json", "s3api", "get-object-attributes", "--bucket", extended_bucket, "--key", "dir/large", *attributes)
    )
    assert found["ObjectSize"] == len(LARGE)
    command.must("aws", "s3api", "delete-objects", "--bucket", extended_bucket, "--delete", "Objects=[{Key=dir/large}]")
    command.must("aws", "s3", "rm", "--recursive", f"{url}/")
    assert extended.list_all(extended_bucket) == {}


def test_s5cmd(command, extended: S3, extended_bucket: str, folder: Path, tmp_path: Path):
    """Its deletes are all batch deletes: rm, sync --delete, mv."""

    def s5cmd(*arguments: object) -> str:
        return command.must("s5cmd", "--retry-count", "0", *arguments)

    url = f"s3://{extended_bucket}"
    s5cmd("cp", f"{folder}/", f"{url}/")
    (folder / "a").unlink()
    s5cmd("sync", "--delete", f"{folder}/", f"{url}/")
    assert sorted(extended.list_all(extended_bucket)) == ["dir/b c", "dir/large"]
    s5cmd("mv", f"{url}/dir/b c", tmp_path / "moved")
    assert (tmp_path / "moved").read_bytes() == b"b" * 70_000
    s5cmd("rm", f"{url}/*")
    assert extended.list_all(extended_bucket) == {}


def test_rclone(command, extended: S3, extended_bucket: str, folder: Path):
    """Its lists of the first version, copies in pieces within the store, and an ACL on every write."""

    def rclone(*arguments: object) -> str:
        return command.must("rclone", "--retries", "1", "--low-level-retries", "1", *arguments)

    at = f":s3:{extended_bucket}"
    rclone("copy", "--s3-acl", "private", folder, f"{at}/tree")
    rclone("check", "--download", folder, f"{at}/tree")
    rclone("copy", "--s3-copy-cutoff", "5Mi", f"{at}/tree", f"{at}/copied")
    assert extended.get(extended_bucket, "copied/dir/large").body == LARGE
    rclone("--s3-list-version", "1", "delete", f"{at}/tree")
    rclone("purge", f"{at}/copied")
    assert extended.list_all(extended_bucket) == {}


def test_minio_py(extended_store: Cairn, extended: S3, extended_bucket: str):
    """remove_objects and compose_object."""
    keys = extended_store.credential
    client = Minio(extended.authority, access_key=keys.access_key, secret_key=keys.secret_key, secure=False)
    for name in ("a", "b"):
        client.put_object(extended_bucket, name, io.BytesIO(LARGE), len(LARGE))
    sources = [ComposeSource(extended_bucket, name) for name in ("a", "b")]
    client.compose_object(extended_bucket, "composed", sources)
    assert extended.get(extended_bucket, "composed").body == LARGE + LARGE
    assert list(client.remove_objects(extended_bucket, [DeleteObject(name) for name in ("a", "b", "composed", "missing")])) == []
    assert extended.list_all(extended_bucket) == {}


def test_obstore(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Its deletes are batch deletes by default."""
    remote = S3Store(
        extended_bucket, endpoint=extended_store.endpoint, region="us-east-1",
        access_key_id=extended_store.secrets.root_access_key, secret_access_key=extended_store.secrets.root_secret_key,
        client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )
    for name in ("a", "b c", "kept"):
        obstore.put(remote, name, b"x")
    obstore.delete(remote, ["a", "b c"])
    assert list(extended.list_all(extended_bucket)) == ["kept"]
