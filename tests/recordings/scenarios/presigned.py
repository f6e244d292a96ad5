"""Presigned URLs of both signature versions. The scenarios with virtual-hosted addresses are left out."""

import time
import xml.etree.ElementTree as ElementTree
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import boto3
import requests
from botocore.client import BaseClient
from botocore.config import Config
from botocore.handlers import validate_ascii_metadata

from harness.s3 import strip_namespaces

from ..case import STRICT, Case, Ended, scenario, xml_dict

VERSIONS = ("s3", "s3v4")


def signer(case: Case, version: str) -> BaseClient:
    """Returns a client that signs URLs and forms in a version. Strict mode refuses the old one, which ends the scenario."""
    keys = case.http.credential
    client = boto3.client(
        "s3", endpoint_url=f"http://{case.http.authority}", region_name="us-east-1", aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key, config=Config(signature_version=version, s3={"addressing_style": "path"}),
    )
    if version == "s3" and case.mode == STRICT:
        refused = requests.get(client.generate_presigned_url("list_objects_v2", Params={"Bucket": case.bucket()}))
        assert refused.status_code == 400, refused.text
        raise Ended
    return client


def document(response: requests.Response, *, status: bool = True) -> dict:
    """Returns the document of a response and, as some recordings have it, its status."""
    found = {}
    if response.content:
        root = strip_namespaces(ElementTree.fromstring(response.content))
        found = {root.tag: xml_dict(root)}
    return found | ({"StatusCode": response.status_code} if status else {})


class Object:
    """An object of a scenario and URLs for it."""

    def __init__(self, case: Case, key: str, body: str | None = "something", version: str = ""):
        self.case, self.names = case, {"Bucket": case.bucket(), "Key": key}
        self.client = signer(case, version or case.parameter)
        if body is not None:
            case.do("put_object", **self.names, Body=body)

    def url(self, operation: str = "get_object", expires: int = 60, **parameters: object) -> str:
        """Returns a URL for an operation."""
        return self.client.generate_presigned_url(operation, Params=self.names | parameters, ExpiresIn=expires)

    def expired(self, step: str, seconds: int) -> None:
        """Reads with a URL that has ended, as a step."""
        url = self.url(expires=seconds)
        deadline = time.monotonic() + 30
        while (response := requests.get(url)).status_code == 200:
            assert time.monotonic() < deadline, "the URL did not expire"
            time.sleep(0.1)
        self.case.match(step, document(response, status=False))


def changed_query(url: str, first: dict[str, str], *removed: str) -> str:
    """Returns a URL with other parameters before its own, and without some of its own."""
    parts = urlsplit(url)
    own = {name: values[0] for name, values in parse_qs(parts.query).items() if name not in removed}
    return urlunsplit(parts._replace(query=urlencode(first | own, quote_via=quote, safe=" ")))


@scenario("TestS3PresignedUrl::test_put_object")
def put(case: Case) -> None:
    object_ = Object(case, "my-key", None, "s3v4")
    requests.put(object_.url("put_object"), data="something")
    case.step("get_object", "get_object", **object_.names)


@scenario("TestS3PresignedUrl::test_put_url_metadata_with_sig_s3v4", "True", "False")
def metadata_v4(case: Case) -> None:
    object_ = Object(case, "key-by-hostname", None, "s3v4")
    url = object_.url("put_object", Metadata={"foo": "bar"})
    case.match("no-meta-headers", document(requests.put(url, data="content 123"), status=False))
    requests.put(url, data="content 123", headers={"x-amz-meta-foo": "bar"})
    case.step("head_object", "head_object", **object_.names)
    # AWS names one header that is not signed, although the other one is missing.
    wrong = requests.put(url, data="content 123", headers={"x-amz-meta-wrong": "wrong"})
    case.match("wrong-meta-headers", document(wrong, status=False))


@scenario("TestS3PresignedUrl::test_put_url_metadata_with_sig_s3", "True", "False")
def metadata_v2(case: Case) -> None:
    object_ = Object(case, "key-by-hostname", None, "s3")
    url = object_.url("put_object", Metadata={"foo": "bar"})
    requests.put(url, data="content 123")
    case.step("head_object", "head_object", **object_.names)
    wrong = requests.put(url, data="content 123", headers={"x-amz-meta-wrong": "wrong"})
    case.match("wrong-meta-headers", document(wrong, status=False))


@scenario("TestS3PresignedUrl::test_get_response_overrides_unicode_metadata_with_sig_s3")
def utf8_overrides(case: Case) -> None:
    object_ = Object(case, "key-non-ascii", "", "s3")
    url = object_.url(ResponseCacheControl="non-ascii-%E2%80%94_—_é_", ResponseContentDisposition='filename="test_—_file%E2%80%94_é_2.pdf"')
    case.match("unicode-error", document(requests.get(url), status=False))


@scenario("TestS3PresignedUrl::test_put_unicode_metadata_with_sig_s3")
def utf8_metadata(case: Case) -> None:
    object_ = Object(case, "key-non-ascii", None, "s3")
    # Other SDKs do not check it.
    object_.client.meta.events.unregister("before-parameter-build.s3.PutObject", validate_ascii_metadata)
    requests.put(object_.url("put_object", Metadata={"foo": "non-ascii-%E2%80%94_—_é_"}))
    case.step("head_object", "head_object", **object_.names)


@scenario("TestS3PresignedUrl::test_presigned_double_encoded_credentials")
def encoded_twice(case: Case) -> None:
    url = Object(case, "foo-key", "foobar", "s3v4").url().replace("%2F", "%252F")
    case.match("error-malformed", document(requests.get(url), status=False))


@scenario("TestS3PresignedUrl::test_put_object_with_md5_and_chunk_signature_bad_headers", "s3-True", "s3v4-True", "s3-False", "s3v4-False")
def chunks_not_signed(case: Case) -> None:
    object_ = Object(case, "test-runtime.properties", None, case.parameter.split("-")[0])
    digest = "pX8KKuGXS1f2VTcuJpqjkw=="
    url = object_.url("put_object", ContentType="application/octet-stream", ContentMD5=digest)
    headers = {
        "Content-Md5": digest, "Content-Type": "application/octet-stream", "X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "X-Amz-Date": "20211122T191045Z", "X-Amz-Decoded-Content-Length": "test",
    }
    for step in ("with", "without"):
        found = document(requests.put(url, data="test", headers=headers), status=False)
        if case.recorded:
            case.match(f"{step}-decoded-content-length", found)
        headers.pop("X-Amz-Decoded-Content-Length", None)


@scenario("TestS3PresignedUrl::test_s3_presigned_url_expired", *VERSIONS)
def expired(case: Case) -> None:
    Object(case, "key-expires-in-2").expired("expired-exception", 2)


@scenario("TestS3PresignedUrl::test_presigned_url_signature_authentication_expired", "s3-False", "s3v4-False")
def expired_soon(case: Case) -> None:
    Object(case, "temp.txt", "123", case.parameter.split("-")[0]).expired("expired", 1)


@scenario("TestS3PresignedUrl::test_s3_put_presigned_url_with_different_headers", *VERSIONS)
def other_headers(case: Case) -> None:
    object_ = Object(case, "key-double-header-param")

    def send(step: str, url: str, **headers: str) -> None:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        case.match(step, document(requests.put(url, data="test_data", headers=sent)))

    send("content-type-exception", object_.url("put_object", ContentType="text/plain"), content_type="text/xml")
    url = object_.url("put_object", ContentEncoding="identity")
    send("content-type-response", url, content_encoding="identity", content_type="text/xml")
    send("wrong-content-encoding-response", url, content_encoding="gzip")


@scenario("TestS3PresignedUrl::test_s3_put_presigned_url_same_header_and_qs_parameter")
def header_and_parameter(case: Case) -> None:
    object_ = Object(case, "key-double-header-param", version="s3v4")
    url = object_.url("put_object", RequestPayer="requester")
    twice = changed_query(url, {"x-amz-request-payer": "non-valid"})
    case.match("double-header-query-string", document(requests.put(twice, data="test_data", headers={"x-amz-request-payer": "requester"})))
    case.match("override-signed-qs", document(requests.put(url, data="test_data", headers={"x-amz-expires": "5"})))


@scenario("TestS3PresignedUrl::test_s3_put_presigned_url_missing_sig_param", *VERSIONS)
def missing_parameter(case: Case) -> None:
    url = changed_query(Object(case, "key-missing-param").url(), {}, "Expires", "X-Amz-Date")
    case.match("missing-param-exception", document(requests.get(url)))


@scenario("TestS3PresignedUrl::test_s3_copy_md5")
def plain_copy(case: Case) -> None:
    bucket = case.bucket()
    case.put(bucket, "src", "something")
    case.step("copy-obj", "copy_object", Bucket=bucket, Key="dest", CopySource={"Bucket": bucket, "Key": "src"})


@scenario("TestS3PresignedUrl::test_presigned_url_signature_authentication", "s3-False", "s3v4-False")
def wrong_signatures(case: Case) -> None:
    object_ = Object(case, "temp.txt", "123", case.parameter.split("-")[0])
    headers, data = {"Content-Type": "my-fake-content/type"}, "this should be found in when you download temp.txt."
    path = f"/{object_.names['Bucket']}/temp.txt"

    def invalid(url: str) -> str:
        return url.replace(path, f"{path}invalid")

    url = object_.url(ResponseContentType="text/plain", ResponseContentDisposition="attachment;  filename=test.txt")
    case.match("invalid-get-1", document(requests.get(invalid(url), data=data, headers=headers), status=False))
    url = object_.url("put_object", ContentType="text/plain")
    case.match("invalid-put-1", document(requests.put(invalid(url), data=data, headers=headers), status=False))
