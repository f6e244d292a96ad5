"""restic."""

from client_matrix.program import Program
from client_matrix.workspace import Workspace
from harness.folders import digests


class Restic(Program):
    """Backups; built on minio-go."""

    title = "restic"

    @classmethod
    def version(cls, run) -> str:
        return run("restic", "version").split()[1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        workspace.environment |= {
            "RESTIC_REPOSITORY": f"s3:{workspace.server.endpoint}/{self.bucket}/host", "RESTIC_PASSWORD": "r", "RESTIC_CACHE_DIR": str(workspace.home / "cache"),
        }

    def restic(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run("restic", "--cacert", self.workspace.server.authority, *words)

    def write(self) -> None:
        """Makes a repository and two snapshots."""
        self.restic("init")
        self.restic("backup", self.files())
        self.workspace.file("files/more", 3_000_000)
        self.restic("backup", self.files())

    def read(self) -> None:
        """Checks the repository and restores the last snapshot."""
        self.restic("check", "--read-data")
        into = self.workspace.folder / "restored"
        self.restic("restore", "latest", "--target", into)
        assert digests(into / str(self.files()).lstrip("/")) == digests(self.files())

    def remove(self) -> None:
        """Forgets a snapshot and removes what only it used."""
        before = len(self.workspace.keys(self.bucket))
        (self.workspace.folder / "files/large").unlink()
        self.restic("backup", self.files())
        self.restic("forget", "--keep-last", "1", "--prune")
        assert len(self.workspace.keys(self.bucket)) < before, "nothing was removed"
