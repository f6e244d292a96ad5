"""Attacks `cairn serve --dev`: what a newcomer sees first, and what it must not do."""

import filecmp
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from harness.s3 import S3
from harness.server import LOOPBACK, Cairn, ServerError, clean_environment
from harness.sigv4 import Credential

SECRET_NAMES = (
    "SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_ACCESS_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_MANAGEMENT_SYSTEM_TOKEN",
)
DEV = ["serve", "--dev"]


@pytest.fixture
def dev_store(make_store: Callable[..., Cairn]) -> Cairn:
    """A store that is given no secrets."""
    return make_store(**dict.fromkeys(SECRET_NAMES))


LAST_LINE = "/api/v1/system/info"


def start(store: Cairn) -> str:
    """Start and wait until everything has been printed; what was printed."""
    store.start(arguments=DEV)
    return store.wait_output(LAST_LINE)


def printed_keys(output: str) -> tuple[str, str]:
    """The access key and secret as printed for pasting."""
    access = re.search(r"AWS_ACCESS_KEY_ID=['\"]?([A-Za-z0-9]+)", output)
    secret = re.search(r"AWS_SECRET_ACCESS_KEY=['\"]?([A-Za-z0-9/+_=-]+)", output)
    assert access and secret, output
    return access[1], secret[1]


def secret_files(store: Cairn) -> list[Path]:
    """The files at the top of the data folder that hold the printed secret."""
    _, secret = printed_keys(store.output())
    files = [path for path in store.data.iterdir() if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_it_prints_what_to_paste(dev_store: Cairn):
    """Addresses, credentials, client lines; and what is printed works as it stands."""
    output = start(dev_store)
    assert dev_store.endpoint in output and dev_store.management in output
    for tool in ("aws ", "s5cmd", "rclone"):
        assert tool in output, f"no line for {tool}:\n{output}"
    access, secret = printed_keys(output)
    client = boto3.client(
        "s3", endpoint_url=dev_store.endpoint, aws_access_key_id=access, aws_secret_access_key=secret,
        region_name="us-east-1", config=Config(s3={"addressing_style": "path"}),
    )
    client.create_bucket(Bucket="first")
    client.put_object(Bucket="first", Key="k", Body=b"light")
    assert client.get_object(Bucket="first", Key="k")["Body"].read() == b"light"
    assert dev_store.stop() == 0


# Files over the bounds from which the AWS CLI (8 MiB), s5cmd (50 MiB) and rclone (200 and 256 MiB) send parts.
PASTED_SIZES = {"small": 10, "empty": 0, "over-8-MiB": 9_000_000, "over-256-MiB": 270_000_000}


def printed_commands(output: str, without: str) -> str:
    """Everything from the first command on, without the headings (they end with a colon) and without one client.

    The log goes to the same place as the guide here, and its lines may come before or behind: they begin with a time.
    """
    lines = output[output.index("export AWS_ACCESS_KEY_ID") :].splitlines()
    printed = (line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT", line))
    return "\n".join(line for line in printed if not line.endswith(":") and not line.startswith(without))


@pytest.mark.parametrize("without", ["s5cmd ", "nothing "])
def test_every_printed_command_works_as_it_stands(dev_store: Cairn, tmp_path: Path, without: str):
    """Pasted into a shell in a folder with a README.md and a folder: in order, with files of every size.

    Once as printed, and once by someone who has no s5cmd, so that rclone is the first to bring the files.
    """
    output = start(dev_store)
    (tmp_path / "folder").mkdir()
    (tmp_path / "README.md").write_text("read me")
    for name, size in PASTED_SIZES.items():
        (tmp_path / "folder" / name).write_bytes(os.urandom(size))
    (tmp_path / "cairn").symlink_to(dev_store.binary)
    environment = clean_environment() | {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", printed_commands(output, without)], cwd=tmp_path, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "README.copy").read_text() == "read me"
    stored = S3(LOOPBACK, dev_store.s3_port, Credential(*printed_keys(output))).list_all("demo")
    assert {key: size for key, (size, _) in stored.items()} == {
        "README.md": 7, **{f"folder/{name}": size for name, size in PASTED_SIZES.items()}
    }
    for copied in (tmp_path / "copy").glob("*"):
        assert filecmp.cmp(tmp_path / "folder" / copied.name, copied, shallow=False), copied.name
    shutil.rmtree(tmp_path)


def test_secrets_are_kept_for_the_owner_only(dev_store: Cairn):
    """One file of mode 0600, whatever the umask; the same secrets at the next start, and the objects with them."""
    mask = os.umask(0)
    try:
        start(dev_store)
    finally:
        os.umask(mask)
    files = secret_files(dev_store)
    assert len(files) == 1
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    keys, content = printed_keys(dev_store.output()), files[0].read_bytes()
    assert dev_store.stop() == 0
    dev_store.log.unlink()
    start(dev_store)
    assert printed_keys(dev_store.output()) == keys and files[0].read_bytes() == content
    assert dev_store.stop() == 0


def test_two_folders_have_different_secrets(make_store: Callable[..., Cairn]):
    """They are made, not built in."""
    keys = set()
    for _ in range(2):
        store = make_store(**dict.fromkeys(SECRET_NAMES))
        keys.add(printed_keys(start(store)))
        assert store.stop() == 0
    assert len(keys) == 2


@pytest.mark.parametrize("name", ["SERVICE_S3_BIND", "SERVICE_API_BIND", "SERVICE_CONSOLE_BIND"])
@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_it_binds_to_loopback_only(dev_store: Cairn, name: str, address: str):
    """Made-up secrets are not for a network."""
    dev_store.extra[name] = f"{address}:{dev_store.s3_port}"
    with pytest.raises(ServerError):
        dev_store.start(arguments=DEV)
    assert dev_store.process.poll() not in (0, None, 101)
    assert "loopback" in dev_store.output().lower() and name in dev_store.output()


def test_a_secrets_file_open_to_others_is_refused(dev_store: Cairn):
    """Someone may have read it: said, not overlooked."""
    start(dev_store)
    (path,) = secret_files(dev_store)
    assert dev_store.stop() == 0
    path.chmod(0o644)
    with pytest.raises(ServerError):
        dev_store.start(arguments=DEV)
    assert path.name in dev_store.output()
