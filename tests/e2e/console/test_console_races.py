"""The console when answers come late: after another view was opened, in another order, or while somebody clicks again.

A request is held in the page until the test lets it go, so that each order of events is certain.
"""

import itertools
from datetime import UTC, datetime

from harness.held import held, let_go
from harness.management import expect
from harness.page import Page
from harness.server import Cairn

_numbers = itertools.count()


def leave_for(page: Page, where: str) -> None:
    """Follows a link, without a wait for what it leads to."""
    page.run("async (where) => { location.hash = where; }", where)


def test_view_that_comes_late_does_not_end_the_one_that_is_shown(page: Page, console_store: Cairn, versioned: str, bucket: str):
    """What a bucket had selected is not deleted by a key that is pressed in the next bucket."""
    for name in (versioned, bucket):
        console_store.s3.put(name, "kept.txt", b"x")
    page.go("buckets")
    with held(page, "/batch"):
        leave_for(page, "#/overview")
    page.go("bucket", versioned)
    let_go(page)
    page.element("input", "Select kept.txt")
    page.check("Select kept.txt")
    page.see("1 selected")
    page.go("bucket", bucket)
    page.element("input", "Select kept.txt")
    page.run("async () => document.querySelector('tbody input[type=checkbox]').focus()")
    page.press("Delete")
    page.go("bucket", versioned)
    assert console_store.s3.get(versioned, "kept.txt").status == 200, "the selection of the view before was deleted"


def test_secret_is_shown_although_its_dialog_was_closed(page: Page, console_store: Cairn):
    """The token exists, so the only moment at which it can be read must not be missed."""
    name = f"late {next(_numbers)}"
    page.go("tokens")
    page.click("Create token")
    page.fill("Name", name)
    with held(page, "/management-tokens"):
        page.run("async () => { document.querySelector('dialog[open] button[type=submit]').click(); }")
    page.press("Escape")
    assert page.run("async () => document.querySelector('dialog[open] .actions button').disabled"), "what runs can be cancelled"
    leave_for(page, "#/policies")
    page.wait("async () => document.title.startsWith('Policies')")
    let_go(page)
    page.see("shown only now")
    page.click("Done")
    assert name in [token["name"] for token in expect(console_store.admin.get("/management-tokens"), 200)["management_tokens"]]


def test_two_tags_that_are_removed_at_once_are_both_gone(page: Page, console_store: Cairn, bucket: str):
    """The second change is made from the tags that the first one has left."""
    console_store.s3.put(bucket, "tagged", b"x")
    tags = [{"key": key, "value": "1"} for key in ("first", "second", "third")]
    expect(console_store.admin.put(f"/buckets/{bucket}/object-tags/tagged", {"tags": tags}), 200)
    page.go("object", bucket, "tagged")
    with held(page, "/object-tags/"):
        page.click("Remove tag first")
        page.click("Remove tag second")
    let_go(page)
    page.see("Tag second removed.")
    page.go("buckets")
    page.go("object", bucket, "tagged")
    assert [page.has(f"Remove tag {tag['key']}") for tag in tags] == [False, False, True]


def test_preview_of_a_rule_is_about_the_fields_as_they_are(page: Page, console_store: Cairn, versioned: str):
    """An earlier preview does not delay that of other fields, and its answer is not shown. None stays when a field changes."""
    console_store.s3.put(versioned, "a/old", b"x")
    page.go("lifecycle", versioned)
    page.click("Create rule")
    page.fill("Prefix", "a/")
    page.fill("Remove objects after (days)", "1")
    preview = "async () => { [...document.querySelectorAll('dialog button')].find((one) => one.textContent === 'Preview').click(); }"
    page.run("async () => performance.clearResourceTimings()")
    with held(page, "/lifecycle/preview"):
        page.run(preview)
    page.fill("Prefix", "b/")
    page.run(preview)
    page.see("Now it would remove 0 objects")
    let_go(page)
    answered = "async () => performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/lifecycle/preview')).length === 2"
    page.wait(answered, what="both answers")
    page.see("Now it would remove 0 objects")
    page.fill("Prefix", "c/")
    page.gone("Now it would remove")
    page.press("Escape")


def test_undo_does_not_draw_over_what_is_entered_elsewhere(page: Page, console_store: Cairn, versioned: str):
    """The notice with Undo outlives the view. A form that was begun meanwhile keeps its text."""
    console_store.s3.put(versioned, "undone.txt", b"x")
    page.go("object", versioned, "undone.txt")
    page.act("Delete")
    page.see("Deleted.")
    page.go("policy", "new")
    page.fill("Name", "half a policy")
    page.run("async () => performance.clearResourceTimings()")
    page.click("Undo")
    page.gone("Deleted.")
    answered = "async () => performance.getEntriesByType('resource').some((one) => one.name.endsWith('/undelete') && one.responseEnd > 0)"
    page.wait(answered, what="the answer after which the view could be drawn")
    page.wait("async () => !document.querySelector('main[aria-busy]')")
    assert page.run("async () => [...document.querySelectorAll('main input')].some((one) => one.value === 'half a policy')")
    page.click("Discard")
    page.refusals_are_expected()


def test_second_click_is_no_second_credential(page: Page, console_store: Cairn):
    """Two clicks on the button before the first answer make one."""
    account = expect(console_store.admin.post("/service-accounts", {"name": f"twice-{next(_numbers)}"}), 201)["service_account"]["id"]
    before = len(expect(console_store.admin.get(f"/service-accounts/{account}"), 200)["credentials"])
    page.go("account", account)
    with held(page, "/credentials"):
        page.run("async () => { const add = [...document.querySelectorAll('main button')].find((one) => one.textContent === 'Add credential'); add.click(); add.click(); }")
    let_go(page)
    page.click("Done")
    page.settled()
    assert len(expect(console_store.admin.get(f"/service-accounts/{account}"), 200)["credentials"]) == before + 1


def test_application_whose_secret_nobody_saw_is_taken_back(page: Page, console_store: Cairn, bucket: str):
    """The page was left while it was made: nothing is left of it, and that is said."""
    name = f"left-{next(_numbers)}"
    page.go("connect", bucket=bucket)
    page.fill("Name of the application", name)
    with held(page, "/bindings/"):
        page.click("Create and show the key")
    leave_for(page, "#/buckets")
    page.click("Leave")
    page.wait("async () => document.title.startsWith('Buckets')")
    let_go(page)
    page.see(f"{name} was not connected")
    accounts = expect(console_store.admin.get("/service-accounts"), 200)["service_accounts"]
    assert name not in [account["name"] for account in accounts]


def test_moment_is_chosen_for_the_time_that_is_shown(page: Page, console_store: Cairn, versioned: str):
    """A late answer about a longer time is not drawn over a shorter one."""
    console_store.s3.put(versioned, "x", b"x")
    page.go("bucket", versioned, at=datetime.now(UTC).isoformat().replace("+00:00", "Z"))
    page.element("select", "Time that is shown")
    with held(page, "/changes"):
        page.choose("Time that is shown", "30")
    assert page.run("async () => document.querySelector('.timeline svg').childElementCount") == 0, "old bars under a new scale"
    let_go(page)
    page.wait("async () => document.querySelector('.timeline svg').childElementCount > 0")


def test_failure_that_is_over_is_not_shown_any_longer(page: Page):
    """Nothing has changed since before the failure, and the button that tries again has the focus: the view is drawn all the same."""
    page.go("backups")
    page.see("Nobody has held the store")
    page.run("""async () => {
        const plain = window.fetch;
        window.isAway = true;
        const answer = () => new Response(JSON.stringify({error: {code: "NOT_READY", message: "busy", request_id: "1F"}}), {status: 503});
        window.fetch = async (...values) => (window.isAway && String(values[0]).includes("/storage/backup") ? answer() : plain(...values));
    }""")
    page.wait("""async () => {
        const again = [...document.querySelectorAll("main .problem button")].find((one) => one.textContent === "Try again");
        again?.focus();
        return Boolean(again);
    }""", what="a failed look")
    page.run("async () => { window.isAway = false; }")
    page.run("async () => { document.activeElement.click(); }")
    page.see("Nobody has held the store")
    page.refusals_are_expected()


def test_view_that_is_chosen_while_the_console_starts_is_a_step_of_the_history(page: Page, console_store: Cairn, versioned: str):
    """The Back button returns from a view that was requested before the session was loaded."""
    page.go("buckets")
    source = """const plain = window.fetch; window.fetch = async (...values) => {
        if (String(values[0]).includes("/session")) await new Promise((resolve) => { window.start = resolve; });
        return plain(...values);
    };"""
    script = page.cdp("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
    page.load("#/buckets")
    page.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    page.wait("async () => Boolean(window.start)", what="a start that waits")
    page.run("async (bucket) => { location.hash = `#/bucket/${bucket}`; await new Promise((done) => addEventListener('hashchange', done)); start(); }", versioned)
    page.settled()
    page.see(versioned)
    page.run("async () => history.back()")
    page.wait("async () => location.hash === '#/buckets'", what="the view before")
    page.settled()
    assert page.run("async () => [location.hash, history.state.entry]") == ["#/buckets", 0]
