"""nginx, Caddy and HAProxy must pass on signatures, keys, bodies and client addresses unchanged."""

import hashlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
import requests
from botocore.config import Config

from harness.boto import PART_BYTES, WHEN_REQUIRED, random_bytes, upload_in_parts
from harness.management import Management, bearer, expect
from harness.proxies import PROXIES, Proxy, SecureS3, proxy
from harness.s3 import object_target
from harness.server import LOOPBACK, Cairn, clean_environment
from harness.sigv4 import Credential
from harness.wire import Connection, encode_head

# An address of this host that differs from the one that the proxies connect from.
CLIENT, INVENTED = "127.0.0.2", "203.0.113.66"
HALF_BYTES = 1 << 20
KEYS = ["a/b", "a//b", "/leading", "trailing/", "with space", "plus+and&more=?#", "per%cent%2Fcent", "ünï/日本", "~(paren)'!*", "a:b@c;d,e", ".hidden", "dot.."]


@pytest.fixture(scope="module")
def behind(make_module_store) -> Cairn:
    """Starts a store that trusts the proxies on this host."""
    return make_module_store(SERVICE_SERVER_TRUSTED_PROXIES=LOOPBACK).start()


@pytest.fixture(scope="module", params=list(PROXIES))
def front(request: pytest.FixtureRequest, behind: Cairn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Starts each proxy in front of the store."""
    with proxy(request.param, tmp_path_factory.mktemp("proxies") / request.param, (behind.s3_port, behind.api_port)) as running:
        yield running


@pytest.fixture
def through(front: Proxy, behind: Cairn) -> SecureS3:
    """Returns the harness's S3 client, which connects through the proxy from its own address."""
    return front.s3(behind.credential, CLIENT)


@pytest.fixture
def filled(through: SecureS3, request: pytest.FixtureRequest) -> str:
    """Creates a bucket for this test through the proxy."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name.lower())[-60:].strip("-")
    through.create_bucket(name)
    return name


def test_proxies_pass_keys_on_unchanged(through: SecureS3, filled: str):
    """Covers encoded and double slashes, spaces, plus signs and percent signs."""
    for key in KEYS:
        through.put(filled, key, key.encode())
    # The same key with an encoded slash: a proxy that decodes it would break the signature.
    encoded = through.request("GET", f"/{filled}/a%2Fb")
    assert (encoded.status, encoded.body) == (200, b"a/b")
    assert sorted(through.list_all(filled)) == sorted(KEYS)
    assert [through.get(filled, key).body for key in KEYS] == [key.encode() for key in KEYS]


def test_proxies_pass_on_headers_ranges_and_conditions(through: SecureS3, filled: str):
    """Covers metadata names with underscores and dots, ranges, 304, 412, and HEAD responses with a length."""
    body = random_bytes("range", 300_000)
    names = [("x-amz-meta-under_score", "1"), ("x-amz-meta-do.t", "2"), ("x-amz-meta-long", "l" * 1900)]
    etag = through.put(filled, "k", body, names).get("etag")
    with through.connect() as connection:
        head = through.request("HEAD", object_target(filled, "k"), connection=connection)
        assert (head.status, head.get("content-length")) == (200, "300000") and [head.get(name) for name, _ in names] == [value for _, value in names]
        part = through.request("GET", object_target(filled, "k"), [("Range", "bytes=70000-199999")], connection=connection)
        assert (part.status, part.body, part.get("content-range")) == (206, body[70_000:200_000], "bytes 70000-199999/300000")
        unchanged = through.request("GET", object_target(filled, "k"), [("If-None-Match", etag)], connection=connection)
        assert (unchanged.status, unchanged.body) == (304, b"")
        refused = through.request("PUT", object_target(filled, "k"), [("If-None-Match", "*")], b"x", connection=connection)
        assert refused.status == 412
        beyond = through.request("GET", object_target(filled, "k"), [("Range", "bytes=300000-")], connection=connection)
        assert beyond.status == 416
    presigned = through.presigned("GET", object_target(filled, "k"))
    assert through.use_presigned("GET", presigned).body == body
    long = [("x-amz-filler-1", "f" * 12_000), ("x-amz-filler-2", "f" * 12_000)]
    assert through.get(filled, "k", long).status == 200, "a request head of 24 KiB must be accepted"


def test_client_that_waits_for_100_continue_gets_an_answer(front: Proxy, through: SecureS3, filled: str):
    """HAProxy passes on a refusal instead of 100, nginx always sends 100 itself, and Caddy sends what comes first."""
    body = b"waited for"
    head = through.signed_head("PUT", object_target(filled, "k"), [("Expect", "100-continue")], body)
    with through.connect() as connection:
        connection.send_must(encode_head("PUT", object_target(filled, "k"), head))
        assert connection.read_head().status == 100
        connection.send_must(body)
        assert connection.read_response("PUT").status == 200
    assert through.get(filled, "k").body == body
    stranger = front.s3(Credential("AKNOBODY", "x" * 40))
    head = stranger.signed_head("PUT", object_target(filled, "k"), [("Expect", "100-continue")], body)
    with stranger.connect() as connection:
        connection.send_must(encode_head("PUT", object_target(filled, "k"), head))
        first = connection.read_head().status
        assert first in {"nginx": {100}, "caddy": {100, 403}, "haproxy": {403}}[front.kind]


def test_proxies_pass_large_bodies_in_both_directions(through: SecureS3, filled: str):
    """The body exceeds every proxy's default limit, and no proxy buffers it in a file."""
    body = random_bytes("large", 40 << 20)
    through.put(filled, "large", body)
    assert hashlib.sha256(through.get(filled, "large").body).digest() == hashlib.sha256(body).digest()


def test_proxies_do_not_compress_responses(through: SecureS3, filled: str):
    """nginx with Debian's configuration compresses HTML by default."""
    body = b"<p>again and again</p>" * 1000
    etag = through.put(filled, "page.html", body, [("Content-Type", "text/html")]).get("etag")
    got = through.get(filled, "page.html", [("Accept-Encoding", "gzip, deflate, br, zstd")])
    assert (got.body, got.get("content-encoding"), got.get("content-length"), got.get("etag")) == (body, None, str(len(body)), etag)


def test_haproxy_drops_root_privileges(tmp_path: Path):
    """The configuration replaces Debian's, so it must set user, group and chroot too."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with proxy("haproxy", tmp_path / "haproxy", (1, 1)) as running:
        process = Path("/proc") / str(running.process_id)
        facts = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        assert "0" not in facts["Uid"].split() + facts["Gid"].split()
        assert (process / "root").resolve() == Path("/var/lib/haproxy")


def test_audit_log_records_the_real_client_address(front: Proxy, behind: Cairn):
    """On both planes, a forged address is ignored."""
    stranger = front.s3(Credential("AKNOBODY", "x" * 40), CLIENT)
    invented = [("X-Forwarded-For", INVENTED), ("Forwarded", f"for={INVENTED}"), ("X-Real-IP", INVENTED)]
    refused = stranger.request("PUT", object_target("no-such-bucket", "k"), invented, body=b"1")
    assert refused.status == 403
    asked = {"request_id": refused.get("x-amz-request-id")}
    (event,) = expect(behind.admin.get("/audit/events", params=asked), 200)["events"]
    assert event["source_ip"] == CLIENT


def test_management_plane_is_served_separately(front: Proxy, behind: Cairn, through: SecureS3):
    """The proxy serves it under its own address, and not under that of the data plane."""
    admin = Management(front.management, bearer(behind.secrets.system_token))
    made = expect(admin.post("/buckets", {"name": f"managed-{front.kind}"}, verify=front.certificate), 201)
    assert made["name"] == f"managed-{front.kind}" and through.list(made["name"]).keys == []
    assert requests.get(f"{front.endpoint}/api/v1/buckets", headers=admin.headers, verify=front.certificate, timeout=30).status_code == 400


def test_boto3_works_through_proxies(front: Proxy, behind: Cairn, filled: str):
    """Covers multipart uploads, metadata, lists and copies."""
    settings = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **WHEN_REQUIRED)
    client = boto3.client(
        "s3", endpoint_url=front.endpoint, region_name="us-east-1", verify=str(front.certificate), config=settings,
        aws_access_key_id=behind.secrets.root_access_key, aws_secret_access_key=behind.secrets.root_secret_key,
    )
    parts = [random_bytes(number, PART_BYTES) for number in range(2)]
    upload_in_parts(client, filled, "dir/ünï %2F+.bin", parts, Metadata={"a_b": "c"})
    got = client.get_object(Bucket=filled, Key="dir/ünï %2F+.bin")
    # Caddy changes the case of header names, and boto3 returns metadata names as received.
    assert {name.lower(): value for name, value in got["Metadata"].items()} == {"a_b": "c"}
    assert got["Body"].read() == b"".join(parts)
    client.copy_object(Bucket=filled, Key="copy", CopySource={"Bucket": filled, "Key": "dir/ünï %2F+.bin"})
    listed = client.list_objects_v2(Bucket=filled)["Contents"]
    assert {item["Key"]: item["Size"] for item in listed} == {"copy": 2 * PART_BYTES, "dir/ünï %2F+.bin": 2 * PART_BYTES}


def test_rclone_works_through_proxies(front: Proxy, behind: Cairn, filled: str, tmp_path: Path):
    """A directory is copied and compared byte by byte, and a range of a file is read."""
    folder = tmp_path / "from"
    (folder / "sub dir").mkdir(parents=True)
    for number, name in enumerate(["a+b", "sub dir/ünï", "per%20cent"]):
        (folder / name).write_bytes(random_bytes(name, number * 6_000_000))
    environment = clean_environment() | {
        "HOME": str(tmp_path), "RCLONE_CONFIG": str(tmp_path / "rclone.conf"), "RCLONE_CA_CERT": str(front.certificate),
        "RCLONE_S3_PROVIDER": "Other", "RCLONE_S3_ENDPOINT": front.endpoint, "RCLONE_S3_LIST_VERSION": "2",
        "RCLONE_S3_ACCESS_KEY_ID": behind.secrets.root_access_key, "RCLONE_S3_SECRET_ACCESS_KEY": behind.secrets.root_secret_key,
        "RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1", "RCLONE_S3_UPLOAD_CUTOFF": "5M",
    }

    def rclone(*arguments: object) -> str:
        done = subprocess.run(["rclone", *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    rclone("copy", folder, f":s3:{filled}")
    rclone("check", "--download", folder, f":s3:{filled}")
    assert {item["Path"] for item in json.loads(rclone("lsjson", "-R", "--files-only", f":s3:{filled}"))} == {"a+b", "sub dir/ünï", "per%20cent"}


class Upstream:
    """A server in place of Cairn that sees exactly what the proxy sends."""

    def __init__(self) -> None:
        self.listener = socket.create_server((LOOPBACK, 0))
        self.listener.settimeout(30)
        self.port = self.listener.getsockname()[1]

    def accept(self) -> Connection:
        """Returns the next connection of the proxy that sends data; some proxies open spare connections."""
        accepted, _ = self.listener.accept()
        accepted.settimeout(30)
        connection = Connection.__new__(Connection)
        connection.sock, connection.buffer, connection.closing = accepted, b"", False
        return connection


def request_head(connection: Connection) -> tuple[str, dict[str, str]]:
    """Returns the next request line and its header fields."""
    while b"\r\n\r\n" not in connection.buffer:
        data = connection.sock.recv(65536)
        assert data, "the proxy closed the connection"
        connection.buffer += data
    head, _, connection.buffer = connection.buffer.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return line, {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}


@pytest.mark.parametrize("kind", list(PROXIES))
def test_proxies_stream_bodies_and_reuse_connections(kind: str, tmp_path: Path):
    """Half of an upload or download must arrive before the other half is sent."""
    upstream = Upstream()
    with proxy(kind, tmp_path / kind, (upstream.port, upstream.port)) as running:
        s3 = running.s3(Credential("A", "S"))
        with s3.connect() as client:
            fields = [("Host", s3.authority), ("Content-Length", str(2 * HALF_BYTES)), ("X-Forwarded-For", INVENTED)]
            client.send_must(encode_head("PUT", "/b/a%2Fb//c%20+?x=%2F", fields) + b"1" * HALF_BYTES)
            server = upstream.accept()
            line, seen = request_head(server)
            assert line == "PUT /b/a%2Fb//c%20+?x=%2F HTTP/1.1"
            assert (seen["host"], seen.get("transfer-encoding")) == (s3.authority, None)
            assert seen.get("connection", "keep-alive").lower() == "keep-alive"
            assert server.take(HALF_BYTES) == b"1" * HALF_BYTES, "the proxy held back the first half of the upload"
            client.send_must(b"2" * HALF_BYTES)
            assert server.take(HALF_BYTES) == b"2" * HALF_BYTES
            server.send_must(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            assert client.read_response("PUT").status == 200

            client.send_must(encode_head("GET", "/b/k", [("Host", s3.authority)]))
            assert request_head(server)[0] == "GET /b/k HTTP/1.1", "the second request must use the same connection"
            server.send_must(f"HTTP/1.1 200 OK\r\nContent-Length: {2 * HALF_BYTES}\r\n\r\n".encode() + b"3" * HALF_BYTES)
            client.read_head()
            assert client.take(HALF_BYTES) == b"3" * HALF_BYTES, "the proxy held back the first half of the download"
            server.send_must(b"4" * HALF_BYTES)
            assert client.take(HALF_BYTES) == b"4" * HALF_BYTES
            server.close()
        upstream.listener.close()
