"""A MinIO server, as the source of imports."""

import base64
import http.client
import os
import subprocess
from pathlib import Path

from botocore.client import BaseClient

from .boto import make_client
from .programs import TOOLS
from .s3 import S3
from .server import LOOPBACK, clean_environment, free_ports
from .sigv4 import Credential
from .wait import until

MINIO = os.environ.get("CAIRN_MINIO", str(TOOLS / "minio"))
KMS_KEY = "key-of-the-tests"
CREDENTIAL = Credential("minioadmin", "minio+secret/key=1")


class Minio:
    """One server with its own folder and port."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0]
        self.process: subprocess.Popen | None = None

    @property
    def endpoint(self) -> str:
        """Returns the address."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def credential(self) -> Credential:
        """Returns the root credential."""
        return CREDENTIAL

    @property
    def boto(self) -> BaseClient:
        """Returns a client under the root credential."""
        return make_client(S3(LOOPBACK, self.port, CREDENTIAL), request_checksum_calculation="when_required")

    def start(self) -> "Minio":
        """Starts the server and waits until it answers."""
        settings = {
            "MINIO_ROOT_USER": CREDENTIAL.access_key, "MINIO_ROOT_PASSWORD": CREDENTIAL.secret_key,
            "MINIO_BROWSER": "off", "MINIO_UPDATE": "off", "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{base64.b64encode(bytes(32)).decode()}",
        }
        command = [MINIO, "server", "--quiet", "--address", f"{LOOPBACK}:{self.port}", str(self.folder / "data")]
        with (self.folder / "minio.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=clean_environment() | settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.answers, lambda: (self.folder / "minio.log").read_text(errors="replace")[-2000:])
        return self

    def answers(self) -> bool:
        """Returns whether the server takes requests."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=5)
        try:
            connection.request("GET", "/minio/health/cluster")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """Ends the server at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
