"""The compose file: read strictly, with nothing that the program does not know, and a server that starts with its variables.

`packages/test_container.py` runs the image with its options.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import compose_spec
import pytest
import requests
import yaml

from harness.deployment import PORTS, start_as
from harness.server import REPOSITORY, Cairn

FILE = REPOSITORY / "packaging/container/compose.yaml"
SECRETS = "/run/secrets"


def service() -> dict:
    """Returns the only service."""
    (only,) = yaml.safe_load(FILE.read_text())["services"].values()
    return only


def test_file_is_valid():
    """Unknown keys, wrong types, and names that are not declared are errors."""
    compose_spec.PyCompose.from_yaml(FILE.read_text()).validate()


@pytest.mark.parametrize(
    ("right", "wrong"), [("mem_limit", "memory_limit"), ("start_period: 30s", "start_period: soon"), ("secrets: [master-key", "secrets: [master")],
)
def test_broken_file_is_found(right: str, wrong: str):
    """Shows that the check above can fail."""
    text = FILE.read_text()
    assert right in text
    with pytest.raises(ValueError):
        compose_spec.PyCompose.from_yaml(text.replace(right, wrong)).validate()


def test_everything_that_a_server_needs_is_there():
    """Secrets as files, a volume for the data, limits, no rights, the profile with io_uring, and ports that the image exposes."""
    described = service()
    root = yaml.safe_load(FILE.read_text())
    assert described["read_only"] is True and described["cap_drop"] == ["ALL"] and described["mem_limit"]
    assert described["security_opt"] == ["seccomp=./seccomp.json", "no-new-privileges:true"] and (FILE.parent / "seccomp.json").is_file()
    assert [volume.split(":") for volume in described["volumes"]] == [["data", "/var/lib/cairn"]] and "data" in root["volumes"]
    assert all(value.startswith(f"{SECRETS}/") for name, value in described["environment"].items() if name.endswith("_FILE"))
    exposed = set(map(int, re.findall(r"(\d+)/tcp", (FILE.parent / "Containerfile").read_text())))
    published = {int(port.split(":")[-1]): port for port in described["ports"]}
    assert set(published) == exposed == set(PORTS.values())
    assert all(published[port].startswith("127.0.0.1:") for port in (7601, 7602)), "only S3 is reachable from other hosts"
    # The image has no shell.
    assert described["healthcheck"]["test"][:2] == ["CMD", "/usr/bin/cairn"]


def test_server_starts_with_the_variables(make_store: Callable[..., Cairn], tmp_path: Path):
    """And the secrets that the first lines of the file make."""
    subprocess.run([REPOSITORY / "packaging/make-credentials", tmp_path / "made"], check=True, capture_output=True)
    named = service()["secrets"]
    secrets = {name: (tmp_path / "made" / name).read_text().strip() for name in named}
    store = start_as(make_store, service()["environment"], SECRETS, secrets, tmp_path / "mounted")
    store.s3.create_bucket("photos")
    assert store.admin.get("/buckets").status_code == 200
    assert requests.get(store.console, timeout=30).status_code == 200
