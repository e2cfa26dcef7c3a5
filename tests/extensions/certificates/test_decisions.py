"""Certified radii of other decisions than the predicted class: exact for linear models, below what an attack finds."""

from __future__ import annotations

import pytest
import torch
from helpers.bounded_networks import certified, lively
from helpers.decided import first_leads
from torch import Tensor, nn

import brittle
from brittle.decisions import Custom, Decision, MultiLabel, SameTop, Within
from brittle.extensions.certificates.proof import ACCURACY
from brittle.scores import InputMargin

POINTS = torch.rand(6, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
CORNERS = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 5)
THRESHOLDS = (0.1, -0.2, 0.0, 0.3)
DECISIONS: list[Decision] = [
    MultiLabel(), MultiLabel(threshold=THRESHOLDS), MultiLabel(only=2), SameTop(2), Within(0.3),
    Within((0.1, 0.2, 0.3, 0.4)),
]  # fmt: skip


def linear() -> nn.Linear:
    torch.manual_seed(3)
    return nn.Linear(5, 4).double()


def distances(decision: Decision, network: nn.Linear, norm: str) -> Tensor:
    """Return the distance to the nearest hyperplane at which the decision changes, hyperplane by hyperplane, `[B]`."""
    with torch.no_grad():
        z, weight = network(POINTS), network.weight.detach()
    dual = 1 if norm == "linf" else 2
    nearest = []
    for row in z:
        if isinstance(decision, MultiLabel):
            class_numbers = range(4) if decision.only is None else [2]
            thresholds = THRESHOLDS if isinstance(decision.threshold, tuple) else (0.0,) * 4
            planes = [(weight[j], float(row[j]) - thresholds[j]) for j in class_numbers]
        elif isinstance(decision, SameTop):
            inside = row.topk(2).indices.tolist()
            planes = [
                (weight[a] - weight[b], float(row[a] - row[b]))
                for a in inside for b in range(4) if b not in inside
            ]  # fmt: skip
        else:
            assert isinstance(decision, Within)
            tolerance = decision.tolerance if isinstance(decision.tolerance, tuple) else (decision.tolerance,) * 4
            planes = [(weight[j], tolerance[j]) for j in range(4)]
        nearest.append(min(abs(gap) / float(slope.norm(p=dual)) for slope, gap in planes))
    return torch.tensor(nearest, dtype=torch.float64)


@pytest.mark.every_other
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("decision", DECISIONS, ids=repr)
def test_a_linear_model_has_its_exact_distance(decision: Decision, norm: str) -> None:
    network = linear()
    certificate = certified(brittle.Classifier(network, decision=decision), POINTS, norm, bounded=False)
    exact = distances(decision, network, norm)
    assert certificate.unsupported is None
    assert bool((certificate.radius < exact).all())
    assert bool((certificate.radius > 0.998 * exact).all())


@pytest.mark.parametrize("decision", DECISIONS[1::2], ids=repr)
def test_no_input_inside_the_radius_decides_otherwise(decision: Decision) -> None:
    """Corners of the ball and an attack, each of them alone through the network; the radius is not 0 everywhere."""
    network = lively(nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 4)), 1).double()
    classifier = brittle.Classifier(network, decision=decision)
    radius = certified(classifier, POINTS, bounded=False).radius
    assert int((radius > 0).sum()) >= 4
    nearest = brittle.nearest(classifier, POINTS, norm="linf", effort="fast", bounded=False).distance
    assert bool((radius <= nearest * (1 + 1e-9)).all())
    with torch.no_grad():
        for point, size in zip(POINTS, radius, strict=True):
            decided = decision.decide(network(point[None]))
            for corner in CORNERS:
                moved = network((point + size * corner)[None])
                assert float(decision.margins(moved, decided).min()) > 0


def test_a_decision_without_linear_margins_has_no_certificate() -> None:
    score = InputMargin(effort="fast", certify=True)
    estimate = score(brittle.Classifier(linear(), decision=Custom(first_leads)), POINTS)
    assert estimate.low.tolist() == [0.0] * len(POINTS)
    assert set(estimate.detail or ()) == {
        "no lower bound goes through the decision custom:first_leads, which is no linear function"
    }


def test_a_softmax_at_the_end_changes_no_certificate() -> None:
    """Nearly all probabilities underflow to 0."""
    last = nn.Linear(12, 4)
    network = lively(nn.Sequential(nn.Linear(5, 12), nn.ReLU(), last), 1).double()
    with torch.no_grad():
        last.weight.mul_(1000.0)
        last.bias.mul_(1000.0)
    logits = certified(brittle.Classifier(network), POINTS)
    shares = certified(brittle.Classifier(nn.Sequential(network, nn.Softmax(dim=-1)), outputs="probs"), POINTS)
    assert shares.unsupported is None
    assert int((shares.radius > 0).sum()) >= 4
    torch.testing.assert_close(shares.radius, logits.radius, rtol=ACCURACY, atol=0)


class Together(nn.Module):
    """The mean probabilities of two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            lively(nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 4)), seed) for seed in (1, 2)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([part(x).softmax(dim=1) for part in self.parts]).mean(0)


def test_no_input_inside_the_radius_has_another_likeliest_class() -> None:
    """Corners of the ball and an attack, of probabilities in single precision without a softmax at their end."""
    network, points = Together().eval(), POINTS.float()
    classifier = brittle.Classifier(network, outputs="probs")
    radius = certified(classifier, points, bounded=False).radius
    assert int((radius > 0).sum()) >= 4
    nearest = brittle.nearest(classifier, points, norm="linf", effort="fast", bounded=False)
    assert bool((radius <= nearest.distance).all())
    with torch.no_grad():
        for point, size in zip(POINTS, radius, strict=True):
            moved = (point + size * CORNERS).float()
            assert {int(network(copy[None]).argmax()) for copy in moved} == {int(network(point[None].float()).argmax())}


@pytest.mark.parametrize(
    ("decision", "last"), [(MultiLabel(), nn.Sigmoid()), (SameTop(2), nn.Softmax(dim=1))], ids=repr
)
def test_other_decisions_from_probabilities_are_refused(decision: Decision, last: nn.Module) -> None:
    """Small probabilities underflow to the same number, and 1 less one near 1 is rounded."""
    classifier = brittle.Classifier(nn.Sequential(linear(), last), decision=decision, outputs="probs")
    certificate = certified(classifier, POINTS)
    assert certificate.radius.tolist() == [0.0] * len(POINTS)
    assert certificate.unsupported == (
        f"probabilities from which {decision.label} is decided: let the model return the logits below them, without "
        "outputs=probs"
    )
