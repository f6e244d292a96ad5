"""The tables of the recorded scenarios: nothing is left out without a reason, and the documentation has what is meant."""

from harness.server import REPOSITORY
from recordings import scenarios
from recordings.case import SCENARIOS
from recordings.compare import covers
from recordings.data import recordings
from recordings.differences import ADDITIONS, IGNORED, IGNORED_IN_STRICT, KINDS, OPEN
from recordings.exceptions import EXCEPTIONS
from recordings.left_out import LEFT_OUT

scenarios.load()


def test_every_scenario_is_run_or_left_out():
    """A scenario is left out only with a reason."""
    left_out = {name for name in recordings() if name not in SCENARIOS}
    assert [name for name in left_out if not any(covers(pattern, name) for pattern in LEFT_OUT)] == []
    assert [pattern for pattern in LEFT_OUT if not any(covers(pattern, name) for name in left_out)] == []
    assert SCENARIOS.keys() <= recordings().keys()


def test_entries_are_about_something():
    """Each names a kind, and a scenario with this step."""
    steps = {name: list(recordings()[name]) for name in SCENARIOS}
    for entry in EXCEPTIONS:
        assert entry.kind in KINDS or entry.kind in OPEN, entry
        assert any(covers(entry.scenario, name) and any(covers(entry.step, step) for step in found) for name, found in steps.items()), entry
    used = {entry.kind for entry in EXCEPTIONS}
    assert used == KINDS.keys() | OPEN.keys(), "kinds without an entry"


def test_the_documentation_has_the_kinds():
    """`docs/s3-api.md` says what the table says: the differences that are meant, and what is never compared."""
    lines = (REPOSITORY / "docs/s3-api.md").read_text().splitlines()
    start = lines.index("| AWS answers | Cairn answers | why |")
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip() for cell in line.strip("|").replace(r"\|", "\0").split("|")))
    assert rows == [(kind.aws, kind.cairn, kind.reason) for kind in KINDS.values()]
    assert all(IGNORED.values()) and all(IGNORED_IN_STRICT.values()) and all(ADDITIONS.values())
