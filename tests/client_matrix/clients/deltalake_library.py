"""Delta Lake by delta-rs, whose store is object_store of Rust."""

import contextlib
import os

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import deltalake
    import pyarrow

ROWS = 100_000


class DeltaLake(Program):
    """Tables whose commits are conditional puts."""

    title = "Delta Lake (delta-rs)"

    @classmethod
    def version(cls, run) -> str:
        return deltalake.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.place = f"s3://{self.bucket}/table"
        self.options = {
            "endpoint_url": server.endpoint, "region": REGION, "access_key_id": server.access_key, "secret_access_key": server.secret_key,
            "conditional_put": "etag", "max_retries": "0",
            **({} if server.tls else {"allow_http": "true"}),
        }

    def table(self) -> "deltalake.DeltaTable":
        """Opens the table as it is now."""
        return deltalake.DeltaTable(self.place, storage_options=self.options)

    def numbers(self) -> list[int]:
        """Reads the table's only column."""
        return sorted(self.table().to_pyarrow_table()["i"].to_pylist())

    def data_files(self) -> int:
        """Counts the files that hold rows."""
        return sum(key.endswith(".parquet") for key in self.workspace.keys(self.bucket))

    def write(self) -> None:
        """Creates a table and appends to it, which is a conditional put each time."""
        for first in (0, ROWS):
            rows = pyarrow.table({"i": range(first, first + ROWS)})
            deltalake.write_deltalake(self.place, rows, mode="append", storage_options=self.options)
        same(self.table().version(), 1, "version of the table")

    def read(self) -> None:
        """Reads the table, and an earlier version of it."""
        same(self.numbers() == list(range(2 * ROWS)), True, "the rows are those that were written")
        earlier = deltalake.DeltaTable(self.place, version=0, storage_options=self.options)
        same(earlier.to_pyarrow_table().num_rows, ROWS, "rows of the first version")

    def remove(self) -> None:
        """Deletes rows, compacts the files, and removes those that no version needs."""
        table = self.table()
        table.delete(f"i >= {ROWS}")
        table.optimize.compact()
        before = self.data_files()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        same(self.data_files() < before, True, "data files were removed")
        same(self.numbers() == list(range(ROWS)), True, "the rows are those that are left")
