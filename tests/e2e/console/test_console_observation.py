"""Views of the console about observation: figures over time, refused requests, sessions."""

from harness.accounts import create_account, statement
from harness.console import create_token, signed_in
from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

SAMPLE_SECONDS = 60


def test_overview_draws_figures_over_time(page: Page, console_store: Cairn):
    """Two charts with their legends, a gap before the start, and the same figures as a table."""
    console_store.s3.create_bucket("counted")
    console_store.s3.put("counted", "a", b"x" * 5000)
    until(lambda: sum(expect(console_store.admin.get("/system/metrics/history"), 200)["planes"]["data"]["writes"]) >= 2, "a sample", SAMPLE_SECONDS)
    page.go("overview")
    page.see("Latency")
    charts = page.run("""async () => [...document.querySelectorAll(".chart > svg")].map((chart) => ({
        name: chart.getAttribute("aria-label"), lines: [...chart.querySelectorAll(".line")].map((line) => line.getAttribute("d"))}))""")
    assert [chart["name"].split(":")[0] for chart in charts] == ["Requests", "Latency"]
    first = charts[0]["lines"][0]
    assert first.startswith("M") and float(first[1:].split()[0]) > 300, f"nothing before the server's start: {first}"
    # The values of one moment are shown in all charts, and said.
    page.run("async () => document.querySelector('.chart > svg').focus()")
    page.press("Left")
    said = page.wait("async () => document.querySelector('.history [role=status]')?.textContent", what="the values of a moment")
    assert "Reads" in said and "p99" in said, said
    cursors = page.run("async () => [...document.querySelectorAll('.chart .cursor')].map((line) => line.getAttribute('d'))")
    assert len(set(cursors)) == 1 and cursors[0], cursors
    assert page.violations() == []
    page.click("Figures as a table")
    page.see("Received")
    rows = page.run("async () => [...document.querySelectorAll('details tbody tr')].map((row) => row.innerText)")
    found = expect(console_store.admin.get("/system/metrics/history"), 200)
    assert 1 <= len(rows) <= len(found["time"])
    page.choose("Period", "day")
    page.see("p99")
    assert page.run("async () => document.querySelector('select[aria-label=Period]').value") == "day"
    assert "period=day" in page.run("async () => location.hash")
    page.see("cairn history --period day")


def test_refused_requests_are_grouped_and_explained(page: Page, console_store: Cairn):
    """By client and reason, with counts, down to one request and its audit record."""
    console_store.s3.create_bucket("guarded")
    account = create_account(console_store, name="guarded-reader")
    for _ in range(3):
        response = account.s3.get("guarded", "k", headers=[("User-Agent", "backup-tool/2")])
    page.go("refused")
    page.see("backup-tool/2")
    row = "tr => tr.innerText.includes('backup-tool/2')"
    text = page.run(f"async () => [...document.querySelectorAll('main tbody tr')].find({row}).innerText")
    assert "account:guarded-reader" in text and "AccessDenied" in text and "Attach a policy to account:guarded-reader" in text and "\t3\t" in text
    page.run(f"async () => [...document.querySelectorAll('main tbody tr')].find({row}).querySelector('button').click()")
    page.click(response.get("x-amz-request-id"))
    page.see("no policy of the account allows s3:GetObject on bucket:guarded/*")
    page.see("The account has 0 policies.")
    page.see(f"cairn explain {response.get('x-amz-request-id')}")
    page.click("Look for it in the activity")
    page.see("guarded-reader was refused to read guarded/k")
    assert response.get("x-amz-request-id") in page.run("async () => document.querySelector('main input[type=search]').value")


def test_rule_that_refused_a_request_is_named(page: Page, console_store: Cairn):
    """The statement, with a link to its policy, as long as the policies are the same; a setting with its value."""
    account = create_account(console_store, statement("allow", "GetObject", "bucket:ruled/*"), name="ruled-reader")
    denial = account.grant(statement("deny", "GetObject", "bucket:ruled/no/*"))
    response = account.s3.get("ruled", "no/k")
    page.go("refused", response.get("x-amz-request-id"))
    page.see("statement 1 of policy")
    page.see("bucket:ruled/no/*")
    assert page.run(f"async () => document.querySelectorAll('main dd a[href*=\"{denial}\"]').length") == 1
    account.detach(denial)
    page.go("overview")
    page.go("refused", response.get("x-amz-request-id"))
    page.see("The policies of the account have changed since. Now this allows it:")
    strict = console_store.s3.request("GET", "/ruled?lifecycle")
    page.go("refused", strict.get("x-amz-request-id"))
    page.see("s3.compatibility = strict")
    page.see("what would help: extended")


def test_unknown_refused_request_is_explained(page: Page):
    """The field takes any id."""
    page.go("refused")
    page.fill("Request id", "0000000000000000")
    page.press("Enter")
    page.see("only the last ones since the start are kept")
    page.refusals_are_expected()


def test_administrator_ends_a_session(page: Page, console_store: Cairn):
    """In the view of tokens; the own session is marked."""
    other = signed_in(console_store, create_token(console_store, "storage_admin", name="someone")["token"])
    page.go("tokens")
    page.see("token:someone")
    page.see("this one")
    page.run("async () => [...document.querySelectorAll('main tbody tr')].find(tr => tr.innerText.includes('token:someone')).querySelector('button.danger').click()")
    page.see("signed out at once")
    page.click("End session")
    page.gone("token:someone")
    assert not other.is_signed_in()


def test_auditor_sees_the_own_sessions_and_ends_this_one(page: Page, console_store: Cairn):
    """From the line of the account. Refused requests are there, tokens are not."""
    token = create_token(console_store, "auditor", name="reader of logs")
    elsewhere = signed_in(console_store, token["token"])
    try:
        page.sign_in(token["token"])
        page.see("Refused requests")
        assert not page.has("Tokens")
        page.menu("Sessions")
        page.see("Where this credential is signed in to this console.")
        page.wait("async () => document.querySelectorAll('main tbody tr').length === 2", what="two sessions")
        page.run("async () => [...document.querySelectorAll('main tbody tr')].find(tr => !tr.innerText.includes('this one')).querySelector('button.danger').click()")
        page.see("signed out at once")
        page.click("End session")
        page.wait("async () => document.querySelectorAll('main tbody tr').length === 1")
        until(lambda: not elsewhere.is_signed_in(), "the other session goes on")
        page.click("End session")
        page.see("You will be signed out here.")
        page.click("End session")
        page.wait("async () => document.querySelector('.login')", what="the login")
    finally:
        page.sign_in(console_store.secrets.system_token)


def test_storage_administrator_has_charts_but_no_refused_requests(page: Page, console_store: Cairn):
    """The roles are those of the API."""
    try:
        page.sign_in(create_token(console_store, "storage_admin")["token"])
        page.see("Latency")
        assert not page.has("Refused requests") and not page.has("Who may what")
    finally:
        page.sign_in(console_store.secrets.system_token)
