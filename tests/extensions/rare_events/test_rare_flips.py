"""Rare flips: what is measured depends on the point alone, costs what it says, and finds what is there."""

from __future__ import annotations

import torch
from helpers.problems import inputs, small_classifier
from helpers.rare_truth import OfMargins, problem

import brittle
from brittle.extensions.rare_events.rare_flips import RareFlips, RareSampled
from brittle.measure.forward import look
from brittle.noise import Gaussian

COPIES = 100


def measure(network: torch.nn.Module, size: int, count: int = 3, first: int = 0) -> RareSampled:
    """What is sampled at the point 0 under standard normal noise, `count` times with other noise."""
    classifier = brittle.Classifier(network, bounds=(-1, 1))
    ids = [str(number) for number in range(first, first + count)]
    clean = look(classifier, torch.zeros(count, size), ids, 0)
    return RareFlips(Gaussian(1.0), COPIES)(classifier, clean)


def test_points_share_passes_of_at_most_as_many_rows() -> None:
    classifier, seen = small_classifier(), []
    clean = look(classifier, inputs(3), ["a", "b", "c"], 0, rows=16)
    inner = classifier.model
    classifier.model = lambda x: seen.append(len(x)) or inner(x)  # type: ignore[func-returns-value]
    RareFlips(Gaussian(0.15), 20)(classifier, clean)
    assert max(seen) == 16
    assert sum(seen) == classifier.forward_passes - 3


def test_a_point_is_the_same_with_others_and_alone() -> None:
    network = problem("outside a cube", 10, 1e-4).network
    together, alone = measure(network, 10), measure(network, 10, 1, first=2)
    assert torch.allclose(together.subset.log[2:], alone.subset.log, rtol=1e-4)
    assert torch.allclose(together.stretched.log[2:], alone.stretched.log, rtol=1e-4)


def test_a_steep_far_class_is_seen_by_levels() -> None:
    """A class that is far in its margin but steep decides, behind one that is near and flat: levels are relative."""
    b = torch.tensor([6.0, 4.5])
    network = OfMargins(lambda u: (b - u[:, :2]) * torch.tensor([0.01, 1.0]))
    found = measure(network, 10, 10)
    truth = torch.special.ndtr(-b.double()).sum().log()
    assert float((found.subset.log - truth).mean().abs()) < 1.5  # without, it says 6 less
