"""One pass of a network over the points that a surrogate learns from: logits, and what stands before them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.data import Points
from brittle.errors import DataError, ModelError
from brittle.model.arrays import Fitted
from brittle.model.classifier import Classifier
from brittle.model.head import Head
from brittle.scores.one_pass import OnePass

ROWS = 64  # points in one pass of the network


def margin_of(logits: Tensor) -> NDArray[np.float64]:
    """Return the logit margins `[n]`."""
    largest, second_largest = OnePass(logits).top
    return (largest - second_largest).numpy()


class Pass(NamedTuple):
    """The pass of `n` points: ids, finite features `[n, d]` and logits `[n, C]`, and the layer between these.

    A network without a last linear layer has no `head`: its features are a row's numbers and the logits.
    """

    ids: list[str]
    features: Tensor
    logits: Tensor
    head: Head | None


def observe(classifier: Classifier, points: Points, ids: Collection[str], headless: bool) -> Pass:
    """Return what `classifier` says of the points with these ids; `headless` says whether it may lack a head."""
    subject = classifier.reading(points.provenance)
    headless = headless and not _has_head(subject, points)
    point_ids, features, logits = [], [], []
    with subject.evaluating(), torch.no_grad():
        for batch in points.batches(ROWS):
            positions = [position for position, point in enumerate(batch.ids) if point in ids]
            if not positions:
                continue
            inputs = batch.inputs[positions].to(subject.device)
            scores, rows = (subject(inputs), None) if headless else subject.observe(inputs)
            rows = features_of(numbers_of(subject.model, inputs), scores) if rows is None else rows
            point_ids += [batch.ids[position] for position in positions]
            features.append(rows.double().cpu())
            logits.append(scores.double().cpu())
    if not point_ids:
        raise DataError("runs_differ", "none of the points has a number in the run; give the data of the run")
    rows, scores = torch.cat(features), torch.cat(logits)
    finite = rows.isfinite().all(dim=1) & scores.isfinite().all(dim=1)  # estimators may read NaN
    ids = [point for point, is_finite in zip(point_ids, finite.tolist(), strict=True) if is_finite]
    return Pass(ids, rows[finite], scores[finite], None if headless else subject.head)


def _has_head(classifier: Classifier, points: Points) -> bool:
    """Return whether the last linear layer gives the logits."""
    (batch,) = points.batches(1, 0, 1)
    try:
        with classifier.evaluating(), torch.no_grad():
            classifier.observe(batch.inputs.to(classifier.device))
    except ModelError as error:
        if error.code != "no_head":
            raise
        return False
    return True


def numbers_of(model: Any, inputs: Tensor) -> Tensor:
    """Return the columns that hold numbers: a code stands for another category in data that has other ones."""
    if not isinstance(model, Fitted) or not model.categories:
        return inputs
    return inputs[:, [name not in model.categories for name in model.feature_names or ()]]


def features_of(inputs: Tensor, logits: Tensor) -> Tensor:
    """Return the features of a network without a last linear layer: of rows of numbers these, and the logits."""
    return torch.cat((inputs.to(logits.dtype), logits), dim=1) if inputs.dim() == 2 else logits
