"""`cairn apply`: a store from a file. What changes, what stays, and what a second run does."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.accounts import client
from harness.cli import FAILED, NO_ANSWER, Cli
from harness.console import create_token
from harness.management import expect
from harness.metrics import SCRAPE_TOKEN, scrape
from harness.server import BINARY, REPOSITORY, Cairn
from harness.wait import until

EXAMPLE = REPOSITORY / "docs/examples/store.toml"
SITE_KEY, JOB_KEY = "the+secret/of=the\"site", "the-secret-of-the-job"
WEBHOOK = "https://hooks.example.com/T0/the-token-of-the-receiver"
READS = {"effect": "allow", "actions": ["s3:GetObject"], "resources": ["bucket:photos/*"]}
NOTHING = "nothing to change"


class Applier:
    """Applies texts to a store as files, and looks at the store."""

    def __init__(self, store: Cairn, folder: Path, token: str | None = None):
        self.store, self.folder = store, folder
        self.cli = Cli(
            store.management, token or store.secrets.system_token, BACKUP_JOB_SECRET_KEY=JOB_KEY, SITE_WEBHOOK_URL=WEBHOOK
        )

    def file(self, text: str) -> str:
        """Writes a file and returns its path."""
        path = self.folder / "store.toml"
        path.write_text(text)
        return str(path)

    def apply(self, text: str, *options: str) -> str:
        """Applies a text; it must succeed. Returns what was printed."""
        return self.cli.text("apply", self.file(text), *options)

    def twice(self, text: str, *options: str) -> str:
        """Applies a text, which must change something, and a second time nothing. The diffs before and after say the same."""
        shown, message = self.diff(text, *options)
        made = self.apply(text, *options)
        changes = "".join(line for line in shown.splitlines(keepends=True) if not line.endswith("is not in the file, and stays\n"))
        assert changes and made.startswith(changes) and "nothing was changed" in message
        before = self.records()
        again = self.cli.text("apply", self.file(text), *options)
        assert again.startswith(NOTHING) and self.records() == before, again
        assert NOTHING in self.cli.text("apply", self.file(text), "--diff", *options)
        return made

    def diff(self, text: str, *options: str) -> tuple[str, str]:
        """Shows what a text would change, which must be something and change nothing. Returns output and message."""
        before = self.records()
        done = self.cli.run("apply", self.file(text), "--diff", *options)
        assert done.returncode == FAILED and self.records() == before, done
        return done.stdout, done.stderr

    def refused(self, text: str, *options: str) -> str:
        """Applies a text that must be refused before anything changes. Returns the message."""
        before = self.records()
        message = self.cli.fails("apply", self.file(text), *options)
        assert "nothing was changed" in message and self.records() == before, message
        return message

    def records(self) -> list[str]:
        """The audited changes of the store, the newest first."""
        events = expect(self.store.admin.get("/audit/events?limit=1000"), 200)["events"]
        return [event["id"] for event in events if not event["operation"].startswith(("list_", "get_"))]

    def get(self, path: str) -> dict:
        """Reads from the management plane."""
        return expect(self.store.admin.get(path), 200)

    def named(self, path: str, member: str) -> dict[str, dict]:
        """The resources of a list by their names."""
        return {one["name"]: one for one in self.get(path)[member]}

    @property
    def accounts(self) -> dict[str, dict]:
        """The accounts by their names."""
        return self.named("/service-accounts", "service_accounts")

    @property
    def policies(self) -> dict[str, dict]:
        """The policies by their names."""
        return self.named("/policies", "policies")

    @property
    def buckets(self) -> dict[str, dict]:
        """The buckets by their names."""
        return self.named("/buckets", "buckets")


@pytest.fixture
def applier(own_store: Cairn, tmp_path: Path) -> Applier:
    """An applier with the system token, for a fresh store."""
    return Applier(own_store, tmp_path)


def works(store: Cairn, access_key: str, secret_key: str) -> bool:
    """Returns whether keys sign correctly."""
    answer = client(store, {"access_key": access_key, "secret_key": secret_key}).request("GET", "/none?list-type=2")
    return b"AccessDenied" in answer.body or answer.status == 404


def test_example_makes_a_store_and_a_second_run_changes_nothing(applier: Applier):
    """The example of the documentation has everything that the command knows."""
    shutil.copy(EXAMPLE, applier.folder / "example.toml")
    (applier.folder / "site.key").write_text(SITE_KEY + "\n")
    text = EXAMPLE.read_text()
    made = applier.twice(text)
    for secret in (SITE_KEY, JOB_KEY, "T0"):
        assert secret not in made
    assert "9 created, 0 changed, 0 deleted" in made and "cairn service-account rotate viewer" in made and "cairn webhook rotate-secret" in made
    media = applier.buckets["site-media"]
    assert (media["versioning"], media["quota"]["bytes"]["bytes"], media["quota"]["objects"]["objects"]) == ("Enabled", 50 << 30, 1_000_000)
    assert applier.get("/buckets/site-media/cors")["rules"][0]["allowed_origins"] == ["https://www.example.com"]
    assert [rule["noncurrent_version_expiration"] for rule in applier.get("/buckets/site-media/lifecycle")["rules"]] == [30, None]
    assert applier.get("/buckets/site-media/public-access") == {"rules": [{"prefix": "assets/", "read": True, "list": False}], "blocked": False}
    lock = applier.get("/buckets/site-backups/object-lock")
    assert lock == {"object_lock": True, "default_retention": {"mode": "GOVERNANCE", "days": 14}}
    accounts = applier.accounts
    assert {name: [policy["name"] for policy in account["policies"]] for name, account in accounts.items()} == {
        "site": ["site"], "backup-job": ["site-backups"], "viewer": ["viewers"],
    }
    assert accounts["viewer"]["credentials"] == [] and accounts["site"]["description"] == "www.example.com"
    assert applier.policies["site-backups"]["statements"][0]["only_if_absent"] is True
    (webhook,) = applier.get("/webhooks")["webhooks"]
    assert webhook["target_url"] == WEBHOOK and webhook["bucket_filter"] == "site-media"
    assert client(applier.store, {"access_key": "site", "secret_key": SITE_KEY}).request("PUT", "/site-media/assets/a", body=b"1").status == 200
    assert works(applier.store, "backup-job", JOB_KEY) and not works(applier.store, "backup-job", SITE_KEY)
    assert NOTHING in applier.apply(text, "--prune")


BUCKET = '[[buckets]]\nname = "photos"\n'
POLICY = '[[policies]]\nname = "reads"\n[[policies.statements]]\neffect = "allow"\nactions = ["s3:GetObject"]\nresources = ["bucket:photos/*"]\n'
ACCOUNT = '[[accounts]]\nname = "app"\n'
HOOK = f'[[webhooks]]\ntarget_url = "{WEBHOOK}"\nevent_types = ["object.created"]\n'
RULE = '{allowed_origins = ["https://a.example"], allowed_methods = ["GET"]}'
# A file, another one, and what its diff shows.
CHANGES = {
    "versioning": (BUCKET, BUCKET + 'versioning = "Enabled"\n', '    versioning: "Unversioned" -> "Enabled"\n'),
    "suspension": (BUCKET + 'versioning = "Enabled"\n', BUCKET + 'versioning = "Suspended"\n', '"Enabled" -> "Suspended"'),
    "suspension from the start": (BUCKET, BUCKET + 'versioning = "Suspended"\n', '"Unversioned" -> "Suspended"'),
    "retention": (
        BUCKET + "object_lock = true\n", BUCKET + 'default_retention = {mode = "COMPLIANCE", years = 1}\n',
        '    default_retention: { mode = "COMPLIANCE", years = 1 }\n',
    ),
    "no retention": (
        BUCKET + 'object_lock = true\ndefault_retention = {mode = "GOVERNANCE", days = 1}\n', BUCKET + 'default_retention = "none"\n',
        '    default_retention: { mode = "GOVERNANCE", days = 1 } -> none\n',
    ),
    "quota": (BUCKET, BUCKET + 'quota = {bytes = "1KiB"}\n', '    quota.bytes: "unlimited" -> "1 KiB (1024 bytes)"\n'),
    "quota of the API": (
        BUCKET + "quota = {bytes = 5, objects = 6}\n",
        BUCKET + 'quota = {bytes = {mode = "unlimited"}, objects = {mode = "limit", objects = 7}}\n',
        '    quota.bytes: "5 B" -> "unlimited"\n    quota.objects: 6 -> 7\n',
    ),
    "cors": (
        BUCKET + f"cors = [{RULE}]\n", BUCKET + f"cors = [{RULE.replace('GET', 'PUT')}]\n",
        '      ~ { allowed_origins = ["https://a.example"] }\n          allowed_methods:\n            - "GET"\n            + "PUT"\n',
    ),
    "no cors": (BUCKET + f"cors = [{RULE}]\n", BUCKET + "cors = []\n", '      - { allowed_origins = ["https://a.example"], allowed_methods = ["GET"] }\n'),
    "order of cors": (
        BUCKET + f"cors = [{RULE}, {RULE.replace('a.', 'b.')}]\n", BUCKET + f"cors.rules = [{RULE.replace('a.', 'b.')}, {RULE}]\n", "      + {",
    ),
    "lifecycle": (
        BUCKET + 'lifecycle = [{prefix = "a/", expiration = 1}, {prefix = "b/", expiration = 1}, {prefix = "c/", expiration = 1}]\n',
        BUCKET + 'lifecycle = [{prefix = "d/", expiration = 1}, {prefix = "b/", expiration = 2, enabled = false}, {prefix = "a/", expiration = 1}]\n',
        '      ~ { prefix = "b/" }\n          enabled: false\n          expiration: 1 -> 2\n      - { prefix = "c/", expiration = 1 }\n      + { prefix = "d/", expiration = 1 }\n',
    ),
    "no lifecycle": (BUCKET + 'lifecycle = [{prefix = "", expiration = 1}]\n', BUCKET + "lifecycle = []\n", '      - { prefix = "", expiration = 1 }\n'),
    "public": (
        BUCKET + 'public = [{prefix = "a/"}]\n', BUCKET + 'public = [{prefix = "b/", list = true}, {prefix = "a/", list = true}]\n',
        '      ~ { prefix = "a/" }\n          list: true\n      + { prefix = "b/", list = true }\n',
    ),
    "not public": (BUCKET + 'public = [{prefix = "a/"}]\n', BUCKET + "public.rules = []\n", '      - { prefix = "a/" }\n'),
    "blocked": (BUCKET + 'public = [{prefix = "a/"}]\n', BUCKET + "public.blocked = true\n", "    public.blocked: false -> true\n"),
    "statement": (
        POLICY, POLICY.replace('"]\nres', '", "s3:PutObject"]\nres') + "only_if_absent = true\n",
        '      ~ { effect = "allow", resources = ["bucket:photos/*"] }\n          actions:\n            + "s3:PutObject"\n          only_if_absent: true\n',
    ),
    "description": (POLICY, POLICY.replace("[[policies.", 'description = "d"\n[[policies.'), '    description: "" -> "d"\n'),
    "networks": (POLICY, POLICY + 'source_ip = ["2001:DB8::/32", "10.0.0.1/32"]\n', '          source_ip:\n            + "2001:db8::/32"\n'),
    "disabled account": (ACCOUNT, ACCOUNT + "enabled = false\n", "    enabled: true -> false\n"),
    "attachment": (ACCOUNT + "policies = []\n" + POLICY, ACCOUNT + 'policies = ["reads"]\n', '    policies:\n      + "reads"\n'),
    "keys": (ACCOUNT, ACCOUNT + 'credential = {access_key = "app", secret_key_env = "BACKUP_JOB_SECRET_KEY"}\n', '    credential.access_key: "app"\n'),
    "disabled webhook": (HOOK, HOOK + "enabled = false\n", "    enabled: true -> false\n"),
    "event types": (HOOK, HOOK.replace('"]', '", "bucket.created"]'), '    event_types:\n      + "bucket.created"\n'),
    "filter": (HOOK, HOOK + 'bucket_filter = "photos"\n', "+ webhook https://hooks.example.com/… (bucket photos)\n"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(applier: Applier, name: str):
    """The difference shows old and new values, and applying it makes it empty."""
    before, after, shown = CHANGES[name]
    applier.apply(before)
    assert shown in applier.twice(after), applier.file(after)
    # What is not in the second file is as it was.
    if name == "blocked":
        assert applier.get("/buckets/photos/public-access")["rules"][0]["prefix"] == "a/"


def test_rules_that_stay_keep_their_ids(applier: Applier):
    """A lifecycle rule with an id has a history."""
    ids = lambda: {rule["prefix"]: rule["id"] for rule in applier.get("/buckets/photos/lifecycle")["rules"]}
    applier.apply(BUCKET + 'lifecycle = [{prefix = "a/", expiration = 1}, {prefix = "b/", expiration = 1}, {prefix = "c/", expiration = 1}]\n')
    before = ids()
    applier.apply(BUCKET + 'lifecycle = [{prefix = "d/", expiration = 1}, {prefix = "b/", expiration = 2}, {prefix = "a/", expiration = 1}]\n')
    after = ids()
    assert set(after) == {"a/", "b/", "d/"} and after["a/"] == before["a/"] and after["b/"] == before["b/"]


def test_what_is_not_in_the_file_stays_without_prune(applier: Applier):
    """Neither things nor members that are absent change."""
    full = (
        BUCKET + f'versioning = "Enabled"\nquota.bytes = 5\ncors = [{RULE}]\nlifecycle = [{{prefix = "", expiration = 1}}]\npublic = [{{prefix = "a/"}}]\n'
        + '[[buckets]]\nname = "other"\n' + POLICY.replace("[[policies.", 'description = "d"\n[[policies.') + ACCOUNT
        + 'description = "e"\npolicies = ["reads"]\nenabled = false\ncredential = {access_key = "app", secret_key_env = "BACKUP_JOB_SECRET_KEY"}\n' + HOOK
    )
    applier.apply(full)
    state = lambda: [
        applier.buckets, applier.policies, applier.accounts, applier.get("/webhooks"),
        [applier.get(f"/buckets/photos/{part}") for part in ("cors", "lifecycle", "public-access")],
    ]
    before = state()
    less = BUCKET + POLICY + ACCOUNT + "policies = []\n" + HOOK.replace("T0", "T1") + "enabled = false\n"
    shown, _ = applier.diff(less)
    assert shown.startswith("+ webhook ") and "~" not in shown and "-" not in [line[0] for line in shown.splitlines()]
    for note in ("bucket other", "attachment policy reads of account app", "webhook https://hooks.example.com/…"):
        assert f"  {note} is not in the file, and stays\n" in shown
    assert NOTHING in applier.apply(BUCKET) and NOTHING in applier.apply(POLICY) and NOTHING in applier.apply(ACCOUNT)
    assert NOTHING in applier.apply(BUCKET + POLICY + ACCOUNT + "policies = []\n")
    assert state() == before


def test_prune_deletes_what_is_not_in_the_file(applier: Applier):
    """Buckets only without content. The diff shows all of it before."""
    others = '[[buckets]]\nname = "empty"\n[[buckets]]\nname = "full"\n' + POLICY.replace('"reads"', '"more"') + '[[accounts]]\nname = "old"\npolicies = ["more", "reads"]\n'
    kept = BUCKET + POLICY + ACCOUNT + 'policies = ["reads"]\n' + HOOK
    applier.apply(kept + others + HOOK.replace("T0", "T1"))
    (account,) = [one["id"] for name, one in applier.accounts.items() if name == "app"]
    expect(applier.store.admin.put(f"/policies/{applier.policies['more']['id']}/bindings/{account}"), 204)
    assert applier.store.s3.put("full", "key", b"1").status == 200
    message = applier.refused(kept, "--prune")
    assert "bucket full is not in the file and is not deleted, because it is not empty: it has 1 version, " in message and "1 problem in" in message
    shown, message = applier.diff(kept, "--prune")
    assert "- bucket empty\n" in shown and "bucket full" in message
    assert applier.store.s3.request("DELETE", "/full/key").status == 204
    made = applier.twice(kept, "--prune")
    for change in ('~ account app\n    policies:\n      - "more"\n', "- account old\n", "- policy more\n", "- bucket empty\n- bucket full\n", "- webhook https://"):
        assert change in made
    assert "0 created, 1 changed, 5 deleted" in made
    assert (set(applier.buckets), set(applier.accounts), set(applier.policies)) == ({"photos"}, {"app"}, {"reads"})
    assert [webhook["target_url"] for webhook in applier.get("/webhooks")["webhooks"]] == [WEBHOOK]
    assert [policy["name"] for policy in applier.accounts["app"]["policies"]] == ["reads"]
    applier.twice(BUCKET, "--prune")
    assert not applier.accounts and not applier.policies and not applier.get("/webhooks")["webhooks"]


def test_prune_needs_a_file_with_content(applier: Applier):
    """A file that was cut to nothing would delete everything."""
    applier.apply(BUCKET + ACCOUNT)
    assert "contains nothing" in applier.cli.fails("apply", applier.file("# nothing\n"), "--prune")
    policy_elsewhere = ACCOUNT + 'policies = ["reads"]\n'
    applier.apply(POLICY)
    assert "line 3: the policy \"reads\" is not in the file, so --prune would delete it" in applier.refused(policy_elsewhere, "--prune")
    assert set(applier.accounts) == {"app"}


def test_a_changed_secret_needs_the_old_key_to_go(applier: Applier):
    """Secrets cannot be read, so they are not compared. Deleting the credential lets the next run give it again."""
    secret = applier.folder / "app.key"
    secret.write_text(SITE_KEY)
    text = ACCOUNT + 'credential = {access_key = "app", secret_key_file = "app.key"}\n'
    applier.twice(text)
    secret.write_text(JOB_KEY + "\n")
    assert NOTHING in applier.apply(text) and works(applier.store, "app", SITE_KEY)
    applier.cli.text("service-account", "credential", "delete", "app", "app")
    applier.twice(text)
    assert works(applier.store, "app", JOB_KEY) and not works(applier.store, "app", SITE_KEY)


def test_a_target_may_be_in_a_file(applier: Applier):
    """Its path is shown nowhere, and it is compared all the same."""
    (applier.folder / "target.url").write_text(WEBHOOK + "\n")
    text = HOOK.replace(f'target_url = "{WEBHOOK}"', 'target_url_file = "target.url"')
    assert "T0" not in applier.twice(text) and NOTHING in applier.apply(HOOK)
    (applier.folder / "target.url").write_text("https://hooks.example.com/a path")
    assert "line 1: target_url: " in applier.refused(text)


def test_a_failure_says_what_was_made_and_the_next_run_goes_on(applier: Applier):
    """Root's access key is known to the server only."""
    root = applier.store.secrets.root_access_key
    keys = f'credential = {{access_key = "{root}", secret_key_env = "BACKUP_JOB_SECRET_KEY"}}\n'
    text = BUCKET + POLICY + ACCOUNT + keys + HOOK
    done = applier.cli.run("apply", applier.file(text))
    assert done.returncode == FAILED and done.stdout.startswith("+ bucket photos\n+ policy reads\n") and "account" not in done.stdout
    for part in ("account app: the account failed: ACCESS_KEY_EXISTS", "made before: 2 changes", "not made: webhook https://hooks.example.com/…", "run the same command again"):
        assert part in done.stderr
    as_json = applier.cli.run("apply", applier.file(text), "--json")
    assert as_json.returncode == FAILED and '"done": false' in as_json.stdout and '"done": true' not in as_json.stdout
    made = applier.twice(text.replace(root, "app"))
    assert "2 created, 0 changed, 0 deleted" in made


def test_a_killed_run_is_continued(make_store: Callable[..., Cairn], tmp_path: Path):
    """kill -9 in the middle, several times: each run makes what the earlier ones have not.

    The server still makes the change that a killed run has asked for. So the test waits until that connection is closed.
    """
    applier = Applier(make_store(SERVICE_METRICS_SCRAPE_TOKEN=SCRAPE_TOKEN).start(), tmp_path)
    connections = lambda: scrape(applier.store).sum("service_connections_open", plane="management")
    count = 40
    text = "".join(
        f'[[buckets]]\nname = "bucket-{number}"\nversioning = "Enabled"\nquota.objects = {number + 1}\n'
        f'[[accounts]]\nname = "account-{number}"\npolicies = ["policy-{number}"]\n' + POLICY.replace('"reads"', f'"policy-{number}"')
        for number in range(count)
    )
    command = [BINARY, "apply", applier.file(text), "--endpoint", applier.store.management]
    for awaited in ("+ bucket bucket-7\n", "+ policy policy-3\n", "+ account account-11\n"):
        process = subprocess.Popen(command, env=applier.cli.environment(), stdout=subprocess.PIPE, text=True)
        assert awaited in iter(process.stdout.readline, "")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        until(lambda: connections() == 1, "the connection of a killed run stays open")
    applier.twice(text)
    assert len(applier.buckets) == len(applier.policies) == len(applier.accounts) == count
    assert all(account["policies"] for account in applier.accounts.values())
    assert all(bucket["quota"]["objects"]["mode"] == "limit" for bucket in applier.buckets.values())


def test_roles(applier: Applier):
    """A storage administrator may change buckets, and an auditor may look. Webhooks are shown in full to nobody else."""
    with_role = lambda role: Applier(applier.store, applier.folder, create_token(applier.store, role)["token"])
    storage, auditor = with_role("storage_admin"), with_role("auditor")
    message = auditor.cli.fails("apply", applier.file(BUCKET))
    assert "require a token with the role system_admin or storage_admin; this one has auditor; nothing was changed" in message
    assert auditor.cli.run("apply", applier.file(BUCKET + ACCOUNT), "--diff").stdout == "+ bucket photos\n+ account app\n"
    assert "1 created" in storage.apply(BUCKET)
    assert "FORBIDDEN" in storage.cli.fails("apply", applier.file(ACCOUNT))
    assert "role system_admin; this one has auditor" in auditor.cli.fails("apply", applier.file(ACCOUNT))
    for one in (storage, auditor):
        assert "webhooks require a token with the role system_admin" in one.cli.run("apply", applier.file(HOOK), "--diff").stderr
    assert NOTHING in auditor.apply(BUCKET)
    assert not applier.accounts


def test_json(applier: Applier):
    """The changes with old and new values, and whether each was made."""
    text = BUCKET + 'versioning = "Enabled"\n' + ACCOUNT
    done = applier.cli.run("apply", applier.file(text), "--diff", "--json")
    assert done.returncode == FAILED
    body = applier.cli.json("apply", applier.file(text))
    assert body["changes"] == [
        {"action": "create", "kind": "bucket", "name": "photos", "done": True, "members": [{"name": "versioning", "before": None, "after": "Enabled"}]},
        {"action": "create", "kind": "account", "name": "app", "done": True, "members": []},
    ]
    assert done.stdout.count('"done": false') == 2 and len(body["hints"]) == 1
    expect(applier.store.admin.post("/buckets", {"name": "other"}), 201)
    again = applier.cli.json("apply", applier.file(text), "--diff")
    assert again == {"changes": [], "hints": [], "not_in_file": [{"kind": "bucket", "name": "other"}]}


def test_standard_input(applier: Applier):
    """Files beside it are looked for in the current folder."""
    assert "1 created" in applier.cli.text("apply", "-", stdin=BUCKET)
    assert "line 2: " in applier.cli.fails("apply", "-", stdin='[[buckets]]\nname = "A"\n')


def test_without_a_server(tmp_path: Path):
    """A wrong file is refused before the server is asked."""
    cli = Cli("http://127.0.0.1:1", "token")
    file = tmp_path / "store.toml"
    file.write_text(BUCKET)
    assert "cannot be reached" in cli.fails("apply", str(file), code=NO_ANSWER)
    file.write_text(BUCKET + "nme = 1\n")
    assert "line 3: unknown field `nme`" in cli.fails("apply", str(file))
