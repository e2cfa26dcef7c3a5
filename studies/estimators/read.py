"""The results of the study, asked for one number at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from studies.study import Tables


@dataclass(frozen=True)
class Results:
    """The results as frames.

    Attributes:
        tables: as they were left by `summarise`.
    """

    tables: Tables

    @cached_property
    def estimators(self) -> pd.DataFrame:
        """Each estimator and budget at each level, over networks."""
        return self.tables["estimators"].to_pandas()

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The same of each network."""
        return self.tables["errors"].to_pandas()

    @cached_property
    def networks(self) -> pd.DataFrame:
        """Each network and level."""
        return self.tables["levels"].to_pandas()

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Each free score and what it foretells, over networks."""
        return self.tables["scores"].to_pandas()

    @cached_property
    def free(self) -> pd.DataFrame:
        """The same of each network."""
        return self.tables["free"].to_pandas()

    @cached_property
    def confident(self) -> pd.DataFrame:
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

    def one(self, level: str, origin: str, estimator: str, budget: int) -> pd.Series:
        """The row of an estimator."""
        frame = self.estimators
        chosen = (frame["level"] == level) & (frame["origin"] == origin)
        (found,) = frame[chosen & (frame["estimator"] == estimator) & (frame["budget"] == budget)].itertuples(index=False)
        return pd.Series(found._asdict())

    def of_networks(self, level: str, origin: str, estimator: str, budget: int, column: str = "error") -> pd.Series:
        """A number of an estimator on each network, by its name."""
        frame = self.errors
        chosen = (frame["level"] == level) & (frame["origin"] == origin)
        chosen &= (frame["estimator"] == estimator) & (frame["budget"] == budget)
        return frame[chosen].set_index("network")[column]

    def foretells(self, outcome: str, score: str) -> pd.Series:
        """The row of a free score."""
        frame = self.scores
        (found,) = frame[(frame["outcome"] == outcome) & (frame["score"] == score)].itertuples(index=False)
        return pd.Series(found._asdict())

    def best_score(self, outcome: str, scores: Sequence[str] | None = None) -> pd.Series:
        """The row of the free score with the largest AUC."""
        frame = self.scores[self.scores["outcome"] == outcome]
        if scores is not None:
            frame = frame[frame["score"].isin(scores)]
        return frame.loc[frame["auc"].idxmax()]

    def worse(self, level: str, one: tuple[str, str, int], other: tuple[str, str, int]) -> list[str]:
        """The networks on which one estimator is further off than another."""
        errors = self.of_networks(level, *one), self.of_networks(level, *other)
        return [name for name in self.names if errors[0].get(name, np.nan) > errors[1].get(name, np.nan)]
