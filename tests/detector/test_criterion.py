"""What makes a prediction brittle, in words that say what to do."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from helpers.calibrated import COUNTED

from brittle.cli.options import ModelOptions
from brittle.cli.score_options import ScoreOptions
from brittle.detector import Detector, MarginCriterion, NoiseCriterion
from brittle.errors import ParameterError

FIXED = {"draws": 200, "sigma": 0.25, "noise": "uniform"}


def options(command: str) -> dict[str, Any]:
    """The options of a command of `brittle score`, as they are typed."""
    words = shlex.split(command.partition("brittle score MODEL DATA ")[2])
    found: dict[str, Any] = {}
    for word in words:
        if word.startswith("--"):
            found[name := word.removeprefix("--").replace("-", "_")] = []
        else:
            found[name].append(word)  # pyright: ignore[reportPossiblyUnboundVariable] the first word is an option
    return found


@pytest.mark.parametrize(("noise", "most"), [(COUNTED, 100_000), (FIXED, 10_000), (COUNTED | {"limit": 0.8}, 10_000)])
def test_the_command_against_undecided_points_draws_for_the_limit(noise: dict[str, Any], most: int) -> None:
    """What it says, chosen as the command line chooses, gives the column that a detector of this limit reads."""
    said = NoiseCriterion(0.9, "monte_carlo", noise).remedy(37, 1000)
    assert said.startswith("37 of 1000 points are undecided, so neither brittle nor robust")
    given = options(said)
    chosen = ScoreOptions(
        scores=tuple(given["scores"]),
        sigma=(float(given["sigma"][0]),),
        noise=given.get("noise", ["gaussian"])[0],
        until=given["until"][0],
        limit=float(given["limit"][0]),
        most_draws=int(given["most_draws"][0]) if "most_draws" in given else None,
    )
    counted = chosen.chosen(ModelOptions())[0]
    assert counted.parameters == {**noise, "draws": most, "limit": 0.9}


def test_without_undecided_points_there_is_nothing_to_do() -> None:
    assert NoiseCriterion(0.9, "monte_carlo", COUNTED).remedy(0, 1000) == ""
    assert MarginCriterion(0.1, "linf", {}).remedy(5, 1000) == ""


def test_a_family_that_no_option_names_is_mended_in_python() -> None:
    said = NoiseCriterion(0.9, "moments", {"sigma": 1.0, "noise": "diagonal", "scale": "0" * 64}).remedy(3, 10)
    assert "brittle.score(..., until='decided', limit=0.9)" in said
    assert "--" not in said


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


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"column": "softmax"}, "softmax gives no flip probability under noise"),
        ({"noise": {"draws": 20}}, "a column under noise has a sigma"),
        ({"noise": {"sigma": "0.1"}}, "sigma must be a number"),
        ({"noise": {"sigma": 0.0}}, "sigma must lie in"),
        ({"noise": {"sigma": 0.1, "precision": 2.0}}, "precision must lie between 0 and 1"),
        ({"noise": {"sigma": 0.1, "draws": 1}}, "draws must be a whole number"),
        ({"limit": 1.0}, "limit must lie between 0 and 1"),
    ],
)
def test_noise_that_no_column_has_is_refused(changes: dict[str, Any], match: str, noise_detector: Detector) -> None:
    with pytest.raises(ParameterError, match=match):
        replace(noise_detector, criterion=replace(noise_detector.criterion, **changes))


def test_undecided_points_are_those_that_were_counted(noise_detector: Detector, detector: Detector) -> None:
    other = noise_detector.true_positives.without_undecided(noise_detector.confidence)
    with pytest.raises(ParameterError, match=r"true_positives: expected \d+ undecided, as counted; found 0"):
        replace(noise_detector, true_positives=other)
    with pytest.raises(ParameterError, match="every margin decides; found"):
        replace(noise_detector, criterion=detector.criterion, parameters={}, score="logit_margin", threshold=1.0)
