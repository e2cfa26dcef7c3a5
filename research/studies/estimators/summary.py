"""The results of the study of estimators, from the tables that its steps left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from studies.counting import error_of_counting
from studies.estimators.errors import errors_of
from studies.estimators.foretold import flips_of_confident, foretold
from studies.estimators.measures import MIDDLE
from studies.networks import names_of
from studies.over_networks import over_networks, sums
from studies.study import Tables
from studies.tables import as_table

KEYS = ("level", "origin", "estimator", "budget")

MANY = 10_000
"""Draws that the paper calls enough for counting."""


def summarise(tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
    """Return the results, by their names.

    `levels`, `errors`, `free`, `confident`, `absent`: of each network. `estimators`, `scores`: over networks.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for name in names_of(tables_by_step):
        steps_of_network = {
            step.partition("/")[2]: tables for step, tables in tables_by_step.items() if step.startswith(f"{name}/")
        }
        for result, frame in _of_network(steps_of_network).items():
            parts.setdefault(result, []).append(frame.assign(network=name))
    results = {result: pd.concat(frames, ignore_index=True) for result, frames in parts.items()}
    means = ("error", "bias", "spearman", "kendall", "width", "passes")
    estimators = over_networks(results["errors"], KEYS, means, ("ratio",), seed)
    counts = sums(results["errors"], KEYS, ("points", "intervals", "missed", "outside"))
    results["estimators"] = estimators.merge(counts, on=list(KEYS))
    results["scores"] = over_networks(
        results["free"], ("outcome", "score"), ("auc", "spearman", "kendall", "passes"), (), seed
    )
    return {result: as_table(frame) for result, frame in results.items()}


def _of_network(steps_of_network: Mapping[str, Tables]) -> dict[str, pd.DataFrame]:
    """Return the results of one network, from its steps."""
    levels = steps_of_network["levels"]["levels"].to_pandas()
    errors, flips = [], {}
    for level in levels["level"]:
        truth = steps_of_network[f"truth {level}"]["truth"].to_pandas()
        draws = int(truth["draws"].iloc[0])
        flips[level] = truth["flips"].to_numpy() / draws
        steps = [
            tables for step, tables in steps_of_network.items() if step.endswith(f" {level}") and "estimates" in tables
        ]
        estimates = pd.concat([tables["estimates"].to_pandas() for tables in steps], ignore_index=True)
        errors.append(errors_of(estimates, truth["flips"].to_numpy(), draws).assign(level=level))
        at_level = levels["level"] == level
        levels.loc[at_level, ["points", "reference", "flips", "unflipped", "error_of_many"]] = [
            len(truth), draws, flips[level].mean(), (flips[level] == 0).mean(),
            error_of_counting(flips[level], MANY, MANY**3),
        ]  # fmt: skip
        levels.loc[at_level, "error_of_truth"] = error_of_counting(flips[level], draws, MANY**3)
    free = steps_of_network["free"]
    scores, looked = free["scores"].to_pandas(), free["outcomes"].to_pandas()
    outcomes = {f"noise, {level}": _padded(flip, len(scores)) for level, flip in flips.items()}
    outcomes |= {name: looked[name].to_numpy() for name in looked.columns}
    confident = pd.DataFrame([flips_of_confident(scores, flips[MIDDLE])], columns=["points", "lowest", "highest"])
    return {
        "levels": levels,
        "errors": pd.concat(errors, ignore_index=True),
        "free": foretold(scores, outcomes),
        "confident": confident,
        "absent": free["absent"].to_pandas(),
    }


def _padded(flip: np.ndarray, length: int) -> np.ndarray:
    """As many numbers, NaN for those that were not counted."""
    return np.concatenate([flip, np.full(length - len(flip), np.nan)])
