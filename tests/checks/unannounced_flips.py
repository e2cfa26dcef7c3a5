"""What a normal model of the margins does not announce: a step, and flips that leave a margin nearly normal.

    PYTHONPATH=tests python -m checks.unannounced_flips

2,000 points with a known flip probability p, each under noise of its own. *A step*: the margin is 1 on one side, -1 on
the other, and hardly varies on either. *Shallow*: the margin is `m + u`, `u` standard normal, but just below 0 with
some probability, whatever `u`. Printed for `shrinkage` by need and with 200 draws for each point, and for `moments`
with 200: the share of 99% intervals that miss p, the mean of the column, and how many points are falsely said to hold
at a limit above 1 - p.
"""

from __future__ import annotations

import numpy as np
from helpers.problems import Shallow, step_of, step_points
from torch import nn

import brittle
from brittle.scores import Moments, Shrinkage

POINTS, SIGMA = 2000, 0.1
STEPS = ((0.02, 0.99), (0.04, 0.97), (0.08, 0.95))
"""Flip probabilities, each with a limit at which the prediction breaks."""

SHALLOW = ((1.75, 0.065, 0.01, 0.9), (1.75, 0.065, 0.5, 0.9), (2.0, 0.06, 0.01, 0.92), (2.3, 0.03, 0.01, 0.97))
"""The margin, how often it is below 0, by how much; and such a limit."""

SCORES = {
    "by need": Shrinkage(sigma=SIGMA),
    "200 for each": Shrinkage(sigma=SIGMA, adaptive=False),
    "moments": Moments(sigma=SIGMA, draws=200),
}


def show(name: str, network: nn.Module, flip: float, limit: float) -> None:
    """Score the points, and print a line for each score."""
    classifier, labels = brittle.Classifier(network, bounds=(-5, 5)), np.zeros(POINTS, dtype=np.int64)
    table = brittle.score(classifier, (step_points(POINTS).numpy(), labels), list(SCORES.values()))
    for kind, score in SCORES.items():
        column = table[score]
        missed = float(((column.low > flip) | (column.high < flip)).mean())
        held = int((column.states(limit) == "holds").sum())
        print(
            f"{name}, p {flip:.4f}, {kind:12}  misses {missed:7.2%}  mean {float(column.value.mean()):.4f}  "
            f"falsely holds at {limit:g}: {held}",
            flush=True,
        )


def main() -> None:
    """Measure, and print."""
    for flip, limit in STEPS:
        show("a step", step_of(flip, SIGMA), flip, limit)
    for margin, flips, depth, limit in SHALLOW:
        network = Shallow(margin, flips, depth, SIGMA)
        show(f"shallow {margin:g}, {flips:g}, {depth:g}", network, network.flip, limit)


if __name__ == "__main__":
    main()
