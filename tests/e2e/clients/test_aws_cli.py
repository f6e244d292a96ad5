"""The AWS CLI (v1, the one that Python packages carry; v2 signs alike) on a real tree."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def aws(command):
    """`aws` with its output as JSON, and less patience than its 60 s."""
    return lambda *arguments: command.must("aws", "--output", "json", "--cli-read-timeout", "20", *arguments)


def test_copy_a_tree_in_and_out(aws, tree, out: Path, bucket: str):
    """cp --recursive both ways, then sync finds nothing to do."""
    aws("s3", "cp", "--recursive", "--only-show-errors", tree.folder, f"s3://{bucket}/tree/")
    aws("s3", "cp", "--recursive", "--only-show-errors", f"s3://{bucket}/tree/", out)
    tree.assert_same(out)
    assert aws("s3", "sync", "--size-only", tree.folder, f"s3://{bucket}/tree/").strip() == ""


def test_a_tree_with_empty_files(aws, bucket: str, tmp_path: Path):
    """Empty files are sent with `Expect: 100-continue` too; see the framing test of that name."""
    folder = tmp_path / "package"
    for number in range(40):
        (folder / f"module{number}").mkdir(parents=True)
        (folder / f"module{number}" / "__init__.py").touch()
        (folder / f"module{number}" / "code.py").write_text("pass\n" * number)
    aws("s3", "cp", "--recursive", "--only-show-errors", folder, f"s3://{bucket}/")
    assert len(aws("s3", "ls", "--recursive", f"s3://{bucket}/").splitlines()) == 80


def test_listing_and_removal(aws, command, bucket: str, tmp_path: Path):
    """ls by folder and recursively, rm of one and of many (single deletes), rb."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * 5000)
    for key in ("a", "dir/b", "dir/sub/c"):
        aws("s3", "cp", file, f"s3://{bucket}/{key}")
    assert "PRE dir/" in aws("s3", "ls", f"s3://{bucket}/")
    assert len(aws("s3", "ls", "--recursive", f"s3://{bucket}/").splitlines()) == 3
    assert bucket in aws("s3", "ls")
    aws("s3", "rm", f"s3://{bucket}/a")
    aws("s3", "rm", "--recursive", f"s3://{bucket}/dir/")
    assert command.must("aws", "s3", "ls", "--recursive", f"s3://{bucket}/").strip() == ""
    aws("s3", "rb", f"s3://{bucket}")


def test_sync_with_delete(aws, bucket: str, tmp_path: Path):
    """--delete removes one by one."""
    for name in ("a", "b"):
        (tmp_path / "from").mkdir(exist_ok=True)
        (tmp_path / "from" / name).write_text(name)
    aws("s3", "sync", tmp_path / "from", f"s3://{bucket}/")
    (tmp_path / "from" / "b").unlink()
    aws("s3", "sync", "--delete", tmp_path / "from", f"s3://{bucket}/")
    listed = json.loads(aws("s3api", "list-objects-v2", "--bucket", bucket))
    assert [item["Key"] for item in listed["Contents"]] == ["a"]


def test_metadata_and_ranges(aws, bucket: str, tmp_path: Path):
    """s3api put, head and ranged get."""
    file, part = tmp_path / "file", tmp_path / "part"
    file.write_bytes(bytes(range(256)) * 1000)
    aws("s3api", "put-object", "--bucket", bucket, "--key", "k", "--body", file, "--metadata", "color=green",
        "--content-type", "video/mp4", "--cache-control", "max-age=60")
    head = json.loads(aws("s3api", "head-object", "--bucket", bucket, "--key", "k"))
    assert head["Metadata"] == {"color": "green"} and head["ContentType"] == "video/mp4" and head["CacheControl"] == "max-age=60"
    aws("s3api", "get-object", "--bucket", bucket, "--key", "k", "--range", "bytes=1000-1999", part)
    assert part.read_bytes() == file.read_bytes()[1000:2000]


def test_presigned_url_with_curl(aws, command, bucket: str, tmp_path: Path):
    """`aws s3 presign`, then plain curl."""
    file = tmp_path / "file"
    file.write_bytes(b"presigned" * 10_000)
    aws("s3", "cp", file, f"s3://{bucket}/a b+c.txt")
    url = aws("s3", "presign", f"s3://{bucket}/a b+c.txt").strip()
    command.must("curl", "-sSf", "-o", tmp_path / "got", url)
    assert (tmp_path / "got").read_bytes() == file.read_bytes()


def test_default_checksums_work_over_http(command, bucket: str, tmp_path: Path):
    """Without the "when required" settings the CLI puts a CRC into a header over plain HTTP: checked and kept."""
    for name in ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"):
        del command.environment[name]
    file = tmp_path / "file"
    file.write_bytes(b"defaults" * 100_000)
    command.must("aws", "s3", "cp", file, f"s3://{bucket}/k")
    command.must("aws", "s3", "cp", f"s3://{bucket}/k", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == file.read_bytes()


def test_batch_delete_is_refused(command, bucket: str, tmp_path: Path):
    """`s3api delete-objects` says NotImplemented and deletes nothing."""
    file = tmp_path / "file"
    file.write_text("stays")
    command.must("aws", "s3", "cp", file, f"s3://{bucket}/k")
    done = command.run("aws", "s3api", "delete-objects", "--bucket", bucket, "--delete", "Objects=[{Key=k}]")
    assert done.returncode != 0 and "NotImplemented" in done.stderr
    assert "stays" == command.must("aws", "s3", "cp", f"s3://{bucket}/k", "-")
