"""Test disks on loop devices: small disks, disks that lose unflushed writes, and snapshots.

All need root and loop devices, the forgetful one FUSE too. Where the machine does not give them, `Unavailable` says
what is missing; everything else that goes wrong is an error. What was mounted and attached is undone by `close`.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from .server import BUILD, HOW_TO_BUILD
from .wait import until

FORGETFUL_DISK = Path(os.environ.get("CAIRN_FORGETFUL_DISK", BUILD / "forgetful-disk"))
COMMAND_SECONDS = 60
UNMOUNT_SECONDS = 20.0
IMAGE_BYTES = 2 << 30
# Few inodes: the store has a dozen files, and the tables need not be written.
FORMATS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-N", "4096", "-m", "0", "-b", "4096", "-E", "lazy_itable_init=0,nodiscard"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}
# The forgetful disk stands for hardware, which does not wait for its turn on the processor.
DISK_NICENESS = -10
# ioctl(2) number of linux/fs.h: share all blocks of another file, at one instant.
FICLONE = 0x4004_9409


class Unavailable(Exception):
    """The machine lacks something that a test disk needs; the text names it."""


def command(*arguments: str | Path) -> str:
    """Runs a system tool and returns its output."""
    done = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


def need(*tools: str, fuse: bool = False) -> None:
    """Raises Unavailable unless root, loop devices, these tools and, if requested, FUSE are available."""
    if os.geteuid() != 0:
        raise Unavailable("mounting needs root")
    for tool in ("losetup", "mount", "umount", *tools):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed (Debian: e2fsprogs, xfsprogs, util-linux, mount)")
    for device in ["/dev/loop-control", *(["/dev/fuse"] if fuse else [])]:
        try:
            os.close(os.open(device, os.O_RDWR))
        except OSError as error:
            raise Unavailable(f"{device}: {error.strerror}") from None


def attach(image: Path) -> str:
    """Attaches a file to a loop device with direct I/O."""
    try:
        return command("losetup", "--find", "--show", "--direct-io=on", image)
    except RuntimeError as error:
        raise Unavailable(f"no loop device is available: {error}") from None


def detach(device: str) -> None:
    """Detaches a loop device and waits until it is free."""
    command("losetup", "--detach", device)
    until(
        lambda: not exists(device) or not command("losetup", "--list", "--noheadings", device), "the kernel did not release the device in time",
        UNMOUNT_SECONDS,
    )


def exists(device: str) -> bool:
    """Returns whether a loop device is attached to a file."""
    return Path(f"/sys/block/{Path(device).name}/loop").exists()


def make_image(path: Path, file_system: str, size: int = IMAGE_BYTES) -> None:
    """Creates a sparse file with an empty file system."""
    with path.open("wb") as file:
        file.truncate(size)
    command(*FORMATS[file_system], path)


def mount(device: str, file_system: str, folder: Path) -> None:
    """Mounts a device.

    Mount namespaces that other tests make meanwhile have copies of all mounts, and a copy would keep the device. The copies end
    with the original, because the mount below it is shared.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command("mount", "--bind", folder, folder)
    command("mount", "--make-shared", folder)
    try:
        command("mount", "-t", file_system, "-o", "noatime", device, folder)
    except RuntimeError as error:
        command("umount", folder)
        if "unknown filesystem" in str(error) or "permission denied" in str(error).lower():
            raise Unavailable(str(error)) from None
        raise


def unmount(folder: Path) -> None:
    """Unmounts what `mount` has mounted. A killed process may keep its files open slightly longer, so this retries."""

    def is_unmounted() -> bool:
        try:
            command("umount", folder)
        except RuntimeError as error:
            if "busy" not in str(error):
                raise
            return False
        return True

    for mounted in ("the device", "the shared mount below it"):
        until(is_unmounted, f"{mounted} at {folder} is busy", UNMOUNT_SECONDS)


class SmallDisk:
    """A mounted file system of a given size on a loop device."""

    def __init__(self, folder: Path, size: int, file_system: str = "ext4"):
        need(FORMATS[file_system][0])
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder / "mounted"
        make_image(folder / "disk.img", file_system, size)
        with contextlib.ExitStack() as undo:
            self.device = attach(folder / "disk.img")
            undo.callback(detach, self.device)
            mount(self.device, file_system, self.folder)
            undo.callback(unmount, self.folder)
            self.undo = undo.pop_all()

    def free_bytes(self) -> int:
        """Returns the bytes that an unprivileged user can still allocate."""
        stat = os.statvfs(self.folder)
        return stat.f_bavail * stat.f_frsize

    def close(self) -> None:
        """Unmounts and detaches the disk."""
        self.undo.close()


class LogicalVolume:
    """A mounted file system on a logical volume, in a group with `spare` bytes for snapshots."""

    def __init__(self, folder: Path, size: int, spare: int, file_system: str = "ext4"):
        need(FORMATS[file_system][0], "lvcreate")
        try:
            os.close(os.open("/dev/mapper/control", os.O_RDWR))
        except OSError as error:
            raise Unavailable(f"the kernel has no device mapper: {error.strerror}") from None
        folder.mkdir(parents=True, exist_ok=True)
        self.file_system, self.folder, self.group = file_system, folder / "mounted", f"cairn-{os.getpid()}"
        # Groups of the machine are never seen. Without its udev, the tools make the device files.
        configuration = folder / "lvm"
        configuration.mkdir()
        (configuration / "lvm.conf").write_text(
            'devices {\nfilter=["a|^/dev/loop|", "r|.*|"]\nuse_devicesfile=0\n}\nactivation {\nudev_sync=0\nudev_rules=0\nmonitoring=0\n}\n'
        )
        self.environment = {"LVM_SYSTEM_DIR": str(configuration)}
        image = folder / "disk.img"
        with image.open("wb") as file:
            file.truncate(size + spare)
        with contextlib.ExitStack() as undo:
            device = attach(image)
            undo.callback(detach, device)
            self._run("vgcreate", "-q", self.group, device)
            undo.callback(self._run, "vgremove", "-q", "-y", self.group)
            self._run("lvcreate", "-q", "-y", "--size", f"{size - (64 << 20)}b", "--name", "cairn", self.group)
            volume = f"/dev/{self.group}/cairn"
            command(*FORMATS[file_system], volume)
            mount(volume, file_system, self.folder)
            undo.callback(unmount, self.folder)
            self.undo = undo.pop_all()

    def _run(self, *arguments: str) -> None:
        command("env", *(f"{name}={value}" for name, value in self.environment.items()), *arguments)

    def close(self) -> None:
        """Unmounts the volume, and removes it with its snapshots."""
        self.undo.close()


class ForgetfulDisk:
    """A file system on a disk that loses unflushed writes at a power cut (tests/forgetful-disk)."""

    def __init__(self, folder: Path, file_system: str):
        need(FORMATS[file_system][0], fuse=True)
        if not FORGETFUL_DISK.is_file():
            raise RuntimeError(f"{FORGETFUL_DISK} is missing; {HOW_TO_BUILD}")
        self.kind, self.folder, self.file_system = file_system, folder / "mounted", file_system
        served = folder / "served"
        served.mkdir(parents=True)
        make_image(folder / "durable.img", file_system)
        command("cp", "--sparse=always", folder / "durable.img", folder / "current.img")
        with contextlib.ExitStack() as undo:
            self.process = self._serve(folder, served)
            undo.callback(self._end)
            self.device = attach(served / "disk")
            undo.callback(detach, self.device)
            self.undo = undo.pop_all()
        self.mounted = False

    def _serve(self, folder: Path, served: Path) -> subprocess.Popen:
        images = ["--current", folder / "current.img", "--durable", folder / "durable.img"]
        process = subprocess.Popen(
            ["nice", "-n", str(DISK_NICENESS), FORGETFUL_DISK, *images, "--mount", served],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        )
        if process.stdout.readline() != "ready\n":
            process.wait(COMMAND_SECONDS)
            raise Unavailable(f"FUSE cannot be mounted: {process.stderr.read().strip()}")
        return process

    def _end(self) -> None:
        self.process.stdin.close()
        self.process.wait(COMMAND_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()

    def tell(self, line: str) -> str:
        """Sends a command to the disk and returns its answer."""
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().strip()
        if not answer.startswith("ok"):
            raise RuntimeError(f"{line}: {answer or 'the disk has ended'}")
        return answer[2:].strip()

    def mount(self) -> None:
        """Mounts the disk's content."""
        mount(self.device, self.file_system, self.folder)
        self.mounted = True

    def cut(self, seed: int, mode: str) -> str:
        """Cuts the power and returns what happened to the unflushed writes."""
        return f"{mode} {self.tell(f'cut {seed} {mode}')}"

    def restore(self) -> None:
        """Restores the power: unmounts the stale file system and mounts what the cut left."""
        self.unmount()
        self.tell("restore")
        self.mount()

    def unmount(self) -> None:
        """Unmounts the disk if it is mounted."""
        if self.mounted:
            unmount(self.folder)
            self.mounted = False

    def close(self) -> None:
        """Unmounts and detaches the disk. Pending writes are released first, because unmounting waits for them."""
        self.tell("heal")
        self.unmount()
        self.undo.close()


class SnapshotDisk:
    """ext4 in an image on XFS, which clones the image atomically with everything that had reached the device."""

    def __init__(self, folder: Path):
        need("mkfs.ext4", "mkfs.xfs")
        folder.mkdir(parents=True, exist_ok=True)
        self.kind, self.folder, self.host = "snapshot", folder / "mounted", folder / "host"
        self.image, self.copy = self.host / "disk.img", self.host / "copy.img"
        make_image(folder / "host.img", "xfs", 4 * IMAGE_BYTES)
        with contextlib.ExitStack() as undo:
            host_device = attach(folder / "host.img")
            undo.callback(detach, host_device)
            mount(host_device, "xfs", self.host)
            undo.callback(unmount, self.host)
            make_image(self.image, "ext4")
            self.undo = undo.pop_all()
        self.device: str | None = None

    def mount(self) -> None:
        """Mount what the image holds."""
        self.device = attach(self.image)
        mount(self.device, "ext4", self.folder)

    def cut(self, _seed: int, _mode: str) -> str:
        """Copy the image as it is now."""
        with self.image.open("rb") as source, self.copy.open("wb") as copy:
            fcntl.ioctl(copy, FICLONE, source.fileno())
        return "snapshot"

    def restore(self) -> None:
        """Go on with the copy."""
        self.unmount()
        self.copy.rename(self.image)
        self.mount()

    def unmount(self) -> None:
        """Unmount if it is mounted."""
        if self.device is not None:
            unmount(self.folder)
            detach(self.device)
            self.device = None

    def close(self) -> None:
        """Unmount and detach all."""
        self.unmount()
        self.undo.close()
