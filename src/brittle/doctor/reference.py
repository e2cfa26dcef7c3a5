"""A few points whose logits tell, at any time and in any process, whether the network is still the same function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.doctor.rounding import Difference, allowed, excess, precision_of
from brittle.errors import ModelError
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs

KEPT = 8
"""Points whose logits are kept."""


@dataclass(frozen=True)
class Reference:
    """Some points with the logits that they got at first.

    Attributes:
        rows: their rows in the data, `[R]`; none where none of the first can be read.
        inputs: `[R, *shape]`, on the classifier's device.
        logits: what the decision is taken from, `[R, C]`.
        extra_inputs: what they have beside their inputs, or None.
    """

    rows: tuple[int, ...]
    inputs: Tensor
    logits: Tensor
    extra_inputs: ExtraInputs | None = None

    def checked(self, classifier: Classifier, where: str) -> Reference:
        """The same points with the logits that they get in a pass now.

        Args:
            classifier: in evaluation mode.
            where: when or where that is, in words.
        """
        if not self.rows:
            return self
        with torch.no_grad():
            now = classifier.numbers(self.inputs, self.extra_inputs)
        found = excess(classifier, self.inputs, self.logits, now, extra_inputs=self.extra_inputs)
        if found is not None:
            raise changed_model(self.rows[found.row], where, found)
        return replace(self, logits=now)

    def content(self, classifier: Classifier) -> dict[str, object]:
        """What is sent of it to another process, as JSON: rows, logits, and what rounding explains of each."""
        explained = allowed(self.logits, precision_of(classifier)) if self.rows else self.logits
        return {"rows": list(self.rows), "logits": self.logits.tolist(), "explained": explained.tolist()}


def check_alike(own: Mapping[str, Any], other: Mapping[str, Any] | None, where: str) -> None:
    """Raise where another process does not get the same logits for the same rows.

    Args:
        own: the content of the reference of this process.
        other: that of the other process; None where it has none.
        where: the other process, in words.
    """
    if other is None or other["rows"] != own["rows"]:
        rows = "none" if other is None else other["rows"]
        raise ModelError("worker_differs", f"logits of rows {own['rows']} are compared, {where} gave those of {rows}")
    for row, one, two, explained in zip(own["rows"], own["logits"], other["logits"], own["explained"], strict=True):
        if len(one) != len(two):
            raise ModelError("worker_differs", f"row {row} has {len(one)} logits here, and {len(two)} {where}")
        for mine, theirs, most in zip(one, two, explained, strict=True):
            if not (mine == theirs or abs(mine - theirs) <= most or (mine != mine and theirs != theirs)):
                raise changed_model(row, where, Difference(row, abs(mine - theirs), most))


def changed_model(row: int, where: str, found: Difference) -> ModelError:
    """The error for a network that is not what it was at first."""
    return ModelError(
        "model_changed",
        f"row {row} gets other logits {where} than in the first pass, they differ by {found}: the network remembers "
        f"what it was given, beside its weights and buffers (a moving average, a counter of calls, statistics or a "
        f"cache of its first batch), or draws random numbers; let forward() depend on its input alone",
    )
