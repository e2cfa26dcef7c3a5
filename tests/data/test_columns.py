"""Types of the columns of a frame, by the estimators that read them and the sources of the frame."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from helpers.columns import CELLS, outcome

QUICK = {"HistGradientBoosting", "pipeline"}


def _cases() -> list[object]:
    cells = [cell for cell in CELLS if cell[1] in QUICK]
    return [pytest.param(*cell, marks=[] if number % 5 == 0 else pytest.mark.slow) for number, cell in enumerate(cells)]


@pytest.mark.parametrize(("kind", "reader", "source"), _cases())
def test_a_column_is_scored_as_predicted_or_refused(kind: str, reader: str, source: str, tmp_path: Path) -> None:
    """Predictions are those of the estimator, and only errors of brittle are raised."""
    assert outcome(kind, reader, source, tmp_path)
