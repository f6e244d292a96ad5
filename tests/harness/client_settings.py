"""The settings of `cairn/src/doctor/clients.json`, as the doctor prints them with some conditions."""

import json

from .server import REPOSITORY

CLIENTS: list[dict] = json.loads((REPOSITORY / "cairn/src/doctor/clients.json").read_text())


def applies(item: object, holds: set[str]) -> bool:
    """Returns whether the conditions of a block, line or note hold. `!` in front of one is its opposite."""
    conditions = item.get("when", []) if isinstance(item, dict) else []
    return all((condition.removeprefix("!") in holds) != condition.startswith("!") for condition in conditions)


def blocks(client: dict, holds: set[str]) -> list[tuple[str, str]]:
    """Returns the blocks to paste: place and text. Words and names in braces are as they are in the file."""
    found = []
    for block in client["settings"]:
        if applies(block, holds):
            lines = [line if isinstance(line, str) else line["line"] for line in block["lines"] if applies(line, holds)]
            found.append((block["place"], "".join(f"{line}\n" for line in lines)))
    return found


def notes(client: dict, holds: set[str]) -> list[str]:
    """Returns what else to know."""
    return [note["text"] for note in client["notes"] if applies(note, holds)]
