"""Hostile clients must not block other clients.

The attacks are many slow, silent or malformed connections. This is a short version of `tests/campaign hostile`, with
fewer connections and shorter measurements. It does not judge speed, except that other clients must not have to wait
until the attack ends.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.hostile import ATTACKS, Attack, attacked_store, measure

# Divides the number of connections. Attacks in WHOLE need their full number to have an effect.
PART = 4
WHOLE = ("more slow uploads than there is memory for", "too few descriptors")
WINDOW_SECONDS = 2
QUIET_REQUESTS = 64
# A slower request waited for the attackers; see FILL_PATIENCE in engine/src/limits.rs.
P99_MS_MAX = 20_000


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
def test_other_clients_are_served_during_an_attack(run_folder: Path, attack: Attack):
    """No error, no wrong byte, bounded memory. After the attack, new requests are served.

    Regression: slow uploads kept their memory permits. With 2600 of them, all other uploads of the executor stopped.
    """
    if attack.name not in WHOLE:
        attack = replace(attack, connections=attack.connections // PART)
    with attacked_store(run_folder / f"hostile-{attack.name.replace(' ', '-')}", attack) as store:
        result = measure(store, attack, WINDOW_SECONDS, QUIET_REQUESTS)
    assert not result.problems(), result.line()
    assert result.attacked.p99_ms < P99_MS_MAX, result.line()
