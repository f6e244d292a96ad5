"""Lance, the format of LanceDB, whose store is object_store of Rust."""

import contextlib
import os
from datetime import timedelta

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import lance
    import pyarrow

ROWS = 100_000


class Lance(Program):
    """Tables of vectors with versions, whose commits are conditional puts."""

    title = "Lance"

    @classmethod
    def version(cls, run) -> str:
        return lance.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.place = f"s3://{self.bucket}/table.lance"
        self.options = {
            "endpoint": server.endpoint, "region": REGION, "access_key_id": server.access_key, "secret_access_key": server.secret_key,
            "client_max_retries": "0", **({} if server.tls else {"allow_http": "true"}),
        }

    def table(self, version: int | None = None) -> "lance.LanceDataset":
        """Opens the table as it is now, or as it was."""
        return lance.dataset(self.place, version=version, storage_options=self.options)

    def write(self) -> None:
        """Creates a table and appends to it."""
        for first in (0, ROWS):
            rows = pyarrow.table({"i": range(first, first + ROWS), "v": [[float(first)] * 4] * ROWS})
            lance.write_dataset(rows, self.place, mode="append" if first else "create", storage_options=self.options)

    def read(self) -> None:
        """Reads the table, some rows of it, and its first version."""
        table = self.table()
        same(table.to_table(columns=["i"])["i"].to_pylist() == list(range(2 * ROWS)), True, "the rows are those that were written")
        same(table.take([3, ROWS + 3], columns=["i"])["i"].to_pylist(), [3, ROWS + 3], "rows that were asked for")
        same(self.table(1).count_rows(), ROWS, "rows of the first version")

    def remove(self) -> None:
        """Deletes rows, compacts the files, and removes those that no version needs."""
        self.table().delete(f"i >= {ROWS}")
        self.table().optimize.compact_files()
        before = len(self.workspace.keys(self.bucket))
        self.table().cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        same(len(self.workspace.keys(self.bucket)) < before, True, "files were removed")
        same(self.table().count_rows(), ROWS, "rows left")
