"""Rare flips depend on the point alone, count their passes, and include steep classes."""

from __future__ import annotations

import torch
from helpers.problems import inputs, small_classifier
from helpers.rare_truth import OfMargins, problem

import brittle
from brittle.extensions.rare_events.rare_event import RareFlips, RareSampled
from brittle.measure.forward import look
from brittle.noise import Gaussian

COPIES = 100


def measure(network: torch.nn.Module, size: int, count: int = 3, start: int = 0) -> RareSampled:
    """Sample flips at the point 0 under standard normal noise, `count` times with other noise."""
    classifier = brittle.Classifier(network, bounds=(-1, 1))
    ids = [str(number) for number in range(start, start + count)]
    clean = look(classifier, torch.zeros(count, size), ids, 0)
    return RareFlips(Gaussian(1.0), COPIES)(classifier, clean)


def test_points_share_passes_of_at_most_as_many_rows() -> None:
    classifier, batch_sizes = small_classifier(), []
    clean = look(classifier, inputs(3), ["a", "b", "c"], 0, rows=16)
    inner = classifier.model
    classifier.model = lambda x: batch_sizes.append(len(x)) or inner(x)  # type: ignore[func-returns-value]
    RareFlips(Gaussian(0.15), 20)(classifier, clean)
    assert max(batch_sizes) == 16
    assert sum(batch_sizes) == classifier.forward_passes - 3


def test_a_point_is_the_same_with_others_and_alone() -> None:
    network = problem("outside a cube", 10, 1e-4).network
    together, alone = measure(network, 10), measure(network, 10, 1, start=2)
    assert torch.allclose(together.subset.log[2:], alone.subset.log, rtol=1e-4)
    assert torch.allclose(together.stretched.log[2:], alone.stretched.log, rtol=1e-4)


def test_a_steep_far_class_is_seen_by_levels() -> None:
    """A class with a far but steep margin decides, behind a near and flat class: levels are relative."""
    b = torch.tensor([6.0, 4.5])
    network = OfMargins(lambda u: (b - u[:, :2]) * torch.tensor([0.01, 1.0]))
    sampled = measure(network, 10, 10)
    truth = torch.special.ndtr(-b.double()).sum().log()
    assert float((sampled.subset.log - truth).mean().abs()) < 1.5  # absolute levels give 6 less
