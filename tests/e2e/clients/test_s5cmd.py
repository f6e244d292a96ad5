"""s5cmd on a real tree. Its deletes are all batch deletes, which are not implemented; everything else works."""

import os
from pathlib import Path

import pytest

from harness.boto import PART_BYTES, random_bytes

WRITTEN = 1_700_000_000
"""The time of files, in Unix seconds: long before any upload."""

@pytest.fixture
def s5cmd(command):
    """`s5cmd` with one attempt, so that an error shows."""
    return lambda *arguments: command.must("s5cmd", "--retry-count", "0", *arguments)


def test_copy_a_tree_in_and_out(s5cmd, tree, out: Path, bucket: str):
    """cp of a folder both ways."""
    s5cmd("--log", "error", "cp", f"{tree.folder}/", f"s3://{bucket}/tree/")
    s5cmd("--log", "error", "cp", f"s3://{bucket}/tree/*", f"{out}/")
    tree.assert_same(out)


def test_sync_and_listing(s5cmd, bucket: str, tmp_path: Path):
    """sync up, nothing to do the second time; ls, du and cat.

    The times of objects are whole seconds, as in S3. A file that was written within the second of its upload is newer.
    """
    for name in ("a", "dir/b"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_text(name * 1000)
        os.utime(tmp_path / "from" / name, (WRITTEN, WRITTEN))
    assert len(s5cmd("sync", f"{tmp_path}/from/", f"s3://{bucket}/").splitlines()) == 2
    assert s5cmd("sync", f"{tmp_path}/from/", f"s3://{bucket}/").strip() == ""
    assert "DIR" in s5cmd("ls", f"s3://{bucket}/") and "b" in s5cmd("ls", f"s3://{bucket}/dir/*")
    assert "6000 bytes in 2 objects" in s5cmd("du", f"s3://{bucket}/*")
    assert s5cmd("cat", f"s3://{bucket}/dir/b") == "dir/b" * 1000
    assert bucket in s5cmd("ls")


def test_bucket_commands_and_presign(s5cmd, command, bucket: str, tmp_path: Path):
    """mb, rb, head, presign with curl."""
    s5cmd("mb", f"s3://{bucket}-new")
    s5cmd("rb", f"s3://{bucket}-new")
    (tmp_path / "f").write_bytes(b"p" * 70_000)
    s5cmd("cp", tmp_path / "f", f"s3://{bucket}/f")
    url = s5cmd("presign", f"s3://{bucket}/f").strip()
    command.must("curl", "-sSf", "-o", tmp_path / "got", url)
    assert (tmp_path / "got").read_bytes() == b"p" * 70_000


def test_rm_is_refused_and_nothing_is_lost(s5cmd, command, bucket: str, tmp_path: Path):
    """rm is a batch delete even for one object: NotImplemented, and the object stays."""
    (tmp_path / "f").write_text("stays")
    s5cmd("cp", tmp_path / "f", f"s3://{bucket}/f")
    done = command.run("s5cmd", "rm", f"s3://{bucket}/f")
    assert done.returncode != 0 and "NotImplemented" in done.stderr
    assert s5cmd("cat", f"s3://{bucket}/f") == "stays"


def test_mv_to_a_file_is_a_copy(s5cmd, bucket: str, tmp_path: Path):
    """mv copies, ends with success though its batch delete was refused, and the object stays: known, documented."""
    (tmp_path / "f").write_text("moves")
    s5cmd("cp", tmp_path / "f", f"s3://{bucket}/f")
    s5cmd("mv", f"s3://{bucket}/f", tmp_path / "moved")
    assert (tmp_path / "moved").read_text() == "moves"
    assert s5cmd("cat", f"s3://{bucket}/f") == "moves"


def test_a_file_in_parts(s5cmd, command, bucket: str, tmp_path: Path):
    """cp in parts of 5 MiB both ways, and from a pipe, which always goes up in parts."""
    file = tmp_path / "file"
    file.write_bytes(random_bytes("s5cmd", 2 * PART_BYTES + 4321))
    s5cmd("cp", "--part-size", "5", "--concurrency", "3", file, f"s3://{bucket}/file")
    command.must("bash", "-c", f"s5cmd --retry-count 0 pipe --part-size 5 s3://{bucket}/pipe < {file}")
    for key in ("file", "pipe"):
        s5cmd("cp", "--part-size", "5", f"s3://{bucket}/{key}", tmp_path / key)
        assert (tmp_path / key).read_bytes() == file.read_bytes()
        assert "-3" in s5cmd("ls", "--etag", f"s3://{bucket}/{key}")


def test_copies_within_the_store(s5cmd, bucket: str, tmp_path: Path):
    """cp and sync between buckets."""
    file = tmp_path / "file"
    file.write_bytes(random_bytes("s5cmd copies", 9_000_000))
    s5cmd("mb", f"s3://{bucket}-other")
    s5cmd("cp", file, f"s3://{bucket}/dir/file")
    s5cmd("cp", f"s3://{bucket}/dir/file", f"s3://{bucket}/copy")
    s5cmd("sync", f"s3://{bucket}/*", f"s3://{bucket}-other/")
    s5cmd("cp", f"s3://{bucket}-other/*", f"{tmp_path}/out/")
    assert [(tmp_path / "out" / name).read_bytes() == file.read_bytes() for name in ("copy", "dir/file")] == [True, True]


def test_versions(s5cmd, command, bucket: str, tmp_path: Path):
    """Enabling, listing all versions, reading an old one."""
    s5cmd("bucket-version", "--set", "Enabled", f"s3://{bucket}")
    assert "Enabled" in s5cmd("bucket-version", f"s3://{bucket}")
    for text in ("first", "second"):
        (tmp_path / "f").write_text(text)
        s5cmd("cp", tmp_path / "f", f"s3://{bucket}/f")
    listed = [line.split() for line in s5cmd("ls", "--all-versions", f"s3://{bucket}/f").splitlines()]
    assert len(listed) == 2
    assert s5cmd("cat", "--version-id", listed[-1][-1], f"s3://{bucket}/f") == "first"
