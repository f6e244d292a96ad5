"""TLS listeners: configuration, key types, clients, certificate renewal and protocol scanners."""

import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
import requests
from botocore.client import BaseClient
from botocore.config import Config

from harness.boto import WHEN_REQUIRED, refused
from harness.certificates import KEYS, Authority
from harness.server import BINARY, LOOPBACK, Cairn, clean_environment
from harness.wait import until

SCRAPE_TOKEN = "scrape-token-0123456789"


@pytest.fixture(scope="module")
def tls_store(make_module_store: Callable[..., Cairn], authority: Authority) -> Cairn:
    """Starts a server with TLS on both listeners."""
    return make_module_store(**authority.issue("shared").environment()).start()


def boto(store: Cairn, authority: Authority, **settings: object) -> BaseClient:
    """Returns a boto3 client that trusts the authority."""
    return boto3.client(
        "s3", endpoint_url=store.endpoint, region_name="us-east-1", verify=str(authority.certificate),
        aws_access_key_id=store.credential.access_key, aws_secret_access_key=store.credential.secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **settings),
    )


def connect(port: int, authority: Authority, **options: object) -> ssl.SSLSocket:
    """Opens a TLS connection and verifies the certificate."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    for name, value in options.items():
        setattr(context, name, value)
    return context.wrap_socket(socket.create_connection((LOOPBACK, port), timeout=30), server_hostname="localhost")


def common_name(port: int, authority: Authority) -> str:
    """Returns the common name of the certificate that a new connection gets."""
    with connect(port, authority) as connection:
        return dict(pair[0] for pair in connection.getpeercert()["subject"])["commonName"]


@pytest.mark.parametrize("kind", KEYS)
def test_every_usual_key_type_is_supported(make_store: Callable[..., Cairn], authority: Authority, kind: str):
    store = make_store(**authority.issue(f"kind-{kind}", kind).environment()).start()
    s3 = boto(store, authority, **WHEN_REQUIRED)
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="a b/ü", Body=b"x" * 100_000)
    assert s3.get_object(Bucket="photos", Key="a b/ü", Range="bytes=99990-")["Body"].read() == b"x" * 10


def test_each_listener_has_its_own_tls_configuration(make_store: Callable[..., Cairn], authority: Authority):
    pair = authority.issue("data-only")
    store = make_store(SERVICE_TLS_S3_CERTIFICATE=str(pair.certificate), SERVICE_TLS_S3_KEY=str(pair.key)).start()
    assert requests.get(f"http://{LOOPBACK}:{store.api_port}/ready", timeout=30).json()["status"] == "ready"
    assert common_name(store.s3_port, authority) == "data-only"
    other = authority.issue("management")
    both = make_store(
        **pair.environment(), SERVICE_TLS_API_CERTIFICATE=str(other.certificate), SERVICE_TLS_API_KEY=str(other.key)
    ).start()
    assert (common_name(both.s3_port, authority), common_name(both.api_port, authority)) == ("data-only", "management")
    off = make_store(**pair.environment(), SERVICE_TLS_S3_ENABLED="false").start()
    assert requests.get(f"http://{LOOPBACK}:{off.s3_port}/", timeout=30).status_code == 403
    assert common_name(off.api_port, authority) == "data-only"


@pytest.mark.parametrize("spoilt", ["key", "certificate", "missing", "other"])
def test_unusable_certificate_pair_is_refused_at_startup(make_store: Callable[..., Cairn], authority: Authority, spoilt: str):
    pair = authority.issue(f"spoilt-{spoilt}")
    match spoilt:
        case "key":
            pair.key.write_text("no key")
        case "certificate":
            pair.certificate.write_text("")
        case "missing":
            pair.key.unlink()
        case "other":
            authority.issue("spoilt-by").key.replace(pair.key)
    store = make_store(**pair.environment())
    assert store.spawn().wait(30) == 1
    assert str(pair.key if spoilt == "missing" else pair.certificate) in store.output()
    checked = subprocess.run([str(BINARY), "check"], env=store.environment(), capture_output=True, text=True, timeout=60)
    assert checked.returncode == 1 and str(pair.key) in checked.stdout, checked.stdout


def test_boto3_works_over_tls(tls_store: Cairn, authority: Authority):
    s3 = boto(tls_store, authority, **WHEN_REQUIRED)
    s3.create_bucket(Bucket="boto")
    body = bytes(range(256)) * 50_000
    s3.put_object(Bucket="boto", Key="large", Body=body)
    assert s3.get_object(Bucket="boto", Key="large")["Body"].read() == body
    link = s3.generate_presigned_url("get_object", Params={"Bucket": "boto", "Key": "large"})
    assert link.startswith("https://") and requests.get(link, verify=str(authority.certificate), timeout=60).content == body
    upload = s3.create_multipart_upload(Bucket="boto", Key="parts")["UploadId"]
    part = s3.upload_part(Bucket="boto", Key="parts", UploadId=upload, PartNumber=1, Body=body)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    completed = s3.complete_multipart_upload(Bucket="boto", Key="parts", UploadId=upload, MultipartUpload=parts)
    assert completed["Location"].startswith("https://")


def test_checksum_trailers_over_tls_are_refused_with_a_remedy(tls_store: Cairn, authority: Authority):
    s3 = boto(tls_store, authority)
    s3.create_bucket(Bucket="trailer")
    with refused(501, "NotImplemented") as answer:
        s3.put_object(Bucket="trailer", Key="k", Body=b"x")
    assert "when_required" in answer["Error"]["Message"].lower() or "WHEN_REQUIRED" in answer["Error"]["Message"]


@pytest.mark.parametrize(("listener", "shape"), [("s3_port", "<Code>InvalidRequest</Code>"), ("api_port", '"code":"INVALID_REQUEST"')])
def test_plain_http_on_a_tls_listener_gets_an_error(tls_store: Cairn, listener: str, shape: str):
    answer = requests.get(f"http://{LOOPBACK}:{getattr(tls_store, listener)}/", timeout=30)
    assert answer.status_code == 400 and shape in answer.text and "https" in answer.text


def test_old_tls_versions_are_refused(tls_store: Cairn, authority: Authority):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with connect(tls_store.s3_port, authority, minimum_version=version, maximum_version=version) as connection:
            assert connection.version() == version.name.replace("_", ".")
    with pytest.raises((ssl.SSLError, OSError)):
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.wrap_socket(socket.create_connection((LOOPBACK, tls_store.s3_port), timeout=30), server_hostname="localhost")


def test_tls_sessions_are_resumed(tls_store: Cairn, authority: Authority):
    context = ssl.create_default_context(cafile=str(authority.certificate))

    def exchange(session: ssl.SSLSession | None) -> tuple[ssl.SSLSession, bool]:
        raw = socket.create_connection((LOOPBACK, tls_store.s3_port), timeout=30)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while connection.recv(65536):
                pass
            return connection.session, connection.session_reused

    session, reused = exchange(None)
    assert not reused
    assert exchange(session)[1]


def test_certificate_renewal_drops_no_connection(make_store: Callable[..., Cairn], authority: Authority):
    pair = authority.issue("first")
    store = make_store(**pair.environment(), SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()
    with connect(store.s3_port, authority) as kept:
        ask = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        kept.sendall(ask)
        assert kept.recv(12) == b"HTTP/1.1 403"
        pair.take(authority.issue("second"))
        until(lambda: common_name(store.s3_port, authority) == "second", "the new certificate is not presented")
        until(lambda: common_name(store.api_port, authority) == "second", "the new certificate is not presented")
        kept.recv(65536)
        kept.sendall(ask)
        assert kept.recv(12) == b"HTTP/1.1 403"
    reloads = reloads_of(store, authority)
    assert reloads == {"replaced": 1, "refused": 0}


def reloads_of(store: Cairn, authority: Authority) -> dict[str, float]:
    """Returns how often the data plane's certificate was reloaded, by result."""
    headers = {"Authorization": f"Bearer {SCRAPE_TOKEN}"}
    text = requests.get(f"{store.management}/metrics", headers=headers, verify=str(authority.certificate), timeout=30).text
    pattern = r'service_tls_certificate_reloads_total\{plane="data",result="(\w+)"\} (\d+)'
    return {result: int(count) for result, count in re.findall(pattern, text)}


@pytest.mark.parametrize("told", ["by the files", "by SIGHUP"])
def test_invalid_renewed_certificate_is_refused_and_reported(make_store: Callable[..., Cairn], authority: Authority, told: str):
    pair = authority.issue("good")
    store = make_store(**pair.environment(), SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start()

    def ready() -> dict:
        answer = requests.get(f"{store.management}/ready", verify=str(authority.certificate), timeout=30)
        assert answer.status_code == 200
        return answer.json()

    def tell() -> None:
        if told == "by SIGHUP":
            store.process.send_signal(signal.SIGHUP)

    pair.certificate.write_text("-----BEGIN CERTIFICATE-----\nrubbish\n")
    tell()
    until(lambda: "certificates" in ready().get("notices", {}), "readiness says nothing")
    assert str(pair.certificate) not in str(ready()), "/ready is public"
    assert common_name(store.s3_port, authority) == "good"
    assert str(pair.certificate) in store.wait_output("the changed certificate cannot be used")
    assert reloads_of(store, authority)["refused"] >= 1
    pair.take(authority.issue("better"))
    tell()
    until(lambda: common_name(store.s3_port, authority) == "better", "the good pair is not presented")
    until(lambda: "certificates" not in ready().get("notices", {}), "readiness still complains")


def test_stalled_handshakes_do_not_block_other_clients(tls_store: Cairn, authority: Authority):
    silent = [socket.create_connection((LOOPBACK, tls_store.s3_port), timeout=30) for _ in range(500)]
    try:
        for number, connection in enumerate(silent):
            connection.sendall(b"\x16\x03\x01\x02\x00\x01"[: number % 7])
        # The stalled ones hold their places for as long as the test lasts; `connect` fails when it has to wait for one.
        for _ in range(20):
            assert common_name(tls_store.s3_port, authority) == "shared"
    finally:
        for connection in silent:
            connection.close()


def test_handshakes_of_disconnected_clients_do_not_block_others(make_store: Callable[..., Cairn], authority: Authority):
    """Answering the ClientHello of a closed connection wastes CPU: with RSA keys, 30 s for one second of hellos."""
    store = make_store(**authority.issue("rsa-4096", "rsa-4096").environment()).start()
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(authority.certificate))
    shake = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        shake.do_handshake()
    hello = outgoing.read()
    begun = time.monotonic()
    for _ in range(5):
        common_name(store.s3_port, authority)
    one = (time.monotonic() - begun) / 5
    count = 1000
    for _ in range(count):
        with socket.create_connection((LOOPBACK, store.s3_port), timeout=30) as dead:
            dead.sendall(hello)
    begun = time.monotonic()
    assert common_name(store.s3_port, authority) == "rsa-4096"
    assert time.monotonic() - begun < count * one / 3


def test_key_file_that_is_a_fifo_does_not_block_signals(make_store: Callable[..., Cairn], authority: Authority):
    """Opening a FIFO blocks, and the thread that reloads certificates also handles signals."""
    pair = authority.issue("pipe")
    store = make_store(**pair.environment()).start()
    pair.key.unlink()
    os.mkfifo(pair.key)
    store.process.send_signal(signal.SIGHUP)
    store.wait_output("it is not a regular file")
    assert common_name(store.s3_port, authority) == "pipe"
    assert store.stop() == 0


def cli(store: Cairn, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs the command-line client against a store."""
    told = clean_environment() | {"SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token} | environment
    command = [str(BINARY), *arguments, "--endpoint", store.management]
    return subprocess.run(command, env=told, capture_output=True, text=True, timeout=60)


def test_command_line_client_trusts_only_the_given_authority(tls_store: Cairn, authority: Authority):
    trusted = cli(tls_store, "status", SERVICE_CA_CERTIFICATE=str(authority.certificate))
    assert trusted.returncode == 0 and "ready" in trusted.stdout, trusted.stderr
    strange = cli(tls_store, "status")
    assert strange.returncode == 3 and "SERVICE_CA_CERTIFICATE" in strange.stderr, strange.stderr
    nothing = cli(tls_store, "status", SERVICE_CA_CERTIFICATE="/dev/null")
    assert nothing.returncode == 2 and "/dev/null" in nothing.stderr


def test_printed_dev_instructions_work_with_tls(make_store: Callable[..., Cairn]):
    names = ("SERVICE_CREDENTIAL_MASTER_KEY", "SERVICE_ROOT_ACCESS_KEY", "SERVICE_ROOT_SECRET_KEY", "SERVICE_MANAGEMENT_SYSTEM_TOKEN")
    store = make_store(**dict.fromkeys(names))
    store.spawn(arguments=["serve", "--dev", "--tls"])
    output = store.wait_output("/api/v1/system/info")
    trusted = dict(re.findall(r"^export (\w+)=(\S+) *(?:#.*)?$", output, re.MULTILINE))
    authority = Path(trusted["CURL_CA_BUNDLE"])
    assert authority.parent == store.data
    curl = ["curl", "-sS", "--fail", f"https://localhost:{store.api_port}/ready"]
    done = subprocess.run(curl, env=clean_environment() | {"CURL_CA_BUNDLE": str(authority)}, capture_output=True, text=True, timeout=60)
    assert done.stdout == '{"status":"ready"}', done.stderr
    assert f"https://{LOOPBACK}:{store.s3_port}" in trusted["AWS_ENDPOINT_URL"]
    s3 = boto3.client(
        "s3", endpoint_url=trusted["AWS_ENDPOINT_URL"], region_name="us-east-1", verify=trusted["AWS_CA_BUNDLE"],
        aws_access_key_id=trusted["AWS_ACCESS_KEY_ID"], aws_secret_access_key=trusted["AWS_SECRET_ACCESS_KEY"],
    )
    s3.create_bucket(Bucket="demo")
    assert store.stop() == 0
    refused_use = subprocess.run([str(BINARY), "serve", "--tls"], env=clean_environment(), capture_output=True, text=True, timeout=60)
    assert refused_use.returncode == 2 and "--dev" in refused_use.stderr


def test_scanners_find_no_weak_protocol_or_cipher(tls_store: Cairn):
    found = subprocess.run(["sslscan", "--no-colour", f"{LOOPBACK}:{tls_store.s3_port}"], capture_output=True, text=True, timeout=300)
    text = found.stdout
    protocols = dict(re.findall(r"^(SSLv2|SSLv3|TLSv1\.\d)\s+(enabled|disabled)", text, re.MULTILINE))
    assert protocols == {"SSLv2": "disabled", "SSLv3": "disabled", "TLSv1.0": "disabled", "TLSv1.1": "disabled", "TLSv1.2": "enabled", "TLSv1.3": "enabled"}, text
    ciphers = re.findall(r"^(?:Preferred|Accepted)\s+TLSv1\.[23]\s+(\d+) bits\s+(\S+)", text, re.MULTILINE)
    assert len(ciphers) >= 6, text
    for bits, cipher in ciphers:
        assert int(bits) >= 128 and re.fullmatch(r"(TLS|ECDHE-\w+)[-_]\S*(GCM|POLY1305)\S*", cipher), cipher
    assert "Session renegotiation not supported" in text, text
    assert text.count("not vulnerable to heartbleed") == text.count("vulnerable to heartbleed") == 2, text


def test_browsers_are_told_to_use_only_tls(tls_store: Cairn, make_store: Callable[..., Cairn], authority: Authority):
    """The console, links, S3 and errors say it, also to requests that are refused. A response without TLS must not (RFC 6797)."""
    ports = {"data": tls_store.s3_port, "management": tls_store.api_port, "console": tls_store.console_port}
    for plane, port in ports.items():
        for path in ("/", "/s/unknown", "/e/unknown", "/api/v1/buckets", "/health"):
            answer = requests.get(f"https://localhost:{port}{path}", verify=str(authority.certificate), timeout=60)
            assert answer.headers["strict-transport-security"] == "max-age=31536000", (plane, path)
        plain = requests.get(f"http://{LOOPBACK}:{port}/", timeout=60)
        assert plain.status_code == 400 and "strict-transport-security" not in plain.headers
    store = make_store(**authority.issue("forgetful").environment(), SERVICE_SERVER_TLS_HSTS_SECONDS="0").start()
    answer = requests.get(f"https://localhost:{store.s3_port}/", verify=str(authority.certificate), timeout=60)
    assert answer.headers["strict-transport-security"] == "max-age=0"
    plain_store = make_store().start()
    assert "strict-transport-security" not in requests.get(plain_store.endpoint, timeout=60).headers
