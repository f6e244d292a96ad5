"""Copies of a held store that clients write to: `--copies 50 --kills 10 --file-system ext4|xfs --encryption`.

Each copy must open, be consistent, and have every write that was acknowledged before. With kills, the server is killed
while it is held, and must have every acknowledged write afterwards.
"""

import argparse
import random
import shutil
import sys
from pathlib import Path

from harness.backups import Writers, back_up, check_store, cli_of, copied_store, put_metadata_over
from harness.disks import SmallDisk
from harness.server import RUNS, Cairn
from harness.wait import until

BUCKET = "campaign"
DISK_BYTES = 6 << 30
COPY = 'cp -a --sparse=always "$CAIRN_DATA_DIR" "$1/data" && cp -a "$CAIRN_BACKUP_DIR" "$1/metadata"'
# Two writes of each key.
WRITES_MIN = 80


def copy_once(store: Cairn, folder: Path) -> int:
    """Copies the store while clients write, and checks the copy. Returns how many keys were compared."""
    with Writers(store, BUCKET) as writers:
        until(lambda: writers.writes() > WRITES_MIN, "writes")
        acknowledged = dict(writers.written)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done = back_up(store, "--", "sh", "-euc", COPY, "sh", str(folder))
        assert done.returncode == 0, done
        last = dict(writers.written)
    copy = copied_store(store, folder)
    put_metadata_over(copy.data, folder / "metadata")
    copy.start()
    try:
        check_store(copy, BUCKET, acknowledged, last)
    finally:
        copy.kill()
    return len(acknowledged)


def kill_once(store: Cairn, rng: random.Random) -> int:
    """Kills the held server while clients write. Returns how many keys were compared."""
    with Writers(store, BUCKET, may_end=True) as writers:
        begun = cli_of(store).json("backup", "begin")
        assert begun["state"] == "held"
        more = writers.writes() + rng.randrange(1, 100)
        until(lambda: writers.writes() > more, "writes")
        store.kill()
    store.start()
    acknowledged = dict(writers.written)
    check_store(store, BUCKET, acknowledged, acknowledged)
    assert not (store.data / "backup").exists()
    return len(acknowledged)


def main(arguments: list[str]) -> int:
    """Runs the copies and kills, and prints what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=50, help="copies in a row (default 50)")
    parser.add_argument("--kills", type=int, default=10, help="kills of the held server (default 10)")
    parser.add_argument("--file-system", choices=("ext4", "xfs"), default="ext4", help="of the store and its copies")
    parser.add_argument("--encryption", action="store_true", help="payloads are sealed")
    parser.add_argument("--seed", type=int, default=1, help="when the kills strike")
    given = parser.parse_args(arguments)
    rng = random.Random(given.seed)
    folder = RUNS / f"backup-{given.file_system}"
    shutil.rmtree(folder, ignore_errors=True)
    disk = SmallDisk(folder / "disk", DISK_BYTES, given.file_system)
    store = Cairn(folder / "store", {"SERVICE_STORAGE_ENCRYPTION_ENABLED": str(given.encryption).lower()})
    store.data = disk.folder / "data"
    keys = 0
    try:
        store.start()
        store.s3.create_bucket(BUCKET)
        steps = ["copy"] * given.copies + ["kill"] * given.kills
        rng.shuffle(steps)
        for number, step in enumerate(steps):
            keys += copy_once(store, disk.folder / "copy") if step == "copy" else kill_once(store, rng)
            if number % 10 == 9:
                print(f"{number + 1} of {len(steps)}", flush=True)
    except AssertionError as broken:
        print(f"BROKEN: {broken}\n{store.output()[-2000:]}", file=sys.stderr)
        return 1
    finally:
        store.kill()
        disk.close()
    sealed = ", encrypted" if given.encryption else ""
    print(f"{given.file_system}{sealed}: {given.copies} copies and {given.kills} kills of a held store; {keys} acknowledged keys compared")
    return 0
