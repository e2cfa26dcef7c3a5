"""Estimators beside Monte Carlo: the reference is held out, and its own error is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from helpers.frames import TWO_SIGMAS, column
from helpers.problems import inputs, small_classifier
from helpers.tables import make_table, with_scores, with_value
from scipy.stats import kendalltau

import brittle
from brittle.analysis import agreement, format_agreement
from brittle.analysis.agreement import by_setting
from brittle.analysis.columns import Setting
from brittle.measure import Sample
from brittle.scores import Moments, MonteCarlo


def row(frame: pd.DataFrame, **wanted: object) -> pd.Series:
    for name, value in wanted.items():
        frame = frame[frame[name] == value]  # pyright: ignore[reportAssignmentType] a cell, a column or a frame
    assert len(frame) == 1
    return frame.iloc[0]


def test_an_estimator_equal_to_the_reference_agrees_fully() -> None:
    table = make_table(points=40, scores=("mmse", "monte_carlo"), **TWO_SIGMAS)
    truth = column(table, "monte_carlo(draws=400, sigma=0.1)").value
    found = agreement(with_value(table, "mmse(draws=10, sigma=0.1)", truth.tolist()))
    same = row(found, sigma=0.1, estimator="mmse", budget=10)
    assert (same["mae"], same["tau"], same["points"], same["left_out"]) == (0.0, pytest.approx(1.0), 40, 0)
    assert not same["shares_draws"]
    assert same["reference_draws"] == 400


def test_the_held_out_reference_is_the_votes_of_the_other_draws() -> None:
    """Votes made by hand: the first 4 of 10 draws and the other 6 are known, and so is the answer."""
    votes = np.random.default_rng(0).random((30, 10)) < np.linspace(0.05, 0.95, 30)[:, None]
    table = make_table(points=30, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(4, 10))
    table = with_value(table, "monte_carlo(draws=4, sigma=0.1)", votes[:, :4].mean(axis=1).tolist())
    table = with_value(table, "monte_carlo(draws=10, sigma=0.1)", votes.mean(axis=1).tolist())
    rest, first = votes[:, 4:].mean(axis=1), votes[:, :4].mean(axis=1)
    moments = column(table, "moments(draws=4, sigma=0.1)").value.to_numpy()
    found = agreement(table)
    for estimator, values in (("monte_carlo", first), ("moments", moments)):
        held_out = row(found, estimator=estimator, budget=4)
        assert held_out["mae"] == pytest.approx(np.abs(values - rest).mean())
        assert held_out["tau"] == pytest.approx(kendalltau(values, rest).statistic)  # pyright: ignore[reportAttributeAccessIssue] SciPy says less than it gives
        assert held_out["reference_draws"] == 6
        assert held_out["mean_p_robust"] == pytest.approx(1.0 - rest.mean())
        assert held_out["floor"] == pytest.approx(np.sqrt(2 / np.pi) * np.sqrt(rest * (1 - rest) / 6).mean())
        assert not held_out["shares_draws"]
    whole = row(found, estimator="moments", budget=10)
    assert whole["shares_draws"]
    assert whole["mae"] == pytest.approx(
        np.abs(column(table, "moments(draws=10, sigma=0.1)").value - votes.mean(axis=1)).mean()
    )


def test_too_few_draws_left_or_votes_unknown_share_the_reference() -> None:
    table = make_table(points=10, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(10, 60, 100))
    found = agreement(table)
    assert found.set_index(["estimator", "budget"])["shares_draws"].to_dict() == {
        ("monte_carlo", 10): False,
        ("moments", 10): False,
        ("monte_carlo", 60): True,
        ("moments", 60): True,
        ("moments", 100): True,
    }
    kept = [entry for entry in table.record.scores if entry.label != "monte_carlo(draws=10, sigma=0.1)"]
    unknown = agreement(with_scores(table, kept))
    assert row(unknown, estimator="moments", budget=10)["shares_draws"]


SIGMA = 0.2


@dataclass(frozen=True)
class Copied(Moments):
    """Moments under another name, from outside."""

    name: ClassVar[str] = "copied"


@dataclass(frozen=True)
class Doubled(Copied):
    """One that reads twice the draws that its parameters say."""

    name: ClassVar[str] = "doubled"

    @property
    def needs(self) -> tuple[Sample]:
        return (Sample(self.noise, 2 * self.draws, self.clip),)


def test_a_score_from_outside_on_the_draws_of_the_reference_is_held_out_like_moments() -> None:
    scores = [MonteCarlo(SIGMA, draws=draws) for draws in (8, 16, 40)]
    others = [kind(SIGMA, draws=draws) for kind in (Moments, Copied, Doubled) for draws in (8, 40)]
    found = agreement(brittle.score(small_classifier(), inputs(12), [*scores, *others]))
    for budget, left, shares in ((8, 32, False), (40, 40, True)):
        own, copied = (row(found, estimator=name, budget=budget) for name in ("moments", "copied"))
        assert own["mae"] == copied["mae"]
        assert (own["shares_draws"], own["reference_draws"]) == (shares, left)
        assert (copied["shares_draws"], copied["reference_draws"]) == (shares, left)
    assert row(found, estimator="doubled", budget=8)["reference_draws"] == 24


def test_an_estimator_without_noise_is_compared_at_every_sigma() -> None:
    found = agreement(make_table(scores=("softmax", "monte_carlo"), **TWO_SIGMAS))
    softmax = found[found["estimator"] == "softmax"]
    assert softmax["sigma"].tolist() == [0.1, 0.2]
    assert softmax["budget"].isna().all()  # pyright: ignore[reportAttributeAccessIssue] a cell, a column or a frame


def test_agreement_is_sorted_and_counts_what_it_left_out() -> None:
    found = agreement(make_table(points=30, broken=4, **TWO_SIGMAS))
    assert found[["sigma", "cost"]].apply(tuple, axis=1).is_monotonic_increasing
    assert set(found["left_out"]) == {4}
    assert set(found["points"]) == {26}
    assert list(by_setting(found)) == [Setting(0.1, "gaussian"), Setting(0.2, "gaussian")]


def test_agreement_of_one_point_has_no_rank_correlation() -> None:
    found = agreement(make_table(points=1, **TWO_SIGMAS))
    assert found["tau"].isna().all()
    assert found["mae"].notna().all()


def test_no_monte_carlo_no_agreement() -> None:
    found = agreement(make_table(scores=("taylor", "softmax")))
    assert found.empty
    assert "No Monte Carlo" in format_agreement(found)


def test_the_error_of_monte_carlo_is_the_one_expected() -> None:
    """Counts of 50 and 1,000 draws of known p differ by `sqrt(2/pi) sqrt(p(1-p)(1/50 + 1/950))` on average."""
    table = make_table(points=2000, scores=("monte_carlo", "taylor"), sigmas=(0.25,), budgets=(50, 1000), images=False)
    found = row(agreement(table), estimator="monte_carlo")
    p = 1.0 - column(table, "monte_carlo(draws=1000, sigma=0.25)").value
    expected = np.sqrt(2 / np.pi) * np.sqrt(p * (1 - p) * (1 / 50 + 1 / 950)).mean()
    assert found["mae"] == pytest.approx(expected, rel=0.06)


def test_agreement_as_text() -> None:
    text = format_agreement(agreement(make_table(points=30, **TWO_SIGMAS)))
    assert text.count("against Monte Carlo with 400 draws") == 2
    assert "moments" in text
    assert "read draws of the reference itself" in text
    assert all(len(line) <= 110 for line in text.splitlines())
