"""The short version of the salvage campaign for `./test`; `tests/campaign salvage` is the long one."""

import os
from pathlib import Path

import pytest

from harness import salvage_campaign

SEED = int(os.environ.get("SALVAGE_SEED", "1"))
DAMAGES = 25
OBJECTS = 80


@pytest.mark.parametrize("encryption", [False, True])
def test_every_intact_object_is_salvaged_and_every_other_one_is_named(run_folder: Path, encryption: bool):
    """Random damage hits all kinds of files of a stopped store, which is only read."""
    report = salvage_campaign.run(run_folder / f"salvage-{encryption}", SEED, DAMAGES, OBJECTS, encryption)
    assert report.rounds == DAMAGES and 0 < report.intact <= report.salvaged
    print(report.line())
