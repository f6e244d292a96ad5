"""duplicity, as Debian has it, which keeps encrypted archives through boto3."""

from pathlib import Path

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace

# Older parts of a backup are kept as long as a newer one needs them.
ALL_CHAINS = "1"
# It compresses and encrypts everything, which takes its time.
FILES = (("first", 3_000_000), ("sub dir/ü", 300_000), ("empty", 0))


class Duplicity(Program):
    """Full and incremental backups of files."""

    title = "duplicity"

    @classmethod
    def version(cls, run) -> str:
        return run("duplicity", "--version").split()[1]

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.place = f"boto3+s3://{self.bucket}/host"
        workspace.environment |= {"PASSPHRASE": "d", "SIGN_PASSPHRASE": "d"}

    def duplicity(self, *words: object) -> str:
        """Runs it."""
        options = ("--s3-endpoint-url", self.workspace.server.endpoint, "--s3-region-name", REGION, "--archive-dir", self.workspace.home / "archive", "--num-retries", "1")
        return self.workspace.run("duplicity", *words, *options)

    def files(self) -> Path:
        """Returns a folder of files."""
        for name, size in FILES:
            self.workspace.file(f"files/{name}", size)
        return self.workspace.folder / "files"

    def write(self) -> None:
        """Makes a full and an incremental backup."""
        self.duplicity("full", self.files(), self.place)
        self.workspace.file("files/more", 1_000_000)
        self.duplicity("incremental", self.files(), self.place)

    def read(self) -> None:
        """Restores the last backup and compares it."""
        into = self.workspace.folder / "restored"
        self.duplicity("restore", self.place, into)
        for name in (*(name for name, _ in FILES), "more"):
            assert (into / name).read_bytes() == (self.files() / name).read_bytes(), f"{name} differs"

    def remove(self) -> None:
        """Removes the first chain, when there is a second one."""
        before = len(self.workspace.keys(self.bucket))
        self.duplicity("full", self.files(), self.place)
        self.duplicity("remove-all-but-n-full", ALL_CHAINS, "--force", self.place)
        assert len(self.workspace.keys(self.bucket)) <= before, "nothing was removed"
