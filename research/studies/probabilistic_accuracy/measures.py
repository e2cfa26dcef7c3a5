"""Measurements of the study of probabilistic robust accuracy, their size and their steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

import brittle
from brittle.analysis import probabilistic_accuracy
from brittle.scores import MonteCarlo
from studies.counting import sigma_of
from studies.measuring import Measuring
from studies.networks import Network
from studies.probabilistic_accuracy.blocks import flips_by_block
from studies.study import Setting, Steps, Tables
from studies.tables import as_table

RHOS = (0.9, 0.95, 0.99)
"""Probabilities of keeping the prediction that are asked for."""

LEVELS = {"small": 0.01, "middle": 0.1}
"""Mean flip probability that each level of noise is chosen for."""


@dataclass(frozen=True)
class Size:
    """Size of the measurements.

    Attributes:
        points: test points of a network.
        blocks: repeats of the usual estimate; all their copies together are the truth.
        searching: noisy copies of a point by which a sigma is found.
        draws: largest number of noisy copies of a point that the library counts.
    """

    points: int
    blocks: int
    searching: int
    draws: int


SIZES = {"cpu": Size(30, 20, 10, 2000), "paper": Size(1000, 20, 20, 10_000), "tiny": Size(12, 4, 10, 400)}


def of_network(network: Network, setting: Setting) -> Steps:
    """Its noise levels; at each the usual estimate many times, and the library's."""
    measuring = OneNetwork(network, setting, SIZES[setting.size])
    levels = (yield measuring.step("levels", measuring.levels))["levels"].to_pandas()
    for level, sigma in zip(levels["level"], levels["sigma"], strict=True):
        yield measuring.step(f"counted {level}", partial(measuring.counted, sigma), sigma=sigma)
        yield measuring.step(f"library {level}", partial(measuring.by_library, sigma), sigma=sigma, rhos=RHOS)


class OneNetwork(Measuring[Size]):
    """Measurements of a network."""

    def levels(self) -> Tables:
        """Return the sigma of each level."""
        model, (x, _) = self.load(), self.points(self.size.points)
        seed = self.setting.seed + 1  # other draws than those that are counted
        sigmas = [sigma_of(model, x, share, self.size.searching, seed) for share in LEVELS.values()]
        columns = {"network": self.network.name, "dataset": self.network.dataset}
        return {"levels": as_table(pd.DataFrame({**columns, "level": [*LEVELS], "sigma": sigmas}))}

    def counted(self, sigma: float) -> Tables:
        """Flips of each point in each block, a column a block, and whether the point is predicted right."""
        model, (x, y) = self.load(), self.points(self.size.points)
        flips = flips_by_block(model, x, sigma, self.size.blocks, self.setting.seed + 2)
        with torch.no_grad():
            correct = model(x).argmax(1) == y
        return {
            "right": pa.table({"right": correct.numpy()}),
            "flips": as_table(pd.DataFrame(flips.numpy(), columns=[f"{block}" for block in range(self.size.blocks)])),
        }

    def by_library(self, sigma: float) -> Tables:
        """Return the library's answer for each `rho`, counted until each point is decided."""
        (x, y), rows = self.points(self.size.points), []
        for rho in RHOS:
            classifier = brittle.Classifier(self.load(), bounds=(0, 1))
            run = brittle.score(
                classifier, (x, y), [MonteCarlo(sigma, draws=self.size.draws, limit=rho)], seed=self.setting.seed,
                most_failures=None,
            )  # fmt: skip
            answer = probabilistic_accuracy(run, rho)
            passes = float(np.mean(answer.column.rows["passes"].to_numpy()))
            rows.append({
                "rho": rho, "lower": answer.lower, "upper": answer.upper, "low": answer.low, "high": answer.high,
                "undecided": answer.undecided, "passes": passes,
            })  # fmt: skip
        return {"accuracy": as_table(pd.DataFrame(rows))}
