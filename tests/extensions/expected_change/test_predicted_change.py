"""Prediction against sampling: known answers where the prediction is exact, laws, and intervals that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.change_runs import LAPLACIAN, change, curved_run, flipping_run
from helpers.tables import make_table, with_score, without_score
from scipy.stats import mannwhitneyu

from brittle.analysis import (
    expected_change_points,
    expected_change_table,
    label_flips,
    mean_absolute,
)
from brittle.analysis.mean_interval import mean_interval
from brittle.errors import ParameterError
from brittle.extensions.expected_change.predicted_change import NO_MAX_PROBABILITY


def test_an_exact_prediction_has_slope_ratio_and_agreement_one() -> None:
    frame = expected_change_table(curved_run()[0])
    assert frame["sigma"].tolist() == [0.1, 0.5]
    for name in ("slope", "ratio", "spearman", "agreement"):
        assert frame[name].to_numpy() == pytest.approx(1.0, abs=1e-12), name
        assert (frame[f"{name}_low"] <= frame[name]).all()
        assert (frame[f"{name}_high"] >= frame[name]).all()
    assert frame["decided"].tolist() == frame["points"].tolist() == [60, 60]
    assert (frame["spearman_low"] > 0.0).all()
    assert frame["agreement_low"][0] == pytest.approx(0.005 ** (1 / 60))  # Clopper-Pearson without a failure


def test_the_slope_and_the_ratio_are_those_of_the_change() -> None:
    table, curvature = curved_run(sigmas=())
    sampled = 3.0 * 0.02 * curvature
    sampled[np.argmax(np.abs(curvature))] *= -1.0
    row = expected_change_table(with_score(table, "probability_change", sampled, change(0.2))).iloc[0]
    predicted = 0.02 * curvature
    assert row["slope"] == pytest.approx((predicted @ sampled) / (predicted @ predicted))
    assert row["slope"] < 2.5
    assert row["ratio"] == pytest.approx(3.0)
    assert row["agreement"] == pytest.approx(59 / 60)
    half = (row["slope_high"] - row["slope_low"]) / 2
    left_out = np.array(
        [np.delete(predicted, i) @ np.delete(sampled, i) / (np.delete(predicted, i) ** 2).sum() for i in range(60)]
    )
    error = math.sqrt(59 / 60 * ((left_out - left_out.mean()) ** 2).sum())
    assert half == pytest.approx(2.6617589 * error, rel=1e-6)  # Student's quantile at 59 degrees of freedom, 99%


def test_signs_are_counted_only_where_sampling_decides_them() -> None:
    table, curvature = curved_run(sigmas=())
    half = float(np.median(np.abs(0.02 * curvature)))
    table = with_score(table, "probability_change", -0.02 * curvature, change(0.2), half=half)
    decided = np.abs(0.02 * curvature) > half
    row = expected_change_table(table).iloc[0]
    assert (row["decided"], row["agreement"]) == (decided.sum(), 0.0)
    assert row["spearman"] == pytest.approx(-1.0)
    assert row["spearman_high"] < 0.0


def test_points_without_a_number_are_counted() -> None:
    table, curvature = curved_run(sigmas=())
    curvature[:3], curvature[59] = math.nan, math.inf
    table = with_score(table, "laplacian", curvature, {"method": "exact"})
    sampled = np.where(np.arange(60) == 10, math.nan, curvature)
    row = expected_change_table(with_score(table, "probability_change", sampled, change(1.0))).iloc[0]
    assert (row["points"], row["dropped"]) == (55, 5)
    assert row["slope"] == pytest.approx(2.0)


def test_a_run_without_the_scores_gives_empty_tables() -> None:
    table = make_table(points=5)
    frame, flips = expected_change_table(table), label_flips(table)
    assert frame.empty
    assert flips.empty
    assert list(expected_change_points(table).columns) == list(expected_change_points(curved_run()[0]).columns)
    assert list(frame.columns) == list(expected_change_table(curved_run()[0]).columns)
    nothing = with_score(curved_run(sigmas=(0.1,))[0], "laplacian", [math.nan] * 60, {"method": "exact"})
    assert expected_change_table(nothing)["laplacian"].tolist() == ["laplacian(method=auto)"]
    with_nan = with_score(make_table(points=5, scores=()), "laplacian", [math.nan] * 5, LAPLACIAN)
    assert expected_change_table(with_score(with_nan, "probability_change", [0.1] * 5, change(1.0))).empty


def test_parameters_out_of_range_are_refused() -> None:
    table = flipping_run()[0]
    with pytest.raises(ParameterError, match="confident must be a probability"):
        label_flips(table, confident=80)
    with pytest.raises(ParameterError, match="at least 1 point"):
        label_flips(table, group=0)
    with pytest.raises(ParameterError, match="infinite at 1 points"):
        mean_absolute(table, with_score(table, "far", [math.inf] * 1 + [1.0] * 199)["far"])


def test_the_representative_columns_are_compared() -> None:
    """The exact Laplacian of the predicted class; the mean change with the most draws, preferably without clipping."""
    table, curvature = curved_run(sigmas=())
    table = with_score(table, "laplacian", np.zeros(60), {"method": "exact", "rank": 2})
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


def test_anisotropic_noise_has_no_predicted_change() -> None:
    table, curvature = curved_run(sigmas=(0.1,))
    table = with_score(table, "probability_change", curvature, change(1.0, noise="diagonal_gaussian", scale="abc"))
    frame = expected_change_table(table)
    assert frame["points"].tolist() == [60, 0]
    assert frame["reason"].isna().tolist() == [True, False]


def test_the_groups_are_those_of_the_paper() -> None:
    table, numbers = flipping_run()
    frame = label_flips(table, confident=0.8, group=20)
    assert frame["sigma"].tolist() == [0.01, 0.1]
    row = frame.iloc[1]
    chosen = numbers[numbers["sure"] >= 0.8].sort_values("laplacian")  # pyright: ignore[reportCallIssue] a cell, a column or a frame
    lowest, highest = chosen["flips"][:20], chosen["flips"][-20:]
    assert (row["points"], row["group"], row["dropped"], row["draws"]) == (len(chosen), 20, 0, 100)
    assert (row["lowest"], row["lowest_low"], row["lowest_high"]) == pytest.approx(mean_interval(lowest, 0.99))
    assert row["highest"] == pytest.approx(highest.mean())
    assert row["p_flips"] == pytest.approx(mannwhitneyu(lowest, highest, alternative="greater").pvalue)
    assert row["p_flips"] < 1e-6
    assert row["reason"] is None


def test_without_confidences_there_are_no_groups_but_a_reason() -> None:
    table = flipping_run()[0]
    row = label_flips(without_score(table, "max_probability")).iloc[1]
    assert (row["reason"], row["points"], row["group"], row["dropped"]) == (NO_MAX_PROBABILITY, 0, 0, 200)


def test_mean_absolute_is_the_mean_of_the_absolute_values() -> None:
    table, curvature = curved_run()
    interval = mean_absolute(table)
    assert interval.mean == pytest.approx(np.abs(curvature).mean())
    assert 0.0 <= interval.low < interval.mean < interval.high
    assert mean_absolute(table, table.columns[0]) == interval
    with pytest.raises(ParameterError, match="no laplacian"):
        mean_absolute(make_table(points=2))
