"""The study of margin consistency, on affine networks, where every margin is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import brittle
from studies.__main__ import main
from studies.margin_consistency.autoattack.fab import fab_margins
from studies.margin_consistency.descent import margins_of, withstands
from studies.margin_consistency.exact import affine_weight, exact_margins, unbounded_margins
from studies.margin_consistency.few import from_few
from studies.margin_consistency.margins import margins
from studies.margin_consistency.measures import SIZES
from studies.margin_consistency.study import STUDY
from studies.margin_consistency.summary import beside_fab, binned, consistency, detected, tau_of
from studies.pages import page_of
from studies.tables import read_tables

BOTH = pytest.mark.parametrize("norm", ["linf", "l2"])


def linear(classes: int = 3, seed: int = 0) -> tuple[nn.Sequential, torch.Tensor]:
    """Return a linear network of twelve pixels, and twenty points."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, classes))
    for parameter in network.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator)
    return network, torch.rand(20, 1, 3, 4, generator=generator)


def last(network: nn.Sequential) -> nn.Linear:
    layer = network[1]
    assert isinstance(layer, nn.Linear)
    return layer


def exactly(network: nn.Module, x: torch.Tensor, norm: str) -> np.ndarray:
    weight = affine_weight(network, x)
    assert weight is not None
    with torch.no_grad():
        return exact_margins(weight, network(x).double().numpy(), x.flatten(1).double().numpy(), norm)


@pytest.mark.parametrize(
    ("norm", "gap", "bounded", "free"),
    [
        ("linf", 0.3, 0.25, 0.15),
        ("l2", 0.3, np.hypot(0.25, 0.05), 0.3 / np.sqrt(2)),
        ("l2", 0.96, np.inf, 0.96 / np.sqrt(2)),
    ],
)  # fmt: skip
def test_margins_by_hand(norm: str, gap: float, bounded: float, free: float) -> None:
    """Both pixels have to fall; the second one may fall by 0.05 only, the first one by 0.9."""
    weight, logits, x = np.array([[0.0, 0.0], [-1.0, -1.0]]), np.array([[gap, 0.0]]), np.array([[0.9, 0.05]])
    assert exact_margins(weight, logits, x, norm)[0] == pytest.approx(bounded, rel=1e-6)
    assert unbounded_margins(weight, logits, norm)[0] == pytest.approx(free)


@BOTH
def test_the_search_ends_at_the_exact_margins(norm: str) -> None:
    network, x = linear()
    margins_found = brittle.nearest(
        brittle.Classifier(network, bounds=(0, 1)), x, norm=norm, effort="fast"
    ).distance.numpy()
    exact = exactly(network, x, norm)
    assert (margins_found >= exact * (1 - 1e-5)).all()
    assert margins_found == pytest.approx(exact, rel=3e-3)
    with torch.no_grad():
        free = unbounded_margins(last(network).weight.double().numpy(), network(x).double().numpy(), norm)
    assert (free <= exact * (1 + 1e-6)).all()


def test_fab_ends_at_the_exact_margins() -> None:
    network, x = linear()
    fab, exact = fab_margins(network, x, network(x).argmax(1), 20).numpy(), exactly(network, x, "linf")
    assert (fab >= exact * (1 - 1e-5)).all()
    assert fab == pytest.approx(exact, rel=5e-3)
    row = beside_fab(pd.DataFrame({"margin": [1.0, 1.0, 2.0, np.inf], "fab": [1.5, 1.0, 1.0, 1.0]}))
    assert row == {"points": 3, "nearer": 1, "further": 1, "ratio": 1.0}


@BOTH
def test_the_descent_finds_what_is_there_and_nothing_else(norm: str) -> None:
    network, x = linear()
    classes, exact = network(x).argmax(1), torch.as_tensor(exactly(network, x, norm))
    assert withstands(network, x, classes, 0.99 * exact, norm, 40, 1, 0).all()
    assert not withstands(network, x, classes, 1.05 * exact, norm, 40, 2, 0).any()
    assert not withstands(network, x, (classes + 1) % 3, 0 * exact, norm, 1, 1, 0).any()
    assert (margins_of(network(x), classes) > 0).all()


@BOTH
def test_two_classes_of_a_linear_network_are_consistent(norm: str) -> None:
    """Away from the bounds the input margin is the logit margin over one length: tau 1, features keep distances."""
    network, x = linear(classes=2)
    last(network).bias.data[0] += (network(0.5 + 0 * x[:1]) @ torch.tensor([-1.0, 1.0])).item()
    x = 0.5 + 0.02 * (x - 0.5)
    labels = network(x).argmax(1)
    labels[0] = 1 - labels[0]
    points = margins(network, x, labels, norm, "fast", 0)
    assert points["right"].tolist() == [False] + [True] * 19
    assert tau_of(points) == pytest.approx(1)
    row = consistency(points, float(np.median(points["margin"])))
    assert (row["right"], row["failed"], row["auroc"], row["fpr95"]) == (19, 0, 1, 0)
    assert row["moved"] == pytest.approx(1)
    assert row["spread"] == pytest.approx(1, rel=1e-4)
    assert row["robust"] == pytest.approx((points["margin"] > points["margin"].median())[1:].sum() / 20)
    bins = pd.DataFrame(binned(points))
    assert bins["margin"].is_monotonic_increasing


def test_detection_by_hand() -> None:
    """Five fragile points with scores 0 to 4, five robust ones, of which one has a score below all of these."""
    margin, score = [0.1] * 5 + [0.3] * 5, [0, 1, 2, 3, 4, -1, 5, 6, 7, 8]
    row = detected(margin, score, 0.1)
    assert (row["positives"], row["auroc"], row["fpr95"]) == (5, pytest.approx(0.8), pytest.approx(0.2))
    assert row["aupr"] == pytest.approx(np.mean([1 / 2, 2 / 3, 3 / 4, 4 / 5, 5 / 6]))
    assert np.isnan(detected(margin, score, 0.05)["auroc"])


def test_a_perfect_score_gives_the_robust_accuracy_exactly() -> None:
    """All points are the subset, and their order is that of the margins; one in four is predicted wrongly."""
    margin = np.linspace(0.01, 0.4, 40)
    correct = np.arange(40) % 4 > 0
    points = pd.DataFrame({"margin": margin, "right": correct})
    everything = pd.DataFrame({"logit_margin": margin**2, "right": correct, "robust": correct & (margin > 0.2)})
    rows = pd.DataFrame(from_few(points, everything, everything["robust"].to_numpy()[:30], 0.2, 0))
    complete = rows.iloc[-1]
    assert rows["size"].tolist() == [10, 20, 40]
    assert complete["attacked"] == everything["robust"].mean()
    assert complete["by_margins"] == complete["by_attack"] == everything["robust"][:30].mean()
    assert complete["estimate_error"] == complete["counted_error"] == 0
    assert rows["among"].tolist() == [40, 40, 40]
    assert rows["estimate_error"].is_monotonic_decreasing
    assert (rows["estimate_error"] < rows["counted_error"] + 1e-12).all()


def test_the_whole_study(shared: Path, tmp_path: Path) -> None:
    """A linear network: everything found is confirmed and exact, and a page comes of it."""
    arguments = ["margin_consistency", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main(arguments) == 0
    results = read_tables(tmp_path / "margin_consistency" / "results")
    checked, networks = results["checked"].to_pandas(), results["networks"].to_pandas()
    assert set(networks["network"]) == {"linear"}
    few_margins = results["few"].to_pandas()
    assert (few_margins["tried"] == SIZES["tiny"].standard[0]).all()
    assert few_margins["by_margins"].tolist() == few_margins["by_attack"].tolist()
    assert (checked["there"] == checked["points"]).all()
    assert (checked["held"] == checked["points"]).all()
    assert checked["exact_least"].min() > 1 - 1e-5
    assert checked["exact_most"].max() < 1.003
    assert "## Where this differs from the paper" in page_of(STUDY, results)
    assert STUDY.headlines(results)
    assert all(svg.startswith("<svg") for svg in STUDY.pictures(results).values())
