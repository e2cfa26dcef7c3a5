"""What the checks look at: a model with its declaration, the first points of the data, the scores that were chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy

from brittle.data.points import Batch, Points, readable, usable
from brittle.decisions import Decision
from brittle.doctor.rounding import Difference, Reference, changed_model, excess, precision_of
from brittle.doctor.shapes import explained
from brittle.errors import BrittleError, DataError
from brittle.measure import Clean, Curvature, Curved, Measurement
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.noise import Gaussian, Stream
from brittle.scores import NoiseScore, Score
from brittle.store.record import Finding as Finding

LOOKED_AT = 64
"""Points that the checks send through the network."""

REPEATS = 5
"""Forward passes of the same points that must agree."""

KEPT, OTHERS = 8, 3
"""Points whose logits are compared during a run, and inputs that a worker, or a copy of the model, sees before them."""

CURVED_AT = 8
"""Points at which it is found out whether the network bends."""

SIGMA_SHARE = 0.1
"""Noise of the noisy copies, as a share of the range, where no score says what noise."""

CODE_ALONE = "python"
"""Format of a model that code makes; without a file of weights nothing says that it is trained."""


@dataclass
class Subject:
    """What is examined. Passes through the network are taken when a check first needs them, and once.

    Attributes:
        classifier: what will be scored, in evaluation mode; here it is called for its numbers, whatever it decides.
        batch: the first points, at least one.
        labels: all labels of the data, or None.
        scores: what will be computed.
        seed: seed of the run.
        rows: most rows in one pass through the network.
        points: all points, or None where only the first are at hand.
        decision: what the classifier decides.
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
            detail = next((detail for detail in self.batch.detail if detail), "NaN or infinite values")
            raise DataError(
                "no_usable_points",
                f"none of the first {len(self.batch)} points can be used: {detail}; check the files and their values",
            )
        return found.to(self.classifier.device)

    @cached_property
    def extra_inputs(self) -> ExtraInputs | None:
        """What `inputs` have beside them; None where there is nothing."""
        extra, read = self.batch.extra_inputs, readable(self.batch).nonzero().flatten()[: len(self.inputs)]
        return extra and extra.only(read.cpu()).to(self.classifier.device)

    @property
    def numbers(self) -> list[int]:
        """The row of the data of each of `inputs`."""
        return [row for row, read in zip(self.batch.rows, readable(self.batch).tolist(), strict=True) if read]

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the data come from; empty where only the first points are at hand."""
        return {} if self.points is None else self.points.provenance

    @property
    def chosen(self) -> bool:
        """Whether the points were chosen by their ids, perhaps for what is predicted."""
        return self.provenance.get("chosen_from") is not None

    @property
    def needs(self) -> list[Measurement]:
        """The measurements that the chosen scores need, each once."""
        return list(dict.fromkeys(chain.from_iterable(score.needs for score in self.scores)))

    @property
    def differentiates(self) -> bool:
        """Whether a chosen score sends anything backward through the model."""
        return any(need.differentiates for need in self.needs)

    @cached_property
    def untouched(self) -> nn.Module | str:
        """A copy of the model as it was before its first pass here, which shares its weights; or why there is none."""
        return untouched_copy(self.classifier.model)

    # Passes of the points.

    @cached_property
    def logits(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from the first pass.

        Raises:
            BrittleError: the model fails on them; with columns of labels, a shape or a number of rows that it takes
                instead, where one is found.
        """
        try:
            return self.logits_of(self.inputs)
        except BrittleError as error:
            known = explained(error, self.classifier, self.inputs, self.extra_inputs, self.points, self.decision)
            if known is error:
                raise
            raise known from error

    def logits_of(self, inputs: Tensor, rows: Tensor | None = None) -> Tensor:
        """Logits of inputs of the same shape, `[N, C]`, from one pass; for gradients where `inputs` ask for them.

        Args:
            inputs: `[N, *shape]`.
            rows: the points whose other tensors stand beside them, `[N]`; by default the points one after another, and
                then again. What does not vary is as it is at these points.
        """
        with torch.set_grad_enabled(inputs.requires_grad):
            return self.classifier(inputs, self.beside(len(inputs), rows))

    def beside(self, count: int, rows: Tensor | None = None) -> ExtraInputs | None:
        """What stands beside `count` inputs; `rows` as for `logits_of`."""
        return self.extra_inputs and self.extra_inputs.only(
            torch.arange(count) % len(self.inputs) if rows is None else rows
        )

    @cached_property
    def repeats(self) -> list[Tensor]:
        """Logits of `REPEATS` passes of the same points, `[V, C]` each."""
        return [self.logits, *(self.logits_of(self.inputs) for _ in range(REPEATS - 1))]

    @cached_property
    def reordered(self) -> Tensor:
        """Logits of `inputs`, `[V, C]`, from a pass in which they stand in the order `order(0)`."""
        order = self.order(seed=0)
        logits = self.logits_of(self.inputs[order], order)
        return torch.empty_like(logits).index_copy_(0, order, logits)

    def order(self, seed: int) -> Tensor:
        """Another order of the points, `[V]`; the same one every time."""
        order = torch.randperm(len(self.inputs), generator=torch.Generator().manual_seed(seed))
        same = torch.equal(order, torch.arange(len(order)))
        return (order.flip(0) if same else order).to(self.inputs.device)

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

    def check_same(self, where: str, logits: Tensor | None = None) -> None:
        """Raise where the points get other logits, `[V, C]`, than in the first pass; by default in a pass now.

        `where` says when or where they get them, in words.
        """
        found = self.excess(self.logits_of(self.inputs) if logits is None else logits)
        if found is not None:
            raise changed_model(self.numbers[found.row], where, found)

    # What the model predicts for the rows of the whole batch.

    @cached_property
    def predicted(self) -> tuple[list[int], Tensor]:
        """The rows of the batch that get finite class scores, and what is decided from, `[S, ...]`, on the CPU."""
        read = readable(self.batch).cpu().nonzero().flatten()
        extra = self.batch.extra_inputs
        with torch.no_grad():
            parts = [
                self.classifier.read(self.batch.inputs[rows.to(self.batch.inputs.device)], extra and extra.only(rows))
                for rows in read.split(self.rows)
            ]
        outputs = torch.cat([part.cpu() for part in parts])
        finite = outputs.flatten(1).isfinite().all(dim=1)
        return read[finite].tolist(), outputs[finite]

    @cached_property
    def confusion(self) -> Counter[tuple[int, int]]:
        """How many of them have each (label, predicted class); empty without labels."""
        (rows, outputs), labels = self.predicted, self.batch.labels
        if labels is None:
            return Counter()
        pairs = zip((int(labels[row]) for row in rows), outputs.argmax(dim=1).tolist(), strict=True)
        return Counter(pair for pair in pairs if 0 <= pair[0] < outputs.shape[1])

    @property
    def right(self) -> tuple[int, int]:
        """How many of the labelled ones are predicted right, and how many there are."""
        if self.decision.of_classes:
            return sum(n for (label, own), n in self.confusion.items() if label == own), self.confusion.total()
        rows, outputs = self.predicted
        labels, targets = self.batch.labels, self.batch.targets
        known = self.decision.right(
            self.decision.decide(outputs),
            None if labels is None else torch.tensor(labels)[rows],
            None if targets is None else targets[rows],
        )
        return known.count(True), len(known) - known.count(None)

    @property
    def decided(self) -> Classifier:
        """The classifier with the decision of the run."""
        return self.classifier if self.decision.of_classes else self.classifier.deciding(self.decision)

    @cached_property
    def curved(self) -> Curved:
        """The second derivatives of the network at the first `CURVED_AT` of `inputs`, along a few directions."""
        inputs = self.inputs[:CURVED_AT]
        extra_inputs = self.beside(len(inputs))
        extra_inputs = extra_inputs and extra_inputs.around(inputs)
        clean = Clean(inputs, _ids(inputs), self.seed, self.logits_of(inputs), self.rows, extra_inputs=extra_inputs)
        return Curvature(probes=2)(self.classifier, clean)

    @property
    def bends(self) -> bool:
        """Whether the network has second derivatives anywhere there; one that has none to give counts as bending."""
        try:
            return not bool(self.curved.flat.all())
        except BrittleError:
            return True

    # Other inputs than the points, the same ones every time.

    def random_inputs(self, count: int, values: tuple[float, float] = (0.0, 1.0)) -> Tensor:
        """Inputs of the same shape, uniform in these shares of the bounds, `[count, *shape]`.

        Without bounds, where the scores see nothing but the points and what noise that is not added makes of them,
        each coordinate is that of a random point: other values, of a category say, the model may never see. They are
        taken from these shares of its values in order, so that they all occur.
        """
        bounds, shape = self.classifier.bounds.closed(self.inputs), (count, *self.inputs.shape[1:])
        added = [score.noise.added for score in self.scores if isinstance(score, NoiseScore)]
        if not added or any(added) or self.differentiates or self.classifier.bounds.finite:
            return bounds.sample(shape, self.inputs, values)
        shares = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        shares = shares.to(self.inputs.device) * (values[1] - values[0]) + values[0]
        place = (shares * len(self.inputs)).long().clamp(0, len(self.inputs) - 1)
        return self.inputs.sort(dim=0).values.gather(0, place)

    @cached_property
    def random_logits(self) -> Tensor:
        """Logits of as many random inputs as there are points at most, `[N, C]`."""
        return self.logits_of(self.random_inputs(min(self.rows, LOOKED_AT)))

    @cached_property
    def noisy(self) -> Tensor:
        """A noisy copy of each of `inputs`, with the noise of the scores of the largest sigma, in pixels first.

        Inside the bounds where no score sends anything beyond them. Where there is no noise to draw it is normal, with
        a tenth of the range of each coordinate for sigma; without bounds that is the range of the inputs.
        """
        inputs, bounds, varies = self.inputs, self.classifier.bounds, self.extra_inputs and self.extra_inputs.varies
        drawing = [score for score in self.scores if isinstance(score, NoiseScore) and score.noise.has_draws]
        noise = max((score.noise for score in drawing), key=lambda one: (one.in_pixels, one.sigma), default=None)
        stream = Stream(noise or Gaussian(1.0), inputs, _ids(inputs), self.seed, "doctor", varies)
        if noise is None:
            low, high = bounds.closed(inputs).ends(inputs)
            return bounds.clip(inputs + SIGMA_SHARE * (high - low) * stream.draw(1)[:, 0])
        copies = stream.copies(1)[:, 0, 0]
        return copies if any(not getattr(score, "clip", False) for score in drawing) else bounds.clip(copies)

    @cached_property
    def noisy_logits(self) -> Tensor:
        """Logits of `noisy`, `[V, C]`."""
        return self.logits_of(self.noisy)

    # What is looked at again during the run.

    @property
    def kept(self) -> tuple[tuple[int, ...], Tensor, ExtraInputs | None]:
        """The first `KEPT` points that can be read: their rows in the data, the inputs, and what is beside them."""
        read = readable(self.batch)[:LOOKED_AT].nonzero().flatten()[: min(KEPT, self.rows)]
        extra, device = self.batch.extra_inputs, self.classifier.device
        rows = tuple(self.batch.rows[at] for at in read.tolist())
        return rows, self.batch.inputs[read].to(device), extra and extra.only(read.cpu()).to(device)

    @property
    def reference(self) -> Reference:
        """These points, with the logits of the first pass."""
        rows, inputs, extra_inputs = self.kept
        return Reference(rows, inputs, self.logits[: len(rows)], extra_inputs)

    def others_with_tensors(self) -> tuple[Tensor, ExtraInputs | None]:
        """Inputs that have nothing to do with the points, for a model that is to see them first, and other tensors."""
        inputs = self.random_inputs(min(self.rows, OTHERS), values=(0.5, 1.0))
        return inputs, self.beside(len(inputs))


def _ids(inputs: Tensor) -> tuple[str, ...]:
    return tuple(f"doctor {row}" for row in range(len(inputs)))


def unweighted(source: Mapping[str, Any]) -> str | None:
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
