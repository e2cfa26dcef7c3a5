"""What makes a prediction brittle, in words that say what to do."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.calibrated import COUNTED

from brittle.detector import Detector, NoiseCriterion

FIXED = {"draws": 200, "sigma": 0.25, "noise": "uniform"}


@pytest.mark.parametrize(("noise", "most"), [(COUNTED, 100_000), (FIXED, 10_000), (COUNTED | {"limit": 0.8}, 10_000)])
def test_against_undecided_points_more_is_drawn_for_the_limit(noise: dict[str, Any], most: int) -> None:
    assert f"--until decided --limit 0.9 --most-draws {most}" in NoiseCriterion(0.9, "monte_carlo", noise).remedy


def test_a_detector_says_its_noise_and_its_limit(noise_detector: Detector) -> None:
    text = str(noise_detector)
    counts = noise_detector.counts
    assert "those that keep their prediction with a probability below 0.9, as monte_carlo(draws=10000, limit" in text
    assert f"{counts.robust} robust, {counts.undecided} undecided" in text
    assert f"the score was chosen on {counts.choice} points that serve for nothing else" in text
    assert f"{counts.undecided} of 400 points are undecided" in text
    assert "verdict on the threshold: without the undecided points it agrees" in text
    assert noise_detector.holds
    assert noise_detector.criterion.size == "limit 0.9 under sigma 0.1"
