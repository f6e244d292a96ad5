"""The views Import and Backups: commands from a form, runs as they go on, signed reports, holds."""

import pytest

from harness.console import create_token
from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

SOURCE = "https://minio.old.example:9000"
HOSTILE = "<img src=x onerror=alert(1)>"


def commands(page: Page) -> list[str]:
    """Returns the commands that the view shows."""
    return page.run("async () => [...document.querySelectorAll('.commands code')].map((one) => one.textContent)")


def version(store: Cairn, bucket: str, run: str, key: str, content: bytes, **query: str) -> int:
    """Imports a version in one piece, and returns the status of the answer."""
    parameters = {"import_id": run, "version_id": "null", "last_modified": "2021-03-04T05:06:07Z"} | query
    return store.admin.request("PUT", f"/buckets/{bucket}/imported-objects/{key}", params=parameters, data=content).status_code


def test_form_makes_the_commands(page: Page):
    """Of all steps, quoted for a shell. They are in the URL, and no credential is asked for."""
    page.go("import")
    assert page.run("async () => document.querySelectorAll('input[type=password]').length") == 0
    page.fill("Address of the source", SOURCE)
    page.fill("Buckets", "photos it's")
    page.fill("Bytes per second", "50")
    page.choose("Unit", "1000000")
    page.check("It is MinIO, and accounts and settings come along, too")
    page.click("Continue to the plan")
    page.settled()
    page.see("never sees the source")
    given = f"--from {SOURCE} --bucket photos --bucket 'it'\\''s'"
    assert f"cairn import plan {given} --iam iam.zip --settings buckets.zip" in commands(page)
    page.click("Continue: Copy")
    page.see("No import has begun yet.")
    assert f"cairn import objects {given} --bytes-per-second 50000000" in commands(page)
    page.click("Continue: Report")
    page.see("No comparison has been signed yet.")
    assert f"cairn import verify {given} --read all --report report.html" in commands(page)
    page.load(page.run("async () => location.hash"))
    page.settled()
    assert page.has("Back") and f"cairn import verify {given} --read all --report report.html" in commands(page)
    assert page.violations() == []


def test_runs_go_on_while_they_are_watched(page: Page, console_store: Cairn, bucket: str):
    """Versions and bytes follow by themselves, and so does what was refused. A key of the source is text."""
    run = expect(console_store.admin.post(f"/buckets/{bucket}/imports", {"source": SOURCE}), 201)["import_id"]
    assert version(console_store, bucket, run, "a", b"x" * 1000) == 201
    page.go("import", step="copy", **{"from": SOURCE})
    page.see("1.0 kB")
    page.see("Copying")
    assert version(console_store, bucket, run, "b", b"x" * 4000) == 201
    page.see("5.0 kB")
    assert version(console_store, bucket, run, f"k/{HOSTILE}", b"x", etag="0" * 32) == 400
    page.see(f"{bucket}: 1 request was refused")
    page.see(HOSTILE)
    assert not page.run("async () => Boolean(document.querySelector('main img'))")
    page.see("The server does not know how much there is at the source")
    assert page.violations() == []


def test_table_of_runs_needs_no_scrollbar(page: Page, console_store: Cairn, bucket: str):
    """With an average, which a run has after a second, on the usual widths of screens."""
    run = expect(console_store.admin.post(f"/buckets/{bucket}/imports", {"source": SOURCE}), 201)["import_id"]
    page.go("import", step="copy", **{"from": SOURCE})
    average = "async () => document.querySelector('main td div[title=\"On average\"]')?.textContent"

    def has_average() -> bool:
        version(console_store, bucket, run, "a", b"x" * 90_000)
        return bool(page.run(average))

    until(has_average, "a rate")
    for width in (1440, 1280, 1024, 390):
        page.resize(width, 900)
        wide = page.run("async () => [...document.querySelectorAll('main .table')].filter((one) => one.scrollWidth > one.clientWidth).length")
        assert wide == 0, f"{width} pixels"
    page.resize()


def test_a_run_is_paused_and_resumed(page: Page, console_store: Cairn, bucket: str):
    """By a button in its row, which keeps the focus. The chart has the bytes that came in the last minutes."""
    run = expect(console_store.admin.post(f"/buckets/{bucket}/imports", {"source": SOURCE}), 201)["import_id"]
    assert version(console_store, bucket, run, "a", b"x" * 90_000) == 201
    state = lambda: expect(console_store.admin.get(f"/imports/{run}"), 200)["paused_at"]
    page.go("import", step="copy", **{"from": SOURCE})
    chart = "async () => document.querySelector('.chart svg[role=img]')?.getAttribute('aria-label')"
    assert page.wait(chart).startswith("Rate: copied ")
    row = f"[...document.querySelectorAll('main tr')].find((row) => row.querySelector('[data-run=\"{run}\"]'))"
    press = f"async () => {{ const button = document.querySelector('[data-run=\"{run}\"]'); button.focus(); button.click(); return true; }}"
    assert page.wait(f"async () => {row}?.innerText").count("Copying") == 1
    page.run(press)
    page.wait(f"async () => {row}?.innerText.includes('Paused')")
    assert state() is not None
    # The view is drawn again and again.
    page.run("async () => { document.querySelector('.chart svg[role=img]').dataset.old = ''; }")
    page.wait(f"async () => document.querySelector('.chart svg[role=img]:not([data-old])') && document.activeElement?.dataset.run === '{run}'")
    page.run(press)
    page.wait(f"async () => {row}?.innerText.includes('Paused') === false")
    assert state() is None
    page.wait("async () => /H/.test(document.querySelector('.chart svg[role=img] .line')?.getAttribute('d')) && new Set(document.querySelector('.chart svg[role=img] .line').getAttribute('d').match(/V[0-9.]+/g)).size > 1")
    # The values of one moment are said. A chart that somebody reads stays; afterwards the view goes on.
    page.run("async () => { const chart = document.querySelector('.chart svg[role=img]'); chart.dataset.read = ''; chart.focus(); }")
    page.press("Left")
    said = page.wait("async () => document.querySelector('main .stack [role=status]')?.textContent", what="the values of a moment")
    assert "copied " in said and said.endswith("/s"), said
    page.run("async () => document.activeElement.blur()")
    page.wait("async () => document.querySelector('.chart svg[role=img]:not([data-read])')", what="the next chart")
    assert page.violations() == []


def test_signed_reports_are_shown(page: Page, console_store: Cairn, bucket: str):
    """The latest first. What is in them was written by a client, and is not trusted."""
    reports = [
        {"source": SOURCE, "results": {"differences": 0, "buckets": [{"bucket": bucket, "versions": 7, "bytes": 700, "read_bytes": 700, "written_here": 0, "differences": 0}]}},
        {"source": HOSTILE, "results": {"differences": 2, "buckets": [{"bucket": HOSTILE, "versions": -1, "differences": "many"}, {"bucket": 7}, None]}},
        {"results": "none"}, {"source": [], "results": {"buckets": "x"}},
    ]
    for report in reports:
        expect(console_store.admin.post("/verify/imports", {"report": report}), 200)
    page.go("import", step="report")
    page.see("All 7 versions are the same on both sides.")
    page.see("2 differences were found.")
    order = page.run("async () => [...document.querySelectorAll('.problem b')].map((one) => one.textContent)")
    assert order == ["2 differences were found.", "All 7 versions are the same on both sides."]
    assert not page.run("async () => Boolean(document.querySelector('main img'))")
    assert page.violations() == []


def test_store_is_held_and_released(page: Page, console_store: Cairn):
    """The dialog says what it means. A hold that another one has ended is not said to have been kept."""
    admin = console_store.admin
    page.go("backups")
    page.see("Nobody has held the store")
    page.click("Hold the store")
    page.see("Reads and writes go on.")
    page.choose("Ends by itself after", "1800")
    page.click("Hold the store")
    until(lambda: expect(admin.get("/storage/backup"), 200)["state"] == "held", "the hold")
    page.see("The store is held.")
    assert page.violations() == []
    page.click("End the hold")
    page.see("copies no valid backup")
    page.run("async () => document.querySelector('dialog button[type=submit]').click()")
    page.see("Everything was kept until the end of the last hold.")
    assert expect(admin.get("/storage/backup"), 200)["state"] == "released"
    page.fill("Folder", "/mnt/it's here")
    page.run("async () => document.querySelectorAll('.field input').forEach((input) => input.dispatchEvent(new Event('input')))")
    assert "cairn backup verify '/mnt/it'\\''s here'" in commands(page)


@pytest.mark.parametrize("role, may", [("auditor", False), ("storage_admin", True)])
def test_roles_see_what_they_may_do(page: Page, console_store: Cairn, role: str, may: bool):
    """An auditor sees holds and runs."""
    page.sign_in(create_token(console_store, role)["token"])
    page.go("backups")
    assert page.has("Hold the store") == may
    page.go("import", step="copy")
    page.see("Only a system administrator can import.")
    assert not page.run("async () => Boolean(document.querySelector('[data-run]'))")
    page.sign_in(console_store.secrets.system_token)
