"""Every decision: counts against single copies, linear models against known answers, attacks against the boundary."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from helpers.decided import DECISIONS, bent_network
from helpers.normals import normal_cdf
from scipy.special import owens_t
from scipy.stats import norm
from torch import Tensor, nn

import brittle
from brittle.decisions import Custom, MultiLabel, PredictedClass, SameTop, Within
from brittle.errors import ModelError, ParameterError
from brittle.noise import Gaussian, Stream
from brittle.scores import FirstOrderMargin, Moments, MonteCarlo, Score, Shrinkage, Taylor
from brittle.scores.catalogue import CATALOGUE

pytestmark = pytest.mark.usefixtures("short_search")

SIGMA, DRAWS = 0.4, 40
POINTS = torch.rand(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def copies_of(points: Tensor, purpose: str = "sample") -> Tensor:
    """Return the noisy copies of a sampled score, `[B, DRAWS, n]`: pairs of a draw and its mirror image."""
    stream = Stream(Gaussian(SIGMA), points, [str(row) for row in range(len(points))], 0, purpose)
    half = stream.draw(DRAWS // 2)
    return (points[:, None, None] + torch.stack((half, -half), dim=2)).flatten(1, 2)


@pytest.mark.parametrize("name", DECISIONS)
def test_counts_are_those_of_single_copies(name: str) -> None:
    """The share of flips equals that of single copies under a second implementation of the decision."""
    decision, holds = DECISIONS[name]
    network = bent_network()
    estimate = MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)(brittle.Classifier(network, decision=decision), POINTS)
    with torch.no_grad():
        for row, copies in enumerate(copies_of(POINTS)):
            output = network(POINTS[row])
            flips = sum(not holds(output, network(copy)) for copy in copies)
            assert float(estimate.value[row]) == pytest.approx(flips / DRAWS, abs=1e-12)


@pytest.mark.every_other
@pytest.mark.parametrize("name", DECISIONS)
def test_an_attack_ends_where_the_decision_is_another(name: str) -> None:
    """On a fine grid of inputs before it the decision still holds."""
    decision, holds = DECISIONS[name]
    network = bent_network()
    classifier = brittle.Classifier(network, bounds=(-9, 9), decision=decision)
    nearest = brittle.nearest(classifier, POINTS, norm="l2")
    with torch.no_grad():
        for row, counterexample in enumerate(nearest.points):
            output, step = network(POINTS[row]), counterexample - POINTS[row]
            assert not holds(output, network(counterexample))
            assert all(holds(output, network(POINTS[row] + share * step)) for share in torch.linspace(0, 0.99, 50))
            assert float(nearest.distance[row]) == pytest.approx(float(step.norm()))


SAMPLED: list[Score] = [
    MonteCarlo(sigma=SIGMA, draws=400, limit=None),
    Moments(sigma=SIGMA, draws=400),
    Shrinkage(sigma=SIGMA, draws=400, limit=None),
    MonteCarlo(sigma=SIGMA, draws=400, limit=0.9),
    Shrinkage(sigma=SIGMA, draws=400, limit=0.9),
]


def flip_probability(margins: np.ndarray, covariance: np.ndarray) -> float:
    """Return `P(not all positive)` of a normal vector with this mean and covariance; of two by Owen's T function."""
    spread = np.sqrt(covariance.diagonal())
    if len(spread) > 2:
        return 1 - normal_cdf(margins, np.zeros(len(spread)), covariance, 1e-6)
    (h, k), r = margins / spread, covariance[0, 1] / spread.prod()
    root = math.sqrt(1 - r * r)
    beside = owens_t(h, (k / h - r) / root) + owens_t(k, (h / k - r) / root)
    return 1 - float((norm.cdf(h) + norm.cdf(k)) / 2 - beside - (0.5 if h * k < 0 else 0))


@pytest.mark.parametrize(("count", "apart"), [(1, True), (4, True), (2, False), (3, False)])
def test_labels_of_a_linear_model_have_their_orthant_probability(count: int, apart: bool) -> None:
    """To 1e-12 for independent labels and for two correlated labels; to 1e-4 for three."""
    torch.manual_seed(0)
    network = nn.Linear(6, count).double()
    if apart:
        nn.init.orthogonal_(network.weight)
    classifier = brittle.Classifier(network, decision="multilabel")
    exact = []
    with torch.no_grad():
        for z in network(POINTS):
            signs = z.sign()
            rows = (signs[:, None] * network.weight).numpy()
            margins, covariance = (signs * z).numpy(), SIGMA**2 * rows @ rows.T
            alone = 1 - norm.cdf(margins / np.sqrt(covariance.diagonal())).prod()
            exact.append(alone if apart else flip_probability(margins, covariance))
    estimate = Taylor(sigma=SIGMA)(classifier, POINTS)
    assert estimate.value.tolist() == pytest.approx(exact, abs=1e-4 if count == 3 else 1e-12)


@pytest.mark.parametrize("tolerance", [0.05, 2.0])
def test_linear_regressions_have_their_exact_probability(tolerance: float) -> None:
    """`taylor` to 1e-12, sampled scores within their intervals at 99.9% (25 of them: fails falsely 1 in 40 times
    at most; the seed is fixed)."""
    torch.manual_seed(3)
    network = nn.Linear(6, 1).double()
    classifier = brittle.Classifier(network, decision=Within(tolerance))
    slope = float(network.weight.detach().norm())
    exact = 2 * norm.sf(tolerance / (SIGMA * slope))
    assert Taylor(sigma=SIGMA)(classifier, POINTS).value.tolist() == pytest.approx([exact] * 5, abs=1e-12)
    for score in SAMPLED:
        estimate = score(classifier, POINTS, confidence=0.999)
        assert bool(((estimate.low <= exact) & (exact <= estimate.high)).all()), score.label
    nearest = FirstOrderMargin()(classifier, POINTS).value
    assert nearest.tolist() == pytest.approx([tolerance / slope] * 5)


@pytest.mark.parametrize("score", ["monte_carlo", "shrinkage", "taylor", "mmse", "input_margin"])
def test_the_predicted_class_as_a_function_has_the_same_numbers(score: str) -> None:
    """Margins as pseudo-logits, as in every other decision, against class scores, as in the default."""

    def keeps_its_class(output: Tensor, at_point: Tensor) -> Tensor:
        return PredictedClass().margins(output, at_point.argmax(dim=1, keepdim=True))

    network, kind = bent_network(), CATALOGUE[score]
    estimator = kind() if score == "input_margin" else kind(sigma=SIGMA)  # pyright: ignore[reportCallIssue]
    decisions = (None, Custom(keeps_its_class))
    plain, by_function = (estimator(brittle.Classifier(network, decision=how), POINTS) for how in decisions)
    assert by_function.value.tolist() == pytest.approx(plain.value.tolist(), rel=1e-6, abs=1e-9)
    assert by_function.status.tolist() == plain.status.tolist()


def test_one_label_has_the_probability_of_a_two_class_model() -> None:
    """The expected change of one label is that of a classifier with its logit alone."""
    network = bent_network()
    third = nn.Linear(4, 1, bias=False).double()
    with torch.no_grad():
        third.weight.copy_(torch.tensor([[0.0, 0.0, 1.0, 0.0]]))
    alone = nn.Sequential(network, third)
    for name in ("laplacian", "first_order_change", "entropy", "softmax"):
        score = CATALOGUE[name](sigma=0.1) if name == "first_order_change" else CATALOGUE[name]()  # pyright: ignore[reportCallIssue]
        label, logit = (
            score(classifier, POINTS).value.tolist()
            for classifier in (
                brittle.Classifier(network, decision="multilabel:2"),
                brittle.Classifier(alone, outputs="binary-logit"),
            )
        )
        assert label == pytest.approx(logit, rel=1e-9), name


@pytest.mark.every_other
@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("score", CATALOGUE)
def test_a_score_applies_to_a_decision_or_refuses_it_by_name(score: str, name: str) -> None:
    """Each score applies as its class declares; then every point gets a number or a status."""
    decision, _ = DECISIONS[name]
    kind = CATALOGUE[score]
    needs_noise = "sigma" in kind.__dataclass_fields__
    estimator = kind(sigma=0.1) if needs_noise else kind()  # pyright: ignore[reportCallIssue]
    classifier = brittle.Classifier(bent_network(), decision=decision)
    if kind.serves in ("counts", "all") or (kind.serves == "probability" and decision.has_probability):
        assert len(estimator(classifier, POINTS[:2]).value) == 2
        return
    with pytest.raises(ParameterError, match=f"{score}.*{decision.label}"):
        estimator(classifier, POINTS[:2])
    with pytest.raises(ParameterError, match=score):
        brittle.score(classifier, POINTS, [estimator])


@pytest.mark.parametrize("threshold", [None, 0.5, 0.4, (0.2, 0.6, 0.7, 0.45)])
@pytest.mark.parametrize("only", [None, 1])
def test_a_threshold_is_in_the_units_of_the_declared_outputs(threshold, only: int | None) -> None:
    """Labels flip where their probabilities pass the threshold, copy by copy."""
    network = nn.Sequential(bent_network(), nn.Linear(4, 4, bias=False), nn.Sigmoid()).double()
    with torch.no_grad():
        network[1].weight.copy_(4 * torch.eye(4))  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    decision = MultiLabel(threshold=threshold, only=only)
    classifier = brittle.Classifier(network, outputs="probs", decision=decision)
    limits = torch.as_tensor(0.5 if threshold is None else threshold, dtype=torch.float64)
    selected = slice(None) if only is None else slice(only, only + 1)
    estimate = MonteCarlo(sigma=SIGMA, draws=DRAWS, limit=None)(classifier, POINTS)
    margin = CATALOGUE["logit_margin"]()(classifier, POINTS).value
    with torch.no_grad():
        for row, copies in enumerate(copies_of(POINTS)):
            holds = (network(POINTS[row]) > limits)[selected]
            flips = sum(bool(((network(copy) > limits)[selected] != holds).any()) for copy in copies)
            assert float(estimate.value[row]) == pytest.approx(flips / DRAWS, abs=1e-12)
            apart = (network(POINTS[row]).logit() - limits.logit())[selected].abs().min()
            assert float(margin[row]) == pytest.approx(float(apart), rel=1e-9)
    assert classifier.decision == decision
    assert classifier.decision.parameters.get("threshold") == threshold
    assert classifier.decision.has_probability == (only is not None and threshold in (None, 0.5))
    assert float(estimate.value.max()) > 0


def test_a_tie_is_a_tie() -> None:
    """A label on its threshold, two classes that share the last place, a network of zeros."""
    flat = nn.Linear(6, 4).double()
    nn.init.zeros_(flat.weight)
    nn.init.zeros_(flat.bias)
    for decision in (MultiLabel(), SameTop(2)):
        estimate = MonteCarlo(sigma=SIGMA, draws=4, limit=None)(brittle.Classifier(flat, decision=decision), POINTS[:1])
        assert brittle.estimate.Status(int(estimate.status[0])).slug == "tie"


def test_a_pass_without_its_points_is_refused() -> None:
    """A measurement that sends copies without their points would see no flip."""
    classifier = brittle.Classifier(bent_network(), decision="multilabel")
    with pytest.raises(ParameterError, match="logits_of"):
        classifier(POINTS)


@pytest.mark.parametrize(
    ("decision", "network", "message"),
    [
        (SameTop(4), bent_network(), "more than 4 classes; the model has 4"),
        (MultiLabel(only=4), bent_network(), "label 4 was asked for; the model returns 4"),
        (MultiLabel((0.1, 0.2)), bent_network(), "2 thresholds were given; the model returns 4"),
        (Within((0.1, 0.2)), bent_network(), "2 tolerances were given; the model returns 4"),
        (MultiLabel(), lambda x: x.sum(), "expected a row for each"),
        (MultiLabel(), lambda x: x[:, 0], "needs \\[5, numbers\\]"),
        (Custom(lambda new, old: new.sum()), bent_network(), "gave a tensor of shape \\[\\] for 5 outputs"),
        (Custom(lambda new, old: cast("Any", "same")), bent_network(), "gave str for 5 outputs"),
    ],
)
def test_outputs_that_do_not_fit_a_decision_are_refused(decision, network, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        MonteCarlo(sigma=SIGMA, draws=4, limit=None)(brittle.Classifier(network, decision=decision), POINTS)


def test_a_function_of_true_and_false_counts_as_its_margin() -> None:
    """False is not a tie: value and interval are those of the predicted class."""
    network = bent_network()
    same = Custom(lambda new, old: new.argmax(dim=1) == old.argmax(dim=1), name_of="same")
    by_function, plain = (
        MonteCarlo(sigma=2.0, draws=DRAWS, limit=None)(brittle.Classifier(network, decision=how), POINTS)
        for how in (same, None)
    )
    assert 0 < float(plain.value.max()) < 1
    for name in ("value", "low", "high", "status"):
        assert getattr(by_function, name).tolist() == getattr(plain, name).tolist()


def test_a_point_that_differs_from_itself_is_refused() -> None:
    """All its copies would agree and show no flip. A tie and NaN have a status instead."""
    apart = brittle.Classifier(bent_network(), decision=Custom(lambda new, old: (new - old) - 1.0))
    with pytest.raises(ModelError, match="compared with itself"):
        MonteCarlo(sigma=SIGMA, draws=4, limit=None)(apart, POINTS)
    with pytest.raises(ModelError, match="compared with itself"):
        brittle.score(apart, POINTS, [MonteCarlo(sigma=SIGMA, draws=4, limit=None)])
    for number, slug in ((0.0, "tie"), (math.nan, "nonfinite_logits")):
        level = Custom(lambda new, old, number=number: new[:, 0] * 0 + number)
        estimate = MonteCarlo(sigma=SIGMA, draws=4, limit=None)(
            brittle.Classifier(bent_network(), decision=level), POINTS[:1]
        )
        assert brittle.estimate.Status(int(estimate.status[0])).slug == slug
