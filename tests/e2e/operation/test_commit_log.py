"""The commit log of a slice: switched on and off, missing, damaged, and full.

What was acknowledged must be there after a kill -9 with either setting, and with the other one afterwards.
"""

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.folders import tree
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.server import Cairn

BUCKET = "kept"
BLOCK = 4096
END_SECONDS = 60
LOG = "slices/00/meta/commit.log"


def body(number: int) -> bytes:
    """Returns the content of an object, small or in a volume."""
    return random.Random(number).randbytes(200_000 if number % 10 == 0 else 3000)


def put(store: Cairn, numbers: range) -> None:
    """Uploads objects."""
    for number in numbers:
        store.s3.put(BUCKET, f"k{number}", body(number))


def check(store: Cairn, numbers: range) -> None:
    """Compares all objects."""
    assert set(store.s3.list_all(BUCKET)) == {f"k{number}" for number in numbers}
    for number in numbers:
        assert store.s3.get(BUCKET, f"k{number}").body == body(number), number


def records(log: Path) -> list[tuple[int, int]]:
    """Returns sequence and offset of each record whose head is in the file, in the order of their sequences."""
    content = log.read_bytes()
    heads = [at for at in range(0, len(content), BLOCK) if content[at : at + 8] == b"CAIRNLOG"]
    return sorted((int.from_bytes(content[at + 24 : at + 32], "little"), at) for at in heads)


def refused(store: Cairn) -> str:
    """Starts the store and expects an error that names the slice. Returns the output."""
    store.log.unlink(missing_ok=True)
    process = store.spawn()
    assert 0 < process.wait(END_SECONDS) < 100, store.output()
    assert str(store.data / "slices/00/meta") in store.output() and "panicked" not in store.output(), store.output()
    return store.output()


def test_a_store_is_committed_with_and_without_a_log_in_turn(make_store: Callable[..., Cairn]):
    """Each time it is killed. The next start has everything, whatever its setting."""
    store = make_store(SERVICE_STORAGE_COMMIT="log").start()
    store.s3.create_bucket(BUCKET)
    count = 0
    for mode in ("lmdb", "log", "log", "lmdb", "lmdb", "log"):
        put(store, range(count, count + 25))
        count += 25
        has_log = store.extra["SERVICE_STORAGE_COMMIT"] == "log"
        assert (store.data / LOG).exists() == has_log
        store.kill()
        store.extra["SERVICE_STORAGE_COMMIT"] = mode
        store.start()
        check(store, range(count))
    assert store.stop() == 0


def test_a_clean_stop_leaves_nothing_to_apply(make_store: Callable[..., Cairn]):
    """After a kill, the start applies what the last checkpoint does not contain."""
    store = make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    store.s3.create_bucket(BUCKET)
    put(store, range(20))
    assert scrape(store).sum("service_commit_log_bytes") > 0
    store.restart()
    assert scrape(store).sum("service_commit_log_replayed_records") == 0
    put(store, range(20, 40))
    store.kill()
    store.start()
    assert scrape(store).sum("service_commit_log_replayed_records") > 0
    check(store, range(40))


def test_a_missing_log_refuses_the_start(own_store: Cairn):
    """It may hold acknowledged changes."""
    own_store.s3.create_bucket(BUCKET)
    put(own_store, range(20))
    own_store.kill()
    log = own_store.data / LOG
    content = log.read_bytes()
    log.unlink()
    for mode in ("log", "lmdb"):
        own_store.extra["SERVICE_STORAGE_COMMIT"] = mode
        assert "commit log" in refused(own_store)
        assert not log.exists()
    log.write_bytes(content)
    own_store.start()
    check(own_store, range(20))


def killed_store(make_store: Callable[..., Cairn]) -> Cairn:
    """Returns a store with one slice and 20 objects, as a kill leaves it."""
    store = make_store(SERVICE_STORAGE_SLICES="1").start()
    store.s3.create_bucket(BUCKET)
    put(store, range(20))
    store.kill()
    return store


def damage(log: Path, from_end: int) -> bytes:
    """Flips a bit in a record; the last one is 1 from the end. Returns the content of the file before."""
    content = log.read_bytes()
    _, offset = records(log)[-from_end]
    damaged = bytearray(content)
    damaged[offset + 100] ^= 1
    log.write_bytes(damaged)
    return content


def test_a_damaged_record_refuses_the_start_unless_it_is_the_last(make_store: Callable[..., Cairn]):
    """Records after it were written later, so it was acknowledged."""
    store = killed_store(make_store)
    log = store.data / LOG
    content = damage(log, from_end=2)
    output = refused(store)
    assert "is damaged or missing" in output, output
    log.write_bytes(content)
    store.start()
    check(store, range(20))


def discard_log(store: Cairn, folder: Path, *options: str) -> subprocess.CompletedProcess:
    """Runs `cairn storage discard-log`."""
    command = [str(store.binary), "storage", "discard-log", "--data-dir", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def discard(store: Cairn, *options: str) -> dict:
    """Runs `cairn storage discard-log` and returns what it found."""
    done = discard_log(store, store.data, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_logs(store: Cairn, code: int) -> tuple[str, str, str]:
    """Runs `cairn check` and returns what it says about the commit logs: verdict, finding and fix."""
    command = [str(store.binary), "check", "--json"]
    done = subprocess.run(command, env=store.environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done
    [found] = [found for found in json.loads(done.stdout)["checks"] if found["name"] == "commit logs"]
    return found["verdict"], found["seen"], found["mend"] or ""


def test_a_damaged_log_is_given_up_on_request(make_store: Callable[..., Cairn]):
    """The store has what precedes the damage, and can be used again."""
    store = killed_store(make_store)
    log = store.data / LOG
    damage(log, from_end=3)
    content = log.read_bytes()
    assert "cairn storage discard-log" in refused(store)
    before = tree(store.data)
    verdict, seen, mend = check_logs(store, code=1)
    assert tree(store.data) == before
    assert verdict == "failed" and "is damaged or missing" in seen and "discard-log" in mend, seen
    found = discard(store)
    [damaged] = found["damaged_logs"]
    assert not found["applied"] and damaged["environment"] == "slices/00/meta"
    assert damaged["kept_transactions"] > 0 and damaged["lost_transactions"] == 2
    # One object with each record, and the first of the three is in the damaged one.
    assert damaged["lost_objects"] == [{"bucket": BUCKET, "key": f"k{i}"} for i in (18, 19)]
    shown = discard_log(store, store.data).stdout
    assert all(f"    {BUCKET}/k{i}\n" in shown for i in (18, 19)), shown
    assert "is damaged or missing" in refused(store)
    assert discard(store, "--apply")["damaged_logs"] == [damaged]
    assert (log.parent / "commit.log.damaged-1").read_bytes() == content
    assert check_logs(store, code=0)[0] == "ok"
    store.start()
    # One object with each record.
    check(store, range(17))
    put(store, range(17, 30))
    store.kill()
    assert discard(store) == {"applied": False, "damaged_logs": []}
    store.start()
    check(store, range(30))


def test_a_running_store_and_a_folder_without_one_are_refused(own_store: Cairn, tmp_path: Path):
    """Nothing is created in the folder."""
    for folder, message in ((own_store.data, "another process"), (tmp_path, "holds no store")):
        done = discard_log(own_store, folder, "--apply")
        assert done.returncode == 1 and message in done.stderr, done
    assert not list(tmp_path.iterdir())
