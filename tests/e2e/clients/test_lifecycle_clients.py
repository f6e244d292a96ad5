"""Lifecycle configuration by real clients: AWS CLI, mc and minio-py. Extended mode.

boto3 is in `test_lifecycle_configuration.py`.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from minio import Minio
from minio.commonconfig import ENABLED, AndOperator, Filter, Tag, Tags
from minio.lifecycleconfig import AbortIncompleteMultipartUpload, Expiration, LifecycleConfig, NoncurrentVersionExpiration, Rule, Transition

from harness.management import expect, lifecycle_runs_later
from harness.programs import MC
from harness.s3 import S3
from harness.server import Cairn
from harness.wait import until

MINIMUM_SIZE = "all_storage_classes_128K"


@pytest.fixture(scope="module")
def fast_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """An extended server with days of a second, which applies rules each second."""
    settings = {"SERVICE_LIFECYCLE_DAY_SECONDS": "1", "SERVICE_LIFECYCLE_INTERVAL_SECONDS": "1"}
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", **settings).start()


@pytest.fixture
def commands_for(command_for) -> Callable[[Cairn], object]:
    """Makes command-line clients of a server, with mc's alias `cairn`."""
    def make(store: Cairn) -> object:
        made, secrets = command_for(store), store.secrets
        made.environment |= {
            "MC_CONFIG_DIR": f"{made.environment['HOME']}/mc",
            "MC_HOST_cairn": f"http://{secrets.root_access_key}:{secrets.root_secret_key}@{store.s3.authority}",
        }
        return made

    return make


@pytest.fixture
def commands(extended_store: Cairn, commands_for):
    """Command-line clients of the extended server."""
    return commands_for(extended_store)


def managed(store: Cairn, bucket: str) -> list[dict]:
    """Reads the rules of a bucket on the management plane."""
    return expect(store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]


def test_aws_cli(extended_store: Cairn, extended_bucket: str, commands, tmp_path: Path):
    """Put from a file, get, refusal in words, delete."""
    at = ("--bucket", extended_bucket)
    rules = [
        {"ID": "logs", "Filter": {"Prefix": "logs/"}, "Status": "Enabled", "Expiration": {"Days": 30}},
        {"ID": "tmp", "Filter": {"Tag": {"Key": "k", "Value": "v"}}, "Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
        {"ID": "old form", "Prefix": "old/", "Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
    ]
    put = ("aws", "s3api", "put-bucket-lifecycle-configuration", *at, "--lifecycle-configuration", f"file://{tmp_path}/rules.json")
    (tmp_path / "rules.json").write_text(json.dumps({"Rules": rules}))
    commands.must(*put)
    found = json.loads(commands.must("aws", "s3api", "get-bucket-lifecycle-configuration", *at))
    assert found == {"Rules": rules, "TransitionDefaultMinimumObjectSize": MINIMUM_SIZE}
    tiering = {"Filter": {"Prefix": ""}, "Status": "Enabled", "Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}
    (tmp_path / "rules.json").write_text(json.dumps({"Rules": [*rules, tiering]}))
    refused = commands.run(*put)
    assert refused.returncode != 0 and "no storage classes" in refused.stderr
    assert [rule["s3_id"] for rule in managed(extended_store, extended_bucket)] == ["logs", "tmp", "old form"]
    commands.must("aws", "s3api", "delete-bucket-lifecycle", *at)
    assert managed(extended_store, extended_bucket) == []


def test_mc(extended_store: Cairn, extended_bucket: str, commands):
    """`mc ilm rule` adds to the rules that it reads, edits one by its ID, and removes it."""
    at = f"cairn/{extended_bucket}"
    commands.must(MC, "ilm", "rule", "add", at, "--prefix", "logs/", "--expire-days", "30")
    commands.must(MC, "ilm", "rule", "add", at, "--tags", "k=v&l=w", "--expire-days", "3", "--noncurrent-expire-days", "4", "--noncurrent-expire-newer", "2")
    commands.must(MC, "ilm", "rule", "add", at, "--prefix", "m/", "--expire-delete-marker")
    logs, tagged, markers = managed(extended_store, extended_bucket)
    assert (logs["prefix"], logs["expiration"], logs["tags"]) == ("logs/", 30, [])
    assert sorted((tag["key"], tag["value"]) for tag in tagged["tags"]) == [("k", "v"), ("l", "w")]
    assert (tagged["expiration"], tagged["noncurrent_version_expiration"], tagged["newer_noncurrent_versions"]) == (3, 4, 2)
    assert markers["expired_delete_markers"]
    listed = commands.must(MC, "ilm", "rule", "ls", at)
    assert "logs/" in listed and tagged["s3_id"] in listed
    commands.must(MC, "ilm", "rule", "edit", at, "--id", logs["s3_id"], "--expire-days", "60")
    assert [rule["expiration"] for rule in managed(extended_store, extended_bucket)] == [60, 3, None]
    commands.must(MC, "ilm", "rule", "rm", at, "--id", tagged["s3_id"])
    kept = managed(extended_store, extended_bucket)
    assert [rule["id"] for rule in kept] == [logs["id"], markers["id"]]
    commands.must(MC, "ilm", "rule", "rm", at, "--all", "--force")
    assert managed(extended_store, extended_bucket) == []


def test_minio_py(extended_store: Cairn, extended: S3, extended_bucket: str):
    """Set, get, refusal, delete."""
    keys = extended_store.credential
    client = Minio(extended.authority, access_key=keys.access_key, secret_key=keys.secret_key, secure=False)
    assert client.get_bucket_lifecycle(extended_bucket) is None
    tags = Tags.new_object_tags()
    tags["k"] = "v"
    config = LifecycleConfig([
        Rule(ENABLED, rule_filter=Filter(prefix="logs/"), rule_id="logs", expiration=Expiration(days=30)),
        Rule(ENABLED, rule_filter=Filter(and_operator=AndOperator("t/", tags)), rule_id="both", noncurrent_version_expiration=NoncurrentVersionExpiration(noncurrent_days=2)),
        Rule(ENABLED, rule_filter=Filter(tag=Tag("k", "v")), rule_id="tag", expiration=Expiration(days=1)),
        Rule(ENABLED, rule_filter=Filter(prefix=""), rule_id="up", abort_incomplete_multipart_upload=AbortIncompleteMultipartUpload(days_after_initiation=7)),
    ])
    client.set_bucket_lifecycle(extended_bucket, config)
    logs, both, tag, uploads = client.get_bucket_lifecycle(extended_bucket).rules
    assert (logs.rule_id, logs.rule_filter.prefix, logs.expiration.days) == ("logs", "logs/", 30)
    assert (both.rule_filter.and_operator.prefix, dict(both.rule_filter.and_operator.tags)) == ("t/", {"k": "v"})
    assert both.noncurrent_version_expiration.noncurrent_days == 2
    assert (tag.rule_filter.tag.key, tag.rule_filter.tag.value) == ("k", "v")
    assert (uploads.abort_incomplete_multipart_upload.days_after_initiation, uploads.expiration) == (7, None)
    tiering = Rule(ENABLED, rule_filter=Filter(prefix=""), rule_id="t", transition=Transition(days=1, storage_class="GLACIER"))
    with pytest.raises(Exception, match="no storage classes"):
        client.set_bucket_lifecycle(extended_bucket, LifecycleConfig([tiering]))
    assert len(managed(extended_store, extended_bucket)) == 4
    client.delete_bucket_lifecycle(extended_bucket)
    assert client.get_bucket_lifecycle(extended_bucket) is None


@pytest.mark.parametrize("setter", ["mc", "aws", "minio-py"])
def test_tagged_objects_go_and_others_stay(fast_store: Cairn, commands_for, tmp_path: Path, setter: str):
    """Each client tags objects, with the upload and afterwards; each one sets the rule once."""
    commands, keys, bucket = commands_for(fast_store), fast_store.credential, f"tagged-by-{setter}"
    client = Minio(fast_store.s3.authority, access_key=keys.access_key, secret_key=keys.secret_key, secure=False)
    fast_store.s3.create_bucket(bucket)
    (tmp_path / "file").write_bytes(b"12345")
    kind, other = Tags.new_object_tags(), Tags.new_object_tags()
    kind["kind"], other["kind"] = "temporary", "lasting"

    def mc(*words: object) -> None:
        commands.must(MC, *words)

    def aws(operation: str, key: str, *words: object) -> None:
        commands.must("aws", "s3api", operation, "--bucket", bucket, "--key", key, *words)

    mc("cp", "-q", "--tags", "kind=temporary", tmp_path / "file", f"cairn/{bucket}/mc-tagged")
    mc("cp", "-q", tmp_path / "file", f"cairn/{bucket}/mc-tagged-later")
    mc("tag", "set", f"cairn/{bucket}/mc-tagged-later", "kind=temporary&more=x")
    mc("cp", "-q", "--tags", "kind=lasting", tmp_path / "file", f"cairn/{bucket}/mc-kept")
    aws("put-object", "aws-tagged", "--body", tmp_path / "file", "--tagging", "kind=temporary")
    aws("put-object", "aws-kept", "--body", tmp_path / "file")
    aws("put-object-tagging", "aws-kept", "--tagging", "TagSet=[{Key=other,Value=temporary}]")
    client.fput_object(bucket, "minio-tagged", str(tmp_path / "file"), tags=kind)
    client.fput_object(bucket, "minio-untagged", str(tmp_path / "file"), tags=kind)
    client.delete_object_tags(bucket, "minio-untagged")
    client.fput_object(bucket, "minio-kept", str(tmp_path / "file"), tags=other)
    kept = ["aws-kept", "mc-kept", "minio-kept", "minio-untagged"]
    assert sorted(fast_store.s3.list_all(bucket)) == sorted([*kept, "aws-tagged", "mc-tagged", "mc-tagged-later", "minio-tagged"])

    if setter == "mc":
        mc("ilm", "rule", "add", f"cairn/{bucket}", "--tags", "kind=temporary", "--expire-days", "1")
    elif setter == "aws":
        rule = {"ID": "r", "Filter": {"Tag": {"Key": "kind", "Value": "temporary"}}, "Status": "Enabled", "Expiration": {"Days": 1}}
        words = ("--bucket", bucket, "--lifecycle-configuration", json.dumps({"Rules": [rule]}))
        commands.must("aws", "s3api", "put-bucket-lifecycle-configuration", *words)
    else:
        rule = Rule(ENABLED, rule_filter=Filter(tag=Tag("kind", "temporary")), rule_id="r", expiration=Expiration(days=1))
        client.set_bucket_lifecycle(bucket, LifecycleConfig([rule]))
    until(lambda: sorted(fast_store.s3.list_all(bucket)) == kept, lambda: fast_store.s3.list_all(bucket))
    lifecycle_runs_later(fast_store.admin, 2)
    assert sorted(fast_store.s3.list_all(bucket)) == kept, "an object without the tag went too"
