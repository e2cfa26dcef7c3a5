"""How far apart logits of the same inputs may lie because of rounding, and where they lie further apart.

Rounding grows with the numbers that are added up. Those of the classes that compete are what counts: a class that is
masked with -1e9 must not excuse differences in the others, nor be blamed for its own last digits. So each logit is
allowed for by its distance from the largest of its row and by its own size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.model.classifier import Classifier
from brittle.model.inputs import ExtraInputs

ROUNDING = 1000.0
"""Units of relative precision by which logits may differ, of their distance from the largest of the row."""

LAST_PLACES = 16.0
"""The same, of the size of the logit: what is lost where a large number is added to all of them."""

MOST_ROUNDING = 0.1
"""Difference in the logits, as a share of those sizes, that no precision explains."""

COARSE, SAME_BATCH = 1e-5, 16.0
"""Relative precision of 16 bits at least, and how many times smaller differences are there when a batch is repeated."""

TF32 = 2.0**-11
"""Relative precision of single precision on an accelerator that rounds the factors of its products."""

TRIALS = 8
"""Copies of an input, changed by rounding, that tell whether the network jumps there."""

TREMBLE = 8.0
"""Units in the last place by which they are changed at most."""


@dataclass(frozen=True)
class Difference:
    """A difference between two tensors of logits.

    Attributes:
        row: the row where it is.
        largest: by how much a logit differs there; infinite where one is no number.
        allowed: what rounding explains of it.
    """

    row: int
    largest: float
    allowed: float

    def __str__(self) -> str:
        return f"{self.largest:.3g} in the logits (rounding explains {self.allowed:.2g})"


def precision_of(classifier: Classifier) -> float:
    """Relative precision of the logits of a classifier."""
    precision = float(torch.finfo(classifier.output_dtype).eps)
    if classifier.dtype is not None:
        precision = max(precision, float(torch.finfo(classifier.dtype).eps))
    rounds = torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32
    return max(precision, TF32) if classifier.device.type == "cuda" and rounds else precision


def allowed(logits: Tensor, precision: float) -> Tensor:
    """Difference in each logit that rounding explains, `[V, C]`, float64.

    `r (|z_k - z_1| + g) + u (|z_k| + s)` with `z_1` the largest logit of the row, `g` and `s` the medians over the
    rows of `z_1 - z_2` and `|z_1|`, `r` and `u` shares by precision.

    Args:
        logits: `z`, `[V, C]`.
        precision: relative precision of the logits.
    """
    sizes = logits.detach().double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    first, second = sizes.topk(2, dim=1).values.split(1, dim=1)
    gap, size = (first - second).median(), first.abs().median()
    share, places = (min(units * precision, MOST_ROUNDING) for units in (ROUNDING, LAST_PLACES))
    return share * ((first - sizes) + gap) + places * (sizes.abs() + size)


def allowed_of_sums(classifier: Classifier, classes: int) -> float:
    """By how much a sum of probabilities may miss 1 because of rounding.

    Each is rounded by its own size, and these add up to 1; adding them up rounds again.
    """
    return 8.0 * float(torch.finfo(classifier.output_dtype).eps) * math.log2(2 * classes)


def allowed_again(logits: Tensor, precision: float) -> Tensor:
    """Difference in each logit that rounding explains where the very same batch went through again, `[V, C]`, float64.

    The same operations in the same order: only sums that an accelerator takes in an order of its own may differ. In 16
    bits `allowed` is as large as the margins themselves where the logits are, and would excuse dropout.
    """
    explained = allowed(logits, precision)
    return explained / SAME_BATCH if precision > COARSE else explained


def largest_difference(one: Tensor, other: Tensor) -> float:
    """The largest difference between two tensors of logits; NaN equals NaN."""
    return float(_differences(one, other).max())


def excess(
    classifier: Classifier,
    inputs: Tensor,
    one: Tensor,
    other: Tensor,
    explained: Tensor | None = None,
    extra_inputs: ExtraInputs | None = None,
) -> Difference | None:
    """The clearest difference that neither rounding nor a step of the network explains; None where there is none.

    Args:
        classifier: in evaluation mode.
        inputs: `[V, *shape]`.
        one: logits of `inputs`, `[V, C]`.
        other: logits of `inputs` that were found another way, `[V, C]`.
        explained: what rounding explains, `[V, C]`; by default what `one` says of it.
        extra_inputs: what the inputs have beside them, or None.
    """
    between = _differences(one, other)
    explained = allowed(one, precision_of(classifier)) if explained is None else explained
    ratios, classes = torch.where(between > 0, between / explained, 0.0).max(dim=1)
    for row in ratios.argsort(descending=True).tolist():
        found = Difference(row, float(between[row, classes[row]]), float(explained[row, classes[row]]))
        if not found.largest > found.allowed:
            return None
        if not jumps(
            classifier, inputs[row : row + 1], found.largest, extra_inputs and extra_inputs.only(torch.tensor([row]))
        ):
            return found
    return None


def jumps(classifier: Classifier, inputs: Tensor, largest: float, extra_inputs: ExtraInputs | None = None) -> bool:
    """Whether a change of an input by rounding changes its logits by half as much as `largest`.

    A network with steps in it (signs, rounding) does so at a step, and rounding explains the difference. The input goes
    through alone, so nothing beside it does it; a network that does not repeat itself is not excused.

    Args:
        classifier: in evaluation mode.
        inputs: one input, `[1, *shape]`.
        largest: a difference in its logits.
        extra_inputs: what it has beside it, or None.
    """
    size = TREMBLE * torch.finfo(inputs.dtype).eps
    smallest = size * classifier.bounds.largest(inputs)  # in the units of the inputs, however small these are
    generator = torch.Generator().manual_seed(0)
    changes = torch.rand(TRIALS, *inputs.shape, generator=generator, dtype=torch.float64).to(inputs) * 2 - 1
    with torch.no_grad():
        alone = classifier.numbers(inputs, extra_inputs)
        trembling = [inputs + size * change * inputs.abs().clamp_min(smallest) for change in changes]
        changed = [classifier.numbers(each, extra_inputs) for each in trembling]
        again = classifier.numbers(inputs, extra_inputs)
    if 2 * largest_difference(alone, again) >= largest:
        return False
    return any(2 * largest_difference(alone, each) >= largest for each in changed)


def _differences(one: Tensor, other: Tensor) -> Tensor:
    """Differences of logits, `[V, C]`, float64; 0 between two NaN, infinite where only one is a number."""
    one, other = one.detach().double(), other.detach().double()
    different = torch.where(one.isfinite() & other.isfinite(), (one - other).abs(), torch.inf)
    return torch.where((one == other) | (one.isnan() & other.isnan()), 0.0, different)
