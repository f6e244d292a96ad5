"""A copy of a tree is interrupted by SIGKILL of the server and completed later."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.gate import Gate
from harness.server import Cairn
from harness.wait import until

COMMANDS = {
    "s5cmd": (
        ["s5cmd", "--log", "error", "sync", "{tree}/", "s3://{bucket}/"],
        ["s5cmd", "--log", "error", "cp", "s3://{bucket}/*", "{out}/"],
    ),
    "rclone": (["rclone", "copy", "{tree}", ":s3:{bucket}"], ["rclone", "copy", ":s3:{bucket}", "{out}"]),
}


def wait_for_objects(store: Cairn, gate: Gate, bucket: str, count: int) -> None:
    """Waits until this many objects have been acknowledged, or until the copy is held in its middle."""
    until(lambda: len(store.s3.list(bucket).keys) >= count or gate.is_holding(), "the copy makes no progress")


@pytest.mark.parametrize("client", COMMANDS)
def test_a_copy_survives_kill_9(own_store: Cairn, command_for, tree, out: Path, client: str):
    """Acknowledged objects exist after the restart, and a second run completes the copy without differences."""
    command, bucket = command_for(own_store), "story"
    own_store.s3.create_bucket(bucket)
    names = {"tree": tree.folder, "bucket": bucket, "out": out}
    half = sum(size for size, _ in tree.content.values()) // 2
    copy_in, copy_out = ([part.format(**names) for part in parts] for parts in COMMANDS[client])

    with Gate(own_store.s3_port) as gate:
        gate.hold_after(half)
        variables = dict.fromkeys(("AWS_ENDPOINT_URL", "S3_ENDPOINT_URL", "RCLONE_S3_ENDPOINT"), gate.endpoint)
        with replace(command, environment=command.environment | variables).running(*copy_in):
            wait_for_objects(own_store, gate, bucket, min(150, len(tree.content) // 3))
            before = own_store.s3.list_all(bucket)
            own_store.kill()
    own_store.start()
    after = own_store.s3.list_all(bucket)
    assert before.items() <= after.items(), "an acknowledged object is gone"
    assert len(after) < len(tree.content), "the copy was complete before the kill"

    command.must(*copy_in)
    command.must(*copy_out)
    tree.assert_same(out)
