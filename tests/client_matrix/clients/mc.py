"""mc, MinIO's client."""

import json
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import Workspace
from harness.programs import MC


class Mc(Storage):
    """MinIO's client, built on minio-go."""

    title = "mc"

    @classmethod
    def version(cls, run) -> str:
        lines = (Path(__file__).resolve().parents[2] / "clients/minio/go.mod").read_text().splitlines()
        found = next(line.split()[1] for line in lines if "github.com/minio/mc " in line)
        return found.split("-")[1][:8] if "-" in found else found

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        folder = workspace.home / "mc"
        (folder / "certs/CAs").mkdir(parents=True, exist_ok=True)
        (folder / "certs/CAs/authority.crt").write_text(server.authority.read_text())
        scheme = "https" if server.tls else "http"
        workspace.environment |= {
            "MC_CONFIG_DIR": str(folder), "MC_HOST_c": f"{scheme}://{server.access_key}:{server.secret_key}@{server.authority_name}",
        }

    def mc(self, *words: object) -> str:
        """Runs it."""
        return self.workspace.run(MC, *words)

    def make(self, bucket: str) -> None:
        self.mc("mb", f"c/{bucket}")

    def buckets_seen(self) -> list[str]:
        return [line.split()[-1].rstrip("/") for line in self.mc("ls", "c").splitlines()]

    def drop(self, bucket: str) -> None:
        self.mc("rb", f"c/{bucket}")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.mc("cp", "-q", file, f"c/{bucket}/{key}")

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.mc("cp", "-q", f"c/{bucket}/{key}", file)

    def pipe(self, bucket: str, key: str, file: Path) -> None:
        self.workspace.run(MC, "pipe", "-q", f"c/{bucket}/{key}", given=file.read_bytes())

    def listed(self, bucket: str) -> list[str]:
        return [json.loads(line)["key"] for line in self.mc("ls", "-r", "--json", f"c/{bucket}").splitlines()]

    def folders(self, bucket: str) -> list[str]:
        found = [json.loads(line) for line in self.mc("ls", "--json", f"c/{bucket}").splitlines()]
        return [item["key"] for item in found if item["type"] == "folder"]

    def link_to_get(self, bucket: str, key: str) -> str:
        return json.loads(self.mc("share", "download", "--json", f"c/{bucket}/{key}"))["share"]

    def remove(self, bucket: str, key: str) -> None:
        self.mc("rm", f"c/{bucket}/{key}")

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        self.mc("rm", "-r", "--force", f"c/{bucket}/{prefix}")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.mc("cp", "-q", f"c/{bucket}/{key}", f"c/{bucket}/{other}")

    def version_on(self, bucket: str) -> None:
        self.mc("version", "enable", f"c/{bucket}")

    def version_ids(self, bucket: str, key: str) -> list[str]:
        found = [json.loads(line) for line in self.mc("ls", "--versions", "--json", f"c/{bucket}/{key}").splitlines()]
        return [item["versionId"] for item in found]

    def version_get(self, bucket: str, key: str, version: str) -> bytes:
        return self.mc("cat", "--vid", version, f"c/{bucket}/{key}").encode()

    def version_remove(self, bucket: str, key: str, version: str) -> None:
        self.mc("rm", "--vid", version, f"c/{bucket}/{key}")

    def retain(self, bucket: str, key: str, seconds: int) -> None:
        self.mc("retention", "set", "governance", "1d", f"c/{bucket}/{key}")

    def retention(self, bucket: str, key: str) -> str:
        return json.loads(self.mc("retention", "info", "--json", f"c/{bucket}/{key}"))["mode"]

    def hold(self, bucket: str, key: str, state: str) -> None:
        self.mc("legalhold", "set" if state == "ON" else "clear", f"c/{bucket}/{key}")

    def tag(self, bucket: str, key: str, name: str, value: str) -> None:
        self.mc("tag", "set", f"c/{bucket}/{key}", f"{name}={value.replace(' + ', '%20%2B%20')}")

    def tags_of(self, bucket: str, key: str) -> dict[str, str]:
        return json.loads(self.mc("tag", "list", "--json", f"c/{bucket}/{key}"))["tagset"]

    def tag_bucket(self, bucket: str, name: str, value: str) -> None:
        self.mc("tag", "set", f"c/{bucket}", f"{name}={value}")

    def tags_of_bucket(self, bucket: str) -> dict[str, str]:
        return json.loads(self.mc("tag", "list", "--json", f"c/{bucket}"))["tagset"]
