"""What stands behind a flip probability: evidence, votes of the same draws, and intervals that hold where models fail.

Intervals where models fail are those of `test_coverage.py`. The largest false-fail rate of a test is stated with it;
all draws are fixed by a seed, so a test that passes once passes always.
"""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.laws import MANY_ROWS, estimate
from helpers.problems import Shallow, Wrapped, inputs, linear_network, shallow_points, small_classifier
from torch import nn

import brittle
from brittle.estimate import FLIP_PROBABILITY, Evidence, Status
from brittle.measure.noisy_margins import powers_of, spread_of
from brittle.scores import (
    MMSE,
    Moments,
    MonteCarlo,
    RareEvent,
    Score,
)
from brittle.scores.base import GRAVE, mark

FLIPS = [score for score in EXAMPLES if score.quantity == FLIP_PROBABILITY]


def test_what_the_votes_exclude_is_contradicted() -> None:
    """A normal model says 4% where 8% of the copies flip."""
    network = Shallow(2.0, 0.06, 0.01, 0.1)
    found = estimate(brittle.Classifier(network), shallow_points(20), Moments(0.1, draws=1000), rows=MANY_ROWS)
    assert found.counted is not None
    excluded = (found.value < found.counted[0]) | (found.value > found.counted[1])
    assert bool(excluded.any())
    assert torch.equal(found.status == int(Status.CONTRADICTED), excluded)


def test_right_numbers_are_hardly_ever_contradicted() -> None:
    """On a linear network the votes exclude the model with at most 1% probability; 12 of 400 happen once in 1e3."""
    network = linear_network(4, 36)
    x = inputs(400, dtype=torch.float64)
    for score in (Moments(0.2, draws=50), MMSE(0.2, draws=20)):
        found = estimate(brittle.Classifier(nn.Sequential(nn.Flatten(), network)), x, score)
        assert int((found.status == int(Status.CONTRADICTED)).sum()) < 12


@pytest.mark.parametrize("score", FLIPS, ids=lambda score: score.label)
def test_every_flip_probability_says_what_stands_behind_it(score: Score) -> None:
    """Where noisy copies were drawn its interval counts them, stretched to the number; where none was it has none."""
    found = estimate(small_classifier(), inputs(8), score)
    draws: int | None = getattr(score, "draws", None)
    assert found.evidence is not None
    rare = isinstance(score, RareEvent)
    assert (found.counted is None) == (draws is None and not rare)
    if found.counted is None:
        assert bool((found.low.isnan() & found.high.isnan() & found.value.isfinite()).all())
    elif not rare:
        assert torch.equal(found.low, torch.minimum(found.counted[0], found.value))
        assert torch.equal(found.high, torch.maximum(found.counted[1], found.value))
    kinds = {Evidence(code) for code in found.evidence.tolist()}
    if isinstance(score, MonteCarlo):
        assert kinds == {Evidence.COUNTED}
    elif rare:
        assert kinds == {Evidence.COUNTED, Evidence.SAMPLED}
    elif draws is None:
        assert kinds == {Evidence.EXTRAPOLATED}
    else:
        assert torch.equal(found.evidence == int(Evidence.EXTRAPOLATED), found.value * draws < 1)
        assert Evidence.COUNTED not in kinds


def test_ties_under_noise_are_counted_apart() -> None:
    """Rounded logits tie in many noisy copies; the interval holds whether a tie keeps the prediction or not."""
    x = inputs(40)
    classifier = brittle.Classifier(Wrapped(lambda x, z: (2 * z).round()))
    found = estimate(classifier, x, MonteCarlo(0.1, draws=200, limit=None))
    tied = found.status == int(Status.NOISY_TIES)
    assert bool(tied.any())
    noise = torch.randn(2000, *x.shape[1:], generator=torch.Generator().manual_seed(1)) * 0.1
    with torch.no_grad():
        for row in tied.nonzero().flatten().tolist()[:10]:
            logits = classifier(x[row] + noise)
            own = int(classifier(x[row : row + 1]).argmax())
            rest = torch.cat((logits[:, :own], logits[:, own + 1 :]), dim=1).amax(dim=1)
            kept = float((logits[:, own] >= rest).double().mean()), float((logits[:, own] > rest).double().mean())
            for share in kept:
                assert found.low[row] - 0.05 <= 1 - share <= found.high[row] + 0.05
            assert found.detail is not None
            assert "noisy copies tie for the largest logit" in (found.detail[row] or "")


def test_an_interval_that_says_nothing_has_a_status() -> None:
    found = estimate(small_classifier(), inputs(20), MonteCarlo(0.2, draws=2, limit=None))
    assert {Status(code) for code in found.status.tolist()} == {Status.VACUOUS}
    assert bool((found.high - found.low >= 0.9).all())


@pytest.mark.parametrize("share", [0.0, 0.75])
def test_shape_is_told_in_its_standard_errors(share: float) -> None:
    """Skewness and kurtosis of normal pairs, `share` of whose variance is even, have mean 0 and deviation 1.

    4,000 replicates of 600 pairs: the deviation of the kurtosis is found within 0.012 (one standard error), and 0.02
    below 1 at this number of pairs; a 7% larger one fails, and a right one once in 1e4.
    """
    generator = torch.Generator().manual_seed(0)
    even, odd = torch.randn(2, 4000, 600, 1, generator=generator, dtype=torch.float64)
    powers = powers_of(even * share**0.5, odd * (1 - share) ** 0.5)
    found = spread_of(powers, torch.full((4000,), 600), torch.zeros(4000, 1, dtype=torch.float64))
    for shape in (found.skewness, found.kurtosis) if share else (found.kurtosis,):
        assert abs(float(shape.mean())) < 0.1
        assert float(shape.std()) == pytest.approx(1.0, abs=0.06)


def test_graver_outcomes_stay() -> None:
    """A status takes the place of a less grave one and of no other, whatever the order in which they are found."""
    order = [[Status.OK], [Status.CLASSES_KEPT, Status.ILL_CONDITIONED], *([each] for each in GRAVE)]
    ranks = {member: rank for rank, members in enumerate(order) for member in members}
    ranks |= {Status.NONFINITE_LOGITS: 99, Status.INDEFINITE: 99}
    for one, rank in ranks.items():
        for other, other_rank in ranks.items():
            marked = mark(torch.tensor([int(one)]), torch.tensor([True]), other)
            assert Status(int(marked)) == (other if other_rank > rank else one)
