"""Test certificates: a certificate authority and the pairs that it signs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
KEYS = {
    "ecdsa": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "ecdsa-p384": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
    "rsa": ["-newkey", "rsa:2048"],
    "rsa-4096": ["-newkey", "rsa:4096"],
    "ed25519": ["-newkey", "ed25519"],
}


def openssl(*arguments: str) -> None:
    """Runs openssl and shows its output if it fails."""
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Pair:
    """A certificate chain and its key, as files."""

    certificate: Path
    key: Path

    def environment(self) -> dict[str, str]:
        """Returns the settings that use the pair on every listener."""
        return {"SERVICE_TLS_CERTIFICATE": str(self.certificate), "SERVICE_TLS_KEY": str(self.key)}

    def take(self, other: "Pair") -> None:
        """Replaces both files atomically with another pair, as certificate renewal tools do."""
        other.key.replace(self.key)
        other.certificate.replace(self.certificate)


class Authority:
    """A certificate authority that clients can be configured to trust."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate, self._key = folder / "authority.crt", folder / "authority.key"
        openssl("req", "-x509", *KEYS["ecdsa"], "-nodes", "-days", "2", "-subj", "/CN=tests", "-keyout", str(self._key), "-out", str(self.certificate),
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")

    def issue(self, name: str, kind: str = "ecdsa", days: int = 2) -> Pair:
        """Issues a pair for this host in files of this name."""
        request = self.folder / f"{name}.csr"
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        openssl("req", "-new", *KEYS[kind], "-nodes", "-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(request), "-addext", NAMES)
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial", "-days", str(days),
                "-copy_extensions", "copy", "-out", str(pair.certificate))
        return pair
