"""Shares of people without a role. Each use of one asks the policies of its author, as each use of a presigned URL does."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.console import Console
from harness.management import API, expect, expect_refusal
from harness.members import audited, denied, path_of, replace_policy, served_members, show_console, signed_in
from harness.page import Page, console_browser
from harness.server import Cairn
from harness.shares import Share, share_object, share_of

MEMBERS = "team=team reads,letters=drop letters"
OWN, BOX = "team-shares", "letter-shares"
READS, DROPS = "team reads", "drop letters"
STATEMENTS = {
    READS: [
        {"effect": "allow", "actions": ["s3:GetObject", "s3:ListBucket"], "resources": [f"bucket:{OWN}", f"bucket:{OWN}/*"]},
        {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/secret/*"]},
    ],
    DROPS: [{"effect": "allow", "actions": ["s3:PutObject"], "resources": [f"bucket:{BOX}/*"]}],
}
NOT_ALLOWED = "the creator of the share may no longer read the object, or not from your address"


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn], run_folder: Path) -> Iterator[Cairn]:
    """A server with members, their policies, and objects."""
    store = make_module_store()
    with served_members(store, run_folder / "openid-shares", MEMBERS, STATEMENTS):
        for bucket in (OWN, BOX):
            store.s3.create_bucket(bucket)
            for key in ("a.txt", "secret/plan"):
                assert store.s3.put(bucket, key, b"content", headers=[("Content-Type", "text/plain")]).status == 200
        yield store


@pytest.fixture(scope="module")
def namesake(served: Cairn) -> Console:
    """Another member with the same name and the same policies."""
    return signed_in(served, "another-mia")


def create(console: Console, bucket: str, key: str, **fields) -> Share:
    """Creates a share as a member."""
    return share_of(console.store, expect(console.post(path_of(bucket, key, "object-shares"), fields), 201))


def routes(share: Share) -> list[tuple[str, str]]:
    """Returns all routes of one share."""
    path = f"{API}/shares/{share.id}"
    return [("GET", path), ("GET", f"{path}/url"), ("PATCH", path), ("POST", f"{path}/revoke"), ("DELETE", path)]


def test_a_member_shares_what_it_may_read(served: Cairn, mia: Console):
    """With all settings, as everybody else. The record names the person."""
    share = create(mia, OWN, "a.txt", password="open sesame", label="for Ada", maximum_downloads=3)
    assert share.content().status_code == 401
    assert share.unlocked("open sesame").content().content == b"content"
    assert share.refresh()["created_by"] == "person:mia"
    listed = expect(mia.get(path_of(OWN, "a.txt", "object-shares")), 200)["shares"]
    assert [one["id"] for one in listed] == [share.id]
    assert expect(mia.api(f"/shares/{share.id}"), 200)["label"] == "for Ada"
    assert expect(mia.api(f"/shares/{share.id}/url"), 200)["url"] == share.url
    expect(mia.request("PATCH", f"{API}/shares/{share.id}", json={"password": None}), 200)
    assert share.content().content == b"content"
    expect(mia.post(f"{API}/shares/{share.id}/revoke"), 200)
    expect_refusal(share.content(), 410, "SHARE_GONE")
    expect(mia.delete(f"{API}/shares/{share.id}"), 204)
    assert expect(mia.get(path_of(OWN, "a.txt", "object-shares")), 200)["shares"] == []
    made = [event["operation"] for event in audited(served, principal="person:mia", result="allowed")]
    assert {"create_share", "get_share_url", "update_share", "revoke_share", "delete_share"} <= set(made)


def test_what_may_not_be_read_is_not_shared(served: Cairn, mia: Console):
    """Nothing is created, and nothing is learned about what exists."""
    for bucket, key in ((OWN, "secret/plan"), (OWN, "secret/none"), (BOX, "a.txt"), ("no-such-bucket", "a.txt")):
        for answer in (mia.post(path_of(bucket, key, "object-shares"), {}), mia.get(path_of(bucket, key, "object-shares"))):
            denied(answer, "you need s3:GetObject on this object")
    pia = signed_in(served, "pia")
    denied(pia.post(path_of(BOX, "a.txt", "object-shares"), {}), "you need s3:GetObject on this object, and no policy allows it")
    expect_refusal(mia.post(path_of(OWN, "none", "object-shares"), {}), 404, "OBJECT_NOT_FOUND")
    assert expect(served.admin.get("/shares", params={"bucket": BOX}), 200)["shares"] == []


def test_nobody_uses_an_own_share_beyond_present_rights(served: Cairn, mia: Console):
    """The share may ask other policies than those of now. Its end needs no right."""
    share = create(mia, OWN, "a.txt", password="open sesame")
    (get, url, change, revoke, delete) = routes(share)
    replace_policy(served, served.policies[READS], READS, STATEMENTS[DROPS])
    try:
        for method, path in (url, change):
            denied(mia.request(method, path, json={"password": None} if method == "PATCH" else None), "you need s3:GetObject on this object")
        assert share.refresh()["password_protected"]
        for method, path in (get, revoke):
            expect(mia.request(method, path), 200)
        expect(mia.request(*delete), 204)
        expect_refusal(share.content(), 404, "SHARE_NOT_FOUND")
    finally:
        replace_policy(served, served.policies[READS], READS, STATEMENTS[READS])


def test_shares_of_others_do_not_exist(served: Cairn, mia: Console, namesake: Console):
    """Neither those of people with a role nor those of a person with the same name."""
    own, of_namesake, of_admin = create(mia, OWN, "a.txt"), create(namesake, OWN, "a.txt"), share_object(served, OWN, "a.txt")
    assert of_namesake.refresh()["created_by"] == own.refresh()["created_by"]
    listed = expect(mia.get(path_of(OWN, "a.txt", "object-shares")), 200)["shares"]
    assert [one["id"] for one in listed] == [own.id]
    for foreign in (of_namesake, of_admin):
        for method, path in routes(foreign):
            expect_refusal(mia.request(method, path, json={}), 404, "SHARE_NOT_FOUND")
        assert foreign.content().content == b"content"
    everybody = expect(served.admin.get(f"/buckets/{OWN}/object-shares/a.txt"), 200)["shares"]
    assert {share["id"] for share in everybody} == {own.id, of_namesake.id, of_admin.id}
    recorded = [event for event in audited(served, principal="person:mia", result="denied") if "somebody else has created" in event["detail"]]
    assert len(recorded) == 2 * len(routes(own))
    assert mia.api("/embeds").status_code == 403 and mia.api(f"/buckets/{OWN}/object-embeds/a.txt").status_code == 403
    for share in (own, of_namesake, of_admin):
        expect(served.admin.delete(f"/shares/{share.id}"), 204)


def test_a_member_lists_the_own_shares_of_all_objects(served: Cairn, mia: Console, namesake: Console):
    """Page by page and by status, also of objects that may not be read any more. Nothing is learned about other buckets."""
    foreign = [share_object(served, BOX, "a.txt"), create(namesake, OWN, "a.txt")]
    own = [create(mia, OWN, "a.txt") for _ in range(3)]
    expect(mia.post(f"{API}/shares/{own[0].id}/revoke"), 200)
    replace_policy(served, served.policies[READS], READS, STATEMENTS[DROPS])
    try:
        pages, token = [], None
        while token or not pages:
            page = expect(mia.get(f"{API}/shares", params={"limit": 2} | ({"continuation_token": token} if token else {})), 200)
            pages.append([share["id"] for share in page["shares"]])
            token = page["next_continuation_token"]
        assert pages == [[own[2].id, own[1].id], [own[0].id]]
        active = expect(mia.get(f"{API}/shares", params={"status": "active"}), 200)["shares"]
        assert [share["id"] for share in active] == [own[2].id, own[1].id]
        for name, value in (("bucket", OWN), ("bucket", "no-such-bucket"), ("created_by", "person:mia")):
            denied(mia.get(f"{API}/shares", params={name: value}), "you cannot use this parameter")
    finally:
        replace_policy(served, served.policies[READS], READS, STATEMENTS[READS])
        for share in (*foreign, *own):
            expect(served.admin.delete(f"/shares/{share.id}"), 204)


def test_each_use_asks_the_policies(served: Cairn, mia: Console):
    """A right that is withdrawn ends its shares at once, and a right that is given revives them."""
    share, of_admin = create(mia, OWN, "a.txt"), share_object(served, OWN, "a.txt")
    locked = create(mia, OWN, "a.txt", password="open sesame")
    path = served.policies[READS]
    statements = STATEMENTS[READS]
    denial = {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/a.txt"]}
    elsewhere, here = [[statements[0] | {"source_ip": [network]}] for network in ("192.0.2.0/24", "127.0.0.0/8")]
    try:
        # A download that was counted may be continued, but not without the right.
        once = create(mia, OWN, "a.txt", maximum_downloads=1)
        assert once.content().content == b"content" and once.content(headers={"Range": "bytes=1-"}).content == b"ontent"
        for name, changed in ((READS, [*statements, denial]), (READS, elsewhere), ("renamed", statements), (READS, STATEMENTS[DROPS])):
            replace_policy(served, path, name, changed)
            for used in (share.get(), share.content(), share.request("HEAD", "/content"), locked.get(), locked.unlock("open sesame")):
                assert used.status_code == 403, (name, used.text)
            assert NOT_ALLOWED in expect_refusal(share.content(), 403, "FORBIDDEN")
            expect_refusal(once.content(headers={"Range": "bytes=1-"}), 403, "FORBIDDEN")
            assert "may not show it any more" in share.page().text and "darf sie nicht mehr zeigen" in share.page(language="de").text
            assert of_admin.content().content == b"content"
            for allowed in (here, statements):
                replace_policy(served, path, READS, allowed)
                assert share.content().content == b"content"
            assert share.content().content == locked.unlocked("open sesame").content().content == b"content"
    finally:
        replace_policy(served, path, READS, statements)
    assert READS in served.wait_output("a share gives nothing")


def test_a_member_shares_in_the_console(served: Cairn, run_folder: Path):
    """The button, the form with what it says, and the list of the own links. No request is refused."""
    console = signed_in(served, "mia")
    foreign = share_object(served, OWN, "a.txt", label="of somebody else")
    refused = [event["id"] for event in audited(served, principal="person:mia", result="denied")]
    with console_browser(run_folder / "member-shares-browser") as browser:
        page = Page(browser, served.console)
        show_console(page, console)
        page.load(f"#/object/{OWN}/a.txt")
        page.click("Share")
        page.see("It works for as long as your present policies allow it.")
        page.fill("Label", "of mia")
        page.click("Create link")
        page.see("The link is ready")
        page.click("Done")
        page.see("of mia")
        assert "of somebody else" not in page.text() and page.violations() == []
        page.click("Sharing")
        # The page of the object shows the same texts.
        page.wait("async () => location.hash.startsWith('#/sharing')", what="the list of links")
        page.settled()
        page.see(f"{OWN}/a.txt")
        assert "of mia" in page.text() and "of somebody else" not in page.text() and "Embeds" not in page.text()
        page.load("#/public")
        page.see("Buckets")
        assert page.violations() == []
    assert [event["id"] for event in audited(served, principal="person:mia", result="denied")] == refused
    (share,) = [one for one in expect(served.admin.get(f"/buckets/{OWN}/object-shares/a.txt"), 200)["shares"] if one["label"] == "of mia"]
    assert (share["created_by"], share["id"] != foreign.id) == ("person:mia", True)


def test_a_share_outlives_the_session_and_the_server(served: Cairn):
    """The record has what decides."""
    console = signed_in(served, "mia")
    share = create(console, OWN, "a.txt")
    expect(console.delete("/session"), 204)
    assert share.content().content == b"content"
    served.kill()
    served.start()
    assert share.content().content == b"content"
    replace_policy(served, served.policies[READS], READS, STATEMENTS[DROPS])
    try:
        expect_refusal(share.content(), 403, "FORBIDDEN")
    finally:
        replace_policy(served, served.policies[READS], READS, STATEMENTS[READS])
    inspected = expect(served.admin.get("/storage/inspect"), 200)
    assert inspected["findings"] == [] and inspected["complete"]
