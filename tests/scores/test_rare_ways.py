"""Both ways to sample rare flips together: each piece of evidence against them alone forbids a number."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats

from brittle.estimate import Estimate, Status
from brittle.measure import RareSampled
from brittle.measure.rare.rare_flips import ByLevels
from brittle.scores import RareEvent

VALUE = 1e-5


def numbers(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


def levels(log: float = math.log(VALUE), variance: float = 0.2) -> ByLevels:
    return ByLevels(numbers(log), numbers(variance), torch.tensor([8]))


AGREED = RareSampled(
    drawn=200,
    flips=torch.tensor([0]),
    ties=torch.tensor([0]),
    subset=levels(),
    stretched=levels(),
    shrunk=torch.tensor([0]),
    shrunk_drawn=150,
    nonfinite=torch.tensor([0]),
    tied=torch.tensor([False]),
    passes=torch.tensor([5000]),
)


def judged(found: RareSampled) -> tuple[Estimate, Status]:
    score = RareEvent(0.1)
    estimate = score.estimate({score.needs[0]: found}, 0.99)
    return estimate, Status(int(estimate.status))


def test_both_ways_agree() -> None:
    estimate, status = judged(AGREED)
    assert status is Status.COARSE
    assert VALUE < float(estimate.value) < 1.5 * VALUE  # the logarithms are low by half their variance
    assert float(estimate.low) < VALUE / 2
    assert float(estimate.high) > 2 * VALUE


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"shrunk": torch.tensor([4])}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(1000 * VALUE))}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(VALUE / 1000))}, Status.DISAGREE),
        ({"stretched": levels(-math.inf, 0.0)}, Status.DISAGREE),
        ({"stretched": levels(math.nan, math.nan)}, Status.DISAGREE),
        ({"subset": levels(math.log(1000 * VALUE))}, Status.DISAGREE),
        ({"subset": levels(-math.inf, 0.0)}, Status.UNFORESEEN),
        ({"flips": torch.tensor([4])}, Status.DISAGREE),
    ],
)
def test_one_thing_forbids_a_number(change: dict[str, object], status: Status) -> None:
    changed = replace(AGREED, **change)
    estimate, found = judged(changed)
    assert found is status
    assert float(estimate.low) == 0.0
    assert float(estimate.high) >= float(stats.beta.ppf(0.995, int(changed.flips) + 1, 200 - int(changed.flips))) - 1e-9


def test_a_number_never_leaves_the_interval_by_counting() -> None:
    """None of 200 flips: not more than 0.03 at 99.5%, whatever both ways agree on."""
    many = levels(math.log(0.1))
    assert judged(replace(AGREED, subset=many, stretched=many))[1] is Status.DISAGREE
