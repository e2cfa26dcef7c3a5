"""Noisy copies that rules need to decide whether the share of copies with the same prediction reaches a limit.

    python research/benchmarks/draws_by_need.py [--limits 0.9 0.5 0.99] [--confidence 0.99] [--cap 1000]

Every rule stops where it rejects one side at half of `1 - confidence`, and at `cap` copies. All but the bets are
functions of the counts, so their means are exact: the walk of the counts is computed copy by copy. The bets depend on
the order of the copies; their means are over 1,000 simulated points. Printed for each limit:

- the fewest copies in the mean, `log(2 / a) / KL(p, limit)` (Wald), by probability of keeping;
- for each rule the ratio to the fewest (or, where these are above the cap, the mean in brackets), the largest ratio and
  the shares that are undecided at the cap, of the ten probabilities that are hardest to tell from the limit;
- the same for the package and for Jeffreys' prior with fewer looks: first look, growth, number of looks; and for
  `shrinkage` and `monte_carlo`, which also stop where the cap will hardly decide;
- for counts of 50, 200 and 1,000 copies the widths of the intervals.

`known` knows the probability, so no prior, pilot or logit margin does better while the interval holds at any stop;
`fixed` looks once, after `cap` copies; `spends` holds at no more than `cap` copies, and has no interval at a stop.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from brittle.intervals import clopper_pearson, decided, log_evidence_below
from brittle.measure.stopping import StoppingRule, looks

FAR = (0.5, 0.6, 0.7, 0.8, 0.85, 0.87)
KEEP = np.array([*FAR, 0.88, 0.89, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.999, 1.0])
SEQUENCES = 1000
SHARES = (0.0, 0.05, 0.1, 0.5)

Evidence = Callable[[NDArray, NDArray, float | NDArray], NDArray]
"""Function of successes, trials and a bound: logarithm of the evidence that the proportion is below the bound."""


def beta(a: float, b: float, copies: float = 0.0, cut: bool = True) -> Evidence:
    """Average likelihood ratios over a beta distribution with a number of copies at the proportion added."""

    def evidence(k: NDArray, n: NDArray, q: float | NDArray) -> NDArray:
        successes, failures = a + copies * q, b + copies * (1 - q)
        ratio = special.betaln(k + successes, n - k + failures) - special.betaln(successes, failures)
        if cut:
            ratio += np.log(
                special.betainc(k + successes, n - k + failures, q) / special.betainc(successes, failures, q)
            )
        return ratio - special.xlogy(k, q) - special.xlog1py(n - k, -q)

    return evidence


def alternatives(place: Callable[[NDArray], NDArray], weights: Sequence[float] | NDArray) -> Evidence:
    """Average likelihood ratios of proportions that depend on the tested one."""

    def evidence(k: NDArray, n: NDArray, q: float | NDArray) -> NDArray:
        k, n, q = (np.asarray(argument, float)[..., None] for argument in (k, n, q))
        below = place(q)
        ratio = special.xlogy(k, below) + special.xlog1py(n - k, -below) - special.xlogy(k, q)
        ratio = ratio - special.xlog1py(n - k, -q)
        return np.logaddexp.reduce(ratio + np.log(np.asarray(weights) / np.sum(weights)), axis=-1)

    return evidence


def shifted(distances: Sequence[float] | NDArray, weights: Sequence[float] | NDArray | None = None) -> Evidence:
    """Return alternatives at distances on the scale of `arcsin sqrt(p)`; of equal weight by default."""
    return alternatives(
        lambda q: np.sin(np.maximum(np.arcsin(np.sqrt(q)) - distances, 0.0)) ** 2,
        np.ones(len(distances)) if weights is None else weights,
    )


def mixture(*parts: tuple[float, Evidence]) -> Evidence:
    """Return a weighted sum of evidence."""
    return lambda k, n, q: np.logaddexp.reduce([np.log(weight) + part(k, n, q) for weight, part in parts])


GRID = np.geomspace(1e-3, np.pi / 2, 60)
SMALL = np.exp(-np.array([0.4, 0.8, 1.6, np.inf]))

RULES: dict[str, Evidence] = {
    "package": log_evidence_below,
    "Jeffreys, cut": beta(0.5, 0.5),
    "Jeffreys, not cut (plug-in)": beta(0.5, 0.5, cut=False),
    "uniform, cut": beta(1.0, 1.0),
    "Beta(1/4, 1/2), cut": beta(0.25, 0.5),
    "Beta(1/2, 1), cut": beta(0.5, 1.0),
    "Beta(2q, 2(1-q)), cut": beta(0.0, 0.0, 2.0),
    "Beta(3q, 3(1-q)), cut": beta(0.0, 0.0, 3.0),
    "Beta(6q, 6(1-q)), cut": beta(0.0, 0.0, 6.0),
    "Beta(12q, 12(1-q)), cut": beta(0.0, 0.0, 12.0),
    "normal of 0.2 on arcsine": shifted(GRID, np.exp(-12.5 * GRID**2) * GRID),
    "normal of 0.3 on arcsine": shifted(GRID, np.exp(-5.6 * GRID**2) * GRID),
    "1/(d + 0.1) on arcsine": shifted(GRID, GRID / (GRID + 0.1)),
    "fractions 0, 1/4, 1/2, 3/4": alternatives(lambda q: q * np.array([0.0, 0.25, 0.5, 0.75]), np.ones(4)),
    "4 tilts of the odds": alternatives(lambda q: q * SMALL / (1 - q + q * SMALL), np.ones(4)),
    "1 shift, 0.15": shifted([0.15]),
    "2 shifts": shifted([0.08, 0.4]),
    "3 shifts, best for the cap": shifted([0.079, 0.198, 0.422], [0.383, 0.182, 0.435]),
    "3 shifts and 5% Jeffreys": mixture((0.95, shifted([0.08, 0.2, 0.43], [0.37, 0.21, 0.42])), (0.05, beta(0.5, 0.5))),
    "5 shifts, doubling": shifted(0.06 * 2.0 ** np.arange(5)),
    "shifts and weights of halves": shifted(0.45 * 0.42 ** np.arange(8), 0.5 ** np.arange(8)),
}

SPENDING: dict[str, Callable[[NDArray], NDArray]] = {
    "spends t": lambda t: t,
    "spends as Pocock": lambda t: np.log1p((np.e - 1) * t),
    "spends as O'Brien-Fleming": lambda t: 2 * stats.norm.sf(stats.norm.isf(0.0025) / np.sqrt(t)) / 0.005,
    "spends 1.1 t / (t + 0.1)": lambda t: 1.1 * t / (t + 0.1),
}


class Counts:
    """A stopping rule: stop at `n` copies with at most `low[n - 1]` flips, or at least `high[n - 1]`."""

    def __init__(self, low: NDArray, high: NDArray) -> None:
        self.low, self.high = low, high

    @classmethod
    def of(cls, evidence: Evidence, limit: float, confidence: float, cap: int) -> Counts:
        """Return the counts whose evidence for either side is enough; it falls with the successes."""
        level, n = np.log(2 / (1 - confidence)), np.arange(1, cap + 1)

        def most(q: float) -> NDArray:
            low, high = np.full(cap, -1), np.floor(n * q).astype(int)
            while (low < high).any():
                middle = (low + high + 1) // 2
                with np.errstate(divide="ignore", invalid="ignore"):
                    enough = evidence(np.maximum(middle, 0), n, q) >= level
                low, high = np.where(enough, middle, low), np.where(enough, high, np.maximum(middle - 1, low))
            return low

        return cls(most(1 - limit), n - most(limit))

    @classmethod
    def spending(cls, share_spent: Callable[[NDArray], NDArray], limit: float, confidence: float, cap: int) -> Counts:
        """Return the largest regions that err, in all looks up to each, as often as its share of the cap allows."""

        def most(success: float) -> NDArray:
            probability, low, budget = np.ones(1), np.full(cap, -1), 0.0
            allowed = (1 - confidence) / 2 * share_spent(np.arange(cap + 1) / cap)
            for n in range(1, cap + 1):
                probability = np.append((1 - success) * probability, 0) + np.append(0, success * probability)
                budget += allowed[n] - allowed[n - 1]
                low[n - 1] = np.searchsorted(np.cumsum(probability), budget, side="right") - 1
                budget -= probability[: low[n - 1] + 1].sum()
                probability[: low[n - 1] + 1] = 0
            return low

        with np.errstate(divide="ignore"):
            return cls(most(1 - limit), np.arange(1, cap + 1) - most(limit))

    def walk(self, keep: NDArray, looks: Sequence[int] | None = None) -> tuple[NDArray, NDArray]:
        """Return the mean copies and the undecided share, by probability of keeping."""
        cap, flip = len(self.low), 1 - keep[:, None]
        looked = np.isin(np.arange(1, cap + 1), range(1, cap + 1) if looks is None else list(looks))
        probability, mean, start, end = np.zeros((len(keep), cap + 2)), np.zeros(len(keep)), 0, 0
        probability[:, 0] = 1
        for n in range(1, cap + 1):
            before = probability[:, start : end + 2].copy()
            mean += before.sum(axis=1)
            probability[:, start : end + 2] = before * (1 - flip)
            probability[:, start + 1 : end + 2] += before[:, :-1] * flip
            end += 1
            if looked[n - 1]:
                low, high = self.low[n - 1], self.high[n - 1]
                probability[:, start : low + 1] = 0
                probability[:, high : end + 1] = 0
                start, end = max(start, low + 1), min(end, high - 1)
        return mean, probability[:, start : end + 1].sum(axis=1)


def known(limit: float, confidence: float, cap: int) -> tuple[NDArray, NDArray]:
    """Compute copies and undecided shares of the likelihood ratio of the true probability."""
    mean, undecided = np.full(len(KEEP), float(cap)), np.ones(len(KEEP))
    for at, keep in enumerate(KEEP):
        if keep != limit:
            counts = Counts.of(shifted([abs(np.arcsin(keep**0.5) - np.arcsin(limit**0.5))]), limit, confidence, cap)
            mean[at : at + 1], undecided[at : at + 1] = counts.walk(KEEP[at : at + 1])
    return mean, undecided


def drawn(limit: float, confidence: float, cap: int) -> tuple[NDArray, NDArray]:
    """Compute copies and undecided shares of `shrinkage` and `monte_carlo`."""
    rule, before, shares = StoppingRule(cap, limit, None, confidence), 0, np.ones((len(KEEP), 1))
    mean, undecided = np.zeros((2, len(KEEP)))
    for look in looks(cap):
        more = stats.binom.pmf(np.arange(look - before + 1), look - before, 1 - KEEP[:, None])
        shares = np.stack([np.convolve(*pair) for pair in zip(shares, more, strict=True)])
        flips, before = np.arange(look + 1), look
        counts = flips, flips, np.full_like(flips, look)
        stops, decides = rule.answered(*counts) | (look == cap), decided(*counts, limit, confidence)
        mean += look * shares[:, stops].sum(axis=1)
        undecided += shares[:, stops & ~decides].sum(axis=1)
        shares[:, stops] = 0
    return mean, undecided


def fixed(limit: float, confidence: float, cap: int) -> tuple[NDArray, NDArray]:
    """Compute copies and undecided shares of a Clopper-Pearson interval after `cap` copies."""
    flips = np.arange(cap + 1)
    low, high = clopper_pearson(flips, cap, confidence)
    between = (low < 1 - limit) & (high > 1 - limit)
    undecided = [stats.binom.pmf(flips, cap, 1 - keep)[between].sum() for keep in KEEP]
    return np.full(len(KEEP), float(cap)), np.array(undecided)


class Side:
    """Wealth of bets that copies succeed more often than `share`, for many points."""

    def __init__(self, share: float, points: int) -> None:
        self.share, self.wealth, self.bet, self.squares = share, *np.zeros((2, points)), np.ones(points)

    def add(self, kind: str, before: NDArray, copies: int, success: NDArray) -> None:
        """Bet on one copy, given the successes of the copies before it."""
        mean, share = (before + 0.5) / (copies + 1), self.share
        if kind == "GRAPA":  # the best bet if the mean so far were true
            bet = np.clip((mean - share) / (share * (1 - share)), 0, 0.99 / share)
        elif kind == "aGRAPA":
            bet = np.clip((mean - share) / (mean * (1 - mean) + (mean - share) ** 2), 0, 0.75 / share)
        else:  # ONS
            bet = self.bet
        factor = 1 + bet * (success - share)
        slope = (success - share) / factor
        self.wealth, self.squares = self.wealth + np.log(factor), self.squares + slope**2
        self.bet = np.clip(bet + 2 / (2 - np.log(3)) * slope / self.squares, 0, 0.75 / share)

    def keep(self, going: NDArray) -> None:
        """Forget the points that stopped."""
        self.wealth, self.bet, self.squares = self.wealth[going], self.bet[going], self.squares[going]


def bets(kind: str, limit: float, confidence: float, cap: int) -> tuple[NDArray, NDArray]:
    """Simulate bets on each copy by those before it, for each side (Waudby-Smith, Ramdas 2024)."""
    level, keeps, rng = np.log(2 / (1 - confidence)), np.repeat(KEEP, SEQUENCES), np.random.default_rng(0)
    holds, breaks = (Side(share, len(keeps)) for share in (limit, 1 - limit))
    stopped, successes, active = np.full(len(keeps), cap + 1), np.zeros(len(keeps)), np.arange(len(keeps))
    for copies in range(cap):
        copy = (rng.random(len(active)) < keeps[active]).astype(float)
        holds.add(kind, successes, copies, copy)
        breaks.add(kind, copies - successes, copies, 1 - copy)
        going = np.maximum(holds.wealth, breaks.wealth) < level
        stopped[active[~going]] = copies + 1
        active, successes = active[going], (successes + copy)[going]
        holds.keep(going)
        breaks.keep(going)
    by_keep = stopped.reshape(len(KEEP), SEQUENCES)
    return np.minimum(by_keep, cap).mean(axis=1), (by_keep > cap).mean(axis=1)


def growing(smallest: int, part: int, cap: int) -> Iterator[int]:
    """Return numbers of copies that grow by one part in `part`, and by `smallest` at least."""
    look = 0
    while look < cap:
        look = min(cap, look + max(smallest, look // part))
        yield look


def width(evidence: Evidence, copies: int, share: float, confidence: float) -> float:
    """Return the width of the interval where this share of copies flips."""
    level, n = np.log(2 / (1 - confidence)), np.array(copies)

    def end(k: NDArray) -> float:
        low, high = float(k / n), 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if evidence(k, n, middle) >= level else (middle, high)
        return high

    flips = np.round(n * share)
    return end(flips) + end(n - flips) - 1


class Table:
    """A table that prints a line for each rule at one limit."""

    def __init__(self, limit: float, confidence: float, cap: int) -> None:
        with np.errstate(divide="ignore"):
            divergence = special.rel_entr(KEEP, limit) + special.rel_entr(1 - KEEP, 1 - limit)
            self.fewest = np.log(2 / (1 - confidence)) / divergence
        self.hardest = np.sort(np.argsort(self.fewest)[-10:])
        self.within = self.fewest < cap
        print(f"\nlimit {limit:g}, confidence {confidence:g}, at most {cap} copies")
        undecided = " ".join(f"{keep:5g}" for keep in KEEP[self.hardest])
        print(f"{'keeps':29s} worst |{' '.join(f'{keep:6g}' for keep in KEEP)} | undecided at {undecided}")
        print(f"{'fewest':35s} |{' '.join(f'{copies:6.0f}' for copies in self.fewest)} |")

    def add(self, name: str, outcome: tuple[NDArray, NDArray]) -> None:
        """Print the mean copies and the undecided shares of a rule."""
        mean, undecided = outcome
        cells = [
            f"{copies / fewest:6.2f}" if inside else f"({copies:.0f})".rjust(6)
            for copies, fewest, inside in zip(mean, self.fewest, self.within, strict=True)
        ]
        shares = " ".join(f"{share:5.2f}" for share in undecided[self.hardest])
        worst = (mean / self.fewest)[self.within].max()
        print(f"{name:29s}{worst:6.2f} |{' '.join(cells)} | {'':12s}{shares}", flush=True)


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.9, 0.5, 0.99])
    parser.add_argument("--confidence", type=float, default=0.99)
    parser.add_argument("--cap", type=int, default=1000)
    arguments = parser.parse_args()
    for limit in arguments.limits:
        setting = limit, arguments.confidence, arguments.cap
        table = Table(*setting)
        table.add("known", known(*setting))
        for name, evidence in RULES.items():
            table.add(name, Counts.of(evidence, *setting).walk(KEEP))
        for name, share_spent in SPENDING.items():
            table.add(name, Counts.spending(share_spent, *setting).walk(KEEP))
        table.add("fixed", fixed(*setting))
        table.add("shrinkage and monte_carlo", drawn(*setting))
        for kind in ("GRAPA", "aGRAPA", "ONS") if limit == arguments.limits[0] else ():
            table.add(f"bets, {kind} (simulated)", bets(kind, *setting))
        for smallest, part in ((1, 32), (1, 16), (2, 16), (4, 8), (8, 8)):
            looks = list(growing(smallest, part, arguments.cap))
            for name, evidence in list(RULES.items())[:2]:
                outcome = Counts.of(evidence, *setting).walk(KEEP, looks)
                table.add(f"{name[:11]} {smallest}, 1/{part}: {len(looks)} looks", outcome)
    print(f"\nwidths where {', '.join(f'{share:g}' for share in SHARES)} flip of 50; of 200; of 1,000; of 10,000")
    for name, evidence in RULES.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            widths = [
                " ".join(f"{width(evidence, copies, share, arguments.confidence):.4f}" for share in SHARES)
                for copies in (50, 200, 1000, 10_000)
            ]
        print(f"{name:29s} {'; '.join(widths)}")


if __name__ == "__main__":
    main()
