"""A MinIO server, as the source of imports."""

import base64
import http.client
import os
from pathlib import Path

from botocore.client import BaseClient

from .boto import make_client
from .foreign_server import ForeignServer
from .programs import TOOLS
from .s3 import S3
from .server import LOOPBACK
from .sigv4 import Credential

MINIO = os.environ.get("CAIRN_MINIO", str(TOOLS / "minio"))
KMS_KEY = "key-of-the-tests"
CREDENTIAL = Credential("minioadmin", "minio+secret/key=1")


class Minio(ForeignServer):
    """One server with its own folder and port."""

    credential = CREDENTIAL

    @property
    def s3(self) -> S3:
        """Returns the small client under the root credential, for many requests."""
        return S3(LOOPBACK, self.port, CREDENTIAL)

    @property
    def boto(self) -> BaseClient:
        """Returns a client under the root credential."""
        return make_client(self.s3, request_checksum_calculation="when_required")

    def start(self) -> "Minio":
        """Starts the server and waits until it answers."""
        settings = {
            "MINIO_ROOT_USER": CREDENTIAL.access_key, "MINIO_ROOT_PASSWORD": CREDENTIAL.secret_key,
            "MINIO_BROWSER": "off", "MINIO_UPDATE": "off", "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{base64.b64encode(bytes(32)).decode()}",
        }
        command = [MINIO, "server", "--quiet", "--address", f"{LOOPBACK}:{self.port}", str(self.folder / "data")]
        self.launch(command, **settings)
        self.wait()
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
