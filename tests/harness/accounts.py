"""Service accounts for the suites: made over the management plane, and clients of the data plane that sign with them."""

import itertools
from dataclasses import dataclass

from .management import expect
from .s3 import S3
from .server import LOOPBACK, Cairn
from .sigv4 import Credential

_numbers = itertools.count()


def statement(effect: str, actions: str | list[str], *resources: str) -> dict:
    """One statement of a policy; actions without their `s3:`."""
    named = [actions] if isinstance(actions, str) else actions
    return {"effect": effect, "actions": [f"s3:{action}" for action in named], "resources": list(resources)}


def client(store: Cairn, keys: dict) -> S3:
    """A client that signs with a pair of keys as an answer has them."""
    return S3(LOOPBACK, store.s3_port, Credential(keys["access_key"], keys["secret_key"]))


def create_policy(store: Cairn, *statements: dict, name: str = "of a test") -> str:
    """A policy; its id."""
    return expect(store.admin.post("/policies", {"name": name, "description": "", "statements": list(statements)}), 201)["id"]


@dataclass
class Account:
    """A service account of a store, with its first credential."""

    store: Cairn
    id: str
    name: str
    keys: dict

    @property
    def s3(self) -> S3:
        """A client under the first credential."""
        return client(self.store, self.keys)

    @property
    def path(self) -> str:
        """Its route."""
        return f"/service-accounts/{self.id}"

    def show(self) -> dict:
        """What the management plane says of it."""
        return expect(self.store.admin.get(self.path), 200)

    def attach(self, policy: str) -> None:
        """Attach a policy."""
        expect(self.store.admin.put(f"/policies/{policy}/bindings/{self.id}"), 204)

    def detach(self, policy: str) -> None:
        """Detach a policy."""
        expect(self.store.admin.delete(f"/policies/{policy}/bindings/{self.id}"), 204)

    def grant(self, *statements: dict) -> str:
        """Attach a new policy of these statements; its id."""
        policy = create_policy(self.store, *statements)
        self.attach(policy)
        return policy


def create_account(store: Cairn, *statements: dict, name: str | None = None) -> Account:
    """An account that may do what the statements say."""
    name = name or f"account {next(_numbers)}"
    made = expect(store.admin.post("/service-accounts", {"name": name, "description": "of a test"}), 201)
    account = Account(store, made["service_account"]["id"], name, made["credential"])
    if statements:
        account.grant(*statements)
    return account
