"""What the analysis says of tables whose answers are known."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.tables import make_table, with_value
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from scipy.stats import kendalltau, kruskal

from brittle.analysis import (
    agreement,
    class_bias,
    columns,
    distribution,
    extremes,
    format_agreement,
    histogram,
    kendall_tau,
    mean_interval,
    outcomes,
    rank_correlation,
    ranked,
)
from brittle.analysis.agreement import by_setting
from brittle.analysis.columns import ANY_NOISE, Setting, preferred, settings, typical
from brittle.estimate import parameters_json, score_label
from brittle.intervals import clopper_pearson
from brittle.store.schemas import POINTS, SCORES
from brittle.store.table import Table

TWO_SIGMAS = {"sigmas": (0.1, 0.2), "budgets": (10, 400)}


def column(table: Table, label: str):
    return next(column for column in columns(table) if column.label == label)


def row(frame: pd.DataFrame, **wanted: object) -> pd.Series:
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def with_labels(table: Table, labels: list[int | None]) -> Table:
    place = table.points.schema.get_field_index("label")
    return replace(table, points=table.points.set_column(place, POINTS.field(place), pa.array(labels, pa.int64())))


# Nothing of it needs torch


@pytest.mark.parametrize("module", ["brittle.analysis", "brittle.report", "brittle.store.table"])
def test_does_not_load_torch(module: str) -> None:
    code = f"import {module}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Columns


def test_columns_keep_the_order_of_the_provenance_and_of_the_data() -> None:
    table = make_table(points=7, seed=3)
    shuffled = replace(table, scores=table.scores.take(np.random.default_rng(0).permutation(len(table.scores))))
    found = columns(shuffled)
    assert [c.label for c in found] == [entry["label"] for entry in table.provenance["scores"]]
    for one, other in zip(found, columns(table), strict=True):
        pd.testing.assert_frame_equal(one.rows, other.rows)
        assert one.rows.index.tolist() == table.points["point"].to_pylist()


def test_a_value_beside_a_status_without_number_is_not_believed() -> None:
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,), broken=2)
    assert column(with_value(table, "taylor(sigma=0.1)", [0.5] * 4), "taylor(sigma=0.1)").value.isna().tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_a_score_without_rows_is_a_column_without_values() -> None:
    table = make_table(points=3, scores=("taylor",), sigmas=(0.1,))
    found = columns(replace(table, scores=SCORES.empty_table()))
    assert [c.value.isna().all() for c in found] == [True]
    assert settings(found) == ()
    assert typical(found) is None


def test_variants_are_told_apart_only_where_there_are_several() -> None:
    table = make_table(points=3, scores=("softmax", "taylor"), sigmas=(0.1, 0.2))
    entries = [dict(entry) for entry in table.provenance["scores"]]
    entries.append(entries[0] | {"parameters": {"temperature": 2.0}, "label": "softmax(temperature=2.0)"})
    found = columns(replace(table, provenance=table.provenance | {"scores": entries}))
    assert [c.variant for c in found] == ["softmax(temperature=1.0)", "taylor", "taylor", "softmax(temperature=2.0)"]


@pytest.mark.parametrize(
    ("scores", "budgets", "chosen"),
    [
        (("softmax", "taylor", "mmse", "moments", "monte_carlo"), (10, 200), "monte_carlo(draws=200, sigma=0.1)"),
        (("softmax", "taylor", "mmse", "moments", "monte_carlo"), (10, 198), "moments(draws=198, sigma=0.1)"),
        (("softmax", "taylor", "mmse_margin", "mmse"), (10, 20), "mmse(draws=20, sigma=0.1)"),
        (("softmax", "taylor", "mmse_margin"), (10, 20), "mmse_margin(draws=20, sigma=0.1)"),
        (("softmax", "taylor"), (10,), "taylor(sigma=0.1)"),
        (("softmax", "monte_carlo"), (10,), "monte_carlo(draws=10, sigma=0.1)"),
        (("softmax",), (10,), "softmax(temperature=1.0)"),
    ],
)
def test_preference(scores: tuple[str, ...], budgets: tuple[int, ...], chosen: str) -> None:
    found = columns(make_table(points=5, scores=scores, budgets=budgets, sigmas=(0.1,)))
    best = preferred(found, settings(found)[0])
    assert best is not None
    assert best.label == chosen


def test_the_typical_column_is_nearest_to_the_typical_robustness() -> None:
    found = columns(make_table(points=200, sigmas=(0.01, 0.2, 30.0), scores=("taylor",)))
    means = {c.setting.sigma: c.p_robust.mean() for c in found}
    best = typical(found)
    assert best is not None
    assert best.setting.sigma == min(means, key=lambda sigma: abs(means[sigma] - 0.7)) == 0.2


def test_noise_families_are_settings_of_their_own() -> None:
    table = make_table(points=3, scores=("taylor",), sigmas=(0.1,))
    entry = dict(table.provenance["scores"][0])
    parameters = {"noise": "uniform", "sigma": 0.1}
    other = entry | {"parameters": parameters, "label": score_label("taylor", parameters)}
    rows = table.long().assign(parameters=parameters_json(parameters))
    scores = pa.concat_tables([table.scores, pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)])
    both = Table(table.points, scores, table.provenance | {"scores": [entry, other]})
    assert settings(columns(both)) == (Setting(0.1, "gaussian"), Setting(0.1, "uniform"))
    assert [str(setting) for setting in settings(columns(both))] == ["sigma 0.1", "sigma 0.1, uniform"]


# The interval of a mean


@given(st.integers(0, 40), st.integers(1, 40))
def test_the_interval_of_zeros_and_ones_is_exact(ones: int, more: int) -> None:
    values = [1.0] * ones + [0.0] * more
    low, high = clopper_pearson(ones, len(values), 0.99)
    assert mean_interval(values, 0.99) == pytest.approx((ones / len(values), float(low), float(high)), abs=1e-9)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_the_interval_holds_the_mean_and_stays_in_the_range(values: list[float]) -> None:
    found = mean_interval(values, 0.95)
    assert 0.0 <= found.low <= found.mean <= found.high <= 1.0
    mirrored = mean_interval([1.0 - value for value in values], 0.95)
    assert (1.0 - mirrored.high, 1.0 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)


def test_the_interval_approaches_the_normal_one() -> None:
    values = np.random.default_rng(0).beta(2.0, 3.0, 50_000)
    half = 2.5758 * values.std() / np.sqrt(values.size)
    found = mean_interval(values, 0.99)
    assert found.high - found.low == pytest.approx(2.0 * half, rel=0.02)


def test_the_interval_without_points_says_nothing() -> None:
    assert mean_interval([float("nan")], 0.99)[1:] == (0.0, 1.0)


@pytest.mark.parametrize("size", [3, 25])
@pytest.mark.parametrize(("a", "b"), [(8.0, 0.5), (0.3, 0.3), (50.0, 2.0)])
def test_the_interval_covers(size: int, a: float, b: float) -> None:
    """2,000 replicates at 99%; more than 36 misses would have probability below 1e-3 if coverage were 99%."""
    rng = np.random.default_rng(size)
    truth = a / (a + b)
    found = [mean_interval(rng.beta(a, b, size), 0.99) for _ in range(2000)]
    assert sum(not one.low <= truth <= one.high for one in found) <= 36


def test_points_all_alike_give_a_wide_interval() -> None:
    """The weighted mean of `n` equal points and a 0 is Beta(n, 1): its quantile at 5% is the n-th root of 0.05."""
    assert mean_interval([0.9], 0.9) == pytest.approx((0.9, 0.9 * 0.05, 1.0 - 0.1 * 0.05))
    assert mean_interval([0.9] * 8, 0.9).low == pytest.approx(0.9 * 0.05**0.125)
    assert mean_interval([0.0] * 8, 0.9) == pytest.approx((0.0, 0.0, 1.0 - 0.05**0.125))


# Classes


def test_class_bias_by_hand() -> None:
    table = with_labels(make_table(points=12, scores=("taylor",), sigmas=(0.1,), classes=2), [0] * 6 + [1] * 6)
    flips = [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.8, 0.9, 0.7, 0.8, 0.9, 0.7]
    found = class_bias(with_value(table, "taylor(sigma=0.1)", flips))
    assert found is not None
    assert found.by == "label"
    assert found.classes["class"].tolist() == [1, 0]
    assert found.classes["name"].tolist() == ["automobile", "airplane"]
    assert found.classes["points"].tolist() == [6, 6]
    assert found.classes["mean"].tolist() == pytest.approx([0.2, 0.8])
    assert found.classes["median"].tolist() == pytest.approx([0.2, 0.8])
    assert found.spread == pytest.approx(0.6)
    assert found.tested == 2
    assert found.p_value == pytest.approx(kruskal(flips[:6], flips[6:]).pvalue)


def test_class_bias_without_labels_goes_by_prediction() -> None:
    table = make_table(labels=False)
    found = class_bias(table)
    assert found is not None
    assert found.by == "predicted"
    assert set(found.classes["class"]) == set(table.points["predicted"].to_pylist())


@pytest.mark.parametrize("classes", [1, 2])
def test_class_bias_with_few_classes_and_points(classes: int) -> None:
    found = class_bias(make_table(points=2, classes=classes, scores=("taylor",)))
    assert found is not None
    assert np.isnan(found.p_value)
    assert found.tested == 0


def test_equal_robustness_shows_no_difference() -> None:
    table = make_table(points=60, classes=3, scores=("taylor",), sigmas=(0.1,))
    found = class_bias(with_value(table, "taylor(sigma=0.1)", [0.25] * 60))
    assert found is not None
    assert (found.spread, found.p_value) == (0.0, 1.0)


def test_class_bias_leaves_out_points_without_a_value() -> None:
    found = class_bias(make_table(points=40, broken=10, scores=("taylor",)))
    assert found is not None
    assert found.classes["points"].sum() == 30
    assert class_bias(make_table(points=4, broken=4)) is None


def test_the_test_of_classes_rejects_at_its_rate() -> None:
    """Labels at random: of 100 p values about 10 lie below 0.1; outside 2..24 has probability below 1e-3."""
    table = make_table(points=90, classes=3, scores=("taylor",), sigmas=(0.1,), images=False)
    rng = np.random.default_rng(0)
    found = [class_bias(with_labels(table, rng.integers(3, size=90).tolist())) for _ in range(100)]
    assert 2 <= sum(one is not None and one.p_value < 0.1 for one in found) <= 24


# Agreement


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
        assert held_out["tau"] == pytest.approx(kendalltau(values, rest).statistic)
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
    kept = [entry for entry in table.provenance["scores"] if entry["label"] != "monte_carlo(draws=10, sigma=0.1)"]
    unknown = agreement(replace(table, provenance=table.provenance | {"scores": kept}))
    assert row(unknown, estimator="moments", budget=10)["shares_draws"]


def test_an_estimator_without_noise_is_compared_at_every_sigma() -> None:
    found = agreement(make_table(scores=("softmax", "monte_carlo"), **TWO_SIGMAS))
    softmax = found[found["estimator"] == "softmax"]
    assert softmax["sigma"].tolist() == [0.1, 0.2]
    assert softmax["budget"].isna().all()


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


# Distribution


def test_distribution_by_hand() -> None:
    table = make_table(points=10, scores=("taylor",), sigmas=(0.1,))
    flips = [0.0, 0.001, 0.009, 0.011, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0]
    table = with_value(table, "taylor(sigma=0.1)", flips)
    found = distribution(table).iloc[0]
    assert found["points"] == 10
    assert found["mean"] == pytest.approx(1.0 - np.mean(flips))
    assert found["fragile"] == pytest.approx(0.7)
    assert found["median"] == pytest.approx(0.85)
    bins = histogram(table, bins=4)
    assert bins["points"].tolist() == [1, 0, 3, 6]
    assert bins["share"].sum() == pytest.approx(1.0)
    assert bins["start"].tolist() == [0.0, 0.25, 0.5, 0.75]


def test_distribution_reads_the_largest_budget_of_each_estimator() -> None:
    found = distribution(make_table(scores=("moments", "softmax"), sigmas=(0.2, 0.1), budgets=(10, 400, 50)))
    assert found["budget"].dropna().tolist() == [400, 400]
    assert found["sigma"].dropna().tolist() == [0.1, 0.2]
    assert len(histogram(make_table(points=2, broken=2))) == 0


# Extremes


def test_ranked_orders_by_flip_probability_however_small() -> None:
    table = make_table(points=5, scores=("taylor",), sigmas=(0.1,))
    found = ranked(with_value(table, "taylor(sigma=0.1)", [1e-12, 0.4, 3e-17, None, 2e-17]))
    assert found["row"].tolist() == [1, 0, 2, 4]
    assert found["p_robust"].tolist() == pytest.approx([0.6, 1.0, 1.0, 1.0])


def test_ties_are_broken_by_the_next_estimator_then_by_place() -> None:
    table = make_table(points=6, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(200,))
    table = with_value(table, "monte_carlo(draws=200, sigma=0.1)", [0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    table = with_value(table, "moments(draws=200, sigma=0.1)", [1e-9, 1e-3, 0.4, 1e-6, 1e-9, None])
    assert ranked(table)["row"].tolist() == [2, 1, 3, 0, 4, 5]


@settings_of_hypothesis(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 4))
def test_extremes_are_the_ends_of_each_class(points: int, count: int, classes: int) -> None:
    table = make_table(points=points, classes=classes, scores=("taylor",), sigmas=(0.1,), images=False)
    found, order = extremes(table, count), ranked(table)
    assert not found.duplicated("point").any()
    for number, group in order.groupby("class"):
        of_class = found[found["class"] == number]
        least = of_class[of_class["side"] == "least"]["point"].tolist()
        most = of_class[of_class["side"] == "most"]["point"].tolist()
        assert least == group["point"].tolist()[: len(least)]
        assert most == group["point"].tolist()[::-1][: len(most)]
        assert len(least) + len(most) == min(len(group), 2 * count)
        assert len(least) - len(most) in (0, 1)


def test_extremes_of_nothing() -> None:
    found = extremes(make_table(points=3, broken=3))
    assert found.empty
    assert {"side", "rank"} <= set(found.columns)


# Rank correlation


def test_kendall_tau_of_orders() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert kendall_tau([1, 2, 3], [1, 2, np.inf]) == pytest.approx(1.0)
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    assert np.isnan(kendall_tau([1], [1]))


def test_rank_correlation_is_oriented_so_that_more_is_safer() -> None:
    table = make_table(points=200, scores=("monte_carlo", "softmax", "logit_margin", "taylor"), **TWO_SIGMAS)
    cheap = [c for c in columns(table) if c.setting == ANY_NOISE]
    found = rank_correlation(table, cheap)
    assert found["score"].tolist() == ["softmax", "logit_margin"]
    assert (found["tau"] > 0.4).all()
    assert ((found["low"] < found["tau"]) & (found["tau"] < found["high"])).all()


def test_rank_correlation_of_a_score_with_itself_is_one() -> None:
    table = make_table(points=20, scores=("taylor",), sigmas=(0.1,))
    found = rank_correlation(table, columns(table))
    assert found["tau"].tolist() == pytest.approx([1.0])


# Outcomes


def test_outcomes_count_points_once_and_name_the_first() -> None:
    table = make_table(points=9, broken=7)
    found = outcomes(table, first=2)
    assert len(found) == 1
    only = found.iloc[0]
    assert (only["labels"], only["status"], only["points"], only["has_value"]) == ((), "nonfinite_input", 7, False)
    assert only["sentence"] == "The input holds NaN or infinite values."
    assert only["first"] == [(0, "test/00000.png", "1 NaN of 3072"), (1, "test/00001.png", "1 NaN of 3072")]


def test_outcomes_of_single_scores_and_unknown_statuses() -> None:
    table = make_table(points=4, scores=("taylor",), sigmas=(0.1,))
    rows = table.long()
    rows["status"] = ["ok", "zero_gradient", "from_the_future", "tie"]
    found = outcomes(replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)))
    assert found.set_index("status")["has_value"].to_dict() == {
        "zero_gradient": False,
        "from_the_future": True,
        "tie": True,
    }
    assert set(found["labels"]) == {("taylor(sigma=0.1)",)}
    assert "does not know" in found.set_index("status").loc["from_the_future", "sentence"]


def test_scores_with_one_status_for_the_same_points_share_a_row() -> None:
    table = make_table(points=4, scores=("taylor", "taylor_mvs"), sigmas=(0.1, 0.2))
    rows = table.long()
    rows.loc[rows["point"].str.endswith("2"), "status"] = "zero_gradient"
    found = outcomes(replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)))
    assert found["points"].tolist() == [1]
    assert found["labels"][0] == tuple(c.label for c in columns(table))


def test_no_outcomes_where_all_is_well() -> None:
    assert outcomes(make_table()).empty
