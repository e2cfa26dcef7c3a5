"""Sequences side by side: points that lack a number in one are left out of all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brittle.analysis.paired import check_epsilon, one_length, paired
from brittle.errors import ParameterError

CELLS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


@given(st.lists(st.tuples(CELLS, CELLS), max_size=20))
def test_what_is_kept_is_a_number_in_both(rows: list[tuple[float | None, float | None]]) -> None:
    left, right = [row[0] for row in rows], [row[1] for row in rows]
    kept, dropped = paired(left=left, right=right)  # pyright: ignore[reportArgumentType] None is no number
    whole = [row for row in rows if not any(cell is None or math.isnan(cell) for cell in row)]
    assert list(zip(kept[0].tolist(), kept[1].tolist(), strict=True)) == whole
    assert dropped == len(rows) - len(whole)


def test_sequences_of_two_lengths_are_refused_with_both() -> None:
    with pytest.raises(ParameterError, match=r"as many each; found margin \[2\], score \[3\]"):
        one_length(margin=[1, 2], score=[1, 2, 3])
    with pytest.raises(ParameterError, match=r"table \[2, 2\]"):
        one_length(table=np.zeros((2, 2)))


@pytest.mark.parametrize("epsilon", [-1e-300, -math.inf, math.nan])
def test_a_distance_is_not_negative(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="at least 0"):
        check_epsilon(epsilon)
    assert check_epsilon(0) == 0
