"""The law of the zoo at a small price, and the harness itself: what it calls wrong is wrong.

`make test-hostile` spends more on each network. Here a row counts as wrong where it misses in each of four runs, which
happens to a sound one by chance at 1.5e-8, and all of some 1,700 comparisons at 3e-5; seeds are fixed.
"""

from __future__ import annotations

import pytest
import torch
from checks import hostile
from helpers import truth
from helpers.beside_truth import NUMBER, VOTES
from helpers.odd_networks import ZOO
from helpers.odd_parts import OddNetwork, custom, small
from scipy.special import ndtr

PLAN = hostile.Plan(probes=2, copies=120, draws=40, most_draws=40, gradient_draws=10, shares=(1.0,), thorough=False)


LONGEST = ("linear, 100 classes",)
"""Networks that take as long as a tenth of all others together; ten classes are among these, too."""


@pytest.mark.every_other
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONGEST else ()) for name in ZOO]
)
def test_an_odd_network_is_refused_by_name_or_right(name: str) -> None:
    verdict = hostile.examine(ZOO[name], PLAN)
    assert verdict.lawful, verdict.summary


def halves(x: torch.Tensor) -> torch.Tensor:
    """Return logits of two classes: class 0 where the first number is positive."""
    return torch.stack((x[:, 0], -x[:, 0]), dim=1)


def test_truth_of_a_half_space() -> None:
    """Beyond a plane at distance 0.1 lies `Phi(-0.1 / sigma)`; its 99.9% interval misses that once in 1,000 seeds."""
    flips = truth.alone(lambda: halves, torch.tensor([0.1, 0.0]), 0.1, 4000, 0)
    low, high = flips.interval()
    assert low < float(ndtr(-1.0)) < high
    assert high - low < 0.05
    assert (flips.predicted, flips.tied, flips.lost) == (0, False, 0)


def test_a_wrong_number_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth runs another network than `brittle`."""
    monkeypatch.setitem(ZOO, "small perceptron", OddNetwork("small perceptron", "geometry", custom(
        lambda m, x: m.base(x).roll(1, 1))))  # fmt: skip
    verdict = hostile.examine(OddNetwork("small perceptron", "geometry", small, sigma=0.31), PLAN)
    assert {disagreement.kind for disagreement in verdict.wrong} == {NUMBER, VOTES}
