"""The types of the management API read what their schemas describe."""

import re

from tidy.test_files import REPOSITORY, tracked

# The attributes of an optional member, and its name.
OPTIONAL = re.compile(r"((?:    #\[.*\]\n)+)    pub (\w+): Option<")


def test_members_that_are_not_null_are_not_read_as_null():
    """`schemars(with = ...)` describes an optional member without null; serde alone reads null as absent."""
    members = [
        (path.relative_to(REPOSITORY), name, attributes)
        for path in tracked("api/src/*.rs") for attributes, name in OPTIONAL.findall(path.read_text())
        if "Deserialize" in path.read_text() and "schemars(with" in attributes
    ]
    assert len(members) > 5
    assert [f"{path}: {name}" for path, name, attributes in members if '"present"' not in attributes] == []


def routes() -> set[str]:
    """Returns the paths of all routes, of the management plane and of the console, without the names of their variables."""
    tables = [path for path in tracked("admin/src/routes/*.rs") if path.name != "visitors.rs"]
    source = "".join(path.read_text() for path in tables)
    found = set(re.findall(r'\(\s*"(/[^"]+)",', source))
    assert len(found) > 100
    return {without_names(path) for path in found}


def without_names(path: str) -> str:
    """Returns a path with `{}` for each variable. The page describes the routes of embeds with those of shares."""
    return re.sub(r"\{\w+\}", "{}", path).replace("embeds", "shares")


def test_every_route_is_on_a_page_and_every_path_on_the_page_is_a_route():
    """A page may write the beginning of a path as `…`."""
    pages = "".join((REPOSITORY / "docs" / name).read_text() for name in ("management-api.md", "console.md"))
    named = {without_names(path) for path in re.findall(r"(?:…|/)[\w{}/.-]*[\w}]", pages)}
    ends = tuple(path[1:] for path in named if path.startswith("…/"))
    assert sorted(path for path in routes() if path not in named and not path.endswith(ends)) == []
    assert sorted(path for path in named - routes() if path.startswith("/api/v1/")) == []
