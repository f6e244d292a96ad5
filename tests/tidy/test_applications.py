"""The pages of applications: their settings are those of the doctor, and none is missing."""

import re

import pytest

from harness.client_settings import CLIENTS, blocks
from tidy.test_files import REPOSITORY

FOLDER = REPOSITORY / "docs/applications"
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.name != "README.md")
# The server that the pages are about.
HOLDS = {"strict", "tls", "keys"}
NAMES = {
    "{endpoint}": "https://s3.example.org", "{authority}": "s3.example.org", "{scheme}": "https", "{host}": "s3.example.org", "{port}": "443",
    "{region}": "us-east-1", "{secure}": "true", "{Secure}": "True",
}
EXPECTED = {
    "nextcloud", "mastodon", "gitlab", "django", "rails", "laravel", "wordpress", "velero", "loki", "thanos", "mimir", "pgbackrest", "barman", "wal-g",
    "restic", "kopia", "docker-registry", "terraform", "juicefs", "duckdb", "clickhouse", "spark", "iceberg", "outline", "immich", "peertube",
}


def sections(name: str) -> dict[str, str]:
    """The sections of a page by their headings."""
    parts = re.split(r"^## (.*)\n", (FOLDER / f"{name}.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def client_of(settings: str) -> str:
    """The client of the doctor whose settings a page shows."""
    (client,) = set(re.findall(r"`cairn doctor\s([a-z0-9-]+)`", settings))
    return client


def test_every_application_has_a_page_and_a_place_in_the_index():
    """The index links to all of them, and to nothing else."""
    assert set(PAGES) == EXPECTED
    linked = re.findall(r"^\| \[[^]]+\]\(([a-z-]+)\.md\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert sorted(linked) == PAGES


@pytest.mark.parametrize("name", PAGES)
def test_settings_are_those_of_the_doctor(name: str):
    """Place by place and line by line, for a strict server with TLS."""
    settings = sections(name)["Settings"]
    (known,) = [known for known in CLIENTS if known["name"] == client_of(settings)]
    shown = re.findall(r"^(\S[^\n]*):\n\n```[a-z]*\n(.*?)^```$", settings, re.MULTILINE | re.DOTALL)
    expected = []
    for place, text in blocks(known, HOLDS):
        for name_in_braces, value in NAMES.items():
            text = text.replace(name_in_braces, value)
        expected.append((place, text))
    assert shown == expected


@pytest.mark.parametrize("name", PAGES)
def test_pages_say_rights_mode_and_what_was_seen(name: str):
    """A page that says that requests were imitated names a test, and one that says that nothing else was done claims no run."""
    found = sections(name)
    assert list(found) == ["Settings", "Bucket and rights", "Mode", "What was run and seen"]
    assert re.search(rf"^cairn app create [a-z]+ --bucket .*--client {client_of(found['Settings'])}$", found["Bucket and rights"], re.MULTILINE)
    seen = found["What was run and seen"]
    said = " ".join(seen.split())
    assert any(words in said for words in ("(../clients.md#the-matrix) runs", "was run by hand", "not run"))
    assert "imitated" not in seen or "tests/e2e/clients/test_imitated_" in seen
