"""`cairn config show`: effective values, their origin, and no secrets."""

import json
import subprocess
from pathlib import Path

from harness.server import BINARY, Cairn, clean_environment


def show(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess:
    """Runs `cairn config show`."""
    return subprocess.run(
        [BINARY, "config", "show", *arguments], env=clean_environment() | variables, capture_output=True, text=True, timeout=60
    )


def test_values_have_their_origin_and_secrets_are_redacted(make_store, tmp_path: Path):
    """Option, environment, file and default, in this order of precedence. No secret is printed."""
    store: Cairn = make_store()
    file = tmp_path / "cairn.toml"
    file.write_text('[server]\nconnections_max = 500\nshutdown_grace_period_seconds = 7\n')
    variables = store.environment() | {"SERVICE_SERVER_CONNECTIONS_MAX": "600"}
    done = show(variables, "--config", str(file), "--data-dir", str(tmp_path / "data"), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    keys = {key["key"]: (key["value"], key["origin"], key["source"]) for key in document["keys"]}
    assert document["problem"] is None
    assert keys["server.data_dir"] == (str(tmp_path / "data"), "option", "--data-dir")
    assert keys["server.connections_max"] == ("600", "environment", "SERVICE_SERVER_CONNECTIONS_MAX")
    assert keys["server.shutdown_grace_period_seconds"] == ("7", "file", str(file))
    assert keys["server.head_timeout_seconds"][1:] == ("default", None)
    assert ("not set", None) in [key[1:] for key in keys.values()]
    assert keys["auth.root_secret_key"] == ("<redacted>", "environment", "SERVICE_ROOT_SECRET_KEY")
    text = show(variables, "--config", str(file)).stdout
    assert text.splitlines()[0].split() == ["KEY", "VALUE", "ORIGIN"] and f"file: {file}" in text
    assert not any(secret in done.stdout + text for secret in store.secrets.hidden())
    assert not (tmp_path / "data").exists(), "nothing is created"


def test_an_invalid_configuration_is_shown_with_its_problem(tmp_path: Path):
    """Without secrets the server does not start; the values are shown nevertheless. --dev creates no secrets."""
    done = show({"SERVICE_LOG": "service=debug"}, "--json")
    assert done.returncode == 1 and "SERVICE_ROOT_SECRET_KEY" in done.stderr
    document = json.loads(done.stdout)
    assert {"key": "observability.log_filter", "variable": "SERVICE_LOG", "value": "service=debug", "origin": "environment",
            "source": "SERVICE_LOG"} in document["keys"]
    assert "SERVICE_ROOT_SECRET_KEY" in document["problem"]
    done = show({}, "--dev", "--data-dir", str(tmp_path / "dev"), "--json")
    assert done.returncode == 0 and not (tmp_path / "dev").exists()
    keys = {key["key"]: (key["value"], key["origin"], key["source"]) for key in json.loads(done.stdout)["keys"]}
    assert keys["auth.root_access_key"] == keys["auth.root_secret_key"] == (None, "generated", None)
