"""What the checks look at: a model with its declaration, the first points of the data, the scores that were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import torch
from torch import Tensor

from brittle.classifier import Classifier
from brittle.data.points import Batch, Points
from brittle.errors import DataError
from brittle.measure import Measurement
from brittle.scores import Score

LOOKED_AT = 64
"""Points that the checks send through the network."""

REPEATS = 5
"""Forward passes of the same points that must agree."""

MOST_ROUNDING = 0.1
"""Difference in the logits, as a share of the largest, that no precision explains."""

TF32 = 2.0**-11
"""Relative precision of single precision on an accelerator that rounds the factors of its products."""


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run.

    Attributes:
        code: short name, stable.
        sentence: what was seen, and what to do.
    """

    code: str
    sentence: str


@dataclass
class Subject:
    """What is examined. Passes through the network are taken when a check first needs them, and once.

    Attributes:
        classifier: what will be scored, in evaluation mode.
        batch: the first points, at least one.
        labels: all labels of the data, or None.
        scores: what will be computed.
        seed: seed of the run.
        rows: most rows in one pass through the network.
        points: all points, or None where only the first are at hand.
    """

    classifier: Classifier
    batch: Batch
    labels: Sequence[int] | None
    scores: Sequence[Score]
    seed: int
    rows: int
    points: Points | None = None

    @cached_property
    def inputs(self) -> Tensor:
        """Points that go through the network, `[V, *shape]`, on the classifier's device.

        Raises:
            DataError: none of the points can be read.
        """
        found = usable(self.batch)[: min(self.rows, LOOKED_AT)]
        if len(found) == 0:
            details = [detail for detail in self.batch.detail if detail]
            raise DataError(
                "no_usable_points",
                f"none of the first {len(self.batch)} points can be used: "
                f"{details[0] if details else 'NaN or infinite values'}; check the files and the range of the values",
            )
        return found.to(self.classifier.device)

    @cached_property
    def first_pass(self) -> tuple[Tensor, int]:
        """Logits of `inputs`, `[V, C]`, and how many input numbers the model overwrote on the way."""
        seen: list[tuple[Tensor, Tensor]] = []
        model = self.classifier.model

        def watched(inputs: Tensor) -> object:
            seen.append((inputs, inputs.clone()))
            return model(inputs)

        # A twin that is called through `watched`, so that the tensor the model gets can be looked at afterwards.
        twin = copy(self.classifier)
        twin.model = watched
        with torch.no_grad():
            logits = twin(self.inputs)
        self.classifier.forward_passes, self.classifier.output_dtype = twin.forward_passes, twin.output_dtype
        self.classifier.taken = twin.taken
        given, before = seen[0]
        same = (given == before) | (given.isnan() & before.isnan())
        return logits, int((~same).sum())

    @property
    def logits(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`."""
        return self.first_pass[0]

    @cached_property
    def repeats(self) -> list[Tensor]:
        """Logits of `REPEATS` passes of the same points, `[V, C]` each."""
        with torch.no_grad():
            return [self.logits, *(self.classifier(self.inputs) for _ in range(REPEATS - 1))]

    @cached_property
    def scored(self) -> tuple[list[int], Tensor]:
        """The positions in the whole batch that get finite class scores, and these, `[S, C]`, on the CPU."""
        read = readable(self.batch).cpu()
        with torch.no_grad():
            logits = torch.cat([self.classifier(part).cpu() for part in self.batch.inputs[read].split(self.rows)])
        finite = logits.isfinite().all(dim=1)
        return read.nonzero().flatten()[finite].tolist(), logits[finite]

    @cached_property
    def confusion(self) -> Counter[tuple[int, int]]:
        """How many of them have each (label, predicted class); empty without labels."""
        if self.batch.labels is None:
            return Counter()
        rows, logits = self.scored
        labels = [int(self.batch.labels[row]) for row in rows]
        pairs = zip(labels, logits.argmax(dim=1).tolist(), strict=True)
        return Counter(pair for pair in pairs if 0 <= pair[0] < logits.shape[1])

    @property
    def right(self) -> tuple[int, int]:
        """How many of the labelled ones are predicted right, and how many there are."""
        correct = sum(count for (label, predicted), count in self.confusion.items() if label == predicted)
        return correct, sum(self.confusion.values())

    @property
    def finite(self) -> Tensor:
        """The rows of `logits` that are finite."""
        return self.logits[self.logits.isfinite().all(dim=1)]

    @property
    def precision(self) -> float:
        """Relative precision of the logits."""
        precision = float(torch.finfo(self.classifier.output_dtype).eps)
        if self.classifier.dtype is not None:
            precision = max(precision, float(torch.finfo(self.classifier.dtype).eps))
        rounds = torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32
        return max(precision, TF32) if self.classifier.device.type == "cuda" and rounds else precision

    @property
    def noise_floor(self) -> float:
        """Difference in the logits that rounding explains."""
        scale = 1.0 + float(self.logits.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max())
        return min(1000.0 * self.precision, MOST_ROUNDING) * scale

    def random_inputs(self, count: int = 2) -> Tensor:
        """Inputs of the same shape, uniform in the bounds, the same ones every time."""
        low, high = self.classifier.bounds
        generator = torch.Generator().manual_seed(0)
        uniform = torch.rand(count, *self.inputs.shape[1:], generator=generator, dtype=torch.float32)
        return (uniform * (high - low) + low).to(self.inputs)

    @property
    def needs(self) -> list[Measurement]:
        """The measurements that the chosen scores need, each once."""
        return list(dict.fromkeys(chain.from_iterable(score.needs for score in self.scores)))

    @property
    def streams(self) -> dict[Hashable, list[Measurement]]:
        """The needs by the passes that they share."""
        found: dict[Hashable, list[Measurement]] = {}
        for need in self.needs:
            found.setdefault((type(need), need.stream), []).append(need)
        return found


def readable(batch: Batch) -> Tensor:
    """Whether each input was read and holds no NaN or infinite value, `[B]`."""
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def usable(batch: Batch) -> Tensor:
    """The inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[readable(batch)]


def largest_difference(one: Tensor, other: Tensor) -> float:
    """The largest difference between two tensors of logits; NaN equals NaN."""
    different = torch.where(one.isfinite() & other.isfinite(), (one - other).abs(), torch.inf)
    same = (one == other) | (one.isnan() & other.isnan())
    return float(torch.where(same, 0.0, different).max())
