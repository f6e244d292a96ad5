"""The sizes of folders, counted page by page: sums, tokens, changes between pages, hostile keys, the command."""

import random
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from harness.cli import Cli
from harness.management import Management, expect, expect_refusal
from harness.newer_server import newer_server
from harness.s3 import S3, object_target
from harness.server import Cairn
from harness.wait import until

FOLDERS_MAX = 1000
# Folders that mean something to paths, pages, queries or terminals.
HOSTILE = [
    "/", "//", "../", "./", "*/", "%2F/", "+ &=#/", "\\/", "<img src=x onerror=alert(1)>/", "\u202egpj.exe/", "\x01\x1b[31m/", "ä/", "😀/",
    "\U0010ffff/", "null/", "a/", "a//", "a0/", "a.", "x" * 1023 + "/", "y" * 1022 + "/",
]


@pytest.fixture
def store(extended_store: Cairn) -> Cairn:
    """The server of these tests."""
    return extended_store


def page_of(admin: Management, bucket: str, **query) -> dict:
    """Returns one answer."""
    found = expect(admin.get(f"/buckets/{bucket}/folder-usage", params=query), 200)
    prefixes = [folder["prefix"] for folder in found["folders"]]
    assert prefixes == sorted(set(prefixes), key=str.encode)
    assert found["complete"] == (found["next_continuation_token"] is None and found["folders_left_out"] == 0)
    return found


def sum_of_pages(admin: Management, bucket: str, max_keys: Callable[[], int], between: Callable[[dict], None] = lambda _: None, **query) -> dict:
    """Adds up all pages. Each has at most so many keys; `between` is called after each."""
    total = {"folders": {}, "folders_left_out": 0, "objects": 0, "bytes": 0, "pages": 0}
    token = {}
    while True:
        limit = max_keys()
        page = page_of(admin, bucket, max_keys=limit, **query, **token)
        assert page["objects"] <= limit
        for folder in page["folders"]:
            objects, size = total["folders"].get(folder["prefix"], (0, 0))
            total["folders"][folder["prefix"]] = (objects + folder["objects"], size + folder["bytes"])
        for name in ("folders_left_out", "objects", "bytes"):
            total[name] += page[name]
        total["pages"] += 1
        between(page)
        if page["next_continuation_token"] is None:
            return total
        assert token != (token := {"continuation_token": page["next_continuation_token"]}), "it goes further"


def listed(s3: S3, bucket: str, sizes: dict[str, int], prefix: str = "") -> tuple[dict[str, tuple[int, int]], int, int]:
    """Returns folders, objects and bytes as a list of the objects has them."""
    folders, keys = {}, [key for key in s3.list_all(bucket) if key.startswith(prefix)]
    for key in keys:
        folder, slash, _ = key[len(prefix):].partition("/")
        if slash:
            objects, size = folders.get(prefix + folder + "/", (0, 0))
            folders[prefix + folder + "/"] = (objects + 1, size + sizes[key])
    return folders, len(keys), sum(sizes[key] for key in keys)


def test_the_sum_is_that_of_a_list(admin: Management, s3: S3, bucket: str):
    """With pages of any size, of the bucket and of prefixes, also with hostile keys; deleted keys take their place in pages."""
    rng = random.Random(7)
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    sizes = {}
    for folder in HOSTILE:
        for name in ("", "b", "c/d", "c/e", "\U0010ffff"):
            if len((folder + name).encode()) <= 1024:
                sizes[folder + name] = rng.randrange(1000)
                assert s3.put(bucket, folder + name, b"x" * sizes[folder + name]).status == 200
    for key in rng.sample(sorted(sizes), 20):
        assert s3.request("DELETE", object_target(bucket, key)).status == 204
    for prefix in ("", "a", "a/", "a//", "/", "😀/", "x" * 1023 + "/", "no such"):
        expected = listed(s3, bucket, sizes, prefix)
        whole = page_of(admin, bucket, prefix=prefix)
        assert ({one["prefix"]: (one["objects"], one["bytes"]) for one in whole["folders"]}, whole["objects"], whole["bytes"]) == expected
        for max_keys in (lambda: 1, lambda: 2, lambda: 7, lambda: rng.randrange(1, 40), lambda: 10_000_000):
            total = sum_of_pages(admin, bucket, max_keys, prefix=prefix)
            assert (total["folders"], total["objects"], total["bytes"]) == expected, prefix
    assert sum_of_pages(admin, bucket, lambda: 1)["pages"] >= len(sizes), "a deleted key counts in a page"


def test_a_folder_at_the_end_of_a_page_is_never_left_out(admin: Management, s3: S3, bucket: str):
    """However small its part is there. Of more than a thousand others, the smallest are left out, and counted."""
    for number in range(FOLDERS_MAX + 5):
        s3.put(bucket, f"{number:04}/x", b"xx")
    # Both ends of the first page have less than the folders in between.
    s3.put(bucket, "2/a", b"x")
    s3.put(bucket, "2/b", b"x" * 5000)
    s3.put(bucket, "3/a", b"")
    first = page_of(admin, bucket, max_keys=FOLDERS_MAX + 6)
    assert (first["objects"], first["folders_left_out"], len(first["folders"])) == (FOLDERS_MAX + 6, 5, FOLDERS_MAX + 1)
    assert first["folders"][-1] == {"prefix": "2/", "objects": 1, "bytes": 1}
    second = page_of(admin, bucket, max_keys=100, continuation_token=first["next_continuation_token"])
    assert second["folders"] == [{"prefix": "2/", "objects": 1, "bytes": 5000}, {"prefix": "3/", "objects": 1, "bytes": 0}]
    assert second["complete"]
    rng = random.Random(3)
    for _ in range(5):
        total = sum_of_pages(admin, bucket, lambda: rng.randrange(100, 1100))
        assert total["folders"]["2/"] == (2, 5001)
        assert len(total["folders"]) + total["folders_left_out"] == FOLDERS_MAX + 7
        assert (total["objects"], total["bytes"]) == (FOLDERS_MAX + 8, 2 * (FOLDERS_MAX + 5) + 5001)


def test_changes_between_pages(admin: Management, s3: S3, bucket: str):
    """Each key is counted once at most: one behind the position is not counted again, one before it is counted as it is then."""
    for number in range(20):
        s3.put(bucket, f"{number % 4}/{number:02}", b"x" * 10)
    pages = []

    def change(page: dict) -> None:
        pages.append(page)
        if len(pages) == 1:
            # Folder 0 is counted, and the position is in it.
            s3.put(bucket, "0/00", b"x" * 1000)
            s3.put(bucket, "0/17", b"x")
            s3.request("DELETE", object_target(bucket, "0/16"))
            for number in range(1, 20, 4):
                s3.request("DELETE", object_target(bucket, f"1/{number:02}"))
            s3.put(bucket, "2/02", b"x" * 500)
            s3.put(bucket, "new/a", b"x" * 7)

    total = sum_of_pages(admin, bucket, lambda: 5, change)
    assert total["folders"] == {"0/": (6, 51), "2/": (5, 540), "3/": (5, 50), "new/": (1, 7)}
    # The bucket has become smaller than its first page, also without the key of the position.
    first = page_of(admin, bucket, max_keys=3)
    for key in s3.list_all(bucket):
        s3.request("DELETE", object_target(bucket, key))
    last = page_of(admin, bucket, continuation_token=first["next_continuation_token"])
    assert (last["objects"], last["bytes"], last["folders"], last["complete"]) == (0, 0, [], True)


def test_wrong_tokens_are_refused(admin: Management, s3: S3, bucket: str):
    """Each with what is wrong."""
    for key in ("a/1", "a/2", "b/1", "b/2"):
        s3.put(bucket, key, b"x")
    route = f"/buckets/{bucket}/folder-usage"
    token = page_of(admin, bucket, prefix="a/", max_keys=1)["next_continuation_token"]
    for bad in ("x", token[:-1], token + "A", "A" * 5000, "😀", "../../etc", token.swapcase()):
        refusal = expect_refusal(admin.get(route, params={"prefix": "a/", "continuation_token": bad}), 400, "INVALID_REQUEST")
        assert "continuation_token" in refusal, bad
    for prefix in ("b/", "a/1/", "c"):
        refusal = expect_refusal(admin.get(route, params={"prefix": prefix, "continuation_token": token}), 400, "INVALID_REQUEST")
        assert "another prefix" in refusal
    for wrong in ("0", "10000001", "-1", "1e3", "", "x"):
        refusal = expect_refusal(admin.get(route, params={"max_keys": wrong}), 400, "INVALID_REQUEST")
        assert "max_keys" in refusal, wrong
    expect_refusal(admin.get("/buckets/no-such-bucket/folder-usage", params={"continuation_token": token}), 404, "BUCKET_NOT_FOUND")


def test_a_token_of_another_bucket_is_a_position(admin: Management, s3: S3, bucket: str):
    """As that of a list is: it says after which key the count goes on, and nothing about what the other bucket has."""
    other = f"{bucket}-other"
    s3.create_bucket(other)
    for key in ("a/1", "m/secret", "z/1"):
        s3.put(other, key, b"x")
    for key in ("a/1", "n/1", "z/1"):
        s3.put(bucket, key, b"xx")
    token = page_of(admin, other, max_keys=2)["next_continuation_token"]
    found = page_of(admin, bucket, continuation_token=token)
    assert found["folders"] == [{"prefix": "n/", "objects": 1, "bytes": 2}, {"prefix": "z/", "objects": 1, "bytes": 2}]


def test_the_command_adds_up_all_pages(extended_store: Cairn, s3: S3, bucket: str):
    """Its result is that of one answer. A later server that sends small pages stands in for a bucket of millions of keys."""
    for number in range(30):
        s3.put(bucket, f"{number % 3}/{number:02}", b"x" * number)
    s3.put(bucket, "beside", b"x")
    asked = []

    def small(path: str) -> str:
        if "/folder-usage" in path:
            asked.append(path)
        return path.replace("max_keys=1000000", "max_keys=4")

    whole = page_of(extended_store.admin, bucket)
    with newer_server(extended_store, small) as later:
        cli = Cli(later, extended_store.secrets.system_token)
        assert cli.json("object", "du", bucket) == whole
        assert len(asked) == 8, asked
        assert cli.json("object", "du", f"{bucket}/1/")["bytes"] == sum(range(1, 30, 3))
        assert cli.text("object", "du", bucket).splitlines()[-1].startswith("31 objects, 436 ")


def test_an_abandoned_count_ends(extended_store: Cairn, s3: S3, bucket: str):
    """Clients that go away leave nothing that runs: the next count has its turn."""
    for number in range(50):
        s3.put(bucket, f"{number}/x", b"x")
    address = urlsplit(extended_store.management)
    for _ in range(30):
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(
                f"GET /api/v1/buckets/{bucket}/folder-usage HTTP/1.1\r\nhost: x\r\n"
                f"authorization: Bearer {extended_store.secrets.system_token}\r\n\r\n".encode()
            )
    until(lambda: page_of(extended_store.admin, bucket)["objects"] == 50, "the count")
