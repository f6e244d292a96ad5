"""Searches of a bucket: conditions, pages, hostile keys, a moment; what folders take up; the commands."""

import pytest

from harness.cli import WRONG_USAGE, Cli
from harness.management import Management, expect, expect_refusal
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

# Keys that mean something to patterns, paths, queries or terminals.
HOSTILE = ["../../etc/passwd", "a//b", "a/./b", "*", "?", "[a]", "\\", "%2F", "+ &=#", "\x01\x1b[31m", "ä/ö/ü", "😀", "tag.x=y", "null", "0" * 1024]


@pytest.fixture
def store(extended_store: Cairn) -> Cairn:
    """A server that takes tags."""
    return extended_store


def search(admin: Management, bucket: str, **conditions) -> list[str]:
    """Returns the keys that a complete search finds."""
    keys, token = [], None
    while True:
        query = conditions | ({"continuation_token": token} if token else {})
        page = expect(admin.get(f"/buckets/{bucket}/find", params=query), 200)
        keys += [entry["key"] for entry in page["objects"]]
        token = page["next_continuation_token"]
        assert page["complete"] == (token is None)
        if token is None:
            return keys


@pytest.fixture
def filled(admin: Management, s3: S3, bucket: str) -> str:
    """A bucket with objects of several kinds."""
    for key, size, content_type, tags in (
        ("docs/2025/report.txt", 10, "text/plain; charset=utf-8", "state=final"),
        ("docs/2026/report.txt", 2000, "text/plain", "state=draft&owner=a%20b"),
        ("docs/readme.md", 0, None, ""),
        ("pics/cat.jpg", 5000, "image/jpeg", "state=final&owner=a%20b"),
        ("pics/cat.png", 70_000, "image/png", ""),
        ("pics/dog/Cat.jpg", 3, "IMAGE/JPEG", ""),
    ):
        headers = [("content-type", content_type)] if content_type else []
        s3.put(bucket, key, b"x" * size, headers=headers + ([("x-amz-tagging", tags)] if tags else []))
    return bucket


def test_each_condition_selects(admin: Management, filled: str):
    """They are combined with "and"; the entries are those of the list of objects."""
    entries = expect(admin.get(f"/buckets/{filled}/objects"), 200)["objects"]
    page = expect(admin.get(f"/buckets/{filled}/find"), 200)
    assert page == {"objects": entries, "examined": 6, "complete": True, "next_continuation_token": None}
    for conditions, found in (
        ({"contains": "report"}, ["docs/2025/report.txt", "docs/2026/report.txt"]),
        ({"contains": "cat"}, ["pics/cat.jpg", "pics/cat.png"]),
        ({"contains": "cat", "prefix": "pics/cat.p"}, ["pics/cat.png"]),
        ({"glob": "*.jpg"}, []),
        ({"glob": "**.jpg"}, ["pics/cat.jpg", "pics/dog/Cat.jpg"]),
        ({"glob": "pics/*.jpg"}, ["pics/cat.jpg"]),
        ({"glob": "pics/*/?at.[h-k]pg"}, ["pics/dog/Cat.jpg"]),
        ({"glob": "docs/**/report.txt"}, ["docs/2025/report.txt", "docs/2026/report.txt"]),
        ({"glob": "docs/**", "prefix": "docs/2026"}, ["docs/2026/report.txt"]),
        ({"glob": "docs/**", "prefix": "pics/"}, []),
        ({"min_bytes": 2000}, ["docs/2026/report.txt", "pics/cat.jpg", "pics/cat.png"]),
        ({"min_bytes": 2000, "max_bytes": 5000}, ["docs/2026/report.txt", "pics/cat.jpg"]),
        ({"max_bytes": 0}, ["docs/readme.md"]),
        ({"content_type": "text/plain"}, ["docs/2025/report.txt", "docs/2026/report.txt"]),
        ({"content_type": "text/plain; charset=utf-8"}, ["docs/2025/report.txt"]),
        ({"content_type": "image/jpeg"}, ["pics/cat.jpg", "pics/dog/Cat.jpg"]),
        ({"content_type": "image/*"}, ["pics/cat.jpg", "pics/cat.png", "pics/dog/Cat.jpg"]),
        ({"content_type": "binary/octet-stream"}, ["docs/readme.md"]),
        ({"tag.state": "final"}, ["docs/2025/report.txt", "pics/cat.jpg"]),
        ({"tag.state": "final", "tag.owner": "a b"}, ["pics/cat.jpg"]),
        ({"tag.state": "final", "contains": ".txt"}, ["docs/2025/report.txt"]),
        ({"tag.other": ""}, []),
        ({"modified_since": entries[3]["last_modified"], "modified_until": "2999-01-01T00:00:00Z", "prefix": "pics/cat.j"}, ["pics/cat.jpg"]),
        ({"modified_until": entries[3]["last_modified"], "prefix": "pics/cat.j"}, []),
    ):
        assert search(admin, filled, **conditions) == found, conditions


def test_wrong_conditions_are_refused(admin: Management, filled: str):
    """Each is named, and nothing is searched."""
    for conditions, named in (
        ({"contains": "a", "glob": "b"}, "contains and glob"),
        ({"contains": ""}, "contains"),
        ({"glob": "[a"}, "glob"),
        ({"glob": "a\\"}, "glob"),
        ({"glob": "x" * 1025}, "glob"),
        ({"prefix": "x" * 1025}, "prefix"),
        ({"min_bytes": "1k"}, "min_bytes"),
        ({"min_bytes": 2, "max_bytes": 1}, "min_bytes"),
        ({"modified_since": "today"}, "modified_since"),
        ({"modified_since": "2026-01-02T00:00:00Z", "modified_until": "2026-01-01T00:00:00Z"}, "modified_until"),
        ({"content_type": "x" * 256}, "content_type"),
        ({"tag.": "x"}, "tag."),
        ({"tag.a\n": "x"}, "tag.a"),
        ({f"tag.{number}": "x" for number in range(11)}, "10 tags"),
        ({"limit": 1001}, "limit"),
        ({"continuation_token": "x"}, "continuation_token"),
        ({"delimiter": "/"}, "delimiter"),
    ):
        answer = admin.get(f"/buckets/{filled}/find", params=conditions)
        expect_refusal(answer, 400, "INVALID_REQUEST")
        assert named in answer.json()["error"]["message"], (conditions, answer.text)
    expect_refusal(admin.get(f"/buckets/{filled}/find", params={"at": "2026-01-01T00:00:00Z"}), 409, "INVALID_BUCKET_STATE")
    expect_refusal(admin.get("/buckets/no-such-bucket/find"), 404, "BUCKET_NOT_FOUND")


def test_pages_continue_where_they_ended(admin: Management, s3: S3, bucket: str):
    """With every limit, among keys that mean something elsewhere; the last page of a search that ends with its last object is complete."""
    for key in HOSTILE:
        s3.put(bucket, key, b"x")
    keys = sorted(HOSTILE, key=str.encode)
    for limit in (1, 4, len(keys), 1000):
        assert search(admin, bucket, limit=limit) == keys
    assert expect(admin.get(f"/buckets/{bucket}/find", params={"limit": len(keys)}), 200)["complete"]
    first = expect(admin.get(f"/buckets/{bucket}/find", params={"limit": 3}), 200)
    assert (len(first["objects"]), first["examined"], first["complete"]) == (3, 3, False)
    for key in HOSTILE:
        assert key in search(admin, bucket, contains=key)
        literal = "".join("\\" + character if character in "*?[\\" else character for character in key)
        if len(literal) <= 1024:
            assert search(admin, bucket, glob=literal) == [key]


def test_a_moment_is_searched(admin: Management, s3: S3, bucket: str):
    """With sizes and tags of that moment. Without it, deleted objects and older versions are not found."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    s3.put(bucket, "kept", b"x" * 10, headers=[("x-amz-tagging", "of=then")])
    s3.put(bucket, "deleted", b"x" * 10)
    time = expect(admin.put(f"/buckets/{bucket}/object/clock", data=b""), 201)["last_modified"]
    until(lambda: expect(admin.put(f"/buckets/{bucket}/object/clock", data=b""), 201)["last_modified"] > time, "the clock to go on")
    for number in range(70):
        s3.put(bucket, "kept", b"x" * 1000, headers=[("x-amz-tagging", f"of={number}")])
    s3.put(bucket, "new", b"x" * 10)
    s3.request("DELETE", object_target(bucket, "deleted"))
    assert search(admin, bucket, at=time) == ["clock", "deleted", "kept"]
    assert search(admin, bucket, at=time, max_bytes=10, min_bytes=1) == ["deleted", "kept"]
    assert search(admin, bucket, at=time, **{"tag.of": "then"}) == ["kept"]
    assert search(admin, bucket, at=time, limit=1) == ["clock", "deleted", "kept"]
    assert search(admin, bucket) == ["clock", "kept", "new"]
    assert search(admin, bucket, min_bytes=1000) == ["kept"]
    assert search(admin, bucket, **{"tag.of": "then"}) == []
    page = expect(admin.get(f"/buckets/{bucket}/find", params={"contains": "kept"}), 200)
    assert page["examined"] == 4, "keys are counted, and a deleted key is one"


def test_a_pattern_of_many_stars_blocks_nobody(admin: Management, s3: S3, bucket: str):
    """It would take exponential time if every split were tried."""
    for number in range(50):
        s3.put(bucket, "a" * 1000 + f"{number:02}", b"")
    for pattern in ("a*" * 511 + "b", "**b" * 341, "[a-z]*" * 150 + "?/", "**/*" * 256):
        assert search(admin, bucket, glob=pattern) == []
    assert len(search(admin, bucket, glob="*a" * 400 + "*")) == 50


def usage(admin: Management, bucket: str, **query) -> tuple[dict[str, tuple[int, int]], int, int, bool]:
    """Returns objects and bytes of each folder and of the whole prefix, and whether these are all."""
    body = expect(admin.get(f"/buckets/{bucket}/folder-usage", params=query), 200)
    folders = {folder["prefix"]: (folder["objects"], folder["bytes"]) for folder in body["folders"]}
    assert list(folders) == sorted(folders, key=str.encode)
    return folders, body["objects"], body["bytes"], body["complete"]


def test_folders_are_counted(admin: Management, s3: S3, filled: str):
    """One level below the prefix; objects beside the folders are in the total, deleted objects and older versions are not."""
    assert usage(admin, filled) == ({"docs/": (3, 2010), "pics/": (3, 75_003)}, 6, 77_013, True)
    assert usage(admin, filled, prefix="docs/") == ({"docs/2025/": (1, 10), "docs/2026/": (1, 2000)}, 3, 2010, True)
    assert usage(admin, filled, prefix="pics/c") == ({}, 2, 75_000, True)
    assert usage(admin, filled, prefix="pi") == ({"pics/": (3, 75_003)}, 3, 75_003, True)
    assert usage(admin, filled, prefix="no such") == ({}, 0, 0, True)
    expect(admin.put(f"/buckets/{filled}/versioning", {"versioning": "Enabled"}), 200)
    s3.put(filled, "pics/cat.png", b"x")
    s3.request("DELETE", object_target(filled, "docs/2025/report.txt"))
    assert usage(admin, filled) == ({"docs/": (2, 2000), "pics/": (3, 5004)}, 5, 7004, True)
    assert usage(admin, filled, prefix="docs/") == ({"docs/2026/": (1, 2000)}, 2, 2000, True)
    expect_refusal(admin.get(f"/buckets/{filled}/folder-usage", params={"prefix": "x" * 1025}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get(f"/buckets/{filled}/folder-usage", params={"at": "2026-01-01T00:00:00Z"}), 400, "INVALID_REQUEST")
    expect_refusal(admin.get("/buckets/no-such-bucket/folder-usage"), 404, "BUCKET_NOT_FOUND")


def test_the_largest_folders_are_shown(admin: Management, s3: S3, bucket: str):
    """If there are more than a thousand. Totals are of all."""
    for number in range(1003):
        s3.put(bucket, f"{number:04}/x", b"x" * (number % 2 + 1))
    folders, objects, size, complete = usage(admin, bucket)
    assert (len(folders), objects, size, complete) == (1000, 1003, 1003 + 501, False)
    assert sum(size for _, size in folders.values()) == 1003 + 501 - 3, "the three that are missing are among the smallest"


def test_the_commands(extended_store: Cairn, filled: str):
    """find with a pattern or a prefix, and du; as a table and as JSON."""
    cli = Cli(extended_store.management, extended_store.secrets.system_token)
    found = cli.json("object", "find", f"{filled}/**.jpg", "--min-bytes", "4KB")
    assert ([entry["key"] for entry in found["objects"]], found["truncated"]) == (["pics/cat.jpg"], False)
    shown = cli.text("object", "find", f"{filled}/docs/", "--contains", "report", "--tag", "owner=a b", "--modified-since", "1d")
    assert [line.split()[-1] for line in shown.splitlines()] == ["KEY", "docs/2026/report.txt"]
    one = cli.json("object", "find", filled, "--limit", "1", "--content-type", "image/*")
    assert (len(one["objects"]), one["truncated"]) == (1, True)
    shown = cli.text("object", "du", filled).split()
    assert shown[:3] + shown[-5:] == ["OBJECTS", "SIZE", "FOLDER", "KiB", "(77013", "bytes)", "in", "all"]
    assert cli.json("object", "du", f"{filled}/docs/")["objects"] == 3
    assert "prefix" in cli.fails("object", "du", f"{filled}/*", code=WRONG_USAGE)
    assert "give either" in cli.fails("object", "find", f"{filled}/*", "--contains", "a", code=WRONG_USAGE)
