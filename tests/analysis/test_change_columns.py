"""Which columns of a table say what of the expected change."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.change_tables import change, curved_run, with_score

from brittle.analysis import expected_change_table


def test_which_columns_speak() -> None:
    """The exact Laplacian of the predicted class; the mean change, not clipped rather, of most draws."""
    table, curvature = curved_run(sigmas=())
    table = with_score(table, "laplacian", np.zeros(60), {"method": "exact", "target": 3})
    table = with_score(table, "laplacian", 2.0 * curvature, {"method": "exact"})
    for draws, factor in ((100, 7.0), (1000, 2.0)):
        table = with_score(table, "probability_change", factor * curvature, change(1.0, draws))
    table = with_score(table, "probability_change", 5.0 * curvature, change(1.0, 5000, clip=True))
    table = with_score(table, "probability_change", 5.0 * curvature, change(1.0, 5000) | {"statistic": "absolute"})
    frame = expected_change_table(table)
    assert len(frame) == 1
    row = frame.iloc[0]
    assert (row["laplacian"], row["draws"], row["clipped"]) == ("laplacian(method=exact)", 1000, False)
    assert row["slope"] == pytest.approx(2.0)
    only_clipped = with_score(curved_run(sigmas=())[0], "probability_change", curvature, change(1.0, clip=True))
    assert expected_change_table(only_clipped)["clipped"].tolist() == [True]


def test_noise_that_is_not_alike_in_all_directions_predicts_nothing() -> None:
    table, curvature = curved_run(sigmas=(0.1,))
    table = with_score(table, "probability_change", curvature, change(1.0, noise="diagonal_gaussian", scale="abc"))
    frame = expected_change_table(table)
    assert frame["points"].tolist() == [60, 0]
    assert frame["reason"].isna().tolist() == [True, False]
