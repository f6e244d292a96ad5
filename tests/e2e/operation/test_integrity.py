"""Integrity: damaged volumes and metadata are never served."""

import contextlib
import random
import signal

import pytest

from harness.cli import Cli
from harness.damage import find_bytes, flip_bit, read, volumes
from harness.s3 import md5_etag
from harness.server import Cairn, ServerError
from harness.wire import WireError

BLOCK_BYTES = 65536
PROBE_BYTES = 64
END_SECONDS = 60


def seeded_body(seed: int, size: int) -> bytes:
    """Returns reproducible bytes that occur nowhere else in the store."""
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("block", [0, 1, 7, 15])
def test_a_flipped_bit_in_a_volume_is_never_served(own_store: Cairn, block: int):
    """In the first block: 500. Later: the response is cut before the damage. All other data stays readable."""
    s3 = own_store.s3
    s3.create_bucket("bits")
    rng, body, other = random.Random(block), seeded_body(block, 16 * BLOCK_BYTES), seeded_body(99, 400_000)
    s3.put("bits", "hurt", body)
    s3.put("bits", "other", other)
    assert own_store.stop() == 0
    at = block * BLOCK_BYTES + rng.randrange(BLOCK_BYTES - PROBE_BYTES)
    places = find_bytes(volumes(own_store.data), body[at : at + PROBE_BYTES])
    assert len(places) == 1, f"the payload is not stored in exactly one place: {places}"
    flip_bit(*places[0], rng.randrange(8))
    own_store.start()

    status, got, complete = read(s3, "bits", "hurt")
    if status == 200:
        assert block > 0, "200 although the first block is damaged"
        assert not complete, "the response has its full length although a block is damaged"
        assert body.startswith(got) and len(got) <= block * BLOCK_BYTES
    else:
        assert status == 500 and b"InternalError" in got
    damaged_range = [("Range", f"bytes={block * BLOCK_BYTES}-{block * BLOCK_BYTES + 9}")]
    assert read(s3, "bits", "hurt", damaged_range)[0] == 500
    whole = (block + 1) % 16
    intact_range = [("Range", f"bytes={whole * BLOCK_BYTES}-{(whole + 1) * BLOCK_BYTES - 1}")]
    intact = read(s3, "bits", "hurt", intact_range)
    assert intact == (206, body[whole * BLOCK_BYTES : (whole + 1) * BLOCK_BYTES], True), "an undamaged block of the object is not readable"
    assert read(s3, "bits", "other") == (200, other, True)
    assert s3.put("bits", "hurt", b"healed").status == 200 and s3.get("bits", "hurt").body == b"healed"
    # The server is ready, and says what was found and what to do.
    shown = Cli(own_store.admin.address, own_store.secrets.system_token).text("status")
    assert "status: ready" in " ".join(shown.split())
    assert "notice:" in shown and "integrity: stored data failed its check" in shown
    assert "`cairn audit list --operation storage.damage`" in shown
    assert "integrity" in own_store.admin.get("/system/info").json()["notices"]


def test_random_flipped_bits_in_volumes_are_never_served(own_store: Cairn):
    """40 of 60 objects get a flipped bit. Their responses are errors or cut. The others are unchanged."""
    s3, rng = own_store.s3, random.Random(3)
    s3.create_bucket("bits")
    bodies = {f"k{number}": seeded_body(1000 + number, rng.randrange(20_000, 300_000)) for number in range(60)}
    for key, body in bodies.items():
        s3.put("bits", key, body)
    assert own_store.stop() == 0
    damaged = rng.sample(sorted(bodies), 40)
    for key in damaged:
        at = rng.randrange(len(bodies[key]) - PROBE_BYTES)
        (path, offset), *_ = find_bytes(volumes(own_store.data), bodies[key][at : at + PROBE_BYTES])
        flip_bit(path, offset, rng.randrange(8))
    own_store.start()
    for key, body in bodies.items():
        status, got, complete = read(s3, "bits", key)
        if key not in damaged:
            assert (status, got, complete) == (200, body, True), key
        else:
            assert status == 500 or (not complete and body.startswith(got)), (key, status, len(got), complete)


@pytest.mark.parametrize("part", ["payload", "metadata", "key"])
def test_a_flipped_bit_in_an_inline_object_is_never_served(own_store: Cairn, part: str):
    """Small payloads are stored in the metadata. LMDB has no checksums, so the records' own checksums must find it."""
    s3 = own_store.s3
    s3.create_bucket("bits")
    body, mark = seeded_body(5, 3000), "mark-" + seeded_body(6, 12).hex()
    key = "key-" + seeded_body(7, 12).hex()
    s3.put("bits", key, body, [("x-amz-meta-mark", mark)])
    s3.put("bits", "other", b"other")
    assert own_store.stop() == 0
    needle = {"payload": body[100:164], "metadata": mark.encode(), "key": key.encode()}[part]
    files = [path for path in own_store.data.rglob("data.mdb")]
    places = find_bytes(files, needle)
    assert places, "the record was not found in the LMDB files"
    for path, offset in places:
        flip_bit(path, offset + 20, 0)
    try:
        own_store.start()
    except ServerError:
        assert "checksum" in own_store.output() or "corrupt" in own_store.output().lower()
        return
    status, got, _ = read(s3, "bits", key)
    # A record whose key is damaged is not found by the key, but by a list, which checks it.
    assert status == (404 if part == "key" else 500), (status, got[:100])
    if part == "key":
        assert s3.list_page("bits").status == 500, "a damaged key is listed"
    assert read(s3, "bits", "other") == (200, b"other", True)


def test_truncated_volume_is_reported(own_store: Cairn):
    """A read of the missing part fails. It returns no zeros, and the server does not crash."""
    s3 = own_store.s3
    s3.create_bucket("bits")
    body = seeded_body(8, 1_000_000)
    s3.put("bits", "k", body)
    assert own_store.stop() == 0
    (path, offset), *_ = find_bytes(volumes(own_store.data), body[-PROBE_BYTES:])
    with path.open("r+b") as file:
        file.truncate(offset - offset % 4096)
    try:
        own_store.start()
    except ServerError:
        assert str(path.name) in own_store.output() or "volume" in own_store.output()
        return
    status, got, complete = read(s3, "bits", "k")
    assert status == 500 or (not complete and body.startswith(got))
    assert own_store.running()


def test_truncated_metadata_of_a_running_store_ends_it_with_an_explanation(own_store: Cairn):
    """LMDB reads through a memory map, so the kernel answers a read of a missing page with SIGBUS."""
    s3 = own_store.s3
    s3.create_bucket("bits")
    bodies = {f"k{number}": seeded_body(number, 12_000) for number in range(40)}
    for key, body in bodies.items():
        s3.put("bits", key, body)
    files = sorted(own_store.data.glob("slices/*/meta/data.mdb"))
    for path in files:
        with path.open("r+b") as file:
            file.truncate(2 * 4096)
    with contextlib.suppress(OSError, WireError):
        s3.get("bits", "k0")
    assert own_store.process.wait(END_SECONDS) == -signal.SIGBUS
    explanation = next(line for line in own_store.output().splitlines() if "SIGBUS" in line)
    assert any(str(path) in explanation for path in files) and "truncated" in explanation, explanation
    with pytest.raises(ServerError):
        own_store.start()
    assert "was truncated" in own_store.output()


def test_acknowledged_objects_survive_kill_9(own_store: Cairn):
    """After each acknowledged PUT the server is killed with SIGKILL and started again."""
    s3 = own_store.s3
    s3.create_bucket("kept")
    for number in range(6):
        body = seeded_body(number, 10 ** (number + 1))
        s3.put("kept", f"k{number}", body)
        own_store.kill()
        own_store.start()
        answer = s3.get("kept", f"k{number}")
        assert answer.body == body and answer.get("etag") == md5_etag(body)
    assert len(s3.list("kept").keys) == 6
