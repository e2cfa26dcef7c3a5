"""Some rows of every shard go through the network again: do they depend on their batch, and is it the same function?

A few rows of the passes of every shard, chosen by their position alone, go through once more, alone or beside others,
and so do the first points of the data: a network that counts, averages or remembers is not what it was.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from brittle.data import Batch
from brittle.doctor.rounding import Reference, allowed, differences, excess, precision_of
from brittle.errors import ModelError
from brittle.measure.rows import join
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs

FIRST_PASSES = 16  # passes of a shard that are all looked at: a fault that comes and goes falls on one of them
ROWS, NOISY_ROWS = 64, 2048  # rows of a pass per row that is looked at, without noise and with noise

SPACING = 0.6180339887498949  # step between the rows, as a share of the batch: the golden ratio spreads them evenly


@dataclass(frozen=True)
class PassRow:
    """A row of a pass."""

    description: str  # its place in words
    rows: int  # of the pass
    inputs: Tensor  # `[1, *shape]`
    extra_inputs: ExtraInputs | None
    logits: Tensor  # `[1, C]`
    explained: Tensor  # by rounding, of these
    recorded: bool  # whether gradients were


@dataclass
class Rechecks:
    """Watches the passes of one shard.

    Rows are kept of the first pass of some batches, of the first `FIRST_PASSES` passes of the shard and of those at
    powers of 2; of a pass of many rows more. `reference` has the first points as this process saw them, or is None.
    """

    classifier: Classifier
    shard: int
    batches: int
    reference: Reference | None
    _batch: Batch | None = field(default=None, init=False)
    _number: int = field(default=-1, init=False)
    _passes: int = field(default=0, init=False)
    _fresh: bool = field(default=False, init=False)
    _kept: list[PassRow] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.watched = self.classifier.watched(self._keep)

    def begin(self, batch: Batch) -> None:
        """Begin a batch, to which the passes from now on belong."""
        self._batch, self._fresh = batch, True
        self._number += 1

    def check(self, batch_size: int | None = None) -> int:
        """Repeat recorded passes, of at most so many rows; raise `ModelError` at a difference, or return the count."""
        before = self.classifier.passes
        if self.reference is not None:
            self.reference.checked(self.classifier, f"at the end of shard {self.shard}", batch_size)
        for row, again in self._other():
            difference = excess(self.classifier, row.inputs, row.logits, again, row.explained, row.extra_inputs)
            if difference is not None:
                self._check_recorded(row, again)
                if self.reference is not None:  # it may have changed just now
                    self.reference.checked(self.classifier, f"at the end of shard {self.shard}", batch_size)
                place = f"{row.description} of shard {self.shard} looked at again and in its batch of {row.rows}"
                advice = "the model mixes the rows of a batch, make it treat each row alone"
                raise ModelError("batch_dependent", f"{place} differ by {difference}; {advice}")
        return self.classifier.passes - before

    def _other(self) -> list[tuple[PassRow, Tensor]]:
        """Return the rows that get other logits again, by more than rounding explains, and these."""
        if not self._kept:
            return []
        # Each alone; where a call costs far more than a row, as of trees, the first alone and the others in one batch.
        alone = len(self._kept) if self.classifier.forward_only is None else 1
        parts = [*([row] for row in self._kept[:alone]), *filter(None, [self._kept[alone:]])]
        repeats: list[Tensor] = []
        for part in parts:
            inputs, beside = (join([getattr(row, name) for row in part]) for name in ("inputs", "extra_inputs"))
            with torch.no_grad():
                repeats += self.classifier.numbers(inputs, beside).split(1)
        between = differences(torch.cat([row.logits for row in self._kept]), torch.cat(repeats))
        unlike = between > torch.cat([row.explained for row in self._kept])
        return [(self._kept[row], repeats[row]) for row in unlike.any(dim=1).nonzero().flatten().tolist()]

    def _check_recorded(self, row: PassRow, alone: Tensor) -> None:
        """Raise where the recording of gradients makes the difference, and not the batch."""
        if not row.recorded:
            return
        with torch.enable_grad():
            inputs = row.inputs.clone().requires_grad_(True)
            recorded = self.classifier.numbers(inputs, row.extra_inputs).detach()
        difference = excess(self.classifier, row.inputs, alone, recorded, row.explained, row.extra_inputs)
        if difference is not None:
            place = f"{row.description} of shard {self.shard} gets other logits where gradients are recorded"
            advice = "let forward() not ask for torch.is_grad_enabled() or requires_grad"
            raise ModelError("model_changed", f"{place}, by {difference}: {advice}")

    def _keep(self, classifier: Classifier, inputs: Tensor, logits: Tensor, extra_inputs: ExtraInputs | None) -> None:
        """Keep a row of this pass, if it is one of those that are looked at."""
        if self._batch is None or classifier.random:
            return
        self._passes += 1
        clean, self._fresh = self._fresh, False
        spaced = clean and self._number % -(-self.batches // 8) == 0  # of eight batches
        recorded = inputs.requires_grad
        if (len(inputs) < 2 and not recorded) or not (
            spaced or self._passes <= FIRST_PASSES or self._passes & (self._passes - 1) == 0
        ):
            return
        rows, count = self._batch.rows, -(-len(inputs) // (ROWS if clean else NOISY_ROWS))
        chosen = [int(SPACING * (self.shard + len(self._kept) + number) % 1 * len(inputs)) for number in range(count)]
        if count > 1 or self._passes % 2 == 0:
            chosen[-1] = len(inputs) - 1  # a rest of rows at the end may be treated otherwise
        explained = allowed(torch.cat((logits[:: -(-len(logits) // 256)], logits[chosen])), precision_of(classifier))
        for row, row_explained in zip(chosen, explained[-count:].split(1), strict=True):
            row_inputs, row_logits = (part[row : row + 1].detach().clone() for part in (inputs, logits))
            beside = None if extra_inputs is None else extra_inputs.only(torch.tensor([row], device=logits.device))
            at = f"row {rows[row]}" if clean else f"a copy of one of the rows {rows[0]} to {rows[-1]}"
            self._kept.append(PassRow(at, len(inputs), row_inputs, beside, row_logits, row_explained, recorded))
