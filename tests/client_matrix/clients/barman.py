"""Barman's programs for clouds."""

import json
import sys
from pathlib import Path

from client_matrix.postgres import ROWS, Postgres
from client_matrix.program import Program
from client_matrix.workspace import Workspace, advice, same

PROGRAMS = Path(sys.executable).parent


class Barman(Program):
    """Backups of PostgreSQL, made with boto3."""

    title = "Barman (barman-cloud)"
    recommended = advice(strict_TLS="`AWS_REQUEST_CHECKSUM_CALCULATION=when_required`")

    @classmethod
    def version(cls, run) -> str:
        return run(PROGRAMS / "barman-cloud-backup", "--version").split()[-1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.postgres = Postgres(workspace)
        config = self.postgres.folder / "aws-config"
        config.write_text("[default]\ns3 =\n    addressing_style = path\n")
        # Its helpers talk over sockets in TMPDIR, whose names must be short.
        workspace.environment |= {"AWS_CONFIG_FILE": str(config), "TMPDIR": "/tmp"}
        if workspace.recommended:
            workspace.environment["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
        self.place = [f"s3://{self.bucket}/pg", "main"]
        self.words = ["--endpoint-url", workspace.server.endpoint]

    def barman(self, name: str, *words: object) -> str:
        """Runs one of the programs."""
        return self.workspace.run(PROGRAMS / f"barman-cloud-{name}", *self.words, *words)

    def write(self) -> None:
        """Makes a backup and archives a segment of the log."""
        self.postgres.start()
        self.postgres.fill()
        connection = ["-h", self.postgres.folder, "-p", self.postgres.port, "-U", "postgres", "-d", "postgres"]
        self.barman("backup", "--immediate-checkpoint", *connection, *self.place)
        segment = self.postgres.query("SELECT pg_walfile_name(pg_switch_wal())")
        self.barman("wal-archive", *self.place, self.postgres.data / "pg_wal" / segment)

    def backups(self) -> list[str]:
        """Lists the backups."""
        return [backup["backup_id"] for backup in json.loads(self.barman("backup-list", "--format", "json", *self.place))["backups_list"]]

    def read(self) -> None:
        """Restores the files of the backup."""
        into = self.postgres.folder / "restored"
        self.barman("restore", *self.place, self.backups()[0], into)
        same((into / "PG_VERSION").read_text(), (self.postgres.data / "PG_VERSION").read_text(), "version of the restored cluster")
        same(self.postgres.query("SELECT count(*) FROM t"), str(ROWS), "rows")

    def remove(self) -> None:
        """Deletes the backup."""
        self.barman("backup-delete", "--backup-id", self.backups()[0], *self.place)
        left = [key for key in self.workspace.keys(self.bucket) if "/base/" in key]
        same(left, [], "files of the backup left")

    def end(self) -> None:
        self.postgres.stop()
