"""Runs `cairn export` from a store."""

import json
import subprocess
from pathlib import Path

from .minio import Minio
from .server import BINARY, Cairn, clean_environment

TIMEOUT = 120


class Exporter:
    """The command, from one store to a folder or to another store."""

    def __init__(self, source: Cairn, folder: Path):
        self.source, self.folder = source, folder
        # A relay that a test puts before the source.
        self.relay: str | None = None

    def command(self, bucket: str, to: str, *arguments: str) -> list[str]:
        """Returns the arguments of a command."""
        return [str(BINARY), "export", "--from-bucket", bucket, "--to", to, "--endpoint", self.relay or self.source.management, *arguments]

    def environment(self, target: Minio | Cairn | None = None) -> dict[str, str]:
        """Returns the environment, with the credential of the target."""
        variables = {"SERVICE_MANAGEMENT_TOKEN": self.source.secrets.system_token}
        if target is not None:
            variables |= {"TARGET_ENDPOINT": target.endpoint, "TARGET_ACCESS_KEY": target.credential.access_key, "TARGET_SECRET_KEY": target.credential.secret_key}
        return clean_environment() | variables

    def run(self, bucket: str, to: str, *arguments: str, target: Minio | Cairn | None = None) -> subprocess.CompletedProcess:
        """Runs a command to its end, in the folder."""
        done = subprocess.run(
            self.command(bucket, to, *arguments), env=self.environment(target), cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TIMEOUT,
        )
        assert "panicked" not in done.stderr
        return done

    def json(self, bucket: str, to: str, *arguments: str, code: int = 0, target: Minio | Cairn | None = None) -> dict:
        """Runs a command that must end with this code. Returns the counts that are not 0."""
        done = self.run(bucket, to, *arguments, "--json", target=target)
        assert done.returncode == code, done
        return {name: count for name, count in json.loads(done.stdout).items() if count and name != "manifest"}


def manifest(path: Path) -> list[dict]:
    """Returns the lines of a manifest."""
    return [json.loads(line) for line in path.read_text().splitlines()]
