"""Unsupported requests: each answers 501 NotImplemented and changes nothing.

A server that ignores unknown subresources would store an object when the client set an ACL, or return one when it
requested a torrent. So the visible state is compared before and after every request.
"""

import botocore.loaders
import pytest

from harness.expect import assert_error
from harness.s3 import S3, error_code, md5_etag, object_target

BODY = b"kept as it is"
XML_BODY = b"<Anything/>"
STREAMING = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

BUCKET_SUBRESOURCES = [
    "accelerate", "acl", "analytics", "analytics&id=x", "encryption", "intelligent-tiering", "inventory", "lifecycle",
    "logging", "metrics", "notification", "ownershipControls", "policy", "policyStatus", "publicAccessBlock",
    "replication", "requestPayment", "tagging", "website", "metadataTable", "metadataConfiguration",
]
# The status of GET, PUT with an invalid document, and DELETE for a bucket without such a configuration.
BUILT_BUCKET_SUBRESOURCES = {
    "cors": (404, 400, 204), "object-lock": (404, 400, 405), "versioning": (200, 400, 405), "versions": (200, 405, 405),
    "uploads": (200, 405, 405),
}
OBJECT_SUBRESOURCES = ["acl", "tagging", "torrent", "attributes", "restore", "select&select-type=2", "renameObject"]
# The status of GET, PUT, DELETE and POST for an object in a bucket without versioning and object lock.
BUILT_OBJECT_SUBRESOURCES = {
    "retention": (400, 400, 405, 405), "legal-hold": (400, 400, 405, 405), "uploads": (400, 405, 405, 200),
    "uploadId=x": (404, 405, 404, 404), "partNumber=1&uploadId=x": (404, 404, 400, 400),
    "versionId=x": (400, 400, 400, 405),
}

PUT_HEADERS = [
    ("x-amz-tagging", "a=b"), ("x-amz-acl", "public-read"), ("x-amz-acl", "private"), ("x-amz-grant-read", "id=x"),
    ("x-amz-grant-write", "id=x"), ("x-amz-grant-read-acp", "id=x"), ("x-amz-grant-write-acp", "id=x"),
    ("x-amz-grant-full-control", "id=x"), ("x-amz-server-side-encryption", "AES256"),
    ("x-amz-server-side-encryption", "aws:kms"), ("x-amz-server-side-encryption-aws-kms-key-id", "x"),
    ("x-amz-server-side-encryption-context", "x"), ("x-amz-server-side-encryption-bucket-key-enabled", "true"),
    ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
    ("x-amz-server-side-encryption-customer-key", "a2V5"), ("x-amz-server-side-encryption-customer-key-md5", "a2V5"),
    ("x-amz-storage-class", "GLACIER"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ("x-amz-website-redirect-location", "/other"), ("x-amz-trailer", "x-amz-checksum-crc32"),
    ("Content-Encoding", "aws-chunked"), ("x-amz-security-token", "t"), ("x-amz-write-offset-bytes", "13"),
    ("x-amz-checksum-sha512", "eA=="), ("x-amz-sdk-checksum-algorithm", "XXHASH3"), ("x-amz-checksum-algorithm", "MD5"),
]
READ_HEADERS = [
    ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
    ("x-amz-server-side-encryption-customer-key", "a2V5"), ("x-amz-security-token", "t"),
]
LOCK_HEADERS = [
    ("x-amz-object-lock-mode", "GOVERNANCE"), ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z"),
    ("x-amz-object-lock-legal-hold", "ON"),
]


def state(s3: S3, bucket: str) -> object:
    """Returns everything a client can see: the buckets, the list of this bucket, and the object `kept`."""
    buckets = s3.request("GET", "/").body
    listed = s3.list_page(bucket).body
    kept = s3.get(bucket, "kept")
    seen = [pair for pair in kept.headers if pair[0].lower() not in ("date", "x-amz-request-id", "x-amz-id-2")]
    return buckets, listed, kept.status, seen, kept.body


@pytest.fixture
def kept_bucket(s3: S3, bucket: str) -> str:
    """Creates a bucket with one object, `kept`."""
    s3.put(bucket, "kept", BODY, [("x-amz-meta-a", "b"), ("Content-Type", "text/plain")])
    return bucket


def assert_untouched(s3: S3, bucket: str, method: str, target: str, headers=None, body: bytes = b"", **signing) -> None:
    """Asserts that the request answers 501 and that the visible state does not change."""
    before = state(s3, bucket)
    response = s3.request(method, target, headers, body, **signing)
    if method == "HEAD":
        assert response.status == 501
    else:
        assert_error(response, 501, "NotImplemented")
    assert state(s3, bucket) == before, f"{method} {target} changed something"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", BUCKET_SUBRESOURCES)
def test_unsupported_bucket_subresources_change_nothing(s3: S3, kept_bucket: str, method: str, name: str):
    """PUT must not create or change a bucket, DELETE must not remove it, GET must not list it."""
    body = XML_BODY if method == "PUT" else b""
    assert_untouched(s3, kept_bucket, method, f"/{kept_bucket}?{name}", body=body)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", OBJECT_SUBRESOURCES)
def test_unsupported_object_subresources_change_nothing(s3: S3, kept_bucket: str, method: str, name: str):
    """PUT must not overwrite the object with the subresource's XML, DELETE must not remove the object."""
    body = XML_BODY if method == "PUT" else b""
    assert_untouched(s3, kept_bucket, method, object_target(kept_bucket, "kept", name), body=body)


SUBRESOURCES = sorted({
    (operation["http"]["method"], "{Key+}" in operation["http"]["requestUri"], operation["http"]["requestUri"].partition("?")[2])
    for operation in botocore.loaders.Loader().load_service_model("s3", "service-2")["operations"].values()
    if "?" in operation["http"]["requestUri"]
})


@pytest.mark.parametrize(("method", "is_of_object", "query"), SUBRESOURCES)
def test_no_subresource_of_an_sdk_acts_on_the_object_or_bucket_itself(
    s3: S3, extended: S3, kept_bucket: str, extended_bucket: str, method: str, is_of_object: bool, query: str
):
    """Annotations came with a new SDK: to add one replaced the object, to delete one deleted it."""
    extended.put(extended_bucket, "kept", BODY)
    for client, bucket in ((s3, kept_bucket), (extended, extended_bucket)):
        target = object_target(bucket, "kept", query) if is_of_object else f"/{bucket}?{query}"
        response = client.request(method, target, body=XML_BODY if method in ("PUT", "POST") else b"")
        assert response.body != BODY and (b"<ListBucketResult" not in response.body or "list-type" in query)
        assert error_code(response) not in ("BucketNotEmpty", "BucketAlreadyOwnedByYou"), (method, query)
        assert client.get(bucket, "kept").body == BODY, (method, query, response.status)


@pytest.mark.parametrize(("method", "key"), [("PUT", "kept"), ("DELETE", "kept"), ("POST", "kept"), ("PUT", ""), ("DELETE", ""), ("POST", "")])
@pytest.mark.parametrize("query", ["novelty", "novelty=", "noveltyName=n&novelty", "tagging&novelty", "annotation&annotationName=n"])
def test_subresources_that_nobody_knows_change_nothing(s3: S3, kept_bucket: str, method: str, key: str, query: str):
    """S3 gets new ones. An object is not replaced or deleted when its annotation, say, was meant."""
    target = object_target(kept_bucket, key, query) if key else f"/{kept_bucket}?{query}"
    assert_untouched(s3, kept_bucket, method, target, body=XML_BODY if method != "DELETE" else b"")


def test_parameters_with_a_value_that_nobody_knows_are_ignored(s3: S3, kept_bucket: str):
    """SDKs add `x-id`. A read with any parameter is a read: browsers are sent past caches with them."""
    assert s3.request("PUT", object_target(kept_bucket, "new", "x-id=PutObject&novelty=1&x-team"), body=BODY).status == 200
    for query in ("novelty", "v2", "novelty=1"):
        assert s3.get(kept_bucket, "new", query=query).body == BODY


EVENT_HOLDS = [
    ("x-amz-object-lock-event-hold", "ON"), ("x-amz-object-lock-event-hold-duration-days", "5"), ("x-amz-object-lock-novelty", "1"),
]


@pytest.mark.parametrize(("name", "value"), EVENT_HOLDS)
def test_locks_that_are_not_known_are_refused(s3: S3, kept_bucket: str, name: str, value: str):
    """They were ignored, and the version was not protected."""
    assert_untouched(s3, kept_bucket, "PUT", object_target(kept_bucket, "kept"), [(name, value)], XML_BODY)
    assert_untouched(s3, kept_bucket, "PUT", object_target(kept_bucket, "new", f"{name}={value}"), body=XML_BODY)


@pytest.mark.parametrize("name", ["restore", "select&select-type=2"])
def test_unsupported_object_posts_change_nothing(s3: S3, kept_bucket: str, name: str):
    """POST with `restore` and `select` is not implemented."""
    assert_untouched(s3, kept_bucket, "POST", object_target(kept_bucket, "kept", name), body=XML_BODY)


@pytest.mark.parametrize("name", BUILT_BUCKET_SUBRESOURCES)
def test_bucket_subresources_never_act_on_the_bucket(s3: S3, kept_bucket: str, name: str):
    """An implemented subresource must not be treated as a list, creation or deletion of the bucket itself."""
    before = state(s3, kept_bucket)
    for method, status in zip(("GET", "PUT", "DELETE"), BUILT_BUCKET_SUBRESOURCES[name], strict=True):
        response = s3.request(method, f"/{kept_bucket}?{name}", body=XML_BODY if method == "PUT" else b"")
        assert response.status == status, (method, response.status, response.body)
        assert b"ListBucketResult" not in response.body
        assert state(s3, kept_bucket) == before


@pytest.mark.parametrize("name", BUILT_OBJECT_SUBRESOURCES)
def test_object_subresources_never_act_on_the_object(s3: S3, kept_bucket: str, name: str):
    """UploadPart must not be treated as PutObject, nor deletion of a version as deletion of the object."""
    before = state(s3, kept_bucket)
    for method, status in zip(("GET", "PUT", "DELETE", "POST"), BUILT_OBJECT_SUBRESOURCES[name], strict=True):
        response = s3.request(method, object_target(kept_bucket, "kept", name), body=XML_BODY if method == "PUT" else b"")
        assert response.status == status, (method, response.status, response.body)
        assert state(s3, kept_bucket) == before


@pytest.mark.parametrize("query", ["", "?prefix=k", "?marker=a", "?list-type=1", "?delimiter=/", "?list-type=", "?list-type=3"])
def test_list_objects_v1_is_not_implemented(s3: S3, kept_bucket: str, query: str):
    """The message names `list-type=2`, which works."""
    root = assert_error(s3.request("GET", f"/{kept_bucket}{query}"), 501, "NotImplemented")
    assert "list-type=2" in root.findtext("Message")


def test_delete_objects_is_not_implemented(s3: S3, kept_bucket: str):
    """A batch deletion deletes nothing."""
    body = b"<Delete><Object><Key>kept</Key></Object></Delete>"
    assert_untouched(s3, kept_bucket, "POST", f"/{kept_bucket}?delete", body=body)


def test_form_upload_is_not_implemented(s3: S3, kept_bucket: str):
    """A browser form that is posted to the bucket stores nothing."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nkept\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nevil\r\n--x--\r\n'
    )
    headers = [("Content-Type", "multipart/form-data; boundary=x")]
    assert_untouched(s3, kept_bucket, "POST", f"/{kept_bucket}", headers, body)


def test_sts_is_not_implemented(s3: S3, kept_bucket: str):
    """AssumeRole is posted to the root of the service. Clients of STS sign for `sts`, or not at all."""
    headers = [("Content-Type", "application/x-www-form-urlencoded")]
    body = b"Action=AssumeRole&Version=2011-06-15&RoleArn=x&RoleSessionName=y"
    assert_untouched(s3, kept_bucket, "POST", "/", headers, body)
    scope = f"{s3.credential.access_key}/20260101/us-east-1/sts/aws4_request"
    of_sts = [("Authorization", f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}")]
    for signature in ([], of_sts):
        answer = s3.send_raw("POST", "/", [("Host", s3.authority), *headers, *signature, ("Content-Length", str(len(body)))], body)
        assert (answer.status, error_code(answer)) == (501, "NotImplemented") and b"STS" in answer.body


def test_create_session_is_not_implemented(s3: S3, kept_bucket: str):
    """CreateSession exists for directory buckets only."""
    assert_untouched(s3, kept_bucket, "GET", f"/{kept_bucket}?session")


@pytest.mark.parametrize("key", ["kept", "new"])
@pytest.mark.parametrize(("name", "value"), PUT_HEADERS)
def test_unsupported_headers_on_put_store_nothing(s3: S3, kept_bucket: str, name: str, value: str, key: str):
    """No object is written or overwritten if a header requests an unsupported feature."""
    assert_untouched(s3, kept_bucket, "PUT", object_target(kept_bucket, key), [(name, value)], XML_BODY)


@pytest.mark.parametrize(("name", "value"), LOCK_HEADERS)
def test_lock_headers_without_object_lock_are_refused(s3: S3, kept_bucket: str, name: str, value: str):
    """Ignoring the header would store an unprotected object. A bucket without object lock answers 400."""
    before = state(s3, kept_bucket)
    response = s3.request("PUT", object_target(kept_bucket, "kept"), [(name, value)], XML_BODY)
    assert_error(response, 400, "InvalidRequest", "InvalidArgument")
    assert state(s3, kept_bucket) == before


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(("name", "value"), READ_HEADERS)
def test_unsupported_headers_on_reads_are_refused(s3: S3, kept_bucket: str, method: str, name: str, value: str):
    """A client that sends a customer key expects an object that was encrypted with it."""
    assert_untouched(s3, kept_bucket, method, object_target(kept_bucket, "kept"), [(name, value)])


def test_object_ownership_on_bucket_creation_is_refused(s3: S3, kept_bucket: str):
    """No bucket is created."""
    before = state(s3, kept_bucket)
    response = s3.request("PUT", f"/{kept_bucket}-new", [("x-amz-object-ownership", "ObjectWriter")])
    assert_error(response, 501, "NotImplemented")
    assert state(s3, kept_bucket) == before


def test_copy_source_on_other_operations_is_refused(s3: S3, kept_bucket: str):
    """UploadPart must not store an empty part, and GET, HEAD and DELETE must not ignore the header."""
    source = [("x-amz-copy-source", f"/{kept_bucket}/kept")]
    assert_untouched(s3, kept_bucket, "PUT", object_target(kept_bucket, "new", "partNumber=1&uploadId=x"), source)
    before = state(s3, kept_bucket)
    for method in ("GET", "DELETE"):
        assert_error(s3.request(method, object_target(kept_bucket, "kept"), source), 400, "InvalidArgument")
    assert s3.request("HEAD", object_target(kept_bucket, "kept"), source).status == 400
    assert state(s3, kept_bucket) == before


def test_virtual_host_addressing_is_not_implemented(s3: S3, kept_bucket: str):
    """If the host name contains a bucket, the first path segment must not be taken for a bucket or key."""
    name, _, port = s3.authority.rpartition(":")
    for host in (s3.authority, f"{name}.:{port}", f"localhost:{port}", "LOCALHOST"):
        for method, target in (("GET", "/kept"), ("PUT", "/kept"), ("DELETE", "/kept"), ("GET", "/?list-type=2"), ("PUT", "/")):
            before = state(s3, kept_bucket)
            body = XML_BODY if method == "PUT" else b""
            assert_error(s3.request(method, target, body=body, host=f"{kept_bucket}.{host}"), 501, "NotImplemented")
            assert state(s3, kept_bucket) == before
        assert_error(s3.request("DELETE", f"/{kept_bucket}", host=f"any-bucket.{host}"), 501, "NotImplemented")


def test_any_other_host_is_accepted(s3: S3, kept_bucket: str):
    """The Host header can be any name if the server runs behind a proxy."""
    for host in ("storage.example.org", "localhost:1", "[::1]:7600"):
        response = s3.request("GET", object_target(kept_bucket, "kept"), host=host)
        assert response.status == 200 and response.get("etag") == md5_etag(BODY), host


def test_501_messages_name_an_alternative(s3: S3, kept_bucket: str):
    """The message of a 501 names the setting or operation that works instead."""
    expected = {
        ("PUT", "x-amz-acl"): ("polic", "acl"), ("PUT", "x-amz-tagging"): ("metadata", "x-amz-meta", "tag"),
    }
    for (method, header), words in expected.items():
        root = assert_error(
            s3.request(method, object_target(kept_bucket, "new"), [(header, "a=b")], BODY), 501, "NotImplemented"
        )
        assert any(word in root.findtext("Message").lower() for word in words), root.findtext("Message")
    streaming = s3.request(
        "PUT", object_target(kept_bucket, "new"), body=BODY, payload="STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    )
    assert "required" in assert_error(streaming, 501, "NotImplemented").findtext("Message").lower().replace("_", " ")


def test_browser_form_upload_is_not_implemented(s3: S3, bucket: str):
    """Regression: a form has its signature in the body, so it was refused as unsigned (403), which does not help its author."""
    form = b'--b\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n--b--\r\n'
    headers = [("Host", s3.authority), ("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(len(form)))]
    answer = s3.send_raw("POST", f"/{bucket}", headers, form)
    assert_error(answer, 501, "NotImplemented")
    assert b"presigned PUT" in answer.body and s3.list_all(bucket) == {}
    unsigned = s3.send_raw("POST", f"/{bucket}", [("Host", s3.authority), ("Content-Length", "0")])
    assert_error(unsigned, 403, "AccessDenied")


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("GET", "?tagging", []), ("GET", "", []), ("POST", "?delete", []), ("GET", "?notification", []), ("GET", "/kept?attributes", []),
        ("PUT", "/kept", [("x-amz-tagging", "a=b")]), ("PUT", "/kept", [("x-amz-acl", "private")]),
        ("PUT", "/kept", [("x-amz-content-sha256", STREAMING), ("x-amz-decoded-content-length", "1"), ("x-amz-trailer", "x-amz-checksum-crc32")]),
    ],
)
def test_what_the_other_mode_serves_names_the_setting(s3: S3, kept_bucket: str, method: str, target: str, headers: list[tuple[str, str]]):
    """Operators learned of the mode only from the records of the server."""
    payload = dict(headers).get("x-amz-content-sha256")
    answer = s3.request(method, f"/{kept_bucket}{target}", headers=[pair for pair in headers if pair[1] != payload], payload=payload)
    assert_error(answer, 501, "NotImplemented")
    text = answer.body.decode().replace("&quot;", '"')
    assert 'With the setting s3.compatibility = "extended" the server implements it.' in text


@pytest.mark.parametrize("target", ["?logging", "?replication", "/kept?torrent", "?website"])
def test_what_no_mode_serves_names_no_setting(s3: S3, kept_bucket: str, target: str):
    """A setting that would not help."""
    method = "GET" if "torrent" in target else "PUT"
    answer = s3.request(method, f"/{kept_bucket}{target}")
    assert_error(answer, 501, "NotImplemented")
    assert "compatibility" not in answer.body.decode()


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_notifications_name_webhooks(s3: S3, kept_bucket: str, method: str):
    """They are what this server has instead."""
    answer = s3.request(method, f"/{kept_bucket}?notification")
    assert_error(answer, 501, "NotImplemented")
    assert "webhooks" in answer.body.decode() and "cairn webhook create" in answer.body.decode()
