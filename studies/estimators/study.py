"""The study of estimators: its sizes, its steps, its results."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from studies.counting import count_flips, sigma_of
from studies.estimators.entrants import as_printed, by_library, load_estimator, of_user
from studies.estimators.free import changed_by_corruption, distances, score_points
from studies.estimators.page import content
from studies.estimators.pictures import pictures
from studies.estimators.said import findings
from studies.estimators.summary import MIDDLE, summarise
from studies.networks import Network, find_networks, test_points
from studies.study import Setting, Step, Study, Tables
from studies.tables import as_table

LEVELS = {"small": 0.01, MIDDLE: 0.1, "large": 0.4}
"""Mean flip probability that each level of noise is chosen for."""

RARE = "small"
"""The level at which `rare_event` is measured: at the others it counts."""


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Attributes:
        points: test points of a network.
        reference: noisy copies by which the truth is counted.
        searching: noisy copies of a point by which a sigma is found.
        budgets: draws.
        free: test points for the free scores, of which the first are `points`.
        rare: whether `rare_event` takes part.
    """

    points: int
    reference: int
    searching: int
    budgets: tuple[int, ...]
    free: int
    rare: bool


SIZES = {
    "cpu": Size(40, 3000, 50, (5, 10, 20, 50, 100, 200), 400, True),
    "tiny": Size(12, 200, 20, (5, 10), 24, False),
}


def steps(setting: Setting) -> Generator[Step, Tables, None]:
    """Of each network: its noise levels, the truth, the estimates at each level, the free scores."""
    size = SIZES[setting.size]
    for written in setting.estimators:
        load_estimator(written)  # says now what is wrong with it
    for network in find_networks(setting.shared, setting.networks):
        measuring = Measuring(network, setting, size)
        levels = (yield measuring.step("levels", measuring.levels))["levels"].to_pandas()
        sigmas = dict(zip(levels["level"], levels["sigma"], strict=True))
        for level, sigma in sigmas.items():
            yield measuring.step(f"truth {level}", partial(measuring.truth, sigma))
            rare = size.rare and level == RARE
            yield measuring.step(f"library {level}", partial(measuring.by_library, sigma, rare))
            yield measuring.step(f"printed {level}", partial(measuring.as_printed, sigma))
            for written in setting.estimators:
                code = hashlib.sha256(Path(written.rpartition(":")[0]).read_bytes()).hexdigest()
                name = f"own {written.replace('/', '_')} {level}"
                yield measuring.step(name, partial(measuring.of_user, written, sigma), code=code)
        yield measuring.step("free", partial(measuring.free, sigmas[MIDDLE]))


@dataclass(frozen=True)
class Measuring:
    """What is measured of a network."""

    network: Network
    setting: Setting
    size: Size

    def step(self, name: str, run: Any, **identity: str) -> Step:
        """The step of this name."""
        same = {"network": self.network.digest, "seed": self.setting.seed, "size": asdict(self.size)} | identity
        return Step(f"{self.network.name}/{name}", same, run)

    def points(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The first test points and their labels, in an order that the seed decides."""
        return test_points(self.setting.shared, self.network.dataset, count, self.setting.seed)

    def levels(self) -> Tables:
        """The sigma of each level, and the accuracy of the network on the points of the free scores."""
        model, size = self.network.load(), self.size
        x, y = self.points(size.free)
        with torch.no_grad():
            right = float((model(x).argmax(1) == y).double().mean())
        seed = self.setting.seed + 1  # other draws than the truth's
        sigmas = [sigma_of(model, x[: size.points], share, size.searching, seed) for share in LEVELS.values()]
        columns = {"network": self.network.name, "dataset": self.network.dataset, "accuracy": right}
        return {"levels": as_table(pd.DataFrame({**columns, "level": [*LEVELS], "sigma": sigmas}))}

    def truth(self, sigma: float) -> Tables:
        """Flips of every point."""
        x, _ = self.points(self.size.points)
        flips = count_flips(self.network.load(), x, sigma, self.size.reference, self.setting.seed + 2)
        draws = np.full(len(flips), self.size.reference)
        return {"truth": pa.table({"flips": flips.numpy(), "draws": draws})}

    def by_library(self, sigma: float, rare: bool) -> Tables:
        """The library's estimators."""
        x, _ = self.points(self.size.points)
        found = by_library(self.network.load(), x, sigma, self.size.budgets, rare, self.setting.seed)
        return {"estimates": as_table(found)}

    def as_printed(self, sigma: float) -> Tables:
        """The paper's estimators."""
        x, _ = self.points(self.size.points)
        found = as_printed(self.network.load(), x, sigma, self.size.budgets, self.setting.seed)
        return {"estimates": as_table(found)}

    def of_user(self, written: str, sigma: float) -> Tables:
        """An estimator of a user."""
        x, _ = self.points(self.size.points)
        name, estimate = written.rpartition("/")[2], load_estimator(written)
        found = of_user(name, estimate, self.network.load(), x, sigma, self.size.budgets, self.setting.seed)
        return {"estimates": as_table(found)}

    def free(self, sigma: float) -> Tables:
        """The free scores, and what they are to foretell beside flips."""
        model, size, seed = self.network.load(), self.size, self.setting.seed
        x, y = self.points(size.free)
        scores, absent = score_points(model, x, sigma, seed)
        near = np.full(len(x), np.nan)
        near[: size.points] = distances(model, x[: size.points], seed)
        with torch.no_grad():
            wrong = (model(x).argmax(1) != y).double().numpy()
        outcomes = {"adversarial": -near, "corruption": changed_by_corruption(model, x, seed), "wrong": wrong}
        reasons = {"score": pa.array([*absent], pa.string()), "reason": pa.array([*absent.values()], pa.string())}
        return {"scores": as_table(scores), "outcomes": as_table(pd.DataFrame(outcomes)), "absent": pa.table(reasons)}


STUDY = Study(
    name="estimators",
    title="Which estimator of the flip probability, at which budget",
    papers=(
        "Han, Srinivas, Lakkaraju (UAI 2024)",
        "Han, Srinivas, Lakkaraju (ICML workshop 2023)",
        "Ngnawé et al. (NeurIPS 2024)",
        "Yang, Liu, Bilgic (TMLR 2023)",
    ),
    steps=steps,
    summarise=summarise,
    findings=findings,
    content=content,
    pictures=pictures,
)
