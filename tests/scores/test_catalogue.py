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
from brittle.scores import FeatureDistance, InputMargin, MonteCarlo, NoiseScore, RareEvent, Score
from brittle.scores.catalogue import CATALOGUE

pytestmark = pytest.mark.usefixtures("short_search")

everything = pytest.mark.parametrize("score", EXAMPLES, ids=lambda score: score.label)
noisy = [score for score in EXAMPLES if isinstance(score, NoiseScore)]
of_logits = pytest.mark.parametrize(
    "score",
    [score for score in EXAMPLES if not any(need.uses_features for need in score.needs)],
    ids=lambda score: score.label,
)
"""Scores that read logits alone, so that they work on a network without a linear head."""


def test_examples_hold_one_of_every_score() -> None:
    assert {type(score) for score in EXAMPLES} == set(CATALOGUE.values())


@everything
def test_fields_interval_passes_and_identity_obey_the_laws(score: Score) -> None:
    classifier = small_classifier()
    result = estimate(classifier, inputs(5), score)
    check_fields(result, 5)
    check_interval(result)
    if score.quantity == FLIP_PROBABILITY:
        check_probability(result)
    assert int(result.passes.sum()) == classifier.passes
    check_identity(score)


@pytest.mark.every_other
@of_logits
@pytest.mark.parametrize("scale", [0.0, 1e15])
def test_logits_of_any_scale_obey_the_laws(score: Score, scale: float) -> None:
    """For two classes, where some formulas have a special form."""
    classifier = brittle.Classifier(Wrapped(lambda x, logits: logits * scale, classes=2))
    result = estimate(classifier, inputs(4), score)
    check_fields(result, 4)
    check_interval(result)
    if scale == 0.0:
        bad = {int(Status.TIE), int(Status.ZERO_GRADIENT), int(Status.NO_VARIATION)}
        assert set(result.status.tolist()) <= bad


@pytest.mark.every_other
@everything
def test_a_score_is_the_same_alone_and_in_batches(score: Score) -> None:
    searches = isinstance(score, InputMargin | FeatureDistance)  # `test_search.py` tests more of them
    check_alone(small_classifier(), inputs(3 if searches else 6), score, sizes=(1,) if searches else (1, 5))
    if not searches and not isinstance(score, RareEvent):
        double = brittle.Classifier(small_network(dtype=torch.float64), bounds=(0, 1))
        check_alone(double, inputs(6, dtype=torch.float64), score, sizes=(5,))


@pytest.mark.every_other
@everything
def test_same_bytes_on_a_rerun_whatever_the_neighbours_hold(score: Score) -> None:
    """Except for scores whose finished points leave the passes to others, which then round by their number."""
    x, among_others = inputs(6), inputs(6)
    if not isinstance(score, InputMargin | FeatureDistance | RareEvent):
        among_others[1::2] = inputs(6, seed=9)[1::2]
    run, rerun = (estimate(small_classifier(), points, score) for points in (x, among_others))
    for values, rerun_values in ((run.value, rerun.value), (run.low, rerun.low), (run.high, rerun.high)):
        assert values[::2].tolist() == pytest.approx(rerun_values[::2].tolist(), abs=0.0, rel=0.0, nan_ok=True)


def test_the_passes_of_points_add_up_over_all_scores() -> None:
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
    result = estimate(brittle.Classifier(Wrapped(nan_under_noise)), inputs(3), score)
    if getattr(score, "clip", False):
        assert bool(result.value.isfinite().all())
    else:
        assert bool(result.value.isnan().all())
        assert set(result.status.tolist()) == {int(Status.NONFINITE_LOGITS)}


@pytest.mark.every_other
@of_logits
def test_a_tie_has_a_status(score: Score) -> None:
    def tie(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        top = logits.amax(dim=1, keepdim=True)
        return torch.cat((top, top, logits[:, :2] - 5.0), dim=1)

    result = estimate(brittle.Classifier(Wrapped(tie)), inputs(3), score)
    assert set(result.status.tolist()) <= {int(Status.TIE), int(Status.ZERO_GRADIENT)}
    if score.quantity == FLIP_PROBABILITY:
        assert bool((result.value >= 0.5)[result.value.isfinite()].all())
    elif score.name.endswith("margin"):
        assert result.value.tolist() == [0.0] * 3


@pytest.mark.parametrize("sigma", [0.0, float("nan")])
@pytest.mark.parametrize("name", [name for name, kind in CATALOGUE.items() if issubclass(kind, NoiseScore)])
def test_sigma_out_of_range_is_refused(name: str, sigma: float) -> None:
    with pytest.raises(ParameterError, match=str(sigma)):
        CATALOGUE[name](sigma=sigma)  # pyright: ignore[reportCallIssue] misuse is what is tested


@pytest.mark.parametrize("draws", [1, 10**12])
@pytest.mark.parametrize(
    "name", [name for name, kind in CATALOGUE.items() if "draws" in inspect.signature(kind).parameters]
)
def test_draws_out_of_range_are_refused(name: str, draws: int) -> None:
    with pytest.raises(ParameterError, match=str(draws)):
        one_of(name, draws=draws)


@pytest.mark.parametrize("kind", CATALOGUE.values(), ids=list(CATALOGUE))
def test_documentation_is_complete(kind: type[Score]) -> None:
    text = inspect.getdoc(kind) or ""
    for part in ("Validity:", "Source:"):
        assert part in text
    attributes = "\n".join(ancestor.__doc__ or "" for ancestor in kind.__mro__)
    assert all(re.search(rf"^ +{name}: ", attributes, re.MULTILINE) for name in inspect.signature(kind).parameters)
    for fact in (kind.name, kind.title, kind.quantity, kind.cost, kind.reference):
        assert fact


@everything
def test_a_score_has_the_attributes_of_a_report(score: Score) -> None:
    assert score.explanation.endswith(".")
    assert score.safer in ("higher", "lower", None)
    if score.quantity == FLIP_PROBABILITY:
        assert score.safer == "lower"
        assert score.preference is not None
        assert score.model
    else:
        assert score.preference is score.model is None


def test_no_two_scores_share_a_colour_or_a_preference() -> None:
    colours = [kind.colour for kind in CATALOGUE.values() if kind.colour is not None]
    assert len(set(colours)) == len(colours)
    preferences = {(score.name, score.preference) for score in EXAMPLES if score.preference is not None}
    assert len({preference for _, preference in preferences}) == len(preferences)


def test_a_count_of_few_draws_has_a_late_preference() -> None:
    fewer, enough = MonteCarlo(0.1, draws=198, limit=None), MonteCarlo(0.1, draws=200, limit=None)
    ranks = [score.preference for score in EXAMPLES if score.preference is not None and score.name != "monte_carlo"]
    assert enough.preference < min(ranks) < fewer.preference < max(ranks)
