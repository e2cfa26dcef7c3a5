"""The results of the study, one number at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from studies.markdown import in_words
from studies.over_networks import mean_interval
from studies.study import Tables
from studies.tables import Frame

Row = Mapping[str, Any]
"""A row of one."""

SEED = 0
"""Seed of the bootstrap over networks."""


@dataclass(frozen=True)
class Results:
    """The results as frames.

    Attributes:
        tables: as they were left by `summarise`.
    """

    tables: Tables

    @cached_property
    def estimators(self) -> Frame:
        """Each estimator and budget at each level, over networks."""
        return self.tables["estimators"].to_pandas()

    @cached_property
    def errors(self) -> Frame:
        """The same of each network."""
        return self.tables["errors"].to_pandas()

    @cached_property
    def networks(self) -> Frame:
        """Each network and level."""
        return self.tables["levels"].to_pandas()

    @cached_property
    def scores(self) -> Frame:
        """Each free score and what it foretells, over networks."""
        return self.tables["scores"].to_pandas()

    @cached_property
    def free(self) -> Frame:
        """The same of each network."""
        return self.tables["free"].to_pandas()

    @cached_property
    def confident(self) -> Frame:
        """Flips of confident points by their Laplacian, of each network."""
        return self.tables["confident"].to_pandas().dropna()

    @cached_property
    def levels(self) -> list[str]:
        """The levels of noise, the smallest first."""
        return [*dict.fromkeys(self.networks["level"])]

    @cached_property
    def names(self) -> list[str]:
        """The networks."""
        return [*dict.fromkeys(self.networks["network"])]

    @cached_property
    def budgets(self) -> list[int]:
        """The numbers of draws, ascending, without the 0 of those that take none."""
        return sorted(set(self.estimators["budget"]) - {0})

    def reference(self, level: str) -> int:
        """Noisy copies of a point that the truth of a level is counted over."""
        return int(self.networks[self.networks["level"] == level]["reference"].iloc[0])

    @property
    def middle(self) -> int:
        """A usual number of draws: 20 where that is among the budgets."""
        return self.budgets[min(2, len(self.budgets) - 1)]

    @cached_property
    def of_one_pass(self) -> list[str]:
        """The free scores that cost one pass."""
        passes = self.scores.groupby("score", sort=False)["passes"].max()
        return [str(name) for name in passes[passes == 1].index]

    def one(self, level: str, origin: str, estimator: str, budget: int) -> Row:
        """Return the row of an estimator."""
        frame = self.estimators
        chosen = (frame["level"] == level) & (frame["origin"] == origin)
        (row,) = frame[chosen & (frame["estimator"] == estimator) & (frame["budget"] == budget)].itertuples(index=False)
        return row._asdict()

    def of_networks(self, level: str, origin: str, estimator: str, budget: int, column: str = "error") -> Frame:
        """Return a number of an estimator on each network, by its name."""
        frame = self.errors
        chosen = (frame["level"] == level) & (frame["origin"] == origin)
        chosen &= (frame["estimator"] == estimator) & (frame["budget"] == budget)
        return frame[chosen].set_index("network")[column]

    def foretells(self, outcome: str, score: str) -> Row:
        """Return the row of a free score."""
        frame = self.scores
        (row,) = frame[(frame["outcome"] == outcome) & (frame["score"] == score)].itertuples(index=False)
        return row._asdict()

    def best_score(self, outcome: str, scores: Sequence[str] | None = None) -> Row:
        """Return the row of the free score with the largest AUC; the first, where none has one."""
        frame = self.scores[self.scores["outcome"] == outcome]
        if scores is not None:
            frame = frame[frame["score"].isin(scores)]
        return frame.sort_values("auc", ascending=False, kind="stable").iloc[0].to_dict()

    def as_good(self, outcome: str, scores: Sequence[str] | None = None) -> list[str]:
        """Return the free score with the largest AUC, and those that cannot be told from it.

        These are those whose difference from the best one over networks has an interval that holds 0.
        """
        frame = self.free[self.free["outcome"] == outcome]
        wide = frame.pivot_table(index="network", columns="score", values="auc", sort=False)
        best = str(self.best_score(outcome, scores)["score"])
        candidates = [str(name) for name in wide.columns if name != best and (scores is None or name in scores)]
        return [best, *(name for name in candidates if not surely_above(wide[best] - wide[name]))]

    def worse(self, level: str, estimator: tuple[str, str, int], reference: tuple[str, str, int]) -> list[str]:
        """Return the networks on which one estimator is further off than another."""
        errors = self.of_networks(level, *estimator), self.of_networks(level, *reference)
        return [name for name in self.names if errors[0].get(name, np.nan) > errors[1].get(name, np.nan)]


def surely_above(differences: Frame) -> bool:
    """Return whether the mean over networks of these differences is above 0, by its interval."""
    present = differences.dropna().to_numpy(dtype=np.float64)
    return mean_interval(present, SEED)[1] > 0


def named(names: Sequence[str]) -> str:
    """Return the first of these, and those that cannot be told from it."""
    equals = in_words(f"`{name}`" for name in names[1:]) if len(names) > 1 else ""
    return f"`{names[0]}`" + (f" (from which {equals} cannot be told)" if equals else "")
