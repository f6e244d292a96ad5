"""A certificate of its own for a server on this host, made by openssl."""

import subprocess
from pathlib import Path

NAME = "localhost"


def make_certificate(folder: Path) -> Path:
    """The certificate's path; its key is beside it with the ending .key, both together in one file with the ending .pem."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / "s3.example.com"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1", "-keyout", f"{base}.key", "-out", f"{base}.crt"],
        check=True, capture_output=True,
    )
    certificate = Path(f"{base}.crt")
    Path(f"{base}.pem").write_text(certificate.read_text() + Path(f"{base}.key").read_text())
    return certificate
