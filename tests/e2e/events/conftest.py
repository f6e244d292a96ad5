"""Receivers of webhooks."""

from collections.abc import Callable, Iterator

import pytest

from harness.receiver import Receiver


@pytest.fixture
def make_receiver() -> Iterator[Callable[..., Receiver]]:
    """Makes receivers, which are closed at the end."""
    made: list[Receiver] = []

    def make(*arguments: object, **options: object) -> Receiver:
        made.append(Receiver(*arguments, **options))
        return made[-1]

    yield make
    for receiver in made:
        receiver.close()
