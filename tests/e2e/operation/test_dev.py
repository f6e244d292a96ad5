"""`cairn serve --dev`: printed credentials and commands, secrets file, loopback only."""

import contextlib
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
import requests
from botocore.config import Config

from harness.s3 import S3
from harness.server import BINARY, LOOPBACK, Cairn, ServerError, clean_environment
from harness.sigv4 import Credential

SECRET_NAMES = (
    "SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_ACCESS_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_MANAGEMENT_SYSTEM_TOKEN",
)
DEV = ["serve", "--dev"]


@pytest.fixture
def dev_store(make_store: Callable[..., Cairn]) -> Cairn:
    """A store without configured secrets."""
    return make_store(**dict.fromkeys(SECRET_NAMES))


LAST_LINE = "/api/v1/system/info"
END_SECONDS = 60


def start(store: Cairn) -> str:
    """Starts the server and waits until everything is printed. Returns the output."""
    store.start(arguments=DEV)
    return store.wait_output(LAST_LINE)


def printed_keys(output: str) -> tuple[str, str]:
    """Returns the printed access key and secret key."""
    access = re.search(r"AWS_ACCESS_KEY_ID=['\"]?([A-Za-z0-9]+)", output)
    secret = re.search(r"AWS_SECRET_ACCESS_KEY=['\"]?([A-Za-z0-9/+_=-]+)", output)
    assert access and secret, output
    return access[1], secret[1]


def secret_files(store: Cairn) -> list[Path]:
    """Returns the files directly in the data folder that contain the printed secret key."""
    _, secret = printed_keys(store.output())
    files = [path for path in store.data.iterdir() if path.is_file()]
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_printed_addresses_and_credentials_work(dev_store: Cairn):
    """The output has addresses, credentials and a line for each client. boto3 works with the credentials."""
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


# Sizes beyond the multipart thresholds of the AWS CLI (8 MiB), s5cmd (50 MiB) and rclone (200 and 256 MiB).
PASTED_SIZES = {"small": 10, "empty": 0, "over-8-MiB": 9_000_000, "over-256-MiB": 270_000_000}


def printed_commands(output: str, without: str) -> str:
    """Returns the printed commands without headings, which end with a colon, and without those of one client.

    The log is written to the same file, and its lines may come before or after the commands. They begin with a time.
    """
    lines = output[output.index("export AWS_ACCESS_KEY_ID") :].splitlines()
    printed = (line for line in lines if not re.match(r"\d{4}-\d\d-\d\dT", line))
    return "\n".join(line for line in printed if not line.endswith(":") and not line.startswith(without))


def paste(commands: str, folder: Path) -> None:
    """Runs commands in a shell whose home, current folder and temporary folder are below `folder`."""
    folders = {name: folder / name for name in ("home", "here", "temporary")}
    for made in folders.values():
        made.mkdir(exist_ok=True)
    environment = clean_environment() | {"HOME": str(folders["home"]), "TMPDIR": str(folders["temporary"])}
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", commands], cwd=folders["here"], env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_printed_commands_leave_nothing_behind_and_can_be_pasted_again(dev_store: Cairn, tmp_path: Path):
    """The current folder is empty before and after. `cairn` is not on the search path.

    The commands needed a README.md and a folder that nobody had, and left their own files in the current folder.
    """
    output = start(dev_store)
    for _ in range(2):
        paste(printed_commands(output, without="nothing "), tmp_path)
        assert not list((tmp_path / "here").iterdir()) and not list((tmp_path / "temporary").iterdir())
    stored = S3(LOOPBACK, dev_store.s3_port, Credential(*printed_keys(output))).list_all("demo")
    assert sorted(stored) == ["folder/hello.txt", "hello.txt"]
    assert f"\n{dev_store.binary} status --endpoint" in output


def test_printed_commands_use_the_name_of_the_program_on_the_search_path(dev_store: Cairn):
    """The full path is printed only if the name would not lead to this program."""
    (dev_store.folder / "cairn").symlink_to(dev_store.binary)
    dev_store.extra["PATH"] = f"{dev_store.folder}:{os.environ['PATH']}"
    assert "\ncairn status --endpoint" in start(dev_store)


@pytest.mark.parametrize("without", ["s5cmd ", "nothing "])
def test_printed_commands_transfer_files_of_all_sizes(dev_store: Cairn, tmp_path: Path, without: str):
    """Once with all commands, and once without those of s5cmd, so that rclone is the first to upload the files."""
    output = start(dev_store)
    own = tmp_path / "own"
    own.mkdir()
    for name, size in PASTED_SIZES.items():
        (own / name).write_bytes(os.urandom(size))
    made, removed = 'mkdir "$cairn_try/folder"', 'rm -r "$cairn_try"'
    commands = printed_commands(output, without)
    assert commands.count(made) == 1 and commands.count(removed) == 1
    commands = commands.replace(made, f'{made}\ncp {own}/* "$cairn_try/folder/"')
    paste(commands.replace(removed, f'mv "$cairn_try" {tmp_path}/tried'), tmp_path)
    tried = tmp_path / "tried"
    assert (tried / "hello.copy").read_text() == "Hello from Cairn\n"
    stored = S3(LOOPBACK, dev_store.s3_port, Credential(*printed_keys(output))).list_all("demo")
    assert {key: size for key, (size, _) in stored.items()} == {
        "hello.txt": 17, "folder/hello.txt": 17, **{f"folder/{name}": size for name, size in PASTED_SIZES.items()}
    }
    for copied in (tried / "copy").glob("*"):
        assert filecmp.cmp(tried / "folder" / copied.name, copied, shallow=False), copied.name
    shutil.rmtree(tmp_path)


def test_commands_printed_without_secrets_create_them_and_start_the_server(dev_store: Cairn):
    """`serve` without options names `--dev`, and commands that create all four secrets. The last one starts the server."""
    assert dev_store.spawn().wait(END_SECONDS) == 1
    output = dev_store.output()
    assert f"{dev_store.binary} serve --dev" in output
    *commands, last = output[output.index("(umask 077;") : output.index("Keep the file")].strip().splitlines()
    dev_store.log.unlink()
    script = dev_store.folder / "pasted"
    script.write_text("\n".join([f"cd {dev_store.folder}", *commands, f"exec {last}"]))
    dev_store.start(prefix=["bash", "-eu", str(script)])
    made = dev_store.folder / "cairn.env"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    values = dict(line.split("=", 1) for line in made.read_text().splitlines())
    assert sorted(values) == sorted(SECRET_NAMES) and min(map(len, values.values())) >= 20
    client = S3(LOOPBACK, dev_store.s3_port, Credential(values["SERVICE_ROOT_ACCESS_KEY"], values["SERVICE_ROOT_SECRET_KEY"]))
    client.create_bucket("first")
    assert dev_store.stop() == 0


def test_lost_secrets_file_is_named(dev_store: Cairn):
    """The error says that it belongs to the store, and not only which variables are not set."""
    start(dev_store)
    (path,) = secret_files(dev_store)
    assert dev_store.stop() == 0
    path.unlink()
    dev_store.log.unlink()
    assert dev_store.spawn(arguments=DEV).wait(END_SECONDS) == 1
    assert f"{path} is missing" in dev_store.output() and "put that file back" in dev_store.output()
    assert not path.exists()


def test_secrets_file_is_private_and_reused(dev_store: Cairn):
    """The secrets are in one file with mode 0600, whatever the umask. The next start uses the same secrets."""
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


def test_each_data_folder_has_its_own_secrets(make_store: Callable[..., Cairn]):
    """Secrets are generated, not built in."""
    keys = set()
    for _ in range(2):
        store = make_store(**dict.fromkeys(SECRET_NAMES))
        keys.add(printed_keys(start(store)))
        assert store.stop() == 0
    assert len(keys) == 2


@pytest.mark.parametrize("name", ["SERVICE_S3_BIND", "SERVICE_API_BIND", "SERVICE_CONSOLE_BIND"])
@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_dev_mode_refuses_other_than_loopback_addresses(dev_store: Cairn, name: str, address: str):
    """Generated secrets must not protect a server on a network."""
    dev_store.extra[name] = f"{address}:{dev_store.s3_port}"
    with pytest.raises(ServerError):
        dev_store.start(arguments=DEV)
    assert dev_store.process.poll() not in (0, None, 101)
    assert "loopback" in dev_store.output().lower() and name in dev_store.output()


def test_secrets_file_readable_by_others_is_refused(dev_store: Cairn):
    """Another user may have read the secrets. The error names the file."""
    start(dev_store)
    (path,) = secret_files(dev_store)
    assert dev_store.stop() == 0
    path.chmod(0o644)
    with pytest.raises(ServerError):
        dev_store.start(arguments=DEV)
    assert path.name in dev_store.output()


@pytest.mark.parametrize(("chosen", "statuses"), [(None, {"403"}), ("all", {"200", "403"}), ("off", set())])
def test_terminal_shows_warnings_and_failed_requests_by_default(dev_store: Cairn, chosen: str | None, statuses: set[str]):
    """Lines of progress and of successful requests would move the printed commands out of sight."""
    reader, terminal = os.openpty()
    environment = dev_store.environment() | ({"SERVICE_OBSERVABILITY_REQUEST_LOG": chosen} if chosen else {})
    with dev_store.log.open("wb") as output:
        dev_store.process = subprocess.Popen([BINARY, *DEV], env=environment, stdout=output, stderr=terminal)
    os.close(terminal)
    dev_store.wait_output(LAST_LINE)
    assert requests.get(f"{dev_store.management}/health", timeout=30).status_code == 200
    assert requests.get(f"{dev_store.endpoint}/", timeout=30).status_code == 403
    assert dev_store.stop() == 0
    shown = b""
    # Reading fails when the last process has closed the terminal.
    with contextlib.suppress(OSError):
        while more := os.read(reader, 4096):
            shown += more
    os.close(reader)
    text = shown.decode()
    assert set(re.findall(r" status=(\d+)", text)) == statuses, text
    assert " INFO service: " not in text and "stopped" not in text, text
