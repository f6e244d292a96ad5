"""Virtual-hosted addressing in the extended mode: the host names the bucket, and the path is the key."""

import socket
from collections.abc import Callable, Iterator

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from harness.accounts import create_account, statement
from harness.boto import random_bytes, refused
from harness.expect import assert_error
from harness.management import expect
from harness.s3 import S3, md5_etag, object_target, xml
from harness.server import Cairn
from harness.wire import Response

BASE, LONGER = "store.test", "eu.store.test"
RULES = b"<CORSConfiguration><CORSRule><AllowedOrigin>https://page.test</AllowedOrigin><AllowedMethod>PUT</AllowedMethod></CORSRule></CORSConfiguration>"


@pytest.fixture(scope="module")
def extended_store(make_module_store: Callable[..., Cairn]) -> Cairn:
    """A server with two names, one below the other."""
    names = {"SERVICE_SERVER_BASE_HOSTS": f"{BASE},{LONGER}", "SERVICE_AUDIT_DATA_EVENTS": "all", "SERVICE_OBSERVABILITY_LOG_PATHS": "true"}
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", **names).start()


def hosted(s3: S3, bucket: str, method: str, target: str, body: bytes = b"", base: str = BASE, **options: object) -> Response:
    """Sends a request whose host names the bucket."""
    return s3.request(method, target, body=body, host=f"{bucket}.{base}:{s3.port}", **options)


def test_host_and_path_name_the_object(extended: S3, extended_bucket: str):
    """Both styles name the same objects; a key may begin with a slash or look like another bucket."""
    for key in ("k", "/k", "//", "a/../b", f"{extended_bucket}/k", "e/1234", "ü +%"):
        target = object_target("x", key).removeprefix("/x")
        body = f"content of {key}".encode()
        put = hosted(extended, extended_bucket, "PUT", target, body)
        assert (put.status, put.get("etag")) == (200, md5_etag(body)), put.body
        assert extended.get(extended_bucket, key).body == body
        assert hosted(extended, extended_bucket, "GET", target).body == body
        assert hosted(extended, extended_bucket, "HEAD", target).status == 200
    listed = xml(hosted(extended, extended_bucket, "GET", "/?list-type=2&prefix=a"))
    assert [item.findtext("Key") for item in listed.findall("Contents")] == ["a/../b"]
    assert hosted(extended, extended_bucket, "DELETE", "/k").status == 204
    assert extended.get(extended_bucket, "k").status == 404


def test_names_of_this_server(extended: S3, extended_bucket: str):
    """Case, port and a trailing dot do not matter. The longest name counts, and a name alone is the service."""
    extended.put(extended_bucket, "k", b"found")
    for base in (BASE, LONGER, BASE.upper(), f"{BASE}.", "localhost", "LocalHost"):
        assert hosted(extended, extended_bucket, "GET", "/k", base=base).body == b"found", base
        assert extended.request("GET", f"/{extended_bucket}/k", host=f"{base}:1").body == b"found", base
        assert xml(extended.request("GET", "/", host=base)).tag == "ListAllMyBucketsResult", base
    assert extended.request("GET", "/k", host=f"{extended_bucket.upper()}.{BASE}").body == b"found"
    dotted = f"{extended_bucket}.us"
    assert hosted(extended, dotted, "PUT", "/").status == 200
    assert hosted(extended, dotted, "HEAD", "/", base="localhost").status == 200
    assert xml(hosted(extended, "k", "GET", "/", base="other.test")).tag == "ListAllMyBucketsResult"
    before = [bucket.findtext("Name") for bucket in xml(extended.request("GET", "/")).iter("Bucket")]
    for host in (f"{extended_bucket}.127.0.0.1:1", f"{extended_bucket}.127.0.0.1"):
        assert_error(extended.request("DELETE", "/k", host=host), 501, "NotImplemented")
    assert [bucket.findtext("Name") for bucket in xml(extended.request("GET", "/")).iter("Bucket")] == before


@pytest.mark.parametrize("label", ["ab", "a_b", "-ab", "a..b", "x" * 64, "%41bc", "a b"])
def test_invalid_bucket_names_in_hosts(extended: S3, label: str):
    """The path of such a host is never taken for a bucket and a key."""
    answer = hosted(extended, label, "GET", "/bucket/key")
    assert (answer.status, xml(answer).findtext("Code")) in {(400, "InvalidBucketName"), (400, "BadRequest")}, answer.body


def test_errors_and_locations_name_bucket_and_key(extended: S3, extended_bucket: str):
    """Resource is the one of path style. Location has the style of the request."""
    missing = xml(hosted(extended, extended_bucket, "GET", "/no/%C3%BC"))
    found = [missing.findtext(name) for name in ("Code", "BucketName", "Key", "Resource")]
    assert found == ["NoSuchKey", extended_bucket, "no/ü", f"/{extended_bucket}/no/%C3%BC"]
    for style, target, host in (
        ("path", object_target(extended_bucket, "a b"), extended.authority),
        ("host", "/a%20b", f"{extended_bucket}.{BASE}:7600"),
    ):
        created = xml(extended.request("POST", f"{target}?uploads", host=host))
        upload = created.findtext("UploadId")
        etag = extended.request("PUT", f"{target}?partNumber=1&uploadId={upload}", body=b"part", host=host).get("etag")
        body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>".encode()
        completed = xml(extended.request("POST", f"{target}?uploadId={upload}", body=body, host=host))
        assert completed.findtext("Location") == f"http://{host}{target}", style
    copied = hosted(extended, extended_bucket, "PUT", "/copy", headers=[("x-amz-copy-source", f"{extended_bucket}/a%20b")])
    assert copied.status == 200 and extended.get(extended_bucket, "copy").body == b"part"


def test_signature_covers_the_path_as_sent(extended: S3, extended_bucket: str):
    """A signature for path style is not valid for the same object in the host, and the other way round."""
    extended.put(extended_bucket, "k", b"1")
    host = f"{extended_bucket}.{BASE}"
    for signed, sent in ((f"/{extended_bucket}/k", "/k"), ("/k", f"/{extended_bucket}/k")):
        head = extended.signed_head("GET", signed, host=host)
        assert_error(extended.send_raw("GET", sent, head), 403, "SignatureDoesNotMatch")
    other = [(name, f"other-bucket.{BASE}" if name == "Host" else value) for name, value in extended.signed_head("GET", "/k", host=host)]
    assert_error(extended.send_raw("GET", "/k", other), 403, "SignatureDoesNotMatch")


def test_other_ways_to_name_a_host(extended: S3, extended_bucket: str):
    """HTTP/1.0 without a host is path style. Absolute targets and two hosts stay refused."""
    extended.put(extended_bucket, "k", b"1")
    with extended.connect() as connection:
        connection.send(f"GET /{extended_bucket}/k HTTP/1.0\r\n\r\n".encode())
        assert_error(connection.read_response("GET"), 403, "AccessDenied")
    host = f"{extended_bucket}.{BASE}"
    for lines in (f"GET http://{host}/k HTTP/1.1\r\nHost: {host}", f"GET /k HTTP/1.1\r\nHost: {host}\r\nHost: {BASE}", "GET /k HTTP/1.1"):
        with extended.connect() as connection:
            connection.send(f"{lines}\r\nContent-Length: 0\r\n\r\n".encode())
            assert connection.read_response("GET").status == 400, lines


def test_rules_for_other_origins_are_those_of_the_bucket_in_the_host(extended: S3, extended_bucket: str):
    """Preflights and responses, refusals as well."""
    assert extended.request("PUT", f"/{extended_bucket}?cors", body=RULES).status == 200
    origin = [("Origin", "https://page.test")]
    host = [("Host", f"{extended_bucket}.{BASE}")]
    asked = extended.send_raw("OPTIONS", "/k", [*host, *origin, ("Access-Control-Request-Method", "PUT")])
    assert (asked.status, asked.get("access-control-allow-origin")) == (200, "https://page.test")
    assert_error(extended.send_raw("OPTIONS", "/k", [*host, *origin, ("Access-Control-Request-Method", "GET")]), 403, "AccessForbidden")
    put = hosted(extended, extended_bucket, "PUT", "/k", b"1", headers=origin)
    assert (put.status, put.get("access-control-allow-origin")) == (200, "https://page.test")
    denied = extended.send_raw("PUT", "/k", [*host, *origin, ("Content-Length", "0")])
    assert (denied.status, denied.get("access-control-allow-origin")) == (403, "https://page.test")


def test_permissions_and_records_are_of_bucket_and_key(extended_store: Cairn, extended: S3, extended_bucket: str):
    """A policy, the audit trail and the refused requests name what the host and the path name."""
    reader = create_account(extended_store, statement("allow", "GetObject", f"bucket:{extended_bucket}/open/*"))
    extended.put(extended_bucket, "open/k", b"1")
    assert hosted(reader.s3, extended_bucket, "GET", "/open/k").body == b"1"
    denied = hosted(reader.s3, extended_bucket, "GET", "/closed/k")
    assert_error(denied, 403, "AccessDenied")
    for key, result in (("open/k", "allowed"), ("closed/k", "denied")):
        resource = {"resource": f"{extended_bucket}/{key}", "operation": "GetObject"}
        (record,) = expect(extended_store.admin.get("/audit/events", params=resource), 200)["events"]
        assert record["result"] == result
    found = expect(extended_store.admin.get(f"/refused-requests/{denied.get('x-amz-request-id')}"), 200)
    assert (found["bucket"], found["key"]) == (extended_bucket, "closed/k")
    extended_store.wait_output(f"bucket={extended_bucket} key=open/k")


@pytest.fixture
def boto(extended: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[BaseClient]:
    """boto3 with its default style, which is virtual-hosted, and a resolver that knows the server's names."""
    resolve = socket.getaddrinfo
    own = lambda host: "127.0.0.1" if str(host).endswith(BASE) else host
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: resolve(own(host), *rest, **more))
    yield boto3.client(
        "s3", endpoint_url=f"http://{BASE}:{extended.port}", region_name="us-east-1",
        aws_access_key_id=extended.credential.access_key, aws_secret_access_key=extended.credential.secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "virtual"}, retries={"total_max_attempts": 1}),
    )


def test_boto3(boto: BaseClient, extended: S3, tmp_path):
    """Buckets, objects, an upload in parts, presigned URLs, lists and deletes."""
    boto.create_bucket(Bucket="boto.hosted")
    assert "boto.hosted" in [bucket["Name"] for bucket in boto.list_buckets()["Buckets"]]
    boto.head_bucket(Bucket="boto.hosted")
    body = random_bytes("hosted", 12 << 20)
    (tmp_path / "file").write_bytes(body)
    boto.upload_file(str(tmp_path / "file"), "boto.hosted", "/large one")
    assert boto.get_object(Bucket="boto.hosted", Key="/large one")["Body"].read() == body
    boto.copy_object(Bucket="boto.hosted", Key="copy", CopySource={"Bucket": "boto.hosted", "Key": "/large one"})
    url = boto.generate_presigned_url("get_object", Params={"Bucket": "boto.hosted", "Key": "copy"})
    host, _, path = url.removeprefix("http://").partition("/")
    assert host == f"boto.hosted.{BASE}:{extended.port}"
    assert extended.send_raw("GET", f"/{path}", [("Host", host)]).body == body
    keys = [item["Key"] for item in boto.list_objects_v2(Bucket="boto.hosted")["Contents"]]
    assert keys == ["/large one", "copy"]
    boto.delete_objects(Bucket="boto.hosted", Delete={"Objects": [{"Key": key} for key in keys]})
    boto.delete_bucket(Bucket="boto.hosted")
    with refused(404):
        boto.head_bucket(Bucket="boto.hosted")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        boto.list_objects_v2(Bucket="boto.hosted")
