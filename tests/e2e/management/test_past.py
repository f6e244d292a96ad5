"""The past of a bucket: a moment, deleted objects, undelete and restore, and the commands for them."""

from pathlib import Path

from harness.cli import Cli
from harness.management import Management, expect, expect_refusal
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until


def moment(admin: Management, bucket: str) -> str:
    """Returns a time after all changes so far: that of a version that nothing else is concerned with. What follows is later."""
    record = admin.put(f"/buckets/{bucket}/object/zz-clock", data=b"")
    time = expect(record, 201)["last_modified"]
    until(lambda: expect(admin.put(f"/buckets/{bucket}/object/zz-clock", data=b""), 201)["last_modified"] > time, "the clock to go on")
    return time


def at(admin: Management, bucket: str, time: str | None = None, **query) -> dict[str, str]:
    """Returns keys and entity tags of a list, at a moment or now."""
    parameters = query | ({"at": time} if time else {})
    found, token = {}, None
    while True:
        page = expect(admin.get(f"/buckets/{bucket}/objects", params=parameters | ({"continuation_token": token} if token else {})), 200)
        found |= {entry["key"]: entry["etag"] for entry in page["objects"] if entry["key"] != "zz-clock"}
        token = page["next_continuation_token"]
        if token is None:
            return found


def changed(admin: Management, s3: S3, bucket: str) -> tuple[dict, str, dict]:
    """Makes a bucket with a past. Returns its objects at a moment, the moment, and its objects now."""
    for key in ("docs/a", "docs/b", "docs/c", "kept", "pics/x"):
        s3.put(bucket, key, key.encode(), headers=[("x-amz-meta-of", "then")])
    for number in range(12):
        s3.put(bucket, "often", b"%d" % number)
    then = at(admin, bucket)
    time = moment(admin, bucket)
    s3.put(bucket, "docs/a", b"overwritten")
    s3.request("DELETE", object_target(bucket, "docs/b"))
    s3.put(bucket, "docs/new", b"new")
    for number in range(70):
        s3.put(bucket, "often", b"later %d" % number)
    s3.request("DELETE", object_target(bucket, "pics/x"))
    s3.request("DELETE", object_target(bucket, "pics/x"))
    return then, time, at(admin, bucket)


def test_lists_metadata_and_content_of_a_moment(admin: Management, s3: S3, versioned: str):
    """Also on pages of one entry, with folders, and for a key with many versions."""
    then, time, now = changed(admin, s3, versioned)
    assert at(admin, versioned, time) == then != now
    assert at(admin, versioned, time, limit=1) == then
    assert at(admin, versioned, time, prefix="docs/") == {key: tag for key, tag in then.items() if key.startswith("docs/")}
    page = expect(admin.get(f"/buckets/{versioned}/objects", params={"at": time, "delimiter": "/"}), 200)
    assert page["common_prefixes"] == ["docs/", "pics/"]
    assert at(admin, versioned, "2001-01-01T00:00:00Z") == {}
    assert at(admin, versioned, "2999-01-01T00:00:00Z") == now
    record = expect(admin.get(f"/buckets/{versioned}/object/docs/a", params={"at": time}), 200)
    assert (record["size"], record["metadata"]) == (6, {"of": "then"})
    content = admin.get(f"/buckets/{versioned}/object-content/often", params={"at": time})
    assert (content.status_code, content.content) == (200, b"11")
    expect_refusal(admin.get(f"/buckets/{versioned}/object/docs/new", params={"at": time}), 404, "OBJECT_NOT_FOUND")
    both = {"at": time, "version_id": record["version_id"]}
    expect_refusal(admin.get(f"/buckets/{versioned}/object/docs/a", params=both), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(f"/buckets/{versioned}/object/docs/a", params={"at": "soon"}), 400, "INVALID_REQUEST")


def test_moments_among_many_imported_versions(admin: Management, s3: S3, versioned: str):
    """By their dates, below many that were written here: the place is found without reading all of them."""
    run = expect(admin.post(f"/buckets/{versioned}/imports", {"source": "http://old.example.com"}), 201)["import_id"]
    dates = [f"2020-01-01T00:{number // 60:02}:{number % 60:02}.000Z" for number in range(150)]
    for number, date in enumerate(dates):
        query = {"import_id": run, "version_id": f"v{number}", "last_modified": date}
        expect(admin.put(f"/buckets/{versioned}/imported-objects/k", params=query, data=b"x" * number), 201)

    def check() -> None:
        for number in (0, 1, 60, 84, 85, 149):
            entry = expect(admin.get(f"/buckets/{versioned}/objects", params={"at": dates[number]}), 200)["objects"][0]
            assert (entry["version_id"], entry["size"]) == (f"v{number}", number)
            found = expect(admin.get(f"/buckets/{versioned}/find", params={"at": dates[number], "max_bytes": number}), 200)["objects"]
            assert [one["version_id"] for one in found] == [f"v{number}"]
            assert expect(admin.get(f"/buckets/{versioned}/object/k", params={"at": dates[number]}), 200)["size"] == number

    check()
    for _ in range(70):
        s3.put(versioned, "k", b"here")
    check()
    assert at(admin, versioned, "2019-12-31T23:59:59.999Z") == {}


def test_deleted_objects_are_listed_and_come_back(admin: Management, s3: S3, versioned: str):
    """With whoever deleted them; two markers over each other are both removed."""
    then, _, _ = changed(admin, s3, versioned)
    page = expect(admin.get(f"/buckets/{versioned}/deleted-objects"), 200)
    assert [(one["key"], one["size"], one["deleted_by"]) for one in page["objects"]] == [("docs/b", 6, "root"), ("pics/x", 6, "root")]
    assert page["next_continuation_token"] is None
    folders = expect(admin.get(f"/buckets/{versioned}/deleted-objects", params={"delimiter": "/"}), 200)
    assert (folders["objects"], folders["common_prefixes"]) == ([], ["docs/", "pics/"])
    first = expect(admin.get(f"/buckets/{versioned}/deleted-objects", params={"limit": 1}), 200)
    rest = {"limit": 1, "continuation_token": first["next_continuation_token"]}
    assert [one["key"] for one in expect(admin.get(f"/buckets/{versioned}/deleted-objects", params=rest), 200)["objects"]] == ["pics/x"]
    late = {"prefix": "", "deleted_since": "2999-01-01T00:00:00Z"}
    assert expect(admin.post(f"/buckets/{versioned}/undelete", late), 200) == {"complete": True, "undeleted": 0, "skipped": 2, "failed": 0}
    named = {"keys": ["pics/x", "kept", "never"]}
    assert expect(admin.post(f"/buckets/{versioned}/undelete", named), 200) == {"complete": True, "undeleted": 1, "skipped": 2, "failed": 0}
    assert expect(admin.post(f"/buckets/{versioned}/undelete", {"prefix": ""}), 200)["undeleted"] == 1
    now = at(admin, versioned)
    assert (now["docs/b"], now["pics/x"]) == (then["docs/b"], then["pics/x"])
    events = expect(admin.get("/events", params={"bucket": versioned, "type": "object.restored"}), 200)["events"]
    assert [(event["object"], event["metadata"]["delete_marker"]) for event in events] == [("pics/x", True), ("docs/b", True)]
    assert expect(admin.get(f"/buckets/{versioned}/deleted-objects"), 200)["objects"] == []
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []
    for body in ({}, {"keys": []}, {"keys": ["a"], "prefix": ""}, {"keys": ["a"], "deleted_since": "2020-01-01T00:00:00Z"}, {"prefix": "", "deleted_since": "x"}):
        expect_refusal(admin.post(f"/buckets/{versioned}/undelete", body), 400, "INVALID_REQUEST")


def test_everybody_who_deleted_is_named(admin: Management, s3: S3, versioned: str):
    """Regression: a marker and its event read the clock apart. Where a millisecond ended in between, the name was missing."""
    for number in range(300):
        s3.put(versioned, f"k{number:03}", b"x")
        s3.delete(versioned, f"k{number:03}")
    found = expect(admin.get(f"/buckets/{versioned}/deleted-objects", params={"limit": 1000}), 200)["objects"]
    assert len(found) == 300 and {one["deleted_by"] for one in found} == {"root"}


def test_a_bucket_is_restored_to_a_moment_and_back(admin: Management, s3: S3, versioned: str):
    """A trial changes nothing, a repetition neither, no version is deleted, and the way back leads to what was there before."""
    then, time, now = changed(admin, s3, versioned)
    before = len(expect(admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"])
    trial = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time, "dry_run": True}), 200)
    actions = {one["key"]: one["action"] for one in trial["sample"] if one["key"] != "zz-clock"}
    assert actions == {"docs/a": "restore", "docs/b": "restore", "docs/new": "delete", "often": "restore", "pics/x": "restore"}
    assert at(admin, versioned) == now
    assert len(expect(admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"]) == before
    done = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time}), 200)
    counted = ("restored", "deleted", "unchanged", "bytes", "failed", "complete")
    assert [done[name] for name in counted] == [trial[name] for name in counted]
    assert at(admin, versioned) == then
    assert expect(admin.get(f"/buckets/{versioned}/object/docs/a"), 200)["metadata"] == {"of": "then"}
    assert len(expect(admin.get(f"/buckets/{versioned}/object-versions"), 200)["versions"]) > before
    again = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time}), 200)
    assert (again["restored"], again["deleted"], again["failed"]) == (0, 0, 0)
    back = expect(admin.post(f"/buckets/{versioned}/restore", {"at": done["undo_at"]}), 200)
    assert back["failed"] == 0
    assert at(admin, versioned) == now
    only = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time, "prefix": "docs/"}), 200)
    assert (only["restored"], only["deleted"]) == (2, 1)
    assert at(admin, versioned)["often"] == now["often"]
    assert expect(admin.get("/storage/inspect"), 200)["findings"] == []
    for body in ({"at": "2999-01-01T00:00:00Z"}, {"at": "soon"}, {}, {"at": time, "more": 1}):
        expect_refusal(admin.post(f"/buckets/{versioned}/restore", body), 400, "INVALID_REQUEST")


def test_quotas_hold(admin: Management, s3: S3, versioned: str):
    """What the quota refuses is counted, and the rest is done."""
    s3.put(versioned, "large", b"x" * 5000)
    s3.put(versioned, "small", b"x")
    s3.request("DELETE", object_target(versioned, "large"))
    s3.request("DELETE", object_target(versioned, "small"))
    expect(admin.put(f"/buckets/{versioned}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 1000}, "objects": {"mode": "unlimited"}}}), 200)
    assert expect(admin.post(f"/buckets/{versioned}/undelete", {"prefix": ""}), 200) == {
        "complete": True, "undeleted": 1, "skipped": 0, "failed": 1,
    }


def test_buckets_without_versions_have_no_past(admin: Management, s3: S3, bucket: str):
    """They say so."""
    s3.put(bucket, "k", b"x")
    time = "2020-01-01T00:00:00Z"
    for path in (f"objects?at={time}", f"object/k?at={time}", f"object-content/k?at={time}", "deleted-objects"):
        expect_refusal(admin.get(f"/buckets/{bucket}/{path}"), 409, "INVALID_BUCKET_STATE")
    expect_refusal(admin.post(f"/buckets/{bucket}/undelete", {"prefix": ""}), 409, "INVALID_BUCKET_STATE")
    expect_refusal(admin.post(f"/buckets/{bucket}/restore", {"at": time}), 409, "INVALID_BUCKET_STATE")


def test_a_restoration_can_keep_newer_objects(admin: Management, s3: S3, versioned: str):
    """They count as unchanged. Undoing it is a restoration of everything."""
    s3.put(versioned, "k", b"old")
    time = moment(admin, versioned)
    for key in ("k", "other"):
        s3.put(versioned, key, b"new")
    done = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time, "keep_newer": True}), 200)
    assert (done["restored"], done["deleted"]) == (1, 0) and done["unchanged"] >= 1
    assert (s3.get(versioned, "k").body, s3.get(versioned, "other").body) == (b"old", b"new")
    expect(admin.post(f"/buckets/{versioned}/restore", {"at": done["undo_at"]}), 200)
    assert (s3.get(versioned, "k").body, s3.get(versioned, "other").body) == (b"new", b"new")


def test_a_restoration_never_replaces_a_version(admin: Management, s3: S3, versioned: str):
    """While versioning is suspended, each write would. So it is refused, also as a trial, and can be made later."""
    s3.put(versioned, "k", b"old")
    time = moment(admin, versioned)
    expect(admin.put(f"/buckets/{versioned}/versioning", {"versioning": "Suspended"}), 200)
    for key in ("k", "other"):
        s3.put(versioned, key, b"new")
    for dry_run in (True, False):
        refused = expect_refusal(admin.post(f"/buckets/{versioned}/restore", {"at": time, "dry_run": dry_run}), 409, "INVALID_BUCKET_STATE")
        assert "enable versioning first" in refused
    assert (s3.get(versioned, "k").body, s3.get(versioned, "other").body) == (b"new", b"new")
    expect(admin.put(f"/buckets/{versioned}/versioning", {"versioning": "Enabled"}), 200)
    done = expect(admin.post(f"/buckets/{versioned}/restore", {"at": time}), 200)
    assert (s3.get(versioned, "k").body, s3.get(versioned, "other").status) == (b"old", 404)
    expect(admin.post(f"/buckets/{versioned}/restore", {"at": done["undo_at"]}), 200)
    assert (s3.get(versioned, "k").body, s3.get(versioned, "other").body) == (b"new", b"new")
    (event, *_) = expect(admin.get(f"/audit/events?operation=restore_bucket&resource={versioned}&result=allowed"), 200)["events"]
    assert event["detail"].startswith("to 20") and " restored" in event["detail"]


def test_the_commands(store: Cairn, admin: Management, s3: S3, bucket: str, tmp_path: Path):
    """protect, ls, get and stat at a moment, undelete, and restore with the line that undoes it."""
    cli = Cli(store.management, store.secrets.system_token)
    for _ in range(2):
        assert "30 days" in cli.text("bucket", "protect", bucket, "--days", "30")
    assert len(expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]) == 1
    other = expect(admin.post(f"/buckets/{bucket}/lifecycle", {"prefix": "tmp/", "noncurrent_version_expiration": 40}), 201)["id"]
    said = cli.text("bucket", "protect", bucket, "--days", "3000")
    assert "3000 days" in said and f'versions below "tmp/" sooner: cairn lifecycle delete {other}' in said
    days = [rule["noncurrent_version_expiration"] for rule in expect(admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]]
    assert sorted(days) == [40, 3000], "the rule of the call before is gone"
    cli.text("lifecycle", "delete", other)
    then, time, now = changed(admin, s3, bucket)
    listed = cli.json("object", "ls", bucket, "--recursive", "--at", time)["objects"]
    assert {one["key"]: one["etag"] for one in listed if one["key"] != "zz-clock"} == then
    cli.text("object", "get", f"{bucket}/docs/a", str(tmp_path / "a"), "--at", time)
    assert (tmp_path / "a").read_bytes() == b"docs/a"
    assert cli.json("object", "stat", f"{bucket}/docs/a", "--at", time)["size"] == 6
    assert "undeleted 1 object" in cli.text("object", "undelete", f"{bucket}/docs/b")
    assert "is not deleted" in cli.fails("object", "undelete", f"{bucket}/docs/b")
    assert "undeleted 1 object" in cli.text("object", "undelete", bucket, "--recursive", "--since", "1h")
    trial = cli.text("bucket", "restore", bucket, "--at", time, "--prefix", "docs/", "--dry-run")
    assert trial.splitlines()[0] == "would restore 1 object (6 B), delete 1, leave 2"
    done = cli.text("bucket", "restore", bucket, "--at", time, "--prefix", "docs/").splitlines()
    assert done[0] == "restored 1 object (6 B), deleted 1, left 2"
    undo = done[1].removeprefix("undo with: cairn ").split()
    cli.text(*undo)
    assert at(admin, bucket)["docs/new"] == now["docs/new"]
