"""What the checks look at: a model with its declaration, the first points of the data, the scores that were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy

from brittle.data.points import Batch, Points
from brittle.data.values import readable, usable
from brittle.decisions import Decision
from brittle.doctor.inputs import noisy_copies, other_order, random_inputs, resampled
from brittle.doctor.reference import KEPT, Reference, changed_model
from brittle.doctor.rounding import Difference, excess, precision_of
from brittle.doctor.shapes import explained, labels_among_features
from brittle.errors import BrittleError, DataError
from brittle.measure import Clean, Curvature, Curved, Measurement
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.scores import NoiseScore, Score

LOOKED_AT = 64
"""Points that the checks send through the network."""

REPEATS = 5
"""Forward passes of the same points that must agree."""

OTHERS = 3
"""Inputs that a copy of the model, or a worker, sees before the first points."""

CURVED_AT = 8
"""Points at which it is found out whether the network bends."""

CODE_ALONE = "python"
"""Format of a model that code makes; without a file of weights nothing says that it is trained."""


@dataclass(frozen=True)
class Finding:
    """Something a user should know that does not stop a run.

    Attributes:
        code: short name, stable.
        sentence: what was found, and what to do.
    """

    code: str
    sentence: str


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
            inputs, extra_inputs = batch.inputs[read], batch.extra_inputs
            extra_inputs = extra_inputs and extra_inputs.only(read.nonzero().flatten())
            places = torch.arange(len(inputs)).split(rows)
            logits = torch.cat(
                [classifier.read(inputs[own], extra_inputs and extra_inputs.only(own)).cpu() for own in places]
            )
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
        if self.decision.of_classes:
            correct = sum(count for (label, predicted), count in self.confusion.items() if label == predicted)
            return correct, sum(self.confusion.values())
        of_these = torch.tensor(self.positions, dtype=torch.int64)
        labels, targets = self.batch.labels, self.batch.targets
        labels = None if labels is None else torch.tensor(labels)[of_these]
        decided = self.decision.decide(self.logits)
        known = self.decision.right(decided, labels, None if targets is None else targets[of_these])
        return known.count(True), len(known) - known.count(None)


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

    Attributes that are derived:
        decision: what the classifier decides. `classifier` is then one that is called for its numbers as they are.
    """

    classifier: Classifier
    batch: Batch
    labels: Sequence[int] | None
    scores: Sequence[Score]
    seed: int
    rows: int
    points: Points | None = None
    decision: Decision = field(init=False)

    def __post_init__(self) -> None:
        self.decision, self.classifier = self.classifier.decision, self.classifier.undecided

    @cached_property
    def inputs(self) -> Tensor:
        """Points that go through the network, `[V, *shape]`, on the classifier's device.

        Raises:
            DataError: none of the points can be read.
        """
        found = usable(self.batch)[: min(self.rows, LOOKED_AT)]
        if len(found) == 0:
            details = [detail for detail in self.batch.detail if detail] or ["NaN or infinite values"]
            raise DataError(
                "no_usable_points",
                f"none of the first {len(self.batch)} points can be used: {details[0]}; check the files and the range "
                f"of the values",
            )
        return found.to(self.classifier.device)

    @cached_property
    def extra_inputs(self) -> ExtraInputs | None:
        """What `inputs` have beside them; None where there is nothing."""
        if self.batch.extra_inputs is None:
            return None
        read = readable(self.batch).nonzero().flatten()[: len(self.inputs)]
        return self.batch.extra_inputs.only(read.cpu()).to(self.classifier.device)

    @property
    def total(self) -> int:
        """Number of points of the run."""
        return len(self.batch if self.points is None else self.points)

    @property
    def chosen(self) -> bool:
        """Whether the points were chosen by their ids, perhaps for what is predicted."""
        return self.points is not None and self.points.provenance.get("chosen_from") is not None

    @property
    def untrained(self) -> str | None:
        """What made the network out of code with which no file of weights was given; None for other models."""
        return unweighted(self.classifier.source)

    @cached_property
    def untouched(self) -> nn.Module | str:
        """A copy of the model as it was before its first pass here, which shares its weights; or why there is none."""
        return untouched_copy(self.classifier.model)

    @cached_property
    def logits(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from the first pass.

        Raises:
            DataError: columns of a table that hold what is right were read as features.
            ModelError: the model fails on them; a shape or a number of rows that it takes instead is named, where one
                is found.
            ParameterError: mean or std have as many numbers as inputs in another layout have channels.
        """
        try:
            with torch.no_grad():
                return self.classifier(self.inputs, self.extra_inputs)
        except BrittleError as error:
            self.check_columns(error)
            known = explained(error, self.classifier, self.inputs, self.extra_inputs, self.total)
            if known is error:
                raise
            raise known from error

    def check_columns(self, error: BrittleError) -> None:
        """Raise a `DataError` where `error` comes from columns that hold what is right and were read as features."""
        found = labels_among_features(self.classifier, self.inputs, self.points, self.decision)
        if found is not None:
            raise found from error

    @cached_property
    def repeats(self) -> list[Tensor]:
        """Logits of `REPEATS` passes of the same points, `[V, C]` each."""
        with torch.no_grad():
            return [self.logits, *(self.classifier(self.inputs, self.extra_inputs) for _ in range(REPEATS - 1))]

    @cached_property
    def predictions(self) -> Predictions:
        """What the model predicts for the rows of the whole batch."""
        return Predictions.of(self.classifier, self.decision, self.batch, self.rows)

    @cached_property
    def curved(self) -> Curved:
        """The second derivatives of the network at the first `CURVED_AT` of `inputs`, along a few directions."""
        inputs = self.inputs[:CURVED_AT]
        ids = tuple(f"doctor {row}" for row in range(len(inputs)))
        extra_inputs = (
            None if self.extra_inputs is None else self.extra_inputs.only(torch.arange(len(inputs))).around(inputs)
        )
        with torch.no_grad():
            clean = Clean(
                inputs, ids, self.seed, self.classifier(inputs, extra_inputs), self.rows, extra_inputs=extra_inputs
            )
        return Curvature(probes=2)(self.classifier, clean)

    @property
    def bends(self) -> bool:
        """Whether the network has second derivatives anywhere there; one that has none to give counts as bending."""
        try:
            return not bool(self.curved.flat.all())
        except BrittleError:
            return True

    @property
    def decided(self) -> Classifier:
        """The classifier with the decision of the run."""
        return self.classifier if self.decision.of_classes else self.classifier.deciding(self.decision)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.logits.shape[1]

    @property
    def dimension(self) -> int:
        """Number of coordinates of an input."""
        return self.inputs[0].numel()

    @property
    def finite(self) -> Tensor:
        """The rows of `logits` that are finite."""
        return self.logits[self.logits.isfinite().all(dim=1)]

    @property
    def precision(self) -> float:
        """Relative precision of the logits."""
        return precision_of(self.classifier)

    def excess(self, other: Tensor) -> Difference | None:
        """The clearest difference of `other`, logits of `inputs`, from `logits` that rounding does not explain."""
        return excess(self.classifier, self.inputs, self.logits, other, extra_inputs=self.extra_inputs)

    def logits_of(self, inputs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits of other inputs than the points, `[N, C]`, from one pass.

        Args:
            inputs: `[N, *shape]`.
            rows: the points whose other tensors stand beside them, `[N]`; by default the points one after another, and
                then again. What does not vary is as it is at these points.
        """
        rows = torch.arange(len(inputs)) % len(self.inputs) if rows is None else rows
        return self.classifier(inputs, self.extra_inputs and self.extra_inputs.only(rows))

    def check_same(self, where: str, logits: Tensor | None = None) -> Tensor:
        """Raise a `ModelError` where the points get other logits than in the first pass; gives those that they get.

        Args:
            where: when or where they get them, in words.
            logits: what they get, `[V, C]`; those of a pass that is made for it by default.
        """
        if logits is None:
            with torch.no_grad():
                logits = self.logits_of(self.inputs)
        found = self.excess(logits)
        if found is not None:
            raise changed_model(self.numbers[found.row], where, found)
        return logits

    def random_inputs(self, count: int, values: tuple[float, float] = (0.0, 1.0)) -> Tensor:
        """Inputs of the same shape, uniform in these shares of the bounds, the same ones every time.

        Without bounds, where the scores see nothing but the points and what noise that is not added makes of them,
        each coordinate is that of a random point: other values, of a category say, the model may never see.
        """
        added = [score.noise.added for score in self.scores if isinstance(score, NoiseScore)]
        replaced = bool(added) and not any(added) and not self.differentiates
        if replaced and not self.classifier.bounds.finite:
            return resampled(self.inputs, count, values)
        return random_inputs(self.inputs, count, self.classifier.bounds, values)

    @cached_property
    def noisy(self) -> Tensor:
        """A noisy copy of each of `inputs`, as `noisy_copies` makes them for the chosen scores."""
        varies = None if self.extra_inputs is None else self.extra_inputs.varies
        return noisy_copies(self.inputs, self.classifier.bounds, self.scores, self.seed, varies)

    @cached_property
    def noisy_logits(self) -> Tensor:
        """Logits of `noisy`, `[V, C]`."""
        with torch.no_grad():
            return self.logits_of(self.noisy)

    @cached_property
    def random_logits(self) -> Tensor:
        """Logits of as many random inputs as there are points at most, `[N, C]`."""
        with torch.no_grad():
            return self.logits_of(self.random_inputs(min(self.rows, LOOKED_AT)))

    @cached_property
    def reordered(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from a pass in which they stand in the order `order(0)`."""
        order = self.order(seed=0)
        with torch.no_grad():
            logits = self.logits_of(self.inputs[order], order)
        return torch.empty_like(logits).index_copy_(0, order, logits)

    def order(self, seed: int) -> Tensor:
        """Another order of the points, `[V]`; the same one every time."""
        return other_order(self.inputs, seed)

    @property
    def kept(self) -> tuple[tuple[int, ...], Tensor, ExtraInputs | None]:
        """Of the first points the rows in the data, the inputs and what is beside them, for a look during the run.

        Those of `KEPT` at most that can be read, among the first `LOOKED_AT`.
        """
        read = readable(self.batch)[:LOOKED_AT].nonzero().flatten()[: min(KEPT, self.rows)]
        extra = self.batch.extra_inputs
        extra_inputs = None if extra is None else extra.only(read.cpu()).to(self.classifier.device)
        rows = tuple(self.batch.rows[at] for at in read.tolist())
        return rows, self.batch.inputs[read].to(self.classifier.device), extra_inputs

    @property
    def reference(self) -> Reference:
        """These points, with the logits of the first pass."""
        rows, inputs, extra_inputs = self.kept
        return Reference(rows, inputs, self.logits[: len(rows)], extra_inputs)

    def others_with_tensors(self) -> tuple[Tensor, ExtraInputs | None]:
        """Inputs that have nothing to do with the points, for a model that is to see them first, and other tensors."""
        inputs = self.random_inputs(min(self.rows, OTHERS), values=(0.5, 1.0))
        return inputs, self.extra_inputs and self.extra_inputs.only(torch.arange(len(inputs)) % len(self.inputs))

    @property
    def numbers(self) -> list[int]:
        """The row of the data of each of `inputs`."""
        return [row for row, read in zip(self.batch.rows, readable(self.batch).tolist(), strict=True) if read]

    @property
    def needs(self) -> list[Measurement]:
        """The measurements that the chosen scores need, each once."""
        return list(dict.fromkeys(chain.from_iterable(score.needs for score in self.scores)))

    @property
    def differentiates(self) -> bool:
        """Whether a chosen score sends anything backward through the model."""
        return any(need.differentiates for need in self.needs)


def unweighted(source: Any) -> str | None:
    """What made a network out of code with which no file of weights was given; None for other models.

    Args:
        source: `spec`, `format` and `weights` of the model, as the record of a run has them.
    """
    made_by_code = source.get("format") == CODE_ALONE and source.get("weights") is None
    return str(source.get("spec")) if made_by_code else None


def untouched_copy(model: Callable[[Tensor], Any]) -> nn.Module | str:
    """A copy of `model` that shares its weights and no other state; or why there is none."""
    if not isinstance(model, nn.Module):
        return "a function cannot be copied"
    if isinstance(model, fx.GraphModule):
        return "an exported program keeps nothing but weights and buffers"
    if any(map(is_lazy, model.parameters())):
        return "a model without shapes cannot be copied"
    try:
        return deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    except Exception as error:  # noqa: BLE001 - whatever the model's own __deepcopy__ or state raises
        return f"the model cannot be copied: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
