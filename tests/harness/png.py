"""Writes PNG images."""

import struct
import zlib


def png(width: int, rows: list[bytes]) -> bytes:
    """Returns an image of these rows, which have three bytes for each pixel: red, green and blue."""
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    # The zero before each row says that the row is not filtered.
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, body: bytes) -> bytes:
    """Returns a chunk with its length and its checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
