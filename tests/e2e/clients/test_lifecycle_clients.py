"""Lifecycle configuration by real clients: AWS CLI, mc and minio-py. Extended mode.

boto3 is in `test_lifecycle_configuration.py`.
"""

import json
from pathlib import Path

import pytest
from minio import Minio
from minio.commonconfig import ENABLED, AndOperator, Filter, Tag, Tags
from minio.lifecycleconfig import Expiration, LifecycleConfig, NoncurrentVersionExpiration, Rule, Transition

from harness.management import expect
from harness.programs import MC
from harness.s3 import S3
from harness.server import Cairn

MINIMUM_SIZE = "all_storage_classes_128K"


@pytest.fixture
def commands(extended_store: Cairn, command_for):
    """Command-line clients of the extended server, with mc's alias `cairn`."""
    made, secrets = command_for(extended_store), extended_store.secrets
    made.environment |= {
        "MC_CONFIG_DIR": f"{made.environment['HOME']}/mc",
        "MC_HOST_cairn": f"http://{secrets.root_access_key}:{secrets.root_secret_key}@{extended_store.s3.authority}",
    }
    return made


def managed(store: Cairn, bucket: str) -> list[dict]:
    """Reads the rules of a bucket on the management plane."""
    return expect(store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]


def test_aws_cli(extended_store: Cairn, extended_bucket: str, commands, tmp_path: Path):
    """Put from a file, get, refusal in words, delete."""
    at = ("--bucket", extended_bucket)
    rules = [
        {"ID": "logs", "Filter": {"Prefix": "logs/"}, "Status": "Enabled", "Expiration": {"Days": 30}},
        {"ID": "tmp", "Filter": {"Tag": {"Key": "k", "Value": "v"}}, "Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
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
    assert [rule["s3_id"] for rule in managed(extended_store, extended_bucket)] == ["logs", "tmp"]
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
    ])
    client.set_bucket_lifecycle(extended_bucket, config)
    logs, both, tag = client.get_bucket_lifecycle(extended_bucket).rules
    assert (logs.rule_id, logs.rule_filter.prefix, logs.expiration.days) == ("logs", "logs/", 30)
    assert (both.rule_filter.and_operator.prefix, dict(both.rule_filter.and_operator.tags)) == ("t/", {"k": "v"})
    assert both.noncurrent_version_expiration.noncurrent_days == 2
    assert (tag.rule_filter.tag.key, tag.rule_filter.tag.value) == ("k", "v")
    tiering = Rule(ENABLED, rule_filter=Filter(prefix=""), rule_id="t", transition=Transition(days=1, storage_class="GLACIER"))
    with pytest.raises(Exception, match="no storage classes"):
        client.set_bucket_lifecycle(extended_bucket, LifecycleConfig([tiering]))
    assert len(managed(extended_store, extended_bucket)) == 3
    client.delete_bucket_lifecycle(extended_bucket)
    assert client.get_bucket_lifecycle(extended_bucket) is None
