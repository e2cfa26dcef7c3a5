"""What the ways to sample rare flips say together: each piece of evidence alone forbids `ok`."""

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
    kept_ties=torch.tensor([0]),
    subset=levels(),
    stretched=levels(),
    strays=numbers(0.0),
    surprises=numbers(0.0),
    shrunk=torch.tensor([0]),
    shrunk_drawn=150,
    weighted=numbers(VALUE),
    weighted_error=numbers(VALUE / 10),
    effective=numbers(100.0),
    nonfinite=torch.tensor([0]),
    tied=torch.tensor([False]),
    passes=torch.tensor([5000]),
)


def judged(found: RareSampled) -> tuple[Estimate, Status]:
    score = RareEvent(0.1)
    estimate = score.estimate({score.needs[0]: found}, 0.99)
    return estimate, Status(int(estimate.status))


def test_three_ways_agree() -> None:
    estimate, status = judged(AGREED)
    assert status is Status.OK
    assert float(estimate.value) == VALUE
    assert float(estimate.low) > VALUE / 2  # that of importance sampling
    assert float(estimate.high) > 4 * VALUE  # those of the others


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"strays": numbers(0.3)}, Status.COARSE),
        ({"surprises": numbers(0.3)}, Status.COARSE),
        ({"effective": numbers(5.0)}, Status.COARSE),
        ({"weighted": numbers(VALUE / 1e3), "weighted_error": numbers(VALUE / 1e4)}, Status.COARSE),
        ({"shrunk": torch.tensor([4])}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(1000 * VALUE))}, Status.UNFORESEEN),
        ({"stretched": levels(math.log(VALUE / 1000))}, Status.DISAGREE),
        ({"stretched": levels(-math.inf, 0.0)}, Status.DISAGREE),
        ({"subset": levels(math.log(1000 * VALUE))}, Status.DISAGREE),
        ({"subset": levels(-math.inf, 0.0)}, Status.UNFORESEEN),
        ({"flips": torch.tensor([4])}, Status.DISAGREE),
    ],
)
def test_one_thing_forbids_ok(change: dict[str, object], status: Status) -> None:
    found = replace(AGREED, **change)
    estimate, said = judged(found)
    assert said is status
    if status is not Status.COARSE:
        assert float(estimate.low) == 0.0
        assert float(estimate.high) >= float(stats.beta.ppf(0.995, int(found.flips) + 1, 200 - int(found.flips))) - 1e-9


def test_no_stretched_copy_flips() -> None:
    """There is nothing to meet then: no half-space within reach of the probe is left out."""
    assert judged(replace(AGREED, stretched=levels(math.nan, math.nan)))[1] is Status.OK


def test_a_number_never_leaves_the_interval_by_counting() -> None:
    """None of 200 flips: not more than 0.03 at 99.5%, whatever two ways agree on."""
    many = levels(math.log(0.1))
    changed = replace(AGREED, weighted=numbers(0.1), weighted_error=numbers(0.01), subset=many, stretched=many)
    assert judged(changed)[1] is Status.DISAGREE
