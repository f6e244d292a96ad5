"""Web sites whose pages a test writes, each with an origin of its own, and what a page tells of the elements in it."""

import http.server
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .browser import Browser
from .server import LOOPBACK

# Waits until every element of a page has loaded or failed. Returns what became of each, by its id.
LOADED = """async () => {
    const found = {};
    for (const element of document.querySelectorAll("[id]")) found[element.id] = await window.ended[element.id];
    return found;
}"""
# In front of the elements: notes how each of them ends.
WATCH = """<script>
window.ended = {};
window.watch = element => { window.ended[element.id] = new Promise(done => {
    for (const name of ["load", "error", "canplay"]) element.addEventListener(name, () => done(name));
    setTimeout(() => done("nothing"), 10000);
}); };
new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(
    node => { if (node.id) window.watch(node); }))).observe(document, {childList: true, subtree: true});
</script>"""


@dataclass
class WebSite:
    """A web site: pages by path, and headers that all of them have."""

    origin: str
    pages: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def show(self, browser: Browser, html: str, **headers: str) -> dict[str, str]:
        """Opens a page with these elements. Returns how each element with an id ended: `load`, `canplay` or `error`."""
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        path = f"/page-{len(self.pages)}"
        self.pages[path] = f"<!doctype html><meta charset=utf-8><title>site</title>{WATCH}<body>{html}"
        browser.open(self.origin + path)
        return browser.run(LOADED)


@contextmanager
def web_pages(host: str = LOOPBACK) -> Iterator[WebSite]:
    """Serves a site on a port of its own. `host` is a name or address of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = site.pages.get(self.path)
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write((page or "").encode())

        def log_message(self, *_: object) -> None:
            """Suppresses the log."""

    with socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        site = WebSite(f"http://{host}:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield site
        finally:
            server.shutdown()
