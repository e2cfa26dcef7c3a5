"""Rank correlation of scores: more is safer, whatever the score."""

from __future__ import annotations

from helpers.frames import TWO_SIGMAS
from helpers.tables import make_table

from brittle.analysis import rank_correlation


def test_rank_correlation_is_oriented_so_that_more_is_safer() -> None:
    table = make_table(points=200, scores=("monte_carlo", "softmax", "logit_margin", "taylor"), **TWO_SIGMAS)
    cheap = [c for c in table.columns if c.setting == c.setting.without_noise]
    found = rank_correlation(table, cheap)
    assert found["score"].tolist() == ["softmax", "logit_margin"]
    assert (found["tau"] > 0.4).all()
    assert ((found["low"] < found["tau"]) & (found["tau"] < found["high"])).all()
