"""Copies until a rule is answered: their number depends on the point alone; each counts once; mirrored near 0."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from torch import Tensor

import brittle
from brittle.intervals import decided, out_of_reach, sequence_interval
from brittle.measure import Clean, SampleUntil
from brittle.measure.forward import look
from brittle.measure.noisy_margins import Votes
from brittle.measure.stopping import FIRST_LOOK, MIRRORED_UP_TO, NEAR, StoppingRule, looks
from brittle.noise import Gaussian, Stream, Transform
from brittle.scores import MonteCarlo

COUNT, MOST, SIGMA = 12, 160, 0.5
RULES = [{"limit": 0.5}, {"limit": 0.9}, {"precision": 0.25}, {"limit": 0.9, "precision": 0.2}, {}]


def clean_of(classifier: brittle.Classifier, x: Tensor) -> Clean:
    return look(classifier, x, [f"point {number}" for number in range(len(x))], seed=0)


class Alone(NamedTuple):
    """Copies of a point that went through the network one by one: their number, their flips, their margins, and the
    margins of their mirror images."""

    draws: int
    flips: int
    margins: list[float]
    images: list[float]

    @property
    def is_near(self) -> bool:
        """True where mirror images are of use: a small count, and a mean margin near 0."""
        near = abs(np.mean(self.margins)) < NEAR * np.std(self.margins)
        return self.draws <= MIRRORED_UP_TO and bool(near)


def one_by_one(classifier: brittle.Classifier, clean: Clean, x: Tensor, point: int, need: SampleUntil) -> Alone:
    """Send the copies of one point through the network one by one, up to the stop of its rule."""
    margins, images, flips = [], [], 0
    stream = Stream(need.noise, x[point : point + 1], (clean.ids[point],), clean.seed, "until")
    predicted = int(clean.predicted[point])
    for end in looks(need.draws):
        while len(margins) < end:
            noise = stream.draw(1)[0]
            for values, sign in ((margins, 1), (images, -1)):
                with torch.no_grad():
                    logits = classifier(x[point : point + 1] + sign * noise).double()[0]
                values.append(float(logits[predicted] - logits[torch.arange(len(logits)) != predicted].max()))
        flips = sum(margin <= 0 for margin in margins)
        if need.limit is not None and bool(
            decided(flips, flips, end, need.limit, 0.99) | out_of_reach(flips, end, need.draws, need.limit, 0.99)
        ):
            break
        low, high = sequence_interval(flips, end, 0.99)
        if need.precision is not None and float(high - low) <= need.precision:
            break
    return Alone(len(margins), flips, margins, images)


@pytest.mark.every_other
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_counts_are_those_of_every_point_alone(rule: dict[str, float]) -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    clean, need = clean_of(classifier, x), SampleUntil(Gaussian(SIGMA), MOST, votes_only=True, **rule)  # type: ignore[arg-type]
    before = classifier.passes
    results = need(classifier, clean)
    assert classifier.passes - before == int(results.draws.sum())
    assert results.passes.tolist() == [draws + 1 for draws in results.draws.tolist()]
    alone = [one_by_one(classifier, clean, x, point, need) for point in range(COUNT)]
    assert results.draws.tolist() == [point.draws for point in alone]
    assert results.votes.flips[:, 1].tolist() == [point.flips for point in alone]
    assert len(set(results.draws.tolist())) > 2 or not rule


def same_votes(votes_a: Votes, votes_b: Votes, rows: Tensor) -> bool:
    """Return whether the points `rows` have the same votes, to the last bit."""
    return all(torch.equal(getattr(votes_a, name)[rows], getattr(votes_b, name)[rows]) for name in vars(votes_a))


@pytest.mark.parametrize("limit", [0.5, 0.9])
def test_only_points_near_the_boundary_have_mirror_images(limit: float) -> None:
    """The votes are those without images; passes stated are passes made; the margins are those of the pairs."""
    classifier, x = small_classifier(), inputs(COUNT)
    clean, need = clean_of(classifier, x), SampleUntil(Gaussian(SIGMA), MOST, limit)
    counted = replace(need, votes_only=True)(classifier, clean)
    before = classifier.passes
    results = need(classifier, clean)
    passes = classifier.passes - before
    assert len({*results.draws.tolist()}) > 2
    assert same_votes(results.votes, counted.votes, torch.arange(COUNT))
    alone = [one_by_one(classifier, clean, x, point, need) for point in range(COUNT)]
    near = torch.tensor([point.is_near for point in alone])
    assert 0 < int(near.sum()) < COUNT
    images = torch.where(near, FIRST_LOOK, 0)
    assert passes == int((results.draws + images).sum())
    assert torch.equal(results.passes, counted.passes + images)
    assert results.nearest is not None
    for number, single in enumerate(alone):
        margins = results.nearest[number][~results.nearest[number].isnan()]
        assert len(margins) == (2 * FIRST_LOOK if near[number] else single.draws)
        pairs = [margin for pair in zip(single.margins, single.images, strict=True) for margin in pair]
        assert margins.tolist() == pytest.approx(pairs[: 2 * FIRST_LOOK] if near[number] else single.margins, abs=1e-5)


def test_noise_without_mirror_images_has_none() -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    lighter = Transform(lambda x, g: x + 0.5 * torch.randn(x.shape, generator=g), name="lighter")
    need = SampleUntil(lighter, MOST, 0.9)
    results = need(classifier, clean_of(classifier, x))
    assert torch.equal(results.passes, results.draws + 1)


@pytest.mark.parametrize("votes_only", [True, False])
@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"precision": 0.4}], ids=str)
def test_fewer_draws_are_the_first_of_more(rule: dict[str, float], votes_only: bool) -> None:
    """Points that are answered within fewer draws have the same votes where more are allowed; ties among them. Those
    whose answer is out of reach stop before the last draw."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x[:, 0, 0, 0] > 1.3)[:, None], 0.0, z)))
    clean = clean_of(classifier, inputs(COUNT))
    rule_of_more = SampleUntil(Gaussian(SIGMA), 400, votes_only=votes_only, **rule)  # type: ignore[arg-type]
    expected = rule_of_more(classifier, clean)
    assert int(expected.votes.ties.sum()) > 0
    assert len(set(expected.draws.tolist())) > 2
    for draws in (7, 58, 60, 80, 150):
        fewer = replace(rule_of_more, draws=draws)(classifier, clean)
        flips, ties = fewer.votes.flips[:, 1], fewer.votes.ties
        rule_of = StoppingRule(10**6, rule_of_more.limit, rule_of_more.precision, 0.99)
        done = torch.from_numpy(rule_of.answered(flips.numpy(), (flips - ties).numpy(), fewer.draws.numpy()))
        done &= fewer.draws < draws
        assert bool((fewer.draws <= expected.draws.clamp_max(draws)).all())
        assert torch.equal(fewer.draws[done], expected.draws[done])
        assert same_votes(fewer.votes, expected.votes, done)
        assert torch.equal(fewer.passes[done], expected.passes[done])


def test_a_point_without_logits_takes_the_first_look_alone() -> None:
    x = inputs(4)
    x[2, 0, 0, 0] = 0.25
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where(x[:, :1, 0, 0] == 0.25, torch.nan, z)))
    for votes_only in (True, False):
        results = SampleUntil(Gaussian(SIGMA), 100, votes_only=votes_only)(classifier, clean_of(classifier, x))
        assert results.draws.tolist() == [100, 100, 60, 100]


def test_ties_count_on_both_sides() -> None:
    """Every copy ties, so that the rule decides nothing and each copy counts as a tie."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x > 1).flatten(1).any(1)[:, None], 0.0, z)))
    results = SampleUntil(Gaussian(SIGMA), 80, limit=0.5)(classifier, clean_of(classifier, inputs(3).round()))
    assert results.votes.ties.tolist() == results.votes.flips[:, 1].tolist() == [80] * 3
    assert results.votes.flips_without_ties[:, 1].tolist() == [0] * 3


def test_a_copy_that_is_not_finite_is_a_flip() -> None:
    network = small_network()

    def broken(x: Tensor) -> Tensor:
        return torch.where((x < 0).flatten(1).any(1)[:, None], torch.inf, network(x))

    classifier = brittle.Classifier(broken)
    votes = SampleUntil(Gaussian(SIGMA), 20)(classifier, clean_of(classifier, inputs(3))).votes
    assert votes.nonfinite.tolist() == votes.flips[:, 1].tolist() == votes.flips_without_ties[:, 1].tolist() == [20] * 3


SHORT = [StoppingRule(90, 0.5, None, 0.99), StoppingRule(120, 0.9, None, 0.99), StoppingRule(110, None, 0.33, 0.99)]
LONG = [StoppingRule(1000, 0.9, None, 0.99), StoppingRule(400, None, 0.2, 0.99), StoppingRule(700, 0.7, None, 0.99)]


def stops(rule: StoppingRule, flip: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the counts that a point can end with: draws, flips, and their probabilities, computed draw by draw."""
    going, outcomes, ends = np.array([1.0]), [], set(looks(rule.max_draws))
    for drawn in range(1, rule.max_draws + 1):
        going = np.append(going * (1 - flip), 0.0) + np.append(0.0, going * flip)
        if drawn in ends:
            flips, draws = np.arange(drawn + 1), np.full(drawn + 1, drawn)
            stopped = (rule.answered(flips, flips, draws) | (drawn == rule.max_draws)) & (going > 0)
            outcomes.append((draws[stopped], flips[stopped], going[stopped]))
            going = np.where(stopped, 0.0, going)
    draws, flips, probability = (np.concatenate(parts) for parts in zip(*outcomes, strict=True))
    return draws, flips, probability


def value_of(rule: StoppingRule, draws: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """Return the score's value for points with these counts."""
    score = MonteCarlo(1.0, draws=rule.max_draws, limit=rule.limit, precision=rule.precision)
    units, changed = torch.from_numpy(draws), torch.from_numpy(flips)
    counts, none = torch.stack((units - changed, changed), dim=1), torch.zeros_like(units)
    classes = torch.stack((units - changed, changed), dim=1)[:, :, None]
    votes = Votes(units, counts, counts, none, none, classes, none.double())
    measured: Any = SimpleNamespace(votes=votes, tied=none.bool(), passes=units + 1, draws=units)
    return score.estimate({score.needs[0]: measured}, rule.confidence).value.numpy()


@pytest.mark.parametrize(
    ("rule", "flips"),
    [*((rule, np.linspace(0.02, 0.98, 9)) for rule in SHORT), *((rule, (0.02, 0.15, 0.48)) for rule in LONG)],
    ids=map(str, (*SHORT, *LONG)),
)
def test_the_mean_of_a_stopped_count_is_the_flip_probability(rule: StoppingRule, flips: np.ndarray) -> None:
    """Over all counts that a point can end with; the plain share is biased."""
    bias = []
    for flip in flips:
        draws, flips_seen, probability = stops(rule, float(flip))
        assert probability.sum() == pytest.approx(1.0, abs=1e-9)
        assert probability @ value_of(rule, draws, flips_seen) == pytest.approx(flip, abs=1e-9)
        bias.append(abs(probability @ (flips_seen / draws) - flip))
    assert max(bias) > 1e-4
