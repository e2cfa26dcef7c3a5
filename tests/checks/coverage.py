"""How often the intervals of the sampled flip probabilities miss the truth, on margins of every kind.

    PYTHONPATH=tests python -m checks.coverage [--replicates 2000] [--draws 10 60 100 1000] [--only quadratic]

For each case of `helpers.margins`, whose flip probability is exact, and each number of draws: many replicates of one
point, for `moments`, `mmse` and `shrinkage` in one stage and in two. Printed, by family, score, status
and evidence: how many rows there are, the shares of them whose interval lies above and below the truth, in per cent at
nominal 99%, and the largest share on one side of a case at one number of draws. The last line says which exceed `MOST`
with status `ok`; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from helpers.margins import Case, cases
from torch import Tensor, nn

import brittle
from brittle.estimate import Estimate, Evidence, Status
from brittle.measure import Clean, Sample
from brittle.measure.chunks import NoiseChunk
from brittle.measure.linearize import LinearSums
from brittle.measure.rows import pick
from brittle.measure.sample_sums import SampleSums
from brittle.measure.sampling import SampledInStages, needs_more
from brittle.noise import Gaussian
from brittle.scores import MMSE, Moments, Shrinkage
from brittle.scores.evaluate import estimate_of

CONFIDENCE, MOST = 0.99, 0.015
"""Nominal confidence, and the share of misses on either side that is let pass."""

KNOWN_TO = 1e-9
"""Relative error of the truth."""

ENTRIES = 2**21
"""Numbers of noise that are drawn at a time."""

SEED = 20_262
"""Of the noise; no constant of a score was chosen on it."""

SCORES = ("moments", "mmse", "shrinkage", "shrinkage in stages")


class OfCase(nn.Module):
    """The network with the margins of a case, whose input is the noise."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, x: Tensor) -> Tensor:
        return self.case.logits(x)


def estimates(case: Case, draws: int, replicates: int, seed: int = SEED) -> dict[str, Estimate]:
    """What each of `SCORES` says of many replicates of the point, from the same noise."""
    generator = torch.Generator().manual_seed(seed)
    classifier = brittle.Classifier(OfCase(case), bounds=(-1, 1))
    origin = torch.zeros(replicates, case.size, dtype=torch.float64)
    clean = Clean(origin, tuple(map(str, range(replicates))), 0, case.logits(origin), replicates)
    pairs, single = SampleSums.start(clean), SampleSums.start(clean, members=1)
    kept = torch.arange(case.competitors + 1).expand(replicates, -1)
    linear = LinearSums.start(classifier, clean, kept, None, 2)
    first, done = Sample(Gaussian(1.0), draws, adaptive=True).first_stage, 0
    for end in (first, draws // 2):
        while done < end:
            units = min(end - done, max(1, ENTRIES // (replicates * case.size)))
            noise = torch.randn(replicates, units, 1, case.size, generator=generator, dtype=torch.float64)
            noise = torch.cat((noise, -noise), dim=2)
            logits = case.logits(noise)
            pairs.add(logits)
            if done < first:
                single.add(logits[:, :, :1])
            linear.add(NoiseChunk(noise.flatten(0, 2).clone(), done, units, 2))
            done += units
    whole, begun = pairs.read(draws // 2), single.read(first)
    more = needs_more(begun)
    parts = [(some.nonzero().flatten(), part) for some, part in ((~more, begun), (more, whole)) if some.any()]
    staged = SampledInStages(
        tuple((some, pick(part, some)) for some, part in parts), torch.where(more, whole.passes, begun.passes)
    )
    every = {
        "moments": (Moments(1.0, draws=draws), whole),
        "mmse": (MMSE(1.0, draws=draws), linear.read(draws // 2)),
        "shrinkage": (Shrinkage(1.0, draws=draws, adaptive=False), whole),
        "shrinkage in stages": (Shrinkage(1.0, draws=draws), staged),
    }
    return {
        name: estimate_of(score, {score.needs[0]: found}, CONFIDENCE, replicates)
        for name, (score, found) in every.items()
    }


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

    def add(self, above: Tensor, below: Tensor, where: Tensor, cell: str) -> None:
        """Count the rows of `where`; the share is one of all replicates of the cell."""
        over, under = int((above & where).sum()), int((below & where).sum())
        self.rows, self.above, self.below = self.rows + int(where.sum()), self.above + over, self.below + under
        self.worst = max(self.worst, (max(over, under) / len(where), cell))


Key = tuple[str, str, str, str]
"""Family, score, status and evidence."""


def count(case: Case, draws: int, replicates: int, counts: dict[Key, Counted]) -> None:
    """Add the replicates of a case."""
    for score, found in estimates(case, draws, replicates).items():
        assert found.evidence is not None
        above = found.low > case.flip * (1 + KNOWN_TO) + math.ulp(1.0)
        below = found.high < case.flip * (1 - KNOWN_TO)
        for status, evidence in sorted(set(zip(found.status.tolist(), found.evidence.tolist(), strict=True))):
            where = (found.status == status) & (found.evidence == evidence)
            key = (case.family, score, Status(status).slug, Evidence(evidence).slug)
            counts.setdefault(key, Counted()).add(above, below, where, f"{case.name}, {draws} draws")


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
    for case in cases():
        if chosen.only in case.name:
            for draws in chosen.draws:
                count(case, draws, chosen.replicates, counts)
    for (family, score, status, evidence), each in sorted(counts.items()):
        shares = [100 * part / each.rows for part in (each.above, each.below)] + [100 * each.worst[0]]
        print(
            f"{family:10}{score:20}{status:15}{evidence:13}{each.rows:9,} rows: {shares[0]:5.2f}% above, "
            f"{shares[1]:5.2f}% below; at most {shares[2]:5.2f}% ({each.worst[1]})",
        )
    found = list(beyond(counts))
    print("; ".join(found) or f"no kind of row with status ok misses more than {MOST:.1%} on a side")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
