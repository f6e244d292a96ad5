"""Sign-ins with a provider that answers whatever it wants: every answer that is not valid is refused with its reason."""

import base64
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests

from harness.certificates import Authority
from harness.console import Console, signed_in
from harness.management import TIMEOUT, expect, expect_refusal
from harness.openid import CLIENT_ID, CLIENT_SECRET, LOGOUT, HostileProvider, Visitor, log_out, settings
from harness.server import LOOPBACK, Cairn
from harness.wait import until


def refused(served: Cairn, provider: HostileProvider, **more: str) -> dict:
    """Comes back from the provider, and returns why nobody is signed in."""
    visitor = Visitor(served)
    response = provider.come_back(visitor, **more)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert visitor.session() is None
    return visitor.failure()


def test_a_good_answer_signs_in(served: Cairn, provider: HostileProvider):
    """So that the other tests do not fail for another reason. The exchange has the verifier, the exact URI and the secret."""
    visitor = Visitor(served)
    assert "/authorize?keep=1&response_type=code&" in visitor.begin()
    provider.come_back(visitor)
    assert visitor.session()["principal"] == "person:ada"
    (headers, body), = [(headers, body) for path, headers, body in provider.requests if path == "/token"]
    form = parse_qs(body.decode())
    assert form["redirect_uri"] == [f"{served.console}/sign-in/callback"] and form["code"] == ["a+code"] and len(form["code_verifier"][0]) == 43
    pair = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == f"{CLIENT_ID.replace(' ', '%20')}:{CLIENT_SECRET.replace('+', '%2B').replace('/', '%2F').replace(':', '%3A').replace('=', '%3D')}"


@pytest.mark.parametrize(("claims", "reason"), [
    ({"iss": "http://other.example"}, "not of the issuer"),
    ({"aud": "another"}, "not for the client"),
    ({"aud": [CLIENT_ID, "another"]}, "azp"),
    ({"nonce": "another"}, "another nonce"),
    ({"nonce": None}, "another nonce"),
    ({"exp": int(time.time()) - 100}, "expired"),
    ({"iat": int(time.time()) + 10_000}, "in the future"),
    ({"nbf": int(time.time()) + 10_000}, "not valid yet"),
    ({"sub": None}, "no claim sub"),
    ({"sub": "x" * 256}, "claim sub"),
    ({"sid": "x" * 256}, "claim sid"),
    ({"sid": "a\u202eb"}, "claim sid"),
])
def test_wrong_claims_are_refused(served: Cairn, provider: HostileProvider, claims: dict, reason: str):
    """Each with a sentence that names the claim."""
    provider.claims = claims
    failure = refused(served, provider)
    assert failure["code"] == "SIGN_IN_INVALID" and reason in failure["message"], failure


def test_clocks_may_differ_by_a_minute(served: Cairn, provider: HostileProvider):
    """In both directions."""
    now = int(time.time())
    for claims in ({"exp": now - 30}, {"iat": now + 30, "nbf": now + 30}):
        provider.claims, visitor = claims, Visitor(served)
        provider.come_back(visitor)
        assert visitor.session() is not None, visitor.failure()


def test_wrong_signatures_are_refused(served: Cairn, provider: HostileProvider):
    """Of another key, none at all, and one that is made with the client's secret."""
    good = provider.signed
    provider.signed = lambda message: good(message + b"x")
    assert "signature" in refused(served, provider)["message"]
    for header in ({"alg": "none"}, {"alg": "HS256", "kid": "one"}, {"alg": "RS256", "kid": "unknown"}, {"alg": "ES256", "kid": "one"}, {"typ": "JWT"}):
        provider.header, provider.signed = header, good if header.get("alg") == "RS256" else lambda _: b""
        failure = refused(served, provider)
        assert failure["code"] == "SIGN_IN_INVALID", failure


def test_the_answer_names_its_issuer(served: Cairn, provider: HostileProvider):
    """RFC 9207: with another issuer, the code is not even sent."""
    failure = refused(served, provider, iss="http://other.example")
    assert failure["code"] == "SIGN_IN_INVALID" and "http://other.example" in failure["message"]
    assert not [path for path, _, _ in provider.requests if path == "/token"]
    visitor = Visitor(served)
    provider.come_back(visitor, iss=provider.issuer)
    assert visitor.session() is not None


@pytest.mark.parametrize("name", ["code", "state", "iss", "error", "error_description"])
def test_repeated_parameters_are_refused(served: Cairn, provider: HostileProvider, name: str):
    """RFC 6749, section 3.1: it is not known which of them counts. The sign-in can still be finished."""
    visitor = Visitor(served)
    query = parse_qs(urlsplit(visitor.begin()).query)
    provider.nonce = query["nonce"][0]
    parameters = [("code", "c"), ("state", query["state"][0]), ("iss", provider.issuer)]
    twice = [*parameters, *2 * [(name, dict(parameters).get(name, "x"))]]
    back = lambda parameters: visitor.come_back(f"{served.console}/sign-in/callback?{urlencode(parameters)}")  # noqa: E731
    assert f"the parameter {name} is there twice" in expect_refusal(back(twice), 400, "INVALID_REQUEST")
    assert back([*parameters, ("other", "x"), ("other", "y")]).headers["location"] == "/"
    assert visitor.session() is not None


def test_an_announced_issuer_must_be_there(make_store: Callable[..., Cairn], provider: HostileProvider):
    """The metadata say that answers name it, so one without it may come from elsewhere."""
    provider.metadata = {"authorization_response_iss_parameter_supported": True}
    store = make_store()
    store.extra |= settings(provider.issuer, store.console)
    store.start()
    failure = refused(store, provider)
    assert failure["code"] == "SIGN_IN_INVALID" and "(iss)" in failure["message"]
    visitor = Visitor(store)
    provider.come_back(visitor, iss=provider.issuer)
    assert visitor.session() is not None


@pytest.mark.parametrize(("status", "body", "code", "reason"), [
    (400, b'{"error": "invalid_grant", "error_description": "<i>\\u202eused"}', "SIGN_IN_REFUSED", "refused the sign-in (invalid_grant): <i>\ufffdused"),
    (500, b"oops", "SIGN_IN_UNAVAILABLE", "HTTP status 500"),
    (302, b"", "SIGN_IN_UNAVAILABLE", "HTTP status 302"),
    (200, b"{}", "SIGN_IN_INVALID", "did not answer with an ID token"),
    (200, b'{"id_token": "secret-part', "SIGN_IN_INVALID", "did not answer with an ID token"),
    (200, b'{"id_token": "a.b.c"}', "SIGN_IN_INVALID", "cannot be read"),
    (200, b"[" * 300_000, "SIGN_IN_UNAVAILABLE", "has more than 262144 bytes"),
    (200, b"[" * 200_000, "SIGN_IN_INVALID", "did not answer with an ID token"),
])
def test_wrong_answers_to_the_code(served: Cairn, provider: HostileProvider, status: int, body: bytes, code: str, reason: str):
    """Nothing of a token is in the message."""
    provider.answers["/token"] = status, body
    failure = refused(served, provider)
    assert failure["code"] == code and reason in failure["message"] and "secret-part" not in failure["message"], failure


def test_user_info_of_another_person_is_refused(served: Cairn, provider: HostileProvider):
    """The ID token leaves the groups out, and the endpoint speaks of somebody else."""
    provider.claims = {"groups": None}
    provider.answers["/user"] = 200, json.dumps({"sub": "2", "groups": ["cairn-admins"]}).encode()
    failure = refused(served, provider)
    assert failure["code"] == "SIGN_IN_INVALID" and "another person" in failure["message"]
    # What the ID token says counts more.
    provider.claims = {"preferred_username": None, "groups": ["auditors"]}
    provider.answers["/user"] = 200, json.dumps({"sub": "1", "preferred_username": "joan", "groups": ["cairn-admins"]}).encode()
    visitor = Visitor(served)
    provider.come_back(visitor)
    assert (visitor.session()["role"], visitor.session()["principal"]) == ("auditor", "person:joan")


@pytest.mark.parametrize("answer", [(500, b""), (200, b"eyJhbGciOiJSUzI1NiJ9.e30.AA"), (200, b'{"sub": "2", "preferred_username": "eve"}')])
def test_without_the_user_info_only_the_name_is_missing(served: Cairn, provider: HostileProvider, answer: tuple[int, bytes]):
    """Regression: nobody could sign in whose ID token has the groups and not the name, while the endpoint failed."""
    provider.answers["/user"] = answer
    for email, principal in [("ada@example.com", "person:ada@example.com"), (None, "person:1")]:
        provider.claims, visitor = {"preferred_username": None, "email": email}, Visitor(served)
        provider.come_back(visitor)
        assert (visitor.session() or visitor.failure()).get("principal") == principal
    provider.claims = {"groups": None}
    assert refused(served, provider)["code"] == ("SIGN_IN_UNAVAILABLE" if answer[0] == 500 else "SIGN_IN_INVALID")


@pytest.mark.parametrize(("name", "principal"), [
    ("<script>alert(1)</script>", "person:<script>alert(1)</script>"),
    ("a\u202enimda\r\nx: y", "person:a\ufffdnimda\ufffd\ufffdx: y"),
    ("\u00e4" * 1024, "person:" + "\u00e4" * 64),
    (" ", "person:1"),
    (["root"], "person:1"),
])
def test_hostile_names_are_harmless(served: Cairn, provider: HostileProvider, name: object, principal: str):
    """They are text everywhere, of a limited length."""
    provider.claims = {"preferred_username": name}
    visitor = Visitor(served)
    provider.come_back(visitor)
    assert visitor.session()["principal"] == principal


def test_many_sign_ins_end_their_own_ones(served: Cairn, provider: HostileProvider):
    """The first of more than fifty from one address is not known any more; the server still signs people in."""
    first = Visitor(served)
    state = parse_qs(first.begin())["state"][0]
    for _ in range(50):
        Visitor(served).begin()
    response = first.come_back(f"{served.console}/sign-in/callback?state={state}&code=x")
    assert response.headers["location"] == "/?sign-in=unknown"
    visitor = Visitor(served)
    provider.come_back(visitor)
    assert visitor.session() is not None


def test_other_hosts_lead_to_the_one_of_the_provider(served: Cairn):
    """The cookie would be missing at the host that the provider sends the browser to."""
    response = Console(served).post("/sign-in", headers={"x-service-console": "1", "Sec-Fetch-Site": "same-origin", "Host": f"localhost:{served.console_port}"})
    refusal = expect_refusal(response, 400, "INVALID_REQUEST")
    assert served.console in refusal


@pytest.mark.parametrize(("metadata", "reason"), [
    ({"issuer": "http://other.example"}, "calls itself http://other.example"),
    ({"token_endpoint": "file:///etc/passwd"}, "token_endpoint is not an https URL"),
    ({"code_challenge_methods_supported": ["plain"]}, "S256"),
    ({"jwks_uri": None}, "not the metadata of a provider"),
])
def test_unusable_metadata_are_named(make_store: Callable[..., Cairn], provider: HostileProvider, metadata: dict, reason: str):
    """In the answer and in the log."""
    provider.metadata = metadata
    store = make_store()
    store.extra |= settings(provider.issuer, store.console)
    store.start()
    refusal = expect_refusal(Console(store).post("/sign-in"), 503, "SIGN_IN_UNAVAILABLE")
    assert reason in refusal and reason in store.wait_output(reason)


def test_the_certificate_of_the_provider_is_checked(make_store: Callable[..., Cairn], tmp_path: Path):
    """Against the configured authorities, or else those of the host. Endpoints without TLS are refused then."""
    authority = Authority(tmp_path)
    provider = HostileProvider(authority.issue("provider"))
    for trusted, reason in [({}, "certificate"), ({"CA_FILE": str(authority.certificate)}, None)]:
        store = make_store()
        store.extra |= settings(provider.issuer, store.console, **trusted)
        store.start()
        if reason is not None:
            assert reason in expect_refusal(Console(store).post("/sign-in"), 503, "SIGN_IN_UNAVAILABLE")
            continue
        visitor = Visitor(store)
        provider.come_back(visitor)
        assert visitor.session() is not None, visitor.failure()
    provider.metadata = {"token_endpoint": provider.issuer.replace("https", "http") + "/token"}
    store = make_store()
    store.extra |= settings(provider.issuer, store.console, CA_FILE=str(authority.certificate))
    store.start()
    assert "token_endpoint is not an https URL" in expect_refusal(Console(store).post("/sign-in"), 503, "SIGN_IN_UNAVAILABLE")


def test_a_provider_that_hangs_keeps_nobody_else_waiting(make_store: Callable[..., Cairn]):
    """Threads and queue are bounded, and executors do not wait: tokens work meanwhile."""
    with socket.create_server((LOOPBACK, 0), backlog=64) as silent:
        store = make_store()
        store.extra |= settings(f"http://{LOOPBACK}:{silent.getsockname()[1]}", store.console)
        store.start()
        with ThreadPoolExecutor(100) as pool:
            answers = [pool.submit(lambda: Console(store).post("/sign-in").status_code) for _ in range(100)]
            until(lambda: any(answer.done() for answer in answers))
            assert not all(answer.done() for answer in answers)
            assert signed_in(store).is_signed_in()
            assert not all(answer.done() for answer in answers)
            assert {answer.result() for answer in answers} == {429, 503}
        refusal = expect_refusal(Console(store).post("/sign-in"), 503, "SIGN_IN_UNAVAILABLE")
        assert "did not answer within 10 s" in refusal


def test_a_logout_of_the_provider_ends_the_sessions_that_it_names(served: Cairn, provider: HostileProvider):
    """Of a person, or of one session at the provider. Each token counts once, and the audit trail has who was signed out."""
    def signed_in_as(subject: str, session: str | None) -> Visitor:
        provider.claims = {"sub": subject, "sid": session}
        visitor = Visitor(served)
        provider.come_back(visitor)
        assert visitor.session() is not None
        return visitor

    one, two, unnamed, other = signed_in_as("pat", "a"), signed_in_as("pat", "b"), signed_in_as("pat", None), signed_in_as("kim", "c")
    alive = lambda: [visitor.session() is not None for visitor in (one, two, unnamed, other)]  # noqa: E731
    token = provider.logout_token(sub=None, sid="a")
    response = log_out(served, token)
    assert (response.status_code, response.json(), response.headers["cache-control"]) == (200, {}, "no-store")
    assert alive() == [False, True, True, True]
    one = signed_in_as("pat", "a")
    assert "used before" in expect_refusal(log_out(served, token), 400, "INVALID_REQUEST") and all(alive())
    assert log_out(served, provider.logout_token(sub="pat", sid="b")).status_code == 200
    # For the session that was not named, the person is all that is known.
    assert alive() == [True, False, False, True]
    assert log_out(served, provider.logout_token(sub="pat")).status_code == 200
    assert alive() == [False, False, False, True]
    assert log_out(served, provider.logout_token(sub="nobody")).status_code == 200
    events = expect(served.admin.get("/audit/events", params={"operation": "end_sessions_of_provider", "result": "allowed"}), 200)["events"]
    assert [event["detail"].split(",")[0] for event in events] == [
        "0 sessions ended by the provider", "1 session ended by the provider", "2 sessions ended by the provider", "1 session ended by the provider"
    ]


@pytest.mark.parametrize("named", [{"sub": "quick", "sid": None}, {"sub": None, "sid": "s"}, {"sub": "quick", "sid": "s"}])
def test_a_logout_counts_for_a_sign_in_that_was_begun_before(served: Cairn, provider: HostileProvider, named: dict):
    """Regression: it was lost if it came while the sign-in was being finished."""
    provider.claims = {"sub": "quick", "sid": "s", "preferred_username": "quick"}
    provider.before["/token"] = lambda: expect(log_out(served, provider.logout_token(**named)), 200)
    failure = refused(served, provider)
    assert (failure["code"], failure["message"]) == ("SIGN_IN_REFUSED", "Example has ended your session meanwhile; sign in again")
    (event, *_) = expect(served.admin.get("/audit/events", params={"operation": "finish_sign_in", "result": "denied"}), 200)["events"]
    assert event["detail"].endswith("; subject quick")
    seen = expect(signed_in(served).get("/sessions"), 200)["sessions"]
    assert not [session for session in seen if session["principal"] == "person:quick"]
    provider.before.clear()
    again = Visitor(served)
    provider.come_back(again)
    assert again.session() is not None, "one that is begun afterwards is not concerned"
    expect(log_out(served, provider.logout_token(sub="quick")), 200)


@pytest.mark.parametrize(("claims", "reason"), [
    ({"iss": "http://other.example"}, "not of the issuer"), ({"aud": "another"}, "not for the client"), ({"aud": [CLIENT_ID, "another"]}, "azp"),
    ({"exp": 1_700_000_000}, "expired"), ({"exp": None}, "no claim exp"), ({"iat": 1_700_000_000}, "ago"), ({"iat": 5_000_000_000}, "in the future"),
    ({"iat": None}, "iat"), ({"events": None}, "events"), ({"events": {"http://other.example": {}}}, "events"), ({"events": {LOGOUT: "x"}}, "events"),
    ({"nonce": "n"}, "nonce"), ({"sub": None}, "neither"), ({"sub": 7}, "sub"), ({"sid": ""}, "sid"), ({"jti": None}, "jti"), ({"jti": "x" * 300}, "jti"),
])
def test_wrong_logout_tokens_end_nothing(served: Cairn, provider: HostileProvider, claims: dict, reason: str):
    """Each is refused with a sentence that names the claim."""
    visitor = Visitor(served)
    provider.come_back(visitor)
    message = expect_refusal(log_out(served, provider.logout_token(**claims)), 400, "INVALID_REQUEST")
    assert reason in message and "ID token" not in message, message
    assert visitor.session() is not None


def test_logouts_need_a_signature_of_the_provider(served: Cairn, provider: HostileProvider):
    """Of a published key, as ID tokens do. An ID token is no logout, and a browser of another site gets no further than others."""
    visitor = Visitor(served)
    provider.come_back(visitor)
    good = provider.signed
    assert "not about a logout" in expect_refusal(log_out(served, provider.token()), 400, "INVALID_REQUEST")
    for header in ({"alg": "none"}, {"alg": "HS256", "kid": "one"}, {"alg": "RS256", "kid": "unknown"}, {"alg": "ES256", "kid": "one"}):
        provider.header, provider.signed = header, good if header["alg"] == "RS256" else lambda _: b""
        expect_refusal(log_out(served, provider.logout_token()), 400, "INVALID_REQUEST")
    provider.header, provider.signed = {"alg": "RS256", "kid": "one"}, lambda message: good(message + b"x")
    assert "signature of the logout token" in expect_refusal(log_out(served, provider.logout_token()), 400, "INVALID_REQUEST")
    for token in ("", "x", "a.b.c", "e30.e30.e30"):
        expect_refusal(log_out(served, token), 400, "INVALID_REQUEST")
    assert "logout_token" in expect_refusal(log_out(served, None, other="x"), 400, "INVALID_REQUEST")
    expect_refusal(log_out(served, "x" * 20_000), 413, "PAYLOAD_TOO_LARGE")
    assert requests.get(f"{served.console}/sign-in/logout", timeout=TIMEOUT).headers["allow"] == "POST"
    assert visitor.session() is not None


def test_without_a_provider_there_is_no_logout(make_store: Callable[..., Cairn]):
    """404, as for the rest of the sign-in."""
    expect_refusal(log_out(make_store().start(), "a.b.c"), 404, "NOT_FOUND")
