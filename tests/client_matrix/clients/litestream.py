"""Litestream."""

import contextlib
import sqlite3
import sys
from pathlib import Path

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

PROGRAM = str(Path(sys.executable).with_name("litestream"))
ROWS = 2000


class Litestream(Program):
    """Replication of SQLite."""

    title = "Litestream"

    @classmethod
    def version(cls, run) -> str:
        return run(PROGRAM, "version").strip().lstrip("v")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.database, self.config = workspace.folder / "db.sqlite", workspace.folder / "litestream.yml"
        server = workspace.server
        # With an HTTP client of its own it refuses the SDK's; SSL_CERT_FILE is enough.
        del workspace.environment["AWS_CA_BUNDLE"]
        self.config.write_text(
            f"snapshot:\n  interval: 1s\n  retention: 1s\nlevels:\n  - interval: 1s\nl0-retention: 1s\nl0-retention-check-interval: 1s\n"
            f"dbs:\n  - path: {self.database}\n    replica:\n      type: s3\n      bucket: {self.bucket}\n      path: db\n      endpoint: {server.endpoint}\n"
            f"      region: {REGION}\n      force-path-style: true\n      sync-interval: 200ms\n"
        )

    def rows(self, path: Path) -> int:
        """Counts the rows of a database."""
        with contextlib.closing(sqlite3.connect(path)) as opened:
            return opened.execute("SELECT count(*), sum(length(v)) FROM t").fetchone()[0]

    def add(self, count: int) -> None:
        """Adds rows."""
        with contextlib.closing(sqlite3.connect(self.database)) as opened:
            opened.execute("PRAGMA journal_mode = WAL")
            opened.execute("CREATE TABLE IF NOT EXISTS t(v BLOB)")
            opened.executemany("INSERT INTO t VALUES (randomblob(1000))", [()] * count)
            opened.commit()

    def replicate(self, seconds: int) -> None:
        """Replicates for a while."""
        self.workspace.run(PROGRAM, "replicate", "-config", self.config, "-exec", f"sleep {seconds}")

    def write(self) -> None:
        """Replicates a database."""
        self.add(ROWS)
        self.replicate(3)
        same(bool(self.workspace.keys(self.bucket)), True, "something was written")

    def read(self) -> None:
        """Restores the database."""
        into = self.workspace.folder / "restored.sqlite"
        self.workspace.run(PROGRAM, "restore", "-config", self.config, "-o", into, self.database)
        same(self.rows(into), ROWS, "rows restored")

    def remove(self) -> None:
        """Replicates until files of the beginning have expired."""
        before = set(self.workspace.keys(self.bucket))
        for _ in range(3):
            self.add(200)
            self.replicate(3)
        same(bool(before - set(self.workspace.keys(self.bucket))), True, "some of the first files have expired")
