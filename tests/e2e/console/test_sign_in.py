"""People sign in to the console through a certified OpenID provider, with requests and in a real Chromium."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from harness.console import Console, signed_in
from harness.management import API, TIMEOUT, expect, expect_refusal
from harness.openid import CLIENT_SECRET, Provider, Visitor, settings
from harness.page import Page, console_browser, start_with_console
from harness.server import Cairn
from harness.wait import until


@pytest.fixture(scope="module")
def provider(run_folder: Path) -> Iterator[Provider]:
    """The provider of all tests here. It does not run before the first server does."""
    made = Provider(run_folder / "openid-provider")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn], provider: Provider) -> Cairn:
    """A server that was started while its provider was down."""
    store = make_module_store()
    provider.consoles.append(store.console)
    store.extra |= settings(provider.issuer, store.console)
    start_with_console(store)
    refusal = expect_refusal(Console(store).post("/sign-in"), 503, "SIGN_IN_UNAVAILABLE")
    assert refusal.startswith(f"Example cannot be asked now: {provider.issuer}/.well-known/openid-configuration")
    assert "people cannot sign in with OpenID" in store.wait_output("people cannot sign in")
    provider.start()
    # A failure is remembered for a few seconds.
    until(lambda: Console(store).post("/sign-in").status_code == 200)
    return store


def audited(store: Cairn, **filters: str) -> list[dict]:
    """Returns audit events, the newest first."""
    return expect(store.admin.get("/audit/events", params=filters), 200)["events"]


def test_without_a_provider_nothing_is_there(make_store: Callable[..., Cairn]):
    """Neither a button nor a route."""
    console = Console(make_store().start())
    assert (console.get("/sign-in").status_code, console.get("/sign-in").content) == (204, b"")
    assert console.post("/sign-in").status_code == 404
    assert console.get("/sign-in/callback?state=x&code=y", headers={}).status_code == 404
    assert signed_in(console.store).get("/session").json().keys() == {"role", "principal", "expires_at"}


@pytest.mark.parametrize(("name", "role"), [("ada", "system_admin"), ("sam", "storage_admin"), ("olga", "auditor")])
def test_people_have_the_role_of_their_group(served: Cairn, name: str, role: str):
    """In the session, in what they may do, and in the audit trail."""
    visitor = Visitor(served)
    response = visitor.sign_in(name)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    session = visitor.session()
    assert (session["role"], session["principal"]) == (role, f"person:{name}")
    own = expect(visitor.console.api("/auth/session"), 200)
    assert own == {"role": role, "principal": f"person:{name}", "authentication": "openid"}
    assert visitor.console.post(f"{API}/buckets", {"name": f"of-{name}"}).status_code == (201 if role != "auditor" else 403)
    events = audited(served, principal=f"person:{name}")
    assert {(event["operation"], event["result"]) for event in events} >= {("finish_sign_in", "allowed")}
    assert all(event["role"] == role and f"subject {name}" in event["detail"] for event in events)
    assert visitor.failure() is None


def test_cookies_are_of_one_browser_and_one_sign_in(served: Cairn):
    """Lax for the way back, strict afterwards; nothing of the sign-in stays."""
    visitor = Visitor(served)
    url = visitor.begin()
    (pending,) = [cookie for cookie in visitor.browser.cookies if "sign-in" in cookie.name]
    assert pending.name.startswith("cairn-sign-in-") and pending.path == "/" and pending.has_nonstandard_attr("HttpOnly")
    assert pending.get_nonstandard_attr("SameSite") == "Lax"
    assert "code_challenge_method=S256" in url and pending.value not in url
    visitor.come_back(visitor.log_in(url, "ada"))
    names = [cookie.name for cookie in visitor.browser.cookies if cookie.name.startswith("cairn-")]
    assert len(names) == 1 and names[0].startswith("cairn-session-")


def test_two_tabs_of_a_browser_sign_in(served: Cairn):
    """In any order, and also after one of them has failed. The cookie has at most the last four that have not ended."""
    visitor = Visitor(served)
    first, second, refused, last = (visitor.begin() for _ in range(4))

    def begun() -> int:
        return sum(len(cookie.value.split(".")) for cookie in visitor.browser.cookies if "sign-in" in cookie.name)

    def finish(url: str, name: str) -> str:
        for cookie in [cookie for cookie in visitor.browser.cookies if not cookie.name.startswith("cairn-")]:
            visitor.browser.cookies.clear(cookie.domain, cookie.path, cookie.name)
        return visitor.come_back(visitor.log_in(url, name)).headers["location"]

    assert begun() == 4
    assert finish(second, "ada") == "/"
    assert visitor.session()["principal"] == "person:ada" and begun() == 3
    assert finish(refused, "eve") == "/"
    assert visitor.failure()["code"] == "SIGN_IN_REFUSED"
    assert visitor.failure() is None
    assert begun() == 2
    assert finish(first, "ada") == "/" and begun() == 1
    for _ in range(4):
        visitor.begin()
    assert begun() == 4
    assert finish(last, "ada") == "/?sign-in=unknown"


@pytest.mark.parametrize(("name", "words"), [
    ("eve", 'no value of the claim "groups" gives eve a role here'),
    ("max", 'Example sent no claim "groups" for max'),
])
def test_without_a_role_nobody_is_signed_in(served: Cairn, name: str, words: str):
    """The page says which claim is missing or wrong, once; groups that only look alike give nothing."""
    visitor = Visitor(served)
    assert visitor.sign_in(name).headers["location"] == "/"
    assert visitor.session() is None
    failure = visitor.failure()
    assert failure["code"] == "SIGN_IN_REFUSED" and failure["message"].startswith(words)
    assert visitor.failure() is None
    (event, *_) = audited(served, operation="finish_sign_in", result="denied")
    assert event["principal"] == "anonymous" and words in event["detail"] and event["detail"].endswith(f"; subject {name}")


def test_a_sign_in_is_finished_once_and_by_its_browser(served: Cairn):
    """A replay, another browser, a wrong state and none are refused. None of these ends a sign-in that waits."""
    visitor, thief = Visitor(served), Visitor(served)
    url = visitor.log_in(visitor.begin(), "ada")
    waiting = thief.begin()
    for somebody, tried in [(thief, url), (Visitor(served), url), (visitor, url.replace("state=", "state=x")), (visitor, url.split("?")[0])]:
        assert somebody.come_back(tried).headers["location"] == "/?sign-in=unknown"
        assert somebody.session() is None
    assert visitor.come_back(url).headers["location"] == "/"
    assert visitor.session() is not None
    assert visitor.come_back(url).headers["location"] == "/?sign-in=unknown"
    assert visitor.session() is not None, "a replay does not end the session either"
    thief.come_back(thief.log_in(waiting, "olga"))
    assert thief.session()["principal"] == "person:olga"


def test_only_a_navigation_comes_back(served: Cairn):
    """Not what a page of another site loads, and nobody else begins a sign-in."""
    visitor = Visitor(served)
    url = visitor.log_in(visitor.begin(), "ada")
    for fetched in ({"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}):
        assert visitor.browser.get(url, headers={"Sec-Fetch-Site": "cross-site"} | fetched, allow_redirects=False).status_code == 403
    assert visitor.come_back(url).headers["location"] == "/"
    for headers in ({}, {"x-service-console": "1", "Sec-Fetch-Site": "cross-site"}):
        assert visitor.console.post("/sign-in", headers=headers).status_code == 403


def test_a_person_may_give_up_at_the_provider(served: Cairn):
    """The page says what the provider says."""
    visitor = Visitor(served)
    state = visitor.begin().split("&state=")[1].split("&")[0]
    issuer = served.extra["SERVICE_CONSOLE_OPENID_ISSUER"]
    parameters = {"state": state, "iss": issuer, "error": "access_denied", "error_description": "<b>no</b>\u202e\n" + "x" * 1000}
    response = visitor.browser.get(f"{served.console}/sign-in/callback", params=parameters, allow_redirects=False)
    assert response.headers["location"] == "/"
    failure = visitor.failure()
    assert failure["code"] == "SIGN_IN_REFUSED" and failure["message"].startswith("Example refused the sign-in (access_denied): <b>no</b>\ufffd\ufffdxxx")
    assert len(failure["message"]) < 300


def test_signing_out_everywhere_ends_the_sessions_of_one_person(served: Cairn):
    """Also of that person under other roles, and not those of somebody with the same name."""
    first, second, namesake = Visitor(served), Visitor(served), Visitor(served)
    for visitor, name in [(first, "ada"), (second, "ada"), (namesake, "another-ada")]:
        visitor.sign_in(name)
    assert namesake.session()["principal"] == first.session()["principal"] == "person:ada"
    token = signed_in(served)
    seen = expect(namesake.console.get("/sessions"), 200)["sessions"]
    assert [session["is_current"] for session in seen] == [True], "equal names are not one person"
    expect(first.console.delete("/sessions"), 204)
    assert first.session() is None and second.session() is None
    assert namesake.session() is not None and token.is_signed_in()
    (event, *_) = audited(served, operation="end_own_sessions")
    assert event["principal"] == "person:ada" and event["result"] == "allowed" and "subject ada" in event["detail"]
    assert not [cookie for cookie in first.browser.cookies if cookie.name.startswith("cairn-session")]


def test_a_sign_in_ends_the_session_that_the_browser_had(served: Cairn):
    """Regression: it went on without a cookie to end it. Browsers do not send its strict cookie on the way back."""
    visitor, witness = Visitor(served), signed_in(served)
    visitor.console.log_in()
    url = visitor.log_in(visitor.begin(), "olga")
    (earlier,) = [cookie for cookie in visitor.browser.cookies if cookie.name.startswith("cairn-session")]
    visitor.browser.cookies.clear(earlier.domain, earlier.path, earlier.name)
    before = len(expect(witness.get("/sessions"), 200)["sessions"])
    visitor.come_back(url)
    assert visitor.session()["principal"] == "person:olga"
    assert len(expect(witness.get("/sessions"), 200)["sessions"]) == before
    visitor.console.log_in()
    assert len(expect(witness.get("/sessions"), 200)["sessions"]) == before, "a login with a token does the same"


def test_signing_out_offers_the_page_of_the_provider(served: Cairn, provider: Provider):
    """With the way back."""
    visitor = Visitor(served)
    visitor.sign_in("sam")
    url = visitor.session()["sign_out_url"]
    assert url.startswith(f"{provider.issuer}/session/end?") and "post_logout_redirect_uri=http%3A%2F%2F127.0.0.1" in url
    page = visitor.browser.get(url)
    assert page.status_code == 200 and "sign-out" in page.text.lower()


def test_a_logout_at_the_provider_ends_the_session_here(served: Cairn, provider: Provider):
    """The provider tells it by itself (Back-Channel Logout). Another browser of the same person stays signed in."""
    left, staying = Visitor(served), Visitor(served)
    for visitor in (left, staying):
        visitor.sign_in("olga")
    url = left.session()["sign_out_url"]
    page = left.browser.get(url, timeout=TIMEOUT).text
    action, secret = re.search(r'<form[^>]*action="([^"]+)"', page)[1], re.search(r'name="xsrf" value="([^"]+)"', page)[1]
    answer = left.browser.post(urljoin(url, action), data={"xsrf": secret, "logout": "yes"}, allow_redirects=False, timeout=TIMEOUT)
    assert answer.status_code == 303, answer.text
    until(lambda: left.session() is None, lambda: (provider.folder / "provider.log").read_text(errors="replace")[-2000:])
    assert staying.session()["principal"] == "person:olga"
    (event,) = audited(served, operation="end_sessions_of_provider")
    assert event["result"] == "allowed" and event["detail"].startswith("1 session ended by the provider, subject olga, session ")


def test_shares_say_who_made_them(served: Cairn):
    """By the name of the person."""
    visitor = Visitor(served)
    visitor.sign_in("sam")
    bucket = "shares-of-sam"
    expect(visitor.console.post(f"{API}/buckets", {"name": bucket}), 201)
    assert served.s3.put(bucket, "report", b"x").status == 200
    response = visitor.console.post(f"{API}/buckets/{bucket}/object-shares/report", {})
    assert response.status_code == 201, response.text
    (share,) = expect(served.admin.get("/shares", params={"bucket": bucket}), 200)["shares"]
    assert share["created_by"] == "person:sam"


def test_new_keys_of_the_provider_are_found(served: Cairn, provider: Provider):
    """A rotation needs nobody; while the provider is down, the page says so."""
    visitor = Visitor(served)
    url = visitor.log_in(visitor.begin(), "ada")
    provider.stop()
    assert visitor.come_back(url).headers["location"] == "/"
    failure = visitor.failure()
    assert failure["code"] == "SIGN_IN_UNAVAILABLE" and f"{provider.issuer}/token" in failure["message"]
    provider.start()

    def signs_in() -> bool:
        other = Visitor(served)
        other.sign_in("ada")
        return other.session() is not None or "does not publish" not in other.failure()["message"]

    # The keys are read again at most every 10 s.
    until(signs_in)
    other = Visitor(served)
    other.sign_in("ada")
    assert other.session() is not None, other.failure()


def test_claims_of_the_user_info_count(make_store: Callable[..., Cairn], run_folder: Path):
    """A provider that leaves groups out of the ID token sends them there."""
    provider = Provider(run_folder / "openid-user-info", in_id_token=False)
    store = make_store()
    provider.consoles.append(store.console)
    try:
        provider.start()
        store.extra |= settings(provider.issuer, store.console)
        store.start()
        visitor = Visitor(store)
        visitor.sign_in("sam")
        assert (visitor.session() or visitor.failure()).get("role") == "storage_admin"
    finally:
        provider.stop()


def test_secrets_are_in_no_output(served: Cairn):
    """Neither the client's secret nor codes, states or verifiers."""
    visitor = Visitor(served)
    url = visitor.log_in(visitor.begin(), "ada")
    visitor.come_back(url)
    output = served.output()
    code, state = (url.split(f"{name}=")[1].split("&")[0] for name in ("code", "state"))
    assert all(secret not in output for secret in (CLIENT_SECRET, code, state))


def sign_in_again_in_another_tab(page: Page) -> None:
    """The session ends while the page is open. What waits for it goes on when the person has signed in elsewhere."""
    first = page.browser.read("window")
    page.sign_out()
    page.run("async () => { location.hash = '#/buckets'; }")
    page.see("Sign in with Example in a new tab")
    second = page.browser.call("window/new", type="tab")["handle"]
    page.browser.call("window", handle=second)
    page.load()
    # The provider knows the person.
    page.click("Sign in with Example")
    page.see("person:olga")
    page.browser.call("window", handle=first)
    page.run("async () => { dispatchEvent(new Event('focus')); }")
    page.wait("async () => !document.querySelector('dialog')")
    page.settled()


def test_people_sign_in_in_a_browser(served: Cairn, provider: Provider, run_folder: Path):
    """The provider is another site than the console. The way leads back to where the person was, and out again."""
    with console_browser(run_folder / "sign-in-browser") as browser:
        page = Page(browser, served.console)
        page.load("#/storage")
        page.see("or with a token")
        assert page.violations() == []
        page.click("Sign in with Example")
        page.wait("async (issuer) => location.href.startsWith(issuer)", provider.issuer)
        page.run("""async () => {
            document.querySelector("[name=login]").value = "olga";
            document.querySelector("[name=password]").value = "any";
            setTimeout(() => document.querySelector("form").submit());
        }""")
        page.wait("async () => document.querySelector('[name=prompt]')?.value === 'consent'")
        page.run("async () => { setTimeout(() => document.querySelector('form').submit()); }")
        page.see("person:olga")
        page.settled()
        assert page.run("async () => location.href") == f"{served.console}/#/storage"
        sign_in_again_in_another_tab(page)
        page.menu("Sessions")
        page.settled()
        page.see("Sign out everywhere")
        page.menu("Sign out")
        page.see("You are still signed in at the provider.")
        assert page.has("Sign out there, too")
        page.browser.open(f"{served.console}/sign-in/callback?state=x&code=y")
        page.see("This sign-in took too long")
        assert page.run("async () => location.search") == ""

