"""What stands behind a flip probability: the noisy copies of a point, counted, or a model alone.

A model may give a number, never an interval: on a few hundred copies no test tells a model that holds from one that is
off by more than the interval that it would have. Intervals count the copies, and hold for every network.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Evidence, Status
from brittle.intervals import clopper_pearson, paired_proportion
from brittle.measure.noisy_margins import Votes
from brittle.scores.base import finish, mark

VACUOUS_FROM = 0.9
"""Width of an interval of a probability from which on it says nothing."""


@dataclass(frozen=True)
class Interval:
    """Ends of an interval of the flip probability, `[B]` each."""

    low: Tensor
    high: Tensor

    def stretched(self, value: Tensor) -> Interval:
        """The smallest interval that holds this one and `value`, `[B]`."""
        return Interval(torch.minimum(self.low, value), torch.maximum(self.high, value))

    def excludes(self, value: Tensor) -> Tensor:
        """Whether `value` lies outside, `[B]`."""
        return (value < self.low) | (value > self.high)


def counted(votes: Votes, confidence: float) -> tuple[Tensor, Interval]:
    """The share of noisy copies that flip, `[B]`, and its exact interval, for any network.

    Over antithetic pairs as `paired_proportion`, over single draws as `clopper_pearson`. A tie is a flip in the share
    and at the upper end, and none at the lower end.
    """
    ends = []
    for counts in (votes.flips_without_ties, votes.flips):
        once, both = counts[:, 1].cpu().numpy(), counts[:, -1].cpu().numpy()
        if votes.members == 2:
            ends.append(paired_proportion(once, both, votes.units, confidence))
        else:
            ends.append(clopper_pearson(once, votes.units, confidence))
    weights = torch.arange(votes.members + 1, device=votes.flips.device)
    share = (votes.flips * weights).sum(dim=1).double() / votes.draws
    return share, Interval(torch.from_numpy(ends[0][0]).to(share), torch.from_numpy(ends[1][1]).to(share))


def evidence_of(value: Tensor, draws: int) -> Tensor:
    """`MODELLED`, or `EXTRAPOLATED` where fewer than one flip is expected in `draws` copies, `[B]`."""
    return torch.where(value * draws < 1.0, int(Evidence.EXTRAPOLATED), int(Evidence.MODELLED))


def no_copies(value: Tensor) -> Tensor:
    """The evidence of an estimate that looks at no noisy copy: `EXTRAPOLATED`, `[B]`."""
    return torch.full(value.shape, int(Evidence.EXTRAPOLATED), dtype=torch.int64, device=value.device)


def no_interval(value: Tensor) -> tuple[Tensor, Tensor]:
    """The ends of an estimate that looks at no noisy copy: NaN, `[B]` each."""
    return torch.full_like(value, torch.nan), torch.full_like(value, torch.nan)


def conclude(
    value: Tensor,
    status: Tensor,
    detail: tuple[str | None, ...],
    passes: int,
    votes: Votes | None,
    confidence: float,
    evidence: Tensor | None = None,
) -> Estimate:
    """The number of a model, with what the noisy copies behind it say: their interval by counting, stretched to it.

    Args:
        value: `[B]`.
        status: how the model of each point went, `[B]`.
        detail: what was found where it failed, `[B]`.
        passes: passes per point.
        votes: how the copies voted; None where the model looked at none, and then there is no interval.
        confidence: of the interval.
        evidence: what stands behind the number, `[B]`, where that is not for its size to say.
    """
    if votes is None:
        return finish(value, *no_interval(value), status, passes, detail, no_copies(value))
    by_votes = counted(votes, confidence)[1]
    status = judge(status, value, by_votes.stretched(value), votes, by_votes)
    detail = vote_detail(status, votes, by_votes, detail)
    ends = (by_votes.low, by_votes.high)
    evidence = evidence_of(value, votes.draws) if evidence is None else evidence
    return finish(value, *ends, status, passes, detail, evidence, ends)


def judge(
    status: Tensor, value: Tensor, interval: Interval, votes: Votes | None = None, by_votes: Interval | None = None
) -> Tensor:
    """`status` with what the votes, and the width of the interval, say of an estimate, `[B]`."""
    if votes is not None and by_votes is not None:
        status = mark(status, by_votes.excludes(value), Status.CONTRADICTED)
        status = mark(status, votes.ties > 0, Status.NOISY_TIES)
    return mark(status, interval.high - interval.low >= VACUOUS_FROM, Status.VACUOUS)


def vote_detail(
    status: Tensor, votes: Votes, by_votes: Interval, otherwise: tuple[str | None, ...]
) -> tuple[str | None, ...]:
    """What was counted at each contradicted or tied point, `[B]`; `otherwise` elsewhere."""
    flips = (votes.flips * torch.arange(votes.members + 1, device=votes.flips.device)).sum(dim=1).tolist()

    def describe(code: int, point: int) -> str | None:
        if code == Status.CONTRADICTED:
            ends = f"[{float(by_votes.low[point]):.3g}, {float(by_votes.high[point]):.3g}]"
            return f"{flips[point]} of {votes.draws} noisy copies flipped, which says {ends}"
        if code == Status.NOISY_TIES:
            return f"{int(votes.ties[point])} of {votes.draws} noisy copies tie for the largest logit"
        return otherwise[point]

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
