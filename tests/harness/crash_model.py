"""Model of the crash tests: acknowledged state of each key, unfinished uploads and pending changes.

Each key belongs to one writer, which makes one change at a time. So after a kill a key is in the state of its last
acknowledged change, or in that of the single change that was not answered; anything else is a broken promise. A power
cut has no such sharp moment: answers may be on their way while the disk is cut. `freeze` marks the moment before; what
was acknowledged then must be there, what was asked for later may be there.
"""

import functools
import hashlib
import random
import threading
from dataclasses import dataclass, field

# The share of each size class. The classes lie around the boundaries of inline payloads, units, blocks and writes.
SIZE_CLASSES = [
    (30, 0, 4_000), (15, 15_000, 18_000), (20, 18_000, 70_000), (20, 60_000, 300_000), (10, 300_000, 1_500_000),
    (5, 1_500_000, 6_000_000),
]
# Bodies are pieces of one text of random bytes, each from an offset of its own: made as fast as memory is copied, and
# no two of them have a byte range in common at the same place.
POOL_BYTES = 32 << 20
ETAGS_KEPT = 4096


@dataclass(frozen=True)
class Version:
    """A content that a key had or was meant to get."""

    generation: int
    size: int
    # For a copy, the key to which the bytes were originally put.
    origin: str = ""
    # The sizes of the parts, if it was uploaded in parts.
    parts: tuple[int, ...] = ()


@dataclass
class Upload:
    """An unfinished multipart upload."""

    key: str
    id: str
    # ETags of the acknowledged parts, by number.
    parts: dict[int, str] = field(default_factory=dict)
    # Numbers of parts that were sent but not acknowledged before the freeze.
    pending: set[int] = field(default_factory=set)


def composite_etag(body: bytes, parts: tuple[int, ...]) -> str:
    """Returns the ETag of an object that was uploaded in parts of these sizes."""
    digests, start = b"", 0
    for size in parts:
        digests += hashlib.md5(body[start : start + size]).digest()
        start += size
    return f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"'


@dataclass
class KeyState:
    """The state of a key. None means absent."""

    acknowledged: Version | None = None
    pending: list[Version | None] = field(default_factory=list)
    # The state after the last response, even after a freeze: the writer's view.
    seen: Version | None = None

    def allowed(self) -> list[Version | None]:
        """Returns the states that a reader may find now."""
        return [self.acknowledged, *self.pending]


class Model:
    """All keys of a run."""

    def __init__(self, seed: int, writers: int, keys_per_writer: int):
        self.seed = seed
        self.keys = {
            writer: {f"w{writer:02}/{'deep/' * (number % 3)}{number:04}": KeyState() for number in range(keys_per_writer)}
            for writer in range(writers)
        }
        self.generation = {writer: 0 for writer in range(writers)}
        # The acknowledged upload of each writer for which no completion or abort was requested.
        self.uploads: dict[int, Upload] = {}
        # The versions of each writer's key in the versioned bucket (`version_load.py`).
        self.versions: dict[int, object] = {}
        self.pool = random.Random(f"{seed}-bodies").randbytes(POOL_BYTES)
        self.frozen = False
        self.lock = threading.Lock()
        self.etag = functools.lru_cache(ETAGS_KEPT)(self._etag)

    def all(self) -> dict[str, KeyState]:
        """Returns every key with its state."""
        return {key: state for keys in self.keys.values() for key, state in keys.items()}

    def new_version(self, writer: int, rng: random.Random) -> Version:
        """Returns a writer's next content, with a new generation and a random size."""
        self.generation[writer] += 1
        _, low, high = rng.choices(SIZE_CLASSES, [share for share, _, _ in SIZE_CLASSES])[0]
        return Version(self.generation[writer], rng.randint(low, high))

    def body(self, key: str, version: Version) -> bytes:
        """Returns the bytes of a version."""
        name = f"{self.seed}:{version.origin or key}:{version.generation}:{version.size}".encode()
        start = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest()) % (POOL_BYTES - version.size)
        return self.pool[start : start + version.size]

    def _etag(self, key: str, version: Version) -> str:
        body = self.body(key, version)
        return composite_etag(body, version.parts) if version.parts else f'"{hashlib.md5(body).hexdigest()}"'

    def live_bytes(self) -> int:
        """Returns the total size of all acknowledged objects."""
        return sum(state.acknowledged.size for state in self.all().values() if state.acknowledged)

    # Pending changes

    def begin(self, state: KeyState, wish: Version | None) -> None:
        """Records a change before it is requested. From now on both outcomes are allowed."""
        with self.lock:
            state.pending.append(wish)

    def refused(self, state: KeyState) -> None:
        """Records that the change was refused and must not have happened."""
        with self.lock:
            state.pending.pop()

    def acknowledge(self, state: KeyState, wish: Version | None) -> None:
        """Records that the change was acknowledged, unless the response arrived after the freeze."""
        with self.lock:
            state.seen = wish
            if not self.frozen:
                state.acknowledged, state.pending = wish, []

    def note_upload(self, writer: int, upload: Upload | None) -> None:
        """Records that a writer's upload was created, or (None) that it is about to be completed or aborted."""
        with self.lock:
            if upload is None:
                self.uploads.pop(writer, None)
            elif not self.frozen:
                self.uploads[writer] = upload

    def note_part(self, upload: Upload, number: int, etag: str | None) -> None:
        """Records that a part is about to be sent (None), or was acknowledged."""
        with self.lock:
            if etag is None:
                upload.pending.add(number)
            elif not self.frozen:
                upload.parts[number] = etag
                upload.pending.discard(number)

    def freeze(self) -> None:
        """Freezes the acknowledged state, which must survive the power cut."""
        with self.lock:
            self.frozen = True

    def settle(self, state: KeyState, found: Version | None) -> bool:
        """Adopts the found state for the next cycle. Returns whether an unacknowledged change had been applied."""
        landed = found != state.acknowledged
        state.acknowledged, state.pending, state.seen = found, [], found
        self.frozen = False
        return landed
