"""The console in a real Chromium: what people do in it, with a mouse and with the keyboard.

Every test ends with a look at what the browser reports: no error, no violation of the Content-Security-Policy, and no
request to another origin.
"""

import itertools
from contextlib import closing
from pathlib import Path

import pytest
import requests

from harness.accounts import client
from harness.console import Console, create_token
from harness.held import hold_uploads, let_uploads_go
from harness.management import expect
from harness.page import TABS, VIEWS, Page
from harness.receiver import Receiver
from harness.server import Cairn
from harness.wait import until

DIFFICULT_KEYS = [
    "a b.txt", "100%2F.txt", "a+b=c&d.txt", "a#b?c.txt", "double//slash.txt", "up/../down.txt", "./here.txt", "../out.txt", "/leading.txt",
    "trailing/", "emoji-😀/😀.txt", "שלום/עולם.txt", "quotes'\"<b>`.txt", "back\\slash.txt", "new\nline.txt", "percent-%zz%.txt", "e\u0301-é.txt",
    "~!*'();:@&=+$,.txt", "k" * 1024,
]
_numbers = itertools.count()


def fetched(page: Page, url: str) -> str:
    """Returns what the browser gets from a URL, as text."""
    return page.run("async (url) => (await fetch(url)).text()", url)


def test_wrong_token_is_refused_and_the_right_one_opens_the_console(page: Page, console_store: Cairn):
    """The form takes a token that was pasted with a line break, and keeps what the user was looking at."""
    page.sign_out()
    page.load("#/buckets")
    page.see("Sign in with the root credential")
    assert page.focused() == "Token", "nobody has to look for the field"
    page.fill("Token", "wrong")
    page.click("Sign in")
    page.see("is wrong")
    page.fill("Token", console_store.secrets.system_token + "\n")
    page.wait("async () => document.querySelector('h1')?.textContent === 'Buckets'")
    page.load()
    page.settled()
    assert "Overview" in page.text(), "the session outlives a reload"


def test_root_signs_in_and_out(page: Page, console_store: Cairn):
    """The form for the root credential is folded away."""
    page.go("buckets")
    page.menu("Sign out")
    page.click("Sign in with the root credential")
    page.fill("Access key", console_store.secrets.root_access_key)
    page.fill("Secret key", console_store.secrets.root_secret_key)
    page.click("Sign in")
    page.settled()
    page.see("root\nSystem administrator")
    page.load()
    page.settled()
    page.menu("Sign out")
    page.see("Sign in with the root credential")
    assert page.run("async () => (await fetch('/session')).status") == 204
    page.sign_in(console_store.secrets.system_token)


def test_request_that_outlives_the_session_asks_for_no_login(page: Page, console_store: Cairn):
    """A request of the view was answered after the user had signed out.

    Its dialog covered the form. Who signed in there was left with a form that was of no use any more.
    """
    page.run("""async () => {
        const send = window.fetch;
        window.late = {};
        const answered = new Promise((resolve) => { window.late.answer = resolve; });
        window.fetch = async (path, options) => {
            if (path !== "/api/v1/buckets") return send(path, options);
            window.fetch = send;
            window.late.isHeld = true;
            await answered;
            const response = await send(path, options);
            window.late.status = response.status;
            return response;
        };
        location.hash = "#/buckets";
    }""")
    page.wait("async () => window.late.isHeld", what="a request that is held")
    page.menu("Sign out")
    page.see("Sign in with the root credential")
    page.run("async () => window.late.answer()")
    assert page.wait("async () => window.late.status", what="a late answer") == 401
    page.fill("Token", console_store.secrets.system_token)
    page.click("Sign in")
    page.settled()
    page.see("System administrator")
    assert not page.run("async () => Boolean(document.querySelector('dialog'))")


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "public"])
def test_view_opens_by_its_link(page: Page, view: str):
    """The title of the page follows, the link is marked, and the focus is not lost."""
    name = {"refused": "Refused requests", "accounts": "Applications", "access": "Who may what"}.get(view, view.capitalize())
    page.go("storage" if view != "storage" else "overview")
    page.click(name)
    page.wait("async (view) => location.hash === `#/${view}`", view)
    page.settled()
    title, current, lost = page.run("""async () => [
        document.title, document.querySelector("[aria-current=page]")?.textContent, document.activeElement === document.body]""")
    # An empty store has a welcome in place of the overview.
    assert title in (f"{name} · Cairn", f"{'Welcome to Cairn' if view == 'overview' else name} · Cairn") and current == name
    assert not lost, "a keyboard user would have to begin at the top again"


def test_unknown_places_are_explained(page: Page):
    """A bucket, object or account that does not exist, and a URL that is not one of the console."""
    for where in (("bucket", "no-such-bucket"), ("object", "no-such-bucket", "k"), ("account", "x"), ("webhooks", "x"), ("settings", "no-such-bucket")):
        page.go(*where)
        page.wait("async () => document.querySelector('main [role=alert]')", what=f"an explanation for {where}")
    page.run("async () => { location.hash = '#/object/b/%zz?prefix=%'; }")
    page.wait("async () => document.querySelector('main h1, main .problem')")
    page.go("overview")
    page.refusals_are_expected()


def test_create_bucket_upload_download_delete(page: Page, console_store: Cairn, tmp_path: Path, run_folder: Path):
    """The first minutes with the console."""
    page.go("buckets")
    page.click("Create bucket")
    page.fill("Name", "Bad_Name")
    page.click("Create bucket")
    page.wait("async () => document.querySelector('dialog .bad')?.textContent", what="a reason in the dialog")
    page.refusals_are_expected()
    page.fill("Name", "holiday-photos")
    page.click("Create bucket")
    page.see("No objects yet.")
    names = ["beach day.txt", "100%2F+#.txt", "emoji 😀.txt", "שלום.txt"]
    for name in names:
        (tmp_path / name).write_text(f"content of {name}")
    page.upload("Files to upload", *(tmp_path / name for name in names))
    page.see(f"{len(names)} files uploaded")
    for name in names:
        page.element("a", name)
        stored = console_store.s3.get("holiday-photos", name)
        assert stored.body.decode() == f"content of {name}" and stored.get("content-type") == "text/plain"
    page.click("Close")
    page.click("Download beach day.txt")
    saved = run_folder / "test_console_browser/downloads/beach day.txt"
    until(saved.exists, "the download")
    assert saved.read_text() == "content of beach day.txt"
    page.check("Select beach day.txt")
    page.see("1 selected")
    page.click("Delete")
    page.see("cannot be undone")
    page.click("Delete 1 object")
    page.see("1 object deleted.")
    page.gone("beach day.txt")
    assert console_store.s3.get("holiday-photos", "beach day.txt").status == 404


def test_folder_of_files_is_uploaded(page: Page, console_store: Cairn, bucket: str, tmp_path: Path):
    """Keys are the paths below the prefix. More than a hundred files, because browsers list a hundred at a time."""
    for number in range(110):
        file = tmp_path / "album" / f"disc {number % 3}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(number))
    page.go("bucket", bucket, prefix="music/")
    page.see("Nothing begins with this prefix.")
    page.upload("Folder to upload", tmp_path / "album")
    page.see("110 files uploaded", seconds=120)
    keys = set(console_store.s3.list_all(bucket))
    assert keys == {f"music/album/disc {number % 3}/{number}.txt" for number in range(110)}
    page.click("album/")
    page.click("disc 1/")
    page.element("a", "100.txt")
    page.click("Close")


def test_uploads_ask_before_they_replace(page: Page, console_store: Cairn, bucket: str, tmp_path: Path):
    """Once for all names that exist: keep both, replace, leave out. They failed one by one, in the sheet."""
    files = []
    for name in ("kept.txt", "other.tar.gz", "new.txt"):
        file = tmp_path / name
        file.write_text("new")
        files.append(file)
    for key in ("kept.txt", "kept (2).txt", "other.tar.gz"):
        console_store.s3.put(bucket, key, b"old")

    def stored(key: str) -> bytes:
        return console_store.s3.get(bucket, key).body

    def upload(choice: str, action: str) -> None:
        page.upload("Files to upload", *files)
        page.see("2 of 3 names exist already")
        page.run("async (choice) => document.querySelector(`dialog[open] input[value=${choice}]`).click()", choice)
        assert page.violations() == []
        page.click(action)

    page.go("bucket", bucket)
    page.upload("Files to upload", *files)
    page.see("The old content is lost: no versions are kept.")
    page.click("Cancel")
    upload("leave", "Upload 1 file")
    until(lambda: stored("new.txt") == b"new", "the third file")
    page.see("1 file uploaded")
    assert (stored("kept.txt"), stored("other.tar.gz")) == (b"old", b"old")
    assert console_store.s3.delete(bucket, "new.txt").status == 204
    upload("both", "Upload 3 files")
    page.see("3 files uploaded")
    assert [stored(key) for key in ("kept.txt", "kept (2).txt", "kept (3).txt", "other.tar.gz", "other.tar (2).gz")] == [b"old", b"old", b"new", b"old", b"new"]
    assert console_store.s3.delete(bucket, "new.txt").status == 204
    upload("replace", "Upload 3 files")
    # The same number of files was uploaded before, so the sentence may be the earlier one.
    until(lambda: [stored(key) for key in ("kept.txt", "other.tar.gz", "new.txt")] == [b"new"] * 3, "the files are uploaded")
    page.see("3 files uploaded")
    assert stored("kept (2).txt") == b"old"
    page.click("Close")


def test_name_that_appears_meanwhile_is_asked_for(page: Page, console_store: Cairn, bucket: str, tmp_path: Path):
    """The page looked before it sent; somebody else was quicker. The server refuses, and the sheet asks."""
    file = tmp_path / "late.txt"
    file.write_text("new")
    page.go("bucket", bucket)
    hold_uploads(page)
    page.upload("Files to upload", file)
    page.wait("async () => window.heldUploads.length > 0", what="a request that waits")
    console_store.s3.put(bucket, "late.txt", b"old")
    let_uploads_go(page)
    page.see("1 name exists already")
    assert console_store.s3.get(bucket, "late.txt").body == b"old"
    page.click("Decide")
    page.see("1 name exists already in")
    page.click("Upload 1 file")
    page.see("1 file uploaded")
    assert [console_store.s3.get(bucket, key).body for key in ("late.txt", "late (2).txt")] == [b"old", b"new"]
    page.refusals_are_expected()
    page.click("Close")


def links(page: Page) -> dict[str, str]:
    """Returns the links of the list, as the text and the fragment."""
    return dict(page.run("async () => [...document.querySelectorAll('main tbody td:nth-child(2) a')].map((link) => [link.textContent, link.getAttribute('href')])"))


def test_difficult_names(page: Page, console_store: Cairn, bucket: str):
    """Each key is found by following links, shown, downloaded, and deleted."""
    for key in DIFFICULT_KEYS:
        console_store.s3.put(bucket, key, f"content of {key}".encode())
    page.go("bucket", bucket)
    todo, found = [f"#/bucket/{bucket}"], set()
    while todo:
        page.follow(todo.pop())
        for where in links(page).values():
            (todo.append if where.startswith("#/bucket/") else found.add)(where)
    assert len(found) == len(DIFFICULT_KEYS), found
    contents = set()
    for where in found:
        page.follow(where)
        assert page.has("Download"), where
        address = page.run("async () => [...document.querySelectorAll('main a.button[download]')][0].getAttribute('href')")
        contents.add(fetched(page, address))
        page.see("This object is not shared.")
    assert contents == {f"content of {key}" for key in DIFFICULT_KEYS}
    for where in found:
        page.follow(where)
        page.act("Delete")
        page.click("Delete object")
        page.wait("async (where) => location.hash !== where", where)
    assert list(console_store.s3.list_all(bucket)) == []
    page.refusals_are_expected()


def test_delete_is_undone_on_a_versioned_bucket(page: Page, console_store: Cairn, versioned: str):
    """Nothing is asked before, because nothing is lost."""
    for key in ("a.txt", "b.txt", "c.txt"):
        console_store.s3.put(versioned, key, key.encode())
    page.go("bucket", versioned)
    page.check("Select all shown")
    page.see("3 selected")
    page.click("Delete")
    page.see("3 objects deleted.")
    page.see("No objects yet.")
    page.click("Undo")
    page.element("a", "b.txt")
    assert console_store.s3.get(versioned, "b.txt").body == b"b.txt"
    page.click("b.txt")
    page.settled()
    page.act("Delete")
    page.see("delete marker")
    assert console_store.s3.get(versioned, "b.txt").status == 404
    page.click("Undelete")
    page.gone("delete marker")
    assert console_store.s3.get(versioned, "b.txt").body == b"b.txt"
    page.refusals_are_expected()


def test_old_version_is_restored(page: Page, console_store: Cairn, versioned: str):
    """It becomes the current one. A version can be deleted permanently."""
    for text in (b"first", b"second"):
        console_store.s3.put(versioned, "letter.txt", text, headers=[("Content-Type", "text/plain")])
    page.go("object", versioned, "letter.txt")
    page.see("second")
    page.click("Restore")
    page.see("The version is current again.")
    page.wait("async () => document.querySelector('.preview pre')?.textContent === 'first'")
    assert console_store.s3.get(versioned, "letter.txt").body == b"first"
    page.wait("async () => document.querySelectorAll('.life .stone-of').length === 3", what="three versions")


def test_share_with_a_password(page: Page, console_store: Cairn, bucket: str):
    """The link opens for a visitor with the password, and no more after it was revoked."""
    console_store.s3.put(bucket, "plan.txt", b"the plan", headers=[("Content-Type", "text/plain")])
    page.go("object", bucket, "plan.txt")
    page.click("Share")
    page.fill("Label", "for Ada")
    page.fill("Password", "open sesame")
    page.click("Create link")
    page.see("The link is ready")
    url = page.run("async () => document.querySelector('dialog input[readonly]').value")
    page.click("Done")
    page.see("for Ada")
    visitor = requests.get(url, headers={"Accept": "text/html"}, timeout=10)
    assert visitor.status_code == 200 and "plan.txt" not in visitor.text
    unlock = requests.post(f"{url}/unlock", json={"password": "open sesame"}, timeout=10).json()["unlock_token"]
    assert requests.get(f"{url}/content", headers={"x-service-unlock": unlock}, timeout=10).content == b"the plan"
    page.browser.open(url)
    page.run("""async () => {
        const field = document.querySelector("input[type=password]");
        field.value = "open sesame";
        field.form.requestSubmit();
    }""")
    page.see("plan.txt")
    assert page.violations() == []
    page.load(f"#/object/{bucket}/plan.txt")
    page.settled()
    page.click("Revoke")
    page.click("Revoke link")
    page.see("revoked")
    assert requests.get(f"{url}/content", headers={"x-service-unlock": unlock}, timeout=10).status_code == 410
    page.go("sharing")
    assert "for Ada" not in page.text()
    page.choose("Status", "")
    page.see("for Ada")


def test_embed(page: Page, console_store: Cairn, bucket: str):
    """Origins that are not ones are refused in the form."""
    console_store.s3.put(bucket, "picture.png", b"\x89PNG\r\n\x1a\n", headers=[("Content-Type", "image/png")])
    page.go("object", bucket, "picture.png")
    page.act("Embed")
    page.fill("Allowed origins", "not an origin")
    page.click("Create embed")
    page.wait("async () => document.querySelector('dialog .bad')?.textContent", what="a reason in the dialog")
    page.fill("Allowed origins", "https://www.example.com\nhttps://example.com")
    page.click("Create embed")
    page.see("The embed is ready")
    url = page.run("async () => document.querySelector('dialog input[readonly]').value")
    page.click("Done")
    assert requests.get(url, headers={"Origin": "https://example.com"}, timeout=10).content == b"\x89PNG\r\n\x1a\n"
    assert requests.get(url, headers={"Origin": "https://evil.example"}, timeout=10).status_code == 403
    page.refusals_are_expected()


def test_account_and_policy(page: Page, console_store: Cairn, bucket: str):
    """The secret is shown once and works with the policy. The audit trail shows what was done."""
    page.go("policies")
    page.click("Create policy")
    page.settled()
    page.fill("Name", "may read")
    page.check("Read")
    page.fill("Bucket or folder of statement 1", f"{bucket}/*")
    page.press("Enter")
    page.see(f"This allows to read: all objects in {bucket}.")
    page.click("Create policy")
    page.see("1 policy")
    page.go("accounts")
    page.click("Create account")
    page.fill("Name", "backup")
    page.fill("Description", "of the laptop")
    page.click("Create account")
    page.see("New credential")
    keys = page.run("async () => [...document.querySelectorAll('dialog input[readonly]')].map((field) => field.value)")
    page.click("Done")
    page.see("No policies: every request is refused.")
    page.click("Attach a policy")
    page.click("Attach")
    page.gone("No policies: every request is refused.")
    account = client(console_store, {"access_key": keys[0], "secret_key": keys[1]})
    console_store.s3.put(bucket, "k", b"readable")
    assert account.get(bucket, "k").body == b"readable"
    assert keys[1] not in page.text()
    page.go("activity", show="rights")
    for sentence in ("system created the policy may read", "system created the application backup", "system attached the policy may read"):
        page.see(sentence)
    page.fill("Text anywhere", "create_policy")
    page.gone("created the application")
    page.see("system created the policy may read")


def test_webhook(page: Page, console_store: Cairn, bucket: str):
    """Created, tested, and its deliveries shown."""
    with closing(Receiver()) as receiver:
        page.go("webhooks")
        page.click("Create webhook")
        page.fill("Address", receiver.url)
        page.fill("Only this bucket", bucket)
        page.click("Create webhook")
        page.see("It is shown only now.")
        page.click("Done")
        page.click("Test")
        page.see("The test event was delivered (HTTP 204).")
        page.click("Done")
        console_store.s3.put(bucket, "noticed.txt", b"x")

        def delivered() -> list[str]:
            asked = {"status": "succeeded", "details": "true"}
            return [one.get("object") for one in expect(console_store.admin.get("/webhook-deliveries", params=asked), 200)["deliveries"]]

        # The list stays as it was read while it has the focus.
        until(lambda: "noticed.txt" in delivered(), "the delivery")
        page.click("Deliveries")
        page.settled()
        page.see("noticed.txt")
        page.see("Delivered")


def test_lifecycle_rule_with_preview(page: Page, console_store: Cairn, bucket: str):
    """The preview changes nothing. The rule can be changed and deleted."""
    console_store.s3.put(bucket, "tmp/x", b"x")
    page.go("lifecycle", bucket)
    page.click("Create rule")
    page.fill("Prefix", "tmp/")
    page.fill("Remove objects after (days)", "30")
    page.click("Preview")
    page.see("Now it would remove 0 objects")
    assert expect(console_store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"] == []
    page.click("Create rule")
    page.see("objects after 30 days")
    page.click("Change")
    page.fill("Remove objects after (days)", "7")
    # An equals sign in a key is written %3D, as on the command line.
    page.fill("Tags", "kind=temporary\na%3Db=c=d\n")
    page.click("Save")
    page.see("objects after 7 days")
    page.see("a%3Db=c=d")
    (rule,) = expect(console_store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"]
    assert rule["tags"] == [{"key": "kind", "value": "temporary"}, {"key": "a=b", "value": "c=d"}]
    page.click("Change")
    page.fill("Remove objects after (days)", "8")
    page.click("Save")
    page.see("objects after 8 days")
    page.click("Create rule")
    page.fill("Abort unfinished uploads after (days)", "1")
    page.click("Preview")
    page.see("Now it would remove 0 objects")
    page.click("Create rule")
    page.see("unfinished uploads after 1 day")
    uploads = expect(console_store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"][1]
    assert (uploads["abort_incomplete_multipart_upload"], uploads["expiration"]) == (1, None)
    expect(console_store.admin.delete(f"/lifecycle-rules/{uploads['id']}"), 204)
    page.go("lifecycle", bucket)
    page.see("objects after 8 days")
    assert expect(console_store.admin.get(f"/buckets/{bucket}/lifecycle"), 200)["rules"][0]["tags"] == rule["tags"]
    page.click("Delete")
    page.click("Delete rule")
    page.see("No rules.")


def test_settings_of_a_bucket(page: Page, console_store: Cairn, bucket: str):
    """Versions, quota, and deletion with the name typed."""
    page.go("settings", bucket)
    page.click("Keep old versions")
    page.click("Keep old versions")
    page.element("button", "Suspend versions")
    page.click("Change quota")
    page.fill("Size limit", "2.5")
    page.click("Save")
    page.see("2.5 GB")
    quota = expect(console_store.admin.get(f"/buckets/{bucket}"), 200)["quota"]
    assert quota["bytes"] == {"mode": "limit", "bytes": 2_500_000_000}, quota
    page.click("Delete bucket")
    page.fill(f"Type {bucket} to confirm", "another-name")
    page.click("Delete bucket")
    page.see("The name does not match.")
    page.fill(f"Type {bucket} to confirm", bucket)
    page.click("Delete bucket")
    page.see(f"Bucket {bucket} is deleted.")
    assert console_store.admin.get(f"/buckets/{bucket}").status_code == 404
    page.refusals_are_expected()


def test_token_is_created_and_deleted(page: Page, console_store: Cairn):
    """It is shown once, and works."""
    page.go("tokens")
    page.click("Create token")
    page.fill("Name", "for Grace")
    page.choose("Role", "storage_admin")
    page.click("Create token")
    page.see("It is shown only now.")
    token = page.run("async () => document.querySelector('dialog input[readonly]').value")
    page.click("Done")
    assert Console(console_store).log_in(token)["role"] == "storage_admin"
    page.see("for Grace")
    page.click("Delete")
    page.click("Delete token")
    page.gone("for Grace")


def test_auditor_sees_no_control_that_changes(page: Page, console_store: Cairn, bucket: str):
    """Refused controls are absent, on every view."""
    console_store.s3.put(bucket, "seen.txt", b"x")
    expect(console_store.admin.post(f"/buckets/{bucket}/object-shares/seen.txt", {}), 201)
    accounts = expect(console_store.admin.post("/service-accounts", {"name": "seen by auditors", "description": ""}), 201)
    page.sign_in(create_token(console_store, "auditor")["token"])
    allowed = {"Search or jump", "Copy the endpoint", "Columns", "Filter", "Name", "Size", "Modified", "As of: now", "Inspect", "Check", "Copy command", "Show more", "Close", "Try again", "Deliveries", "Copy key", "Copy address",
               "Follow live", "Everything", "Deletions", "Refused", "Sign-ins", "Sharing", "Rights and keys", "Settings", "Damage and repair", "Details", "Attempts", "Search on"}
    places = [*((view,) for view in VIEWS if view != "tokens"), ("bucket", bucket), ("object", bucket, "seen.txt"), ("settings", bucket), *((tab, bucket) for tab in TABS), ("account", accounts["service_account"]["id"])]
    for place in places:
        page.go(*place)
        page.wait("async () => !document.querySelector('[aria-busy]')")
        shown = page.run("async () => [...document.querySelectorAll('button, input[type=checkbox], input[type=file]')].filter((element) => element.checkVisibility() && !element.closest('label')?.hidden).map((element) => element.getAttribute('aria-label') ?? element.textContent)")
        assert set(shown) <= allowed, (place, shown)
        assert "FORBIDDEN" not in page.text() and not page.run("async () => Boolean(document.querySelector('main [role=alert]'))"), place
    assert not page.has("Tokens") and page.has("Applications")
    page.sign_in(create_token(console_store, "storage_admin")["token"])
    assert not page.has("Policies") and not page.has("Applications")
    page.sign_in(console_store.secrets.system_token)
