"""Describes running servers when a test fails: threads, rings, pressure on the machine, end of the log."""

import os
from pathlib import Path

from .server import Cairn, started_servers

LOG_CHARACTERS = 3000
PRESSURE = Path("/proc/pressure")


def text_of(path: Path) -> str:
    """Returns the text of a file of /proc, or the reason why it has none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def describe_threads(process: Path) -> list[str]:
    """Returns what each thread of a process waits for."""
    threads = sorted((process / "task").iterdir())
    described = []
    for thread in threads:
        name, waits_in, call, stack = (text_of(thread / file) for file in ("comm", "wchan", "syscall", "stack"))
        state = next((line for line in text_of(thread / "status").splitlines() if line.startswith("State")), "")
        frames = " < ".join(line.split()[-1] for line in stack.splitlines() if line.split())
        described.append(f"{name}: {state}; waits in {waits_in}; call {call}; stack {frames}")
    return described


def describe_rings(process: Path) -> list[str]:
    """Returns the state of each io_uring and eventfd of a process."""
    described = []
    for descriptor in sorted((process / "fd").iterdir(), key=lambda path: int(path.name)):
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if "io_uring" in target or "eventfd" in target:
            state = text_of(process / "fdinfo" / descriptor.name).replace("\n", "; ")
            described.append(f"{descriptor.name} {target}: {state}")
    return described


def describe_server(server: Cairn) -> str:
    """Returns what a running server is doing."""
    process = Path("/proc") / str(server.process.pid)
    lines = [f"server {server.process.pid} on port {server.s3_port}"]
    try:
        lines += [*describe_threads(process), *describe_rings(process)]
    except OSError as error:
        lines.append(f"its threads and files cannot be examined: {error}")
    return "\n".join([*lines, server.output()[-LOG_CHARACTERS:]])


def describe_running_servers() -> str:
    """Returns what this test process's servers are doing, and how busy the machine is."""
    pressure = [f"pressure on {path.name}: {text_of(path)}" for path in sorted(PRESSURE.glob("*"))]
    load = f"load: {text_of(Path('/proc/loadavg'))}"
    servers = [describe_server(server) for server in started_servers() if server.running()]
    return "\n".join([load, *pressure, *servers])
