"""DuckDB with its extension httpfs."""

import contextlib
from pathlib import Path

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import duckdb
    import duckdb_extension_httpfs

ROWS = 300_000


class DuckDb(Program):
    """Tables in Parquet files that are queried where they are."""

    title = "DuckDB"

    @classmethod
    def version(cls, run) -> str:
        return duckdb.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        self.base = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        (extension,) = Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension*")
        self.base.execute(f"LOAD '{extension}'")
        self.base.execute(f"SET ca_cert_file = '{server.authority}'")
        self.base.execute(
            f"CREATE SECRET s (TYPE s3, KEY_ID '{server.access_key}', SECRET '{server.secret_key}', REGION '{REGION}', "
            f"ENDPOINT '{server.authority_name}', URL_STYLE 'path', USE_SSL {str(server.tls).lower()})"
        )

    def write(self) -> None:
        """Writes one file and a partitioned table."""
        self.base.execute(f"CREATE TABLE t AS SELECT i, i % 4 AS p, hash(i) AS h, repeat(md5(i::text), 2) AS s FROM range({ROWS}) r(i)")
        self.base.execute(f"COPY t TO 's3://{self.bucket}/one.parquet'")
        self.base.execute(f"COPY t TO 's3://{self.bucket}/parts' (FORMAT parquet, PARTITION_BY (p))")

    def read(self) -> None:
        """Queries both, the second one by a pattern."""
        same(self.base.execute(f"SELECT count(*), sum(i) FROM 's3://{self.bucket}/one.parquet'").fetchone(), (ROWS, sum(range(ROWS))), "one file")
        found = self.base.execute(f"SELECT count(*) FROM 's3://{self.bucket}/parts/*/*.parquet' WHERE p = 1").fetchone()
        same(found, (ROWS // 4,), "rows of a partition")

    def remove(self) -> None:
        """Overwrites the partitioned table, which removes its old files."""
        self.base.execute(f"COPY (SELECT * FROM t LIMIT 10) TO 's3://{self.bucket}/parts' (FORMAT parquet, PARTITION_BY (p), OVERWRITE)")
        same(self.base.execute(f"SELECT count(*) FROM 's3://{self.bucket}/parts/*/*.parquet'").fetchone(), (10,), "rows left")
