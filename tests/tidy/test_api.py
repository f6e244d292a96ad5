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
    assert len(members) > 8
    assert [f"{path}: {name}" for path, name, attributes in members if '"present"' not in attributes] == []
