"""How often the interval of a published rare flip probability misses the truth, how many are published, and the cost.

    python tests/checks/rare_coverage.py [SEEDS] [SIZE ...]

Every line is one problem of `helpers.rare_truth` with `SEEDS` independent runs (400 unless told): how many numbers had
the status `ok`, how many of them missed, how many upper ends missed where none was published, the mean error of the
published logarithms and the spread of it, and the passes through the network beside what plain counting takes for the
same relative error.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers.rare_truth import FAMILIES, PROBABILITIES, SIZES, Problem, problem

import brittle
from brittle.estimate import Status
from brittle.scores import RareEvent


def check(one: Problem, seeds: int, score: RareEvent) -> tuple[int, int, int]:
    """Run one problem, print its line, and return how many were published, missed, and missed as bounds."""
    classifier = brittle.Classifier(one.network, bounds=(-1, 1))
    found = score(classifier, torch.zeros(seeds, one.size))
    published = found.status == int(Status.OK)
    inside = (found.low <= one.probability) & (one.probability <= found.high)
    missed, bounds = int((published & ~inside).sum()), int((~published & ~inside).sum())
    errors = (found.value[published] / one.probability).log()
    passes = float(found.passes.double().mean())
    line = f"{one.label:52} published {int(published.sum()):4}, missed {missed:3}; bounds missed {bounds:3}"
    if len(errors) > 1:
        relative = float((found.value[published] / one.probability - 1).square().mean().sqrt())
        width = float((found.high[published] / found.low[published]).log10().median())
        ratio = (1 / one.probability) / relative**2 / passes
        line += f"; log error {float(errors.mean()):6.2f} +- {float(errors.std()):.2f}, 10^{width:.1f} wide"
        line += f"; {passes:5.0f} passes, 1/{ratio:.3g} of counting"
    print(line, flush=True)
    return int(published.sum()), missed, bounds


def main(seeds: int, sizes: list[int]) -> None:
    """All problems."""
    totals = [0, 0, 0]
    for name in FAMILIES:
        for size in sizes:
            for probability in PROBABILITIES:
                counts = check(problem(name, size, probability), seeds, RareEvent(1.0))
                totals = [total + count for total, count in zip(totals, counts, strict=True)]
    every = seeds * len(FAMILIES) * len(sizes) * len(PROBABILITIES)
    print(f"{totals[0]} of {every} published, {totals[1]} missed ({totals[1] / max(1, totals[0]):.2%}); ", end="")
    print(f"{totals[2]} of {every - totals[0]} bounds missed")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    assert not math.isnan(sum(given))
    main(given[0] if given else 400, given[1:] or list(SIZES))
