"""Public access: rules that let anybody read and list, what stays private, both switches, and where it shows."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from harness.accounts import create_account, statement
from harness.cli import FAILED, Cli
from harness.management import Management, expect, expect_refusal, with_role
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.s3 import S3, error_code, object_target, xml
from harness.server import Cairn
from harness.wire import Response


def anybody(s3: S3, method: str, target: str, headers: list[tuple[str, str]] | None = None) -> Response:
    """Sends a request without a signature."""
    return s3.send_raw(method, target, [("Host", s3.authority), *(headers or [])])


def publish(admin: Management, bucket: str, *rules: dict, blocked: bool = False) -> dict:
    """Replaces the rules of a bucket."""
    return expect(admin.put(f"/buckets/{bucket}/public-access", {"rules": list(rules), "blocked": blocked}), 200)


@pytest.fixture
def site(admin: Management, s3: S3, bucket: str) -> str:
    """A bucket with two public prefixes, one of which may be listed."""
    for key in ("assets/app.js", "open/a", "open/deeper/b", "private/c"):
        s3.put(bucket, key, key.encode(), headers=[("content-type", "text/plain")])
    publish(admin, bucket, {"prefix": "assets/", "read": True, "list": False}, {"prefix": "open/", "read": True, "list": True})
    return bucket


def test_anybody_reads_below_the_prefixes_and_nothing_else(s3: S3, site: str):
    """Ranges, conditions and content types are those of signed requests. What does not exist looks like what is private."""
    whole = anybody(s3, "GET", f"/{site}/assets/app.js")
    assert (whole.status, whole.body, whole.get("content-type")) == (200, b"assets/app.js", "text/plain")
    assert anybody(s3, "HEAD", f"/{site}/assets/app.js").get("content-length") == "13"
    part = anybody(s3, "GET", f"/{site}/assets/app.js", [("Range", "bytes=0-5")])
    assert (part.status, part.body) == (206, b"assets")
    assert anybody(s3, "GET", f"/{site}/assets/app.js", [("If-None-Match", whole.get("etag"))]).status == 304
    refused = [anybody(s3, "GET", f"/{name}") for name in (f"{site}/private/c", f"{site}/private/none", f"{site}/assets/none", "no-such-bucket/a")]
    assert {(response.status, error_code(response)) for response in refused} == {(403, "AccessDenied")}
    assert anybody(s3, "GET", f"/{site}/open/none").status == 404, "a prefix that may be listed shows what is missing"
    assert error_code(anybody(s3, "GET", f"/{site}/assets/app.js?response-content-type=text/html")) == "InvalidRequest"


def test_anybody_lists_only_where_a_rule_says_so(s3: S3, site: str):
    """With the prefix of the rule or a longer one."""
    listed = anybody(s3, "GET", f"/{site}?list-type=2&prefix=open/")
    assert [key.text for key in xml(listed).iter("Key")] == ["open/a", "open/deeper/b"]
    assert [key.text for key in xml(anybody(s3, "GET", f"/{site}?list-type=2&prefix=open/deeper/")).iter("Key")] == ["open/deeper/b"]
    for query in ("list-type=2", "list-type=2&prefix=ope", "list-type=2&prefix=assets/", "list-type=2&prefix=private/", "list-type=2&prefix="):
        assert error_code(anybody(s3, "GET", f"/{site}?{query}")) == "AccessDenied", query


def test_nothing_else_is_ever_public(admin: Management, s3: S3, bucket: str):
    """Neither versions, uploads, settings nor writes, even if every key may be read and listed."""
    expect(admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    version = s3.put(bucket, "a", b"first").get("x-amz-version-id")
    s3.put(bucket, "a", b"second")
    publish(admin, bucket, {"prefix": "", "read": True, "list": True})
    assert anybody(s3, "GET", f"/{bucket}/a").body == b"second"
    for method, target in (
        ("GET", f"/{bucket}/a?versionId={version}"), ("HEAD", f"/{bucket}/a?versionId={version}"), ("GET", f"/{bucket}?versions"),
        ("GET", f"/{bucket}?uploads"), ("GET", f"/{bucket}?location"), ("GET", f"/{bucket}?versioning"), ("GET", f"/{bucket}?cors"),
        ("GET", f"/{bucket}/a?retention"), ("GET", f"/{bucket}/a?legal-hold"), ("HEAD", f"/{bucket}"), ("GET", "/"),
        ("DELETE", f"/{bucket}/a"),
    ):
        assert anybody(s3, method, target).status == 403, (method, target)
    put = anybody(s3, "PUT", f"/{bucket}/b", [("Content-Length", "0")])
    assert error_code(put) == "AccessDenied"
    assert anybody(s3, "GET", f"/{bucket}/a").body == b"second"


def test_locks_and_tags_are_not_public(extended_store: Cairn, bucket_name: str):
    """Anybody could see until when an object is locked, and how many tags it has. So could accounts without a policy."""
    s3 = extended_store.s3
    assert s3.request("PUT", f"/{bucket_name}", [("x-amz-bucket-object-lock-enabled", "true")]).status == 200
    until = f"{datetime.now(UTC) + timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    kept = [
        ("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", until), ("x-amz-object-lock-legal-hold", "OFF"),
        ("x-amz-tagging", "a=1"), ("x-amz-meta-a", "b"),
    ]
    s3.put(bucket_name, "a", b"x", headers=kept)
    publish(extended_store.admin, bucket_name, {"prefix": "", "read": True, "list": False})
    private = {
        "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date", "x-amz-object-lock-legal-hold", "x-amz-tagging-count",
    }
    account = create_account(extended_store)
    target = f"/{bucket_name}/a"

    def names(response: Response) -> set[str]:
        return {name.lower() for name, _ in response.headers}

    etag = s3.head(bucket_name, "a").get("etag")
    for public in (
        anybody(s3, "GET", target), anybody(s3, "HEAD", target), anybody(s3, "GET", target, [("If-None-Match", etag)]),
        account.s3.get(bucket_name, "a"), account.s3.head(bucket_name, "a"),
    ):
        assert public.status in (200, 304) and public.get("x-amz-version-id"), public
        assert not names(public) & private, "an unsigned request is told how the object is kept"
    assert anybody(s3, "GET", target).get("x-amz-meta-a") == "b"
    account.grant(statement("allow", "GetObject", f"bucket:{bucket_name}/*"))
    for signed in (s3.get(bucket_name, "a"), s3.head(bucket_name, "a"), account.s3.get(bucket_name, "a")):
        assert private <= names(signed)


def test_a_rule_allows_signed_requests_too_and_a_denial_overrides_it(store: Cairn, s3: S3, site: str):
    """An account without a policy reads what everybody reads."""
    account = create_account(store)
    assert account.s3.get(site, "assets/app.js").status == 200
    assert account.s3.list_page(site, prefix="open/").status == 200
    assert account.s3.get(site, "private/c").status == 403
    account.grant(statement("deny", "GetObject", f"bucket:{site}/assets/*"))
    assert account.s3.get(site, "assets/app.js").status == 403
    assert anybody(s3, "GET", f"/{site}/assets/app.js").status == 200, "denials of accounts are not about the public"


def test_rules_are_replaced_and_listed_and_a_bucket_can_be_blocked(store: Cairn, admin: Management, s3: S3, site: str):
    """A rule that stays keeps the time at which it was made. Everything survives a restart."""
    rules = expect(admin.get(f"/buckets/{site}/public-access"), 200)
    assert rules == {"rules": [{"prefix": "assets/", "read": True, "list": False}, {"prefix": "open/", "read": True, "list": True}], "blocked": False}

    def listed() -> list[dict]:
        answer = expect(admin.get("/public-access"), 200)
        assert answer["enabled"] is True
        return [rule for rule in answer["rules"] if rule["bucket"] == site]

    before = listed()
    assert [(rule["prefix"], rule["effective"], rule["created_by"]) for rule in before] == [("assets/", True, "system"), ("open/", True, "system")]
    assert publish(admin, site, {"prefix": "assets/", "list": False}, blocked=True)["rules"] == [{"prefix": "assets/", "read": True, "list": False}]
    assert listed() == [before[0] | {"effective": False}]
    assert anybody(s3, "GET", f"/{site}/assets/app.js").status == 403
    store.restart()
    assert listed() == [before[0] | {"effective": False}]
    publish(admin, site, {"prefix": "assets/", "list": False})
    assert anybody(s3, "GET", f"/{site}/assets/app.js").status == 200
    publish(admin, site)
    assert listed() == [] and anybody(s3, "GET", f"/{site}/assets/app.js").status == 403
    record = expect(admin.get("/audit/events?operation=set_public_access&limit=1"), 200)["events"][0]
    assert (record["resource"], record["detail"]) == (site, "public: nothing")


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ([{"prefix": "a", "read": False, "list": True}], "rules[0].read"),
        ([{"prefix": "a"}, {"prefix": "a", "list": True}], "rules[1].prefix"),
        ([{"prefix": "k" * 1025}], "rules[0].prefix"),
        ([{"prefix": str(number)} for number in range(101)], "at most 100"),
        ([{"prefix": f"{number:02}" + "k" * 1000} for number in range(40)], "32768 bytes"),
        ([{"list": True}], "prefix"),
        ([{"prefix": "a", "write": True}], "write"),
    ],
)
def test_rules_that_cannot_be_are_refused(admin: Management, bucket: str, rules: list[dict], named: str):
    """The message names the rule, and nothing is changed."""
    assert named in expect_refusal(admin.put(f"/buckets/{bucket}/public-access", {"rules": rules}), 400, "INVALID_REQUEST")
    assert expect(admin.get(f"/buckets/{bucket}/public-access"), 200) == {"rules": [], "blocked": False}


def test_roles_are_those_of_cors_rules(admin: Management, site: str):
    """Storage administrators change rules, and auditors read them."""
    storage, auditor = with_role(admin, "storage_admin"), with_role(admin, "auditor")
    publish(storage, site, {"prefix": "assets/"})
    expect(auditor.get(f"/buckets/{site}/public-access"), 200)
    expect(auditor.get("/public-access"), 200)
    expect_refusal(auditor.put(f"/buckets/{site}/public-access", {"rules": []}), 403, "FORBIDDEN")


def test_a_server_without_public_access_serves_nothing_and_removes_rules(make_store: Callable[..., Cairn]):
    """The switch has an effect on all buckets at once."""
    store = make_store().start()
    store.s3.create_bucket("site")
    store.s3.put("site", "a", b"x")
    publish(store.admin, "site", {"prefix": "a"}, {"prefix": "b"})
    assert anybody(store.s3, "GET", "/site/a").status == 200
    store.stop()
    store.extra["SERVICE_AUTH_PUBLIC_ACCESS_ENABLED"] = "false"
    store.start()
    assert anybody(store.s3, "GET", "/site/a").status == 403
    answer = expect(store.admin.get("/public-access"), 200)
    assert answer["enabled"] is False and [rule["effective"] for rule in answer["rules"]] == [False, False]
    added = {"rules": [{"prefix": "a"}, {"prefix": "c"}]}
    expect_refusal(store.admin.put("/buckets/site/public-access", added), 403, "PUBLIC_ACCESS_DISABLED")
    publish(store.admin, "site", {"prefix": "a"})


def test_anybody_is_asked_about_counted_and_audited(make_store: Callable[..., Cairn]):
    """`access/check` answers for anybody, and reads are in the audit trail if the configuration says so."""
    store = make_store(SERVICE_AUDIT_DATA_EVENTS="all", SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    store.s3.create_bucket("site")
    store.s3.put("site", "a/b", b"x")
    publish(store.admin, "site", {"prefix": "a/"})
    question = {"anonymous": True, "action": "s3:GetObject", "bucket": "site", "key": "a/b"}
    verdict = expect(store.admin.post("/access/check", question), 200)
    assert (verdict["allowed"], verdict["reason"], verdict["account"]) == (True, "public", None)
    for other in ({"key": "b"}, {"bucket": "other"}, {"action": "s3:PutObject"}):
        verdict = expect(store.admin.post("/access/check", question | other), 200)
        assert (verdict["allowed"], verdict["reason"]) == (False, "not_public"), other
    expect_refusal(store.admin.post("/access/check", question | {"access_key": "x"}), 400, "INVALID_REQUEST")
    assert anybody(store.s3, "GET", "/site/a/b").status == 200
    assert anybody(store.s3, "GET", "/site/b").status == 403
    metrics = scrape(store)
    assert metrics.sum("service_public_requests_total", result="allowed") == 1
    assert metrics.sum("service_public_requests_total", result="denied") == 1
    records = expect(store.admin.get("/audit/events?operation=GetObject&limit=10"), 200)["events"]
    assert ("anonymous", "site/a/b", "allowed") in {(record["principal"], record["resource"], record["result"]) for record in records}


def test_the_command_line_publishes_and_shows_all_that_is_public(store: Cairn, s3: S3, bucket: str):
    """A second rule for a prefix replaces the first one."""
    cli = Cli(store.management, store.secrets.system_token)
    s3.put(bucket, "assets/a", b"x")
    assert cli.text("public", "set", bucket, "assets/") == f"everybody may read {bucket}/assets/*\n"
    assert anybody(s3, "GET", object_target(bucket, "assets/a")).body == b"x"
    assert cli.text("public", "set", bucket, "assets/", "--list") == f"everybody may read and list {bucket}/assets/*\n"
    shown = cli.json("public", "list", bucket)
    assert [(rule["prefix"], rule["list"]) for rule in shown["rules"]] == [("assets/", True)]
    assert bucket in cli.text("public", "list") and "assets/" in cli.text("public", "list", bucket)
    cli.text("policy", "check", "--anonymous", "--action", "s3:GetObject", "--resource", f"{bucket}/assets/a")
    assert cli.run("policy", "check", "--anonymous", "--action", "s3:GetObject", "--resource", f"{bucket}/b").returncode == FAILED
    assert "no longer public\n" in cli.text("public", "remove", bucket, "assets/")
    assert "no rule is about" in cli.fails("public", "remove", bucket, "assets/")
    assert cli.text("public", "list", bucket) == f"nothing is public in {bucket}\n"
    assert "no bucket no-such-bucket" in cli.fails("public", "list", "no-such-bucket")


def test_the_command_line_says_what_stays_public(store: Cairn, admin: Management, s3: S3, bucket: str):
    """A wider rule, rules below, and a block of the bucket."""
    cli = Cli(store.management, store.secrets.system_token)
    s3.put(bucket, "img/a", b"x")
    cli.text("public", "set", bucket, "", "--list")
    assert cli.text("public", "set", bucket, "img/") == f"everybody may read and list {bucket}/img/*\n"
    assert cli.text("public", "remove", bucket, "img/") == f"{bucket}/img/* stays public by the rule for {bucket}/*\n"
    assert anybody(s3, "GET", object_target(bucket, "img/a")).body == b"x"
    cli.text("public", "set", bucket, "img/")
    assert cli.text("public", "remove", bucket, "") == f"{bucket}/* is no longer public, apart from {bucket}/img/*\n"
    publish(admin, bucket, blocked=True)
    assert "blocks public access, so its rules have no effect" in cli.text("public", "set", bucket, "img/")
    assert anybody(s3, "GET", object_target(bucket, "img/a")).status == 403


@pytest.mark.parametrize("flags", [(True, False, True, True), (True, True, True, True)])
def test_the_end_of_a_block_keeps_what_clients_have_put(extended_store: Cairn, flags: tuple[bool, ...]):
    """Only `RestrictPublicBuckets` is what `blocked` says. All four flags are the block that the management API sets itself."""
    names = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
    s3, bucket = extended_store.s3, f"flags-{sum(flags)}"
    s3.create_bucket(bucket)
    document = "".join(f"<{name}>{str(flag).lower()}</{name}>" for name, flag in zip(names, flags, strict=True))
    body = f"<PublicAccessBlockConfiguration>{document}</PublicAccessBlockConfiguration>".encode()
    assert s3.request("PUT", f"/{bucket}?publicAccessBlock", body=body).status == 200
    assert publish(extended_store.admin, bucket, {"prefix": "a/"}, blocked=False)["blocked"] is False
    found = s3.request("GET", f"/{bucket}?publicAccessBlock")
    if all(flags):
        assert found.status == 404
    else:
        assert [xml(found).findtext(name) for name in names] == ["true", "false", "true", "false"]
