"""The study of the expected change, where the change of every point is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from studies.__main__ import main
from studies.expected_change.counted import count_changes
from studies.expected_change.rules import IMAGES, TOLERANCE, holds
from studies.expected_change.said import corrupted_larger
from studies.expected_change.scored import score_changes, score_points
from studies.expected_change.summary import (
    RADII,
    SURELY,
    of_changes,
    of_ranking,
    relative_error,
)
from studies.pages import page_of
from studies.study import Agreement, all_studies
from studies.tables import read_tables


def logistic(*weights: float) -> nn.Module:
    """Two classes whose log-odds are linear with these weights, so that all is known of them."""
    network = nn.Linear(len(weights), 2, bias=False)
    network.weight.data = torch.tensor([weights, (0.0,) * len(weights)])
    return network


def sigmoid(x: float) -> float:
    return 1 / (1 + float(np.exp(-x)))


def test_the_change_in_three_dimensions_fits_its_standard_error() -> None:
    """There a coordinate of the sphere is even on its range (Archimedes): moments by quadrature, 5 standard errors."""
    x, radius, weights = torch.tensor([[0.5, 0.1, -0.2]]), 0.8, (2.0, 1.0, -2.0)
    counted = count_changes(logistic(*weights), x, radius, 4000, 0).iloc[0]
    odds, nodes = 2 * 0.5 + 0.1 + 0.4, (np.arange(20000) + 0.5) / 10000 - 1
    change = 1 / (1 + np.exp(-(odds + radius * 3 * nodes))) - sigmoid(odds)
    for name, truth in {"mean": change.mean(), "variance": change.var(), "absolute": np.abs(change).mean()}.items():
        assert abs(counted[name] - truth) < 5 * counted[f"{name}_se"]
        assert counted[f"{name}_se"] < 0.05 * abs(truth)
    assert counted["flips"] == pytest.approx((1 - odds / (radius * 3)) / 2, abs=0.03)


def test_the_library_and_the_count_agree_where_all_is_known() -> None:
    """`L = p (1 - p) (1 - 2 p) |w|^2`, the variance to second order, and a bound that holds."""
    network, x = logistic(3.0, 4.0), torch.tensor([[0.2, 0.3], [0.4, 0.1], [0.5, 0.2]])
    p = np.array([sigmoid(1.8), sigmoid(1.6), sigmoid(2.3)])
    points = score_points(network, x, 0)
    assert points["laplacian"].to_numpy() == pytest.approx(25 * p * (1 - p) * (1 - 2 * p), rel=1e-4)
    assert not points["bends"].any()
    assert (points["laplacian_se"] == 0).all()
    radius = 0.05
    truth = count_changes(network, x, radius, 400, 1)
    summary = of_changes(points, truth, score_changes(network, x, [radius], 200, 0), radius, 2)
    assert summary["error"] < 0.1
    assert summary["tangent_variance"] < 0.1
    assert summary["tangent_absolute"] < 0.1
    assert summary["violated"] == 0
    assert summary["loose"] > 1
    assert summary["sigma"] == pytest.approx(radius / np.sqrt(2))


def test_errors_are_without_what_the_draws_add() -> None:
    """A truth with noise of 0.5 about `x`, an estimate of `1.5 x`: the error is a half, and not `sqrt(0.5)`."""
    random = np.random.default_rng(0)
    exact = random.normal(size=200_000)
    truth, se = exact + 0.5 * random.normal(size=exact.size), np.full(exact.size, 0.5)
    assert relative_error(1.5 * exact, truth, se) == pytest.approx((0.5, 0.5), abs=0.01)
    assert relative_error(2 * exact, exact, 0 * se) == pytest.approx((1, 0))
    partial = np.append(np.nan, exact[1:])
    assert relative_error(partial, truth, se)[0] < 0.05


def test_a_prediction_holds_by_sign_order_and_size() -> None:
    """Too few sure changes are no reason to say that it holds."""
    frame = pd.DataFrame({"ratio": [1.0, 1.25, 2, 0.7, np.nan], "sign": 0.9, "order": 0.9})
    assert holds(frame).tolist() == [True, True, False, False, False]
    for name in ("sign", "order"):
        assert not holds(frame.assign(**{name: TOLERANCE - 0.01})).any()


def test_scores_rank_points_that_flip_more_than_the_median() -> None:
    """Ten of twenty flip; the Laplacian puts one of them among the others, confidence all of them last."""
    flips, rank = np.repeat([0.5, 0.0], 10), np.arange(20.0)
    laplacian = np.where(rank == 9, 10.5, rank)
    same = dict.fromkeys(("probability_margin", "logit_margin", "entropy"), rank)
    points = pd.DataFrame({"laplacian": laplacian, "max_probability": -rank, **same})
    rows = {row["score"]: row for row in of_ranking(points, {"noise": flips}, SURELY)}
    assert rows["laplacian"]["auc"] == pytest.approx(0.99)
    assert rows["laplacian size"]["auc"] == pytest.approx(0.01)
    assert rows["max_probability"]["auc"] == 0
    assert rows["entropy"]["auc"] == 0
    assert {(row["points"], row["weak"], row["among"]) for row in rows.values()} == {(20, 10, SURELY)}


@pytest.mark.parametrize(
    ("dataset", "images", "agreement"),
    [("mnist", IMAGES, "AGREES"), ("mnist", IMAGES - 1, "UNMEASURED"), ("pneumoniamnist", IMAGES, "UNSAID")],
)
def test_few_images_and_data_of_no_paper_are_not_judged(dataset: str, images: int, agreement: str) -> None:
    frame = pd.DataFrame({"network": [*"abc"], "corrupted": [2.0, 3.0, 4.0], "clean": 1.0, "images": images})
    finding = corrupted_larger(frame, dataset)
    assert finding.agreement == Agreement[agreement]
    assert finding.outcome.startswith("for 3 of 3 ")


def test_networks_with_enough_images_speak_for_a_data_set() -> None:
    images = [IMAGES, IMAGES, IMAGES, 12, 12]
    frame = pd.DataFrame({"network": [*"abcde"], "corrupted": [2.0] * 3 + [0.5] * 2, "clean": 1.0, "images": images})
    finding = corrupted_larger(frame, "cifar10")
    assert (finding.agreement, finding.outcome.split(" networks")[0]) == (Agreement.AGREES, "for 3 of 3")
    alone = corrupted_larger(frame[2:], "cifar10")
    assert (alone.agreement, alone.outcome.split(" networks")[0]) == (Agreement.UNMEASURED, "for 1 of 3")


def test_the_whole_study(shared: Path, tmp_path: Path) -> None:
    """A linear network: it is piecewise linear, without kinks, and its prediction holds for short noise."""
    arguments = ["expected_change", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main(arguments) == 0
    tables = read_tables(tmp_path / "expected_change" / "results")
    networks, changes = tables["networks"].to_pandas(), tables["changes"].to_pandas()
    assert networks["group"].tolist() == ["piecewise linear"]
    assert networks["kink"].tolist() == [0]
    assert changes["radius"].tolist() == [*RADII]
    assert tables["corrupted"].to_pandas()["images"].unique().tolist() == [2]
    assert (changes["tangent_variance"] < 0.4).all()
    assert (changes["violated"] == 0).all()
    study = all_studies()["expected_change"]
    assert "does not agree" in page_of(study, tables)
    assert study.headlines(tables)
    assert len(study.pictures(tables)) == 2
