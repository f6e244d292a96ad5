"""s5cmd on a real tree. Its deletes are all batch deletes, which are not implemented; everything else works."""

from pathlib import Path

import pytest

# In MiB: files up to the size of a part go up in one PUT.
ONE_PUT = ("--part-size", "5000", "--concurrency", "1")


@pytest.fixture
def s5cmd(command):
    """`s5cmd` with one attempt, so that an error shows."""
    return lambda *arguments: command.must("s5cmd", "--retry-count", "0", *arguments)


def test_copy_a_tree_in_and_out(s5cmd, tree, out: Path, bucket: str):
    """cp of a folder both ways."""
    s5cmd("--log", "error", "cp", *ONE_PUT, f"{tree.folder}/", f"s3://{bucket}/tree/")
    s5cmd("--log", "error", "cp", f"s3://{bucket}/tree/*", f"{out}/")
    tree.assert_same(out)


def test_sync_and_listing(s5cmd, bucket: str, tmp_path: Path):
    """sync up, nothing to do the second time; ls, du and cat."""
    for name in ("a", "dir/b"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_text(name * 1000)
    assert len(s5cmd("sync", *ONE_PUT, f"{tmp_path}/from/", f"s3://{bucket}/").splitlines()) == 2
    assert s5cmd("sync", *ONE_PUT, f"{tmp_path}/from/", f"s3://{bucket}/").strip() == ""
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
