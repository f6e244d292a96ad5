"""rclone on a real tree: provider Other, path style, ListObjectsV2."""

import json
import os
from pathlib import Path

import pytest

from harness.boto import PART_BYTES, random_bytes


@pytest.fixture
def rclone(command):
    """`rclone` with one try, so that an error shows."""
    return lambda *arguments: command.must("rclone", "--retries", "1", "--low-level-retries", "1", *arguments)


def test_copy_a_tree_in_and_out(rclone, tree, out: Path, bucket: str):
    """copy both ways, then rclone's own comparison of every byte."""
    rclone("copy", tree.folder, f":s3:{bucket}/tree")
    rclone("check", "--download", tree.folder, f":s3:{bucket}/tree")
    rclone("copy", f":s3:{bucket}/tree", out)
    tree.assert_same(out)


def test_sync_keeps_times_and_deletes(rclone, bucket: str, tmp_path: Path):
    """Modification times travel as metadata; sync removes what is gone, with single deletes."""
    folder = tmp_path / "from"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
        os.utime(folder / name, (1_600_000_000, 1_600_000_000))
    rclone("sync", folder, f":s3:{bucket}")
    listed = json.loads(rclone("lsjson", f":s3:{bucket}"))
    assert {item["Path"]: item["ModTime"][:10] for item in listed} == {"a": "2020-09-13", "b": "2020-09-13"}
    (folder / "b").unlink()
    rclone("sync", folder, f":s3:{bucket}")
    assert rclone("lsf", f":s3:{bucket}").split() == ["a"]
    rclone("purge", f":s3:{bucket}")
    assert bucket not in rclone("lsd", ":s3:")


def test_ranges_and_links(rclone, command, bucket: str, tmp_path: Path):
    """cat of a middle piece, and a presigned link with curl."""
    (tmp_path / "f").write_bytes(bytes(range(256)) * 4000)
    rclone("copyto", tmp_path / "f", f":s3:{bucket}/f")
    done = command.must("rclone", "cat", "--offset", "97", "--count", "26", f":s3:{bucket}/f")
    assert done == "abcdefghijklmnopqrstuvwxyz"
    url = rclone("link", f":s3:{bucket}/f").strip()
    command.must("curl", "-sSf", "-o", tmp_path / "got", url)
    assert (tmp_path / "got").read_bytes() == (tmp_path / "f").read_bytes()


PARTS = ("--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M", "--s3-upload-concurrency", "3")


def test_a_file_in_parts(rclone, command, bucket: str, tmp_path: Path):
    """copy up, `rcat` of a stream, `check` of both, and down again."""
    folder = tmp_path / "from"
    folder.mkdir()
    for name in ("file", "pipe"):
        (folder / name).write_bytes(random_bytes("rclone", 2 * PART_BYTES + 4321))
    rclone("copy", *PARTS, folder / "file", f":s3:{bucket}")
    command.must("bash", "-c", f"rclone rcat --retries 1 {' '.join(PARTS)} :s3:{bucket}/pipe < {folder / 'pipe'}")
    rclone("check", "--download", folder, f":s3:{bucket}")
    rclone("check", folder, f":s3:{bucket}", "--include", "file")
    rclone("copy", f":s3:{bucket}", tmp_path / "out")
    assert [(tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes() for name in ("file", "pipe")] == [True, True]


def test_a_file_from_many_threads(rclone, bucket: str, tmp_path: Path):
    """The transfer that rclone chooses by itself from 256 MiB on, here with a small file."""
    (tmp_path / "file").write_bytes(random_bytes("threads", 3 * PART_BYTES + 1))
    options = ("--multi-thread-cutoff", "5M", "--multi-thread-streams", "3", "--multi-thread-chunk-size", "5M", "--s3-chunk-size", "5M")
    rclone("copy", *options, tmp_path / "file", f":s3:{bucket}")
    rclone("check", "--download", tmp_path / "file", f":s3:{bucket}")


def test_copies_within_the_store(rclone, bucket: str, tmp_path: Path):
    """copy, moveto and sync between buckets by the server, and new times for an object that is there."""
    (tmp_path / "file").write_bytes(random_bytes("rclone copies", 9_000_000))
    rclone("copyto", tmp_path / "file", f":s3:{bucket}/dir/file")
    rclone("mkdir", f":s3:{bucket}-other")
    rclone("sync", f":s3:{bucket}", f":s3:{bucket}-other")
    rclone("moveto", f":s3:{bucket}-other/dir/file", f":s3:{bucket}-other/moved")
    rclone("touch", "--timestamp", "2020-09-13T00:00:00", f":s3:{bucket}-other/moved")
    (listed,) = json.loads(rclone("lsjson", f":s3:{bucket}-other"))
    assert (listed["Path"], listed["Size"], listed["ModTime"][:10]) == ("moved", 9_000_000, "2020-09-13")
    rclone("copyto", f":s3:{bucket}-other/moved", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == (tmp_path / "file").read_bytes()


def test_unfinished_uploads(rclone, boto, bucket: str):
    """Listed and cleaned up by rclone's own commands."""
    boto.create_multipart_upload(Bucket=bucket, Key="left")
    assert "left" in rclone("backend", "list-multipart-uploads", f":s3:{bucket}")
    rclone("backend", "cleanup", "-o", "max-age=0s", f":s3:{bucket}")
    assert "Uploads" not in boto.list_multipart_uploads(Bucket=bucket)


def test_versions(rclone, bucket: str, tmp_path: Path):
    """Enabled by rclone; old versions have their date in their name, and can be copied and cleaned up."""
    assert "Enabled" in rclone("backend", "versioning", f":s3:{bucket}", "Enabled")
    for text in ("first", "second"):
        (tmp_path / "f").write_text(text)
        rclone("copyto", "--ignore-times", tmp_path / "f", f":s3:{bucket}/f")
    names = rclone("lsf", "--s3-versions", f":s3:{bucket}").split()
    (old,) = [name for name in names if name != "f"]
    assert rclone("cat", "--s3-versions", f":s3:{bucket}/{old}") == "first" and rclone("cat", f":s3:{bucket}/f") == "second"
    rclone("backend", "cleanup-hidden", f":s3:{bucket}")
    assert rclone("lsf", "--s3-versions", f":s3:{bucket}").split() == ["f"]
