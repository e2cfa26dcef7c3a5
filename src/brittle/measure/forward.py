"""The clean forward pass: logits, and the points that all other measurements start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from brittle.data.arrays import array_points
from brittle.data.points import Batch, Points, SomePoints, check_values
from brittle.errors import ModelError, ParameterError
from brittle.estimate import CONFIDENCE
from brittle.measure.rows import pick
from brittle.model.arrays import Fitted
from brittle.model.bounds import BoundsLike
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs
from brittle.noise import Noise, Stream

ALL_CLASSES_UP_TO = 100  # number of classes up to which every competitor is kept
KEPT_CLASSES = 20  # number of the nearest competitors that are kept above that, by default

ROWS, MOST_ROWS = 64, 4096  # rows in one pass on a CPU by default, of wide networks and of narrow ones
MOST_OUTSIDE = 16384  # the same of a model outside PyTorch, where a call costs as much as thousands of rows
WIDE = 2**20  # numbers at the widest layer, above which rows take twice as long (`research/benchmarks/batches.py`)
NUMBERS = 2**23  # input numbers of one pass at most, where `ROWS` rows would hold more
LOGITS = 2**22  # logits of one pass at most, where that is more than `ROWS` rows
POINTS, SHARE = 32, 4  # points measured at a time on a CPU at least, and rows of a pass for each where these are more
MOST_POINTS = 1024  # points at a time at most, or half as many as that share: of a model outside PyTorch


def default_rows(classifier: Classifier, inputs: Tensor, extra_inputs: ExtraInputs | None = None) -> int:
    """Return the number of rows, like `inputs[0]` with its extra inputs, per pass; 8 times `ROWS` on an accelerator."""
    size = max(1, row_numbers(inputs, extra_inputs))
    max_rows = MOST_ROWS if classifier.forward_only is None else MOST_OUTSIDE
    rows = min(max(ROWS, WIDE // size), max_rows) if classifier.device.type == "cpu" else 8 * ROWS
    return max(1, min(rows, NUMBERS // size))


class Widest(TorchDispatchMode):
    """The numbers of one row at the widest layer of the passes inside, of `rows` rows each."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows, self._numbers = rows, 1

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it would import the compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for output in result if isinstance(result, tuple | list) else (result,):
            if isinstance(output, Tensor) and output.shape[:1] == (self._rows,) and not func.is_view:  # as of a weight
                self._numbers = max(self._numbers, output.numel() // self._rows)
        return result

    def fitting(self, rows: int, device: torch.device) -> int:
        """Return at most `rows` rows, fewer on a CPU where the layers are wide."""
        return min(rows, max(ROWS, WIDE // self._numbers)) if device.type == "cpu" else rows


def row_numbers(inputs: Tensor, extra_inputs: ExtraInputs | None) -> int:
    """Numbers that a model is given for one row."""
    return inputs[0].numel() + sum(part[0].numel() for part in (extra_inputs.tensors.values() if extra_inputs else ()))


def batch_points(rows: int, device: torch.device) -> int:
    """Points that are measured at a time, above `POINTS` a power of 2; noisy copies of them fill a pass of `rows`."""
    shared = 1 << max(1, rows // SHARE).bit_length() - 1
    max_points = max(POINTS, min(shared, max(MOST_POINTS, shared // 2))) if device.type == "cpu" else rows
    return max(1, min(rows // 2, max_points))


def competitors_kept(classes: int, count: int | None = None) -> int:
    """Return how many competitors of `classes` classes are kept: `count` at most, by default `KEPT_CLASSES` of many."""
    return min(count or (classes if classes <= ALL_CLASSES_UP_TO else KEPT_CLASSES), classes - 1)


def class_of_rank(logits: Tensor, predicted: Tensor, rank: int) -> Tensor:
    """Return the predicted class for the rank 1, the others in the order of their logits after it, `[B]`."""
    if rank > logits.shape[1]:
        raise ParameterError(f"rank must be at most the number of classes kept, {logits.shape[1]} here; found {rank}")
    ahead = logits.nan_to_num(nan=-torch.inf).scatter(1, predicted[:, None], torch.inf)
    return ahead.argsort(dim=1, descending=True, stable=True)[:, rank - 1]


@dataclass(frozen=True)
class Clean:
    """Points as the network sees them without noise."""

    inputs: Tensor  # `[B, *shape]`, in the declared units, on the classifier's device
    ids: tuple[str, ...]  # the id of each point, `[B]`, which keys its noise
    seed: int  # seed of the run
    logits: Tensor  # `[B, C]`; margins of another decision than the predicted class as `[0, -m_1, .., -m_K]`
    rows: int  # most rows in one pass through the network
    graph: tuple[Tensor, Tensor] | None = None  # inputs and logits with their graph, until a Jacobian uses it
    features: Tensor | None = None  # what the last linear layer saw, `[B, d]`, where that was asked for
    confidence: float = CONFIDENCE  # of all intervals; a measurement may go on until its own is good enough
    is_usable: Tensor | None = None  # points whose numbers count, `[B]`; others only keep their place; None is all
    extra_inputs: ExtraInputs | None = None  # what the points have beside their inputs, and what was decided at them
    passes: int = 1  # through the network for each point, forward
    log_probabilities: Tensor | None = None  # of an estimator, `[B, C]`, float64, where a measurement asks for them

    def with_probabilities(self, classifier: Classifier) -> Clean:
        """Return the same points with the log-probabilities of an estimator, by another pass, not counted here."""
        if not classifier.own_probability:
            return self
        return replace(self, log_probabilities=classifier.log_probabilities(self.inputs, self.extra_inputs))

    def logits_of(
        self, classifier: Classifier, inputs: Tensor, rows: Tensor | None = None, *, probabilities: bool = False
    ) -> Tensor:
        """Logits `[N, C]` of copies `[N, *shape]` of the points, by what was decided at the points: `N` forward passes.

        With `probabilities` they are `Classifier.log_probabilities`. `rows` is the position of the point of each copy,
        `[N]`; None is one copy of every point. At most `self.rows` go through together; of several passes each has
        copies of all points, so that a row of any that is looked at again stands for all. Of a random model no pass has
        two copies of a point, so that these are independent whatever the rows of a pass share.
        """
        passes, extra = -(-len(inputs) // self.rows), self.extra_inputs
        call = classifier.log_probabilities if probabilities else classifier
        if classifier.random and rows is not None:
            passes = max(passes, int(rows.bincount().max()))
        if extra is None and passes <= 1:
            return call(inputs)
        if extra is None or rows is None:
            rows = torch.arange(len(inputs), device=inputs.device)
        if passes <= 1:
            return call(inputs, extra and extra.only(rows))
        parts = [call(inputs[at::passes], extra and extra.only(rows[at::passes])) for at in range(passes)]
        order = torch.cat([torch.arange(at, len(inputs), passes, device=inputs.device) for at in range(passes)])
        return torch.cat(parts)[order.argsort()]

    def stream(self, noise: Noise, purpose: str) -> Stream:
        """Return the noise of the points, one draw after another."""
        return Stream(noise, self.inputs, self.ids, self.seed, purpose, self.varies)

    @property
    def varies(self) -> Tensor | None:
        """Coordinates of the inputs that vary, `[B, *shape]` or with axes of size 1 at the end; None for all."""
        return None if self.extra_inputs is None else self.extra_inputs.varies

    @property
    def incomplete(self) -> Tensor:
        """Points with missing values, `[B]`; their coordinates are filled, and do not vary."""
        missing_rows = None if self.extra_inputs is None else self.extra_inputs.incomplete
        return torch.zeros_like(self.tied) if missing_rows is None else missing_rows

    @cached_property
    def predicted(self) -> Tensor:
        """The predicted class `t`, `[B]`; the first of several with the largest logit."""
        return self.logits.argmax(dim=1)

    @cached_property
    def finite(self) -> Tensor:
        """True where all logits of a point are finite, `[B]`."""
        return self.logits.isfinite().all(dim=1)

    @cached_property
    def tied(self) -> Tensor:
        """True where another class has the same largest logit, `[B]`."""
        top = self.logits.topk(2, dim=1).values
        return top[:, 0] == top[:, 1]

    def only(self, rows: Tensor) -> Clean:
        """Return the points at the positions `rows`, without the graph of the pass."""
        parts = ("inputs", "logits", "is_usable", "extra_inputs", "log_probabilities")
        chosen = {name: pick(getattr(self, name), rows) for name in parts}
        ids = tuple(self.ids[row] for row in rows.tolist())
        return replace(self, ids=ids, graph=None, features=None, **chosen)

    def competitors(self, count: int | None = None) -> Tensor:
        """Return the `count` classes with the largest logits beside the predicted one, `[B, K]`, in class order."""
        other_logits = self.logits.nan_to_num(nan=-torch.inf).scatter(1, self.predicted[:, None], -torch.inf)
        nearest = other_logits.topk(competitors_kept(self.logits.shape[1], count), dim=1).indices
        return nearest.sort(dim=1).values


def as_points(x: Tensor | Points, bounds: BoundsLike, **details: Any) -> Points:
    """Points in memory of a tensor, with `details` as of `array_points`; points as they are, with their own."""
    if not isinstance(x, Points):
        return array_points(x, bounds=bounds, **details)
    twice = next((name for name, value in details.items() if value is not None), None)
    if twice is not None:
        raise ParameterError(f"the points have their own; leave {twice} out, or give the inputs as a tensor")
    return x


def batches_of(classifier: Classifier, points: Points) -> Iterator[tuple[Batch, int]]:
    """Yield the points in batches that can be measured, each with the rows in one pass."""
    points = hold_missing(classifier, points)
    sample = next(iter(points.batches(1, 0, 1)))
    rows = default_rows(classifier, sample.inputs, sample.extra_inputs)
    for batch in points.batches(batch_points(rows, classifier.device)):
        check_values(batch, classifier.bounds)
        yield batch, rows


@dataclass(frozen=True)
class TakesMissing:
    """Tells which inputs with missing values an estimator takes, those with finite answers, by the pattern of what is
    missing: one input of each is sent. These passes are not counted."""

    classifier: Classifier
    answers: dict[bytes, bool] = field(default_factory=dict[bytes, bool])

    def __call__(self, inputs: Tensor) -> Tensor:
        patterns = [bytes(row) for row in inputs.isnan().flatten(1).cpu().numpy()]
        new = {pattern: place for place, pattern in enumerate(patterns) if pattern not in self.answers}
        if new:
            self.answers.update(zip(new, self._try(inputs[[*new.values()]]), strict=True))
        return torch.tensor([self.answers[pattern] for pattern in patterns])

    def _try(self, inputs: Tensor) -> list[bool]:
        before = self.classifier.forward_passes
        try:
            return self.classifier.read(inputs).flatten(1).isfinite().all(dim=1).tolist()
        except ModelError:
            if len(inputs) == 1:
                return [False]
            return [accepted for half in inputs.tensor_split(2) for accepted in self._try(half)]
        finally:
            self.classifier.count(before - self.classifier.forward_passes)


def hold_missing(classifier: Classifier, points: Points) -> Points:
    """`points` whose missing values stay missing where the model is an estimator that takes them."""
    return SomePoints.of(points, takes=TakesMissing(classifier)) if isinstance(classifier.model, Fitted) else points


def look(
    classifier: Classifier,
    inputs: Tensor,
    ids: Sequence[str],
    seed: int,
    rows: int | None = None,
    differentiate: bool = False,
    observe: bool = False,
    confidence: float = CONFIDENCE,
    extra_inputs: ExtraInputs | None = None,
) -> Clean:
    """Send `inputs` once through the network.

    With `differentiate` a Jacobian can be taken from the same pass, with `observe` it keeps the features. The points
    are kept in the finer one of their precision and the model's, as noise is added to them in it.
    """
    rows = rows or default_rows(classifier, inputs, extra_inputs)
    if (fixed := classifier.fixed(inputs)) is not None:
        varies = torch.ones_like(inputs, dtype=torch.bool) & ~fixed.to(inputs.device)
        base = extra_inputs or ExtraInputs()
        extra_inputs = replace(base, varies=varies if base.varies is None else varies & base.varies.to(varies.device))
    with classifier.evaluating(), torch.set_grad_enabled(differentiate), Widest(len(inputs)) as widest:
        precision = torch.promote_types(inputs.dtype, classifier.dtype or inputs.dtype)
        inputs = inputs.detach().to(classifier.device, precision)
        # A copy that is made here can be differentiated with respect to, in any mode the inputs were made in.
        extra_inputs = None if extra_inputs is None else extra_inputs.to(classifier.device).around(inputs)
        start = inputs.clone().requires_grad_(True) if differentiate else inputs
        if observe:
            logits, features = classifier.observe(start, extra_inputs)
        else:
            (logits, extra_inputs), features = classifier.decide(start, extra_inputs), None
    graph = (start, logits) if differentiate else None
    features = None if features is None else features.detach()
    rows = min(widest.fitting(rows, classifier.device), max(ROWS, LOGITS // logits.shape[1]))
    parts = (inputs, tuple(ids), seed, logits.detach(), rows, graph, features, confidence)
    return Clean(*parts, extra_inputs=extra_inputs, passes=classifier.clean_passes)
