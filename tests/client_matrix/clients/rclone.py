"""rclone."""

import json
import sys
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, advice


class Rclone(Storage):
    """rclone with the remote type `s3`."""

    title = "rclone"
    program = str(Path(sys.executable).with_name("rclone"))
    recommended = advice(strict="`list_version = 2`, `copy_cutoff = 5G`")

    @classmethod
    def version(cls, run) -> str:
        return run(cls.program, "version").split()[1].lstrip("v")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        workspace.environment |= {
            "RCLONE_CONFIG": str(workspace.home / "rclone.conf"), "RCLONE_CONFIG_C_TYPE": "s3", "RCLONE_CONFIG_C_PROVIDER": "Other",
            "RCLONE_CONFIG_C_ENV_AUTH": "true", "RCLONE_CONFIG_C_ENDPOINT": server.endpoint, "RCLONE_CONFIG_C_REGION": REGION,
            "RCLONE_CONFIG_C_FORCE_PATH_STYLE": "true",
            # Every client copies in pieces where it can: the default here is 4.6 GiB.
            "RCLONE_CONFIG_C_COPY_CUTOFF": "16M", "RCLONE_CONFIG_C_UPLOAD_CUTOFF": "8M",
        }
        if workspace.recommended:
            workspace.environment |= {"RCLONE_CONFIG_C_LIST_VERSION": "2", "RCLONE_CONFIG_C_COPY_CUTOFF": "5G"}
        self.words = [self.program, "--retries", "1", "--low-level-retries", "1"]
        if server.tls:
            self.words += ["--ca-cert", server.authority]

    def rclone(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run(*self.words, *words)

    def make(self, bucket: str) -> None:
        self.rclone("mkdir", f"c:{bucket}")

    def buckets_seen(self) -> list[str]:
        return [line.rstrip("/") for line in self.rclone("lsf", "c:").splitlines()]

    def drop(self, bucket: str) -> None:
        self.rclone("rmdir", f"c:{bucket}")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.rclone("copyto", file, f"c:{bucket}/{key}")

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.rclone("copyto", f"c:{bucket}/{key}", file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.workspace.run(*self.words, "rcat", f"c:{bucket}/{key}", given=file.read_bytes())

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        into = self.workspace.folder / "part"
        with_shell = f'exec "$@" > {into}'
        self.workspace.run("sh", "-c", with_shell, "sh", *self.words, "cat", "--offset", first, "--count", last - first + 1, f"c:{bucket}/{key}")
        return into.read_bytes()

    def listed(self, bucket: str) -> list[str]:
        return self.rclone("lsf", "-R", "--files-only", f"c:{bucket}").splitlines()

    def folders(self, bucket: str) -> list[str]:
        return self.rclone("lsf", "--dirs-only", f"c:{bucket}").splitlines()

    def link_to_get(self, bucket: str, key: str) -> str:
        return self.rclone("link", f"c:{bucket}/{key}")

    def remove(self, bucket: str, key: str) -> None:
        self.rclone("deletefile", f"c:{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.rclone("delete", f"c:{bucket}/{prefix}")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.rclone("copyto", f"c:{bucket}/{key}", f"c:{bucket}/{other}")

    def version_on(self, bucket: str) -> None:
        self.rclone("backend", "versioning", f"c:{bucket}", "Enabled")

    def version_ids(self, bucket: str, key: str) -> list[str]:
        # It names versions by their times; the ids are those of the server.
        names = json.loads(self.rclone("lsjson", "--s3-versions", f"c:{bucket}"))
        self.old = next(item["Path"] for item in names if item["Path"] != key)
        ids = [version["VersionId"] for version in self.workspace.checker.list_object_versions(Bucket=bucket)["Versions"]]
        return ids[: len(names)]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        return self.rclone("cat", "--s3-versions", f"c:{bucket}/{self.old}").encode()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.rclone("deletefile", "--s3-versions", f"c:{bucket}/{self.old}")
