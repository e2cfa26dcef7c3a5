"""What the model predicts for the rows of a batch, and how that agrees with their labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.data.points import Batch
from brittle.data.values import readable
from brittle.decisions import Decision
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Predictions:
    """The rows of a batch that get finite class scores.

    Attributes:
        batch: the batch.
        positions: which of its rows they are.
        logits: their class scores, `[S, C]`, on the CPU; or what another decision is taken from.
        decision: what is decided from them.
    """

    batch: Batch
    positions: list[int]
    logits: Tensor
    decision: Decision

    @classmethod
    def of(cls, classifier: Classifier, decision: Decision, batch: Batch, rows: int) -> Predictions:
        """Those of `batch`, from passes of at most `rows` rows."""
        read = readable(batch).cpu()
        with torch.no_grad():
            inputs, aside = batch.inputs[read], batch.extra_inputs and batch.extra_inputs.only(read.nonzero().flatten())
            places = torch.arange(len(inputs)).split(rows)
            logits = torch.cat([classifier.read(inputs[own], aside and aside.only(own)).cpu() for own in places])
        finite = logits.flatten(1).isfinite().all(dim=1)
        return cls(batch, read.nonzero().flatten()[finite].tolist(), logits[finite], decision)

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
        if not self.decision.of_classes:
            return self._decided_right()
        correct = sum(count for (label, predicted), count in self.confusion.items() if label == predicted)
        return correct, sum(self.confusion.values())

    def _decided_right(self) -> tuple[int, int]:
        """The same of a decision that is no class, by the labels or the targets of the data."""
        of_these = torch.tensor(self.positions, dtype=torch.int64)
        labels, targets = self.batch.labels, self.batch.targets
        labels = None if labels is None else torch.tensor(labels)[of_these]
        decided = self.decision.decide(self.logits)
        known = self.decision.right(decided, labels, None if targets is None else targets[of_these])
        return known.count(True), len(known) - known.count(None)
