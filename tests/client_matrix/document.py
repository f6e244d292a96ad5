"""The tables of docs/clients.md, made from results.json."""

import json
from collections import defaultdict
from pathlib import Path

from client_matrix.clients import CLIENTS
from client_matrix.operations import ALL, NOT_WRITTEN, OPERATIONS, PROGRAM_OPERATIONS
from client_matrix.workspace import Client

RESULTS = Path(__file__).with_name("results.json")
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/clients.md"
BEGIN, END = "<!-- The part below is written by `./test clients`. -->", "<!-- The part above is written by `./test clients`. -->"
TRANSPORTS = ("HTTP", "TLS")


def write_document() -> None:
    """Replaces the written part of the page."""
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{render()}\n{END}{rest.split(END)[1]}")


def render() -> str:
    """Builds the settings, the meaning of the columns, and the tables and failures of both modes."""
    results = json.loads(RESULTS.read_text())
    return "\n".join([*settings(), *columns(), *mode_part("strict", results), *mode_part("extended", results)])


def settings() -> list[str]:
    """Builds the table of recommended settings."""
    lines = ["### Recommended settings", "", "| client | strict mode | extended mode |", "|---|---|---|"]
    for name in CLIENTS:
        client = CLIENTS[name]
        if client.recommended or client.not_over:
            lines.append(f"| {client.title} | {advice_for(client, 'strict')} | {advice_for(client, 'extended')} |")
    return [*lines, ""]


def advice_for(client: type[Client], mode: str) -> str:
    """Says what to set in one mode, and over which transport the client cannot run."""
    found = {transport: client.recommended.get((mode, transport), "") for transport in TRANSPORTS}
    texts = set(found.values())
    parts = [*texts] if len(texts) == 1 else [f"over {transport}: {text}" for transport, text in found.items() if text]
    parts += [f"not over {transport}: {why}" for transport, why in client.not_over.items()]
    return "; ".join(part for part in parts if part) or "none"


def columns() -> list[str]:
    """Explains the columns of the tables."""
    lines = ["### Operations", "", "| operation | the client is to |", "|---|---|"]
    return [*lines, *(f"| {name} | {what} |" for name, what in ALL.items()), ""]


def mode_part(mode: str, results: dict) -> list[str]:
    """Builds the part of one mode."""
    outcomes = [item for item in results["outcomes"] if item["mode"] == mode]
    lines = [f"### {mode.capitalize()} mode", ""]
    for operations in (OPERATIONS, PROGRAM_OPERATIONS):
        names = [name for name in CLIENTS if any(item["client"] == name and item["operation"] in operations for item in outcomes)]
        if names:
            lines += [*table(names, operations, outcomes, results["versions"]), ""]
    failed = failures(outcomes)
    return [*lines, *(["What failed, with the messages of the clients or of the server:", "", *failed] if failed else ["Nothing failed."]), ""]


def table(names: list[str], operations: dict[str, str], outcomes: list[dict], versions: dict[str, str]) -> list[str]:
    """Builds one table: a row for each client and kind of settings."""
    lines = ["| client | version | settings | " + " | ".join(operations) + " |", "|---" * (len(operations) + 3) + "|"]
    for name in names:
        for settings in ("defaults", "recommended"):
            row = [item for item in outcomes if (item["client"], item["settings"]) == (name, settings)]
            if row:
                cells = [cell(operation, row) for operation in operations]
                lines.append(f"| {CLIENTS[name].title} | {versions[name]} | {settings} | " + " | ".join(cells) + " |")
    return lines


def cell(operation: str, row: list[dict]) -> str:
    """Says over which transport an operation works."""
    run = {item["transport"] for item in row if item["operation"] == operation}
    well = {item["transport"] for item in row if item["operation"] == operation and not item["failure"]}
    if not run:
        return "–"
    return "yes" if well == run else f"{well.pop()} only" if well else "no"


def failures(outcomes: list[dict]) -> list[str]:
    """Lists what failed: each message with the clients that gave it and what they were doing."""
    found: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for item in outcomes:
        # What was not written cannot be read: the reason is in another line.
        if item["failure"] not in (None, NOT_WRITTEN):
            found[item["failure"]][item["client"]].append(item)
    lines = []
    for message, clients in found.items():
        texts = [f"{CLIENTS[name].title} ({what_failed(items)})" for name, items in clients.items()]
        lines.append(f"| `{message.replace('`', chr(39)).replace('|', '/')}` | {', '.join(texts)} |")
    return lines and ["| message | client (operations) |", "|---|---|", *lines]


def what_failed(items: list[dict]) -> str:
    """Names operations, and the transport and the settings if it was only one of two."""
    operations = ", ".join(dict.fromkeys(item["operation"] for item in items))
    settings, transports = ({item[column] for item in items} for column in ("settings", "transport"))
    over = f"; over {transports.pop()}" if len(transports) == 1 else ""
    return f"{operations}{over}{'; recommended settings too' if 'recommended' in settings else ''}"
