"""Pictures of every view and of the main dialogs of the console, for people to look at.

Starts a server with a store as people have it, and writes PNG files: desktop (1280 × 800) and phone (390 × 844), light and
dark, some in German. `CAIRN_CONSOLE_DIR=console/web` shows the files of that folder instead of those in the binary.
"""

import argparse
import base64
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from harness import showcase
from harness.console import Console
from harness.page import TABS, VIEWS, Page, console_browser, start_with_console
from harness.receiver import Receiver
from harness.server import RUNS, Cairn, TARGET
from harness.showcase import CONTRACT, DOCUMENTS, EMPTY, PHOTOS, PICTURE

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
# Slow enough that the sheet of uploads can be seen, in bytes per second.
UPLOAD_SPEED = 1_500_000


def places(ids: dict[str, str]) -> dict[str, tuple]:
    """Returns name and place of every view."""
    return {
        **{view: (view,) for view in VIEWS},
        "objects": ("bucket", PHOTOS, {"prefix": "2026/"}), "objects-root": ("bucket", PHOTOS), "objects-empty": ("bucket", EMPTY), "objects-locked": ("bucket", "archive", {"prefix": "contracts/2026/"}),
        "objects-long-names": ("bucket", DOCUMENTS, {"prefix": "inbox/"}), "object-picture": ("object", PHOTOS, PICTURE), "object-json": ("object", DOCUMENTS, "report.json"),
        "object-locked": ("object", "archive", CONTRACT), "settings": ("settings", PHOTOS), **{tab: (tab, PHOTOS) for tab in TABS}, "account": ("account", ids["account"]), "deliveries": ("webhooks", ids["webhook"]),
        "no-such-bucket": ("bucket", "no-such-bucket"), "connect": ("connect",), "policy-new": ("policy", "new", {"bucket": PHOTOS}),
    }


# Name of the picture, place, and the buttons that lead to the dialog.
DIALOGS = (
    ("dialog-bucket", ("buckets",), ("Create bucket",)), ("dialog-token", ("tokens",), ("Create token",)),
    ("dialog-webhook", ("webhooks",), ("Create webhook",)), ("dialog-rule", ("lifecycle", PHOTOS), ("Create rule",)), ("dialog-quota", ("settings", PHOTOS), ("Change quota",)),
    ("dialog-share", ("object", PHOTOS, "2026/captions.csv"), ("Share",)), ("dialog-link", ("object", PHOTOS, "2026/captions.csv"), ("Share", "Create link")),
    ("dialog-embed", ("object", PHOTOS, PICTURE), ("More actions", "Embed")), ("dialog-account", ("accounts",), ("Create account",)),
)


class Photographer:
    """Takes the pictures of one page."""

    def __init__(self, page: Page, folder: Path, wanted: str):
        self.page, self.folder, self.wanted = page, folder, wanted
        self.count = 0

    def take(self, name: str) -> None:
        """Writes what the viewport shows. The pointer is in a corner, where it lights up nothing."""
        self.page.cdp("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
        made = self.page.cdp("Page.captureScreenshot", format="png")
        (self.folder / f"{name}.png").write_bytes(base64.b64decode(made["data"]))
        self.count += 1

    def wants(self, name: str) -> bool:
        """Returns whether the name of a picture contains what was asked for."""
        return self.wanted in name

    def visit(self, place: tuple) -> None:
        """Goes to a view, without dialogs and notices of earlier ones."""
        self.page.run("async () => { document.querySelectorAll('dialog').forEach((dialog) => dialog.close()); document.querySelector('.toasts')?.replaceChildren(); scrollTo(0, 0); }")
        *parts, last = place
        self.page.go(*parts, **last) if isinstance(last, dict) else self.page.go(*place)
        # Pictures and links of an object come after the view.
        self.page.wait("async () => [...document.images].every((image) => image.complete)")

    def dialog(self, suffix: str, name: str, place: tuple, buttons: tuple[str, ...]) -> None:
        """Opens a dialog and takes its picture."""
        if self.wants(f"{name}-{suffix}"):
            self.visit(place)
            for button in buttons:
                self.page.click(button)
            self.page.wait("async () => document.querySelector('dialog[open]')")
            if "Create link" in buttons:
                self.page.see("The link is ready")
            self.take(f"{name}-{suffix}")

    def selection(self, suffix: str) -> None:
        """Objects of which two are selected."""
        if self.wants(f"objects-selected-{suffix}"):
            self.visit(("bucket", PHOTOS, {"prefix": "2026/"}))
            for number in (2041, 2042):
                self.page.check(f"Select 2026/IMG_{number}.png")
            self.take(f"objects-selected-{suffix}")

    def uploads(self, suffix: str, files: list[Path]) -> None:
        """A folder that is being uploaded, one that was interrupted, and the notice after it."""
        if not self.wants(f"uploads-{suffix}"):
            return
        page = self.page
        self.visit(("bucket", "backups"))
        page.cdp("Network.enable")
        page.cdp("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=UPLOAD_SPEED)
        page.upload("Files to upload", *files)
        page.wait("async () => { const text = document.querySelector('.sheet')?.textContent ?? ''; return /[1-9]\\d? ?%/.test(text); }", seconds=30)
        self.take(f"uploads-{suffix}")
        page.load("#/bucket/backups")
        page.settled()
        page.cdp("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self.take(f"uploads-interrupted-{suffix}")


def everything(shots: Photographer, store: Cairn, ids: dict[str, str], files: list[Path]) -> None:
    """Takes all pictures."""
    page = shots.page
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        for size, (width, height) in SIZES.items():
            suffix = f"{size}-{scheme}"
            page.resize(width, height)
            page.load()
            page.sign_out()
            page.load()
            page.wait("async () => document.activeElement.name === 'token'")
            if shots.wants(f"login-{suffix}"):
                shots.take(f"login-{suffix}")
            page.sign_in(store.secrets.system_token)
            for name, place in places(ids).items():
                if shots.wants(f"{name}-{suffix}"):
                    shots.visit(place)
                    shots.take(f"{name}-{suffix}")
            for name, place, buttons in DIALOGS:
                shots.dialog(suffix, name, place, buttons)
            shots.selection(suffix)
            shots.uploads(suffix, files)
    with page.in_language("de"):
        for size, (width, height) in SIZES.items():
            page.resize(width, height)
            for name in ("overview", "objects", "settings", "object-picture", "webhooks"):
                if shots.wants(f"{name}-{size}-german"):
                    shots.visit(places(ids)[name])
                    shots.take(f"{name}-{size}-german")


def main(arguments: list[str], work: Callable[[Photographer, Cairn, dict[str, str], list[Path]], None] = everything) -> int:
    """Takes the pictures and names their folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=TARGET / "screenshots", help="where the pictures go (default target/screenshots)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only pictures whose names contain this, such as `objects` or `phone-dark`")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    RUNS.mkdir(parents=True, exist_ok=True)
    work_folder = Path(tempfile.mkdtemp(prefix="screenshots-", dir=RUNS))
    store = Cairn(work_folder / "store", {"SERVICE_WEBHOOKS_ALLOW_HTTP": "true", "SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS": "true"})
    try:
        with closing(Receiver()) as receiver, console_browser(work_folder / "browser") as browser:
            start_with_console(store)
            ids = showcase.fill_store(store, receiver)
            files = sorted(showcase.write_folder(work_folder / "files", 40, 100_000).rglob("*.jpg"))
            film = work_folder / "film, first cut.mov"
            film.write_bytes(bytes(24_000_000))
            shots = Photographer(Page(browser, Console(store).address), given.folder, given.only)
            work(shots, store, ids, [film, *files])
    finally:
        store.kill()
    shutil.rmtree(work_folder)
    print(f"{shots.count} pictures in {given.folder}")
    return 0
