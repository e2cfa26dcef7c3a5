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
"""Rows per pass for thousands of draws of a few points: passes of 64 rows take ten times as long."""


def estimate(
    classifier: brittle.Classifier,
    inputs: Tensor,
    score: Score,
    ids: Sequence[str] | None = None,
    rows: int | None = None,
) -> Estimate:
    """Estimate one score of a batch as a run does, with `rows` in one pass."""
    names = tuple(ids) if ids is not None else tuple(str(number) for number in range(len(inputs)))
    observe = any(need.uses_features for need in score.needs)
    clean = look(classifier, inputs, names, seed=0, rows=rows, observe=observe)
    return estimate_of(score, take(plan([score]), classifier, clean), CONFIDENCE, len(inputs))


def check_fields(result: Estimate, count: int) -> None:
    """Check that fields are `[B]` and float64, and values NaN exactly, ends at least, where the status has no value."""
    for numbers in (result.value, result.low, result.high):
        assert numbers.shape == (count,)
        assert numbers.dtype == torch.float64
    assert result.status.shape == result.passes.shape == (count,)
    valued = torch.tensor([Status(code).has_value for code in result.status.tolist()])
    assert torch.equal(result.value.isfinite(), valued)
    assert torch.equal(result.low.isnan(), result.high.isnan())
    assert bool(result.low.isnan()[~valued].all())


def check_interval(result: Estimate) -> None:
    """Check `low <= value <= high` where there is an interval."""
    has_interval = ~result.low.isnan()
    assert bool((result.low <= result.value)[has_interval].all())
    assert bool((result.value <= result.high)[has_interval].all())


def check_probability(result: Estimate) -> None:
    """Check that flip probabilities and their intervals lie in [0, 1]."""
    for numbers in (result.value, result.low, result.high):
        finite = numbers[numbers.isfinite()]
        assert bool(((finite >= 0) & (finite <= 1)).all())


ROUNDING = 100
"""Largest effect of rounding on a probability or a margin, in units in the last place of 1."""

RESOLVED = 2 * BELOW
"""Resolution of a search: two of the last changes of the radius that APGD tries, as a share of the distance."""

ALIKE = 0.75
"""Smallest share of points whose search ends at the same distance in another batch; usually all, or all but one.

Only rounding may differ. But a step that starts on a kink, or follows a sign that depends on rounding, goes elsewhere,
and the search may end at another local minimum. This happened at 1 of 40 points; a search that depends on its batch
would end elsewhere for nearly all.
"""


def check_alone(classifier: brittle.Classifier, inputs: Tensor, score: Score, sizes: Sequence[int]) -> None:
    """Check that a point's score is the same alone and in batches of `sizes`, but for rounding."""
    ids = [str(number) for number in range(len(inputs))]
    together = estimate(classifier, inputs, score).value
    tolerance = ROUNDING * torch.finfo(inputs.dtype).eps
    for size in sizes:
        parts = [
            estimate(classifier, inputs[start : start + size], score, ids[start : start + size]).value
            for start in range(0, len(inputs), size)
        ]
        alone = torch.cat(parts)
        if isinstance(score, InputMargin | FeatureDistance):
            check_alike(alone, together)
        else:
            torch.testing.assert_close(alone, together, rtol=0, atol=tolerance)


def check_alike(in_batches: Tensor, together: Tensor) -> None:
    """Check that searches in other batches end at the same distance for at least `ALIKE` of the points."""
    same = torch.isclose(in_batches, together, rtol=RESOLVED, atol=0)
    assert float(same.double().mean()) >= ALIKE, (in_batches, together)


def check_passes(classifier: brittle.Classifier, inputs: Tensor, score: Score) -> None:
    """Check that the stated passes are those that ran."""
    before = classifier.passes
    result = estimate(classifier, inputs, score)
    assert int(result.passes.sum()) == classifier.passes - before


def check_passes_of_points(classifier: brittle.Classifier, inputs: Tensor, scores: Sequence[Score]) -> None:
    """Check the passes that a run spends on a point: those of its score, and none twice where it has several.

    The points' passes are the run's, and lie between the largest and the sum of their scores'.
    """
    table = brittle.score(classifier, inputs, scores)
    total = torch.tensor(table.points["passes"].to_pylist())
    score_passes = torch.tensor(table.scores["passes"].to_pylist()).view(len(inputs), len(scores))
    assert int(total.sum()) == table.record.account.passes
    assert bool((score_passes.amax(dim=1) <= total).all())
    assert bool((total <= score_passes.sum(dim=1)).all())


def check_identity(score: Score) -> None:
    """Check that a score is its own key, and that its JSON in the table distinguishes it from its siblings."""
    assert score == score
    assert len({score, score}) == 1
    assert json.loads(json.dumps(score.parameters)) == score.parameters
    assert score.label.startswith(score.name)
