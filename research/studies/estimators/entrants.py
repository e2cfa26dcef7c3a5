"""The estimators of the study: the library's, the papers' as printed, and a user's; one row per point each."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

import brittle
from brittle.scores import (
    MMSE,
    MMSEMVS,
    Moments,
    MonteCarlo,
    NoiseScore,
    RareEvent,
    Score,
    Shrinkage,
    Softmax,
    Taylor,
    TaylorMVS,
)
from studies.errors import StudyError
from studies.estimators import printed

LIBRARY, PRINTED, OWN = "library", "as printed", "of a user"
"""Origins of an estimator."""

COLUMNS = ("origin", "estimator", "budget", "point", "p_robust", "low", "high", "status", "passes")
"""Columns of a table of estimates; `budget` is the requested number of draws, 0 where none are."""

Estimator = Callable[[nn.Module, Tensor, float, int, torch.Generator], Any]
"""A user's estimator: see `of_user`."""

BY_DRAWS: dict[str, Callable[..., NoiseScore]] = {
    "monte_carlo": MonteCarlo,
    "moments": Moments,
    "shrinkage": Shrinkage,
    "shrinkage, all draws": partial(Shrinkage, limit=None),
    "mmse": MMSE,
    "mmse linear": partial(MMSE, form="linear"),
    "mmse_mvs": MMSEMVS,
}
"""The library's estimators that take a number of draws."""


class Counted(nn.Module):
    """A network that counts the rows that go through it, forward and backward."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.rows = 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        output = self.network(x)
        if output.requires_grad:
            output.register_hook(self._back)
        return output

    def _back(self, slope: Tensor) -> None:
        self.rows += len(slope)


@dataclass
class Rows:
    """The rows of a table of estimates, as they come."""

    parts: list[pd.DataFrame] = field(default_factory=list)

    def add(
        self,
        origin: str,
        estimator: str,
        budget: int,
        passes: Any,
        p_robust: Any,
        low: Any = np.nan,
        high: Any = np.nan,
        status: Any = "ok",
    ) -> None:
        """Return the estimates of all points by one estimator at one budget."""
        numbers = np.asarray(p_robust, dtype=np.float64)
        values = (origin, estimator, budget, np.arange(len(numbers)), numbers, low, high, status, passes)
        self.parts.append(pd.DataFrame(dict(zip(COLUMNS, values, strict=True))))

    def frame(self) -> pd.DataFrame:
        """All of them."""
        return pd.concat(self.parts, ignore_index=True)


def even(draws: int) -> int:
    """As many draws, or one more: the library's come in pairs."""
    return draws + draws % 2


def by_library(
    network: nn.Module, x: Tensor, sigma: float, budgets: Sequence[int], rare: bool, seed: int
) -> pd.DataFrame:
    """Every estimator of the library at every budget, in one run; `rare_event` where `rare`.

    Draws are shared as in every run of the library; the passes are those that each estimator needs by itself.
    """
    scores_by_key: dict[tuple[str, int], Score] = {
        ("taylor", 0): Taylor(sigma),
        ("taylor_mvs", 0): TaylorMVS(sigma),
        ("softmax", 0): Softmax(),
    }
    for name, kind in BY_DRAWS.items():
        scores_by_key |= {(name, budget): kind(sigma, draws=even(budget)) for budget in budgets}
    if rare:
        scores_by_key["rare_event", 0] = RareEvent(sigma)
    classifier = brittle.Classifier(network, bounds=(0, 1))
    table = brittle.score(classifier, x, [*scores_by_key.values()], seed=seed, most_failures=None)
    estimates = Rows()
    for (name, budget), score in scores_by_key.items():
        rows = table[score].rows
        estimates.add(
            LIBRARY, name, budget, rows["passes"].to_numpy(), 1 - rows["value"], 1 - rows["high"], 1 - rows["low"],
            rows["status"].to_numpy(),
        )  # fmt: skip
    return estimates.frame()


def as_printed(network: nn.Module, x: Tensor, sigma: float, budgets: Sequence[int], seed: int) -> pd.DataFrame:
    """Return the estimators of the paper as it prints them, at every budget."""
    estimates = Rows()
    for name, estimate in {
        "taylor": printed.taylor, "taylor_mvs": printed.taylor_mvs, "softmax": printed.softmax,
    }.items():  # fmt: skip
        _run(estimates, PRINTED, name, estimate, network, x, sigma, (0,), seed)
    _run(estimates, PRINTED, "monte_carlo", printed.monte_carlo, network, x, sigma, budgets, seed)
    counted = Counted(network)
    for budget, integral, sigmoid in printed.mmse_family(counted, x, sigma, budgets, _generator(seed)):
        for name, numbers in (("mmse", integral), ("mmse_mvs", sigmoid)):
            estimates.add(PRINTED, name, budget, counted.rows / len(x), numbers)
    return estimates.frame()


def of_user(
    name: str, estimate: Estimator, network: nn.Module, x: Tensor, sigma: float, budgets: Sequence[int], seed: int
) -> pd.DataFrame:
    """Return a user's estimator at every budget.

    It is called as `estimate(network, points, sigma, draws, generator)` with points `[B, *shape]` and gives `p_robust`,
    `[B]`, or `(p_robust, low, high)`, the ends of its 99% intervals besides. NaN stands where it has no number. Rows
    that go through `network` are counted, forward and backward.
    """
    estimates = Rows()
    _run(estimates, OWN, name, estimate, network, x, sigma, budgets, seed)
    return estimates.frame()


def _run(
    estimates: Rows,
    origin: str,
    name: str,
    estimate: Estimator,
    network: nn.Module,
    x: Tensor,
    sigma: float,
    budgets: Sequence[int],
    seed: int,
) -> None:
    for budget in budgets:
        counted = Counted(network)
        answer = estimate(counted, x, sigma, budget, _generator(seed))
        parts = answer if isinstance(answer, tuple) else (answer,)
        numbers = [np.asarray(torch.as_tensor(part).detach().double()) for part in parts]
        for part in numbers:
            if part.shape != (len(x),):
                raise StudyError(f"{name} gave numbers of shape {part.shape} for {len(x)} points; give one for each")
        status = np.where(np.isfinite(numbers[0]), "ok", "no number")
        estimates.add(origin, name, budget, counted.rows / len(x), *numbers, status=status)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def name_of(written: str) -> str:
    """Return the name in the results of an estimator `FILE.py:NAME`."""
    return written.rpartition("/")[2]


def check_estimators(written: Sequence[str]) -> None:
    """Check users' estimators before anything is measured.

    Raises:
        StudyError: there is none at `FILE.py:NAME`, or two have one name.
    """
    for spec in written:
        load_estimator(spec)
    names = [name_of(spec) for spec in written]
    if twice := [name for name in names if names.count(name) > 1]:
        raise StudyError(f"two estimators are called {twice[0]}; rename the file or the function of one")


def load_estimator(written: str) -> Estimator:
    """Return the function that `FILE.py:NAME` names.

    Raises:
        StudyError: there is none.
    """
    file, _, name = written.rpartition(":")
    if not file or not Path(file).is_file():
        raise StudyError(f"an estimator is written FILE.py:NAME; found {written!r}, and no file {file!r}")
    spec = importlib.util.spec_from_file_location(f"estimator_{Path(file).stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    estimate = getattr(module, name, None)
    if not callable(estimate):
        raise StudyError(f"{file} holds no function {name!r}")
    return estimate
