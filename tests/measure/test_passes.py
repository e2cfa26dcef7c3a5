"""Costs of measurements: declared, reported by their results, and counted by the classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from helpers.inputs import EXAMPLES, said
from helpers.laws import check_passes_of_points
from helpers.problems import inputs, small_classifier
from torch import Tensor, nn

import brittle
from brittle.estimate import Estimate
from brittle.extensions.certificates.radius import Certified
from brittle.extensions.rare_events.rare_event import RareFlips
from brittle.measure import (
    Clean,
    Forward,
    Measurement,
    Nearest,
    NetworkTraits,
    Passes,
    Sample,
    SampleUntil,
    passes_of,
    take,
)
from brittle.measure.forward import look
from brittle.noise import Gaussian
from brittle.run import plan
from brittle.scores import FirstOrderMargin, Score, Taylor, TaylorMVS
from brittle.scores.base import clean_status, finish

COUNT = 4
VARYING = (Nearest, SampleUntil, RareFlips, Certified)  # their declared cost is an average
NEEDS = plan(EXAMPLES)


@dataclass(frozen=True)
class Traits:
    """The traits of a network that the cost of a measurement depends on."""

    classes: int
    dimension: int
    bends: bool
    forward_only: str | None = None
    own_probability: bool = False

    def try_out(self, need: Measurement) -> Any:
        return SimpleNamespace(flat=torch.tensor([not self.bends]))


def smooth_classifier() -> brittle.Classifier:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return brittle.Classifier(nn.Sequential(nn.Flatten(), nn.Linear(36, 9), nn.Tanh(), nn.Linear(9, 4)))


NETWORKS = {
    "piecewise linear": (small_classifier, Traits(4, 36, False)),
    "smooth": (smooth_classifier, Traits(4, 36, True)),
}


def take_alone(classifier: brittle.Classifier, need: Measurement) -> tuple[Clean, dict[Measurement, Any], Passes]:
    """Return the clean pass that a measurement needs, its results, and its passes beyond that one."""
    ids = [str(number) for number in range(COUNT)]
    clean = look(classifier, inputs(COUNT), ids, 0, differentiate=need.uses_graph, observe=need.uses_features)
    before = (classifier.forward_passes, classifier.backward_passes)
    results = take([need], classifier, clean)
    passes = Passes(classifier.forward_passes - before[0], classifier.backward_passes - before[1])
    return clean, results, passes


@pytest.mark.every_other
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("need", NEEDS, ids=str)
def test_results_report_the_declared_passes(need: Measurement, network: str) -> None:
    build, traits = NETWORKS[network]
    clean, results, passes = take_alone(build(), need)
    reported = passes_of(results, clean)
    assert int(reported.sum()) == passes.total
    declared = need.cost(traits)
    if isinstance(need, VARYING):
        assert declared.total > 0
    else:
        assert (passes.forward, passes.backward) == (COUNT * declared.forward, COUNT * declared.backward)
        assert reported.tolist() == [declared.total] * COUNT


@pytest.mark.parametrize("need", [need for need in NEEDS if need.differentiates], ids=str)
def test_measurements_that_differentiate_go_backward(need: Measurement) -> None:
    assert take_alone(smooth_classifier(), need)[2].backward > 0


@pytest.mark.parametrize("need", [need for need in NEEDS if not need.differentiates], ids=str)
def test_measurements_that_do_not_differentiate_go_forward_only(need: Measurement) -> None:
    classifier, attempts = small_classifier(), []
    classifier.gradient = lambda *a, **k: attempts.append(a) or torch.zeros_like(a[1])  # type: ignore[method-assign]
    take_alone(classifier, need)
    assert not attempts


def test_a_separate_pass_for_features_is_counted() -> None:
    classifier = small_classifier()
    need = next(need for need in NEEDS if need.uses_features and not need.differentiates)
    clean = look(classifier, inputs(COUNT), [str(number) for number in range(COUNT)], 0)
    before = classifier.passes
    assert int(passes_of(take([need], classifier, clean), clean).sum()) == classifier.passes - before == COUNT


@pytest.mark.parametrize("need", [Forward(True), Sample(Gaussian(0.1), 8, probability=True)], ids=str)
def test_probabilities_of_an_estimator_cost_one_more_pass(need: Measurement) -> None:
    bayes = pytest.importorskip("sklearn.naive_bayes").GaussianNB()
    x = inputs(COUNT).flatten(1).numpy()
    clean, results, passes = take_alone(brittle.Classifier(bayes.fit(x, [0, 1] * (COUNT // 2))), need)
    declared = need.cost(Traits(2, x.shape[1], True, "it is no network", own_probability=True))
    assert passes_of(results, clean).tolist() == [declared.total] * COUNT
    assert passes.total == COUNT * declared.total


def test_a_sweep_over_sigma_costs_one_jacobian() -> None:
    scores = [kind(sigma) for kind in (Taylor, TaylorMVS) for sigma in torch.linspace(0.01, 1.0, 20).tolist()]
    needs = plan([*scores, FirstOrderMargin()])
    assert len(needs) == 1
    classifier = small_classifier()
    clean = look(classifier, inputs(COUNT), list("abcd"), 0, differentiate=True)
    take(needs, classifier, clean)
    assert classifier.passes == COUNT * (1 + 4)


# Measurements from outside the package.


@dataclass(frozen=True)
class Silent(Measurement):
    """Two more passes of the points that the result does not report."""

    differentiates: ClassVar[bool] = False

    def cost(self, network: NetworkTraits) -> Passes:
        return Passes(2)

    @classmethod
    def measure(cls, needs: Sequence[Silent], classifier: brittle.Classifier, clean: Clean) -> list[Tensor]:
        with torch.no_grad():
            logits = classifier(clean.inputs) + classifier(clean.inputs)
        return [logits for _ in needs]


def margin_of(self: Score, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
    """Return the clean margin, reported as three passes."""
    clean = measured[Forward()]
    top = clean.logits.double().topk(2, dim=1).values
    margin = top[:, 0] - top[:, 1]
    return finish(margin, margin, margin, clean_status(clean), 3)


def test_passes_that_no_result_reports_are_counted() -> None:
    outside = said(needs=(Forward(), Silent()), estimate=margin_of)()
    table = brittle.score(small_classifier(), inputs(5), [outside], skip_doctor=True)
    assert sum(table.points["passes"].to_pylist()) == 15
    check_passes_of_points(small_classifier(), inputs(5), [outside])
