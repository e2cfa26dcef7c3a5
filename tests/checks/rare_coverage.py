"""Misses of the intervals of published rare flip probabilities, the number of published ones, and the cost.

    PYTHONPATH=tests python -m checks.rare_coverage [known|hostile ...] [--seeds 400] [--sizes 20 ...]

Every line is one problem of `helpers.rare_truth` (`known`) or `helpers.rare_hostile` (`hostile`) with independent runs:
how many numbers had the status `ok` and how many of these missed, the same for `coarse`, how many upper ends missed
where there was no number; the median of value and interval, the mean and the root mean square of the error of the
logarithm, the passes through the network, and what plain counting takes for the same error, as a multiple of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from helpers.rare_hostile import HOSTILE, INVISIBLE, hostile
from helpers.rare_truth import FAMILIES, PROBABILITIES, Problem, problem
from torch import Tensor

import brittle
from brittle.estimate import Estimate, Status
from brittle.scores import RareEvent

SEED = 20_261
"""Seed of the noise; no constant of the score was chosen on it."""

FEWEST = 2
"""Smallest number of published values for which a line shows their errors."""


def check(case: Problem, seeds: int) -> Tensor:
    """Run a problem, print its line, and return how many were `ok`, `coarse` and neither, each with its misses."""
    estimate = RareEvent(1.0)(
        brittle.Classifier(case.network, bounds=(-1, 1)), torch.zeros(seeds, case.size), seed=SEED
    )
    missed = (estimate.low > case.probability) | (estimate.high < case.probability)
    ok, coarse = (estimate.status == int(status) for status in (Status.OK, Status.COARSE))
    counts = torch.tensor([int(flags.sum()) for kind in (ok, coarse, ~ok & ~coarse) for flags in (kind, kind & missed)])
    line = "{:4} ok, {} missed; {:4} coarse, {} missed; {:4} bounds, {} missed".format(*counts.tolist())
    print(
        f"{case.name:32}{case.size:4}  {case.probability:.2e}  {line}{_errors(estimate, ok | coarse, case)}", flush=True
    )
    return counts


def _errors(estimate: Estimate, published: Tensor, case: Problem) -> str:
    passes = float(estimate.passes.double().mean())
    if int(published.sum()) < FEWEST:
        return f"; {passes:.0f} passes"
    value, low, high = (float(part[published].median()) for part in (estimate.value, estimate.low, estimate.high))
    errors = (estimate.value[published] / case.probability).log()
    size = float(errors.square().mean().sqrt())
    times = (1 - case.probability) / case.probability / size**2 / passes
    return (
        f"; {value:.1e} [{low:.1e}, {high:.1e}], log error {float(errors.mean()):.2f}, {size:.2f}; "
        f"{passes:.0f} passes, counting takes {times:.2g} times as many"
    )


def problems(kind: str, sizes: list[int]) -> Iterator[Problem]:
    """Return all problems of a kind whose point is not in a flip itself."""
    for name in FAMILIES if kind == "known" else HOSTILE:
        for size in sizes:
            for probability in PROBABILITIES:
                try:
                    case = problem(name, size, probability) if kind == "known" else hostile(name, size, probability)
                except ValueError:  # no such problem in so few or so many dimensions
                    continue
                clean = case.network(torch.zeros(1, size))
                if int(clean.argmax()) == 0:
                    yield case


def main() -> None:
    """Run all problems."""
    parser = argparse.ArgumentParser(description="Coverage of rare flip probabilities.")
    parser.add_argument("kinds", nargs="*", default=["known", "hostile"])
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20])
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        totals = {visible: torch.zeros(6, dtype=torch.int64) for visible in (True, False)}
        for case in problems(kind, arguments.sizes):
            totals[case.name not in INVISIBLE] += check(case, arguments.seeds)
        for visible, counts in totals.items():
            ok, missed, coarse, coarse_missed, bounds, bounds_missed = counts.tolist()
            shares = [part / max(1, total) for part, total in ((missed, ok), (coarse_missed, coarse))]
            print(
                f"{kind}{'' if visible else ', what no probe need see'}: {ok} ok, {missed} missed ({shares[0]:.2%}); "
                f"{coarse} coarse, {coarse_missed} missed ({shares[1]:.2%}); {bounds} bounds, {bounds_missed} missed"
            )


if __name__ == "__main__":
    main()
