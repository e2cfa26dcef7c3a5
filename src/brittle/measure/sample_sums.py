"""Statistics of noisy copies of a point: votes for the predicted class, moments of margins, changed probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import NoisyMargins, Votes, margins_of, nearest_margins, powers_of, spread_of
from brittle.orthant import without_rounding

KEPT_DRAWS = 2000
"""Noisy copies of a point whose nearest margins are kept."""

CHOOSING_COPIES = 16
"""Noisy copies of a point by which it is chosen which of many competitors are kept."""

KEPT_UNITS = 2**16
"""Units of noise whose doubts are kept: more draws narrow the interval of a change no further."""


@dataclass(frozen=True)
class ProbabilityChanges:
    """`dp = p_t(x + e) - p_t(x)` over units of noise, `p_t` the probability of the predicted class; float64.

    A unit is an antithetic pair or a single copy, and its average is over its members.

    Attributes:
        mean: means of `dp`, of `dp^2` and of `|dp|`, `[B, 3]`.
        between: variance of the average `dp` between units, `[B]`.
        doubt: `1 - p_t(x)`, `[B]`.
        doubts: `1 - p_t(x + e)` of the first units, all of them up to `KEPT_UNITS`, `[B, U, members]`.
    """

    mean: Tensor
    between: Tensor
    doubt: Tensor
    doubts: Tensor


@dataclass(frozen=True)
class Sampled:
    """Statistics of noisy copies of each point: as many of every point, or fewer where a point stopped earlier.

    Attributes:
        votes: how they voted.
        margins: mean and covariance of the margins of the kept competitors; None below two units.
        left_out: `sum_j P(margin of j <= 0)` over the competitors `j` that were not kept, by the normal model, `[B]`;
            None where all are.
        change: how the probability changed; None below two units, or where nobody asked for it.
        nearest: margin to the nearest competitor in each copy, `[B, copies]`; NaN behind those of points that have
            fewer, and of all above `KEPT_DRAWS` copies. Where mirror images were drawn, they stand here, too.
            These three are None, too, where the votes alone were wanted.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network of each point, the clean one included, `[B]`.
    """

    votes: Votes
    margins: NoisyMargins | None
    left_out: Tensor | None
    change: ProbabilityChanges | None
    nearest: Tensor | None
    tied: Tensor
    passes: Tensor

    @property
    def draws(self) -> Tensor:
        """Noisy copies that voted, `[B]`."""
        return self.votes.draws


@dataclass
class SampleSums:
    """Running sums over units of noise.

    Attributes:
        clean: the points.
        competitors: those that are kept, `[B, K]`: all, or those whose margins had the smallest ratio of mean to
            standard deviation in the first `CHOOSING_COPIES` copies; until then, those with the largest logits.
        origin: the clean margins of all, `[B, C]`; margins are summed relative to them.
        doubt: `1 - p_t(x)`, `[B]`.
        votes: how the copies voted.
        units: units whose margins are summed, `[B]`, int64.
        powers: of the even and odd parts of the margins (`powers_of`), `[B, 8, K]`.
        even_even: products of the even parts, `[B, K, K]`; `odd_odd` those of the odd parts, None for single copies.
        changes: the average `dp`, `dp^2` and `|dp|` of a unit, `[B, 3]`; `change_products` their products, `[B, 3, 3]`.
        doubts: of `KEPT_UNITS` units at least.
        changed: units whose changes are summed.
        nearest: margins of `KEPT_DRAWS` copies at least.
        of_all: sums of the even parts of the margins of all classes, of their squares and of those of the odd parts,
            `[B, 3, C]`; None where all competitors are kept.
        waiting: margins relative to the origin, `[B, units, members, C]`, until the kept ones are `chosen`.
    """

    clean: Clean
    competitors: Tensor
    origin: Tensor
    doubt: Tensor
    votes: Votes
    units: Tensor
    powers: Tensor
    even_even: Tensor
    odd_odd: Tensor | None
    changes: Tensor
    change_products: Tensor
    doubts: list[Tensor] = field(default_factory=list)
    changed: int = 0
    nearest: list[Tensor] = field(default_factory=list)
    of_all: Tensor | None = None
    waiting: list[Tensor] = field(default_factory=list)
    chosen: bool = True

    @classmethod
    def start(cls, clean: Clean, members: int = 2) -> SampleSums:
        """No units of `members` copies yet."""
        competitors, logits = clean.competitors(), clean.logits.double()
        finite = logits.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        origin = margins_of(logits, clean.predicted).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        none = Votes.of(logits[:, None, None].expand(-1, -1, members, -1)[:, :0], clean.predicted)
        count = competitors.shape[1]
        shapes = ((8, count), (count, count), (count, count), (3,), (3, 3))
        powers, even, odd, changes, products = (logits.new_zeros(len(logits), *shape) for shape in shapes)
        doubts = doubt(finite if clean.log_probabilities is None else clean.log_probabilities, clean.predicted)
        sums = (powers, even, odd if members == 2 else None, changes, products)
        all_kept = count == logits.shape[1] - 1
        of_all = None if all_kept else logits.new_zeros(len(logits), 3, logits.shape[1])
        return cls(clean, competitors, origin, doubts, none, none.units, *sums, of_all=of_all, chosen=all_kept)

    def add(
        self,
        logits: Tensor,
        log_probabilities: Tensor | None = None,
        *,
        rows: Tensor | None = None,
        votes_only: bool = False,
    ) -> None:
        """Add the logits of some units, `[B, units, members, C]`, and where the change of the probability is asked for
        their log-probabilities; with `votes_only` nothing but how they vote. Those of some points come with the
        positions of these, `rows`, once the kept competitors are chosen."""
        rows = torch.arange(len(self.origin), device=logits.device) if rows is None else rows
        predicted = self.clean.predicted[rows]
        nearest = nearest_margins(logits, predicted[:, None, None])
        self.votes = self.votes.add_at(rows, Votes.count(logits, nearest, predicted))
        if votes_only:
            return
        self.units = self.units.index_add(0, rows, torch.full_like(rows, logits.shape[1]))
        self._add_margins(margins_of(logits.double(), predicted[:, None, None]).sub_(self.origin[rows, None, None]), rows)
        if log_probabilities is not None:
            self._add_changes(doubt(log_probabilities.double(), predicted[:, None, None]))
        if sum(part.shape[1] for part in self.nearest) < KEPT_DRAWS:
            padded = self.origin.new_full((len(self.origin), logits.shape[1] * logits.shape[2]), torch.nan)
            padded[rows] = nearest.flatten(1)
            self.nearest.append(padded)

    def _add_changes(self, doubts: Tensor) -> None:
        """Add `1 - p_t` of some units, `[B, units, members]`."""
        if self.changed < KEPT_UNITS:
            self.doubts.append(doubts)
        self.changed += doubts.shape[1]
        change = self.doubt[:, None, None] - doubts
        averages = torch.stack((change, change.square(), change.abs()), dim=3).mean(dim=2)
        self.changes += averages.sum(dim=1)
        self.change_products += averages.mT @ averages

    def _add_margins(self, shifted: Tensor, rows: Tensor) -> None:
        """Add margins relative to the origin, `[B, units, members, C]`, of the points at the positions `rows`."""
        if self.of_all is not None:
            even, odd = _parts(shifted)
            parts = (even, even.square(), torch.zeros_like(even) if odd is None else odd.square())
            self.of_all.index_add_(0, rows, torch.stack([part.sum(dim=1) for part in parts], dim=1))
        if self.chosen:
            self._add_kept(shifted, rows)
            return
        self.waiting.append(shifted)
        if sum(part.shape[1] * part.shape[2] for part in self.waiting) >= CHOOSING_COPIES:
            self._choose()

    def _choose(self) -> None:
        """Choose the competitors that are kept, by the first margins, and add what waited for that."""
        shifted = torch.cat(self.waiting, dim=1)
        early = shifted[:, : max(1, CHOOSING_COPIES // shifted.shape[2])].flatten(1, 2)
        mean, deviation = early.mean(dim=1) + self.origin, early.std(dim=1, correction=0)
        ratio = (mean / deviation.clamp_min(1e-300)).nan_to_num(nan=torch.inf)
        ratio = ratio.scatter(1, self.clean.predicted[:, None], torch.inf)
        winners = ratio.topk(self.competitors.shape[1], dim=1, largest=False).indices
        self.competitors, self.waiting, self.chosen = winners.sort(dim=1).values, [], True
        self._add_kept(shifted, torch.arange(len(shifted), device=shifted.device))

    def _add_kept(self, shifted: Tensor, rows: Tensor) -> None:
        even, odd = _parts(shifted.gather(3, self.competitors[rows, None, None].expand(*shifted.shape[:3], -1)))
        self.powers.index_add_(0, rows, powers_of(even, odd))
        self.even_even.index_add_(0, rows, even.mT @ even)
        if odd is not None and self.odd_odd is not None:
            self.odd_odd.index_add_(0, rows, odd.mT @ odd)

    def read(self) -> Sampled:
        """Return the statistics of the units so far."""
        if self.waiting:  # those that come later are not to be chosen by so few
            odd_odd = None if self.odd_odd is None else self.odd_odd.clone()
            now = replace(self, powers=self.powers.clone(), even_even=self.even_even.clone(), odd_odd=odd_odd)
            now._choose()
            return now.read()
        fewest, change = int(self.units.amin()), None
        if self.changed == fewest >= 2:
            mean = self.changes / self.changed
            between = self.change_products - self.changed * mean[:, :, None] * mean[:, None, :]
            doubts = torch.cat(self.doubts, dim=1)[:, :KEPT_UNITS]
            change = ProbabilityChanges(mean, between[:, 0, 0] / (self.changed - 1), self.doubt, doubts)
        return Sampled(
            votes=self.votes,
            margins=self._margins() if fewest >= 2 else None,
            left_out=self._left_out() if fewest >= 2 else None,
            change=change,
            nearest=self._nearest(),
            tied=self.clean.tied,
            passes=self.votes.draws + self.clean.passes,
        )

    def _nearest(self) -> Tensor | None:
        if not self.nearest:
            return None
        if int(self.units.amax()) * self.votes.members > KEPT_DRAWS:
            return self.origin.new_full((len(self.origin), 1), torch.nan)
        return torch.cat(self.nearest, dim=1)

    def _left_out(self) -> Tensor | None:
        if self.of_all is None:
            return None
        units = self.units.to(self.of_all)[:, None]
        even, even_squares, odd_squares = (self.of_all / units[:, None]).unbind(1)
        variance = (even_squares - even.square()).clamp_min(0.0) * (units / (units - 1)) + odd_squares
        wins = torch.special.ndtr(-(even + self.origin) / variance.clamp_min(1e-300).sqrt())
        index = torch.cat((self.competitors, self.clean.predicted[:, None]), dim=1)
        return wins.scatter(1, index, 0.0).sum(dim=1)

    def _margins(self) -> NoisyMargins:
        units = self.units.to(self.powers)[:, None, None]
        even, squares = self.powers[:, 0] / units[:, 0], self.even_even.diagonal(dim1=1, dim2=2)
        covariance = (self.even_even - units * even[:, :, None] * even[:, None, :]) / (units - 1)
        if self.odd_odd is not None:
            covariance += self.odd_odd / units
            squares = squares + self.odd_odd.diagonal(dim1=1, dim2=2)
        origin = self.origin.gather(1, self.competitors)
        rounding = origin.square() * torch.finfo(torch.float64).eps  # what rounding leaves of the clean margins
        covariance = without_rounding((covariance + covariance.mT) / 2, squares / units[:, 0] + rounding)
        return NoisyMargins(spread_of(self.powers, self.units, origin), covariance)


def _parts(margins: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the even and odd parts of margins `[B, units, members, M]`, `[B, units, M]` each; odd parts need pairs."""
    if margins.shape[2] == 1:
        return margins[:, :, 0], None
    return margins.mean(2), (margins[:, :, 0] - margins[:, :, 1]) / 2


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_t`, the softmax probability of all other classes, `[...]`, at full precision; logits may be logarithms."""
    index = predicted[..., None].expand(*logits.shape[:-1], 1)
    return torch.sigmoid(logits.scatter(-1, index, -torch.inf).logsumexp(dim=-1) - logits.gather(-1, index)[..., 0])
