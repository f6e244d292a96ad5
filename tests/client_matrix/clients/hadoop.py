"""Hadoop's S3A."""

from client_matrix.clients.sdk import Sdk
from client_matrix.workspace import Workspace, advice
from harness.server import REPOSITORY

OFFERED = ("objects", "large", "stream", "ranges", "lists", "delete", "batch", "copy")


def trusting(workspace: Workspace) -> dict[str, str]:
    """The environment in which Java trusts the server's authority."""
    store = workspace.folder / "trusted.p12"
    workspace.run("keytool", "-importcert", "-noprompt", "-alias", "a", "-file", workspace.server.authority, "-keystore", store, "-storepass", "changeit")
    return {"JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword=changeit"}


class Hadoop(Sdk):
    """The file system of Hadoop and Spark over the AWS SDK for Java."""

    title = "Hadoop S3A"
    language = "hadoop"
    recommended = advice(strict="`fs.s3a.multiobjectdelete.enable = false`")

    @classmethod
    def version(cls, run) -> str:
        return (REPOSITORY / "tests/clients/hadoop/pom.xml").read_text().split("<hadoop.version>")[1].split("<")[0]

    @classmethod
    def offers(cls, operation: str) -> bool:
        return operation in OFFERED

    def __init__(self, workspace: Workspace):
        workspace.environment |= trusting(workspace)
        super().__init__(workspace)

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.call("remove", bucket=bucket, key=prefix.rstrip("/"))
