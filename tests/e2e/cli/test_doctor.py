"""`cairn doctor`: settings to paste, checks of a profile, and the round trip against real servers and broken ones."""

import http.server
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.accounts import create_account, statement
from harness.certificates import Authority
from harness.gate import Gate
from harness.s3 import S3
from harness.server import BINARY, LOOPBACK, Cairn, clean_environment, free_ports
from harness.sigv4 import Credential
from harness.wait import until

SECONDS = 60
# More than a round trip sends and receives.
BYTES_MAX = 1 << 30
OK, FAILED, WRONG_USAGE = 0, 1, 2


class Doctor:
    """Runs the command with a home and an environment of its own."""

    def __init__(self, home: Path, credential: Credential | None = None):
        self.home = home
        self.environment = clean_environment() | {"HOME": str(home)}
        if credential:
            self.environment |= {"AWS_ACCESS_KEY_ID": credential.access_key, "AWS_SECRET_ACCESS_KEY": credential.secret_key}

    def run(self, *words: object) -> subprocess.CompletedProcess:
        """Runs it."""
        command = [BINARY, "doctor", *map(str, words)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)

    def json(self, *words: object, code: int = OK) -> dict:
        """Returns its JSON; `checks` by their names."""
        done = self.run(*words, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        found = json.loads(done.stdout)
        return found | {"checks": {check["name"]: check for check in found["checks"]}}

    def profile(self, **files: str) -> None:
        """Writes files of `~/.aws`."""
        (self.home / ".aws").mkdir(exist_ok=True)
        for name, text in files.items():
            (self.home / ".aws" / name).write_text(text)


@pytest.fixture
def make_doctor(tmp_path: Path) -> Callable[..., Doctor]:
    """Makes doctors at home in the test's folder."""
    return lambda credential=None: Doctor(tmp_path, credential)


def failed(found: dict) -> set[str]:
    """Returns the names of the checks that failed."""
    return {name for name, check in found["checks"].items() if check["verdict"] == "failed"}


def leftovers(s3: S3) -> list[str]:
    """Returns the buckets that doctors made."""
    return [name for name in re.findall(r"<Name>([^<]*)</Name>", s3.request("GET", "/").body.decode()) if name.startswith("cairn-doctor-")]


def test_everything_works_in_the_extended_mode(extended_store: Cairn, make_doctor: Callable[..., Doctor]):
    """Every check is ok but the virtual host, and nothing is left."""
    found = make_doctor(extended_store.credential).json("--endpoint", extended_store.endpoint)
    assert (found["mode"], found["failed"], failed(found)) == ("extended", 0, set())
    assert {name for name, check in found["checks"].items() if check["verdict"] != "ok"} == {"virtual host"}
    assert len(found["checks"]) >= 18 and leftovers(extended_store.s3) == []


def test_what_only_the_extended_mode_has_is_a_note(store: Cairn, make_doctor: Callable[..., Doctor]):
    """A strict server works; the doctor says what it refuses and names both remedies."""
    found = make_doctor(store.credential).json("--endpoint", store.endpoint)
    assert (found["mode"], failed(found)) == ("strict", set())
    notes = {name for name, check in found["checks"].items() if check["verdict"] == "note"}
    assert notes == {"checksum after body", "list, version 1", "batch delete", "virtual host"}
    for name in notes - {"virtual host"}:
        assert found["checks"][name]["code"] == "NotImplemented" and "extended" in found["checks"][name]["fix"]
    assert leftovers(store.s3) == []


def test_settings_depend_on_mode_and_certificate(secure: Cairn, extended_store: Cairn, authority: Authority, make_doctor: Callable[..., Doctor]):
    """Checksum settings are for a strict server. Without credentials the settings are shown nevertheless."""
    endpoint = f"https://localhost:{secure.s3_port}"
    doctor = make_doctor(secure.credential)
    strict = doctor.json("boto3", "--endpoint", endpoint, "--ca-certificate", authority.certificate)
    (block,) = strict["client"]["settings"]
    assert 'request_checksum_calculation="when_required"' in block["text"] and f'verify="{authority.certificate}"' in block["text"]
    extended = make_doctor(extended_store.credential).json("boto3", "--endpoint", extended_store.endpoint, "--no-round-trip")
    assert "when_required" not in str(extended["client"]) and "bucket" not in extended["checks"]
    unknown = make_doctor().json("rclone", "--endpoint", extended_store.endpoint)
    assert unknown["mode"] is None and unknown["checks"]["credentials"]["verdict"] == "skipped"
    assert "copy_cutoff" in unknown["client"]["settings"][0]["text"], "settings for strict work in both modes"
    with_token = make_doctor()
    with_token.environment |= {"SERVICE_MANAGEMENT_ENDPOINT": extended_store.management, "SERVICE_MANAGEMENT_TOKEN": extended_store.secrets.system_token}
    assert with_token.json("rclone", "--endpoint", extended_store.endpoint)["mode"] == "extended"
    text = make_doctor(extended_store.credential).run("s3fs", "--endpoint", extended_store.endpoint, "--no-round-trip").stdout
    assert f"-o url={extended_store.endpoint},endpoint=us-east-1,use_path_request_style\n" in text


def test_certificate_problems_are_said_in_words(secure: Cairn, store: Cairn, authority: Authority, make_doctor: Callable[..., Doctor], tmp_path: Path):
    doctor = make_doctor(secure.credential)
    other = Authority(tmp_path)
    cases = [
        (f"https://localhost:{secure.s3_port}", [], "no certificate authority that is trusted here"),
        (f"https://localhost:{secure.s3_port}", ["--ca-certificate", other.certificate], "no certificate authority that is trusted here"),
        (f"https://127.0.0.2:{secure.s3_port}", ["--ca-certificate", authority.certificate], "not for 127.0.0.2"),
        (f"https://{LOOPBACK}:{store.s3_port}", [], "does not speak TLS"),
        (f"http://{LOOPBACK}:{secure.s3_port}", [], "speaks TLS only"),
        (f"http://{LOOPBACK}:{free_ports(1)[0]}", [], "cannot be reached"),
        ("http://nowhere.invalid:7600", [], "has no address in the DNS"),
    ]
    for endpoint, words, said in cases:
        if "127.0.0.2" in endpoint:
            # The server listens on 127.0.0.1 only: a port there is enough for the name.
            with forwarded(secure.s3_port) as port:
                found = doctor.json("--endpoint", f"https://127.0.0.2:{port}", *words, code=FAILED)
        else:
            found = doctor.json("--endpoint", endpoint, *words, code=FAILED)
        check = found["checks"]["connection"]
        assert failed(found) == {"connection"} and said in f"{check['message']} {check['why']}" and check["fix"], check
    plane = doctor.json("--endpoint", store.management, code=FAILED)["checks"]["connection"]
    assert "management plane" in plane["message"] and "7600" in plane["fix"]


@contextmanager
def forwarded(port: int) -> Iterator[int]:
    """Forwards connections from 127.0.0.2 to a port of 127.0.0.1."""
    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((LOOPBACK, port)) as server:
                back = threading.Thread(target=self.pump, args=(server, self.request), daemon=True)
                back.start()
                self.pump(self.request, server)
                back.join(5)

        @staticmethod
        def pump(source: socket.socket, target: socket.socket) -> None:
            try:
                while data := source.recv(65536):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    with socketserver.ThreadingTCPServer(("127.0.0.2", 0), Forward) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_wrong_credentials_are_told_apart(store: Cairn, make_doctor: Callable[..., Doctor]):
    root = store.credential
    for credential, code, said in [
        (Credential("AKNOBODY", root.secret_key), "InvalidAccessKeyId", "access key"),
        (Credential(root.access_key, "x" * 40), "SignatureDoesNotMatch", "secret key"),
    ]:
        found = make_doctor(credential).json("--endpoint", store.endpoint, code=FAILED)
        check = found["checks"]["credentials"]
        assert failed(found) == {"credentials"} and check["code"] == code and said in check["fix"] and check["request_id"]
    found = make_doctor().json("--endpoint", store.endpoint, code=FAILED)
    assert "AWS_ACCESS_KEY_ID" in found["checks"]["credentials"]["fix"]


def test_account_with_few_rights(store: Cairn, make_doctor: Callable[..., Doctor]):
    """It may not make a bucket, so it is told to name one; what it may not do there fails, and the token explains it."""
    store.s3.create_bucket("doctor-shared")
    account = create_account(
        store, statement("allow", "ListBucket", "bucket:doctor-shared"), statement("allow", "PutObject", "bucket:doctor-shared/*"),
        statement("allow", "DeleteObject", "bucket:doctor-shared/*"), name="doctors-patient",
    )
    doctor = make_doctor(account.s3.credential)
    found = doctor.json("--endpoint", store.endpoint, code=FAILED)
    check = found["checks"]["bucket"]
    assert failed(found) == {"bucket"} and "--bucket" in check["fix"] and "doctor-shared" in check["fix"]
    assert found["checks"]["copy"]["verdict"] == "skipped"

    doctor.environment |= {"SERVICE_MANAGEMENT_ENDPOINT": store.management, "SERVICE_MANAGEMENT_TOKEN": store.secrets.system_token}
    found = doctor.json("--endpoint", store.endpoint, "--bucket", "doctor-shared", code=FAILED)
    assert {"empty object", "small object", "large object", "range", "presigned GET"} <= failed(found)
    assert found["checks"]["small object"]["fix"].startswith("Attach a policy to account:doctors-patient"), found["checks"]["small object"]
    assert found["checks"]["clean-up"]["verdict"] == "ok"
    assert store.s3.list_all("doctor-shared") == {}
    account.grant(statement("allow", "GetObject", "bucket:doctor-shared/*"))
    assert failed(doctor.json("--endpoint", store.endpoint, "--bucket", "doctor-shared")) == set()


def test_versions_are_removed_and_locked_buckets_refused(store: Cairn, make_doctor: Callable[..., Doctor]):
    """A versioned bucket has no version and no delete marker afterwards."""
    doctor = make_doctor(store.credential)
    store.s3.create_bucket("doctor-versions")
    store.s3.put("doctor-versions", "other", b"x")
    assert store.admin.put("/buckets/doctor-versions/versioning", {"versioning": "Enabled"}).status_code == 200
    doctor.json("--endpoint", store.endpoint, "--bucket", "doctor-versions")
    left = store.s3.request("GET", "/doctor-versions?versions").body
    assert left.count(b"<Version>") == 1 and b"<DeleteMarker>" not in left and b"<Key>other</Key>" in left
    assert b"<Upload>" not in store.s3.request("GET", "/doctor-versions?uploads").body

    assert store.admin.post("/buckets", {"name": "doctor-locked", "object_lock": True}).status_code == 201
    assert store.admin.put("/buckets/doctor-locked/object-lock", {"default_retention": {"mode": "GOVERNANCE", "days": 1}}).status_code == 200
    found = doctor.json("--endpoint", store.endpoint, "--bucket", "doctor-locked", code=FAILED)
    assert failed(found) == {"bucket"} and "locked by default" in found["checks"]["bucket"]["message"]
    assert b"<Version>" not in store.s3.request("GET", "/doctor-locked?versions").body


PROFILE = """[default]
region = eu-central-1
[profile good]
endpoint_url = {endpoint}
region = us-east-1
request_checksum_calculation = when_required
s3 =
    addressing_style = path
    signature_version = s3v4
    multipart_threshold = 5GB
[profile bad]
services = elsewhere
request_checksum_calculation = always
s3 =
    addressing_style = virtual
    signature_version = s3
    multipart_threshold = 6GB
    use_accelerate_endpoint = true
[services elsewhere]
s3 =
    endpoint_url = http://192.0.2.1:9000
"""
KEYS = "[{name}]\naws_access_key_id = {access}\naws_secret_access_key = {secret}\n"


def test_profiles_are_judged(store: Cairn, make_doctor: Callable[..., Doctor]):
    """Each wrong setting has a fix; keys of the environment do not replace those of a named profile."""
    doctor = make_doctor(Credential("AKWRONG", "wrong" * 8))
    access, secret = store.credential.access_key, store.credential.secret_key
    keys = "".join(KEYS.format(name=name, access=access, secret=secret) for name in ("good", "bad")) + "aws_session_token = t\n"
    doctor.profile(config=PROFILE.format(endpoint=store.endpoint), credentials=keys)
    found = doctor.json("--profile", "good")
    assert found["endpoint"] == store.endpoint and failed(found) == set()
    assert all(found["checks"][name]["verdict"] == "ok" for name in ("endpoint_url", "addressing_style", "signature_version", "region"))

    found = doctor.json("--profile", "bad", "--endpoint", store.endpoint, "--no-round-trip", code=FAILED)
    wrong = {"endpoint_url", "addressing_style", "signature_version", "request_checksum_calculation", "multipart_threshold", "aws_session_token"}
    assert failed(found) == wrong
    assert all(found["checks"][name]["fix"] for name in wrong)
    assert "below [profile bad] in" in found["checks"]["signature_version"]["fix"]
    done = doctor.run("--profile", "nobody")
    assert done.returncode == WRONG_USAGE and "there are bad, default, good" in done.stderr


def test_defaults_over_tls_are_wrong_for_a_strict_server_only(secure: Cairn, authority: Authority, make_doctor: Callable[..., Doctor]):
    doctor = make_doctor()
    endpoint = f"https://localhost:{secure.s3_port}"
    config = f"[default]\nendpoint_url = {endpoint}\nca_bundle = {authority.certificate}\nregion = us-east-1\n"
    doctor.profile(config=config, credentials=KEYS.format(name="default", access=secure.credential.access_key, secret=secure.credential.secret_key))
    found = doctor.json(code=FAILED)
    assert failed(found) == {"request_checksum_calculation"}
    assert "when_required" in found["checks"]["request_checksum_calculation"]["fix"]
    doctor.environment["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
    assert failed(doctor.json()) == set()


def test_wrong_usage(make_doctor: Callable[..., Doctor]):
    """Nothing is sent."""
    doctor = make_doctor()
    for words, said in [
        (["rclnoe"], "did you mean rclone?"),
        (["--endpoint", "http://h/bucket"], "buckets and keys are no part of it"),
        (["--endpoint", "127.0.0.1:7600"], "http://127.0.0.1:7600"),
        (["--bucket", "Upper/Case"], "not the name of a bucket"),
        (["--ca-certificate", "/nowhere", "--endpoint", "https://h"], "/nowhere"),
    ]:
        done = doctor.run(*words)
        assert done.returncode == WRONG_USAGE and said in done.stderr and not done.stdout, done


class SkewedServer(http.server.BaseHTTPRequestHandler):
    """Answers as an S3 server whose clock is an hour behind, and refuses requests as such."""

    def do_GET(self) -> None:
        now = time.time() - 3600
        signed = self.headers.get("x-amz-date", "")
        # Within some minutes, as other servers do: the client may be slow.
        is_near = any(signed.startswith(time.strftime("%Y%m%dT%H%M", time.gmtime(now - 60 * minutes))) for minutes in range(-5, 6))
        body = b"<L></L>" if is_near else b"<Error><Code>RequestTimeTooSkewed</Code><Message>m</Message></Error>"
        self.send_response_only(200 if is_near else 403)
        self.send_header("Date", self.date_time_string(now))
        self.send_header("x-amz-request-id", "1F")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_a_wrong_clock_is_found_and_allowed_for(make_doctor: Callable[..., Doctor]):
    """The failure names the difference, and later checks sign with the server's time."""
    with socketserver.ThreadingTCPServer((LOOPBACK, 0), SkewedServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://{LOOPBACK}:{server.server_address[1]}"
        found = make_doctor(Credential("A", "s")).json("--endpoint", endpoint, "--no-round-trip", code=FAILED)
        server.shutdown()
    assert failed(found) == {"clock"} and "ahead of the server" in found["checks"]["clock"]["message"]


def interrupted(doctor: Doctor, gate: Gate, passed: int) -> tuple[int, str]:
    """Presses Ctrl-C after so many bytes of a round trip. Returns the exit code and the output."""
    gate.hold_after(passed)
    command = [BINARY, "doctor", "--endpoint", gate.endpoint]
    process = subprocess.Popen(command, env=doctor.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(gate.is_holding, "the round trip goes on")
    os.kill(process.pid, signal.SIGINT)
    gate.open()
    told, _ = process.communicate(timeout=SECONDS)
    return process.returncode, told


def test_an_interrupted_round_trip_leaves_nothing(store: Cairn, make_doctor: Callable[..., Doctor]):
    """Ctrl-C ends the round trip wherever it is, and what was made is removed."""
    doctor = make_doctor(store.credential)
    with Gate(store.s3_port) as gate:
        # How many bytes a whole round trip takes.
        gate.hold_after(BYTES_MAX)
        assert doctor.run("--endpoint", gate.endpoint).returncode == OK
        whole = BYTES_MAX - gate.left
        # The first requests are small; those with the objects have nearly all bytes.
        for passed in (0, 2000, 4000, 6000, *(whole * part // 8 for part in range(1, 8))):
            code, told = interrupted(doctor, gate, passed)
            assert code == FAILED and "the program was told to stop" in told, (passed, told)
            assert leftovers(store.s3) == [], passed
        # The last requests remove what was made. Ctrl-C does not end that, and a check before it that was ended has failed.
        for left in (6000, 4000, 2500, 1200):
            code, told = interrupted(doctor, gate, whole - left)
            assert code == (FAILED if "the program was told to stop" in told else OK), (left, told)
            assert leftovers(store.s3) == [], left


@pytest.fixture(scope="module")
def hosted(make_module_store: Callable[..., Cairn]) -> Cairn:
    """An extended server whose name is localhost."""
    return make_module_store(SERVICE_S3_COMPATIBILITY="extended", SERVICE_BASE_HOSTS="localhost").start()


def test_virtual_hosts_are_tried_by_name(hosted: Cairn, make_doctor: Callable[..., Doctor]):
    """Names below localhost may not resolve here; then the note says so."""
    found = make_doctor(hosted.credential).json("--endpoint", f"http://localhost:{hosted.s3_port}")
    check = found["checks"]["virtual host"]
    assert check["verdict"] == "ok" or "DNS" in check["why"], check
