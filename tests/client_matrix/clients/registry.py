"""The docker registry (distribution), with images pushed and pulled by skopeo."""

import contextlib
import gzip
import hashlib
import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, Refused, same
from harness.boto import random_bytes
from harness.programs import REPOSITORY, TOOLS
from harness.server import free_ports

PROGRAM = str(TOOLS / "registry")
START_SECONDS = 10
# Above the size from which the registry moves an upload by copying it in pieces.
LAYER_BYTES = 45_000_000


class Registry(Program):
    """Images, whose layers it writes in pieces and moves by copies."""

    title = "docker registry (distribution)"

    @classmethod
    def version(cls, run) -> str:
        lines = (REPOSITORY / "tests/clients/registry/go.mod").read_text().splitlines()
        return next(line.split()[1] for line in lines if "distribution/distribution/v3 v" in line.removeprefix("require ")).lstrip("v")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        (self.port,) = free_ports(1)
        self.config = workspace.folder / "registry.yml"
        server = workspace.server
        self.config.write_text(json.dumps({
            "version": 0.1, "log": {"level": "error"}, "http": {"addr": f"127.0.0.1:{self.port}"},
            "storage": {"delete": {"enabled": True}, "s3": {
                "accesskey": server.access_key, "secretkey": server.secret_key, "region": REGION, "regionendpoint": server.endpoint,
                "bucket": self.bucket, "forcepathstyle": True, "secure": server.tls,
            }},
        }))
        self.image = self.make_image()

    def make_image(self) -> str:
        """Makes an image of one layer in an OCI layout."""
        folder = self.workspace.folder / "image"
        blobs = folder / "blobs/sha256"
        blobs.mkdir(parents=True)

        def blob(content: bytes, kind: str) -> dict:
            name = hashlib.sha256(content).hexdigest()
            (blobs / name).write_bytes(content)
            return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{name}", "size": len(content)}

        content = random_bytes("layer", LAYER_BYTES)
        layer = blob(gzip.compress(content, 1), "layer.v1.tar+gzip")
        parts = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]}
        config = blob(json.dumps({"architecture": "amd64", "os": "linux", "rootfs": parts}).encode(), "config.v1+json")
        about = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}
        manifest = blob(json.dumps(about).encode(), "manifest.v1+json")
        named = manifest | {"annotations": {"org.opencontainers.image.ref.name": "x"}}
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
        self.layer = layer["digest"]
        return f"oci:{folder}:x"

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        """Runs the registry; its name for skopeo."""
        log = self.workspace.folder / "registry.log"
        with log.open("ab") as written:
            process = subprocess.Popen([PROGRAM, "serve", self.config], env=self.workspace.environment, stdout=written, stderr=written)
        try:
            give_up = time.monotonic() + START_SECONDS
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/", timeout=2).close()
                    break
                if process.poll() is not None or time.monotonic() > give_up:
                    raise Refused(f"not started: {log.read_text()[-800:]}")
                time.sleep(0.05)
            yield f"docker://127.0.0.1:{self.port}/image:x"
        except Refused as refused:
            raise Refused(f"{refused} {log.read_text()[-1500:]}") from None
        finally:
            process.kill()
            process.wait()

    def write(self) -> None:
        """Pushes the image, and pushes a blob in two pieces."""
        with self.serving() as name:
            self.workspace.run("skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", "--retry-times=0", self.image, name)
            self.push_in_pieces()

    def push_in_pieces(self) -> None:
        """Uploads a blob by two PATCH requests: the second one continues what the first has stored."""
        content = random_bytes("pieces", 7_000_000)
        base = f"http://127.0.0.1:{self.port}"

        def ask(method: str, url: str, body: bytes = b"", **headers: str) -> str:
            full = url if url.startswith("http") else base + url
            request = urllib.request.Request(full, data=body or None, method=method, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.headers.get("Location", "")
            except urllib.error.HTTPError as error:
                raise Refused(error.read().decode(errors="replace")) from None

        place = ask("POST", "/v2/image/blobs/uploads/")
        for first in range(0, len(content), 3_500_000):
            piece = content[first : first + 3_500_000]
            place = ask("PATCH", place, piece, **{"Content-Type": "application/octet-stream", "Content-Range": f"{first}-{first + len(piece) - 1}"})
        ask("PUT", f"{place}&digest=sha256:{hashlib.sha256(content).hexdigest()}")

    def read(self) -> None:
        """Pulls the image, and reads its layer."""
        with self.serving() as name:
            self.workspace.run("skopeo", "copy", "--insecure-policy", "--src-tls-verify=false", name, f"dir:{self.workspace.folder}/pulled")
            # The registry sends its readers to a presigned URL.
            trusted = ssl.create_default_context(cafile=str(self.workspace.server.authority))
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/image/blobs/{self.layer}", timeout=60, context=trusted) as answer:
                same(f"sha256:{hashlib.sha256(answer.read()).hexdigest()}", self.layer, "digest of the layer")

    def remove(self) -> None:
        """Deletes the image and collects its layers."""
        with self.serving() as name:
            self.workspace.run("skopeo", "delete", "--tls-verify=false", name)
        self.workspace.run(PROGRAM, "garbage-collect", "--delete-untagged", self.config)
        left = [key for key in self.workspace.keys(self.bucket) if self.layer.removeprefix("sha256:") in key and key.endswith("/data")]
        same(left, [], "the layer")
