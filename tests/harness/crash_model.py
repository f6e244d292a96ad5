"""What the crash test knows: every key's acknowledged state, and the one change that may be under way.

Each key belongs to one writer, which makes one change at a time. So after a kill a key is in the state of its last
acknowledged change, or in that of the single change that was not answered; anything else is a broken promise.
The bytes of an object follow from the seed, its key and its generation, so nothing large has to be remembered.
"""

import hashlib
import random
from dataclasses import dataclass, field

# The share of each size class; the classes lie around the borders of inline payloads, units, blocks and writes.
SIZE_CLASSES = [
    (30, 0, 4_000), (15, 15_000, 18_000), (20, 18_000, 70_000), (20, 60_000, 300_000), (10, 300_000, 1_500_000),
    (5, 1_500_000, 6_000_000),
]


@dataclass(frozen=True)
class Version:
    """One content that a key had or was to have."""

    generation: int
    size: int


@dataclass
class KeyState:
    """A key as one writer left it; None stands for absent."""

    acknowledged: Version | None = None
    pending: list[Version | None] = field(default_factory=list)

    def allowed(self) -> list[Version | None]:
        """What a reader may find now."""
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

    def all(self) -> dict[str, KeyState]:
        """Every key with its state."""
        return {key: state for keys in self.keys.values() for key, state in keys.items()}

    def new_version(self, writer: int, rng: random.Random) -> Version:
        """The next content of a writer: a generation of its own and a size from the mix."""
        self.generation[writer] += 1
        _, low, high = rng.choices(SIZE_CLASSES, [share for share, _, _ in SIZE_CLASSES])[0]
        return Version(self.generation[writer], rng.randint(low, high))

    def body(self, key: str, version: Version) -> bytes:
        """The bytes of a version."""
        name = f"{self.seed}:{key}:{version.generation}:{version.size}".encode()
        return hashlib.shake_128(name).digest(version.size)

    def etag(self, key: str, version: Version) -> str:
        """Its entity tag with quotes."""
        return f'"{hashlib.md5(self.body(key, version)).hexdigest()}"'

    def live_bytes(self) -> int:
        """The sizes of all acknowledged objects."""
        return sum(state.acknowledged.size for state in self.all().values() if state.acknowledged)
