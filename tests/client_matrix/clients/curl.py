"""curl with its own signature of version 4 (--aws-sigv4)."""

import re
from pathlib import Path
from urllib.parse import quote, unquote
from xml.etree import ElementTree

from client_matrix.storage import Storage
from client_matrix.workspace import REGION

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class Curl(Storage):
    """Requests by hand."""

    title = "curl"

    @classmethod
    def version(cls, run) -> str:
        return run("curl", "--version").split()[1]

    def curl(self, place: str, *words: object) -> str:
        """Sends a request about a bucket or an object."""
        server = self.workspace.server
        # Versions before 8 do not send the header, which S3 requires.
        signed = ("--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{server.access_key}:{server.secret_key}", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD")
        return self.workspace.run("curl", "--silent", "--show-error", "--fail-with-body", "--cacert", server.authority, *signed, *words, f"{server.endpoint}/{place}")

    def make(self, bucket: str) -> None:
        self.curl(bucket, "-X", "PUT")

    def buckets_seen(self) -> list[str]:
        return re.findall("<Name>(.*?)</Name>", self.curl(""))

    def drop(self, bucket: str) -> None:
        self.curl(bucket, "-X", "DELETE")

    def upload(self, bucket: str, key: str, file: Path) -> None:
        self.curl(f"{bucket}/{quote(key)}", "-T", file)

    def download(self, bucket: str, key: str, file: Path) -> None:
        self.curl(f"{bucket}/{quote(key)}", "-o", file)

    def part(self, bucket: str, key: str, first: int, last: int) -> bytes:
        into = self.workspace.folder / "part"
        self.curl(f"{bucket}/{quote(key)}", "-r", f"{first}-{last}", "-o", into)
        return into.read_bytes()

    def listed(self, bucket: str) -> list[str]:
        keys, token = [], ""
        while True:
            # curl signs parameters in the order in which they are given.
            page = ElementTree.fromstring(self.curl(f"{bucket}?{token}encoding-type=url&list-type=2"))
            keys += [unquote(item.findtext(f"{NAMESPACE}Key")) for item in page.findall(f"{NAMESPACE}Contents")]
            following = page.findtext(f"{NAMESPACE}NextContinuationToken")
            if not following:
                return keys
            token = f"continuation-token={quote(following, safe='')}&"

    def remove(self, bucket: str, key: str) -> None:
        self.curl(f"{bucket}/{quote(key)}", "-X", "DELETE")

    def copied(self, bucket: str, key: str, other: str) -> None:
        self.curl(f"{bucket}/{quote(other)}", "-X", "PUT", "-H", f"x-amz-copy-source: /{bucket}/{quote(key)}")
