"""What the noisy copies behind an estimate from averaged gradients say of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Spread, Votes
from brittle.scores.base import finish, mark
from brittle.scores.evidence import (
    FEWEST_UNITS,
    Interval,
    counted,
    doubtful,
    evidence_of,
    judge,
    no_copies,
    vote_detail,
)

LINEAR_SHARE = 1e-4
"""Share of the margins' variance that tangents at the noisy copies may miss where a network passes as linear."""


@dataclass(frozen=True)
class NoisyCopies:
    """The noisy copies behind an estimate.

    Attributes:
        votes: how they voted.
        by_model: interval of a normal model of their margins; None with a single unit of noise.
        spread: mean and variance of these margins, `[B, K]` each; None likewise.
        bend: mean square of what tangents at the copies miss of them, `[B, K]`; None likewise.
        normal: whether the noise is normal.
    """

    votes: Votes
    by_model: Interval | None
    spread: Spread | None
    bend: Tensor | None
    normal: bool


@dataclass(frozen=True)
class Draft:
    """An estimate from averaged gradients by itself.

    Attributes:
        value: `[B]`.
        interval: its own interval.
        status: how the linearisation of each point went, `[B]`.
        detail: what was found where it failed, `[B]`.
        remark: where something is to be said beside that, `[B]`, and the status that says it.
        passes: passes per point.
        exact: whether the formula is exact for linear networks under normal noise.
    """

    value: Tensor
    interval: Interval
    status: Tensor
    detail: tuple[str | None, ...]
    remark: tuple[Tensor, Status]
    passes: int
    exact: bool


def conclude(draft: Draft, copies: NoisyCopies | None, confidence: float) -> Estimate:
    """The estimate with its evidence, and with what the noisy copies say of it; None where there are none."""
    value, interval = draft.value, draft.interval
    if copies is None:
        status = mark(judge(draft.status, value, interval), *draft.remark)
        ends = (interval.low, interval.high)
        return finish(value, *ends, status, draft.passes, draft.detail, no_copies(value))
    votes, by_votes = copies.votes, counted(copies.votes, confidence)[1]
    interval = widen_by_copies(value, interval, by_votes, copies, draft.exact)
    status = mark(judge(draft.status, value, interval, votes, by_votes), *draft.remark)
    detail = vote_detail(status, votes, by_votes, draft.detail)
    evidence, ends = evidence_of(value, votes.draws), (by_votes.low, by_votes.high)
    return finish(value, interval.low, interval.high, status, draft.passes, detail, evidence, ends)


def widen_by_copies(
    value: Tensor, interval: Interval, by_votes: Interval, copies: NoisyCopies, exact: bool
) -> Interval:
    """The interval of an estimate from averaged gradients, as wide as the noisy copies behind it ask for.

    Where the formula is exact for linear networks, the noise normal and the network linear over it, it stays as it is;
    fewer than `FEWEST_UNITS` units of noise prove nothing of that kind. Elsewhere it reaches out to the normal model of
    the copies' margins, because gradients tell their variance up to quadratic terms at best; and to `by_votes` where
    these margins may not be normal, or where the count excludes `value`. A single unit of noise shows no variance, so
    it reaches out to `by_votes` everywhere.

    Args:
        value: the estimate, `[B]`.
        interval: its own interval.
        by_votes: interval by counting.
        copies: what the copies showed.
        exact: whether the formula is exact for linear networks under normal noise.
    """
    everywhere = torch.ones_like(value, dtype=torch.bool)
    if copies.by_model is None or copies.spread is None or copies.bend is None:
        return interval.hull(by_votes, everywhere)
    known = exact and copies.normal and copies.votes.units >= FEWEST_UNITS
    bends = bent(copies.bend, copies.spread) if known else everywhere
    doubt = bends & doubtful(value, copies.spread, copies.votes) if copies.normal else everywhere
    return interval.hull(copies.by_model, bends).hull(by_votes, doubt | by_votes.excludes(value))


def bent(bend: Tensor, spread: Spread) -> Tensor:
    """Whether a network bends over the noise, `[B]`: tangents at the copies miss more of a margin than rounding does.

    Args:
        bend: mean square of what they miss, `[B, K]`.
        spread: mean and variance of the margins, `[B, K]` each.
    """
    return (bend > LINEAR_SHARE * spread.variance).any(dim=1)
