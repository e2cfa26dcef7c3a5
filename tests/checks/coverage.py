"""How often the intervals of sampled flip probabilities and changes miss the truth, on margins of every kind.

    PYTHONPATH=tests python -m checks.coverage [--replicates 2000] [--draws 10 60 100 1000] [--only quadratic]

For each case of `helpers.margins`, whose flip probability is exact, and each number of draws: many replicates of one
point, for `moments`, `mmse`, and `shrinkage` of fixed draws and of so many at most, until it is decided. For some of
them, steeper ones and kinks that noise seldom reaches also `probability_change`; its truth is the average over two
million copies in plain NumPy.
Printed, by family, score, status and evidence: how many rows there are, the shares of them whose interval lies above
and below the truth, in per cent at nominal 99%, and the largest share on one side of a case at one number of draws. The
last line says which exceed `MOST` with status `ok`; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
"""Nominal confidence, and the share of misses on either side that is let pass."""

KNOWN_TO = 1e-9
"""Relative error of the truth."""

ENTRIES = 2**21
"""Numbers of noise that are drawn at a time."""

SEED = 20_262
"""Of the noise; no constant of a score was chosen on it."""

PAIRS, BLOCK = 1_000_000, 50_000
"""Pairs of noisy copies behind the truth of a change, and how many are taken at a time."""

FEWEST = 100
"""Rows of a case of which a share of misses says something."""


def seldom(sigma: float, slope: float = 0.0) -> Case:
    """`3 - slope v - 20 relu(sigma v - 0.3)`, `v` standard normal; its flip probability is not asked for."""
    name = f"kink, 3 - {slope:g} v - 20 relu({sigma:g} v - 0.3)"
    return Case("kink", name, 1, 1, lambda v: 3.0 - slope * v - 20.0 * (sigma * v - 0.3).clamp_min(0.0), math.nan)


def changing() -> list[Case]:
    """Cases for changes: those with straight margins also eight times as steep, which moves all probabilities."""
    known = cases()[::7]
    steep = [
        Case(one.family, f"{one.name}, times 8", one.size, one.competitors, lambda v, one=one: 8.0 * one.margins(v), 0)
        for one in known
        if one.family in ("linear", "step")
    ]
    return known + steep + [seldom(sigma, slope) for sigma, slope in ((0.18, 0), (0.14, 0), (0.1, 0), (0.14, 0.05))]


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
    """So many antithetic pairs for every replicate, `[replicates, units, 2, size]` at a time."""
    most = max(1, ENTRIES // (replicates * case.size))
    for units in [most] * (pairs // most) + [pairs % most] * (pairs % most > 0):
        noise = torch.randn(replicates, units, 1, case.size, generator=generator, dtype=torch.float64)
        yield torch.cat((noise, -noise), dim=2)


def estimates(case: Case, draws: int, replicates: int) -> dict[str, Estimate]:
    """What scores of the flip probability say of many replicates of the point; of fixed draws from the same noise."""
    generator = torch.Generator().manual_seed(SEED)
    classifier, clean = brittle.Classifier(OfCase(case), bounds=None), clean_of(case, replicates)
    pairs, done = SampleSums.start(clean), 0
    kept = torch.arange(case.competitors + 1).expand(replicates, -1)
    linear = LinearSums.start(classifier, clean, kept, None, 2)
    for noise in noises(case, draws // 2, replicates, generator):
        units, logits = noise.shape[1], case.logits(noise)
        pairs.add(logits)
        linear.add(NoiseChunk(noise.flatten(0, 2).clone(), done, units, 2))
        done += units
    fixed, stopped = Shrinkage(1.0, draws=draws, limit=None), Shrinkage(1.0, draws=draws, limit=LIMIT)
    drawn = pairs.read()
    measured = {
        "moments": (Moments(1.0, draws=draws), drawn),
        "mmse": (MMSE(1.0, draws=draws), linear.read(draws // 2)),
        "shrinkage": (fixed, drawn),
        "shrinkage until decided": (stopped, stopped.needs[0](classifier, clean)),
    }
    return {
        name: estimate_of(score, {score.needs[0]: found}, CONFIDENCE, replicates)
        for name, (score, found) in measured.items()
    }


def changes(case: Case, draws: int, replicates: int) -> dict[str, Estimate]:
    """The same of the statistics of the change."""
    sums, generator = SampleSums.start(clean_of(case, replicates)), torch.Generator().manual_seed(SEED)
    for noise in noises(case, draws // 2, replicates, generator):
        logits = case.logits(noise)
        sums.add(logits, logits)
    scores = {statistic: ProbabilityChange(1.0, draws=draws, statistic=statistic) for statistic in STATISTICS}
    whole = sums.read()
    return {name: one.estimate({one.needs[0]: whole}, CONFIDENCE) for name, one in scores.items()}


@cache
def moments_of_change(case: Case, pairs: int = PAIRS) -> dict[str, float]:
    """Moments of the change by averaging, without a line of the library."""
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

    def add(self, above: Tensor, below: Tensor, where: Tensor, cell: str, whole: int) -> None:
        """Count the rows of `where`; the share of the cell is one of `whole` rows."""
        over, under = int((above & where).sum()), int((below & where).sum())
        self.rows, self.above, self.below = self.rows + int(where.sum()), self.above + over, self.below + under
        self.worst = max(self.worst, (max(over, under) / whole, cell))


Key = tuple[str, str, str, str]
"""Family, score, status and evidence."""


def count(
    case: Case, draws: int, found: Mapping[str, Estimate], truth: Mapping[str, float], counts: dict[Key, Counted]
) -> None:
    """Add the replicates of a case; a score whose truth is not named has the exact flip probability for one.

    Whether a change is `ok` depends on the draws, so there the share is one of the rows that are.
    """
    for score, one in found.items():
        true = truth.get(score, case.flip)
        above = one.low > true + KNOWN_TO * abs(true) + math.ulp(1.0)
        below = one.high < true - KNOWN_TO * abs(true)
        evidence = torch.full_like(one.status, -1) if one.evidence is None else one.evidence
        for status, kind in sorted(set(zip(one.status.tolist(), evidence.tolist(), strict=True))):
            where = (one.status == status) & (evidence == kind)
            key = (case.family, score, Status(status).slug, "" if kind < 0 else Evidence(kind).slug)
            whole = max(int(where.sum()), FEWEST) if score in truth else len(where)
            counts.setdefault(key, Counted()).add(above, below, where, f"{case.name}, {draws} draws", whole)


def beyond(counts: dict[Key, Counted]) -> Iterator[str]:
    """The kinds of rows with status `ok` that miss too often."""
    for (_, score, status, evidence), each in counts.items():
        if status == Status.OK.slug and each.worst[0] > MOST:
            yield f"{score}, {evidence}: {each.worst[0]:.2%} of {each.worst[1]}"


def main(arguments: list[str]) -> int:
    """Print a line for every kind of row; 1 where one with status `ok` misses more than `MOST`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--draws", type=int, nargs="+", default=[10, 60, 100, 1000])
    parser.add_argument("--only", default="", help="cases whose name holds this")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    counts: dict[Key, Counted] = {}
    for draws in chosen.draws:
        for case in (case for case in cases() if chosen.only in case.name):
            count(case, draws, estimates(case, draws, chosen.replicates), {}, counts)
        for case in (case for case in changing() if chosen.only in case.name):
            count(case, draws, changes(case, draws, chosen.replicates), moments_of_change(case), counts)
    for (family, score, status, evidence), each in sorted(counts.items()):
        shares = [100 * part / each.rows for part in (each.above, each.below)] + [100 * each.worst[0]]
        print(
            f"{family:10}{score:25}{status:15}{evidence:13}{each.rows:9,} rows: {shares[0]:5.2f}% above, "
            f"{shares[1]:5.2f}% below; at most {shares[2]:5.2f}% ({each.worst[1]})",
        )
    found = list(beyond(counts))
    print("; ".join(found) or f"no kind of row with status ok misses more than {MOST:.1%} on a side")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
