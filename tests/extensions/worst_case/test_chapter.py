"""Worst-case chapter: present when a run has input margins, true to them, plain about what they do not show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from helpers.margin_runs import LABEL, SCORED, first_case, margins, with_status
from helpers.tables import make_table, with_value

import brittle
from brittle.analysis.expected_robustness import choose_epsilon
from brittle.extensions.worst_case.chapter import FRAGILE_SHOWN
from brittle.scores import FeatureDistance, FeatureMargin, InputMargin, LogitMargin
from brittle.store.schemas import POINTS
from brittle.store.table import Table

pytestmark = pytest.mark.usefixtures("figures_drawn_once", "short_search")

UNIT = (0.0, 1.0)


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(points=240, scores=SCORED, norms=("linf", "l2"), broken=3, not_found=4, masked=6, certified=True)


@pytest.mark.parametrize(
    ("middle", "norm", "bounds", "text", "reason"),
    [
        (0.03, "linf", UNIT, "8/255", "most benchmarks"),
        (0.001234, "linf", UNIT, "0.0012", "parts hardly any"),
        (77.7, "l2", UNIT, "78", "parts hardly any"),
        (0.03, "linf", (-1.0, 1.0), "0.03", "do not range from 0 to 1"),
        (float("inf"), "linf", UNIT, "8/255", "no distance is known"),
    ],
)
def test_the_perturbation_size_is_chosen_and_explained(
    middle: float, norm: str, bounds: tuple[float, float], text: str, reason: str
) -> None:
    spread = middle * np.linspace(0.5, 1.5, 101)
    epsilon = choose_epsilon(pd.Series([*spread, float("inf"), float("nan")]), norm, bounds)
    assert epsilon.text == text
    assert reason in epsilon.reason
    assert epsilon.value == (8 / 255 if text == "8/255" else float(text))


def test_masked_margins_and_refuted_certificates_have_a_warning() -> None:
    run = make_table(points=20, scores=SCORED)
    assert first_case(run)["warning"] == ""
    assert first_case(with_status(run, "masked"))["warning"].startswith("The margins of 20 points of 20")
    assert first_case(with_status(run, "refuted"))["warning"].startswith("The certificates of 20 points")


def test_the_curves_are_the_robust_accuracy_at_every_epsilon(table: Table) -> None:
    frame = first_case(table)["figure"].frame
    distance, correct = margins(table)[:240], np.array(table.points["correct"].to_pylist(), dtype=np.float64)
    low = table.long().query("score == 'input_margin'")["low"].to_numpy()[:240]
    assert set(frame["kind"]) == {"all", "correct", "certified"}
    has_distance = ~np.isnan(distance)
    for kind, reach, correctness in (
        ("all", distance, np.ones(240)),
        ("correct", distance, correct),
        ("certified", np.nan_to_num(low), correct),
    ):
        curve = frame[frame["kind"] == kind]
        assert (np.diff(curve["share"]) <= 0.0).all()
        assert (curve["low"] <= curve["share"]).all()
        assert (curve["share"] <= curve["high"]).all()
        valid = has_distance & ~np.isnan(correctness)
        for row in curve.iloc[[0, 20, 77, 199]].to_dict("records"):
            assert row["share"] == np.mean((reach[valid] > row["epsilon"]) & (correctness[valid] == 1.0))
    assert "certified" not in set(first_case(make_table(points=20, scores=SCORED))["figure"].frame["kind"])


@pytest.mark.parametrize("labels", [True, False])
def test_the_certified_share_is_below_that_after_attacks(labels: bool) -> None:
    """Both ends of the bracket are shares of the same points, also where many predictions are wrong."""
    run = make_table(points=200, scores=SCORED, certified=True, labels=labels)
    is_correct = np.arange(200) % 2 == 0 if labels else np.ones(200, dtype=bool)
    if labels:
        points = run.points.to_pandas().assign(correct=is_correct)
        run = replace(run, points=pa.Table.from_pandas(points, schema=POINTS, preserve_index=False))
    case = first_case(run, 0.01)
    curve = case["figure"].frame.pivot(index="epsilon", columns="kind", values="share")
    assert (curve["certified"] <= curve["correct" if labels else "all"]).all()
    low = run.long().query("score == 'input_margin'")["low"].to_numpy()
    proven, attacked = np.mean((low > 0.01) & is_correct), np.mean((margins(run) > 0.01) & is_correct)
    number = case["numbers"][-1]
    assert number.title == f"Certified {'robust accuracy' if labels else 'share'} at 0.01"
    assert number.value == f"{100 * proven:.0f}%"
    assert f"between this {100 * proven:.0f}% and the {100 * attacked:.0f}% that" in number.note
    assert proven < attacked


def test_the_gallery_shows_the_nearest_correct_points_first(table: Table) -> None:
    wrong = np.array([correct is False for correct in table.points["correct"].to_pylist()])
    distance = margins(table)[:240] * np.where(wrong, 1e-6, 1.0)
    run = with_value(table, LABEL, distance.tolist())
    gallery = first_case(run)["points"]
    points = run.points.to_pandas().assign(distance=distance)
    nearest = points[points["correct"].eq(True)].nsmallest(FRAGILE_SHOWN, "distance")
    assert not set(nearest["point"]) & set(points.nsmallest(FRAGILE_SHOWN, "distance")["point"])
    assert [entry["name"] for entry in gallery] == nearest["name"].tolist()
    assert all(entry["predicted"] != entry["other"] for entry in gallery)
    assert len({image for entry in gallery for image, _ in entry["images"]}) == 3 * FRAGILE_SHOWN


def test_conditions_are_shown_where_the_run_has_feature_scores() -> None:
    """Features of a linear network are its inputs; the rows of a multiple of the identity are equally far apart."""
    x, grids = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)), []
    for weight in (2.0 * torch.eye(3), torch.randn(9, 3, generator=torch.Generator().manual_seed(0))):
        network = torch.nn.Linear(3, len(weight), bias=False)
        network.weight.data.copy_(weight)
        scores = [LogitMargin(), FeatureMargin("l2"), FeatureMargin("linf"), InputMargin(effort="fast")]
        scores.append(FeatureDistance(effort="fast"))
        run = brittle.score(brittle.Classifier(network, bounds=None), x, scores)
        grids.append(first_case(run)["conditions"].rows)
    equal, unequal = grids
    assert equal[0][1:] == ("2.8", "2.8", "2.8", "1.0", "40")  # 2 sqrt(2)
    assert float(unequal[0][4]) > 1.1
    assert equal[1][1:] == unequal[1][1:] == ("1.0", "1.0", "1.0", "1.0", "40")
    assert first_case(make_table(points=20, scores=SCORED))["conditions"] is None
