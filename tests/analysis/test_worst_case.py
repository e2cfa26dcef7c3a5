"""The worst-case table: right orientation, right points, right words, from a table whose answers are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers.tables import make_table, score_record, with_value

from brittle.analysis import detection, margin_columns, margin_consistency, worst_case_table
from brittle.analysis.worst_case import safer
from brittle.estimate import INPUT_MARGIN, Status, parameters_json
from brittle.store.schemas import POINTS, SCORES
from brittle.store.table import Table

EPSILON = 0.5


def with_score(
    table: Table,
    score: str,
    values: Sequence[float | None],
    parameters: Mapping[str, Any] | None = None,
    status: Sequence[str] | None = None,
) -> Table:
    """`table` with one more score."""
    given = dict(parameters or {})
    count = len(values)
    rows = {
        "point": table.points["point"].to_pylist(),
        "score": [score] * count,
        "parameters": [parameters_json(given)] * count,
        "value": list(values),
        "low": [None if value is None else 0.0 for value in values],
        "high": list(values),
        "status": list(status or [Status.OK.slug] * count),
        "detail": [None] * count,
        "passes": [1] * count,
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * count),
    }
    return Table(
        points=table.points,
        scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCORES)]),
        record=replace(table.record, scores=(*table.record.scores, score_record(score, given))),
    )


def worst_case_run(points: int = 60, seed: int = 0) -> tuple[Table, np.ndarray]:
    """A run whose entropy is perfectly consistent, whose logit margin nearly is and whose confidence says nothing."""
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


def test_a_row_is_what_the_arrays_say() -> None:
    table, margin = worst_case_run()
    row = worst_case_table(table, EPSILON).set_index("score").loc["logit_margin"]
    score = next(column for column in table.columns if column.label == "logit_margin").value
    order, found = margin_consistency(margin, score), detection(margin, score, EPSILON)
    correct = np.array(table.points["correct"].to_pylist())
    assert (row["tau"], row["tau_low"], row["tau_high"]) == (order.tau, order.low, order.high)
    assert (row["auroc"], row["aupr"], row["fpr95"]) == (found.auroc, found.aupr, found.fpr_at_95_tpr)
    assert (row["accuracy"], row["robust_accuracy"]) == (correct.mean(), (correct & (margin > EPSILON)).mean())
    assert row["robust_low"] < row["robust_accuracy"] < row["robust_high"]


def test_probabilities_too_small_to_tell_from_1_are_still_told_apart() -> None:
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


def test_points_without_numbers_are_left_out_and_statuses_counted() -> None:
    table, margin = worst_case_run()
    values: list[float | None] = [None, math.inf, math.inf, *margin[3:].tolist()]
    status = [
        Status.NONFINITE_LOGITS.slug, Status.NOT_FOUND.slug, Status.NOT_FOUND.slug, Status.MASKED.slug,
        *[Status.OK.slug] * 56,
    ]  # fmt: skip
    table = with_score(table, INPUT_MARGIN, values, {"norm": "l2"}, status)
    row = worst_case_table(table, EPSILON, norm="l2").iloc[0]
    assert (row["points"], row["dropped"], row["not_found"], row["masked"]) == (59, 1, 2, 1)


def test_without_labels_there_is_no_accuracy_but_detection() -> None:
    table, _ = worst_case_run()
    place = table.points.schema.get_field_index("correct")
    unlabelled = table.points.set_column(place, POINTS.field(place), pa.nulls(60, pa.bool_()))
    frame = worst_case_table(replace(table, points=unlabelled), EPSILON)
    assert frame["robust_accuracy"].isna().all()
    assert frame["auroc"].notna().all()


def test_no_margins_is_an_empty_frame_and_a_sentence() -> None:
    table = make_table(points=5)
    assert worst_case_table(table, EPSILON).empty
    assert worst_case_table(worst_case_run()[0], EPSILON, norm="l2").empty
