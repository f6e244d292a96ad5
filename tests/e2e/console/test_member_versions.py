"""The rights of people without a role on tags and versions: the same as an account with their policies through S3."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.accounts import Account, create_account
from harness.console import Console
from harness.management import API, expect, expect_refusal
from harness.members import audited, denied, path_of, replace_policy, sent_in_halves, served_members, show_console
from harness.openid import Visitor
from harness.page import Page, console_browser
from harness.server import Cairn

MEMBERS = "team=team reads,team = team writes,letters=drop letters"
OWN, OTHER, BOX = "team-history", "other-history", "letter-history"
READS, WRITES = "team reads", "team writes"
STATEMENTS = {
    READS: [
        {"effect": "allow", "actions": ["s3:ListBucket"], "resources": [f"bucket:{OWN}"]},
        {"effect": "allow", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/*"]},
        {"effect": "deny", "actions": ["s3:GetObject"], "resources": [f"bucket:{OWN}/secret/*", f"bucket:{OWN}/in/blind/*"]},
    ],
    WRITES: [
        {"effect": "allow", "actions": ["s3:PutObject", "s3:DeleteObject"], "resources": [f"bucket:{OWN}/in/*"]},
        {"effect": "allow", "actions": ["s3:PutObject"], "resources": [f"bucket:{OWN}/once/*"], "only_if_absent": True},
    ],
    "drop letters": [{"effect": "allow", "actions": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "resources": [f"bucket:{BOX}/*"]}],
}
KEYS = ["doc", "secret/plan", "in/doc", "in/blind/doc", "once/doc"]
TAGS = {"tags": [{"key": "colour", "value": "red"}]}
XML = b"<Tagging><TagSet><Tag><Key>colour</Key><Value>red</Value></Tag></TagSet></Tagging>"


def write(store: Cairn, bucket: str, key: str, *contents: bytes) -> list[str]:
    """Writes versions of a text and returns their ids."""
    answers = [store.s3.put(bucket, key, content, headers=[("Content-Type", "text/plain")]) for content in contents]
    return [answer.get("x-amz-version-id") for answer in answers]


@pytest.fixture(scope="module")
def served(make_module_store: Callable[..., Cairn], run_folder: Path) -> Iterator[Cairn]:
    """A server with members, their policies, and buckets that keep versions."""
    store = make_module_store()
    with served_members(store, run_folder / "openid-versions", MEMBERS, STATEMENTS, SERVICE_S3_COMPATIBILITY="extended"):
        for bucket in (OWN, OTHER, BOX):
            store.s3.create_bucket(bucket)
            expect(store.admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
        yield store


@pytest.fixture(scope="module")
def twin(served: Cairn) -> Account:
    """An account with the policies of that member."""
    return create_account(served, *STATEMENTS[READS], *STATEMENTS[WRITES])


def restored(console: Console, bucket: str, key: str, version: str):
    """Makes a version the current one again."""
    return console.post(f"{API}/restore/{bucket}/{quote(key)}", {"version_id": version})


def content(store: Cairn, bucket: str, key: str) -> bytes | None:
    """Returns what root reads of a key."""
    found = store.s3.get(bucket, key)
    return found.body if found.status == 200 else None


def tags(store: Cairn, bucket: str, key: str, version: str = "") -> list[dict]:
    """Returns the tags that an administrator sees."""
    return expect(store.admin.get(f"/buckets/{bucket}/object/{quote(key, safe='')}", params={"version_id": version} if version else {}), 200).get("tags", [])


def test_the_data_plane_refuses_the_same(served: Cairn, mia: Console, twin: Account):
    """Each request of the console, and the one of S3 by an account with the same policies."""
    s3, refused = twin.s3, set()
    buckets = {bucket: (s3.request("GET", f"/{bucket}?versions").status, mia.api(f"/buckets/{bucket}/object-versions").status_code) for bucket in (OWN, OTHER)}
    assert buckets == {OWN: (200, 200), OTHER: (403, 403)}
    for bucket in (OWN, OTHER):
        for key in KEYS:
            first, second, third = write(served, bucket, f"{key}.twin", b"1", b"2", b"3")
            target, of = f"/{bucket}/{key}.twin", lambda kind, version="", at=(bucket, f"{key}.twin"): path_of(*at, kind) + (f"?version_id={version}" if version else "")
            copy = [("x-amz-copy-source", f"{target}?versionId={first}")]
            pairs = {
                "tags read": (s3.request("GET", f"{target}?tagging"), mia.get(of("object"))),
                "tags written": (s3.request("PUT", f"{target}?tagging", body=XML), mia.put(of("object-tags"), json.dumps(TAGS))),
                "tags of a version written": (
                    s3.request("PUT", f"{target}?tagging&versionId={first}", body=XML), mia.put(of("object-tags", first), json.dumps(TAGS)),
                ),
                "version read": (s3.get(bucket, f"{key}.twin", query=f"versionId={first}"), mia.get(of("object-content", first))),
                "version shown": (s3.head(bucket, f"{key}.twin", query=f"versionId={first}"), mia.get(of("object-preview", first))),
                "version restored": (s3.request("PUT", target, copy), restored(mia, bucket, f"{key}.twin", first)),
                "version deleted": (s3.request("DELETE", f"{target}?versionId={second}"), mia.delete(of("object-versions", third))),
            }
            for name, (by_s3, by_console) in pairs.items():
                assert (by_s3.status == 403) == (by_console.status_code == 403), (bucket, key, name, by_s3, by_console.text)
                if by_s3.status == 403:
                    refused.add((bucket, key, name))
    assert {key for bucket, key, name in refused if bucket == OTHER and name == "version deleted"} == set(KEYS)
    assert {key for bucket, key, name in refused if bucket == OWN and name == "tags written"} == {"doc", "secret/plan", "once/doc"}
    assert {key for bucket, key, name in refused if bucket == OWN and name == "version restored"} == {"doc", "secret/plan", "in/blind/doc"}


def test_tags_are_changed_where_policies_allow_it(served: Cairn, mia: Console):
    """A right to write absent objects is not one to change those that are there. A refusal changes nothing."""
    first, _ = write(served, OWN, "in/tagged", b"1", b"2")
    for key in ("tagged", "secret/tagged", "once/tagged"):
        write(served, OWN, key, b"1")
    write(served, OTHER, "in/tagged", b"1")
    assert expect(mia.put(path_of(OWN, "in/tagged", "object-tags"), json.dumps(TAGS)), 200) == TAGS
    assert expect(mia.get(path_of(OWN, "in/tagged")), 200)["tags"] == TAGS["tags"] == tags(served, OWN, "in/tagged")
    assert tags(served, OWN, "in/tagged", first) == []
    expect(mia.put(path_of(OWN, "in/tagged", "object-tags"), b'{"tags": []}', params={"version_id": first}), 200)
    assert "tags" not in expect(mia.get(path_of(OWN, "in/tagged"), params={"version_id": first}), 200)
    expect_refusal(mia.put(path_of(OWN, "in/tagged", "object-tags"), b'{"tags": [{"key": "", "value": ""}]}'), 400, "INVALID_REQUEST")
    assert tags(served, OWN, "in/tagged") == TAGS["tags"]
    for bucket, key in ((OWN, "tagged"), (OWN, "secret/tagged"), (OWN, "once/tagged"), (OWN, "once/missing"), (OTHER, "in/tagged"), ("no-such-bucket", "in/tagged")):
        denied(mia.put(path_of(bucket, key, "object-tags"), json.dumps(TAGS)), "you need s3:PutObject on this object, and no policy allows it")
    assert [tags(served, *of) for of in ((OWN, "tagged"), (OWN, "secret/tagged"), (OWN, "once/tagged"), (OTHER, "in/tagged"))] == [[]] * 4
    expect_refusal(mia.put(path_of(OWN, "in/missing", "object-tags"), json.dumps(TAGS)), 404, "OBJECT_NOT_FOUND")
    (event, *_) = audited(served, principal="person:mia", operation="set_object_tags", result="denied")
    assert event["role"] == "member" and "s3:PutObject" in event["detail"]


def test_versions_are_listed_and_read_where_policies_allow_it(served: Cairn, mia: Console):
    """The list needs the right to list the bucket, each version that to read the object. Earlier moments stay closed."""
    ids = write(served, OWN, "read", b"1", b"2")
    (hidden,) = write(served, OWN, "secret/read", b"1")
    (foreign,) = write(served, OTHER, "read", b"1")
    listed = expect(mia.api(f"/buckets/{OWN}/object-versions", params={"prefix": "read", "limit": 1}), 200)
    markers = {"key_marker": listed["next_key_marker"], "version_id_marker": listed["next_version_id_marker"]}
    listed["versions"] += expect(mia.api(f"/buckets/{OWN}/object-versions", params={"prefix": "read"} | markers), 200)["versions"]
    assert [version["version_id"] for version in listed["versions"]] == ids[::-1]
    for bucket in (OTHER, BOX, "no-such-bucket"):
        denied(mia.api(f"/buckets/{bucket}/object-versions"), "you need s3:ListBucket on this bucket, and no policy allows it")
    for kind in ("object-content", "object-preview"):
        assert mia.get(path_of(OWN, "read", kind), params={"version_id": ids[0]}).content == b"1"
        denied(mia.get(path_of(OWN, "secret/read", kind), params={"version_id": hidden}), "you need s3:GetObject on this object, and a policy denies it")
        denied(mia.get(path_of(OTHER, "read", kind), params={"version_id": foreign}), "s3:GetObject")
    for unknown in (hidden, "no-such-version"):
        expect_refusal(mia.get(path_of(OWN, "read"), params={"version_id": unknown}), 404, "VERSION_NOT_FOUND")
    denied(mia.get(path_of(OWN, "read"), params={"at": "2026-01-01T00:00:00Z"}), "no earlier moment")
    denied(mia.api(f"/buckets/{OWN}/object-history/read"), "role")


def test_versions_are_restored_and_deleted_where_policies_allow_it(served: Cairn, mia: Console):
    """A restored version is read and written: each needs its right. Nothing changes without it."""
    written = {key: write(served, OWN, key, b"1", b"2") for key in ("kept", "secret/kept", "in/kept", "in/blind/kept", "once/kept")}
    foreign, _ = write(served, OTHER, "in/kept", b"1", b"2")
    expect(restored(mia, OWN, "in/kept", written["in/kept"][0]), 201)
    assert content(served, OWN, "in/kept") == b"1"
    expect(mia.post(path_of(OWN, "kept", "object-copy"), {"destination_bucket": OWN, "destination_key": "in/copied", "version_id": written["kept"][0]}), 201)
    assert content(served, OWN, "in/copied") == b"1"
    denied(restored(mia, OWN, "kept", written["kept"][0]), "you need s3:PutObject on this object, and no policy allows it")
    for key in ("secret/kept", "in/blind/kept"):
        denied(restored(mia, OWN, key, written[key][0]), "you need s3:GetObject on this object, and a policy denies it")
        stolen = {"destination_bucket": OWN, "destination_key": "in/stolen", "version_id": written[key][0]}
        denied(mia.post(path_of(OWN, key, "object-copy"), stolen), "s3:GetObject")
    denied(restored(mia, OTHER, "in/kept", foreign), "s3:GetObject")
    denied(restored(mia, "no-such-bucket", "in/kept", foreign), "s3:GetObject")
    expect_refusal(restored(mia, OWN, "once/kept", written["once/kept"][0]), 409, "OBJECT_ALREADY_EXISTS")
    expect_refusal(restored(mia, OWN, "in/kept", written["kept"][0]), 404, "VERSION_NOT_FOUND")
    for bucket, key, version in [(OWN, key, written[key][0]) for key in ("kept", "secret/kept", "once/kept")] + [(OTHER, "in/kept", foreign)]:
        denied(mia.delete(path_of(bucket, key, "object-versions"), params={"version_id": version}), "you need s3:DeleteObject on this object")
        assert served.s3.get(bucket, key, query=f"versionId={version}").body == b"1"
        assert content(served, bucket, key) == b"2"
    expect(mia.delete(path_of(OWN, "in/kept", "object-versions"), params={"version_id": written["in/kept"][0]}), 204)
    assert served.s3.get(OWN, "in/kept", query=f"versionId={written['in/kept'][0]}").status == 404
    assert mia.delete(path_of(OWN, "in/copied")).status_code == 204 and content(served, OWN, "in/copied") is None
    marker = expect(mia.api(f"/buckets/{OWN}/object-versions", params={"prefix": "in/copied"}), 200)["versions"][0]
    assert marker["is_delete_marker"]
    expect(mia.delete(path_of(OWN, "in/copied", "object-versions"), params={"version_id": marker["version_id"]}), 204)
    assert content(served, OWN, "in/copied") == b"1" and content(served, OWN, "in/stolen") is None
    refused = {event["operation"] for event in audited(served, principal="person:mia", result="denied")}
    assert refused >= {"restore_object", "delete_object_version", "copy_object"}


def test_who_may_not_list_does_not_learn_which_versions_exist(served: Cairn):
    """As in S3: a missing version is 403 in place of 404."""
    visitor = Visitor(served)
    visitor.sign_in("pia")
    first, _ = write(served, BOX, "letter", b"1", b"2")
    console, unknown = visitor.console, write(served, OTHER, "unknown", b"1")[0]
    assert console.get(path_of(BOX, "letter", "object-content"), params={"version_id": first}).content == b"1"
    for response in (
        console.get(path_of(BOX, "letter"), params={"version_id": unknown}),
        console.put(path_of(BOX, "missing", "object-tags"), json.dumps(TAGS)),
        restored(console, BOX, "letter", unknown),
        console.delete(path_of(BOX, "letter", "object-versions"), params={"version_id": unknown}),
    ):
        denied(response, "you need s3:ListBucket on this bucket")


def test_a_locked_version_stays(served: Cairn, mia: Console):
    """Neither retention nor hold can be bypassed without a role."""
    expect(served.admin.post("/buckets", {"name": "team-locked", "object_lock": True}), 201)
    (version,) = write(served, "team-locked", "in/doc", b"1")
    expect(served.admin.put("/buckets/team-locked/object-legal-hold/in%2Fdoc", {"legal_hold": True}), 200)
    path, more = served.policies[WRITES], {"effect": "allow", "actions": ["s3:DeleteObject"], "resources": ["bucket:team-locked/*"]}
    replace_policy(served, path, WRITES, [*STATEMENTS[WRITES], more])
    try:
        response = mia.delete(path_of("team-locked", "in/doc", "object-versions"), params={"version_id": version})
        expect_refusal(response, 403, "OBJECT_LOCKED")
        assert content(served, "team-locked", "in/doc") == b"1"
    finally:
        replace_policy(served, path, WRITES, STATEMENTS[WRITES])


def test_a_request_in_progress_ends_with_its_right(served: Cairn, mia: Console):
    """The policy is withdrawn after the request was admitted: nothing is changed, and the refusal is in the audit trail."""
    first, second = write(served, OWN, "in/slow", b"1", b"2")
    restore = json.dumps({"version_id": first}).encode()
    for method, sent, body, name, missing in (
        ("PUT", path_of(OWN, "in/slow", "object-tags"), json.dumps(TAGS).encode(), WRITES, "s3:PutObject"),
        ("POST", f"{API}/restore/{OWN}/in/slow", restore, WRITES, "s3:PutObject"),
        ("POST", f"{API}/restore/{OWN}/in/slow", restore, READS, "s3:GetObject"),
        ("DELETE", f"{path_of(OWN, 'in/slow', 'object-versions')}?version_id={first}", b"{ }", WRITES, "s3:DeleteObject"),
    ):
        path = served.policies[name]
        try:
            refused = sent_in_halves(mia, method, sent, body, lambda path=path, name=name: replace_policy(served, path, name, STATEMENTS["drop letters"]))
        finally:
            replace_policy(served, path, name, STATEMENTS[name])
        assert refused.status == 403 and missing.encode() in refused.body, (method, sent, refused)
        (event,) = audited(served, request_id=refused.get("x-request-id"))
        assert event["result"] == "denied" and missing in event["detail"]
    assert tags(served, OWN, "in/slow") == []
    versions = expect(served.admin.get(f"/buckets/{OWN}/object-versions", params={"prefix": "in/slow"}), 200)["versions"]
    assert [version["version_id"] for version in versions] == [second, first]


def test_tags_and_versions_in_the_console(served: Cairn, mia: Console, run_folder: Path):
    """A member adds and removes a tag, restores a version, deletes one, and brings back what it deleted. Nothing else is asked for."""
    write(served, OWN, "in/page.txt", b"the first text", b"the second text")
    name = "text of the page"
    refused = lambda: audited(served, principal="person:mia", result="denied")[:1]
    before = refused()
    with console_browser(run_folder / "member-versions-browser") as browser:
        page = Page(browser, served.console)
        show_console(page, mia)
        page.load()
        page.go("object", OWN, "in/page.txt")
        page.see("the second text")
        for closed in ("Embed", "Edit", "Verify"):
            assert not page.has(closed), closed
        page.click("Add tag")
        page.fill("Name", "colour")
        page.fill("Value", name)
        page.run("async () => document.querySelector('.inline-form button[type=submit]').click()")
        page.see(f"colour = {name}")
        assert tags(served, OWN, "in/page.txt") == [{"key": "colour", "value": name}]
        page.click("Remove tag colour")
        page.see("No tags.")
        page.click("View Version 1")
        page.see("the first text")
        page.click("Restore this version")
        page.see("The version is current again.")
        page.see("Version 3")
        assert content(served, OWN, "in/page.txt") == b"the first text"
        page.click("Actions for Version 2")
        page.click("Delete version")
        page.run("async () => document.querySelector('dialog button[type=submit]').click()")
        page.wait("async () => document.querySelectorAll('.life > li').length === 2")
        page.act("Delete")
        page.click("Undelete")
        page.wait("async () => document.querySelectorAll('.life > li').length === 2 && !document.body.innerText.includes('Undelete')")
        assert content(served, OWN, "in/page.txt") == b"the first text"
        assert page.violations() == []
    assert refused() == before
