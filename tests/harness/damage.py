"""Damage injection: finds stored bytes in a store's files, flips bits, and reads the effect."""

from pathlib import Path

from .s3 import S3, object_target
from .wire import WireError, encode_head

PAGE_BYTES = 4096


def volumes(data: Path) -> list[Path]:
    """Returns the payload volumes of a store."""
    return sorted(data.glob("slices/*/volumes/*.vol"))


def metadata(data: Path) -> list[Path]:
    """Returns the metadata files of a store's slices."""
    return sorted(data.glob("slices/*/meta/data.mdb"))


def flip_bit(path: Path, offset: int, bit: int) -> None:
    """Flips one bit in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


def find_bytes(files: list[Path], needle: bytes) -> list[tuple[Path, int]]:
    """Yields every position of the needle in these files."""
    places = []
    for path in files:
        data, at = path.read_bytes(), -1
        while (at := data.find(needle, at + 1)) >= 0:
            places.append((path, at))
    return places


def read(s3: S3, bucket: str, key: str, headers: list[tuple[str, str]] | None = None) -> tuple[int, bytes, bool]:
    """Returns the status, the received bytes, and whether the response had its declared length."""
    target = object_target(bucket, key)
    with s3.connect() as connection:
        connection.send_must(encode_head("GET", target, s3.signed_head("GET", target, headers)))
        response = connection.read_head()
        length = int(response.get("content-length"))
        pieces, count = [], 0
        try:
            while count < length:
                piece = connection.take(min(1 << 16, length - count))
                pieces.append(piece)
                count += len(piece)
        except WireError:
            return response.status, b"".join(pieces) + connection.buffer, False
        return response.status, b"".join(pieces), True


def unit_places(data: Path, prefix_bytes: int) -> dict[bytes, tuple[Path, int]]:
    """Maps the first bytes of every nonzero unit in all volumes to their position."""
    places: dict[bytes, tuple[Path, int]] = {}
    zeros = bytes(PAGE_BYTES)
    for path in volumes(data):
        with path.open("rb") as file:
            at = 0
            while unit := file.read(PAGE_BYTES):
                if unit != zeros:
                    places[unit[:prefix_bytes]] = (path, at)
                at += len(unit)
    return places


class Metadata:
    """A searchable copy of all nonzero metadata pages.

    LMDB keeps earlier copies of its pages, so a record may be found in several places, one of which is current.
    """

    def __init__(self, data: Path):
        zeros = bytes(PAGE_BYTES)
        self.runs: list[tuple[Path, int, bytes]] = []
        for path in metadata(data):
            content = path.read_bytes()
            start = 0
            while start < len(content):
                end = start
                while end < len(content) and content[end : end + PAGE_BYTES] != zeros:
                    end += PAGE_BYTES
                if end > start:
                    self.runs.append((path, start, content[start:end]))
                start = end + PAGE_BYTES

    def find(self, needle: bytes) -> list[tuple[Path, int]]:
        """Returns every position of the needle."""
        places = []
        for path, start, content in self.runs:
            at = -1
            while (at := content.find(needle, at + 1)) >= 0:
                places.append((path, start + at))
        return places

    def bytes_at(self, path: Path, at: int, count: int) -> bytes:
        """Returns the bytes at a found position."""
        for run_path, start, content in self.runs:
            if run_path == path and start <= at < start + len(content):
                return content[at - start : at - start + count]
        return b""
