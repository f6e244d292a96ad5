"""Active Storage: the attachments of Rails applications."""

import shutil

from client_matrix.program import Program
from client_matrix.workspace import Workspace, same
from harness.server import REPOSITORY

SCRIPT = REPOSITORY / "tests/clients/ruby/active_storage.rb"


class ActiveStorage(Program):
    """Attachments, direct uploads and variants, over the AWS SDK for Ruby."""

    title = "Active Storage (Rails)"

    @classmethod
    def version(cls, run) -> str:
        return run("ruby", "-e", "require 'active_storage'; print ActiveStorage.version")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.files_folder = workspace.folder / "attachments"
        for name, size in (("large", 17_000_000), ("small", 3000)):
            workspace.file(f"attachments/{name}", size)

    def service(self, verb: str) -> None:
        """Runs a part of the script."""
        self.workspace.run("ruby", SCRIPT, verb, self.bucket, self.files_folder)

    def write(self) -> None:
        """Uploads attachments, one in parts, one from a browser."""
        self.service("write")
        same(len(self.workspace.keys(self.bucket)), 6, "objects")

    def read(self) -> None:
        """Downloads them, a part of one, and one by a link with another name."""
        self.service("read")

    def remove(self) -> None:
        """Removes variants by their prefix, and single attachments."""
        self.service("remove")
        shutil.rmtree(self.files_folder)
