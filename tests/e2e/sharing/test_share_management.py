"""Management of shares and embeds: every route with its errors, roles, audit, policy, limits and durability."""

import itertools
import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.boto import make_client
from harness.management import Management, bearer, expect, expect_refusal, segment
from harness.moments import with_an_end, written
from harness.old_store import upgrade
from harness.server import Cairn
from harness.shares import after
from harness.wait import until

_numbers = itertools.count(1)
ID = "01890000-0000-7000-8000-000000000000"
PNG = [("content-type", "image/png")]
ORIGIN = "https://www.example.com"
SHARE_MEMBERS = {
    "id", "bucket", "key", "version_id", "label", "created_at", "created_by", "expires_at", "password_protected", "disposition",
    "maximum_downloads", "status", "access_count", "last_accessed_at",
}
EMBED_MEMBERS = {
    "id", "bucket", "key", "label", "allowed_origins", "disposition", "expires_at", "version", "created_at", "created_by", "status",
    "access_count", "last_accessed_at",
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KINDS = {"share": {}, "embed": {"allowed_origins": [ORIGIN]}}
kinds = pytest.mark.parametrize("kind", KINDS)


def route(kind: str, bucket: str, key: str) -> str:
    """Returns the route of an object's links."""
    return f"/buckets/{bucket}/object-{kind}s/{segment(key)}"


def create(store: Cairn, kind: str, bucket: str, key: str, **members) -> dict:
    """Creates a link. Returns the whole response."""
    return expect(store.admin.post(route(kind, bucket, key), KINDS[kind] | members), 201)


def patch(store: Cairn, kind: str, link: dict, **members):
    """Changes a link."""
    return store.admin.request("PATCH", f"/{kind}s/{link['id']}", json=members)


def token_of(url: str) -> str:
    """Returns the token of a URL."""
    return url.rsplit("/", 1)[1]


@pytest.fixture
def photos(store: Cairn) -> str:
    """Returns a bucket of the test's own with an image."""
    name = f"shared-{os.getpid()}-{next(_numbers)}"
    store.s3.create_bucket(name)
    store.s3.put(name, "a b/ü.png", b"an image", headers=PNG)
    return name


def test_share_is_created_with_defaults(store: Cairn, photos: str):
    """Without a body, a share follows the current version, is inline, and does not expire."""
    created = expect(store.admin.post(route("share", photos, "a b/ü.png")), 201)
    assert set(created) == {"share", "url"}
    share = created["share"]
    assert set(share) == SHARE_MEMBERS
    assert (share["bucket"], share["key"], share["created_by"], share["status"]) == (photos, "a b/ü.png", "system", "active")
    assert TIME.fullmatch(share["created_at"]) and re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", share["id"])
    for absent in ("version_id", "label", "expires_at", "maximum_downloads", "last_accessed_at"):
        assert share[absent] is None, absent
    assert (share["password_protected"], share["disposition"], share["access_count"]) == (False, "inline", 0)
    assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/s/[A-Za-z0-9_-]{{43}}", created["url"])
    assert expect(store.admin.get(f"/shares/{share['id']}"), 200) == share
    assert expect(store.admin.get(route("share", photos, "a b/ü.png")), 200) == {"shares": [share]}


def test_share_has_every_option(store: Cairn, photos: str):
    """The password appears nowhere, not even as a hash."""
    end = after(days=3)
    created = create(
        store, "share", photos, "a b/ü.png", label="für Ada", password="geheim-päss", expires_at=end, disposition="attachment",
        maximum_downloads=7, version_id="null",
    )
    share = created["share"]
    assert (share["label"], share["expires_at"], share["disposition"], share["maximum_downloads"]) == ("für Ada", end, "attachment", 7)
    assert share["password_protected"] is True and share["version_id"] == "null"
    shown = expect(store.admin.get(f"/shares/{share['id']}"), 200)
    assert shown == share and "geheim" not in str(created) and "argon" not in str(created).lower()


def test_embed_has_every_option_and_a_snippet(store: Cairn, photos: str):
    """Origins take their canonical form; the version choice is shown as it was made."""
    end = after(days=3)
    created = create(
        store, "embed", photos, "a b/ü.png", label='"><script>', allowed_origins=["HTTPS://WWW.Example.com:443", "http://localhost:8080"],
        disposition="inline", expires_at=end, version={"mode": "pinned", "version_id": "null"},
    )
    assert set(created) == {"embed", "url", "snippet"}
    embed, url = created["embed"], created["url"]
    assert set(embed) == EMBED_MEMBERS
    assert embed["allowed_origins"] == [ORIGIN, "http://localhost:8080"]
    assert embed["version"] == {"mode": "pinned", "version_id": "null"} and embed["expires_at"] == end
    assert re.fullmatch(rf"{store.endpoint}/e/[A-Za-z0-9_-]{{43}}", url)
    assert created["snippet"] == f'<img src="{url}" alt="&quot;&gt;&lt;script&gt;" loading="lazy" referrerpolicy="strict-origin">'
    current = create(store, "embed", photos, "a b/ü.png", version={"mode": "current"})["embed"]
    assert (current["version"], current["label"], current["disposition"]) == ({"mode": "current"}, None, "inline")


@pytest.mark.parametrize(("content_type", "disposition", "snippet"), [
    ("image/jpeg", "inline", '<img src="{url}" alt="k" loading="lazy" referrerpolicy="strict-origin">'),
    ("video/mp4", "inline", '<video controls preload="metadata" crossorigin="anonymous" src="{url}"></video>'),
    ("audio/mpeg", "inline", '<audio controls preload="metadata" crossorigin="anonymous" src="{url}"></audio>'),
    ("text/html", "attachment", '<a href="{url}" referrerpolicy="strict-origin" download>k</a>'),
])
def test_snippet_fits_the_type(store: Cairn, photos: str, content_type: str, disposition: str, snippet: str):
    """Each element makes the browser send the page's origin."""
    store.s3.put(photos, "k", b"x", headers=[("content-type", content_type)])
    created = create(store, "embed", photos, "k", disposition=disposition)
    assert created["snippet"] == snippet.format(url=created["url"])


@pytest.mark.parametrize("content_type", ["image/svg+xml", "text/html", "text/javascript", "application/pdf", "text/plain", "image/png, text/html"])
def test_embed_of_another_type_is_refused(store: Cairn, photos: str, content_type: str):
    """As an attachment it is allowed, and stays one: a later change to inline is refused, too."""
    store.s3.put(photos, "active", b"<svg/>", headers=[("content-type", content_type)])
    request = KINDS["embed"] | {"label": "x", "disposition": "inline"}
    message = expect_refusal(store.admin.post(route("embed", photos, "active"), request), 400, "EMBED_CONTENT_TYPE_REFUSED")
    assert content_type in message and "attachment" in message
    assert expect(store.admin.get(route("embed", photos, "active")), 200) == {"embeds": []}
    embed = create(store, "embed", photos, "active", disposition="attachment")["embed"]
    expect_refusal(patch(store, "embed", embed, disposition="inline"), 400, "EMBED_CONTENT_TYPE_REFUSED")
    assert expect(store.admin.get(f"/embeds/{embed['id']}"), 200) == embed
    store.s3.put(photos, "active", b"now an image", headers=PNG)
    assert expect(patch(store, "embed", embed, disposition="inline"), 200)["disposition"] == "inline"


def test_type_of_the_pinned_version_counts(store: Cairn, photos: str):
    """The current version is an image, the pinned one a page."""
    boto = make_client(store.s3)
    boto.put_bucket_versioning(Bucket=photos, VersioningConfiguration={"Status": "Enabled"})
    page = boto.put_object(Bucket=photos, Key="k", Body=b"<html>", ContentType="text/html")["VersionId"]
    image = boto.put_object(Bucket=photos, Key="k", Body=b"png", ContentType="image/png")["VersionId"]
    pinned = KINDS["embed"] | {"version": {"mode": "pinned", "version_id": page}}
    expect_refusal(store.admin.post(route("embed", photos, "k"), pinned), 400, "EMBED_CONTENT_TYPE_REFUSED")
    assert create(store, "embed", photos, "k", version={"mode": "pinned", "version_id": image})["embed"]["version"]["version_id"] == image


@kinds
def test_missing_objects_are_refused(store: Cairn, photos: str, kind: str):
    """Bucket, object and version must exist. A delete marker counts as missing."""
    request = KINDS[kind]
    pin = (lambda version: {"version_id": version}) if kind == "share" else lambda version: {"version": {"mode": "pinned", "version_id": version}}
    for method in ("GET", "POST"):
        send = lambda path: store.admin.request(method, path, **({"json": request} if method == "POST" else {}))  # noqa: B023, E731
        expect_refusal(send(route(kind, "no-such-bucket", "k")), 404, "BUCKET_NOT_FOUND")
        expect_refusal(send(route(kind, "No_Bucket", "k")), 400, "INVALID_BUCKET_NAME")
        expect_refusal(send(route(kind, photos, "missing")), 404, "OBJECT_NOT_FOUND")
        expect_refusal(send(route(kind, photos, "k" * 1025)), 400, "INVALID_REQUEST")
    boto = make_client(store.s3)
    boto.put_bucket_versioning(Bucket=photos, VersioningConfiguration={"Status": "Enabled"})
    version = boto.put_object(Bucket=photos, Key="k", Body=b"1", ContentType="image/png")["VersionId"]
    marker = boto.delete_object(Bucket=photos, Key="k")["VersionId"]
    expect_refusal(store.admin.post(route(kind, photos, "k"), request), 404, "OBJECT_NOT_FOUND")
    for unknown in (marker, "0" * len(version), "no version", "null"):
        expect_refusal(store.admin.post(route(kind, photos, "k"), request | pin(unknown)), 404, "VERSION_NOT_FOUND")
    expect_refusal(store.admin.post(route(kind, photos, "k"), request | pin("")), 400, "INVALID_REQUEST")
    assert create(store, kind, photos, "k", **pin(version))[kind]["status"] == "active"


@pytest.mark.parametrize("members", [
    {"labell": "x"}, {"label": 5}, {"label": "x" * 257}, {"label": "ü" * 129}, {"label": "a\nb"}, {"password": ""}, {"password": "x" * 1025},
    {"password": 7}, {"expires_at": "tomorrow"}, {"expires_at": 0}, {"expires_at": "2020-01-01T00:00:00Z"}, {"disposition": "Inline"},
    {"maximum_downloads": 0}, {"maximum_downloads": -1}, {"maximum_downloads": 1.5}, {"maximum_downloads": 2**53}, {"version_id": 1}, {"allowed_origins": [ORIGIN]},
    {"token": "x" * 43}, {"status": "active"}, [],
])
def test_invalid_shares_are_refused(store: Cairn, photos: str, members: object):
    """Nothing is created, and nothing of the password is repeated."""
    message = expect_refusal(store.admin.post(route("share", photos, "a b/ü.png"), members), 400, "INVALID_REQUEST")
    assert "x" * 100 not in message
    assert expect(store.admin.get(route("share", photos, "a b/ü.png")), 200) == {"shares": []}


@pytest.mark.parametrize(("members", "code"), [
    ({"allowed_origins": None}, "INVALID_REQUEST"), ({"allowed_origins": []}, "INVALID_REQUEST"),
    ({"allowed_origins": [f"https://{number}.example.com" for number in range(101)]}, "INVALID_REQUEST"),
    ({"allowed_origins": ["*"]}, "INVALID_ORIGIN"), ({"allowed_origins": [ORIGIN, "null"]}, "INVALID_ORIGIN"),
    ({"allowed_origins": ["https://*.example.com"]}, "INVALID_ORIGIN"), ({"allowed_origins": [ORIGIN + "/"]}, "INVALID_ORIGIN"),
    ({"allowed_origins": [ORIGIN + "/page"]}, "INVALID_ORIGIN"), ({"allowed_origins": ["www.example.com"]}, "INVALID_ORIGIN"),
    ({"allowed_origins": ["ftp://example.com"]}, "INVALID_ORIGIN"), ({"allowed_origins": ["https://user@example.com"]}, "INVALID_ORIGIN"),
    ({"allowed_origins": ["https://example.com:99999"]}, "INVALID_ORIGIN"), ({"allowed_origins": [""]}, "INVALID_ORIGIN"),
    ({"allowed_origins": ["https://example.com?x"]}, "INVALID_ORIGIN"), ({"allowed_origins": ["https://" + "a" * 5000]}, "INVALID_ORIGIN"),
    ({"allowed_origins": "https://example.com"}, "INVALID_REQUEST"), ({"disposition": "embed"}, "INVALID_REQUEST"),
    ({"version": {"mode": "latest"}}, "INVALID_REQUEST"), ({"version": {"mode": "pinned"}}, "INVALID_REQUEST"), ({"version": {}}, "INVALID_REQUEST"),
    ({"version": {"mode": "current", "version_id": "null"}}, "INVALID_REQUEST"), ({"version": "current"}, "INVALID_REQUEST"),
    ({"version_id": "null"}, "INVALID_REQUEST"), ({"password": "x"}, "INVALID_REQUEST"), ({"maximum_downloads": 3}, "INVALID_REQUEST"),
])
def test_invalid_embeds_are_refused(store: Cairn, photos: str, members: dict, code: str):
    """All origins are valid, or nothing is created. The message names the invalid one."""
    message = expect_refusal(store.admin.post(route("embed", photos, "a b/ü.png"), KINDS["embed"] | members), 400, code)
    if code == "INVALID_ORIGIN":
        assert members["allowed_origins"][-1][:60] in message and len(message) < 500
    assert expect(store.admin.get(route("embed", photos, "a b/ü.png")), 200) == {"embeds": []}


@kinds
def test_changes_set_and_remove_values(store: Cairn, photos: str, kind: str):
    """Members that are not given stay. Null removes. The URL stays."""
    created = create(store, kind, photos, "a b/ü.png", label="one", expires_at=after(days=1))
    link, url = created[kind], created["url"]
    end = after(days=2)
    changed = expect(patch(store, kind, link, expires_at=end), 200)
    assert changed == link | {"expires_at": end}
    assert expect(patch(store, kind, link, label=None, expires_at=None), 200) == link | {"label": None, "expires_at": None}
    if kind == "share":
        assert expect(patch(store, kind, link, password="a", maximum_downloads=2), 200)["password_protected"] is True
        shown = expect(patch(store, kind, link, password=None), 200)
        assert (shown["password_protected"], shown["maximum_downloads"]) == (False, 2)
        assert expect(patch(store, kind, link, maximum_downloads=None), 200)["maximum_downloads"] is None
    else:
        narrowed = expect(patch(store, kind, link, allowed_origins=["https://EXAMPLE.org", "https://example.org:443"]), 200)
        assert narrowed["allowed_origins"] == ["https://example.org"]
        assert expect(patch(store, kind, link, disposition="attachment"), 200)["disposition"] == "attachment"
    before = expect(store.admin.get(f"/{kind}s/{link['id']}"), 200)
    assert expect(patch(store, kind, link), 200) == before
    assert expect(store.admin.get(f"/{kind}s/{link['id']}/url"), 200) == {"url": url}


@kinds
def test_invalid_changes_are_refused(store: Cairn, photos: str, kind: str):
    """Nothing changes when one member is invalid."""
    link = create(store, kind, photos, "a b/ü.png", label="kept")[kind]
    invalid = [{"labell": "x"}, {"label": "x" * 257}, {"expires_at": "2020-01-01T00:00:00Z"}, {"expires_at": "soon"}, {"id": ID}, {"key": "other"}]
    invalid += [{"password": ""}, {"maximum_downloads": 0}, {"maximum_downloads": 2**53}, {"disposition": "inline"}] if kind == "share" else [
        {"allowed_origins": []}, {"allowed_origins": None}, {"disposition": None}, {"version": {"mode": "current"}}, {"password": "x"},
    ]
    for members in invalid:
        expect_refusal(patch(store, kind, link, **({"label": "changed"} | members)), 400, "INVALID_REQUEST")
    if kind == "embed":
        expect_refusal(patch(store, kind, link, label="changed", allowed_origins=[ORIGIN, "*"]), 400, "INVALID_ORIGIN")
    assert expect(store.admin.get(f"/{kind}s/{link['id']}"), 200) == link


@kinds
def test_unknown_links_are_not_found(store: Cairn, kind: str):
    """Also with an id that is none, and with the id of the other kind."""
    code = f"{kind.upper()}_NOT_FOUND"
    for wrong in (ID, "x", ID.upper() + "0"):
        expect_refusal(store.admin.get(f"/{kind}s/{wrong}"), 404, code)
        expect_refusal(store.admin.get(f"/{kind}s/{wrong}/url"), 404, code)
        expect_refusal(store.admin.request("PATCH", f"/{kind}s/{wrong}", json={"label": "x"}), 404, code)
        expect_refusal(store.admin.post(f"/{kind}s/{wrong}/revoke"), 404, code)
        expect_refusal(store.admin.delete(f"/{kind}s/{wrong}"), 404, code)


@kinds
def test_revocation_is_permanent_and_deletion_removes(store: Cairn, photos: str, kind: str):
    """A second revocation changes nothing; a deleted link is in no list."""
    link = create(store, kind, photos, "a b/ü.png")[kind]
    revoked = expect(store.admin.post(f"/{kind}s/{link['id']}/revoke"), 200)
    assert revoked == link | {"status": "revoked"}
    assert expect(store.admin.post(f"/{kind}s/{link['id']}/revoke", {}), 200) == revoked
    expect_refusal(store.admin.post(f"/{kind}s/{link['id']}/revoke", {"undo": True}), 400, "INVALID_REQUEST")
    assert expect(patch(store, kind, link, expires_at=after(days=1)), 200)["status"] == "revoked"
    assert expect(store.admin.get(route(kind, photos, "a b/ü.png")), 200)[f"{kind}s"][0]["status"] == "revoked"
    assert expect(store.admin.delete(f"/{kind}s/{link['id']}"), 204) is None
    expect_refusal(store.admin.get(f"/{kind}s/{link['id']}"), 404, f"{kind.upper()}_NOT_FOUND")
    assert expect(store.admin.get(route(kind, photos, "a b/ü.png")), 200) == {f"{kind}s": []}


@kinds
def test_links_of_a_deleted_object_are_listed(store: Cairn, photos: str, kind: str):
    """They can still be found and revoked. They work again when the object is stored again."""
    link = create(store, kind, photos, "a b/ü.png")[kind]
    assert store.s3.delete(photos, "a b/ü.png").status == 204
    assert expect(store.admin.get(route(kind, photos, "a b/ü.png")), 200) == {f"{kind}s": [link]}


@kinds
def test_links_do_not_follow_into_a_new_bucket(store: Cairn, photos: str, kind: str):
    """A bucket of the same name has none of the old links."""
    link = create(store, kind, photos, "a b/ü.png")[kind]
    assert store.s3.delete(photos, "a b/ü.png").status == 204
    expect(store.admin.delete(f"/buckets/{photos}"), 204)
    expect_refusal(store.admin.get(route(kind, photos, "a b/ü.png")), 404, "BUCKET_NOT_FOUND")
    store.s3.create_bucket(photos)
    store.s3.put(photos, "a b/ü.png", b"another image", headers=PNG)
    assert expect(store.admin.get(route(kind, photos, "a b/ü.png")), 200) == {f"{kind}s": []}
    assert expect(store.admin.get(f"/{kind}s?bucket={photos}"), 200)[f"{kind}s"] == []
    assert expect(store.admin.get(f"/{kind}s/{link['id']}"), 200) == link
    if kind == "embed":
        attached = expect(patch(store, kind, link, disposition="attachment"), 200)
        expect_refusal(patch(store, kind, attached, disposition="inline"), 404, "OBJECT_NOT_FOUND")


@kinds
def test_pages_contain_every_link_once(store: Cairn, photos: str, kind: str):
    """The newest come first. Filters apply to every page."""
    other = f"{photos}-other"
    store.s3.create_bucket(other)
    store.s3.put(other, "k", b"x", headers=PNG)
    role = expect(store.admin.post("/management-tokens", {"name": f"a {photos}", "role": "storage_admin"}), 201)
    manager = Management(store.management, bearer(role["token"]))
    made = [create(store, kind, photos, "a b/ü.png", label=f"{number}")[kind] for number in range(5)]
    made += [expect(manager.post(route(kind, other, "k"), KINDS[kind]), 201)[kind]]
    principal = made[-1]["created_by"]
    assert principal != "system" and photos in principal
    made[2] = expect(store.admin.post(f"/{kind}s/{made[2]['id']}/revoke"), 200)

    def pages(**filters: str | int) -> list[dict]:
        found, token = [], {}
        while True:
            page = expect(store.admin.get(f"/{kind}s", params=filters | token), 200)
            assert set(page) == {f"{kind}s", "next_continuation_token"} and len(page[f"{kind}s"]) <= filters.get("limit", 1000)
            found += page[f"{kind}s"]
            if page["next_continuation_token"] is None:
                return found
            token = {"continuation_token": page["next_continuation_token"]}

    for limit in (1, 2, 1000):
        assert pages(bucket=photos, limit=limit) == made[4::-1], limit
    exact = expect(store.admin.get(f"/{kind}s", params={"bucket": photos, "limit": 5}), 200)
    assert exact["next_continuation_token"] is None, "no page follows the last link"
    newest_first = made[::-1]
    assert [link for link in pages() if link["bucket"] in (photos, other)] == newest_first
    assert pages(bucket=photos, status="revoked") == [made[2]]
    assert pages(bucket=photos, status="active", limit=1) == [made[4], made[3], made[1], made[0]]
    assert pages(created_by=principal) == [made[5]] and pages(bucket=photos, created_by="nobody") == []


@pytest.mark.parametrize(("query", "status", "code"), [
    ("limit=0", 400, "INVALID_REQUEST"), ("limit=1001", 400, "INVALID_REQUEST"), ("limit=x", 400, "INVALID_REQUEST"),
    ("status=gone", 400, "INVALID_REQUEST"), ("status=", 400, "INVALID_REQUEST"), ("continuation_token=x", 400, "INVALID_REQUEST"),
    ("bucket=no-such-bucket", 404, "BUCKET_NOT_FOUND"), ("bucket=X", 400, "INVALID_BUCKET_NAME"), ("key=x", 400, "INVALID_REQUEST"),
    ("limit=1&limit=2", 400, "INVALID_REQUEST"),
])
@kinds
def test_invalid_queries_are_refused(store: Cairn, kind: str, query: str, status: int, code: str):
    """A misspelt filter would show links that were not meant."""
    expect_refusal(store.admin.get(f"/{kind}s?{query}"), status, code)


def test_embeds_are_never_exhausted(store: Cairn):
    """The status is one of shares only."""
    expect(store.admin.get("/shares?status=exhausted"), 200)
    message = expect_refusal(store.admin.get("/embeds?status=exhausted"), 400, "INVALID_REQUEST")
    assert message == "status must be one of active, revoked, expired"


@kinds
def test_url_is_stable_and_its_disclosure_is_audited(store: Cairn, photos: str, kind: str):
    """Creation and the disclosure of the URL are recorded with the principal, repetitions are counted. No record contains the token."""
    created = create(store, kind, photos, "a b/ü.png")
    link = created[kind]
    urls = [store.admin.get(f"/{kind}s/{link['id']}/url") for _ in range(2)]
    assert all(expect(answer, 200) == {"url": created["url"]} and answer.headers["cache-control"] == "no-store" for answer in urls)
    patch(store, kind, link, label="audited")
    patch(store, kind, link)
    expect(store.admin.post(f"/{kind}s/{link['id']}/revoke"), 200)
    expect(store.admin.post(f"/{kind}s/{link['id']}/revoke"), 200)
    expect(store.admin.delete(f"/{kind}s/{link['id']}"), 204)
    found = expect(store.admin.get(f"/audit/events?resource={link['id']}"), 200)["events"][::-1]
    operations = [f"get_{kind}_url", f"update_{kind}", f"revoke_{kind}", f"delete_{kind}"]
    assert [(event["operation"], event["result"], event["principal"]) for event in found] == [(name, "allowed", "system") for name in operations]
    assert all(f"{photos}/a b/ü.png" in event["detail"] for event in found) and found[0]["detail"].startswith("the URL was shown")
    assert found[0]["request_id"] == urls[0].headers["x-request-id"]
    (creation,) = expect(store.admin.get(f"/audit/events?operation=create_{kind}&bucket={photos}"), 200)["events"]
    assert link["id"] in creation["detail"] and "URL" in creation["detail"]
    token = token_of(created["url"])
    assert token not in str(found) + str(creation) and token[:20] not in store.output()


def test_auditors_see_links_but_never_their_urls(store: Cairn, photos: str):
    """The refusal is audited. No other response that an auditor gets contains the token."""
    token = expect(store.admin.post("/management-tokens", {"name": photos, "role": "auditor"}), 201)["token"]
    auditor = Management(store.management, bearer(token))
    for kind in KINDS:
        created = create(store, kind, photos, "a b/ü.png")
        link = created[kind]
        assert expect(auditor.get(f"/{kind}s/{link['id']}"), 200) == link
        listed = auditor.get(route(kind, photos, "a b/ü.png")).text + auditor.get(f"/{kind}s").text
        assert link["id"] in listed and token_of(created["url"]) not in listed
        refused = auditor.get(f"/{kind}s/{link['id']}/url")
        expect_refusal(refused, 403, "FORBIDDEN")
        found = expect(auditor.get(f"/audit/events?request_id={refused.headers['x-request-id']}"), 200)["events"]
        assert [(event["operation"], event["result"], event["resource"]) for event in found] == [(f"get_{kind}_url", "denied", link["id"])]


def test_thousand_links_of_an_object_are_the_limit(make_store: Callable[..., Cairn]):
    """All are in one response. One more is refused until one is deleted. Other objects and embeds are not affected."""
    store = make_store().start()
    store.s3.create_bucket("many")
    for key in ("k", "other"):
        store.s3.put("many", key, b"x", headers=PNG)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: create(store, "share", "many", "k", label=str(number))["share"]["id"], range(1000)))
    message = expect_refusal(store.admin.post(route("share", "many", "k"), {}), 409, "LIMIT_REACHED")
    assert "1000" in message
    listed = expect(store.admin.get(route("share", "many", "k")), 200)["shares"]
    assert sorted(share["id"] for share in listed) == sorted(made)
    assert [share["id"] for share in listed] == sorted(made, reverse=True)
    first = expect(store.admin.get("/shares?limit=1000"), 200)
    assert len(first["shares"]) == 1000
    create(store, "share", "many", "other")
    create(store, "embed", "many", "k")
    expect(store.admin.delete(f"/shares/{made[0]}"), 204)
    create(store, "share", "many", "k")
    store.kill()
    store.start()
    assert len(expect(store.admin.get(route("share", "many", "k")), 200)["shares"]) == 1000


@kinds
def test_links_survive_a_kill(make_store: Callable[..., Cairn], kind: str):
    """Whatever was answered is there: creation, change, revocation, deletion, and the URL."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "k", b"x", headers=PNG)
    created = [create(store, kind, "kept", "k", label=str(number)) for number in range(4)]
    links = [one[kind] for one in created]
    links[1] = expect(patch(store, kind, links[1], label="changed", expires_at=after(days=9)), 200)
    links[2] = expect(store.admin.post(f"/{kind}s/{links[2]['id']}/revoke"), 200)
    expect(store.admin.delete(f"/{kind}s/{links[3]['id']}"), 204)
    store.kill()
    store.start()
    assert expect(store.admin.get(route(kind, "kept", "k")), 200)[f"{kind}s"] == links[2::-1]
    url = expect(store.admin.get(f"/{kind}s/{links[0]['id']}/url"), 200)["url"]
    assert token_of(url) == token_of(created[0]["url"])
    expect_refusal(store.admin.get(f"/{kind}s/{links[3]['id']}"), 404, f"{kind.upper()}_NOT_FOUND")
    inspected = expect(store.admin.get("/storage/inspect"), 200)
    assert inspected["findings"] == [] and inspected["complete"]
    assert not any(token_of(one["url"]).encode() in file.read_bytes() for one in created for file in (store.data / "sharing").iterdir())


def test_policy_limits_new_links(make_store: Callable[..., Cairn]):
    """Links that were created before keep their lifetime; a change of the expiry follows the policy."""
    store = make_store().start()
    store.s3.create_bucket("policy")
    store.s3.put("policy", "k", b"x", headers=PNG)
    defaults = {"embeds_enabled": True, "maximum_lifetime_days": None, "require_expiration": False, "share_base_url": None, "embed_base_url": None}
    assert expect(store.admin.get("/sharing/settings"), 200) == defaults
    old = {kind: create(store, kind, "policy", "k")[kind] for kind in KINDS}
    assert store.stop() == 0
    store.extra |= {"SERVICE_SHARING_REQUIRE_EXPIRATION": "true", "SERVICE_SHARING_MAXIMUM_LIFETIME_DAYS": "7",
                    "SERVICE_SHARING_SHARE_BASE_URL": "https://files.example.com/share", "SERVICE_SHARING_EMBED_BASE_URL": "https://cdn.example.com"}
    store.start()
    settings = expect(store.admin.get("/sharing/settings"), 200)
    assert (settings["maximum_lifetime_days"], settings["require_expiration"]) == (7, True)
    assert (settings["share_base_url"], settings["embed_base_url"]) == ("https://files.example.com/share", "https://cdn.example.com")
    for kind, request in KINDS.items():
        expect_refusal(store.admin.post(route(kind, "policy", "k"), request), 400, "EXPIRATION_REQUIRED")
        expect_refusal(store.admin.post(route(kind, "policy", "k"), request | {"expires_at": after(days=8)}), 400, "LIFETIME_TOO_LONG")
        created = create(store, kind, "policy", "k", expires_at=after(days=6))
        assert created["url"].startswith({"share": "https://files.example.com/share/s/", "embed": "https://cdn.example.com/e/"}[kind])
        expect_refusal(patch(store, kind, created[kind], expires_at=None), 400, "EXPIRATION_REQUIRED")
        expect_refusal(patch(store, kind, created[kind], expires_at=after(days=8)), 400, "LIFETIME_TOO_LONG")
        assert expect(store.admin.get(f"/{kind}s/{old[kind]['id']}"), 200) == old[kind]
        assert expect(patch(store, kind, old[kind], label="still without expiry"), 200)["expires_at"] is None
    assert store.stop() == 0
    store.extra |= {"SERVICE_SHARING_REQUIRE_EXPIRATION": "false", "SERVICE_SHARING_EMBEDS_ENABLED": "false"}
    store.start()
    message = expect_refusal(store.admin.post(route("embed", "policy", "k"), KINDS["embed"]), 403, "SHARING_DISABLED")
    assert "sharing.embeds_enabled" in message
    expect_refusal(store.admin.post(route("share", "policy", "k"), {}), 400, "LIFETIME_TOO_LONG")
    assert expect(store.admin.post(f"/embeds/{old['embed']['id']}/revoke"), 200)["status"] == "revoked"
    failed = expect(store.admin.get("/audit/events?operation=create_embed&result=failed"), 200)["events"]
    assert len(failed) == 1 and failed[0]["detail"].startswith("SHARING_DISABLED")


def test_exhausted_share_works_again_with_a_greater_limit(store: Cairn, photos: str):
    """Downloads are counted for the lists; a change of the limit counts from the creation."""
    created = create(store, "share", photos, "a b/ü.png", maximum_downloads=1)
    share, content = created["share"], f"//s/{token_of(created['url'])}/content"
    anonymous = Management(store.management)
    assert anonymous.get(content).content == b"an image"
    exhausted = expect(store.admin.get(f"/shares?bucket={photos}&status=exhausted"), 200)["shares"]
    assert [(one["id"], one["access_count"], one["status"]) for one in exhausted] == [(share["id"], 1, "exhausted")]
    assert TIME.fullmatch(exhausted[0]["last_accessed_at"])
    expect_refusal(anonymous.get(content), 410, "SHARE_GONE")
    assert expect(patch(store, "share", share, maximum_downloads=2), 200)["status"] == "active"
    assert anonymous.get(content).content == b"an image"
    assert expect(patch(store, "share", share, maximum_downloads=1), 200)["access_count"] <= 2


def test_expired_links_are_listed_as_expired(store: Cairn, photos: str):
    """A later expiry makes them active again."""
    for kind in KINDS:
        link = with_an_end(lambda end, kind=kind: create(store, kind, photos, "a b/ü.png", expires_at=written(end))[kind])
        expired = lambda kind=kind: expect(store.admin.get(f"/{kind}s?bucket={photos}&status=expired"), 200)[f"{kind}s"]
        assert until(expired, "it does not expire") == [link | {"status": "expired"}]
        assert expect(patch(store, kind, link, expires_at=after(days=1)), 200)["status"] == "active"


def test_metrics_count_links(make_store: Callable[..., Cairn]):
    """Gauges by kind; counters exist from the start with every reason."""
    store = make_store().start()
    store.s3.create_bucket("counted")
    store.s3.put("counted", "k", b"x", headers=PNG)
    for _ in range(2):
        create(store, "share", "counted", "k")
    create(store, "embed", "counted", "k")

    def value(name: str, **labels: str) -> float:
        samples = expect(store.admin.get("/system/metrics"), 200)["metrics"]
        (found,) = [sample["value"] for sample in samples if sample["name"] == name and sample["labels"] == labels]
        return found

    assert (value("service_share_links", kind="share"), value("service_share_links", kind="embed")) == (2, 1)
    assert value("service_share_downloads_total", kind="share") == 0
    assert value("service_share_unlock_attempts_total", result="wrong") == 0
    before = value("service_share_access_denied_total", kind="share", reason="not_found")
    assert store.admin.get("//s/" + "A" * 43).status_code == 404
    assert value("service_share_access_denied_total", kind="share", reason="not_found") == before + 1
    expect(store.admin.post(f"/shares/{expect(store.admin.get('/shares'), 200)['shares'][0]['id']}/revoke"), 200)
    assert value("service_share_links", kind="share") == 2, "a revoked share exists still"


def test_store_of_format_4_is_upgraded(make_store: Callable[..., Cairn]):
    """The first start afterwards creates the folder of shares and embeds. A folder that is missing later refuses the start."""
    store = make_store().start()
    store.s3.create_bucket("upgraded")
    store.s3.put("upgraded", "k", b"x", headers=PNG)
    assert store.stop() == 0
    superblock = store.data / "superblock.json"
    superblock.write_text(superblock.read_text().replace('"format_version": 11', '"format_version": 4'))
    shutil.rmtree(store.data / "sharing")
    assert upgrade(store).returncode == 0
    store.start()
    link = create(store, "share", "upgraded", "k")["share"]
    store.restart()
    assert '"format_version": 11' in superblock.read_text()
    assert expect(store.admin.get(f"/shares/{link['id']}"), 200) == link
    assert store.stop() == 0
    shutil.rmtree(store.data / "sharing")
    assert store.spawn().wait(30) != 0
    assert "sharing" in store.output()


def test_readiness_and_capabilities_name_sharing(store: Cairn):
    """The console shows shares only if the server has them."""
    assert expect(store.admin.get("/system/info"), 200)["capabilities"]["sharing"] is True
