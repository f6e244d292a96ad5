#!/usr/bin/env python3
"""The resources of a store: memory, disk, pages of metadata. For the scenario scale.sh.

    store.py memory PID               # lines `name value`: resident and anonymous MiB of the server
    store.py disk FOLDER OBJECTS      # of a stopped store: MiB on the disk, of metadata and of payloads, tree depth, bytes an object
    store.py tables FOLDER            # a Markdown table of the LMDB tables of each environment of a stopped store
    store.py forget FOLDER            # drops the store's files from the page cache, as if the machine had been restarted

It reads LMDB's files by itself, so that it needs nothing but Python. The format is that of `mdb.c` of LMDB 0.9 on 64 bits.
"""

import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0xBEEFC0DE
META_PAGES = 2
# Fields of MDB_db: the page size in one of them, flags, depth, branch, leaf and overflow pages, entries, root page.
TABLE = struct.Struct("<IHHQQQQQ")
PAGE_HEADER_BYTES = 16
BRANCH, LEAF = 0x01, 0x02
SUB_TABLE = 0x02
NO_PAGE = 2**64 - 1
MIB = 2**20
# Smaller tables say nothing about growth.
ENTRIES_MIN = 100


@dataclass
class Table:
    """One table of an environment, as LMDB describes it."""

    name: str
    depth: int
    branch_pages: int
    pages: int
    entries: int


class Environment:
    """The last committed state of a data file that nobody writes."""

    def __init__(self, path: Path):
        self.file = path.open("rb")
        metas = [meta for number in range(META_PAGES) if (meta := self.meta(number))]
        if not metas:
            sys.exit(f"{path}: no meta page of LMDB")
        self.page_bytes, self.free, self.main, self.last_page, _ = max(metas, key=lambda meta: meta[-1])

    def meta(self, number: int) -> tuple | None:
        """Page size, table of free pages, main table, last page, and transaction of a meta page."""
        # Every page size that LMDB uses on this platform puts the second meta page at the system's page size.
        self.file.seek(number * os.sysconf("SC_PAGE_SIZE") + PAGE_HEADER_BYTES)
        magic, _version, _address, _map_bytes = struct.unpack("<IIQQ", self.file.read(24))
        if magic != MAGIC:
            return None
        free, main = (TABLE.unpack(self.file.read(TABLE.size)) for _ in range(2))
        last_page, transaction = struct.unpack("<QQ", self.file.read(16))
        return free[0], free, main, last_page, transaction

    def tables(self) -> list[Table]:
        """The named tables, largest first, and the main table with them."""
        found = [self.described("(main)", self.main), self.described("(free pages)", self.free)]
        if self.main[-1] != NO_PAGE:
            self.collect(self.main[-1], found)
        return sorted(found, key=lambda table: -table.pages)

    def described(self, name: str, table: tuple) -> Table:
        """A table from its record."""
        _pad, _flags, depth, branch, leaf, overflow, entries, _root = table
        return Table(name, depth, branch, branch + leaf + overflow, entries)

    def collect(self, page: int, found: list[Table]) -> None:
        """Adds the tables whose records are on a page of the main table, and below it."""
        self.file.seek(page * self.page_bytes)
        content = self.file.read(self.page_bytes)
        flags, lower = struct.unpack_from("<HH", content, 10)
        for index in range((lower - PAGE_HEADER_BYTES) // 2):
            (place,) = struct.unpack_from("<H", content, PAGE_HEADER_BYTES + 2 * index)
            low, high, node_flags, key_bytes = struct.unpack_from("<HHHH", content, place)
            if flags & BRANCH:
                self.collect(low | high << 16 | node_flags << 32, found)
            elif flags & LEAF and node_flags & SUB_TABLE:
                key = content[place + 8 : place + 8 + key_bytes]
                found.append(self.described(key.decode(errors="replace"), TABLE.unpack_from(content, place + 8 + key_bytes)))


def environments(folder: Path) -> dict[str, Environment]:
    """The environments of a store by the name of their folder."""
    return {str(path.parent.relative_to(folder)): Environment(path) for path in sorted(folder.rglob("data.mdb"))}


def on_disk(paths: list[Path]) -> int:
    """Bytes that files take on the disk; holes take none."""
    return sum(path.stat().st_blocks * 512 for path in paths)


def memory(process: str) -> dict[str, float]:
    """Resident memory, and the part of it that is no file: the rest are pages of metadata, which the kernel can take back."""
    lines = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    kib = {line[0]: int(line[1]) for line in lines if line[0] in ("VmRSS:", "RssAnon:")}
    return {"resident_mib": kib["VmRSS:"] / 1024, "anonymous_mib": kib["RssAnon:"] / 1024}


def disk(folder: Path, objects: int) -> dict[str, float]:
    """Disk and metadata of a stopped store."""
    all_bytes = on_disk([path for path in folder.rglob("*") if path.is_file()])
    volumes = on_disk(list(folder.rglob("*.vol")))
    tables = [(environment.page_bytes, table) for environment in environments(folder).values() for table in environment.tables()]
    used = sum(page_bytes * table.pages for page_bytes, table in tables)
    return {
        "disk_mib": all_bytes / MIB,
        "metadata_mib": used / MIB,
        "payload_mib": volumes / MIB,
        "tree_depth": max(table.depth for _, table in tables),
        "metadata_bytes_each": used / max(objects, 1),
        "disk_bytes_each": all_bytes / max(objects, 1),
    }


def print_tables(folder: Path) -> None:
    """Prints the tables that have more than a few entries."""
    print("| environment | table | entries | depth | pages of 4 KiB | of them branches | bytes of pages an entry |")
    print("|---|---|---|---|---|---|---|")
    for name, environment in environments(folder).items():
        for table in environment.tables():
            if table.entries >= ENTRIES_MIN:
                each = table.pages * environment.page_bytes / table.entries
                print(f"| {name} | {table.name} | {table.entries} | {table.depth} | {table.pages} | {table.branch_pages} | {each:.0f} |")


def forget(folder: Path) -> None:
    """Drops the files from the page cache. The files must not be mapped; dirty pages are written first."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def main() -> int:
    """Runs the command."""
    match sys.argv[1:]:
        case ["memory", process]:
            figures = memory(process)
        case ["disk", folder, objects]:
            figures = disk(Path(folder), int(objects))
        case ["tables", folder]:
            print_tables(Path(folder))
            return 0
        case ["forget", folder]:
            forget(Path(folder))
            return 0
        case _:
            print(__doc__)
            return 2
    for name, value in figures.items():
        print(name, f"{value:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
