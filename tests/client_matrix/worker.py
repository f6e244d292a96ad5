"""Runs one client against one server with one kind of settings, in a process of its own.

    python -m client_matrix.worker CLIENT SETTINGS FOLDER < server.json

It prints one line of JSON for each operation: its name, and what the client said if it failed.
"""

import json
import sys
import traceback
from pathlib import Path

from client_matrix.clients import CLIENTS
from client_matrix.operations import ALL, NOT_WRITTEN, PROGRAM_OPERATIONS
from client_matrix.workspace import Workspace, Refused, Server


def outcome(client: object, operation: str) -> str | None:
    """Runs one operation; returns None, or what went wrong."""
    try:
        getattr(client, operation)()
    except Refused as refused:
        return str(refused).strip() or "failed without a message"
    except Exception as error:  # Each library has exceptions of its own.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error}".strip() or f"{frame.name}, line {frame.lineno}"
    return None


def main() -> None:
    """Runs the operations that the client offers, or those that the command line names."""
    name, settings, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    wanted = sys.argv[4:] or list(ALL)
    given = json.load(sys.stdin)
    server = Server(**given | {"authority": Path(given["authority"])})
    made = CLIENTS[name]
    client, written = made(Workspace(server, settings, folder)), True
    for operation in wanted:
        if made.offers(operation):
            # What was not written cannot be read.
            failure = outcome(client, operation) if written else NOT_WRITTEN
            written &= operation not in PROGRAM_OPERATIONS or failure is None or operation != "write"
            print(json.dumps({"operation": operation, "failure": failure}), flush=True)
    client.end()


if __name__ == "__main__":
    main()
