"""Prediction against sampling: known answers where the prediction is exact, laws, and intervals that hold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from helpers.change_tables import LAPLACIAN, change, curved_run, flipping_run, shuffled, with_score
from helpers.tables import make_table

from brittle.analysis import (
    Setting,
    expected_change_points,
    expected_change_table,
    format_expected_change,
    label_flips,
    mean_absolute,
)
from brittle.errors import ParameterError
from brittle.estimate import Status


def test_an_exact_prediction_is_found_exact() -> None:
    table, curvature = curved_run()
    frame = expected_change_table(table)
    assert frame["sigma"].tolist() == [0.1, 0.5]
    for name in ("slope", "ratio", "spearman", "agreement"):
        assert frame[name].to_numpy() == pytest.approx(1.0, abs=1e-12), name
        assert (frame[f"{name}_low"] <= frame[name]).all()
        assert (frame[f"{name}_high"] >= frame[name]).all()
    assert frame["decided"].tolist() == frame["points"].tolist() == [60, 60]
    assert frame["median_sampled"].to_numpy() == pytest.approx(np.array([0.005, 0.125]) * np.median(curvature))
    assert (frame["spearman_low"] > 0.0).all()
    assert frame["agreement_low"][0] == pytest.approx(0.005 ** (1 / 60))  # Clopper-Pearson without a fault


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
    points = expected_change_points(table)
    decided = np.abs(0.02 * curvature) > half
    assert points["sign_disagrees"].tolist() == decided.tolist()
    row = expected_change_table(table).iloc[0]
    assert (row["decided"], row["agreement"]) == (decided.sum(), 0.0)
    assert row["spearman"] == pytest.approx(-1.0)
    assert row["spearman_high"] < 0.0


def test_a_laplacian_of_zero_has_no_sign() -> None:
    table = with_score(make_table(points=3, scores=()), "laplacian", [0.0, 0.0, 2.0], LAPLACIAN)
    table = with_score(table, "probability_change", [1.0, -1.0, 1.0], change(1.0))
    assert not expected_change_points(table)["sign_disagrees"].any()
    row = expected_change_table(table).iloc[0]
    assert (row["decided"], row["agreement"]) == (3, pytest.approx(1 / 3))


def test_points_in_the_order_of_the_data() -> None:
    table, curvature = curved_run()
    status = [Status.KINK.slug, *[Status.OK.slug] * 59]
    table = with_score(table, "laplacian", curvature, {"method": "exact"}, half=0.5, status=status)
    frame = expected_change_points(table, Setting(0.5, "gaussian"))
    assert frame["point"].tolist() == table.points["point"].to_pylist()
    assert frame["laplacian_low"].to_numpy() == pytest.approx(curvature - 0.5)
    assert frame["predicted_change"].to_numpy() == pytest.approx(0.125 * curvature)
    assert frame["kink"].tolist() == [True, *[False] * 59]
    assert set(expected_change_points(table)["sigma"]) == {0.1}
    assert expected_change_table(table)["kinks"].tolist() == [1, 1]
    with pytest.raises(ParameterError, match=r"sigma 0\.3; there is sigma 0\.1; sigma 0\.5"):
        expected_change_points(table, Setting(0.3, "gaussian"))


def test_points_without_a_number_are_counted() -> None:
    table, curvature = curved_run(sigmas=())
    curvature[:3], curvature[59] = math.nan, math.inf
    table = with_score(table, "laplacian", curvature, {"method": "exact"})
    sampled = np.where(np.arange(60) == 10, math.nan, curvature)
    row = expected_change_table(with_score(table, "probability_change", sampled, change(1.0))).iloc[0]
    assert (row["points"], row["dropped"]) == (55, 5)
    assert row["slope"] == pytest.approx(2.0)


@pytest.mark.parametrize("points", [0, 1, 2])
def test_few_points(points: int) -> None:
    table, curvature = curved_run(points=points)
    frame = expected_change_table(table)
    if not points:
        assert frame.empty
        return
    assert frame["points"].tolist() == [points, points]
    assert frame["slope"].to_numpy() == pytest.approx(1.0)
    assert frame["spearman_low"].tolist() == [-1.0, -1.0]
    assert frame["ratio_low"].tolist() == [-math.inf, -math.inf]
    if points == 1:
        assert frame["slope_low"].tolist() == [-math.inf] * 2
    else:
        assert frame["slope_low"].to_numpy() == pytest.approx(1.0)
    assert mean_absolute(table).mean == pytest.approx(np.abs(curvature).mean())


def test_a_run_without_the_scores_is_empty_and_says_so() -> None:
    table = make_table(points=5)
    frame, flips = expected_change_table(table), label_flips(table)
    assert frame.empty
    assert flips.empty
    assert list(expected_change_points(table).columns) == list(expected_change_points(curved_run()[0]).columns)
    assert list(frame.columns) == list(expected_change_table(curved_run()[0]).columns)
    assert format_expected_change(frame, flips).startswith("No Laplacian")
    nothing = with_score(curved_run(sigmas=(0.1,))[0], "laplacian", [math.nan] * 60, {"method": "exact"})
    assert expected_change_table(nothing)["laplacian"].tolist() == ["laplacian(method=auto)"]
    with_nan = with_score(make_table(points=5, scores=()), "laplacian", [math.nan] * 5, LAPLACIAN)
    assert expected_change_table(with_score(with_nan, "probability_change", [0.1] * 5, change(1.0))).empty


def test_the_order_of_rows_does_not_matter() -> None:
    table, _ = flipping_run()
    table = with_score(table, "probability_change", np.random.default_rng(1).normal(size=200), change(0.1), half=0.5)
    pd.testing.assert_frame_equal(expected_change_table(shuffled(table)), expected_change_table(table))
    pd.testing.assert_frame_equal(label_flips(shuffled(table)), label_flips(table))


def test_the_text_has_a_line_for_every_setting() -> None:
    table, curvature = curved_run()
    text = format_expected_change(expected_change_table(table), label_flips(table)).splitlines()
    assert text[0] == "Expected change of the predicted probability: sigma^2/2 laplacian(method=auto) against sampling"
    assert [line.split("  ")[1] for line in text[2:]] == ["sigma 0.1", "sigma 0.5"]
    assert len({len(line) for line in text[1:]}) == 1
    kinks = with_score(table, "laplacian", curvature, {"method": "exact"}, status=[Status.KINK.slug] * 60)
    assert "60 points are at a kink" in format_expected_change(expected_change_table(kinks), pd.DataFrame())


def test_misuse() -> None:
    table = flipping_run()[0]
    with pytest.raises(ParameterError, match="confident must be a probability"):
        label_flips(table, confident=80)
    with pytest.raises(ParameterError, match="at least 1 point"):
        label_flips(table, group=0)
    with pytest.raises(ParameterError, match="no absent"):
        mean_absolute(table, "absent")
    with pytest.raises(ParameterError, match="infinite at 1 points"):
        mean_absolute(with_score(table, "far", [math.inf] * 1 + [1.0] * 199), "far")
