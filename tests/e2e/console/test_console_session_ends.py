"""A request in progress does not outlive its session or its token: neither an upload nor a wait for events.

`management/test_revocation.py` tests the same of S3 requests, whose credential is disabled, or whose account is deleted,
disabled or loses its policy.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.console import OWN_PAGE, Console, before_expiry, create_token, signed_in
from harness.management import API, Management, bearer, expect
from harness.server import LOOPBACK, Cairn
from harness.shares import after
from harness.wait import until
from harness.wire import Connection, encode_head

BODY = b"a body that arrives in two pieces " * 4000
# Most sessions of one token.
SESSIONS_MAX = 50
THREADS = 4


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with one executor: when it answers a request, it has read the heads of all earlier ones."""
    store = make_module_store(SERVICE_SERVER_EXECUTORS="1", SERVICE_SERVER_BODY_TIMEOUT_SECONDS="600").start()
    store.s3.create_bucket("photos")
    return store


class User:
    """Somebody with a management token, and a session that was begun with it."""

    def __init__(self, store: Cairn, made: dict | None = None):
        made = made or create_token(store, "storage_admin")
        self.store, self.token, self.token_id = store, made["token"], made["management_token"]["id"]
        self.console = signed_in(store, self.token)
        (self.session,) = expect(self.console.get("/sessions"), 200)["sessions"]

    def by_session(self) -> tuple[int, dict[str, str]]:
        """Returns port and headers of requests with the session."""
        (cookie,) = self.console.cookies.cookies
        return self.store.console_port, OWN_PAGE | {"Cookie": f"{cookie.name}={cookie.value}"}

    def by_token(self) -> tuple[int, dict[str, str]]:
        """Returns port and headers of requests with the token."""
        return self.store.api_port, bearer(self.token)


def log_out(user: User) -> None:
    """Ends the session as its user does."""
    expect(user.console.delete("/session"), 204)


def end_by_administrator(user: User) -> None:
    """Ends the session as somebody else does."""
    expect(signed_in(user.store).delete(f"/sessions/{user.session['id']}"), 204)


def delete_token(user: User) -> None:
    """Deletes the management token, and with it the session."""
    expect(user.store.admin.delete(f"/management-tokens/{user.token_id}"), 204)


def wait_for_expiry(user: User) -> None:
    """Waits until the management token has expired."""
    until(lambda: Management(user.store.management, bearer(user.token)).get("/buckets").status_code == 401)


def push_out(user: User) -> None:
    """Begins so many sessions of the token that this one has to go."""
    with ThreadPoolExecutor(THREADS) as crowd:
        list(crowd.map(lambda _: Console(user.store).log_in(user.token), range(SESSIONS_MAX)))
    assert not listed(user)


def listed(user: User) -> bool:
    """Returns whether the session exists."""
    sessions = expect(signed_in(user.store).get("/sessions"), 200)["sessions"]
    return user.session["id"] in [session["id"] for session in sessions]


ENDS = [log_out, end_by_administrator, push_out, delete_token, wait_for_expiry]
CASES = [("by_session", end) for end in ENDS] + [("by_token", delete_token), ("by_token", wait_for_expiry)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def case(request: pytest.FixtureRequest) -> tuple[str, Callable]:
    """The ways in which a user sends requests, and what ends the session or token."""
    return request.param


def begun(served: Cairn, case: tuple, send: Callable[[User, int, dict], Connection]) -> tuple[User, Connection]:
    """Makes the user of a case and sends a request of it, before the session or token ends."""
    how, end = case

    def attempt(made: dict) -> tuple[User, Connection]:
        user = User(served, made)
        return user, send(user, *getattr(user, how)())

    return before_expiry(served, "storage_admin", attempt) if end is wait_for_expiry else attempt(create_token(served, "storage_admin"))


def begin(port: int, headers: dict, method: str, path: str, body: bytes) -> Connection:
    """Sends a request with half of its body, which the server waits for."""
    head = [("Host", LOOPBACK), *headers.items(), ("Content-Length", str(len(body))), ("Expect", "100-continue")]
    connection = Connection(LOOPBACK, port)
    connection.send(encode_head(method, path, head))
    assert connection.read_head().status == 100
    connection.send(body[: len(body) // 2])
    return connection


def test_upload_in_progress_ends_with_its_session(served: Cairn, case: tuple):
    """Regression: an upload of the console was stored although its user had signed out at its beginning."""
    user, connection = begun(served, case, lambda user, port, headers: begin(port, headers, "PUT", f"{API}/buckets/photos/object/{user.token_id}", BODY))
    with connection:
        case[1](user)
        connection.send(BODY[len(BODY) // 2 :])
        refused = connection.read_response()
    assert refused.status == 401 and b"UNAUTHENTICATED" in refused.body, refused
    assert served.admin.get(f"/buckets/photos/object/{user.token_id}").status_code == 404
    (event,) = expect(served.admin.get(f"/audit/events?request_id={refused.get('x-request-id')}"), 200)["events"]
    assert event["result"] == "denied" and "while the request was in progress" in event["detail"]


def test_part_in_progress_ends_with_its_session(served: Cairn):
    """The part is not stored. Another session goes on with the upload."""
    user = User(served)
    body = {"bucket": "photos", "key": "parts", "size": len(BODY)}
    upload = expect(user.console.post("/uploads", body), 201)["id"]
    with begin(*user.by_session(), "PUT", f"/uploads/{upload}/1", BODY) as connection:
        log_out(user)
        connection.send(BODY[len(BODY) // 2 :])
        assert connection.read_response().status == 401
    other = signed_in(served)
    assert expect(other.get(f"/uploads/{upload}"), 200)["parts"] == []
    expect(other.put(f"/uploads/{upload}/1", BODY), 200)
    expect(other.post(f"/uploads/{upload}/complete"), 201)
    assert served.s3.get("photos", "parts").body == BODY


@pytest.mark.parametrize(("method", "path"), [("POST", f"{API}/buckets"), ("POST", "/uploads/{}/complete"), ("DELETE", "/uploads/{}")])
def test_change_in_progress_ends_with_its_session(served: Cairn, method: str, path: str):
    """Changes with short bodies, too: a bucket is not made, an upload is neither completed nor removed."""
    user = User(served)
    upload = expect(user.console.post("/uploads", {"bucket": "photos", "key": "short", "size": 0}), 201)["id"]
    expect(user.console.put(f"/uploads/{upload}/1", b""), 200)
    body = b'{"name": "made-too-late"}' if path.startswith(API) else b"{}"
    with begin(*user.by_session(), method, path.format(upload), body) as connection:
        log_out(user)
        connection.send(body[len(body) // 2 :])
        assert connection.read_response().status == 401
    assert served.admin.get("/buckets/made-too-late").status_code == 404
    assert served.s3.get("photos", "short").status == 404
    expect(signed_in(served).delete(f"/uploads/{upload}"), 204)


def test_upload_goes_on_while_its_session_does(served: Cairn):
    """The ends of other sessions and tokens do not matter."""
    user, other = User(served), User(served)
    path = f"{API}/buckets/photos/object/{user.token_id}"
    for port, headers in (user.by_session(), user.by_token()):
        with begin(port, headers, "PUT", path, BODY) as connection:
            end_by_administrator(other)
            delete_token(other)
            connection.send(BODY[len(BODY) // 2 :])
            assert connection.read_response().status == 201
        other = User(served)


def wait_for_events(user: User, port: int, headers: dict) -> Connection:
    """Waits for events of a prefix that has none yet."""
    path = f"{API}/events?since={after(seconds=0)}&bucket=photos&prefix={user.token_id}&wait_seconds=30"
    connection = Connection(LOOPBACK, port)
    connection.send(encode_head("GET", path, [("Host", LOOPBACK), *headers.items()]))
    return connection


def test_wait_for_events_ends_with_its_session(served: Cairn, case: tuple):
    """Regression: whoever had signed out still got the next events, for as long as the request waited."""
    user, connection = begun(served, case, wait_for_events)
    with connection:
        case[1](user)
        assert served.s3.put("photos", f"{user.token_id}/secret").status == 200
        refused = connection.read_response()
    assert refused.status == 401 and b"secret" not in refused.body, refused


def test_wait_for_events_goes_on_while_its_session_does(served: Cairn):
    user, other = User(served), User(served)
    with wait_for_events(user, *user.by_session()) as connection:
        log_out(other)
        assert served.s3.put("photos", f"{user.token_id}/picture").status == 200
        found = connection.read_response()
    assert found.status == 200 and b"picture" in found.body, found
