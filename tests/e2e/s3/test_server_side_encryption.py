"""Server-side encryption in the extended mode: `AES256` asks for encryption at rest, and responses say what is encrypted."""

import json
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from botocore.client import BaseClient

from harness.accounts import create_account, statement
from harness.boto import PART_BYTES, Upload, headers, make_client, random_bytes, refused
from harness.expect import assert_error
from harness.forms import Form
from harness.management import expect
from harness.s3 import S3, object_target, xml
from harness.server import Cairn

ENABLED = "SERVICE_STORAGE_ENCRYPTION_ENABLED"
NAME = "x-amz-server-side-encryption"
AES256 = [(NAME, "AES256")]
OTHER_KINDS = [
    (NAME, "aws:kms"), (NAME, "aws:kms:dsse"), (f"{NAME}-aws-kms-key-id", "k"), (f"{NAME}-context", "e30="), (f"{NAME}-bucket-key-enabled", "true"),
    (f"{NAME}-customer-algorithm", "AES256"), (f"{NAME}-customer-key", "a2V5"), ("x-amz-copy-source-server-side-encryption-customer-key", "a2V5"),
]
DEFAULT = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}


@pytest.fixture(scope="module")
def encrypted_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server in the extended mode that encrypts at rest."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", **{ENABLED: "true"}).start()


@pytest.fixture
def encrypted(encrypted_store: Cairn) -> S3:
    """A client of it."""
    return encrypted_store.s3


@pytest.fixture
def bucket_client(encrypted: S3) -> S3:
    """The buckets of this file are made on the server that encrypts."""
    return encrypted


@pytest.fixture
def boto(encrypted: S3) -> BaseClient:
    """A client of it."""
    return make_client(encrypted)


def kind(answer: dict) -> str | None:
    """Returns the encryption that a response of boto3 names."""
    assert answer.get("ServerSideEncryption") == headers(answer).get(NAME)
    return answer.get("ServerSideEncryption")


# Objects


@pytest.mark.parametrize("size", [0, 10, 300_000])
@pytest.mark.parametrize("asked", [[], AES256], ids=["by default", "asked for"])
def test_objects_name_their_encryption(encrypted_store: Cairn, encrypted: S3, bucket: str, size: int, asked: list):
    """Whether it was asked for or not, as on AWS. The management API agrees."""
    body = random_bytes(size, size)
    assert encrypted.put(bucket, "k", body, asked).get(NAME) == "AES256"
    for answer in (encrypted.get(bucket, "k"), encrypted.head(bucket, "k")):
        assert (answer.status, answer.get(NAME)) == (200, "AES256")
    assert encrypted.get(bucket, "k").body == body
    if size:
        assert encrypted.get(bucket, "k", [("Range", "bytes=0-4")]).get(NAME) == "AES256"
    assert expect(encrypted_store.admin.get(f"/buckets/{bucket}/object/k"), 200)["encrypted"] is True
    for method in ("GET", "HEAD"):
        missing = encrypted.request(method, object_target(bucket, "missing"))
        assert (missing.status, missing.get(NAME)) == (404, None)


@pytest.mark.parametrize("options", [{}, {"ServerSideEncryption": "AES256"}], ids=["by default", "asked for"])
def test_uploads_and_copies_name_their_encryption(boto: BaseClient, bucket: str, options: dict):
    """The creation, the parts, copied parts, the completion, and copies of the object."""
    body = random_bytes("part", PART_BYTES)
    upload = Upload(boto, bucket, "k", **options)
    assert kind(upload.created) == "AES256"
    assert kind(upload.send(1, body)) == "AES256"
    boto.put_object(Bucket=bucket, Key="source", Body=b"end")
    copied = boto.upload_part_copy(**upload.names, PartNumber=2, CopySource={"Bucket": bucket, "Key": "source"})
    assert kind(copied) == "AES256"
    upload.parts[2] = {"PartNumber": 2, "ETag": copied["CopyPartResult"]["ETag"]}
    for _ in range(2):
        assert kind(upload.complete()) == "AES256", "also when it is repeated"
    assert kind(boto.head_object(Bucket=bucket, Key="k")) == kind(boto.get_object(Bucket=bucket, Key="k", PartNumber=2)) == "AES256"
    copy = boto.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "k"}, **options)
    assert kind(copy) == kind(boto.head_object(Bucket=bucket, Key="copy")) == "AES256"


def test_a_completion_may_repeat_the_header(encrypted: S3, boto: BaseClient, bucket: str):
    """minio-go, and with it mc and Thanos, sends it there to every server but AWS: their large objects were refused."""
    upload = Upload(boto, bucket, "k", ServerSideEncryption="AES256")
    tag = upload.send(1, b"x")["ETag"]
    target = object_target(bucket, "k", urlencode({"uploadId": upload.names["UploadId"]}))
    body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></CompleteMultipartUpload>".encode()
    assert_error(encrypted.request("POST", target, [(NAME, "aws:kms")], body), 501, "NotImplemented")
    completed = encrypted.request("POST", target, AES256, body)
    assert (completed.status, completed.get(NAME)) == (200, "AES256")
    assert encrypted.get(bucket, "k").body == b"x"


def test_encryption_allows_a_copy_onto_itself(boto: BaseClient, bucket: str):
    """On AWS it may change something, and people encrypt their old objects so. A bucket's own setting allows it too."""
    boto.put_object(Bucket=bucket, Key="k", Body=b"x")
    onto_itself = {"Bucket": bucket, "Key": "k", "CopySource": {"Bucket": bucket, "Key": "k"}}
    with refused(400, "InvalidRequest"):
        boto.copy_object(**onto_itself)
    assert kind(boto.copy_object(**onto_itself, ServerSideEncryption="AES256")) == "AES256"
    boto.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [DEFAULT]})
    assert kind(boto.copy_object(**onto_itself)) == "AES256"


def test_forms_and_presigned_urls_ask_for_it(encrypted: S3, boto: BaseClient, bucket: str):
    """As a field, and as a parameter that a signer moved from the headers to the query."""
    answer = Form(encrypted, bucket, "form", b"content", x_amz_server_side_encryption="AES256").send()
    assert (answer.status, answer.get(NAME)) == (204, "AES256")
    other = Form(encrypted, bucket, "other", b"content", x_amz_server_side_encryption="aws:kms").send()
    assert_error(other, 501, "NotImplemented")
    hoisted = object_target(bucket, "hoisted", urlencode({"X-Amz-Server-Side-Encryption": "AES256"}))
    assert encrypted.request("PUT", hoisted, body=b"x").get(NAME) == "AES256"
    assert sorted(encrypted.list_all(bucket)) == ["form", "hoisted"]


@pytest.mark.parametrize(("name", "value"), OTHER_KINDS)
def test_other_kinds_are_not_implemented(encrypted: S3, bucket: str, name: str, value: str):
    """Nothing is stored under a key that the client believes to have chosen."""
    for method, target in (("PUT", object_target(bucket, "k")), ("POST", object_target(bucket, "k", "uploads"))):
        message = assert_error(encrypted.request(method, target, [(name, value)]), 501, "NotImplemented").findtext("Message")
        assert "implemented" in message and "s3.compatibility" not in message
    assert encrypted.list_all(bucket) == {}


def test_unknown_values_and_other_operations_are_refused(encrypted: S3, boto: BaseClient, bucket: str):
    """As on AWS, only requests that begin an object may have the header."""
    encrypted.put(bucket, "k", b"x")
    for value in ("", "aes256", "AES128"):
        root = assert_error(encrypted.request("PUT", object_target(bucket, "other"), [(NAME, value)], b"x"), 400, "InvalidArgument")
        assert (root.findtext("ArgumentName"), root.findtext("ArgumentValue") or "") == (NAME, value)
    upload = Upload(boto, bucket, "up")
    part = object_target(bucket, "up", urlencode({"uploadId": upload.names["UploadId"], "partNumber": 1}))
    for method, target in (
        ("PUT", part), ("GET", object_target(bucket, "k")), ("DELETE", object_target(bucket, "k")), ("GET", f"/{bucket}"),
        ("PUT", object_target(bucket, "k", "tagging")),
    ):
        assert_error(encrypted.request(method, target, AES256), 400, "InvalidArgument")
    assert_error(encrypted.request("PUT", part, [*AES256, ("x-amz-copy-source", f"{bucket}/k")]), 400, "InvalidArgument")
    assert "Parts" not in upload.listed() and encrypted.get(bucket, "k").body == b"x"


def test_each_version_names_what_is_encrypted_on_the_device(make_module_store: Callable[..., Cairn]):
    """The setting is for new payloads. What was written before, or by an upload with a part from before, is as it was."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended").start()
    boto = make_client(store.s3)
    boto.create_bucket(Bucket="photos")
    boto.put_bucket_versioning(Bucket="photos", VersioningConfiguration={"Status": "Enabled"})
    old = boto.put_object(Bucket="photos", Key="k", Body=b"plain")
    assert kind(old) is None and kind(boto.head_object(Bucket="photos", Key="k")) is None
    upload = Upload(boto, "photos", "mixed")
    assert kind(upload.created) is kind(upload.send(1, random_bytes("plain", PART_BYTES))) is None

    store.extra[ENABLED] = "true"
    store.restart()
    boto = upload.client = make_client(store.s3)
    assert kind(boto.head_object(Bucket="photos", Key="k")) is None
    assert kind(upload.send(2, b"sealed")) == "AES256"
    assert kind(upload.complete()) is kind(boto.get_object(Bucket="photos", Key="mixed")) is None
    assert kind(boto.copy_object(Bucket="photos", Key="copy", CopySource="photos/k")) == "AES256"
    new = boto.put_object(Bucket="photos", Key="k", Body=b"sealed")
    assert kind(new) == kind(boto.head_object(Bucket="photos", Key="k")) == "AES256"
    assert kind(boto.head_object(Bucket="photos", Key="k", VersionId=old["VersionId"])) is None

    store.extra[ENABLED] = "false"
    store.restart()
    boto = make_client(store.s3)
    assert kind(boto.head_object(Bucket="photos", Key="k")) == "AES256"
    assert kind(boto.put_object(Bucket="photos", Key="k", Body=b"plain")) is None


def test_without_encryption_at_rest_the_setting_is_named(extended_store: Cairn, extended: S3):
    """Nothing is stored in the clear that somebody wants to be encrypted. The operator sees what to switch on."""
    extended.create_bucket("plain")
    for method, target, body in (
        ("PUT", "/plain/k", b"x"), ("POST", "/plain/k?uploads", b""),
        ("PUT", "/plain?encryption", b"<ServerSideEncryptionConfiguration><Rule/></ServerSideEncryptionConfiguration>"),
    ):
        answer = extended.request(method, target, [] if "encryption" in target else AES256, body)
        assert "storage.encryption_enabled" in assert_error(answer, 501, "NotImplemented").findtext("Message")
        recorded = expect(extended_store.admin.get(f"/refused-requests/{answer.get('x-amz-request-id')}"), 200)
        assert recorded["setting"] == {"name": "storage.encryption_enabled", "value": "false", "would_help": "true"}
    form = Form(extended, "plain", "k", b"x", x_amz_server_side_encryption="AES256")
    assert_error(form.send(), 501, "NotImplemented")
    assert extended.list_all("plain") == {}
    assert_error(extended.request("GET", "/plain?encryption"), 404, "ServerSideEncryptionConfigurationNotFoundError")
    assert extended.request("DELETE", "/plain?encryption").status == 204


def test_strict_mode_has_no_such_header(make_module_store: Callable[..., Cairn]):
    """It refuses the header, and names the mode that has it, if the server encrypts at rest."""
    store = make_module_store(**{ENABLED: "true"}).start()
    store.s3.create_bucket("photos")
    message = assert_error(store.s3.request("PUT", "/photos/k", AES256, b"x"), 501, "NotImplemented").findtext("Message")
    assert "s3.compatibility" in message
    assert store.s3.put("photos", "k", b"x").get(NAME) is None and store.s3.head("photos", "k").get(NAME) is None
    for method in ("GET", "PUT", "DELETE"):
        assert_error(store.s3.request(method, "/photos?encryption"), 501, "NotImplemented")


def test_strict_mode_does_not_promise_what_the_other_would_refuse(s3: S3, bucket_of_strict: str):
    """Without encryption at rest, the mode alone would not help."""
    refusal = s3.request("PUT", object_target(bucket_of_strict, "k"), AES256, b"x")
    assert "s3.compatibility" not in assert_error(refusal, 501, "NotImplemented").findtext("Message")


@pytest.fixture
def bucket_of_strict(s3: S3) -> str:
    """A bucket on the server that most tests talk to."""
    s3.create_bucket("encryption-strict")
    return "encryption-strict"


# Buckets


def put_rule(boto: BaseClient, bucket: str, **more: object) -> dict:
    """Puts a rule with AES256 and returns the one that is read then."""
    boto.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [DEFAULT | more]})
    return rule_of(boto, bucket)


def rule_of(boto: BaseClient, bucket: str) -> dict:
    """Returns the bucket's rule."""
    (rule,) = boto.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    return rule


def test_bucket_encryption_is_returned_as_it_was_put(make_module_store: Callable[..., Cairn]):
    """Tools such as Terraform compare. A bucket without a setting has the default of AWS. It survives a restart."""
    store = make_module_store(SERVICE_S3_COMPATIBILITY="extended", **{ENABLED: "true"}).start()
    boto = make_client(store.s3)
    boto.create_bucket(Bucket="photos")
    plain, blocked = DEFAULT | {"BucketKeyEnabled": False}, {"BlockedEncryptionTypes": {"EncryptionType": ["SSE-C"]}}
    assert rule_of(boto, "photos") == plain
    assert put_rule(boto, "photos") == plain
    assert put_rule(boto, "photos", **blocked) == plain | blocked
    assert put_rule(boto, "photos", BucketKeyEnabled=True) == DEFAULT | {"BucketKeyEnabled": True}
    store.restart()
    boto = make_client(store.s3)
    assert rule_of(boto, "photos") == DEFAULT | {"BucketKeyEnabled": True}
    for _ in range(2):
        assert headers(boto.delete_bucket_encryption(Bucket="photos")) and rule_of(boto, "photos") == plain
    answer = store.s3.request("PUT", "/photos?encryption", body=b"<ServerSideEncryptionConfiguration><Rule/></ServerSideEncryptionConfiguration>")
    (event,) = expect(store.admin.get(f"/audit/events?request_id={answer.get('x-amz-request-id')}"), 200)["events"]
    assert "AES256" in json.dumps(event)


def test_wrong_bucket_encryption_changes_nothing(boto: BaseClient, encrypted: S3, bucket: str):
    """Neither what is malformed, nor what is not implemented."""
    kept = put_rule(boto, bucket, BucketKeyEnabled=True)
    default = lambda **of: {"ApplyServerSideEncryptionByDefault": of}
    for status, code, rules in (
        (400, "MalformedXML", []), (400, "MalformedXML", [DEFAULT, DEFAULT]), (400, "MalformedXML", [default(SSEAlgorithm="AES128")]),
        (501, "NotImplemented", [default(SSEAlgorithm="aws:kms")]), (501, "NotImplemented", [default(SSEAlgorithm="aws:kms:dsse")]),
        (400, "InvalidArgument", [default(SSEAlgorithm="AES256", KMSMasterKeyID="k")]),
        (501, "NotImplemented", [DEFAULT | {"BlockedEncryptionTypes": {"EncryptionType": ["NONE"]}}]),
    ):
        with refused(status, code):
            boto.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})
    for body in (b"", b"<Other/>", b"no XML"):
        assert_error(encrypted.request("PUT", f"/{bucket}?encryption", body=body), 400, "MalformedXML")
    assert rule_of(boto, bucket) == kept
    for method, body in (("GET", b""), ("PUT", b"<ServerSideEncryptionConfiguration><Rule/></ServerSideEncryptionConfiguration>"), ("DELETE", b"")):
        assert_error(encrypted.request(method, "/no-such-bucket?encryption", body=body), 404, "NoSuchBucket")


def test_bucket_encryption_needs_the_right_to_manage_the_bucket(encrypted_store: Cairn, bucket: str):
    """As all settings of a bucket."""
    manager = create_account(encrypted_store, statement("allow", "ManageBucket", f"bucket:{bucket}")).s3
    writer = create_account(encrypted_store, statement("allow", ["PutObject", "GetObject"], f"bucket:{bucket}/*")).s3
    body = b"<ServerSideEncryptionConfiguration><Rule/></ServerSideEncryptionConfiguration>"
    for method, status, content in (("PUT", 200, body), ("GET", 200, b""), ("DELETE", 204, b"")):
        assert_error(writer.request(method, f"/{bucket}?encryption", body=content), 403, "AccessDenied")
        assert manager.request(method, f"/{bucket}?encryption", body=content).status == status
    assert writer.put(bucket, "k", b"x", AES256).get(NAME) == "AES256"
    assert xml(manager.request("GET", f"/{bucket}?encryption")).findtext("Rule/BucketKeyEnabled") == "false"
