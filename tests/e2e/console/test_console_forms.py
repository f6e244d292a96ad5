"""Forms of the console in a real Chromium: unsaved input, refusals under their fields, and long lists to come back to."""

import pytest

from harness.accounts import create_account, statement
from harness.console import signed_in
from harness.management import expect
from harness.page import Page
from harness.server import Cairn

QUESTION = "Leave without saving?"
ROWS = 1300
# Type and value of what was typed in a field that refuses it, whether it has the focus, and what is said below it.
REFUSED = """async () => {
    const field = document.querySelector("[aria-invalid=true]");
    return field && [field.name, document.activeElement === field, field.closest(".field, .entry, .chip-row").querySelector(".refused").textContent];
}"""


def hash_of(page: Page) -> str:
    """Returns the fragment of the page."""
    return page.run("async () => location.hash")


def leave(page: Page, where: str = "#/buckets") -> None:
    """Follows a link, and does not wait."""
    page.run("async (where) => { location.hash = where; }", where)


def asks_once(page: Page, value: str) -> None:
    """Leaving asks: to stay keeps the view and what was typed, to leave goes on and asks no more."""
    before = hash_of(page)
    leave(page)
    page.see(QUESTION)
    # The browser goes back while the question is already shown.
    page.wait("async (before) => location.hash === before", before, what="the URL of the view that is kept")
    page.run("async () => [...document.querySelectorAll('dialog[open] button')].at(-2).click()")
    page.gone(QUESTION)
    assert hash_of(page) == before
    assert page.run("async (value) => [...document.querySelectorAll('input')].some((input) => input.value === value)", value)
    leave(page)
    page.see(QUESTION)
    page.wait("async (before) => location.hash === before", before, what="the URL of the view that is kept")
    page.click("Leave")
    page.wait("async () => location.hash === '#/buckets' && document.querySelector('h1').textContent === 'Buckets'", what="the other view")
    assert page.run("async () => document.querySelectorAll('dialog[open]').length") == 0


def open_metadata(page: Page, bucket: str) -> None:
    """Opens the form of the metadata of an object."""
    page.go("object", bucket, "a.txt")
    page.run("async () => [...document.querySelectorAll('.card')].find((card) => card.querySelector('h2')?.textContent === 'Metadata').querySelector('button').click()")
    page.element("input", "Content type")


def test_unsaved_metadata_is_asked_for(page: Page, console_store: Cairn, bucket: str):
    """It was lost without a word. Nothing is asked when nothing was changed."""
    console_store.s3.put(bucket, "a.txt", b"x")
    open_metadata(page, bucket)
    page.go("buckets")
    assert not page.has("Leave")
    open_metadata(page, bucket)
    page.fill("Content type", "text/x-typed")
    asks_once(page, "text/x-typed")
    open_metadata(page, bucket)
    page.fill("Content type", "text/x-typed")
    page.run("async () => history.back()")
    page.see(QUESTION)
    page.wait("async () => location.hash.startsWith('#/object/')", what="the URL of the view that is kept")
    page.click("Leave")
    page.wait("async () => location.hash === '#/buckets'", what="the view before")
    open_metadata(page, bucket)
    page.fill("Content type", "text/x-saved")
    page.run("async () => document.querySelector('form.inline-form button[type=submit]').click()")
    page.wait("async () => document.querySelector('main').textContent.includes('text/x-saved') && !document.querySelector('form.inline-form')", what="the saved type")
    page.go("buckets")
    assert not page.has("Leave")


def test_unsaved_forms_are_asked_for(page: Page, bucket: str):
    """An application, a lifecycle rule in its dialog, and a policy."""
    page.go("connect")
    page.go("buckets")
    page.go("connect")
    page.fill("Name of the application", "typed-and-left")
    asks_once(page, "typed-and-left")
    page.go("lifecycle", bucket)
    page.click("Create rule")
    page.fill("Prefix", "typed/")
    asks_once(page, "typed/")
    page.go("policy", "new", bucket=bucket)
    page.go("buckets")
    page.go("policy", "new", bucket=bucket)
    page.fill("Name", "typed policy")
    asks_once(page, "typed policy")


def test_a_dialog_without_input_closes_with_its_view(page: Page, bucket: str):
    """It stayed over the next view, and acted on the last one."""
    page.go("lifecycle", bucket)
    page.click("Create rule")
    page.go("buckets")
    assert page.run("async () => document.querySelectorAll('dialog').length") == 0


def test_a_dialog_that_is_closed_is_gone_at_once(page: Page, bucket: str):
    """It stayed in the page until the next frame, which a tab in the background does not draw."""
    page.go("lifecycle", bucket)
    page.click("Create rule")
    left = page.run("""async () => {
        [...document.querySelectorAll("dialog button")].find((one) => one.textContent === "Cancel").click();
        return document.querySelectorAll("dialog").length;
    }""")
    assert left == 0


def test_a_refusal_is_under_its_field(page: Page, console_store: Cairn, bucket: str):
    """The field is marked and has the focus until something else is typed. What is about no field is at the foot."""
    create_account(console_store, name="taken-name")
    page.go("accounts")
    page.click("Create account")
    page.fill("Name", "taken-name")
    page.press("Enter")
    name, focused, text = page.wait(REFUSED, what="the refusal")
    assert (name, focused) == ("name", True) and "name" in text
    assert page.violations() == []
    page.press("2")
    page.wait("async () => !document.querySelector('[aria-invalid], .refused')", what="no mark")
    page.press("Escape")
    page.go("connect")
    page.fill("Name of the application", "an-application")
    page.fill("Name of the bucket", "Not A Bucket")
    page.click("Create and show the key")
    assert page.wait(REFUSED, what="the refusal")[:2] == ["bucket", True]
    leave(page, "#/policy/new")
    page.click("Leave")
    page.settled()
    page.fill("Name", "half a policy")
    page.fill("Bucket or folder of statement 1", f"{bucket}/a*b")
    page.press("Enter")
    page.check("Read")
    page.click("Create policy")
    assert page.wait(REFUSED, what="the refusal")[:2] == ["resources", True]
    page.refusals_are_expected()
    page.click("Discard")
    page.settled()


def test_a_list_comes_back_to_its_place(page: Page, console_store: Cairn, bucket: str):
    """From an object: with the pages that were loaded, and the row where it was."""
    console = signed_in(console_store)
    for number in range(ROWS):
        expect(console.put(f"/api/v1/buckets/{bucket}/object/k{number:05}", b""), 201)
    page.go("bucket", bucket)
    rows = "async () => Number(document.querySelector('main table').getAttribute('aria-rowcount'))"
    page.wait(f"""async () => {{
        scrollTo(0, document.documentElement.scrollHeight);
        return await ({rows})() === {ROWS + 1} && [...document.querySelectorAll('tr[data-row] a')].some((link) => link.textContent === 'k01200');
    }}""", what="all pages")
    place = "async () => [...document.querySelectorAll('tr[data-row] a')].find((link) => link.textContent === 'k01200')?.getBoundingClientRect().top"
    page.run("async () => [...document.querySelectorAll('tr[data-row] a')].find((link) => link.textContent === 'k01200').scrollIntoView({block: 'center'})")
    # Rows around it are drawn meanwhile and may move it.
    page.run("async () => addEventListener('click', ({target}) => { window.clicked = target.getBoundingClientRect().top; }, {capture: true, once: true})")
    page.click("k01200")
    before = page.run("async () => window.clicked")
    page.wait("async () => location.hash.startsWith('#/object/')", what="the object")
    page.settled()
    assert page.run("async () => scrollY") == 0
    page.run("async () => history.back()")
    page.wait(f"async (top) => Math.abs(await ({place})() - top) < 2", before, what="the row at its place")
    assert page.run(rows) == ROWS + 1 and page.focused() == "k01200"
    page.go("buckets")
    page.go("bucket", bucket)
    assert page.run("async () => scrollY") == 0, "a link begins at the top"


def test_deleting_a_policy_names_who_has_it(page: Page, console_store: Cairn, bucket: str):
    """Before it is confirmed; a policy that nobody has says so."""
    account = create_account(console_store, statement("allow", "GetObject", f"bucket:{bucket}/*"), name="has <b>it</b>")
    policy = expect(console_store.admin.get(account.path), 200)["policies"][0]
    free = expect(console_store.admin.post("/policies", {"name": "of nobody", "statements": [statement("allow", "GetObject", f"bucket:{bucket}/*")]}), 201)
    page.go("policies")
    press = "async (name) => [...[...document.querySelectorAll('main tr')].find((row) => row.querySelector('a')?.textContent === name).querySelectorAll('button')].at(-1).click()"
    page.run(press, policy["name"])
    page.see("It is attached to these accounts.")
    assert page.run("async () => [...document.querySelectorAll('dialog li')].map((one) => one.textContent)") == ["has <b>it</b>"]
    page.click("Delete policy")
    page.wait("async () => document.querySelector('dialog .bad')?.textContent", what="the refusal")
    page.refusals_are_expected()
    page.click("Cancel")
    page.run(press, free["name"])
    page.see("No account and no group has it.")
    page.click("Delete policy")
    page.wait("async () => !document.querySelector('dialog') && !document.querySelector('main').textContent.includes('of nobody')", what="the policy is gone")


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [768, 1024])
def test_nothing_scrolls_sideways_beside_the_rail(page: Page, console_store: Cairn, versioned: str, width: int, language: str):
    """Tables of links and webhooks did. Names are long."""
    key = "inbox/" + "x" * 300
    console_store.s3.put(versioned, key, b"x")
    expect(console_store.admin.post(f"/buckets/{versioned}/object-shares/{key}", {"label": "l" * 60}), 201)
    expect(console_store.admin.post("/webhooks", {"target_url": f"http://127.0.0.1:9/{'hook' * 20}", "event_types": ["object.created"], "bucket_filter": versioned}), 201)
    sideways = """async () => [document.documentElement, ...document.querySelectorAll("main *")]
        .filter((element) => element.checkVisibility() && !element.closest(".tabs, pre, textarea, .hidden"))
        .filter((element) => element.scrollWidth > element.clientWidth + 1)
        .filter((element) => element === document.documentElement || ["auto", "scroll"].includes(getComputedStyle(element).overflowX))
        .map((element) => element.className || element.tagName)"""
    page.resize(width, 900)
    with page.in_language(language):
        wrong = {}
        for place in [("sharing",), ("webhooks",), ("public",), ("buckets",), ("accounts",), ("policies",), ("tokens",), ("activity",), ("bucket", versioned), ("deleted", versioned), ("bucket-access", versioned), ("object", versioned, key)]:
            page.go(*place)
            if found := page.run(sideways):
                wrong[place[0]] = found
        assert wrong == {}
