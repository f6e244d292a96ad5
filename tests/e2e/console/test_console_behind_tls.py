"""Sessions through a proxy with TLS: browsers send their cookie over TLS only. The proxy forwards `Host` unchanged."""

from collections.abc import Callable

import pytest
import requests

from harness.console import OWN_PAGE, Console
from harness.management import expect, expect_refusal
from harness.server import Cairn

HOST = "console.example"


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A console without TLS of its own. For one of its hosts a proxy speaks TLS."""
    return make_module_store(SERVICE_CONSOLE_HOSTS=f"https://{HOST}:8443,nas").start()


def send(store: Cairn, method: str, path: str, host: str = "nas", cookies: str = "", **headers: str) -> requests.Response:
    """Sends a request as a page of the console does, with exactly these cookies."""
    sent = OWN_PAGE | {"Host": host} | headers | ({"Cookie": cookies} if cookies else {})
    body = {"token": store.secrets.system_token} if method == "POST" else None
    return Console(store).request(method, path, headers=sent, json=body)


def log_in(store: Cairn, **options: str) -> str:
    """Begins a session, and returns its whole cookie."""
    answer = send(store, "POST", "/session", **options)
    expect(answer, 200)
    return answer.headers["set-cookie"]


def pair(cookie: str) -> str:
    return cookie.split(";")[0]


def is_secure(cookie: str) -> bool:
    """Returns whether browsers send the cookie over TLS only. Prefix and attribute always come together."""
    parts = cookie.split("; ")
    assert cookie.startswith("__Host-") == ("Secure" in parts) and "Path=/" in parts and "HttpOnly" in parts, cookie
    return "Secure" in parts


@pytest.mark.parametrize(("host", "origin", "expected"), [
    (HOST, None, True), (f"{HOST}:443", None, True), (HOST.title(), f"https://{HOST}", True), ("nas", "https://nas", True),
    ("nas", "https://nas:8443", True), ("nas", "http://nas", False), ("nas", "null", False), ("nas", None, False), ("localhost", None, False),
])  # fmt: skip
def test_cookie_is_secure_where_browsers_use_tls(served: Cairn, host: str, origin: str | None, expected: bool):
    """Regression: behind a proxy with TLS the cookie was sent without TLS, too."""
    headers = {} if origin is None else {"Origin": origin}
    cookie = log_in(served, host=host, **headers)
    assert is_secure(cookie) == expected
    expect(send(served, "GET", "/session", host=host, cookies=pair(cookie)), 200)
    ended = send(served, "DELETE", "/session", host=host, cookies=pair(cookie), **headers)
    removal = ended.headers["set-cookie"]
    assert ended.status_code == 204 and pair(removal) == f"{pair(cookie).split('=')[0]}=" and "Max-Age=0" in removal
    assert is_secure(removal) == expected
    expect_refusal(send(served, "GET", "/session", host=host, cookies=pair(cookie)), 401, "UNAUTHENTICATED")


def test_cookie_of_tls_takes_precedence(served: Cairn):
    """Whoever can set a cookie without TLS cannot put another session in place of the user's."""
    plain, secure = pair(log_in(served)), pair(log_in(served, Origin="https://nas"))
    for both in (f"{plain}; {secure}", f"{secure}; {plain}"):
        sessions = expect(send(served, "GET", "/sessions", cookies=both), 200)["sessions"]
        current = next(session["id"] for session in sessions if session["is_current"])
        sessions = expect(send(served, "GET", "/sessions", cookies=secure), 200)["sessions"]
        assert current == next(session["id"] for session in sessions if session["is_current"])
    expect_refusal(send(served, "GET", "/session", cookies=f"{plain}; {secure}x"), 401, "UNAUTHENTICATED")


def test_logging_out_ends_what_the_browser_has(served: Cairn):
    """With both cookies, the other session would become that of the browser."""
    plain, secure, other = pair(log_in(served)), pair(log_in(served, Origin="https://nas")), pair(log_in(served))
    ended = send(served, "DELETE", "/session", cookies=f"{plain}; {secure}")
    removed = ended.raw.headers.getlist("set-cookie")
    assert [pair(cookie) for cookie in removed] == [f"{secure.split('=')[0]}=", f"{plain.split('=')[0]}="]
    assert [is_secure(cookie) for cookie in removed] == [True, False]
    for gone in (plain, secure):
        expect_refusal(send(served, "GET", "/session", cookies=gone), 401, "UNAUTHENTICATED")
    expect(send(served, "GET", "/session", cookies=other), 200)


def test_host_with_tls_takes_no_other_cookie(served: Cairn):
    plain = pair(log_in(served))
    assert send(served, "GET", "/session", host=HOST, cookies=plain).status_code == 204
    expect_refusal(send(served, "GET", "/sessions", host=HOST, cookies=plain), 401, "UNAUTHENTICATED")
