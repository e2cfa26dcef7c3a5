"""Misses of the intervals of sampled flip probabilities and changes, on margins of every kind.

    PYTHONPATH=tests python -m checks.coverage [--replicates 2000] [--draws 10 60 100 1000] [--only quadratic]
        [--stopped]

For each case of `helpers.margins`, whose flip probability is exact, and each number of draws: many replicates of one
point, for `moments`, `mmse`, and `shrinkage` of fixed draws and of so many at most, until it is decided; with
`--stopped` for the last of these alone, which takes minutes and not hours. For some of the cases, steeper ones and
kinks that noise seldom reaches also `probability_change`; its truth is the average over two million copies in plain
NumPy.
Printed, by family, score, status and evidence: how many rows there are, the shares of them whose interval lies above
and below the truth, in per cent at nominal 99%, and the largest share on one side of a case at one number of draws. The
last line says which exceed `MOST` with status `ok`; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from helpers.margins import Case, cases
from scipy import special
from torch import Tensor, nn

import brittle
from brittle.estimate import LIMIT, Estimate, Evidence, Status
from brittle.extensions.expected_change.probability_change import STATISTICS
from brittle.measure import Clean
from brittle.measure.chunks import NoiseChunk
from brittle.measure.linearize import LinearSums
from brittle.measure.sample_sums import SampleSums
from brittle.scores import MMSE, Moments, ProbabilityChange, Shrinkage
from brittle.scores.evaluate import estimate_of

CONFIDENCE, MOST = 0.99, 0.015
"""Nominal confidence, and the largest accepted share of misses on either side."""

KNOWN_TO = 1e-9
"""Relative error of the truth."""

ENTRIES = 2**21
"""Numbers of noise drawn at a time."""

SEED = 20_262
"""Seed of the noise; no constant of a score was chosen on it."""

PAIRS, BLOCK = 1_000_000, 50_000
"""Pairs of noisy copies behind the truth of a change, and their number at a time."""

FEWEST = 100
"""Smallest number of rows of a case for a meaningful share of misses."""


def seldom(sigma: float, slope: float = 0.0) -> Case:
    """Return a case with the margin `3 - slope v - 20 relu(sigma v - 0.3)`, `v` standard normal, without a flip
    probability."""
    name = f"kink, 3 - {slope:g} v - 20 relu({sigma:g} v - 0.3)"
    return Case("kink", name, 1, 1, lambda v: 3.0 - slope * v - 20.0 * (sigma * v - 0.3).clamp_min(0.0), math.nan)


def changing() -> list[Case]:
    """Return cases for changes: straight margins also eight times as steep, which moves all probabilities."""
    regular = cases()[::7]
    steep = [
        replace(case, name=f"{case.name}, times 8", margins=lambda v, case=case: 8.0 * case.margins(v), flip=0)
        for case in regular
        if case.family in ("linear", "step")
    ]
    return regular + steep + [seldom(sigma, slope) for sigma, slope in ((0.18, 0), (0.14, 0), (0.1, 0), (0.14, 0.05))]


class OfCase(nn.Module):
    """The network with the margins of a case, whose input is the noise."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, x: Tensor) -> Tensor:
        return self.case.logits(x)


def clean_of(case: Case, replicates: int) -> Clean:
    origin = torch.zeros(replicates, case.size, dtype=torch.float64)
    return Clean(origin, tuple(map(str, range(replicates))), 0, case.logits(origin), replicates)


def noises(case: Case, pairs: int, replicates: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Draw antithetic pairs for every replicate, `[replicates, units, 2, size]` at a time."""
    block = max(1, ENTRIES // (replicates * case.size))
    for units in [block] * (pairs // block) + [pairs % block] * (pairs % block > 0):
        noise = torch.randn(replicates, units, 1, case.size, generator=generator, dtype=torch.float64)
        yield torch.cat((noise, -noise), dim=2)


def stopped_estimates(case: Case, draws: int, replicates: int) -> dict[str, Estimate]:
    """Return the estimate of the default, which stops when a replicate is decided, at replicates of the point."""
    classifier, clean = brittle.Classifier(OfCase(case), bounds=None), clean_of(case, replicates)
    score = Shrinkage(1.0, draws=draws, limit=LIMIT)
    need = score.needs[0]
    return {"shrinkage until decided": estimate_of(score, {need: need(classifier, clean)}, CONFIDENCE, replicates)}


def estimates(case: Case, draws: int, replicates: int) -> dict[str, Estimate]:
    """Return the estimates of flip probabilities at replicates of the point, those of fixed draws from the same
    noise."""
    generator = torch.Generator().manual_seed(SEED)
    classifier, clean = brittle.Classifier(OfCase(case), bounds=None), clean_of(case, replicates)
    pairs, done = SampleSums.start(clean), 0
    classes = torch.arange(case.competitors + 1).expand(replicates, -1)
    linear = LinearSums.start(classifier, clean, classes, None, 2)
    for noise in noises(case, draws // 2, replicates, generator):
        units, logits = noise.shape[1], case.logits(noise)
        pairs.add(logits)
        linear.add(NoiseChunk(noise.flatten(0, 2).clone(), done, units, 2))
        done += units
    moments = pairs.read()
    measured = {
        "moments": (Moments(1.0, draws=draws), moments),
        "mmse": (MMSE(1.0, draws=draws), linear.read(draws // 2)),
        "shrinkage": (Shrinkage(1.0, draws=draws, limit=None), moments),
    }
    fixed = {
        name: estimate_of(score, {score.needs[0]: measurement}, CONFIDENCE, replicates)
        for name, (score, measurement) in measured.items()
    }
    return fixed | stopped_estimates(case, draws, replicates)


def changes(case: Case, draws: int, replicates: int) -> dict[str, Estimate]:
    """Return the estimates of the statistics of the change."""
    sums, generator = SampleSums.start(clean_of(case, replicates)), torch.Generator().manual_seed(SEED)
    for noise in noises(case, draws // 2, replicates, generator):
        logits = case.logits(noise)
        sums.add(logits, logits)
    scores = {statistic: ProbabilityChange(1.0, draws=draws, statistic=statistic) for statistic in STATISTICS}
    moments = sums.read()
    return {name: score.estimate({score.needs[0]: moments}, CONFIDENCE) for name, score in scores.items()}


@cache
def moments_of_change(case: Case, pairs: int = PAIRS) -> dict[str, float]:
    """Return the moments of the change by averaging, without code of the library."""
    rng, sums = np.random.default_rng(7), np.zeros(3)
    doubt = _doubt(case, np.zeros((1, case.size)))[0]
    for _ in range(pairs // BLOCK):
        noise = rng.standard_normal((BLOCK, case.size))
        for sign in (1.0, -1.0):
            change = doubt - _doubt(case, sign * noise)
            sums += [power.sum() for power in (change, change**2, abs(change))]
    mean, square, absolute = sums / (2 * (pairs // BLOCK) * BLOCK)
    return {"mean": mean, "variance": square - mean**2, "absolute": absolute}


def _doubt(case: Case, noise: np.ndarray) -> np.ndarray:
    margins = case.margins(torch.from_numpy(noise)).numpy()
    return special.expit(special.logsumexp(-margins, axis=1))


@dataclass
class Counted:
    """Rows of one family, score, status and evidence.

    Attributes:
        rows: how many there are.
        above: those whose interval lies above the truth.
        below: those whose interval lies below it.
        worst: largest share of the rows of a case at one number of draws that lie on one side, and which case that is.
    """

    rows: int = 0
    above: int = 0
    below: int = 0
    worst: tuple[float, str] = (0.0, "")

    def add(self, above: Tensor, below: Tensor, mask: Tensor, cell: str, total: int) -> None:
        """Count the rows of `mask`; the share of the cell is one of `total` rows."""
        over, under = int((above & mask).sum()), int((below & mask).sum())
        self.rows, self.above, self.below = self.rows + int(mask.sum()), self.above + over, self.below + under
        self.worst = max(self.worst, (max(over, under) / total, cell))


Key = tuple[str, str, str, str]
"""Family, score, status and evidence."""


def count(
    case: Case, draws: int, measured: Mapping[str, Estimate], truth: Mapping[str, float], counts: dict[Key, Counted]
) -> None:
    """Add the replicates of a case; a score without a `truth` is compared with the exact flip probability.

    Whether a change is `ok` depends on the draws, so there the share is one of the rows that are.
    """
    for score, estimate in measured.items():
        true = truth.get(score, case.flip)
        above = estimate.low > true + KNOWN_TO * abs(true) + math.ulp(1.0)
        below = estimate.high < true - KNOWN_TO * abs(true)
        evidence = torch.full_like(estimate.status, -1) if estimate.evidence is None else estimate.evidence
        for status, kind in sorted(set(zip(estimate.status.tolist(), evidence.tolist(), strict=True))):
            mask = (estimate.status == status) & (evidence == kind)
            key = (case.family, score, Status(status).slug, "" if kind < 0 else Evidence(kind).slug)
            total = max(int(mask.sum()), FEWEST) if score in truth else len(mask)
            counts.setdefault(key, Counted()).add(above, below, mask, f"{case.name}, {draws} draws", total)


def beyond(counts: dict[Key, Counted]) -> Iterator[str]:
    """Return the kinds of rows with status `ok` that miss too often."""
    for (_, score, status, evidence), tally in counts.items():
        if status == Status.OK.slug and tally.worst[0] > MOST:
            yield f"{score}, {evidence}: {tally.worst[0]:.2%} of {tally.worst[1]}"


def main(arguments: list[str]) -> int:
    """Print a line for every kind of row; return 1 if one with status `ok` misses more than `MOST`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--draws", type=int, nargs="+", default=[10, 60, 100, 1000])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--stopped", action="store_true", help="the default alone, until decided")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    counts: dict[Key, Counted] = {}
    estimate = stopped_estimates if options.stopped else estimates
    for draws in options.draws:
        for case in (case for case in cases() if options.only in case.name):
            count(case, draws, estimate(case, draws, options.replicates), {}, counts)
        for case in (case for case in changing() if options.only in case.name and not options.stopped):
            count(case, draws, changes(case, draws, options.replicates), moments_of_change(case), counts)
    for (family, score, status, evidence), tally in sorted(counts.items()):
        shares = [100 * part / tally.rows for part in (tally.above, tally.below)] + [100 * tally.worst[0]]
        print(
            f"{family:10}{score:25}{status:15}{evidence:13}{tally.rows:9,} rows: {shares[0]:5.2f}% above, "
            f"{shares[1]:5.2f}% below; at most {shares[2]:5.2f}% ({tally.worst[1]})",
        )
    excesses = list(beyond(counts))
    print("; ".join(excesses) or f"no kind of row with status ok misses more than {MOST:.1%} on a side")
    return int(bool(excesses))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
