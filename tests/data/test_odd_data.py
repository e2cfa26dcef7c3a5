"""Odd data sets are refused by a fitting name, or scored by their meaning."""

from __future__ import annotations

import pytest
from helpers.odd_data import ODD_DATA, OddData, wrong


@pytest.mark.every_other
@pytest.mark.parametrize("odd", ODD_DATA, ids=lambda odd: odd.name)
def test_every_number_is_that_of_the_row_that_its_id_names(odd: OddData) -> None:
    outcome, problems = wrong(odd)
    assert not problems, outcome
