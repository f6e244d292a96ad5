"""The console on a phone: long presses, sheets, rows of two lines, targets for fingers, nothing that scrolls sideways."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.management import expect
from harness.page import Page
from harness.server import Cairn

WIDTH = 390
PRESS_MILLIS = 500
FINGER = 44
LONG = "inbox/" + "ein Name ohne Ende und ohne Rücksicht auf die Breite einer Spalte " * 6 + ".pdf"
# Links within a line of text are exempt, as in WCAG 2.5.5.
SMALL = """async (finger) => [...document.querySelectorAll("main button, main a[href], main select, main summary, main input:not([type=file], [type=checkbox], [type=radio], [type=range]), .bottom-bar *:is(a, button), .top-bar *:is(a, button)")]
    .filter((element) => element.checkVisibility() && !element.closest(".hidden, p, dd, code, .problem, .hint"))
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, box]) => box.width > 1 && box.height < finger - 0.5)
    .map(([element, box]) => `${element.tagName}.${element.className} ${element.textContent.slice(0, 30)} ${Math.round(box.height)}`)"""
SIDEWAYS = """async () => [...document.querySelectorAll("main *")].filter((element) => element.checkVisibility() && !element.closest(".tabs, pre, textarea, .hidden"))
    .filter((element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX) && (element.scrollWidth > element.clientWidth + 1 || element.matches(".table") && element.scrollHeight > element.clientHeight + 1))
    .map((element) => element.className || element.tagName)"""


@pytest.fixture
def phone(page: Page) -> Iterator[Page]:
    """The page on a phone with touch."""
    page.resize(WIDTH, 844)
    page.cdp("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
    yield page
    page.cdp("Emulation.setTouchEmulationEnabled", enabled=False)
    page.resize()


def middle(page: Page, name: str) -> tuple[float, float]:
    """Returns where the row of an object is."""
    x, y = page.run("async (name) => { const box = [...document.querySelectorAll('.objects tbody tr')].find((row) => row.textContent.includes(name)).getBoundingClientRect(); return [box.x + 120, box.y + 20]; }", name)
    return x, y


def touch(page: Page, kind: str, *points: tuple[float, float]) -> None:
    """Sends a touch."""
    page.cdp("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])


@contextmanager
def presses_wait(page: Page) -> Iterator[None]:
    """No press becomes a long one in the block. `presses` has those that would."""
    page.run("""async (press) => {
        const [set, clear] = [setTimeout, clearTimeout];
        window.presses = new Set();
        window.setTimeout = (task, time, ...more) => (time === press ? (presses.add(task), task) : set(task, time, ...more));
        window.clearTimeout = (timer) => presses.delete(timer) || clear(timer);
        window.pressesGo = () => Object.assign(window, {setTimeout: set, clearTimeout: clear});
    }""", PRESS_MILLIS)
    try:
        yield
    finally:
        page.run("async () => { pressesGo(); }")


def tap(page: Page, name: str) -> None:
    """Taps the row of an object. A pause between begin and end does not make it a long press."""
    point = middle(page, name)
    with presses_wait(page):
        touch(page, "touchStart", point)
        touch(page, "touchEnd")


def selected(page: Page) -> list[str]:
    """Returns the names of the selected rows."""
    return page.run("async () => [...document.querySelectorAll('.objects tr[aria-selected=true] .name a')].map((link) => link.textContent)")


def test_long_press_begins_a_selection(phone: Page, console_store: Cairn, versioned: str):
    """Taps go on with it, its actions are a sheet over the bottom bar, and the end of the selection ends that."""
    for key in ("a.txt", "b.txt", "c.txt"):
        console_store.s3.put(versioned, key, b"x")
    phone.go("bucket", versioned)
    touch(phone, "touchStart", middle(phone, "a.txt"))
    phone.see("1 selected")
    touch(phone, "touchEnd")
    assert selected(phone) == ["a.txt"] and "#/bucket/" in phone.run("async () => location.hash")
    tap(phone, "c.txt")
    phone.see("2 selected")
    assert selected(phone) == ["a.txt", "c.txt"]
    assert phone.violations() == []
    boxes = phone.run("async () => ['.selection', '.bottom-bar'].map((name) => { const box = document.querySelector(name).getBoundingClientRect(); return [box.top, box.bottom]; })")
    assert boxes[0][1] <= boxes[1][0] and boxes[0][0] > 600, "the sheet is above the bottom bar"
    small = phone.run("async () => [...document.querySelectorAll('.selection button')].filter((button) => button.getBoundingClientRect().height < 44).length")
    assert small == 0
    phone.click("Delete")
    phone.see("2 objects deleted.")
    # Without the rows of the others, which is where it stays.
    phone.wait("async () => document.querySelectorAll('.objects tbody tr').length === 1", what="the list is drawn again")
    toast = phone.run("async () => { const boxes = ['.toast', '.bottom-bar'].map((name) => document.querySelector(name).getBoundingClientRect()); return boxes[0].bottom <= boxes[1].top; }")
    assert toast, "a toast covers the navigation"
    tap(phone, "b.txt")
    phone.wait("async () => location.hash.startsWith('#/object/')", what="a tap opens the object")


def test_a_press_that_moves_is_no_long_press(phone: Page, console_store: Cairn, bucket: str):
    """It scrolls."""
    console_store.s3.put(bucket, "a.txt", b"x")
    phone.go("bucket", bucket)
    x, y = middle(phone, "a.txt")
    with presses_wait(phone):
        touch(phone, "touchStart", (x, y))
        phone.wait("async () => presses.size === 1", what="a press")
        touch(phone, "touchMove", (x, y - 40))
        phone.wait("async () => presses.size === 0", what="the end of the press")
        touch(phone, "touchEnd")
    assert selected(phone) == []


def test_menu_is_a_sheet(phone: Page, console_store: Cairn, versioned: str):
    """Over the whole width, at the foot; also what a long press does can be done there."""
    console_store.s3.put(versioned, "a.txt", b"x")
    phone.go("bucket", versioned)
    phone.click("Actions for a.txt")
    box = phone.run("async () => { const { left, right, bottom } = document.querySelector('[role=menu]').getBoundingClientRect(); return [left, right, bottom, document.documentElement.clientWidth, innerHeight]; }")
    assert box[0] == 0 and box[1] == box[3] and box[2] == box[4]
    assert phone.violations() == []
    phone.click("Select")
    phone.see("1 selected")
    phone.click("Clear")
    phone.gone("1 selected")
    phone.click("New folder")
    box = phone.run("async () => { const { left, width, bottom } = document.querySelector('dialog').getBoundingClientRect(); return [left, width, bottom]; }")
    assert box[0] == 0 and box[1] >= 370 and box[2] >= 843, "a dialog is a sheet"


@pytest.mark.parametrize("language", ["en", "de"])
def test_everything_is_large_enough_and_nothing_scrolls_sideways(phone: Page, console_store: Cairn, versioned: str, language: str):
    """In all views with data, with long names."""
    for key in (LONG, "b/<img src=x>.txt", "c.txt"):
        console_store.s3.put(versioned, key, b"x")
    console_store.s3.put(versioned, LONG, b"y")
    console_store.s3.delete(versioned, "c.txt")
    expect(console_store.admin.post(f"/buckets/{versioned}/object-shares/b/%3Cimg%20src=x%3E.txt", {"label": "l" * 60}), 201)
    try:
        phone.run("async (language) => { localStorage.setItem('cairn-language', language); }", language)
        phone.load("#/overview")
        wrong = {}
        expect(console_store.admin.post("/webhooks", {"target_url": f"http://127.0.0.1:9/{'hook' * 20}", "event_types": ["object.created"], "bucket_filter": versioned}), 201)
        for place in [("overview",), ("activity",), ("webhooks",), ("policy", "new", {"bucket": versioned}), ("buckets",), ("bucket", versioned), ("bucket", versioned, {"prefix": "inbox/"}), ("object", versioned, LONG), ("deleted", versioned), ("lifecycle", versioned), ("settings", versioned),
                      ("sharing",), ("accounts",), ("policies",), ("tokens",), ("storage",), ("bucket", versioned, {"at": "2026-01-01T00:00:00Z"})]:
            *parts, last = place
            phone.go(*parts, **last) if isinstance(last, dict) else phone.go(*place)
            found = phone.run(SMALL, FINGER), phone.run(SIDEWAYS), phone.run("async () => document.documentElement.scrollWidth > document.documentElement.clientWidth")
            if any(found):
                wrong[str(place)[:60]] = found
        assert wrong == {}, "\n".join(f"{place}: {found}" for place, found in wrong.items())
    finally:
        phone.run("async () => { localStorage.removeItem('cairn-language'); }")
        phone.load("#/overview")
        phone.settled()
