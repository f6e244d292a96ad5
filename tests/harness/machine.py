"""A machine of its own for tests of packages: systemd as process 1, over a copy-on-write view of this host's root.

systemd-nspawn boots it in namespaces, with a network that has a loopback interface only and control groups of version 2.
Whatever is installed in it lands in a folder that goes away with it. It needs root, and Debian's systemd-container.
"""

import errno
import os
import shutil
import subprocess
import time
from pathlib import Path

BOOT_SECONDS = 90
COMMAND_SECONDS = 120
POLL_SECONDS = 0.05
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
# The command line of the first process: neither the host's own services nor a login are wanted.
TARGET = "systemd.unit=basic.target"
UNIFIED_CGROUPS = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class MachineError(AssertionError):
    """The machine did not boot, or a command in it failed."""


def unified_hierarchy() -> Path:
    """Where the control groups of version 2 are: beside those of version 1, or alone."""
    both = CGROUPS / "unified"
    return both if both.is_dir() else CGROUPS


def remove_group(top: Path) -> None:
    """Remove a control group and those below it, when the kernel has let go of the last process in them."""
    give_up = time.monotonic() + BOOT_SECONDS
    while top.is_dir():
        try:
            # From the leaves up.
            for group in sorted((found for found in top.glob("**/") if found.is_dir()), reverse=True):
                group.rmdir()
        except OSError as busy:
            if busy.errno != errno.EBUSY or time.monotonic() > give_up:
                raise
            time.sleep(POLL_SECONDS)


def children(pid: int) -> list[int]:
    """The processes that this one has started."""
    found = []
    for listed in PROC.glob(f"{pid}/task/*/children"):
        found += [int(child) for child in listed.read_text().split()]
    return found


def first_process(pid: int) -> int | None:
    """The process below this one that is a systemd and number 1 of its namespace."""
    for child in children(pid):
        try:
            numbers = next(line for line in (PROC / str(child) / "status").read_text().splitlines() if line.startswith("NSpid:"))
            if numbers.split()[-1] == "1" and (PROC / str(child) / "comm").read_text() == "systemd\n":
                return child
        except (OSError, StopIteration):
            continue
        if (below := first_process(child)) is not None:
            return below
    return None


class Machine:
    """One machine, from `boot` to `close`."""

    def __init__(self, folder: Path, binds: dict[Path, str] | None = None):
        """In this folder of the host; `binds` are further ones of the host and where they appear in the machine."""
        self.folder, self.binds = folder, binds or {}
        self.root, self.upper, self.work = folder / "root", folder / "upper", folder / "work"
        self.log = folder / "boot.log"
        self.process: subprocess.Popen | None = None
        self.group: Path | None = None
        self.leader = 0

    def boot(self) -> "Machine":
        """Mount its root and start it; it is up when systemd takes orders."""
        for needed in (self.root, self.upper, self.work):
            needed.mkdir(parents=True)
        layers = f"lowerdir=/,upperdir={self.upper},workdir={self.work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], check=True)
        # Images for containers and build machines forbid packages to start services; a machine of its own does not.
        self.path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
        # Else each installation of a package with a manual page indexes all of the host's.
        self.path("/var/lib/man-db/auto-update").unlink(missing_ok=True)
        # systemd-nspawn divides the control group that it is started in; in one of its own it meets nobody else.
        self.group = unified_hierarchy() / f"cairn-test-{os.getpid()}-{time.monotonic_ns()}"
        self.group.mkdir()
        command = [
            "sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.group), "systemd-nspawn", "--quiet",
            f"--directory={self.root}", "--machine=cairn-test", "--register=no", "--keep-unit", "--private-network",
            "--console=pipe", "--link-journal=no",
            # Engines of containers give each one a keyring.
            "--system-call-filter=@keyring",
            *(f"--bind={host}:{inside}" for host, inside in self.binds.items()), "--boot", TARGET,
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=UNIFIED_CGROUPS)
        give_up = time.monotonic() + BOOT_SECONDS
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise MachineError(f"the machine does not boot:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(POLL_SECONDS)
        return self

    def is_up(self) -> bool:
        """Whether systemd has done what was asked of its start."""
        self.leader = first_process(self.process.pid) or 0
        if not self.leader:
            return False
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        # Degraded: one of the host's own services did not like to be here.
        return state in ("running", "degraded")

    def path(self, name: str) -> Path:
        """A file of the machine, as seen from here; of what lies on its root, not in its /run or /tmp."""
        return self.root / name.lstrip("/")

    def run(self, *command: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess:
        """Run a command in it, as root."""
        enter = ["nsenter", f"--target={self.leader}", "--all", "--wdns=/", "--", *command]
        environment = {"PATH": UNIFIED_CGROUPS["PATH"], "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            enter, input=stdin or "", capture_output=True, text=True, timeout=COMMAND_SECONDS, env=environment
        )
        if check and done.returncode != 0:
            raise MachineError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}{self.journal()}")
        return done

    def shell(self, script: str, check: bool = True) -> subprocess.CompletedProcess:
        """Run lines of a shell as a person would type them, up to the first that fails."""
        return self.run("bash", "-euo", "pipefail", "-s", stdin=script, check=check)

    def journal(self) -> str:
        """What the service has written, and others whose names begin with its."""
        return self.run("journalctl", "--unit=cairn*", "--no-pager", "--lines=60", check=False).stdout

    def property(self, name: str) -> str:
        """What systemd knows of the service."""
        return self.run("systemctl", "show", "cairn", f"--property={name}", "--value").stdout.strip()

    def close(self) -> None:
        """Power off and forget it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        subprocess.run(["umount", "--lazy", self.root], check=False)
        if self.group is not None:
            # systemd-nspawn keeps one of the same name in systemd's own hierarchy of version 1, where there is one.
            for top in (self.group, CGROUPS / "systemd" / self.group.name):
                remove_group(top)
        shutil.rmtree(self.folder, ignore_errors=True)
