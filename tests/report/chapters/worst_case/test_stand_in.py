"""Whether a score can stand in for the distance."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
from helpers.margin_runs import SCORED, first_case, margins, worst_case
from helpers.tables import HOSTILE, make_table, with_value

from brittle.analysis import worst_case_table
from brittle.report.chapters.worst_case.charts import detection_chart
from brittle.report.chapters.worst_case.stand_in import GOOD_AUROC, _measured
from brittle.report.figure import Figure, draw
from brittle.store.schemas import SCORES
from brittle.store.table import Table


def test_the_verdict_follows_the_score(table: Table) -> None:
    distance = margins(table)[:240]
    finite = np.where(np.isfinite(distance), distance, 9.0)
    for sign, words in ((1.0, "it may stand in"), (-1.0, "it misses too many")):
        made = with_value(table, "logit_margin", (sign * finite).tolist())
        assert words in first_case(made).stand_in.conclusion
    few = make_table(points=12, scores=SCORED)
    row = worst_case_table(few, 0.03, "linf").query("score == 'logit_margin'").iloc[0]
    assert row["auroc_low"] < GOOD_AUROC <= row["auroc_high"]
    assert "do not decide" in worst_case(few, 0.03).stand_in.conclusion


def test_a_score_that_is_smaller_where_safer_is_turned() -> None:
    scatter = worst_case(make_table(points=60, scores=("entropy", "input_margin"))).stand_in.scatter
    assert set(scatter["title"]) == {"minus entropy"}
    assert scatter["value"].max() <= 0.0
    assert np.corrcoef(scatter["margin"].rank(), scatter["value"].rank())[0, 1] > 0.3


def test_infinite_margins_are_left_out_of_the_scatter(table: Table) -> None:
    case = first_case(table)
    assert len(case.stand_in.scatter) == 240 - 3 - 4
    assert case.stand_in.scatter["side"].eq("within epsilon").sum() == (margins(table)[:240] <= 8 / 255).sum()


def test_a_score_that_is_clearly_better_and_affordable_is_named() -> None:
    made = make_table(points=400, scores=("logit_margin", "first_order_margin", "moments", "input_margin"))
    distance, rng = margins(made), np.random.default_rng(0)
    poor = distance * rng.lognormal(0.0, 0.5, 400)
    made = with_value(made, "logit_margin", poor.tolist())
    better = with_value(made, "first_order_margin", (distance * rng.lognormal(0.0, 0.1, 400)).tolist())
    said = worst_case(better, 0.03).stand_in.conclusion
    assert said.startswith("logit_margin orders the points")
    assert "first_order_margin does clearly better, with an AUROC of 0.99" in said
    assert said.endswith("for 11 passes a point instead of 1.")
    same = with_value(made, "first_order_margin", (poor * rng.lognormal(0.0, 0.1, 400)).tolist())
    assert "clearly better" not in worst_case(same, 0.03).stand_in.conclusion
    dear = better.long()
    dear.loc[dear["score"] == "first_order_margin", "passes"] = 200
    dear = replace(better, scores=pa.Table.from_pandas(dear, schema=SCORES, preserve_index=False))
    assert "clearly better" not in worst_case(dear, 0.03).stand_in.conclusion, "a third of the attacks' price"


def test_the_note_says_which_scores_are_drawn() -> None:
    scores = (
        "logit_margin",
        "entropy",
        "max_probability",
        "probability_margin",
        "feature_margin",
        "first_order_margin",
    )
    note = worst_case(make_table(points=60, scores=(*scores, "taylor", "input_margin"))).stand_in.note
    assert "Drawn is that score, and of the others the 5 with the largest tau, each by its best parameters" in note
    assert "3 further scores in the table only" in note
    assert "Drawn is" not in worst_case(make_table(points=60, scores=SCORED)).stand_in.note


def test_names_of_scores_cannot_become_markup() -> None:
    frame = pd.DataFrame({"title": HOSTILE[:6], "place": 0, "epsilon": 0.1, "auroc": 0.7, "chosen": 0.1})
    frame = frame.assign(auroc_low=0.6, auroc_high=0.8, main=True)
    drawing = draw(Figure(detection_chart, frame), "detection")
    assert "<script" not in drawing
    assert "&lt;script&gt;" in drawing


def test_a_rate_that_nothing_is_known_of_is_no_number() -> None:
    """Of three robust points, the false positive rate may be anything."""
    row = {"fpr95": 0.0, "fpr95_low": 0.0, "fpr95_high": 1.0, "auroc": 0.9, "auroc_low": 0.8, "auroc_high": 0.95}
    assert _measured(row, "fpr95") == "open\n0.000 to 1.000"
    assert _measured(row, "auroc") == "0.900\n0.800 to 0.950"


def test_curves_near_the_best_value_stay_apart() -> None:
    """AUROCs of 0.99 and 0.999 are a tenth of the height apart or more, and the axis is labelled with AUROCs."""
    frame = pd.DataFrame({"title": ["a", "b"], "place": [1, 2], "epsilon": [0.1, 0.1], "auroc": [0.99, 0.999]})
    frame = pd.concat([frame, frame.assign(epsilon=0.2)]).assign(auroc_low=0.9, auroc_high=1.0, main=False, chosen=0.1)
    drawing = draw(Figure(detection_chart, frame), "detection")
    heights = {
        round(float(found[1]), 1)
        for found in re.finditer(r'aria-hidden|transform="translate\([\d.]+,([\d.]+)\)" d="M', drawing)
        if found[1]
    }
    assert max(heights) - min(heights) > 24.0
    assert ">0.99<" in drawing
