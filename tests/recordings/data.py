"""The recorded answers of AWS S3: where they are, and what a scenario's steps were answered.

They are data of another project (LocalStack, Apache-2.0) and not part of this repository. Without them every test of this folder fails.
"""

import functools
import json
import os
from pathlib import Path

from harness.server import REPOSITORY

# The folder with the recordings; by default the folder `shared` beside the checkout has it.
VARIABLE = "CAIRN_AWS_RECORDINGS"
FOLDER = Path(os.environ.get(VARIABLE) or REPOSITORY.parent / "shared" / "aws-recordings")
FILES = ("test_s3.json", "test_s3_api.json", "test_s3_cors.json", "test_s3_list_operations.json", "test_s3_preconditions.json")


class MissingRecordings(AssertionError):
    """The data is not on this machine, so nothing can be said."""


@functools.cache
def recordings() -> dict[str, dict]:
    """Returns the steps of every scenario by its name, `Class::test`."""
    found: dict[str, dict] = {}
    for name in FILES:
        path = FOLDER / name
        if not path.is_file():
            raise MissingRecordings(f"{path} is missing; set {VARIABLE} to the folder with AWS's recorded answers")
        for test, record in json.loads(path.read_text()).items():
            found[test.split("::", 1)[1]] = record.get("recorded-content") or {}
    return found
