"""How often the interval of a published rare flip probability misses the truth, how many are published, and the cost.

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
"""Of the noise; no constant of the score was chosen on it."""

FEWEST = 2
"""Published numbers from which on a line shows their errors."""


def check(one: Problem, seeds: int) -> Tensor:
    """Run one problem, print its line, and return how many were `ok`, `coarse` and neither, each with its misses."""
    found = RareEvent(1.0)(brittle.Classifier(one.network, bounds=(-1, 1)), torch.zeros(seeds, one.size), seed=SEED)
    missed = (found.low > one.probability) | (found.high < one.probability)
    ok, coarse = (found.status == int(status) for status in (Status.OK, Status.COARSE))
    counts = torch.tensor([int(each.sum()) for kind in (ok, coarse, ~ok & ~coarse) for each in (kind, kind & missed)])
    line = "{:4} ok, {} missed; {:4} coarse, {} missed; {:4} bounds, {} missed".format(*counts.tolist())
    print(f"{one.name:32}{one.size:4}  {one.probability:.2e}  {line}{_errors(found, ok | coarse, one)}", flush=True)
    return counts


def _errors(found: Estimate, published: Tensor, one: Problem) -> str:
    passes = float(found.passes.double().mean())
    if int(published.sum()) < FEWEST:
        return f"; {passes:.0f} passes"
    value, low, high = (float(part[published].median()) for part in (found.value, found.low, found.high))
    errors = (found.value[published] / one.probability).log()
    size = float(errors.square().mean().sqrt())
    times = (1 - one.probability) / one.probability / size**2 / passes
    return (
        f"; {value:.1e} [{low:.1e}, {high:.1e}], log error {float(errors.mean()):.2f}, {size:.2f}; "
        f"{passes:.0f} passes, counting takes {times:.2g} times as many"
    )


def problems(kind: str, sizes: list[int]) -> Iterator[Problem]:
    """All problems of a kind whose point is not in a flip itself."""
    for name in FAMILIES if kind == "known" else HOSTILE:
        for size in sizes:
            for probability in PROBABILITIES:
                try:
                    one = problem(name, size, probability) if kind == "known" else hostile(name, size, probability)
                except ValueError:  # no such problem in so few or so many dimensions
                    continue
                clean = one.network(torch.zeros(1, size))
                if int(clean.argmax()) == 0:
                    yield one


def main() -> None:
    """All problems."""
    parser = argparse.ArgumentParser(description="Coverage of rare flip probabilities.")
    parser.add_argument("kinds", nargs="*", default=["known", "hostile"])
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20])
    given = parser.parse_args()
    for kind in given.kinds:
        totals = {seen: torch.zeros(6, dtype=torch.int64) for seen in (True, False)}
        for one in problems(kind, given.sizes):
            totals[one.name not in INVISIBLE] += check(one, given.seeds)
        for seen, counts in totals.items():
            ok, missed, coarse, coarse_missed, bounds, bounds_missed = counts.tolist()
            shares = [part / max(1, whole) for part, whole in ((missed, ok), (coarse_missed, coarse))]
            print(
                f"{kind}{'' if seen else ', what no probe need see'}: {ok} ok, {missed} missed ({shares[0]:.2%}); "
                f"{coarse} coarse, {coarse_missed} missed ({shares[1]:.2%}); {bounds} bounds, {bounds_missed} missed"
            )


if __name__ == "__main__":
    main()
