"""People without a role have object rights through policies: the console shows their buckets, and everything else is closed.

The rights are those of the policies at each request, decided as those of accounts are.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.console import Console, create_token, upload_id
from harness.console import signed_in as console_of
from harness.management import API, expect, expect_refusal
from harness.members import audited, create_policy, denied, path_of, replace_policy, sent_in_halves, served_members, show_console, signed_in
from harness.openid import Visitor
from harness.page import Page, console_browser
from harness.server import Cairn
from harness.wait import until

MEMBERS = "team=team reads,team = team writes,letters=drop letters,lost=no such policy"
OWN, OTHER, BOX = "team-files", "other-files", "letter-box"
ID = "01890000-0000-7000-8000-000000000000"
# What is open to members. Everything else that the OpenAPI document has is closed.
OPEN = {
    "get_session", "list_buckets", "get_bucket", "list_objects", "get_object", "download_object", "preview_object", "upload_object",
    "delete_object", "copy_object", "move_object", "set_object_tags", "list_object_versions", "delete_object_version", "restore_object",
    "create_share", "list_shares", "list_object_shares", "get_share", "get_share_url", "update_share", "revoke_share", "delete_share",
}
TEAM_READS = [
    {"effect": "allow", "actions": ["s3:ListBucket"], "resources": [f"bucket:{OWN}"]},
    {"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/*"]},
    {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/secret/*"]},
]
TEAM_WRITES = [
    {"effect": "allow", "actions": ["s3:PutObject", "s3:DeleteObject"], "resources": [f"bucket:{OWN}/in/*"]},
    {"effect": "allow", "actions": ["s3:PutObject"], "resources": [f"bucket:{OWN}/once/*"], "only_if_absent": True},
]
DROPS = [{"effect": "allow", "actions": ["s3:PutObject"], "resources": [f"bucket:{BOX}/*"]}]
POLICIES = {"team reads": TEAM_READS, "team writes": TEAM_WRITES, "drop letters": DROPS}


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn], run_folder: Path) -> Iterator[Cairn]:
    """A server with members, their policies, and objects."""
    store = make_module_store()
    with served_members(store, run_folder / "openid-members", MEMBERS, POLICIES):
        for bucket in (OWN, OTHER, BOX):
            store.s3.create_bucket(bucket)
            for key in ("a.txt", "secret/plan", "in/old", "once/old"):
                assert store.s3.put(bucket, key, b"content", headers=[("Content-Type", "text/plain")]).status == 200
        yield store


def test_a_member_sees_the_own_buckets_only(served: Cairn, mia: Console):
    """The list has no figures. The bucket has them, for members with the right to list it."""
    session = expect(mia.get("/session"), 200)
    assert (session["role"], session["principal"]) == ("member", "person:mia")
    assert expect(mia.api("/auth/session"), 200)["role"] == "member"
    (bucket,) = expect(mia.api("/buckets"), 200)["buckets"]
    assert bucket.keys() == {"name", "created_at", "may_list"} and (bucket["name"], bucket["may_list"]) == (OWN, True)
    assert expect(mia.api(f"/buckets/{OWN}"), 200)["usage"]["objects"] >= 4
    for name in (OTHER, BOX, "no-such-bucket"):
        denied(mia.api(f"/buckets/{name}"), "you need s3:ListBucket on this bucket, and no policy allows it")
    page = expect(mia.api(f"/buckets/{OWN}/objects", params={"delimiter": "/", "limit": 10}), 200)
    assert page["common_prefixes"] == ["in/", "once/", "secret/"] and [one["key"] for one in page["objects"]] == ["a.txt"]
    denied(mia.api(f"/buckets/{OTHER}/objects"), "s3:ListBucket")


def test_objects_are_read_where_policies_allow_it(mia: Console):
    """A denial wins, and earlier moments are closed."""
    assert mia.get(path_of(OWN, "a.txt", "object-content")).content == b"content"
    assert mia.get(path_of(OWN, "a.txt", "object-preview")).content == b"content"
    assert mia.request("HEAD", path_of(OWN, "a.txt", "object-content")).status_code == 200
    assert expect(mia.get(path_of(OWN, "a.txt")), 200)["size"] == 7
    expect_refusal(mia.get(path_of(OWN, "missing")), 404, "OBJECT_NOT_FOUND")
    for kind in ("object", "object-content", "object-preview"):
        denied(mia.get(path_of(OWN, "secret/plan", kind)), "you need s3:GetObject on this object, and a policy denies it")
        denied(mia.get(f"{API}/buckets/{OWN}/{kind}/secret%2Fplan"), "a policy denies it")
        denied(mia.get(path_of(OTHER, "a.txt", kind)), "no policy allows it")
        for parameter in ("at=2026-01-01T00:00:00Z", "version_id=null&at=2026-01-01T00:00:00Z", "Version_id=x", "%61t=2026-01-01T00:00:00Z", "%zz=1"):
            assert mia.get(f"{path_of(OWN, 'a.txt', kind)}?{parameter}").status_code == 403, parameter
    denied(mia.api(f"/buckets/{OWN}/objects?at=2026-01-01T00:00:00Z"), "cannot use this parameter")


def test_objects_are_written_and_deleted_where_policies_allow_it(served: Cairn, mia: Console):
    """Also where only new ones may be written. The records name person and role."""
    assert mia.put(path_of(OWN, "in/new"), b"1").status_code == 201
    assert mia.put(path_of(OWN, "in/new"), b"2").status_code == 201
    assert served.s3.get(OWN, "in/new").body == b"2"
    assert mia.put(path_of(OWN, "once/new"), b"1").status_code == 201
    expect_refusal(mia.put(path_of(OWN, "once/new"), b"2"), 412, "PRECONDITION_FAILED")
    assert served.s3.get(OWN, "once/new").body == b"1"
    for bucket, key in ((OWN, "a.txt"), (OTHER, "in/new"), (BOX, "in/new")):
        denied(mia.put(path_of(bucket, key), b"2"), "s3:PutObject")
        denied(mia.delete(path_of(bucket, key)), "s3:DeleteObject")
    denied(mia.delete(path_of(OWN, "once/new")), "s3:DeleteObject")
    assert mia.delete(path_of(OWN, "in/new")).status_code == 204
    assert served.s3.get(OWN, "in/new").status == 404
    events = audited(served, principal="person:mia")
    assert all(event["role"] == "member" and "subject mia" in event["detail"] for event in events)
    assert {("upload_object", "denied"), ("delete_object", "denied"), ("finish_sign_in", "allowed")} <= {
        (event["operation"], event["result"]) for event in events
    }


def test_large_files_are_uploaded_where_policies_allow_it(served: Cairn, mia: Console):
    """Each request is decided by the object that the id names, also by an id that the member has made up."""
    begin = lambda bucket, key, size=3: mia.post("/uploads", {"bucket": bucket, "key": key, "size": size})
    upload = f"/uploads/{expect(begin(OWN, 'in/large'), 201)['id']}"
    expect(mia.put(f"{upload}/1", b"123"), 200)
    assert [part["number"] for part in expect(mia.get(upload), 200)["parts"]] == [1]
    expect(mia.post(f"{upload}/complete"), 201)
    assert served.s3.get(OWN, "in/large").body == b"123"
    expect(mia.delete(f"/uploads/{expect(begin(OWN, 'in/large'), 201)['id']}"), 204)
    once = f"/uploads/{expect(begin(OWN, 'once/large'), 201)['id']}"
    expect(mia.put(f"{once}/1", b"123"), 200)
    assert served.s3.put(OWN, "once/large", b"first").status == 200
    expect_refusal(mia.post(f"{once}/complete"), 412, "PRECONDITION_FAILED")
    denied(mia.delete(once), "s3:DeleteObject")
    for bucket, key in ((OWN, "a.txt"), (OTHER, "in/x"), ("no-such-bucket", "in/x")):
        denied(begin(bucket, key), "s3:PutObject")
    admin = Visitor(served)
    admin.sign_in("ada")
    foreign = expect(admin.console.post("/uploads", {"bucket": OTHER, "key": "k", "size": 3}), 201)["id"]
    for made in (foreign, upload_id(b=OTHER, k="k", u="0" * 32, s=3, a=False)):
        denied(mia.get(f"/uploads/{made}"), "s3:GetObject")
        denied(mia.put(f"/uploads/{made}/1", b"123"), "s3:PutObject")
        denied(mia.post(f"/uploads/{made}/complete"), "s3:PutObject")
        denied(mia.delete(f"/uploads/{made}"), "s3:DeleteObject")
    assert any(event["operation"] == "get_browser_upload" for event in audited(served, principal="person:mia", result="denied"))
    assert admin.console.delete(f"/uploads/{foreign}").status_code == 204


def sent_to(console: Console, kind: str, key: str, bucket: str, name: str, **more: object):
    """Copies or moves an object of the own bucket to a bucket and a name."""
    body = {"destination_bucket": bucket, "destination_key": name} | more
    return console.post(path_of(OWN, key, f"object-{kind}"), body)


def test_objects_are_copied_and_moved_where_policies_allow_it(served: Cairn, mia: Console):
    """What is read, what is written and what is deleted: each needs its right, and nothing changes without it."""
    s3 = served.s3
    content = lambda key, bucket=OWN: s3.get(bucket, key).body if s3.get(bucket, key).status == 200 else None
    expect(sent_to(mia, "copy", "a.txt", OWN, "in/copy"), 201)
    assert content("in/copy") == content("a.txt") == b"content"
    expect(sent_to(mia, "move", "in/copy", OWN, "in/moved"), 201)
    assert content("in/moved") == b"content" and content("in/copy") is None
    for kind in ("copy", "move"):
        denied(sent_to(mia, kind, "secret/plan", OWN, "in/plan"), "you need s3:GetObject on this object, and a policy denies it")
        denied(sent_to(mia, kind, "in/moved", OTHER, "in/moved"), "s3:PutObject")
        denied(sent_to(mia, kind, "in/moved", "no-such-bucket", "in/moved"), "s3:PutObject")
        denied(mia.post(path_of(OTHER, "a.txt", f"object-{kind}"), {"destination_bucket": OWN, "destination_key": "in/x"}), "s3:GetObject")
        expect_refusal(sent_to(mia, kind, "in/moved", OWN, "in/old", if_absent=True), 409, "OBJECT_ALREADY_EXISTS")
        expect_refusal(sent_to(mia, kind, "in/moved", OWN, "once/old"), 409, "OBJECT_ALREADY_EXISTS")
    denied(sent_to(mia, "move", "a.txt", OWN, "in/a.txt"), "s3:DeleteObject")
    denied(sent_to(mia, "copy", "secret/plan", OWN, "in/a.txt", version_id="null"), "you need s3:GetObject on this object")
    assert [content(key) for key in ("a.txt", "in/moved", "in/old", "once/old")] == [b"content"] * 4
    assert [content(key) for key in ("in/plan", "in/x", "in/a.txt")] == [None] * 3 and content("in/moved", OTHER) is None
    expect(sent_to(mia, "copy", "in/moved", OWN, "once/copy"), 201)
    expect(sent_to(mia, "move", "in/moved", OWN, "once/moved"), 201)
    assert content("once/copy") == content("once/moved") == b"content" and content("in/moved") is None
    refused = {event["operation"] for event in audited(served, principal="person:mia", result="denied")}
    assert refused >= {"copy_object", "move_object"}


def operations(store: Cairn) -> Iterator[tuple[str, str, str]]:
    """Returns name, method and path of every operation of the OpenAPI document that has a caller."""
    document = expect(store.admin.get("/openapi.json"), 200)
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            if "x-roles" in described:
                yield described["operationId"], method.upper(), path


@pytest.mark.parametrize("bucket", [OWN, OTHER])
def test_every_other_operation_is_closed(served: Cairn, mia: Console, bucket: str):
    """Whatever the member may do to the bucket. A new operation is closed until it is listed here."""
    known = list(operations(served))
    assert len(known) > 100 and OPEN <= {name for name, _, _ in known}
    for name, method, path in known:
        filled = path.replace("{bucket}", bucket).replace("{key}", "in/old")
        filled = re.sub(r"\{[^}]+\}", ID, filled)
        if name in OPEN:
            continue
        response = mia.request(method, filled, json={})
        assert response.status_code == 403, (name, response.status_code, response.text)
        assert "role" in response.json()["error"]["message"], name
    assert served.s3.get(bucket, "in/old").body == b"content"
    for path in ("/health", "/ready", "/metrics"):
        assert mia.get(path).status_code == 404, path
    (closed, *_) = audited(served, principal="person:mia", result="denied", operation="create_bucket")
    assert closed["role"] == "member" and "FORBIDDEN" in closed["detail"]


def test_sessions_are_the_own_ones(served: Cairn, mia: Console):
    """A member neither sees nor ends those of others."""
    admin = Visitor(served)
    admin.sign_in("ada")
    everybody = expect(admin.console.get("/sessions"), 200)["sessions"]
    own = expect(mia.get("/sessions"), 200)["sessions"]
    assert {session["principal"] for session in own} == {"person:mia"}
    assert {session["role"] for session in everybody} >= {"member", "system_admin"}
    (foreign, *_) = [session["id"] for session in everybody if session["principal"] == "person:ada"]
    expect_refusal(mia.delete(f"/sessions/{foreign}"), 404, "SESSION_NOT_FOUND")
    second = Visitor(served)
    second.sign_in("mia")
    assert len(expect(second.console.get("/sessions"), 200)["sessions"]) == len(own) + 1
    expect(second.console.delete("/session"), 204)
    assert second.session() is None and mia.is_signed_in()


def test_an_edit_of_a_policy_counts_at_once(served: Cairn, mia: Console):
    """More and less. Without one of the policies there are no rights: it may be the one that denies something."""
    path = served.policies["team reads"]
    try:
        replace_policy(served, path, "team reads", [*TEAM_READS, {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/a.txt"]}])
        denied(mia.get(path_of(OWN, "a.txt")), "a policy denies it")
        replace_policy(served, path, "team reads", [*TEAM_READS, {"effect": "allow", "actions": ["s3:ListBucket"], "resources": [f"bucket:{OTHER}"]}])
        assert mia.get(path_of(OWN, "a.txt")).status_code == 200
        assert {bucket["name"] for bucket in expect(mia.api("/buckets"), 200)["buckets"]} == {OWN, OTHER}
        for network, names in (("192.0.2.0/24", [OWN]), ("127.0.0.0/8", [OTHER, OWN])):
            of_network = {"effect": "allow", "actions": ["s3:ListBucket"], "resources": [f"bucket:{OTHER}"], "source_ip": [network]}
            replace_policy(served, path, "team reads", [*TEAM_READS, of_network])
            assert [bucket["name"] for bucket in expect(mia.api("/buckets"), 200)["buckets"]] == names
            assert mia.api(f"/buckets/{OTHER}/objects").status_code == (200 if OTHER in names else 403)
        replace_policy(served, path, "renamed", TEAM_READS)
        denied(mia.api("/buckets"), 'there is no policy named "team reads"')
        denied(mia.put(path_of(OWN, "in/x"), b""), "you have no rights here")
        assert mia.is_signed_in()
        twin = create_policy(served, "team writes", DROPS)
        replace_policy(served, path, "team reads", TEAM_READS)
        denied(mia.api("/buckets"), 'several policies are named "team writes"')
        expect(served.admin.delete(twin), 204)
        assert [bucket["name"] for bucket in expect(mia.api("/buckets"), 200)["buckets"]] == [OWN]
    finally:
        replace_policy(served, path, "team reads", TEAM_READS)


def test_an_upload_in_progress_ends_with_its_right(served: Cairn, mia: Console):
    """Nothing is stored, and the refusal is in the audit trail."""
    body = b"a body that arrives in two pieces " * 4000
    upload = expect(mia.post("/uploads", {"bucket": OWN, "key": "in/part", "size": len(body)}), 201)["id"]
    path = served.policies["team writes"]
    for sent in (path_of(OWN, "in/slow"), f"/uploads/{upload}/1"):
        try:
            refused = sent_in_halves(mia, "PUT", sent, body, lambda: replace_policy(served, path, "team writes", DROPS))
        finally:
            replace_policy(served, path, "team writes", TEAM_WRITES)
        assert refused.status == 403 and b"s3:PutObject" in refused.body, refused
        (event,) = audited(served, request_id=refused.get("x-request-id"))
        assert event["result"] == "denied" and "s3:PutObject" in event["detail"]
    assert served.s3.get(OWN, "in/slow").status == 404
    assert expect(mia.get(f"/uploads/{upload}"), 200)["parts"] == []


def test_who_may_only_write_learns_nothing_else(served: Cairn):
    """Neither lists nor what exists."""
    visitor = Visitor(served)
    visitor.sign_in("pia")
    console = visitor.console
    assert [bucket["name"] for bucket in expect(console.api("/buckets"), 200)["buckets"]] == [BOX]
    assert console.put(path_of(BOX, "letter"), b"x").status_code == 201
    for key in ("letter", "missing"):
        denied(console.get(path_of(BOX, key)), "s3:GetObject")
        denied(console.delete(path_of(BOX, key)), "s3:DeleteObject")
    more = [*DROPS, {"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{BOX}/*"]}]
    replace_policy(served, served.policies["drop letters"], "drop letters", more)
    try:
        assert console.get(path_of(BOX, "letter")).status_code == 200
        denied(console.get(path_of(BOX, "missing")), "s3:ListBucket")
    finally:
        replace_policy(served, served.policies["drop letters"], "drop letters", DROPS)


def test_the_console_asks_for_no_list_that_is_closed(served: Cairn, run_folder: Path):
    """Whoever may only upload is told so, and the audit trail has no refusal."""
    console = signed_in(served, "pia")
    (bucket,) = expect(console.api("/buckets"), 200)["buckets"]
    assert (bucket["name"], bucket["may_list"]) == (BOX, False)
    refused = [event["id"] for event in audited(served, principal="person:pia", result="denied")]
    letter = run_folder / "letter.txt"
    letter.write_bytes(b"of pia")
    with console_browser(run_folder / "letter-browser") as browser:
        page = Page(browser, served.console)
        show_console(page, console)
        page.load(f"#/bucket/{BOX}")
        page.see("You may upload here, but not see what is there.")
        page.upload("Files to upload", letter)
        until(lambda: served.s3.get(BOX, "letter.txt").body == b"of pia", "the letter does not arrive")
        assert page.violations() == []
    assert [event["id"] for event in audited(served, principal="person:pia", result="denied")] == refused


def test_a_policy_that_does_not_exist_gives_nothing(served: Cairn):
    """Not what the other policies give either. The person and the log are told why."""
    visitor = Visitor(served)
    visitor.sign_in("leo")
    assert visitor.session()["role"] == "member"
    for response in (visitor.console.api("/buckets"), visitor.console.put(path_of(BOX, "of-leo"), b"")):
        denied(response, 'there is no policy named "no such policy"')
    assert "a person has no rights" in served.wait_output("no such policy")
    assert served.s3.get(BOX, "of-leo").status == 404


def test_a_role_comes_before_membership(served: Cairn):
    """A person with a role and policies has only the rights of the role."""
    visitor = Visitor(served)
    visitor.sign_in("ben")
    assert visitor.session()["role"] == "auditor"
    assert len(expect(visitor.console.api("/buckets"), 200)["buckets"]) == 3
    assert visitor.console.put(path_of(OWN, "in/of-ben"), b"").status_code == 403


def test_who_gets_which_policy_is_said(served: Cairn, mia: Console):
    """To those who see policies. The console names these people before a policy is deleted."""
    listed = [{"value": value, "policy": policy} for value, policy in (
        ("team", "team reads"), ("team", "team writes"), ("letters", "drop letters"), ("lost", "no such policy"),
    )]
    for role in ("system_admin", "auditor"):
        assert expect(console_of(served, create_token(served, role)["token"]).get("/members"), 200) == {"members": listed}
    expect_refusal(console_of(served, create_token(served, "storage_admin")["token"]).get("/members"), 403, "FORBIDDEN")
    expect_refusal(mia.get("/members"), 403, "FORBIDDEN")
    expect_refusal(Console(served).get("/members"), 401, "UNAUTHENTICATED")


def test_deleting_a_policy_names_the_groups(served: Cairn, run_folder: Path):
    """Their people would have no rights at all."""
    with console_browser(run_folder / "policy-browser") as browser:
        page = Page(browser, served.console)
        show_console(page, console_of(served))
        page.load("#/policies")
        page.see("drop letters")
        page.run("async () => [...[...document.querySelectorAll('main tr')].find((row) => row.textContent.includes('drop letters')).querySelectorAll('button')].at(-1).click()")
        page.see("People with these values of the claim then have no rights at all:")
        assert page.run("async () => [...document.querySelectorAll('dialog li')].map((one) => one.textContent)") == ["letters"]
        assert page.violations() == []
        page.click("Cancel")


def test_tokens_are_never_members(served: Cairn):
    """The role does not exist for them."""
    refusal = expect_refusal(served.admin.post("/management-tokens", {"name": "m", "role": "member"}), 400, "INVALID_REQUEST")
    assert "system_admin" in refusal


def test_the_console_of_a_member(served: Cairn, mia: Console, run_folder: Path):
    """One entry in the menu, the own buckets, and no request that is refused."""
    (before, *_) = audited(served, principal="person:mia", result="denied")
    with console_browser(run_folder / "member-browser") as browser:
        page = Page(browser, served.console)
        show_console(page, mia)
        page.load("#/storage")
        page.see(OWN)
        entries = page.run("async () => [...document.querySelectorAll('.rail [data-view], .bottom-bar [data-place]')].map((one) => one.dataset.view ?? one.dataset.place)")
        assert entries == ["buckets", "sharing"] * 2
        page.load(f"#/bucket/{OWN}")
        page.see("a.txt")
        page.see("Upload files")
        page.load(f"#/object/{OWN}/a.txt")
        page.see("Download")
        page.wait("async () => document.querySelector('.preview pre')?.textContent === 'content'")
        page.act("Copy")
        page.fill("Key", "in/by-page")
        page.run("async () => document.querySelector('dialog button[type=submit]').click()")
        page.wait("async () => location.hash.endsWith('in%2Fby-page')")
        page.see("Download")
        page.load(f"#/object/{OWN}/{quote('secret/plan', safe='')}")
        page.see("you need s3:GetObject on this object, and a policy denies it")
        page.load("#/sessions")
        page.see("Sign out everywhere")
        assert page.violations() == []
    (refused, last, *_) = audited(served, principal="person:mia", result="denied")
    assert (refused["operation"], last["id"]) == ("get_object", before["id"]), "the console asks for nothing else that is closed"
