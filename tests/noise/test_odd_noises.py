"""Odd noises are refused or scored right, at a small price; `make test-hostile` spends more on each.

A row counts as wrong if it misses in each of four runs, which happens to a sound row with probability 1.5e-8; seeds are
fixed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from checks import hostile
from helpers.odd_noises import NOISES

PLAN = hostile.Plan(probes=2, copies=150, draws=40, most_draws=40, gradient_draws=10, shares=(1.0,), thorough=False)


@pytest.mark.every_other
@pytest.mark.parametrize("name", NOISES)
def test_refused_by_name_or_right(name: str) -> None:
    verdict = hostile.examine(NOISES[name], PLAN)
    assert verdict.lawful, verdict.summary
    assert verdict.compared or NOISES[name].refused


def test_the_truth_of_another_noise_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the noise counts as wrong, so the law can fail."""
    noise = NOISES["noise of two generators: own less torch's"]
    less = replace(noise, name="less", copies=lambda rng, x, sigma, count: noise.copies(rng, x, sigma / 4, count))
    monkeypatch.setitem(NOISES, "less", less)
    assert not hostile.examine(less, replace(PLAN, copies=300, draws=100, most_draws=100)).lawful
