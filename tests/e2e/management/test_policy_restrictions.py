"""Policies: replacement, patterns of bucket names, writes of absent keys alone, and networks of clients."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.accounts import Account, create_account, create_policy, statement
from harness.management import expect, expect_refusal
from harness.s3 import S3, error_code, object_target, xml
from harness.server import Cairn
from harness.wire import Response

CREATE = {"only_if_absent": True}
RACING_WRITERS = 16
RACED_KEYS = 40
STUCK_SECONDS = 60


def put(s3: S3, bucket: str, key: str, body: bytes, headers: list[tuple[str, str]] | None = None) -> Response:
    """Sends a PUT and returns any response."""
    return s3.request("PUT", object_target(bucket, key), headers, body)


def test_a_replaced_policy_is_in_force_for_the_next_request(store: Cairn, bucket: str):
    """Completely: rights that are not in the new document are gone. The audit trail says what changed."""
    account = create_account(store)
    policy = account.grant(statement("allow", "PutObject", f"bucket:{bucket}/*"))
    assert put(account.s3, bucket, "a", b"one").status == 200
    document = {"name": "readers", "statements": [statement("allow", "GetObject", f"bucket:{bucket}/*")]}
    replaced = expect(store.admin.put(f"/policies/{policy}", document), 200)
    assert (replaced["name"], replaced["description"], replaced["attached_to"]) == ("readers", "", [account.id])
    assert replaced["statements"] == document["statements"]
    assert replaced == expect(store.admin.get(f"/policies/{policy}"), 200)
    assert account.s3.get(bucket, "a").body == b"one"
    assert error_code(put(account.s3, bucket, "a", b"two")) == "AccessDenied"
    record = expect(store.admin.get("/audit/events?operation=replace_policy&limit=1"), 200)["events"][0]
    assert record["resource"] == policy and "named readers, before of a test" in record["detail"]
    assert f"removed: allow s3:PutObject on bucket:{bucket}/*; added: allow s3:GetObject on bucket:{bucket}/*" in record["detail"]
    # The same document again changes nothing, and a bad one neither.
    expect(store.admin.put(f"/policies/{policy}", document), 200)
    expect_refusal(store.admin.put(f"/policies/{policy}", document | {"statements": []}), 400, "INVALID_REQUEST")
    expect_refusal(store.admin.put(f"/policies/{bucket}", document), 404, "POLICY_NOT_FOUND")
    assert account.s3.get(bucket, "a").body == b"one"
    store.restart()
    assert account.s3.get(bucket, "a").body == b"one"


def test_a_pattern_of_names_covers_buckets_and_objects(store: Cairn, bucket: str):
    """An account may create buckets of these names, and sees no others in the list."""
    everything = [f"s3:{action}" for action in ("ListBucket", "GetObject", "PutObject", "DeleteObject", "ManageBucket")]
    account = create_account(store, {"effect": "allow", "actions": everything, "resources": [f"bucket:{bucket}-app-*"]})
    account.grant(statement("deny", "GetObject", f"bucket:{bucket}-app-secret*"))
    for name in (f"{bucket}-app-1", f"{bucket}-app-secret"):
        assert account.s3.request("PUT", f"/{name}").status == 200
        assert put(account.s3, name, "a", b"x").status == 200
    assert error_code(account.s3.request("PUT", f"/{bucket}-other")) == "AccessDenied"
    assert error_code(account.s3.get(bucket, "a")) == "AccessDenied"
    assert account.s3.get(f"{bucket}-app-1", "a").body == b"x"
    assert error_code(account.s3.get(f"{bucket}-app-secret", "a")) == "AccessDenied"
    listed = {name.text for name in xml(account.s3.request("GET", "/")).iter("Name")}
    assert listed == {f"{bucket}-app-1", f"{bucket}-app-secret"}
    everywhere = create_account(store, statement("allow", "GetObject", "bucket:*"))
    assert everywhere.s3.get(f"{bucket}-app-secret", "a").body == b"x"


def creator(store: Cairn, bucket: str) -> Account:
    """Returns an account that may write absent keys and read."""
    return create_account(store, statement("allow", ["PutObject", "GetObject"], f"bucket:{bucket}/*") | CREATE)


def test_an_account_may_create_and_not_overwrite(extended_store: Cairn, extended_bucket: str):
    """With puts, copies, completions and forms, whatever the client sends. It can neither delete, tag nor retain."""
    store, bucket = extended_store, extended_bucket
    s3 = creator(store, bucket).s3
    assert put(s3, bucket, "a", b"first").status == 200

    def refused(response) -> None:
        assert (response.status, error_code(response)) == (412, "PreconditionFailed"), response.body
        assert xml(response).find("Condition").text == "If-None-Match"

    refused(put(s3, bucket, "a", b"second"))
    refused(put(s3, bucket, "a", b"second", headers=[("if-match", "*")]))
    refused(put(s3, bucket, "a", b"second", headers=[("if-none-match", '"0123456789abcdef0123456789abcdef"')]))
    refused(s3.request("PUT", f"/{bucket}/a", headers=[("x-amz-copy-source", f"/{bucket}/a"), ("x-amz-metadata-directive", "REPLACE")]))
    assert s3.request("PUT", f"/{bucket}/copy", headers=[("x-amz-copy-source", f"/{bucket}/a")]).status == 200
    for key, status in (("a", 412), ("parts", 200)):
        upload = xml(s3.request("POST", f"/{bucket}/{key}?uploads")).find("UploadId").text
        etag = s3.request("PUT", f"/{bucket}/{key}?partNumber=1&uploadId={upload}", body=b"part").get("etag")
        document = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
        # A completion that is repeated after it has succeeded is still the same object.
        for _ in range(2):
            assert s3.request("POST", f"/{bucket}/{key}?uploadId={upload}", body=document.encode()).status == status
    assert s3.get(bucket, "a").body == b"first"
    for refusal in (
        s3.delete(bucket, "a"),
        s3.request("PUT", f"/{bucket}/a?tagging", body=b"<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>"),
        s3.request("DELETE", f"/{bucket}/a?tagging"),
        s3.request("PUT", f"/{bucket}/a?legal-hold", body=b"<LegalHold><Status>ON</Status></LegalHold>"),
    ):
        assert (refusal.status, error_code(refusal)) == (403, "AccessDenied")
    # A plain permission beside it allows overwriting.
    both = creator(store, bucket)
    both.grant(statement("allow", "PutObject", f"bucket:{bucket}/a"))
    assert put(both.s3, bucket, "a", b"third").status == 200


def test_an_account_creates_again_after_a_delete_marker(store: Cairn, bucket: str):
    """A key whose newest version is a delete marker has no current object."""
    expect(store.admin.put(f"/buckets/{bucket}/versioning", {"versioning": "Enabled"}), 200)
    s3 = creator(store, bucket).s3
    assert put(s3, bucket, "a", b"first").status == 200
    assert put(s3, bucket, "a", b"second").status == 412
    assert store.s3.delete(bucket, "a").status == 204
    assert put(s3, bucket, "a", b"third").status == 200


def test_racing_creators_write_each_key_once(store: Cairn, bucket: str):
    """The commit decides: of the writers that pass all earlier checks at the same moment, one succeeds."""
    account = creator(store, bucket)
    barrier = threading.Barrier(RACING_WRITERS, timeout=STUCK_SECONDS)

    def write(number: int) -> list[int]:
        s3 = account.s3
        statuses = []
        for key in range(RACED_KEYS):
            barrier.wait()
            statuses.append(put(s3, bucket, f"raced {key}", b"by %d" % number).status)
        return statuses

    with ThreadPoolExecutor(RACING_WRITERS) as pool:
        written = list(pool.map(write, range(RACING_WRITERS)))
    for key in range(RACED_KEYS):
        statuses = [of_writer[key] for of_writer in written]
        assert sorted(statuses) == [200] + [412] * (RACING_WRITERS - 1)
        assert store.s3.get(bucket, f"raced {key}").body == b"by %d" % statuses.index(200)


def test_a_statement_is_for_clients_of_its_networks(make_store: Callable[..., Cairn]):
    """The address is that behind trusted proxies. A denial with networks denies only them."""
    store = make_store(SERVICE_SERVER_TRUSTED_PROXIES="127.0.0.1").start()
    store.s3.create_bucket("offices")
    store.s3.put("offices", "a", b"x")
    account = create_account(store, statement("allow", ["GetObject"], "bucket:offices/*") | {"source_ip": ["10.0.0.0/8", "2001:db8::/32"]})
    account.grant(statement("deny", ["GetObject"], "bucket:offices/*") | {"source_ip": ["10.9.0.0/16"]})
    account.grant(statement("allow", ["ListBucket"], "bucket:offices"))

    def status(address: str) -> int:
        return account.s3.get("offices", "a", headers=[("x-forwarded-for", address)]).status

    expected = {"10.1.2.3": 200, "2001:db8::7": 200, "192.0.2.7": 403, "10.9.1.1": 403, "::ffff:10.1.2.3": 200}
    assert {address: status(address) for address in expected} == expected
    question = {"account_id": account.id, "action": "s3:GetObject", "bucket": "offices", "key": "a"}
    for address, answered in expected.items():
        verdict = expect(store.admin.post("/access/check", question | {"source_ip": address}), 200)
        assert verdict["allowed"] == (answered == 200), address
    verdict = expect(store.admin.post("/access/check", question), 200)
    assert not verdict["allowed"] and verdict["decided_by"]["source_ip"] == ["10.9.0.0/16"], "denials apply to a client that is not known"
    expect_refusal(store.admin.post("/access/check", question | {"source_ip": "10.0.0.0/8"}), 400, "INVALID_REQUEST")


def test_the_check_says_that_only_absent_keys_may_be_written(store: Cairn, bucket: str):
    """An answer of yes alone would promise too much."""
    account = creator(store, bucket)
    question = {"account_id": account.id, "action": "s3:PutObject", "bucket": bucket, "key": "a"}
    verdict = expect(store.admin.post("/access/check", question), 200)
    assert (verdict["allowed"], verdict["only_if_absent"], verdict["decided_by"]["only_if_absent"]) == (True, True, True)
    verdict = expect(store.admin.post("/access/check", question | {"action": "s3:GetObject"}), 200)
    assert (verdict["allowed"], verdict["only_if_absent"]) == (True, False)


@pytest.mark.parametrize("lists", [100, 101])
def test_source_lists_of_an_account_are_limited(store: Cairn, bucket: str, lists: int):
    """A decision looks at each of them."""
    account = create_account(store)
    networks = [statement("allow", "GetObject", f"bucket:{bucket}/*") | {"source_ip": [f"10.0.{number}.0/24"]} for number in range(lists)]
    policies = [create_policy(store, *networks[:60]), create_policy(store, *networks[60:])]
    account.attach(policies[0])
    attached = store.admin.put(f"/policies/{policies[1]}/bindings/{account.id}")
    if lists == 100:
        expect(attached, 204)
    else:
        assert "source_ip" in expect_refusal(attached, 409, "LIMIT_REACHED")
