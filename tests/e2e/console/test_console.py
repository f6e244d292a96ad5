"""The console's listener: sessions, forged requests, roles, hosts, and the files of the page.

The management API behind it has its own tests. These compare it with what the console serves.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
import requests

from harness.certificates import Authority
from harness.console import OWN_PAGE, Console, before_expiry, create_token, signed_in
from harness.management import API, Management, basic, bearer, expect, expect_refusal
from harness.server import LOOPBACK, Cairn
from harness.wait import until
from harness.wire import Connection

ID = "01890000-0000-7000-8000-000000000000"
ROLES = ["system_admin", "storage_admin", "auditor"]
# What changes something among the routes of the console alone.
OWN_ROUTES = [
    ("POST", "/session"), ("DELETE", "/session"), ("POST", "/uploads"), ("PUT", "/uploads/x/1"),
    ("POST", "/uploads/x/complete"), ("DELETE", "/uploads/x"),
]
IDLE_MINUTES = 1
GUESSERS = 8
# 16 failures without a delay, a second's worth beyond them, then four a second; and those that are looked at at the same time.
FREE_GUESSES = 16 + 4 + GUESSERS
GUESSES_PER_SECOND = 4


@pytest.fixture(scope="module")
def console_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """The server of most tests of this file."""
    return make_module_store().start()


@pytest.fixture(scope="module")
def unused_session(make_module_store: Callable[..., Cairn]) -> tuple[Console, float]:
    """A session with the shortest idle limit, and when it was used."""
    store = make_module_store(SERVICE_CONSOLE_SESSION_IDLE_MINUTES=str(IDLE_MINUTES)).start()
    return signed_in(store), time.monotonic()


@pytest.fixture(autouse=True)
def _early(unused_session: tuple[Console, float]) -> None:
    """Begins the session that is tested last before all others, so that nothing waits for it."""


@pytest.fixture
def console(console_store: Cairn) -> Console:
    """A browser without a session."""
    return Console(console_store)


@pytest.fixture
def operator(console_store: Cairn) -> Console:
    """A browser with a session of the system token."""
    return signed_in(console_store)


def routes(store: Cairn) -> list[tuple[str, str]]:
    """Returns every operation of the management API with names that do not exist."""
    document = expect(store.admin.get("/openapi.json"), 200)
    names = {"{bucket}": "no-such-bucket", "{key}": "a/b", "{key+}": "a/b"}
    found = []
    for path, operations in document["paths"].items():
        parts = [names.get(part, ID if part.startswith("{") else part) for part in path.split("/")]
        found += [(method.upper(), "/".join(parts)) for method, operation in operations.items() if "x-roles" in operation]
    assert len(found) > 80
    return found


def audited(store: Cairn, response: requests.Response) -> list[tuple[str, str, str]]:
    """Returns operation, result and principal of a request's audit events."""
    found = expect(store.admin.get(f"/audit/events?request_id={response.headers['x-request-id']}"), 200)["events"]
    return [(event["operation"], event["result"], event["principal"]) for event in found]


def test_system_token_root_and_management_token_log_in(console_store: Cairn):
    """Each gets its role and name. The login is audited."""
    keys = {"access_key": console_store.secrets.root_access_key, "secret_key": console_store.secrets.root_secret_key}
    made = create_token(console_store, "auditor")
    for body, role, name in [
        ({"token": console_store.secrets.system_token}, "system_admin", "system"), (keys, "system_admin", "root"),
        ({"token": f" {made['token']}\n"}, "auditor", "a auditor"),
    ]:
        console = Console(console_store)
        response = console.post("/session", body)
        session = expect(response, 200)
        assert session["role"] == role and name in session["principal"], session
        assert expect(console.get("/session"), 200) == session
        assert expect(console.api("/auth/session"), 200)["role"] == role
        assert [(operation, result) for operation, result, _ in audited(console_store, response)] == [("begin_console_session", "allowed")]
        assert session["principal"] in audited(console_store, response)[0][2]


@pytest.mark.parametrize("body", [
    {"token": "wrong"}, {"token": ""}, {"token": "mgmt_" + "a" * 43}, {"access_key": "AKROOT", "secret_key": "wrong"},
], ids=["a wrong token", "an empty token", "an unknown token", "a wrong root"])
def test_wrong_credential_is_refused_and_audited(console: Console, console_store: Cairn, body: dict):
    """The answer does not say what is wrong with it, and sets no cookie."""
    response = console.post("/session", body)
    expect_refusal(response, 401, "UNAUTHENTICATED")
    assert "set-cookie" not in response.headers and response.headers["www-authenticate"]
    assert audited(console_store, response) == [("begin_console_session", "denied", "anonymous")]
    assert not console.is_signed_in()


@pytest.mark.parametrize("body", [
    None, {}, [], {"token": 1}, {"token": "a", "access_key": "b", "secret_key": "c"}, {"access_key": "a"}, {"user": "a"},
], ids=str)
def test_malformed_login_is_refused(console: Console, body: object):
    """400, before a credential is looked at."""
    expect_refusal(console.post("/session", body), 400, "INVALID_REQUEST")


def test_account_of_the_data_plane_cannot_log_in(console: Console, console_store: Cairn):
    """A service account's keys are not the root credential."""
    keys = expect(console_store.admin.post("/service-accounts", {"name": "an account", "description": ""}), 201)["credential"]
    body = {"access_key": keys["access_key"], "secret_key": keys["secret_key"]}
    expect_refusal(console.post("/session", body), 401, "UNAUTHENTICATED")


@contextmanager
def guessing(store: Cairn, body: dict) -> Iterator[list[tuple[int, float]]]:
    """Logs in with something wrong, over and over, until the block ends. Yields the codes, and the seconds that each took."""
    found, ended = [], Event()

    def guess() -> None:
        while not ended.is_set():
            begin = time.monotonic()
            code = Console(store).post("/session", body).status_code
            found.append((code, time.monotonic() - begin))

    with ThreadPoolExecutor(GUESSERS) as crowd:
        running = [crowd.submit(guess) for _ in range(GUESSERS)]
        try:
            yield found
        finally:
            ended.set()
        for one in running:
            one.result()


def seconds_to_log_in(store: Cairn) -> float:
    """Logs in with the right token and returns how long that took."""
    begin = time.monotonic()
    signed_in(store)
    return time.monotonic() - begin


def is_held_and_audited(store: Cairn) -> bool:
    """Returns whether a right login of root is held back now, and in the audit trail."""
    secrets = store.secrets
    response = Console(store).post("/session", {"access_key": secrets.root_access_key, "secret_key": secrets.root_secret_key})
    return response.status_code == 429 and audited(store, response) == [("begin_console_session", "denied", "anonymous")]


def test_guesses_are_delayed_and_limited(make_store: Callable[..., Cairn]):
    """They share one count with the management plane. A right token is answered at once meanwhile."""
    store = make_store().start()
    root = Management(store.management, basic(store.secrets.root_access_key, store.secrets.root_secret_key))
    begin = time.monotonic()
    with guessing(store, {"access_key": store.secrets.root_access_key, "secret_key": "wrong"}) as guesses:
        until(lambda: 429 in [code for code, _ in guesses], "guesses of root are not limited")
        until(lambda: root.get("/buckets").status_code == 429, "the management plane has another count")
        until(lambda: is_held_and_audited(store), "a login that is held back leaves no record")
    codes = [code for code, _ in guesses]
    assert set(codes) == {401, 429} and codes.count(401) <= FREE_GUESSES + GUESSES_PER_SECOND * (time.monotonic() - begin), codes
    with guessing(store, {"token": "wrong"}) as guesses:
        # Each of them waits for one or two seconds.
        longest = lambda: max((seconds for _, seconds in guesses), default=0)
        until(lambda: seconds_to_log_in(store) < longest() / 2, "the right token waits as long as the wrong ones")
    assert {code for code, _ in guesses} <= {401, 429}


def test_cookie_cannot_be_read_or_sent_by_other_sites(console: Console, console_store: Cairn):
    """The name contains the store's id, because the ports of one host share cookies."""
    response = console.post("/session", {"token": console_store.secrets.system_token})
    pair, *attributes = response.headers["set-cookie"].split("; ")
    name, value = pair.split("=")
    assert attributes == ["Path=/", f"Max-Age={12 * 3600}", "HttpOnly", "SameSite=Strict"]
    assert name.startswith("cairn-session-") and len(value) == 43
    assert value not in response.text and value not in console_store.output()
    again = Console(console_store)
    again.log_in()
    assert again.cookies.cookies.get(name) != value, "each login has an id of its own"


def test_log_out_ends_the_session_on_the_server(operator: Console, console_store: Cairn):
    """The cookie's value is worth nothing afterwards. Other sessions go on."""
    other = signed_in(console_store)
    kept = operator.cookies.cookies.copy()
    principal = expect(operator.get("/session"), 200)["principal"]
    response = operator.delete("/session")
    assert audited(console_store, response) == [("end_console_session", "allowed", principal)]
    expect(response, 204)
    assert "Max-Age=0" in response.headers["set-cookie"]
    assert len(operator.cookies.cookies) == 0
    operator.cookies.cookies = kept
    expect_refusal(operator.get("/session"), 401, "UNAUTHENTICATED")
    expect_refusal(operator.api("/buckets"), 401, "UNAUTHENTICATED")
    expect(operator.delete("/session"), 204)
    assert other.is_signed_in()


def test_deleted_token_ends_its_sessions(console_store: Cairn):
    """At once, and only those of that token."""
    first, second = (create_token(console_store, "system_admin") for _ in range(2))
    ended, kept = signed_in(console_store, first["token"]), signed_in(console_store, second["token"])
    expect(console_store.admin.delete(f"/management-tokens/{first['management_token']['id'] if 'management_token' in first else first['id']}"), 204)
    expect_refusal(ended.api("/buckets"), 401, "UNAUTHENTICATED")
    assert not ended.is_signed_in() and kept.is_signed_in()


def test_expired_token_ends_its_sessions(console_store: Cairn):
    """The session says when, and never lasts longer."""
    console = Console(console_store)

    def log_in(made: dict) -> None:
        session = console.log_in(made["token"])
        assert session["expires_at"] <= made["management_token"]["expires_at"] and console.is_signed_in()

    before_expiry(console_store, "auditor", log_in)
    until(lambda: not console.is_signed_in(), "the session outlives its token")
    expect_refusal(console.api("/buckets"), 401, "UNAUTHENTICATED")


def test_restart_ends_sessions(make_store: Callable[..., Cairn]):
    """They are only in memory."""
    store = make_store().start()
    console = signed_in(store)
    store.restart()
    expect_refusal(console.get("/session"), 401, "UNAUTHENTICATED")
    console.log_in()
    assert console.is_signed_in()


@pytest.mark.parametrize("cookie", ["{name}=", "{name}=wrong", "{name}={value}; {name}=other", "{name}={value}a"])
def test_other_cookies_are_no_session(operator: Console, cookie: str):
    """Also two of the same name: another site on this host may have set one of them."""
    (own,) = operator.cookies.cookies
    sent = cookie.format(name=own.name, value=own.value)
    response = requests.get(operator.address + "/session", headers=OWN_PAGE | {"Cookie": sent}, timeout=10)
    expect_refusal(response, 401, "UNAUTHENTICATED")


@pytest.mark.parametrize("cookie", ["", "other={value}", "x{name}={value}"])
def test_without_a_cookie_there_is_no_session(operator: Console, cookie: str):
    """Which is no error: browsers would show it as one before every login. Other routes refuse the request."""
    (own,) = operator.cookies.cookies
    headers = OWN_PAGE | ({"Cookie": cookie.format(name=own.name, value=own.value)} if cookie else {})
    response = requests.get(operator.address + "/session", headers=headers, timeout=10)
    assert (response.status_code, response.content) == (204, b"")
    refused = requests.get(f"{operator.address}{API}/buckets", headers=headers, timeout=10)
    expect_refusal(refused, 401, "UNAUTHENTICATED")


def test_cookie_is_no_credential_elsewhere(operator: Console, console_store: Cairn):
    """The management plane ignores it, and the console ignores Authorization."""
    (own,) = operator.cookies.cookies
    with_cookie = Management(console_store.management, {"Cookie": f"{own.name}={own.value}"} | OWN_PAGE)
    expect_refusal(with_cookie.get("/buckets"), 401, "UNAUTHENTICATED")
    nobody = Console(console_store)
    secrets = console_store.secrets
    for credential in (bearer(secrets.system_token), basic(secrets.root_access_key, secrets.root_secret_key)):
        expect_refusal(nobody.api("/buckets", headers=OWN_PAGE | credential), 401, "UNAUTHENTICATED")
        expect(operator.api("/buckets", headers=OWN_PAGE | credential), 200)
    expect(operator.api("/buckets", headers=OWN_PAGE | bearer("wrong")), 200)


SITES = [None, "same-origin", "same-site", "cross-site", "none", "same-origin, cross-site"]


@pytest.mark.parametrize("own_header", [None, "1", "0"])
@pytest.mark.parametrize("site", SITES)
def test_changes_must_come_from_the_console(operator: Console, site: str | None, own_header: str | None):
    """Sec-Fetch-Site decides, and without it Origin; the header alone or the cookie alone do not suffice."""
    own = operator.address
    for origin in (None, own, own.replace("127.0.0.1", "localhost"), f"{own}0", "https://evil.example", "null", f"{own}.evil.example"):
        headers = {"Sec-Fetch-Site": site, "x-service-console": own_header, "Origin": origin}
        headers = {name: value for name, value in headers.items() if value is not None}
        response = operator.post(f"{API}/buckets", {"name": "x"}, headers=headers)
        # The name is too short: a request that passes is refused for another reason.
        # The scheme of Origin may differ, behind a proxy with TLS.
        is_own = own_header == "1" and (site == "same-origin" or (site is None and origin == own))
        expected = (400, "INVALID_BUCKET_NAME") if is_own else (403, "FORBIDDEN")
        assert (response.status_code, response.json()["error"]["code"]) == expected, headers


@pytest.mark.parametrize("site", SITES)
def test_pages_of_other_origins_read_nothing(operator: Console, console_store: Cairn, site: str | None):
    """Regression: a page on another port of the same host loaded GETs with the session, because ports share cookies."""
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    for path in (f"{API}/buckets", f"{API}/management-tokens", f"{API}/audit/events", "/session", "/sessions"):
        for method in ("GET", "HEAD"):
            response = operator.request(method, path, headers=headers)
            is_own = site in (None, "same-origin", "none")
            assert response.status_code == (200 if is_own else 403), (method, path)
            assert response.headers["cross-origin-resource-policy"] == "same-origin", (method, path)
    if not is_own:
        assert audited(console_store, response) == [("list_console_sessions", "denied", "anonymous")]
    # Links of other pages lead to the console.
    assert operator.get("/", headers=headers).status_code == 200


def test_console_stays_in_its_origin_and_shares_decide_themselves(operator: Console, console_store: Cairn):
    """Pages, files, refusals, and answers without a valid request. Shares have the header of their own."""
    answers = [operator.get(path) for path in ("/", assets(operator)[0], "/no-such", f"{API}/buckets", f"{API}/no-such", "/session")]
    answers += [operator.get("/", headers={"Host": "evil.example"}), operator.post("/"), Console(console_store).api("/buckets")]
    assert [answer.headers.get("cross-origin-resource-policy") for answer in answers] == ["same-origin"] * len(answers)
    with Connection(LOOPBACK, console_store.console_port) as connection:
        connection.send(b"no request\r\n\r\n")
        assert connection.read_head().all("cross-origin-resource-policy") == ["same-origin"]
    assert "cross-origin-resource-policy" not in operator.get("/robots.txt").headers


def test_every_change_is_refused_without_the_header(operator: Console, console_store: Cairn):
    """All routes that are not GET answer 403 to pages of other sites, and change nothing."""
    expect(console_store.admin.post("/buckets", {"name": "kept-by-the-header"}), 201)
    before = expect(console_store.admin.get("/storage/usage"), 200)
    changes = [(method, path) for method, path in routes(console_store) if method != "GET"]
    for method, path in changes + OWN_ROUTES:
        own = path.replace("no-such-bucket", "kept-by-the-header")
        for headers in ({}, {"Sec-Fetch-Site": "same-origin"}, {"x-service-console": "1"}, OWN_PAGE | {"Sec-Fetch-Site": "cross-site"}):
            response = operator.request(method, own, headers=headers)
            assert (response.status_code, response.json()["error"]["code"]) == (403, "FORBIDDEN"), (method, path, headers)
    assert expect(console_store.admin.get("/storage/usage"), 200) == before
    assert operator.is_signed_in(), "the session was not ended either"


def test_forged_login_sets_no_cookie(console: Console, console_store: Cairn):
    """Another site cannot log a visitor in, with whatever content type a form can send."""
    text = '{"token": "' + console_store.secrets.system_token + '"}'
    for headers in ({"Content-Type": "text/plain", "Sec-Fetch-Site": "cross-site"}, {"Content-Type": "text/plain", "Origin": "null"}):
        response = console.request("POST", "/session", data=text, headers=headers)
        expect_refusal(response, 403, "FORBIDDEN")
        assert "set-cookie" not in response.headers
        assert audited(console_store, response) == [("begin_console_session", "denied", "anonymous")]


@pytest.mark.parametrize("role", ROLES)
def test_every_route_is_as_on_the_management_plane(console_store: Cairn, role: str):
    """Status and error code are the same for each role, and 401 without a session."""
    token = create_token(console_store, role)["token"]
    console, management = signed_in(console_store, token), Management(console_store.management, bearer(token))
    nobody = Console(console_store)

    def outcome(response: requests.Response) -> tuple[int, str]:
        is_error = response.status_code >= 400
        return response.status_code, response.json()["error"]["code"] if is_error else ""

    for method, path in routes(console_store):
        if path.endswith(("/storage/compact", "/storage/inspect", "/storage/backup", "/storage/upgrade")) and method != "GET":
            continue
        assert outcome(console.request(method, path)) == outcome(management.request(method, path.removeprefix(API))), (method, path)
        if role == "auditor":
            assert outcome(nobody.request(method, path)) == (401, "UNAUTHENTICATED"), (method, path)


@pytest.mark.parametrize("path", ["/metrics", "/health", "/ready", "/e/" + "a" * 43, "/index.html", "/assets/", "/assets/main.js", "/api", "/session/", "/uploads/", "/no-such"])
def test_other_paths_are_not_served(operator: Console, path: str):
    """Probes and scrapes belong to the management plane."""
    expect_refusal(operator.get(path), 404, "NOT_FOUND")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "192.0.2.1", "[2001:db8::1]"])
def test_foreign_hosts_are_refused(operator: Console, host: str):
    """A name that was rebound to this address sees neither the page nor the API, with the cookie or without."""
    for path in ("/", "/session", f"{API}/buckets"):
        response = operator.get(path, headers=OWN_PAGE | {"Host": host})
        assert response.status_code == 421 and "console.hosts" in response.text, response.text


def test_configured_hosts_are_served(make_store: Callable[..., Cairn]):
    """Names of console.hosts, literal addresses and localhost; shares are served under any name."""
    store = make_store(SERVICE_CONSOLE_HOSTS="console.example,nas").start()
    console = signed_in(store)
    (own,) = console.cookies.cookies
    port = store.console_port
    for host in ("console.example", "Console.Example:443", "nas", f"localhost:{port}", "127.0.0.1", "[::1]:80"):
        response = console.get("/", headers={"Host": host})
        assert response.status_code == 200, host
        expect(console.get("/session", headers={"Host": host, "Cookie": f"{own.name}={own.value}"}), 200)
        source = "'self'" if "[" in host else f"{host}/assets/"
        assert f"script-src {source};" in response.headers["content-security-policy"]
    assert console.get("/", headers={"Host": "other.example"}).status_code == 421
    expect_refusal(console.get("/s/" + "a" * 43, headers={"Host": "other.example"}), 404, "SHARE_NOT_FOUND")


def test_listener_for_shares_alone(make_store: Callable[..., Cairn]):
    """With console.admin_enabled=false nothing but shares is served."""
    store = make_store(SERVICE_CONSOLE_ADMIN_ENABLED="false").start()
    store.s3.create_bucket("shared")
    store.s3.put("shared", "text.txt", b"for visitors")
    url = expect(store.admin.post("/buckets/shared/object-shares/text.txt", {}), 201)["url"]
    assert url.startswith(f"http://127.0.0.1:{store.console_port}/s/")
    assert requests.get(f"{url}/content", timeout=10).content == b"for visitors"
    console = Console(store)
    for method, path in [("GET", "/"), ("POST", "/session"), ("GET", "/session"), ("GET", f"{API}/buckets"), ("POST", "/uploads"), ("GET", "/assets/x")]:
        response = console.request(method, path, json={"token": store.secrets.system_token} if method == "POST" else None)
        assert response.status_code == 404 and "set-cookie" not in response.headers, (path, response.text)


def assets(console: Console) -> list[str]:
    """Returns the paths of the page's files."""
    return [part for part in console.get("/").text.split('"') if part.startswith("/assets/")]


def test_page_is_protected(console: Console):
    """Scripts and styles come from the files alone, nothing is framed, and nothing leaves the origin."""
    response = console.get("/")
    expected = {
        "content-type": "text/html; charset=utf-8", "cache-control": "no-cache", "vary": "Accept-Encoding",
        "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    assert {name: response.headers.get(name) for name in expected} == expected
    policy = dict(rule.strip().split(" ", 1) for rule in response.headers["content-security-policy"].split(";"))
    authority = console.address.removeprefix("http://")
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == f"{authority}/assets/"
    assert policy["connect-src"] == "'self'" and policy["trusted-types"] == "'none'"
    assert "unsafe" not in response.headers["content-security-policy"]
    assert "style=" not in response.text and "onload" not in response.text


def test_page_is_revalidated_and_files_are_kept(console: Console):
    """An ETag answers 304; the names of the files change with their content."""
    page = console.get("/")
    same = console.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == page.headers["etag"] and "content-security-policy" in same.headers
    assert console.get("/", headers={"If-None-Match": '"other"'}).status_code == 200
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for path in assets(console):
        response = console.get(path)
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"] == types[path.rsplit(".")[-1]]
        assert response.headers["x-content-type-options"] == "nosniff"


def test_files_are_compressed_if_the_client_takes_it(console: Console):
    """Both forms have the same content, and HEAD has the length of GET."""
    for path in ["/", *assets(console)]:
        plain, packed = (console.get(path, headers={"Accept-Encoding": coding}) for coding in ("identity", "gzip"))
        assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
        assert plain.content == packed.content
        head = console.request("HEAD", path, headers={"Accept-Encoding": "gzip"})
        assert head.headers["content-length"] == packed.headers["content-length"] and head.content == b""


def test_files_of_other_versions_do_not_exist(console: Console):
    """404, also for the page itself and for paths that leave the folder."""
    version = assets(console)[0].split("/")[2]
    for path in ("/assets/0123456789abcdef/main.js", f"/assets/{version}/", f"/assets/{version}/index.html", f"/assets/{version}/%2e%2e/main.js",
                 f"/assets/{version}/lib%2Fapi.js", f"/assets/{version}/views/no-such.js"):
        expect_refusal(console.get(path), 404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_files_are_only_read(console: Console, method: str):
    """405 with Allow."""
    for path in ("/", assets(console)[0]):
        response = console.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


def test_tls_makes_the_cookie_secure(make_store: Callable[..., Cairn], tmp_path_factory: pytest.TempPathFactory):
    """Its name has the prefix that browsers accept only from this host over TLS."""
    authority = Authority(tmp_path_factory.mktemp("console-authority"))
    store = make_store(**authority.issue("console").environment()).start()
    console = Console(store)
    console.cookies.verify = str(authority.certificate)
    response = console.post("/session", {"token": store.secrets.system_token})
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-cairn-session-") and cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
    assert console.is_signed_in()
    own = console.address
    by_origin = console.post(f"{API}/buckets", {"name": "x"}, headers={"x-service-console": "1", "Origin": own})
    expect_refusal(by_origin, 400, "INVALID_BUCKET_NAME")
    assert console.get("/").status_code == 200


def test_preview_of_an_upload_stays_in_its_sandbox(operator: Console, console_store: Cairn):
    """Stored HTML is never run in the console's origin."""
    console_store.s3.create_bucket("hostile")
    console_store.s3.put("hostile", "page.html", b"<script>alert(1)</script>", headers=[("Content-Type", "text/html")])
    content = operator.api("/buckets/hostile/object-content/page.html")
    assert "sandbox" in content.headers.get("content-security-policy", "") or content.headers["content-disposition"].startswith("attachment")
    assert content.headers["x-content-type-options"] == "nosniff"
    preview = operator.api("/buckets/hostile/object-preview/page.html")
    assert "sandbox" in preview.headers["content-security-policy"]


def test_unused_session_ends(unused_session: tuple[Console, float]):
    """Runs last: the session was begun before all other tests, with the shortest limit."""
    console, used = unused_session
    time.sleep(max(0.0, used + IDLE_MINUTES * 60 + 0.5 - time.monotonic()))
    expect_refusal(console.get("/session"), 401, "UNAUTHENTICATED")
