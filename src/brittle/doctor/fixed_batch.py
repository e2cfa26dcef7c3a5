"""The only number of rows that a model takes, where one is written into it."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.errors import BrittleError, ModelError
from brittle.model.aside import Aside
from brittle.model.classifier import Classifier

USUAL = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 250, 256, 500, 512, 1000, 1024)
"""Numbers of rows that people write into a network, tried where it does not take the first batch."""

MOST_NUMBERS = 2**24
"""Numbers that a batch may hold which is tried for its size."""

FAILURES = ("model_failed", "output_shape")
"""What a batch of the wrong size ends with."""


@dataclass(frozen=True)
class Batches:
    """Batches of any size, out of the first points.

    Attributes:
        classifier: the model, in evaluation mode.
        inputs: the points, `[V, *shape]`.
        aside: what they have beside them, or None.
    """

    classifier: Classifier
    inputs: Tensor
    aside: Aside | None

    def failure(self, size: int) -> ModelError | None:
        """What the model raises on a batch of `size` points, some of them again where they are few; None where it runs.

        What has to do with no size is none, either.
        """
        rows = torch.arange(size) % len(self.inputs)
        try:
            with torch.no_grad():
                copy(self.classifier)(self.inputs[rows], self.aside and self.aside.only(rows))
        except ModelError as error:
            return error if error.code in FAILURES else None
        return None

    def is_only(self, size: int) -> bool:
        """Whether the model fails on one row more and one less than `size`, on half as many and on twice as many."""
        others = {size - 1, size + 1, size // 2, 2 * size} - {0}
        return all(self.failure(other) is not None for other in others)

    def explained(self, error: BrittleError) -> BrittleError:
        """`error`, which all points in one batch gave, or one that names the only number of rows that is taken."""
        if error.code not in FAILURES:
            return error
        named = [int(number) for number in re.findall(r"\d+", str(error.__cause__ or error))]
        count = len(self.inputs)
        for size in dict.fromkeys((*named, *USUAL)):
            possible = 0 < size <= MOST_NUMBERS // self.inputs[0].numel() and size != count
            if possible and self.failure(size) is None:
                return fixed_batch(size, count, error) if self.is_only(size) else error
        return error


def fixed_batch(size: int, other: int, error: BrittleError) -> ModelError:
    """The error for a model that takes `size` rows alone, where a batch of `other` rows gave `error`."""
    cause = error.__cause__
    reason = f"{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}" if cause else str(error.args[0])
    return ModelError(
        "fixed_batch",
        f"the model takes batches of {size} rows and no others ({other} rows: {reason}); this number is written into "
        f"it: take that of the input, x.flatten(1) in place of x.view({size}, -1), and give buffers and first states "
        f"no axis of {size} rows",
    )
