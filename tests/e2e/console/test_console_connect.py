"""Connecting an application in the console, in a real Chromium: what is made, what is pasted, and how it is undone."""

import itertools

import pytest

from harness.accounts import client
from harness.cli import Cli
from harness.management import expect
from harness.page import Page
from harness.server import Cairn
from harness.wait import until

_numbers = itertools.count()
CLIENTS = ["aws-cli", "boto3", "javascript", "rclone", "restic", "nextcloud", "immich"]


def keys_of(page: Page) -> dict[str, str]:
    """Returns the keys that the page shows once."""
    shown = page.run("async () => Object.fromEntries([...document.querySelectorAll('main .copy')].map((one) => [one.querySelector('label').textContent, one.querySelector('input').value]))")
    return {"access_key": shown["Access key"], "secret_key": shown["Secret key"]}


def cli(store: Cairn) -> Cli:
    """The command line of the server."""
    return Cli(store.management, store.secrets.system_token)


def choose(page: Page, group: str, value: str) -> None:
    """Chooses a card."""
    page.run("async (group, value) => document.querySelector(`input[type=radio][name=${group}][value=\"${value}\"]`).click()", group, value)


def test_a_request_that_works_after_a_refusal_counts(page: Page, console_store: Cairn):
    """The page says why the first one was refused, and then that a later one arrived."""
    page.go("accounts")
    page.click("Connect an application")
    page.settled()
    choose(page, "client", "boto3")
    page.fill("Name of the application", "second-try")
    page.fill("Name of the bucket", "second-try-files")
    page.click("Create and show the key")
    page.see("Waiting for its first request")
    s3 = client(console_store, keys_of(page))
    assert s3.request("PUT", "/another-bucket/a", body=b"x").status == 403
    page.see("Refused")
    # The use of a key is noted once in a second.
    def works() -> bool:
        return s3.put("second-try-files", "a", b"x").status == 200 and "The first request arrived" in page.text()

    until(works, "the page says that it arrived")


def test_application_gets_all_that_it_needs(page: Page, console_store: Cairn):
    """A new bucket, an account, a policy and a key, which work; the page says when the first request arrived."""
    page.go("accounts")
    page.click("Connect an application")
    page.settled()
    choose(page, "client", "nextcloud")
    choose(page, "rights", "read-only")
    page.see("Nextcloud needs the right: Read and write.")
    choose(page, "rights", "read-write")
    page.gone("Nextcloud needs the right")
    page.fill("Name of the application", "cloud")
    page.fill("Name of the bucket", "cloud-files")
    page.fill("Size limit", "2.5")
    page.see("Bucket cloud-files")
    page.click("Create and show the key")
    page.see("cloud is ready to connect")
    page.see("Waiting for its first request")
    assert page.violations() == []
    keys = keys_of(page)
    bucket = expect(console_store.admin.get("/buckets/cloud-files"), 200)
    assert bucket["versioning"] == "Enabled" and bucket["quota"]["bytes"] == {"mode": "limit", "bytes": 2_500_000_000}
    s3 = client(console_store, keys)
    s3.put("cloud-files", "a", b"x")
    assert s3.get("cloud-files", "a").body == b"x"
    page.see("The first request arrived")
    # The command line finds the same application.
    found = cli(console_store).json("app", "create", "cloud", "--bucket", "cloud-files")
    assert found["changed"] is False and found["access_key"] == keys["access_key"]
    block = page.run("async () => document.querySelector('main pre').textContent")
    assert "'bucket' => 'cloud-files'" in block and keys["secret_key"] in block


@pytest.mark.parametrize("name", CLIENTS)
def test_block_to_paste_is_that_of_the_command_line(page: Page, console_store: Cairn, name: str):
    """The settings of the console and of `cairn app create` are the same, but for the keys."""
    bucket = f"settings-{name}"
    page.go("connect")
    choose(page, "client", name)
    page.fill("Name of the application", f"console-{name}")
    page.fill("Name of the bucket", bucket)
    page.click("Create and show the key")
    page.see("is ready to connect")
    keys = keys_of(page)
    blocks = page.run("async () => [...document.querySelectorAll('main pre')].map((one) => one.textContent)")
    made = cli(console_store).json("app", "create", f"cli-{name}", "--bucket", bucket, "--client", name)
    wanted = [block["text"] if "text" in block else "\n".join(block["lines"]) for block in made["client"]["settings"]]
    wanted = [text.replace(made["access_key"], keys["access_key"]).replace(made["secret_key"], keys["secret_key"]).replace(f"cli-{name}", f"console-{name}").strip() for text in wanted]
    assert [block.strip() for block in blocks[:-1]] == wanted


def test_everything_is_undone(page: Page, console_store: Cairn):
    """With the keyboard alone. Nothing is left, and the same name can be used again."""
    page.go("connect")
    page.tab_to("Name of the application")
    page.press("short-lived")
    page.tab_to("Name of the bucket")
    page.press("short-lived-files")
    page.tab_to("Create and show the key")
    page.press("Enter")
    page.see("short-lived is ready to connect")
    page.tab_to("Undo")
    page.press("Enter")
    page.see("if the bucket is still empty")
    page.tab_to("Undo")
    page.press("Enter")
    page.see("All of it was removed.")
    assert console_store.admin.get("/buckets/short-lived-files").status_code == 404
    names = [one["name"] for kind in ("service_accounts", "policies") for one in expect(console_store.admin.get(f"/{kind.replace('_', '-')}"), 200)[kind]]
    assert "short-lived" not in names


def test_failed_connection_leaves_nothing(page: Page, console_store: Cairn, bucket: str):
    """An account with this name exists: the policy and the bucket that were made before are removed again."""
    name = f"taken-{next(_numbers)}"
    expect(console_store.admin.post("/service-accounts", {"name": name, "description": ""}), 201)
    page.go("connect")
    page.fill("Name of the application", name)
    page.fill("Name of the bucket", f"{bucket}-new")
    page.click("Create and show the key")
    page.wait("async () => document.querySelector('main [role=alert]')?.textContent", what="a reason")
    assert console_store.admin.get(f"/buckets/{bucket}-new").status_code == 404
    assert name not in [policy["name"] for policy in expect(console_store.admin.get("/policies"), 200)["policies"]]
    page.refusals_are_expected()
    page.click("Cancel")
    page.click("Leave")
    page.settled()


def test_folder_of_an_existing_bucket(page: Page, console_store: Cairn, bucket: str):
    """The policy names only the folder, and create-only cannot replace."""
    console_store.s3.put(bucket, "elsewhere", b"x")
    page.go("connect", bucket=bucket)
    choose(page, "rights", "create-only")
    page.fill("Name of the application", "writer")
    page.fill("Only in this folder", "inbox/")
    page.see(f"inbox/ in {bucket}")
    page.click("Create and show the key")
    page.see("writer is ready to connect")
    s3 = client(console_store, keys_of(page))
    s3.put(bucket, "inbox/a", b"1")
    assert s3.request("PUT", f"/{bucket}/inbox/a", body=b"2").status == 412
    assert s3.get(bucket, "elsewhere").status == 403
