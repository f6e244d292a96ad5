"""`cairn service-account create` and `rotate` with the keys that an application already has."""

from pathlib import Path

import pytest

from harness.accounts import client
from harness.cli import WRONG_USAGE, Cli
from harness.server import Cairn

SECRET = "the+secret/of=the\"application"


@pytest.fixture
def store(own_store: Cairn) -> Cairn:
    """Each test has a store of its own."""
    return own_store


def works(store: Cairn, access_key: str, secret_key: str = SECRET) -> bool:
    """Returns whether the keys sign correctly. The account has no permissions, so its list of buckets is empty."""
    answer = client(store, {"access_key": access_key, "secret_key": secret_key}).request("GET", "/")
    assert answer.status in (200, 403), answer.body
    return answer.status == 200


def test_keys_are_taken_from_a_file_and_from_standard_input(cli: Cli, store: Cairn, tmp_path: Path):
    """The secret is printed in no form. A line break at its end does not count."""
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    created = cli.text("service-account", "create", "shop", "--access-key", "shop@x/1", "--secret-file", str(file))
    assert "shop@x/1" in created and "cairn policy attach" in created and SECRET not in created and "secret" not in created.lower()
    printed = cli.json("service-account", "create", "web", "--access-key=web+key", "--secret-file", "-", stdin=SECRET)
    assert set(printed["credential"]) == {"id", "access_key"}
    rotated = cli.text("service-account", "rotate", "shop", "--access-key", "shop=2", "--secret-file", "-", stdin=f"{SECRET}\r\n")
    assert "shop=2" in rotated and SECRET not in rotated and "shown only once" not in rotated
    for access_key in ("shop@x/1", "web+key", "shop=2"):
        assert works(store, access_key) and not works(store, access_key, "another-secret")
    assert "was deleted" in cli.text("service-account", "credential", "delete", "shop", "shop@x/1")
    assert not works(store, "shop@x/1") and works(store, "shop=2")
    message = cli.fails("service-account", "rotate", "web", "--access-key", "shop=2", "--secret-file", str(file))
    assert "ACCESS_KEY_EXISTS" in message and "cairn service-account show" in message and SECRET not in message


def test_secrets_on_the_command_line_are_refused(cli: Cli, store: Cairn, tmp_path: Path):
    """Other users of a machine can see the arguments of a command. The message names the option that helps."""
    create = ("service-account", "create", "shop", "--access-key", "shop")
    for secret in (("--secret", SECRET), (f"--secret={SECRET}",), ("--secret-key", SECRET)):
        message = cli.fails(*create, *secret, code=WRONG_USAGE)
        assert "--secret-file" in message and SECRET not in message
    empty, long = tmp_path / "empty", tmp_path / "long"
    empty.write_text("\n")
    long.write_text("x" * 2000)
    assert "belong together" in cli.fails(*create, code=WRONG_USAGE)
    assert "belong together" in cli.fails("service-account", "rotate", "shop", "--secret-file", str(long), code=WRONG_USAGE)
    for file, said in ((tmp_path / "none", "No such file"), (empty, "it is empty"), (long, "longer than"), (tmp_path, "directory")):
        assert said in cli.fails(*create, "--secret-file", str(file))
    for refused in ("short", "with a space", "two\nlines-of-it"):
        message = cli.fails(*create, "--secret-file", "-", stdin=refused)
        assert "INVALID_REQUEST" in message and refused not in message
    assert store.admin.get("/service-accounts").json()["service_accounts"] == []
