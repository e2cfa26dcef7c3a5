"""A scale for numbers of any sign and size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brittle.report.charts_symlog import DECADES, TICKS, symlog


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e15])
@pytest.mark.parametrize("offset", [-5.0, 0.0, 5.0])
def test_a_scale_holds_its_numbers(scale: float, offset: float) -> None:
    values = scale * (np.random.default_rng(0).standard_t(1, 500) + offset)
    found = symlog(values)
    assert found.domain[0] <= min(values.min(), 0.0)
    assert found.domain[1] >= max(values.max(), 0.0)
    assert found.constant >= np.abs(values).max() * 10.0**-DECADES * (1.0 - 1e-12)
    assert found.ticks[0] == 0.0
    assert 2 <= len(found.ticks) <= 1 + 2 * TICKS
    assert all(found.domain[0] <= tick <= found.domain[1] for tick in found.ticks)


def test_a_scale_of_nothing_is_a_scale() -> None:
    for values in ([], [0.0, 0.0], [math.nan, math.inf]):
        found = symlog(values)
        assert found.domain[0] < found.domain[1]
        assert found.constant > 0.0
