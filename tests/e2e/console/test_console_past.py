"""The past in the console, in a real Chromium: deleted folders come back, an earlier moment is shown and restored."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

FOLDER = ("projects/apollo/plan.txt", "projects/apollo/drawings/a.txt", "projects/apollo/drawings/b & #1?.txt")


def moment() -> str:
    """Returns the time of this moment. Everything before is older, everything after newer, also in milliseconds."""
    found = datetime.now(UTC)
    until(lambda: datetime.now(UTC) - found > timedelta(milliseconds=2), "the next moment")
    return (found + timedelta(milliseconds=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def projects(console_store: Cairn, versioned: str) -> str:
    """A bucket with versions and a folder in it."""
    for key in (*FOLDER, "projects/atlas.txt", "readme.txt"):
        console_store.s3.put(versioned, key, f"content of {key}".encode(), headers=[("Content-Type", "text/plain")])
    return versioned


def keys(store: Cairn, bucket: str) -> set[str]:
    """Returns the keys of all current objects."""
    return set(store.s3.list_all(bucket))


def test_deleted_folder_comes_back(page: Page, console_store: Cairn, projects: str):
    """A folder is selected and deleted; the tab shows one act, with its objects, and restores some or all of them."""
    before = keys(console_store, projects)
    page.go("bucket", projects, prefix="projects/")
    page.check("Select projects/apollo/")
    page.see("1 folder with all in it")
    page.click("Delete")
    page.see("3 objects deleted.")
    page.gone("apollo/")
    assert keys(console_store, projects) == before - set(FOLDER)
    page.click("Deleted")
    page.settled()
    page.see("projects/apollo/")
    page.see("3 objects")
    page.click("Objects of projects/apollo/")
    page.check(f"Select {FOLDER[2]}")
    page.see("1 selected")
    page.click("Restore 1 object")
    page.see("1 object is back.")
    until(lambda: keys(console_store, projects) == before - set(FOLDER[:2]), "one object is back")
    page.wait("async () => !document.querySelector('main').innerText.includes('#1?')", what="the list without it")
    page.settled()
    page.click("Restore projects/apollo/")
    page.see("2 objects are back.")
    page.see("Nothing was deleted.")
    assert keys(console_store, projects) == before
    assert console_store.s3.get(projects, FOLDER[2]).body == f"content of {FOLDER[2]}".encode()


def test_deletion_of_a_folder_is_undone(page: Page, console_store: Cairn, projects: str):
    """From the menu of the right mouse button, and back with Undo."""
    before = keys(console_store, projects)
    page.go("bucket", projects)
    row = page.element("a", "projects/")
    page.run("""async (link) => {
        const {x, y} = link.getBoundingClientRect();
        link.dispatchEvent(new MouseEvent("contextmenu", {bubbles: true, cancelable: true, clientX: x + 5, clientY: y + 5}));
    }""", page.reference(row))
    page.click("Delete folder")
    page.see("4 objects deleted.")
    assert keys(console_store, projects) == {"readme.txt"}
    page.click("Undo")
    page.see("4 objects are back.")
    assert keys(console_store, projects) == before


def test_folder_without_versions_is_deleted_after_a_question(page: Page, console_store: Cairn, bucket: str):
    """The number of objects is in the question, and Escape changes nothing."""
    for key in ("tmp/a", "tmp/b/c", "kept"):
        console_store.s3.put(bucket, key, b"12345")
    page.go("bucket", bucket)
    page.click("Actions for tmp/")
    page.click("Delete folder")
    page.see("In tmp/: 10 B.")
    page.see("cannot be undone")
    page.press("Escape")
    page.wait("async () => !document.querySelector('dialog')")
    assert keys(console_store, bucket) == {"tmp/a", "tmp/b/c", "kept"}
    page.click("Actions for tmp/")
    page.click("Delete folder")
    page.click("Delete 2 objects")
    page.see("2 objects deleted.")
    assert keys(console_store, bucket) == {"kept"}
    page.click("Deleted")
    page.see("This bucket keeps no versions")
    page.click("Keep old versions")
    page.click("Keep old versions")
    page.see("Nothing was deleted.")
    assert expect(console_store.admin.get(f"/buckets/{bucket}"), 200)["versioning"] == "Enabled"


def test_folder_is_shown_as_it_was(page: Page, console_store: Cairn, projects: str):
    """What was deleted or changed since is said; nothing can be changed there, and the moment is in the URL."""
    then = moment()
    console_store.s3.put(projects, "projects/atlas.txt", b"later")
    console_store.s3.put(projects, "projects/new.txt", b"new")
    for key in FOLDER:
        console_store.s3.delete(projects, key)
    page.go("bucket", projects, prefix="projects/")
    page.element("a", "new.txt")
    page.click("As of: now")
    page.element("button", "Yesterday at this time")
    page.press("Escape")
    page.go("bucket", projects, prefix="projects/", at=then)
    page.see("Read-only.")
    text = page.run("async () => document.querySelector('main table').innerText")
    assert "apollo/" in text and "Deleted since" in text and "Changed since" in text and "new.txt" not in text
    assert not page.has("Upload files") and not page.has("New folder")
    assert not page.run("async () => Boolean(document.querySelector('main input[type=checkbox]'))")
    page.click("apollo/")
    page.settled()
    page.element("a", "plan.txt")
    page.see("Read-only.")
    page.click("plan.txt")
    page.settled()
    page.see(f"content of {FOLDER[0]}")
    page.see("Read-only.")
    page.go("bucket", projects, prefix="projects/", at=then)
    page.click("Back to now")
    page.settled()
    page.element("a", "new.txt")


def test_state_is_restored_and_undone_with_the_keyboard(page: Page, console_store: Cairn, projects: str):
    """The preview counts before anything changes. Newer objects go only when that is asked for. Undo leads to what was there before."""
    then = moment()
    s3 = console_store.s3
    s3.put(projects, "projects/atlas.txt", b"later")
    s3.put(projects, "projects/new.txt", b"new")
    for key in FOLDER:
        s3.delete(projects, key)
    after = keys(console_store, projects)
    page.go("bucket", projects, prefix="projects/", at=then)
    page.tab_to("Restore this state")
    page.press("Enter")
    page.see("objects come back or get their old content")
    assert keys(console_store, projects) == after, "a preview changes nothing"
    text = page.run("async () => document.querySelector('.restore').innerText")
    assert [line for line in text.splitlines() if line.strip().isdigit()] == ["4", "1", "0"], text
    page.tab_to("Restore 4 objects")
    page.press("Enter")
    page.see("4 objects restored.")
    assert keys(console_store, projects) == {*FOLDER, "projects/atlas.txt", "projects/new.txt", "readme.txt"}
    assert s3.get(projects, "projects/atlas.txt").body == b"content of projects/atlas.txt"
    page.tab_to("Undo", 120)
    page.press("Enter")
    page.see("Undone: ")
    until(lambda: keys(console_store, projects) == after, "the state before")
    assert s3.get(projects, "projects/atlas.txt").body == b"later"
    page.go("bucket", projects, prefix="projects/", at=then)
    page.tab_to("Restore this state")
    page.press("Enter")
    page.see("newer objects stay")
    page.tab_to("Also delete 1 newer object")
    page.press(" ")
    page.tab_to("Restore 4 objects, delete 1")
    page.press("Enter")
    page.see("4 objects restored, 1 newer object deleted.")
    assert keys(console_store, projects) == {*FOLDER, "projects/atlas.txt", "readme.txt"}


def test_list_is_sorted_and_columns_are_chosen(page: Page, console_store: Cairn, bucket: str):
    """Order and direction are in the URL; the choice of columns outlives a reload."""
    for name, body in (("a", b"22"), ("b", b"1"), ("c", b"333")):
        console_store.s3.put(bucket, name, body)
    page.go("bucket", bucket)

    def names() -> list[str]:
        return page.run("async () => [...document.querySelectorAll('main tbody .name a')].map((link) => link.textContent)")

    page.click("Size")
    page.wait("async () => location.hash.includes('sort=size')")
    page.settled()
    assert names() == ["b", "a", "c"]
    page.click("Size")
    page.wait("async () => location.hash.includes('order=desc')")
    page.settled()
    assert names() == ["c", "a", "b"]
    assert page.run("async () => document.querySelector('th[aria-sort]').ariaSort") == "descending"
    page.click("Columns")
    page.check("Modified")
    page.click("Show")
    page.wait("async () => !document.querySelector('dialog')")
    page.settled()
    page.load(f"#/bucket/{bucket}")
    page.settled()
    assert "Modified" not in page.run("async () => document.querySelector('main thead').innerText")
    page.run("async () => { localStorage.removeItem('cairn-hidden-columns'); }")


def test_life_of_an_object(page: Page, console_store: Cairn, versioned: str):
    """Everything that happened to it, the latest first, with who did it."""
    for text in (b"first", b"second"):
        console_store.s3.put(versioned, "plan.txt", text, headers=[("Content-Type", "text/plain")])
    console_store.s3.delete(versioned, "plan.txt")
    expect(console_store.admin.post(f"/buckets/{versioned}/undelete", {"keys": ["plan.txt"]}), 200)
    expect(console_store.admin.post(f"/buckets/{versioned}/object-shares/plan.txt", {}), 201)
    page.go("object", versioned, "plan.txt")
    page.see("Life of this object")
    kinds = page.run("async () => [...document.querySelectorAll('.life li b')].map((one) => one.textContent)")
    assert kinds == ["Shared", "Restored", "Deleted", "Version 2", "Version 1"], kinds
    text = page.run("async () => document.querySelector('.life').innerText")
    assert "system" in text and "root" in text and "6 B" in text
    assert page.violations() == []


def test_moment_is_chosen_on_a_chart_of_changes(page: Page, console_store: Cairn, versioned: str):
    """Large deletions are named, and lead to the moment before them. The slider goes with the keyboard, too."""
    for number in range(12):
        console_store.s3.put(versioned, f"old/{number}", b"x")
    (last,) = [event for event in expect(console_store.admin.get(f"/events?bucket={versioned}&prefix=old/11"), 200)["events"]]
    for number in range(12):
        console_store.s3.delete(versioned, f"old/{number}")
    page.go("bucket", versioned, prefix="old/", at=last["time"])
    page.see("root deleted 12 objects")
    assert page.run("async () => document.querySelectorAll('.track rect').length") >= 1
    assert page.violations() == []
    page.run("async () => [...document.querySelectorAll('.named button')].find((one) => one.textContent.includes('deleted 12')).click()")
    page.settled()
    page.element("a", "11")
    page.wait("async () => document.querySelectorAll('.tag.bad').length === 12", what="all are deleted since")
    before = page.run("async () => location.hash")
    page.run("""async () => {
        const slider = document.querySelector(".track input");
        slider.value = String(Number(slider.value) - 3600000);
        slider.dispatchEvent(new Event("input"));
        slider.dispatchEvent(new Event("change"));
    }""")
    page.wait("async (before) => location.hash !== before", before)
    page.settled()
    page.see("There was nothing here at that moment.")
