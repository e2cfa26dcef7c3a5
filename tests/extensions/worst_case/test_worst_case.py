"""The worst-case table has the right orientation, points and words, on a run with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.tables import make_table, with_score, with_value

from brittle.analysis import detection, margin_consistency, worst_case_table
from brittle.analysis.columns import margin_columns
from brittle.estimate import INPUT_MARGIN
from brittle.extensions.worst_case.table import safer
from brittle.store.table import Table

EPSILON = 0.5


def worst_case_run(points: int = 60, seed: int = 0) -> tuple[Table, np.ndarray]:
    """Make a run with a perfectly consistent entropy, a nearly consistent logit margin and a random confidence."""
    generator = np.random.default_rng(seed)
    margin = generator.gamma(2.0, 0.4, points)
    table = make_table(points=points, scores=("logit_margin", "taylor"), sigmas=(0.1,))
    table = with_value(table, "logit_margin", (margin * generator.lognormal(0.0, 0.2, points)).tolist())
    table = with_value(table, "taylor(sigma=0.1)", np.exp(-40.0 * margin).tolist())
    table = with_score(table, "entropy", (-margin).tolist())
    table = with_score(table, "max_probability", generator.random(points).tolist())
    table = with_score(table, "bystander", margin.tolist())
    return with_score(table, INPUT_MARGIN, margin.tolist(), {"norm": "linf"}), margin


def test_rows_are_oriented_and_sorted() -> None:
    table, margin = worst_case_run()
    frame = worst_case_table(table, EPSILON)
    assert frame["score"].tolist() == ["taylor(sigma=0.1)", "entropy", "logit_margin", "max_probability"]
    assert frame["tau"].tolist()[:2] == pytest.approx([1.0, 1.0])
    assert frame["auroc"].tolist()[:2] == [1.0, 1.0]
    assert set(frame["norm"]) == {"linf"}
    assert set(frame["positives"]) == {int((margin <= EPSILON).sum())}
    assert frame["tau"][3] < 0.4


def test_a_row_agrees_with_the_functions_of_arrays() -> None:
    table, margin = worst_case_run()
    row = worst_case_table(table, EPSILON).set_index("score").loc["logit_margin"]
    score = next(column for column in table.columns if column.label == "logit_margin").value
    order, detected = margin_consistency(margin, score), detection(margin, score, EPSILON)
    assert (row["tau"], row["tau_low"], row["tau_high"]) == (order.value, order.low, order.high)
    assert (row["auroc"], row["aupr"], row["fpr95"]) == (detected.auroc, detected.aupr, detected.fpr_at_95_tpr)


def test_flip_probabilities_below_rounding_are_ordered() -> None:
    table, _ = worst_case_run()
    table = with_value(table, "taylor(sigma=0.1)", (1e-20 * np.arange(60.0)).tolist())
    column = next(column for column in table.columns if column.score == "taylor")
    values = safer(column)
    assert values is not None
    assert values.nunique() == 60


def test_norms_are_chosen_by_name() -> None:
    table, margin = worst_case_run()
    table = with_score(table, INPUT_MARGIN, (3.0 * margin).tolist(), {"norm": "l2"})
    assert [column.parameters["norm"] for column in margin_columns(table)] == ["linf", "l2"]
    assert set(worst_case_table(table, EPSILON)["norm"]) == {"linf"}
    euclidean = worst_case_table(table, EPSILON, norm="l2")
    assert set(euclidean["norm"]) == {"l2"}
    assert set(euclidean["positives"]) == {int((3.0 * margin <= EPSILON).sum())}


def test_a_run_without_margins_is_an_empty_frame() -> None:
    table = make_table(points=5)
    assert worst_case_table(table, EPSILON).empty
    assert worst_case_table(worst_case_run()[0], EPSILON, norm="l2").empty


REPLICATES, MOST_MISSES = 120, 9


def copula(rho: float, *shape: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw pairs of a Gaussian copula, whose tau is `2 / pi asin(rho)`."""
    latent, noise = np.random.default_rng(seed).standard_normal((2, *shape))
    return np.exp(latent), rho * latent + math.sqrt(1.0 - rho**2) * noise


# Tau


def test_the_same_order_is_perfect() -> None:
    margin = np.random.default_rng(0).gamma(2.0, size=50)
    same, reverse = margin_consistency(margin, np.log(margin)), margin_consistency(margin, -margin)
    assert (same.value, same.high, same.points) == (pytest.approx(1.0), 1.0, 50)
    assert same.low == pytest.approx(2.0 * 0.005 ** (1 / 25) - 1.0)
    assert (reverse.value, reverse.low, reverse.high) == (pytest.approx(-1.0), -1.0, pytest.approx(-same.low))


def test_missing_numbers_are_left_out_and_counted() -> None:
    correlation = margin_consistency([0.1, None, 0.3, math.nan, 0.4], [1.0, 2.0, None, 3.0, 2.0])  # pyright: ignore[reportArgumentType] None is no number
    assert (correlation.points, correlation.dropped, correlation.value) == (2, 3, 1.0)
    assert (correlation.low, correlation.high) == (-1.0, 1.0)


@pytest.mark.parametrize("margin", [[], [0.5], [math.inf] * 20])
def test_margins_without_an_order_have_no_correlation(margin: list[float]) -> None:
    correlation = margin_consistency(margin, np.arange(len(margin)))
    assert math.isnan(correlation.value)
    assert (correlation.low, correlation.high) == (-1.0, 1.0)


def test_the_interval_covers() -> None:
    rho = 0.95
    truth = 2.0 / math.pi * math.asin(rho)
    correlations = [margin_consistency(*pair) for pair in zip(*copula(rho, REPLICATES, 40, seed=1), strict=True)]
    assert sum(not correlation.low <= truth <= correlation.high for correlation in correlations) <= MOST_MISSES
    halved = [((tau.low + tau.value) / 2.0, (tau.high + tau.value) / 2.0) for tau in correlations]
    assert sum(not low <= truth <= high for low, high in halved) > MOST_MISSES
    assert np.mean([correlation.high - correlation.low for correlation in correlations]) < 0.65
