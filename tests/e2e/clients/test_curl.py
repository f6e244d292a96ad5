"""Plain curl with presigned URLs: download, upload, the middle of a large file, resuming."""

from pathlib import Path

from harness.s3 import S3, object_target


def url(s3: S3, method: str, bucket: str, key: str) -> str:
    """Returns a presigned URL."""
    return f"http://{s3.authority}{s3.presigned(method, object_target(bucket, key))}"


def test_upload_and_download(command, s3: S3, tree, out: Path, bucket: str):
    """curl -T (which asks for 100-continue on large bodies) and back."""
    source = tree.folder / tree.largest()
    command.must("curl", "-sSf", "-T", source, url(s3, "PUT", bucket, "video.mp4"))
    command.must("curl", "-sSf", "-o", out / "whole", url(s3, "GET", bucket, "video.mp4"))
    assert (out / "whole").read_bytes() == source.read_bytes()


def test_the_middle_and_resuming(command, s3: S3, bucket: str, tmp_path: Path):
    """-r for a piece, -C - to go on where a download broke off."""
    body = bytes(range(256)) * 20_000
    s3.put(bucket, "k", body)
    get = url(s3, "GET", bucket, "k")
    command.must("curl", "-sSf", "-r", "1000000-1999999", "-o", tmp_path / "middle", get)
    assert (tmp_path / "middle").read_bytes() == body[1_000_000:2_000_000]
    (tmp_path / "part").write_bytes(body[:3_000_000])
    command.must("curl", "-sSf", "-C", "-", "-o", tmp_path / "part", get)
    assert (tmp_path / "part").read_bytes() == body


def test_errors_are_visible_in_curl(command, s3: S3, bucket: str):
    """For a missing object curl shows the error body and fails with a status for scripts."""
    done = command.run("curl", "-sS", "-w", "%{http_code}", url(s3, "GET", bucket, "none"))
    assert done.stdout.endswith("404") and "NoSuchKey" in done.stdout
