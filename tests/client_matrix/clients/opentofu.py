"""OpenTofu, whose S3 backend is Terraform's."""

import json

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same
from harness.programs import TOOLS
from harness.server import REPOSITORY

PROGRAM = str(TOOLS / "tofu")


class OpenTofu(Program):
    """State in S3 with a lock file, as Terraform has it too."""

    title = "OpenTofu (Terraform's S3 backend)"

    @classmethod
    def version(cls, run) -> str:
        lines = (REPOSITORY / "tests/clients/opentofu/go.mod").read_text().splitlines()
        return next(line.split()[1] for line in lines if "opentofu/opentofu v" in line).lstrip("v")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.folder = workspace.folder / "tofu"
        self.folder.mkdir()
        workspace.environment |= {"TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}
        # The checks ask services of AWS that no other server has.
        settings = f"""
            bucket = "{self.bucket}"
            key = "state"
            region = "{REGION}"
            use_lockfile = true
            use_path_style = true
            skip_credentials_validation = true
            skip_requesting_account_id = true
            skip_metadata_api_check = true
            skip_region_validation = true
            endpoints = {{ s3 = "{workspace.server.endpoint}" }}
        """
        (self.folder / "main.tf").write_text(
            f'terraform {{\n  backend "s3" {{{settings}}}\n}}\nresource "terraform_data" "x" {{\n  input = var.value\n}}\nvariable "value" {{}}\n'
        )

    def tofu(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run(PROGRAM, f"-chdir={self.folder}", *words)

    def write(self) -> None:
        """Writes state under a lock, twice."""
        self.tofu("init", "-input=false", "-no-color")
        for value in ("first", "second"):
            self.tofu("apply", "-auto-approve", "-input=false", "-no-color", f"-var=value={value}")

    def read(self) -> None:
        """Reads the state."""
        state = json.loads(self.tofu("state", "pull"))
        same(state["resources"][0]["instances"][0]["attributes"]["output"]["value"], "second", "value in the state")

    def remove(self) -> None:
        """Destroys the resource; the lock is gone."""
        self.tofu("destroy", "-auto-approve", "-input=false", "-no-color", "-var=value=x")
        same(self.workspace.keys(self.bucket), ["state"], "objects left")
