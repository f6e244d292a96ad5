"""`cairn app create`: one command, and an application has its bucket, its rights, and settings that work when they are pasted."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
import requests
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.boto import WHEN_REQUIRED
from harness.cli import FAILED, WRONG_USAGE, Cli
from harness.management import bearer, expect
from harness.server import BINARY, Cairn, clean_environment

SECONDS = 60


@pytest.fixture
def store(own_store: Cairn) -> Cairn:
    """Each test has a store of its own."""
    return own_store


def client_of(made: dict) -> BaseClient:
    """boto3 with the printed endpoint, region and keys."""
    return boto3.client(
        "s3", endpoint_url=made["endpoint"], region_name=made["region"], aws_access_key_id=made["access_key"], aws_secret_access_key=made["secret_key"],
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 1, "mode": "standard"}, **WHEN_REQUIRED),
    )


def state(store: Cairn) -> dict:
    """Everything that the command could change."""
    lists = {name: expect(store.admin.get(path), 200) for name, path in (("buckets", "/buckets"), ("accounts", "/service-accounts"), ("policies", "/policies"))}
    for bucket in lists["buckets"]["buckets"]:
        bucket.pop("usage", None)
    for account in lists["accounts"]["service_accounts"]:
        for credential in account["credentials"]:
            credential.pop("last_used_at")
    return lists


def refused(call: Callable, **parameters: object) -> str:
    """The code of the error with which a request must fail."""
    with pytest.raises(ClientError) as error:
        call(**parameters)
    return error.value.response["Error"]["Code"]


def test_the_printed_keys_work_within_the_prefix_only(cli: Cli, store: Cairn):
    """The default rights read, write, list and delete below the prefix. Nothing else is allowed, and no other bucket."""
    expect(store.admin.post("/buckets", {"name": "others"}), 201)
    made = cli.json("app", "create", "blog", "--bucket", "blog-media", "--prefix", "media/")
    assert made["endpoint"] == store.endpoint and made["changed"] is True and made["rights"] == "read-write" and made["client"] is None
    s3 = client_of(made)
    s3.put_object(Bucket="blog-media", Key="media/a", Body=b"text")
    assert s3.get_object(Bucket="blog-media", Key="media/a")["Body"].read() == b"text"
    assert [item["Key"] for item in s3.list_objects_v2(Bucket="blog-media", Prefix="media/")["Contents"]] == ["media/a"]
    for bucket, key in (("blog-media", "other/a"), ("blog-media", "medi"), ("others", "media/a")):
        assert refused(s3.put_object, Bucket=bucket, Key=key, Body=b"x") == "AccessDenied"
        assert refused(s3.get_object, Bucket=bucket, Key=key) == "AccessDenied"
    s3.delete_object(Bucket="blog-media", Key="media/a")
    shown = cli.text("service-account", "show", "blog")
    assert made["access_key"] in shown and "blog" in cli.text("policy", "list")


def test_a_second_run_changes_nothing_and_says_so(cli: Cli, store: Cairn):
    """The secret is not shown again; the settings keep the word for it, and the answer names the command that makes another key."""
    options = ("app", "create", "shop", "--bucket", "shop", "--rights", "read-write")
    first = cli.json(*options)
    before = state(store)
    text = cli.text("app", "create", "shop", "--bucket", "shop", "--client", "rclone")
    assert "nothing was changed" in text and f"cairn service-account rotate {first['service_account_id']}" in text
    assert f"access_key_id = {first['access_key']}" in text and "secret_access_key = SECRET_KEY" in text and first["secret_key"] not in text
    second = cli.json(*options)
    assert (second["changed"], second["created"], second["secret_key"], second["access_key"]) == (False, [], None, first["access_key"])
    assert state(store) == before
    assert "access key" in cli.text("service-account", "rotate", first["service_account_id"])
    assert client_of(first).list_objects_v2(Bucket="shop")["KeyCount"] == 0


def test_a_second_run_says_what_keeps_the_application_from_working(cli: Cli):
    """A disabled account, and one without a valid access key."""
    options = ("app", "create", "idle", "--bucket", "idle")
    account = cli.json(*options)["service_account_id"]
    cli.text("service-account", "disable", account)
    text = cli.text(*options)
    assert "cannot work: its account is disabled" in text and f"cairn service-account enable {account}" in text
    cli.text("service-account", "enable", account)
    (credential,) = cli.json("service-account", "show", account)["credentials"]
    cli.text("service-account", "credential", "delete", account, credential["id"])
    assert f"no valid access key; `cairn service-account rotate {account}` makes one" in cli.text(*options)


def test_the_same_name_with_other_options_is_refused(cli: Cli, store: Cairn):
    """The message says what differs; nothing is made, not even a bucket."""
    cli.json("app", "create", "shop", "--bucket", "shop")
    before = state(store)
    message = cli.fails("app", "create", "shop", "--bucket", "store", "--prefix", "a/", "--rights", "read-only")
    assert "--bucket is shop, not store" in message and '--prefix is "", not a/' in message and "--rights is read-write, not read-only" in message
    message = cli.fails("app", "create", "shop", "--bucket", "shop", "--rights", "create-only")
    assert "--rights is read-write, not create-only" in message and "--bucket" not in message and "nothing was changed" in message
    assert state(store) == before


def test_what_others_made_is_left_alone(cli: Cli, store: Cairn):
    """An account of the same name that is no application, and a policy of the same name that says something else."""
    cli.text("service-account", "create", "web")
    cli.text("policy", "create", "--template", "read-only", "--bucket", "docs", "--name", "docs")
    before = state(store)
    assert "was not made by `cairn app create`" in cli.fails("app", "create", "web", "--bucket", "web")
    message = cli.fails("app", "create", "docs", "--bucket", "docs")
    assert "the policy docs does not say read-write on docs/*" in message and "cairn policy show" in message
    cli.text("policy", "create", "--template", "read-only", "--bucket", "docs", "--name", "docs")
    assert "several policies" in cli.fails("app", "create", "docs", "--bucket", "docs", "--rights", "read-only")
    after = state(store)
    assert (after["buckets"], after["accounts"]) == (before["buckets"], before["accounts"])


def test_create_only_writes_new_objects_and_nothing_else(cli: Cli, store: Cairn):
    """It can neither overwrite nor delete."""
    s3 = client_of(cli.json("app", "create", "archive", "--bucket", "archive", "--rights", "create-only"))
    s3.put_object(Bucket="archive", Key="a", Body=b"first")
    assert refused(s3.put_object, Bucket="archive", Key="a", Body=b"second") == "PreconditionFailed"
    assert refused(s3.delete_object, Bucket="archive", Key="a") == "AccessDenied"
    assert s3.get_object(Bucket="archive", Key="a")["Body"].read() == b"first"
    s3 = client_of(cli.json("app", "create", "reader", "--bucket", "archive", "--rights", "read-only"))
    assert s3.get_object(Bucket="archive", Key="a")["Body"].read() == b"first"
    assert refused(s3.put_object, Bucket="archive", Key="b", Body=b"x") == "AccessDenied"


@pytest.mark.parametrize("lost", ["policy", "bucket", "account"])
def test_the_next_run_completes_an_interrupted_one(cli: Cli, store: Cairn, lost: str):
    """What is missing is made. If the policy was, nobody has seen the keys of the account: it gets others, which are shown."""
    options = ("app", "create", "photos", "--bucket", "photos", "--prefix", "2026/")
    first = cli.json(*options)
    if lost == "policy":
        cli.text("policy", "detach", "photos", "photos")
        cli.text("policy", "delete", "photos")
    elif lost == "bucket":
        cli.text("bucket", "delete", "photos")
    else:
        cli.text("service-account", "delete", "photos")
    second = cli.json(*options)
    assert second["changed"] is True and any(lost in made for made in second["created"])
    if lost == "bucket":
        assert second["secret_key"] is None and second["access_key"] == first["access_key"]
    else:
        assert second["access_key"] != first["access_key"]
    keys = first if lost == "bucket" else second
    client_of(keys).put_object(Bucket="photos", Key="2026/a", Body=b"x")
    assert cli.json(*options)["changed"] is False


def test_wrong_input_makes_nothing(cli: Cli, store: Cairn):
    """Each is refused with its reason, before the first request that changes something."""
    before = state(store)
    create = ("app", "create", "shop", "--bucket", "shop")
    message = cli.fails(*create, "--client", "djagno", code=WRONG_USAGE)
    assert "did you mean" in message and "aws-cli, boto3," in message
    assert "clients are" in cli.fails(*create, "--client", "nothing-like-it", code=WRONG_USAGE)
    for bucket in ("app-*", "A", "x/y"):
        assert "--bucket" in cli.fails("app", "create", "shop", "--bucket", bucket, code=WRONG_USAGE)
    for prefix in ("a*", "a\nb", "x" * 513):
        assert "--prefix" in cli.fails(*create, "--prefix", prefix, code=WRONG_USAGE)
    assert "read-only, read-write or create-only" in cli.fails(*create, "--rights", "all", code=WRONG_USAGE)
    assert "--endpoint-url" in cli.fails(*create, "--endpoint-url", "s3.example.org", code=WRONG_USAGE)
    assert "INVALID_REQUEST" in cli.fails("app", "create", " shop", "--bucket", "shop")
    assert "INVALID_REQUEST" in cli.fails("app", "create", "shop", "--bucket", "192.168.1.1")
    auditor = expect(store.admin.post("/management-tokens", {"name": "a", "role": "auditor", "expires_in_seconds": 600}), 201)["token"]
    assert "FORBIDDEN" in Cli(store.management, auditor).fails(*create)
    assert state(store) == before


def test_the_settings_work_when_they_are_pasted(cli: Cli):
    """The lines of boto3 are a program; the keys, the bucket and the prefix are filled in for others."""
    made = cli.json("app", "create", "pasted", "--bucket", "pasted", "--prefix", "in/here/", "--client", "boto3")
    (block,) = made["client"]["settings"]
    code = block["text"] + 's3.put_object(Bucket="pasted", Key="in/here/a", Body=b"x")\nprint(s3.get_object(Bucket="pasted", Key="in/here/a")["Body"].read())\n'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, env={})
    assert (done.returncode, done.stdout) == (0, "b'x'\n"), done.stderr
    text = cli.text("app", "create", "kept", "--bucket", "kept-here", "--prefix", "in/here/", "--client", "restic")
    assert re.search(r"export AWS_ACCESS_KEY_ID=[A-Z0-9]{20}\n +export AWS_SECRET_ACCESS_KEY=[A-Za-z0-9]{40}\n", text), text
    assert "/kept-here/in/here -o s3.bucket-lookup=path" in text and "The secret key is shown only once" in text
    assert "no place for the prefix" not in text
    assert "no place for the prefix odd name/" in cli.text("app", "create", "odd", "--bucket", "odd", "--prefix", "odd name/", "--client", "restic")


def test_a_secret_that_could_not_be_written_is_named(cli: Cli, store: Cairn):
    """The output is full: the message says how to get another key, and the next run finds everything done."""
    words = [BINARY, "app", "create", "gone", "--bucket", "gone", "--endpoint", cli.endpoint]
    environment = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    made = cli.json("app", "create", "gone", "--bucket", "gone")
    assert done.returncode == FAILED and f"cairn service-account rotate {made['service_account_id']}" in done.stderr
    assert made["changed"] is False


def test_the_endpoint_is_what_the_server_says(make_store: Callable[..., Cairn]):
    """`server.s3_url`, or the listener; for a listener of all addresses the host of the request. `--endpoint-url` comes before all."""
    store = make_store(SERVICE_SERVER_S3_URL="https://s3.example.org/").start()
    info = expect(store.admin.get("/system/info"), 200)
    assert info["s3_endpoint"] == "https://s3.example.org"
    cli = Cli(store.management, store.secrets.system_token)
    made = cli.json("app", "create", "a", "--bucket", "aaa", "--client", "aws-cli")
    assert made["endpoint"] == "https://s3.example.org" and "endpoint_url = https://s3.example.org\n" in json.dumps(made).replace("\\n", "\n")
    assert cli.json("app", "create", "b", "--bucket", "bbb", "--endpoint-url", "http://10.0.0.1:9000")["endpoint"] == "http://10.0.0.1:9000"


def test_a_listener_of_all_addresses_has_the_host_of_the_request(make_store: Callable[..., Cairn]):
    """An address that means all of them is of no use to an application."""
    store = make_store(SERVICE_S3_BIND="0.0.0.0:0").start()
    headers = bearer(store.secrets.system_token)
    for host, expected in (("store.example:7601", "http://store.example:"), ("[::1]:7601", "http://[::1]:")):
        found = requests.get(f"{store.management}/api/v1/system/info", headers=headers | {"Host": host}, timeout=SECONDS).json()["s3_endpoint"]
        assert found.startswith(expected) and found.removeprefix(expected).isdigit()
