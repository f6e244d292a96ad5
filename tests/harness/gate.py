"""A relay before a server that holds everything back after some bytes, so that a client is in the middle for certain."""

import socket
from contextlib import suppress
from threading import Condition, Thread

from .server import LOOPBACK

CHUNK_BYTES = 1 << 14


class Gate:
    """Relays connections to a port of this machine. It is open at first."""

    def __init__(self, port: int):
        self.target = (LOOPBACK, port)
        # How many bytes may still pass in both directions together; None is without a limit.
        self.left: int | None = None
        self.changed = Condition()
        self.listener = socket.create_server((LOOPBACK, 0), backlog=128)
        Thread(target=self.accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        """Returns the address for clients."""
        return f"http://{LOOPBACK}:{self.listener.getsockname()[1]}"

    def hold_after(self, count: int) -> None:
        """Lets so many bytes pass from now on."""
        with self.changed:
            self.left = count
            self.changed.notify_all()

    def open(self) -> None:
        """Lets everything pass that waits, and that comes."""
        with self.changed:
            self.left = None
            self.changed.notify_all()

    def is_holding(self) -> bool:
        """Returns whether something waits."""
        return self.left is not None and self.left < 0

    def accept(self) -> None:
        """Relays connections until the end."""
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                Thread(target=self.relay, args=(client,), daemon=True).start()

    def relay(self, client: socket.socket) -> None:
        """Relays one connection."""
        with client, suppress(OSError), socket.create_connection(self.target) as server:
            back = Thread(target=self.pump, args=(server, client), daemon=True)
            back.start()
            self.pump(client, server)
            back.join()

    def pump(self, origin: socket.socket, target: socket.socket) -> None:
        """Relays one direction of a connection."""
        with suppress(OSError):
            while read := origin.recv(CHUNK_BYTES):
                self.wait_for(len(read))
                target.sendall(read)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def wait_for(self, count: int) -> None:
        """Waits until so many bytes may pass."""
        with self.changed:
            if self.left is not None:
                self.left -= count
            self.changed.wait_for(lambda: not self.is_holding())

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        # Wakes the thread that accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
