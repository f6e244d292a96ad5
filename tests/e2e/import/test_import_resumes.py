"""`cairn import objects` is killed, interrupted, or loses a server, and is continued."""

import contextlib
import os
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from harness.backups import cli_of
from harness.boto import make_client
from harness.gate import Gate
from harness.importer import Importer, assert_equal, versions
from harness.management import expect
from harness.minio import Minio
from harness.server import Cairn
from harness.wait import until

COUNT, SIZE = 300, 16 << 10
# With this rate, a run takes some seconds: long enough to be ended in its middle.
SLOWLY = ("--bytes-per-second", "1MB", "--concurrency", "4")
# Small objects are written 64 at a time. With these, one such batch arrives and another is held in its middle.
IN_ORDER = ("--concurrency", "1")
SOME_BYTES = 2_000_000
END_SECONDS = 60


@pytest.fixture(scope="module")
def filled_minio(minio: Minio) -> Minio:
    """The source of all tests of this file, with some hundred objects and one in parts. They leave it as it was."""
    source = minio.boto
    source.create_bucket(Bucket="many")
    source.put_bucket_versioning(Bucket="many", VersioningConfiguration={"Status": "Enabled"})
    with ThreadPoolExecutor(8) as pool:
        put = lambda number: minio.s3.put("many", f"{number % 50:02}/{number}", bytes([number % 256]) * SIZE).status
        assert set(pool.map(put, range(COUNT))) == {200}
    source.delete_object(Bucket="many", Key="00/0")
    upload = source.create_multipart_upload(Bucket="many", Key="parts")["UploadId"]
    parts = [
        {"PartNumber": number, "ETag": source.upload_part(Bucket="many", Key="parts", UploadId=upload, PartNumber=number, Body=bytes([number]) * (5 << 20))["ETag"]}
        for number in (1, 2)
    ]
    source.complete_multipart_upload(Bucket="many", Key="parts", UploadId=upload, MultipartUpload={"Parts": parts})
    return minio


@pytest.fixture
def own_importer(filled_minio: Minio, make_store: Callable[..., Cairn], tmp_path: Path) -> Importer:
    """The command into a store of the test's own."""
    if not filled_minio.answers():
        # A test that has failed left it so.
        filled_minio.kill()
        filled_minio.start()
    return Importer(filled_minio, make_store(SERVICE_S3_COMPATIBILITY="extended").start(), tmp_path / "journal")


@pytest.fixture
def gate(own_importer: Importer) -> Iterator[Gate]:
    """A proxy that holds the source's answers back."""
    with Gate(own_importer.source.port) as gate:
        own_importer.relay = gate.endpoint
        yield gate


def arrived(importer: Importer) -> int:
    """Returns how many current objects the target has."""
    answer = importer.target.admin.get("/buckets/many")
    return answer.json()["usage"]["objects"] if answer.status_code == 200 else 0


def assert_complete(importer: Importer) -> None:
    """A run to the end brings the rest, leaves no uploads, and everything is equal."""
    importer.objects()
    here = make_client(importer.target.s3)
    assert assert_equal(importer.source.boto, here, "many") == COUNT + 2
    assert here.list_multipart_uploads(Bucket="many").get("Uploads", []) == []
    assert importer.objects() == {"listed": COUNT + 2, "unchanged": COUNT + 2}
    assert importer.json("verify", "--read", "all")["differences"] == 0


def test_killed_importers_are_continued(own_importer: Importer, gate: Gate):
    """Twice, in the middle of objects."""
    # The second run may read again what had arrived just before the kill.
    for least, size in ((40, SOME_BYTES), (120, SOME_BYTES + SOME_BYTES // 2)):
        gate.hold_after(size)
        process = own_importer.begin("objects", *IN_ORDER)
        until(lambda: arrived(own_importer) >= least or process.poll() is not None, "nothing arrives")
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
    assert arrived(own_importer) < COUNT
    gate.open()
    assert_complete(own_importer)


def test_an_interrupted_importer_ends_soon_and_is_continued(own_importer: Importer, gate: Gate):
    """SIGINT ends it with 130."""
    gate.hold_after(SOME_BYTES)
    process = own_importer.begin("objects", *IN_ORDER)
    until(lambda: arrived(own_importer) >= 40, "nothing arrives")
    process.send_signal(signal.SIGINT)
    gate.open()
    _, errors = process.communicate(timeout=END_SECONDS)
    assert process.returncode == 130 and "continues" in errors, errors
    assert own_importer.objects()["created"] < COUNT + 2
    assert_complete(own_importer)


@pytest.mark.parametrize("lost", ["target", "source"])
def test_a_server_that_is_killed_and_comes_back_is_waited_for(own_importer: Importer, lost: str):
    """Nothing is lost, and the run that has begun goes on."""
    process = own_importer.begin("objects", *SLOWLY)
    until(lambda: arrived(own_importer) >= 40, "nothing arrives")
    server = getattr(own_importer, lost)
    server.kill()
    server.start()
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, (output, errors)
    assert_complete(own_importer)


def run_of(importer: Importer) -> dict:
    """Returns the latest run as the server shows it."""
    return expect(importer.target.admin.get("/imports"), 200)["imports"][0]


class Screen:
    """A terminal that shows what a command says on standard error."""

    def __init__(self, command: list[str], environment: dict[str, str]):
        self.text = ""
        self.ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 200))
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        self.reader = Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        """Reads until the command has ended."""
        # Linux reports the end of a terminal as an error.
        with contextlib.suppress(OSError):
            while read := os.read(self.ours, 1 << 16):
                self.text += read.decode(errors="replace")

    def end(self) -> int:
        """Waits for the end of the command, and returns its code."""
        code = self.process.wait(timeout=120)
        self.reader.join()
        os.close(self.ours)
        return code


def test_a_paused_importer_sends_nothing_until_it_is_resumed(own_importer: Importer, gate: Gate):
    """It finishes what it has begun, says in its progress that it waits, and then brings the rest."""
    gate.hold_after(SOME_BYTES)
    screen = Screen(own_importer.command("objects", "--bytes-per-second", "1MB", *IN_ORDER), own_importer.environment())
    until(lambda: arrived(own_importer) >= 40, "nothing arrives")
    cli = cli_of(own_importer.target)
    paused = cli.json("import", "pause", "many")
    assert paused["paused_at"] and paused["import_id"] == run_of(own_importer)["import_id"]
    again = cli.text("import", "pause", "many")
    assert again.startswith(f"The import into many from {gate.endpoint} is paused. Its latest request came 2"), again
    # It looks each second, and finishes what it has begun: then the figures stand still.
    until(lambda: "paused, " in screen.text, lambda: screen.text)
    gate.open()
    seen = [run_of(own_importer)]

    def stands_still() -> bool:
        seen.append(run_of(own_importer))
        return len(seen) > 100 and len({(run["versions"], run["bytes"], run["last_at"]) for run in seen[-100:]}) == 1

    until(stands_still, "it goes on sending")
    assert arrived(own_importer) < COUNT and screen.process.poll() is None
    assert cli.text("import", "resume", "many") == f"The import into many from {gate.endpoint} goes on.\n"
    assert screen.end() == 0, screen.text
    assert "paused" not in screen.text.rpartition("versions, ")[0].rpartition("versions, ")[2]
    assert_complete(own_importer)


def test_a_paused_importer_can_be_interrupted_and_outlives_a_restart(own_importer: Importer, gate: Gate, tmp_path: Path):
    """Ctrl-C ends the wait. After a restart of the server another run begins, which is paused, too."""
    for ends in ("interrupted", "restarted"):
        gate.hold_after(SOME_BYTES)
        said = tmp_path / ends
        with said.open("w") as errors:
            process = own_importer.begin("objects", *IN_ORDER, errors=errors)
        until(lambda before=arrived(own_importer): arrived(own_importer) > before, "nothing arrives")
        run = run_of(own_importer)
        expect(own_importer.target.admin.post(f"/imports/{run['import_id']}/pause"), 200)
        until(lambda said=said: "cairn: the import is paused\n" in said.read_text(), "it does not pause")
        gate.open()
        before = [run]

        def stands_still(before: list[dict] = before) -> bool:
            before.append(run_of(own_importer))
            return len(before) > 100 and before[-1]["last_at"] == before[-100]["last_at"]

        until(stands_still, "it goes on sending")
        if ends == "interrupted":
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=END_SECONDS)
            assert process.returncode == 130, said.read_text()
        else:
            own_importer.target.restart()
            until(lambda: expect(own_importer.target.admin.get("/imports"), 200)["imports"], "no run begins")
            again = run_of(own_importer)
            assert again["paused_at"] and again["import_id"] != run["import_id"] and again["versions"] == 0
            cli_of(own_importer.target).text("import", "resume", "many")
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0, (output, said.read_text())
        assert ("cairn: the import goes on\n" in said.read_text()) == (ends == "restarted")
    assert_complete(own_importer)


def test_the_paused_run_goes_on_whatever_has_begun_since(own_importer: Importer):
    """Two importers may bring versions into a bucket."""
    admin, cli = own_importer.target.admin, cli_of(own_importer.target)
    expect(admin.post("/buckets", {"name": "many"}), 201)
    begun = [expect(admin.post("/buckets/many/imports", {"source": "https://other"}), 201)["import_id"]]
    assert cli.json("import", "pause", "many")["import_id"] == begun[0]
    begun.append(expect(admin.post("/buckets/many/imports", {"source": "https://other", "paused": False}), 201)["import_id"])
    assert cli.json("import", "resume", "many")["import_id"] == begun[0]
    assert not [run for run in expect(admin.get("/imports"), 200)["imports"] if run["paused_at"]]


def test_there_is_nothing_to_pause(own_importer: Importer):
    """A bucket into which nothing was imported since the server was started."""
    for verb in ("pause", "resume"):
        assert "the server knows no import into many" in cli_of(own_importer.target).fails("import", verb, "many")


def test_a_source_that_stays_away_ends_the_run(own_importer: Importer):
    """With 3, and it can be continued."""
    process = own_importer.begin("objects", "--bytes-per-second", "200kB")
    until(lambda: arrived(own_importer) >= 10, "nothing arrives")
    own_importer.source.kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 3 and own_importer.source.endpoint in errors, errors
    own_importer.source.start()
    assert_complete(own_importer)


def test_following_brings_what_is_written_meanwhile(own_importer: Importer):
    """Until it is interrupted."""
    process = own_importer.begin("objects", "--follow", "--interval", "1s")
    until(lambda: arrived(own_importer) >= COUNT, "nothing arrives")
    source, here = own_importer.source.boto, make_client(own_importer.target.s3)
    later = source.put_object(Bucket="many", Key="later", Body=b"x")["VersionId"]
    try:
        until(lambda: any(one[0] == "later" for one in versions(here, "many")), "a later object did not come")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=END_SECONDS)
        assert process.returncode == 130, errors
        assert own_importer.objects()["unchanged"] == COUNT + 3
    finally:
        source.delete_object(Bucket="many", Key="later", VersionId=later)
