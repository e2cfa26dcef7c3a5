"""The results of the study, from the tables that its steps left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.counting import exact_interval
from studies.networks import names_of
from studies.probabilistic_accuracy.blocks import COPIES
from studies.probabilistic_accuracy.measures import RHOS
from studies.study import Tables
from studies.tables import as_table


def summarise(tables_by_step: Mapping[str, Tables], seed: int) -> Tables:
    """`accuracy`: a row for each network, level and `rho`."""
    del seed  # nothing is drawn here
    rows = []
    for name in names_of(tables_by_step):
        for noise in tables_by_step[f"{name}/levels"]["levels"].to_pandas().itertuples():
            counted = tables_by_step[f"{name}/counted {noise.level}"]
            library = tables_by_step[f"{name}/library {noise.level}"]["accuracy"].to_pandas().set_index("rho")
            correct = counted["right"].to_pandas()["right"].to_numpy()
            flips = counted["flips"].to_pandas().to_numpy()
            for rho in RHOS:
                keys = {
                    "network": name,
                    "dataset": noise.dataset,
                    "level": noise.level,
                    "sigma": noise.sigma,
                    "rho": rho,
                }
                rows.append(keys | accuracies(correct, flips, rho) | library.loc[rho].to_dict())
    return {"accuracy": as_table(pd.DataFrame(rows))}


def accuracies(correct: NDArray[np.bool_], flips: NDArray[np.int64], rho: float) -> dict[str, float]:
    """Return the truth, and what the usual estimate makes of it, from `flips`, `[points, blocks]`.

    `truth_low` is the share of points that are right and surely hold, by exact intervals over all copies, `truth_high`
    that of those that may. `usual` is the share that is right and without a flip in a block, on average over blocks,
    and `usual_least` and `usual_most` are its range. `false` is the share of points that surely break among those that
    the usual estimate calls holding; `doubted` that of points not called so among those that surely hold.
    """
    draws = flips.shape[1] * COPIES
    low, high = exact_interval(flips.sum(axis=1), draws)
    holds, breaks = correct & (high <= 1 - rho), correct & (low > 1 - rho)
    called = correct[:, None] & (flips == 0)
    usual = called.mean(axis=0)
    return {
        "points": len(correct),
        "draws": draws,
        "flips": float(flips.sum() / (len(correct) * draws)),
        "right": float(correct.mean()),
        "truth_low": float(holds.mean()),
        "truth_high": float((correct & ~breaks).mean()),
        "usual": float(usual.mean()),
        "usual_least": float(usual.min()),
        "usual_most": float(usual.max()),
        "false": _share(called[breaks].sum(), called.sum()),
        "doubted": _share((~called[holds]).sum(), called[holds].size),
    }


def _share(part: float, total: float) -> float:
    return float(part / total) if total else np.nan
