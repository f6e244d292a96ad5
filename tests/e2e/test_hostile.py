"""Attacks others through the server: crowds that are slow, silent or rude must not keep anybody else from being served.

A slice of tests/hostile/run: fewer connections, short measurements, and no judgement of speed beyond that nobody waits for
the crowd to go away.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.hostile import ATTACKS, Attack, attacked_store, measure

# In parts of the whole. Those that need their numbers to show anything keep them.
PART = 4
WHOLE = ("more slow uploads than there is memory for", "too few descriptors")
WINDOW_SECONDS = 2
# Slower is a wait for the crowd; see FILL_PATIENCE in engine/src/limits.rs.
P99_MS_MAX = 8000


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
def test_others_are_served(run_folder: Path, attack: Attack):
    """No error, no wrong byte, bounded memory; and whoever comes when the crowd has left is served.

    Slow uploads used to keep the memory that they were granted: with 2600 of them no other upload of the executor went on.
    """
    if attack.name not in WHOLE:
        attack = replace(attack, connections=attack.connections // PART)
    with attacked_store(run_folder / f"hostile-{attack.name.replace(' ', '-')}", attack) as store:
        result = measure(store, attack, WINDOW_SECONDS)
    assert not result.problems(), result.line()
    assert result.attacked.p99_ms < P99_MS_MAX, result.line()
