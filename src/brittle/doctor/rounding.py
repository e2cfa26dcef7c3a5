"""How far apart logits of the same inputs may lie because of rounding, and where they lie further apart.

Rounding grows with the numbers that are added up. Those of the classes that compete are what counts: a class that is
masked with -1e9 must not excuse differences in the others, nor be blamed for its own last digits. So each logit is
allowed for by its distance from the largest of its row and by its own size.
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

RELATIVE_UNITS, LAST_PLACES = 1000.0, 16.0
"""Units of relative precision by which logits may differ: of their distance from the largest of the row, and of their
own size (what is lost where a large number is added to all of them)."""

MOST_ROUNDING = 0.1
"""Difference in the logits, as a share of those sizes, that no precision explains."""

TF32 = 2.0**-11
"""Relative precision of single precision on an accelerator that rounds the factors of its products."""

TRIALS, TREMBLE = 8, 8.0
"""Copies of an input that tell whether the network jumps there, and units in the last place by which they differ."""


class Difference(NamedTuple):
    """Where two tensors of logits differ most, and what rounding explains of it; infinite where one is no number."""

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
    first, second = sizes.topk(2, dim=1).values.split(1, dim=1)
    gap, size = (first - second).median(), first.abs().median()
    share, places = (min(units * precision, MOST_ROUNDING) for units in (RELATIVE_UNITS, LAST_PLACES))
    return share * ((first - sizes) + gap) + places * (sizes.abs() + size)


def differences(one: Tensor, other: Tensor) -> Tensor:
    """Differences of logits, `[V, C]`, float64; 0 between two NaN, infinite where only one is a number."""
    one, other = one.detach().double(), other.detach().double()
    different = torch.where(one.isfinite() & other.isfinite(), (one - other).abs(), torch.inf)
    return torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, different)


def excess(
    classifier: Classifier,
    inputs: Tensor,
    one: Tensor,
    other: Tensor,
    explained: Tensor | None = None,
    extra_inputs: ExtraInputs | None = None,
) -> Difference | None:
    """The clearest difference that neither rounding nor a step of the network explains; None where there is none.

    `one` and `other` are logits `[V, C]` of `inputs` `[V, *shape]`, found in two ways, and `explained` is what rounding
    explains, `[V, C]`, by default as `one` says of it.
    """
    between = differences(one, other)
    explained = allowed(one, precision_of(classifier)) if explained is None else explained
    ratios, classes = torch.where(between > 0, between / explained, 0.0).max(dim=1)
    for row in ratios.argsort(descending=True).tolist():
        found = Difference(row, float(between[row, classes[row]]), float(explained[row, classes[row]]))
        if not found.largest > found.allowed:
            return None
        if not _jumps(
            classifier, inputs[row : row + 1], found.largest, extra_inputs and extra_inputs.only(torch.tensor([row]))
        ):
            return found
    return None


def _jumps(classifier: Classifier, inputs: Tensor, largest: float, extra_inputs: ExtraInputs | None) -> bool:
    """Whether a change of an input `[1, *shape]` by rounding changes its logits by half as much as `largest`.

    A network with steps in it does so at a step. The input goes through alone, and one that does not repeat itself is
    not excused.
    """
    size = TREMBLE * torch.finfo(inputs.dtype).eps
    smallest = size * classifier.bounds.largest(inputs)  # in the units of the inputs, however small these are
    generator = torch.Generator().manual_seed(0)
    changes = torch.rand(TRIALS, *inputs.shape, generator=generator, dtype=torch.float64).to(inputs) * 2 - 1
    trembling = [inputs + size * change * inputs.abs().clamp_min(smallest) for change in changes]
    with torch.no_grad():
        alone, *changed, again = (classifier.numbers(each, extra_inputs) for each in (inputs, *trembling, inputs))
    repeats = 2 * float(differences(alone, again).max()) < largest
    return repeats and any(2 * float(differences(alone, each).max()) >= largest for each in changed)


@dataclass(frozen=True)
class Reference:
    """A few points with the logits that they got at first.

    They tell at any time, and in any process, whether the network is still the same function. Inputs, `[R, *shape]`,
    are on the classifier's device; logits, `[R, C]`, are what the decision is taken from.
    """

    rows: tuple[int, ...]
    inputs: Tensor
    logits: Tensor
    extra_inputs: ExtraInputs | None = None

    def checked(self, classifier: Classifier, where: str, most: int | None = None) -> Reference:
        """The same points with the logits that they get now, in passes of so many rows at `most`; `where` says when or
        where that is, in words."""
        if classifier.random:
            return self
        pieces, beside = torch.arange(len(self.rows)).split(most or len(self.rows)), self.extra_inputs
        with torch.no_grad():
            now = torch.cat([classifier.numbers(self.inputs[some], beside and beside.only(some)) for some in pieces])
        found = excess(classifier, self.inputs, self.logits, now, extra_inputs=self.extra_inputs)
        if found is not None:
            raise changed_model(self.rows[found.row], where, found)
        return replace(self, logits=now)

    def content(self, classifier: Classifier) -> dict[str, Any]:
        """What is sent of it to another process: rows, logits, and what rounding explains of each."""
        explained = allowed(self.logits, precision_of(classifier)) + (torch.inf if classifier.random else 0.0)
        return {"rows": list(self.rows), "logits": self.logits.tolist(), "explained": explained.tolist()}


def check_alike(own: Mapping[str, Any], other: Mapping[str, Any], where: str) -> None:
    """Raise where the process `where` does not get the same logits for the same rows; both as `Reference.content`."""
    one, two = (torch.tensor(each["logits"], dtype=torch.float64) for each in (own, other))
    if other["rows"] != own["rows"] or one.shape != two.shape:
        raise ModelError(
            "worker_differs",
            f"logits {list(one.shape)} of rows {own['rows']} are compared, {where} gave {list(two.shape)} of rows "
            f"{other['rows']}; give it the same model and data",
        )
    between, explained = differences(one, two), torch.tensor(own["explained"], dtype=torch.float64)
    for row, column in (between > explained).nonzero().tolist()[:1]:
        found = Difference(row, float(between[row, column]), float(explained[row, column]))
        raise changed_model(own["rows"][row], where, found)


def changed_model(row: int, where: str, found: Difference) -> ModelError:
    return ModelError(
        "model_changed",
        f"row {row} gets other logits {where} than in the first pass, they differ by {found}: the network remembers "
        f"what it was given, beside its weights and buffers (a moving average, a counter of calls, statistics or a "
        f"cache of its first batch), or draws random numbers; let forward() depend on its input alone",
    )
