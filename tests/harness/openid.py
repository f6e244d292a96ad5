"""OpenID providers: a certified one in Node.js, with people who log in at its pages, and a hostile one."""

import base64
import json
import re
import ssl
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import requests
from Crypto.Hash import SHA256
from Crypto.PublicKey import RSA
from Crypto.Signature import pkcs1_15

from .certificates import Pair
from .console import Console
from .management import TIMEOUT
from .server import LOOPBACK, REPOSITORY, Cairn, clean_environment, free_ports
from .wait import until

PROGRAM = REPOSITORY / "tests/clients/openid-provider/provider.mjs"
LOGOUT = "http://schemas.openid.net/event/backchannel-logout"
CLIENT_ID, CLIENT_SECRET = "cairn console", "client+secret/of:the=tests"
PEOPLE = {
    "ada": {"preferred_username": "ada", "groups": ["everybody", "cairn-admins"]},
    "sam": {"preferred_username": "sam", "groups": ["operators"]},
    "olga": {"preferred_username": "olga", "groups": ["auditors"]},
    "eve": {"preferred_username": "eve", "groups": ["Cairn-Admins", "cairn-admins "]},
    "max": {"preferred_username": "max"},
    "mia": {"preferred_username": "mia", "groups": ["everybody", "team"]},
    # A different person with the same name.
    "another-mia": {"preferred_username": "mia", "groups": ["team"]},
    "ben": {"preferred_username": "ben", "groups": ["team", "auditors"]},
    "pia": {"preferred_username": "pia", "groups": ["letters"]},
    "leo": {"preferred_username": "leo", "groups": ["letters", "lost"]},
    # A different person with the same name.
    "another-ada": {"preferred_username": "ada", "groups": ["auditors"]},
}


def settings(issuer: str, console_url: str, **more: str) -> dict[str, str]:
    """Returns the settings of a console that signs people in with a provider."""
    of_people = {
        "ISSUER": issuer, "NAME": "Example", "CLIENT_ID": CLIENT_ID, "CLIENT_SECRET": CLIENT_SECRET, "CONSOLE_URL": console_url,
        "SYSTEM_ADMINS": "cairn-admins", "STORAGE_ADMINS": "operators", "AUDITORS": "auditors",
    }
    return {f"SERVICE_CONSOLE_OPENID_{name}": value for name, value in (of_people | more).items()}


class Provider:
    """The certified provider. It is at `localhost`, which is another site than the console at 127.0.0.1."""

    def __init__(self, folder: Path, in_id_token: bool = True):
        self.folder, self.in_id_token = folder, in_id_token
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0]
        self.process: subprocess.Popen | None = None
        self.consoles: list[str] = []

    @property
    def issuer(self) -> str:
        """Returns the URL."""
        return f"http://localhost:{self.port}"

    def start(self) -> "Provider":
        """Starts the provider with new keys, and waits until it answers."""
        client = {
            "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "response_types": ["code"], "grant_types": ["authorization_code"],
            "redirect_uris": [f"{console}/sign-in/callback" for console in self.consoles],
            "post_logout_redirect_uris": [f"{console}/" for console in self.consoles],
        }
        if self.consoles:
            client |= {"backchannel_logout_uri": f"{self.consoles[0]}/sign-in/logout", "backchannel_logout_session_required": True}
        configuration = {
            "issuer": self.issuer, "port": self.port, "clients": [client], "people": PEOPLE, "inIdToken": self.in_id_token,
            "scopes": ["openid"],
        }
        with (self.folder / "provider.log").open("ab") as log:
            command = ["node", str(PROGRAM), json.dumps(configuration)]
            self.process = subprocess.Popen(command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self.process.poll() is not None or self.answers(), self.log)
        assert self.process.poll() is None, f"the OpenID provider exited with status {self.process.returncode}; its log:\n{self.log()}"
        return self

    def log(self) -> str:
        """Returns the end of what the provider has printed."""
        return (self.folder / "provider.log").read_text(errors="replace")[-2000:]

    def answers(self) -> bool:
        """Returns whether the provider takes requests."""
        try:
            return requests.get(f"{self.issuer}/.well-known/openid-configuration", timeout=TIMEOUT).ok
        except requests.ConnectionError:
            return False

    def stop(self) -> None:
        """Ends the provider."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(TIMEOUT)


class Visitor:
    """A person with a browser that follows redirects and fills in forms."""

    def __init__(self, store: Cairn):
        self.console = Console(store)
        # Cookies do not know ports, and those of the provider are of another host.
        self.browser = self.console.cookies

    def begin(self) -> str:
        """Begins a sign-in, and returns the URL at the provider."""
        response = self.console.post("/sign-in")
        assert response.status_code == 200, response.text
        return response.json()["url"]

    def log_in(self, url: str, name: str) -> str:
        """Logs in at the provider and consents. Returns the URL at the console that the provider sends the browser to."""
        for _ in range(20):
            response = self.browser.get(url, allow_redirects=False, timeout=TIMEOUT)
            while response.status_code == 303:
                url = urljoin(url, response.headers["location"])
                if urlsplit(url).path == "/sign-in/callback":
                    return url
                response = self.browser.get(url, allow_redirects=False, timeout=TIMEOUT)
            assert response.status_code == 200, response.text
            action = urljoin(url, re.search(r'<form[^>]*action="([^"]+)"', response.text)[1])
            prompt = re.search(r'name="prompt" value="([^"]+)"', response.text)[1]
            response = self.browser.post(action, data={"prompt": prompt, "login": name, "password": "any"}, allow_redirects=False, timeout=TIMEOUT)
            assert response.status_code == 303, response.text
            url = urljoin(action, response.headers["location"])
        raise AssertionError("the provider never sent the browser back")

    def come_back(self, url: str) -> requests.Response:
        """Goes to the console as a browser does that the provider has sent there."""
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        return self.browser.get(url, headers=headers, allow_redirects=False, timeout=TIMEOUT)

    def sign_in(self, name: str) -> requests.Response:
        """Signs in through the provider."""
        return self.come_back(self.log_in(self.begin(), name))

    def failure(self) -> dict | None:
        """Returns why the last sign-in has failed, as the page of the login asks for it."""
        return self.console.get("/sign-in").json().get("failure")

    def session(self) -> dict | None:
        """Returns the session, if there is one."""
        response = self.console.get("/session")
        return response.json() if response.status_code == 200 else None


def log_out(store: Cairn, token: str | None, **more: str) -> requests.Response:
    """Posts a logout token as a provider does."""
    form = {"logout_token": token, "more": "is ignored"} if token is not None else more
    return requests.post(f"{store.console}/sign-in/logout", data=form, timeout=TIMEOUT)


def encoded(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class HostileProvider:
    """A provider that answers whatever a test wants. Its people need not log in."""

    def __init__(self, pair: Pair | None = None):
        self.key = RSA.generate(2048)
        self.reset()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            """Answers one request."""

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

            def do_GET(self) -> None:
                """Metadata, keys and claims."""
                self.answer(urlsplit(self.path).path, b"")

            def do_POST(self) -> None:
                """The exchange of a code."""
                self.answer(self.path, self.rfile.read(int(self.headers["content-length"])))

            def answer(self, path: str, body: bytes) -> None:
                provider.requests.append((path, dict(self.headers), body))
                provider.before.get(path, lambda: None)()
                status, content = provider.answer(path)
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.issuer = f"{'http' if pair is None else 'https'}://{LOOPBACK}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reset(self) -> None:
        """Answers as a good provider does."""
        self.requests: list[tuple[str, dict, bytes]] = []
        self.metadata: dict[str, object] = {}
        self.claims: dict[str, object] = {}
        self.header: dict[str, object] = {"alg": "RS256", "kid": "one"}
        self.signed: Callable[[bytes], bytes] = lambda message: pkcs1_15.new(self.key).sign(SHA256.new(message))
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.nonce = ""
        self.before: dict[str, Callable[[], None]] = {}
        self.released = threading.Event()

    def hold(self, path: str) -> None:
        """Answers requests of a path only after `release`."""
        released = self.released = threading.Event()
        self.before[path] = lambda: released.wait(TIMEOUT)

    def release(self) -> None:
        """Answers what is held."""
        self.released.set()

    def published(self, **more: object) -> dict:
        """Returns the public key."""
        number = lambda value: encoded(value.to_bytes((value.bit_length() + 7) // 8))  # noqa: E731
        return {"kty": "RSA", "use": "sig", "kid": "one", "n": number(self.key.n), "e": number(self.key.e)} | more

    def token(self) -> str:
        """Returns an ID token."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "1", "nonce": self.nonce, "iat": now, "exp": now + 300, "preferred_username": "ada", "groups": ["cairn-admins"]}
        claims = {name: value for name, value in (claims | self.claims).items() if value is not None}
        message = ".".join(encoded(json.dumps(part).encode()) for part in (self.header, claims))
        return f"{message}.{encoded(self.signed(message.encode()))}"

    def logout_token(self, **changes: object) -> str:
        """Returns a logout token. A claim that is None is left out."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "1", "iat": now, "exp": now + 120, "jti": str(uuid.uuid4()), "events": {LOGOUT: {}}}
        claims = {name: value for name, value in (claims | changes).items() if value is not None}
        message = ".".join(encoded(json.dumps(part).encode()) for part in (self.header | {"typ": "logout+jwt"}, claims))
        return f"{message}.{encoded(self.signed(message.encode()))}"

    def answer(self, path: str) -> tuple[int, bytes]:
        """Returns status and body of an answer."""
        if path in self.answers:
            return self.answers[path]
        found = {
            "/.well-known/openid-configuration": {
                "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize?keep=1", "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys", "userinfo_endpoint": f"{self.issuer}/user",
            } | self.metadata,
            "/keys": {"keys": [self.published()]},
            "/user": {"sub": "1"},
        }
        if path == "/token":
            return 200, json.dumps({"id_token": self.token(), "access_token": "access", "token_type": "Bearer"}).encode()
        return (200, json.dumps(found[path]).encode()) if path in found else (404, b"")

    def come_back(self, visitor: Visitor, **more: str) -> requests.Response:
        """Begins a sign-in of a browser and sends it back, with a code and these parameters."""
        query = parse_qs(urlsplit(visitor.begin()).query)
        self.nonce = query["nonce"][0]
        parameters = {"code": "a+code", "state": query["state"][0]} | more
        url = requests.Request("GET", query["redirect_uri"][0], params=parameters).prepare().url
        return visitor.come_back(url)
