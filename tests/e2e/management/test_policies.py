"""Policies: invalid documents, keys that resemble other keys, and attempts to bypass a denial."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from harness.accounts import Account, create_account, create_policy, statement
from harness.management import expect, expect_refusal
from harness.s3 import error_code, object_target, xml
from harness.server import Cairn

ID = "01890000-0000-7000-8000-000000000000"
GET = ["GetObject"]


def test_policy_can_be_created_attached_and_deleted(store: Cairn, bucket: str):
    """Every field is returned, attaching and detaching are idempotent, and an attached policy cannot be deleted."""
    document = {"name": "readers", "description": "may read", "statements": [statement("allow", GET, f"bucket:{bucket}/*")]}
    made = expect(store.admin.post("/policies", document), 201)
    assert made == document | {"id": made["id"], "created_at": made["created_at"]}
    path = f"/policies/{made['id']}"
    assert expect(store.admin.get(path), 200) == made | {"attached_to": []}
    account = create_account(store)
    for _ in range(2):
        account.attach(made["id"])
    listed = expect(store.admin.get("/policies"), 200)["policies"]
    assert made | {"attached_to": [account.id]} in listed
    assert account.show()["policies"] == [{"id": made["id"], "name": "readers"}]
    message = expect_refusal(store.admin.delete(path), 409, "POLICY_IN_USE")
    assert "attached to 1" in message
    for _ in range(2):
        account.detach(made["id"])
    expect(store.admin.delete(path), 204)
    for method, target in (("GET", path), ("DELETE", path), ("PUT", f"{path}/bindings/{account.id}"), ("DELETE", f"{path}/bindings/{account.id}")):
        expect_refusal(store.admin.request(method, target), 404, "POLICY_NOT_FOUND")
    other = create_policy(store, statement("allow", GET, f"bucket:{bucket}/*"))
    expect_refusal(store.admin.put(f"/policies/{other}/bindings/{ID}"), 404, "SERVICE_ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"effect": "Allow"}, 'effect: "Allow"'),
        ({"actions": ["s3:*"]}, '"s3:*"'),
        ({"actions": ["*"]}, '"*"'),
        ({"actions": ["s3:getobject"]}, '"s3:getobject"'),
        ({"actions": []}, "actions"),
        ({"resources": []}, "resources"),
        ({"resources": ["*"]}, '"*"'),
        ({"resources": ["bucket:*/*"]}, '"bucket:*/*"'),
        ({"resources": ["bucket:some-*/x"]}, '"bucket:some-*/x"'),
        ({"resources": ["bucket:some*bucket"]}, '"bucket:some*bucket"'),
        ({"resources": ["bucket:Some*"]}, '"bucket:Some*"'),
        ({"only_if_absent": True}, "only_if_absent"),
        ({"effect": "deny", "actions": ["s3:PutObject"], "only_if_absent": True}, "only_if_absent"),
        ({"source_ip": []}, "source_ip"),
        ({"source_ip": ["10.0.0.1/8"]}, '"10.0.0.1/8"'),
        ({"source_ip": ["example.com"]}, '"example.com"'),
        ({"source_ip": ["192.0.2.7"] * 65}, "source_ip"),
        ({"resources": ["bucket:some-bucket/*/x"]}, '"bucket:some-bucket/*/x"'),
        ({"resources": ["bucket:some-bucket/a*b"]}, '"bucket:some-bucket/a*b"'),
        ({"resources": ["bucket:some-bucket/**"]}, '"bucket:some-bucket/**"'),
        ({"resources": ["bucket:some-bucket/"]}, '"bucket:some-bucket/"'),
        ({"resources": ["arn:aws:s3:::some-bucket/*"]}, "arn:aws:s3"),
        ({"resources": ["bucket:Some_Bucket"]}, "Some_Bucket"),
        ({"resources": ["bucket:some-bucket", "some-bucket/*"]}, "resources[1]"),
        ({"condition": {}}, "condition"),
        ({"principal": "*"}, "principal"),
    ],
)
def test_unknown_values_in_a_statement_are_refused(store: Cairn, change: dict, named: str):
    """The message names the statement and the value, and no policy is created."""
    good = statement("allow", GET, "bucket:some-bucket/*")
    before = expect(store.admin.get("/policies"), 200)
    body = {"name": "refused", "statements": [good, good | change]}
    message = expect_refusal(store.admin.post("/policies", body), 400, "INVALID_REQUEST")
    assert named in message and ("statements[1]." in message or f"unknown field `{named}`" in message)
    assert expect(store.admin.get("/policies"), 200) == before


def test_aws_policy_document_is_answered_with_a_translation(store: Cairn, bucket: str):
    """The translation can be used as it is, and allows what the AWS document allows."""
    document = {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": "a", "Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"},
            {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [f"arn:aws:s3:::{bucket}"]},
            {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"arn:aws:s3:::{bucket}/team/*"},
        ],
    }
    message = expect_refusal(store.admin.post("/policies", document), 400, "INVALID_REQUEST")
    translation, _ = json.JSONDecoder().raw_decode(message, message.index("{"))
    account = create_account(store, *translation["statements"])
    store.s3.put(bucket, "team/a", b"1")
    store.s3.put(bucket, "other", b"1")
    assert account.s3.get(bucket, "team/a").body == b"1" and account.s3.list(bucket).keys == ["other", "team/a"]
    assert account.s3.request("GET", object_target(bucket, "other")).status == 403
    assert account.s3.request("PUT", object_target(bucket, "team/a"), body=b"2").status == 403


def test_aws_policy_document_without_counterpart_is_answered_with_a_list(store: Cairn):
    """Every part that cannot be translated is named with its place."""
    condition = {"Bool": {"aws:SecureTransport": "true"}}
    wrong = {"Effect": "Allow", "Action": ["s3:PutBucketAcl", "s3:GetObject"], "Resource": "photos", "Condition": condition}
    message = expect_refusal(store.admin.post("/policies", {"Version": "2012-10-17", "Statement": [wrong]}), 400, "INVALID_REQUEST")
    for part in ("AWS policy document", "Statement[0].Condition", '"s3:PutBucketAcl"', 'Statement[0].Resource: "photos"'):
        assert part in message, message


def test_malformed_policy_documents_are_refused(store: Cairn):
    """Covers missing and unknown fields, lengths, wrong types and invalid JSON."""
    good = statement("allow", GET, "bucket:some-bucket/*")
    for body in (
        {}, {"name": "x"}, {"statements": [good]}, {"name": "", "statements": [good]}, {"name": "x", "statements": []},
        {"name": "x", "statements": [good] * 101}, {"name": "x", "statements": [good], "version": 1},
        {"name": "x" * 129, "statements": [good]}, {"name": "x", "description": "d" * 1025, "statements": [good]},
        {"name": "x", "statements": good}, {"name": "x", "statements": [good | {"effect": None}]},
        {"name": "x", "statements": [good | {"actions": "s3:GetObject"}]}, [],
    ):
        expect_refusal(store.admin.post("/policies", body), 400, "INVALID_REQUEST")
    for text in ("", "{", '{"name": "x"', "null"):
        refused = store.admin.request("POST", "/policies", data=text, headers={"content-type": "application/json"})
        expect_refusal(refused, 400, "INVALID_REQUEST")


# Keys, as sent, that decoding, normalising, trimming or case folding could turn into a key that a policy names.
CONFUSING = [
    "team/../secret", "a/../team/file", "team/%2e%2e/secret", "/team/file", "team//file", "./team/file", "team%2Ffile",
    "team/file ", " team/file", "team/file+", "team+file", "team%252Ffile", "team/fi\u0301le", "team/fíle", "TEAM/file",
    "team\\file", "team/file\u200b", "teammates/file", "team", "team/", "team/file%00", "team/f\u0131le", "team/*", "team/%",
]


def test_policy_compares_the_key_decoded_exactly_once(store: Cairn, bucket: str):
    """A key is allowed if its bytes begin with the prefix. GET, PUT and DELETE of every other key are refused."""
    account = create_account(store, statement("allow", ["GetObject", "PutObject", "DeleteObject"], f"bucket:{bucket}/team/*"))
    for key in CONFUSING:
        store.s3.put(bucket, key, key.encode())
    for key in CONFUSING:
        allowed = key.startswith("team/")
        for encoded in {object_target(bucket, key), f"/{bucket}/" + "".join(f"%{byte:02X}" for byte in key.encode())}:
            answer = account.s3.request("GET", encoded)
            assert (answer.status == 200) == allowed, (key, encoded, answer.status)
            assert answer.body == key.encode() if allowed else error_code(answer) == "AccessDenied"
        if not allowed:
            for method in ("PUT", "DELETE", "HEAD"):
                assert account.s3.request(method, object_target(bucket, key)).status == 403, (method, key)
            copy = [("x-amz-copy-source", f"/{bucket}/{quote(key)}")]
            answer = account.s3.request("PUT", f"/{bucket}/team/copy", copy)
            assert (answer.status, error_code(answer)) == (403, "AccessDenied"), key
    for key in CONFUSING:
        assert store.s3.get(bucket, key).body == key.encode(), "a refused request changed the object"


def test_exact_key_resource_is_not_a_prefix(store: Cairn, bucket: str):
    """`report` matches one object. `report*` also matches `reports/2026`."""
    for key in ("report", "report.txt", "reports/2026", "repor"):
        store.s3.put(bucket, key, b"x")
    exact = create_account(store, statement("allow", GET, f"bucket:{bucket}/report"))
    prefix = create_account(store, statement("allow", GET, f"bucket:{bucket}/report*"))
    statuses = lambda account: [account.s3.get(bucket, key).status for key in ("report", "report.txt", "reports/2026", "repor")]
    assert statuses(exact) == [200, 403, 403, 403]
    assert statuses(prefix) == [200, 200, 200, 403]


def test_deny_overrides_allow_in_every_order(store: Cairn, bucket: str):
    """The statements are in one policy or in several, attached in either order."""
    store.s3.put(bucket, "open/a", b"x")
    store.s3.put(bucket, "open/secret/a", b"x")
    deny, allow = statement("deny", GET, f"bucket:{bucket}/open/secret/*"), statement("allow", GET, f"bucket:{bucket}/*")
    for statements in ([allow, deny], [deny, allow]):
        for accounts in (create_account(store, *statements), create_account(store)):
            if not accounts.show()["policies"]:
                for one in statements:
                    accounts.grant(one)
            assert accounts.s3.get(bucket, "open/a").status == 200
            answer = accounts.s3.get(bucket, "open/secret/a")
            assert (answer.status, error_code(answer)) == (403, "AccessDenied")


def test_bucket_and_object_resources_do_not_imply_each_other(store: Cairn, bucket: str):
    """A bucket resource does not include the objects, and an object resource does not include the bucket."""
    store.s3.put(bucket, "key", b"x")
    every = ["ListBucket", "GetObject", "PutObject", "DeleteObject", "ManageBucket"]
    of_bucket = create_account(store, statement("allow", every, f"bucket:{bucket}"))
    of_objects = create_account(store, statement("allow", every, f"bucket:{bucket}/*"))
    listing = f"/{bucket}?list-type=2"
    assert (of_bucket.s3.request("GET", listing).status, of_bucket.s3.get(bucket, "key").status) == (200, 403)
    assert (of_objects.s3.request("GET", listing).status, of_objects.s3.get(bucket, "key").status) == (403, 200)
    assert of_objects.s3.get(bucket, "missing").status == 403, "a client that may not list must not learn which keys are missing"
    of_objects.grant(statement("allow", "ListBucket", f"bucket:{bucket}"))
    assert of_objects.s3.get(bucket, "missing").status == 404


def test_list_buckets_shows_only_accessible_buckets(own_store: Cairn):
    """A change of policy takes effect immediately."""
    for name in ("alpha", "beta", "gamma", "delta"):
        own_store.s3.create_bucket(name)
    account = create_account(own_store, statement("allow", GET, "bucket:alpha/only/this"), statement("deny", GET, "bucket:gamma/*"))
    names = lambda query="": [found.text for found in xml(account.s3.request("GET", f"/{query}")).iter("Name")]
    assert names() == ["alpha"]
    assert [found.text for found in xml(create_account(own_store).s3.request("GET", "/")).iter("Name")] == []
    beta = account.grant(statement("allow", "ListBucket", "bucket:beta", "bucket:no-such-bucket"))
    assert names() == ["alpha", "beta"]
    token = xml(account.s3.request("GET", "/?max-buckets=1")).findtext("ContinuationToken")
    assert names("?max-buckets=1") == ["alpha"] and names(f"?max-buckets=1&continuation-token={token}") == ["beta"]
    account.detach(beta)
    assert names() == ["alpha"]


def test_copy_without_read_access_to_the_source_is_refused(store: Cairn, bucket: str):
    """An unusual encoding of the source does not change the result."""
    store.s3.put(bucket, "private/a", b"secret")
    account = create_account(store, statement("allow", ["GetObject", "PutObject"], f"bucket:{bucket}/public/*"))
    for source in (f"/{bucket}/private/a", f"{bucket}/private%2Fa", f"/{bucket}/%70rivate/a", f"{bucket}/public/../private/a"):
        answer = account.s3.request("PUT", f"/{bucket}/public/copy", [("x-amz-copy-source", source)])
        assert (answer.status, error_code(answer)) == (403, "AccessDenied"), source
    account.grant(statement("allow", "GetObject", f"bucket:{bucket}/private/a"))
    copy = [("x-amz-copy-source", f"/{bucket}/private/a")]
    assert account.s3.request("PUT", f"/{bucket}/public/copy", copy).status == 200
    reader = create_account(store, statement("allow", "GetObject", f"bucket:{bucket}/private/a"))
    assert reader.s3.request("PUT", f"/{bucket}/public/copy", copy).status == 403, "read access alone must not allow a copy"


def refusals(store: Cairn, account: Account) -> list[tuple[str, str, str]]:
    """Returns the refusals of an account from the audit log, oldest first."""
    found = expect(store.admin.get(f"/audit/events?limit=1000&principal=account:{quote(account.name)}"), 200)["events"]
    return [(event["operation"], event["resource"], event["detail"]) for event in reversed(found)]


def test_policy_changes_and_refusals_are_audited(own_store: Cairn):
    """Events name principal, operation, resource, request and reason.

    The test has its own server, because the audit log keeps only some of many refusals from one address.
    """
    store, bucket = own_store, "audited"
    store.s3.create_bucket(bucket)
    account = create_account(store)
    policy = account.grant(statement("allow", GET, f"bucket:{bucket}/*"), statement("deny", GET, f"bucket:{bucket}/no"))
    account.s3.get(bucket, "no")
    account.s3.request("PUT", f"/{bucket}/a")
    key = f"access key {account.keys['access_key']}"
    assert refusals(store, account) == [
        ("GetObject", f"{bucket}/no", f"AccessDenied: a policy denies s3:GetObject on the object; {key}"),
        ("PutObject", f"{bucket}/a", f"AccessDenied: no policy allows s3:PutObject on the object; {key}"),
    ]
    for change, recorded in (("PUT", 0), ("DELETE", 1), ("DELETE", 0), ("PUT", 1)):
        id = f"{change.lower()}-{recorded}"
        expect(store.admin.request(change, f"/policies/{policy}/bindings/{account.id}", headers={"x-request-id": id}), 204)
        found = expect(store.admin.get(f"/audit/events?request_id={id}"), 200)["events"]
        assert len(found) == recorded, "a request that changes nothing must not be recorded"
        for event in found:
            assert (event["principal"], event["result"]) == ("system", "allowed")
            assert policy in event["resource"] and account.id in event["resource"]


def test_policies_and_bindings_survive_kill_9(make_store: Callable[..., Cairn]):
    """Every acknowledged document and binding exists after the restart."""
    store = make_store().start()
    store.s3.create_bucket("kept")
    store.s3.put("kept", "key", b"x")
    account = create_account(store, statement("allow", GET, "bucket:kept/*"))
    deny = account.grant(statement("deny", GET, "bucket:kept/key"))
    policies = expect(store.admin.get("/policies"), 200)
    store.kill()
    store.start()
    assert expect(store.admin.get("/policies"), 200) == policies
    assert account.s3.get("kept", "key").status == 403
    account.detach(deny)
    store.kill()
    store.start()
    assert account.s3.get("kept", "key").status == 200
