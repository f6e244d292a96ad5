"""ZIP archives of objects: names, content, moments, limits, and what damage does to them."""

import io
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from harness.cli import NO_ANSWER, Cli
from harness.damage import find_bytes, flip_bit, volumes
from harness.management import Management, expect, expect_refusal, with_role
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

ARCHIVES_MAX = 8


def archive(admin: Management, bucket: str, prefix: str = "", **query: str) -> zipfile.ZipFile:
    """Downloads an archive, and checks that it is whole."""
    return opened(admin.get(f"/buckets/{bucket}/archive", params={"prefix": prefix} | query))


def opened(response: requests.Response) -> zipfile.ZipFile:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/zip"
    found = zipfile.ZipFile(io.BytesIO(response.content))
    assert found.testzip() is None
    return found


def contents(found: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: found.read(name) for name in found.namelist()}


def put(s3: S3, bucket: str, key: str, body: bytes) -> None:
    assert s3.put(bucket, key, body).status == 200


def test_objects_below_a_prefix_are_one_archive(admin: Management, s3: S3, bucket: str, tmp_path: Path):
    """Names are below the folder of the prefix. `unzip` and Python read it; blocks, small objects and empty ones are intact."""
    bodies = {
        "docs/2026/a.txt": b"a" * 70_000, "docs/2026/b/c.bin": random.Random(1).randbytes(3 << 20), "docs/2026/empty": b"",
        "docs/2026/ä ö.txt": "ü".encode(), "docs/2026/folder/": b"",
    }
    for key, body in (bodies | {"docs/2027/x": b"x", "other": b"y"}).items():
        put(s3, bucket, key, body)
    response = admin.get(f"/buckets/{bucket}/archive", params={"prefix": "docs/2026/"})
    assert response.headers["content-disposition"] == "attachment; filename=\"2026.zip\"; filename*=UTF-8''2026.zip"
    assert response.headers["x-content-type-options"] == "nosniff"
    found = opened(response)
    assert contents(found) == {key.removeprefix("docs/2026/"): body for key, body in bodies.items()}
    assert found.getinfo("folder/").is_dir() and all(info.flag_bits == 0x808 for info in found.infolist())
    modified = expect(admin.get(f"/buckets/{bucket}/object/docs/2026/a.txt"), 200)["last_modified"]
    expected = datetime.fromisoformat(modified).astimezone(UTC)
    assert abs((datetime(*found.getinfo("a.txt").date_time, tzinfo=UTC) - expected).total_seconds()) <= 2
    (tmp_path / "a.zip").write_bytes(response.content)
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-tq", tmp_path / "a.zip"], check=True, capture_output=True)
    # A prefix that ends within a name, and the whole bucket.
    assert sorted(archive(admin, bucket, "docs/20").namelist())[-1] == "2027/x"
    assert len(archive(admin, bucket).namelist()) == 7


def test_names_are_safe_and_different(admin: Management, s3: S3, bucket: str):
    """No name leads out of the folder, and no two are equal, whatever the keys are."""
    keys = ["../../etc/passwd", "/absolute", "a", "a/b", "a/c", "b\\c", "b_c", "C:/x", "d//e", "d/_/e", "./f", "n\x01l", "10:30"]
    for number, key in enumerate(keys):
        put(s3, bucket, key, b"%d" % number)
    names = archive(admin, bucket).namelist()
    assert len(names) == len(set(names)) == len(keys)
    for name in names:
        assert not name.startswith("/") and "\\" not in name and not {"..", ".", ""} & set(name.split("/")), name
    assert {"__/__/etc/passwd", "_/absolute", "a", "a (2)/b", "a (2)/c", "C_/x", "10:30"} <= set(names)


def test_many_objects_are_sent_in_pages(admin: Management, s3: S3, bucket: str):
    """More objects than a page of the list has."""
    with s3.connect() as connection:
        for number in range(2300):
            assert s3.request("PUT", object_target(bucket, f"many/{number:05}"), body=b"%d" % number, connection=connection).status == 200
    found = archive(admin, bucket, "many/")
    assert contents(found) == {f"{number:05}": b"%d" % number for number in range(2300)}


def test_chosen_objects_are_one_archive(admin: Management, s3: S3, bucket: str):
    """Keys that are repeated count once. A missing one is named, and nothing is sent."""
    for key in ("a/1", "b/2", "c"):
        put(s3, bucket, key, key.encode())
    path = f"/buckets/{bucket}/archive"
    assert contents(opened(admin.post(path, {"keys": ["c", "a/1", "c"]}))) == {"c": b"c", "a/1": b"a/1"}
    assert "missing/x" in expect_refusal(admin.post(path, {"keys": ["c", "missing/x"]}), 404, "OBJECT_NOT_FOUND")
    for body in ({"keys": []}, {"keys": ["a"] * 1001}, {"keys": [""]}, {}, {"keys": ["c"], "prefix": ""}):
        expect_refusal(admin.post(path, body), 400, "INVALID_REQUEST")


def test_archive_of_a_moment(admin: Management, s3: S3, bucket: str):
    """It has what was there then. A bucket without versions has no past."""
    path = f"/buckets/{bucket}/archive"
    put(s3, bucket, "d/a", b"old")
    clock = lambda: expect(admin.put(f"/buckets/{bucket}/object/clock", data=b""), 201)["last_modified"]
    expect_refusal(admin.get(path, params={"at": clock()}), 409, "INVALID_BUCKET_STATE")
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    put(s3, bucket, "d/b", b"then")
    time = clock()
    until(lambda: clock() > time, "the clock to go on")
    put(s3, bucket, "d/b", b"now")
    s3.request("DELETE", object_target(bucket, "d/a"))
    assert contents(archive(admin, bucket, "d/", at=time)) == {"a": b"old", "b": b"then"}
    assert contents(archive(admin, bucket, "d/")) == {"b": b"now"}


def test_wrong_requests_are_refused(admin: Management, s3: S3, bucket: str):
    path = f"/buckets/{bucket}/archive"
    expect_refusal(admin.get(path), 404, "OBJECT_NOT_FOUND")
    put(s3, bucket, "a", b"a")
    expect_refusal(admin.get(path, params={"prefix": "b"}), 404, "OBJECT_NOT_FOUND")
    expect_refusal(admin.get(path, params={"at": "yesterday"}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(path, params={"recursive": "1"}), 400, "INVALID_REQUEST")
    expect_refusal(with_role(admin, "auditor").get(path), 403, "FORBIDDEN")
    head = admin.request("HEAD", path)
    assert (head.status_code, head.headers["content-type"], head.content) == (200, "application/zip", b"")


def test_archives_that_nobody_reads_are_limited(admin: Management, s3: S3, bucket: str):
    """A client that leaves ends its archive, and makes room for another one."""
    path = f"/buckets/{bucket}/archive"
    for number in range(3):
        put(s3, bucket, f"large/{number}", bytes(16 << 20))
    waiting = [admin.get(path, stream=True) for _ in range(ARCHIVES_MAX)]
    assert all(response.status_code == 200 for response in waiting)
    expect_refusal(admin.get(path), 429, "TOO_MANY_REQUESTS")
    for response in waiting:
        response.close()
    until(lambda: admin.request("HEAD", path).status_code == 200, "archives whose clients have gone still count")
    assert len(archive(admin, bucket).namelist()) == 3


def test_damage_ends_an_archive_without_its_list(make_store: Callable[..., Cairn], tmp_path: Path):
    """The connection is cut, so no client takes the archive for complete; the command leaves no file."""
    store = make_store().start()
    s3, admin = store.s3, store.admin
    s3.create_bucket("bucket")
    body = random.Random(7).randbytes(4 << 20)
    put(s3, "bucket", "d/a", b"intact")
    put(s3, "bucket", "d/b", body)
    put(s3, "bucket", "d/c", b"after it")
    store.stop()
    ((path, at),) = find_bytes(volumes(store.data), body[3 << 20 : (3 << 20) + 64])
    flip_bit(path, at, 1)
    store.start()
    received = b""
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        for piece in admin.get("/buckets/bucket/archive", params={"prefix": "d/"}, stream=True).iter_content(1 << 16):
            received += piece
    assert b"intact" in received and len(received) >= 2 << 20
    assert b"PK\x01\x02" not in received and b"PK\x05\x06" not in received
    cli = Cli(store.management, store.secrets.system_token)
    target = tmp_path / "d.zip"
    assert "the server sent only a part" in cli.fails("object", "archive", "bucket/d/", str(target), code=NO_ANSWER)
    assert not list(tmp_path.iterdir())
    failed = expect(admin.get("/audit/events", params={"result": "failed"}), 200)["events"]
    assert any(event["operation"] == "download_archive" and "d/b" in event["detail"] for event in failed)


def test_command_writes_an_archive(admin: Management, cli: Cli, s3: S3, bucket: str, tmp_path: Path):
    """Into a file, under the name of the folder, or to standard output."""
    for key in ("docs/a", "docs/b/c"):
        put(s3, bucket, key, key.encode())
    target = tmp_path / "x.zip"
    written = cli.json("object", "archive", f"{bucket}/docs/", str(target))
    assert written == {"bytes": target.stat().st_size, "file": str(target)}
    assert contents(zipfile.ZipFile(target)) == {"a": b"docs/a", "b/c": b"docs/b/c"}
    before = target.read_bytes()
    assert "no object below" in cli.fails("object", "archive", f"{bucket}/none/", str(target))
    assert target.read_bytes() == before
    assert "in place of a pattern" in cli.fails("object", "archive", f"{bucket}/*.txt", code=2)
