"""The AWS CLI (v1, the one that Python packages carry; v2 signs alike) on a real tree."""

import json
from pathlib import Path

import pytest

from harness.boto import PART_BYTES, random_bytes


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


@pytest.fixture
def parts_of_5_mib(command) -> None:
    """Files over 5 MiB go up in parts of that size; by default it is 8 MiB."""
    config = Path(command.environment["AWS_CONFIG_FILE"])
    config.write_text(config.read_text() + "    multipart_threshold = 5MB\n    multipart_chunksize = 5MB\n")


def test_a_file_in_parts(aws, command, parts_of_5_mib, bucket: str, tmp_path: Path):
    """cp up, from a pipe, down; the ETag tells that it went up in parts."""
    file = tmp_path / "file"
    file.write_bytes(random_bytes("aws cli", 2 * PART_BYTES + 4321))
    aws("s3", "cp", file, f"s3://{bucket}/file", "--metadata", "color=green")
    command.must("bash", "-c", f"cat {file} | aws s3 cp - s3://{bucket}/pipe --expected-size {file.stat().st_size}")
    for key in ("file", "pipe"):
        head = json.loads(aws("s3api", "head-object", "--bucket", bucket, "--key", key))
        assert head["ETag"].endswith('-3"') and head["ContentLength"] == file.stat().st_size
        aws("s3", "cp", f"s3://{bucket}/{key}", tmp_path / key)
        assert (tmp_path / key).read_bytes() == file.read_bytes()


def test_multipart_operations(aws, bucket: str, tmp_path: Path):
    """Each by hand, as a script would: create, upload, list, complete, abort."""
    bodies = [random_bytes("by hand", PART_BYTES), b"the end"]
    names = ["--bucket", bucket, "--key", "k"]
    upload = ["--upload-id", json.loads(aws("s3api", "create-multipart-upload", *names))["UploadId"]]
    parts = []
    for number, body in enumerate(bodies, 1):
        (tmp_path / "part").write_bytes(body)
        answer = aws("s3api", "upload-part", *names, *upload, "--part-number", number, "--body", tmp_path / "part")
        parts.append({"PartNumber": number, "ETag": json.loads(answer)["ETag"]})
    listed = json.loads(aws("s3api", "list-parts", *names, *upload))["Parts"]
    assert [part["Size"] for part in listed] == [len(body) for body in bodies]
    assert len(json.loads(aws("s3api", "list-multipart-uploads", "--bucket", bucket))["Uploads"]) == 1
    aws("s3api", "complete-multipart-upload", *names, *upload, "--multipart-upload", json.dumps({"Parts": parts}))
    aws("s3", "cp", f"s3://{bucket}/k", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"".join(bodies)
    other = json.loads(aws("s3api", "create-multipart-upload", *names))["UploadId"]
    aws("s3api", "abort-multipart-upload", *names, "--upload-id", other)
    assert "Uploads" not in json.loads(aws("s3api", "list-multipart-uploads", "--bucket", bucket) or "{}")


def test_copies_and_moves(aws, command, bucket: str, tmp_path: Path):
    """Within the store: cp, mv, sync between buckets; of what is under the multipart threshold of 8 MiB."""
    file = tmp_path / "file"
    file.write_bytes(random_bytes("copies", 7_000_000))
    aws("s3", "mb", f"s3://{bucket}-other")
    aws("s3", "cp", file, f"s3://{bucket}/dir/file", "--metadata", "color=green")
    aws("s3", "cp", f"s3://{bucket}/dir/file", f"s3://{bucket}-other/copy")
    aws("s3", "mv", f"s3://{bucket}-other/copy", f"s3://{bucket}-other/moved")
    aws("s3", "sync", f"s3://{bucket}/dir", f"s3://{bucket}-other/dir")
    assert [line.split()[-1] for line in aws("s3", "ls", "--recursive", f"s3://{bucket}-other").splitlines()] == ["dir/file", "moved"]
    head = json.loads(aws("s3api", "head-object", "--bucket", f"{bucket}-other", "--key", "moved"))
    assert head["Metadata"] == {"color": "green"} and head["ContentLength"] == 7_000_000


def test_a_copy_in_pieces_is_refused(command, parts_of_5_mib, bucket: str, tmp_path: Path):
    """Over the threshold the CLI copies by UploadPartCopy: NotImplemented, and no object comes of it."""
    (tmp_path / "file").write_bytes(random_bytes("pieces", 2 * PART_BYTES))
    command.must("aws", "s3", "cp", tmp_path / "file", f"s3://{bucket}/file")
    done = command.run("aws", "s3", "cp", f"s3://{bucket}/file", f"s3://{bucket}/copy")
    assert done.returncode != 0 and "NotImplemented" in done.stderr
    assert len(command.must("aws", "s3", "ls", f"s3://{bucket}").splitlines()) == 1


def test_versions(aws, bucket: str, tmp_path: Path):
    """Enable, list, read and remove by version."""
    aws("s3api", "put-bucket-versioning", "--bucket", bucket, "--versioning-configuration", "Status=Enabled")
    for text in ("first", "second"):
        (tmp_path / "file").write_text(text)
        aws("s3", "cp", tmp_path / "file", f"s3://{bucket}/k")
    aws("s3", "rm", f"s3://{bucket}/k")
    listed = json.loads(aws("s3api", "list-object-versions", "--bucket", bucket))
    assert len(listed["DeleteMarkers"]) == 1 and [item["IsLatest"] for item in listed["Versions"]] == [False, False]
    oldest = listed["Versions"][-1]["VersionId"]
    aws("s3api", "get-object", "--bucket", bucket, "--key", "k", "--version-id", oldest, tmp_path / "got")
    assert (tmp_path / "got").read_text() == "first"
    aws("s3api", "delete-object", "--bucket", bucket, "--key", "k", "--version-id", listed["DeleteMarkers"][0]["VersionId"])
    aws("s3", "cp", f"s3://{bucket}/k", tmp_path / "got")
    assert (tmp_path / "got").read_text() == "second"


def test_locks(aws, command, bucket: str, tmp_path: Path):
    """A bucket with lock, its default, retention, holds, and the bypass."""
    name, file = f"{bucket}-lock", tmp_path / "file"
    file.write_text("locked")
    aws("s3api", "create-bucket", "--bucket", name, "--object-lock-enabled-for-bucket")
    rule = "ObjectLockEnabled=Enabled,Rule={DefaultRetention={Mode=GOVERNANCE,Days=1}}"
    aws("s3api", "put-object-lock-configuration", "--bucket", name, "--object-lock-configuration", rule)
    version = json.loads(aws("s3api", "put-object", "--bucket", name, "--key", "k", "--body", file))["VersionId"]
    names = ["--bucket", name, "--key", "k", "--version-id", version]
    assert json.loads(aws("s3api", "get-object-retention", *names))["Retention"]["Mode"] == "GOVERNANCE"
    assert "AccessDenied" in command.run("aws", "s3api", "delete-object", *names).stderr
    aws("s3api", "put-object-legal-hold", *names, "--legal-hold", "Status=ON")
    bypass = ["aws", "s3api", "delete-object", *names, "--bypass-governance-retention"]
    assert "AccessDenied" in command.run(*bypass).stderr
    aws("s3api", "put-object-legal-hold", *names, "--legal-hold", "Status=OFF")
    command.must(*bypass)


def test_cors(aws, bucket: str):
    """Put, get, delete."""
    rules = {"CORSRules": [{"AllowedOrigins": ["https://app.example.com"], "AllowedMethods": ["PUT"], "AllowedHeaders": ["*"]}]}
    aws("s3api", "put-bucket-cors", "--bucket", bucket, "--cors-configuration", json.dumps(rules))
    assert json.loads(aws("s3api", "get-bucket-cors", "--bucket", bucket)) == rules
    aws("s3api", "delete-bucket-cors", "--bucket", bucket)
