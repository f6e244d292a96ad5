"""Debian package on a machine with systemd: installation, confinement, drain, upgrade, removal, purge."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.machine import Machine
from harness.server import BINARY, REPOSITORY, RUNS
from harness.wait import until

FIRST_OBJECT_SECONDS = 60
# The version that /root/later.deb installs.
LATER = "1.0.1~test"
MARK = "<!-- The tests run these lines as they stand. -->"
CREDENTIALS = "/etc/cairn/credentials"
SECRETS = ["management-system-token", "master-key", "root-access-key", "root-secret-key"]
S3 = "http://127.0.0.1:7600"
SLOW_UPLOAD = "0123456789" * 40_000
# There is no sudo on the machine, and who runs the lines is root already.
SUDO = 'sudo() { "$@"; }\n'


def documented_lines(after: str, language: str = "sh") -> str:
    """The lines of docs/installing.md, for the shell or another reader, that come next after a text."""
    text = (REPOSITORY / "docs" / "installing.md").read_text()
    return text.split(after, 1)[1].split(f"```{language}\n", 1)[1].split("```", 1)[0]


CLIENT = "".join(line + "\n" for line in documented_lines(MARK).splitlines() if re.match(r"(user|s3)\(\)", line))


def build_package(folder: Path, version: str) -> Path:
    """The package of the binary under test."""
    command = [REPOSITORY / "packaging/debian/build", "--binary", BINARY, "--output", folder, "--version", version]
    # xz would take most of this suite's time.
    command += ["--compression", "gzip"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def later_version(package: Path, version: str) -> Path:
    """The same package under a later version, packed without compression: it is for one installation."""
    unpacked, later = package.with_suffix(".unpacked"), package.with_name(f"cairn_{version}.deb")
    subprocess.run(["dpkg-deb", "--raw-extract", package, unpacked], check=True)
    control = unpacked / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
    command = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", unpacked, later]
    subprocess.run(command, check=True, capture_output=True)
    return later


@dataclass(frozen=True)
class Installed:
    """A machine on which somebody has followed the documentation to the first object."""

    machine: Machine
    seconds: float
    output: str

    def object(self, key: str) -> str:
        """The content of an object, asked for as the documentation does."""
        return self.machine.shell(f"{SUDO}{CLIENT}s3 {S3}/photos/{key}").stdout

    def secrets(self) -> dict[str, str]:
        """Those that are there, by name."""
        folder = self.machine.path(CREDENTIALS)
        return {file.name: file.read_text() for file in folder.iterdir()} if folder.is_dir() else {}


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    """One machine for all tests of this file, which go from the installation to the purge in the order of the file."""
    folder = RUNS / f"machine-{time.time_ns()}"
    machine = Machine(folder)
    try:
        machine.boot()
        package = build_package(folder, "1.0.0~test")
        # Where the lines above these ones have put it.
        target = machine.path("/root/target/debian") / package.name
        target.parent.mkdir(parents=True)
        target.write_bytes(package.read_bytes())
        machine.path("/root/later.deb").write_bytes(later_version(package, LATER).read_bytes())
        begun = time.monotonic()
        done = machine.shell(f"{SUDO}cd /root\n{documented_lines(MARK)}")
        yield Installed(machine, time.monotonic() - begun, done.stdout)
    finally:
        machine.close()


def test_documented_steps_lead_to_an_object_within_a_minute(installed: Installed):
    """From the package at hand, by the lines of the documentation, to an object that was put and read back."""
    print(f"from the package to the first object: {installed.seconds:.1f} s")
    assert installed.output.endswith(installed.machine.path("/etc/os-release").read_text())
    assert installed.seconds < FIRST_OBJECT_SECONDS


def test_service_process_is_confined(installed: Installed):
    """The process that systemd runs: an unprivileged user, no capability, a filter of system calls; and it says that it is ready."""
    machine = installed.machine
    assert machine.property("StatusText").startswith("Ready: S3 on 0.0.0.0:7600, management on 127.0.0.1:7601")
    status = machine.run("cat", f"/proc/{machine.property('MainPID')}/status").stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    user = machine.run("id", "--user", "cairn").stdout.strip()
    assert user != "0" and facts["Uid"].split() == [user] * 4
    assert {facts[name].strip("0") for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


def test_secrets_and_data_are_readable_only_by_the_service(installed: Installed):
    """Checks modes and owners of the files that the installation and the service have created."""
    listed = installed.machine.run(
        "stat", "--format=%n %U:%G %a", CREDENTIALS, *(f"{CREDENTIALS}/{name}" for name in SECRETS),
        "/etc/cairn/cairn.toml", "/var/lib/cairn", "/var/lib/cairn/superblock.json",
    ).stdout.splitlines()
    assert listed == [
        f"{CREDENTIALS} root:root 700", *(f"{CREDENTIALS}/{name} root:root 600" for name in SECRETS),
        "/etc/cairn/cairn.toml root:cairn 640", "/var/lib/cairn cairn:cairn 700", "/var/lib/cairn/superblock.json cairn:cairn 600",
    ]
    journal = installed.machine.journal()
    assert "ready" in journal and not [name for name, secret in installed.secrets().items() if secret.strip() in journal]


def test_unit_filter_allows_everything_the_service_needs(installed: Installed):
    """Large objects, ranges, deletions, an inspection at a lower priority, verification: no call that the unit's filter refuses."""
    machine = installed.machine
    machine.shell(
        f"{SUDO}{CLIENT}head -c 20000000 /dev/urandom > /root/large\n"
        f"s3 --upload-file /root/large {S3}/photos/large\n"
        f"s3 --range 7000000-7999999 {S3}/photos/large | cmp - <(tail -c +7000001 /root/large | head -c 1000000)\n"
        f"s3 {S3}/photos/large | cmp - /root/large\n"
        f"SERVICE_MANAGEMENT_TOKEN=$(cat {CREDENTIALS}/management-system-token); export SERVICE_MANAGEMENT_TOKEN\n"
        f"cairn verify bucket photos\ncairn storage inspect\n"
        f"s3 --request DELETE {S3}/photos/large"
    )
    journal = machine.run("journalctl", "--unit=cairn", "--no-pager").stdout
    failed = [line for line in journal.splitlines() if " ERROR " in line or "Operation not permitted" in line]
    # The machine's root is an overlay on the disk of the host, which may be nearly full.
    about_disk = ("the data folder is on overlay", "disk space is low")
    warnings = [line for line in journal.splitlines() if " WARN " in line and not any(text in line for text in about_disk)]
    assert not failed + warnings, journal


def test_check_command_sees_the_unit_environment(installed: Installed):
    """The unit's credentials, limits and drop-ins, which a shell has not; before a start and while the server runs."""
    machine = installed.machine
    check = "/usr/lib/cairn/check"
    machine.shell(
        "mkdir -p /run/systemd/system/cairn.service.d\n"
        "printf '[Service]\\nLimitNOFILE=2000\\n' > /run/systemd/system/cairn.service.d/files.conf\nsystemctl daemon-reload"
    )
    running = json.loads(machine.run(check, "--json").stdout)
    machine.run("systemctl", "stop", "cairn")
    stopped = json.loads(machine.run(check, "--json").stdout)
    assert (running["failed"], stopped["failed"]) == (0, 0)
    assert "limit 2000, enough" in machine.run(check).stdout
    machine.run("mv", f"{CREDENTIALS}/root-secret-key", "/root/")
    # It ended without a word.
    lacking = machine.run(check, check=False)
    machine.run("mv", "/root/root-secret-key", CREDENTIALS)
    machine.shell("rm /run/systemd/system/cairn.service.d/files.conf\nsystemctl daemon-reload\nsystemctl start cairn")
    assert lacking.returncode == 243 and f"credential root-secret-key: {CREDENTIALS}/root-secret-key is missing" in lacking.stderr
    assert "exit code 243, CREDENTIALS: " in lacking.stderr


def test_manual_page_and_completions_are_installed(installed: Installed):
    """The manual page and the completions that the binary prints are where `man` and the shells look."""
    machine = installed.machine
    # Images for containers leave manual pages out when they unpack packages.
    listed = machine.run("dpkg-query", "--listfiles", "cairn").stdout.splitlines()
    assert "/usr/share/man/man1/cairn.1.gz" in listed
    assert "/usr/share/zsh/vendor-completions/_cairn" in listed and "/usr/share/fish/vendor_completions.d/cairn.fish" in listed
    machine.run("bash", "-n", "/usr/share/bash-completion/completions/cairn")


def certificate(machine: Machine, serial: int) -> None:
    """A new certificate for localhost and its key, where docs/installing.md has them."""
    machine.shell(
        f"{SUDO}cd /root\n"
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -set_serial {serial} -subj /CN=localhost"
        " -addext subjectAltName=DNS:localhost -keyout privkey.pem -out fullchain.pem 2>/dev/null\n"
        f"{documented_lines('### TLS')}"
    )


def served_serial(machine: Machine) -> str:
    """The serial number of the certificate that the data plane shows."""
    command = "openssl s_client -connect 127.0.0.1:7600 -servername localhost < /dev/null 2>/dev/null | openssl x509 -noout -serial"
    return machine.shell(command).stdout.strip()


def test_reload_loads_a_new_certificate_without_restart(installed: Installed):
    """`systemctl reload` sends SIGHUP; systemd sees the service busy and ready again, and no connection is dropped for it."""
    machine = installed.machine
    certificate(machine, 17)
    configuration = machine.path("/etc/cairn/cairn.toml")
    packaged = configuration.read_text()
    # At the end, as the documentation says: the section must not be there already.
    configuration.write_text(packaged + documented_lines("### TLS", "toml"))
    machine.run("systemctl", "restart", "cairn")
    assert served_serial(machine) == "serial=11"
    process = machine.property("MainPID")
    certificate(machine, 18)
    machine.run("systemctl", "reload", "cairn")
    until(lambda: served_serial(machine) == "serial=12", machine.journal)
    assert machine.property("MainPID") == process and machine.property("ActiveState") == "active"
    assert machine.property("StatusText").startswith("Ready: S3 on")
    configuration.write_text(packaged)
    machine.run("systemctl", "restart", "cairn")


def test_long_drain_extends_the_unit_stop_timeout(installed: Installed):
    """The unit would kill it after one second; the service asks for its grace period, and a request of ten seconds ends."""
    machine = installed.machine
    machine.shell(
        "mkdir -p /run/systemd/system/cairn.service.d\n"
        "printf '[Service]\\nTimeoutStopSec=1s\\n' > /run/systemd/system/cairn.service.d/short.conf\n"
        "systemctl daemon-reload"
    )
    machine.path("/root/slow").write_text(SLOW_UPLOAD)
    machine.shell(
        f"{SUDO}{CLIENT}s3 --limit-rate {len(SLOW_UPLOAD) // 10} --upload-file /root/slow {S3}/photos/slow & upload=$!\n"
        # Until the server has read the beginning: a connection without a request is closed.
        "until ss --tcp --no-header --oneline --info state established '( sport = :7600 )' | awk '$1 == 0 && /bytes_received:/ { found = 1 } END { exit !found }'\n"
        "do sleep 0.05; done\n"
        "systemctl stop cairn\nwait $upload"
    )
    assert machine.property("Result") == "success", machine.journal()
    machine.shell("rm /run/systemd/system/cairn.service.d/short.conf\nsystemctl daemon-reload\nsystemctl start cairn")
    assert installed.object("slow") == SLOW_UPLOAD


def test_upgrade_restarts_the_service_and_keeps_everything(installed: Installed):
    """Secrets, configuration that somebody has edited, data; the new version runs."""
    machine = installed.machine
    configuration = machine.path("/etc/cairn/cairn.toml")
    configuration.write_text(configuration.read_text() + "# mine\n")
    secrets, process = installed.secrets(), machine.property("MainPID")
    machine.run("dpkg", "--install", "/root/later.deb")
    assert machine.run("dpkg-query", "--show", "--showformat=${Version}", "cairn").stdout == LATER
    assert machine.property("ActiveState") == "active" and machine.property("MainPID") != process
    assert installed.secrets() == secrets and configuration.read_text().endswith("# mine\n")
    assert installed.object("first") == machine.path("/etc/os-release").read_text()


def test_removal_keeps_configuration_secrets_and_data(installed: Installed):
    """A second installation continues with them."""
    machine, secrets = installed.machine, installed.secrets()
    machine.run("dpkg", "--remove", "cairn")
    assert machine.property("ActiveState") == "inactive" and not machine.path("/usr/bin/cairn").exists()
    assert installed.secrets() == secrets
    machine.run("dpkg", "--install", "/root/later.deb")
    assert installed.secrets() == secrets
    assert installed.object("first") == machine.path("/etc/os-release").read_text()


def test_purge_keeps_the_data_and_its_master_key(installed: Installed):
    """It says where both are; after it a new installation, with new root credentials, reads the same objects."""
    machine, secrets = installed.machine, installed.secrets()
    purged = machine.run("dpkg", "--purge", "cairn").stdout
    assert "/var/lib/cairn" in purged and f"{CREDENTIALS}/master-key" in purged
    assert installed.secrets() == {"master-key": secrets["master-key"]}
    assert not machine.path("/etc/cairn/cairn.toml").exists()
    machine.run("dpkg", "--install", "/root/later.deb")
    assert installed.secrets()["root-secret-key"] != secrets["root-secret-key"]
    assert installed.object("first") == machine.path("/etc/os-release").read_text()


def test_no_master_key_is_created_for_an_existing_store(installed: Installed):
    """A wrong key would only hide that the right one is lost; the installation says which file is missing.

    Nor is one made when the store lies in another folder, or on a disk that is not mounted: only a first installation makes one.
    """
    machine = installed.machine
    machine.run("mv", f"{CREDENTIALS}/master-key", "/root/")
    for moved in (False, True):
        machine.run("dpkg", "--remove", "cairn")
        if moved:
            machine.run("mv", "/var/lib/cairn", "/srv/cairn")
        done = machine.run("dpkg", "--install", "/root/later.deb")
        assert f"{CREDENTIALS}/master-key is missing" in done.stderr
        assert not machine.path(f"{CREDENTIALS}/master-key").exists() and machine.property("ActiveState") != "active"


def test_purge_keeps_the_key_of_a_store_elsewhere(installed: Installed):
    """The data folder was moved as the documentation says. A purge that looked at /var/lib/cairn alone took the only master key."""
    machine = installed.machine
    machine.run("mv", "/root/master-key", CREDENTIALS)
    machine.path("/etc/cairn/cairn.toml").write_text('[server]\ndata_dir = "/srv/cairn"\n')
    machine.shell(
        "mkdir -p /etc/systemd/system/cairn.service.d\n"
        "printf '[Unit]\\nRequiresMountsFor=/srv/cairn\\n[Service]\\nReadWritePaths=/srv/cairn\\n' > /etc/systemd/system/cairn.service.d/override.conf\n"
        "systemctl daemon-reload\nsystemctl restart cairn"
    )
    assert installed.object("first") == machine.path("/etc/os-release").read_text()
    key = installed.secrets()["master-key"]
    purged = machine.run("dpkg", "--purge", "cairn").stdout
    assert f"{CREDENTIALS}/master-key" in purged and "does not belong to the package: /etc/cairn/tls/key.pem" in purged
    assert installed.secrets() == {"master-key": key}
    machine.run("rm", "-r", "/etc/systemd/system/cairn.service.d")
    machine.run("dpkg", "--install", "/root/later.deb")
    assert installed.secrets()["master-key"] == key


def test_purge_removes_everything_but_the_key(installed: Installed):
    """No file of the package, and none that its scripts have made; the log and the user stay, and so does the master key."""
    machine = installed.machine
    listed = machine.run("dpkg-query", "--listfiles", "cairn").stdout.splitlines()
    made = [name for name in listed if not machine.path(name).is_dir()]
    machine.run("dpkg", "--remove", "cairn")
    # The certificates are the operator's own: no purge would take them.
    machine.run("rm", "-r", "/var/lib/cairn", "/etc/cairn/tls")
    machine.run("dpkg", "--purge", "cairn")
    machine.run("rm", f"{CREDENTIALS}/master-key")
    machine.run("rmdir", CREDENTIALS, "/etc/cairn")
    known = [f"/etc/systemd/system/{name}" for name in ("cairn.service", "multi-user.target.wants/cairn.service")]
    known += ["/etc/cairn", "/var/lib/cairn", *made]
    assert len(made) > 10 and [name for name in known if machine.run("test", "-e", name, check=False).returncode == 0] == []
