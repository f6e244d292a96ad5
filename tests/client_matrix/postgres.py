"""A PostgreSQL server of a test's own, as Debian installs it."""

import os
import pwd
import shutil
from pathlib import Path

from client_matrix.workspace import Workspace
from harness.server import free_ports

START_SECONDS = 20
ROWS = 20_000


class Postgres:
    """A cluster in a folder, run as the user `postgres`: PostgreSQL refuses to run as root."""

    def __init__(self, workspace: Workspace):
        self.workspace = workspace
        self.user = pwd.getpwnam("postgres")
        self.programs = max(Path("/usr/lib/postgresql").iterdir()) / "bin"
        self.folder = workspace.folder / "postgres"
        self.data = self.folder / "data"
        (self.port,) = free_ports(1)
        self.folder.mkdir()
        for parent in workspace.folder.resolve().parents:
            if str(parent).startswith(str(Path(os.environ.get("TMPDIR", "/tmp")))) or parent.name.startswith("cairn-clients-"):
                parent.chmod(parent.stat().st_mode | 0o055)
        workspace.folder.chmod(0o755)
        self.give(self.folder)

    def give(self, path: Path) -> None:
        """Makes a path the user's own."""
        os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def run(self, *words: object) -> str:
        """Runs a command as the user."""
        return self.workspace.run("runuser", "-u", "postgres", "--", *words, more={"HOME": str(self.folder), "PGPORT": str(self.port), "PGHOST": str(self.folder)})

    def start(self, archive_command: str = "") -> None:
        """Makes and starts the cluster; `archive_command` copies each finished segment of the log."""
        if not self.data.exists():
            self.run(self.programs / "initdb", "-D", self.data, "--no-sync", "-A", "trust")
            with (self.data / "postgresql.conf").open("a") as config:
                config.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\nlisten_addresses = ''\nmax_wal_senders = 3\nwal_level = replica\n")
                if archive_command:
                    config.write(f"archive_mode = on\narchive_command = '{archive_command}'\n")
        self.run(self.programs / "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-t", START_SECONDS, "start")

    def stop(self) -> None:
        """Stops the cluster."""
        if (self.data / "postmaster.pid").exists():
            self.run(self.programs / "pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def query(self, text: str) -> str:
        """Runs one statement."""
        return self.run("psql", "-X", "-At", "-d", "postgres", "-c", text).strip()

    def fill(self) -> None:
        """Makes a table."""
        self.query(f"CREATE TABLE t AS SELECT i, md5(i::text) AS m FROM generate_series(1, {ROWS}) i")

    def clear(self) -> None:
        """Removes the data of a stopped cluster."""
        shutil.rmtree(self.data)
