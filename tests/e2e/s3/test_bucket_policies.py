"""Bucket policies that make a bucket public, public access blocks and the ACL public-read, in the mode `extended`."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from harness.boto import make_client
from harness.management import expect
from harness.programs import MC
from harness.s3 import S3, error_code
from harness.server import Cairn, clean_environment
from harness.wire import Response


def anybody(s3: S3, method: str, target: str) -> Response:
    """Sends a request without a signature."""
    return s3.send_raw(method, target, [("Host", s3.authority)])


def policy(bucket: str, *statements: dict) -> str:
    """Returns a policy document whose statements allow everybody something."""
    everybody = [{"Effect": "Allow", "Principal": "*"} | statement for statement in statements]
    return json.dumps({"Version": "2012-10-17", "Statement": everybody}).replace("BUCKET", f"arn:aws:s3:::{bucket}")


READ = {"Sid": "Read", "Action": "s3:GetObject", "Resource": "BUCKET/assets/*"}


def refused(call, **arguments) -> ClientError:
    """Returns the error of a call that must fail."""
    with pytest.raises(ClientError) as failed:
        call(**arguments)
    return failed.value


def code(error: ClientError) -> str:
    """Returns the code of an error."""
    return error.response["Error"]["Code"]


@pytest.fixture
def site(extended: S3, extended_bucket: str) -> Iterator[str]:
    """A bucket with a few objects."""
    for key in ("assets/a", "private/b"):
        extended.put(extended_bucket, key, key.encode())
    yield extended_bucket


def test_a_public_policy_becomes_rules_and_is_returned_as_put(extended: S3, extended_store: Cairn, site: str):
    """Tools compare what they read with what they wrote. Deleting the policy removes the rules."""
    boto = make_client(extended)
    assert code(refused(boto.get_bucket_policy, Bucket=site)) == "NoSuchBucketPolicy"
    document = policy(site, READ)
    boto.put_bucket_policy(Bucket=site, Policy=document)
    assert boto.get_bucket_policy(Bucket=site)["Policy"] == document
    assert boto.get_bucket_policy_status(Bucket=site)["PolicyStatus"]["IsPublic"] is True
    assert anybody(extended, "GET", f"/{site}/assets/a").body == b"assets/a"
    assert anybody(extended, "GET", f"/{site}/private/b").status == 403
    rules = expect(extended_store.admin.get(f"/buckets/{site}/public-access"), 200)
    assert rules == {"rules": [{"prefix": "assets/", "read": True, "list": False}], "blocked": False}
    boto.delete_bucket_policy(Bucket=site)
    boto.delete_bucket_policy(Bucket=site)
    assert code(refused(boto.get_bucket_policy_status, Bucket=site)) == "NoSuchBucketPolicy"
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 403


@pytest.fixture
def mc(extended_store: Cairn, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Runs MinIO's client; the alias `c` is the server in the mode `extended`."""
    keys = extended_store.credential
    host = f"http://{keys.access_key}:{keys.secret_key}@127.0.0.1:{extended_store.s3_port}"
    environment = clean_environment() | {"HOME": str(tmp_path), "MC_HOST_c": host}
    return lambda *words: subprocess.run([MC, "--config-dir", tmp_path / "mc", *words], env=environment, capture_output=True, text=True)


def test_mc_makes_prefixes_public_and_private_again(mc: Callable[..., subprocess.CompletedProcess], extended: S3, extended_store: Cairn, site: str):
    """`set none` was 501: mc did not understand its own document, and left the list of a prefix that nobody may read."""
    def rules() -> list[tuple[str, bool]]:
        found = expect(extended_store.admin.get(f"/buckets/{site}/public-access"), 200)["rules"]
        return sorted((rule["prefix"], rule["list"]) for rule in found)

    def must(*words: str) -> str:
        done = mc("anonymous", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for prefix in ("assets/", "assets", "b/"):
        must("set", "download", f"c/{site}/{prefix}")
        assert "`download`" in must("get", f"c/{site}/{prefix}")
    assert rules() == [("assets", True), ("assets/", True), ("b/", True)]
    assert sorted(must("list", f"c/{site}").split("\n")) == ["", f"{site}/assets* => readonly", f"{site}/assets/* => readonly", f"{site}/b/* => readonly"]
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 200
    must("set", "none", f"c/{site}/assets")
    assert rules() == [("assets/", True), ("b/", True)] and anybody(extended, "GET", f"/{site}/assets/a").status == 200
    must("set", "none", f"c/{site}/assets/")
    assert rules() == [("b/", True)] and anybody(extended, "GET", f"/{site}/assets/a").status == 403
    assert "`private`" in must("set", "none", f"c/{site}/b/") and rules() == []
    must("set", "download", f"c/{site}")
    assert rules() == [("", True)] and anybody(extended, "GET", f"/{site}/private/b").status == 200
    assert "`private`" in must("set", "none", f"c/{site}") and rules() == []
    for kind in ("upload", "public"):
        done = mc("anonymous", "set", kind, f"c/{site}/assets/")
        assert done.returncode == 1 and "is not implemented" in done.stderr and rules() == []


def test_rules_of_the_management_api_are_shown_as_a_policy(extended: S3, extended_store: Cairn, site: str):
    """The document says the same, so putting it back changes nothing."""
    rules = {"rules": [{"prefix": "assets/", "read": True, "list": True}, {"prefix": "b", "read": True, "list": False}], "blocked": False}
    expect(extended_store.admin.put(f"/buckets/{site}/public-access", rules), 200)
    boto = make_client(extended)
    shown = boto.get_bucket_policy(Bucket=site)["Policy"]
    boto.put_bucket_policy(Bucket=site, Policy=shown)
    assert sorted(expect(extended_store.admin.get(f"/buckets/{site}/public-access"), 200)["rules"], key=lambda rule: rule["prefix"]) == rules["rules"]


def test_a_list_of_everybody_needs_reads(extended: S3, site: str):
    """With them it lists below the prefix of the condition."""
    boto = make_client(extended)
    listing = {"Action": "s3:ListBucket", "Resource": "BUCKET", "Condition": {"StringEquals": {"s3:prefix": "assets/"}}}
    error = refused(boto.put_bucket_policy, Bucket=site, Policy=policy(site, listing))
    assert code(error) == "NotImplemented" and "Statement[0]" in str(error)
    boto.put_bucket_policy(Bucket=site, Policy=policy(site, READ, listing))
    assert anybody(extended, "GET", f"/{site}?list-type=2&prefix=assets/").status == 200
    assert anybody(extended, "GET", f"/{site}?list-type=2").status == 403


@pytest.mark.parametrize(
    ("statement", "expected", "named"),
    [
        (READ | {"Effect": "Deny"}, "NotImplemented", "Effect Deny"),
        (READ | {"Principal": {"AWS": "arn:aws:iam::123456789012:root"}}, "NotImplemented", "Principal"),
        (READ | {"Action": ["s3:GetObject", "s3:PutObject"]}, "NotImplemented", "s3:PutObject"),
        (READ | {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}, "NotImplemented", "Condition"),
        (READ | {"Resource": "BUCKET/*.jpg"}, "NotImplemented", "wildcard"),
        (READ | {"Resource": "arn:aws:s3:::another-bucket/*"}, "MalformedPolicy", "invalid resource"),
    ],
)
def test_any_other_statement_is_refused_by_name(extended: S3, site: str, statement: dict, expected: str, named: str):
    """Also beside one that could be taken: nothing is stored."""
    boto = make_client(extended)
    error = refused(boto.put_bucket_policy, Bucket=site, Policy=policy(site, READ, statement))
    assert code(error) == expected and "Statement[1]" in str(error) and named in str(error)
    assert code(refused(boto.get_bucket_policy, Bucket=site)) == "NoSuchBucketPolicy"
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 403


def test_documents_that_are_no_policies_are_malformed(extended: S3, site: str):
    """The length is limited as on AWS."""
    for body in (b"", b"[]", b"{", b'{"Statement": []', b'{"Version": "2012-10-17"}', b"\xff"):
        response = extended.request("PUT", f"/{site}?policy", body=body)
        assert (response.status, error_code(response)) == (400, "MalformedPolicy"), body
    assert extended.request("PUT", f"/{site}?policy", body=b" " * (21 << 10)).status == 400


def test_repeated_elements_are_malformed(extended: S3, site: str):
    """The last of them counted, so a document with Deny and Allow made objects public."""
    text = policy(site, READ)
    for name, other in (("Effect", '"Deny"'), ("Resource", f'"arn:aws:s3:::{site}/other/*"'), ("Statement", "[]")):
        twice = text.replace(f'"{name}":', f'"{name}": {other}, "{name}":', 1)
        assert twice != text
        response = extended.request("PUT", f"/{site}?policy", body=twice.encode())
        assert (response.status, error_code(response)) == (400, "MalformedPolicy"), name
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 403


def test_the_audit_trail_says_what_became_public(extended: S3, extended_store: Cairn, site: str):
    """Also through S3: the prefixes, as for a rule that the management API sets."""
    make_client(extended).put_bucket_policy(Bucket=site, Policy=policy(site, READ))
    record = expect(extended_store.admin.get("/audit/events?operation=PutBucketPolicy&limit=1"), 200)["events"][0]
    assert (record["resource"], record["detail"]) == (site, 'public: "assets/" to read'), record


def test_a_public_access_block_is_kept_and_has_an_effect(extended: S3, extended_store: Cairn, site: str):
    """Two of its flags are about policies; the others are kept. The management API shows the flag that ends the rules."""
    boto = make_client(extended)
    assert code(refused(boto.get_public_access_block, Bucket=site)) == "NoSuchPublicAccessBlockConfiguration"
    boto.put_bucket_policy(Bucket=site, Policy=policy(site, READ))
    flags = {"BlockPublicAcls": True, "IgnorePublicAcls": False, "BlockPublicPolicy": True, "RestrictPublicBuckets": False}
    boto.put_public_access_block(Bucket=site, PublicAccessBlockConfiguration=flags)
    assert boto.get_public_access_block(Bucket=site)["PublicAccessBlockConfiguration"] == flags
    assert code(refused(boto.put_bucket_policy, Bucket=site, Policy=policy(site, READ))) == "AccessDenied"
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 200
    boto.put_public_access_block(Bucket=site, PublicAccessBlockConfiguration=flags | {"RestrictPublicBuckets": True})
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 403
    assert expect(extended_store.admin.get(f"/buckets/{site}/public-access"), 200)["blocked"] is True
    assert boto.get_bucket_policy_status(Bucket=site)["PolicyStatus"]["IsPublic"] is False
    boto.delete_public_access_block(Bucket=site)
    assert anybody(extended, "GET", f"/{site}/assets/a").status == 200
    rules = expect(extended_store.admin.get(f"/buckets/{site}/public-access"), 200)
    expect(extended_store.admin.put(f"/buckets/{site}/public-access", rules | {"blocked": True}), 200)
    assert boto.get_public_access_block(Bucket=site)["PublicAccessBlockConfiguration"] == dict.fromkeys(flags, True)


def test_public_read_is_accepted_where_a_rule_says_so(extended: S3, site: str):
    """On puts, copies and uploads. An empty ACL header is ignored."""
    boto = make_client(extended)
    assert code(refused(boto.put_object, Bucket=site, Key="assets/new", Body=b"x", ACL="public-read")) == "AccessControlListNotSupported"
    boto.put_bucket_policy(Bucket=site, Policy=policy(site, READ))
    boto.put_object(Bucket=site, Key="assets/new", Body=b"x", ACL="public-read")
    boto.copy_object(Bucket=site, Key="assets/copy", CopySource={"Bucket": site, "Key": "assets/a"}, ACL="public-read")
    boto.create_multipart_upload(Bucket=site, Key="assets/parts", ACL="public-read")
    error = refused(boto.put_object, Bucket=site, Key="private/new", Body=b"x", ACL="public-read")
    assert code(error) == "AccessControlListNotSupported" and "cairn public set <bucket> <prefix>" in str(error) and "private/" not in str(error)
    assert code(refused(boto.put_object, Bucket=site, Key="assets/new", Body=b"x", ACL="public-read-write")) == "AccessControlListNotSupported"
    assert code(refused(boto.create_bucket, Bucket=f"{site}-2", ACL="public-read")) == "InvalidBucketAclWithObjectOwnership"
    assert extended.request("PUT", f"/{site}/private/c", headers=[("x-amz-acl", "")], body=b"x").status == 200
    assert anybody(extended, "GET", f"/{site}/assets/new").body == b"x"


def test_strict_mode_has_no_bucket_policies(s3: S3, bucket: str):
    """They are the specification's 501."""
    for method, query in (("PUT", "policy"), ("GET", "policy"), ("DELETE", "policy"), ("PUT", "publicAccessBlock")):
        response = s3.request(method, f"/{bucket}?{query}")
        assert (response.status, error_code(response)) == (501, "NotImplemented")
