"""Packaging files: systemd's checks of the unit, and agreement with examples and documentation."""

import configparser
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from harness.server import REPOSITORY

PACKAGING = REPOSITORY / "packaging"
UNIT = PACKAGING / "systemd" / "cairn.service"
# systemd counts in tenths: 1.5 of 10. What is left is the network, /proc and the one user.
EXPOSURE_MAX = 15


def assignments(path: Path) -> list[tuple[str, str, str]]:
    """Section, key and value of each line of a unit; a key may stand more than once."""
    section, found = "", []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.append((section, key, value))
    return found


def test_journald_never_drops_lines_of_the_service():
    """Regression: above its rate limit journald drops lines at random, so a busy request log could suppress errors."""
    assert ("Service", "LogRateLimitIntervalSec", "0") in assignments(UNIT)


def test_systemd_accepts_the_unit(tmp_path: Path):
    """Every key and value; the program is the only thing that is not installed here."""
    copy = tmp_path / "cairn.service"
    copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text()))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_unit_exposure_matches_the_documentation():
    """By systemd's own count; whoever opens it has to say so here and there."""
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={EXPOSURE_MAX}", UNIT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]
    assert f"rates it {EXPOSURE_MAX / 10}" in (REPOSITORY / "docs/installing.md").read_text()


def test_unit_filter_names_the_io_uring_calls():
    """Whatever later versions of systemd have in @system-service."""
    lists = [value.split() for _, key, value in assignments(UNIT) if key == "SystemCallFilter"]
    assert {"io_uring_setup", "io_uring_enter", "io_uring_register"} <= set(lists[0])


def test_installation_creates_every_secret_of_the_unit():
    """The service cannot start if a credential file is missing."""
    made = set(re.findall(r"(?m)^ *create ([a-z-]+) ", (PACKAGING / "make-credentials").read_text()))
    loaded = dict(value.split(":") for _, key, value in assignments(UNIT) if key == "LoadCredential")
    variables = [value for _, key, value in assignments(UNIT) if key == "Environment"]
    compose = yaml.safe_load((PACKAGING / "container/compose.yaml").read_text())
    assert set(loaded) == made == set(compose["secrets"]) and len(made) == 4
    assert loaded == {name: f"/etc/cairn/credentials/{name}" for name in made}
    assert {value.split("=%d/")[1] for value in variables} == made


CHECKED_UNIT = """[Service]
ExecStart=/usr/bin/cairn serve --config /etc/cairn/cairn.toml
EnvironmentFile=-{folder}/none.env
LoadCredential=master-key:{folder}/master-key
LoadCredential=root-secret-key:{folder}/root-secret-key
WorkingDirectory={folder}/my data
ReadWritePaths=/none
ReadWritePaths=
ReadWritePaths={folder} {folder}/data -{folder}/other
Environment=SERVICE_ROOT_SECRET_KEY_FILE=%d/root-secret-key
"""


@pytest.mark.parametrize(("code", "said"), [(243, "CREDENTIALS: "), (226, "NAMESPACE: "), (238, "STATE_DIRECTORY: "), (200, "CHDIR: "), (209, "systemd.exec(5)")])
def test_check_says_why_systemd_does_not_run_it(tmp_path: Path, code: int, said: str):
    """It ended with the code of systemd, and without a word."""
    (tmp_path / "master-key").touch()
    (tmp_path / "my data").mkdir()
    (tmp_path / "unit").write_text(CHECKED_UNIT.format(folder=tmp_path))
    fakes = {"systemctl": f"cat {tmp_path}/unit", "systemd-run": f'printf "%s\\n" "$@"\nexit {code}', "journalctl": 'echo "reason of $*"'}
    for name, lines in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([PACKAGING / "systemd/check", "--json"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == code
    words = done.stdout.splitlines()
    assert words[-5:] == ["/usr/bin/cairn", "check", "--config", "/etc/cairn/cairn.toml", "--json"]
    assert f"--property=LoadCredential=master-key:{tmp_path}/master-key" in words
    missing = sorted(line for line in done.stderr.splitlines() if "is missing: " in line)
    remedy = "is missing: restore it, or mount its disk"
    assert missing == [f"ReadWritePaths=: {tmp_path}/data {remedy}", f"credential root-secret-key: {tmp_path}/root-secret-key {remedy}"]
    assert f"exit code {code}, {said}" in done.stderr and " --unit=cairn-check-" in done.stderr


def make_credentials(*arguments: object) -> subprocess.CompletedProcess:
    """Runs the script that makes the secrets."""
    return subprocess.run([PACKAGING / "make-credentials", *arguments], capture_output=True, text=True)


def test_missing_secrets_are_reported_not_replaced(tmp_path: Path):
    """An empty master key and a link to a disk that is not mounted are left alone, the others are made, and again on the next run."""
    (tmp_path / "master-key").touch()
    (tmp_path / "root-secret-key").symlink_to(tmp_path / "unmounted" / "key")
    for _ in range(2):
        done = make_credentials(tmp_path)
        assert done.returncode == 3
        assert "master-key is empty" in done.stderr and "root-secret-key is a link to a file that does not exist" in done.stderr
    assert (tmp_path / "master-key").read_bytes() == b"" and not (tmp_path / "root-secret-key").exists()
    assert (tmp_path / "root-access-key").stat().st_size > 0 and (tmp_path / "management-system-token").stat().st_size > 0


def test_master_key_is_created_only_on_first_installation(tmp_path: Path):
    """Neither on an upgrade nor beside a store; a first run makes it, and a second one leaves it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "superblock.json").touch()
    for arguments in (["--no-master-key", tmp_path / "etc"], [tmp_path / "etc", data]):
        done = make_credentials(*arguments)
        assert done.returncode == 3 and "master-key is missing" in done.stderr and not (tmp_path / "etc/master-key").exists()
    assert make_credentials(tmp_path / "etc").returncode == 0
    key = (tmp_path / "etc/master-key").read_text()
    again = make_credentials("--no-master-key", tmp_path / "etc", data)
    assert (again.returncode, (tmp_path / "etc/master-key").read_text()) == (0, key) and len(key) == 65


def test_configuration_example_matches_the_documentation():
    """Each line with its mark of a comment taken away, against the table of docs/configuration.md."""
    text = (PACKAGING / "debian/cairn.toml").read_text()
    example = configparser.ConfigParser()
    example.read_string(re.sub(r"(?m)^#(?=[a-z_]+ = |\[)", "", text))
    documented = (REPOSITORY / "docs/configuration.md").read_text()
    for section in example.sections():
        table = documented.split(f"## `[{section}]`")[1].split("\n## ")[0]
        for key, value in example[section].items():
            row = next(line for line in table.splitlines() if line.startswith(f"| `{key}` |"))
            default = row.split(" | ")[3].strip("`")
            assert default in (value.strip('"'), "not set"), row


@pytest.mark.parametrize("page", ["installing", "tls"])
def test_tls_of_the_manual_can_be_appended_to_the_packaged_configuration(page: str):
    """The section was there already, so the start ended with "not valid TOML"."""
    packaged = (PACKAGING / "debian/cairn.toml").read_text()
    snippet = (REPOSITORY / f"docs/{page}.md").read_text().split("```toml\n", 1)[1].split("```", 1)[0]
    assert tomllib.loads(packaged) == {}
    assert tomllib.loads(packaged + snippet)["server"]["tls"] == tomllib.loads(snippet)["server"]["tls"] != {}


def test_quadlet_and_compose_file_have_the_same_options():
    """Two ways to run one image: what one confines, the other does not open."""
    quadlet = [(key, value) for section, key, value in assignments(PACKAGING / "container/cairn.container") if section == "Container"]
    values = [value for _, value in quadlet]
    service = yaml.safe_load((PACKAGING / "container/compose.yaml").read_text())["services"]["cairn"]
    for name, limit in service["ulimits"].items():
        assert f"{name}={limit}:{limit}" in values
    for port in service["ports"]:
        assert port in values
    assert f"--memory={service['mem_limit']}" in values
    for name, file in service["environment"].items():
        assert f"{name}={file.replace('/run/secrets/', '/run/secrets/cairn-')}" in values
    assert service["security_opt"] == ["seccomp=./seccomp.json", "no-new-privileges:true"]
    assert {("SeccompProfile", "/etc/cairn/seccomp.json"), ("NoNewPrivileges", "true")} <= set(quadlet)
    assert [("DropCapability", name.lower()) for name in service["cap_drop"]] == [pair for pair in quadlet if pair[0] == "DropCapability"]
    assert service["read_only"] is True and ("ReadOnly", "true") in quadlet and "AddCapability" not in dict(quadlet)
    assert {value.split(",")[0] for key, value in quadlet if key == "Secret"} == {f"cairn-{name}" for name in service["secrets"]}
    check = service["healthcheck"]
    assert ("HealthCmd", json.dumps(check["test"][1:])) in quadlet
    for ours, theirs in {"HealthInterval": "interval", "HealthTimeout": "timeout", "HealthStartPeriod": "start_period", "HealthRetries": "retries"}.items():
        assert (ours, str(check[theirs])) in quadlet
    assert service["tmpfs"][0] in values and f"--stop-timeout={service['stop_grace_period'].removesuffix('s')}" in values


def test_image_uses_the_pinned_toolchain():
    """rust-toolchain.toml has the version; another one in the image would be fetched again, or differ."""
    channel = re.search(r'channel = "([^"]+)"', (REPOSITORY / "rust-toolchain.toml").read_text())[1]
    stage = (PACKAGING / "container/Containerfile").read_text().split("\nFROM ", 1)[1].split()[0]
    assert re.match(rf"docker\.io/library/rust:{re.escape(channel)}(\.\d+)?-bookworm$", stage), (channel, stage)


def test_the_package_says_what_the_console_serves():
    """It said "Share links, and nothing else" of a listener that administers the whole store."""
    text = (PACKAGING / "debian/cairn.toml").read_text()
    comment = re.search(r"((?:^# .*\n)+)#console_bind = ", text, re.MULTILINE)[1]
    assert "web console" in comment and "administers" in comment and "share links" in comment
    # What it says to do is a key of the configuration.
    assert "`admin_enabled = false` in `[console]`" in comment
    assert "| `admin_enabled` |" in (REPOSITORY / "docs/configuration.md").read_text()
