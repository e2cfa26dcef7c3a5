"""What the model predicts for the rows of a batch, and how that agrees with their labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.data.values import readable
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Predictions:
    """The rows of a batch that get finite class scores.

    Attributes:
        batch: the batch.
        positions: which of its rows they are.
        logits: their class scores, `[S, C]`, on the CPU.
    """

    batch: Batch
    positions: list[int]
    logits: Tensor

    @classmethod
    def of(cls, classifier: Classifier, batch: Batch, rows: int) -> Predictions:
        """Those of `batch`, from passes of at most `rows` rows."""
        read = readable(batch).cpu()
        with torch.no_grad():
            logits = torch.cat([classifier(part).cpu() for part in batch.inputs[read].split(rows)])
        finite = logits.isfinite().all(dim=1)
        return cls(batch, read.nonzero().flatten()[finite].tolist(), logits[finite])

    @cached_property
    def confusion(self) -> Counter[tuple[int, int]]:
        """How many of them have each (label, predicted class); empty without labels."""
        if self.batch.labels is None:
            return Counter()
        labels = [int(self.batch.labels[position]) for position in self.positions]
        pairs = zip(labels, self.logits.argmax(dim=1).tolist(), strict=True)
        return Counter(pair for pair in pairs if 0 <= pair[0] < self.logits.shape[1])

    @property
    def right(self) -> tuple[int, int]:
        """How many of the labelled ones are predicted right, and how many there are."""
        correct = sum(count for (label, predicted), count in self.confusion.items() if label == predicted)
        return correct, sum(self.confusion.values())
