"""Folders in the console: dropped, chosen, interrupted and continued; and the QR codes of links.

The folders have more than a hundred entries, because browsers read a hundred at a time.
"""

import itertools
import re
from pathlib import Path

import pytest
import qrcode
import zxingcpp
from qrcode.util import MODE_8BIT_BYTE, QRData

from harness.held import hold_uploads
from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

PHOTOS = 240
PHOTO_BYTES = 2000
# Of an upload that is interrupted, the files that have arrived.
ARRIVED = 60
QUIET = 4
_numbers = itertools.count()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of photos, with folders in it."""
    root = tmp_path / "holiday"
    for number in range(PHOTOS):
        file = root / ("" if number < 120 else f"day {number % 2}/evening") / f"IMG_{number:04}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(number.to_bytes(2, "big") * (PHOTO_BYTES // 2))
    return root


def keys_below(folder: Path, prefix: str = "") -> set[str]:
    """The keys of all files of a folder that was dropped."""
    return {f"{prefix}{file.relative_to(folder.parent)}" for file in folder.rglob("*.jpg")}


def drop(page: Page, *paths: Path) -> None:
    """Drags files or folders over the list and drops them, as a file manager does."""
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.cdp("Input.dispatchDragEvent", type=kind, x=600, y=400, data=data)


def noted(page: Page, table: str, condition: str, *values: object, what: str) -> None:
    """Waits until what the browser keeps of uploads meets a condition, a function of the rows of a table and of values."""
    page.wait(f"""async (...values) => {{
        const ended = (request) => new Promise((resolve, reject) => Object.assign(request, {{onsuccess: () => resolve(request.result), onerror: reject}}));
        const database = await ended(indexedDB.open("cairn-uploads"));
        const rows = await ended(database.transaction("{table}").objectStore("{table}").getAll());
        database.close();
        return ({condition})(rows, ...values);
    }}""", *values, what=what)


def halfway(page: Page, done: int) -> None:
    """Waits until the files that are not held have arrived, and until that is noted, which is a moment later."""
    page.wait("""async (left) => document.querySelector(".sheet")?.textContent.includes(`Uploading ${left} files`)""", PHOTOS - done, what="an upload that is halfway")
    noted(page, "done", "(rows, done) => rows.length === done", done, what="notes of what has arrived")


def nothing_is_left(page: Page, bucket: str) -> None:
    """Waits until the browser has forgotten the folder, which is a moment after the end is shown."""
    noted(page, "batches", "(rows, bucket) => !rows.some((batch) => batch.bucket === bucket)", bucket, what="an upload that is forgotten")


def arrives_unnoticed(store: Cairn, bucket: str, folder: Path) -> None:
    """Stores one of the files that are held, as if its answer had been lost with the page."""
    key = max(keys_below(folder) - set(store.s3.list_all(bucket)))
    assert store.s3.put(bucket, key, (folder.parent / key).read_bytes()).status == 200


def uploaded(page: Page) -> int:
    """Returns how many objects were sent since the last call."""
    return sum("/object/" in url for url in page.requests())


def test_dropped_folder_is_uploaded_with_its_folders(page: Page, console_store: Cairn, bucket: str, folder: Path, tmp_path: Path):
    """Files and folders in one drop. Keys have the names of the folders, types come from the names."""
    single = tmp_path / "note.txt"
    single.write_text("a note")
    page.go("bucket", bucket, prefix="albums/")
    page.cdp("Input.dispatchDragEvent", type="dragEnter", x=600, y=400, data={"items": [], "files": [str(single)], "dragOperationsMask": 1})
    page.cdp("Input.dispatchDragEvent", type="dragOver", x=600, y=400, data={"items": [], "files": [str(single)], "dragOperationsMask": 1})
    assert page.run("async () => getComputedStyle(document.querySelector('.view'), '::after').content") == f'"Drop to upload to {bucket}/albums/"'
    drop(page, folder, single)
    page.see(f"{PHOTOS + 1} files uploaded", seconds=120)
    assert set(console_store.s3.list_all(bucket)) == keys_below(folder, "albums/") | {"albums/note.txt"}
    stored = console_store.s3.get(bucket, "albums/holiday/day 1/evening/IMG_0201.jpg")
    assert stored.body == (201).to_bytes(2, "big") * (PHOTO_BYTES // 2) and stored.get("content-type") == "image/jpeg"
    page.element("a", "holiday/")
    page.click("Close")


def test_folder_is_continued_after_the_page_was_closed(page: Page, console_store: Cairn, bucket: str, folder: Path):
    """One click for the whole folder, and only what is missing is sent. The sheet has few rows, however many files wait."""
    page.go("bucket", bucket)
    hold_uploads(page, after=ARRIVED)
    page.upload("Folder to upload", folder)
    halfway(page, ARRIVED)
    assert page.run("async () => document.querySelectorAll('.sheet li').length") <= 5
    assert page.violations() == [], "the sheet is accessible"
    page.load(f"#/bucket/{bucket}")
    page.settled()
    page.see("1 upload was interrupted.")
    left = int(re.search(rf"(\d+) of {PHOTOS} files are missing", page.text()).group(1))
    assert left == PHOTOS - ARRIVED, "files that arrived are known"
    assert page.violations() == [], "what was interrupted is accessible"
    arrives_unnoticed(console_store, bucket, folder)
    uploaded(page)
    page.upload("Choose holiday again", folder)
    page.see(f"{PHOTOS - left} files were already uploaded.")
    page.see(f"{left} files uploaded", seconds=120)
    assert uploaded(page) == left, "only what is missing is sent"
    assert set(console_store.s3.list_all(bucket)) == keys_below(folder)
    page.gone("interrupted")
    nothing_is_left(page, bucket)
    page.load(f"#/bucket/{bucket}")
    page.settled()
    assert "interrupted" not in page.text()
    # Files that had arrived when the page was closed are found to be there already.
    page.refusals_are_expected()


def test_dropping_an_interrupted_folder_again_continues_it(page: Page, console_store: Cairn, bucket: str, folder: Path):
    """Without the button; a file that was changed since is sent again. Another folder is an upload of its own."""
    page.go("bucket", bucket)
    hold_uploads(page, after=ARRIVED)
    drop(page, folder)
    halfway(page, ARRIVED)
    page.load(f"#/bucket/{bucket}")
    page.settled()
    page.see("1 upload was interrupted.")
    arrives_unnoticed(console_store, bucket, folder)
    (folder / "IMG_0000.jpg").write_bytes(b"edited")
    drop(page, folder)
    page.see("files were already uploaded.")
    page.wait("async () => / files uploaded/.test(document.querySelector('.sheet')?.innerText)", seconds=120)
    assert set(console_store.s3.list_all(bucket)) == keys_below(folder)
    assert console_store.s3.get(bucket, "holiday/IMG_0000.jpg").body == b"edited"
    page.click("Close")
    # Files that had arrived when the page was closed are found to be there already.
    page.refusals_are_expected()


def test_all_uploads_are_cancelled_at_once(page: Page, console_store: Cairn, bucket: str, folder: Path):
    """Nothing is left to continue; what has arrived stays."""
    page.go("bucket", bucket)
    hold_uploads(page, after=10)
    page.upload("Folder to upload", folder)
    halfway(page, 10)
    page.click("Cancel all")
    page.click("Close")
    nothing_is_left(page, bucket)
    page.load(f"#/bucket/{bucket}")
    page.settled()
    assert "interrupted" not in page.text()
    assert len(console_store.s3.list_all(bucket)) == 10


def test_failed_uploads_are_tried_again_together(page: Page, console_store: Cairn, bucket: str, folder: Path):
    """A quota refuses them; without it, all succeed. The sheet says how many failed."""
    names = ["IMG_0000.jpg", "IMG_0001.jpg", "IMG_0002.jpg"]

    def limit(size: dict) -> None:
        expect(console_store.admin.put(f"/buckets/{bucket}/quota", {"quota": {"bytes": size, "objects": {"mode": "unlimited"}}}), 200)

    limit({"mode": "limit", "bytes": 1})
    page.go("bucket", bucket)
    page.upload("Files to upload", *(folder / name for name in names))
    page.see("3 uploads failed")
    limit({"mode": "unlimited"})
    page.click("Try all again")
    page.see("3 files uploaded")
    assert set(console_store.s3.list_all(bucket)) == set(names)
    page.click("Close")
    page.refusals_are_expected()


def image_of(rows: list[list[int]]) -> memoryview:
    """A picture of a code, with its quiet zone, as the reader takes it."""
    width = (len(rows) + 2 * QUIET) * 4
    lines = []
    for row in [[0] * len(rows)] * QUIET + rows + [[0] * len(rows)] * QUIET:
        line = bytes(0 if dark else 255 for dark in [0] * QUIET + row + [0] * QUIET for _ in range(4))
        lines += [line] * 4
    return memoryview(b"".join(lines)).cast("B", (width, width))


def test_qr_codes_equal_those_of_another_encoder(page: Page):
    """Every module, for lengths at the edges of versions and every mask; another program reads the chosen ones."""
    texts = [*("k" * length for length in (1, 14, 15, 106, 107, 180, 181, 213, 666, 667, 2331)), "https://storage.example/s/Grüße"]
    own = page.run("""async (texts) => {
        const {modules} = await import(document.querySelector("script[type=module]").src.replace("main.js", "lib/qr.js"));
        const drawn = (text, mask) => modules(text, mask).map((row) => [...row]);
        return {chosen: texts.map((text) => drawn(text)), masked: texts.slice(0, 6).map((text) => Array.from({length: 8}, (_, mask) => drawn(text, mask))), long: modules("k".repeat(2332))};
    }""", texts)
    assert own["long"] is None
    for text, masks in zip(texts, own["masked"], strict=False):
        for mask, rows in enumerate(masks):
            other = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_M, border=0, mask_pattern=mask)
            other.add_data(QRData(text.encode(), mode=MODE_8BIT_BYTE))
            assert [[int(dark) for dark in row] for row in other.get_matrix()] == rows, (len(text), mask)
    for text, rows in zip(texts, own["chosen"], strict=True):
        (found,) = zxingcpp.read_barcodes(image_of(rows))
        assert (found.text, found.ec_level) == (text, "M"), text[:40]


def test_link_has_a_qr_code_that_opens_it(page: Page, console_store: Cairn, bucket: str):
    """In the dialog of a new link, and when a link is copied."""
    console_store.s3.put(bucket, "shown.txt", b"x")
    page.go("bucket", bucket)
    page.check("Select shown.txt")
    page.click("Share")
    page.click("Create link")
    page.see("The link is ready")
    first = read_code(page)
    assert page.violations() == [], "the dialog is accessible"
    assert first == page.run("async () => document.querySelector('dialog input').value")
    page.click("Done")
    until(lambda: "shared" in page.text(), "the mark of the row")
    page.go("sharing")
    page.click("Copy link")
    page.see("Scan to open")
    assert read_code(page) == first
    page.click("Done")


def read_code(page: Page) -> str:
    """Reads the code of the open dialog from its drawing."""
    size, path = page.run("async () => { const drawn = document.querySelector('dialog .qr svg'); return [drawn.viewBox.baseVal.width, drawn.querySelector('path').getAttribute('d')]; }")
    rows = [[0] * (size - 2 * QUIET) for _ in range(size - 2 * QUIET)]
    for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path):
        rows[int(y) - QUIET][int(x) - QUIET:int(x) - QUIET + int(length)] = [1] * int(length)
    (found,) = zxingcpp.read_barcodes(image_of(rows))
    return found.text
