"""A headless Chromium, driven through chromedriver by the WebDriver protocol, and a web server for its pages.

Both programs come from Debian. The protocol is JSON over HTTP (W3C WebDriver), of which a few requests are enough here.
"""

import http.server
import json
import os
import shutil
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from .server import LOOPBACK, free_ports

START_SECONDS = 60.0
SCRIPT_SECONDS = 60.0
POLL_SECONDS = 0.05
# Root needs --no-sandbox, and small machines have a small /dev/shm.
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions"]


class BrowserError(AssertionError):
    """The browser is missing, did not start, or a script in it failed."""


class Browser:
    """A browser window."""

    def __init__(self, session: str):
        self.session = session

    def call(self, path: str, **body: object) -> object:
        """Sends a command and returns its value."""
        answer = requests.post(f"{self.session}/{path}", json=body, timeout=SCRIPT_SECONDS + 10)
        if answer.status_code != 200:
            raise BrowserError(f"{path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()["value"]

    def read(self, path: str) -> object:
        """Reads a value of the session."""
        answer = requests.get(f"{self.session}/{path}", timeout=SCRIPT_SECONDS + 10)
        if answer.status_code != 200:
            raise BrowserError(f"{path}: {answer.status_code} {answer.text[:500]}")
        return answer.json()["value"]

    def open(self, url: str) -> None:
        """Loads a page."""
        self.call("url", url=url)

    def url(self) -> str:
        """Returns the address of the page."""
        return str(self.read("url"))

    def type_keys(self, text: str) -> None:
        """Presses keys, as a person does who has no mouse. They go to the element that has the focus."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("actions", actions=[{"type": "key", "id": "keyboard", "actions": keys}])

    def devtools(self, command: str, **parameters: object) -> object:
        """Sends a command of the DevTools protocol."""
        return self.call("goog/cdp/execute", cmd=command, params=parameters)

    def log(self, kind: str) -> list[dict]:
        """Returns and forgets the entries of a log: `browser` is the console, `performance` are events of DevTools."""
        return list(self.call("se/log", type=kind))

    def network_messages(self) -> list[dict]:
        """Returns and forgets what happened on the network: events with `method` and `params`."""
        return [json.loads(entry["message"])["message"] for entry in self.log("performance")]

    def network_events(self, method: str) -> list[dict]:
        """Returns and forgets what happened on the network, as parameters of the events with this name."""
        return [message["params"] for message in self.network_messages() if message["method"] == method]

    def requested_urls(self) -> list[str]:
        """Returns and forgets the URLs that pages have requested, without those within the page."""
        urls = [event["request"]["url"] for event in self.network_events("Network.requestWillBeSent")]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]

    def run(self, function: str, *arguments: object) -> object:
        """Calls an async JavaScript function in the page and returns its result."""
        script = (
            "const done = arguments[arguments.length - 1];"
            f"({function})(...Array.from(arguments).slice(0, -1)).then(done, error => done({{failed: String(error)}}));"
        )
        return self.call("execute/async", script=script, args=list(arguments))


def program(name: str) -> str:
    """Returns the path of one of the two programs."""
    found = shutil.which(name)
    if not found:
        raise BrowserError(f"{name} is missing; Debian calls the packages chromium and chromium-driver, and ./test installs them")
    return found


def wait_for(driver: str, process: subprocess.Popen) -> None:
    """Waits until the driver answers."""
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            if requests.get(f"{driver}/status", timeout=5).json()["value"]["ready"]:
                return
        except requests.ConnectionError:
            pass
        if process.poll() is not None or time.monotonic() > give_up:
            raise BrowserError(f"chromedriver ended with {process.poll()} or does not answer")
        time.sleep(POLL_SECONDS)


@contextmanager
def chromium(folder: Path, *arguments: str, **options: object) -> Iterator[Browser]:
    """Starts a browser with a new profile below this directory, and closes it at the end. `options` are further capabilities."""
    (port,) = free_ports(1)
    driver = f"http://{LOOPBACK}:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "chromedriver.log").open("wb") as log:
        # The profile and crash reports are stored below HOME.
        environment = os.environ | {"HOME": str(folder)}
        process = subprocess.Popen([program("chromedriver"), f"--port={port}"], env=environment, stdout=log, stderr=log)
    try:
        wait_for(driver, process)
        options = {"binary": program("chromium"), "args": [*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"goog:loggingPrefs": logs, "browserName": "chrome", "goog:chromeOptions": options, "timeouts": {"script": int(SCRIPT_SECONDS * 1000)}}
        answer = requests.post(f"{driver}/session", json={"capabilities": {"alwaysMatch": wanted}}, timeout=60).json()["value"]
        if "sessionId" not in answer:
            raise BrowserError(f"no session: {answer.get('message', answer)}")
        session = f"{driver}/session/{answer['sessionId']}"
        try:
            yield Browser(session)
        finally:
            requests.delete(session, timeout=30)
    finally:
        process.terminate()
        process.wait(START_SECONDS)


class _Page(http.server.BaseHTTPRequestHandler):
    """Serves the same small page for every path."""

    def do_GET(self) -> None:
        body = b"<!doctype html><meta charset=utf-8><title>upload</title><input type=file id=file>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppresses the log."""


@contextmanager
def web_site() -> Iterator[str]:
    """Serves a site with another origin than the store's and yields that origin."""
    with socketserver.ThreadingTCPServer((LOOPBACK, 0), _Page) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{LOOPBACK}:{server.server_address[1]}"
        finally:
            server.shutdown()
