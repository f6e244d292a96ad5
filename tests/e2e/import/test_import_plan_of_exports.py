"""`cairn import plan --iam --settings`: every loss and every wider right by name, before anything moves."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.cli import FAILED
from harness.minio_export import BucketExport, IamExport, allow, document
from harness.server import BINARY, Cairn, clean_environment

SECRET = "the-secret-of-alice"


def plan(source: Cairn, target: Cairn, *options: str) -> subprocess.CompletedProcess:
    """Runs the plan of a move from one store into another."""
    environment = clean_environment() | {
        "SERVICE_MANAGEMENT_TOKEN": target.secrets.system_token,
        "SOURCE_ACCESS_KEY": source.secrets.root_access_key, "SOURCE_SECRET_KEY": source.secrets.root_secret_key,
    }
    command = [BINARY, "import", "plan", "--from", source.endpoint, "--endpoint", target.management, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert SECRET not in done.stdout + done.stderr
    return done


def test_losses_and_wider_rights_are_named(make_store: Callable[..., Cairn], tmp_path: Path):
    """Both archives are read, nothing is changed, and losses are no failure of a plan."""
    source, target = make_store().start(), make_store().start()
    source.s3.create_bucket("photos")
    iam, settings = IamExport(), BucketExport()
    iam.policies["photos"] = document(allow(["s3:GetObject"], "photos/*"))
    iam.policies["jpg"] = document(allow(["s3:GetObject"], "photos/*.jpg"))
    iam.user("alice", SECRET, "photos", "jpg")
    iam.service("CI0000000000000000AB", SECRET, "minioadmin")
    settings.bucket("photos", replication="<ReplicationConfiguration/>")
    options = ("--iam", str(iam.write(tmp_path / "iam.zip")), "--settings", str(settings.write(tmp_path / "buckets.zip")))
    done = plan(source, target, *options, "--json")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    losses = {(loss["kind"], loss["name"]) for loss in report["losses"]}
    service = ("account", "CI0000000000000000AB")
    assert losses == {("policy", "jpg"), ("account", "alice"), service, ("replication", "photos")}
    (wider,) = report["wider"]
    assert (wider["policy"], wider["includes"], wider["resources"]) == ("photos", "s3:GetObject", ["photos/*"])
    assert "s3:GetObjectTagging" in wider["actions"] and [bucket["bucket"] for bucket in report["buckets"]] == ["photos"]

    text = plan(source, target, *options, "--root", "minioadmin").stdout
    assert "will not come: policy jpg" in text and "beside what it was: policy photos on photos/*" in text and service[1] not in text
    assert target.admin.get("/service-accounts").json()["service_accounts"] == [] == target.admin.get("/buckets").json()["buckets"]
    broken = plan(source, target, "--iam", str(tmp_path / "buckets.zip"))
    assert (broken.returncode, broken.stdout) == (FAILED, "") and "is no IAM export" in broken.stderr
