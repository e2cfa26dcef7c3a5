"""Evidence for flip probabilities: votes of the same draws, and intervals that hold where models fail.

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


def test_numbers_that_the_votes_exclude_are_contradicted() -> None:
    """A normal model says 4% where 8% of the copies flip."""
    network = Shallow(2.0, 0.06, 0.01, 0.1)
    estimates = estimate(brittle.Classifier(network), shallow_points(20), Moments(0.1, draws=1000), rows=MANY_ROWS)
    assert estimates.counted is not None
    is_excluded = (estimates.value < estimates.counted[0]) | (estimates.value > estimates.counted[1])
    assert bool(is_excluded.any())
    assert torch.equal(estimates.status == int(Status.CONTRADICTED), is_excluded)


def test_right_numbers_are_hardly_ever_contradicted() -> None:
    """On a linear network the votes exclude the model with at most 1% probability; 12 of 400 happen once in 1e3."""
    network = linear_network(4, 36)
    x = inputs(400, dtype=torch.float64)
    for score in (Moments(0.2, draws=50), MMSE(0.2, draws=20)):
        estimates = estimate(brittle.Classifier(nn.Sequential(nn.Flatten(), network)), x, score)
        assert int((estimates.status == int(Status.CONTRADICTED)).sum()) < 12


@pytest.mark.parametrize("score", FLIPS, ids=lambda score: score.label)
def test_every_flip_probability_has_evidence(score: Score) -> None:
    """The interval of a sampled score counts its noisy copies and includes the number; other scores have none."""
    estimates = estimate(small_classifier(), inputs(8), score)
    draws: int | None = getattr(score, "draws", None)
    assert estimates.evidence is not None
    rare = isinstance(score, RareEvent)
    assert (estimates.counted is None) == (draws is None and not rare)
    if estimates.counted is None:
        assert bool((estimates.low.isnan() & estimates.high.isnan() & estimates.value.isfinite()).all())
    elif not rare:
        assert torch.equal(estimates.low, torch.minimum(estimates.counted[0], estimates.value))
        assert torch.equal(estimates.high, torch.maximum(estimates.counted[1], estimates.value))
    kinds = {Evidence(code) for code in estimates.evidence.tolist()}
    if isinstance(score, MonteCarlo):
        assert kinds == {Evidence.COUNTED}
    elif rare:
        assert kinds == {Evidence.COUNTED, Evidence.SAMPLED}
    elif draws is None:
        assert kinds == {Evidence.EXTRAPOLATED}
    else:
        assert torch.equal(estimates.evidence == int(Evidence.EXTRAPOLATED), estimates.value * draws < 1)
        assert Evidence.COUNTED not in kinds


def test_ties_under_noise_are_counted_apart() -> None:
    """Rounded logits tie in many noisy copies; the interval holds whether a tie keeps the prediction or not."""
    x = inputs(40)
    classifier = brittle.Classifier(Wrapped(lambda x, z: (2 * z).round()))
    estimates = estimate(classifier, x, MonteCarlo(0.1, draws=200, limit=None))
    is_tied = estimates.status == int(Status.NOISY_TIES)
    assert bool(is_tied.any())
    noise = torch.randn(2000, *x.shape[1:], generator=torch.Generator().manual_seed(1)) * 0.1
    with torch.no_grad():
        for row in is_tied.nonzero().flatten().tolist()[:10]:
            logits = classifier(x[row] + noise)
            top = int(classifier(x[row : row + 1]).argmax())
            rivals = torch.cat((logits[:, :top], logits[:, top + 1 :]), dim=1).amax(dim=1)
            shares = float((logits[:, top] >= rivals).double().mean()), float((logits[:, top] > rivals).double().mean())
            for share in shares:
                assert estimates.low[row] - 0.05 <= 1 - share <= estimates.high[row] + 0.05
            assert estimates.detail is not None
            assert "noisy copies tie for the largest logit" in (estimates.detail[row] or "")


def test_a_vacuous_interval_has_a_status() -> None:
    estimates = estimate(small_classifier(), inputs(20), MonteCarlo(0.2, draws=2, limit=None))
    assert {Status(code) for code in estimates.status.tolist()} == {Status.VACUOUS}
    assert bool((estimates.high - estimates.low >= 0.9).all())


@pytest.mark.parametrize("share", [0.0, 0.75])
def test_skewness_and_kurtosis_are_in_standard_errors(share: float) -> None:
    """Skewness and kurtosis of normal pairs, `share` of whose variance is even, have mean 0 and deviation 1.

    4,000 replicates of 600 pairs: the deviation of the kurtosis has a standard error of 0.012, and is 0.02 below
    1 at this number of pairs; a 7% larger one fails, and a right one once in 1e4.
    """
    generator = torch.Generator().manual_seed(0)
    even, odd = torch.randn(2, 4000, 600, 1, generator=generator, dtype=torch.float64)
    powers = powers_of(even * share**0.5, odd * (1 - share) ** 0.5)
    spread = spread_of(powers, torch.full((4000,), 600), torch.zeros(4000, 1, dtype=torch.float64))
    for shape in (spread.skewness, spread.kurtosis) if share else (spread.kurtosis,):
        assert abs(float(shape.mean())) < 0.1
        assert float(shape.std()) == pytest.approx(1.0, abs=0.06)


def test_graver_outcomes_stay() -> None:
    """A status replaces a less grave one and no other, in any order."""
    order = [[Status.OK], [Status.CLASSES_KEPT, Status.ILL_CONDITIONED], *([status] for status in GRAVE)]
    ranks = {member: rank for rank, members in enumerate(order) for member in members}
    ranks |= {Status.NONFINITE_LOGITS: 99, Status.INDEFINITE: 99}
    for status, rank in ranks.items():
        for new_status, new_rank in ranks.items():
            status_after = mark(torch.tensor([int(status)]), torch.tensor([True]), new_status)
            assert Status(int(status_after)) == (new_status if new_rank > rank else status)
