"""Icechunk with Zarr: arrays with transactions and versions."""

import contextlib
import os
from datetime import datetime, timedelta, timezone

from client_matrix.program import Program
from client_matrix.workspace import REGION, Workspace, same

# The page is built where they are not installed.
with contextlib.suppress(ImportError):
    import icechunk
    import numpy
    import zarr

SIDE = 600


class Icechunk(Program):
    """Arrays of sciences."""

    title = "Icechunk (Zarr)"

    @classmethod
    def version(cls, run) -> str:
        return icechunk.__version__

    def __init__(self, workspace: Workspace):
        super().__init__(workspace)
        server = workspace.server
        os.environ["SSL_CERT_FILE"] = str(server.authority)
        self.storage = icechunk.s3_storage(
            bucket=self.bucket, prefix="arrays", endpoint_url=server.endpoint, region=REGION, allow_http=not server.tls, force_path_style=True,
            access_key_id=server.access_key, secret_access_key=server.secret_key,
        )

        # Chunks of equal numbers are so small that they are kept in the manifest.
        self.values = numpy.random.default_rng(1).random((SIDE, SIDE))

    def read_sum(self, snapshot: str) -> float:
        """Returns the sum of the array in a snapshot."""
        session = icechunk.Repository.open(self.storage).readonly_session(snapshot_id=snapshot)
        return float(zarr.open_array(session.store, mode="r")[:].sum())

    def write(self) -> None:
        """Makes an array of many chunks, and changes some of them in a second snapshot."""
        session = icechunk.Repository.create(self.storage).writable_session("main")
        array = zarr.create_array(session.store, shape=(SIDE, SIDE), chunks=(100, 100), dtype="f8")
        array[:] = self.values
        session.commit("first")
        session = icechunk.Repository.open(self.storage).writable_session("main")
        zarr.open_array(session.store)[:100, :100] = 0.5 + self.values[:100, :100]
        session.commit("second")

    def read(self) -> None:
        """Reads the array as it is, and as it was."""
        now, before, *_ = (snapshot.id for snapshot in icechunk.Repository.open(self.storage).ancestry(branch="main"))
        first = float(self.values.sum())
        same(round(self.read_sum(before) - first, 6), 0.0, "difference to the first snapshot")
        same(round(self.read_sum(now) - first, 6), 5000.0, "what the second snapshot added")

    def remove(self) -> None:
        """Forgets the first snapshot, and removes the chunks that only it used."""
        repository = icechunk.Repository.open(self.storage)
        soon = datetime.now(timezone.utc) + timedelta(days=1)
        repository.expire_snapshots(older_than=soon)
        removed = repository.garbage_collect(soon)
        same(removed.chunks_deleted > 0, True, "chunks were removed")
