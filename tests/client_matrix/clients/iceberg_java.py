"""Iceberg's library for Java with S3FileIO, as Spark, Flink and Trino use it."""

from client_matrix.clients.hadoop import trusting
from client_matrix.clients.sdk import Sdk
from client_matrix.operations import PROGRAM_OPERATIONS
from client_matrix.workspace import Workspace, advice, same
from harness.server import REPOSITORY


class IcebergJava(Sdk):
    """A table whose data and metadata are in a bucket."""

    title = "Iceberg (Java, S3FileIO)"
    language = "iceberg"
    recommended = advice(strict="`AWS_REQUEST_CHECKSUM_CALCULATION=when_required`")

    @classmethod
    def version(cls, run) -> str:
        return (REPOSITORY / "tests/clients/iceberg/pom.xml").read_text().split("<iceberg.version>")[1].split("<")[0]

    @classmethod
    def offers(cls, operation: str) -> bool:
        return operation in PROGRAM_OPERATIONS

    def __init__(self, workspace: Workspace):
        self.bucket = workspace.bucket()
        workspace.environment |= trusting(workspace) | {"BUCKET": self.bucket}
        super().__init__(workspace)

    def write(self) -> None:
        """Creates a table and appends to it, in files of several parts."""
        self.call("write")
        same(sum(key.endswith(".avro") and "/data/" in key for key in self.workspace.keys(self.bucket)), 2, "data files")

    def read(self) -> None:
        """Reads the table, and its first snapshot."""
        self.call("read")

    def remove(self) -> None:
        """Deletes the rows, expires the snapshots, drops the table: its files go in batches."""
        self.call("remove")
        same(self.workspace.keys(self.bucket), [], "files left")
