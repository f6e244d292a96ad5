"""The console's listener: it serves shares and nothing else, and withstands clients that mean ill."""

import hashlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from harness.certificates import Authority
from harness.management import bearer, expect, expect_refusal
from harness.metrics import SCRAPE_TOKEN, once, scrape
from harness.server import BINARY, LOOPBACK, Cairn
from harness.wait import until
from harness.wire import Connection, encode_head

MakeStore = Callable[..., Cairn]
BUCKET, KEY = "shown", "film.mp4"
BODY = hashlib.shake_128(b"film").digest(6_000_000)
END_SECONDS = 60


@pytest.fixture(scope="module")
def open_store(make_module_store: MakeStore) -> Cairn:
    """Starts a store with an object to share, whose console serves shares only."""
    options = {"SERVICE_METRICS_SCRAPE_TOKEN": SCRAPE_TOKEN, "SERVICE_CONSOLE_ADMIN_ENABLED": "false"}
    return filled(make_module_store(**options).start())


def filled(store: Cairn) -> Cairn:
    """Puts the object that is shared."""
    store.s3.create_bucket(BUCKET)
    store.s3.put(BUCKET, KEY, BODY, [("Content-Type", "video/mp4")])
    return store


def share(store: Cairn, **asked: object) -> str:
    """Creates a share and returns its URL."""
    return expect(store.admin.post(f"/buckets/{BUCKET}/object-shares/{KEY}", asked), 201)["url"]


def get(url: str, **options: object) -> requests.Response:
    """GET, with a time limit."""
    return requests.get(url, timeout=END_SECONDS, **options)


def console(store: Cairn, **options: int) -> Connection:
    """Opens a connection to the console's listener."""
    return Connection(LOOPBACK, store.console_port, **options)


@pytest.mark.parametrize("path", ["/", "/api/v1/buckets", "/api/v1/system/info", "/health", "/ready", "/metrics", f"/{BUCKET}/{KEY}", "/e/x", "/s", "/session"])
def test_only_shares_are_served(open_store: Cairn, path: str):
    """Administration and S3 cannot be reached through it, not even with an administrator's token."""
    url = share(open_store)
    assert urlsplit(url).netloc == f"{LOOPBACK}:{open_store.console_port}"
    assert get(f"{url}/content").content == BODY
    for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = requests.request(method, open_store.console + path, headers=bearer(open_store.secrets.system_token), timeout=END_SECONDS)
        expect_refusal(answer, 404, "NOT_FOUND")


def test_people_get_a_page_without_administration(open_store: Cairn):
    """A browser at the address of the listener itself is told that there is no link."""
    page = requests.get(f"{open_store.console}/", headers={"Accept": "text/html"}, timeout=END_SECONDS)
    assert page.status_code == 404 and page.headers["content-type"] == "text/html; charset=utf-8", page.headers
    assert "Link not found" in page.text


def test_disabled_listener_is_closed_and_the_management_plane_serves_shares(make_store: MakeStore):
    """URLs then contain the management plane's address, and the certificate's files are not even read."""
    missing = {"SERVICE_TLS_CONSOLE_CERTIFICATE": "/nowhere.crt", "SERVICE_TLS_CONSOLE_KEY": "/nowhere.key"}
    store = filled(make_store(SERVICE_CONSOLE_ENABLED="false", **missing).start())
    url = share(store)
    assert url.startswith(f"{store.management}/s/") and get(f"{url}/content").content == BODY
    with socket.socket() as probe:
        assert probe.connect_ex((LOOPBACK, store.console_port)) != 0
    assert ", console=" not in store.output() and " console=" not in store.output().split('service: ready')[1].splitlines()[0]


def test_own_certificate_and_secure_cookie(make_store: MakeStore, tmp_path: Path):
    """The listener has TLS alone; URLs are https, the cookie of an unlock is Secure, plain HTTP is refused."""
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("visitors")
    files = {"SERVICE_TLS_CONSOLE_CERTIFICATE": str(pair.certificate), "SERVICE_TLS_CONSOLE_KEY": str(pair.key)}
    store = filled(make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN, **files).start())
    url = share(store, password="correct horse")
    assert url.startswith(f"https://{LOOPBACK}:{store.console_port}/s/") and store.management.startswith("http://")
    trust = str(authority.certificate)
    unlocked = requests.post(f"{url}/unlock", json={"password": "correct horse"}, headers={"Accept": "application/json"}, verify=trust, timeout=END_SECONDS)
    assert unlocked.status_code == 200 and "; Secure" in unlocked.headers["set-cookie"]
    content = get(f"{url}/content", headers={"Cookie": unlocked.headers["set-cookie"].split(";")[0]}, verify=trust)
    assert content.content == BODY
    plain = get(url.replace("https", "http"))
    assert plain.status_code == 400 and "TLS" in plain.json()["error"]["message"]
    values = scrape(store)
    assert values.sum("service_tls_certificate_not_after_seconds", plane="console") > time.time()
    assert values.sum("service_tls_certificate_not_after_seconds", plane="data") == 0


def test_requests_are_logged_and_counted_without_tokens(open_store: Cairn):
    """Log and metrics name the plane and the pattern of the route."""
    url = share(open_store)
    token = url.rsplit("/", 1)[1]
    before = scrape(open_store)
    assert get(f"{url}/content").status_code == 200 and get(url).status_code == 200
    wanted = {"plane": "console", "method": "GET", "route": "/s/{token}/content", "operation": "get_share_content", "status_class": "2xx"}
    now = once(open_store, lambda seen: seen.sum("service_requests_total", **wanted) > before.sum("service_requests_total", **wanted))
    assert now.sum("service_response_bytes_total", plane="console") >= before.sum("service_response_bytes_total", plane="console") + len(BODY)
    assert now.sum("service_connections_accepted_total", plane="console") > 0
    assert "plane=console method=GET" in open_store.wait_output("route=/s/{token}/content")
    assert token not in open_store.output() and token not in now.text


def test_the_port_is_checked_at_the_start(make_store: MakeStore):
    """A port in use, or one that another listener has, refuses the start and names the setting."""
    store = make_store()
    with socket.create_server((LOOPBACK, store.console_port)):
        assert store.spawn().wait(END_SECONDS) == 1
        assert "SERVICE_CONSOLE_BIND" in store.output() and not store.data.exists()
        checked = subprocess.run([BINARY, "check"], env=store.environment(), capture_output=True, text=True, timeout=END_SECONDS)
        assert checked.returncode == 1 and str(store.console_port) in checked.stdout
    for port in (store.s3_port, store.api_port):
        store.extra["SERVICE_CONSOLE_BIND"] = f"{LOOPBACK}:{port}"
        store.log.unlink()
        assert store.spawn().wait(END_SECONDS) != 0
        assert "different ports" in store.output() and not store.data.exists()


def test_webhooks_do_not_reach_the_listener(make_store: MakeStore):
    """A webhook to our own listener is refused, as to the other two."""
    store = make_store(SERVICE_WEBHOOKS_ALLOW_HTTP="true", SERVICE_WEBHOOKS_ALLOW_PRIVATE_NETWORKS="true").start()
    asked = {"target_url": f"{store.console}/s/x", "event_types": ["object.created"]}
    expect_refusal(store.admin.post("/webhooks", asked), 400, "INVALID_WEBHOOK_TARGET")


def test_download_ends_before_the_process_does(make_store: MakeStore):
    """During a drain, a slow visitor gets every byte, new ones are refused, and the management plane still answers."""
    store = filled(make_store(SERVICE_SERVER_SHUTDOWN_GRACE_PERIOD_SECONDS="300").start())
    path = urlsplit(share(store)).path
    with console(store, receive_buffer_bytes=4096) as visitor:
        visitor.send_must(encode_head("GET", f"{path}/content", [("Host", "x")]))
        assert visitor.read_head().status == 200
        store.terminate()
        until(lambda: store.ready_status() == 503, "the store does not drain")
        with pytest.raises(requests.RequestException):
            get(store.console + path)
        assert store.running()
        assert visitor.take(len(BODY)) == BODY
    assert store.process.wait(END_SECONDS) == 0


BAD_HEADS = {
    "no host": b"GET /s/x HTTP/1.1\r\n\r\n",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n",
    "two lengths": b"POST /s/x/unlock HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunks": b"POST /s/x/unlock HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a huge head": b"GET /s/x HTTP/1.1\r\nHost: x\r\nx-filler: " + b"y" * 70_000 + b"\r\n\r\n",
    "a huge path": b"GET /s/" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "control characters": b"GET /s/\x00\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space before the colon": b"GET /s/x HTTP/1.1\r\nHost : x\r\n\r\n",
}
LARGE_HEADS = {"a huge head", "a huge path"}


@pytest.mark.parametrize("name", BAD_HEADS)
def test_malformed_requests_are_refused(open_store: Cairn, name: str):
    """An answer in JSON and an end of the connection, and the next visitor is served."""
    with console(open_store) as visitor:
        visitor.send(BAD_HEADS[name])
        answer = visitor.read_response("GET")
        assert answer.status == (431 if name in LARGE_HEADS else 400) and b'"code":"INVALID_REQUEST"' in answer.body, answer
        assert answer.get("x-request-id")
        assert visitor.sock.recv(1) == b"", "the connection stays open"
    assert get(f"{open_store.console}/s/x", headers={"Accept": "application/json"}).json()["error"]["code"] == "SHARE_NOT_FOUND"


def test_http_1_0_and_pipelined_requests(open_store: Cairn):
    """An old client gets the whole content. Pipelined requests are answered in their order."""
    path = urlsplit(share(open_store)).path
    with console(open_store) as old:
        old.send_must(f"GET {path}/content HTTP/1.0\r\n\r\n".encode())
        assert old.read_response("GET").body == BODY
    with console(open_store) as fast:
        fast.send_must(b"".join(encode_head("GET", f"{path}/content", [("Host", "x"), ("Range", f"bytes={at}-{at + 9}")]) for at in range(0, 500, 10)))
        assert [fast.read_response("GET").body for _ in range(50)] == [BODY[at : at + 10] for at in range(0, 500, 10)]


@pytest.mark.parametrize(("framing", "status"), [("length", 413), ("chunks", 413), ("endless chunk size", 400)])
def test_huge_bodies_to_unlock_are_refused_early(open_store: Cairn, framing: str, status: int):
    """The server does not read them, and does not hash what they contain."""
    path = urlsplit(share(open_store, password="correct horse")).path
    head = f"POST {path}/unlock HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
    with console(open_store) as visitor:
        if framing == "length":
            visitor.send(head + b"Content-Length: 5000000000\r\n\r\n" + b"x" * 100_000)
        else:
            size = b"10000" if framing == "chunks" else b"0" * 100_000
            visitor.send(head + b"Transfer-Encoding: chunked\r\n\r\n" + (size + b"\r\n" + b"x" * 65536 + b"\r\n") * 4)
        answer = visitor.read_response("POST")
        assert answer.status == status, answer
    assert get(f"{open_store.console}{path}").status_code == 200


def test_a_thousand_idle_connections_leave_room_for_visitors(open_store: Cairn):
    """Visitors are served meanwhile, and the other planes too."""
    url = share(open_store)
    held = [socket.create_connection((LOOPBACK, open_store.console_port), timeout=END_SECONDS) for _ in range(1000)]
    try:
        for silent in held[::2]:
            silent.sendall(b"GET /s/x HTTP/1.1\r\nHost: x\r\n")
        assert get(f"{url}/content").content == BODY
        assert open_store.s3.get(BUCKET, KEY).body == BODY
        until(lambda: open_store.ready_status() == 200, "the server is ready")
    finally:
        for connection in held:
            connection.close()


def test_visitors_that_do_not_read_cost_little_memory(make_store: MakeStore):
    """Two hundred stalled downloads hold two blocks each, and a visitor who reads is served at once."""
    store = filled(make_store().start())
    path = urlsplit(share(store)).path
    status = Path(f"/proc/{store.process.pid}/status")

    def resident() -> int:
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("RssAnon"))

    assert get(f"{store.console}{path}/content").content == BODY
    before = resident()
    held = []
    try:
        for _ in range(200):
            slow = console(store, receive_buffer_bytes=4096)
            slow.send_must(encode_head("GET", f"{path}/content", [("Host", "x")]))
            held.append(slow)
        for slow in held:
            assert slow.read_head().status == 200
        assert get(f"{store.console}{path}/content").content == BODY
        assert resident() - before < 100 << 20, f"{(resident() - before) >> 20} MiB"
    finally:
        for slow in held:
            slow.close()


def test_connection_limit_in_little_memory(make_store: MakeStore):
    """With the least memory, a few visitors at a time are served; a further one takes the place of an idle one."""
    small = {"SERVICE_SERVER_MEMORY_LIMIT": "73MiB", "SERVICE_SERVER_EXECUTORS": "1", "SERVICE_STORAGE_SLICES": "1"}
    store = filled(make_store(**small).start())
    store.wait_output("password_hashes=1")
    url = share(store, password="correct horse")
    idle = [console(store) for _ in range(30)]
    answers: list[int] = []

    def unlock() -> None:
        sent = requests.post(f"{url}/unlock", json={"password": "correct horse"}, headers={"Accept": "application/json"}, timeout=END_SECONDS)
        answers.append(sent.status_code)

    threads = [threading.Thread(target=unlock) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 3
    for connection in idle:
        connection.close()
    anonymous = int(Path(f"/proc/{store.process.pid}/status").read_text().split("RssAnon:")[1].split()[0]) * 1024
    assert anonymous < 73 << 20, f"{anonymous >> 20} MiB"


def test_master_key_of_another_store_is_refused(make_store: MakeStore, run_folder: Path):
    """The links, like everything else, need the key that they were made with."""
    store = filled(make_store().start())
    url = share(store)
    assert store.stop() == 0
    own, store.secrets = store.secrets, type(store.secrets)()
    assert store.spawn().wait(END_SECONDS) != 0
    assert "master key" in store.output()
    store.secrets = own
    store.start()
    assert get(f"{store.console}{urlsplit(url).path}/content").content == BODY


def test_links_survive_a_restart_with_other_ports(make_store: MakeStore):
    """URLs follow the listeners; tokens, states and counts stay."""
    store = filled(make_store().start())
    urls = [share(store, label=str(number), maximum_downloads=2) for number in range(3)]
    identities = {link["label"]: link["id"] for link in expect(store.admin.get("/shares"), 200)["shares"]}
    assert get(f"{urls[0]}/content").status_code == 200
    expect(store.admin.post(f"/shares/{identities['1']}/revoke"), 200)
    expect(store.admin.delete(f"/shares/{identities['2']}"), 204)
    assert store.stop() == 0
    store.take_ports()
    store.start()
    again = expect(store.admin.get(f"/shares/{identities['0']}/url"), 200)["url"]
    assert again == f"{store.console}{urlsplit(urls[0]).path}"
    assert expect(store.admin.get(f"/shares/{identities['0']}"), 200)["access_count"] == 1
    statuses = [get(store.console + urlsplit(url).path, headers={"Accept": "application/json"}).status_code for url in urls]
    assert statuses == [200, 410, 404]


def test_simultaneous_visitors_never_exceed_the_limit(open_store: Cairn):
    """Sixty visitors want one of seven downloads at the same time: seven get it, each of the others 410."""
    url = urlsplit(share(open_store, maximum_downloads=7))

    def download(number: int) -> int:
        with socket.create_connection((LOOPBACK, open_store.console_port), timeout=END_SECONDS, source_address=(f"127.0.7.{number + 1}", 0)) as raw:
            raw.sendall(f"GET {url.path}/content HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: application/json\r\n\r\n".encode())
            received = b""
            while data := raw.recv(1 << 20):
                received += data
        head, _, body = received.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        assert (body == BODY) == (status == 200)
        return status

    with ThreadPoolExecutor(60) as pool:
        statuses = list(pool.map(download, range(60)))
    assert sorted(statuses) == [200] * 7 + [410] * 53


def test_the_advice_for_damaged_links_works(make_store: MakeStore):
    """Without a backup of the links, the objects can be had again without them, as the error says."""
    store = filled(make_store().start())
    url = share(store)
    assert store.stop() == 0
    folder = store.data / "sharing"
    (folder / "data.mdb").write_bytes(b"")
    assert store.spawn().wait(END_SECONDS) == 1
    assert str(folder / "unmade") in store.output()
    folder.rename(store.data.parent / "sharing.damaged")
    folder.mkdir()
    (folder / "unmade").touch()
    store.take_ports()
    store.start()
    assert store.s3.get(BUCKET, KEY).body == BODY
    assert get(store.console + urlsplit(url).path, headers={"Accept": "application/json"}).status_code == 404
    assert get(share(store) + "/content").content == BODY
