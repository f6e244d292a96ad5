"""`cairn object` against a real server: lists, transfers, copies and deletions, with patterns of keys."""

import hashlib
import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import DONE, FAILED, NO_ANSWER, WRONG_USAGE, Cli
from harness.gate import Gate
from harness.server import BINARY, Cairn, clean_environment
from harness.wait import until

SECONDS = 60
KEYS = ["a.jpg", "a.png", "2026/b.jpg", "2026/11/c.jpg", "ä %+?.txt", "[x].txt"]


@pytest.fixture
def full(store: Cairn, bucket: str) -> str:
    """A bucket with an object under each of the keys, whose content is the key."""
    for key in KEYS:
        assert store.s3.put(bucket, key, key.encode()).status == 200
    return bucket


def keys(cli: Cli, place: str, *options: str) -> list[str]:
    """Returns the keys of a list."""
    return [entry["key"] for entry in cli.json("object", "ls", place, *options)["objects"]]


def test_lists_with_folders_prefixes_and_patterns(cli: Cli, store: Cairn, full: str):
    """Folders are entries of their own. A pattern selects keys across levels only with two stars."""
    top = cli.json("object", "ls", full)
    assert top["common_prefixes"] == ["2026/"] and not top["truncated"]
    assert sorted(entry["key"] for entry in top["objects"]) == sorted(key for key in KEYS if "/" not in key)
    assert sorted(keys(cli, full, "--recursive")) == sorted(KEYS)
    assert keys(cli, f"{full}/2026/") == ["2026/b.jpg"]
    assert keys(cli, f"{full}/*.jpg") == ["a.jpg"]
    assert keys(cli, f"{full}/**.jpg") == ["2026/11/c.jpg", "2026/b.jpg", "a.jpg"]
    assert keys(cli, f"{full}/a.[jq]*") == ["a.jpg"]
    assert keys(cli, rf"{full}/\[x\].*") == ["[x].txt"]
    lines = cli.text("object", "ls", f"{full}/2026/").splitlines()
    assert lines[0].split() == ["MODIFIED", "SIZE", "KEY"]
    assert [line.split()[-1] for line in lines[1:]] == ["2026/11/", "2026/b.jpg"]
    done = cli.run("object", "ls", full, "--recursive", "--limit", "2")
    assert len(done.stdout.splitlines()) == 3 and "--limit" in done.stderr
    assert "BUCKET_NOT_FOUND" in cli.fails("object", "ls", f"{full}-no")
    for wrong in ("", "/a", f"{full}/[a"):
        cli.fails("object", "ls", wrong, code=WRONG_USAGE)


def test_uploads_and_downloads_are_exact(cli: Cli, store: Cairn, full: str, tmp_path: Path):
    """Content of every storage form, also with a name that needs encoding, a content type, and standard output."""
    rng = random.Random(7)
    for size in (0, 1, 70_000, 9 << 20):
        body, file, back = rng.randbytes(size), tmp_path / "ü b.html", tmp_path / "back"
        file.write_bytes(body)
        record = cli.json("object", "put", str(file), f"{full}/up/")
        assert (record["key"], record["size"], record["content_type"]) == ("up/ü b.html", size, "text/html")
        assert store.s3.get(full, "up/ü b.html").body == body
        assert cli.json("object", "get", f"{full}/up/ü b.html", str(back))["bytes"] == size
        assert back.read_bytes() == body
    raw = subprocess.run(
        [BINARY, "object", "get", f"{full}/up/ü b.html", "-", "--endpoint", cli.endpoint],
        env=clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": cli.token}, capture_output=True, timeout=60,
    )
    assert (raw.returncode, raw.stderr) == (DONE, b"")
    assert hashlib.sha256(raw.stdout).digest() == hashlib.sha256(body).digest()
    assert "PRECONDITION_FAILED" in cli.fails("object", "put", str(file), f"{full}/up/", "--if-absent")
    assert "OBJECT_NOT_FOUND" in cli.fails("object", "get", f"{full}/none", str(tmp_path / "none"))
    assert "could not be read" in cli.fails("object", "put", str(tmp_path / "none"), full)
    assert "could not be written" in cli.fails("object", "get", f"{full}/a.jpg", str(tmp_path / "no" / "file"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "ü b.html"], "nothing incomplete is left"


def test_content_of_unknown_length_is_uploaded(cli: Cli, store: Cairn, bucket: str, tmp_path: Path):
    """Standard input, a pipe or a file in /proc was stored as an empty object, because the size is said to be 0."""
    cli.text("object", "put", "-", f"{bucket}/dash", stdin="one")
    assert "version id:   null\n" in cli.text("object", "stat", f"{bucket}/dash")
    cli.text("object", "put", "/dev/stdin", f"{bucket}/stdin", stdin="two")
    assert cli.json("object", "put", "/proc/version", f"{bucket}/")["key"] == "version"
    assert cli.text("object", "put", "/dev/null", f"{bucket}/null") == f"{bucket}/null has 0 bytes\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", 'echo three > "$0"', pipe]):
        cli.text("object", "put", str(pipe), f"{bucket}/pipe")
    found = {key: store.s3.get(bucket, key).body for key in ("dash", "stdin", "version", "null", "pipe")}
    assert found == {
        "dash": b"one", "stdin": b"two", "version": Path("/proc/version").read_bytes(), "null": b"", "pipe": b"three\n",
    }
    assert "no name" in cli.fails("object", "put", "-", f"{bucket}/", code=WRONG_USAGE)


def test_what_cannot_be_uploaded_does_not_stop_the_others(cli: Cli, store: Cairn, bucket: str, tmp_path: Path):
    """A pipe in a folder hung the command for ever; a dangling link or a name that is not UTF-8 ended it. What was in a folder
    with a link to itself was uploaded forty times."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("a", "z"):
        (tree / name).write_text(name)
    os.mkfifo(tree / "fifo")
    (tree / "link").symlink_to("nowhere")
    (tree / os.fsdecode(b"\xff")).write_text("x")
    (tree / "inner").mkdir()
    (tree / "inner" / "up").symlink_to("..")
    (tree / "outside").symlink_to(tmp_path / "other")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "b").write_text("b")
    done = cli.run("object", "put", "--recursive", str(tree), bucket, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (FAILED, {"uploaded": 3, "bytes": 3, "refused": 4})
    assert "tree/fifo: it is not a regular file" in done.stderr and "tree/link: " in done.stderr
    assert "not UTF-8" in done.stderr and "4 files were not uploaded" in done.stderr
    assert "tree/inner/up: it is a link to a folder that it is in" in done.stderr
    assert sorted(store.s3.list_all(bucket)) == ["a", "outside/b", "z"]


def begun(gate: Gate, store: Cairn, *arguments: str) -> subprocess.Popen:
    """Begins a command, and returns it when its download waits in the middle."""
    gate.hold_after(1 << 20)
    environment = Cli(gate.endpoint, store.secrets.system_token).environment()
    command = [BINARY, *arguments, "--endpoint", gate.endpoint]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(gate.is_holding, "the download goes on")
    return process


def test_a_download_that_ends_early_leaves_nothing(make_store: Callable[..., Cairn], tmp_path: Path):
    """A server that goes away is code 3, and is not taken for a fault of the file. A killed command left a file of any size."""
    store = make_store().start()
    store.s3.create_bucket("bucket")
    store.s3.put("bucket", "d/k", random.Random(3).randbytes(4 << 20))
    target = str(tmp_path / "file")
    commands = [("object", "get", "bucket/d/k", target), ("object", "archive", "bucket/d/", target), ("object", "get", "bucket/d/k", "-")]
    # A gate for each: what the one before still passes on would count.
    for end in (signal.SIGKILL, signal.SIGTERM):
        for command in commands[:2]:
            with Gate(store.api_port) as gate:
                process = begun(gate, store, *command)
                process.send_signal(end)
                process.communicate(timeout=SECONDS)
            assert process.returncode == -end
            assert not list(tmp_path.iterdir()), (command, end)
    for command in commands:
        with Gate(store.api_port) as gate:
            process = begun(gate, store, *command)
            store.kill()
            gate.open()
            _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == NO_ANSWER and "the server sent only a part: " in told, (command, told)
        assert not list(tmp_path.iterdir()), command
        store.start()


def test_a_reader_that_closes_the_pipe_is_no_failure(cli: Cli, store: Cairn, bucket: str):
    """Of an object, and of an archive."""
    store.s3.put(bucket, "d/k", random.Random(4).randbytes(2 << 20))
    for command in (("get", f"{bucket}/d/k", "-"), ("archive", f"{bucket}/d/", "-")):
        process = subprocess.Popen(
            [BINARY, "object", *command, "--endpoint", cli.endpoint], env=cli.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        assert len(process.stdout.read(10)) == 10
        process.stdout.close()
        assert (process.stderr.read(), process.wait(SECONDS)) == (b"", DONE), command


def test_folders_are_transferred_with_their_paths(cli: Cli, store: Cairn, full: str, tmp_path: Path):
    """Several files go below a prefix, and come back below a folder. A key that leads out of the folder is refused."""
    tree = tmp_path / "tree"
    names = [f"{folder}/{number}.bin" for folder in ("x", "x/y", "z") for number in range(7)]
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(name.encode() * 100)
    assert "--recursive" in cli.fails("object", "put", str(tree), full, code=WRONG_USAGE)
    done = cli.json("object", "put", "--recursive", str(tree), f"{full}/in/")
    assert done == {"uploaded": len(names), "bytes": sum(len(name) * 100 for name in names), "refused": 0}
    back = tmp_path / "back"
    done = cli.json("object", "get", "--recursive", f"{full}/in/", str(back))
    assert done["downloaded"] == len(names) and done["refused"] == 0
    assert all((back / name).read_bytes() == name.encode() * 100 for name in names)
    cli.json("object", "get", f"{full}/in/x/*.bin", str(tmp_path / "some"))
    assert sorted(path.name for path in (tmp_path / "some").rglob("*.bin")) == [f"{number}.bin" for number in range(7)]
    store.s3.put(full, "in/../../evil", b"x")
    done = cli.run("object", "get", "--recursive", f"{full}/in/", str(tmp_path / "third" / "deep"), "--json")
    assert (done.returncode, json.loads(done.stdout)["refused"]) == (FAILED, 1) and "evil" in done.stderr
    assert not list(tmp_path.rglob("evil"))


def test_objects_are_copied_and_deleted(cli: Cli, store: Cairn, full: str):
    """One object or those of a pattern. Deleting several needs a confirmation that states the number."""
    cli.text("object", "cp", f"{full}/ä %+\\?.txt", f"{full}/copy/")
    assert store.s3.get(full, "copy/ä %+?.txt").body == "ä %+?.txt".encode()
    done = cli.json("object", "cp", f"{full}/**.jpg", f"{full}/jpg/")
    assert done == {"copied": 3, "refused": 0}
    assert keys(cli, f"{full}/jpg/**") == ["jpg/2026/11/c.jpg", "jpg/2026/b.jpg", "jpg/a.jpg"]
    assert "ends in a slash" in cli.fails("object", "cp", f"{full}/*.jpg", f"{full}/x", code=WRONG_USAGE)
    store.s3.put(full, "jpg/a.jpg", b"kept")
    assert "OBJECT_ALREADY_EXISTS" in cli.fails("object", "cp", f"{full}/a.jpg", f"{full}/jpg/", "--if-absent")
    done = cli.run("object", "cp", f"{full}/**.jpg", f"{full}/jpg/", "--if-absent", "--json")
    assert done.returncode == FAILED and store.s3.get(full, "jpg/a.jpg").body == b"kept"

    assert cli.text("object", "rm", f"{full}/a.png") == f"{full}/a.png was deleted\n"
    assert "OBJECT_NOT_FOUND" in cli.fails("object", "rm", f"{full}/a.png")
    message = cli.fails("object", "rm", f"{full}/jpg/**")
    # The copies of the first copy, and copies of these.
    assert "deletes 6 objects" in message and "permanently" in message and "--yes" in message
    assert len(keys(cli, f"{full}/jpg/**")) == 6, "nothing was deleted"
    assert cli.json("object", "rm", f"{full}/jpg/**", "--yes") == {"deleted": 6, "refused": 0}
    assert keys(cli, f"{full}/jpg/**") == []
    assert "--recursive" in cli.fails("object", "rm", full, "--yes", code=WRONG_USAGE)
    assert cli.fails("object", "stat", full, code=WRONG_USAGE) == f"cairn: {full} is a bucket; write <bucket>/<key>\n"
    assert len(keys(cli, full, "--recursive")) == len(KEYS), "the copy is left, a.png is gone"


def test_versions_are_listed_shown_and_deleted(cli: Cli, store: Cairn, bucket: str, tmp_path: Path):
    """A deletion adds a marker, and every version can be read and deleted by its id."""
    cli.text("bucket", "versioning", bucket, "enabled")
    for body in (b"one", b"two!"):
        store.s3.put(bucket, "key", body)
    cli.text("object", "rm", f"{bucket}/key")
    assert "OBJECT_NOT_FOUND" in cli.fails("object", "stat", f"{bucket}/key")
    listed = cli.json("object", "ls", bucket, "--versions")["versions"]
    assert [(one["is_delete_marker"], one["size"]) for one in listed] == [(True, 0), (False, 4), (False, 3)]
    lines = cli.text("object", "ls", bucket, "--versions").splitlines()
    assert "delete marker" in lines[1] and "older" in lines[2]
    oldest = listed[2]["version_id"]
    shown = cli.text("object", "stat", f"{bucket}/key", "--version-id", oldest)
    assert f"version id:   {oldest}\n" in shown and "size:         3 B\n" in shown
    cli.text("object", "get", f"{bucket}/key", str(tmp_path / "old"), "--version-id", oldest)
    assert (tmp_path / "old").read_bytes() == b"one"
    cli.text("object", "rm", f"{bucket}/key", "--version-id", listed[0]["version_id"])
    assert store.s3.get(bucket, "key").body == b"two!"
    assert cli.json("object", "stat", f"{bucket}/key")["size"] == 4
