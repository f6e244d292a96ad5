"""Members of the console: people without a role, whose policies decide."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from . import accounts
from .console import Console
from .management import API, expect, expect_refusal
from .openid import Provider, Visitor, settings
from .page import Page
from .server import LOOPBACK, Cairn
from .wire import Connection, Response, encode_head


@contextmanager
def served_members(store: Cairn, folder: Path, members: str, policies: dict[str, list[dict]], **extra: str) -> Iterator[None]:
    """Starts a provider and a store with the policies of its members. `store.policies` has their paths by name."""
    provider = Provider(folder)
    provider.consoles.append(store.console)
    provider.start()
    try:
        store.extra |= settings(provider.issuer, store.console, MEMBERS=members) | extra
        store.start()
        store.policies = {name: create_policy(store, name, statements) for name, statements in policies.items()}
        yield
    finally:
        provider.stop()


def signed_in(store: Cairn, name: str) -> Console:
    """Signs a person in, and returns the console of the session."""
    visitor = Visitor(store)
    visitor.sign_in(name)
    assert visitor.session() is not None, visitor.failure()
    return visitor.console


def create_policy(store: Cairn, name: str, statements: list[dict]) -> str:
    """Creates a policy that is attached to no account, and returns its path."""
    return f"/policies/{accounts.create_policy(store, *statements, name=name)}"


def replace_policy(store: Cairn, path: str, name: str, statements: list[dict]) -> None:
    """Replaces a policy."""
    expect(store.admin.put(path, {"name": name, "statements": statements}), 200)


def path_of(bucket: str, key: str, kind: str = "object") -> str:
    """Returns the path of an object."""
    return f"{API}/buckets/{bucket}/{kind}/{quote(key)}"


def denied(response, words: str) -> None:
    """Asserts a refusal that says which right is missing."""
    assert words in expect_refusal(response, 403, "FORBIDDEN")


def audited(store: Cairn, **filters: str) -> list[dict]:
    """Returns audit events, the newest first."""
    return expect(store.admin.get("/audit/events", params=filters), 200)["events"]


def cookie_of(console: Console) -> dict[str, str]:
    """Returns name and value of the cookie of a session."""
    (cookie,) = [cookie for cookie in console.cookies.cookies if cookie.name.startswith("cairn-")]
    return {"name": cookie.name, "value": cookie.value}


def show_console(page: Page, console: Console) -> None:
    """Opens the console in a browser with the session of a member."""
    page.load()
    page.browser.call("cookie", cookie=cookie_of(console) | {"path": "/", "httpOnly": True, "sameSite": "Strict"})


def sent_in_halves(console: Console, method: str, path: str, body: bytes, between: Callable[[], None]) -> Response:
    """Sends a body in two halves, with something in between after the server has admitted the request."""
    cookie = cookie_of(console)
    head = [
        ("Host", LOOPBACK), *console.headers.items(), ("Cookie", f"{cookie['name']}={cookie['value']}"),
        ("Content-Length", str(len(body))), ("Expect", "100-continue"),
    ]
    with Connection(LOOPBACK, console.store.console_port) as connection:
        connection.send(encode_head(method, path, head))
        assert connection.read_head().status == 100
        connection.send(body[: len(body) // 2])
        between()
        connection.send(body[len(body) // 2 :])
        return connection.read_response()
