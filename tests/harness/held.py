"""Requests of a page that wait until a test lets them go, so that each order of events is certain."""

from collections.abc import Iterator
from contextlib import contextmanager

from .page import Page


@contextmanager
def held(page: Page, part: str, count: int = 1) -> Iterator[None]:
    """Holds the requests to URLs with this part that the block makes, until so many wait; lets them go afterwards."""
    page.run("""async (part) => {
        window.heldPart = part;
        if (window.heldFetches) return;
        const plain = window.fetch;
        window.heldFetches = [];
        window.fetch = async (...values) => {
            if (window.heldPart && String(values[0]).includes(window.heldPart))
                await new Promise((resolve) => window.heldFetches.push(resolve));
            return plain(...values);
        };
    }""", part)
    try:
        yield
        page.wait("async (count) => window.heldFetches.length >= count", count, what="requests that wait")
    finally:
        page.run("async () => { window.heldPart = null; }")


def let_go(page: Page) -> None:
    """Sends what was held."""
    page.run("async () => { for (const send of window.heldFetches.splice(0)) send(); }")


def hold_uploads(page: Page, after: int = 0) -> None:
    """Holds what is uploaded from now on, after so many requests. One that is cancelled meanwhile is never sent."""
    page.run("""async (left) => {
        const plain = XMLHttpRequest.prototype.send;
        window.heldUploads = [];
        window.letUploadsGo = () => {
            XMLHttpRequest.prototype.send = plain;
            for (const send of window.heldUploads.splice(0)) send();
        };
        XMLHttpRequest.prototype.send = function (...body) {
            if (left-- > 0) return plain.apply(this, body);
            let isCancelled = false;
            // A request that was not sent ends without a word.
            this.abort = () => { isCancelled = true; this.dispatchEvent(new ProgressEvent("abort")); };
            window.heldUploads.push(() => { delete this.abort; if (!isCancelled) plain.apply(this, body); });
        };
    }""", after)


def let_uploads_go(page: Page) -> None:
    """Waits for an upload that is held, and sends all that are."""
    page.wait("async () => window.heldUploads.length > 0", what="an upload that waits")
    page.run("async () => letUploadsGo()")
