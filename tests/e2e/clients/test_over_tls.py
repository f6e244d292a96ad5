"""Clients over TLS: restic, mc, warp and minio-py, and AWS SDKs that send checksum trailers."""

import hashlib
import io
import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
import urllib3
from botocore.config import Config
from minio import Minio
from minio.commonconfig import GOVERNANCE
from minio.retention import Retention

from harness.boto import PART_BYTES, WHEN_REQUIRED, random_bytes, refused
from harness.certificates import Authority
from harness.folders import digests
from harness.programs import MC, SDK_PROGRAMS, WARP
from harness.server import Cairn

NAME = "localhost"
TRAILER = "Set request_checksum_calculation to when_required"


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Path:
    """The authority's."""
    return authority.certificate


@pytest.fixture
def endpoint(secure: Cairn) -> str:
    """Its address by the name in its certificate."""
    return f"https://{NAME}:{secure.s3_port}"


@pytest.fixture
def over_tls(secure: Cairn, endpoint: str, certificate: Path, command_for, tmp_path: Path):
    """Command-line clients that trust the certificate; mc looks for it in a folder of its own."""
    made = command_for(secure)
    home = Path(made.environment["HOME"])
    trusted = home / "mc" / "certs" / "CAs"
    made.environment |= {
        "AWS_ENDPOINT_URL": endpoint, "AWS_CA_BUNDLE": str(certificate), "NODE_EXTRA_CA_CERTS": str(certificate),
        "RESTIC_REPOSITORY": f"s3:{endpoint}/restic/host", "RESTIC_PASSWORD": "r", "RESTIC_CACHE_DIR": str(home / "cache"),
        "MC_CONFIG_DIR": str(home / "mc"),
        "MC_HOST_cairn": f"https://{secure.secrets.root_access_key}:{secure.secrets.root_secret_key}@{NAME}:{secure.s3_port}",
    }
    trusted.mkdir(parents=True)
    (trusted / "cairn.crt").write_text(certificate.read_text())
    return made


def boto(secure: Cairn, endpoint: str, certificate: Path, **settings: object):
    """boto3 over TLS."""
    config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings)
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", verify=str(certificate), config=config,
        aws_access_key_id=secure.secrets.root_access_key, aws_secret_access_key=secure.secrets.root_secret_key,
    )


def test_restic(over_tls, certificate: Path, folder: Path, tmp_path: Path):
    """A repository from its making to its clean-up; what is restored is what was saved."""
    def restic(*arguments: object) -> str:
        return over_tls.must("restic", "--cacert", certificate, *arguments)

    restic("init")
    restic("backup", folder)
    (folder / "later").write_text("later")
    (folder / "large").write_bytes(random_bytes("changed", 9_000_000))
    restic("backup", folder)
    restic("check", "--read-data")
    assert len(json.loads(restic("snapshots", "--json"))) == 2
    restic("forget", "--keep-last", "1", "--prune")
    assert len(json.loads(restic("snapshots", "--json"))) == 1
    restic("check", "--read-data")
    restic("restore", "latest", "--target", tmp_path / "out")
    assert digests(tmp_path / "out" / str(folder).lstrip("/")) == digests(folder)


def test_mc(over_tls, folder: Path, tmp_path: Path):
    """Files in and out, mirrors, lists, versions, retention and holds."""
    def mc(*arguments: object) -> str:
        return over_tls.must(MC, *arguments)

    assert "Added" in mc("alias", "set", "c", over_tls.environment["AWS_ENDPOINT_URL"], over_tls.environment["AWS_ACCESS_KEY_ID"], over_tls.environment["AWS_SECRET_ACCESS_KEY"])
    mc("mb", "cairn/mc-files")
    mc("cp", folder / "large", "cairn/mc-files/one")
    mc("cp", "-r", f"{folder}/", "cairn/mc-files/tree/")
    # S3 tells dates in seconds, and `mc diff` takes a file of the same second for newer than its copy.
    for path in folder.rglob("*"):
        os.utime(path, (0, path.stat().st_mtime - 60))
    mc("mirror", folder, "cairn/mc-files/mirror")
    mc("mirror", "cairn/mc-files/mirror", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(folder)
    assert mc("diff", folder, "cairn/mc-files/mirror") == ""
    assert '"size":17000000' in mc("stat", "--json", "cairn/mc-files/one")
    mc("get", "cairn/mc-files/one", tmp_path / "got")
    assert hashlib.sha256((tmp_path / "got").read_bytes()).digest() == hashlib.sha256((folder / "large").read_bytes()).digest()
    assert len(mc("ls", "-r", "cairn/mc-files").splitlines()) == 7

    mc("version", "enable", "cairn/mc-files")
    for text in ("first", "second"):
        (tmp_path / "text").write_text(text)
        mc("cp", tmp_path / "text", "cairn/mc-files/text")
    assert len(mc("ls", "--versions", "cairn/mc-files/text").splitlines()) == 2
    assert mc("cat", "cairn/mc-files/text") == "second"

    mc("mb", "--with-lock", "cairn/mc-locked")
    mc("retention", "set", "--default", "governance", "1d", "cairn/mc-locked")
    mc("cp", tmp_path / "text", "cairn/mc-locked/")
    assert "GOVERNANCE" in mc("retention", "info", "cairn/mc-locked/text")
    mc("retention", "set", "governance", "2d", "cairn/mc-locked/text")
    mc("legalhold", "set", "cairn/mc-locked/text")
    assert "ON" in mc("legalhold", "info", "cairn/mc-locked/text")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rm", "cairn/mc-refused/k"], "DeleteObjects is not implemented"),
        (["rm", "-r", "--force", "cairn/mc-refused/"], "DeleteObjects is not implemented"),
        (["rb", "--force", "cairn/mc-refused"], "DeleteObjects is not implemented"),
        (["tag", "set", "cairn/mc-refused/k", "a=b"], "use user metadata"),
        (["anonymous", "set", "download", "cairn/mc-refused"], "Bucket policies are not implemented"),
        (["ilm", "rule", "add", "--expire-days", "3", "cairn/mc-refused"], "Lifecycle configuration through S3 is not implemented"),
    ],
)
def test_unsupported_mc_commands_are_refused(over_tls, arguments: list[str], told: str):
    """mc shows the server's message, and the object stays."""
    over_tls.run(MC, "mb", "--ignore-existing", "cairn/mc-refused")
    over_tls.must("bash", "-c", f"echo -n stays | {MC} pipe cairn/mc-refused/k")
    done = over_tls.run(MC, *arguments)
    assert done.returncode == 1 and told in done.stderr + done.stdout
    assert over_tls.must(MC, "cat", "cairn/mc-refused/k") == "stays"


def test_minio_py_with_a_lock_in_the_put(secure: Cairn, certificate: Path):
    """Over plain HTTP it has no digest that S3 takes for a lock; over TLS it has."""
    client = Minio(
        f"{NAME}:{secure.s3_port}", access_key=secure.secrets.root_access_key, secret_key=secure.secrets.root_secret_key, secure=True,
        region="us-east-1", http_client=urllib3.PoolManager(ca_certs=str(certificate)),
    )
    client.make_bucket("minio-tls", object_lock=True)
    until = datetime.now(UTC) + timedelta(days=1)
    client.put_object("minio-tls", "k", io.BytesIO(b"kept"), 4, retention=Retention(GOVERNANCE, until), legal_hold=True)
    assert client.get_object_retention("minio-tls", "k").mode == GOVERNANCE and client.is_object_legal_hold_enabled("minio-tls", "k")
    client.put_object("minio-tls", "parts", io.BytesIO(b"p" * (2 * PART_BYTES + 1)), -1, part_size=PART_BYTES)
    assert client.stat_object("minio-tls", "parts").size == 2 * PART_BYTES + 1


def test_boto3_checksum_trailers_are_refused_with_a_remedy(secure: Cairn, endpoint: str, certificate: Path):
    """With boto3's defaults the error names the setting to change and nothing is stored. With it uploads work."""
    defaults = boto(secure, endpoint, certificate)
    defaults.create_bucket(Bucket="boto-tls")
    with refused(501, "NotImplemented") as answer:
        defaults.put_object(Bucket="boto-tls", Key="k", Body=b"x")
    assert TRAILER in answer["Error"]["Message"]
    with refused(404, "NoSuchKey"):
        defaults.get_object(Bucket="boto-tls", Key="k")
    required = boto(secure, endpoint, certificate, **WHEN_REQUIRED)
    required.upload_fileobj(io.BytesIO(b"x" * 9_000_000), "boto-tls", "parts")
    assert required.get_object(Bucket="boto-tls", Key="parts")["ContentLength"] == 9_000_000


def test_the_aws_cli_needs_when_required(over_tls, folder: Path, tmp_path: Path):
    """The same of its uploads in one piece and in parts; downloads are as ever."""
    over_tls.must("aws", "s3", "mb", "s3://cli-tls")
    over_tls.must("aws", "s3", "cp", "--recursive", folder, "s3://cli-tls/tree")
    over_tls.must("aws", "s3", "cp", "--recursive", "s3://cli-tls/tree", tmp_path / "back")
    assert digests(tmp_path / "back") == digests(folder)
    del over_tls.environment["AWS_REQUEST_CHECKSUM_CALCULATION"]
    done = over_tls.run("aws", "s3", "cp", folder / "large", "s3://cli-tls/refused")
    assert done.returncode == 1 and TRAILER in done.stderr


def test_the_sdk_for_go_needs_when_required(over_tls, folder: Path):
    """Its default is a trailer over TLS."""
    over_tls.must("aws", "s3", "mb", "s3://go-tls")
    seen = json.loads(over_tls.must(*SDK_PROGRAMS["go"], "multipart", "go-tls", folder / "large"))
    assert seen["digest"] == hashlib.sha256((folder / "large").read_bytes()).hexdigest()
    del over_tls.environment["AWS_REQUEST_CHECKSUM_CALCULATION"]
    done = over_tls.run(*SDK_PROGRAMS["go"], "objects", "go-tls", folder / "large")
    assert done.returncode == 1 and TRAILER in done.stderr


def test_the_sdk_for_javascript_keeps_its_checksum_in_a_header(over_tls, folder: Path):
    """As long as bodies are in memory its defaults work over TLS too."""
    over_tls.must("aws", "s3", "mb", "s3://javascript-tls")
    del over_tls.environment["AWS_REQUEST_CHECKSUM_CALCULATION"]
    seen = json.loads(over_tls.must(*SDK_PROGRAMS["javascript"], "objects", "javascript-tls", folder / "large"))
    assert seen["piece"] == "objects"


def test_s5cmd_and_rclone(over_tls, folder: Path, certificate: Path, tmp_path: Path):
    """Trees in and out as over plain HTTP; s5cmd has no option to trust a certificate but to trust all."""
    s5cmd = ("s5cmd", "--no-verify-ssl", "--endpoint-url", over_tls.environment["AWS_ENDPOINT_URL"])
    over_tls.must(*s5cmd, "mb", "s3://trees-tls")
    over_tls.must(*s5cmd, "cp", f"{folder}/", "s3://trees-tls/s5cmd/")
    over_tls.must(*s5cmd, "cp", "s3://trees-tls/s5cmd/*", f"{tmp_path}/s5cmd/")
    assert digests(tmp_path / "s5cmd") == digests(folder)
    over_tls.environment |= {"RCLONE_S3_ENDPOINT": over_tls.environment["AWS_ENDPOINT_URL"], "RCLONE_CA_CERT": str(certificate)}
    over_tls.must("rclone", "copy", folder, ":s3:trees-tls/rclone")
    over_tls.must("rclone", "check", "--download", folder, ":s3:trees-tls/rclone")


def warp(secure: Cairn, folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """One benchmark of warp, which takes any certificate."""
    command = [
        WARP, *arguments, "--host", f"{NAME}:{secure.s3_port}", "--tls", "--insecure", "--access-key", secure.secrets.root_access_key,
        "--secret-key", secure.secrets.root_secret_key, "--bucket", "warp", "--noclear", "--duration", "1s", "--concurrent", "2",
        "--no-color", "--benchdata", str(folder / arguments[0]),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)


WARP_BENCHMARKS = [
    ("get", "--objects", "20", "--obj.size", "64KiB"), ("put", "--obj.size", "64KiB"), ("stat", "--objects", "20", "--obj.size", "1KiB"),
    ("list", "--objects", "20", "--obj.size", "1KiB"), ("mixed", "--objects", "20", "--obj.size", "16KiB"),
    ("multipart", "--parts", "3", "--part.size", "5MiB"), ("versioned", "--objects", "10", "--obj.size", "1KiB"),
]


@pytest.mark.parametrize("benchmark", WARP_BENCHMARKS, ids=lambda benchmark: benchmark[0])
def test_warp_measures_without_an_error(secure: Cairn, tmp_path: Path, benchmark: tuple[str, ...]):
    done = warp(secure, tmp_path, *benchmark)
    output = done.stdout + done.stderr
    assert done.returncode == 0 and "ERROR" not in output and "Errors:" not in output, output[-3000:]
    assert list(tmp_path.glob(f"{benchmark[0]}*")), "what it has measured is kept"


def test_warp_is_told_that_many_keys_are_not_deleted_at_once(secure: Cairn, tmp_path: Path):
    done = warp(secure, tmp_path, "delete", "--objects", "20", "--batch", "2", "--obj.size", "1KiB")
    assert "DeleteObjects is not implemented" in done.stdout + done.stderr
