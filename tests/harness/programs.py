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
JARS = REPOSITORY / "tests/.tools"
# The programs of the compatibility matrix, which make one call for each line of JSON.
MATRIX_PROGRAMS = {
    "javascript": ["node", str(REPOSITORY / "tests/clients/javascript/calls.mjs")],
    "minio-js": ["node", str(REPOSITORY / "tests/clients/javascript/minio.mjs")],
    "go": [*SDK_PROGRAMS["go"], "calls"],
    "java": ["java", "-cp", f"{JARS}/java:{JARS}/java/*", "Calls"],
    "hadoop": ["java", "-cp", f"{JARS}/hadoop:{JARS}/hadoop/*", "HadoopCalls"],
    "iceberg": ["java", "-cp", f"{JARS}/iceberg:{JARS}/iceberg/*", "IcebergCalls"],
    "rust": [str(TOOLS / "rust-client")],
    "ruby": ["ruby", str(REPOSITORY / "tests/clients/ruby/calls.rb")],
}
