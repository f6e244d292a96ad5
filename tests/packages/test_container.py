"""Container image, seccomp profile and compose file, tested with podman.

podman runs inside a machine of its own. Two things are not as in production there: limits are those of the test machine, which
may not raise them, and podman makes no control group (`--cgroups=disabled`). The first stage of the Containerfile, which
compiles, is replaced by the binary under test; its second stage is built as it stands.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness.machine import Machine
from harness.server import BINARY, REPOSITORY, RUNS

CONTAINER = REPOSITORY / "packaging" / "container"
READY_SECONDS = 120
# The limits of the test machine; the files request more.
HERE = ["--cgroups=disabled", "--network=host", "--ulimit=nofile=4096:4096", "--ulimit=memlock=8388608:8388608", "--ulimit=nproc=4096:4096"]
# Keys of the compose file that say how it is built and started, and those that HERE replaces.
NOT_OPTIONS = {"image", "build", "restart", "ulimits", "ports", "mem_limit"}
# The options that the error names.
IO_URING_OPTIONS = [
    "--security-opt seccomp=seccomp.json", 'security_opt: ["seccomp=./seccomp.json"]', "SeccompProfile=", "localhostProfile:",
]


def service() -> dict:
    """Returns the compose file's only service."""
    return yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]["cairn"]


def options(described: dict, folder: str) -> list[str]:
    """A service of a compose file as options of `podman run`; a key that is not known here is an error."""
    found = []
    for key, value in described.items():
        match key:
            case "security_opt":
                found += [f"--security-opt={word.replace('./', folder + '/').replace(':true', '')}" for word in value]
            case "cap_drop":
                found += [f"--cap-drop={word.lower()}" for word in value]
            case "read_only":
                found += ["--read-only"] if value else []
            case "tmpfs":
                found += [f"--tmpfs={word}" for word in value]
            case "stop_grace_period":
                found += [f"--stop-timeout={value.removesuffix('s')}"]
            case "environment":
                found += [f"--env={name}={text}" for name, text in value.items()]
            case "secrets":
                found += [f"--volume={folder}/secrets/{name}:/run/secrets/{name}:ro" for name in value]
            case "volumes":
                found += [f"--volume={word}" for word in value]
            case "healthcheck":
                # As an array it is run as it stands; as text it would want a shell.
                found += [f"--health-cmd={json.dumps(value['test'][1:])}", f"--health-interval={value['interval']}"]
            case _:
                assert key in NOT_OPTIONS, key
    return found


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with the image, and the secrets that the compose file's first lines make."""
    folder = RUNS / f"containers-{time.time_ns()}"
    share = folder / "share"
    share.mkdir(parents=True)
    (folder / "storage").mkdir()
    shutil.copytree(CONTAINER, share / "container")
    command = [CONTAINER / "rootfs", "--binary", BINARY, "--output", share / "build" / "rootfs"]
    subprocess.run(command, check=True)
    subprocess.run([REPOSITORY / "packaging" / "make-credentials", share / "container" / "secrets"], check=True, capture_output=True)
    for path in [share / "container" / "secrets", *(share / "container" / "secrets").iterdir()]:
        shutil.chown(path, 10001, 10001)
    default = subprocess.run([CONTAINER / "seccomp", "--default"], check=True, capture_output=True, text=True)
    (share / "default.json").write_text(default.stdout)
    box = Machine(folder / "machine", {folder / "storage": "/var/lib/containers", share: "/srv/share"})
    try:
        box.boot()
        box.run(
            "podman", "build", "--quiet", "--format=docker", "--file=/srv/share/container/Containerfile", "--tag=cairn",
            "--build-context=build=/srv/share/build", "/srv/share/container",
        )
        yield box
    finally:
        box.close()
        shutil.rmtree(folder, ignore_errors=True)


def run_arguments(*, without: str = "") -> list[str]:
    """The compose file's options on this machine, less those that hold a word."""
    found = options(service(), "/srv/share/container")
    assert not without or any(without in option for option in found)
    return [*HERE, *(option for option in found if not without or without not in option)]


def wait_ready(machine: Machine, name: str) -> None:
    """Waits until the image's health check succeeds."""
    give_up = time.monotonic() + READY_SECONDS
    while machine.run("podman", "healthcheck", "run", name, check=False).returncode != 0:
        assert time.monotonic() < give_up, machine.run("podman", "logs", name).stderr
        time.sleep(0.1)


def test_seccomp_profile_adds_only_io_uring_to_the_default():
    """Nothing is allowed beyond Docker's default profile and io_uring."""
    subprocess.run([CONTAINER / "seccomp", "--check"], check=True)


@pytest.mark.parametrize("profile", ["podman's own", "Docker's"])
def test_blocked_io_uring_is_reported_with_a_remedy(machine: Machine, profile: str):
    """One profile answers ENOSYS to unlisted calls, the other EPERM. Both errors name the options that help."""
    arguments = run_arguments(without="seccomp=")
    if profile == "Docker's":
        arguments.append("--security-opt=seccomp=/srv/share/default.json")
    done = machine.run("podman", "run", "--rm", *arguments, "cairn", check=False)
    assert done.returncode == 1 and "seccomp filter denies io_uring" in done.stderr
    assert [option for option in IO_URING_OPTIONS if option not in done.stderr] == []


def test_seccomp_profile_can_be_copied_from_the_image(machine: Machine):
    """The command in the error message works for users who have only the image."""
    machine.shell('cd /root && podman cp "$(podman create --ulimit=nofile=4096:4096 cairn)":/usr/share/cairn/seccomp.json seccomp.json')
    assert machine.path("/root/seccomp.json").read_text() == (CONTAINER / "seccomp.json").read_text()


def test_compose_service_stops_cleanly_and_keeps_its_data(machine: Machine):
    """It becomes healthy with a read-only root, no capabilities and secrets from files. A new one has the same data."""
    client = (
        "cd /srv/share/container/secrets\n"
        "s3() { printf 'user = %s:%s\\n' $(cat root-access-key root-secret-key) |"
        " curl --config - -fsS --aws-sigv4 aws:amz:us-east-1:s3 -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \"$@\"; }\n"
    )
    machine.run("podman", "run", "--detach", "--name=first", *run_arguments(), "cairn")
    wait_ready(machine, "first")
    process = machine.run("podman", "inspect", "first", "--format={{.State.Pid}}").stdout.strip()
    status = machine.run("cat", f"/proc/{process}/status").stdout
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split() == ["10001"] * 4 and facts["CapBnd"].strip("0") == ""
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    machine.shell(client + "s3 -X PUT http://127.0.0.1:7600/box\ns3 -T /etc/os-release http://127.0.0.1:7600/box/kept")
    machine.run("podman", "stop", "first")
    assert machine.run("podman", "inspect", "first", "--format={{.State.ExitCode}}").stdout.strip() == "0"
    machine.run("podman", "run", "--detach", "--name=second", *run_arguments(), "cairn")
    wait_ready(machine, "second")
    assert machine.shell(client + "s3 http://127.0.0.1:7600/box/kept").stdout == machine.path("/etc/os-release").read_text()
    machine.run("podman", "stop", "second")


def test_image_has_certificate_authorities(machine: Machine):
    """Regression: no request with https could be made from the image: "No CA certificates were loaded from the system"."""
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    machine.shell(f"cd /root && {made} -keyout tls.key -out tls.pem 2>/dev/null")
    machine.run("systemd-run", "--unit=https", "openssl", "s_server", "-accept", "4433", "-cert", "/root/tls.pem", "-key", "/root/tls.key", "-www")
    machine.shell("until openssl s_client -connect 127.0.0.1:4433 </dev/null >/dev/null 2>&1; do sleep 0.05; done")
    command = ["podman", "run", "--rm", *run_arguments(), "cairn", "status", "--endpoint", "https://localhost:4433"]
    done = machine.run(*command, check=False)
    machine.run("systemctl", "stop", "https")
    # The server is reached and its certificate refused, because no authority of the image has signed it.
    assert done.returncode != 0 and "certificate" in done.stderr.lower() and "No CA certificates" not in done.stderr, done.stderr
    found = machine.run("podman", "run", "--rm", *run_arguments(), "cairn", "check", check=False).stdout
    assert "certificate authorities for outgoing requests" in found


def test_readiness_is_passed_to_systemd_outside_the_container(machine: Machine):
    """With the Quadlet's `Notify=true` systemd waits for the service's message, which podman passes on."""
    machine.run(
        "systemd-run", "--unit=cairn-box", "--property=Type=notify", "--property=NotifyAccess=all", "--property=TimeoutStartSec=30s",
        "podman", "run", "--name=box", "--sdnotify=container", *run_arguments(), "cairn",
    )
    # The start has returned, so it is ready; that podman has started a container would not be enough for that.
    machine.run("podman", "healthcheck", "run", "box")
    machine.run("systemctl", "stop", "cairn-box")
