"""A server of another project, with its own folder and port."""

import subprocess
from pathlib import Path

from .server import LOOPBACK, clean_environment, free_ports
from .sigv4 import Credential
from .wait import until


class ForeignServer:
    """The process of such a server. A subclass says how it is started and when it answers."""

    # May do everything.
    credential: Credential

    def __init__(self, folder: Path, further_ports: int = 0):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, *self.ports = free_ports(1 + further_ports)
        self.log = folder / "log"
        self.process: subprocess.Popen | None = None

    @property
    def endpoint(self) -> str:
        """Returns the address."""
        return f"http://{LOOPBACK}:{self.port}"

    def launch(self, command: list[str], **settings: str) -> None:
        """Starts the process. `settings` are added to its environment."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=clean_environment() | settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Waits until the server answers."""
        until(self.answers, lambda: self.log.read_text(errors="replace")[-2000:])

    def answers(self) -> bool:
        """Returns whether the server takes requests."""
        raise NotImplementedError

    def kill(self) -> None:
        """Ends the server at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
