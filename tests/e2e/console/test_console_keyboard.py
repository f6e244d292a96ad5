"""Whole tasks in the console with the keyboard alone: bucket, upload, share, restore, lifecycle rule, webhook."""

from contextlib import closing
from pathlib import Path

from harness.management import expect
from harness.page import Page
from harness.receiver import Receiver
from harness.server import Cairn

BUCKET = "by-keyboard"


def press_on(page: Page, name: str) -> None:
    """Goes to a control with Tab and presses Enter."""
    page.tab_to(name, 120)
    page.press("Enter")


def field(page: Page, label: str, text: str) -> None:
    """Goes to a field with Tab and types."""
    page.tab_to(label)
    page.press(text)


def test_bucket_upload_share_and_restore(page: Page, console_store: Cairn, tmp_path: Path):
    """The focus is always where the user goes on: in the dialog, then at the title of the view."""
    page.go("buckets")
    press_on(page, "Create bucket")
    page.wait("async () => document.activeElement.name !== undefined && document.activeElement.closest('dialog')", what="the dialog")
    page.press(BUCKET)
    page.tab_to("Keep old versions of objects")
    page.press("Space", "Enter")
    page.see("No objects yet.")
    page.settled()
    # The dialog of the operating system cannot be typed into here; that it was asked for can be seen.
    page.run("async () => { document.querySelector('input[type=file]').addEventListener('click', (event) => { event.preventDefault(); window.asked = true; }); }")
    press_on(page, "Upload files")
    assert page.run("async () => window.asked === true")
    file = tmp_path / "letter.txt"
    for text in ("first", "second"):
        file.write_text(text)
        page.upload("Files to upload", file)
        if text == "second":
            page.see("1 name exists already")
            page.press("Down")
            press_on(page, "Upload 1 file")
        page.wait("async (size) => document.querySelector('td.end')?.textContent === size", f"{len(text)} B", what=text)
    assert console_store.s3.get(BUCKET, "letter.txt").body == b"second"
    press_on(page, "letter.txt")
    page.see("Life of this object")
    page.settled()
    press_on(page, "Share")
    field(page, "Password", "open sesame")
    press_on(page, "Create link")
    page.see("The link is ready")
    press_on(page, "Done")
    page.see("password")
    shares = expect(console_store.admin.get(f"/buckets/{BUCKET}/object-shares/letter.txt"), 200)["shares"]
    assert [share["password_protected"] for share in shares] == [True]
    press_on(page, "Restore")
    page.see("The version is current again.")
    assert console_store.s3.get(BUCKET, "letter.txt").body == b"first"


def test_lifecycle_rule_is_previewed_and_saved(page: Page, console_store: Cairn):
    """The result of the preview is announced, and Enter in a field saves."""
    console_store.s3.create_bucket("rules-by-keyboard")
    page.go("lifecycle", "rules-by-keyboard")
    press_on(page, "Create rule")
    page.press("tmp/")
    field(page, "Remove objects after (days)", "30")
    press_on(page, "Preview")
    page.see("Now it would remove 0 objects")
    press_on(page, "Create rule")
    page.see("objects after 30 days")
    assert [rule["expiration"] for rule in expect(console_store.admin.get("/buckets/rules-by-keyboard/lifecycle"), 200)["rules"]] == [30]


def test_webhook_is_created_and_tested(page: Page, console_store: Cairn):
    """The dialogs follow each other, and the focus comes back."""
    with closing(Receiver()) as receiver:
        page.go("webhooks")
        press_on(page, "Create webhook")
        page.press(receiver.url, "Enter")
        page.see("It is shown only now.")
        page.press("Enter")
        page.see(receiver.url)
        page.settled()
        press_on(page, "Test")
        page.see("The test event was delivered (HTTP 204).")
        press_on(page, "Done")
        page.wait("async () => !document.querySelector('dialog')")
        assert page.focused() == "Test"
