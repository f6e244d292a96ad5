"""Rules on the documents: links lead somewhere, and prose wraps at 120 columns."""

import re
from pathlib import Path

from tidy.test_files import REPOSITORY, tracked

COLUMNS_MAX = 120
LINK = re.compile(r"\]\(([^)\s]+)\)")


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
