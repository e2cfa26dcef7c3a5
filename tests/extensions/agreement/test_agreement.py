"""Estimators against Monte Carlo: the reference is held out, and its expected error is reported."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.tables import make_table, with_scores, with_value
from scipy.stats import kendalltau

from brittle.analysis import agreement


def row(frame: pd.DataFrame, **cells: object) -> pd.Series:
    for name, value in cells.items():
        frame = frame[frame[name] == value]  # pyright: ignore[reportAssignmentType] a cell, a column or a frame
    assert len(frame) == 1
    return frame.iloc[0]


def test_an_estimator_equal_to_the_reference_agrees_fully() -> None:
    table = make_table(points=40, scores=("mmse", "monte_carlo"), sigmas=(0.1, 0.2), budgets=(10, 400))
    truth = table["monte_carlo(draws=400, sigma=0.1)"].value
    frame = agreement(with_value(table, "mmse(draws=10, sigma=0.1)", truth.tolist()))
    same = row(frame, sigma=0.1, estimator="mmse", budget=10)
    assert (same["mae"], same["tau"], same["points"], same["left_out"]) == (0.0, pytest.approx(1.0), 40, 0)
    assert not same["shares_draws"]
    assert same["reference_draws"] == 400


def test_the_held_out_reference_is_the_votes_of_the_other_draws() -> None:
    """Votes by hand: the first 4 of 10 draws against the other 6."""
    votes = np.random.default_rng(0).random((30, 10)) < np.linspace(0.05, 0.95, 30)[:, None]
    table = make_table(points=30, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(4, 10))
    table = with_value(table, "monte_carlo(draws=4, sigma=0.1)", votes[:, :4].mean(axis=1).tolist())
    table = with_value(table, "monte_carlo(draws=10, sigma=0.1)", votes.mean(axis=1).tolist())
    truth, shared = votes[:, 4:].mean(axis=1), votes[:, :4].mean(axis=1)
    moments = table["moments(draws=4, sigma=0.1)"].value.to_numpy()
    frame = agreement(table)
    for estimator, values in (("monte_carlo", shared), ("moments", moments)):
        held_out = row(frame, estimator=estimator, budget=4)
        assert held_out["mae"] == pytest.approx(np.abs(values - truth).mean())
        assert held_out["tau"] == pytest.approx(kendalltau(values, truth).statistic)  # pyright: ignore[reportAttributeAccessIssue] SciPy says less than it gives
        assert held_out["reference_draws"] == 6
        assert held_out["mean_p_robust"] == pytest.approx(1.0 - truth.mean())
        assert held_out["floor"] == pytest.approx(np.sqrt(2 / np.pi) * np.sqrt(truth * (1 - truth) / 6).mean())
        assert not held_out["shares_draws"]
    full = row(frame, estimator="moments", budget=10)
    assert full["shares_draws"]
    assert full["mae"] == pytest.approx(np.abs(table["moments(draws=10, sigma=0.1)"].value - votes.mean(axis=1)).mean())


def test_too_few_draws_left_or_votes_unknown_share_the_reference() -> None:
    table = make_table(points=10, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(10, 60, 100))
    frame = agreement(table)
    assert frame.set_index(["estimator", "budget"])["shares_draws"].to_dict() == {
        ("monte_carlo", 10): False,
        ("moments", 10): False,
        ("monte_carlo", 60): True,
        ("moments", 60): True,
        ("moments", 100): True,
    }
    entries = [entry for entry in table.record.scores if entry.label != "monte_carlo(draws=10, sigma=0.1)"]
    unknown = agreement(with_scores(table, entries))
    assert row(unknown, estimator="moments", budget=10)["shares_draws"]


def test_an_estimator_without_noise_is_compared_at_every_sigma() -> None:
    frame = agreement(make_table(scores=("softmax", "monte_carlo"), sigmas=(0.1, 0.2), budgets=(10, 400)))
    softmax = frame[frame["estimator"] == "softmax"]
    assert softmax["sigma"].tolist() == [0.1, 0.2]
    assert softmax["budget"].isna().all()  # pyright: ignore[reportAttributeAccessIssue] a cell, a column or a frame


def test_no_monte_carlo_no_agreement() -> None:
    frame = agreement(make_table(scores=("taylor", "softmax")))
    assert frame.empty


def test_the_error_of_monte_carlo_is_the_one_expected() -> None:
    """Counts of 50 and 1,000 draws of known p differ by `sqrt(2/pi) sqrt(p(1-p)(1/50 + 1/950))` on average."""
    table = make_table(points=2000, scores=("monte_carlo", "taylor"), sigmas=(0.25,), budgets=(50, 1000), images=False)
    comparison = row(agreement(table), estimator="monte_carlo")
    p = 1.0 - table["monte_carlo(draws=1000, sigma=0.25)"].value
    expected = np.sqrt(2 / np.pi) * np.sqrt(p * (1 - p) * (1 / 50 + 1 / 950)).mean()
    assert comparison["mae"] == pytest.approx(expected, rel=0.06)
