"""s3fs-fuse."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from client_matrix.storage import Storage
from client_matrix.workspace import REGION, Workspace, Refused, advice

MOUNT_SECONDS = 10


class S3fs(Storage):
    """A bucket mounted as a file system."""

    title = "s3fs-fuse"
    recommended = advice(strict="`-o listobjectsv2,norenameapi`")

    @classmethod
    def version(cls, run) -> str:
        return next(word for word in run("s3fs", "--version").split() if word.startswith("V")).lstrip("V")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        self.keys = workspace.home / "s3fs-keys"
        self.keys.write_text(f"{workspace.server.access_key}:{workspace.server.secret_key}\n")
        self.keys.chmod(0o600)

    @contextlib.contextmanager
    def mounted(self, bucket: str) -> Iterator[Path]:
        """Mounts a bucket for one operation, so that no cache of another one answers."""
        server, folder = self.workspace.server, self.workspace.folder / f"mount-{bucket}"
        folder.mkdir()
        options = f"url={server.endpoint},use_path_request_style,endpoint={REGION},passwd_file={self.keys},retries=3,multipart_size=5,multipart_copy_size=32"
        if self.workspace.recommended and server.strict:
            options += ",listobjectsv2,norenameapi"
        environment = self.workspace.environment | {"CURL_CA_BUNDLE": str(server.authority)}
        with (self.workspace.folder / "s3fs.log").open("wb") as log:
            process = subprocess.Popen(["s3fs", bucket, folder, "-f", "-o", options], env=environment, stdout=log, stderr=log)
        try:
            give_up = time.monotonic() + MOUNT_SECONDS
            while not os.path.ismount(folder):
                if process.poll() is not None or time.monotonic() > give_up:
                    raise Refused(f"not mounted: {self.said()}")
                time.sleep(0.02)
            yield folder
        except OSError as error:
            raise Refused(f"{error.strerror}: {self.said()}") from None
        finally:
            subprocess.run(["fusermount", "-u", "-z", folder], check=False, capture_output=True)
            process.terminate()
            process.wait()
            folder.rmdir()

    def said(self) -> str:
        """Returns what the last mount logged as an error."""
        lines = (self.workspace.folder / "s3fs.log").read_text().splitlines()
        return " ".join(line for line in lines if "[ERR]" in line or "[CRT]" in line)[:600]

    def upload(self, bucket: str, key: str, file: Path) -> None:
        with self.mounted(bucket) as folder:
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / key)

    def download(self, bucket: str, key: str, file: Path) -> None:
        with self.mounted(bucket) as folder:
            shutil.copyfile(folder / key, file)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        with self.mounted(bucket) as folder, (folder / key).open("rb") as opened:
            opened.seek(first)
            return opened.read(last - first + 1)

    def listed(self, bucket: str) -> list[str]:
        with self.mounted(bucket) as folder:
            return os.listdir(folder)

    def folders(self, bucket: str) -> list[str]:
        with self.mounted(bucket) as folder:
            return [path.name for path in folder.iterdir() if path.is_dir()]

    def remove(self, bucket: str, key: str) -> None:
        with self.mounted(bucket) as folder:
            (folder / key).unlink()

    def remove_many(self, bucket: str, prefix: str, keys: list[str]) -> None:
        with self.mounted(bucket) as folder:
            shutil.rmtree(folder / prefix)

    def copied(self, bucket: str, key: str, other: str) -> None:
        # A rename is a copy and a delete; the source is put back for the next operation.
        with self.mounted(bucket) as folder:
            (folder / key).rename(folder / other)
