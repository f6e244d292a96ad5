"""Programs that keep their data in S3: each writes, reads back and removes."""

from pathlib import Path

from client_matrix.operations import PROGRAM_OPERATIONS
from client_matrix.workspace import Workspace, Client

FILES = (("large", 17_000_000), ("sub dir/ü +%", 300_000), ("empty", 0))


class Program(Client):
    """A program with a bucket of its own. A subclass has the methods `write`, `read` and `remove`, run in this order."""

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.bucket = workspace.bucket()

    @classmethod
    def offers(cls, operation: str) -> bool:
        """Returns whether the program has an operation."""
        return operation in PROGRAM_OPERATIONS and hasattr(cls, operation)

    def files(self) -> Path:
        """Returns a folder of files, one of them large."""
        folder = self.workspace.folder / "files"
        if not folder.exists():
            for name, size in FILES:
                self.workspace.file(f"files/{name}", size)
        return folder
