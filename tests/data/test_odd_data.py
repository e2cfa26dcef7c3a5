"""Odd data sets are refused by a name that fits, or scored as what they mean."""

from __future__ import annotations

import pytest
from helpers.odd_data import ODD_DATA, OddData, wrong


@pytest.mark.parametrize("odd", ODD_DATA, ids=lambda odd: odd.name)
def test_every_number_is_that_of_the_row_that_its_id_names(odd: OddData) -> None:
    said, problems = wrong(odd)
    assert not problems, said
