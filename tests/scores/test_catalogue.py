"""Every score of the catalogue obeys the laws."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from helpers.inputs import EXAMPLES, one_of
from helpers.laws import (
    check_alone,
    check_fields,
    check_identity,
    check_interval,
    check_passes_of_points,
    check_probability,
    estimate,
)
from helpers.problems import Wrapped, inputs, nan_under_noise, small_classifier, small_network

import brittle
from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, Status
from brittle.scores import (
    CATALOGUE,
    FeatureDistance,
    InputMargin,
    MonteCarlo,
    NoiseScore,
    RareEvent,
    Score,
)

everything = pytest.mark.parametrize("score", EXAMPLES, ids=lambda score: score.label)
noisy = [score for score in EXAMPLES if isinstance(score, NoiseScore)]
of_logits = pytest.mark.parametrize(
    "score",
    [score for score in EXAMPLES if not any(need.uses_features for need in score.needs)],
    ids=lambda score: score.label,
)
"""Scores that read logits alone, so that a network without a linear head has them too."""


def test_examples_hold_one_of_every_score() -> None:
    assert {type(score) for score in EXAMPLES} == set(CATALOGUE.values())


@everything
def test_fields_intervals_and_passes_of_a_score_that_is_its_own_key(score: Score) -> None:
    classifier = small_classifier()
    found = estimate(classifier, inputs(5), score)
    check_fields(found, 5)
    check_interval(found)
    if score.quantity == FLIP_PROBABILITY:
        check_probability(found)
    assert int(found.passes.sum()) == classifier.passes
    check_identity(score)


@pytest.mark.every_other
@of_logits
@pytest.mark.parametrize("scale", [0.0, 1e15])
def test_any_scale_of_the_logits(score: Score, scale: float) -> None:
    """Of two classes, for which some formulas have a form of their own."""
    classifier = brittle.Classifier(Wrapped(lambda x, logits: logits * scale, classes=2))
    found = estimate(classifier, inputs(4), score)
    check_fields(found, 4)
    check_interval(found)
    if scale == 0.0:
        bad = {int(Status.TIE), int(Status.ZERO_GRADIENT), int(Status.NO_VARIATION)}
        assert set(found.status.tolist()) <= bad


@pytest.mark.every_other
@everything
def test_alone_and_in_batches(score: Score) -> None:
    searches = isinstance(score, InputMargin | FeatureDistance)  # `test_search.py` looks at more of them
    check_alone(small_classifier(), inputs(3 if searches else 6), score, sizes=(1,) if searches else (1, 5))
    if not searches and not isinstance(score, RareEvent):
        double = brittle.Classifier(small_network(dtype=torch.float64), bounds=(0, 1))
        check_alone(double, inputs(6, dtype=torch.float64), score, sizes=(5,))


@pytest.mark.every_other
@everything
def test_same_bytes_on_a_rerun_whatever_the_neighbours_hold(score: Score) -> None:
    """But where points that are done leave the passes to the others, which then round as their number has it."""
    x, among_others = inputs(6), inputs(6)
    if not isinstance(score, InputMargin | FeatureDistance | RareEvent):
        among_others[1::2] = inputs(6, seed=9)[1::2]
    found, again = (estimate(small_classifier(), points, score) for points in (x, among_others))
    for one, other in ((found.value, again.value), (found.low, again.low), (found.high, again.high)):
        assert one[::2].tolist() == pytest.approx(other[::2].tolist(), abs=0.0, rel=0.0, nan_ok=True)


def test_passes_of_points_with_all_scores() -> None:
    check_passes_of_points(small_classifier(), inputs(5), EXAMPLES)


@pytest.mark.every_other
@everything
def test_broken_logits_get_no_number(score: Score) -> None:
    for bad in (torch.nan, torch.inf):
        classifier = brittle.Classifier(Wrapped(lambda x, logits, bad=bad: logits * bad))
        assert bool(estimate(classifier, inputs(3), score).value.isnan().all())


@pytest.mark.parametrize(
    "score",
    [score for score in noisy if score.name not in ("taylor", "taylor_mvs", "first_order_change", "change_bound")],
    ids=lambda score: score.label,
)
def test_nan_under_noise_is_no_agreement(score: Score) -> None:
    found = estimate(brittle.Classifier(Wrapped(nan_under_noise)), inputs(3), score)
    if getattr(score, "clip", False):
        assert bool(found.value.isfinite().all())
    else:
        assert bool(found.value.isnan().all())
        assert set(found.status.tolist()) == {int(Status.NONFINITE_LOGITS)}


@of_logits
def test_tie_is_said(score: Score) -> None:
    def tie(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        top = logits.amax(dim=1, keepdim=True)
        return torch.cat((top, top, logits[:, :2] - 5.0), dim=1)

    found = estimate(brittle.Classifier(Wrapped(tie)), inputs(3), score)
    assert set(found.status.tolist()) <= {int(Status.TIE), int(Status.ZERO_GRADIENT)}
    if score.quantity == FLIP_PROBABILITY:
        assert bool((found.value >= 0.5)[found.value.isfinite()].all())
    elif score.name.endswith("margin"):
        assert found.value.tolist() == [0.0] * 3


@pytest.mark.parametrize("sigma", [0.0, float("nan")])
@pytest.mark.parametrize("name", [name for name, kind in CATALOGUE.items() if issubclass(kind, NoiseScore)])
def test_sigma_out_of_range(name: str, sigma: float) -> None:
    with pytest.raises(ParameterError, match=str(sigma)):
        CATALOGUE[name](sigma=sigma)  # pyright: ignore[reportCallIssue] misuse is what is tested


@pytest.mark.parametrize("draws", [1, 10**12])
@pytest.mark.parametrize(
    "name", [name for name, kind in CATALOGUE.items() if "draws" in inspect.signature(kind).parameters]
)
def test_draws_out_of_range(name: str, draws: int) -> None:
    with pytest.raises(ParameterError, match=str(draws)):
        one_of(name, draws=draws)


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=list(CATALOGUE))
def test_documentation_is_complete(kind: type[Score]) -> None:
    text = inspect.getdoc(kind) or ""
    for part in ("Validity:", "Source:"):
        assert part in text
    attributes = "\n".join(one.__doc__ or "" for one in kind.__mro__)
    assert all(re.search(rf"^ +{name}: ", attributes, re.MULTILINE) for name in inspect.signature(kind).parameters)
    for fact in (kind.name, kind.title, kind.quantity, kind.cost, kind.reference):
        assert fact


@everything
def test_a_score_says_how_it_is_shown(score: Score) -> None:
    assert score.explanation.endswith(".")
    assert score.safer in ("higher", "lower", None)
    if score.quantity == FLIP_PROBABILITY:
        assert score.safer == "lower"
        assert score.preference is not None
        assert score.model
    else:
        assert score.preference is score.model is None


def test_no_two_scores_share_a_colour_or_a_preference() -> None:
    places = [kind.colour for kind in CATALOGUE.values() if kind.colour is not None]
    assert len(set(places)) == len(places)
    preferences = {(score.name, score.preference) for score in EXAMPLES if score.preference is not None}
    assert len({preference for _, preference in preferences}) == len(preferences)


def test_a_count_of_few_draws_speaks_late() -> None:
    few, many = MonteCarlo(0.1, draws=198, limit=None), MonteCarlo(0.1, draws=200, limit=None)
    others = [score.preference for score in EXAMPLES if score.preference is not None and score.name != "monte_carlo"]
    assert many.preference < min(others) < few.preference < max(others)
