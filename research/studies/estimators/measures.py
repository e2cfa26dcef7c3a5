"""Measurements of the study of estimators, their size and their steps."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from studies.counting import count_flips, sigma_of
from studies.estimators.entrants import as_printed, by_library, load_estimator, name_of, of_user
from studies.estimators.free import changed_by_corruption, distances, score_points
from studies.measuring import Measuring
from studies.networks import Network
from studies.study import Setting, Steps, Tables
from studies.tables import as_table

MIDDLE = "middle"
"""The level of noise of the free scores that know of noise."""

LEVELS = {"small": 0.01, MIDDLE: 0.1, "large": 0.4}
"""Mean flip probability that each level of noise is chosen for."""

RARE = "small"
"""The level at which `rare_event` is measured: at the others it counts."""


@dataclass(frozen=True)
class Size:
    """Size of the measurements.

    Attributes:
        points: test points of a network.
        reference: noisy copies by which the truth is counted, at each level.
        searching: noisy copies of a point by which a sigma is found.
        budgets: draws.
        free: test points for the free scores, of which the first are `points`.
        rare: whether `rare_event` takes part.
    """

    points: int
    reference: tuple[int, int, int]
    searching: int
    budgets: tuple[int, ...]
    free: int
    rare: bool


SIZES = {
    "cpu": Size(16, (3000, 1000, 1000), 20, (5, 10, 20, 50, 200), 200, True),
    "paper": Size(1000, (10_000, 10_000, 10_000), 50, (5, 10, 20, 50, 200, 500), 1000, True),
    "tiny": Size(12, (300, 200, 200), 20, (5, 10), 24, False),
}


def of_network(network: Network, setting: Setting) -> Steps:
    """Its noise levels, the truth, the estimates at each level, the free scores."""
    measuring = OneNetwork(network, setting, SIZES[setting.size])
    codes = {written: code_of(written) for written in setting.estimators}
    levels = (yield measuring.step("levels", measuring.levels))["levels"].to_pandas()
    sigmas = dict(zip(levels["level"], levels["sigma"], strict=True))
    for (level, sigma), copies in zip(sigmas.items(), measuring.size.reference, strict=True):
        yield measuring.step(f"truth {level}", partial(measuring.truth, sigma, copies), sigma=sigma)
        rare = measuring.size.rare and level == RARE
        yield measuring.step(f"library {level}", partial(measuring.by_library, sigma, rare), sigma=sigma)
        yield measuring.step(f"printed {level}", partial(measuring.as_printed, sigma), sigma=sigma)
        for written, code in codes.items():
            run = partial(measuring.of_user, written, sigma)
            yield measuring.step(f"own {name_of(written)} {level}", run, sigma=sigma, own_code=code)
    yield measuring.step("free", partial(measuring.free, sigmas[MIDDLE]), sigma=sigmas[MIDDLE])


def code_of(written: str) -> str:
    """SHA-256 of the file of a user's estimator."""
    return hashlib.sha256(Path(written.rpartition(":")[0]).read_bytes()).hexdigest()


class OneNetwork(Measuring[Size]):
    """Measurements of a network."""

    def levels(self) -> Tables:
        """Return the sigma of each level, and the accuracy of the network on the points of the free scores."""
        model, size = self.load(), self.size
        x, y = self.points(size.free)
        with torch.no_grad():
            accuracy = float((model(x).argmax(1) == y).double().mean())
        seed = self.setting.seed + 1  # other draws than the truth's
        sigmas = [sigma_of(model, x[: size.points], share, size.searching, seed) for share in LEVELS.values()]
        columns = {"network": self.network.name, "dataset": self.network.dataset, "accuracy": accuracy}
        return {"levels": as_table(pd.DataFrame({**columns, "level": [*LEVELS], "sigma": sigmas}))}

    def truth(self, sigma: float, copies: int) -> Tables:
        """Flips of every point."""
        x, _ = self.points(self.size.points)
        flips = count_flips(self.load(), x, sigma, copies, self.setting.seed + 2)
        draws = np.full(len(flips), copies)
        return {"truth": pa.table({"flips": flips.numpy(), "draws": draws})}

    def by_library(self, sigma: float, rare: bool) -> Tables:
        """Return the library's estimators."""
        x, _ = self.points(self.size.points)
        frame = by_library(self.load(), x, sigma, self.size.budgets, rare, self.setting.seed)
        return {"estimates": as_table(frame)}

    def as_printed(self, sigma: float) -> Tables:
        """Return the paper's estimators."""
        x, _ = self.points(self.size.points)
        frame = as_printed(self.load(), x, sigma, self.size.budgets, self.setting.seed)
        return {"estimates": as_table(frame)}

    def of_user(self, written: str, sigma: float) -> Tables:
        """Return an estimator of a user."""
        x, _ = self.points(self.size.points)
        estimate = load_estimator(written)
        frame = of_user(name_of(written), estimate, self.load(), x, sigma, self.size.budgets, self.setting.seed)
        return {"estimates": as_table(frame)}

    def free(self, sigma: float) -> Tables:
        """Return the free scores, and what they are to foretell beside flips."""
        model, size, seed = self.load(), self.size, self.setting.seed
        x, y = self.points(size.free)
        scores, absent = score_points(model, x, sigma, seed)
        near = np.full(len(x), np.nan)
        near[: size.points] = distances(model, x[: size.points], seed)
        with torch.no_grad():
            wrong = (model(x).argmax(1) != y).double().numpy()
        outcomes = {"adversarial": -near, "corruption": changed_by_corruption(model, x, seed), "wrong": wrong}
        reasons = {"score": pa.array([*absent], pa.string()), "reason": pa.array([*absent.values()], pa.string())}
        return {"scores": as_table(scores), "outcomes": as_table(pd.DataFrame(outcomes)), "absent": pa.table(reasons)}
