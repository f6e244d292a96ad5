"""The console in a browser: what a user sees, clicks, types and hears.

Elements are found by their accessible names, as users find them. What the browser reports is collected: errors, violations
of the Content-Security-Policy, requests.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .browser import REPLACED, Browser, BrowserError, chromium
from .server import REPOSITORY, Cairn

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.03
# The message for a property of an element that is not there, as while a view is drawn.
MISSING = "Cannot read properties of"
# Key codes of WebDriver.
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Space": " ", "Shift": "\ue008", "Down": "\ue015", "Left": "\ue012", "Right": "\ue014", "Up": "\ue013", "Delete": "\ue017", "Control": "\ue009"}
VIEWS = ["overview", "buckets", "sharing", "public", "accounts", "policies", "access", "tokens", "webhooks", "activity", "refused", "storage", "backups", "import"]
# Views of one bucket besides its objects and its settings.
TABS = ["deleted", "bucket-access", "lifecycle", "bucket-events"]
AXE = REPOSITORY / "tests/clients/javascript/node_modules/axe-core/axe.min.js"

# Finds the visible elements of a selector by their accessible names, in the open dialog if there is one.
_FIND = """
    const places = [...document.querySelectorAll("dialog[open]")];
    const scope = places.pop() ?? document;
    const shown = (element) => element.checkVisibility({visibilityProperty: true});
    const plain = (text) => (text ?? "").replace(/\\s+/g, " ").trim();
    const nameOf = (element) => plain(element.getAttribute("aria-label")
        ?? (element.labels?.length ? element.labels[0].textContent : element.textContent));
    const find = (selector, name) => [...scope.querySelectorAll(selector)].filter((element) => nameOf(element) === name);
"""
# A notice goes after some seconds, in which a test may not have looked at it. It stays while the pointer is on it.
_KEEP_NOTICES = """new MutationObserver((changes) => {
    for (const box of changes.flatMap(({addedNodes}) => [...addedNodes]).filter((node) => node.classList?.contains("toast"))) {
        const keep = () => box.dispatchEvent(new PointerEvent("pointerenter"));
        for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, keep);
        keep();
    }
}).observe(document, {childList: true, subtree: true});"""
# The browser itself asks there for news of its components.
BROWSERS_OWN = ("http://clients2.google.com/", "https://clients2.google.com/", "https://update.googleapis.com/", "https://optimizationguide-pa.googleapis.com/")
_CONTROL = "button, a[href], summary"
_FIELD = "input, select, textarea"


class Page:
    """The console of one server in a browser."""

    def __init__(self, browser: Browser, address: str):
        self.browser, self.address = browser, address

    # --- scripts ---

    def run(self, function: str, *arguments: object) -> Any:
        """Calls an async function in the page."""
        found = self.browser.run(function, *arguments)
        if isinstance(found, dict) and "failed" in found:
            raise BrowserError(found["failed"])
        return found

    def wait(self, function: str, *arguments: object, what: str = "", seconds: float = WAIT_SECONDS) -> Any:
        """Calls a function in the page until its result is true, and returns that.

        The page may go to another one meanwhile, and elements that the function reads may be missing at first.
        """
        give_up = time.monotonic() + seconds
        was_lost = False
        missing = ""
        while True:
            try:
                if found := self.run(function, *arguments):
                    return found
            except BrowserError as error:
                if MISSING in str(error):
                    missing = f" ({error})"
                # The result of a script may be lost with the document that it ran in. The driver may wait for it.
                elif was_lost or not any(reason in str(error) for reason in (REPLACED, "script timeout")):
                    raise
                else:
                    was_lost, give_up = True, time.monotonic() + seconds
            if time.monotonic() > give_up:
                raise AssertionError(f"{what or function} {arguments} did not happen{missing}; the page shows:\n{self.text()}")
            time.sleep(POLL_SECONDS)

    def text(self) -> str:
        """Returns the visible text of the page."""
        return self.run("async () => document.body.innerText")

    def see(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        """Waits until a text is visible."""
        self.wait("async (text) => document.body.innerText.includes(text)", text, what="text", seconds=seconds)

    def gone(self, text: str, seconds: float = WAIT_SECONDS) -> None:
        """Waits until a text is not visible, and what was closed with it has ended: Escape ends a dialog at the next frame."""
        is_gone = "async (text) => !document.body.innerText.includes(text) && !document.querySelector('dialog:not([open])')"
        self.wait(is_gone, text, what="no text", seconds=seconds)

    # --- navigation ---

    def load(self, where: str = "") -> None:
        """Loads the page anew, with this fragment."""
        self.browser.open("about:blank")
        self.browser.open(f"{self.address}/{where}")

    def go(self, view: str, *parts: str, **parameters: str) -> None:
        """Goes to a view as a link to it does, and waits until it is drawn."""
        where = "#/" + "/".join([view, *(quote(part, safe="") for part in parts)]) + (f"?{urlencode(parameters)}" if parameters else "")
        self.follow(where)

    def follow(self, where: str) -> None:
        """Goes to a fragment, and waits until the view is drawn."""
        self.run("""async (where) => {
            document.querySelector("main h1")?.setAttribute("data-old", "");
            if (location.hash === where) dispatchEvent(new HashChangeEvent("hashchange")); else location.hash = where;
        }""", where)
        self.settled()

    def settled(self) -> None:
        """Waits until the view of the URL is drawn and nothing in it loads.

        A new entry of the history has no state until the console has begun to draw its view.
        """
        self.wait("""async () => {
            if (location.hash.startsWith("#/") && history.state === null && document.querySelector(".shell")) return false;
            const title = document.querySelector("main h1, main [role=alert]");
            return title && !title.hasAttribute("data-old") && !document.querySelector("[aria-busy]") && !document.querySelector(".skeleton")
                && ![...document.querySelectorAll(".pager")].some((pager) => pager.textContent.includes("…"));
        }""", what="a drawn view")

    def sign_out(self) -> None:
        """Ends the session without a click."""
        self.run("async () => fetch('/session', {method: 'DELETE', headers: {'x-service-console': '1'}}).then(() => true)")

    def menu(self, name: str) -> None:
        """Opens the menu of the account and clicks something in it."""
        self.wait("async () => { const menu = document.querySelector('details.user'); if (menu) menu.open = true; return Boolean(menu); }", what="the menu of the account")
        self.click(name)

    def sign_in(self, token: str) -> None:
        """Pastes a token into the form of a newly loaded page."""
        self.load()
        self.sign_out()
        self.load()
        self.fill("Token", token)
        self.click("Sign in")
        self.wait("async () => document.querySelector('.shell')", what="the frame of the console")
        self.settled()

    # --- what users do ---

    def element(self, selector: str, name: str, seconds: float = WAIT_SECONDS, enabled: bool = True) -> str:
        """Waits for the first visible element with this name and returns its id."""
        found = self.wait(
            f"async (selector, name, enabled) => {{ {_FIND} return find(selector, name).find((element) => shown(element) && !(enabled && element.disabled)) ?? null; }}",
            selector, name, enabled, what="element", seconds=seconds,
        )
        return next(iter(found.values()))

    def _with(self, selector: str, name: str, act: Callable[[str], object], seconds: float = WAIT_SECONDS) -> None:
        """Does something with an element, and with the next one of that name if the view was drawn again in between."""
        give_up = time.monotonic() + seconds
        while True:
            try:
                act(self.element(selector, name, seconds))
                return
            except BrowserError as error:
                if "stale element" not in str(error) or time.monotonic() > give_up:
                    raise

    def has(self, name: str) -> bool:
        """Returns whether a button or link with this name is visible."""
        return self.run(f"async (selector, name) => {{ {_FIND} return find(selector, name).some(shown); }}", _CONTROL, name)

    def click(self, name: str, seconds: float = WAIT_SECONDS) -> None:
        """Clicks a button or link. Fails if something covers it."""
        self._with(_CONTROL, name, lambda element: self.browser.call(f"element/{element}/click"), seconds)

    def act(self, name: str) -> None:
        """Clicks something in the menu of an object."""
        self.click("More actions")
        self.click(name)

    def fill(self, label: str, value: str) -> None:
        """Types into a field in place of what is in it."""
        def type_in(field: str) -> None:
            self.browser.call(f"element/{field}/clear")
            self.browser.call(f"element/{field}/value", text=value)

        self._with(_FIELD, label, type_in)

    def choose(self, label: str, value: str) -> None:
        """Chooses an option of a list by its value."""
        change = """async (field, value) => { field.value = value; field.dispatchEvent(new Event("change", {bubbles: true})); }"""
        self._with("select", label, lambda field: self.run(change, self.reference(field), value))

    def check(self, label: str) -> None:
        """Clicks a checkbox."""
        self._with("input[type=checkbox]", label, lambda box: self.browser.call(f"element/{box}/click"))

    def upload(self, label: str, *files: Path) -> None:
        """Chooses files in an input, as the browser's own dialog does. The input itself may be hidden."""
        found = self.wait(f"async (name) => {{ {_FIND} return find('input[type=file]', name)[0] ?? null; }}", label, what="file input")
        self.browser.call(f"element/{next(iter(found.values()))}/value", text="\n".join(map(str, files)))

    @staticmethod
    def reference(element: str) -> dict[str, str]:
        """Returns an element as an argument of a script."""
        return {"element-6066-11e4-a52e-4f735466cecf": element}

    def press(self, *keys: str) -> None:
        """Presses keys one after the other; `Shift+Tab` is two at once. Other texts are typed."""
        actions = []
        for key in keys:
            pressed = [KEYS.get(part, part) for part in key.split("+")] if "+" in key and len(key) > 1 else [KEYS[key]] if key in KEYS else None
            if pressed is None:
                for letter in key:
                    actions += [{"type": "keyDown", "value": letter}, {"type": "keyUp", "value": letter}]
                continue
            actions += [{"type": "keyDown", "value": value} for value in pressed] + [{"type": "keyUp", "value": value} for value in reversed(pressed)]
        self.browser.call("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def focused(self) -> str:
        """Returns the accessible name of the element with the focus."""
        return self.run(f"async () => {{ {_FIND} const element = document.activeElement; return element === document.body ? '' : nameOf(element); }}")

    def tab_to(self, name: str, limit: int = 60) -> None:
        """Presses Tab until an element has the focus. It must be visible there."""
        passed = []
        for _ in range(limit):
            self.press("Tab")
            passed.append(self.focused())
            if passed[-1] == name:
                assert self.run("""async () => {
                    const box = document.activeElement.getBoundingClientRect();
                    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                    return document.activeElement.contains(top) || Boolean(top?.contains(document.activeElement));
                }"""), f"{name} has the focus but is covered"
                return
        raise AssertionError(f"Tab does not reach {name!r}: {passed}")

    # --- what the browser reports ---

    def log(self, kind: str) -> list[dict]:
        """Returns new entries of a log: `browser` or `performance`."""
        return self.browser.call("se/log", type=kind)

    def errors(self) -> list[str]:
        """Returns errors and violations since the last call; a request without a session is no error."""
        entries = [entry["message"] for entry in self.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [entry for entry in entries if "401 (Unauthorized)" not in entry]

    def refusals_are_expected(self) -> None:
        """Forgets what the log has: the browser notes every answer with an error there."""
        self.log("browser")

    def requests(self) -> list[str]:
        """Returns the URLs that were requested since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"]

    def cdp(self, command: str, **parameters: object) -> object:
        """Sends a command of the DevTools protocol."""
        return self.browser.call("goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width: int = 1280, height: int = 900) -> None:
        """Sets the size of the viewport in CSS pixels."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str) -> None:
        """Sets whether the user prefers `light` or `dark`."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    @contextmanager
    def in_language(self, language: str) -> Iterator[None]:
        """Shows the overview in a language; afterwards in that of the browser, in the usual size."""
        try:
            self.run("async (language) => { localStorage.setItem('cairn-language', language); }", language)
            self.load("#/overview")
            self.settled()
            yield
        finally:
            self.run("async () => { localStorage.removeItem('cairn-language'); }")
            self.resize()
            self.load("#/overview")
            self.settled()

    def violations(self) -> list[str]:
        """Runs axe-core on the page and returns what it finds, one line per element."""
        if not self.run("async () => Boolean(window.axe)"):
            self.browser.call("execute/sync", script=AXE.read_text() + "\nwindow.axe = axe;", args=[])
        found = self.run("""async () => {
            const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
            // Frames of previews are sandboxed: they have no axe, and what it sends to them would be an error.
            const {violations} = await axe.run(document, {runOnly: tags, resultTypes: ["violations"], iframes: false});
            return violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.any.map((check) => check.message).join("; ").slice(0, 200)}`));
        }""")
        return found


@contextmanager
def watched(page: Page) -> Iterator[Page]:
    """Yields the page without dialogs and notices of earlier tests. Afterwards the browser must have reported nothing."""
    page.run("""async () => {
        for (const dialog of document.querySelectorAll("dialog")) dialog.close();
        document.querySelector(".toasts")?.replaceChildren();
    }""")
    page.errors()
    page.requests()
    yield page
    errors = page.errors()
    assert not errors, errors
    foreign = [url for url in page.requests() if url.startswith("http") and not url.startswith((f"{page.address}/", BROWSERS_OWN))]
    assert not foreign, "requests to other origins"


@contextmanager
def console_browser(folder: Path, *arguments: str) -> Iterator[Browser]:
    """Starts a browser that keeps its logs and saves downloads below this folder. Notices of the console stay until they are closed."""
    with chromium(folder, *arguments) as browser:
        page = Page(browser, "")
        page.resize()
        page.cdp("Page.addScriptToEvaluateOnNewDocument", source=_KEEP_NOTICES, worldName="notices")
        page.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder / "downloads"))
        yield browser


def start_with_console(store: Cairn) -> Cairn:
    """Starts a server; with CAIRN_CONSOLE_DIR, the files of the console come from that folder."""
    own = os.environ.get("CAIRN_CONSOLE_DIR")
    return store.start(arguments=["serve", "--console-dir", own] if own else None)
