"""Expected robustness: the area under the curve of robust accuracy, whatever the margins, and its open ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.data_files import refused
from helpers.margin_runs import LABEL, first_case, with_status
from helpers.tables import make_table, with_model, with_rows, with_value
from helpers.two_runs import renamed, with_column
from scipy.stats import binom

from brittle import check
from brittle.analysis import compare, direct_robust_accuracy
from brittle.analysis.expected_robustness import choose_epsilon, expected_robustness
from brittle.analysis.overview import margin_sentences
from brittle.store.table import Table

COUNT, CONFIDENCE = 60, 0.99
RNG = np.random.default_rng(0)
MARGINS = {
    "uniform": RNG.random(COUNT),
    "ties": RNG.integers(0, 4, COUNT) / 4.0,
    "at the boundary": np.zeros(COUNT),
    "infinite": np.where(RNG.random(COUNT) < 0.4, np.inf, RNG.random(COUNT)),
    "never found": np.full(COUNT, np.inf),
    "counts": RNG.integers(1, 40, COUNT).astype(float),
    "tiny": RNG.random(COUNT) * 1e-300,
    "huge": RNG.random(COUNT) * 1e300,
}
"""Distances as attacks may return them."""


def margin_run(margins: np.ndarray, correct: Sequence[bool | None] | None = None, seed: int = 0) -> Table:
    """Return a run with these input margins; `correct` are None for points without a prediction."""
    table = make_table(points=len(margins), scores=("input_margin",), labels=correct is not None, seed=seed)
    table = with_value(table, LABEL, margins.tolist())
    return table if correct is None else replace(table, points=with_column(table, "correct", correct))


def mean_of(table: Table, epsilon: float) -> tuple[float, float, float]:
    (column,) = table.columns
    return expected_robustness(table, column, epsilon, CONFIDENCE).interval


def area(margins: np.ndarray, correct: np.ndarray, epsilon: float, steps: int = 400) -> float:
    """Return the mean of the curve of robust accuracy at the middles of equal steps."""
    sizes = (np.arange(steps) + 0.5) / steps * epsilon
    return float(np.mean([direct_robust_accuracy(margins, correct, size).robust_accuracy for size in sizes]))


@pytest.mark.parametrize("law", MARGINS)
@pytest.mark.parametrize("labelled", [True, False])
def test_it_is_the_area_under_the_curve(law: str, labelled: bool) -> None:
    margins, right = MARGINS[law], RNG.random(COUNT) < 0.8
    table = margin_run(margins, right.tolist() if labelled else None)
    finite = margins[np.isfinite(margins) & (margins > 0.0)]
    middle = float(np.median(finite)) if finite.size else 1.0
    for epsilon in (0.01 * middle, middle, 3.0 * middle):
        mean, low, high = mean_of(table, epsilon)
        assert mean == pytest.approx(area(margins, right if labelled else np.ones(COUNT), epsilon), abs=1.0 / 400)
        assert low <= mean <= high


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 7.0, 7.9, 100.0])
def test_sizes_of_few_changed_values_are_whole_numbers(epsilon: float) -> None:
    right = RNG.random(COUNT) < 0.8
    table = make_table(points=COUNT, scores=("input_margin",), norms=("l0",))
    table = with_value(table, "input_margin(norm=l0)", MARGINS["counts"].tolist())
    table = replace(table, points=with_column(table, "correct", right.tolist()))
    curve = [direct_robust_accuracy(MARGINS["counts"], right, size) for size in range(int(epsilon) + 1)]
    assert mean_of(table, epsilon)[0] == pytest.approx(np.mean([point.robust_accuracy for point in curve]))


def test_its_ends_are_the_accuracy_and_the_robust_accuracy() -> None:
    """At a size below all margins it is the share of right predictions; at size 0, that of right ones off the tie."""
    right = [place % 5 > 0 for place in range(COUNT)]
    assert mean_of(margin_run(MARGINS["counts"], right), 0.5)[0] == pytest.approx(0.8)
    assert mean_of(margin_run(np.arange(float(COUNT)), [True] * COUNT), 0.0)[0] == pytest.approx(1.0 - 1.0 / COUNT)


def test_all_numbers_of_zero_and_one_have_the_interval_of_a_share() -> None:
    """The interval is that of Clopper and Pearson: 48 of 60 are right and farther than the largest size."""
    mean, low, high = mean_of(margin_run(np.full(COUNT, 2.0), [place % 5 > 0 for place in range(COUNT)]), 1.0)
    assert mean == pytest.approx(0.8)
    assert float(binom.sf(47, COUNT, low)) == pytest.approx(0.005, rel=1e-6)
    assert float(binom.cdf(48, COUNT, high)) == pytest.approx(0.005, rel=1e-6)


@cache
def half_known() -> tuple[Table, np.ndarray, np.ndarray]:
    """Return a run with masked and missing margins, some certified, and the ends between which the margins lie."""
    generator = np.random.default_rng(1)
    margins, right = generator.random(COUNT), (generator.random(COUNT) < 0.8).tolist()
    status = np.array(["ok", "masked", "nonfinite_gradient"])[generator.integers(0, 3, COUNT)]
    least = np.where(status == "ok", margins, np.where(status == "masked", margins * 0.3, 0.0))
    margins[status == "nonfinite_gradient"] = np.nan
    table = margin_run(margins, right)
    rows = table.long().assign(status=status, low=np.where(status == "masked", least, 0.0))
    return with_rows(table, rows), least, np.where(np.isnan(margins), np.inf, margins)


def completed(seed: int) -> Table:
    """Return the run of `half_known` with margins that its masked and missing ones may have."""
    table, least, most = half_known()
    reach = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], COUNT)
    margins = least + reach * np.where(np.isinf(most), 2.0, most - least)
    return margin_run(margins, table.points["correct"].to_pylist())


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 5.0])
def test_open_margins_widen_the_interval_to_all_they_may_be(epsilon: float) -> None:
    table, *_ = half_known()
    mean, low, high = mean_of(table, epsilon)
    assert low < mean < high
    for seed in range(10):
        inside = mean_of(completed(seed), epsilon)
        assert low - 1e-12 <= inside[1]
        assert inside[2] <= high + 1e-12


def test_an_open_rule_asks_for_a_search_and_not_for_points() -> None:
    masked = with_status(margin_run(np.full(2000, 1.0), [True] * 2000), "masked")
    (verdict,) = check(masked, expected_robustness=0.5, epsilon=0.5).verdicts
    assert (verdict.state, verdict.low, verdict.points) == ("undecided", 0.0, 2000)
    assert verdict.remedy.startswith("2,000 margins")
    (nothing,) = check(margin_run(np.full(40, np.nan), [True] * 40), expected_robustness=0.5, epsilon=0.5).verdicts
    assert (nothing.state, nothing.low, nothing.high) == ("undecided", 0.0, 1.0)


def test_the_rule_reads_runs_without_labels_and_one_norm() -> None:
    assert check(margin_run(np.full(400, 1.0)), expected_robustness=0.9, epsilon=0.5).state == "passes"
    two_norms = make_table(points=20, scores=("input_margin",), norms=("linf", "l2"))
    refused("no_such_score", "norm", check, two_norms, expected_robustness=0.5, epsilon=0.5)
    assert check(two_norms, expected_robustness=0.0, epsilon="8/255", norm="l2").state == "passes"
    refused("parameter", "epsilon", check, two_norms, expected_robustness=0.5)
    refused("parameter", "epsilon", check, two_norms, holds=0.5, epsilon=0.5)


@pytest.mark.parametrize("labels", [True, False])
def test_the_terminal_and_the_page_show_the_same_number(labels: bool) -> None:
    table = make_table(points=200, scores=("input_margin",), certified=True, labels=labels, masked=3)
    (column,) = table.columns
    size = choose_epsilon(column.value, "linf", (0.0, 1.0))
    expected = expected_robustness(table, column, size.value, CONFIDENCE)
    mean, low, high = expected.interval
    (text,) = margin_sentences(table)
    assert 1 <= expected.open_points <= 3
    assert f": {mean:.3g} ({low:.3g} to {high:.3g}; {expected.open_points} margin" in text
    assert f"from 0 to {size.text}; an upper estimate." in text
    (number,) = [number for number in first_case(table)["numbers"] if number.title.startswith("Expected")]
    assert number.value == f"{100 * mean:.0f}%"
    assert f"Proven: {100 * expected.proved:.0f}%." in number.note
    assert 0.0 < expected.proved < mean
    rows = table.long()
    exact = with_rows(table, rows.assign(low=rows["value"], status="ok"))
    assert "upper estimate" not in margin_sentences(exact)[0]


def expected_rows(first: Table, second: Table, epsilon: float | str | None = None) -> list[dict]:
    rows = compare(first, second, epsilon=epsilon).to_dict("records")
    return [row for row in rows if row["quantity"] == "expected_robustness"]


def test_two_runs_are_compared_by_the_mean_of_the_differences() -> None:
    right = [place % 5 > 0 for place in range(COUNT)]
    runs = margin_run(MARGINS["uniform"], right), margin_run(MARGINS["uniform"] * 0.5, right)
    (row,) = expected_rows(*runs, "1/4")
    assert row["score"] == "expected_robustness(epsilon=0.25, norm=linf)"
    means = [mean_of(run, 0.25) for run in runs]
    assert (row["first"], row["first_low"], row["first_high"]) == pytest.approx(means[0])
    assert (row["second"], row["second_low"], row["second_high"]) == pytest.approx(means[1])
    assert row["difference"] == pytest.approx(means[0][0] - means[1][0])
    assert (row["p"] < 0.01) == (row["difference_low"] > 0.0)
    assert expected_rows(runs[0], renamed(runs[1]), "1/4")[0]["difference"] == pytest.approx(row["difference"])
    assert expected_rows(runs[0], margin_run(MARGINS["uniform"]), "1/4") == []  # labels tell of one run alone


def test_open_margins_widen_the_difference_to_all_it_may_be() -> None:
    table, *_ = half_known()
    has_margin = ~table.long()["value"].isna().to_numpy()
    rival = margin_run(np.where(has_margin, 0.2, np.nan), table.points["correct"].to_pylist())
    (row,) = expected_rows(table, rival, 0.5)
    for seed in range(5):
        margins = np.where(has_margin, completed(seed).long()["value"].to_numpy(), np.nan)
        (inside,) = expected_rows(margin_run(margins, table.points["correct"].to_pylist()), rival, 0.5)
        assert row["difference_low"] <= inside["difference_low"] <= inside["difference_high"] <= row["difference_high"]
        assert inside["p"] <= row["p"]


def test_runs_share_the_size_that_suits_both() -> None:
    first, second = (with_model(margin_run(MARGINS["counts"] * scale), bounds=(0.0, 255.0)) for scale in (1.0, 3.0))
    (forward,), (backward,) = expected_rows(first, second), expected_rows(second, first)
    assert forward["score"] == backward["score"]
    median = np.median(np.concatenate([MARGINS["counts"], 3.0 * MARGINS["counts"]]))
    assert f"epsilon={median:.2g}," in forward["score"]
    never = margin_run(MARGINS["never found"])
    assert expected_rows(never, never)[0]["first"] == 1.0


def test_each_norm_has_a_row() -> None:
    table = make_table(points=20, scores=("input_margin",), norms=("linf", "l2"))
    assert [row["score"].split("norm=")[1] for row in expected_rows(table, table)] == ["linf)", "l2)"]
