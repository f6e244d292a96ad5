"""A headless Chromium, driven through chromedriver by the WebDriver protocol, and a web server for its pages.

Both programs come from Debian. The protocol is JSON over HTTP (W3C WebDriver), of which a few requests are enough here.
"""

import http.client
import http.server
import json
import os
import shutil
import signal
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from .server import LOOPBACK, free_ports
from .wait import until

START_SECONDS = 60.0
SCRIPT_SECONDS = 60.0
# Chromium without windows, menus and its viewer of PDF: the same engine, at half the processor time.
SHELL = "chromium-headless-shell"
CHROMIUM = "chromium"
# Root needs --no-sandbox, and small machines have a small /dev/shm. A page that is not in front is drawn and keeps its clocks, as
# one in front.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--enable-automation",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-popup-blocking",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
]
# The driver says so when a document is replaced while a command runs in it.
REPLACED = "aborted by navigation"


class BrowserError(AssertionError):
    """The browser is missing, did not start, or a script in it failed."""


class Browser:
    """A browser window."""

    def __init__(self, driver: str, session: str):
        """The driver is HOST:PORT, the session an id."""
        self.driver, self.session = driver, session

    def call(self, path: str, **body: object) -> object:
        """Sends a command and returns its value."""
        return self._ask("POST", path, json.dumps(body))

    def read(self, path: str) -> object:
        """Reads a value of the session."""
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: str | None = None) -> object:
        # A test asks hundreds of times, and `requests` takes five times the processor time of this.
        connection = http.client.HTTPConnection(self.driver, timeout=SCRIPT_SECONDS + 10)
        with closing(connection):
            connection.request(method, f"/session/{self.session}/{path}", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        if answer.status != 200:
            raise BrowserError(f"{path}: {answer.status} {text[:500]}")
        return json.loads(text)["value"]

    def open(self, url: str) -> None:
        """Loads a page."""
        try:
            self.call("url", url=url)
        except BrowserError as error:
            # The page before it was replaced only now, in the middle of the command.
            if REPLACED not in str(error):
                raise
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
    """Returns the path of a browser or its driver."""
    found = shutil.which(name)
    if not found:
        raise BrowserError(f"{name} is missing; Debian calls the packages {CHROMIUM}, {SHELL} and chromium-driver, and ./test installs them")
    return found


def until_started(process: subprocess.Popen, name: str, look: Callable[[], Any]) -> Any:
    """Polls until a program has started, and returns what `look` has found. Fails when the program ends."""
    def found() -> Any:
        seen = look()
        if not seen and process.poll() is not None:
            raise BrowserError(f"{name} ended with {process.returncode}")
        return seen

    return until(found, f"{name} does not answer", START_SECONDS)


def answers(driver: str) -> bool:
    """Returns whether the driver takes sessions."""
    try:
        return requests.get(f"{driver}/status", timeout=5).json()["value"]["ready"]
    except requests.RequestException:
        return False


@contextmanager
def ended_after(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Ends the group of a process after the block: Debian starts browsers through a shell, which would end alone."""
    try:
        yield process
    finally:
        # The group is gone if all of it has ended by itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(START_SECONDS)


def port_of_devtools(profile: Path) -> str:
    """Returns the port of the DevTools protocol, which a browser writes into its profile; nothing before that."""
    file = profile / "DevToolsActivePort"
    return file.read_text().partition("\n")[0] if file.exists() else ""


@contextmanager
def chromium(folder: Path, *arguments: str, binary: str = SHELL) -> Iterator[Browser]:
    """Starts a browser with a new profile below this directory, and closes it at the end."""
    (port,) = free_ports(1)
    address = f"{LOOPBACK}:{port}"
    driver = f"http://{address}"
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    profile.mkdir(parents=True)
    # The profile and crash reports are stored below HOME.
    environment = os.environ | {"HOME": str(folder)}

    def start(name: str, *words: str) -> subprocess.Popen:
        with (folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([program(name), *words], env=environment, stdout=log, stderr=log, start_new_session=True)

    with ExitStack() as ended:
        words = ("--headless", *ARGUMENTS, *arguments, "--remote-debugging-port=0", f"--user-data-dir={profile}")
        browser = ended.enter_context(ended_after(start(binary, *words)))
        process = ended.enter_context(ended_after(start("chromedriver", f"--port={port}")))
        devtools = f"{LOOPBACK}:{until_started(browser, binary, lambda: port_of_devtools(profile))}"
        if binary == SHELL:
            # The driver waits for a page, and this browser begins without one.
            requests.put(f"http://{devtools}/json/new?about:blank", timeout=START_SECONDS).raise_for_status()
        until_started(process, "chromedriver", lambda: answers(driver))
        logs = {"browser": "ALL", "performance": "ALL"}
        options = {"debuggerAddress": devtools}
        wanted = {"goog:loggingPrefs": logs, "browserName": "chrome", "goog:chromeOptions": options, "timeouts": {"script": int(SCRIPT_SECONDS * 1000)}}
        answer = requests.post(f"{driver}/session", json={"capabilities": {"alwaysMatch": wanted}}, timeout=60).json()["value"]
        if "sessionId" not in answer:
            raise BrowserError(f"no session: {answer.get('message', answer)}")
        try:
            yield Browser(address, answer["sessionId"])
        finally:
            requests.delete(f"{driver}/session/{answer['sessionId']}", timeout=30)


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
