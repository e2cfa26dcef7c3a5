"""Prediction against sampling: known answers where the prediction is exact, laws, and intervals that hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.tables import make_table
from scipy.stats import mannwhitneyu, spearmanr, ttest_ind

from brittle.analysis import (
    Setting,
    columns,
    expected_change_points,
    expected_change_table,
    format_expected_change,
    label_flips,
    mean_absolute,
)
from brittle.analysis.expected_change import ISOTROPIC
from brittle.analysis.label_flips import NO_MAX_PROBABILITY, TOO_FEW_CONFIDENT
from brittle.analysis.location import median_interval, skewed_mean
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.spearman import leave_one_out, spearman
from brittle.errors import ParameterError
from brittle.estimate import Status, parameters_json, score_label
from brittle.noise import FAMILIES
from brittle.store.schemas import SCORES
from brittle.store.table import Table

LAPLACIAN = {"method": "auto"}


def with_score(
    table: Table,
    score: str,
    values: Sequence[float] | np.ndarray,
    parameters: dict[str, Any] | None = None,
    half: float = 0.0,
    status: Sequence[str] | None = None,
    quantity: str | None = None,
) -> Table:
    """`table` with one more score; NaN is a row without a number."""
    given = parameters or {}
    entry = {"score": score, "parameters": given, "label": score_label(score, given), "quantity": quantity or score}
    numbers = [None if math.isnan(value) else float(value) for value in values]
    missing = Status.NONFINITE_LOGITS.slug
    rows = {
        "point": table.points["point"].to_pylist(),
        "score": [score] * len(numbers),
        "parameters": [parameters_json(given)] * len(numbers),
        "value": numbers,
        "low": [None if value is None else value - half for value in numbers],
        "high": [None if value is None else value + half for value in numbers],
        "status": list(status or [missing if value is None else Status.OK.slug for value in numbers]),
        "detail": [None] * len(numbers),
        "passes": [1] * len(numbers),
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * len(numbers)),
    }
    return replace(
        table,
        scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCORES)]),
        provenance=table.provenance | {"scores": [*table.provenance["scores"], entry]},
    )


def change(sigma: float, draws: int = 100, **more: Any) -> dict[str, Any]:
    return {"sigma": sigma, "draws": draws, "statistic": "mean"} | more


def curved_run(points: int = 60, sigmas: Sequence[float] = (0.1, 0.5), seed: int = 0) -> tuple[Table, np.ndarray]:
    """A run whose sampled changes are exactly those that its Laplacians predict."""
    curvature = np.random.default_rng(seed).standard_t(3, points)
    table = with_score(make_table(points=points, scores=()), "laplacian", curvature, LAPLACIAN)
    for sigma in sigmas:
        table = with_score(table, "probability_change", sigma**2 / 2 * curvature, change(sigma))
    return table, curvature


def shuffled(table: Table, seed: int = 0) -> Table:
    """`table` with its rows in another order."""
    generator = np.random.default_rng(seed)
    points, scores = (part.take(generator.permutation(part.num_rows)) for part in (table.points, table.scores))
    return replace(table, points=points, scores=scores)


# ---------------------------------------------------------------------------------------------------------------------
# The expected change
# ---------------------------------------------------------------------------------------------------------------------


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
    assert "clipped copies" in format_expected_change(expected_change_table(only_clipped), pd.DataFrame())


def test_noise_that_is_not_alike_in_all_directions_predicts_nothing() -> None:
    assert set(FAMILIES) == ISOTROPIC
    table, curvature = curved_run(sigmas=(0.1,))
    table = with_score(table, "probability_change", curvature, change(1.0, noise="diagonal_gaussian", scale="abc"))
    frame = expected_change_table(table)
    assert frame["points"].tolist() == [60, 0]
    assert frame["reason"].isna().tolist() == [True, False]
    assert "not alike in all directions" in format_expected_change(frame, pd.DataFrame())


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
    assert frame["slope_low"].tolist() == [-math.inf] * 2 or points == 2
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


# ---------------------------------------------------------------------------------------------------------------------
# Label flips
# ---------------------------------------------------------------------------------------------------------------------


def flipping_run(seed: int = 0) -> tuple[Table, pd.DataFrame]:
    """A run of 200 points, the more bent the more often flipped, of two noise settings and two numbers of draws."""
    generator = np.random.default_rng(seed)
    curvature = generator.normal(size=200)
    flips = np.clip(-0.2 * curvature + 0.05 * generator.normal(size=200), 0.0, 1.0)
    sure = generator.uniform(0.6, 1.0, 200)
    table = with_score(make_table(points=200, scores=()), "laplacian", curvature, LAPLACIAN)
    table = with_score(table, "max_probability", sure, quantity="probability")
    few, many = {"sigma": 0.1, "draws": 10}, {"sigma": 0.1, "draws": 100}
    table = with_score(table, "monte_carlo", np.zeros(200), few, quantity="flip_probability")
    table = with_score(table, "monte_carlo", flips, many, quantity="flip_probability")
    table = with_score(table, "monte_carlo", np.zeros(200), {"sigma": 0.01, "draws": 10}, quantity="flip_probability")
    return table, pd.DataFrame({"laplacian": curvature, "flips": flips, "sure": sure})


def test_the_groups_are_those_of_the_paper() -> None:
    table, known = flipping_run()
    frame = label_flips(table, confident=0.8, group=20)
    assert frame["sigma"].tolist() == [0.01, 0.1]
    row = frame.iloc[1]
    chosen = known[known["sure"] >= 0.8].sort_values("laplacian")
    lowest, highest = chosen["flips"][:20], chosen["flips"][-20:]
    assert (row["points"], row["group"], row["dropped"], row["draws"]) == (len(chosen), 20, 0, 100)
    assert (row["lowest"], row["lowest_low"], row["lowest_high"]) == pytest.approx(mean_interval(lowest, 0.99))
    assert row["highest"] == pytest.approx(highest.mean())
    assert row["p_flips"] == pytest.approx(mannwhitneyu(lowest, highest, alternative="greater").pvalue)
    assert row["p_flips"] < 1e-6
    ever = known["flips"] > 0
    assert (row["flipped"], row["never_flipped"]) == (ever.sum(), (~ever).sum())
    assert row["laplacian_flipped"] == pytest.approx(known["laplacian"][ever].mean())
    assert row["laplacian_never"] == pytest.approx(known["laplacian"][~ever].mean())
    assert row["p_laplacian"] == pytest.approx(
        ttest_ind(known["laplacian"][ever], known["laplacian"][~ever], equal_var=False).pvalue, rel=1e-6
    )
    assert row["reason"] is None


def test_the_other_sign_is_no_evidence() -> None:
    """One-sided: where the highest Laplacians flip, the p-value is near 1."""
    table, known = flipping_run()
    turned = with_score(table, "laplacian", -known["laplacian"].to_numpy(), {"method": "exact"})
    row, before = label_flips(turned).iloc[1], label_flips(table).iloc[1]
    assert row["p_flips"] > 0.99
    assert (row["lowest"], row["highest"]) == pytest.approx((before["highest"], before["lowest"]))
    assert row["laplacian_flipped"] == pytest.approx(-before["laplacian_flipped"])


def test_where_nothing_flips_there_is_no_evidence() -> None:
    row = label_flips(flipping_run()[0]).iloc[0]
    assert (row["lowest"], row["highest"], row["p_flips"], row["flipped"]) == (0.0, 0.0, 1.0, 0)
    assert row["lowest_high"] > 0.0
    assert math.isnan(row["laplacian_flipped"])
    assert math.isnan(row["p_laplacian"])


def test_a_group_is_at_most_half() -> None:
    table, known = flipping_run()
    row = label_flips(table, confident=0.99).iloc[1]
    assert row["points"] == (known["sure"] >= 0.99).sum()
    assert row["group"] == row["points"] // 2 < 50
    none = label_flips(table, confident=1.0).iloc[1]
    assert (none["points"], none["group"], none["reason"]) == (0, 0, TOO_FEW_CONFIDENT)
    assert math.isnan(none["lowest"])
    assert math.isnan(none["p_flips"])
    assert none["flipped"] == row["flipped"]


def test_without_confidences_there_are_no_groups_and_a_reason() -> None:
    table, known = flipping_run()
    entries = [entry for entry in table.provenance["scores"] if entry["score"] != "max_probability"]
    row = label_flips(replace(table, provenance=table.provenance | {"scores": entries})).iloc[1]
    assert (row["reason"], row["points"], row["group"], row["dropped"]) == (NO_MAX_PROBABILITY, 0, 0, 200)
    assert row["flipped"] == (known["flips"] > 0).sum()
    frame = label_flips(replace(table, provenance=table.provenance | {"scores": entries}))
    assert NO_MAX_PROBABILITY in format_expected_change(pd.DataFrame(), frame)


def test_equal_laplacians_are_told_apart_by_id_alone() -> None:
    table, _ = flipping_run()
    flat = with_score(table, "laplacian", np.zeros(200), {"method": "exact"})
    pd.testing.assert_frame_equal(label_flips(flat), label_flips(shuffled(flat, seed=3)))
    assert math.isnan(label_flips(flat)["p_laplacian"][1])


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


# ---------------------------------------------------------------------------------------------------------------------
# Means, medians and correlations of ranks
# ---------------------------------------------------------------------------------------------------------------------


def test_mean_absolute_is_the_mean_of_the_absolute_values() -> None:
    table, curvature = curved_run()
    found = mean_absolute(table)
    assert found.mean == pytest.approx(np.abs(curvature).mean())
    assert 0.0 <= found.low < found.mean < found.high
    assert (found.label, found.points, found.dropped) == ("laplacian(method=auto)", 60, 0)
    assert mean_absolute(table, columns(table)[0]) == found == mean_absolute(table, "laplacian(method=auto)")
    nothing = mean_absolute(with_score(make_table(points=2, scores=()), "laplacian", [math.nan] * 2, LAPLACIAN))
    assert (nothing.points, nothing.dropped, nothing.low, nothing.high) == (0, 2, 0.0, math.inf)
    assert math.isnan(nothing.mean)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_mean_has_no_unit_of_its_own(scale: float) -> None:
    values = np.random.default_rng(0).exponential(size=30)
    assert np.array(skewed_mean(scale * values, 0.99)) == pytest.approx(scale * np.array(skewed_mean(values, 0.99)))
    assert np.array(skewed_mean(-values, 0.99)) == pytest.approx(-np.array(skewed_mean(values, 0.99))[[0, 2, 1]])


def test_a_mean_without_skewness_is_students() -> None:
    values = np.concatenate([np.arange(1.0, 11.0), -np.arange(1.0, 11.0)])
    mean, low, high = skewed_mean(values, 0.99)
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(2.8609346 * values.std(ddof=1) / math.sqrt(20), rel=1e-6)
    assert low == pytest.approx(-high)
    assert skewed_mean([2.0, 2.0, math.nan], 0.99) == (2.0, -math.inf, math.inf)
    assert skewed_mean([2.0], 0.99) == (2.0, -math.inf, math.inf)


@pytest.mark.parametrize(("tail", "least"), [(0.5, 0.98), (1.0, 0.97), (1.5, 0.955)])
def test_a_mean_of_a_heavy_tail_is_covered(tail: float, least: float) -> None:
    """99% intervals of the mean of 60 log-normal points; Student's hold it in 98.4%, 95.5% and 89.3% of 20,000 samples.

    Ours hold it in 98.9%, 98.3% and 97.0%; with 4,000 samples the standard error is below 0.27 points, so chance fails
    this in less than 1 of 10,000 runs, and the seed is fixed.
    """
    generator = np.random.default_rng(5)
    truth = math.exp(tail**2 / 2)
    held = [
        low <= truth <= high
        for _, low, high in (skewed_mean(generator.lognormal(0.0, tail, 60), 0.99) for _ in range(4000))
    ]
    assert least <= np.mean(held) <= 0.998


def test_a_median_is_covered() -> None:
    """Of 4,000 conservative 95% intervals fewer than 94% hold the median in less than 1 of 400 runs; seed fixed."""
    generator = np.random.default_rng(6)
    held = [
        low <= math.log(2.0) <= high
        for _, low, high in (median_interval(generator.exponential(size=30), 0.95) for _ in range(4000))
    ]
    assert 0.94 <= np.mean(held) <= 0.99  # 0.957 by the binomial law of 30 points


def test_medians_of_infinite_values() -> None:
    assert median_interval([1.0, math.inf, math.inf], 0.5).median == math.inf
    assert median_interval([1.0, math.inf], 0.5).median == math.inf
    assert math.isnan(median_interval([-math.inf, math.inf], 0.5).median)
    assert median_interval([], 0.99)[1:] == (-math.inf, math.inf)
    assert median_interval([1.0, 2.0], 0.99) == (1.5, -math.inf, math.inf)


@pytest.mark.parametrize("ties", [False, True])
def test_leaving_one_out_is_what_it_says(ties: bool) -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 25))
    y += x
    if ties:
        x, y = np.round(x), np.round(y)
    slow = [spearmanr(np.delete(x, i), np.delete(y, i)).statistic for i in range(25)]
    assert leave_one_out(x, y) == pytest.approx(slow)
    assert spearman(x, y, 0.99).rho == pytest.approx(spearmanr(x, y).statistic)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_a_correlation_of_ranks_is_covered(correlation: float) -> None:
    """99% intervals of 60 normal pairs, whose rank correlation is `6 / pi asin(r / 2)`.

    About 99.1% hold it; with 2,000 samples fewer than 97.5% in less than 1 of 10,000 runs; the seed is fixed.
    """
    generator = np.random.default_rng(7)
    truth = 6.0 / math.pi * math.asin(correlation / 2.0)
    held = []
    for _ in range(2000):
        x, other = generator.normal(size=(2, 60))
        found = spearman(x, correlation * x + math.sqrt(1.0 - correlation**2) * other, 0.99)
        held.append(found.low <= truth <= found.high)
    assert 0.975 <= np.mean(held) <= 0.999


def test_the_ends_of_a_correlation() -> None:
    x = np.arange(40.0)
    same, reverse = spearman(x, x**3, 0.99), spearman(x, -x, 0.99)
    assert (same.rho, same.high, reverse.rho, reverse.low) == pytest.approx((1.0, 1.0, -1.0, -1.0))
    assert 0.0 < same.low < 1.0
    assert reverse.high == pytest.approx(-same.low)
    assert math.isnan(spearman(x, np.ones(40), 0.99).rho)
    assert spearman([], [], 0.99)[2:] == (-1.0, 1.0)
    assert spearman(x[:5], x[:5], 0.99)[1:] == (1.0, -1.0, 1.0)
