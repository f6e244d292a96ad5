"""Rules on the documents: links lead somewhere, the files and keys that they name exist, and prose wraps at 120 columns."""

import json
import re
from fnmatch import fnmatch
from itertools import accumulate
from pathlib import Path, PurePath

from tidy.test_files import REPOSITORY, tracked

COLUMNS_MAX = 120
LINK = re.compile(r"\]\(([^)\s]+)\)")
# Words in backticks that can be paths: `<name>` and `*` stand for anything.
PATH = re.compile(r"`([\w.<>*-]+(?:/[\w.<>*-]+)*)/?`")
SOURCES = {".rs", ".py", ".js", ".sh"}
# What builds, tests and readers make.
MADE = ("target/*", "tests/.venv*", "tests/.tools*", "tests/clients/javascript/node_modules*", "docs/benchmarks/scale.csv")
# A configuration key in backticks, also with its value; `*` stands for anything.
KEY = re.compile(r"`([a-z][a-z0-9]*(?:\.[a-z0-9_*]+)+)(?=`| = )")
# Names with the form of a key: files, a host of examples, settings of the AWS CLI, and a value of the load generator.
NO_KEY = re.compile(r".*\.(?:rs|xml)|s3\.example\.org|s3\.(?:addressing_style|multipart_threshold|signature_version)|server\.resident")
# Describes earlier versions.
CHANGELOG = "CHANGELOG.md"


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(text: str) -> str:
    """The text without fenced blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_links_lead_somewhere():
    """Every relative link names a file or folder that exists, and a heading in it."""
    broken = []
    documents = tracked("*.md")
    assert len(documents) > 20
    for document in documents:
        for target in LINK.findall(without_code(document.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (document.parent / name).resolve() if name else document
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append(f"{document.relative_to(REPOSITORY)}: {target}")
    assert broken == []


def test_prose_wraps():
    """Lines of prose have at most 120 columns; tables, code and lines of one long word may be longer."""
    long = [
        f"{document.relative_to(REPOSITORY)}: {line[:60]}"
        for document in tracked("*.md")
        for line in without_code(document.read_text()).splitlines()
        if len(line) > COLUMNS_MAX and not line.lstrip().startswith("|") and " " in line.strip()[:COLUMNS_MAX]
        and not re.search(r"`[^`]{60,}`|\]\(\S{50,}\)", line)
    ]
    assert long == []


def missing_paths(text: str, files: set[str]) -> list[str]:
    """The paths in a document that name nothing: those below a folder of the repository, and those of sources."""
    folders = {str(parent) for file in files for parent in PurePath(file).parents} - {"."}
    known = files | folders
    missing = []
    for path in PATH.findall(without_code(text)):
        if path.partition("/")[0] not in folders and PurePath(path).suffix not in SOURCES:
            continue
        pattern = re.sub(r"<[^>]*>", "*", path)
        # The name of a source is enough where the text says in which folder it is.
        patterns = [pattern, f"*/{pattern}"] if PurePath(path).suffix in SOURCES else [pattern]
        if not any(fnmatch(name, one) for name in known for one in patterns) and not any(fnmatch(path, made) for made in MADE):
            missing.append(path)
    return missing


def test_files_that_documents_name_exist():
    """A file that moves takes its mentions along."""
    files = {str(path.relative_to(REPOSITORY)) for path in tracked("*")}
    documents = [path for path in tracked("*.md") if path.name != CHANGELOG]
    texts = {str(path.relative_to(REPOSITORY)): path.read_text() for path in documents}
    assert sum(len(PATH.findall(without_code(text))) for text in texts.values()) > 1000
    assert {name: missing for name, text in texts.items() if (missing := missing_paths(text, files))} == {}


def test_the_readme_names_every_crate_and_counts_clients_and_applications():
    """Each crate of the top level is in the table of folders; the numbers are those of the matrix and of the pages."""
    text = (REPOSITORY / "README.md").read_text()
    folders = {path.parent.name for path in tracked("*/Cargo.toml") if path.parent.parent == REPOSITORY}
    assert len(folders) > 15
    assert {folder for folder in folders if f"[`{folder}/`]({folder})" not in text} == set()
    clients = json.loads((REPOSITORY / "tests/client_matrix/results.json").read_text())["versions"]
    assert f"[matrix of {len(clients)} clients]" in " ".join(text.split())
    applications = [path for path in tracked("docs/applications/*.md") if path.name != "README.md"]
    assert f"[{len(applications)} applications]" in " ".join(text.split())


def missing_keys(text: str, keys: set[str]) -> list[str]:
    """The configuration keys in a text that do not exist. The beginning of a key, without its last parts, names a section."""
    sections = {section for key in keys for section in accumulate(key.split(".")[:-1], "{}.{}".format)}
    named = [name for name in KEY.findall(text) if name.partition(".")[0] in sections and not NO_KEY.fullmatch(name)]
    return [name for name in named if not any(fnmatch(known, name) for known in keys | sections)]


def test_configuration_keys_that_documents_and_comments_name_exist():
    """A key that was renamed takes its mentions along. Operations of the audit trail have the form of keys, too."""
    keys = set(re.findall(r'^ +[A-Z0-9_]+: "([a-z0-9_.]+)"', (REPOSITORY / "server/src/config/keys.rs").read_text(), re.MULTILINE))
    assert len(keys) > 80
    records = "".join((REPOSITORY / path).read_text() for path in ("server/src/serve/audit.rs", "observe/src/audit/record.rs"))
    operations = set(re.findall(r'"((?:audit|storage)\.[a-z_]+)"', records))
    texts = {path: "\n".join(re.findall(r"//.*", path.read_text())) for path in tracked("*.rs")}
    texts |= {path: path.read_text() for path in tracked("*.md") if path.name != CHANGELOG}
    assert sum(len(KEY.findall(text)) for text in texts.values()) > 300
    assert {str(path): missing for path, text in texts.items() if (missing := missing_keys(text, keys | operations))} == {}


def test_a_key_that_does_not_exist_is_found():
    """Also one with a value, and in an unknown subsection. Sections and patterns of keys are fine."""
    keys = {"audit.data_events", "server.tls.s3_key", "s3.etags"}
    good = "`audit.data_events`, `s3.etags = \"md5\"`, `server.tls`, `server.tls.s3_*`, `audit.rs`, `s3.example.org`, `other.key`"
    assert missing_keys(good, keys) == []
    bad = "`audit.events`, `s3.etag = \"md5\"`, `server.tls.key`, `server.tsl.*`"
    assert missing_keys(bad, keys) == ["audit.events", "s3.etag", "server.tls.key", "server.tsl.*"]


def test_a_path_that_leads_nowhere_is_found():
    """Words that look like paths but name no file are left out."""
    files = {"s3/src/ops/copy.rs", "tests/e2e/test_lists.py", "docs/cli.md"}
    assert missing_paths("`s3/src/ops/`, `copy.rs`, `ops/copy.rs`, `s3/src/ops/<name>.rs`, `tests/.venv/bin`, `*/src/ops/copy.rs`", files) == []
    assert missing_paths("`s3/gone`, `gone.rs`, `src/ops/gone.rs`, `docs/<page>.rs`, `text/html`, `photos/a.jpg`, `s3:GetObject`", files) == [
        "s3/gone", "gone.rs", "src/ops/gone.rs", "docs/<page>.rs",
    ]
