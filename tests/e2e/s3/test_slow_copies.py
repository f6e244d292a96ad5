"""Copies that take longer than clients wait for a byte: CopyObject and UploadPartCopy. Extended mode.

A slow device is imitated: the server is stopped for most of the time. In the rest, the MD5 of the copy bounds how much it copies.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.boto import make_client
from harness.s3 import md5_etag
from harness.server import Cairn

SOURCE_BYTES = 256 << 20
SOURCE = bytes(range(256)) * (SOURCE_BYTES // 256)
# The head is sent after 5 seconds, and white space every 5 seconds.
READ_TIMEOUT_SECONDS = 15
SLOW_SECONDS = 24
STOP_SECONDS = 0.2
# How long the server runs between two stops.
RUN_SECONDS = (0.005, 0.002, 0.001, 0.0005)


@pytest.fixture(scope="module")
def impatient_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """Starts a server whose own deadlines are shorter than the copies."""
    deadlines = {f"SERVICE_SERVER_{name}_TIMEOUT_SECONDS": "3" for name in ("BODY", "HEAD", "IDLE", "FIRST_REQUEST")}
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended", **deadlines).start()
    store.s3.create_bucket("slow")
    store.s3.put("slow", "source", SOURCE)
    return store


@contextmanager
def slowed(store: Cairn, seconds: float, run_seconds: float) -> Iterator[None]:
    """Stops the server for most of the time, for this long."""
    pid, ended = store.process.pid, threading.Event()

    def slow() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not ended.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(STOP_SECONDS)
            os.kill(pid, signal.SIGCONT)
            time.sleep(run_seconds)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_slow_copies_outlive_every_timeout(impatient_store: Cairn):
    """The client gets a byte before it gives up, and no deadline of the server cuts the connection."""
    boto = make_client(impatient_store.s3, read_timeout=READ_TIMEOUT_SECONDS)
    names, source = {"Bucket": "slow", "Key": "made"}, {"Bucket": "slow", "Key": "source"}
    upload = boto.create_multipart_upload(**names)["UploadId"]

    def slowly(copy: Callable[[], dict]) -> dict:
        # On a fast machine once more, with less time to run.
        for run_seconds in RUN_SECONDS:
            began = time.monotonic()
            with slowed(impatient_store, SLOW_SECONDS, run_seconds):
                answer = copy()
            if time.monotonic() - began > READ_TIMEOUT_SECONDS + 2:
                return answer
        raise AssertionError("the copy was too fast to prove anything")

    part = slowly(lambda: boto.upload_part_copy(**names, UploadId=upload, PartNumber=1, CopySource=source))["CopyPartResult"]
    assert part["ETag"] == md5_etag(SOURCE)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    assert boto.complete_multipart_upload(**names, UploadId=upload, MultipartUpload=parts)["ETag"].endswith('-1"')
    assert boto.head_object(**names)["ContentLength"] == SOURCE_BYTES
    copied = slowly(lambda: boto.copy_object(Bucket="slow", Key="copy", CopySource=source))
    assert copied["CopyObjectResult"]["ETag"] == md5_etag(SOURCE)
    assert boto.get_object(Bucket="slow", Key="copy", Range=f"bytes={SOURCE_BYTES - 5}-")["Body"].read() == SOURCE[-5:]
