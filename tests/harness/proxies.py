"""Runs nginx, Caddy and HAProxy with packaging/proxies; only addresses and paths are replaced."""

import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .certificates import Authority
from .s3 import S3
from .server import LOOPBACK, REPOSITORY, clean_environment, free_ports
from .sigv4 import Credential
from .wire import Connection

CONFIGURATIONS = REPOSITORY / "packaging" / "proxies"
PROXIES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "haproxy": "haproxy.cfg"}
NAME = "localhost"
START_SECONDS = 30.0
POLL_SECONDS = 0.02
# nginx.conf is only a part of the http section. This is the rest, with Debian's settings and local temporary files.
NGINX_MAIN = """daemon off; master_process off; pid nginx.pid; error_log stderr; worker_processes 1; events {}
http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
sendfile on; tcp_nopush on; default_type application/octet-stream; gzip on; ssl_prefer_server_ciphers on;
include cairn.conf; }
"""


@dataclass
class Proxy:
    """A running proxy and its ports."""

    kind: str
    port: int
    management_port: int
    # The certificate of the authority that clients trust.
    certificate: Path
    process_id: int

    @property
    def endpoint(self) -> str:
        """Returns the URL of the data plane through the proxy."""
        return f"https://{NAME}:{self.port}"

    @property
    def management(self) -> str:
        """Returns the URL of the management plane through the proxy."""
        return f"https://{NAME}:{self.management_port}"

    def s3(self, credential: Credential, source: str = LOOPBACK) -> "SecureS3":
        """Returns the harness's S3 client through the proxy, from this source address."""
        return SecureS3(self, credential, source)


class SecureS3(S3):
    """An S3 client that connects to a proxy over TLS."""

    def __init__(self, proxy: Proxy, credential: Credential, source: str):
        super().__init__(LOOPBACK, proxy.port, credential)
        self.authority = f"{NAME}:{proxy.port}"
        self.source = source
        self.context = ssl.create_default_context(cafile=proxy.certificate)

    def connect(self, **options: int) -> Connection:
        """Opens a connection and completes the handshake."""
        return SecureConnection(self, **options)


class SecureConnection(Connection):
    """A TLS connection."""

    def __init__(self, client: SecureS3):
        raw = socket.create_connection((client.host, client.port), timeout=30, source_address=(client.source, 0))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.sock = client.context.wrap_socket(raw, server_hostname=NAME)
        self.buffer = b""
        self.closing = False


def configured(kind: str, folder: Path, ports: tuple[int, ...], upstream: tuple[int, int]) -> str:
    """Returns the configuration of all planes with the addresses and paths of this run."""
    replaced = {
        "127.0.0.1:7600": f"{LOOPBACK}:{upstream[0]}", "127.0.0.1:7601": f"{LOOPBACK}:{upstream[1]}",
        "10.0.0.5:7443": f"{LOOPBACK}:{ports[1]}", "/etc/ssl/cairn": str(folder), "s3.example.com:443": f"{NAME}:{ports[0]}",
        "s3.example.com:7443": f"{NAME}:{ports[1]}", "bind 10.0.0.5\n": f"bind {LOOPBACK}\n", "listen 443 ": f"listen {LOOPBACK}:{ports[0]} ",
        "bind :443 ": f"bind {LOOPBACK}:{ports[0]} ",
    }
    return replaced_in((CONFIGURATIONS / PROXIES[kind]).read_text(), replaced)


def configured_for_links(kind: str, folder: Path, ports: tuple[int, ...], upstream: tuple[int, int]) -> str:
    """Returns the configuration that publishes links alone. `upstream` are the ports of the data plane and the console."""
    replaced = {
        "127.0.0.1:7600": f"{LOOPBACK}:{upstream[0]}", "127.0.0.1:7602": f"{LOOPBACK}:{upstream[1]}",
        "/etc/ssl/cairn/share.example.com": str(folder / "s3.example.com"), "share.example.com:443": f"{NAME}:{ports[0]}",
        "listen 443 ": f"listen {LOOPBACK}:{ports[0]} ", "bind :443 ": f"bind {LOOPBACK}:{ports[0]} ",
    }
    return replaced_in((CONFIGURATIONS / "links" / PROXIES[kind]).read_text(), replaced)


def replaced_in(text: str, replaced: dict[str, str]) -> str:
    """Returns a configuration with other addresses and paths. Fails if one of a real installation is left."""
    for theirs, ours in replaced.items():
        text = text.replace(theirs, ours)
    assert not re.search(r"\b(760[012]|443|7443)\b|10\.0\.0\.5|/etc/", "\n".join(line for line in text.splitlines() if "#" not in line))
    return text


def command(kind: str, folder: Path, text: str) -> list[str]:
    """Writes the configuration and returns the command that runs the proxy in the foreground."""
    if kind == "nginx":
        (folder / "cairn.conf").write_text(text)
        (folder / "nginx.conf").write_text(NGINX_MAIN if os.geteuid() else "user root;" + NGINX_MAIN)
        return ["nginx", "-p", str(folder), "-e", "stderr", "-c", "nginx.conf"]
    configuration = folder / PROXIES[kind]
    if kind == "caddy":
        # Caddy's administration endpoint would listen on a fixed port.
        configuration.write_text(text.replace("{\n", "{\n\tadmin off\n", 1))
        return ["caddy", "run", "--adapter", "caddyfile", "--config", str(configuration)]
    if os.geteuid():
        text = re.sub(r"(?m)^ *(chroot|user|group) .*\n", "", text)
    configuration.write_text(text)
    return ["haproxy", "-db", "-f", str(configuration)]


def proxy(kind: str, folder: Path, upstream: tuple[int, int]) -> AbstractContextManager[Proxy]:
    """Runs a proxy for the data plane and management plane on these ports of this host."""
    return running(kind, folder, tuple(free_ports(2)), upstream, configured)


def links_proxy(kind: str, folder: Path, upstream: tuple[int, int]) -> AbstractContextManager[Proxy]:
    """Runs a proxy that publishes shares and embeds alone, of the data plane and the console on these ports of this host."""
    return running(kind, folder, tuple(free_ports(1)), upstream, configured_for_links)


@contextmanager
def running(
    kind: str, folder: Path, ports: tuple[int, ...], upstream: tuple[int, int], configuration: Callable[..., str]
) -> Iterator[Proxy]:
    """Runs a proxy on these ports."""
    authority = Authority(folder)
    pair = authority.issue("s3.example.com")
    (folder / "s3.example.com.pem").write_text(pair.certificate.read_text() + pair.key.read_text())
    arguments = command(kind, folder, configuration(kind, folder, ports, upstream))
    environment = clean_environment() | {"PATH": f"/usr/sbin:/sbin:{os.environ['PATH']}", "HOME": str(folder)}
    log = folder / "proxy.log"
    with log.open("wb") as output:
        process = subprocess.Popen(arguments, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_listening(process, ports, log)
        yield Proxy(kind, ports[0], ports[-1], authority.certificate, process.pid)
    finally:
        # Caddy would wait until clients close their connections.
        process.kill()
        process.wait(30)


def wait_listening(process: subprocess.Popen, ports: tuple[int, ...], log: Path) -> None:
    """Waits until all ports accept connections."""
    give_up = time.monotonic() + START_SECONDS
    for port in ports:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    break
            assert process.poll() is None and time.monotonic() < give_up, log.read_text()[-3000:]
            time.sleep(POLL_SECONDS)
