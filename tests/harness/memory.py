"""The memory of a server process while something runs."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .server import Cairn

MIB = 1 << 20
SAMPLE_SECONDS = 0.02


def anonymous_bytes(process: int) -> int:
    """Returns the resident anonymous memory, which a control group cannot reclaim."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024


@contextmanager
def watched(store: Cairn) -> Iterator[list[int]]:
    """Collects samples of the server's memory while the block runs."""
    samples, ended = [], threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            with suppress(OSError, TypeError):
                samples.append(anonymous_bytes(store.process.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()
