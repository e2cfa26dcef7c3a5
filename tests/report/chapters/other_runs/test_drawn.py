"""What is drawn of this run beside another one."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.change_runs import beside, other_run

from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_both_runs_are_drawn_by_their_quantiles(table: Table) -> None:
    other = other_run()
    (run,) = beside(table, {"other": other}).runs
    assert [panel.title for panel in run.spreads] == ["|Laplacian|", "p_robust, sigma 0.2"]
    for drawn, one in zip(run.spreads[0].frame.to_dict("records"), (table, other), strict=True):
        values = np.abs(next(column for column in one.columns if column.score == "laplacian").value)
        assert drawn["q50"] == pytest.approx(np.median(values))
        assert drawn["q05"] == pytest.approx(np.quantile(values, 0.05))
