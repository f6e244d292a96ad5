"""Reads the tables of an LMDB data file, page by page, without LMDB.

The file must be one without a commit log: a server with `storage.commit = "lmdb"` leaves such files when it is stopped.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
HEAD = 16
BRANCH = 1
BIG_DATA, SUB_DATABASE = 1, 2
NO_PAGE = 2**64 - 1
META = struct.Struct("<IIQQ48s48sQQ")
DATABASE = struct.Struct("<IHHQQQQQ")


class DataFile:
    """A data file in memory."""

    def __init__(self, path: Path):
        self.content = path.read_bytes()
        metas = [META.unpack_from(self.content, page * PAGE + HEAD) for page in (0, 1)]
        newest = max(metas, key=lambda meta: meta[7])
        self.main = DATABASE.unpack(newest[5])[7]

    def page(self, number: int) -> bytes:
        """Returns a page."""
        return self.content[number * PAGE : (number + 1) * PAGE]

    def nodes(self, root: int) -> Iterator[tuple[bytes, int, bytes, list[tuple[int, int]]]]:
        """Yields key, flags, value and places (from, to in the file) of all entries below a page."""
        if root == NO_PAGE:
            return
        page = self.page(root)
        flags, lower = struct.unpack_from("<HH", page, 10)
        for at in struct.unpack_from(f"<{(lower - HEAD) // 2}H", page, HEAD):
            low, high, node_flags, key_bytes = struct.unpack_from("<HHHH", page, at)
            key, start = page[at + 8 : at + 8 + key_bytes], at + 8 + key_bytes
            if flags & BRANCH:
                yield from self.nodes(low | high << 16 | node_flags << 32)
                continue
            length = low | high << 16
            own = root * PAGE
            if node_flags & BIG_DATA:
                first = int.from_bytes(page[start : start + 8], "little") * PAGE + HEAD
                places = [(own + at, own + start + 8), (first, first + length)]
                yield key, node_flags, self.content[first : first + length], places
            else:
                yield key, node_flags, page[start : start + length], [(own + at, own + start + length)]

    def roots(self) -> dict[str, int]:
        """Returns the root page of each table."""
        found = self.nodes(self.main)
        return {key.decode(): DATABASE.unpack(value)[7] for key, flags, value, _ in found if flags & SUB_DATABASE}

    def places(self, table: str) -> Iterator[tuple[bytes, bytes, list[tuple[int, int]]]]:
        """Yields key, value and places of the entries of a table."""
        return ((key, value, places) for key, _, value, places in self.nodes(self.roots()[table]))

    def tables(self) -> dict[str, dict[bytes, bytes]]:
        """Returns the entries of every table by its name."""
        return {name: {key: value for key, _, value, _ in self.nodes(root)} for name, root in self.roots().items()}


def record_versions(path: Path) -> dict[str, set[int]]:
    """Returns the versions of the records in each table (lmdb/src/record.rs)."""
    return {name: {value[8] for value in entries.values()} for name, entries in DataFile(path).tables().items()}
