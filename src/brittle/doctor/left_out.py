"""Scores that a model cannot have are left out where others were asked for, too."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from brittle.data.points import Points
from brittle.data.values import readable
from brittle.doctor.finding import Finding
from brittle.doctor.first_pass import untouched_copy
from brittle.errors import BrittleError, ModelError
from brittle.model.classifier import Classifier
from brittle.scores import Score

LOOKED_AT = 8
"""Points at which it is found out whether the logits are those of a linear layer."""


def leave_out(
    scores: Sequence[Score], classifier: Classifier, points: Points
) -> tuple[tuple[Score, ...], tuple[Finding, ...]]:
    """The scores that the model can have, and what is said of the others.

    Those that read the features of the last linear layer are left out where the model has none that gives the logits.
    All stay where nothing else was asked for, or where the layer was named: the checks of a run then raise `no_head`.
    A copy of the model is looked at, so that it is as it was; its passes are not counted.

    Args:
        scores: what was asked for.
        classifier: the model.
        points: the data, of which a few are read where there is something to find out.
    """
    reading = [score for score in scores if any(need.uses_features for need in score.needs)]
    if not reading or len(reading) == len(scores) or classifier.head_name is not None:
        return tuple(scores), ()
    error = _missing_head(classifier, points)
    if error is None:
        return tuple(scores), ()
    names = ", ".join(dict.fromkeys(score.label for score in reading))
    found = Finding("score_left_out", f"left out: {names}; {error.args[0]}")
    return tuple(score for score in scores if score not in reading), (found,)


def _missing_head(classifier: Classifier, points: Points) -> BrittleError | None:
    """What is raised where the features are asked for, if it is that there is no such layer."""
    model = classifier.model
    other = model if isinstance(model, fx.GraphModule) else untouched_copy(model)
    twin = classifier.with_head(None)
    try:
        if isinstance(other, str):  # it cannot be tried on a copy
            _ = twin.head
            return None
        twin.model = other
        batch = next(iter(points.batches(LOOKED_AT)))
        rows = readable(batch).nonzero().flatten()
        if len(rows):
            with twin.evaluating(), torch.no_grad():
                extra = batch.extra_inputs and batch.extra_inputs.only(rows)
                twin.undecided.observe(batch.inputs[rows].to(twin.device), extra)
    except ModelError as error:
        return error if error.code == "no_head" else None  # the checks of a run say what else is wrong
    return None
