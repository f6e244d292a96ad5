"""`cairn export` to a folder: every file and line, hostile keys, repetitions, failures and interruptions."""

import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.client import BaseClient

from harness.boto import make_client
from harness.damage import find_bytes, flip_bit, volumes
from harness.exporter import Exporter, manifest
from harness.gate import Gate
from harness.management import expect
from harness.server import Cairn
from harness.wait import until

HOSTILE_KEYS = [
    "a", "a/b", "a/b/c", "a!", "../../etc/passwd", "/absolute", "d//e", "./f", "g/", "100%", "%2F", "back\\slash", "ctl\x01\x7f", "c:x", "*?<>|\"", "end.", "trail ",
    "ü/ö", "emoji😀", "x" * 700, "deep/" + "/".join(["y" * 200] * 4), "a%v=null", "temporary", "manifest.jsonl",
]


def enable(client: BaseClient, bucket: str) -> None:
    """Turns versioning on."""
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def upload(client: BaseClient, bucket: str, key: str, sizes: list[int]) -> bytes:
    """Uploads random parts of these sizes. Returns the content."""
    part = {"Bucket": bucket, "Key": key, "UploadId": client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    bodies = [os.urandom(size) for size in sizes]
    parts = [{"PartNumber": number, "ETag": client.upload_part(**part, PartNumber=number, Body=body)["ETag"]} for number, body in enumerate(bodies, 1)]
    client.complete_multipart_upload(**part, MultipartUpload={"Parts": parts})
    return b"".join(bodies)


def test_current_objects_become_files_with_a_manifest(exporter: Exporter, here: BaseClient, bucket: str, tmp_path: Path):
    """With everything that S3 says of them. A second run copies nothing, and notices a file that was changed or lost."""
    out = tmp_path / "out"
    here.put_object(Bucket=bucket, Key="docs/a.txt", Body=b"abc", ContentType="text/plain", CacheControl="no-store", Metadata={"m": "1"}, Tagging="x=y")
    here.put_object(Bucket=bucket, Key="empty", Body=b"")
    large = upload(here, bucket, "large", [5 << 20, 5 << 20, 17])
    assert exporter.json(bucket, str(out)) == {"exported": 3, "bytes": 3 + len(large)}
    assert [(out / "objects" / name).read_bytes() for name in ("docs/a.txt", "empty", "large")] == [b"abc", b"", large]
    text, empty, parts = manifest(out / "manifest.jsonl")
    assert (text["bucket"], text["key"], text["version_id"], text["file"]) == (bucket, "docs/a.txt", None, "objects/docs/a.txt")
    assert (text["content_type"], text["headers"], text["metadata"], text["tags"]) == ("text/plain", {"cache-control": "no-store"}, {"m": "1"}, [{"key": "x", "value": "y"}])
    assert (text["etag"], text["sha256"], text["size"]) == (hashlib.md5(b"abc").hexdigest(), hashlib.sha256(b"abc").hexdigest(), 3)
    assert text["is_latest"] and not text["delete_marker"] and empty["size"] == 0
    assert (parts["etag"], parts["parts"]) == (here.head_object(Bucket=bucket, Key="large")["ETag"].strip('"'), [{"count": 2, "size": 5 << 20}, {"count": 1, "size": 17}])
    modified = here.head_object(Bucket=bucket, Key="docs/a.txt")["LastModified"].timestamp()
    assert int((out / "objects/docs/a.txt").stat().st_mtime) == modified
    assert sorted(path.name for path in out.iterdir()) == ["manifest.jsonl", "objects"]

    before = (out / "manifest.jsonl").read_text()
    assert exporter.json(bucket, str(out)) == {"unchanged": 3}
    # Also without the manifest, by their content.
    (out / "manifest.jsonl").unlink()
    assert exporter.json(bucket, str(out)) == {"unchanged": 3}
    assert (out / "manifest.jsonl").read_text() == before
    (out / "objects/docs/a.txt").write_bytes(b"abd")
    (out / "objects/empty").unlink()
    here.put_object(Bucket=bucket, Key="large", Body=b"new")
    assert exporter.json(bucket, str(out)) == {"exported": 3, "bytes": 6}
    assert (out / "objects/docs/a.txt").read_bytes() == b"abc" and (out / "objects/large").read_bytes() == b"new"
    assert exporter.json(bucket, str(out), "--prefix", "docs/") == {"unchanged": 1}


def test_every_key_has_a_safe_file_of_its_own(exporter: Exporter, here: BaseClient, bucket: str, tmp_path: Path):
    """None leads out of the folder, and names say what the key is."""
    out = tmp_path / "out"
    for key in HOSTILE_KEYS:
        here.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert exporter.json(bucket, str(out))["exported"] == len(HOSTILE_KEYS)
    lines = manifest(out / "manifest.jsonl")
    assert [line["key"] for line in lines] == sorted(HOSTILE_KEYS, key=str.encode)
    root = (out / "objects").resolve()
    for line in lines:
        path = (out / line["file"]).resolve()
        assert root in path.parents and path.read_bytes() == line["key"].encode(), line
    assert len({line["file"] for line in lines}) == len(lines) == sum(path.is_file() for path in root.rglob("*"))
    assert exporter.json(bucket, str(out)) == {"unchanged": len(HOSTILE_KEYS)}


def test_versions_are_beside_their_object_oldest_first(exporter: Exporter, here: BaseClient, bucket: str, tmp_path: Path):
    """The null version and delete markers too."""
    out = tmp_path / "out"
    here.put_object(Bucket=bucket, Key="k", Body=b"null")
    enable(here, bucket)
    ids = [here.put_object(Bucket=bucket, Key="k", Body=b"%d" % number)["VersionId"] for number in range(2)]
    marker = here.delete_object(Bucket=bucket, Key="k")["VersionId"]
    last = here.put_object(Bucket=bucket, Key="k", Body=b"last")["VersionId"]
    here.put_object(Bucket=bucket, Key="gone", Body=b"gone")
    here.delete_object(Bucket=bucket, Key="gone")
    assert exporter.json(bucket, str(out), "--versions") == {"exported": 5, "delete_markers": 2, "bytes": 14}
    lines = [line for line in manifest(out / "manifest.jsonl") if line["key"] == "k"]
    assert [line["version_id"] for line in lines] == ["null", *ids, marker, last]
    assert [line["delete_marker"] for line in lines] == [False, False, False, True, False]
    files = [line["file"] for line in lines]
    assert files == ["objects/k%v=null", f"objects/k%v={ids[0]}", f"objects/k%v={ids[1]}", None, "objects/k"]
    assert [(out / file).read_bytes() for file in files if file] == [b"null", b"0", b"1", b"last"]
    assert not (out / "objects/gone").exists()
    assert exporter.json(bucket, str(out), "--versions") == {"unchanged": 5, "delete_markers": 2}
    # Without versions there is the current object only.
    assert exporter.json(bucket, str(tmp_path / "current")) == {"exported": 1, "bytes": 4}


def test_a_folder_becomes_an_object_and_prefixes_keep_their_files(exporter: Exporter, here: BaseClient, bucket: str, tmp_path: Path):
    """Files of one key have one name, whatever is exported with it."""
    out = tmp_path / "out"
    here.put_object(Bucket=bucket, Key="a/b/c", Body=b"c")
    assert exporter.json(bucket, str(out)) == {"exported": 1, "bytes": 1}
    here.put_object(Bucket=bucket, Key="a", Body=b"aa")
    assert exporter.json(bucket, str(out)) == {"exported": 1, "unchanged": 1, "bytes": 2}
    assert exporter.json(bucket, str(out), "--prefix", "a/b/") == {"unchanged": 1}
    (line,) = manifest(out / "manifest.jsonl")
    assert line["file"] == "objects/a%d/b/c"


def test_an_auditor_cannot_export(exporter: Exporter, source: Cairn, here: BaseClient, bucket: str, tmp_path: Path):
    """The first object ends the command."""
    for number in range(100):
        here.put_object(Bucket=bucket, Key=str(number), Body=b"x")
    token = expect(source.admin.post("/management-tokens", {"name": "auditor", "role": "auditor"}), 201)["token"]
    done = subprocess.run(
        exporter.command(bucket, str(tmp_path / "out")), env=exporter.environment() | {"SERVICE_MANAGEMENT_TOKEN": token},
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 1 and done.stderr.count("FORBIDDEN") == 1


def test_damaged_objects_are_named_and_the_others_exported(make_store, tmp_path: Path):
    """The exit code is 1, no file of a damaged object exists, and the list of failures says why."""
    store = make_store().start()
    client, body, out = make_client(store.s3), os.urandom(3 << 20), tmp_path / "out"
    client.create_bucket(Bucket="bucket")
    for key, content in (("a", b"intact"), ("b", body), ("c", os.urandom(1 << 20))):
        client.put_object(Bucket="bucket", Key=key, Body=content)
    store.stop()
    ((path, at),) = find_bytes(volumes(store.data), body[2 << 20 : (2 << 20) + 64])
    flip_bit(path, at, 3)
    store.start()
    exporter = Exporter(store, tmp_path)
    done = exporter.run("bucket", str(out))
    assert done.returncode == 1 and "bucket/b" in done.stderr and "1 version was not exported" in done.stderr
    assert [line["key"] for line in manifest(out / "manifest.jsonl")] == ["a", "c"]
    assert sorted(path.name for path in (out / "objects").iterdir()) == ["a", "c"]
    (failure,) = manifest(out / "manifest.jsonl.failed")
    assert failure["key"] == "b" and failure["error"]
    client.put_object(Bucket="bucket", Key="b", Body=body)
    assert exporter.json("bucket", str(out)) == {"exported": 1, "unchanged": 2, "bytes": len(body)}
    assert not (out / "manifest.jsonl.failed").exists()


@pytest.fixture
def gate(source: Cairn, exporter: Exporter) -> Iterator[Gate]:
    """A proxy that holds the server's answers back."""
    with Gate(source.api_port) as gate:
        exporter.relay = gate.endpoint
        yield gate


def begin(exporter: Exporter, bucket: str, out: Path) -> subprocess.Popen:
    """Starts an export of one object after the other."""
    return subprocess.Popen(
        [*exporter.command(bucket, str(out)), "--concurrency", "1"], env=exporter.environment(), cwd=exporter.folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


def test_an_interrupted_export_goes_on(exporter: Exporter, gate: Gate, here: BaseClient, bucket: str, tmp_path: Path):
    """After SIGINT, with 130, and after SIGKILL: whole files stay, and no part of one has a name."""
    size = 1 << 20
    out, bodies = tmp_path / "out", {f"{number:03}": os.urandom(size) for number in range(24)}
    for key, body in bodies.items():
        here.put_object(Bucket=bucket, Key=key, Body=body)
    files = lambda: [path for path in (out / "objects").glob("*") if path.is_file()]
    for sent, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before = len(files())
        gate.hold_after(3 * size + size // 2)
        process = begin(exporter, bucket, out)
        until(lambda: len(files()) > before + 2 or process.poll() is not None, "no file is written")  # noqa: B023
        process.send_signal(sent)
        gate.open()
        process.communicate(timeout=60)
        assert process.returncode == code
        assert before < len(files()) < len(bodies)
        assert all(path.read_bytes() == bodies[path.name] for path in files())
    there = len(files())
    assert exporter.json(bucket, str(out)) == {"exported": len(bodies) - there, "unchanged": there, "bytes": (len(bodies) - there) * size}
    assert sorted(path.name for path in out.iterdir()) == ["manifest.jsonl", "objects"]


def test_wrong_exports_are_refused(exporter: Exporter, here: BaseClient, bucket: str, tmp_path: Path):
    """Before anything is written."""
    here.put_object(Bucket=bucket, Key="a", Body=b"a")
    out = tmp_path / "out"
    assert "BUCKET_NOT_FOUND" in exporter.run("no-such-bucket", str(out)).stderr
    done = exporter.run(bucket, str(out), "--manifest", "-")
    assert done.returncode == 2 and "must be a file" in done.stderr
    assert not out.exists()
    for arguments, text in [(["s3://"], "expected s3://<bucket>"), (["s3://b"], "TARGET_ENDPOINT"), ([str(out), "--to-endpoint", "http://127.0.0.1:1"], "--to-endpoint needs")]:
        done = exporter.run(bucket, *arguments)
        assert done.returncode == 2 and text in done.stderr, done
    exporter.json(bucket, str(out))
    here.create_bucket(Bucket=f"{bucket}-2")
    done = exporter.run(f"{bucket}-2", str(out))
    assert done.returncode == 1 and f"that of the bucket {bucket}" in done.stderr
    (tmp_path / "file").write_text("x")
    assert exporter.run(bucket, str(tmp_path / "file")).returncode == 1
    assert manifest(out / "manifest.jsonl")[0]["key"] == "a"


def test_two_exports_do_not_write_into_one_folder(exporter: Exporter, gate: Gate, here: BaseClient, bucket: str, tmp_path: Path):
    """The second one is refused at once."""
    out = tmp_path / "out"
    here.put_object(Bucket=bucket, Key="large", Body=bytes(8 << 20))
    gate.hold_after(1 << 20)
    process = begin(exporter, bucket, out)
    until(lambda: (out / "temporary/lock").exists() and gate.is_holding(), "the folder is not taken")
    exporter.relay = None
    assert "another export writes into" in exporter.run(bucket, str(out)).stderr
    gate.open()
    process.communicate(timeout=60)
    assert process.returncode == 0
