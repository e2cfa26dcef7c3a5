"""Measurements of the study of average-case robustness, their size and their steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from studies.average_case.curvature import bounds, counterexample
from studies.average_case.estimating import (
    COUNTED,
    MMSE_,
    NORMAL,
    SHARE,
    SOFTMAX,
    accuracy,
    classes_of,
    estimates,
    nearest_sigma,
    points_of,
    score_many,
)
from studies.average_case.images import separability, sides, small_pictures
from studies.average_case.sigmoid import KINDS, at_the_margins, random_problems
from studies.average_case.timing import PAPER_DRAWS, PRINTED_DRAWS, TIMED, runtimes
from studies.counting import count_flips
from studies.measuring import Measuring, code_digest
from studies.networks import Network
from studies.study import Setting, Step, Steps, Tables
from studies.tables import RUNTIMES, as_table

GLOBAL = "without network"
"""Name of the step without a network."""

SIGMAS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
"""Sigmas, the same for every data set; pixels lie in [0, 1]."""

DIMENSIONS = (1, 2, 3, 5, 9)
"""Dimensions of the random problems."""

SPACES = (10, 100, 1000, 10000)
"""Dimensions of the counterexample to proposition 1."""


@dataclass(frozen=True)
class Size:
    """Size of the measurements.

    Attributes:
        points: test points of a network whose flips are counted.
        reference: number of noisy copies of the count.
        budgets: draws of MMSE.
        sample: number of test points for questions about points, classes and images.
        counted: number of their noisy copies for counting.
        normal: for `Moments`.
        draws: for MMSE.
        printed: points and draws of MMSE with as many as the UAI paper takes.
        timed: rounds and copies of the timings.
        bent: number of points with curvatures.
        problems: random problems of each kind and dimension.
    """

    points: int
    reference: int
    budgets: tuple[int, ...]
    sample: int
    counted: int
    normal: int
    draws: int
    printed: tuple[int, int]
    timed: tuple[int, int]
    bent: int
    problems: int


SIZES = {
    "cpu": Size(24, 800, (2, 5, 10, 25), 400, 50, 30, 6, (8, PRINTED_DRAWS), TIMED, 20, 150),
    "paper": Size(1000, 10_000, (5, 25, 500), 10_000, 100, 100, 25, (100, 1000), (9, 1000), 200, 1000),
    "tiny": Size(10, 200, (2, 5), 24, 10, 10, 2, (4, 20), (1, 2), 3, 3),
}


def alone(setting: Setting) -> Iterable[Step]:
    """Return the sigmoid on random problems, and the counterexample; run times on networks with random weights."""
    size, code = SIZES[setting.size], code_digest(__name__)
    identity = {"seed": setting.seed, "problems": size.problems, "code": code}
    yield Step(GLOBAL, identity, partial(without_network, size.problems, setting.seed))
    timed = {"timed": size.timed, "code": code}
    yield Step(RUNTIMES, timed, lambda: {RUNTIMES: as_table(runtimes(*size.timed))})


def of_network(network: Network, setting: Setting) -> Steps:
    """Return the truth, the estimates, and what is asked about points."""
    size = SIZES[setting.size]
    measuring = OneNetwork(network, setting, size)
    truth = (yield measuring.step("truth", measuring.truth, about=measuring.about))["truth"].to_pandas()
    holding = 1 - truth.groupby("sigma")["flips"].mean() / size.reference
    sigma = nearest_sigma(holding.index.to_numpy(), holding.to_numpy(), SHARE)
    yield measuring.step("estimates", measuring.estimates)
    yield measuring.step("printed", partial(measuring.printed, sigma), sigma=sigma)
    yield measuring.step("many", partial(measuring.many, sigma), sigma=sigma)
    yield measuring.step("curvature", partial(measuring.curvature, sigma), sigma=sigma)


def without_network(problems: int, seed: int) -> Tables:
    """Return the sigmoid on random problems, and the counterexample."""
    problem_frames = [random_problems(dimension, kind, problems, seed) for kind in KINDS for dimension in DIMENSIONS]
    return {
        "problems": as_table(pd.concat(problem_frames, ignore_index=True)),
        "counterexample": as_table(pd.DataFrame([counterexample(dimension) for dimension in SPACES])),
    }


class OneNetwork(Measuring[Size]):
    """Measurements of a network."""

    @property
    def about(self) -> dict[str, Any]:
        """Return the facts of its training in `meta.json`."""
        meta = self.network.meta()
        return {
            "architecture": meta.get("architecture") or "other",
            "way": meta.get("way") or "other",
            "strength": float(meta.get("strength") or 0),
        }

    def truth(self) -> Tables:
        """Return facts of the network, its accuracy, and the flips of each point at each sigma."""
        model, (x, _) = self.load(), self.points(self.size.points)
        row = {
            "network": self.network.name,
            "dataset": self.network.dataset,
            **self.about,
            "accuracy": accuracy(model, *self.points(self.size.sample)),
        }
        parts = []
        for place, sigma in enumerate(SIGMAS):
            flips = count_flips(model, x, sigma, self.size.reference, self.setting.seed + 2 + place)
            columns = {"sigma": sigma, "point": range(len(x)), "flips": flips.numpy(), "draws": self.size.reference}
            parts.append(pd.DataFrame(columns))
        return {"network": pa.Table.from_pylist([row]), "truth": as_table(pd.concat(parts, ignore_index=True))}

    def estimates(self) -> Tables:
        """Run the papers' estimators at each sigma, and the sigmoid and the integral at their margins."""
        model, (x, _) = self.load(), self.points(self.size.points)
        frame = estimates(model, x, SIGMAS, self.size.budgets, self.setting.seed)
        return {"estimates": as_table(frame), "sigmoid": as_table(at_the_margins(model, x, SIGMAS))}

    def printed(self, sigma: float) -> Tables:
        """Estimate some points with the draws of the UAI paper, and with the few that it calls enough."""
        count, draws = self.size.printed
        frame = estimates(self.load(), self.points(count)[0], (sigma,), (PAPER_DRAWS, draws), self.setting.seed)
        return {"printed": as_table(frame)}

    def many(self, sigma: float) -> Tables:
        """Many points: their scores, their classes, and their most and least robust images."""
        model, (x, y) = self.load(), self.points(self.size.sample)
        draws = {COUNTED: self.size.counted, NORMAL: self.size.normal, MMSE_: self.size.draws}
        table, scores = score_many(model, x, y, sigma, draws, self.setting.seed)
        classes, bias = classes_of(table, scores)
        points, quarter = points_of(table, scores), max(2, len(x) // (4 * len(classes)))
        chosen = {by: sides(table, scores[by], quarter) for by in (NORMAL, SOFTMAX)}
        return {
            "points": as_table(points.assign(sigma=sigma)),
            "classes": as_table(classes),
            "bias": as_table(bias.assign(sigma=sigma)),
            "separability": as_table(separability(x, chosen, self.setting.seed)),
            "images": as_table(small_pictures(x, chosen, lambda by, row: float(points.at[row, by]))),
        }

    def curvature(self, sigma: float) -> Tables:
        """Return the bounds of the propositions at each point, without their constant."""
        x, _ = self.points(self.size.bent)
        return {"curvature": as_table(bounds(self.load(), x, sigma, self.setting.seed).assign(sigma=sigma))}
