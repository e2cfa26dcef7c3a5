"""The Laplacian smoothed over noise: it tends to the Laplacian, and kinks count."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from helpers.curved import network, points, smooth
from helpers.laws import MANY_ROWS, estimate
from torch import Tensor, nn

import brittle
from brittle.estimate import Status
from brittle.scores import Laplacian, SmoothedLaplacian


@smooth
def test_smoothed_tends_to_the_laplacian(body: Callable[[], list[nn.Module]]) -> None:
    """At a small sigma, in the mean of 8 replicates: of 6 points 12 standard errors are exceeded once in 2e4."""
    net, x = network(body), points()
    truth = estimate(brittle.Classifier(net), x, Laplacian("exact")).value
    score = SmoothedLaplacian(0.003, draws=1000)
    found = estimate(brittle.Classifier(net), torch.cat([x] * 8), score, rows=MANY_ROWS)
    values = found.value.view(8, len(x))
    error = values.std(dim=0) / math.sqrt(8)
    assert bool(((values.mean(dim=0) - truth).abs() <= 12 * error).all())
    assert float(error.mean()) < float(truth.abs().mean())
    assert bool(((found.low <= truth.repeat(8)) & (truth.repeat(8) <= found.high)).all())


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
