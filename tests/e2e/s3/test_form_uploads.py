"""Browser forms (POST Object) in the extended mode: what is stored, what is refused, and real clients."""

import base64
import hashlib
import html
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
import requests
from botocore.config import Config
from minio import Minio
from minio.datatypes import PostPolicy

from harness.accounts import create_account, statement
from harness.aws_chunked import crc32
from harness.boto import make_client
from harness.browser import Browser, chromium
from harness.expect import assert_error
from harness.forms import Form, encode_policy, expiration, field, file_part
from harness.management import expect
from harness.s3 import S3, md5_etag, xml
from harness.server import Cairn
from harness.sigv4 import Scope, amz_date
from harness.wait import until
from harness.web_pages import web_pages
from harness.wire import Response, encode_head

RULES = (
    b"<CORSConfiguration><CORSRule><AllowedOrigin>https://page.test</AllowedOrigin><AllowedMethod>POST</AllowedMethod>"
    b"<ExposeHeader>ETag</ExposeHeader></CORSRule></CORSConfiguration>"
)


def refused(response: Response, form: Form, status: int, code: str) -> str:
    """Asserts an error, that nothing was stored, and returns the message."""
    message = assert_error(response, status, code).findtext("Message")
    assert form.s3.list_all(form.bucket) == {}
    return message


def denied(form: Form) -> str:
    """Sends a form that its policy does not allow. Returns the message."""
    return refused(form.send(), form, 403, "AccessDenied").removeprefix("Invalid according to Policy: ")


# What is stored.


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 65_536, 300_000, 5_000_001])
def test_file_is_stored_as_it_was_sent(extended: S3, form, size: int):
    """Sizes around the limits of inline payloads, blocks and buffers. The connection stays usable."""
    content = random.Random(size).randbytes(size)
    with extended.connect() as connection:
        sent = form(content=content)
        for _ in range(2):
            response = sent.send(connection=connection)
            assert (response.status, response.body) == (204, b""), response.body
            assert response.get("etag") == md5_etag(content)
            assert response.get("location") == f"http://{extended.authority}/{sent.bucket}/k"
        got = extended.get(sent.bucket, "k")
        assert got.body == content and got.get("content-type") == "binary/octet-stream"


@pytest.mark.parametrize("content", [b"\r\n--" + b"----test-boundar", b"\r\n" * 9, b"--", b"\r", b"\r\n------test-boundarY\r\n\r\n", b"a\r\n--" * 20_000])
def test_content_that_resembles_a_boundary_is_kept(extended: S3, form, content: bytes):
    """Only the whole boundary after a line break ends the file."""
    sent = form(content=content)
    assert sent.send().status == 204
    assert extended.get(sent.bucket, "k").body == content


def test_body_may_arrive_in_small_pieces(extended: S3, form):
    """Each piece of a few bytes comes with its own packet."""
    content = b"\r\n------test-boundar\r\r\n--" * 10
    sent = form(content=content)
    body = sent.body()
    with extended.connect() as connection:
        connection.send(encode_head("POST", f"/{sent.bucket}", sent.headers(body)))
        for at in range(0, len(body), 7):
            connection.send(body[at : at + 7])
        assert connection.read_response("POST").status == 204
    assert extended.get(sent.bucket, "k").body == content


def test_fields_are_the_headers_of_a_put(extended: S3, form):
    """Names ignore case. The type of the file's part does not count, as on AWS."""
    sent = form(
        "dir/${filename}", Content_Type="image/png", Cache_Control="no-store", Content_Disposition="inline", Content_Encoding="gzip",
        Expires="Thu, 01 Dec 2033 16:00:00 GMT", X_Amz_Meta_Colour="r\u00f6t", acl="private", x_amz_storage_class="STANDARD",
        tagging="<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    )
    sent.filename = r"C:\photos\b c.png"
    sent.uncovered = [("x-ignore-this", "1"), ("x-ignore-this", "2")]
    sent.conditions = [
        {"bucket": sent.bucket}, ["starts-with", "$key", "dir/"],
        *(["eq", f"${name}", value] for name, value in sent.covered_fields() if name != "key"),
    ]
    response = sent.send()
    assert response.status == 204, response.body
    head = extended.head(sent.bucket, "dir/b c.png")
    for name, value in (
        ("content-type", "image/png"), ("cache-control", "no-store"), ("content-disposition", "inline"), ("content-encoding", "gzip"),
        ("expires", "Thu, 01 Dec 2033 16:00:00 GMT"), ("x-amz-meta-colour", "=?UTF-8?Q?r=C3=B6t?="), ("x-amz-tagging-count", "1"), ("etag", response.get("etag")),
    ):
        assert head.get(name) == value, name


def test_answer_is_the_one_that_the_form_asks_for(extended: S3, form):
    """204 without a document, 200 the same, 201 with a document; other values mean 204."""
    for asked, status in (("200", 200), ("201", 201), ("204", 204), ("404", 204), ("", 204)):
        sent = form("a b/\u00e4")
        sent.fields.append(("success_action_status", asked))
        response = sent.send()
        assert response.status == status, response.body
        url = f"http://{extended.authority}/{sent.bucket}/a%20b/%C3%A4"
        assert response.get("location") == url
        if status == 201:
            root = xml(response)
            found = [root.tag, *(root.findtext(name) for name in ("Location", "Bucket", "Key", "ETag"))]
            assert found == ["PostResponse", url, sent.bucket, "a b/\u00e4", md5_etag(b"content")]
        else:
            assert response.body == b""


def test_redirect_names_the_object(form):
    """The query of the URL is kept."""
    sent = form("a&b")
    sent.fields.append(("success_action_redirect", "https://page.test/done?from=form#end"))
    response = sent.send()
    assert response.status == 303, response.body
    url = urlsplit(response.get("location"))
    assert (url.netloc, url.path, url.fragment) == ("page.test", "/done", "end")
    assert parse_qs(url.query) == {"from": ["form"], "bucket": [sent.bucket], "key": ["a&b"], "etag": [md5_etag(b"content")]}


@pytest.mark.parametrize("url", ["/done", "javascript:alert(1)", "//page.test", "http://page.test/\r\nSet-Cookie: a=b", "https://", "http://a b"])
def test_redirect_elsewhere_is_refused(form, url: str):
    """Only absolute URLs of http and https are accepted, and nothing that would add a header."""
    sent = form()
    sent.fields.append(("success_action_redirect", url))
    refused(sent.send(), sent, 400, "InvalidArgument")


def test_checksums_are_verified_and_stored(extended: S3, form):
    """A wrong digest stores nothing."""
    content = b"checked content"
    md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
    sent = form(content=content, x_amz_checksum_crc32=crc32(content), Content_MD5=md5)
    for wrong in ({"x_amz_checksum_crc32": crc32(b"other")}, {"Content_MD5": base64.b64encode(bytes(16)).decode()}):
        refused(form(content=content, **wrong).send(), sent, 400, "BadDigest")
    response = sent.send()
    assert (response.status, response.get("x-amz-checksum-crc32")) == (204, crc32(content)), response.body
    got = extended.get(sent.bucket, "k", [("x-amz-checksum-mode", "ENABLED")])
    assert got.get("x-amz-checksum-crc32") == crc32(content)


def test_fields_after_the_file_are_ignored(extended: S3, form):
    """A button with a name comes after the file. It needs no condition."""
    sent = form()
    sent.after_file = field("submit", "Upload") + field("key", "other")
    assert sent.send().status == 204
    assert list(extended.list_all(sent.bucket)) == ["k"]


def test_versions_and_locks(extended: S3, extended_bucket: str):
    """A form makes a version like a PUT, and the fields of object lock protect it."""
    bucket = f"{extended_bucket}-lock"
    created = extended.request("PUT", f"/{bucket}", [("x-amz-bucket-object-lock-enabled", "true")])
    assert created.status == 200
    until = expiration(3600)
    sent = Form(extended, bucket, x_amz_object_lock_mode="GOVERNANCE", x_amz_object_lock_retain_until_date=until, x_amz_object_lock_legal_hold="ON")
    version = sent.send().get("x-amz-version-id")
    assert version and version != sent.send().get("x-amz-version-id")
    head = extended.head(bucket, "k", query=f"versionId={version}")
    assert head.get("x-amz-object-lock-mode") == "GOVERNANCE" and head.get("x-amz-object-lock-legal-hold") == "ON"
    assert_error(extended.request("DELETE", f"/{bucket}/k?versionId={version}"), 403, "AccessDenied")


# What policies allow.


def test_policy_decides_about_every_field(extended: S3, form):
    """The messages are those of AWS."""
    sent = form("user/eric/a.txt")
    covered = [{name: value} for name, value in sent.covered_fields() if name != "key"]
    for condition in (["starts-with", "$key", "user/bob/"], ["eq", "$key", "user/eric/"]):
        sent.conditions = [{"bucket": sent.bucket}, *covered, condition]
        shown = ", ".join(f'"{part}"' for part in condition)
        assert denied(sent) == f"Policy Condition failed: [{shown}]"
    sent.conditions = [{"bucket": sent.bucket}, *covered]
    assert denied(sent) == "Extra input fields: key"
    sent.conditions = [*covered, {"key": "user/eric/a.txt"}]
    assert denied(sent) == "Extra input fields: bucket"
    sent.conditions = [{"bucket": "other-bucket"}, *covered, {"key": "user/eric/a.txt"}]
    assert denied(sent) == 'Policy Condition failed: ["eq", "$bucket", "other-bucket"]'
    sent.conditions = [{"bucket": sent.bucket}, *covered, ["starts-with", "$key", ""]]
    assert sent.send().status == 204


def test_expired_policy_is_refused(form):
    """The policy ends, however new the signature is."""
    sent = form()
    sent.expiration = expiration(-1)
    assert denied(sent) == "Policy expired."


@pytest.mark.parametrize(("size", "code"), [(9, "EntityTooSmall"), (10, None), (20, None), (21, "EntityTooLarge"), (100_000, "EntityTooLarge")])
def test_content_length_range_is_of_the_file(form, size: int, code: str | None):
    """The fields do not count."""
    sent = form(content=b"a" * size)
    sent.more = [["content-length-range", 10, 20]]
    response = sent.send()
    if code is None:
        assert response.status == 204, response.body
        return
    refused(response, sent, 400, code)
    root = xml(response)
    assert root.findtext("MinSizeAllowed" if code == "EntityTooSmall" else "MaxSizeAllowed") in ("10", "20")


@pytest.mark.parametrize("document", ["", "{", "[]", '{"expiration": "2033-01-01T00:00:00Z"}', '{"conditions": []}', '{"expiration": "x", "conditions": []}'])
def test_invalid_policy_is_refused(form, document: str):
    """It was signed, and cannot be understood."""
    sent = form()
    sent.policy = encode_policy(document or "not JSON")
    refused(sent.send(), sent, 400, "InvalidPolicyDocument")


# Who may upload.


def test_signature_is_verified(form):
    """A changed policy, signature, key or date is refused, and so is a form without a signature."""
    sent = form()
    fields = dict(sent.all_fields())

    def changed(**values: str | None) -> Response:
        wanted = fields | {name.replace("_", "-"): value for name, value in values.items()}
        return sent.send(sent.body([(name, value) for name, value in wanted.items() if value is not None]))

    policy = encode_policy({"expiration": expiration(9999), "conditions": []})
    refused(changed(policy=policy), sent, 403, "SignatureDoesNotMatch")
    refused(changed(x_amz_signature="0" * 64), sent, 403, "SignatureDoesNotMatch")
    refused(changed(x_amz_credential=f"unknown/{sent.scope.text()}"), sent, 403, "InvalidAccessKeyId")
    refused(changed(x_amz_credential="x"), sent, 400, "InvalidArgument")
    refused(changed(x_amz_algorithm="AWS4-HMAC-SHA1"), sent, 400, "InvalidArgument")
    for name in ("x_amz_algorithm", "x_amz_credential", "x_amz_date", "x_amz_signature", "policy"):
        message = refused(changed(**{name: None}), sent, 400, "InvalidArgument")
        assert "must contain a field" in message, message
    refused(changed(x_amz_security_token="token"), sent, 501, "NotImplemented")
    refused(sent.send(sent.body([("key", "k")])), sent, 403, "AccessDenied")
    version_2 = [("key", "k"), ("AWSAccessKeyId", "a"), ("policy", policy), ("signature", "b")]
    refused(sent.send(sent.body(version_2)), sent, 403, "InvalidAccessKeyId")
    assert sent.send().status == 204


@pytest.mark.parametrize("days", [-8, 1])
def test_date_of_the_signature_is_checked(form, days: int):
    """A signature is valid for seven days from its date on."""
    sent = form()
    sent.scope = Scope(amz_date(days * 86_400))
    refused(sent.send(), sent, 403, "AccessDenied")


def test_signer_needs_the_right_to_put(extended_store: Cairn, extended: S3, extended_bucket: str):
    """The policies of the signer's account decide, on the key that the form names."""
    allowed = create_account(extended_store, statement("allow", "PutObject", f"bucket:{extended_bucket}/up/*")).s3
    sent = Form(allowed, extended_bucket, "other/a")
    response = sent.send()
    message = assert_error(response, 403, "AccessDenied").findtext("Message")
    assert "s3:PutObject" in message and extended.list_all(extended_bucket) == {}
    assert Form(allowed, extended_bucket, "up/a").send().status == 204
    recorded = expect(extended_store.admin.get(f"/refused-requests/{response.get('x-amz-request-id')}"), 200)
    assert (recorded["operation"], recorded["refused_by"]) == ("PostObject", "policy"), recorded


def test_missing_key_and_missing_bucket(extended: S3, form):
    """A bucket is looked up only for a client that may write there."""
    sent = form()
    sent.fields = []
    refused(sent.send(), sent, 400, "UserKeyMustBeSpecified")
    assert_error(Form(extended, "no-such-bucket").send(), 404, "NoSuchBucket")
    sent = form("a" * 1025)
    refused(sent.send(), sent, 400, "KeyTooLongError")


def test_fields_that_a_put_refuses_as_headers(form):
    """The rules are those of PutObject."""
    for fields, status, code in (
        ({"acl": "public-read"}, 400, "AccessControlListNotSupported"),
        ({"x_amz_storage_class": "GLACIER"}, 501, "NotImplemented"),
        ({"x_amz_server_side_encryption": "AES256"}, 501, "NotImplemented"),
        ({"x_amz_object_lock_legal_hold": "ON"}, 400, "InvalidRequest"),
        ({"x_amz_copy_source": "/b/k"}, 400, "InvalidArgument"),
        ({"Content_Type": "text/html\r\nSet-Cookie: a=b"}, 400, "InvalidArgument"),
        ({"x_amz_meta_a": "b\nX: y"}, 400, "InvalidArgument"),
        ({"tagging": "<Tagging>"}, 400, "MalformedXML"),
        ({"x_amz_meta_a": "b" * 3000}, 400, "MetadataTooLarge"),
    ):
        sent = form(**fields)
        refused(sent.send(), sent, status, code)


# Hostile input.


def raw(form: Form, body: bytes, content_type: str | None = None) -> Response:
    """Posts any body."""
    kind = content_type or f"multipart/form-data; boundary={form.boundary}"
    headers = [("Host", form.s3.authority), ("Content-Type", kind), ("Content-Length", str(len(body)))]
    return form.s3.send_raw("POST", f"/{form.bucket}", headers, body)


def test_malformed_bodies_store_nothing(form):
    """Each is answered precisely, and the server goes on."""
    sent = form()
    body = sent.body()
    fields = body[: body.index(file_part(b"")[:60])]
    end = f"--{sent.boundary}--\r\n".encode()
    for broken in (
        b"", b"x" * 1000, end, fields, body.replace(b"\r\n", b"\n"), body[:-20], body[:-6], body.replace(b"form-data;", b"attachment;"),
        body.replace(b'name="key"', b"name=\"key\"\nX: y"), fields + file_part(b"a") + b"junk", fields + file_part(b"a") + end[:-6] + b"z--\r\n",
        fields + field("a", b"\xff") + file_part(b"a") + end, fields + file_part(b"a") + end + b"a" * 30_000,
        body.replace(b"Content-Type: text/x-part", b"Content-Transfer-Encoding: base64"),
    ):
        message = assert_error(raw(sent, broken), 400, "MalformedPOSTRequest" if broken != end else "IncorrectNumberOfFilesInPostRequest").findtext("Message")
        assert message.endswith("."), message
    two = fields + file_part(b"a") + file_part(b"b") + end
    refused(raw(sent, two), sent, 400, "IncorrectNumberOfFilesInPostRequest")
    twice = field("key", "a") + fields + file_part(b"a") + end
    refused(raw(sent, twice), sent, 400, "InvalidArgument")


def test_limits_before_the_file(form):
    """20 KiB of fields, 100 fields, and 4 KiB of headers of a part."""
    sent = form()
    end = file_part(b"a") + f"--{sent.boundary}--\r\n".encode()
    refused(raw(sent, field("key", "a" * 21_000) + end), sent, 400, "MaxPostPreDataLengthExceededError")
    refused(raw(sent, b"p" * 5_000_000 + end), sent, 400, "MaxPostPreDataLengthExceededError")
    refused(raw(sent, b"".join(field(f"x-ignore-{n}", "") for n in range(101)) + end), sent, 400, "MalformedPOSTRequest")
    refused(raw(sent, field("a" * 5000, "") + end), sent, 400, "MalformedPOSTRequest")


def test_boundaries(form):
    """At most 70 characters, with or without quotes."""
    sent = form()
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'a' * 71}"):
        refused(raw(sent, sent.body(), kind), sent, 400, "MalformedPOSTRequest")
    refused(sent.s3.send_raw("POST", f"/{sent.bucket}", [("Host", sent.s3.authority), ("Content-Type", f"multipart/form-data; boundary={sent.boundary}")]), sent, 411, "MissingContentLength")
    sent.boundary = "'()+_,-./:=? a" + "b" * 56
    assert raw(sent, sent.body(), f'Multipart/Form-Data; charset=utf-8; Boundary="{sent.boundary}"').status == 204


def test_truncated_form_stores_nothing(extended: S3, form):
    """The client goes away in the fields, in the file, and in the last delimiter."""
    sent = form(content=b"a" * 200_000)
    body = sent.body()
    for length in (10, 900, 100_000, len(body) - 30, len(body) - 1):
        with extended.connect() as connection:
            connection.send(encode_head("POST", f"/{sent.bucket}", sent.headers(body)) + body[:length])
    with extended.connect() as connection:
        connection.send(encode_head("POST", f"/{sent.bucket}", sent.headers(body)) + body[:100_000])
        connection.sock.shutdown(1)
        assert_error(connection.read_response("POST"), 400, "IncompleteBody")
    assert extended.list_all(sent.bucket) == {}


def test_headers_that_the_form_does_not_cover_are_refused(form):
    """Otherwise somebody who has a form could add them."""
    sent = form()
    for headers, status, code in (
        ([("Authorization", "AWS4-HMAC-SHA256 Credential=a")], 400, "InvalidArgument"),
        ([("x-amz-meta-a", "b")], 403, "AccessDenied"),
        ([("x-amz-acl", "public-read-write")], 400, "AccessControlListNotSupported"),
        ([("If-None-Match", "*")], 400, "InvalidRequest"),
        ([("Transfer-Encoding", "chunked")], 400, "BadRequest"),
    ):
        refused(sent.send(headers=headers), sent, status, code)
    refused(sent.send(target=f"/{sent.bucket}?x-amz-acl=private"), sent, 403, "AccessDenied")


def test_other_posts_to_a_bucket(extended: S3, extended_bucket: str):
    """A POST that is not a form is told so, whether or not it is signed."""
    response = extended.request("POST", f"/{extended_bucket}", [("Content-Type", "text/plain")], b"a")
    root = assert_error(response, 412, "PreconditionFailed")
    assert "multipart/form-data" in root.findtext("Condition")
    assert_error(extended.send_raw("POST", f"/{extended_bucket}", [("Host", "x"), ("Content-Length", "0")]), 412, "PreconditionFailed")


def test_early_answer_keeps_requests_apart(extended: S3, form):
    """The rest of a refused form never becomes a request: the connection is closed, or the rest is skipped."""
    smuggled = encode_head("PUT", f"/{form().bucket}/smuggled", extended.signed_head("PUT", f"/{form().bucket}/smuggled", [], b""))
    for size in (10, 100_000, 3_000_000):
        sent = form(content=smuggled + b"a" * size)
        sent.expiration = expiration(-1)
        with extended.connect() as connection:
            assert_error(sent.send(connection=connection), 403, "AccessDenied")
            if not connection.closing:
                assert extended.request("GET", f"/{sent.bucket}?list-type=2", connection=connection).status == 200
    assert extended.list_all(form().bucket) == {}


# Around the request.


def test_cors_headers_and_virtual_hosts(extended: S3, form):
    """A page of another origin may read the answer if a rule of the bucket allows it."""
    sent = form()
    digest = base64.b64encode(hashlib.md5(RULES).digest()).decode()
    assert extended.request("PUT", f"/{sent.bucket}?cors", [("Content-MD5", digest)], RULES).status == 200
    response = sent.send(headers=[("Origin", "https://page.test")])
    assert (response.status, response.get("access-control-allow-origin")) == (204, "https://page.test")
    body = sent.body()
    hosted = [(name, value) for name, value in sent.headers(body) if name != "Host"]
    response = extended.send_raw("POST", "/", [("Host", f"{sent.bucket}.localhost:{extended.port}"), *hosted], body)
    assert (response.status, response.get("location")) == (204, f"http://{sent.bucket}.localhost:{extended.port}/k"), response.body


def test_quota_counts_the_file(extended_store: Cairn, form):
    """A file that exactly fits is stored; the fields of the form do not count."""
    sent = form(content=b"a" * 50_000)
    expect(extended_store.admin.put(f"/buckets/{sent.bucket}/quota", {"quota": {"bytes": {"mode": "limit", "bytes": 50_000}, "objects": {"mode": "unlimited"}}}), 200)
    assert sent.send().status == 204
    sent.content = b"a" * 50_001
    assert_error(sent.send(), 403, "QuotaExceeded")


# Real clients.


def test_boto3(extended_store: Cairn, extended: S3, extended_bucket: str):
    """generate_presigned_post, sent with requests."""
    client = make_client(extended)
    post = client.generate_presigned_post(
        extended_bucket, "up/${filename}", Fields={"Content-Type": "text/plain", "success_action_status": "201"},
        Conditions=[["starts-with", "$Content-Type", "text/"], {"success_action_status": "201"}, ["content-length-range", 1, 1000]], ExpiresIn=60,
    )
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("b.txt", b"from boto3")}, timeout=30)
    assert answer.status_code == 201, answer.text
    got = client.get_object(Bucket=extended_bucket, Key="up/b.txt")
    assert (got["Body"].read(), got["ContentType"]) == (b"from boto3", "text/plain")
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("b.txt", b"a" * 1001)}, timeout=30)
    assert (answer.status_code, "EntityTooLarge" in answer.text) == (400, True), answer.text


def test_boto3_signature_version_2(extended: S3, extended_bucket: str):
    """boto3 uses it without a configured version. A changed policy is refused."""
    client = boto3.client(
        "s3", endpoint_url=f"http://{extended.authority}", region_name="us-east-1", aws_access_key_id=extended.credential.access_key,
        aws_secret_access_key=extended.credential.secret_key, config=Config(signature_version="s3"),
    )
    post = client.generate_presigned_post(extended_bucket, "k")
    assert "AWSAccessKeyId" in post["fields"]
    answer = requests.post(post["url"], data=post["fields"], files={"file": b"a"}, timeout=30)
    assert answer.status_code == 204, answer.text
    assert extended.get(extended_bucket, "k").body == b"a"
    changed = post["fields"] | {"policy": encode_policy({"expiration": expiration(9999), "conditions": []})}
    answer = requests.post(post["url"], data=changed, files={"file": b"b"}, timeout=30)
    assert (answer.status_code, "SignatureDoesNotMatch" in answer.text) == (403, True), answer.text
    answer = requests.post(post["url"], data=post["fields"] | {"key": "other"}, files={"file": b"b"}, timeout=30)
    assert (answer.status_code, "Policy Condition failed" in answer.text) == (403, True), answer.text


def test_minio_py(extended: S3, extended_bucket: str):
    """presigned_post_policy, whose conditions are built by methods."""
    import datetime as dt

    client = Minio(extended.authority, extended.credential.access_key, extended.credential.secret_key, secure=False, region="us-east-1")
    policy = PostPolicy(extended_bucket, dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=5))
    policy.add_starts_with_condition("key", "up/")
    policy.add_content_length_range_condition(1, 1000)
    fields = client.presigned_post_policy(policy) | {"key": "up/minio"}
    answer = requests.post(f"http://{extended.authority}/{extended_bucket}", data=fields, files={"file": b"from minio"}, timeout=30)
    assert answer.status_code == 204, answer.text
    assert extended.get(extended_bucket, "up/minio").body == b"from minio"


def test_curl(extended: S3, form, tmp_path: Path):
    """`curl -F`, which asks for 100-continue before a large body."""
    content = random.Random(9).randbytes(3_000_000)
    source = tmp_path / "source.bin"
    source.write_bytes(content)
    sent = form("from/${filename}")
    sent.conditions = [{"bucket": sent.bucket}, ["starts-with", "$key", "from/"], *({name: value} for name, value in sent.covered_fields()[1:])]
    fields = [argument for name, value in sent.all_fields() for argument in ("-F", f"{name}={value}")]
    command = ["curl", "-sS", "-w", "%{http_code}", *fields, "-F", f"file=@{source}", f"http://{extended.authority}/{sent.bucket}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "204"
    assert extended.get(sent.bucket, "from/source.bin").body == content


@pytest.fixture(scope="module")
def browser(run_folder: Path) -> Iterator[Browser]:
    """One browser for the tests of this file."""
    if shutil.which("chromium") is None:
        pytest.fail("chromium is missing; ./test installs it")
    with chromium(run_folder / "forms-browser") as opened:
        yield opened


def test_form_in_a_browser(browser: Browser, extended: S3, form, tmp_path: Path):
    """A person chooses a file in a page of another site and sends it. No script and no CORS rule is needed."""
    source = tmp_path / "photo \u00e4 \"1\".txt"
    source.write_text("from a browser")
    with web_pages("localhost") as site:
        site.pages["/done"] = "<!doctype html><title>stored</title>"
        sent = form("photos/${filename}", Content_Type="text/plain")
        sent.fields.append(("success_action_redirect", f"{site.origin}/done"))
        sent.conditions = [{"bucket": sent.bucket}, ["starts-with", "$key", "photos/"], *({name: value} for name, value in sent.covered_fields()[1:])]
        inputs = "".join(f'<input type=hidden name="{html.escape(name)}" value="{html.escape(value)}">' for name, value in sent.all_fields())
        site.pages["/form"] = (
            f'<!doctype html><title>form</title><form method=post enctype="multipart/form-data" action="http://{extended.authority}/{sent.bucket}">'
            f'{inputs}<input type=file name=file id=file><input type=submit name=submit value=Upload id=send></form>'
        )
        browser.open(f"{site.origin}/form")
        for selector, path, body in (("#file", "value", {"text": str(source)}), ("#send", "click", {})):
            found = browser.call("element", using="css selector", value=selector)
            browser.call(f"element/{next(iter(found.values()))}/{path}", **body)
        until(lambda: urlsplit(browser.url()).path == "/done", "the redirect")
        url = urlsplit(browser.url())
        key = parse_qs(url.query)["key"][0]
    assert key.startswith("photos/photo \u00e4 ")
    got = extended.get(sent.bucket, key)
    assert (got.body, got.get("content-type")) == (b"from a browser", "text/plain")
