"""Clients that are programs of their own: those around the AWS SDKs under tests/clients, and mc."""

import os

from .server import REPOSITORY

TOOLS = REPOSITORY / "tests/.tools/bin"
SDK_PROGRAMS = {
    "javascript": ["node", str(REPOSITORY / "tests/clients/javascript/client.mjs")],
    "go": [os.environ.get("CAIRN_GO_CLIENT", str(TOOLS / "go-client"))],
}
MC = os.environ.get("CAIRN_MC", str(TOOLS / "mc"))
