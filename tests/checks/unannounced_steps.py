"""What draws by need miss: a network with a step that no margin announces.

    PYTHONPATH=tests python -m checks.unannounced_steps

2,000 points, each with the flip probability p under its own noise: the margin is 1 on one side of the step, -1 on the
other, and hardly varies on either. Printed for `shrinkage` by need and with all draws for each point: the share of 99%
intervals that miss p, the mean of the column, and how many points are falsely said to hold at a limit above 1 - p.
"""

from __future__ import annotations

import numpy as np
from helpers.problems import step_of, step_points

import brittle
from brittle.scores import Shrinkage

POINTS, SIGMA = 2000, 0.1
CASES = ((0.02, 0.99), (0.04, 0.97), (0.08, 0.95))
"""Flip probabilities, each with a limit at which the prediction breaks."""


def main() -> None:
    """Measure, and print."""
    x, labels = step_points(POINTS).numpy(), np.zeros(POINTS, dtype=np.int64)
    for flip, limit in CASES:
        classifier = brittle.Classifier(step_of(flip, SIGMA), bounds=(-5, 5))
        for adaptive in (True, False):
            score = Shrinkage(sigma=SIGMA, adaptive=adaptive)
            column = brittle.score(classifier, (x, labels), [score])[score]
            missed = float(((column.low > flip) | (column.high < flip)).mean())
            held = int((column.states(limit) == "holds").sum())
            print(
                f"p {flip:g}, {'by need' if adaptive else '200 for each':12}  misses {missed:7.2%}  "
                f"mean {float(column.value.mean()):.4f}  falsely holds at {limit:g}: {held}"
            )


if __name__ == "__main__":
    main()
