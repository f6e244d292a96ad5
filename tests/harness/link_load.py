"""Links in the load of the crash tests: each owner makes, changes, revokes, deletes and uses its own.

An owner sends one request at a time. So after a kill a link has every acknowledged change, and perhaps the single one that
was not answered. A revoked link stays revoked, a deleted one stays unknown, a limited share counts at least what it delivered
and never delivers more than its limit.
"""

import hashlib
import http.client
import json
import random
import threading
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import requests

from .crash_model import Model
from .expect import Broken
from .management import expect, segment
from .server import LOOPBACK, Cairn

BUCKET, KEY, PAGE = "crash-links", "picture.png", "http://page.example"
BODY = hashlib.shake_128(b"the content of all links").digest(200_000)
OWNERS = 4
LINKS_MAX = 10
# The actions of an owner, with their shares.
ACTIONS = {"create": 16, "change": 12, "revoke": 7, "delete": 7, "unlock": 12, "wrong": 3, "download": 43}
TIMEOUT = 60
GONE, UNKNOWN = 410, 404


@dataclass(frozen=True)
class Known:
    """The state of a link's record as its owner knows it. Every change sets a new label."""

    label: str
    password: str | None = None
    maximum: int | None = None
    is_revoked: bool = False
    is_deleted: bool = False


@dataclass
class Link:
    """A link of an owner."""

    kind: str
    id: str
    path: str
    known: Known
    # What the single unanswered change may have led to.
    pending: Known | None = None
    unlock: str | None = None
    # An unlock of an earlier password.
    stale_unlock: str | None = None
    # Downloads whose content arrived, and those that were requested.
    delivered: int = 0
    requested: int = 0

    def allowed(self) -> list[Known]:
        """Returns the states that the record may have."""
        return [self.known, *([self.pending] if self.pending else [])]

    def adopt(self, known: Known) -> None:
        """Takes over a state that the record is known to have. A change of the password ends the unlock."""
        if known.password != self.known.password and self.unlock:
            self.unlock, self.stale_unlock = None, self.unlock
        self.known, self.pending = known, None


@dataclass
class Answer:
    """A response to a visitor."""

    status: int
    body: bytes
    headers: http.client.HTTPMessage

    @property
    def code(self) -> str:
        """Returns the code of an error."""
        return json.loads(self.body)["error"]["code"]


def visit(port: int, method: str, path: str, source: str, headers: dict[str, str], body: bytes | None = None) -> Answer:
    """Sends a visitor's request from an address of this host. Each address is a visitor of its own."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT, source_address=(source, 0))
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read(), response.headers)
    finally:
        connection.close()


@dataclass
class Owner:
    """The only one who changes and uses its links. It continues through all cycles."""

    store: Cairn
    model: Model
    number: int
    links: list[Link] = field(default_factory=list)
    # Labels of creations that were not answered.
    unanswered: list[str] = field(default_factory=list)
    changes: int = 0
    downloads: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.model.seed}-links-{self.number}")

    def run(self, s3: object, struck: threading.Event) -> None:
        """Sends requests one after the other until the fault. Before it, every failure of a connection is a defect."""
        try:
            while not struck.is_set():
                getattr(self, "do_" + self.rng.choices(list(ACTIONS), ACTIONS.values())[0])()
        except (OSError, http.client.HTTPException) as error:
            if not struck.is_set():
                raise Broken(f"links of owner {self.number}: a request failed before anything struck: {error!r}") from error

    def address(self) -> str:
        """Returns a source address that no visitor had before, in all likelihood."""
        return "127." + ".".join(str(self.rng.randint(1, 254)) for _ in range(3))

    def new_label(self) -> str:
        """Returns a label that was never used."""
        self.changes += 1
        return f"{self.number}-{self.changes}"

    def some(self, *, kinds: tuple[str, ...] = ("share", "embed"), locked: bool | None = None) -> Link | None:
        """Returns a random link of these kinds, with or without a password."""
        fitting = [
            link for link in self.links
            if link.kind in kinds and (locked is None or (link.known.password is not None) == locked)
        ]
        return self.rng.choice(fitting) if fitting else None

    def change(self, link: Link, wish: Known, send: requests.Response) -> None:
        """Records the response to a change of a link."""
        expected = UNKNOWN if link.known.is_deleted else 204 if wish.is_deleted else 200
        if send.status_code != expected:
            raise Broken(f"{send.request.method} of {link}: {send.status_code} {send.text[:500]}")
        if not self.model.frozen:
            link.adopt(link.known if link.known.is_deleted else wish)

    def begin(self, link: Link, wish: Known) -> None:
        """Records a change before it is requested."""
        link.pending = wish if not link.known.is_deleted else None

    def do_create(self) -> None:
        """Creates a share or an embed."""
        if len(self.links) >= LINKS_MAX:
            return self.do_delete()
        known = Known(self.new_label())
        if self.rng.random() < 0.3:
            kind, asked = "embed", {"allowed_origins": [PAGE]}
        else:
            kind, asked = "share", {}
            if self.rng.random() < 0.3:
                asked["password"] = f"password {known.label}"
            if self.rng.random() < 0.6:
                asked["maximum_downloads"] = self.rng.randint(1, 6)
            known = replace(known, password=asked.get("password"), maximum=asked.get("maximum_downloads"))
        self.unanswered.append(known.label)
        target = f"/buckets/{BUCKET}/object-{kind}s/{segment(KEY)}"
        made = expect(self.store.admin.post(target, {"label": known.label, **asked}), 201)
        if not self.model.frozen:
            self.unanswered.remove(known.label)
            self.links.append(Link(kind, made[kind]["id"], urlsplit(made["url"]).path, known))
        return None

    def do_change(self) -> None:
        """Changes a label and perhaps the password or the limit."""
        if link := self.some():
            label = self.new_label()
            wish, asked = replace(link.known, label=label), {"label": label}
            if link.kind == "share" and self.rng.random() < 0.3:
                wish = replace(wish, password=self.rng.choice([None, f"password {label}"]))
                asked["password"] = wish.password
            if link.known.maximum and self.rng.random() < 0.5:
                wish = replace(wish, maximum=link.known.maximum + self.rng.randint(1, 3))
                asked["maximum_downloads"] = wish.maximum
            self.begin(link, wish)
            self.change(link, wish, self.store.admin.request("PATCH", f"/{link.kind}s/{link.id}", json=asked))

    def do_revoke(self) -> None:
        """Revokes a link."""
        if link := self.some():
            wish = replace(link.known, is_revoked=True)
            self.begin(link, wish)
            self.change(link, wish, self.store.admin.post(f"/{link.kind}s/{link.id}/revoke"))

    def do_delete(self) -> None:
        """Deletes a link, or forgets one that was deleted."""
        if link := self.some():
            if link.known.is_deleted:
                self.links.remove(link)
                return
            wish = replace(link.known, is_deleted=True)
            self.begin(link, wish)
            self.change(link, wish, self.store.admin.delete(f"/{link.kind}s/{link.id}"))

    def do_unlock(self) -> None:
        """Gives the right password."""
        if link := self.some(kinds=("share",), locked=True):
            answer = self.give(link, link.known.password)
            expected = self.closed(link) or 200
            # An exhausted share may be closed.
            if answer.status != expected and not (answer.status == GONE and link.known.maximum):
                raise Broken(f"unlocking {link}: {answer.status} {answer.body[:500]!r}")
            if answer.status == 200:
                link.unlock = json.loads(answer.body)["unlock_token"]

    def do_wrong(self) -> None:
        """Gives a wrong password."""
        if link := self.some(kinds=("share",), locked=True):
            answer = self.give(link, "wrong")
            if answer.status not in (self.closed(link) or 401, GONE if link.known.maximum else 401):
                raise Broken(f"unlocking {link} with a wrong password: {answer.status} {answer.body[:500]!r}")

    def give(self, link: Link, password: str) -> Answer:
        """Sends a password from a new address."""
        sent = {"Content-Type": "application/json", "Accept": "application/json"}
        return visit(self.store.console_port, "POST", f"{link.path}/unlock", self.address(), sent, json.dumps({"password": password}).encode())

    @staticmethod
    def closed(link: Link) -> int | None:
        """Returns the status of a link that cannot be used by anyone; None if it can."""
        return UNKNOWN if link.known.is_deleted else GONE if link.known.is_revoked else None

    def do_download(self) -> None:
        """Downloads the content as a new visitor."""
        if link := self.some():
            self.download(link)

    def download(self, link: Link) -> None:
        """Downloads the content as a new visitor, and checks that it may be downloaded."""
        before = link.requested
        # Counted although it may not be answered.
        link.requested += 1
        if link.kind == "embed":
            answer = visit(self.store.s3_port, "GET", link.path, self.address(), {"Origin": PAGE})
        else:
            unlock = link.unlock or link.stale_unlock
            headers = {"x-service-unlock": unlock} if unlock else {}
            answer = visit(self.store.console_port, "GET", f"{link.path}/content", self.address(), headers)
        maximum = link.known.maximum
        # A share may only be exhausted after as many requests as its limit, and must be after as many deliveries.
        may = {self.closed(link) or 200}
        if not self.closed(link) and maximum is not None:
            may = {200} if before < maximum else {GONE} if link.delivered >= maximum else {200, GONE}
        if 200 in may and link.known.password is not None:
            may = may - {200} | {200 if link.unlock else 401}
        if answer.status not in may:
            raise Broken(f"download of {link}: {answer.status}, not {may}: {answer.body[:500]!r}")
        if answer.status == 200:
            if answer.body != BODY:
                raise Broken(f"download of {link}: {len(answer.body)} bytes, not the content")
            if not self.model.frozen:
                link.delivered += 1
                self.downloads += 1

    def compare(self) -> None:
        """Compares every link with what is known of it, and adopts what is found."""
        for link in self.links:
            response = self.store.admin.get(f"/{link.kind}s/{link.id}")
            found = self.match(link, response)
            link.adopt(found)
            if not found.is_deleted:
                self.check_counts(link, response.json())
            if found.password is not None and not self.closed(link):
                answer = self.give(link, found.password)
                if answer.status != 200 and not (answer.status == GONE and found.maximum):
                    raise Broken(f"the password of {link} is refused: {answer.status} {answer.body[:500]!r}")
            self.download(link)

    def match(self, link: Link, response: requests.Response) -> Known:
        """Returns which of the allowed states a record has."""
        for known in link.allowed():
            if known.is_deleted:
                if response.status_code == UNKNOWN:
                    return known
                continue
            if response.status_code != 200:
                continue
            record = response.json()
            shown = (record["label"], record["status"] == "revoked", record.get("password_protected", False), record.get("maximum_downloads"))
            if shown == (known.label, known.is_revoked, known.password is not None, known.maximum):
                return known
        raise Broken(f"{link}: the record is {response.status_code} {response.text[:1000]}")

    @staticmethod
    def check_counts(link: Link, record: dict) -> None:
        """Asserts that a limited share counts at least what it delivered, and no link more than was requested."""
        count, maximum = record["access_count"], record.get("maximum_downloads")
        least = link.delivered if maximum is not None else 0
        if not least <= count <= link.requested or (maximum is not None and count > maximum):
            raise Broken(f"{link}: access_count is {count}")


@dataclass
class Links:
    """All owners of a run."""

    owners: list[Owner]

    @classmethod
    def create(cls, store: Cairn, model: Model) -> "Links":
        """Creates the object that all links are of."""
        store.s3.create_bucket(BUCKET)
        store.s3.put(BUCKET, KEY, BODY, [("Content-Type", "image/png")])
        return cls([Owner(store, model, number) for number in range(OWNERS)])

    def compare(self, store: Cairn) -> tuple[int, int]:
        """Compares all links with what their owners know. Returns the numbers of changes and of downloads so far."""
        for owner in self.owners:
            owner.compare()
        known = {link.id for owner in self.owners for link in owner.links if not link.known.is_deleted}
        unanswered = {label for owner in self.owners for label in owner.unanswered}
        for kind in ("share", "embed"):
            for link in expect(store.admin.get(f"/{kind}s", params={"bucket": BUCKET}), 200)[f"{kind}s"]:
                if link["id"] not in known and link["label"] not in unanswered:
                    raise Broken(f"a link that nobody made, or that was deleted: {link}")
        return sum(owner.changes for owner in self.owners), sum(owner.downloads for owner in self.owners)

    def inspect(self, store: Cairn) -> None:
        """Asserts that an inspection of the store finds nothing."""
        found = expect(store.admin.get("/storage/inspect"), 200)
        if not found["complete"] or found["findings"]:
            raise Broken(f"an inspection finds {found['findings'][:5]}, complete: {found['complete']}")
