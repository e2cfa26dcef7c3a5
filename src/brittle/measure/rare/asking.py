"""Searches of single points that share passes: each says which noisy copies it wants to see, and goes on from there."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from brittle.errors import ModelError
from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import margins_of
from brittle.model.classifier import Classifier


@dataclass(frozen=True)
class Ask:
    """Noisy copies of one point that its search wants to see.

    Attributes:
        noise: what is added to the point, `[m, n]`.
        gradient: whether the gradients of the nearest margins are wanted, too.
        scales: of the margins, `[C]`: the nearest is that with the smallest `(z_t - z_j) / scale_j`.
        competitors: the class of each copy's margin, `[m]`, in place of that of the nearest.
    """

    noise: Tensor
    gradient: bool = False
    scales: Tensor | None = None
    competitors: Tensor | None = None


@dataclass(frozen=True)
class Seen:
    """What the network says of these copies.

    Attributes:
        every: all margins `z_t - z_j`, `[m, C]`, float64; infinite for `t`.
        margins: the nearest of them over its scale, or that of the competitor asked for, `[m]`; minus infinity where
            logits are not finite.
        nonfinite: copies with NaN or infinite logits.
        gradients: gradients of these margins, `[m, n]`, float64; None where they were not wanted.
    """

    every: Tensor
    margins: Tensor
    nonfinite: int
    gradients: Tensor | None


Result = TypeVar("Result")
Search = Generator[Ask, Seen, Result]
"""A search of one point: it yields what it wants to see, and returns what it found."""


@dataclass
class Spent:
    """Passes of one point.

    Attributes:
        forward: forward passes.
        backward: backward passes.
    """

    forward: int = 0
    backward: int = 0


def answer(
    classifier: Classifier, clean: Clean, searches: Sequence[Search[Result]]
) -> tuple[list[Result], list[Spent]]:
    """Run one search for each point of `clean`; all of them share passes of at most `clean.rows` rows.

    Returns:
        what each found, and what each spent.
    """
    spent = [Spent() for _ in searches]
    found: dict[int, Result] = {}
    waiting: dict[int, Ask] = {}
    replies: dict[int, Seen | None] = dict.fromkeys(range(len(searches)))
    while replies:
        for point, seen in replies.items():
            try:
                waiting[point] = next(searches[point]) if seen is None else searches[point].send(seen)
            except StopIteration as end:
                found[point] = end.value
        replies = {}
        for gradient in (False, True):
            asked = {point: ask for point, ask in waiting.items() if ask.gradient == gradient}
            replies |= _pass(classifier, clean, asked)
            for point, ask in asked.items():
                spent[point].forward += len(ask.noise)
                spent[point].backward += len(ask.noise) * gradient
        waiting = {}
    return [found[point] for point in range(len(searches))], spent


def _pass(classifier: Classifier, clean: Clean, asked: dict[int, Ask]) -> dict[int, Seen]:
    """What the network says of the copies of several points, all of them with gradients or all without."""
    if not asked:
        return {}
    gradient = next(iter(asked.values())).gradient
    parts = [_look(classifier, clean, rows, gradient) for rows in _rows(clean, asked)]
    columns = [torch.cat(column) if column[0] is not None else None for column in zip(*parts, strict=True)]
    sizes = [len(ask.noise) for ask in asked.values()]
    split = [[None] * len(sizes) if column is None else column.split(sizes) for column in columns]
    return {
        point: Seen(every, margins, int(broken.sum()), gradients)
        for point, every, margins, broken, gradients in zip(asked, *split, strict=True)
    }


@dataclass(frozen=True)
class Rows:
    """Copies of one pass.

    Attributes:
        points: of which point each is, `[m]`.
        noise: `[m, n]`.
        scales: of the margins, `[m, C]`.
        chosen: the class of the margin, -1 where it is that of the nearest, `[m]`.
    """

    points: Tensor
    noise: Tensor
    scales: Tensor
    chosen: Tensor


def _rows(clean: Clean, asked: dict[int, Ask]) -> Iterator[Rows]:
    """The copies asked for, at most `clean.rows` at a time."""
    device, asks = clean.inputs.device, list(asked.values())
    ones = torch.ones(clean.logits.shape[1], dtype=torch.float64, device=device)
    scales = torch.stack([ones if ask.scales is None else ask.scales for ask in asks])
    sizes = torch.tensor([len(ask.noise) for ask in asks], device=device)
    number = torch.arange(len(asks), device=device).repeat_interleave(sizes)
    points = torch.tensor(list(asked), device=device)[number]
    noise = torch.cat([ask.noise for ask in asks])
    chosen = torch.cat(
        [
            ask.noise.new_full((len(ask.noise),), -1, dtype=torch.int64) if ask.competitors is None else ask.competitors
            for ask in asks
        ]
    )
    for start in range(0, len(points), clean.rows):
        rows = slice(start, start + clean.rows)
        yield Rows(points[rows], noise[rows], scales[number[rows]], chosen[rows])


def _look(
    classifier: Classifier, clean: Clean, rows: Rows, gradient: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """All margins, the nearest, whether logits are not finite, and gradients of some copies."""
    copies = clean.inputs[rows.points] + rows.noise.to(clean.inputs).view(-1, *clean.inputs.shape[1:])
    predicted = clean.predicted[rows.points]
    with torch.set_grad_enabled(gradient):
        copies = copies.detach().requires_grad_(gradient)
        logits = clean.logits_of(classifier, copies, rows.points)
        every = margins_of(logits, predicted).double() / rows.scales
        finite = every.detach().nan_to_num(nan=-torch.inf).scatter(1, predicted[:, None], torch.inf)
        competitors = torch.where(rows.chosen >= 0, rows.chosen, finite.argmin(dim=1))
        own = every.gather(1, competitors[:, None])[:, 0]
        slope = _slopes(classifier, own, copies) if gradient else None
    broken = ~logits.detach().isfinite().all(dim=1)
    return finite * rows.scales, own.detach().masked_fill(broken, -torch.inf), broken, slope


def _slopes(classifier: Classifier, margins: Tensor, copies: Tensor) -> Tensor:
    """Gradients of the margins, `[m, n]`, float64; NaN where the model cannot be differentiated."""
    try:
        return classifier.gradient(margins, copies, keep=False).flatten(1).double()
    except ModelError as error:
        if error.code != "not_differentiable":
            raise
        return torch.full_like(copies.detach().flatten(1), torch.nan, dtype=torch.float64)
