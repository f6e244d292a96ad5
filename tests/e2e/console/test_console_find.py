"""Whole buckets and folders in the console, in a real Chromium: search, sizes, archives, moves with a way back."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.page import Page
from harness.server import Cairn
from harness.wait import until

PNG = [("Content-Type", "image/png")]


@pytest.fixture
def photos(console_store: Cairn, bucket: str) -> str:
    """A bucket with folders."""
    for key, size in (("2025/harbour wall.png", 5000), ("2026/summer/harbour-1.png", 2_000_000), ("2026/summer/alps.png", 10)):
        console_store.s3.put(bucket, key, bytes(size), headers=PNG)
    console_store.s3.put(bucket, "2026/harbour.txt", b"text", headers=[("Content-Type", "text/plain")])
    return bucket


def names(page: Page) -> list[str]:
    """Returns the names in the list."""
    return page.run("async () => [...document.querySelectorAll('main tbody .name a')].map((link) => link.textContent)")


def keys(store: Cairn, bucket: str) -> set[str]:
    """Returns the keys of all objects."""
    return set(store.s3.list_all(bucket))


def choose_filter(page: Page, **fields: str) -> None:
    """Fills the dialog of filters."""
    page.click("Filter")
    page.wait("async () => document.querySelector('dialog')")
    for label, value in fields.items():
        label = label.replace("_", " ")
        (page.choose if label == "Type" else page.fill)(label, value)
    page.click("Show")
    page.wait("async () => !document.querySelector('dialog')")
    page.settled()


def measured(page: Page, folder: str, text: str) -> None:
    """Waits until the row of a folder has its size. The size of the whole bucket may be the same, and is always shown."""
    page.wait("""async (folder, text) => document.querySelector(`main [data-folder="${folder}"]`)
        ?.innerText.replace(/\\s+/g, " ").includes(text)""", folder, text, what="the size of a folder")


def test_whole_bucket_is_searched(page: Page, console_store: Cairn, photos: str):
    """With a text, a pattern, and filters that are in the URL; each can be taken off again."""
    page.go("bucket", photos, prefix="2026/")
    page.fill(f"Search all of {photos}", "harbour")
    page.press("Enter")
    page.see("3 found among 4 keys")
    assert names(page) == ["harbour wall.png", "harbour.txt", "harbour-1.png"]
    assert page.run("async () => document.querySelectorAll('main mark').length") == 3
    assert page.violations() == []
    choose_filter(page, Type="image/*")
    assert names(page) == ["harbour wall.png", "harbour-1.png"]
    choose_filter(page, At_least_this_large="1")
    page.see("No object is like this.")
    where = page.run("async () => location.hash")
    assert "type=image" in where and "min=1000000000" in where and "q=harbour" in where
    page.click("Remove at least 1.0 GB")
    page.settled()
    page.click("Remove Images")
    page.settled()
    choose_filter(page, Type="text/*")
    assert names(page) == ["harbour.txt"]
    page.load(page.run("async () => location.hash"))
    page.settled()
    assert names(page) == ["harbour.txt"], "the URL says it all"
    choose_filter(page, Tag="project=regatta")
    page.see("No object is like this.")
    page.go("bucket", photos, q="*.png")
    assert len(names(page)) == 3
    page.check("Select all shown")
    page.click("Delete")
    page.click("Delete 3 objects")
    page.see("3 objects deleted.")
    assert keys(console_store, photos) == {"2026/harbour.txt"}


def test_folders_are_measured(page: Page, photos: str):
    """All of one level at once, when somebody asks."""
    page.go("bucket", photos)
    page.click("Show size of 2025/")
    measured(page, "2026/", "2.0 MB 3 objects")
    assert not page.has("Show size of 2026/")


# Requests count one key each, as if there were millions; `answer(path, options)` may do something else.
SMALL_PAGES = """async () => {
    const real = window.fetch;
    window.asked = [];
    window.answer = undefined;
    window.fetch = (path, options) => {
        const small = String(path).replace("max_keys=1000000", "max_keys=1");
        if (small.includes("/folder-usage")) window.asked.push(small);
        return window.answer?.(small, options) ?? real(small, options);
    };
}"""


@pytest.fixture
def requests(page: Page) -> Iterator[None]:
    """Puts the page's way to the server back after the test."""
    page.run("async () => { window.realFetch = window.fetch; }")
    yield
    page.run("async () => { window.fetch = window.realFetch; }")


@pytest.mark.usefixtures("requests")
def test_a_large_folder_is_measured_page_by_page(page: Page, photos: str):
    """What continues in the next page is added up."""
    page.go("bucket", photos)
    page.run(SMALL_PAGES)
    page.click("Show size of 2026/")
    measured(page, "2026/", "2.0 MB 3 objects")
    measured(page, "2025/", "5.0 kB 1 object")
    assert page.run("async () => window.asked.length") == 4, "a page for each key"
    page.gone("Cancel")


@pytest.mark.usefixtures("requests")
def test_measuring_is_cancelled(page: Page, photos: str):
    """Cancel ends the request. What was counted whole stays, and the rest can be asked for again."""
    page.go("bucket", photos)
    page.run(SMALL_PAGES)
    page.run("""async () => {
        window.answer = (path, {signal}) => window.asked.length < 3 ? undefined
            : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }""")
    page.click("Show size of 2026/")
    page.wait("async () => window.asked.length === 3")
    page.see("2 objects")
    page.see("Cancel")
    page.see("5.0 kB")
    page.click("Cancel")
    page.gone("Cancel")
    assert page.has("Show size of 2026/") and not page.has("Show size of 2025/")
    page.run("async () => { window.answer = undefined; }")
    page.click("Show size of 2026/")
    measured(page, "2026/", "2.0 MB 3 objects")


@pytest.mark.usefixtures("requests")
def test_a_folder_that_is_left_out_is_counted_alone(page: Page, photos: str):
    """The answer for a level has the largest folders only."""
    page.go("bucket", photos)
    page.run("""async () => {
        const real = window.fetch;
        window.fetch = async (path, options) => {
            const response = await real(path, options);
            if (!String(path).includes("/folder-usage")) return response;
            const body = await response.json();
            const folders = body.folders.filter((folder) => folder.prefix !== "2025/");
            return new Response(JSON.stringify({...body, folders, folders_left_out: 1, complete: false}));
        };
    }""")
    page.click("Show size of 2025/")
    measured(page, "2025/", "5.0 kB 1 object")
    measured(page, "2026/", "2.0 MB 3 objects")


def test_folder_and_objects_are_saved_as_archives(page: Page, photos: str, run_folder: Path):
    """The archive holds what the folder holds."""
    folder = run_folder / "test_console_find/downloads"
    page.go("bucket", photos)
    page.click("Actions for 2026/")
    page.click("Download as ZIP")
    until(lambda: any(folder.glob("*.zip")), "the archive")
    (saved,) = folder.glob("*.zip")
    until(lambda: zipfile.is_zipfile(saved), "all of it")
    assert set(zipfile.ZipFile(saved).namelist()) == {"summer/harbour-1.png", "summer/alps.png", "harbour.txt"}
    saved.unlink()
    page.go("bucket", photos, prefix="2026/summer/")
    page.check("Select all shown")
    page.click("ZIP")
    until(lambda: (folder / f"{photos}.zip").exists() and zipfile.is_zipfile(folder / f"{photos}.zip"), "the archive of two objects")
    assert len(zipfile.ZipFile(folder / f"{photos}.zip").namelist()) == 2


def test_folder_is_renamed_and_moved_back(page: Page, console_store: Cairn, photos: str):
    """Each object keeps its name below the folder; Undo moves all of them back."""
    before = keys(console_store, photos)
    page.go("bucket", photos, prefix="2026/")
    page.click("Actions for 2026/summer/")
    page.click("Move or rename")
    page.fill("New name, with its folders", "2026/summer/inside")
    page.click("Move")
    page.see("A folder cannot be moved into itself.")
    page.fill("New name, with its folders", "archive/holidays")
    page.click("Move")
    page.see("Moved 2 objects to")
    assert keys(console_store, photos) == {"2025/harbour wall.png", "2026/harbour.txt", "archive/holidays/harbour-1.png", "archive/holidays/alps.png"}
    page.click("Undo")
    page.see("2 objects are back.")
    assert keys(console_store, photos) == before


@pytest.mark.parametrize("choice, kept", [("both", b"old"), ("replace", b"new"), ("leave", b"old")])
def test_moves_ask_once_for_names_that_exist(page: Page, console_store: Cairn, bucket: str, choice: str, kept: bytes):
    """Two objects go into a folder where one name is taken. The others are moved in any case."""
    s3 = console_store.s3
    for key, body in (("a.txt", b"new"), ("b.txt", b"other"), ("to/a.txt", b"old")):
        s3.put(bucket, key, body)
    page.go("bucket", bucket)
    page.check("Select a.txt")
    page.check("Select b.txt")
    page.click("Move")
    page.fill("Folder", "to")
    page.run("async () => document.querySelector('dialog button[type=submit]').click()")
    page.see("1 name exists already")
    page.choose("What happens to them", choice)
    page.click("Continue")
    page.see("Moved ")
    assert s3.get(bucket, "to/b.txt").body == b"other" and s3.get(bucket, "to/a.txt").body == kept
    left = {"both": {"to/a.txt", "to/b.txt", "to/a (2).txt"}, "replace": {"to/a.txt", "to/b.txt"}, "leave": {"a.txt", "to/a.txt", "to/b.txt"}}[choice]
    assert keys(console_store, bucket) == left
    page.refusals_are_expected()
