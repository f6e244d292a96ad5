"""pgBackRest."""

import json

from client_matrix.postgres import ROWS, Postgres
from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same


class PgBackRest(Program):
    """Backups of PostgreSQL; it speaks TLS only."""

    title = "pgBackRest"
    not_over = {"HTTP": "it has no plain HTTP"}

    @classmethod
    def version(cls, run) -> str:
        return run("pgbackrest", "version").split()[-1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        self.postgres = Postgres(workspace)
        self.config = workspace.folder / "pgbackrest.conf"
        folder = self.postgres.folder
        self.config.write_text(
            f"[global]\nrepo1-type=s3\nrepo1-path=/repo\nrepo1-s3-bucket={self.bucket}\nrepo1-s3-endpoint={server.host}\n"
            f"repo1-storage-port={server.port}\nrepo1-s3-region={REGION}\nrepo1-s3-key={server.access_key}\nrepo1-s3-key-secret={server.secret_key}\n"
            f"repo1-s3-uri-style=path\nrepo1-storage-ca-file={server.authority}\nrepo1-retention-full=1\nstart-fast=y\nio-timeout=20\n"
            f"log-path={folder}\nlock-path={folder}/lock\nspool-path={folder}\nlog-level-console=warn\nlog-level-file=off\ncompress-level=1\n"
            f"[main]\npg1-path={self.postgres.data}\npg1-port={self.postgres.port}\npg1-socket-path={folder}\n"
        )
        self.words = ["pgbackrest", f"--config={self.config}", "--stanza=main"]

    def write(self) -> None:
        """Archives the log and makes a full backup."""
        self.postgres.start(f"pgbackrest --config={self.config} --stanza=main archive-push %p")
        self.postgres.run(*self.words, "stanza-create")
        self.postgres.fill()
        self.postgres.run(*self.words, "--type=full", "backup")

    def remove(self) -> None:
        """Makes a second full backup, which expires the first."""
        first = self.labels()
        self.postgres.run(*self.words, "--type=full", "backup")
        same(len(self.labels()), 1, "backups left")
        # Its history of manifests is kept.
        left = [key for key in self.workspace.keys(self.bucket) if first[0] in key and "backup.history" not in key]
        same(left, [], "files of the expired backup")

    def labels(self) -> list[str]:
        """Lists the backups."""
        return [backup["label"] for backup in json.loads(self.postgres.run(*self.words, "info", "--output=json"))[0]["backup"]]

    def read(self) -> None:
        """Restores the cluster and counts rows."""
        self.postgres.stop()
        self.postgres.clear()
        self.postgres.run("mkdir", "-m", "700", self.postgres.data)
        self.postgres.run(*self.words, "restore")
        self.postgres.start()
        same(self.postgres.query("SELECT count(*) FROM t"), str(ROWS), "rows restored")

    def end(self) -> None:
        self.postgres.stop()
