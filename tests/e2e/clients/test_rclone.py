"""rclone on a real tree: provider Other, path style, ListObjectsV2."""

import json
import os
from pathlib import Path

import pytest


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
