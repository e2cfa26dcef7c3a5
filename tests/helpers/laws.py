"""Laws that every score obeys on every input; `test_catalogue.py` runs them over the catalogue."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from torch import Tensor

import brittle
from brittle.estimate import Estimate, Status
from brittle.measure import take
from brittle.measure.forward import look
from brittle.measure.nearest.apgd import BELOW
from brittle.scores import FeatureDistance, InputMargin, Score
from brittle.scores.evaluate import estimate_of, plan

CONFIDENCE = 0.99

MANY_ROWS = 4096
"""Rows in one pass where there are thousands of draws of a few points: passes of 64 rows take ten times as long."""


def estimate(
    classifier: brittle.Classifier,
    inputs: Tensor,
    score: Score,
    ids: Sequence[str] | None = None,
    rows: int | None = None,
) -> Estimate:
    """One score of a batch, by the road that a run takes; with so many rows in one pass."""
    names = tuple(ids) if ids is not None else tuple(str(number) for number in range(len(inputs)))
    observe = any(need.uses_features for need in score.needs)
    clean = look(classifier, inputs, names, seed=0, rows=rows, observe=observe)
    return estimate_of(score, take(plan([score]), classifier, clean), CONFIDENCE, len(inputs))


def check_fields(found: Estimate, count: int) -> None:
    """Every field is `[B]`; numbers are float64, NaN exactly where the status carries none, ends at most elsewhere."""
    for numbers in (found.value, found.low, found.high):
        assert numbers.shape == (count,)
        assert numbers.dtype == torch.float64
    assert found.status.shape == found.passes.shape == (count,)
    valued = torch.tensor([Status(code).has_value for code in found.status.tolist()])
    assert torch.equal(found.value.isfinite(), valued)
    assert torch.equal(found.low.isnan(), found.high.isnan())
    assert bool(found.low.isnan()[~valued].all())


def check_interval(found: Estimate) -> None:
    """`low <= value <= high`, where there is an interval."""
    known = ~found.low.isnan()
    assert bool((found.low <= found.value)[known].all())
    assert bool((found.value <= found.high)[known].all())


def check_probability(found: Estimate) -> None:
    """Flip probabilities and their intervals lie in [0, 1]."""
    for numbers in (found.value, found.low, found.high):
        known = numbers[numbers.isfinite()]
        assert bool(((known >= 0) & (known <= 1)).all())


ROUNDING = 100
"""What rounding may do to a probability or a margin, in units in the last place of 1."""

RESOLVED = 2 * BELOW
"""What a search resolves: two of the last changes of the radius that APGD tries, as a share of the distance."""

ALIKE = 0.75
"""Least share of points whose search ends at the same distance in another batch; usually it is all, or all but one.

Nothing but rounding may differ. But a step that starts on a kink, or goes by a sign that hangs on rounding, goes
elsewhere, and then the search may end at another local minimum. That befell 1 of 40 points; a search that depended on
its batch would end elsewhere for nearly all.
"""


def check_alone(classifier: brittle.Classifier, inputs: Tensor, score: Score, sizes: Sequence[int]) -> None:
    """A point's score is the same alone and in batches of `sizes`, but for rounding."""
    ids = [str(number) for number in range(len(inputs))]
    whole = estimate(classifier, inputs, score).value
    tolerance = ROUNDING * torch.finfo(inputs.dtype).eps
    for size in sizes:
        parts = [
            estimate(classifier, inputs[start : start + size], score, ids[start : start + size]).value
            for start in range(0, len(inputs), size)
        ]
        found = torch.cat(parts)
        if isinstance(score, InputMargin | FeatureDistance):
            check_alike(found, whole)
        else:
            torch.testing.assert_close(found, whole, rtol=0, atol=tolerance)


def check_alike(found: Tensor, whole: Tensor) -> None:
    """Distances that a search found in other batches are the same for at least `ALIKE` of the points."""
    same = torch.isclose(found, whole, rtol=RESOLVED, atol=0)
    assert float(same.double().mean()) >= ALIKE, (found, whole)


def check_passes(classifier: brittle.Classifier, inputs: Tensor, score: Score) -> None:
    """The passes stated are the passes made, and no more than the clean one on top."""
    before = classifier.passes
    found = estimate(classifier, inputs, score)
    assert int(found.passes.sum()) == classifier.passes - before


def check_passes_of_points(classifier: brittle.Classifier, inputs: Tensor, scores: Sequence[Score]) -> None:
    """What a run spends on a point: that of its score where it has one alone, and nothing twice where it has several.

    The points' passes are the run's, and lie between the largest and the sum of their scores'.
    """
    table = brittle.score(classifier, inputs, scores)
    total = torch.tensor(table.points["passes"].to_pylist())
    each = torch.tensor(table.scores["passes"].to_pylist()).view(len(inputs), len(scores))
    assert int(total.sum()) == table.record.account.passes
    assert bool((each.amax(dim=1) <= total).all())
    assert bool((total <= each.sum(dim=1)).all())


def check_identity(score: Score) -> None:
    """A score is its own key, and what the table writes of it is JSON that tells it from its siblings."""
    assert score == score
    assert len({score, score}) == 1
    assert json.loads(json.dumps(score.parameters)) == score.parameters
    assert score.label.startswith(score.name)
