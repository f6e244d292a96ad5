"""Polars, whose store is object_store of Rust."""

import contextlib
import os

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where it is not installed.
with contextlib.suppress(ImportError):
    import polars

ROWS = 300_000


class Polars(Program):
    """Frames in Parquet files."""

    title = "Polars"

    @classmethod
    def version(cls, run) -> str:
        return polars.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.options = {
            "aws_endpoint_url": server.endpoint, "aws_region": REGION, "aws_access_key_id": server.access_key, "aws_secret_access_key": server.secret_key,
            **({} if server.tls else {"aws_allow_http": "true"}),
        }

    def write(self) -> None:
        """Writes one file, and one from a query that streams."""
        frame = polars.DataFrame({"i": range(ROWS)}).with_columns((polars.col("i") % 4).alias("p"), polars.col("i").cast(polars.String).repeat_by(3).list.join("-").alias("s"))
        frame.write_parquet(f"s3://{self.bucket}/one.parquet", storage_options=self.options)
        frame.lazy().filter(polars.col("p") == 1).sink_parquet(f"s3://{self.bucket}/parts/p1.parquet", storage_options=self.options)

    def read(self) -> None:
        """Reads both, the second one by a pattern and only in part."""
        frame = polars.read_parquet(f"s3://{self.bucket}/one.parquet", storage_options=self.options)
        same((frame.height, frame["i"].sum()), (ROWS, sum(range(ROWS))), "one file")
        found = polars.scan_parquet(f"s3://{self.bucket}/parts/*.parquet", storage_options=self.options).select(polars.col("i").sum()).collect()
        same(found.item(), sum(range(1, ROWS, 4)), "sum of a column")
