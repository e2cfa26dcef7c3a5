"""What a column of a frame is, by the estimators that read it and the ways in which it comes in."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sklearn")

from helpers.columns import CELLS, outcome

QUICK = {"HistGradientBoosting", "pipeline"}


def _cases() -> list[object]:
    cells = [cell for cell in CELLS if cell[1] in QUICK]
    return [pytest.param(*cell, marks=[] if number % 5 == 0 else pytest.mark.slow) for number, cell in enumerate(cells)]


@pytest.mark.parametrize(("kind", "reader", "way"), _cases())
def test_a_column_is_scored_as_the_estimator_predicts_or_refused_in_one_sentence(
    kind: str, reader: str, way: str, tmp_path: Path
) -> None:
    """No prediction is another one than the estimator's, and nothing else is raised than an error of brittle."""
    assert outcome(kind, reader, way, tmp_path)
