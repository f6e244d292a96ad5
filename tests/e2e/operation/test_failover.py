"""Failover with a device that moves: one host at a time, and the other one has everything that was acknowledged.

Two folders and two processes stand for the hosts, and a moved or copied folder for the device.
"""

import shutil
import subprocess
import threading
from collections.abc import Callable

import pytest

from harness.management import expect
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until
from harness.wire import WireError


def write_until_killed(s3: S3, number: int, acknowledged: dict[str, bytes]) -> None:
    """Puts objects, small and large, and deletes some; records what was answered."""
    with s3.connect() as connection:
        for count in range(100_000):
            key, body = f"{number}/{count}", bytes([number, count % 256]) * (40_000 if count % 10 == 0 else 50)
            try:
                if s3.request("PUT", object_target("kept", key), body=body, connection=connection).status != 200:
                    return
                acknowledged[key] = body
            except (OSError, WireError):
                return


@pytest.mark.parametrize("way", ["move", "copy"])
def test_everything_acknowledged_is_there_on_the_other_host(make_store: Callable[..., Cairn], way: str):
    """After kill -9 under load. Also an inspection finds nothing."""
    first = make_store().start()
    first.s3.create_bucket("kept")
    written: list[dict[str, bytes]] = [{} for _ in range(4)]
    threads = [threading.Thread(target=write_until_killed, args=(first.s3, number, own)) for number, own in enumerate(written)]
    for thread in threads:
        thread.start()
    until(lambda: all(len(own) > 100 for own in written), "the writers to be under way")
    first.kill()
    for thread in threads:
        thread.join()
    second = make_store()
    second.secrets = first.secrets
    if way == "move":
        first.data.rename(second.data)
    else:
        subprocess.run(["cp", "-a", "--sparse=always", first.data, second.data], check=True)
    second.start()
    for own in written:
        for key, body in own.items():
            assert second.s3.get("kept", key).body == body, key
    inspected = expect(second.admin.post("/verify/buckets/kept"), 200)
    assert inspected["complete"] and inspected["corrupt_count"] == 0 and inspected["versions_verified"] >= sum(map(len, written))
    assert second.stop() == 0


def test_a_host_that_hangs_keeps_the_other_one_out(make_store: Callable[..., Cairn]):
    """A stopped process may go on at any time: its lock holds until it is dead. Then the other host starts."""
    first = make_store().start()
    first.s3.create_bucket("kept")
    first.s3.put("kept", "k", b"1")
    second = make_store()
    second.data, second.secrets = first.data, first.secrets
    with first.stopped():
        process = second.spawn()
        assert process.wait(60) != 0
        assert str(first.data) in second.output()
    assert first.s3.put("kept", "k", b"2").status == 200
    first.kill()
    second.log.unlink()
    second.start()
    assert second.s3.get("kept", "k").body == b"2"
    assert second.stop() == 0
    shutil.rmtree(second.data, ignore_errors=True)
