"""Statistics of the margins of noisy copies: votes, mean and covariance, and their errors.

Noise comes in units: antithetic pairs `(e, -e)`, or single draws. The margins of a pair have an even part, their
half-sum, and an odd part, their half-difference; a single draw is all even part. The parts of different units are
independent, and the two parts of one unit are uncorrelated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class Votes:
    """Votes of the noisy copies of each point.

    A copy votes for the predicted class `t` when its logit is larger than every other. A copy whose largest logit is
    shared by `t` and another class is a tie; it counts as a flip in `flips` and as a vote in `flips_without_ties`. A
    copy with NaN or infinite logits is a flip in both.

    Attributes:
        units: independent units of noise, `[B]`, int64.
        flips: units with none, one and (in pairs) two copies that flipped, `[B, members + 1]`.
        flips_without_ties: the same with ties as votes, `[B, members + 1]`.
        ties: copies that tied, `[B]`.
        nonfinite: copies with NaN or infinite logits, `[B]`.
        classes: of every class the units of which one copy voted for it and, in pairs, those of which both did,
            `[B, C, members]`; copies whose largest logit is shared vote for none.
        margins: sum of the nearest margins of the copies with finite logits, `[B]`, float64.
    """

    units: Tensor
    flips: Tensor
    flips_without_ties: Tensor
    ties: Tensor
    nonfinite: Tensor
    classes: Tensor
    margins: Tensor

    @property
    def members(self) -> int:
        """Copies in a unit, 2 or 1."""
        return self.flips.shape[1] - 1

    @property
    def draws(self) -> Tensor:
        """Noisy copies, `[B]`."""
        return self.units * self.members

    @classmethod
    def of(cls, logits: Tensor, predicted: Tensor) -> Votes:
        """Return the votes of noisy copies with the logits `[B, units, members, C]`."""
        return cls.count(logits, nearest_margins(logits, predicted[:, None, None]), predicted)

    @classmethod
    def count(cls, logits: Tensor, nearest: Tensor, predicted: Tensor) -> Votes:
        """Count the votes of copies whose nearest margins, `[B, units, members]`, are computed already."""
        finite = _finite_copies(logits)
        flipped, tied = ~((nearest > 0) & finite), (nearest == 0) & finite
        flips, without_ties = (_count_units(copies) for copies in (flipped, flipped & ~tied))
        classes = _by_class(logits, predicted, flipped, finite, flips)
        total = nearest.where(finite, 0.0).sum((1, 2))
        counts = torch.full_like(predicted, nearest.shape[1])
        return cls(counts, flips, without_ties, tied.sum((1, 2)), (~finite).sum((1, 2)), classes, total)

    def __add__(self, more: Votes) -> Votes:
        return Votes(*(getattr(self, part.name) + getattr(more, part.name) for part in fields(self)))

    def add_at(self, rows: Tensor, more: Votes) -> Votes:
        """Return these votes with `more` of the points at the positions `rows`."""
        return Votes(*(getattr(self, part.name).index_add(0, rows, getattr(more, part.name)) for part in fields(self)))


def _finite_copies(logits: Tensor) -> Tensor:
    """Return where all logits of a copy are finite, `[B, units, members]`, at one look where all of all are."""
    if logits.numel() and all(bool(end.isfinite()) for end in logits.aminmax()):
        return torch.ones_like(logits[..., 0], dtype=torch.bool)
    return logits.abs().amax(dim=-1).isfinite()


def _count_units(copies: Tensor) -> Tensor:
    """Count the units with none, one and (in pairs) two of the marked `copies` `[B, units, members]`."""
    if copies.shape[2] == 1:
        count = copies[:, :, 0].sum(dim=1)
        return torch.stack((copies.shape[1] - count, count), dim=1)
    marked = copies.sum(dim=2)
    return torch.stack([(marked == number).sum(dim=1) for number in range(copies.shape[2] + 1)], dim=1)


def _by_class(logits: Tensor, predicted: Tensor, flipped: Tensor, finite: Tensor, flips: Tensor) -> Tensor:
    """`Votes.classes`; only the copies that `flipped`, `[B, units, members]`, are looked at, as few do."""
    points, units, members, classes = logits.shape
    point, unit, _ = flipped.nonzero(as_tuple=True)
    flipped_logits = logits[flipped]
    largest, winner = flipped_logits.max(dim=1)
    is_largest, votes = flipped_logits == largest[:, None], finite[flipped]
    if int(is_largest.count_nonzero()) != len(votes):
        votes &= is_largest.sum(dim=1) == 1
    place, unit = point * classes + winner, point * units + unit
    pair_end = torch.zeros_like(votes)  # of a pair of which both copies vote for one class
    if members == 2:
        pair_end[1:] = (unit[1:] == unit[:-1]) & (place[1:] == place[:-1]) & votes[1:] & votes[:-1]
    pair_start = pair_end.roll(-1)
    counts = [
        torch.bincount(place[is_counted], minlength=points * classes).view(points, classes)
        for is_counted in (votes & ~pair_start & ~pair_end, pair_end)[:members]
    ]
    counted = torch.stack(counts, dim=2)
    unflipped = flips[:, :members].flip(1)  # units of which one copy keeps the prediction, and both
    return counted.scatter_add(1, predicted[:, None, None].expand(-1, 1, members), unflipped[:, None])


@dataclass(frozen=True)
class Spread:
    """Mean and variance of some numbers over the noise, and how well the units of noise know them; each `[B, M]`.

    `even_variance` is what of the variance is that of the even part: 0 where the numbers are linear in the noise.
    Skewness and excess kurtosis are those of the sample in their standard errors under normal parts; 0 where nothing
    varies.
    """

    mean: Tensor
    variance: Tensor
    even_variance: Tensor
    skewness: Tensor
    kurtosis: Tensor


@dataclass(frozen=True)
class NoisyMargins:
    """The margins `z_t - z_j` of the kept competitors over the noisy copies, with their covariance, `[B, K, K]`."""

    spread: Spread
    covariance: Tensor


def powers_of(even: Tensor, odd: Tensor | None) -> Tensor:
    """Return sums over units of powers of even and odd parts `[B, units, M]`, `[B, 8, M]`; odd parts need pairs."""
    squares = even.square()
    powers = [even.sum(dim=1), squares.sum(dim=1), (even * squares).sum(dim=1), squares.square().sum(dim=1)]
    if odd is None:
        powers += [torch.zeros_like(powers[0])] * 4
    else:
        odd_squares = odd.square()
        products = (odd_squares, even * odd_squares, squares * odd_squares, odd_squares.square())
        powers += [product.sum(dim=1) for product in products]
    return torch.stack(powers, dim=1)


def spread_of(powers: Tensor, units: Tensor, origin: Tensor) -> Spread:
    """Return the spread that the `powers` of so many units, `[B]`, show; the numbers are `origin` `[B, M]` larger than
    the sums. The origin is near their mean, so that differences of the sums stay exact."""
    units = units.to(powers)[:, None]
    e, ee, eee, eeee, oo, eoo, eeoo, oooo = (powers / units[:, None]).movedim(1, 0).contiguous()
    # Central moments of the even part, and its products with the odd part, about the mean `e` of the even part.
    even2 = (ee - e.square()).clamp_min(0.0)
    even3 = eee - 3 * e * ee + 2 * e**3
    even4 = eeee - 4 * e * eee + 6 * e.square() * ee - 3 * e**4
    mixed3, mixed4 = eoo - e * oo, eeoo - 2 * e * eoo + e.square() * oo
    even = even2 * (units / (units - 1))
    precision = torch.finfo(torch.float64).eps
    rounding = 64 * precision * (ee + oo + precision * origin.square())
    even, oo = (torch.where(part <= rounding, 0.0, part) for part in (even, oo))
    variance = even + oo
    safe = torch.where(variance > 0, variance, 1.0)
    # Variances of the averaged third and fourth Hermite polynomials of two normal numbers with this correlation,
    # whose covariances are `6 r^3` and `24 r^4`.
    alike = 2.0 * (even / safe) - 1.0
    skew_error, tail_error = 3.0 * (1.0 + alike**3), 12.0 * (1.0 + alike**4)
    skewness = (even3 + 3 * mixed3) / safe**1.5 / (skew_error / units).sqrt().clamp_min(1e-6)
    kurtosis = ((even4 + 6 * mixed4 + oooo) / safe.square() - 3.0) / (tail_error / units).sqrt()
    flat = variance <= 0
    return Spread(e + origin, variance, even, skewness.masked_fill(flat, 0.0), kurtosis.masked_fill(flat, 0.0))


def nearest_margins(logits: Tensor, predicted: Tensor) -> Tensor:
    """`z_t - max_{j != t} z_j` of logits `[..., C]`, `[...]`, float64: of finite ones, single precision may be inf."""
    index = predicted[..., None].expand(*logits.shape[:-1], 1)
    largest_other = logits.scatter(-1, index, -torch.inf).amax(dim=-1)
    return logits.gather(-1, index)[..., 0].double() - largest_other.double()


def margins_of(logits: Tensor, predicted: Tensor) -> Tensor:
    """`z_t - z_j` for every class `j`, the predicted one included, `[..., C]`."""
    return logits.gather(-1, predicted[..., None].expand(*logits.shape[:-1], 1)) - logits
