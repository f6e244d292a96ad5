"""Starts the server with the environment that a chart or a compose file gives a container."""

from collections.abc import Callable
from pathlib import Path

from .server import LOOPBACK, Cairn, Secrets

# The ports of the image, by the variable that sets the address.
PORTS = {"SERVICE_S3_BIND": 7600, "SERVICE_API_BIND": 7601, "SERVICE_CONSOLE_BIND": 7602}
DATA = "/var/lib/cairn"


def start_as(
    make_store: Callable[..., Cairn], variables: dict[str, str], mounted: str, secrets: dict[str, str], folder: Path
) -> Cairn:
    """Starts a server with these variables and nothing else.

    The secrets are files as in the folder `mounted` of the container. Addresses keep their meaning, but get free ports.
    """
    folder.mkdir()
    for name, text in secrets.items():
        file = folder / name
        file.touch(mode=0o600)
        file.write_text(text)
    store = make_store()
    told = dict.fromkeys(store.secrets.environment())
    told |= {name: value.replace(mounted, str(folder)) for name, value in variables.items()}
    if "SERVICE_DATA_DIR" in told:
        assert told.pop("SERVICE_DATA_DIR") == DATA
    ports = {"SERVICE_S3_BIND": store.s3_port, "SERVICE_API_BIND": store.api_port, "SERVICE_CONSOLE_BIND": store.console_port}
    for name, port in ports.items():
        if name in variables:
            assert variables[name] == f"0.0.0.0:{PORTS[name]}", "the image exposes this port"
            told[name] = f"{LOOPBACK}:{port}"
    store.extra |= told
    names = ("master-key", "root-access-key", "root-secret-key", "management-system-token")
    store.secrets = Secrets(*(secrets[name] for name in names))
    return store.start()
