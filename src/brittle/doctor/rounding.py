"""Differences of logits of the same inputs: how large rounding makes them, and which ones are larger.

Rounding grows with the numbers that are added up. A class that is masked with -1e9 must not excuse differences in the
others, nor be blamed for its own last digits: each logit is allowed for by its distance from the largest and its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs

RELATIVE_UNITS = 1000.0  # units of precision by which logits may differ, of their distance from the largest of the row
LAST_PLACES = 16.0  # and of their own size, which is lost where a large number is added to all of them
MOST_ROUNDING = 0.1  # difference in the logits, as a share of those sizes, that no precision explains
TF32 = 2.0**-11  # relative precision of single precision on an accelerator that rounds the factors of its products

TRIALS, TREMBLE = 8, 8.0  # copies of an input that show jumps of the network, and last places by which they differ


class Difference(NamedTuple):
    """The largest difference of two tensors of logits, and the part that rounding explains; infinite beside a NaN."""

    row: int
    largest: float
    allowed: float

    def __str__(self) -> str:
        return f"{self.largest:.3g} in the logits (rounding explains {self.allowed:.2g})"


def precision_of(classifier: Classifier) -> float:
    dtypes = (classifier.output_dtype, classifier.dtype or classifier.output_dtype)
    precision = max(float(torch.finfo(dtype).eps) for dtype in dtypes)
    rounds = torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32
    return max(precision, TF32) if classifier.device.type == "cuda" and rounds else precision


def allowed(logits: Tensor, precision: float) -> Tensor:
    """Difference in each logit that rounding explains, `[V, C]`, float64.

    `r (|z_k - z_1| + g) + u (|z_k| + s)` with `z_1` the largest logit of the row, `g` and `s` the medians over the
    rows of `z_1 - z_2` and `|z_1|`, `r` and `u` shares by the relative precision of the logits `z`, `[V, C]`.
    """
    sizes = logits.detach().double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    largest, second = sizes.topk(2, dim=1).values.split(1, dim=1)
    gap, size = (largest - second).median(), largest.abs().median()
    share, places = (min(units * precision, MOST_ROUNDING) for units in (RELATIVE_UNITS, LAST_PLACES))
    return share * ((largest - sizes) + gap) + places * (sizes.abs() + size)


def differences(a: Tensor, b: Tensor) -> Tensor:
    """Differences of logits, `[V, C]`, float64; 0 between two NaN, infinite where only one is a number."""
    a, b = a.detach().double(), b.detach().double()
    different = torch.where(a.isfinite() & b.isfinite(), (a - b).abs(), torch.inf)
    return torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, different)


def excess(
    classifier: Classifier,
    inputs: Tensor,
    logits: Tensor,
    repeat: Tensor,
    explained: Tensor | None = None,
    extra_inputs: ExtraInputs | None = None,
) -> Difference | None:
    """Return the clearest difference of logits `[V, C]`, taken in two ways, that neither rounding nor a step of the
    network explains, or None; rounding explains `explained`, `[V, C]`, by default at the size of `logits`."""
    between = differences(logits, repeat)
    explained = allowed(logits, precision_of(classifier)) if explained is None else explained
    ratios, classes = torch.where(between > 0, between / explained, 0.0).max(dim=1)
    for row in ratios.argsort(descending=True).tolist():
        difference = Difference(row, float(between[row, classes[row]]), float(explained[row, classes[row]]))
        if not difference.largest > difference.allowed:
            return None
        beside = extra_inputs and extra_inputs.only(torch.tensor([row]))
        if not _jumps(classifier, inputs[row : row + 1], difference.largest, beside):
            return difference
    return None


def _jumps(classifier: Classifier, inputs: Tensor, largest: float, extra_inputs: ExtraInputs | None) -> bool:
    """Return whether rounding of an input `[1, *shape]` changes its logits by half as much as `largest`, as at a step
    of the network. The copies go through alone, and again the other way round, whatever the network counts or draws:
    one that does not repeat itself is not excused."""
    size = TREMBLE * torch.finfo(inputs.dtype).eps
    smallest = size * classifier.bounds.largest(inputs)  # in the units of the inputs, however small these are
    generator = torch.Generator().manual_seed(0)
    changes = torch.rand(TRIALS, *inputs.shape, generator=generator, dtype=torch.float64).to(inputs) * 2 - 1
    trembling = [inputs, *(inputs + size * change * inputs.abs().clamp_min(smallest) for change in changes)]
    with torch.no_grad():
        first = torch.cat([classifier.numbers(tensor, extra_inputs) for tensor in trembling])
        if 2 * float(differences(first[:1].expand_as(first), first).max()) < largest:
            return False
        again = torch.cat([classifier.numbers(tensor, extra_inputs) for tensor in trembling[::-1]])
    return 2 * float(differences(first, again.flip(0)).max()) < largest


@dataclass(frozen=True)
class Reference:
    """A few points with the logits that they got at first, by which a process tells whether the network is the same."""

    rows: tuple[int, ...]
    inputs: Tensor  # `[R, *shape]`, on the classifier's device
    logits: Tensor  # what the decision is taken from, `[R, C]`
    extra_inputs: ExtraInputs | None = None

    def checked(self, classifier: Classifier, place: str, batch_size: int | None = None) -> Reference:
        """Return the same points with their logits now, by passes of `batch_size` rows; `place` is when or where."""
        if classifier.random:
            return self
        pieces, beside = torch.arange(len(self.rows)).split(batch_size or len(self.rows)), self.extra_inputs
        with torch.no_grad():
            now = torch.cat([classifier.numbers(self.inputs[piece], beside and beside.only(piece)) for piece in pieces])
        difference = excess(classifier, self.inputs, self.logits, now, extra_inputs=self.extra_inputs)
        if difference is not None:
            raise changed_model(self.rows[difference.row], place, difference)
        return replace(self, logits=now)

    def content(self, classifier: Classifier) -> dict[str, Any]:
        """Return what another process compares: rows, logits, and the difference of each that rounding explains."""
        explained = allowed(self.logits, precision_of(classifier)) + (torch.inf if classifier.random else 0.0)
        return {"rows": list(self.rows), "logits": self.logits.tolist(), "explained": explained.tolist()}


def check_alike(local: Mapping[str, Any], worker: Mapping[str, Any], place: str) -> None:
    """Raise where the process `place` gets other logits for these rows; the dicts are of `Reference.content`."""
    local_logits, worker_logits = (torch.tensor(content["logits"], dtype=torch.float64) for content in (local, worker))
    if worker["rows"] != local["rows"] or local_logits.shape != worker_logits.shape:
        shapes = f"logits {list(local_logits.shape)} of rows {local['rows']} are compared, {place} gave"
        shapes += f" {list(worker_logits.shape)} of rows {worker['rows']}"
        raise ModelError("worker_differs", f"{shapes}; give it the same model and data")
    between, explained = differences(local_logits, worker_logits), torch.tensor(local["explained"], dtype=torch.float64)
    for row, column in (between > explained).nonzero().tolist()[:1]:
        difference = Difference(row, float(between[row, column]), float(explained[row, column]))
        raise changed_model(local["rows"][row], place, difference)


def changed_model(row: int, place: str, difference: Difference) -> ModelError:
    sentence = f"row {row} gets other logits {place} than in the first pass, they differ by {difference}"
    reason = "the network remembers what it was given (a moving average, a counter of calls, statistics or a cache of"
    advice = "its first batch), or draws random numbers; let forward() depend on its input alone"
    return ModelError("model_changed", f"{sentence}: {reason} {advice}")
