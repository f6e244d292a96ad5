"""chDB, which is ClickHouse in a library: its function s3(), and tables on a disk that is a bucket."""

import contextlib
import os

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import chdb
    from chdb import session

ROWS = 300_000


class ChDb(Program):
    """Analytical tables."""

    title = "ClickHouse (chDB)"

    @classmethod
    def version(cls, run) -> str:
        return chdb.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.place = f"{server.endpoint}/{self.bucket}"
        self.keys = f"'{server.access_key}', '{server.secret_key}'"
        self.session = session.Session(str(workspace.folder / "chdb"))
        disk = f"type = s3, endpoint = '{self.place}/disk/', region = '{REGION}', access_key_id = '{server.access_key}', secret_access_key = '{server.secret_key}'"
        self.settings = f"disk = disk({disk})"

    def ask(self, query: str) -> str:
        """Runs a query; its first line."""
        return str(self.session.query(query, "TSV")).strip()

    def write(self) -> None:
        """Writes a file, and a table of two parts."""
        rows = f"SELECT number AS i, hex(MD5(toString(number))) AS m FROM numbers({ROWS})"
        self.ask(f"INSERT INTO FUNCTION s3('{self.place}/one.parquet', {self.keys}, 'Parquet') {rows}")
        self.ask("CREATE DATABASE d ENGINE = Atomic")
        self.ask(f"CREATE TABLE d.t (i UInt64, m String) ENGINE = MergeTree ORDER BY i SETTINGS {self.settings}")
        for _ in range(2):
            self.ask(f"INSERT INTO d.t {rows}")

    def read(self) -> None:
        """Queries both."""
        same(self.ask(f"SELECT count(), sum(i) FROM s3('{self.place}/*.parquet', {self.keys}, 'Parquet')"), f"{ROWS}\t{sum(range(ROWS))}", "rows of the file")
        same(self.ask("SELECT count(), sum(i), uniqExact(m) FROM d.t"), f"{2 * ROWS}\t{2 * sum(range(ROWS))}\t{ROWS}", "rows of the table")

    def remove(self) -> None:
        """Empties the table, whose objects go in batches. In chDB, DROP TABLE waits for a thread that does not run."""
        before = len(self.workspace.keys(self.bucket))
        self.ask("TRUNCATE TABLE d.t")
        same(self.ask("SELECT count() FROM d.t"), "0", "rows left")
        same(len(self.workspace.keys(self.bucket)) < before, True, "objects were removed")

    def end(self) -> None:
        self.session.close()
