"""Copies until a question is answered: as many as it needs, of the point alone, counted once, mirrored near 0."""

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
    """Copies of a point that went through the network one by one: how many, how many flipped, their margins, and those
    of their mirror images."""

    draws: int
    flips: int
    margins: list[float]
    images: list[float]

    @property
    def is_near(self) -> bool:
        """Whether its mirror images are of use: a small count, and a nearest margin near 0."""
        near = abs(np.mean(self.margins)) < NEAR * np.std(self.margins)
        return self.draws <= MIRRORED_UP_TO and bool(near)


def one_by_one(classifier: brittle.Classifier, clean: Clean, x: Tensor, point: int, need: SampleUntil) -> Alone:
    """One point whose copies go through the network alone, looked at by the rule alone."""
    margins, images, flips = [], [], 0
    stream = Stream(need.noise, x[point : point + 1], (clean.ids[point],), clean.seed, "until")
    predicted = int(clean.predicted[point])
    for end in looks(need.draws):
        while len(margins) < end:
            noise = stream.draw(1)[0]
            for some, sign in ((margins, 1), (images, -1)):
                with torch.no_grad():
                    logits = classifier(x[point : point + 1] + sign * noise).double()[0]
                some.append(float(logits[predicted] - logits[torch.arange(len(logits)) != predicted].max()))
        flips = sum(margin <= 0 for margin in margins)
        if need.limit is not None and bool(
            decided(flips, flips, end, need.limit, 0.99) | out_of_reach(flips, end, need.draws, need.limit, 0.99)
        ):
            break
        low, high = sequence_interval(flips, end, 0.99)
        if need.precision is not None and float(high - low) <= need.precision:
            break
    return Alone(len(margins), flips, margins, images)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_counts_are_those_of_every_point_alone(rule: dict[str, float]) -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    clean, need = clean_of(classifier, x), SampleUntil(Gaussian(SIGMA), MOST, votes_only=True, **rule)  # type: ignore[arg-type]
    before = classifier.passes
    found = need(classifier, clean)
    assert classifier.passes - before == int(found.draws.sum())
    assert found.passes.tolist() == [draws + 1 for draws in found.draws.tolist()]
    alone = [one_by_one(classifier, clean, x, point, need) for point in range(COUNT)]
    assert [*zip(found.draws.tolist(), found.votes.flips[:, 1].tolist(), strict=True)] == [one[:2] for one in alone]
    assert len(set(found.draws.tolist())) > 2 or not rule


def same_votes(one: Votes, other: Votes, rows: Tensor) -> bool:
    """Whether some points have the same votes, to the last bit."""
    return all(torch.equal(getattr(one, name)[rows], getattr(other, name)[rows]) for name in vars(one))


@pytest.mark.parametrize("limit", [0.5, 0.9])
def test_only_points_near_the_boundary_have_mirror_images(limit: float) -> None:
    """The votes are those without images; passes stated are passes made; the margins are those of the pairs."""
    classifier, x = small_classifier(), inputs(COUNT)
    clean, need = clean_of(classifier, x), SampleUntil(Gaussian(SIGMA), MOST, limit)
    counted = replace(need, votes_only=True)(classifier, clean)
    before = classifier.passes
    found = need(classifier, clean)
    spent = classifier.passes - before
    assert len({*found.draws.tolist()}) > 2
    assert same_votes(found.votes, counted.votes, torch.arange(COUNT))
    alone = [one_by_one(classifier, clean, x, point, need) for point in range(COUNT)]
    near = torch.tensor([one.is_near for one in alone])
    assert 0 < int(near.sum()) < COUNT
    images = torch.where(near, FIRST_LOOK, 0)
    assert spent == int((found.draws + images).sum())
    assert torch.equal(found.passes, counted.passes + images)
    assert found.nearest is not None
    for point, one in enumerate(alone):
        margins = found.nearest[point][~found.nearest[point].isnan()]
        assert len(margins) == (2 * FIRST_LOOK if near[point] else one.draws)
        pairs = [margin for pair in zip(one.margins, one.images, strict=True) for margin in pair][: 2 * FIRST_LOOK]
        assert margins.tolist() == pytest.approx(pairs if near[point] else one.margins, abs=1e-5)


def test_noise_without_mirror_images_has_none() -> None:
    classifier, x = small_classifier(), inputs(COUNT)
    lighter = Transform(lambda x, g: x + 0.5 * torch.randn(x.shape, generator=g), name="lighter")
    need = SampleUntil(lighter, MOST, 0.9)
    found = need(classifier, clean_of(classifier, x))
    assert torch.equal(found.passes, found.draws + 1)


@pytest.mark.parametrize("votes_only", [True, False])
@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"precision": 0.4}], ids=str)
def test_fewer_draws_are_the_first_of_more(rule: dict[str, float], votes_only: bool) -> None:
    """Points that are answered within fewer draws have the same votes where more are allowed; ties among them. Those
    whose answer is out of reach stop before the last draw."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x[:, 0, 0, 0] > 1.3)[:, None], 0.0, z)))
    clean = clean_of(classifier, inputs(COUNT))
    most = SampleUntil(Gaussian(SIGMA), 400, votes_only=votes_only, **rule)  # type: ignore[arg-type]
    expected = most(classifier, clean)
    assert int(expected.votes.ties.sum()) > 0
    assert len(set(expected.draws.tolist())) > 2
    for draws in (7, 58, 60, 80, 150):
        fewer = replace(most, draws=draws)(classifier, clean)
        flips, ties = fewer.votes.flips[:, 1], fewer.votes.ties
        rule_of = StoppingRule(10**6, most.limit, most.precision, 0.99)
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
        found = SampleUntil(Gaussian(SIGMA), 100, votes_only=votes_only)(classifier, clean_of(classifier, x))
        assert found.draws.tolist() == [100, 100, 60, 100]


def test_ties_count_on_both_sides() -> None:
    """Every copy ties: nothing is decided, and each is counted as a tie."""
    classifier = brittle.Classifier(Wrapped(lambda x, z: torch.where((x > 1).flatten(1).any(1)[:, None], 0.0, z)))
    found = SampleUntil(Gaussian(SIGMA), 80, limit=0.5)(classifier, clean_of(classifier, inputs(3).round()))
    assert found.votes.ties.tolist() == found.votes.flips[:, 1].tolist() == [80] * 3
    assert found.votes.flips_without_ties[:, 1].tolist() == [0] * 3


def test_a_copy_that_is_not_finite_is_a_flip() -> None:
    network = small_network()

    def broken(x: Tensor) -> Tensor:
        return torch.where((x < 0).flatten(1).any(1)[:, None], torch.inf, network(x))

    found = SampleUntil(Gaussian(SIGMA), 20)(
        brittle.Classifier(broken), clean_of(brittle.Classifier(broken), inputs(3))
    )
    votes = found.votes
    assert votes.nonfinite.tolist() == votes.flips[:, 1].tolist() == votes.flips_without_ties[:, 1].tolist() == [20] * 3


SHORT = [StoppingRule(90, 0.5, None, 0.99), StoppingRule(120, 0.9, None, 0.99), StoppingRule(110, None, 0.33, 0.99)]
LONG = [StoppingRule(1000, 0.9, None, 0.99), StoppingRule(400, None, 0.2, 0.99), StoppingRule(700, 0.7, None, 0.99)]


def stops(rule: StoppingRule, flip: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The counts that a point can end with: draws, flips, and how probable they are, found draw by draw."""
    going, found, ends = np.array([1.0]), [], set(looks(rule.most))
    for drawn in range(1, rule.most + 1):
        going = np.append(going * (1 - flip), 0.0) + np.append(0.0, going * flip)
        if drawn in ends:
            flips, draws = np.arange(drawn + 1), np.full(drawn + 1, drawn)
            stopped = (rule.answered(flips, flips, draws) | (drawn == rule.most)) & (going > 0)
            found.append((draws[stopped], flips[stopped], going[stopped]))
            going = np.where(stopped, 0.0, going)
    draws, flips, probability = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return draws, flips, probability


def value_of(rule: StoppingRule, draws: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """What the score says of points with these counts."""
    score = MonteCarlo(1.0, draws=rule.most, limit=rule.limit, precision=rule.precision)
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
        draws, seen, probability = stops(rule, float(flip))
        assert probability.sum() == pytest.approx(1.0, abs=1e-9)
        assert probability @ value_of(rule, draws, seen) == pytest.approx(flip, abs=1e-9)
        bias.append(abs(probability @ (seen / draws) - flip))
    assert max(bias) > 1e-4
