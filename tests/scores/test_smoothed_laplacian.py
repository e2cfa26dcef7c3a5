"""The Laplacian smoothed over noise: it tends to the Laplacian, and kinks count."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from helpers.curved import network, points, smooth
from helpers.laws import MANY_ROWS, estimate
from torch import Tensor, nn

import brittle
from brittle.estimate import Status
from brittle.measure.forward import look
from brittle.scores import Laplacian, SmoothedLaplacian


@pytest.mark.parametrize("form", ["change", "gradient"])
@smooth
def test_smoothed_tends_to_the_laplacian(body: Callable[[], list[nn.Module]], form: str) -> None:
    """At a small sigma both forms hold the Laplacian: of 6 points at 1 - 1e-6 a miss happens once in 1e5."""
    net, x = network(body), points()
    truth = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    score = SmoothedLaplacian(0.003, draws=4000, form=form)
    clean = look(brittle.Classifier(net), x, [str(n) for n in range(len(x))], 0, rows=MANY_ROWS)
    found = score.estimate({score.needs[0]: score.needs[0](brittle.Classifier(net), clean)}, 1 - 1e-6)
    assert bool(((found.low <= truth) & (truth <= found.high)).all())
    assert float((found.high - found.low).mean()) < 20.0 * float(truth.abs().mean())


def test_a_kink_counts_in_the_smoothed_laplacian() -> None:
    """A two-class network with the margin `|x_0 - 1/2|` is flat at both sides of its kink and bends at it.

    Near it `E[dp]` is `p(1-p) E|e_0| = p(1-p) s sqrt(2/pi)` to first order, which no derivative on a side knows.
    """

    class Fold(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            margin = 1.0 + (x[:, 0] - 0.5).abs()
            return torch.stack((margin, torch.zeros_like(margin)), dim=1)

    sigma, x = 1e-3, torch.tensor([[0.5 + 1e-9, 0.3]], dtype=torch.float64)
    classifier = brittle.Classifier(Fold())
    p = 1.0 / (1.0 + math.exp(-1.0))
    expected = 2.0 / sigma**2 * p * (1.0 - p) * sigma * math.sqrt(2.0 / math.pi)
    smoothed = estimate(classifier, x, SmoothedLaplacian(sigma, draws=20000), rows=MANY_ROWS)
    assert abs(float(smoothed.value[0]) / expected - 1.0) < 0.05  # 12 standard errors: never in practice
    assert abs(float(estimate(classifier, x, Laplacian()).value[0])) < expected / 1000.0
    assert estimate(classifier, x, Laplacian()).status.tolist() == [int(Status.KINK)]
