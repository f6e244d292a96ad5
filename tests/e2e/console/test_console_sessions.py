"""Sessions of the console: who sees which, and ends them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.console import Console, create_token, signed_in
from harness.management import expect, expect_refusal
from harness.server import LOOPBACK, Cairn


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with the console."""
    return make_module_store().start()


def sessions(console: Console) -> list[dict]:
    """Returns the sessions that a session sees."""
    return expect(console.get("/sessions"), 200)["sessions"]


def test_list_describes_sessions_without_their_cookies(served: Cairn):
    """The address, the browser and the times, and no part of the cookie or its hash."""
    console = Console(served)
    console.cookies.headers["User-Agent"] = "A browser " + "x" * 1000
    console.log_in()
    own = sessions(console)[0]
    assert own["is_current"] and own["principal"] == "system" and own["role"] == "system_admin" and own["source_ip"] == LOOPBACK
    assert own["user_agent"].startswith("A browser x") and len(own["user_agent"]) == 256
    assert own["created_at"] <= own["last_used_at"] < own["expires_at"]
    (cookie,) = console.cookies.cookies
    text = console.get("/sessions").text
    assert cookie.value not in text and all(cookie.value[at:at + 8] not in text for at in range(0, len(cookie.value) - 8, 8))


def test_everybody_sees_only_the_sessions_of_the_same_credential(served: Cairn):
    """Tokens with the same name are not the same person. A system administrator sees all."""
    auditor, namesake = create_token(served, "auditor"), create_token(served, "auditor")
    mine, also_mine, others = signed_in(served, auditor["token"]), signed_in(served, auditor["token"]), signed_in(served, namesake["token"])
    assert [session["is_current"] for session in sessions(mine)] == [True, False]
    (of_other,) = sessions(others)
    expect_refusal(mine.delete(f"/sessions/{of_other['id']}"), 404, "SESSION_NOT_FOUND")
    assert others.is_signed_in()
    ended = next(session["id"] for session in sessions(mine) if not session["is_current"])
    expect(mine.delete(f"/sessions/{ended}"), 204)
    assert not also_mine.is_signed_in() and mine.is_signed_in()
    admin = signed_in(served)
    seen = {session["id"] for session in sessions(admin)}
    assert {of_other["id"], sessions(mine)[0]["id"]} <= seen
    expect(admin.delete(f"/sessions/{of_other['id']}"), 204)
    assert not others.is_signed_in()
    expect_refusal(admin.delete(f"/sessions/{of_other['id']}"), 404, "SESSION_NOT_FOUND")


def test_end_of_a_session_is_audited(served: Cairn):
    """With the session's principal and address, and who ended it."""
    other = signed_in(served, create_token(served, "storage_admin")["token"])
    (session,) = sessions(other)
    admin = signed_in(served)
    expect(admin.delete(f"/sessions/{session['id']}"), 204)
    (event,) = expect(served.admin.get("/audit/events", params={"operation": "end_session_by_id", "resource": session["id"]}), 200)["events"]
    assert (event["principal"], event["result"], event["detail"]) == ("system", "allowed", f"of token:a storage_admin, begun from {LOOPBACK}")


def test_own_session_can_be_ended_by_its_id(served: Cairn):
    """The cookie is removed, too."""
    console = signed_in(served)
    response = console.delete(f"/sessions/{next(session['id'] for session in sessions(console) if session['is_current'])}")
    assert response.status_code == 204 and "Max-Age=0" in response.headers["set-cookie"]
    assert not console.is_signed_in()


def test_logins_with_one_token_end_no_session_of_another(served: Cairn):
    """Regression: a thousand logins of an auditor ended the sessions of everybody. Its own oldest one ends."""
    admin, auditor = signed_in(served), create_token(served, "auditor")["token"]
    first, second = signed_in(served, auditor), signed_in(served, auditor)

    def log_in(_: int) -> None:
        Console(served).log_in(auditor)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(log_in, range(49)))
        assert not first.is_signed_in() and second.is_signed_in()
        list(pool.map(log_in, range(1001)))
    assert admin.is_signed_in()
    assert len([session for session in sessions(admin) if session["principal"] == "token:a auditor"]) >= 50


def test_sessions_need_a_session_and_a_page_of_the_console(served: Cairn):
    """Neither a token nor another page of the same host gets them, and the management plane does not have them."""
    token = {"Authorization": f"Bearer {served.secrets.system_token}"}
    assert Console(served).get("/sessions", headers=token).status_code == 401
    assert served.admin.get("//sessions").status_code == 404
    console = signed_in(served)
    own = sessions(console)[0]["id"]
    assert console.delete(f"/sessions/{own}", headers={"Origin": "http://127.0.0.1:1"}).status_code == 403
    assert console.is_signed_in()
    for wrong in ("x", own[1:], own + "0", "%zz"):
        assert console.delete(f"/sessions/{wrong}").status_code == 404


def test_sessions_of_a_deleted_token_are_not_listed(served: Cairn):
    """They have ended, although nobody has used them since."""
    token = create_token(served, "auditor")
    other = signed_in(served, token["token"])
    (session,) = sessions(other)
    admin = signed_in(served)
    expect(served.admin.delete(f"/management-tokens/{token['management_token']['id']}"), 204)
    assert session["id"] not in {listed["id"] for listed in sessions(admin)}
