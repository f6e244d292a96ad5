"""Stores of earlier formats: run as they are until `cairn storage upgrade`, which only adds, after a trial, and for good."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import old_store
from harness.cli import Cli
from harness.damage import find_bytes, flip_bit, metadata
from harness.lmdb_file import DataFile, record_versions
from harness.management import Management, expect, expect_refusal, with_role
from harness.s3 import object_target, xml
from harness.server import Cairn
from harness.shares import share_object
from harness.wait import until

ARCHIVE = "format-10.tar.xz"
# The tables of format 10 with the versions of their records. A program of that format refuses or loses anything else.
OF_FORMAT_10 = {
    "audit": {"accesses": {1, 2}, "audit": {1}, "bucket_changes": {1, 2}, "events": {1, 2}, "intents": {1, 2}, "object_changes": {1, 2},
              "reads": {1, 2}, "refusals": {1, 2}},
    "control": {"buckets": {1, 2}, "control": {1}, "events": {1}, "lifecycle": {1, 2, 3}, "lifecycle_counts": {1, 2}},
    "identity": {"accounts": {1}, "bindings": {1}, "credentials": {1}, "directory": {1}, "last_used": {1}, "policies": {1}, "tokens": {1}},
    "sharing": {"embed_by_bucket": {1}, "embed_by_object": {1}, "embed_links": {1}, "embed_usage": {1}, "share_by_bucket": {1},
                "share_by_object": {1}, "share_links": {1}, "share_usage": {1}, "store": {1}, "tokens": {1}},
    "slices": {"assembled": {1}, "due": {1}, "due_state": {1, 2}, "events": {1}, "free_map": {1}, "null_versions": {1}, "objects": {1, 2},
               "parts": {1}, "slice": {1}, "uploads": {1}, "usage": {1, 2}},
    "webhooks": {"deliveries": {1}, "health": {1}, "lost": {1}, "pending": {1}, "position": {1}, "removals": {1}, "store": {1},
                 "succeeded": {1}, "unsuccessful": {1}, "waiting": {1}, "webhooks": {1}},
}
# Flags within records that format 11 has added: bit 3 of an object record, bit 6 of an event.
IMPORTED_OBJECT, IMPORTED_EVENT = 1 << 3, 1 << 6
FLAGS_AT = 16 + 1
ADDED = "imports of versions with the ids, dates and entity tags of another store"


@pytest.fixture
def old(run_folder: Path, request: pytest.FixtureRequest) -> tuple[Cairn, dict]:
    """A stopped store of format 10, and what clients saw of it."""
    store, seen = old_store.unpack(ARCHIVE, run_folder / request.node.name)
    yield store, seen
    store.kill()
    subprocess.run(["rm", "-rf", str(store.data)], check=True)


def superblock(store: Cairn) -> bytes:
    """Returns the bytes of the superblock."""
    return (store.data / "superblock.json").read_bytes()


def run(store: Cairn, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a command with the settings of the server."""
    return subprocess.run([store.binary, *arguments], env=store.environment(), capture_output=True, text=True, check=False)


def begin_import(admin: Management):
    """Begins a run of imports."""
    return admin.post("/buckets/versioned/imports", {"source": "https://minio:9000"})


def use(store: Cairn) -> None:
    """Uses all that the program can do with a store of this format."""
    s3, admin = store.s3, store.admin
    for size in (10, 100_000):
        s3.put("plain", f"new {size}", bytes(size), [("x-amz-meta-a", "b")])
        s3.put("versioned", "k", bytes(size))
    s3.delete("plain", "inline")
    s3.delete("versioned", "old/k")
    expect(admin.post("/buckets/versioned/undelete", {"prefix": ""}), 200)
    expect(admin.post("/buckets/versioned/restore", {"at": "2026-01-01T00:00:00Z"}), 200)
    upload = xml(s3.request("POST", object_target("plain", "upload", "uploads"))).findtext("UploadId")
    tag = s3.request("PUT", object_target("plain", "upload", f"partNumber=1&uploadId={upload}"), body=b"part").get("etag")
    body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></CompleteMultipartUpload>"
    assert s3.request("POST", object_target("plain", "upload", f"uploadId={upload}"), body=body.encode()).status == 200
    s3.put("plain", "shared", b"x")
    credential = {"access_key": "given/key@1", "secret_key": "s" * 20}
    expect(admin.post("/service-accounts", {"name": "second", "description": "", "credential": credential}), 201)
    expect(admin.put("/buckets/plain/public-access", {"rules": [{"prefix": "p/", "read": True, "list": True}], "blocked": False}), 200)
    expect(admin.put("/buckets/plain/versioning", {"versioning": "Enabled"}), 200)
    with_role(admin, "auditor")
    share_object(store, "plain", "shared", label="second")


def test_store_of_the_format_before_runs_as_it_is(old: tuple[Cairn, dict]):
    """Nothing is written that a program of that format does not know: no table, no version of a record, no flag, no superblock.

    That such a program opens the store again was seen by hand: building it takes minutes.
    """
    store, seen = old
    before = superblock(store)
    checked = run(store, "check")
    assert "format 10" in checked.stdout and "would raise it to format 11" in checked.stdout and ADDED in checked.stdout
    store.start()
    assert old_store.facts(store) == seen
    message = expect_refusal(begin_import(store.admin), 409, "INVALID_STORE_STATE")
    assert "cairn storage upgrade" in message and "format version 10" in message
    use(store)
    expect(store.admin.post("/storage/compact"), 202)
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
    store.kill()
    store.start()
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
    after = old_store.facts(store)
    assert store.stop() == 0
    assert superblock(store) == before
    # Without a commit log, the data files are complete.
    store.extra["SERVICE_STORAGE_COMMIT"] = "lmdb"
    store.start()
    assert old_store.facts(store) == after
    assert store.stop() == 0
    assert superblock(store) == before
    files = sorted(store.data.rglob("data.mdb"))
    assert len(files) == 7
    for path in files:
        known = OF_FORMAT_10[path.relative_to(store.data).parts[0]] | {"totals": {1}}
        found = record_versions(path)
        assert found.keys() == known.keys(), path
        assert all(found[table] <= versions for table, versions in known.items()), (path, found)
    for path in metadata(store.data):
        tables = DataFile(path).tables()
        assert not any(value[FLAGS_AT] & IMPORTED_OBJECT for value in tables["objects"].values())
        assert tables["events"] and not any(value[FLAGS_AT] & IMPORTED_EVENT for value in tables["events"].values())


def test_upgrade_of_a_running_server_adds_imports_at_once(old: tuple[Cairn, dict]):
    """The dry run makes the trial only. The change is audited, and a second upgrade changes nothing."""
    store, seen = old
    before = superblock(store)
    store.start()
    cli = Cli(store.management, store.secrets.system_token)
    tried = cli.text("storage", "upgrade", "--dry-run")
    assert "from 10 to 11" in tried and ADDED in tried and "no way back" in tried
    assert superblock(store) == before
    expect_refusal(begin_import(store.admin), 409, "INVALID_STORE_STATE")
    done = cli.json("storage", "upgrade", "--json")
    changes = [{"format_version": 11, "adds": ADDED}]
    assert (done["format_version_before"], done["format_version"], done["changes"]) == (10, 11, changes)
    assert superblock(store) == before.replace(b'"format_version": 10', b'"format_version": 11')
    run_id = expect(begin_import(store.admin), 201)["import_id"]
    query = {"import_id": run_id, "version_id": "from-elsewhere", "last_modified": "2020-01-01T00:00:00Z"}
    for key in ("k", "other"):
        path = f"/buckets/versioned/imported-objects/{key}"
        expect(store.admin.request("PUT", path, params=query, data=b"imported"), 201)
    again = cli.json("storage", "upgrade", "--json")
    assert (again["format_version_before"], again["format_version"], again["changes"]) == (11, 11, [])
    # The records of imports are only in the commit logs yet.
    store.kill()
    store.start()
    versions = old_store.facts(store)["versions"]
    assert [entry for entry in versions if entry[2]["VersionId"] != "from-elsewhere"] == seen["versions"]
    assert len(versions) == len(seen["versions"]) + 2
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []
    recorded = expect(store.admin.get("/audit/events?operation=upgrade_storage"), 200)["events"]
    assert len(recorded) == 1 and "10 before, 11 now" in json.dumps(recorded)
    assert "would raise it" not in run(store, "check").stdout


def test_crash_in_the_middle_of_an_upgrade_leaves_a_store_that_opens(old: tuple[Cairn, dict]):
    """Before the rename it has the old format, and after it the new one, whose tables the next start creates."""
    store, seen = old
    before = superblock(store)
    raised = before.replace(b'"format_version": 10', b'"format_version": 11')
    (store.data / "superblock.json.new").write_bytes(raised[:50])
    store.start()
    expect_refusal(begin_import(store.admin), 409, "INVALID_STORE_STATE")
    store.kill()
    (store.data / "superblock.json").write_bytes(raised)
    store.start()
    expect(begin_import(store.admin), 201)
    assert old_store.facts(store) == seen
    assert expect(store.admin.get("/storage/inspect"), 200)["findings"] == []


def test_trial_refuses_a_damaged_store(old: tuple[Cairn, dict]):
    """A damaged record is found before the format changes; the store keeps its format."""
    store, _ = old
    before = superblock(store)
    store.start()
    assert store.stop() == 0
    for path, at in find_bytes(metadata(store.data), old_store.content("k0", 100)[:64]):
        # A byte of the record before its inline payload.
        flip_bit(path, at - 40, 3)
    store.start()
    for body in (None, {"dry_run": True}):
        message = expect_refusal(store.admin.post("/storage/upgrade", body), 409, "INVALID_STORE_STATE")
        assert "inspection" in message
    assert superblock(store) == before
    expect_refusal(store.admin.post("/storage/upgrade", {"dry-run": True}), 400, "INVALID_REQUEST")
    expect_refusal(store.admin.post("/storage/upgrade?x=1"), 400, "INVALID_REQUEST")


def test_stopped_store_is_upgraded_without_secrets(old: tuple[Cairn, dict]):
    """The trial looks for missing files and damaged logs. A store that is open is refused."""
    store, seen = old
    before = superblock(store)
    assert old_store.upgrade(store, "--dry-run").returncode == 0
    assert superblock(store) == before
    volume = store.data / "slices/01/volumes/000000.vol"
    volume.rename(volume.with_suffix(".away"))
    refused = old_store.upgrade(store)
    assert refused.returncode == 1 and "000000.vol" in refused.stderr and superblock(store) == before
    volume.with_suffix(".away").rename(volume)
    store.start()
    assert "another process" in old_store.upgrade(store).stderr and superblock(store) == before
    assert store.stop() == 0
    done = old_store.upgrade(store, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["format_version"] == 11
    store.start()
    assert old_store.facts(store) == seen
    expect(begin_import(store.admin), 201)


def test_format_that_is_too_old_is_refused_with_what_to_do(make_store: Callable[..., Cairn]):
    """The server answers nothing but the reason, as with a store of a later format. The store is not changed."""
    store = make_store().start()
    assert store.stop() == 0
    path = store.data / "superblock.json"
    path.write_text(path.read_text().replace('"format_version": 11', '"format_version": 9'))
    before = superblock(store)
    assert "cairn storage upgrade --data-dir" in run(store, "check").stdout
    store.spawn()
    until(lambda: store.ready_status() is not None, store.output)
    reason = expect(store.admin.get("//ready"), 503)["reason"]
    assert "format version 9" in reason and "runs versions 10 to 11" in reason and "cairn storage upgrade --data-dir" in reason
    assert superblock(store) == before
    store.stop()
    assert old_store.upgrade(store).returncode == 0
    store.start()
