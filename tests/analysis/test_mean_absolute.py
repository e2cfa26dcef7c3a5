"""The mean of the absolute values of a score."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.change_tables import LAPLACIAN, curved_run, with_score
from helpers.tables import make_table

from brittle.analysis import mean_absolute


def test_mean_absolute_is_the_mean_of_the_absolute_values() -> None:
    table, curvature = curved_run()
    found = mean_absolute(table)
    assert found.mean == pytest.approx(np.abs(curvature).mean())
    assert 0.0 <= found.low < found.mean < found.high
    assert (found.label, found.points, found.dropped) == ("laplacian(method=auto)", 60, 0)
    assert mean_absolute(table, table.columns[0]) == found == mean_absolute(table, "laplacian(method=auto)")
    nothing = mean_absolute(with_score(make_table(points=2, scores=()), "laplacian", [math.nan] * 2, LAPLACIAN))
    assert (nothing.points, nothing.dropped, nothing.low, nothing.high) == (0, 2, 0.0, math.inf)
    assert math.isnan(nothing.mean)
