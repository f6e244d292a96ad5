"""The console in a real Chromium: what it says before something is lost, after a refusal, and when something is wrong."""

import itertools

import pytest

from harness.answers import change_answers
from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

_numbers = itertools.count()


def click_in_dialog(page: Page, name: str) -> None:
    """Clicks the main button of the open dialog; the page behind it has one of the same name."""
    page.run("""async (name) => [...document.querySelectorAll("dialog button[type=submit]")].find((found) => found.textContent === name).click()""", name)


@pytest.mark.parametrize("action", ["Copy", "Move"])
def test_copies_and_moves_ask_before_they_replace(page: Page, console_store: Cairn, bucket: str, action: str):
    """They replaced what was there without a word. The server decides, also about an object that the page does not know."""
    s3 = console_store.s3
    s3.put(bucket, "from.txt", b"new")
    page.go("object", bucket, "from.txt")
    page.act(action) if action == "Copy" else page.click(action)
    page.fill("Key", "to.txt")
    s3.put(bucket, "to.txt", b"old")
    click_in_dialog(page, action)
    page.see("The destination already has an object.")
    assert (s3.get(bucket, "to.txt").body, s3.get(bucket, "from.txt").body) == (b"old", b"new")
    # The answer is about one destination.
    page.check("Replace the object that is there")
    page.fill("Key", "to.tx")
    page.fill("Key", "to.txt")
    click_in_dialog(page, action)
    page.see("The destination already has an object.")
    page.check("Replace the object that is there")
    click_in_dialog(page, action)
    until(lambda: s3.get(bucket, "to.txt").body == b"new", "the object is replaced")
    page.wait("async () => location.hash.endsWith('to.txt')")
    assert s3.get(bucket, "from.txt").status == (404 if action == "Move" else 200)
    page.settled()
    page.refusals_are_expected()


@pytest.mark.parametrize("where", ["buckets", "settings"])
def test_full_bucket_is_deleted_with_what_it_holds(page: Page, console_store: Cairn, bucket: str, where: str):
    """The button did nothing. Now it says what is in the bucket, and deletes that too."""
    s3, admin = console_store.s3, console_store.admin
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    for key in ("a", "a", "b/%2F ü?"):
        s3.put(bucket, key, b"x")
    s3.delete(bucket, "a")
    s3.request("POST", f"/{bucket}/unfinished?uploads")
    page.go(*([where] if where == "buckets" else [where, bucket]))
    page.click(f"Delete bucket {bucket}" if where == "buckets" else "Delete bucket")
    page.see("The bucket is not empty. It holds 1 object, 3 versions, 1 delete marker and 1 unfinished upload.")
    page.fill(f"Type {bucket} to confirm", bucket)
    page.click("Empty and delete")
    page.see(f"Bucket {bucket} is deleted.")
    assert admin.get(f"/buckets/{bucket}").status_code == 404


def test_bucket_that_cannot_be_emptied_stays_with_the_reason(page: Page, console_store: Cairn):
    """A legal hold keeps a version. The dialog stays and says so, in the language of the page."""
    name, s3 = f"held-{next(_numbers)}", console_store.s3
    expect(console_store.admin.post("/buckets", {"name": name, "object_lock": True}), 201)
    s3.put(name, "held", b"x", [("x-amz-object-lock-legal-hold", "ON")])
    page.go("settings", name)
    page.click("Delete bucket")
    page.fill(f"Type {name} to confirm", name)
    page.click("Empty and delete")
    page.see("1 deletion was refused, so the bucket stays")
    page.click("Cancel")
    assert console_store.admin.get(f"/buckets/{name}").status_code == 200
    page.refusals_are_expected()


def test_what_no_view_handles_is_shown(page: Page):
    """A task that failed in the background was lost, so a button seemed to do nothing."""
    page.go("buckets")
    # Browsers do not report failures of scripts that a driver runs, so the report is made here.
    page.run("""async () => {
        const lost = { promise: Promise.resolve(), reason: new Error("nobody handles this"), cancelable: true };
        dispatchEvent(new PromiseRejectionEvent("unhandledrejection", lost));
    }""")
    page.see("nobody handles this")
    page.click("Close")


def test_success_is_not_framed_in_red(page: Page, console_store: Cairn, bucket: str):
    """The result of a verification was in the frame of problems."""
    console_store.s3.put(bucket, "k", b"intact")
    page.go("object", bucket, "k")
    page.act("Verify")
    page.see("Every block was read from the device and matches its check.")
    colours = page.run("""async () => {
        const probe = document.createElement("i");
        document.body.append(probe);
        const colour = (name) => { probe.className = name; return getComputedStyle(probe).color; };
        const found = [getComputedStyle(document.querySelector(".problem")).borderTopColor, colour("bad")];
        probe.remove();
        return found;
    }""")
    assert colours[0] != colours[1]


def test_lost_events_are_shown_with_the_way_back(page: Page, console_store: Cairn):
    """A webhook that had lost events was `ok`, with nothing waiting."""
    hook = {"target_url": "https://example.com/hook", "event_types": ["bucket.deleted"]}
    webhook = expect(console_store.admin.post("/webhooks", hook), 201)["subscription"]["id"]
    assert "lost" not in page.text()
    since, command = "2026-11-21T05:00:00.000Z", f"cairn webhook redeliver {webhook} --since 2026-11-21T05:00:00.000Z"
    change = f"const hook = body.webhooks.find((one) => one.id === '{webhook}');"
    change += f"Object.assign(hook.health, {{ lost: 3, lost_since: '{since}', redeliver_command: '{command}' }});"
    change_answers(page, {"/api/v1/webhooks": change})
    page.go("webhooks")
    page.see("3 events lost")
    page.see(command)
    page.click("Redeliver 3 lost")
    page.see("0 events are sent again.")
    page.load("#/overview")
    page.settled()
    assert console_store.admin.delete(f"/webhooks/{webhook}").status_code == 204


def test_damage_is_shown_in_the_overview(page: Page):
    """It said that the server was ready, and nothing else."""
    change_answers(page, {"/api/v1/system/info": "body.notices = { integrity: 'stored data failed its check' };"})
    page.go("buckets")
    page.go("overview")
    page.see("Stored data failed its check.")
    page.click("Show the damaged objects")
    page.wait("async () => location.hash.includes('show=damage')")
    page.load("#/overview")
    page.settled()


def test_german_pages_have_german_errors(page: Page, console_store: Cairn, bucket: str):
    """They had the server's English message. Where that says more, it follows."""
    with page.in_language("de"):
        page.load("#/bucket/no-such-bucket")
        page.see("Den Bucket gibt es nicht.")
        page.load("#/buckets")
        page.settled()
        page.click("Bucket erstellen")
        page.fill("Name", bucket)
        page.run("async () => document.querySelector('dialog button[type=submit]').click()")
        page.see("Einen Bucket mit diesem Namen gibt es schon.")
        page.fill("Name", "Bad_Name")
        page.run("async () => document.querySelector('dialog button[type=submit]').click()")
        page.see("Der Name ist für einen Bucket nicht gültig. Der Server sagt: ")
    page.refusals_are_expected()


def test_what_was_not_loaded_is_tried_again(page: Page, console_store: Cairn, bucket: str):
    """By itself, after the server was busy. The rest of the page works, and a refusal is not repeated."""
    console_store.s3.put(bucket, "k", b"x")
    page.run("""async () => {
        const send = window.fetch;
        window.isBusy = true;
        window.asked = 0;
        window.fetch = async (target, options) => {
            if (!String(target).includes("/objects?")) return send(target, options);
            window.asked += 1;
            if (!window.isBusy) return send(target, options);
            return new Response(JSON.stringify({ error: { code: "NOT_READY", message: "busy", request_id: "03CD4619A11E7159" } }), { status: 503 });
        };
    }""")
    page.go("bucket", bucket)
    page.wait("async () => /It is tried again in \\d+ s\\./.test(document.body.innerText)", what="a countdown")
    page.see("03CD4619A11E7159")
    assert page.has("Upload files") and page.has("Try again")
    page.run("async () => { window.isBusy = false; }")
    page.element("a", "k")
    assert page.run("async () => window.asked") >= 2
    page.load("#/bucket/no-such-bucket")
    page.see("bucket was not found")
    assert "tried again" not in page.text()
    page.refusals_are_expected()


# Words that no German text has. Names of people's things are not looked at.
FIND_ENGLISH = """async (own) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = node.textContent.trim();
        if (!node.parentElement.checkVisibility() || node.parentElement.closest("code, pre, .commands, textarea, [lang=en]") || own.some((name) => text.includes(name))) continue;
        if (/\\b(the|is|not|and|of|with|for|to|has|are|by|on|from|or|cannot|failed|ok)\\b/i.test(text)) found.push(text);
    }
    return found;
}"""


def test_german_pages_have_no_english_texts(page: Page, console_store: Cairn, versioned: str):
    """Texts of the server were shown as if they were the page's own. They are marked as English, and named."""
    admin, s3 = console_store.admin, console_store.s3
    s3.put(versioned, "k", b"x")
    s3.put(versioned, "k", b"y")
    s3.request("GET", f"/{versioned}?acl")
    hook = expect(admin.post("/webhooks", {"target_url": "https://receiver.invalid/hook", "event_types": ["object.created"]}), 201)["subscription"]["id"]
    admin.post(f"/webhooks/{hook}/test")
    refused = expect(admin.get("/refused-requests"), 200)["refused_requests"][0]["request_id"]
    tabs = [(tab, versioned) for tab in ("deleted", "bucket-access", "lifecycle", "bucket-events", "settings", "bucket")]
    try:
        with page.in_language("de"):
            english = {}
            for place in [("overview",), ("buckets",), ("sharing",), ("public",), ("policies",), ("access",), ("tokens",), ("webhooks",), ("activity",), ("refused",), ("refused", refused), ("storage",), ("backups",),
                          *((("import", {"step": step})) for step in ("source", "plan", "copy", "report")), *tabs, ("object", versioned, "k"), ("bucket", versioned, {"at": "2026-01-01T00:00:00Z"}), ("sessions",)]:
                *parts, last = place
                page.go(*parts, **last) if isinstance(last, dict) else page.go(*place)
                if found := page.run(FIND_ENGLISH, ["test-", "AWS SDK"]):
                    english[str(place)] = found
            assert english == {}
            page.go("refused", refused)
            page.see("Der Server sagt:")
            page.go("object", versioned, "k")
            page.click("Weitere Aktionen")
            page.click("Prüfen")
            page.see("unversehrt")
    finally:
        admin.delete(f"/webhooks/{hook}")
