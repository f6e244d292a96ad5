"""Container with systemd as process 1 on a copy-on-write view of the host's root, for package tests.

systemd-nspawn boots it in namespaces, with a network that has a loopback interface only and control groups of version 2.
Whatever is installed in it lands in a folder that goes away with it. It needs root, and Debian's systemd-container.
"""

import errno
import os
import shutil
import subprocess
import time
from pathlib import Path

from .wait import until

BOOT_SECONDS = 90
COMMAND_SECONDS = 120
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
# The command line of process 1 disables the host's services and logins.
TARGET = "systemd.unit=basic.target"
UNIFIED_CGROUPS = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class MachineError(AssertionError):
    """The machine did not boot, or a command in it failed."""


def unified_hierarchy() -> Path:
    """Returns the mount point of cgroups version 2, alone or in a hybrid hierarchy."""
    both = CGROUPS / "unified"
    return both if both.is_dir() else CGROUPS


def remove_group(top: Path) -> None:
    """Removes a cgroup and its descendants after the kernel has removed their last process."""

    def is_removed() -> bool:
        try:
            # Children first.
            for group in sorted((found for found in top.glob("**/") if found.is_dir()), reverse=True):
                group.rmdir()
        except OSError as busy:
            if busy.errno != errno.EBUSY:
                raise
        return not top.is_dir()

    until(is_removed, f"{top} is busy", BOOT_SECONDS)


def children(pid: int) -> list[int]:
    """Returns the child processes of a process."""
    found = []
    for listed in PROC.glob(f"{pid}/task/*/children"):
        found += [int(child) for child in listed.read_text().split()]
    return found


def first_process(pid: int) -> int | None:
    """Returns the descendant that is systemd with process id 1 in its namespace."""
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
        """Prepares a machine in this host directory. `binds` maps further host directories to paths in the machine."""
        self.folder, self.binds = folder, binds or {}
        self.root, self.upper, self.work = folder / "root", folder / "upper", folder / "work"
        self.log = folder / "boot.log"
        self.process: subprocess.Popen | None = None
        self.group: Path | None = None
        self.leader = 0

    def boot(self) -> "Machine":
        """Mounts the root and starts the machine. Returns when systemd accepts commands."""
        for needed in (self.root, self.upper, self.work):
            needed.mkdir(parents=True)
        layers = f"lowerdir=/,upperdir={self.upper},workdir={self.work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], check=True)
        # Container and build images forbid packages to start services; this machine must allow it.
        self.path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)
        # Otherwise each installation of a package with a manual page indexes all manual pages of the host.
        self.path("/var/lib/man-db/auto-update").unlink(missing_ok=True)
        # systemd-nspawn splits the cgroup in which it is started, so it gets a separate one.
        self.group = unified_hierarchy() / f"cairn-test-{os.getpid()}-{time.monotonic_ns()}"
        self.group.mkdir()
        command = [
            "sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(self.group), "systemd-nspawn", "--quiet",
            f"--directory={self.root}", "--machine=cairn-test", "--register=no", "--keep-unit", "--private-network",
            "--console=pipe", "--link-journal=no",
            # Container engines create a keyring for each container.
            "--system-call-filter=@keyring",
            *(f"--bind={host}:{inside}" for host, inside in self.binds.items()), "--boot", TARGET,
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=UNIFIED_CGROUPS)
        said = lambda: f"the machine did not boot:\n{self.log.read_text(errors='replace')[-4000:]}"
        until(lambda: self.is_up() or self.process.poll() is not None, said, BOOT_SECONDS)
        if self.process.poll() is not None:
            raise MachineError(said())
        return self

    def is_up(self) -> bool:
        """Returns whether systemd has finished booting."""
        self.leader = first_process(self.process.pid) or 0
        if not self.leader:
            return False
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        # Degraded means that one of the host's services failed in this machine.
        return state in ("running", "degraded")

    def path(self, name: str) -> Path:
        """Returns the host path of a file on the machine's root file system (not in /run or /tmp)."""
        return self.root / name.lstrip("/")

    def run(self, *command: str, check: bool = True, stdin: str | None = None) -> subprocess.CompletedProcess:
        """Runs a command in the machine as root."""
        enter = ["nsenter", f"--target={self.leader}", "--all", "--wdns=/", "--", *command]
        environment = {"PATH": UNIFIED_CGROUPS["PATH"], "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            enter, input=stdin or "", capture_output=True, text=True, timeout=COMMAND_SECONDS, env=environment
        )
        if check and done.returncode != 0:
            raise MachineError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}{self.journal()}")
        return done

    def shell(self, script: str, check: bool = True) -> subprocess.CompletedProcess:
        """Runs shell lines as a user would type them, until the first one that fails."""
        return self.run("bash", "-euo", "pipefail", "-s", stdin=script, check=check)

    def journal(self) -> str:
        """Returns the journal of the service and of units whose names begin with its name."""
        return self.run("journalctl", "--unit=cairn*", "--no-pager", "--lines=60", check=False).stdout

    def property(self, name: str) -> str:
        """Returns systemd properties of the service."""
        return self.run("systemctl", "show", "cairn", f"--property={name}", "--value").stdout.strip()

    def close(self) -> None:
        """Powers the machine off and removes it."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        subprocess.run(["umount", "--lazy", self.root], check=False)
        if self.group is not None:
            # systemd-nspawn creates a cgroup of the same name in systemd's version 1 hierarchy, if that exists.
            for top in (self.group, CGROUPS / "systemd" / self.group.name):
                remove_group(top)
        shutil.rmtree(self.folder, ignore_errors=True)
