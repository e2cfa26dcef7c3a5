"""Does a row get the same logits in any company?

The points, and noisy copies of them, go through the network in another order, in pieces of many sizes, and beside other
inputs in batches as large as those of the run. Every row is compared with what it gave in the first batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle

import torch
from torch import Tensor

from brittle.doctor.finding import Finding
from brittle.doctor.fixed_batch import Batches, fixed_batch
from brittle.doctor.rounding import Difference, excess, largest_difference
from brittle.doctor.subject import NOW, Subject
from brittle.errors import ModelError

SIZES, NOISY_SIZES = (1, 1, 3, 5, 2, 7, 11, 13), (2, 1, 6, 17, 1, 4, 23)
"""Sizes of the pieces, of the points and of their noisy copies, for as long as there are rows, then again. Half of the
largest batch, which is what a run reads at a time, comes before those of the points."""

TRIED = (1, 2, 3)
"""Sizes that are tried before all else, the first two of them that are not that of the first batch."""

BRIGHT, DARK = (0.75, 1.0), (0.0, 0.25)
"""Where in the bounds the values of inputs lie that stand beside the points: shares of the range."""


MIXES = (
    "the model mixes the rows of a batch (an LSTM without batch_first, batch norm without running statistics, "
    "attention across rows), make it treat each row alone"
)


@dataclass(frozen=True)
class Company:
    """The same rows in one kind of company.

    Attributes:
        how: what the rows and their company are, in words.
        inputs: `[V, *shape]`.
        first: their logits in the first batch, `[V, C]`.
        logits: their logits in this company, `[V, C]`.
    """

    how: str
    inputs: Tensor
    first: Tensor
    logits: Tensor


def check_batch_sizes(subject: Subject) -> Iterator[Finding | str]:
    """The model takes batches of other sizes than the first one."""
    count, batches = len(subject.logits), Batches(subject.classifier, subject.inputs, subject.aside)
    sizes = [size for size in TRIED if size != count and size <= subject.rows][:2]
    failed = [(size, error) for size in sizes if (error := batches.failure(size)) is not None]
    if failed and len(failed) == len(sizes) and batches.is_only(count):
        raise fixed_batch(count, *failed[-1])
    yield f"batches of {' and '.join(map(str, (*sizes, count)))} rows are taken"


def check_rows_apart(subject: Subject) -> Iterator[Finding | str]:
    """A row gives the same logits alone and among others, in any order and in batches of any size."""
    _check_looked_at_again(subject)
    largest = 0.0
    for company in in_company(subject):
        found = excess(subject.classifier, company.inputs, company.first, company.logits, aside=subject.aside)
        if found is not None:
            _refuse(subject, company, found)
        largest = max(largest, largest_difference(company.first, company.logits))
    yield (
        f"{len(subject.inputs)} rows and their noisy copies, alone and in batches of up to {subject.rows}, differ by "
        f"at most {largest:.3g} in the logits"
    )


def check_output_kept(subject: Subject) -> Iterator[Finding | str]:
    """A pass leaves the logits of the passes before it as they were."""
    again = subject.reordered
    first = subject.first_pass
    if len(again) and largest_difference(first.returned, first.content) > 0:
        yield Finding(
            "mutates_input",
            "the model wrote its next output over the tensor that it had returned; logits are copied, so no score "
            "changes, but in your own code return a new tensor (out.clone())",
        )
    yield "what was returned stays as it is"


def in_company(subject: Subject) -> Iterator[Company]:
    """The points and noisy copies of them, in one kind of company after another."""
    points, noisy = (subject.inputs, subject.logits), (subject.noisy, subject.noisy_logits)
    yield Company("in another order", *points, subject.reordered)
    yield Company("in a batch of another size", *points, _in_pieces(subject, points[0], (subject.rows // 2, *SIZES)))
    if subject.rows > 1:
        yield Company("beside bright inputs", *points, _beside(subject, BRIGHT, subject.rows, last=True))
        most = min(subject.rows, 2 * len(points[0]))
        yield Company("beside dark inputs", *points, _beside(subject, DARK, most, last=False))
    yield Company("with noise, in a batch of another size", *noisy, _in_pieces(subject, noisy[0], NOISY_SIZES))


def _in_pieces(subject: Subject, inputs: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Logits of `inputs`, `[V, C]`, from batches of these sizes in another order, one size after another."""
    order = subject.order(seed=1)
    left, parts = order, []
    for size in chain(filter(None, sizes), cycle(filter(None, sizes))):
        if not len(left):
            break
        rows = left[: min(size, subject.rows)]
        parts.append(_pass(subject, inputs[rows], rows))
        left = left[size:]
    return _put_back(torch.cat(parts), order)


def _beside(subject: Subject, values: tuple[float, float], size: int, *, last: bool) -> Tensor:
    """Logits of the points, `[V, C]`, in batches of `size` rows of which they are at most half, at one end."""
    parts = []
    for rows in torch.arange(len(subject.inputs), device=subject.inputs.device).split(size // 2):
        part = subject.inputs[rows]
        others = subject.random_inputs(size - len(part), values)
        beside = torch.arange(len(others), device=rows.device) % len(subject.inputs)
        both = ((others, part), (beside, rows)) if last else ((part, others), (rows, beside))
        logits = _pass(subject, *map(torch.cat, both))
        parts.append(logits[len(others) :] if last else logits[: len(part)])
    return torch.cat(parts)


def _pass(subject: Subject, inputs: Tensor, rows: Tensor) -> Tensor:
    """Logits of a batch, beside the other tensors of the points `rows`.

    A model that took the first batch and fails on this one looks at its size.
    """
    try:
        with torch.no_grad():
            return subject.logits_of(inputs, rows)
    except ModelError as error:
        if error.code != "model_failed" or len(inputs) == len(subject.inputs):
            raise
        reason = str(error.__cause__).strip().partition("\n")[0]
        raise ModelError(
            "batch_dependent",
            f"the model takes a batch of {len(subject.inputs)} rows and fails on one of {len(inputs)} "
            f"({type(error.__cause__).__name__}: {reason}); {MIXES}",
        ) from error


def _put_back(logits: Tensor, order: Tensor) -> Tensor:
    return torch.empty_like(logits).index_copy_(0, order, logits)


def _check_looked_at_again(subject: Subject) -> None:
    """Raise where other content of the same shape gives the logits of the batch before, row by row."""
    kept = subject.reordered[subject.order(seed=0)]  # as the model returned them
    alike = torch.equal(kept, subject.logits) and torch.equal(subject.noisy_logits, subject.logits)
    if alike and bool((subject.logits != subject.logits[0]).any()):
        raise ModelError(
            "nondeterministic_model",
            f"another batch of {len(kept)} rows got the logits of the batch before, row by row; the model keeps its "
            f"output by the shape of the input, compute it anew every time",
        )


def _refuse(subject: Subject, company: Company, found: Difference) -> None:
    subject.check_same(NOW)  # a network that changes by itself is reported as such, not as one that mixes rows
    raise ModelError(
        "batch_dependent",
        f"row {subject.numbers[found.row]} {company.how} and in the first batch of {len(company.inputs)} differ by "
        f"{found}; {MIXES}",
    )
