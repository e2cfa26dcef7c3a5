"""Flip probabilities in bins that widen, so that the tail shows beside the bulk."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column

EDGES = (0.0, 1e-6, 1e-4, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Ends of the bins: each holds what is above its lower end and at most its upper one, the first also 0."""

RANKS = {HOLDS: 0, UNDECIDED: 1, BREAKS: 2}
"""The order of the parts of a bar."""

_BINS = tuple(f"\u2264 {edge:g}" if edge >= 1e-4 else f"\u2264 {edge:.0e}".replace("e-0", "e-") for edge in EDGES[1:])


def tail_histogram(column: Column, limit: float) -> pd.DataFrame:
    """Points of a column of flip probabilities by bin, and whether they hold with probability `limit`.

    Args:
        column: flip probabilities.
        limit: a prediction holds where its whole interval of p_robust lies at this or above.

    Returns:
        A score that knows no noise decides nothing: all its points are undecided.
        `bin` (its name), `place_of_bin`, `state`, `rank` (of the state), `points` and their `share`
        of those with a number.
    """
    values = column.value.dropna()
    places = np.searchsorted(EDGES[1:], values.to_numpy(dtype=np.float64), side="left").clip(0, len(_BINS) - 1)
    knows = column.judges
    states = column.states(limit)[values.index] if knows else [UNDECIDED] * len(values)
    counts = pd.crosstab(places, np.asarray(states)).reindex(index=range(len(_BINS)), columns=list(RANKS), fill_value=0)
    rows = [
        (name, place, state, rank, int(counts.loc[place, state]))
        for place, name in enumerate(_BINS)
        for state, rank in RANKS.items()
    ]
    frame = pd.DataFrame(rows, columns=["bin", "place_of_bin", "state", "rank", "points"])
    return frame.assign(share=frame["points"] / max(len(values), 1))
