"""The settings that `cairn doctor CLIENT` prints: they agree with the client matrix, and real clients work with exactly them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from client_matrix.document import DOCUMENT
from harness.certificates import Authority
from harness.client_settings import CLIENTS, blocks, notes
from harness.programs import TOOLS
from harness.server import BINARY, Cairn, clean_environment

SECONDS = 120
# The rows of the matrix that are about a client of the doctor.
ROWS = {
    "aws-cli": ["AWS CLI, version 1", "AWS CLI, version 2"], "boto3": ["boto3"], "javascript": ["AWS SDK for JavaScript"], "go": ["AWS SDK for Go v2"],
    "java": ["AWS SDK for Java"], "rust": ["AWS SDK for Rust"], "rclone": ["rclone"], "s3fs": ["s3fs-fuse"], "obstore": ["obstore"],
    "pyarrow": ["PyArrow (AWS SDK for C++)"], "hadoop": ["Hadoop S3A"], "barman": ["Barman (barman-cloud)"], "pgbackrest": ["pgBackRest"], "django": ["django-storages"],
    "iceberg": ["PyIceberg", "Iceberg (Java, S3FileIO)"], "rails": ["AWS SDK for Ruby"],
}
# Libraries that hand their settings to boto3, for which the doctor prints them.
BUILT_ON_OTHERS = {"smart_open"}
# Words of the language around a setting.
GLUE = {"export", "manager", "builder", "config", "uploader", "newuploader", "aws_sdk_s3", "s3configuration", "serviceconfiguration", "client", "import", "botocore"}
LARGE_BYTES = 17_000_000


def said(client: dict, mode: str, transport: str, parts: tuple[str, ...] = ("settings", "notes")) -> str:
    """The doctor's output about a client, without a certificate authority of one's own."""
    holds = {mode, "tls" if transport == "TLS" else "http"}
    texts = [text for _, text in blocks(client, holds)] if "settings" in parts else []
    return "\n".join(texts + (notes(client, holds) if "notes" in parts else []))


def plain(text: str) -> str:
    """The letters and digits, so that snake case, camel case and quotes do not matter."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def advised(row: str, mode: str, transport: str) -> str:
    """Returns what the matrix recommends in a mode over a transport."""
    line = next((line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| {row} | ") and line.count("|") == 4), None)
    assert line, f"docs/clients.md recommends nothing for {row}"
    cell = line.split(" | ")[1 if mode == "strict" else 2].removesuffix(" |")
    over = re.findall(r"over (HTTP|TLS): (.*?)(?=; over |; not over |$)", cell) if cell.startswith("over ") else []
    return next((text for name, text in over if name == transport), "") if over else cell


def places(test: Callable) -> Callable:
    """In both modes, over both transports."""
    return pytest.mark.parametrize("transport", ["HTTP", "TLS"])(pytest.mark.parametrize("mode", ["strict", "extended"])(test))


@places
def test_doctor_prints_what_the_matrix_recommends(mode: str, transport: str):
    """Every setting of docs/clients.md is among those that the doctor prints or names in a note."""
    missing = []
    for client in CLIENTS:
        text = plain(said(client, mode, transport))
        for row in ROWS.get(client["name"], []):
            settings = [piece for quoted in re.findall(r"`([^`]*)`", advised(row, mode, transport)) for piece in quoted.removeprefix("-o ").split(",")]
            names = [re.sub(r"^(AWS_|s3\.)", "", setting.strip()) for setting in settings]
            missing += [(row, name) for name in names if plain(name) not in text]
    assert missing == []


@pytest.mark.parametrize("transport", ["HTTP", "TLS"])
def test_matrix_recommends_what_the_doctor_prints(transport: str):
    """What the doctor adds for a strict server is what the matrix was run with."""
    unknown = []
    for client in CLIENTS:
        words = {mode: set(re.findall(r"[A-Za-z_]\w{5,}", said(client, mode, transport, ("settings",)))) for mode in ("strict", "extended")}
        added = {word for word in words["strict"] - words["extended"] if word.lower() not in GLUE}
        rows = plain(" ".join(advised(row, "strict", transport) for row in ROWS.get(client["name"], [])))
        unknown += [(client["name"], word) for word in added if plain(word.removeprefix("AWS_").removesuffix("WhenRequired")) not in rows]
    assert unknown == []


def test_every_recommendation_of_the_matrix_is_compared():
    """A client that gets one is in the table of this test, unless it takes those of another client."""
    table = DOCUMENT.read_text().split("### Recommended settings")[1].split("### Operations")[0]
    titles = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(titles) >= 14 and set(titles) - BUILT_ON_OTHERS == {row for rows in ROWS.values() for row in rows}
    assert set(ROWS) <= {client["name"] for client in CLIENTS}


class Machine:
    """A home folder on which somebody pastes what the doctor prints for one client and one server."""

    def __init__(self, home: Path, client: str, store: Cairn, endpoint: str, authority: Authority | None):
        self.home, self.store, self.endpoint = home, store, endpoint
        self.keys = store.credential
        path = f"{Path(sys.executable).parent}:{TOOLS}:{os.environ['PATH']}"
        self.environment = clean_environment() | {"HOME": str(home), "PATH": path}
        words = [BINARY, "doctor", client, "--endpoint", endpoint, "--no-round-trip", "--json"]
        words += ["--ca-certificate", str(authority.certificate)] if authority else []
        keys = {"AWS_ACCESS_KEY_ID": self.keys.access_key, "AWS_SECRET_ACCESS_KEY": self.keys.secret_key}
        done = subprocess.run(words, env=self.environment | keys, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        self.mode = json.loads(done.stdout)["mode"]
        self.script = ""
        for block in json.loads(done.stdout)["client"]["settings"]:
            text = re.sub(r"\bSECRET_KEY\b", self.keys.secret_key, re.sub(r"\bACCESS_KEY\b", self.keys.access_key, block["text"]))
            if block["place"].startswith("~/"):
                file = home / block["place"].removeprefix("~/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text + "\n")
            else:
                self.script += text + "\n"

    def shell(self, *lines: str) -> str:
        """Runs the printed commands and then these, until one fails."""
        script = "set -e\n" + self.script + "\n".join(lines)
        done = subprocess.run(["sh", "-c", script], env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def python(self, code: str) -> None:
        """Runs the printed lines and then these."""
        keys = {"AWS_ACCESS_KEY_ID": self.keys.access_key, "AWS_SECRET_ACCESS_KEY": self.keys.secret_key}
        done = subprocess.run([sys.executable, "-c", f"{self.script}\n{code}"], env=self.environment | keys, cwd=self.home, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=["strict over TLS", "strict over HTTP", "extended over HTTP"])
def machine(request: pytest.FixtureRequest, secure: Cairn, authority: Authority, tmp_path: Path) -> Callable[[str], Machine]:
    """Makes a machine for a client of one of three servers, with a large file and an empty folder."""
    (tmp_path / "large").write_bytes(os.urandom(LARGE_BYTES))

    def make(client: str) -> Machine:
        if request.param == "strict over TLS":
            made = Machine(tmp_path, client, secure, f"https://localhost:{secure.s3_port}", authority)
        else:
            store = request.getfixturevalue("store" if "strict" in request.param else "extended_store")
            made = Machine(tmp_path, client, store, store.endpoint, None)
        assert made.mode == request.param.split()[0]
        return made

    return make


def test_aws_cli(machine: Callable[[str], Machine]):
    """Uploads in parts, copies, presigned URLs."""
    aws = machine("aws-cli")
    trust = "--cacert " + re.search(r"ca_bundle = (.*)", (aws.home / ".aws/config").read_text()).group(1) if aws.endpoint.startswith("https") else ""
    aws.shell(
        "alias s3='aws s3 --profile cairn'", "s3 mb s3://pasted-aws", "s3 cp --quiet large s3://pasted-aws/large", "s3 cp --quiet s3://pasted-aws/large s3://pasted-aws/copy",
        "s3 cp --quiet s3://pasted-aws/copy back", "cmp large back", f"curl -fsS {trust} -o linked \"$(s3 presign s3://pasted-aws/large)\"", "cmp large linked",
        "s3 ls s3://pasted-aws | grep -c copy", "s3 rm --quiet s3://pasted-aws/large", "s3 rm --quiet s3://pasted-aws/copy", "s3 rb s3://pasted-aws",
    )


def test_boto3(machine: Callable[[str], Machine]):
    """The same with the library."""
    machine("boto3").python("""
import urllib.request, ssl
s3.create_bucket(Bucket="pasted-boto")
s3.upload_file("large", "pasted-boto", "large")
s3.put_object(Bucket="pasted-boto", Key="small", Body=b"x")
s3.copy_object(Bucket="pasted-boto", Key="copy", CopySource="pasted-boto/large")
s3.download_file("pasted-boto", "copy", "back")
assert open("large", "rb").read() == open("back", "rb").read()
url = s3.generate_presigned_url("get_object", Params={"Bucket": "pasted-boto", "Key": "small"})
trust = s3.meta.endpoint_url.startswith("https") and ssl.create_default_context(cafile=s3._endpoint.http_session._verify) or None
assert urllib.request.urlopen(url, context=trust).read() == b"x"
keys = [item["Key"] for item in s3.list_objects_v2(Bucket="pasted-boto")["Contents"]]
assert keys == ["copy", "large", "small"], keys
for key in keys:
    s3.delete_object(Bucket="pasted-boto", Key=key)
s3.delete_bucket(Bucket="pasted-boto")
""")


def test_minio_py(machine: Callable[[str], Machine]):
    """Parts, a copy, and presigned URLs."""
    machine("minio-py").python("""
client.make_bucket("pasted-minio")
client.fput_object("pasted-minio", "large", "large", part_size=5 * 2**20)
client.fget_object("pasted-minio", "large", "back")
assert open("large", "rb").read() == open("back", "rb").read()
from minio.commonconfig import CopySource
client.copy_object("pasted-minio", "copy", CopySource("pasted-minio", "large"))
keys = [item.object_name for item in client.list_objects("pasted-minio")]
assert keys == ["copy", "large"], keys
for key in keys:
    client.remove_object("pasted-minio", key)
client.remove_bucket("pasted-minio")
""")


def test_mc(machine: Callable[[str], Machine]):
    """What the notes say is refused is not tried: uploads over plain HTTP, and deletions, in the strict mode."""
    mc = machine("mc")
    lines = ["mc mb cairn/pasted-mc", "mc ls cairn | grep -c pasted-mc"]
    if mc.mode == "extended" or mc.endpoint.startswith("https"):
        lines += ["mc cp -q large cairn/pasted-mc/large", "mc cp -q cairn/pasted-mc/large back", "cmp large back", "mc stat cairn/pasted-mc/large"]
    mc.shell(*lines, *(["mc rb --force cairn/pasted-mc"] if mc.mode == "extended" else []))


def test_s5cmd(machine: Callable[[str], Machine]):
    """What the notes say is refused is not tried: deletions in the strict mode."""
    s5 = machine("s5cmd")
    lines = ["s5cmd mb s3://pasted-s5", "s5cmd cp -p 5 large s3://pasted-s5/large", "s5cmd cp s3://pasted-s5/large s3://pasted-s5/copy", "s5cmd cp s3://pasted-s5/copy back", "cmp large back"]
    s5.shell(*lines, *(["s5cmd rm 's3://pasted-s5/*'", "s5cmd rb s3://pasted-s5"] if s5.mode == "extended" else []))


def test_rclone(machine: Callable[[str], Machine]):
    """A folder, copies within the store, and deletions."""
    machine("rclone").shell(
        "rclone mkdir cairn:pasted-rclone", "rclone copyto large cairn:pasted-rclone/large", "rclone copyto cairn:pasted-rclone/large cairn:pasted-rclone/copy",
        "rclone copyto cairn:pasted-rclone/copy back", "cmp large back", "rclone lsf cairn:pasted-rclone | grep -c copy",
        "rclone delete cairn:pasted-rclone", "rclone rmdir cairn:pasted-rclone",
    )
