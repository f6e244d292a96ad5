"""Other S3 servers, as the sources of imports: versitygw, SeaweedFS and Garage.

versitygw is installed by `tests/runner/tools.py sources`. The others are taken from the search path, if they are there.
"""

import http.client
import os
import shutil
import subprocess
from pathlib import Path

import boto3
from botocore.client import BaseClient
from botocore.config import Config

from .boto import WHEN_REQUIRED
from .foreign_server import ForeignServer
from .programs import TOOLS
from .server import LOOPBACK, clean_environment
from .sigv4 import Credential
from .wait import until

# Garage accepts only keys of this form.
CREDENTIAL = Credential("GK" + "ab" * 12, "cd" * 32)
PROGRAMS = {
    "versitygw": os.environ.get("CAIRN_VERSITYGW", str(TOOLS / "versitygw")), "seaweedfs": os.environ.get("CAIRN_WEED", "weed"),
    "garage": os.environ.get("CAIRN_GARAGE", "garage"),
}
KINDS = ("versitygw", "versitygw-unversioned", "seaweedfs", "garage")
GARAGE_CONFIGURATION = """
metadata_dir = "{folder}/meta"
data_dir = "{folder}/data"
db_engine = "lmdb"
replication_factor = 1
rpc_bind_addr = "{rpc}"
rpc_public_addr = "{rpc}"
rpc_secret = "{secret}"
[s3_api]
s3_region = "garage"
api_bind_addr = "{s3}"
root_domain = ".s3.garage"
"""
SEAWEEDFS_IDENTITIES = (
    '{{"identities": [{{"name": "admin", "credentials": [{{"accessKey": "{0}", "secretKey": "{1}"}}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}}]}}'
)


class OtherStore(ForeignServer):
    """One server with its own folder and ports."""

    credential = CREDENTIAL

    def __init__(self, kind: str, folder: Path):
        self.kind = kind
        self.program = PROGRAMS[kind.partition("-")[0]]
        if shutil.which(self.program) is None:
            raise FileNotFoundError(f"{self.program} is not installed")
        super().__init__(folder, further_ports=5)

    @property
    def has_versions(self) -> bool:
        """Returns whether buckets can have versions."""
        return self.kind in ("versitygw", "seaweedfs")

    @property
    def boto(self) -> BaseClient:
        """Returns a client."""
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="garage" if self.kind == "garage" else "us-east-1",
            aws_access_key_id=CREDENTIAL.access_key, aws_secret_access_key=CREDENTIAL.secret_key,
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **WHEN_REQUIRED),
        )

    def command(self) -> list[str]:
        """Prepares the folder, and returns the command that serves it."""
        for name in ("data", "versions"):
            (self.folder / name).mkdir(exist_ok=True)
        if self.kind == "garage":
            configuration = self.folder / "garage.toml"
            s3, rpc = (f"{LOOPBACK}:{port}" for port in (self.port, self.ports[0]))
            configuration.write_text(GARAGE_CONFIGURATION.format(folder=self.folder, rpc=rpc, s3=s3, secret="ab" * 32))
            return [self.program, "-c", str(configuration), "server"]
        if self.kind == "seaweedfs":
            identities = self.folder / "s3.json"
            identities.write_text(SEAWEEDFS_IDENTITIES.format(CREDENTIAL.access_key, CREDENTIAL.secret_key))
            names = ("master.port", "volume.port", "filer.port", "master.port.grpc", "s3.port.grpc")
            ports = [f"-{name}={port}" for name, port in zip(names, self.ports, strict=True)]
            where = [f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}", f"-dir={self.folder / 'data'}", "-volume.max=50", "-master.volumeSizeLimitMB=64"]
            return [self.program, "-logtostderr=true", "server", *where, "-s3", f"-s3.port={self.port}", f"-s3.config={identities}", *ports]
        keys = ["--access", CREDENTIAL.access_key, "--secret", CREDENTIAL.secret_key]
        versions = ["--versioning-dir", str(self.folder / "versions")] if self.has_versions else []
        return [self.program, *keys, "--port", f"{LOOPBACK}:{self.port}", "--quiet", "posix", *versions, str(self.folder / "data")]

    def start(self) -> "OtherStore":
        """Starts the server and waits until it answers."""
        command = self.command()
        self.launch(command)
        ready = self.folder / "ready"
        if self.kind == "garage" and not ready.exists():
            self.set_up_garage(command[:-1])
        self.wait()
        ready.touch()
        return self

    def set_up_garage(self, garage: list[str]) -> None:
        """Gives the node its place, and makes a key."""
        def run(*words: str) -> subprocess.CompletedProcess:
            return subprocess.run([*garage, *words], env=clean_environment(), capture_output=True, text=True, timeout=60)

        until(lambda: run("status").returncode == 0, "garage does not answer")
        node = run("node", "id", "-q").stdout.split("@")[0]
        for words in (
            ["layout", "assign", "-z", "dc1", "-c", "1G", node], ["layout", "apply", "--version", "1"],
            ["key", "import", "--yes", CREDENTIAL.access_key, CREDENTIAL.secret_key], ["key", "allow", "--create-bucket", CREDENTIAL.access_key],
        ):
            done = run(*words)
            assert done.returncode == 0, done

    def answers(self) -> bool:
        """Returns whether the server lists buckets."""
        assert self.process is not None and self.process.poll() is None, "it has ended"
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=5)
        try:
            connection.request("GET", "/")
            if connection.getresponse().status >= 500:
                return False
        except OSError:
            return False
        finally:
            connection.close()
        return "Buckets" in self.boto.list_buckets()
