"""How often the intervals of the sampled estimators miss the truth on linear networks, where they are meant to hold.

    PYTHONPATH=tests python -m checks.linear_coverage [--replicates 4000] [--classes 2 5 10] [--draws 10 20 100]

For each number of classes, kind of competitors, flip probability and number of draws: `moments`, `shrinkage` in one
stage and in two (adaptive), over many replicates of one point, from the logits of its noisy copies on. Competitors are
evenly matched (all margins alike, correlation one half) or graded (each half a standard deviation farther than the
last). The truth is a one-dimensional integral without code of the package. Printed: misses on each side, in per cent at
nominal 99%, and the median interval. `mmse` is exact on these networks at any number of draws; it goes through a real
network, few times.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import optimize, special, stats
from torch import Tensor, nn

import brittle
from brittle.measure import Clean, Sample, Sampled, SampledInStages
from brittle.measure.rows import pick
from brittle.measure.sample_sums import SampleSums
from brittle.measure.sampling import needs_more
from brittle.noise import Gaussian
from brittle.scores import MMSE, Moments, Score, Shrinkage

CONFIDENCE, MOST = 0.99, 0.015
"""Nominal confidence, and the share of misses on either side that is let pass."""

KNOWN_TO = 1e-6
"""Relative error of the integral that is the truth, which an interval of no width shows."""

STEP = 0.5
"""Distance between graded competitors, in standard deviations."""

PROBABILITIES = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


@dataclass(frozen=True)
class Problem:
    """A linear network at a point: margins `level_i + (u_0 + u_i) / sqrt 2`, `u` standard normal."""

    classes: int
    graded: bool
    flip: float

    @property
    def offsets(self) -> NDArray[np.float64]:
        """Levels of the competitors above the nearest one."""
        return STEP * np.arange(self.classes - 1) * self.graded  # pyright: ignore[reportReturnType] an array is a sequence

    @property
    def levels(self) -> NDArray[np.float64]:
        """Means of the margins in their standard deviations."""
        return _nearest_level(self) + self.offsets


def _flips(level: float, offsets: NDArray[np.float64]) -> float:
    """Flip probability by integration over the noise that all margins share."""
    shared = np.linspace(-12, 12, 12001)
    weights = stats.norm.pdf(shared) * (shared[1] - shared[0])
    survive = special.log_ndtr(math.sqrt(2) * (level + offsets)[:, None] + shared).sum(axis=0)
    return float((weights * -np.expm1(survive)).sum())


@cache
def _nearest_level(problem: Problem) -> float:
    target = math.log(problem.flip)
    return optimize.brentq(lambda level: math.log(_flips(level, problem.offsets)) - target, -4.0, 10.0)  # pyright: ignore[reportReturnType] SciPy says less than it gives


def logits(problem: Problem, noise: Tensor) -> Tensor:
    """Logits at noise `[..., C]`, whose first coordinate all margins share; class 0 is the predicted one."""
    levels = torch.from_numpy(np.concatenate(([0.0], -problem.levels)))
    signs = torch.ones(problem.classes, dtype=torch.float64)
    signs[1:] = -1.0
    return levels + signs * noise / math.sqrt(2)


def sampled(problem: Problem, draws: int, replicates: int, seed: int) -> tuple[Sampled, Sampled]:
    """What `draws` noisy copies show over replicates, and the first of them that an adaptive score looks at."""
    generator = torch.Generator().manual_seed(seed)
    clean_logits = logits(problem, torch.zeros(replicates, problem.classes, dtype=torch.float64))
    ids = tuple(map(str, range(replicates)))
    clean = Clean(torch.zeros(replicates, 1), ids, 0, clean_logits, replicates)
    pairs, single = SampleSums.start(clean), SampleSums.start(clean, members=1)
    done, first = 0, Sample(Gaussian(1.0), draws, adaptive=True).first_stage
    for end in (first, draws // 2):
        while done < end:
            units = min(end - done, max(1, 2**22 // (replicates * problem.classes)))
            noise = torch.randn(replicates, units, problem.classes, generator=generator, dtype=torch.float64)
            both = torch.stack([logits(problem, sign * noise) for sign in (1.0, -1.0)], dim=2)
            pairs.add(both)
            if done < first:
                single.add(both[:, :, :1])
            done += units
    return pairs.read(draws // 2), single.read(first)


def in_stages(whole: Sampled, first: Sampled) -> SampledInStages:
    """What an adaptive score looks at: the first copies of some replicates, and all of the others."""
    more = needs_more(first)
    rows = [(some.nonzero().flatten(), part) for some, part in ((~more, first), (more, whole)) if some.any()]
    passes = torch.where(more, whole.passes, first.passes)
    return SampledInStages(tuple((some, pick(part, some)) for some, part in rows), passes)


def misses(score: Score, found: Sampled | SampledInStages, truth: float) -> tuple[float, float, float, float]:
    """Shares of replicates whose interval lies above and below the truth, and the median ends."""
    estimate = score.estimate({score.needs[0]: found}, CONFIDENCE)
    above, below = float((estimate.low > truth).double().mean()), float((estimate.high < truth).double().mean())
    return above, below, float(estimate.low.median()), float(estimate.high.median())


def mmse_errors(problem: Problem, draws: int, points: int = 20) -> tuple[float, float]:
    """Shares of misses of `mmse` on a real linear network with these margins, in double precision."""
    network = nn.Linear(problem.classes, problem.classes, dtype=torch.float64)
    with torch.no_grad():
        origin = logits(problem, torch.zeros(problem.classes, dtype=torch.float64))
        network.bias.copy_(origin)
        network.weight.copy_(torch.stack([logits(problem, unit) - origin for unit in torch.eye(problem.classes)]).T)
    classifier = brittle.Classifier(network, bounds=(-1, 1))
    x = torch.zeros(points, problem.classes, dtype=torch.float64)
    score = MMSE(1.0, draws=draws)
    ids = [str(number) for number in range(points)]
    clean = brittle.measure.forward.look(classifier, x, ids, seed=0)
    estimate = score.estimate({score.needs[0]: score.needs[0](classifier, clean)}, CONFIDENCE)
    low, high = problem.flip * (1 - KNOWN_TO), problem.flip * (1 + KNOWN_TO)
    return float((estimate.low > high).double().mean()), float((estimate.high < low).double().mean())


def main(arguments: list[str]) -> int:
    """Print a line for every cell; 1 where any side misses more than `MOST`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=4000)
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 5, 10, 100])
    parser.add_argument("--draws", type=int, nargs="+", default=[10, 20, 100, 1000])
    parser.add_argument("--flips", type=float, nargs="+", default=list(PROBABILITIES))
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    worst: dict[str, float] = {}
    cells = 0
    for classes in chosen.classes:
        for graded in (False, True) if classes > 2 else (False,):
            for flip in chosen.flips:
                problem = Problem(classes, graded, flip)
                for draws in chosen.draws:
                    cells += 1
                    _cell(problem, draws, chosen.replicates, worst)
    print(f"{cells} cells, {chosen.replicates} replicates; largest share of misses on one side:")
    for name, share in worst.items():
        print(f"  {name:28s} {100 * share:5.2f}%")
    return int(max(worst.values()) > MOST)


def _cell(problem: Problem, draws: int, replicates: int, worst: dict[str, float]) -> None:
    kind = "graded" if problem.graded else "even"
    line = f"{problem.classes:3d} classes {kind:6s} flip {problem.flip:7.0e} draws {draws:4d}"
    found, first = sampled(problem, draws, replicates, seed=draws)
    of_flips: dict[str, tuple[Score, Sampled | SampledInStages]] = {
        "moments": (Moments(1.0, draws=draws), found),
        "shrinkage": (Shrinkage(1.0, draws=draws), found),
        "in stages": (Shrinkage(1.0, draws=draws, adaptive=True), in_stages(found, first)),
    }
    for kind_of, (score, seen) in of_flips.items():
        above, below, low, high = misses(score, seen, problem.flip)
        line += f" | {kind_of} {100 * above:4.2f} {100 * below:4.2f} [{low:.1e}, {high:.1e}]"
        for side, share in (("low", above), ("high", below)):
            worst[f"{kind_of}, {side}"] = max(worst.get(f"{kind_of}, {side}", 0.0), share)
    if draws == 10:
        worst["mmse"] = max(worst.get("mmse", 0.0), *mmse_errors(problem, draws))
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
