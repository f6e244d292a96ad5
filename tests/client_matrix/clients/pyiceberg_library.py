"""PyIceberg, with a catalog in SQLite and its files written by PyArrow."""

import contextlib
import importlib
import os

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, advice, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import pyiceberg

ROWS = 100_000


class PyIceberg(Program):
    """Iceberg tables."""

    title = "PyIceberg"
    recommended = advice(strict="`AWS_REQUEST_CHECKSUM_CALCULATION=when_required`")

    @classmethod
    def version(cls, run) -> str:
        return pyiceberg.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        if workspace.recommended:
            os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
        # PyArrow, which writes its files, reads this once: when it is imported.
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.pyarrow = importlib.import_module("pyarrow")
        self.above = importlib.import_module("pyiceberg.expressions").GreaterThanOrEqual("i", ROWS)
        self.catalog = importlib.import_module("pyiceberg.catalog.sql").SqlCatalog("matrix", **{
            "uri": f"sqlite:///{workspace.folder}/catalog.db", "warehouse": f"s3://{self.bucket}/warehouse", "s3.endpoint": server.endpoint,
            "s3.access-key-id": server.access_key, "s3.secret-access-key": server.secret_key, "s3.region": REGION,
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        })

    def write(self) -> None:
        """Creates a table and appends to it."""
        self.catalog.create_namespace("n")
        rows = [self.pyarrow.table({"i": range(first, first + ROWS)}) for first in (0, ROWS)]
        table = self.catalog.create_table("n.t", rows[0].schema)
        for part in rows:
            table.append(part)
        same(len(table.snapshots()), 2, "snapshots")

    def read(self) -> None:
        """Reads the table, a part of it, and an earlier snapshot."""
        table = self.catalog.load_table("n.t")
        same(sorted(table.scan().to_arrow()["i"].to_pylist()) == list(range(2 * ROWS)), True, "the rows are those that were written")
        same(table.scan(row_filter=self.above).to_arrow().num_rows, ROWS, "rows that were asked for")
        same(table.scan(snapshot_id=table.snapshots()[0].snapshot_id).to_arrow().num_rows, ROWS, "rows of the first snapshot")

    def remove(self) -> None:
        """Deletes rows, and drops the table with its files."""
        table = self.catalog.load_table("n.t")
        table.delete(self.above)
        same(table.scan().to_arrow().num_rows, ROWS, "rows left")
        self.catalog.purge_table("n.t")
        same([key for key in self.workspace.keys(self.bucket) if key.endswith(".parquet")], [], "data files left")
