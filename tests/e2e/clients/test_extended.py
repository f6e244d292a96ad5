"""Clients at their defaults against the extended mode: `aws-chunked` bodies with checksums after them.

Over TLS the SDKs of AWS send the checksum in a trailer; over plain HTTP minio-go signs each chunk. Nothing here sets
"when required".
"""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config

from harness.boto import PART_BYTES, random_bytes
from harness.certificates import Authority
from harness.folders import digests
from harness.programs import MC, SDK_PROGRAMS
from harness.server import Cairn

NAME = "localhost"


@pytest.fixture(scope="module")
def secure(make_module_store: Callable[..., Cairn], authority: Authority) -> Cairn:
    """An extended server that speaks TLS on the data plane."""
    certificate = authority.issue("server").environment()
    return make_module_store(**certificate, SERVICE_TLS_API_ENABLED="false", SERVICE_S3_COMPATIBILITY="extended").start()


def at_defaults(commands):
    """Removes the settings that clients need on the strict surface."""
    for name in ("AWS_REQUEST_CHECKSUM_CALCULATION", "AWS_RESPONSE_CHECKSUM_VALIDATION"):
        del commands.environment[name]
    return commands


@pytest.fixture
def over_tls(secure: Cairn, authority: Authority, command_for):
    """Command-line clients with their defaults, over TLS."""
    made = at_defaults(command_for(secure))
    endpoint = f"https://{NAME}:{secure.s3_port}"
    bundle = str(authority.certificate)
    made.environment |= {"AWS_ENDPOINT_URL": endpoint, "AWS_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": bundle}
    return made


@pytest.fixture
def over_http(extended_store: Cairn, command_for):
    """Command-line clients with their defaults, over plain HTTP."""
    made = at_defaults(command_for(extended_store))
    secrets = extended_store.secrets
    made.environment |= {
        "RESTIC_REPOSITORY": f"s3:{extended_store.endpoint}/restic/host", "RESTIC_PASSWORD": "r",
        "RESTIC_CACHE_DIR": f"{made.environment['HOME']}/cache", "MC_CONFIG_DIR": f"{made.environment['HOME']}/mc",
        "MC_HOST_cairn": f"http://{secrets.root_access_key}:{secrets.root_secret_key}@{extended_store.s3.authority}",
    }
    return made


def boto_at_defaults(store: Cairn, endpoint: str, **options: object) -> BaseClient:
    """boto3 with nothing set but the address and the style."""
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        aws_access_key_id=store.secrets.root_access_key, aws_secret_access_key=store.secrets.root_secret_key, **options,
    )


@pytest.mark.parametrize("tls", [True, False])
def test_boto3(secure: Cairn, extended_store: Cairn, authority: Authority, folder: Path, tls: bool):
    """One object of each size, a file in parts, every checksum, and a content encoding."""
    if tls:
        client = boto_at_defaults(secure, f"https://{NAME}:{secure.s3_port}", verify=str(authority.certificate))
    else:
        client = boto_at_defaults(extended_store, extended_store.endpoint)
    client.create_bucket(Bucket="boto")
    for size in (0, 1, 300_000, 3 << 20):
        content = random_bytes(size, size)
        put = client.put_object(Bucket="boto", Key="k", Body=content)
        assert put["ChecksumCRC32"] and put["ETag"] == f'"{hashlib.md5(content).hexdigest()}"'
        got = client.get_object(Bucket="boto", Key="k")
        assert got["Body"].read() == content and got["ChecksumCRC32"] == put["ChecksumCRC32"]
    client.upload_file(str(folder / "large"), "boto", "large")
    into = io.BytesIO()
    client.download_fileobj("boto", "large", into)
    assert into.getvalue() == (folder / "large").read_bytes()
    for algorithm in ("SHA1", "SHA256"):
        put = client.put_object(Bucket="boto", Key="k", Body=b"x" * 100_000, ChecksumAlgorithm=algorithm, ContentEncoding="gzip")
        head = client.head_object(Bucket="boto", Key="k", ChecksumMode="ENABLED")
        name = f"Checksum{algorithm}"
        assert (head[name], head["ContentEncoding"], head["ContentLength"]) == (put[name], "gzip", 100_000)
    parts = client.create_multipart_upload(Bucket="boto", Key="parts", ChecksumAlgorithm="CRC32")
    names = {"Bucket": "boto", "Key": "parts", "UploadId": parts["UploadId"]}
    sent = [client.upload_part(**names, PartNumber=number, Body=random_bytes(number, PART_BYTES), ChecksumAlgorithm="CRC32") for number in (1, 2)]
    listed = [{"PartNumber": number, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]} for number, part in enumerate(sent, 1)]
    client.complete_multipart_upload(**names, MultipartUpload={"Parts": listed})
    assert client.head_object(Bucket="boto", Key="parts")["ContentLength"] == 2 * PART_BYTES


def test_the_aws_cli(over_tls, folder: Path, tmp_path: Path):
    """A tree in and out, in one piece and in parts, and an upload from a pipe."""
    over_tls.must("aws", "s3", "mb", "s3://cli")
    over_tls.must("aws", "s3", "cp", "--recursive", folder, "s3://cli/tree")
    over_tls.must("aws", "s3", "cp", "--recursive", "s3://cli/tree", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(folder)
    over_tls.must("bash", "-c", f"aws s3 cp - s3://cli/piped < '{folder}/large'")
    over_tls.must("aws", "s3", "cp", "s3://cli/piped", tmp_path / "piped")
    assert (tmp_path / "piped").read_bytes() == (folder / "large").read_bytes()


def test_the_aws_cli_asks_for_encryption(make_module_store: Callable[..., Cairn], command_for, folder: Path, tmp_path: Path):
    """`--sse`, in one piece, in parts and in a copy. With a key of KMS nothing is stored."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_STORAGE_ENCRYPTION_ENABLED="true").start()
    commands = at_defaults(command_for(store))
    commands.must("aws", "s3", "mb", "s3://sealed")
    for name in ("empty", "large"):
        commands.must("aws", "s3", "cp", "--sse", "AES256", folder / name, f"s3://sealed/{name}")
        commands.must("aws", "s3", "cp", "--sse", "AES256", f"s3://sealed/{name}", f"s3://sealed/copy-{name}")
        for key in (name, f"copy-{name}"):
            head = json.loads(commands.must("aws", "s3api", "head-object", "--bucket", "sealed", "--key", key))
            assert head["ServerSideEncryption"] == "AES256"
            commands.must("aws", "s3", "cp", f"s3://sealed/{key}", tmp_path / key)
            assert (tmp_path / key).read_bytes() == (folder / name).read_bytes()
    refused = commands.run("aws", "s3", "cp", "--sse", "aws:kms", folder / "empty", "s3://sealed/kms")
    assert refused.returncode != 0 and "NotImplemented" in refused.stderr
    assert sorted(store.s3.list_all("sealed")) == ["copy-empty", "copy-large", "empty", "large"]
    rule = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": True}]}
    commands.must("aws", "s3api", "put-bucket-encryption", "--bucket", "sealed", "--server-side-encryption-configuration", json.dumps(rule))
    found = json.loads(commands.must("aws", "s3api", "get-bucket-encryption", "--bucket", "sealed"))
    assert found["ServerSideEncryptionConfiguration"] == rule


def test_mc_asks_for_encryption(make_module_store: Callable[..., Cairn], command_for, folder: Path, tmp_path: Path):
    """`--enc-s3` in one piece and in parts, and the setting of a bucket."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_STORAGE_ENCRYPTION_ENABLED="true").start()
    commands, secrets = at_defaults(command_for(store)), store.secrets
    commands.environment |= {
        "MC_CONFIG_DIR": f"{commands.environment['HOME']}/mc",
        "MC_HOST_cairn": f"http://{secrets.root_access_key}:{secrets.root_secret_key}@{store.s3.authority}",
    }
    commands.must(MC, "mb", "cairn/sealed")
    for name in ("empty", "large"):
        commands.must(MC, "cp", "--enc-s3", "cairn/sealed", folder / name, f"cairn/sealed/{name}")
        assert store.s3.head("sealed", name).get("x-amz-server-side-encryption") == "AES256"
        commands.must(MC, "cp", f"cairn/sealed/{name}", tmp_path / name)
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    commands.must(MC, "encrypt", "set", "sse-s3", "cairn/sealed")
    assert "sse-s3" in commands.must(MC, "encrypt", "info", "cairn/sealed")
    commands.must(MC, "encrypt", "clear", "cairn/sealed")


@pytest.mark.parametrize("sdk", ["javascript", "go"])
def test_sdks(over_tls, folder: Path, sdk: str):
    """Objects in memory and an upload in parts."""
    over_tls.must("aws", "s3", "mb", f"s3://sdk-{sdk}")
    assert json.loads(over_tls.must(*SDK_PROGRAMS[sdk], "objects", f"sdk-{sdk}", folder / "large"))["piece"] == "objects"
    seen = json.loads(over_tls.must(*SDK_PROGRAMS[sdk], "multipart", f"sdk-{sdk}", folder / "large"))
    assert seen["digest"] == hashlib.sha256((folder / "large").read_bytes()).hexdigest()


@pytest.mark.parametrize("place", ["over_tls", "over_http"])
def test_a_stream_of_javascript(request: pytest.FixtureRequest, place: str, folder: Path, tmp_path: Path):
    """Its checksum follows the body, over plain HTTP too."""
    commands = request.getfixturevalue(place)
    commands.must("aws", "s3", "mb", "s3://stream")
    assert json.loads(commands.must(*SDK_PROGRAMS["javascript"], "stream", "stream", folder / "large")) == {"stream": "accepted"}
    commands.must("aws", "s3", "cp", "s3://stream/k", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (folder / "large").read_bytes()


def test_mc_over_http(over_http, folder: Path, tmp_path: Path):
    """minio-go signs every chunk when there is no TLS."""
    over_http.must(MC, "mb", "cairn/mc-http")
    over_http.must(MC, "mirror", folder, "cairn/mc-http/tree")
    over_http.must(MC, "mirror", "cairn/mc-http/tree", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(folder)
    over_http.must("bash", "-c", f"{MC} pipe cairn/mc-http/piped < '{folder}/large'")
    assert over_http.must(MC, "stat", "--json", "cairn/mc-http/piped").count('"size":17000000') == 1


def test_restic_over_http(over_http, folder: Path, tmp_path: Path):
    """A repository without TLS, which needs signed chunks."""
    over_http.must("restic", "init")
    over_http.must("restic", "backup", folder)
    over_http.must("restic", "check", "--read-data")
    over_http.must("restic", "restore", "latest", "--target", tmp_path / "out")
    assert digests(tmp_path / "out" / str(folder).lstrip("/")) == digests(folder)
