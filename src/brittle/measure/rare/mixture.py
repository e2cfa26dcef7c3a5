"""Normal noise moved towards the flips: mixtures that are drawn from instead of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Covariance = Callable[[Tensor], Tensor]
"""`v -> S v` for each row of `[m, n]`, `S` the covariance of the noise."""

PLAIN = 0.1
"""Share of the draws that is plain noise, so that no weight exceeds `1 / PLAIN`."""

STEADY = 0.3
"""Share of the others that goes to the steady candidates alike."""

FEWEST = 3.0
"""Flips about which a part is centred."""

NARROWEST, WIDEST = 0.15, 1.2
"""Limits of its width."""

REMAINDERS = 1000
"""Remainders that differ by less than a part in so many are equal: rounding is not to decide who gets a draw."""

ROUNDS = 20
"""Rounds of the fit of the shares."""


@dataclass(frozen=True)
class Parts:
    """Densities of the noise that are changed along one direction each.

    Along the direction `a`, of length 1 in the metric of the noise, the coordinate `c = u e` is normal with this centre
    and width in place of 0 and 1.

    Attributes:
        duals: `u = S^-1 a`, `[K, n]`, float64.
        directions: `a`, `[K, n]`, float64.
        centres: `[K]`.
        widths: `[K]`.
    """

    duals: Tensor
    directions: Tensor
    centres: Tensor
    widths: Tensor

    @classmethod
    def along(cls, slopes: Tensor, covariance: Covariance, centres: Tensor, widths: Tensor) -> Parts:
        """Parts along which functions of the gradients `slopes` `[K, n]` fall fastest."""
        spread = -covariance(slopes)
        lengths = (-(spread * slopes).sum(dim=1)).sqrt()
        return cls(-slopes / lengths[:, None], spread / lengths[:, None], centres, widths)

    @classmethod
    def together(cls, parts: Sequence[Parts]) -> Parts:
        """All of them."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def about(self, noise: Tensor, belongs: Tensor) -> Parts:
        """The same directions, centred where `noise` lies, and half as wide again; `belongs` are its weights."""
        along = noise.double() @ self.duals.mT
        total = belongs.sum(dim=0)
        centres = (belongs * along).sum(dim=0) / total
        spread = (belongs * (along - centres).square()).sum(dim=0) / total
        return Parts(self.duals, self.directions, centres, (1.5 * spread.sqrt()).clamp(NARROWEST, WIDEST))

    def only(self, rows: Tensor) -> Parts:
        """Some of them."""
        return Parts(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def ratios(self, noise: Tensor) -> Tensor:
        """Logarithms of their densities, over that of the noise, at `noise` `[m, n]`: `[m, K]`."""
        along = noise.double() @ self.duals.mT
        return (along.square() - ((along - self.centres) / self.widths).square()) / 2.0 - self.widths.log()

    def move(self, noise: Tensor, part: Tensor) -> Tensor:
        """Draws `[m, n]` of the parts `part` `[m]` from plain ones."""
        along = (noise.double() * self.duals[part]).sum(dim=1)
        change = self.centres[part] + (self.widths[part] - 1.0) * along
        return noise + (change[:, None] * self.directions[part]).to(noise)


@dataclass(frozen=True)
class Mixture:
    """Plain noise and some parts.

    Attributes:
        parts: `K` of them.
        counts: draws of plain noise, then of each part, `[1 + K]`.
    """

    parts: Parts
    counts: Tensor

    def ratios(self, noise: Tensor) -> Tensor:
        """Logarithms of its density over that of the noise, `[m]`."""
        each = self.parts.ratios(noise)
        all_ = torch.cat((torch.zeros_like(each[:, :1]), each), dim=1)
        return (all_ + (self.counts.double() / self.counts.sum()).log()).logsumexp(dim=1)

    def draw(self, plain: Tensor) -> Tensor:
        """Its draws, from `counts.sum()` plain ones."""
        start = int(self.counts[0])
        part = torch.arange(len(self.counts) - 1, device=plain.device).repeat_interleave(self.counts[1:])
        return torch.cat((plain[:start], self.parts.move(plain[start:], part)))


@dataclass(frozen=True)
class Candidates:
    """Parts that a mixture may have.

    Attributes:
        parts: `K` of them.
        own: the row of the noise that the mixture is fitted to at which each was made, `[K]`; -1 where at none. That
            row says nothing of it.
        steady: whether it gets some draws in any case, `[K]`.
    """

    parts: Parts
    own: Tensor
    steady: Tensor


def fit(candidates: Candidates, noise: Tensor, draws: int) -> Mixture:
    """The mixture of candidates, and of those moved to where `noise` `[m, n]` lies, that is likeliest for it.

    `PLAIN` of its `draws` are plain noise, and `STEADY` of the others go to the steady candidates alike.
    """
    parts, steady = candidates.parts, candidates.steady.double()
    shares = torch.full_like(parts.centres, 1.0 / len(parts.centres))
    if len(noise):
        shares, belongs = _likeliest(parts, noise, candidates.own)
        rows = (belongs.sum(dim=0) >= FEWEST).nonzero().flatten()
        moved = parts.only(rows).about(noise, belongs[:, rows])
        parts = Parts.together((parts, moved))
        steady = torch.cat((steady, torch.zeros_like(moved.centres)))
        shares, _ = _likeliest(parts, noise, torch.cat((candidates.own, candidates.own[rows])))
    kept = STEADY if bool(steady.any()) else 0.0
    shares = (1.0 - kept) * shares + kept * steady / steady.sum().clamp_min(1.0)
    counts = _whole(torch.cat((shares.new_tensor([PLAIN]), (1.0 - PLAIN) * shares)) * draws)
    used = counts[1:] > 0
    return Mixture(parts.only(used.nonzero().flatten()), torch.cat((counts[:1], counts[1:][used])))


def _whole(numbers: Tensor) -> Tensor:
    """Whole numbers next to `numbers`, with the same sum, by largest remainders."""
    counts = numbers.floor().long()
    remainders = ((numbers - counts) * REMAINDERS).round()
    left = remainders.argsort(descending=True, stable=True)[: round(float(numbers.sum())) - int(counts.sum())]
    counts[left] += 1
    return counts


def _likeliest(parts: Parts, noise: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """Shares of the parts, `[K]`, and how far each row of `noise` belongs to each, `[m, K]`."""
    shares = torch.full_like(parts.centres, 1.0 / len(parts.centres))
    logs = parts.ratios(noise)
    logs = logs.masked_fill(torch.arange(len(noise), device=own.device)[:, None] == own, -math.inf)
    belongs = torch.zeros_like(logs)
    for _ in range(ROUNDS):
        belongs = torch.softmax(logs + shares.clamp_min(1e-12).log(), dim=1).nan_to_num()
        shares = belongs.mean(dim=0)
    return shares, belongs
