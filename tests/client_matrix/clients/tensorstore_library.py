"""TensorStore, whose S3 client is its own, in C++."""

import contextlib
import importlib.metadata
import os

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where they are not installed.
with contextlib.suppress(ImportError):
    import numpy
    import tensorstore

SIDE, CHUNK = 1000, 250


class TensorStore(Program):
    """Arrays in chunks, as Zarr."""

    title = "TensorStore"

    @classmethod
    def version(cls, run) -> str:
        return importlib.metadata.version("tensorstore")

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ |= {
            "AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key, "TENSORSTORE_CA_BUNDLE": str(server.authority),
        }
        self.values = numpy.random.default_rng(1).random((SIDE, SIDE))
        store = {"driver": "s3", "bucket": self.bucket, "path": "array/", "endpoint": server.endpoint, "aws_region": REGION, "host_header": server.authority_name}
        self.spec = {"driver": "zarr3", "kvstore": store | {"aws_credentials": {"type": "environment"}}}

    def array(self, **options: object) -> "tensorstore.TensorStore":
        """Opens the array."""
        return tensorstore.open(self.spec, **options).result(timeout=60)

    def write(self) -> None:
        """Makes an array, and writes its chunks with conditional puts."""
        chunks = tensorstore.ChunkLayout(chunk_shape=[CHUNK, CHUNK])
        array = self.array(create=True, dtype=tensorstore.float64, shape=[SIDE, SIDE], chunk_layout=chunks)
        array.write(self.values).result(timeout=60)
        array[:10, :10].write(self.values[:10, :10]).result(timeout=60)

    def read(self) -> None:
        """Reads it whole, and a part of it."""
        same(bool((self.array().read().result(timeout=60) == self.values).all()), True, "the array is what was written")
        same(bool((self.array()[300:310, 5:9].read().result(timeout=60) == self.values[300:310, 5:9]).all()), True, "the part is what was written")

    def remove(self) -> None:
        """Removes the array with all its chunks."""
        store = tensorstore.KvStore.open(self.spec["kvstore"]).result(timeout=60)
        store.delete_range(tensorstore.KvStore.KeyRange()).result(timeout=60)
        same(self.workspace.keys(self.bucket), [], "chunks left")
