"""Plain text: columns line up whatever the cells hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brittle.analysis.text import aligned, number, with_interval


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9)), min_size=1, max_size=6))
def test_rows_are_of_one_length_and_can_be_read(rows: list[tuple[str, str, str]]) -> None:
    lines = aligned(rows)
    assert len({len(line) for line in lines}) == 1
    assert all(line.isprintable() and line.startswith("  ") for line in lines)


@pytest.mark.parametrize(("value", "said"), [(math.nan, "-"), (0.12345, "0.123"), (math.inf, "inf"), (1e-9, "1e-09")])
def test_a_number_has_three_digits_that_count(value: float, said: str) -> None:
    assert number(value) == said
    row = {"x": value, "x_low": 0.0, "x_high": 1.0}
    assert with_interval(row, "x") == ("-" if math.isnan(value) else f"{said} [0, 1]")
