"""The overview of the console, in a real Chromium: what needs attention, with an action that helps, and the first steps."""

from collections.abc import Callable
from pathlib import Path

from harness.accounts import client
from harness.answers import change_answers
from harness.console import Console
from harness.management import expect
from harness.page import Page, console_browser, start_with_console
from harness.server import Cairn
from harness.wait import until


def limit(store: Cairn, bucket: str, size: int) -> None:
    """Sets the quota of a bucket."""
    quota = {"bytes": {"mode": "limit", "bytes": size}, "objects": {"mode": "unlimited"}}
    expect(store.admin.put(f"/buckets/{bucket}/quota", {"quota": quota}), 200)


def needs(page: Page) -> list[str]:
    """Returns the rows of the card, the most urgent first."""
    return page.run("async () => [...document.querySelectorAll('.attention li')].map((row) => row.innerText)")


def test_quota_that_is_nearly_used_needs_attention(page: Page, console_store: Cairn, bucket: str):
    """Above 85 %, with the figures and a way to raise it. The rail counts it. Below, nothing is said."""
    console_store.s3.put(bucket, "k", bytes(84))
    limit(console_store, bucket, 100)
    page.go("overview")
    page.see("Nothing needs attention.")
    console_store.s3.put(bucket, "more", bytes(5))
    page.go("overview")
    page.see(f"{bucket} has used 89 % of its quota.")
    page.see("89 B of 100 B")
    page.see("1 thing needs attention")
    assert page.run("async () => document.querySelector('.rail [data-view=overview]').dataset.count") == "1"
    page.click("Raise quota")
    page.settled()
    page.click("Change quota")
    page.choose("Unit", "1000000")
    page.fill("Size limit", "2.5")
    page.click("Save")
    page.see("2.5 MB")
    assert expect(console_store.admin.get(f"/buckets/{bucket}"), 200)["quota"]["bytes"]["bytes"] == 2_500_000
    page.go("overview")
    page.see("Nothing needs attention.")


def test_lost_events_come_before_a_quota_and_are_sent_again(page: Page, console_store: Cairn, bucket: str):
    """Red rows come first. Other views mark the entry of the rail, with words for those who cannot see the dot."""
    console_store.s3.put(bucket, "k", bytes(90))
    limit(console_store, bucket, 100)
    hook = {"target_url": "http://127.0.0.1:9/hook", "event_types": ["object.created"], "bucket_filter": bucket}
    webhook = expect(console_store.admin.post("/webhooks", hook), 201)["subscription"]["id"]
    console_store.s3.put(bucket, "lost", b"x")

    def health() -> dict:
        return next(one["health"] for one in expect(console_store.admin.get("/webhooks"), 200)["webhooks"] if one["id"] == webhook)

    until(lambda: health()["state"] != "ok", "a webhook that fails", 60)
    page.go("overview")
    page.see("2 things need attention")
    rows = needs(page)
    assert len(rows) == 2 and any("http://127.0.0.1:9/hook" in row for row in rows) and any("91 %" in row for row in rows), rows
    page.go("buckets")
    described = page.run("async () => document.querySelector('.rail [data-view=webhooks]').getAttribute('aria-description')")
    assert described in ("A webhook fails.", "A webhook is paused.", "1 event was not delivered.")
    expect(console_store.admin.delete(f"/webhooks/{webhook}"), 204)
    limit(console_store, bucket, 1000)
    page.go("overview")
    page.see("Nothing needs attention.")


def test_many_refused_requests_need_attention(page: Page, console_store: Cairn, bucket: str):
    """Of one client and for one reason; the link explains one of them."""
    account = expect(console_store.admin.post("/service-accounts", {"name": "refused-often", "description": ""}), 201)
    refused = client(console_store, account["credential"])
    for _ in range(20):
        assert refused.get(bucket, "k").status == 403
    page.go("overview")
    page.see("20 requests of account:refused-often were refused in the last hour.")
    page.click("Explain")
    page.see("no policy of the account allows")


def test_what_could_not_be_checked_is_said(page: Page, console_store: Cairn, bucket: str):
    """A source that fails does not look like one without problems."""
    console_store.s3.put(bucket, "k", b"x")
    change_answers(page, {"/api/v1/webhooks": "status = 500; body = {error: {}};"})
    page.go("overview")
    page.see("Not everything could be checked.")
    page.load("#/overview")
    page.settled()
    assert "Not everything could be checked." not in page.text()


def test_three_steps_in_an_empty_store(make_store: Callable[..., Cairn], run_folder: Path):
    """A bucket, a key, an object: each step puts a stone on the pile. Then the overview is the usual one."""
    store = start_with_console(make_store())
    with console_browser(run_folder / "first-steps") as browser:
        page = Page(browser, Console(store).address)
        page.sign_in(store.secrets.system_token)
        page.see("Welcome to Cairn")
        page.see("0 of 3")
        assert page.violations() == []
        page.fill("Name", "photos")
        page.click("Create bucket")
        page.see("1 of 3")
        bucket = expect(store.admin.get("/buckets/photos"), 200)
        assert bucket["versioning"] == "Enabled"
        rules = expect(store.admin.get("/buckets/photos/lifecycle"), 200)["rules"]
        assert [rule["noncurrent_version_expiration"] for rule in rules] == [30]
        page.click("Connect an application")
        page.settled()
        page.fill("Name of the application", "gallery")
        page.click("Create and show the key")
        page.see("gallery is ready to connect")
        page.go("overview")
        page.see("2 of 3")
        store.s3.put("photos", "first.txt", b"x")
        page.click("Look again")
        page.see("Latency")
        page.see("Nothing needs attention.")


def test_dismissed_row_comes_back_when_asked(page: Page, console_store: Cairn, bucket: str):
    """It is hidden for everybody, says who did it, and the audit trail has it. Undo shows it again."""
    console_store.s3.put(bucket, "k", bytes(90))
    limit(console_store, bucket, 100)
    page.go("overview")
    page.see("has used 90 % of its quota.")
    page.run("""async (bucket) => [...document.querySelectorAll('.attention li')].find((row) => row.innerText.includes(bucket))
        .querySelector('[aria-label="Dismiss for a day"]').click()""", bucket)
    page.see("Dismissed for a day, for everybody.")
    page.gone("has used 90 % of its quota.")
    page.click("1 dismissed")
    page.see("by system, until")
    (event, *_) = expect(console_store.admin.get("/audit/events", params={"operation": "dismiss_attention"}), 200)["events"]
    assert event["resource"] == f"amber quota bytes {bucket}" and event["principal"] == "system"
    page.load("#/overview")
    page.settled()
    assert not any(bucket in row for row in needs(page))
    page.click("1 dismissed")
    page.click("Show again")
    page.see("has used 90 % of its quota.")
    limit(console_store, bucket, 1000)


def test_worse_thing_is_shown_although_it_was_dismissed(page: Page, console_store: Cairn, bucket: str):
    """A quota that was nearly used, and then is."""
    console_store.s3.put(bucket, "k", bytes(90))
    limit(console_store, bucket, 100)
    expect(console_store.admin.post("/attention/dismissals", {"subject": f"amber quota bytes {bucket}"}), 200)
    page.go("overview")
    page.see("1 dismissed")
    console_store.s3.put(bucket, "more", bytes(10))
    page.go("buckets")
    page.go("overview")
    page.see("has used 100 % of its quota.")
    limit(console_store, bucket, 1000)


def test_series_of_failed_logins_needs_attention(page: Page, console_store: Cairn, bucket: str):
    """From one address within an hour; the link shows them."""
    console_store.s3.put(bucket, "k", b"x")
    console = Console(console_store)
    for number in range(5):
        assert console.post("/session", {"token": f"wrong {number}"}).status_code == 401
    page.go("overview")
    page.see("5 failed sign-ins")
    row = next(row for row in needs(page) if "failed sign-ins" in row)
    assert "127.0.0.1" in row
    page.run("""async () => [...document.querySelectorAll('.attention li')].find((row) => row.innerText.includes('failed sign-ins'))
        .querySelector('a.button').click()""")
    page.see("Somebody could not sign in")


def test_certificates_and_backups_need_attention(page: Page, console_store: Cairn, bucket: str):
    """A certificate that expires in less than 21 days, and a backup that is later than usual. Red ones come first."""
    console_store.s3.put(bucket, "k", b"x")
    change = """body.certificates = [{plane: "data", expires_at: days(12.5), refused: false}, {plane: "console", expires_at: days(1.5), refused: false},
        {plane: "management", expires_at: days(60), refused: false}];
        body.backups = [days(-5), days(-4), days(-3)];"""
    page.go("buckets")
    change_answers(page, {"/api/v1/attention": change})
    page.go("overview")
    page.see("A certificate expires in 1 day.")
    rows = [row for row in needs(page) if "certificate" in row or "backup" in row]
    assert [row.split("\n")[0].split(". ")[0] for row in rows] == ["A certificate expires in 1 day", "A certificate expires in 12 days", "The last backup is 3 days old"], rows
    page.load("#/overview")
    page.settled()


def test_space_is_drawn_in_layers_with_its_limit(page: Page, console_store: Cairn, bucket: str):
    """The growth leads to a day on which the disk is full. The pictures have words."""
    console_store.s3.put(bucket, "k", bytes(1000))
    page.go("buckets")
    history = """body.time = [];
        for (let day = 30; day > 0; day -= 1) body.time.push(days(-day));
        const fill = (of) => body.time.map((_, index) => of(index));
        body.capacity_bytes = fill(() => 4e12); body.available_bytes = fill(() => 6e11); body.other_objects = fill(() => 0);
        body.other_physical_bytes = fill((index) => 4e11 + index * 1e10);
        for (const line of body.buckets) { line.physical_bytes = fill((index) => 2e10 * index); line.objects = fill((index) => index); }"""
    usage = "body.physical_bytes = 1.4e12; body.by_bucket[0].physical_bytes = 7e11;"
    change_answers(page, {
        "/api/v1/storage/history": history, "/api/v1/storage/usage": usage, "/api/v1/storage/status": "body.capacity_bytes = 2e12; body.available_bytes = 5.66e11;",
    })
    page.go("overview")
    page.see("Each day")
    page.see("The disk is full in about")
    said = page.run("async () => document.querySelector('.space-chart svg').getAttribute('aria-label')")
    assert "1.4 TB" in said and "more each day" in said and "full in about" in said, said
    drawn = page.run("async () => [...document.querySelectorAll('.space-chart path')].map((path) => path.getAttribute('class'))")
    assert "limit" in drawn and "future" in drawn and any("stone" in one for one in drawn), drawn
    assert page.violations() == []
    page.load("#/overview")
    page.settled()
