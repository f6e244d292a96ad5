"""Runs every block of docs/tutorial.md; a real browser uploads a picture.

Only addresses are replaced, because the tutorial's ports may be in use.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from harness.browser import Browser, chromium
from harness.follower import Shell, blocks_of
from harness.png import png
from harness.server import LOOPBACK, REPOSITORY, free_ports

TUTORIAL = REPOSITORY / "docs" / "tutorial.md"
START_SECONDS = 60.0
POLL_SECONDS = 0.05
CHOOSE_AND_UPLOAD = """async () => {
    const state = document.getElementById("state");
    document.getElementById("upload").click();
    while (!state.textContent) { await new Promise(wake => setTimeout(wake, 20)); }
    while (!document.images.length || !document.images[0].complete) { await new Promise(wake => setTimeout(wake, 20)); }
    return {state: state.textContent, width: document.images[0].naturalWidth, height: document.images[0].naturalHeight};
}"""

class Follower(Shell):
    """The tutorial's shell and the processes that it started."""

    def __init__(self, folder: Path):
        super().__init__(folder, ["SERVICE_MANAGEMENT_TOKEN"])
        self.ports = dict(zip(("7600", "7601", "7602", "8000"), map(str, free_ports(4)), strict=True))
        self.started: list[subprocess.Popen] = []
        self.server = {
            "SERVICE_S3_BIND": f"{LOOPBACK}:{self.ports['7600']}", "SERVICE_API_BIND": f"{LOOPBACK}:{self.ports['7601']}",
            "SERVICE_CONSOLE_BIND": f"{LOOPBACK}:{self.ports['7602']}",
        }

    def own(self, text: str) -> str:
        """Replaces the tutorial's ports with free ones."""
        return re.sub(r"(?<=:)(7600|7601|8000)\b|(?<=\", )8000\b", lambda found: self.ports[found[0]], text)

    def address(self, port: str) -> str:
        """Returns the address that replaces the tutorial's port."""
        return f"http://{LOOPBACK}:{self.ports[port]}"

    def start(self, command: str, ready: str, extra: dict[str, str]) -> None:
        """Starts a background command and waits until this address answers."""
        with (self.folder / f"started-{len(self.started)}.log").open("wb") as log:
            self.started.append(subprocess.Popen(["bash", "-c", f"exec {command.strip()}"], cwd=self.folder, env=self.environment | extra, stdout=log, stderr=log))
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                if requests.get(ready, timeout=5).status_code == 200:
                    return
            except requests.RequestException:
                pass
            assert self.started[-1].poll() is None and time.monotonic() < give_up, command
            time.sleep(POLL_SECONDS)

    def follow(self, language: str, name: str, text: str) -> None:
        """Runs a block: writes a file if it has a name, otherwise executes commands."""
        text = self.own(text)
        if name == "server":
            self.start(text, f"{self.address('7601')}/ready", self.server)
        elif name == "application":
            self.start(text, self.address("8000"), {})
        elif name:
            (self.folder / name).write_text(text)
        else:
            assert language == "sh", language
            self.run(text)


@contextmanager
def follower(folder: Path) -> Iterator[Follower]:
    """Returns a tutorial whose processes end with the test."""
    made = Follower(folder)
    try:
        yield made
    finally:
        for process in reversed(made.started):
            process.terminate()
            process.wait(30)


def upload_by_hand(browser: Browser, page: str, picture: Path) -> dict:
    """Chooses the file, presses the button, and waits until the picture is shown."""
    browser.open(page)
    element = browser.call("element", using="css selector", value="#file")
    browser.call(f"element/{next(iter(element.values()))}/value", text=str(picture))
    return browser.run(CHOOSE_AND_UPLOAD)


def test_tutorial_ends_with_the_uploaded_picture_in_a_browser(run_folder: Path, tmp_path: Path):
    """Covers account, policy, CORS, presigned PUT from a page, listing and presigned GET."""
    blocks = blocks_of(TUTORIAL)
    assert len(blocks) >= 9
    with follower(run_folder / "tutorial") as shell, chromium(tmp_path / "browser") as browser:
        application = next(number for number, (_, name, _) in enumerate(blocks) if name == "application")
        for block in blocks[:application + 1]:
            shell.follow(*block)
        picture = tmp_path / "chosen.png"
        picture.write_bytes(png(31, [os.urandom(3 * 31) for _ in range(17)]))
        seen = upload_by_hand(browser, shell.address("8000") + "/", picture)
        assert seen == {"state": "uploaded", "width": 31, "height": 17}
        for block in blocks[application + 1:]:
            shell.follow(*block)
        assert "ok" in shell.run(shell.own("cairn service-account list --endpoint http://127.0.0.1:7601 | grep -q gallery && echo ok"))
        (address,) = requests.get(f"{shell.address('8000')}/pictures", timeout=10).json()
        assert requests.get(address, timeout=10).content == picture.read_bytes()
