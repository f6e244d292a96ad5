"""Runs a scenario and judges its differences by the table of exceptions."""

from botocore.client import BaseClient

from harness.s3 import S3

from .case import SCENARIOS, Case
from .compare import Difference, covers
from .differences import Known
from .exceptions import EXCEPTIONS


def is_about(known: Known, step: str, path: str) -> bool:
    """Returns whether an entry is about this path of this step."""
    return covers(known.step, step) and covers(known.path, path)


def entries(name: str) -> list[Known]:
    """Returns the entries of the table that are about a scenario."""
    return [known for known in EXCEPTIONS if covers(known.scenario, name)]


def judge(name: str, mode: str, http: S3, client: BaseClient) -> tuple[list[Difference], list[Known]]:
    """Returns the differences that no entry covers, and the entries that cover none although their steps were made."""
    case = Case(SCENARIOS[name], mode, http, client)
    differences = case.run()
    known = [entry for entry in entries(name) if mode in entry.modes]
    unknown = [one for one in differences if not any(is_about(entry, one.step, one.path) for entry in known)]
    unneeded = [
        entry for entry in known
        if any(is_about(entry, step, path) for step, paths in case.compared.items() for path in paths)
        and not any(is_about(entry, one.step, one.path) for one in differences)
    ]
    return unknown, unneeded


def assert_as_recorded(name: str, mode: str, http: S3, client: BaseClient) -> None:
    """Asserts that a scenario differs from its recording exactly where the table says so."""
    unknown, unneeded = judge(name, mode, http, client)
    assert not unknown, "\n" + "\n".join(map(str, unknown))
    assert not unneeded, "these differences are gone; remove them from the table:\n" + "\n".join(map(str, unneeded))
