"""Evidence of a flip probability: counted noisy copies of a point, or a model alone.

A model may give a number, never an interval: on a few hundred copies no test tells a model that holds from one that is
off by more than the interval that it would have. Intervals count the copies, and hold for every network.
"""

from dataclasses import replace

import torch
from torch import Tensor

from brittle.estimate import Estimate, Evidence, Status
from brittle.intervals import clopper_pearson, paired_proportion, sequence_interval
from brittle.measure.noisy_margins import Votes
from brittle.scores.base import copies_detail, finish, mark
from brittle.store.schemas import pack_votes

VACUOUS_FROM = 0.9  # width of an interval of a probability from which on it says nothing
UNSAID = 0.1  # share of an interval up to which what is left out of a model is not said
TIE = "tie for the largest logit"  # fault of noisy copies that tie


def counted(votes: Votes, confidence: float, stopped: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Return the share of noisy copies that flip, `[B]`, and the ends of its exact interval for any network: of pairs
    by `paired_proportion`, of single draws by `clopper_pearson`, or where a rule `stopped` them by `sequence_interval`.
    A tie is a flip in the share and at the upper end, and none at the lower end."""
    ends, interval = [], sequence_interval if stopped else clopper_pearson
    for flips in (votes.flips_without_ties, votes.flips):
        single, double, units = (count.cpu().numpy() for count in (flips[:, 1], flips[:, -1], votes.units))
        if votes.members == 2:
            ends.append(paired_proportion(single, double, units, confidence))
        else:
            ends.append(interval(single, units, confidence))
    share = flips_of(votes).double() / votes.draws
    return share, torch.from_numpy(ends[0][0]).to(share), torch.from_numpy(ends[1][1]).to(share)


def flips_of(votes: Votes) -> Tensor:
    return (votes.flips * torch.arange(votes.members + 1, device=votes.flips.device)).sum(dim=1)


def conclude(
    value: Tensor | None,
    status: Tensor,
    detail: tuple[str | None, ...],
    passes: int | Tensor,
    votes: Votes,
    confidence: float,
    by_model: Tensor | None = None,
    left_out: Tensor | None = None,
    stopped: bool = False,
) -> Estimate:
    """Return a flip probability with what the noisy copies behind it say: their interval by counting, stretched to it.

    The value `[B]` is that of a model of the copies, but counted where `by_model` is False; None is the share of flips.
    `left_out`, `[B]`, is what classes that the model leaves out may add: more than `UNSAID` of the interval, or of a
    value below one flip in the number of copies, is said. A rule may have `stopped` the copies of each point.
    """
    share, low, high = counted(votes, confidence, stopped)
    modelled = value is not None
    value = share if value is None else value
    status = mark(status, (value < low) | (value > high), Status.CONTRADICTED)
    status = mark(status, votes.ties > 0, Status.NOISY_TIES)
    width = torch.maximum(high, value) - torch.minimum(low, value)
    status = mark(status, width >= VACUOUS_FROM, Status.VACUOUS)
    unseen = value * votes.draws < 1.0  # fewer than one flip is expected in as many copies
    if left_out is not None:
        beside = torch.where(unseen, value, width)  # where no flip was seen the interval says little of the value
        status = mark(status, left_out > UNSAID * beside, Status.CLASSES_KEPT)
    flips, draws, ties = flips_of(votes).tolist(), votes.draws.tolist(), copies_detail(votes.ties, votes.draws, TIE)
    detail = tuple(
        f"{flips[point]} of {draws[point]} noisy copies flipped, which says "
        f"[{float(low[point]):.3g}, {float(high[point]):.3g}]"
        if code == Status.CONTRADICTED
        else (ties if code == Status.NOISY_TIES else detail)[point]
        for point, code in enumerate(status.tolist())
    )
    evidence = torch.full_like(status, int(Evidence.COUNTED))
    if modelled:
        by_size = torch.where(unseen, int(Evidence.EXTRAPOLATED), int(Evidence.MODELLED))
        evidence = by_size if by_model is None else torch.where(by_model, by_size, evidence)
    estimate = finish(value, low, high, status, passes, detail, evidence, (low, high))
    return replace(estimate, votes=by_class(votes.units, votes.classes))


def by_class(units: Tensor, classes: Tensor) -> tuple[bytes, ...]:
    """Return the votes of `units` `[B]` for each class (`Votes.classes`) as cells of the table."""
    return tuple(pack_votes(units.cpu().numpy(), classes.cpu().numpy()))


def without_copies(
    value: Tensor, status: Tensor, passes: int | Tensor, detail: tuple[str | None, ...] | None = None
) -> Estimate:
    """Return a flip probability `[B]` without noisy copies: it is extrapolated, and has no interval."""
    unknown = torch.full_like(value, torch.nan)
    evidence = torch.full(value.shape, int(Evidence.EXTRAPOLATED), dtype=torch.int64, device=value.device)
    return finish(value, unknown, unknown, status, passes, detail, evidence)
