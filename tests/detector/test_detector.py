"""The rule: what it flags, and that it fails closed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.calibrated import SIMPLE, classifier, lenient, points
from torch import Tensor, nn

import brittle
from brittle.detector import FLAGS, Detector, MarginCriterion, Verdict
from brittle.detector.calibration import judge
from brittle.errors import BrittleError, DataError, DetectorFormatError
from brittle.estimate import Status
from brittle.scores import LogitMargin
from brittle.store.table import Table


def test_verdict() -> None:
    rng = np.random.default_rng(0)
    margins = rng.random(300)

    def judged(scores: np.ndarray, epsilon: float) -> Verdict:
        return judge(margins, scores, margins <= epsilon, margins > epsilon, 0.99)

    good, bad = judged(margins, 0.3), judged(rng.random(300), 0.3)
    assert good.trusted
    assert str(good).startswith("trusted")
    assert good.tau == pytest.approx(1.0)
    assert not bad.trusted
    assert "pseudo-margin" in str(bad)
    assert str(bad).startswith("useless")
    one_class = judged(margins, 2.0)
    assert (one_class.trusted, one_class.auroc) == (False, None)


def test_a_detector_says_what_makes_a_prediction_brittle(detector: Detector) -> None:
    assert isinstance(detector.criterion, MarginCriterion)
    assert (detector.epsilon, detector.norm) == (detector.criterion.epsilon, detector.criterion.norm)
    assert detector.limit is None


def test_flag_fails_closed(detector: Detector) -> None:
    edge = detector.threshold
    safe, below = np.nextafter(edge, math.inf), np.nextafter(edge, -math.inf)
    found = detector.flag([math.nan, None, math.inf, -math.inf, below, edge, safe])  # pyright: ignore[reportArgumentType] right when it runs
    assert found.tolist() == [True, True, True, True, True, False, False]
    assert detector.flag(torch.tensor([math.nan, 1e9])).tolist() == [True, False]


class Given(nn.Module):
    """Gives its inputs as logits, scaled by a weight of 1 so that there is something to digest."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


class Listed(nn.Module):
    """Gives for an input `k / 8` row `k` of a list of logits, scaled by a weight of 1."""

    def __init__(self, rows: list[list[float]]) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.rows = torch.tensor(rows)

    def forward(self, x: Tensor) -> Tensor:
        return self.rows[(8 * x[:, 0]).round().long()] * self.scale


@pytest.mark.parametrize("score", [name for name in SIMPLE if name != "feature_margin"])
def test_broken_logits_and_ties_are_brittle(detector: Detector, score: str) -> None:
    rows = [[1, 1, 0], [math.nan, 1, 0], [math.inf, 1, 0], [0, 1, -math.inf], [math.inf, math.inf, 0], [3, 1, 0]]
    network = Listed(rows)
    logits, _, brittle_points = lenient(detector, score, network).wrap(network)(torch.arange(6.0)[:, None] / 8)
    assert brittle_points.tolist() == [True] * 5 + [False]
    assert logits.shape == (6, 3)


def test_what_is_no_probability_is_brittle(detector: Detector) -> None:
    network = Given()
    wrapped = lenient(detector, "logit_margin", network, "probs").wrap(network)
    rows = torch.tensor([[0.7, 0.3, 0.0], [1.2, 0.1, 0.1], [-0.1, 0.8, 0.3]])
    assert wrapped(rows)[2].tolist() == [False, True, True]


def test_binary_logit(detector: Detector) -> None:
    network = nn.Linear(4, 1)
    wrapped = lenient(detector, "logit_margin", network, "binary-logit").wrap(network)
    x = torch.randn(5, 4)
    logits, score, _ = wrapped(x)
    assert torch.equal(logits[:, 1], network(x)[:, 0])
    assert torch.equal(score, network(x)[:, 0].double().abs())


def test_apply(detector: Detector) -> None:
    x = points(100, seed=4)
    x[7, 0] = math.nan
    labels = torch.randint(3, (100,), generator=torch.Generator().manual_seed(0))
    flags = detector.apply(classifier(), (x, labels))
    assert list(flags) == FLAGS.names
    assert flags["status"][7] == Status.NONFINITE_INPUT.slug
    assert flags["brittle"][7]
    assert np.isnan(flags["score"][7])
    sound = [row for row in range(100) if row != 7]
    _, score, brittle_points = detector.wrap(classifier())(x[sound])
    assert flags["brittle"][sound].tolist() == brittle_points.tolist()
    assert flags["label"].tolist() == labels.tolist()
    assert np.allclose(flags["score"][sound], score.detach().numpy(), rtol=0, atol=1e-5)


def test_however_many_points_have_no_score_all_are_flagged(detector: Detector) -> None:
    """`brittle.score` stops at more than 1 in 100; a detector must not leave its user without flags."""
    x = points(300, seed=4)
    x[100:200, 2] = math.nan
    flags = detector.apply(classifier(), x)
    assert len(flags) == 300
    assert flags["score"].isna().sum() == 100
    assert all(flags["brittle"].tolist()[100:200])
    assert not all(flags["brittle"].tolist())
    with pytest.raises(DataError, match="too_many_failures"):
        brittle.score(classifier(), x, [LogitMargin()])
    assert len(brittle.score(classifier(), x, [LogitMargin()], most_failures=100).points) == 300
    few = brittle.score(classifier(), x[90:105], [LogitMargin()], batch_size=2)  # in batches none of which can be read
    assert few.scores["value"].null_count == 5
    with pytest.raises(DataError, match="at most 99 of 1000"):
        brittle.score(classifier(), x, [LogitMargin()], most_failures=99)


def test_a_tie_is_brittle_when_applied(detector: Detector) -> None:
    network = Given()
    x = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.5, 0.2], [0.1, 0.0, 1.5]])
    subject = brittle.Classifier(network, bounds=(-2, 2))
    flags = lenient(detector, "max_probability", network).apply(subject, x)
    assert flags["brittle"].tolist() == [True, False, False, False]
    assert flags["status"][0] == Status.TIE.slug


def test_it_says_what_it_is(table: Table, detector: Detector) -> None:
    entropy = Detector.fit(table, epsilon=0.15, score="entropy")
    assert f"brittle when -entropy < {entropy.threshold!r}" in str(entropy)
    assert entropy.flag([-math.log(3), 0.0]).tolist() == [True, False]
    text = str(detector)
    assert repr(detector.threshold) in text
    assert "held-out" in text
    assert "verdict" in text
    assert isinstance(detector, Detector)
    assert issubclass(DetectorFormatError, BrittleError)
