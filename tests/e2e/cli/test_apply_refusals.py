"""Files that `cairn apply` refuses: every problem has its line, no secret is repeated, and nothing changes."""

from pathlib import Path

import pytest

from harness.cli import Cli
from harness.management import expect
from harness.server import Cairn

SECRET = "hush-hush-hush"
BUCKET = '[[buckets]]\nname = "b-1"\n'
STATEMENT = '[[policies.statements]]\neffect = "allow"\nactions = ["s3:GetObject"]\nresources = ["bucket:b-1/*"]\n'
POLICY = f'[[policies]]\nname = "p"\n{STATEMENT}'
ACCOUNT = '[[accounts]]\nname = "a"\n'
HOOK = '[[webhooks]]\ntarget_url = "https://a.example/x"\nevent_types = ["object.created"]\n'
# Files that are wrong by themselves, and what is said.
WRONG = {
    "not TOML": ("[[buckets]\nname = \"b-1\"\n", "line 1: not TOML"),
    "binary": ("\x00\x01\x02", "line 1: not TOML"),
    "table": ("[bucket]\nname = 1\n", "line 1: unknown table `bucket`"),
    "not an array": ("[accounts]\nname = \"a\"\n", "line 1: accounts must be an array of tables"),
    "member": (f"{BUCKET}quotas = 1\n", "line 3: unknown field `quotas`"),
    "name of a bucket": ('\n\n[[buckets]]\nname = "B_1"\n', "line 4: "),
    "no name": ("[[buckets]]\nobject_lock = true\n", "line 1: missing field `name`"),
    "bucket twice": (f"{BUCKET}\n{BUCKET}", "line 5: the bucket b-1 occurs twice: it is in line 2 already"),
    "policy twice": (f"{POLICY}{POLICY}", 'line 8: the policy "p" occurs twice: it is in line 2'),
    "account twice": (f"{ACCOUNT}{ACCOUNT}", 'line 4: the account "a" occurs twice'),
    "webhook twice": (f"{HOOK}{HOOK}", "line 4: the webhook with this target and these filters occurs twice"),
    "name of an account": ('[[accounts]]\nname = " a"\n', "line 2: the name must not begin or end with a space"),
    "versioning": (f'{BUCKET}versioning = "Unversioned"\n', "line 3: versioning must be Enabled or Suspended"),
    "suspended lock": (f'{BUCKET}object_lock = true\nversioning = "Suspended"\n', "line 4: object lock requires versioning"),
    "retention": (f'{BUCKET}object_lock = true\ndefault_retention = {{mode = "GOVERNANCE"}}\n', "line 4: default_retention: either days or years"),
    "retention without lock": (f'{BUCKET}object_lock = false\ndefault_retention = {{mode = "GOVERNANCE", days = 1}}\n', "line 4: default_retention needs"),
    "quota": (f"{BUCKET}quota = {{bytes = 9007199254740992}}\n", "line 3: quota.bytes: the limit must be at most"),
    "quota without number": (f'{BUCKET}quota.objects = {{mode = "limit"}}\n', "line 3: quota.objects: the mode limit requires"),
    "origin": (f'{BUCKET}cors = [\n  {{allowed_origins = ["*"], allowed_methods = ["GET"]}},\n  {{allowed_origins = ["*"], allowed_methods = ["get"]}},\n]\n',
               'line 5: allowed_methods: "get" is not one of GET'),
    "lifecycle": (f'{BUCKET}[[buckets.lifecycle]]\nprefix = "a"\n', "line 3: the rule does nothing"),
    "lifecycle days": (f'{BUCKET}[[buckets.lifecycle]]\nprefix = "a"\nexpiration = 0\n', "expiration must be 1 to 36500 days"),
    "public": (f'{BUCKET}public = [{{prefix = "a", read = false}}]\n', "line 3: read: it must be true"),
    "public twice": (f'{BUCKET}public = [{{prefix = "a"}},\n{{prefix = "a"}}]\n', "line 4: prefix: an earlier rule has it"),
    "action": (POLICY.replace("s3:GetObject", "s3:Get"), 'line 3: actions[0]: "s3:Get" is not an action'),
    "resource": (POLICY + STATEMENT.replace("b-1/*", "*/x"), 'line 7: resources[0]: "bucket:*/x" has a * before its end'),
    "no statements": ('[[policies]]\nname = "p"\nstatements = []\n', "line 3: statements: a policy needs at least one"),
    "policy attached twice": (f'{ACCOUNT}policies = ["p", "p"]\n{POLICY}', 'line 3: the policy "p" occurs twice'),
    "event type": (HOOK.replace("created", "made"), "line 3: an event type must be one of"),
    "no event types": (HOOK.replace('["object.created"]', "[]"), "line 3: event_types must name at least one type"),
    "URL": (HOOK.replace("https", "ftp"), "line 1: target_url: "),
    "no URL": ('[[webhooks]]\nevent_types = ["object.created"]\n', "line 1: a webhook needs one of target_url"),
    "two URLs": (f'{HOOK}target_url_env = "X"\n', "line 1: a webhook needs one of target_url"),
    "short secret": (f'{ACCOUNT}credential = {{access_key = "abc", secret_key_env = "SHORT"}}\n', "line 3: secret_key must have 8 to 128"),
    "access key": (f'{ACCOUNT}credential = {{access_key = "a b", secret_key_env = "SECRET"}}\n', "line 3: access_key must have 3 to 128"),
    "access key twice": (
        f'{ACCOUNT}credential = {{access_key = "abc", secret_key_env = "SECRET"}}\n[[accounts]]\nname = "b"\n'
        'credential = {access_key = "abc", secret_key_env = "SECRET"}\n', "line 6: the access key abc occurs twice",
    ),
    "no secret": (f'{ACCOUNT}credential = {{access_key = "abc"}}\n', "line 3: credential needs secret_key_file or secret_key_env"),
    "two secrets": (f'{ACCOUNT}[accounts.credential]\naccess_key = "abc"\nsecret_key_env = "SECRET"\nsecret_key_file = "s"\n', "line 5: give either"),
    "missing variable": (f'{ACCOUNT}credential = {{access_key = "abc", secret_key_env = "NOT_SET"}}\n', "line 3: secret_key: the environment variable NOT_SET is not set"),
    "missing file": (f'{ACCOUNT}credential = {{access_key = "abc", secret_key_file = "none.key"}}\n', "line 3: the secret_key could not be read from"),
    "secret in the file": (f'{ACCOUNT}credential = {{access_key = "abc", secret_key = "{SECRET}"}}\n', "line 3: `secret_key` is refused: a secret must not be in the file"),
    "secret as a credential": (f'{ACCOUNT}credential = "{SECRET}"\n', "line 3: credential: a text is not possible here"),
    "secret of a webhook": (f'{HOOK}signing_secret = "{SECRET}"\n', "line 4: the server makes the signing secret"),
    "secret of an account": (f'{ACCOUNT}secret_key = "{SECRET}"\n', "line 3: `secret_key` is refused"),
    "control characters": (f'{BUCKET}"\\u001b[2J" = 1\n', "line 3: unknown field `[2J`"),
}


@pytest.fixture(scope="module")
def store(make_module_store) -> Cairn:
    """A store that stays empty until the last tests."""
    return make_module_store().start()


@pytest.fixture
def cli(store: Cairn) -> Cli:
    """The client with the system token, and with secrets in variables."""
    return Cli(store.management, store.secrets.system_token, SECRET=SECRET, SHORT="short")


def refused(cli: Cli, folder: Path, text: str, *options: str) -> str:
    """Applies a file that must be refused. Returns the message."""
    file = folder / "store.toml"
    file.write_text(text)
    message = cli.fails("apply", str(file), *options)
    assert "nothing was changed" in message and SECRET not in message, message
    return message


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(cli: Cli, store: Cairn, tmp_path: Path, name: str):
    """What is right in the file is not made either."""
    text, said = WRONG[name]
    right = '[[buckets]]\nname = "right"\n' if not text.startswith(("[[buckets]\n", "\x00")) else ""
    message = refused(cli, tmp_path, text + right)
    assert said in message and "\x1b" not in message, message
    assert "cannot be read" not in message and expect(store.admin.get("/buckets"), 200)["buckets"] == []


def test_all_problems_are_reported_in_the_order_of_their_lines(cli: Cli, tmp_path: Path):
    """Up to a limit."""
    message = refused(cli, tmp_path, f"{HOOK.replace('https', 'ftp')}{BUCKET}x = 1\n{ACCOUNT}y = 2\n")
    assert [line.split(":")[0].strip() for line in message.splitlines()[1:]] == ["line 1", "line 6", "line 9"], message
    many = refused(cli, tmp_path, "[[buckets]]\n" * 200)
    assert "200 problems" in many and len(many.splitlines()) == 52 and "and 150 more" in many


def test_files_that_cannot_be_read(cli: Cli, tmp_path: Path):
    """A missing file, a folder, another encoding, and a file without an end."""
    (tmp_path / "latin").write_bytes(b'[[buckets]]\nname = "\xe9"\n')
    for file, said in (("none", "No such file"), ("", "directory"), ("latin", "UTF-8"), ("/dev/zero", "longer than 8388608 bytes")):
        assert said in cli.fails("apply", str(tmp_path / file))
    deep = tmp_path / "deep.toml"
    deep.write_text("buckets = " + "[" * 100_000)
    assert "not TOML" in cli.fails("apply", str(deep))


def test_what_the_server_would_refuse_is_found_before(cli: Cli, store: Cairn, tmp_path: Path):
    """What it has is compared with the file before the first change."""
    admin = store.admin
    for name, lock in (("plain", False), ("locked", True)):
        expect(admin.post("/buckets", {"name": name, "object_lock": lock}), 201)
    assert store.s3.put("plain", "key", b"123456").status == 200
    for name in ("one", "two"):
        expect(admin.post("/service-accounts", {"name": name, "description": "before"}), 201)
    document = {"name": "same", "description": "", "statements": [{"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:b-1/*"]}]}
    ids = [expect(admin.post("/policies", document), 201)["id"] for _ in range(2)]
    target = {"target_url": "https://a.example/x", "event_types": ["object.created"], "bucket_filter": "b-1", "enabled": False}
    hooks = [expect(admin.post("/webhooks", target), 201)["subscription"]["id"] for _ in range(2)]
    one = next(account for account in expect(admin.get("/service-accounts"), 200)["service_accounts"] if account["name"] == "one")
    key = one["credentials"][0]["access_key"]
    plain, locked = '[[buckets]]\nname = "plain"\n', '[[buckets]]\nname = "locked"\n'
    for text, said in (
        (plain + "object_lock = true\n", "line 3: bucket plain has no object lock, which cannot be added"),
        (locked + "object_lock = false\n", "line 3: bucket locked has object lock, which cannot be removed"),
        (locked + 'versioning = "Suspended"\n', "line 3: object lock requires versioning to stay Enabled"),
        (plain + 'default_retention = {mode = "GOVERNANCE", days = 1}\n', "line 3: default_retention needs a bucket with object lock"),
        (plain + "quota.bytes = 5\n", "line 3: quota.bytes: the bucket already holds 6"),
        (plain + 'cors = [{allowed_origins = ["https://*.example"], allowed_methods = ["GET"]}]\n', "line 3: cors: rules[0].allowed_origins"),
        ('[[accounts]]\nname = "one"\ndescription = "after"\n', 'line 3: the description of account "one" cannot be changed; it is "before"'),
        (f'[[accounts]]\nname = "two"\ncredential = {{access_key = "{key}", secret_key_env = "SECRET"}}\n', f'the access key {key} belongs to account "one"'),
        ('[[accounts]]\nname = "two"\npolicies = ["none"]\n', 'line 3: there is no policy "none", neither in the file nor on the server'),
        ('[[accounts]]\nname = "two"\npolicies = ["same"]\n', 'line 3: the server has 2 policies with the name "same"'),
        (POLICY.replace('"p"', '"same"'), f"line 2: the server has 2 policies with the name \"same\", so it is unclear which is meant: {', '.join(ids)}"),
        (HOOK + 'bucket_filter = "b-1"\n', f"line 1: the server has 2 webhooks with this target and these filters, so it is unclear which is meant: {', '.join(hooks)}"),
    ):
        before = expect(admin.get("/buckets"), 200)
        message = refused(cli, tmp_path, text + '[[buckets]]\nname = "right"\n')
        assert said in message and "1 problem in" in message, message
        assert expect(admin.get("/buckets"), 200) == before


def test_settings_of_the_server_are_known_before(make_store, tmp_path: Path):
    """Events that are off, and public access that is off."""
    store = make_store(SERVICE_EVENTS_ENABLED="false", SERVICE_AUTH_PUBLIC_ACCESS_ENABLED="false").start()
    cli = Cli(store.management, store.secrets.system_token)
    message = refused(cli, tmp_path, HOOK + BUCKET + 'public = [{prefix = "a/"}]\n')
    assert "line 1: a webhook needs events, and events.enabled is false" in message
    assert "line 6: public: auth.public_access_enabled is false on the server" in message
    file = tmp_path / "store.toml"
    file.write_text(BUCKET + "public = []\n")
    assert "1 created" in cli.text("apply", str(file))
