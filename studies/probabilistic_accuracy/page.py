"""What the page of the study reads: tables and numbers in words, all of them from the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.counting import SURE
from studies.markdown import decimals, in_words, percent, significant, slashed, table
from studies.probabilistic_accuracy.blocks import COPIES
from studies.probabilistic_accuracy.said import STRICT, missed, results
from studies.study import Tables
from studies.tables import Frame, minutes_of


def content(tables: Tables) -> Mapping[str, Any]:
    """The values of the template's names."""
    frame = results(tables)
    first = frame.iloc[0]
    limit = 1 - STRICT
    return {
        "networks": frame["network"].nunique(),
        "datasets": in_words(frame["dataset"]),
        "points": int(first["points"]),
        "copies": COPIES,
        "flips": slashed(100 * frame.groupby("level", sort=False)["flips"].mean(), 1),
        "blocks": int(first["draws"]) // COPIES,
        "draws": f"{int(first['draws']):,}",
        "sure": percent(SURE, 1),
        "strict": decimals(STRICT, 2),
        "limit": decimals(limit, 2),
        "passing_table": passing_table(limit),
        "tables": {decimals(rho, 2): accuracy_table(frame[frame["rho"] == rho]) for rho in sorted(set(frame["rho"]))},
        "minutes": decimals(minutes_of(tables), 0),
    }


def passing_table(limit: float) -> str:
    """How often points of known flip probability have no flip."""
    flips = [limit * share for share in (0.1, 0.5, 1, 2, 3, 5)]
    return table(
        ("flip probability", *(significant(one) for one in flips)),
        [("without a flip", *(percent((1 - one) ** COPIES) for one in flips))],
    )


def accuracy_table(frame: Frame) -> str:
    """The truth, the usual estimate and the library's answer, of each network and level."""
    rows = [
        (
            f"`{one.network}`", one.level, significant(one.sigma, 3),
            f"{percent(one.truth_low)} to {percent(one.truth_high)}",
            f"{percent(one.usual, 1)} ({percent(one.usual_least)} to {percent(one.usual_most)})",
            percent(miss, 1), percent(one.false, 1),
            f"{percent(one.lower)} to {percent(one.upper)}", decimals(one.passes, 0),
        )
        for one, miss in zip(frame.itertuples(), missed(frame), strict=True)
    ]  # fmt: skip
    head = (
        "network", "noise", "sigma", "truth", "no flip (all repeats)", "too low by", "falsely robust",
        "counted until decided", "passes",
    )  # fmt: skip
    return table(head, rows)
