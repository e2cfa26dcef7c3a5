"""Error and cost of each estimator against Monte Carlo."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from brittle.analysis.columns import MONTE_CARLO
from brittle.analysis.correlation import kendall_tau
from brittle.store.columns import Column, Row
from brittle.store.representative import most_draws_by
from brittle.store.settings import NO_NOISE, Setting
from brittle.store.table import Table

MIN_SHARE_HELD_OUT = 0.5  # least share of the reference's draws that remain after those of an estimator are held out

_COLUMNS = (
    "sigma", "noise", "estimator", "score", "budget", "cost", "points", "left_out", "reference_draws",
    "mean_p_robust", "mae", "tau", "shares_draws", "floor",
)  # fmt: skip


def agreement(table: Table) -> pd.DataFrame:
    r"""Compare every estimator of p_robust with Monte Carlo with the most draws at the same noise.

    An estimator that read `m` of the reference's `N` draws, by the record, is compared with the votes of the others,

    $$f_{ref} = (N f_N - m f_m) / (N - m),$$

    so that no draw is on both sides. If fewer than half of the draws would remain, or the votes of the first `m`
    were not recorded, the whole reference is used and `shares_draws` is true: the error is then understated.

    The reference errs as well: `floor` is its own expected absolute error, the mean over points of
    `sqrt(2 / pi) sqrt(p (1 - p) / N_ref)`. An estimator with no error at all would still show about that much.

    Args:
        table: a run.

    Returns:
        One row per noise setting and column, sorted by sigma, then cost: `sigma`, `noise`, `estimator`, `score`,
        `budget` (draws per point, missing where the estimator draws nothing), `cost` (mean passes per point), `points`
        compared, `left_out` (points where either has no value), `reference_draws`, `mean_p_robust` of the reference,
        `mae` (mean absolute error), `tau` (Kendall's tau-b), `shares_draws`, `floor`. Empty without Monte Carlo.
    """
    columns = [column for column in table.columns if column.is_probability]
    counts = [column for column in columns if column.score == MONTE_CARLO and column.draws]
    references = most_draws_by(counts, lambda column: column.setting)
    rows = []
    for setting, reference in references.items():
        same = (reference.variant, setting)
        votes = {column.draws: column for column in counts if (column.variant, column.setting) == same}
        rivals = [column for column in columns if column.setting in (setting, NO_NOISE) and column is not reference]
        rows += [_compare(column, *_hold_out(column, reference, votes), setting) for column in rivals]
    frame = pd.DataFrame(rows, columns=_COLUMNS).astype({"budget": "Int64"})
    return frame.sort_values(["sigma", "noise", "cost", "estimator"], ignore_index=True)


def _hold_out(column: Column, reference: Column, votes: Mapping[int | None, Column]) -> tuple[pd.Series, int, bool]:
    """Return the reference without the draws that `column` shares, their number, and whether it still shares some."""
    total = reference.draws or 0
    common = column.sources.keys() & reference.sources.keys()
    if not common:
        return reference.value, total, False
    shared = max(column.sources[source] for source in common)
    shared_votes, remaining = votes.get(shared), total - shared
    if shared_votes is None or remaining < MIN_SHARE_HELD_OUT * total:
        return reference.value, total, True
    held_out = (total * reference.value - shared * shared_votes.value) / remaining
    return held_out.clip(0.0, 1.0), remaining, False


def _compare(column: Column, flips: pd.Series, draws: int, shares_draws: bool, setting: Setting) -> Row:
    pairs = pd.DataFrame({"estimate": column.value, "truth": flips})
    complete = pairs.dropna()
    spread = np.sqrt(complete["truth"] * (1.0 - complete["truth"]) / draws)
    return {
        "sigma": setting.sigma,
        "noise": setting.noise,
        "estimator": column.variant,
        "score": column.score,
        "budget": column.draws,
        "cost": column.cost,
        "points": len(complete),
        "left_out": len(pairs) - len(complete),
        "reference_draws": draws,
        "mean_p_robust": 1.0 - complete["truth"].mean(),
        "mae": (complete["estimate"] - complete["truth"]).abs().mean(),
        "tau": kendall_tau(complete["estimate"], complete["truth"]),
        "shares_draws": shares_draws,
        "floor": np.sqrt(2.0 / np.pi) * spread.mean(),
    }
