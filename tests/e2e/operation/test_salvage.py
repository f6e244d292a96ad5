"""`cairn salvage`: files of a stopped store, their names and lists, and what is refused. Random damage is in `campaigns`."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import old_store
from harness.folders import digests
from harness.management import expect
from harness.s3 import object_target, xml
from harness.server import Cairn, clean_environment

KEYS = ("a", "a/b", "../../etc/passwd", "/", "a//b", ".", "ü/🌍 \n%2F", "é" * 300, "x" * 1000, "CON", "a:b*?", "end. ")


def salvage(store: Cairn, to: Path, *options: str, key: str | None = None) -> subprocess.CompletedProcess:
    """Runs the command. Its environment has no secret but the master key, if it is given."""
    environment = clean_environment() | ({"SERVICE_CREDENTIAL_MASTER_KEY": key} if key else {})
    command = [str(store.binary), "salvage", "--data-dir", str(store.data), "--to", str(to), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def lines(path: Path) -> list[dict]:
    """Reads a list."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def filled(make_store: Callable[..., Cairn]) -> Cairn:
    """A stopped store with hostile keys."""
    store = make_store().start()
    store.s3.create_bucket("hostile")
    for number, key in enumerate(KEYS):
        store.s3.put("hostile", key, f"content {number}".encode(), [("x-amz-meta-n", str(number)), ("content-type", "text/x-test")])
    store.s3.create_bucket("other")
    store.s3.put("other", "k", b"k" * 100_000)
    assert store.stop() == 0
    return store


def test_whole_store_becomes_files_with_their_keys(filled: Cairn, tmp_path: Path):
    """Each content is in a file of its own below its bucket, whatever its key. The store stays as it is, to the byte."""
    before = digests(filled.data)
    out = tmp_path / "out"
    done = salvage(filled, out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"files": 13, "bytes": sum(len(f"content {n}") for n in range(12)) + 100_000,
                                       "delete_markers": 0, "uncertain": 0, "lost": 0}
    assert digests(filled.data) == before
    assert (out / "damaged.jsonl").read_text() == ""
    found = {(line["bucket"], line["key"]): line for line in lines(out / "manifest.jsonl")}
    assert len(found) == 13
    for number, key in enumerate(KEYS):
        line = found["hostile", key]
        path = (out / line["file"]).resolve()
        assert path.is_relative_to((out / "objects/hostile").resolve()), line
        assert path.read_bytes() == f"content {number}".encode()
        assert line["headers"]["x-amz-meta-n"] == str(number) and line["headers"]["content-type"] == "text/x-test"
        assert line["version_id"] == "null" and line["is_latest"] and line["certain"] and not line["delete_marker"]
    assert (out / "objects/other/k").read_bytes() == b"k" * 100_000
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) == 13 + 2 and all(path.stat().st_mode & 0o77 == 0 for path in files)


def test_only_one_bucket_and_what_is_refused(filled: Cairn, tmp_path: Path):
    """Nothing is written into the store, into a folder with something in it, or while a server runs."""
    out = tmp_path / "out"
    assert salvage(filled, out, "--bucket", "other").returncode == 0
    assert [(line["bucket"], line["key"]) for line in lines(out / "manifest.jsonl")] == [("other", "k")]
    assert "not empty" in salvage(filled, out).stderr
    unknown = salvage(filled, tmp_path / "unknown", "--bucket", "no-such-bucket")
    assert unknown.returncode == 1 and "has no bucket no-such-bucket" in unknown.stderr and not (tmp_path / "unknown").exists()
    # It was read as if this program had written it.
    superblock = filled.data / "superblock.json"
    text = superblock.read_text()
    superblock.write_text(json.dumps(json.loads(text) | {"format_version": 1000}))
    later = salvage(filled, tmp_path / "later")
    assert later.returncode == 1 and "use a newer program" in later.stderr and "move superblock.json away" in later.stderr
    assert not (tmp_path / "later").exists()
    superblock.write_text(text)
    before = digests(filled.data)
    inside = salvage(filled, filled.data / "slices" / "out")
    assert inside.returncode == 1 and "data folder" in inside.stderr and digests(filled.data) == before
    filled.start()
    running = salvage(filled, tmp_path / "running")
    assert running.returncode == 1 and "another process" in running.stderr and not (tmp_path / "running").exists()
    assert filled.stop() == 0
    filled.data = tmp_path / "nothing"
    nothing = salvage(filled, tmp_path / "none")
    assert nothing.returncode == 1 and "holds no store" in nothing.stderr


def test_versions_parts_and_sealed_contents_of_a_killed_store(run_folder: Path, tmp_path: Path):
    """Its commit logs have changes that the data files do not have. Sealed contents need the master key."""
    store, seen = old_store.unpack("format-10.tar.xz", run_folder / "salvage-old")
    key = store.secrets.master_key
    for number, (given, code) in enumerate(((key, 0), (None, 1), ("another key, long enough", 1))):
        out = tmp_path / str(number)
        done = salvage(store, out, key=given)
        assert done.returncode == code, done.stderr
        found = {(line["bucket"], line["key"], line["version_id"]): line for line in lines(out / "manifest.jsonl")}
        losses = {(loss["bucket"], loss["key"]) for loss in lines(out / "damaged.jsonl")}
        assert losses == (set() if code == 0 else {("plain", "sealed inline"), ("plain", "sealed blocks")})
        for bucket, kind, fields, digest in seen["versions"]:
            if (bucket, fields["Key"]) in losses:
                continue
            line = found.pop((bucket, fields["Key"], fields["VersionId"]))
            assert line["delete_marker"] == (kind == "DeleteMarker")
            assert line["is_latest"] == (fields["IsLatest"] == "true")
            assert line["last_modified"][:19] == fields["LastModified"][:19]
            if digest:
                assert old_store.sha256((out / line["file"]).read_bytes()).hexdigest() == digest
                assert f'"{line["etag"]}"' == fields["ETag"] and str(line["size"]) == fields["Size"]
        assert not found
    shutil.rmtree(store.folder)


def test_store_without_catalog_superblock_and_free_map_is_salvaged(filled: Cairn, tmp_path: Path):
    """Buckets are called by their ids then, and all that is missing is named."""
    shutil.rmtree(filled.data / "control")
    (filled.data / "superblock.json").write_text("{")
    (filled.data / "lock").unlink()
    for path in filled.data.glob("slices/*/volumes/*.vol"):
        with path.open("r+b") as file:
            file.write(bytes(4096))
    done = salvage(filled, tmp_path / "out")
    assert done.returncode == 1
    assert len(lines(tmp_path / "out/manifest.jsonl")) == 13
    assert (tmp_path / "out/objects/bucket-2/k").read_bytes() == b"k" * 100_000
    reasons = " ".join(loss["reason"] for loss in lines(tmp_path / "out/damaged.jsonl"))
    assert "superblock" in reasons and "catalog of buckets" in reasons
    assert not (filled.data / "lock").exists()


def test_lost_slice_and_volume_are_named(filled: Cairn, tmp_path: Path):
    """The objects of a slice without metadata cannot be named; those in a lost volume can. A commit log alone brings many back."""
    (filled.data / "slices/00/meta/data.mdb").rename(tmp_path / "data.mdb")
    assert salvage(filled, tmp_path / "log").returncode == 1
    assert len(lines(tmp_path / "log/manifest.jsonl")) == 13
    (tmp_path / "data.mdb").rename(filled.data / "slices/00/meta/data.mdb")
    for name in ("data.mdb", "commit.log"):
        (filled.data / "slices/00/meta" / name).unlink()
    for path in filled.data.glob("slices/01/volumes/*.vol"):
        path.unlink()
    assert salvage(filled, tmp_path / "out").returncode == 1
    losses = lines(tmp_path / "out/damaged.jsonl")
    assert any(loss.get("slice") == 0 and "data.mdb cannot be read" in loss["reason"] for loss in losses)
    found = {line["key"] for line in lines(tmp_path / "out/manifest.jsonl")}
    assert "k" not in found and 0 < len(found) < 12


def test_unfinished_uploads_are_no_objects(make_store: Callable[..., Cairn], tmp_path: Path):
    """Only completed ones are."""
    store = make_store().start()
    store.s3.create_bucket("unfinished")
    upload = xml(store.s3.request("POST", object_target("unfinished", "k", "uploads"))).findtext("UploadId")
    assert store.s3.request("PUT", object_target("unfinished", "k", f"partNumber=1&uploadId={upload}"), body=b"x").status == 200
    expect(store.admin.get("/storage/inspect"), 200)
    store.kill()
    assert salvage(store, tmp_path / "out").returncode == 0
    assert lines(tmp_path / "out/manifest.jsonl") == []
