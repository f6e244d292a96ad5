"""`cairn import settings`: the settings of MinIO's buckets, and what is only proposed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from harness.cli import DONE, FAILED, Cli
from harness.importer import losses
from harness.minio_export import BucketExport, allow, document, lifecycle, notification, object_lock, public_download, write_archive
from harness.server import Cairn

RULE = "<ID>tmp</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>7</Days></Expiration>"
SIZES = "<ID>big</ID><Status>Enabled</Status><Filter><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></Filter><Expiration><Days>7</Days></Expiration>"
SHOP = "arn:minio:sqs::shop:webhook"


@pytest.fixture
def store(make_store: Callable[..., Cairn]) -> Cairn:
    """A server that may send webhooks to this machine."""
    return make_store(SERVICE_WEBHOOKS_ALLOW_HTTP="true", SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS="true").start()


def imported(cli: Cli, archive: Path, *options: str, code: int = DONE) -> dict:
    """Runs the import and returns its report."""
    done = cli.run("import", "settings", str(archive), "--json", *options)
    assert done.returncode == code, done
    report = json.loads(done.stdout)
    assert report["complete"] == (code == DONE)
    return report


def state(store: Cairn) -> dict:
    """Everything that the import could change, without what time changes."""
    admin = store.admin
    buckets = {bucket["name"]: bucket for bucket in admin.get("/buckets").json()["buckets"]}
    rules = {
        name: [{**rule, "status": None} for rule in admin.get(f"/buckets/{name}/lifecycle").json()["rules"]] for name in buckets
    }
    locks = {name: admin.get(f"/buckets/{name}/object-lock").json() for name in buckets}
    tags = {name: admin.get(f"/buckets/{name}/tags").json()["tags"] for name in buckets}
    webhooks = [{**webhook, "health": None} for webhook in admin.get("/webhooks").json()["webhooks"]]
    return {"buckets": buckets, "rules": rules, "locks": locks, "tags": tags, "public": admin.get("/public-access").json(), "webhooks": webhooks}


TAGS = "<Tagging><TagSet><Tag><Key>team</Key><Value>red</Value></Tag><Tag><Key>a b</Key><Value></Value></Tag></TagSet></Tagging>"


def test_settings_arrive(cli: Cli, store: Cairn, tmp_path: Path):
    """Buckets are created with lock and versioning, and get quota, retention and rules. A second run changes nothing."""
    export = BucketExport()
    export.bucket("photos", "Enabled", 1 << 30, lifecycle=lifecycle(RULE), tagging=TAGS)
    export.bucket("locked", "Enabled", object_lock=object_lock("GOVERNANCE", 3))
    export.bucket("paused", "Suspended")
    export.bucket("plain")
    archive = export.write(tmp_path / "buckets.zip")
    before = state(store)
    planned = imported(cli, archive, "--dry-run")
    assert planned["dry_run"] and state(store) == before
    assert imported(cli, archive) | {"dry_run": True} == planned
    after = state(store)
    versioning = {name: (bucket["versioning"], bucket["object_lock"]) for name, bucket in after["buckets"].items()}
    assert versioning == {
        "photos": ("Enabled", False), "locked": ("Enabled", True), "paused": ("Suspended", False), "plain": ("Unversioned", False),
    }
    assert after["buckets"]["photos"]["quota"]["bytes"] == {"mode": "limit", "bytes": 1 << 30}
    assert after["tags"]["photos"] == [{"key": "team", "value": "red"}, {"key": "a b", "value": ""}]
    assert after["locks"]["locked"]["default_retention"] == {"mode": "GOVERNANCE", "days": 3}
    assert [(rule["prefix"], rule["expiration"], rule["enabled"]) for rule in after["rules"]["photos"]] == [("tmp/", 7, True)]
    again = imported(cli, archive)
    assert {line["result"] for line in again["buckets"]} == {"unchanged"} and state(store) == after


def test_public_access_and_webhooks_need_consent(cli: Cli, store: Cairn, tmp_path: Path):
    """Without --accept they are listed, and nothing is public. The URL of a target comes from the person who moves."""
    export = BucketExport()
    created = ("s3:ObjectCreated:*", "s3:ObjectRemoved:*")
    export.bucket("photos", policy=public_download("photos"), notification=notification(SHOP, "in/", *created))
    archive = export.write(tmp_path / "buckets.zip")
    report = imported(cli, archive, code=FAILED)
    public, webhook = report["proposals"]
    assert public == {"kind": "public", "bucket": "photos", "prefix": "", "list": True, "result": "proposed"}
    assert (webhook["target"], webhook["target_url"], webhook["result"]) == ("shop", None, "proposed") and report["losses"] == []
    assert store.s3.put("photos", "a", b"seen").status == 200
    anonymous = f"{store.endpoint}/photos/a"
    assert requests.get(anonymous, timeout=20).status_code == 403 and store.admin.get("/webhooks").json()["webhooks"] == []

    report = imported(cli, archive, "--accept", code=FAILED)
    assert "--webhook shop=<url>" in losses(report)["notification", "photos"]
    assert requests.get(anonymous, timeout=20).content == b"seen" and b"<Key>a</Key>" in requests.get(
        f"{store.endpoint}/photos?list-type=2", timeout=20).content
    accepted = ("--accept", "--webhook", "shop=http://127.0.0.1:9/hook")
    assert {proposal["result"] for proposal in imported(cli, archive, *accepted)["proposals"]} == {"made", "unchanged"}
    (webhook,) = store.admin.get("/webhooks").json()["webhooks"]
    assert webhook["event_types"] == ["object.created", "object.updated", "object.deleted"] and webhook["object_prefix_filter"] == "in/"
    after = state(store)
    assert {proposal["result"] for proposal in imported(cli, archive, *accepted)["proposals"]} == {"unchanged"}
    assert state(store) == after


def test_what_has_no_counterpart_is_named(cli: Cli, store: Cairn, tmp_path: Path):
    """Each by its bucket. Public writes are refused, and the reading part of the same policy is still proposed."""
    export = BucketExport()
    writes = document(allow(["s3:GetObject", "s3:PutObject"], "plain/*", Principal={"AWS": ["*"]}))
    export.bucket(
        "plain", policy=writes, lifecycle=lifecycle(RULE, SIZES), tagging=TAGS.replace("team", "team!"),
        bucket_encryption="<ServerSideEncryptionConfiguration/>", replication="<ReplicationConfiguration/>",
        notification=notification("arn:minio:sqs::k:kafka", "", "s3:ObjectCreated:*"),
    )
    export.files["plain/bucket-targets.json"] = json.dumps({"Targets": [{"credentials": {"accessKey": "a", "secretKey": "hush-hush"}}]})
    export.files["No_Name/versioning.xml"] = "<VersioningConfiguration/>"
    done = cli.run("import", "settings", str(export.write(tmp_path / "buckets.zip")), "--json")
    assert done.returncode == FAILED and "hush" not in done.stdout + done.stderr
    report = json.loads(done.stdout)
    reasons = losses(report)
    for kind, part in (
        ("policy", "s3:PutObject"), ("lifecycle", "the rule big: the filter ObjectSizeGreaterThan"), ("tags", "team!"),
        ("encryption", "whole server"), ("replication", "no replication"), ("notification", "no webhook"),
    ):
        assert part in reasons[kind, "plain"], kind
    assert ("bucket", "No_Name") in reasons
    assert [(proposal["prefix"], proposal["list"]) for proposal in report["proposals"]] == [("", False)]
    assert len(store.admin.get("/buckets/plain/lifecycle").json()["rules"]) == 1


def test_what_a_bucket_has_here_stays(cli: Cli, store: Cairn, tmp_path: Path):
    """A later import neither replaces a setting nor stops versioning; the difference is named."""
    admin = store.admin
    for bucket in ("photos", "locked", "paused"):
        store.s3.create_bucket(bucket)
    admin.put("/buckets/paused/versioning", {"versioning": "Enabled"})
    admin.put("/buckets/photos/tags", {"tags": [{"key": "team", "value": "blue"}]})
    admin.put("/buckets/photos/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 5}, "objects": {"mode": "unlimited"}}})
    before = state(store)
    export = BucketExport()
    export.bucket("photos", quota=1 << 30, tagging=TAGS)
    export.bucket("locked", "Enabled", object_lock=object_lock())
    export.bucket("paused", "Suspended")
    reasons = losses(imported(cli, export.write(tmp_path / "buckets.zip"), code=FAILED))
    assert "another quota" in reasons["quota", "photos"] and "when it is created" in reasons["object_lock", "locked"]
    assert "other tags" in reasons["tags", "photos"]
    assert len(reasons) == 3
    after = state(store)
    assert after["buckets"]["locked"]["versioning"] == "Enabled"
    after["buckets"]["locked"] = before["buckets"]["locked"]
    assert after == before


def test_hostile_archives_are_refused(cli: Cli, store: Cairn, tmp_path: Path):
    """What is no export changes nothing; a document that is none is named, and the others arrive."""
    other = write_archive(tmp_path / "iam.zip", {"iam-assets/users.json": "{}"})
    assert "no export of buckets" in cli.fails("import", "settings", str(other))
    deep = "<a>" * 5000 + "</a>" * 5000
    entity = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]><LifecycleConfiguration>&a;</LifecycleConfiguration>'
    export = BucketExport()
    export.bucket("deep", "Enabled", lifecycle=deep, policy={"Statement": 7})
    export.bucket("entity", quota=7, lifecycle=entity)
    export.files["../../etc/passwd"] = "x"
    export.files["quota/quota.json"] = '{"quota": -1}'
    reasons = losses(imported(cli, export.write(tmp_path / "buckets.zip"), code=FAILED))
    assert {("bucket", ".."), ("lifecycle", "deep"), ("lifecycle", "entity"), ("policy", "deep"), ("quota", "quota")} == set(reasons)
    buckets = {bucket["name"]: bucket for bucket in store.admin.get("/buckets").json()["buckets"]}
    assert set(buckets) == {"deep", "entity", "quota"} and buckets["deep"]["versioning"] == "Enabled"
