"""External client programs: the AWS SDK programs of tests/clients, mc and warp."""

import os

from .server import REPOSITORY

TOOLS = REPOSITORY / "tests/.tools/bin"
SDK_PROGRAMS = {
    "javascript": ["node", str(REPOSITORY / "tests/clients/javascript/client.mjs")],
    "go": [os.environ.get("CAIRN_GO_CLIENT", str(TOOLS / "go-client"))],
}
WARP = os.environ.get("CAIRN_WARP", str(TOOLS / "warp"))
MC = os.environ.get("CAIRN_MC", str(TOOLS / "mc"))
