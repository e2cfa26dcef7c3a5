"""Mistakes in how trained networks are given are noticed, and healthy set-ups raise no alarm; the fast part.

`python -m checks.set_ups` makes the whole table, with networks by others.
"""

from __future__ import annotations

import pytest
from helpers.set_ups import VARIATIONS, SetUp, of_digits, of_tables, wrong_ones

KNOWN = {it.name: it for it in (*of_digits(), *of_tables())}


@pytest.fixture(params=KNOWN)
def set_up(request: pytest.FixtureRequest) -> SetUp:
    return KNOWN[request.param]


def test_a_healthy_set_up_raises_no_alarm(set_up: SetUp) -> None:
    assert {name: said for name, vary in VARIATIONS.items() if (said := vary(set_up).said())} == {}


def test_mistakes_that_cost_a_sixth_of_the_labels_are_noticed(set_up: SetUp) -> None:
    """Of two classes none by which values are shifted and scaled: that may favour one class, and do no more."""
    made = dict(wrong_ones(set_up, cost=1 / 6))
    unsaid = [name for name, wrong in made.items() if not wrong.said()]
    assert made
    assert all(name.startswith("normalised") and int(set_up.y.max()) == 1 for name in unsaid), unsaid
