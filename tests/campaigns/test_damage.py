"""The short version of the damage campaign for `./test`; `tests/campaign damage` is the long one."""

import os
from pathlib import Path

from harness import damage_campaign

SEED = int(os.environ.get("DAMAGE_SEED", "1"))
PAYLOAD_FLIPS = 200
METADATA_FLIPS = 50


def test_every_flipped_bit_is_found_and_none_is_served(run_folder: Path):
    """Bits are flipped in payloads, check tables, records and bookkeeping."""
    report = damage_campaign.run(run_folder / "damage", SEED, PAYLOAD_FLIPS, METADATA_FLIPS)
    assert report.payload_found == PAYLOAD_FLIPS
    assert report.table_flips + report.record_flips + report.bookkeeping_flips == METADATA_FLIPS
    print(report.line())
