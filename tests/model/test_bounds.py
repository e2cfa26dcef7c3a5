"""The declared range of an input: two finite, increasing numbers, and rounding beyond them."""

from __future__ import annotations

import math

import pytest

from brittle.errors import ParameterError
from brittle.model.bounds import TOLERANCE, allowed_range, check_bounds

BAD = [(), (1.0,), (0.0, 1.0, 2.0), (1.0, 0.0), (1.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-math.inf, 0.0)]


@pytest.mark.parametrize("bounds", BAD, ids=str)
def test_what_is_no_range_is_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="finite and increasing; found") as caught:
        check_bounds(bounds)
    assert caught.value.code == "bounds"


@pytest.mark.parametrize("bounds", [(0, 1), (-1.0, 1.0), (-1e30, 1e30), (5, 5 + 1e-9)], ids=str)
def test_rounding_beyond_the_bounds_is_a_share_of_their_distance(bounds: tuple[float, float]) -> None:
    low, high = check_bounds(bounds)
    least, most = allowed_range((low, high))
    assert least < low < high < most or high - low < 1e-8
    assert most - least == pytest.approx((high - low) * (1 + 2 * TOLERANCE), rel=1e-5)
