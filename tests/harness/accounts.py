"""Creates service accounts and policies, and data plane clients that use them."""

import itertools
from dataclasses import dataclass

from .management import expect
from .s3 import S3
from .server import LOOPBACK, Cairn
from .sigv4 import Credential

_numbers = itertools.count()


def statement(effect: str, actions: str | list[str], *resources: str) -> dict:
    """Returns a statement of a policy. Actions are given without `s3:`."""
    named = [actions] if isinstance(actions, str) else actions
    return {"effect": effect, "actions": [f"s3:{action}" for action in named], "resources": list(resources)}


def client(store: Cairn, keys: dict) -> S3:
    """Returns a client that signs with the credential of a response."""
    return S3(LOOPBACK, store.s3_port, Credential(keys["access_key"], keys["secret_key"]))


def create_policy(store: Cairn, *statements: dict, name: str = "of a test") -> str:
    """Creates a policy and returns its id."""
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
        """Returns a client with the first credential."""
        return client(self.store, self.keys)

    @property
    def path(self) -> str:
        """Returns the account's route."""
        return f"/service-accounts/{self.id}"

    def show(self) -> dict:
        """Returns the account's record."""
        return expect(self.store.admin.get(self.path), 200)

    def attach(self, policy: str) -> None:
        """Attaches a policy."""
        expect(self.store.admin.put(f"/policies/{policy}/bindings/{self.id}"), 204)

    def detach(self, policy: str) -> None:
        """Detaches a policy."""
        expect(self.store.admin.delete(f"/policies/{policy}/bindings/{self.id}"), 204)

    def grant(self, *statements: dict) -> str:
        """Attaches a new policy with these statements and returns its id."""
        policy = create_policy(self.store, *statements)
        self.attach(policy)
        return policy


def create_account(store: Cairn, *statements: dict, name: str | None = None) -> Account:
    """Creates an account with a policy of these statements."""
    name = name or f"account {next(_numbers)}"
    made = expect(store.admin.post("/service-accounts", {"name": name, "description": "of a test"}), 201)
    account = Account(store, made["service_account"]["id"], name, made["credential"])
    if statements:
        account.grant(*statements)
    return account
